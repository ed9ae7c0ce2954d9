#include "controller/loop/events.h"

#include "controller/loop/coming.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/objects.h"
#include "controller/web/pool_figures.h"
#include "base/fnv1a.h"

#include <stdarg.h>

/* A limit that holds for long, or comes and goes, is told so often. */
static const millis LIMIT_AGAIN = 15 * MINUTE;
/* So that what pools have to tell finds room beside them. */
enum { TOLD_PODS_MOST = EVENT_QUEUE / 2, TOLD_ORDERS_MOST = EVENT_QUEUE / 4 };

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

void events_tell_pool(struct controller *c, size_t pool, struct pool_event what, const char *fmt, ...)
{
	struct event e = about(c, pool);
	CLEANUP(buf_release) struct buf note = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&note, fmt, ap);
	va_end(ap);
	e.reason = what.reason;
	e.action = what.action;
	e.is_warning = what.is_warning;
	e.note = note.text;
	events_tell(c->events, &e);
}

static void tell_size(struct controller *c, size_t pool)
{
	const struct size_change *s = &c->pools[pool]->change;
	const char *reason = c->publishing.pools[pool].reason;
	struct pool_told *told = &c->pools[pool]->told;

	if (s->to < s->from) {
		told->down_from = told->down_from > s->from ? told->down_from : s->from;
		return; /* told when it has happened */
	}
	if (s->to >= told->down_from)
		told->down_from = 0;
	events_tell_pool(c, pool, (struct pool_event){ "TriggeredScaleUp", "ScaleUp", false },
			 "%lld to %lld hot replicas. %s", (long long)s->from, (long long)s->to, reason ? reason : "");
}

/* What was too much has gone: no replica of it serves, drains or is on its way. */
static void tell_shrunk(struct controller *c, size_t pool)
{
	const struct pool_decision *d = &c->plan.pools[pool].decision;
	struct pool_told *told = &c->pools[pool]->told;

	if (!told->down_from || d->ready + d->on_the_way + d->draining > d->decided)
		return;
	if (d->decided < told->down_from)
		events_tell_pool(c, pool, (struct pool_event){ "ScaledDown", "ScaleDown", false },
				 "%lld to %lld hot replicas, decided %lld s ago", (long long)told->down_from,
				 (long long)d->decided,
				 (long long)((c->snapshot.now - c->pools[pool]->change.at) / SECOND));
	told->down_from = 0;
}

static void tell_refusals(struct controller *c, size_t pool)
{
	static const struct pool_event no_stock = { "StockOut", "ScaleUp", true },
				       refused = { "StartRefused", "ScaleUp", true },
				       resized = { "ForeignSizeChange", "Adopt", true };
	const struct pool_snapshot *s = &c->snapshot.pools[pool];

	for (size_t i = 0; i < s->event_count; i++) {
		const struct event_input *e = &s->events[i];
		size_t index = fleet_of(c)->pools[pool].groups[e->group];
		const char *group = fleet_of(c)->groups[index].name, *by = node_group_resized_by(c->groups[index]);
		if (e->what == EVENT_REFUSED)
			events_tell_pool(c, pool, e->value == ERROR_STOCKOUT ? no_stock : refused,
					 "node group %s refused a start: %s", group,
					 error_kind_name((enum error_kind)e->value));
		else if (e->what == EVENT_RESIZED)
			events_tell_pool(c, pool, resized, "node group %s was resized outside Preheat to %lld%s%s",
					 group, (long long)e->value, *by ? ", by " : "", by);
		else if (e->what == EVENT_NO_STOCK || e->what == EVENT_NO_QUOTA)
			events_tell_pool(c, pool, e->what == EVENT_NO_STOCK ? no_stock : refused,
					 "node group %s has none for %lld s, then it is tried again", group,
					 (long long)(e->value / SECOND));
		else if (e->what == EVENT_HELD)
			events_tell_pool(c, pool, refused, "node group %s is not asked while others work on it", group);
		else if (e->what == EVENT_MISSED)
			events_tell_pool(c, pool, no_stock,
					 "a part of node group %s is out of stock; others of it are tried", group);
	}
}

