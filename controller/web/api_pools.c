/* Pools as they stand, and their late requests against what the objective allows. */
#include "controller/explain/explain.h"
#include "controller/web/api_call.h"
#include "controller/web/pool_figures.h"
#include "state/attainment.h"
#include "state/cost.h"

#include "base/json.h"

#include <string.h>

#define WEEK	   (7 * DAY)
#define FOUR_WEEKS (28 * DAY)

enum { PPM = 1000000 };

/* --- the error budget: late requests of the last so much of the history --- */

struct late_window {
	const char *name;
	struct attainment is;
};

static bool read_window(struct api_call *c, const struct pool_spec *spec, size_t pool, millis length,
			struct late_window *w, struct error *e)
{
	return attainment_read(c->history, &(struct attainment_question){ pool, spec, c->span.to - length, c->span.to },
			       &w->is, e);
}

/* What a running controller shows of the pool; NULL where none runs, or it has not decided yet. */
static const struct published_pool *find_live_pool(const struct api_call *c, const struct pool_spec *spec)
{
	const struct published *shown = c->shown;

	for (size_t i = 0; shown && shown->fleet && shown->pools && i < shown->fleet->pool_count; i++)
		if (!strcmp(shown->fleet->pools[i].name, spec->name) &&
		    !strcmp(shown->fleet->pools[i].namespace, spec->namespace))
			return &shown->pools[i];
	return NULL;
}

/* --- node groups of a pool --- */

static const char *const capacity_types[] = { "on-demand", "spot", "reserved", NULL };
static const char *const group_states[] = { "ok", "held", "blocked", "failing", NULL };

struct group_view {
	struct group_spec spec;
	struct group_input in;
	struct group_decision d;
	const char *capacity_type, *state, *why;
	millis blocked_until;
};

static const struct record_member group_members[] = {
	{ "name", RECORD_TEXT(group_view, spec.name), .help = "of the node group" },
	{ "provider", RECORD_TEXT(group_view, spec.provider), .help = "who resizes it" },
	{ "zone", RECORD_TEXT(group_view, spec.zone), .empty_is_null = true, .help = "of its machines" },
	{ "instanceType", RECORD_TEXT(group_view, spec.instance_type), .empty_is_null = true,
	  .help = "of its machines" },
	{ "capacityType", RECORD_TEXT(group_view, capacity_type), .help = "how it is bought",
	  .choices = capacity_types },
	{ "pricePerHour", RECORD_NUMBER(group_view, spec.price_per_hour, 6), .may_be_null = true,
	  .help = "dollars a node; null where no price is given" },
	{ "ready", RECORD_COUNT(group_view, in.ready), .help = "replicas of this pool that may start requests here" },
	{ "nodes", RECORD_COUNT(group_view, d.nodes), .help = "nodes of the whole group, all pools" },
	{ "desired", RECORD_COUNT(group_view, d.nodes_desired), .help = "nodes after the plan, all pools" },
	{ "standby", RECORD_COUNT(group_view, in.standby_nodes), .help = "stopped nodes, all pools" },
	{ "min", RECORD_COUNT(group_view, spec.min_nodes), .help = "nodes, by the manifest" },
	{ "max", RECORD_COUNT(group_view, spec.max_nodes), .help = "nodes, by the manifest" },
	{ "state", RECORD_TEXT(group_view, state),
	  .help = "held: by a limit; blocked: after a refusal; failing: its provider cannot be asked",
	  .choices = group_states },
	{ "why", RECORD_TEXT(group_view, why), .may_be_null = true, .help = "of a state that is not ok" },
	{ "blockedUntil", RECORD_TIME(group_view, blocked_until), .may_be_null = true,
	  .help = "no starts here before then" },
};
static const struct record_shape group_shape = RECORD_SHAPE("PoolGroup", group_view, group_members);

static const struct published_group *find_live_group(const struct published *shown, const char *name)
{
	for (size_t i = 0; shown && shown->fleet && shown->groups && i < shown->fleet->group_count; i++)
		if (!strcmp(shown->fleet->groups[i].name, name))
			return &shown->groups[i];
	return NULL;
}

