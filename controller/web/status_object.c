#include "controller/web/status_object.h"

#include "base/json.h"
#include "controller/web/conditions.h"
#include "controller/web/pool_figures.h"

#include <inttypes.h>
#include <string.h>

static const char *const status_names[] = {
	[CONDITION_UNTOLD] = "Unknown",
	[CONDITION_FALSE] = "False",
	[CONDITION_TRUE] = "True",
	[CONDITION_UNKNOWN] = "Unknown",
};

enum { MESSAGE_LONGEST = 1024, REASON_LONGEST = 1024 };

/* Cut at a character. */
static void text_member(const char *key, const char *text, size_t longest, struct buf *out)
{
	CLEANUP(buf_release) struct buf cut = { 0 };
	size_t len = strlen(text);

	if (len > longest)
		for (len = longest; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	buf_append(&cut, text, len);
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	json_write_text(cut.text ? cut.text : "", out);
}

static void number_member(const char *key, int64_t value, struct buf *out)
{
	json_write_comma(out);
	json_write_text(key, out);
	if (value == ABSENT)
		buf_text(out, ":null");
	else
		buf_printf(out, ":%" PRId64, value);
}

static void time_member(const char *key, millis at, struct buf *out)
{
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	status_time(at, out);
}

static void write_condition(enum condition_type type, const struct condition_text *now, millis at,
			    struct conditions *kept, struct buf *out)
{
	struct condition *c = &kept->items[type];

	if (c->status != now->status)
		*c = (struct condition){ now->status, at };
	json_write_comma(out);
	buf_text(out, "{");
	text_member("type", condition_type_name(type), MESSAGE_LONGEST, out);
	text_member("status", status_names[now->status], MESSAGE_LONGEST, out);
	text_member("reason", now->reason, MESSAGE_LONGEST, out);
	text_member("message", now->message->text ? now->message->text : "", MESSAGE_LONGEST, out);
	time_member("lastTransitionTime", c->since, out);
	buf_text(out, "}");
}

static void write_conditions(const struct published *p, size_t pool, struct conditions *kept, struct buf *out)
{
	buf_text(out, ",\"conditions\":[");
	for (int i = 0; i < CONDITION_COUNT; i++) {
		CLEANUP(buf_release) struct buf message = { 0 };
		struct condition_text now = { .message = &message };

		condition_tell((enum condition_type)i, p, pool, &now);
		write_condition((enum condition_type)i, &now, p->snapshot->now, kept, out);
	}
	buf_text(out, "]");
}

/* Texts, as columns of kubectl show them. */
static void write_figures(const struct pool_decision *d, struct buf *out)
{
	CLEANUP(buf_release) struct buf demand = { 0 }, headroom = { 0 }, lead = { 0 }, wait = { 0 };

	number_member("hot", d->ready, out);
	number_member("standby", d->standby, out);
	number_member("starting", d->on_the_way, out);
	number_member("draining", d->draining, out);
	figure_replicas(d->demand_milli == ABSENT ? 0 : d->demand_milli, &demand);
	text_member("demand", demand.text, MESSAGE_LONGEST, out);
	figure_replicas(figure_headroom_milli(d), &headroom);
	text_member("headroom", headroom.text, MESSAGE_LONGEST, out);
	figure_lead_time(d, &lead);
	text_member("leadTime", lead.text ? lead.text : "", MESSAGE_LONGEST, out);
	figure_wait_text(d, &wait);
	text_member("wait", wait.text, MESSAGE_LONGEST, out);
}

static void write_decision(const struct published *p, size_t pool, struct buf *out)
{
	const struct pool_decision *d = &p->plan->pools[pool].decision;
	const char *reason = p->pools[pool].reason;

	buf_text(out, ",\"lastDecision\":{");
	number_member("tick", p->snapshot->tick, out);
	time_member("time", p->snapshot->now, out);
	number_member("wished", d->wished, out);
	number_member("decided", d->decided, out);
	text_member("heldBy", limit_name((enum limit)d->held_by), MESSAGE_LONGEST, out);
	text_member("reason", reason ? reason : "", REASON_LONGEST, out);
	buf_text(out, "}");
}

static void write_groups(const struct published *p, size_t pool, struct buf *out)
{
	const struct pool_plan *plan = &p->plan->pools[pool];

	buf_text(out, ",\"nodeGroups\":[");
	for (size_t i = 0; i < plan->group_count; i++) {
		const struct group_decision *g = &plan->groups[i];
		bool is_blocked = g->blocked_until > p->snapshot->now;

		json_write_comma(out);
		buf_text(out, "{");
		text_member("name", p->fleet->groups[p->fleet->pools[pool].groups[i]].name, MESSAGE_LONGEST, out);
		number_member("nodes", g->nodes, out);
		number_member("desired", g->nodes_desired, out);
		if (is_blocked)
			time_member("blockedUntil", g->blocked_until, out);
		text_member("heldBy", limit_name((enum limit)g->held_by), MESSAGE_LONGEST, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void status_object_write(const struct published *p, size_t pool, struct conditions *kept, struct buf *out)
{
	const struct published_pool *shown = &p->pools[pool];

	buf_text(out, "{\"status\":{");
	number_member("observedGeneration", shown->generation, out);
	write_figures(&p->plan->pools[pool].decision, out);
	time_member("lastChange", shown->changed_at, out);
	write_decision(p, pool, out);
	write_groups(p, pool, out);
	write_conditions(p, pool, kept, out);
	buf_text(out, "}}");
}

void status_refused_write(const char *why, int64_t generation, millis now, struct conditions *kept, struct buf *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };
	struct condition_text text = { .status = CONDITION_FALSE, .reason = "Refused", .message = &message };

	buf_text(&message, why);
	/* What was shown before it was refused is not true any more. */
	buf_text(out, "{\"status\":{\"hot\":null,\"standby\":null,\"starting\":null,\"draining\":null,\"demand\":null,"
		      "\"headroom\":null,\"leadTime\":null,\"wait\":null,\"lastDecision\":null,\"nodeGroups\":null");
	number_member("observedGeneration", generation, out);
	buf_text(out, ",\"conditions\":[");
	write_condition(CONDITION_READY, &text, now, kept, out);
	buf_text(out, "]}}");
}

void condition_adopt(struct conditions *kept, const char *type, const char *status, millis since)
{
	for (int i = 0; i < CONDITION_COUNT; i++)
		for (int s = CONDITION_FALSE; s <= CONDITION_UNKNOWN; s++)
			if (!strcmp(type, condition_type_name((enum condition_type)i)) &&
			    !strcmp(status, status_names[s]))
				kept->items[i] = (struct condition){ (enum condition_status)s, since };
}
