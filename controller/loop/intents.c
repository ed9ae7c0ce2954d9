#include "controller/loop/parts.h"

#include "state/launch.h"

#include <string.h>

static struct node_group *group_of(const struct controller *c, const char *name)
{
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (!strcmp(fleet_of(c)->groups[i].name, name))
			return &c->groups[i];
	return NULL;
}

/* The last of a group is the one that the cloud may still work on. */
static bool is_last(const struct launch *open, size_t count, size_t i)
{
	for (size_t k = i + 1; k < count; k++)
		if (!strcmp(open[k].group, open[i].group))
			return false;
	return true;
}

bool intents_adopt(struct controller *c, struct error *e)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count;
	bool ok = launch_open_ones(c->history, &a, &open, &count, e);

	for (size_t i = 0; ok && i < count; i++) {
		struct node_group *g = group_of(c, open[i].group);
		bool goes_on = g && open[i].operation[0] && is_last(open, count, i);
		log_info("intent-found", LOG_S("operation", open[i].token), LOG_S("group", open[i].group),
			 LOG_I("target", open[i].target), LOG_B("goes_on", goes_on), LOG_END);
		if (goes_on)
			node_group_resume(g, open[i].token, open[i].operation, open[i].asked_at);
		else
			ok = launch_end(c->history, open[i].token, "adopted", clock_now(c->clock), e);
	}
	arena_release(&a);
	return ok;
}
