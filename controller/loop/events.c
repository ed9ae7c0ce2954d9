#include "controller/loop/objects.h"
#include "controller/loop/parts.h"
#include "controller/loop/status.h"
#include "controller/web/pool_figures.h"

#include <stdio.h>
#include <string.h>

/* A limit that holds for long, or comes and goes, is told so often. */
static const millis LIMIT_AGAIN = 15 * MINUTE;

/* What an event about a pool regards: the WarmPool, else what we scale, else the namespace. */
static struct event about(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct target_text *t = &c->manifest.pools[pool].spec.workload.target;
	const struct pool_object *o = objects_find(c, spec->namespace, spec->name);

	if (o)
		return (struct event){ .api_version = "preheat.dev/v1alpha1",
				       .kind = "WarmPool",
				       .name_space = o->namespace,
				       .name = o->name,
				       .uid = o->uid };
	if (t->name)
		return (struct event){
			.api_version = t->api_version, .kind = t->kind, .name_space = spec->namespace, .name = t->name
		};
	return (struct event){ .api_version = "v1", .kind = "Namespace", .name = spec->namespace };
}

static void tell(struct controller *c, size_t pool, const char *reason, const char *action, bool warns,
		 const char *note)
{
	struct event e = about(c, pool);

	e.reason = reason;
	e.action = action;
	e.is_warning = warns;
	e.note = note;
	events_tell(c->events, &e);
}

void events_of_stuck(struct controller *c, const struct start *s, const char *why)
{
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
	const struct machine *m = node_group_machine(&c->groups[group], s->machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;

	tell(c, s->pool, "NodeStuck", "Replace", true, why);
	if (n && n->is_known)
		events_tell(c->events, &(struct event){ .api_version = "v1",
							.kind = "Node",
							.name = n->name,
							.is_warning = true,
							.reason = "NodeStuck",
							.action = "Replace",
							.note = why });
}

void events_of_scale(struct controller *c, size_t pool, const struct error *why)
{
	tell(c, pool, "WorkloadNotScaled", "Scale", true, why->message);
}

void events_of_buffer(struct controller *c, size_t pool, const struct error *why)
{
	tell(c, pool, "CapacityBufferUnavailable", "Scale", true, why->message);
}

void events_of_interruption(struct controller *c, size_t pool, const struct node *n)
{
	static const char *const reasons[] = { [NODE_SPOT_INTERRUPTED] = "SpotInterruption",
					       [NODE_REBALANCED] = "RebalanceRecommendation",
					       [NODE_MAINTAINED] = "MaintenanceScheduled" };
	char note[400];

	snprintf(note, sizeof note, "%s of node %s: it is emptied, and what serves there is replaced",
		 node_interruption_name(n->interruption), n->name);
	tell(c, pool, reasons[n->interruption], "Replace", true, note);
}

void events_of_fall_back(struct controller *c, size_t pool, const char *group, int64_t replicas)
{
	char note[256];

	snprintf(note, sizeof note, "%lld replicas that were refused elsewhere start in node group %s",
		 (long long)replicas, group);
	tell(c, pool, "FellBack", "ScaleUp", false, note);
}

static void tell_size(struct controller *c, size_t pool)
{
	const struct live_pool *p = &c->pools[pool];
	const char *reason = c->published_pools[pool].reason;
	bool grows = p->changed_to > p->changed_from;
	char note[900];

	snprintf(note, sizeof note, "%lld to %lld hot replicas. %s", (long long)p->changed_from,
		 (long long)p->changed_to, reason ? reason : "");
	tell(c, pool, grows ? "TriggeredScaleUp" : "ScaledDown", grows ? "ScaleUp" : "ScaleDown", false, note);
}

static void tell_refusals(struct controller *c, size_t pool)
{
	const struct pool_snapshot *s = &c->snapshot.pools[pool];

	for (size_t i = 0; i < s->event_count; i++) {
		const struct event_input *e = &s->events[i];
		const char *group = fleet_of(c)->groups[fleet_of(c)->pools[pool].groups[e->group]].name;
		char note[256];
		if (e->what == EVENT_REFUSED) {
			snprintf(note, sizeof note, "node group %s refused a start: %s", group,
				 error_kind_name((enum error_kind)e->value));
			tell(c, pool, e->value == ERROR_STOCKOUT ? "StockOut" : "StartRefused", "ScaleUp", true, note);
		} else if (e->what == EVENT_RESIZED) {
			snprintf(note, sizeof note, "node group %s was resized by somebody else to %lld", group,
				 (long long)e->value);
			tell(c, pool, "ForeignSizeChange", "Adopt", true, note);
		} else if (e->what == EVENT_NO_STOCK || e->what == EVENT_NO_QUOTA) {
			snprintf(note, sizeof note, "node group %s has none for %lld s, then it is tried again", group,
				 (long long)(e->value / SECOND));
			tell(c, pool, e->what == EVENT_NO_STOCK ? "StockOut" : "StartRefused", "ScaleUp", true, note);
		} else if (e->what == EVENT_MISSED) {
			snprintf(note, sizeof note, "a part of node group %s is out of stock; others of it are tried",
				 group);
			tell(c, pool, "StockOut", "ScaleUp", true, note);
		}
	}
}

static void tell_problems(struct controller *c, size_t pool)
{
	struct pool_told *told = &c->pools[pool].told;

	for (int i = 0; i < PROBLEM_COUNT; i++) {
		const char *problem = c->published_pools[pool].problem[i];
		unsigned bit = 1U << i;
		if (problem && !(told->problems & bit))
			tell(c, pool, problem_condition((enum pool_problem)i), "Check", true, problem);
		told->problems = problem ? told->problems | bit : told->problems & ~bit;
	}
}

static void tell_refusal(struct controller *c, size_t pool)
{
	const char *refusal = c->published_pools[pool].refusal;

	if (refusal && !c->pools[pool].told.is_refused)
		tell(c, pool, "Refused", "Check", true, refusal);
	c->pools[pool].told.is_refused = refusal != NULL;
}

/* Who has neither a WarmPool nor events to look at finds the reason here. */
static void log_signals(const struct controller *c, size_t pool, int64_t state)
{
	const char *name = fleet_of(c)->pools[pool].name, *trouble = c->published_pools[pool].signals_trouble;

	if (state == SIGNALS_FRESH)
		log_info("signals-fresh", LOG_S("pool", name), LOG_END);
	else
		log_warn("signals-missing", LOG_S("pool", name),
			 LOG_S("state", signal_state_name((enum signal_state)state)),
			 LOG_S("why", trouble ? trouble : "not all replicas were read"), LOG_END);
}

static void tell_signals(struct controller *c, size_t pool)
{
	struct pool_told *told = &c->pools[pool].told;
	bool is_stale = c->plan.pools[pool].decision.signals >= SIGNALS_STALE;
	const char *trouble = c->published_pools[pool].signals_trouble;
	CLEANUP(buf_release) struct buf text = { 0 };

	if (c->pools[pool].source && !c->pools[pool].has_heard)
		return; /* the first reading is on its way: no news */
	buf_text(&text, "replicas cannot be read: nothing is scaled down until they can, and only what the API server "
			"shows scales up");
	if (trouble)
		buf_printf(&text, ": %s", trouble);
	if (is_stale && !told->is_stale)
		tell(c, pool, "SignalsStale", "Hold", true, text.text);
	else if (!is_stale && told->is_stale)
		tell(c, pool, "SignalsFresh", "GoOn", false, "replicas can be read again");
	told->is_stale = is_stale;
	if (told->signals != c->plan.pools[pool].decision.signals)
		log_signals(c, pool, told->signals = c->plan.pools[pool].decision.signals);
}

static void tell_provider(struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	bool was_failing = c->pools[pool].told.is_failing, fails = false;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *g = &c->published_groups[spec->groups[i]];
		if (!published_group_fails(g))
			continue;
		if (!was_failing && !fails)
			tell(c, pool, "ProviderFails", "Describe", true, g->error.message);
		fails = true;
	}
	c->pools[pool].told.is_failing = fails;
}

