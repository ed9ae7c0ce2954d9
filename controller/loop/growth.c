#include "controller/loop/growth.h"

#include "base/log.h"

static const int64_t MILLI = 1000;

/* The whole of a group at once. */
static int64_t allowance(const struct node_group *g)
{
	int64_t most = group_spec_of(g)->max_nodes + group_spec_of(g)->standby_max_nodes;

	return most > GROWTH_LEAST ? most : GROWTH_LEAST;
}

static void hold(struct node_group *g, int64_t machines, const char *what)
{
	if (machines <= 0)
		return;
	g->growth.held += machines;
	g->growth.held_until = clock_mono(g->context->clock) + GROWTH_SPAN;
	log_error("growth-held", LOG_S("group", group_spec_of(g)->name), LOG_I("machines", machines),
		  LOG_S("why", what), LOG_END);
}

int64_t growth_allow(struct node_group *g, int64_t machines)
{
	struct growth *w = &g->growth;
	millis now = clock_mono(g->context->clock), passed = now - w->at;

	if (g->context->is_barred)
		return machines; /* a dry run wishes the same again and again, and buys nothing */
	if (passed >= GROWTH_SPAN)
		w->level_milli = 0;
	else if (passed > 0)
		w->level_milli -= allowance(g) * MILLI * passed / GROWTH_SPAN;
	w->level_milli = w->level_milli > 0 ? w->level_milli : 0;
	w->at = now;
	int64_t room = allowance(g) - (w->level_milli + MILLI - 1) / MILLI, granted = machines < room ? machines : room;
	if (granted < 0)
		granted = 0;
	hold(g, machines - granted, "more machines within five minutes than the group may ever have");
	w->level_milli += granted * MILLI;
	return granted;
}

void growth_give_back(struct node_group *g, int64_t machines)
{
	struct growth *w = &g->growth;

	w->level_milli -= machines * MILLI;
	w->level_milli = w->level_milli > 0 ? w->level_milli : 0;
}

int64_t growth_clamp(struct node_group *g, enum provider_verb verb, int64_t desired, int64_t most)
{
	bool is_standby = verb == PROVIDER_STANDBY;
	int64_t present = is_standby ? g->seen.standby : g->seen.desired;

	if ((verb != PROVIDER_GROW && !is_standby) || desired <= present)
		return desired;
	/* What is wished counts as asked for there: fewer than none are left when it is too much. */
	int64_t left = g->context->affordable ? g->context->affordable(g->context->user, g->index) : 0;
	int64_t over = left < 0 ? -left : 0;
	int64_t clamped = desired - over < most ? desired - over : most;
	if (clamped < present)
		clamped = present;
	hold(g, desired - clamped, "more than the manifest in force or its budget allows");
	return clamped;
}