static void tell_problems(struct controller *c, size_t pool)
{
	struct pool_told *told = &c->pools[pool]->told;

	for (int i = 0; i < PROBLEM_COUNT; i++) {
		const char *problem = c->publishing.pools[pool].problem[i];
		unsigned bit = 1U << i;
		uint64_t busy = i == PROBLEM_BUSY && problem ? fnv1a_text(FNV1A_START, problem) : told->busy;
		if (problem && (!(told->problems & bit) || busy != told->busy))
			events_tell_pool(c, pool,
					 (struct pool_event){ problem_condition((enum pool_problem)i), "Check", true },
					 "%s", problem);
		told->problems = problem ? told->problems | bit : told->problems & ~bit;
		told->busy = busy; /* of two groups one may be named already */
	}
}

static void tell_refusal(struct controller *c, size_t pool)
{
	const char *refusal = c->publishing.pools[pool].refusal;

	if (refusal && !c->pools[pool]->told.is_refused)
		events_tell_pool(c, pool, (struct pool_event){ "Refused", "Check", true }, "%s", refusal);
	c->pools[pool]->told.is_refused = refusal != NULL;
}

static void tell_signals(struct controller *c, size_t pool)
{
	struct pool_told *told = &c->pools[pool]->told;
	int64_t state = c->plan.pools[pool].decision.signals;
	bool is_stale = state >= SIGNALS_STALE;
	const char *name = fleet_of(c)->pools[pool].name, *trouble = c->publishing.pools[pool].signals_trouble;

	if (c->pools[pool]->signals.source && !c->pools[pool]->signals.has_heard)
		return; /* the first reading is on its way: no news */
	if (is_stale && !told->is_stale)
		events_tell_pool(c, pool, (struct pool_event){ "SignalsStale", "Hold", true },
				 "replicas cannot be read: nothing is scaled down until they can, and only what the "
				 "API server shows scales up%s%s",
				 trouble ? ": " : "", trouble ? trouble : "");
	else if (!is_stale && told->is_stale)
		events_tell_pool(c, pool, (struct pool_event){ "SignalsFresh", "GoOn", false },
				 "replicas can be read again");
	told->is_stale = is_stale;
	if (told->signals == state)
		return;
	/* Who has neither a WarmPool nor events to look at finds the reason in the log. */
	told->signals = state;
	if (state == SIGNALS_FRESH)
		log_info("signals-fresh", LOG_S("pool", name), LOG_END);
	else
		log_warn("signals-missing", LOG_S("pool", name),
			 LOG_S("state", signal_state_name((enum signal_state)state)),
			 LOG_S("why", trouble ? trouble : "not all replicas were read"), LOG_END);
}

static void tell_provider(struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	bool was_failing = c->pools[pool]->told.is_failing, fails = false;

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct published_group *g = &c->publishing.groups[spec->groups[i]];
		if (!published_group_fails(g))
			continue;
		if (!was_failing && !fails)
			events_tell_pool(c, pool, (struct pool_event){ "ProviderFails", "Describe", true }, "%s",
					 g->error.message);
		fails = true;
	}
	c->pools[pool]->told.is_failing = fails;
}

