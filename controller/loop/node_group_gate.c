#include "base/log.h"
#include "controller/loop/node_group_parts.h"

static const int64_t MILLI = 1000;

/* The whole of a group once in GROWTH_SPAN: what is bought faster than that does not last, or nobody wants it. */
static int64_t allowance(const struct node_group *g)
{
	int64_t most = group_spec_of(g)->max_nodes + group_spec_of(g)->standby_max_nodes;

	return most > GROWTH_LEAST ? most : GROWTH_LEAST;
}

static void run_out(struct node_group *g)
{
	struct growth *w = &g->growth;
	millis now = clock_mono(g->context->clock), passed = now - w->at;

	if (passed >= GROWTH_SPAN)
		w->level_milli = 0;
	else if (passed > 0)
		w->level_milli -= allowance(g) * MILLI * passed / GROWTH_SPAN;
	if (w->level_milli < 0)
		w->level_milli = 0;
	w->at = now;
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

int64_t gate_growth(struct node_group *g, int64_t machines)
{
	if (g->context->is_barred)
		return machines; /* a dry run wishes the same again and again, and buys nothing */
	run_out(g);
	int64_t room = allowance(g) - (g->growth.level_milli + MILLI - 1) / MILLI, granted = machines;

	if (granted > room)
		granted = room > 0 ? room : 0;
	hold(g, machines - granted, "more machines within five minutes than the group may ever have");
	g->growth.level_milli += granted * MILLI;
	return granted;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t gate_clamp(struct node_group *g, enum provider_verb verb, int64_t desired)
{
	bool is_standby = verb == PROVIDER_STANDBY;
	int64_t present = is_standby ? g->seen.standby : g->seen.desired;
	int64_t most = is_standby ? sizes_most_standby(g) : sizes_most(g);

	if ((verb != PROVIDER_GROW && !is_standby) || desired <= present)
		return desired;
	/* What is wished counts as asked for there: fewer than none are left when it is too much. */
	int64_t left = g->context->affordable ? g->context->affordable(g->context->user, g->index) : 0;
	int64_t over = left < 0 ? -left : 0;
	int64_t clamped = at_most(at_most(desired, most), desired - over);
	if (clamped < present)
		clamped = present;
	hold(g, desired - clamped, "more than the manifest in force or its budget allows");
	return clamped;
}