static struct record_items view_groups(struct api_call *c, const struct api_fleet *of, size_t place,
				       const struct tick_record *r)
{
	const struct fleet_spec *fleet = &of->manifest.fleet;
	const struct pool_spec *pool = &fleet->pools[place];
	struct group_view *all = arena_array(&c->arena, struct group_view, pool->group_count + 1);
	size_t i = 0;

	for (; i < pool->group_count && i < r->plan.group_count && i < r->snapshot.group_count; i++) {
		struct group_view *g = &all[i];
		const char *limit;

		*g = (struct group_view){ .spec = fleet->groups[pool->groups[i]],
					  .in = r->snapshot.groups[i],
					  .d = r->plan.groups[i],
					  .state = "ok" };
		if (pool->is_unpriced)
			g->spec.price_per_hour = ABSENT;
		const struct published_group *live = find_live_group(c->shown, g->spec.name);
		limit = g->d.held_by != LIMIT_NONE ? limit_name((enum limit)g->d.held_by) : NULL;
		g->capacity_type = capacity_type_name(g->spec.capacity_type);
		if (limit) {
			g->state = "held";
			g->why = limit;
		}
		if (g->d.blocked_until > r->now) {
			g->state = "blocked";
			g->why = limit ? limit : "refused lately";
			g->blocked_until = g->d.blocked_until;
		}
		if (live && published_group_fails(live)) {
			g->state = "failing";
			g->why = live->error.message;
		}
	}
	return (struct record_items){ all, i };
}

/* --- one pool --- */

static const struct record_member window_members[] = {
	{ "requests", RECORD_COUNT(late_window, is.requests), .may_be_null = true, .help = "that started" },
	{ "late", RECORD_COUNT(late_window, is.late), .may_be_null = true,
	  .help = "of these: waited longer than the objective" },
	{ "share", RECORD_NUMBER(late_window, is.share_ppm, 6), .may_be_null = true, .help = "late over requests" },
};
static const struct record_shape window_shape = RECORD_SHAPE("LateRequests", late_window, window_members);

struct late_view {
	struct late_window day, week;
	int64_t budget_left_ppm;
};
static const struct record_member late_members[] = {
	{ "day", RECORD_OBJECT(late_view, day, window_shape), .help = "the last 24 hours" },
	{ "week", RECORD_OBJECT(late_view, week, window_shape), .help = "the last 7 days" },
	{ "budgetLeft", RECORD_NUMBER(late_view, budget_left_ppm, 6), .may_be_null = true,
	  .help = "share of the late requests that the objective allows in 28 days and that have not been; negative: "
		  "overdrawn" },
};
static const struct record_shape late_shape = RECORD_SHAPE("Late", late_view, late_members);

static const struct record_member lead_members[] = {
	{ "p50Seconds", RECORD_NUMBER(pool_decision, lead_cold_p50, 3),
	  .help = "from asking for a new machine to serving, median" },
	{ "p95Seconds", RECORD_NUMBER(pool_decision, lead_cold_p95, 3), .help = "95th percentile" },
	{ "samples", RECORD_COUNT(pool_decision, lead_samples), .help = "measured starts behind it" },
};
static const struct record_shape lead_shape = RECORD_SHAPE("LeadTimeBelieved", pool_decision, lead_members);

static const struct record_member rule_members[] = {
	{ "number", RECORD_COUNT(pool_decision, rule), .help = "of the rule in force" },
	{ "margin", RECORD_NUMBER(pool_decision, margin_permille, 3), .may_be_null = true,
	  .help = "over demand, as a share" },
	{ "holdSeconds", RECORD_NUMBER(pool_decision, hold_ms, 3), .may_be_null = true,
	  .help = "how long it remembers a peak" },
	{ "chase", RECORD_NUMBER(pool_decision, chase_permille, 3), .may_be_null = true,
	  .help = "how hard it chases a queue" },
	{ "standby", RECORD_NUMBER(pool_decision, stock_permille, 3), .may_be_null = true,
	  .help = "standby it keeps, as a share of hot; null without a fast tier" },
	{ "since", RECORD_TIME(pool_decision, rule_since), .may_be_null = true, .help = "when it was adopted" },
	{ "lateShare", RECORD_NUMBER(pool_decision, rule_share_ppm, 6), .may_be_null = true, .help = "on the record" },
	{ "gpus", RECORD_NUMBER(pool_decision, rule_gpu_milli, 3), .may_be_null = true,
	  .help = "GPUs it would have held, mean over the record" },
};
static const struct record_shape rule_shape = RECORD_SHAPE("RuleInForce", pool_decision, rule_members);