static void tell_limit(struct controller *c, size_t pool)
{
	/* Those that a person can lift; the others come and go with the traffic. */
	static const char *const reasons[LIMIT_COUNT] = {
		[LIMIT_MAX] = "LimitedByMax",		[LIMIT_BUDGET] = "LimitedByBudget",
		[LIMIT_STOCKOUT] = "LimitedByStockOut", [LIMIT_QUOTA] = "LimitedByQuota",
		[LIMIT_GROWTH] = "LimitedByGrowth",	[LIMIT_RESERVATION] = "LimitedByReservation"
	};
	const struct pool_decision *d = &c->plan.pools[pool].decision;
	struct pool_told *told = &c->pools[pool]->told;
	const char *reason = d->wished > d->decided ? reasons[d->held_by] : NULL;

	if (!reason || (told->limit == d->held_by && c->snapshot.now - told->limit_at < LIMIT_AGAIN))
		return;
	events_tell_pool(c, pool, (struct pool_event){ reason, "ScaleUp", true },
			 "%lld hot replicas are wished, %lld decided: held by %s", (long long)d->wished,
			 (long long)d->decided, limit_name((enum limit)d->held_by));
	told->limit = d->held_by;
	told->limit_at = c->snapshot.now;
}

static void tell_pod(struct controller *c, const struct pod *p, struct pool_event what, const char *note)
{
	char uid[37];

	pod_uid_text(p, uid);
	events_tell(c->events, &(struct event){ .api_version = "v1",
						.kind = "Pod",
						.name_space = p->namespace,
						.name = p->name,
						.uid = uid,
						.is_warning = what.is_warning,
						.reason = what.reason,
						.action = what.action,
						.note = note });
}

/* The cloud took all that was asked of it. */
static bool is_accepted(const struct node_group *g)
{
	return g->is_known && (g->wanted <= g->seen.desired || g->wanted <= g->accepted.least);
}

static void tell_order(struct controller *c, const struct pod_order *o)
{
	CLEANUP(buf_release) struct buf note = { 0 };
	const struct group_spec *g = &fleet_of(c)->groups[o->group];

	buf_printf(&note, "a machine of node group %s is on its way for it (WarmPool %s, %lld of at most %lld)",
		   g->name, fleet_of(c)->pools[o->pod->pool].name, (long long)node_group_size(c->groups[o->group]),
		   (long long)g->max_nodes);
	tell_pod(c, o->pod, (struct pool_event){ "TriggeredScaleUp", "ScaleUp", false }, note.text);
	cluster_order_is_told(c->cluster, o);
}

/* Those that find no room are told later, unless they have their node by then. */
static void tell_orders(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod_order *orders = cluster_pod_orders(c->cluster, &a, &count);

	for (size_t i = 0; i < count; i++) {
		size_t pool = (size_t)orders[i].pod->pool;
		if (!c->pools[pool]->told.has_size) /* who led before told them */
			cluster_order_is_told(c->cluster, &orders[i]);
		else if (pool_may_act(c, pool) && is_accepted(c->groups[orders[i].group]) &&
			 event_counts(c->events).waiting < TOLD_ORDERS_MOST)
			tell_order(c, &orders[i]);
	}
	c->has_orders = false;
}

static void tell_accepted(struct controller *c)
{
	if (!c->has_orders)
		return;
	coming_tell(c);
	tell_orders(c);
}

const struct actor orders_told_actor = { .needs_plan = true, .drive = tell_accepted };

static void tell_unschedulable(struct controller *c)
{
	static const struct pool_event in_vain = { "NotTriggerScaleUp", "ScaleUp", true };
	size_t count;
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct pod_note *notes = cluster_pod_notes(c->cluster, &a, &count);

	for (size_t i = 0; i < count && i < TOLD_PODS_MOST; i++)
		tell_pod(c, notes[i].pod, in_vain, notes[i].text);
}

void events_of_tick(struct controller *c)
{
	tell_orders(c);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		if (c->pools[i]->change.at == c->snapshot.now && c->pools[i]->told.has_size)
			tell_size(c, i);
		c->pools[i]->told.has_size = true; /* what is found at the start is no change */
		tell_shrunk(c, i);
		tell_refusals(c, i);
		tell_problems(c, i);
		tell_refusal(c, i);
		tell_signals(c, i);
		tell_limit(c, i);
		tell_provider(c, i);
	}
	tell_unschedulable(c);
}
