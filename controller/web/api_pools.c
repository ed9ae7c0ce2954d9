/* GET /api/v1/pools: every pool as it stands. */
#include "controller/explain/explain.h"
#include "controller/web/api_lately.h"
#include "controller/web/api_pool_groups.h"
#include "controller/web/pool_figures.h"

#include <string.h>

#define DAY	   (24 * HOUR)
#define WEEK	   (7 * DAY)
#define FOUR_WEEKS (28 * DAY)

static const millis LOOK_BACK = WEEK; /* for the last change */

/* --- shapes --- */

static const struct api_member window_members[] = {
	{ "requests", API_COUNT, .may_be_null = true, .help = "that started" },
	{ "late", API_COUNT, .may_be_null = true, .help = "of these: waited longer than the objective" },
	{ "share", API_NUMBER, .may_be_null = true, .help = "late over requests" },
};
static const struct api_shape window_shape = API_SHAPE("LateRequests", window_members);

static const struct api_member late_members[] = {
	{ "day", API_OBJECT, .help = "the last 24 hours", .of = &window_shape },
	{ "week", API_OBJECT, .help = "the last 7 days", .of = &window_shape },
	{ "budgetLeft", API_NUMBER, .may_be_null = true,
	  .help = "share of the late requests that the objective allows in 28 days and that have not been; negative: "
		  "overdrawn" },
};
static const struct api_shape late_shape = API_SHAPE("Late", late_members);

static const struct api_member lead_members[] = {
	{ "p50Seconds", API_NUMBER, .help = "from asking for a new machine to serving, median" },
	{ "p95Seconds", API_NUMBER, .help = "95th percentile" },
	{ "samples", API_COUNT, .help = "measured starts behind it" },
};
static const struct api_shape lead_shape = API_SHAPE("LeadTimeBelieved", lead_members);

static const struct api_member rule_members[] = {
	{ "number", API_COUNT, .help = "of the rule in force" },
	{ "margin", API_NUMBER, .may_be_null = true, .help = "over demand, as a share" },
	{ "holdSeconds", API_NUMBER, .may_be_null = true, .help = "how long it remembers a peak" },
	{ "chase", API_NUMBER, .may_be_null = true, .help = "how hard it chases a queue" },
	{ "standby", API_NUMBER, .may_be_null = true,
	  .help = "standby it keeps, as a share of hot; null without a fast tier" },
	{ "since", API_TIME, .may_be_null = true, .help = "when it was adopted" },
	{ "lateShare", API_NUMBER, .may_be_null = true, .help = "on the record" },
	{ "gpus", API_NUMBER, .may_be_null = true, .help = "GPUs it would have held, mean over the record" },
};
static const struct api_shape rule_shape = API_SHAPE("RuleInForce", rule_members);

static const char *const signal_states[] = { "fresh", "partial", "stale", "gone", NULL };
static const struct api_member signal_members[] = {
	{ "state", API_TEXT, .help = "how far what model servers tell can be trusted", .choices = signal_states },
	{ "ageSeconds", API_NUMBER, .may_be_null = true, .help = "of the last reading; null from a file alone" },
};
static const struct api_shape signal_shape = API_SHAPE("Signals", signal_members);

static const struct api_member change_members[] = {
	{ "tick", API_COUNT, .help = "its number" },
	{ "at", API_TIME, .help = "its end" },
	{ "from", API_COUNT, .help = "hot replicas before, on their way included" },
	{ "to", API_COUNT, .help = "hot replicas after, on their way included" },
	{ "reason", API_TEXT, .help = "in sentences" },
};
static const struct api_shape change_shape = API_SHAPE("Change", change_members);

static const struct api_member problem_members[] = {
	{ "type", API_TEXT, .help = "as a condition of the WarmPool" },
	{ "message", API_TEXT, .help = "with its remedy" },
};
static const struct api_shape problem_shape = API_SHAPE("Problem", problem_members);

static const char *const classes[] = { "interactive", "batch", "embedding", "experiment", "training", NULL };
static const char *const modes[] = { "act", "observe", "paused", NULL };
static const char *const self_tests[] = { "learning", "agrees", "later", "earlier", "dearer", NULL };