struct signal_view {
	const char *state;
	millis age;
};
static const char *const signal_states[] = { "fresh", "partial", "stale", "gone", NULL };
static const struct record_member signal_members[] = {
	{ "state", RECORD_TEXT(signal_view, state), .help = "how far what model servers tell can be trusted",
	  .choices = signal_states },
	{ "ageSeconds", RECORD_NUMBER(signal_view, age, 3), .may_be_null = true,
	  .help = "of the last reading; null from a file alone" },
};
static const struct record_shape signal_shape = RECORD_SHAPE("Signals", signal_view, signal_members);

struct change_view {
	int64_t tick, from, to;
	millis at;
	const char *reason;
};
static const struct record_member change_members[] = {
	{ "tick", RECORD_COUNT(change_view, tick), .help = "its number" },
	{ "at", RECORD_TIME(change_view, at), .help = "its end" },
	{ "from", RECORD_COUNT(change_view, from), .help = "hot replicas before, on their way included" },
	{ "to", RECORD_COUNT(change_view, to), .help = "hot replicas after, on their way included" },
	{ "reason", RECORD_TEXT(change_view, reason), .help = "in sentences" },
};
static const struct record_shape change_shape = RECORD_SHAPE("Change", change_view, change_members);

struct problem_view {
	const char *type, *message;
};
static const struct record_member problem_members[] = {
	{ "type", RECORD_TEXT(problem_view, type), .help = "as a condition of the WarmPool" },
	{ "message", RECORD_TEXT(problem_view, message), .help = "with its remedy" },
};
static const struct record_shape problem_shape = RECORD_SHAPE("Problem", problem_view, problem_members);

struct pool_view {
	const char *namespace, *name, *class, *mode, *held_by, *self_test, *objective_state, *reason;
	struct api_objective objective;
	millis at, wait;
	int64_t tick, slots_milli, capacity_milli, headroom_milli;
	struct pool_decision d;
	const struct pool_decision *rule; /* `d`, or NULL as other policies leave it */
	struct late_view late;
	struct signal_view signals;
	struct record_items problems, groups;
	const struct change_view *change;
};

static const char *const classes[] = { "interactive", "batch", "embedding", "experiment", "training", "any", NULL };
static const char *const modes[] = { "act", "observe", "paused", NULL };
static const char *const self_tests[] = { "learning", "agrees", "later", "earlier", "dearer", NULL };
static const char *const objective_states[] = { "none", "beyond-record", "met", "at-risk", "missed", NULL };

