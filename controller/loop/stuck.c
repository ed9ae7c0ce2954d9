#include "controller/loop/parts.h"

#include "controller/loop/node_group_parts.h"
#include "controller/loop/release.h"

#include <stdio.h>
#include <string.h>

static const char *const stuck_words[STAGE_COUNT] = { "no node registered", "the node did not become ready",
						      "no GPU became allocatable", "the image did not come",
						      "the model did not become ready" };

/* Three times what one start in twenty takes, by the manifest or as measured, and never less than a minute. */
static millis patience(const struct controller *c, const struct start *s)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[s->pool];
	const struct pool_decision *d = c->has_decided ? &c->plan.pools[s->pool].decision : NULL;
	millis whole = spec->lead_time.p95, stage = 0;

	if (s->stage < STAGE_COUNT)
		stage = spec->stage[s->stage].p95;
	if (d && d->lead_cold_p95 > whole)
		whole = d->lead_cold_p95;
	millis limit = stage > 0 ? 3 * stage : 3 * whole / 2;
	if (s->stage >= STAGE_IMAGE) /* another machine may be no better: ask less and less often */
		limit <<= c->pools[s->pool].stuck_in_a_row < 4 ? c->pools[s->pool].stuck_in_a_row / 2 : 2;
	return limit > MINUTE ? limit : MINUTE;
}

static millis waits_since(const struct controller *c, const struct start *s)
{
	return s->stage_since > c->seen_again ? s->stage_since : c->seen_again;
}

static const struct pod *pod_of(const struct controller *c, const struct start *s, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)s->pool, a, &count);

	for (size_t i = 0; i < count; i++) {
		char uid[37];
		pod_uid_text(pods[i], uid);
		if (!strcmp(uid, s->pod))
			return pods[i];
	}
	return NULL;
}

/* Only what every pool of the group lets us change. */
static bool may_replace(const struct controller *c, size_t group)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (pool_position(fleet_of(c), i, group) >= 0 && fleet_of(c)->pools[i].mode != MODE_ACT)
			return false;
	return true;
}

/* One that goes from a group at its least is bought anew at once: less is never asked for. */
static void keep_least(struct controller *c, const struct start *s, bool goes)
{
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
	const struct group_spec *spec = &fleet_of(c)->groups[group];

	if (goes && release_room(c, group) < 0)
		act_buy(c, s->pool, (size_t)s->group, START_COLD,
			replicas_per_node(spec, &fleet_of(c)->pools[s->pool]));
}

/* The machine is replaced; where others serve on it or may yet, only the pod that never will is asked to go. */
static void replace(struct controller *c, const struct start *s, const char *why)
{
	struct arena a = { 0 };
	size_t group = fleet_of(c)->pools[s->pool].groups[s->group];
	struct node_group *g = &c->groups[group];
	const struct machine *m = s->machine[0] ? node_group_machine(g, s->machine) : NULL;
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;
	const struct pod *p = s->pod[0] ? pod_of(c, s, &a) : NULL;
	bool is_known = n && n->is_known;
	bool is_needed = is_known && (node_is_needed(c, n, s->pool) || starts_know_machine(&c->starts, s->machine));

	if (!may_replace(c, group))
		; /* only told */
	else if (is_needed && p)
		drain_evict_pod(c, p->namespace, p->name, s->pod);
	else if (is_known && !is_needed)
		keep_least(c, s, drain_begin(c, n, s->pool, FATE_REMOVE, why));
	else if (m && !n)
		keep_least(c, s, node_group_remove(g, s->machine, PROVIDER_REMOVE));
	arena_release(&a);
}

/* A machine is ready and its start waits for a pod, but no pod of the pool is without a node: it serves elsewhere. */
static bool is_forgotten(const struct controller *c, const struct start *s, millis now)
{
	const struct live_pool *p = &c->pools[s->pool];

	return s->stage == STAGE_IMAGE && !s->pod[0] && p->view.pending == 0 && !s->ends_at_device &&
	       now - s->stage_since > 4 * c->settings.interval;
}

static void end_stuck(struct controller *c, size_t index, millis now)
{
	struct start s = c->starts.items[index];
	struct live_pool *p = &c->pools[s.pool];
	enum stage stage = s.stage < STAGE_COUNT ? s.stage : STAGE_LOAD;
	struct arena a = { 0 };
	const struct pod *pod = s.pod[0] ? pod_of(c, &s, &a) : NULL;

	snprintf(p->stuck_reason, sizeof p->stuck_reason, "%s%s: %s after %lld s%s%s",
		 s.machine[0] ? "machine " : "a machine", s.machine, stuck_words[stage],
		 (long long)((now - s.stage_since) / SECOND), pod && pod->trouble_text[0] ? ": " : "",
		 pod ? pod->trouble_text : "");
	log_warn("start-stuck", LOG_S("pool", fleet_of(c)->pools[s.pool].name), LOG_S("stage", stage_name(stage)),
		 LOG_S("machine", s.machine), LOG_S("why", p->stuck_reason), LOG_END);
	p->stuck[stage]++;
	p->stuck_in_a_row++;
	p->stuck_at = now;
	starts_stuck(&c->starts, index, now);
	replace(c, &s, p->stuck_reason);
	events_of_stuck(c, &s, p->stuck_reason);
	arena_release(&a);
}

/* While the watches are broken nothing is stuck for all we know; what waited then is given its time again. */
static bool is_seen(struct controller *c, millis now)
{
	if (!cluster_is_fresh(c)) {
		c->blind_since = c->blind_since ? c->blind_since : now;
		return false;
	}
	if (c->blind_since && now - c->blind_since > 2 * c->settings.interval)
		c->seen_again = now;
	c->blind_since = 0;
	return true;
}

void machines_check(struct controller *c)
{
	millis now = clock_now(c->clock);

	if (!is_seen(c, now))
		return;

	for (size_t i = 0; i < c->starts.event_count; i++)
		if (c->starts.events[i].event.what == EVENT_SERVING)
			c->pools[c->starts.events[i].pool].stuck_in_a_row = 0;
	for (size_t i = c->starts.count; i-- > 0;) {
		const struct start *s = &c->starts.items[i];
		if (is_forgotten(c, s, now))
			starts_drop(&c->starts, i);
		else if (s->kind != START_REFILL && now - waits_since(c, s) > patience(c, s))
			end_stuck(c, i, now);
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (c->groups[i].is_known && may_replace(c, i))
			node_group_give_up(&c->groups[i], node_group_missing(&c->groups[i]));
}