static const struct api_member members[] = {
	{ "namespace", API_TEXT, .help = "of the WarmPool" },
	{ "name", API_TEXT, .help = "of the WarmPool" },
	{ "class", API_TEXT, .help = "class of work", .choices = classes },
	{ "mode", API_TEXT, .help = "whether it is acted on", .choices = modes },
	{ "objective", API_OBJECT, .help = "what users ask for", .of = &api_objective_shape },
	{ "at", API_TIME, .help = "end of the tick that this is of" },
	{ "tick", API_COUNT, .help = "its number" },
	{ "demand", API_NUMBER, .may_be_null = true, .help = "offered load, in replicas" },
	{ "slotsPerReplica", API_NUMBER, .may_be_null = true, .help = "slots of a replica, as used for sizing" },
	{ "capacitySlots", API_NUMBER, .may_be_null = true, .help = "slots of all hot replicas" },
	{ "hot", API_COUNT, .help = "replicas that may start requests" },
	{ "starting", API_COUNT, .help = "replicas asked for that do not serve yet" },
	{ "draining", API_COUNT, .help = "replicas that only finish what runs" },
	{ "standby", API_COUNT, .help = "stopped machines, in replicas" },
	{ "lent", API_COUNT, .help = "nodes lent to other pools, in replicas" },
	{ "wished", API_COUNT, .help = "hot replicas wished, on their way included" },
	{ "decided", API_COUNT, .help = "hot replicas after the plan, on their way included" },
	{ "headroom", API_NUMBER, .may_be_null = true, .help = "hot replicas beyond demand" },
	{ "running", API_NUMBER, .may_be_null = true, .help = "sequences running, mean over the tick" },
	{ "waiting", API_COUNT, .may_be_null = true, .help = "requests waiting at the last reading" },
	{ "waitSeconds", API_NUMBER, .may_be_null = true,
	  .help = "how long the hot replicas need for what waits; null when something waits and nothing is hot" },
	{ "late", API_OBJECT, .help = "late requests lately", .of = &late_shape },
	{ "heldBy", API_TEXT, .help = "the one limit that held the decision, or none" },
	{ "dollarsPerHour", API_NUMBER, .help = "what it costs after the plan" },
	{ "budgetPerHour", API_NUMBER, .may_be_null = true, .help = "dollars; null without a budget" },
	{ "leadTime", API_OBJECT, .help = "as believed now", .of = &lead_shape },
	{ "rule", API_OBJECT, .may_be_null = true, .help = "in force; null where a rival decided", .of = &rule_shape },
	{ "signals", API_OBJECT, .help = "what model servers tell", .of = &signal_shape },
	{ "selfTest", API_TEXT, .help = "whether the shadow of the rule in force and reality agree",
	  .choices = self_tests },
	{ "reason", API_TEXT, .help = "of the last decision, in sentences" },
	{ "lastChange", API_OBJECT, .may_be_null = true, .help = "the last decision of a week that asked for something",
	  .of = &change_shape },
	{ "problems", API_LIST, .may_be_null = true,
	  .help = "what is wrong with how it is set up; null from a file alone", .of = &problem_shape },
	{ "groups", API_LIST, .help = "its node groups in order of preference", .of = &api_pool_group_shape },
};
static const struct api_shape shape = API_SHAPE("Pool", members);

static const struct api_member list_members[] = {
	{ "at", API_TIME, .help = "end of the last tick" },
	{ "tick", API_COUNT, .help = "its number" },
	{ "items", API_LIST, .help = "the pools of the manifest in force, in its order", .of = &shape },
};
static const struct api_shape list_shape = API_SHAPE("Pools", list_members);

/* --- one pool --- */

struct pool_row {
	const struct pool_spec *spec;
	const struct api_fleet *fleet;
	size_t place, pool; /* of the manifest, of the history */
	struct tick_record r;
	const struct published_pool *live;
};

static void write_sums(const char *name, const struct level_sums *s, struct buf *out)
{
	bool is_known = s->ticks > 0;

	member_object(out, name);
	member_count(out, "requests", is_known ? s->started : ABSENT);
	member_count(out, "late", is_known ? s->late : ABSENT);
	member_scaled(out, "share", api_late_ppm(s), 6);
	bracket_end(out, '}');
}