static const struct record_member pool_members[] = {
	{ "namespace", RECORD_TEXT(pool_view, namespace), .help = "of the WarmPool" },
	{ "name", RECORD_TEXT(pool_view, name), .help = "of the WarmPool" },
	{ "class", RECORD_TEXT(pool_view, class), .help = "class of work", .choices = classes },
	{ "mode", RECORD_TEXT(pool_view, mode), .help = "whether it is acted on", .choices = modes },
	{ "objective", RECORD_OBJECT(pool_view, objective, api_objective_shape), .help = "what users ask for" },
	{ "at", RECORD_TIME(pool_view, at), .help = "end of the tick that this is of" },
	{ "tick", RECORD_COUNT(pool_view, tick), .help = "its number" },
	{ "demand", RECORD_NUMBER(pool_view, d.demand_milli, 3), .may_be_null = true,
	  .help = "offered load, in replicas" },
	{ "slotsPerReplica", RECORD_NUMBER(pool_view, slots_milli, 3), .may_be_null = true,
	  .help = "slots of a replica, as used for sizing" },
	{ "capacitySlots", RECORD_NUMBER(pool_view, capacity_milli, 3), .may_be_null = true,
	  .help = "slots of all hot replicas" },
	{ "hot", RECORD_COUNT(pool_view, d.ready), .help = "replicas that may start requests" },
	{ "starting", RECORD_COUNT(pool_view, d.on_the_way), .help = "replicas asked for that do not serve yet" },
	{ "asleep", RECORD_COUNT(pool_view, d.asleep),
	  .help = "replicas whose engine sleeps or falls asleep: no serving capacity" },
	{ "fallingAsleep", RECORD_COUNT(pool_view, d.falling_asleep), .help = "of these: still falling asleep" },
	{ "asleepDiscarded", RECORD_COUNT(pool_view, d.asleep_discarded),
	  .help = "of these: on level 2, their weights must be loaded again" },
	{ "waking", RECORD_COUNT(pool_view, d.waking), .help = "of the starting ones: engines that wake" },
	{ "draining", RECORD_COUNT(pool_view, d.draining), .help = "replicas that only finish what runs" },
	{ "standby", RECORD_COUNT(pool_view, d.standby), .help = "stopped machines, in replicas" },
	{ "lent", RECORD_COUNT(pool_view, d.lent), .help = "nodes lent to other pools, in replicas" },
	{ "wished", RECORD_COUNT(pool_view, d.wished), .help = "hot replicas wished, on their way included" },
	{ "decided", RECORD_COUNT(pool_view, d.decided), .help = "hot replicas after the plan, on their way included" },
	{ "headroom", RECORD_NUMBER(pool_view, headroom_milli, 3), .may_be_null = true,
	  .help = "hot replicas beyond demand" },
	{ "running", RECORD_NUMBER(pool_view, d.running_milli, 3), .may_be_null = true,
	  .help = "sequences running, mean over the tick" },
	{ "waiting", RECORD_COUNT(pool_view, d.waiting_now), .may_be_null = true,
	  .help = "requests waiting at the last reading" },
	{ "waitSeconds", RECORD_NUMBER(pool_view, wait, 3), .may_be_null = true,
	  .help = "how long the hot replicas need for what waits; null when something waits and nothing is hot" },
	{ "late", RECORD_OBJECT(pool_view, late, late_shape), .help = "late requests lately" },
	{ "heldBy", RECORD_TEXT(pool_view, held_by), .help = "the one limit that held the decision, or none" },
	{ "dollarsPerHour", RECORD_NUMBER(pool_view, d.dollars_per_hour, 6), .may_be_null = true,
	  .help = "what it costs after the plan; null where no price is given" },
	{ "budgetPerHour", RECORD_NUMBER(pool_view, d.budget_per_hour, 6), .empty_is_null = true,
	  .help = "dollars; null without a budget" },
	{ "leadTime", RECORD_OBJECT(pool_view, d, lead_shape), .help = "as believed now" },
	{ "rule", RECORD_POINTER(pool_view, rule, rule_shape), .may_be_null = true,
	  .help = "in force; null where a rival decided" },
	{ "signals", RECORD_OBJECT(pool_view, signals, signal_shape), .help = "what model servers tell" },
	{ "selfTest", RECORD_TEXT(pool_view, self_test),
	  .help = "whether the shadow of the rule in force and reality agree", .choices = self_tests },
	{ "objectiveState", RECORD_TEXT(pool_view, objective_state),
	  .help = "the real late share against the objective", .choices = objective_states },
	{ "reason", RECORD_TEXT(pool_view, reason), .help = "of the last decision, in sentences" },
	{ "lastChange", RECORD_POINTER(pool_view, change, change_shape), .is_last = true, .may_be_null = true,
	  .help = "the last decision of a week that asked for something" },
	{ "problems", RECORD_LIST(pool_view, problems, problem_shape), .may_be_null = true,
	  .help = "what is wrong with how it is set up; null from a file alone" },
	{ "groups", RECORD_LIST(pool_view, groups, group_shape), .help = "its node groups in order of preference" },
};
static const struct record_shape pool_shape = RECORD_SHAPE("Pool", pool_view, pool_members);