/* The limits that a person can lift; the others come and go with the traffic. */
static const char *limit_reason(int64_t limit)
{
	switch (limit) {
	case LIMIT_MAX:
		return "LimitedByMax";
	case LIMIT_BUDGET:
		return "LimitedByBudget";
	case LIMIT_STOCKOUT:
		return "LimitedByStockOut";
	case LIMIT_QUOTA:
		return "LimitedByQuota";
	case LIMIT_GROWTH:
		return "LimitedByGrowth";
	default:
		return NULL;
	}
}

static void tell_limit(struct controller *c, size_t pool)
{
	const struct pool_decision *d = &c->plan.pools[pool].decision;
	struct pool_told *told = &c->pools[pool].told;
	const char *reason = d->wished > d->decided ? limit_reason(d->held_by) : NULL;
	char note[160];

	if (!reason || (told->limit == d->held_by && c->snapshot.now - told->limit_at < LIMIT_AGAIN))
		return;
	snprintf(note, sizeof note, "%lld hot replicas are wished, %lld decided: held by %s", (long long)d->wished,
		 (long long)d->decided, limit_name((enum limit)d->held_by));
	tell(c, pool, reason, "ScaleUp", true, note);
	told->limit = d->held_by;
	told->limit_at = c->snapshot.now;
}

static void tell_unschedulable(struct controller *c)
{
	size_t count;
	struct arena a = { 0 };
	const struct pending_shape *shapes = cluster_pending(c->cluster, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (shapes[i].why && shapes[i].example)
			events_tell(c->events, &(struct event){ .api_version = "v1",
								.kind = "Pod",
								.name_space = shapes[i].namespace,
								.name = shapes[i].example->name,
								.is_warning = true,
								.reason = "NotTriggerScaleUp",
								.action = "ScaleUp",
								.note = shapes[i].why });
	arena_release(&a);
}

void events_of_tick(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		if (c->pools[i].changed_at == c->snapshot.now && c->pools[i].has_reported)
			tell_size(c, i);
		c->pools[i].has_reported = true; /* what is found at the start is no change */
		tell_refusals(c, i);
		tell_problems(c, i);
		tell_refusal(c, i);
		tell_signals(c, i);
		tell_limit(c, i);
		tell_provider(c, i);
	}
	tell_unschedulable(c);
	status_write(c);
}