static bool write_late(struct api_call *c, const struct pool_row *p, struct buf *out, struct error *e)
{
	struct level_sums day, week, month;

	if (!api_lately(c, p->pool, DAY, &day, e) || !api_lately(c, p->pool, WEEK, &week, e) ||
	    !api_lately(c, p->pool, FOUR_WEEKS, &month, e))
		return false;
	member_object(out, "late");
	write_sums("day", &day, out);
	write_sums("week", &week, out);
	member_scaled(out, "budgetLeft", api_budget_left(p->spec, &month), 6);
	bracket_end(out, '}');
	return true;
}

static void write_levels(const struct pool_decision *d, struct buf *out)
{
	bool has_slots = d->slots_milli > 0;

	member_scaled(out, "demand", d->demand_milli, 3);
	member_scaled(out, "slotsPerReplica", has_slots ? d->slots_milli : ABSENT, 3);
	member_scaled(out, "capacitySlots", has_slots ? d->slots_milli * d->ready : ABSENT, 3);
	member_count(out, "hot", d->ready);
	member_count(out, "starting", d->on_the_way);
	member_count(out, "draining", d->draining);
	member_count(out, "standby", d->standby);
	member_count(out, "lent", d->lent);
	member_count(out, "wished", d->wished);
	member_count(out, "decided", d->decided);
	member_scaled(out, "headroom", d->demand_milli == ABSENT ? ABSENT : figure_headroom_milli(d), 3);
	member_scaled(out, "running", d->running_milli, 3);
	member_count(out, "waiting", d->waiting_now);
	member_scaled(out, "waitSeconds", figure_wait(d), 3);
}

static void write_rule(const struct pool_decision *d, struct buf *out)
{
	if (!d->hold_ms) { /* as other policies leave it */
		member_text(out, "rule", NULL);
		return;
	}
	member_object(out, "rule");
	member_count(out, "number", d->rule);
	member_scaled(out, "margin", d->margin_permille, 3);
	member_scaled(out, "holdSeconds", d->hold_ms, 3);
	member_scaled(out, "chase", d->chase_permille, 3);
	member_scaled(out, "standby", d->stock_permille, 3);
	member_time(out, "since", d->rule_since);
	member_scaled(out, "lateShare", d->rule_share_ppm, 6);
	member_scaled(out, "gpus", d->rule_gpu_milli, 3);
	bracket_end(out, '}');
}

static void write_judgement(const struct pool_row *p, struct buf *out)
{
	const struct pool_decision *d = &p->r.plan.decision;
	const char *state = signal_state_name((enum signal_state)d->signals),
		   *test = self_test_name((enum self_test)d->self_test);

	member_text(out, "heldBy", limit_name((enum limit)d->held_by));
	member_scaled(out, "dollarsPerHour", d->dollars_per_hour, 6);
	member_scaled(out, "budgetPerHour", d->budget_per_hour ? d->budget_per_hour : ABSENT, 6);
	member_object(out, "leadTime");
	member_scaled(out, "p50Seconds", d->lead_cold_p50, 3);
	member_scaled(out, "p95Seconds", d->lead_cold_p95, 3);
	member_count(out, "samples", d->lead_samples);
	bracket_end(out, '}');
	write_rule(d, out);
	member_object(out, "signals");
	member_text(out, "state", state);
	member_scaled(out, "ageSeconds", p->live ? p->live->signals_age : ABSENT, 3);
	bracket_end(out, '}');
	member_text(out, "selfTest", test);
}

static const char *reason_of(struct api_call *c, const struct api_fleet *fleet, size_t place,
			     const struct tick_record *r)
{
	const struct explained x = { &fleet->manifest.fleet, place, r->tick, r->now, &r->plan, 0 };

	return explain_headline(&x, &c->arena);
}