static const char *headline(struct api_call *c, const struct api_fleet *fleet, size_t place,
			    const struct tick_record *r)
{
	const struct explained x = {
		.fleet = &fleet->manifest.fleet, .pool = place, .tick = r->tick, .now = r->now, .plan = &r->plan
	};

	return explain_headline(&x, &c->arena);
}

/* *change stays NULL where there was none. */
static bool read_change(struct api_call *c, size_t pool, const struct change_view **change, struct error *e)
{
	struct history_filter f = {
		.pool = (int64_t)pool, .to = c->span.last_tick, .limit = ANY, .changed_only = true, .most = 1
	};
	struct history_hit *hits;
	struct tick_record r;
	size_t count, place;

	if (!history_tick_at(c->history, c->span.to - WEEK, &f.from, e) ||
	    !history_find(c->history, &f, &c->arena, &hits, &count, e))
		return false;
	if (!count)
		return true;
	const struct api_fleet *fleet = api_fleet_at(c, hits[0].tick, e);
	if (!fleet || !history_read(c->history, hits[0].tick, pool, &r, e) || !api_fleet_place(fleet, pool, &place))
		return false;
	struct change_view *v = arena_new(&c->arena, struct change_view);
	*v = (struct change_view){ .tick = r.tick,
				   .at = r.now,
				   .from = r.plan.decision.ready + r.plan.decision.on_the_way,
				   .to = r.plan.decision.decided,
				   .reason = headline(c, fleet, place, &r) };
	*change = v;
	return true;
}

static struct record_items view_problems(struct api_call *c, const struct published_pool *live)
{
	struct record_items list = { 0 };

	if (!live)
		return list;
	struct problem_view *all = arena_array(&c->arena, struct problem_view, PROBLEM_COUNT);
	for (int i = 0; i < PROBLEM_COUNT; i++)
		if (live->problem[i])
			all[list.count++] =
				(struct problem_view){ problem_condition((enum pool_problem)i), live->problem[i] };
	list.items = all;
	return list;
}

static bool write_pool(struct api_call *c, const struct api_fleet *fleet, size_t place, struct buf *out,
		       struct error *e)
{
	const struct pool_spec *spec = &fleet->manifest.fleet.pools[place];
	const struct published_pool *live = find_live_pool(c, spec);
	size_t pool = fleet->stretch.pools[place];
	struct late_window month;
	struct tick_record r;

	if (!history_read(c->history, c->span.last_tick, pool, &r, e))
		return false;
	const struct pool_decision *d = &r.plan.decision;
	struct pool_view v = {
		.namespace = spec->namespace,
		.name = spec->name,
		.class = pool_class_name(spec->class),
		.mode = pool_mode_name(spec->mode),
		.objective = api_objective(spec),
		.at = r.now,
		.tick = r.tick,
		.d = *d,
		.slots_milli = d->slots_milli > 0 ? d->slots_milli : ABSENT,
		.capacity_milli = d->slots_milli > 0 ? d->slots_milli * d->ready : ABSENT,
		.headroom_milli = d->demand_milli == ABSENT ? ABSENT : figure_headroom_milli(d),
		.wait = figure_wait(d),
		.held_by = limit_name((enum limit)d->held_by),
		.rule = d->hold_ms ? d : NULL,
		.signals = { signal_state_name((enum signal_state)d->signals), live ? live->signals_age : ABSENT },
		.self_test = self_test_name((enum self_test)d->self_test),
		.objective_state = objective_state_name((enum objective_state)d->objective_state),
		.reason = headline(c, fleet, place, &r),
		.problems = view_problems(c, live),
		.groups = view_groups(c, fleet, place, &r),
	};
	if (fleet->manifest.fleet.pools[place].is_unpriced)
		v.d.dollars_per_hour = ABSENT;
	/* The change comes last: reading another tick ends the lists of this one. */
	if (!read_window(c, spec, pool, DAY, &v.late.day, e) || !read_window(c, spec, pool, WEEK, &v.late.week, e) ||
	    !read_window(c, spec, pool, FOUR_WEEKS, &month, e) || !read_change(c, pool, &v.change, e))
		return false;
	v.late.budget_left_ppm = month.is.budget_left_ppm;
	record_write(&pool_shape, &v, out);
	return true;
}