static bool write_change(struct api_call *c, const struct pool_row *p, struct buf *out, struct error *e)
{
	struct history_filter f = {
		.pool = (int64_t)p->pool, .to = c->span.last_tick, .limit = ANY, .changed_only = true, .most = 1
	};
	const struct api_fleet *fleet;
	struct history_hit *hits;
	struct tick_record r;
	size_t count, place;

	if (!history_tick_at(c->history, c->span.to - LOOK_BACK, &f.from, e) ||
	    !history_find(c->history, &f, &c->arena, &hits, &count, e))
		return false;
	if (!count) {
		member_text(out, "lastChange", NULL);
		return true;
	}
	fleet = api_fleet_at(c, hits[0].tick, e);
	if (!fleet || !history_read(c->history, hits[0].tick, p->pool, &r, e) ||
	    !api_fleet_place(fleet, p->pool, &place))
		return false;
	member_object(out, "lastChange");
	member_count(out, "tick", r.tick);
	member_time(out, "at", r.now);
	member_count(out, "from", r.plan.decision.ready + r.plan.decision.on_the_way);
	member_count(out, "to", r.plan.decision.decided);
	member_text(out, "reason", reason_of(c, fleet, place, &r));
	bracket_end(out, '}');
	return true;
}

static void write_problems(const struct pool_row *p, struct buf *out)
{
	if (!p->live) {
		member_text(out, "problems", NULL);
		return;
	}
	member_list(out, "problems");
	for (int i = 0; i < PROBLEM_COUNT; i++) {
		if (!p->live->problem[i])
			continue;
		item_begin(out);
		member_text(out, "type", problem_condition((enum pool_problem)i));
		member_text(out, "message", p->live->problem[i]);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}

static bool write_pool(struct api_call *c, const struct pool_row *p, struct buf *out, struct error *e)
{
	item_begin(out);
	member_text(out, "namespace", p->spec->namespace);
	member_text(out, "name", p->spec->name);
	member_text(out, "class", pool_class_name(p->spec->class));
	member_text(out, "mode", pool_mode_name(p->spec->mode));
	api_write_objective(p->spec, out);
	member_time(out, "at", p->r.now);
	member_count(out, "tick", p->r.tick);
	write_levels(&p->r.plan.decision, out);
	if (!write_late(c, p, out, e))
		return false;
	write_judgement(p, out);
	member_text(out, "reason", reason_of(c, p->fleet, p->place, &p->r));
	write_problems(p, out);
	api_write_pool_groups(&p->fleet->manifest.fleet, p->place, &p->r, api_shown(c), out);
	/* Last: it reads another tick over this one. */
	if (!write_change(c, p, out, e))
		return false;
	bracket_end(out, '}');
	return true;
}

static bool read_pool(struct api_call *c, const struct api_fleet *fleet, size_t place, struct pool_row *p,
		      struct error *e)
{
	*p = (struct pool_row){ .spec = &fleet->manifest.fleet.pools[place],
				.fleet = fleet,
				.place = place,
				.pool = fleet->stretch.pools[place] };
	p->live = api_live_pool(c, p->spec);
	return history_read(c->history, c->span.last_tick, p->pool, &p->r, e);
}

static bool write_pools(struct api_call *c, struct buf *out, struct error *e)
{
	buf_text(out, "{");
	member_time(out, "at", c->span.to);
	member_count(out, "tick", c->span.last_tick);
	member_list(out, "items");
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	if (!fleet)
		return false;
	for (size_t i = 0; i < fleet->manifest.fleet.pool_count; i++) {
		struct pool_row p;

		fleet = api_fleet_at(c, c->span.last_tick, e); /* another may have been asked for */
		if (!fleet || !read_pool(c, fleet, i, &p, e) || !write_pool(c, &p, out, e))
			return false;
	}
	buf_text(out, "]}\n");
	return true;
}

const struct api_route api_route_pools = {
	.method = "GET",
	.path = "/api/v1/pools",
	.name = "listPools",
	.summary = "Every pool of the manifest in force as it stands",
	.needs_history = true,
	.answer = &list_shape,
	.write = write_pools,
};

static bool write_one(struct api_call *c, struct buf *out, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	struct pool_row p;
	size_t pool, place;

	if (!fleet || !api_pool(c, &pool, e))
		return false;
	if (!api_fleet_place(fleet, pool, &place))
		return api_refuse(c, e, 404,
				  "pool %.100s/%.100s is no longer in the manifest; its past can be asked still",
				  c->place[0], c->place[1]);
	if (!read_pool(c, fleet, place, &p, e) || !write_pool(c, &p, out, e))
		return false;
	buf_text(out, "\n");
	return true;
}

const struct api_route api_route_pool = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}",
	.name = "getPool",
	.summary = "One pool as it stands",
	.needs_history = true,
	.answer = &shape,
	.write = write_one,
};