/* --- GET /api/v1/pools --- */

static const struct record_member list_members[] = {
	{ "at", RECORD_TIME(history_span, to), .help = "end of the last tick" },
	{ "tick", RECORD_COUNT(history_span, last_tick), .help = "its number" },
	{ "items", RECORD_LIST_APART(pool_shape), .help = "the pools of the manifest in force, in its order" },
};
static const struct record_shape list_shape = RECORD_SHAPE("Pools", history_span, list_members);

static bool write_pools(struct api_call *c, struct buf *out, struct error *e)
{
	const struct api_fleet *fleet;

	buf_text(out, "{");
	record_write_members(&list_shape, &c->span, out);
	json_member("items", out);
	buf_text(out, "[");
	for (size_t i = 0;; i++) {
		fleet = api_fleet_at(c, c->span.last_tick, e); /* another may have been asked for */
		if (!fleet)
			return false;
		if (i == fleet->manifest.fleet.pool_count)
			break;
		json_write_comma(out);
		if (!write_pool(c, fleet, i, out, e))
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

/* --- GET /api/v1/pools/{namespace}/{name} --- */

static bool write_one(struct api_call *c, struct buf *out, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	size_t pool, place;

	if (!fleet || !api_pool(c, &pool, e))
		return false;
	if (!api_fleet_place(fleet, pool, &place))
		return api_refuse(c, e, 404,
				  "pool %.100s/%.100s is no longer in the manifest; its past can be asked still",
				  c->place[0], c->place[1]);
	if (!write_pool(c, fleet, place, out, e))
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
	.answer = &pool_shape,
	.write = write_one,
};

/* --- GET /api/v1/pools/{namespace}/{name}/objective --- */

static const char *const window_names[] = { "1h", "6h", "1d", "3d", "28d", NULL };
static const millis window_lengths[] = { HOUR, 6 * HOUR, DAY, 3 * DAY, FOUR_WEEKS };
enum { WINDOW_COUNT = sizeof window_lengths / sizeof *window_lengths };

static const struct record_member long_window_members[] = {
	{ "name", RECORD_TEXT(late_window, name), .help = "the last so much of the history", .choices = window_names },
	{ "requests", RECORD_COUNT(late_window, is.requests), .may_be_null = true, .help = "that started" },
	{ "late", RECORD_COUNT(late_window, is.late), .may_be_null = true,
	  .help = "of these: waited longer than the objective" },
	{ "share", RECORD_NUMBER(late_window, is.share_ppm, 6), .may_be_null = true, .help = "late over requests" },
	{ "burnRate", RECORD_NUMBER(late_window, is.burn_milli, 3), .may_be_null = true,
	  .help = "share over what is allowed: 1 uses the budget up just in time" },
	{ "waitSecondsMax", RECORD_NUMBER(late_window, is.wait_most, 3), .may_be_null = true,
	  .help = "longest wait that the queue came to" },
};
static const struct record_shape long_window_shape = RECORD_SHAPE("ObjectiveWindow", late_window, long_window_members);

struct cause_view {
	const char *cause;
	int64_t late;
};
static const struct record_member cause_members[] = {
	{ "cause", RECORD_TEXT(cause_view, cause), .help = "what held the pool in the tick in which they were late" },
	{ "late", RECORD_COUNT(cause_view, late), .help = "requests" },
};
static const struct record_shape cause_shape = RECORD_SHAPE("LateCause", cause_view, cause_members);

static const struct record_member bound_members[] = {
	{ "lowerSeconds", RECORD_NUMBER(published_bounds, lower_us, 6), .help = "it is more than this" },
	{ "upperSeconds", RECORD_NUMBER(published_bounds, upper_us, 6), .may_be_null = true,
	  .help = "and at most this; null: beyond the last edge" },
};
static const struct record_shape bound_shape = RECORD_SHAPE("Bounds", published_bounds, bound_members);

struct wait_view {
	struct published_bounds bounds[2];
	const struct published_bounds *p50, *p99;
};
static const struct record_member wait_members[] = {
	{ "p50", RECORD_POINTER(wait_view, p50, bound_shape), .may_be_null = true,
	  .help = "median wait of the last minutes" },
	{ "p99", RECORD_POINTER(wait_view, p99, bound_shape), .may_be_null = true, .help = "99th percentile" },
};
static const struct record_shape wait_shape = RECORD_SHAPE("Waits", wait_view, wait_members);

struct objective_view {
	struct api_objective objective;
	struct record_items windows, causes;
	int64_t budget_left_ppm;
	const struct wait_view *wait;
};
static const struct record_member objective_members[] = {
	{ "objective", RECORD_OBJECT(objective_view, objective, api_objective_shape),
	  .help = "of the manifest in force" },
	{ "windows", RECORD_LIST(objective_view, windows, long_window_shape),
	  .help = "shortest first, up to the end of the history" },
	{ "budgetLeft", RECORD_NUMBER(objective_view, budget_left_ppm, 6), .may_be_null = true,
	  .help = "share of the late requests of 28 days that have not been; negative: overdrawn" },
	{ "causes", RECORD_LIST(objective_view, causes, cause_shape), .help = "of late requests in the last 7 days" },
	{ "wait", RECORD_POINTER(objective_view, wait, wait_shape), .may_be_null = true,
	  .help = "as model servers tell; null from a file alone" },
};
static const struct record_shape objective_shape = RECORD_SHAPE("ObjectiveReport", objective_view, objective_members);

static bool read_causes(struct api_call *c, size_t pool, struct record_items *causes, struct error *e)
{
	const struct hour_range week = { (c->span.to - WEEK) / HOUR, c->span.to / HOUR };
	struct cause_view *all = arena_array(&c->arena, struct cause_view, LATE_CAUSE_COUNT);
	struct cost_total *totals;
	struct cost_sums sum = { 0 };
	size_t count;

	if (!history_cost_totals(c->history, week, &c->arena, &totals, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		if (totals[i].pool == pool)
			cost_add(&sum, &totals[i].sums);
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		if (sum.late_by[i])
			all[causes->count++] =
				(struct cause_view){ late_cause_name((enum late_cause)i), sum.late_by[i] };
	causes->items = all;
	return true;
}

static void view_wait(const struct published_pool *live, struct wait_view *v)
{
	const struct published_bounds **shown[] = { &v->p50, &v->p99 };

	for (size_t i = 0; i < 2; i++) {
		v->bounds[i] = live->serving.wait[i];
		if (v->bounds[i].upper_us == INT64_MAX)
			v->bounds[i].upper_us = ABSENT;
		*shown[i] = v->bounds[i].is_told ? &v->bounds[i] : NULL;
	}
}

static bool write_objective(struct api_call *c, struct buf *out, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	struct late_window windows[WINDOW_COUNT];
	struct wait_view wait;
	size_t pool, place;

	if (!fleet || !api_pool(c, &pool, e))
		return false;
	if (!api_fleet_place(fleet, pool, &place))
		return api_refuse(c, e, 404, "pool %.100s/%.100s is no longer in the manifest, and has no objective",
				  c->place[0], c->place[1]);
	const struct pool_spec *spec = &fleet->manifest.fleet.pools[place];
	const struct published_pool *live = find_live_pool(c, spec);
	struct objective_view v = { .objective = api_objective(spec),
				    .windows = { windows, WINDOW_COUNT },
				    .wait = live ? &wait : NULL };
	/* What is left of the budget is that of the last, the longest. */
	for (size_t i = 0; i < WINDOW_COUNT; i++) {
		windows[i].name = window_names[i];
		if (!read_window(c, spec, pool, window_lengths[i], &windows[i], e))
			return false;
	}
	v.budget_left_ppm = windows[WINDOW_COUNT - 1].is.budget_left_ppm;
	if (!read_causes(c, pool, &v.causes, e))
		return false;
	if (live)
		view_wait(live, &wait);
	record_write(&objective_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

const struct api_route api_route_objective = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}/objective",
	.name = "getObjective",
	.summary = "Late requests against what the objective allows, and how fast its budget burns",
	.needs_history = true,
	.answer = &objective_shape,
	.write = write_objective,
};
