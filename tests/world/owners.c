#include "tests/world/owners.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS = 8, MACHINES = 64, ID = 48, AT_ONCE = 3 };

/* A minute after the last eviction, and until new nodes are Ready; a pod that cannot be evicted ends an update, which
 * its owner finds an hour later. */
static const millis SETTLES = MINUTE, SETS_UP = 2 * MINUTE, EVICTS = 15 * MINUTE, LAUNCHES = 15 * MINUTE,
		    WAITS_FOR_PROTECTED = HOUR, AWAY = 30 * MINUTE, OFF = 4 * HOUR, SCALES_DOWN = 20 * SECOND,
		    FINDS_IT_FAILED = HOUR;

enum phase { PHASE_BEGINS, PHASE_SCALES_UP, PHASE_REPLACES, PHASE_SCALES_DOWN };

static struct owner {
	struct cloud_group *group; /* NULL: at nothing */
	enum owner_act act;
	enum phase phase;
	char name[80];
	char old[MACHINES][ID];
	size_t old_count;
	char extra[ID];	   /* launched for the first of the old */
	int64_t min, size; /* of before */
	millis next, since;
	bool is_forced; /* pods that cannot be evicted are deleted */
} owners[GROUPS];
static struct timer each_second;

static struct owner *owner_of(const struct cloud_group *g)
{
	for (size_t i = 0; i < GROUPS; i++)
		if (owners[i].group == g)
			return &owners[i];
	return NULL;
}

bool owner_is_at_work(const struct cloud_group *g)
{
	return owner_of(g);
}

static bool is_ready(const char *machine)
{
	const struct object *node = world_node_of(machine);

	return node && value_int(node->value, "status>allocatable>nvidia.com/gpu") > 0;
}

static bool are_all_ready(const struct cloud_group *g)
{
	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		if (m->is_to_run && m->step != STEP_TERMINATING && !is_ready(m->id))
			return false;
	return cloud_awake(g) >= g->desired;
}

static void over(struct owner *o)
{
	if (o->group->busy_with)
		cloud_owner_is_busy(o->group, NULL);
	memset(o, 0, sizeof *o);
}

static void next_in(struct owner *o, millis duration)
{
	o->next = wire_now() + duration;
	o->since = wire_now();
}

static void cordon(const char *machine, bool is_cordoned)
{
	struct object *node = world_node_of(machine);

	if (!node || value_is(node->value, "spec>unschedulable", "true") == is_cordoned)
		return;
	value_set(node->value, "spec>unschedulable", value_of(is_cordoned ? "true" : "false"));
	apiserver_changed(node);
}

/* Cordoned, its pods evicted as their budgets allow; whether none is left. */
static bool empties(const char *machine)
{
	bool is_empty = true;

	cordon(machine, true);
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), machine)) {
			is_empty = false;
			apiserver_evict(p);
		}
	return is_empty;
}

/* NULL: it is there no more. */
static struct cloud_machine *old_at(const struct owner *o, size_t i)
{
	struct cloud_machine *m = cloud_find(o->old[i]);

	return m && m->step == STEP_RUNNING && m->is_to_run && !m->is_taken ? m : NULL;
}

/* The next of the old that is still there; NULL: none. */
static struct cloud_machine *next_old(struct owner *o)
{
	while (o->old_count && !old_at(o, o->old_count - 1))
		o->old_count--;
	return o->old_count ? old_at(o, o->old_count - 1) : NULL;
}

/* As many as may be unavailable at once. */
static size_t next_of_old(struct owner *o, struct cloud_machine *next[AT_ONCE])
{
	size_t most = o->group->unavailable ? o->group->unavailable : 1, count = 0;

	for (size_t i = next_old(o) ? o->old_count : 0; i-- && count < most && count < AT_ONCE;)
		if ((next[count] = old_at(o, i)))
			count++;
	return count;
}

/* AKS keeps machine and name, and gives it another image; its node's object goes, and comes anew. */
static void replace(struct owner *o, struct cloud_machine *m)
{
	if (m->group->wire == CLOUD_AKS) {
		cloud_owner_reimages(m);
	} else if (o->act == OWNER_UPDATES && m->group->ends_old_first) {
		cloud_owner_ends(m); /* Auto Scaling launches another */
	} else {
		cloud_owner_replaces(m);
	}
	o->old_count--;
	next_in(o, SETTLES);
}

/* AKS adds one beside the count; EKS raises the sizes, or ends old machines first. */
static void scale_up(struct owner *o)
{
	struct cloud_group *g = o->group;

	o->size = g->desired;
	o->phase = PHASE_SCALES_UP;
	if (g->ends_old_first) {
		o->phase = PHASE_REPLACES;
	} else if (g->wire == CLOUD_AKS) {
		snprintf(o->extra, sizeof o->extra, "%s", cloud_owner_adds(g, NULL)->id);
	} else {
		g->max += OWNER_SURGE;
		cloud_owner_sets(g, g->desired + OWNER_SURGE);
	}
	next_in(o, SETTLES);
}

/* EKS: the nodes that are there as it begins take no pods any more, as soon as the new ones are Ready. */
static void mark_old(const struct owner *o)
{
	for (size_t i = 0; i < o->old_count; i++)
		cordon(o->old[i], true);
}

/* AKS gives the node back, and takes away what it added. EKS leaves sizes, machines and marks as they are; its owner
 * tries again by force. */
static void fail(struct owner *o, const struct cloud_machine *m)
{
	if (o->group->wire == CLOUD_AKS) {
		if (m)
			cordon(m->id, false);
		o->phase = PHASE_SCALES_DOWN;
		o->since = wire_now();
		return;
	}
	cloud_owner_is_busy(o->group, NULL);
	o->is_forced = true;
	o->phase = PHASE_BEGINS;
	next_in(o, FINDS_IT_FAILED);
}

static void begin_again(struct owner *o)
{
	cloud_owner_is_busy(o->group, o->name);
	next_in(o, SETS_UP);
}

static void scale_down(struct owner *o)
{
	struct cloud_group *g = o->group;
	struct cloud_machine *extra = cloud_find(o->extra);

	if (g->wire != CLOUD_AKS && g->desired > o->size) {
		cloud_owner_sets(g, g->desired - 1);
		next_in(o, SCALES_DOWN);
		return;
	}
	if (g->wire != CLOUD_AKS) {
		g->max -= OWNER_SURGE;
	} else if (extra && cloud_awake(g) > g->desired) { /* once the last is back */
		if (wire_now() - o->since < EVICTS && (!are_all_ready(g) || !empties(o->extra)))
			return;
		cloud_owner_ends(extra);
	} else {
		cordon(o->extra, false); /* somebody raised the size: it is one of the count by now */
	}
	over(o);
}

static void replace_old(struct owner *o, bool are_ready)
{
	bool is_late = wire_now() - o->since > EVICTS, are_empty = true;
	struct cloud_machine *next[AT_ONCE];
	size_t count = next_of_old(o, next);

	for (size_t i = 0; i < count; i++)
		are_empty &= empties(next[i]->id);
	if (!count && o->group->ends_old_first) {
		over(o);
	} else if (!count) {
		o->phase = PHASE_SCALES_DOWN;
		o->since = wire_now();
	} else if (is_late && !(o->is_forced && are_ready)) { /* PodEvictionFailure */
		fail(o, next[0]);
	} else if ((are_empty || is_late) && are_ready) {
		for (size_t i = 0; i < count; i++)
			replace(o, next[i]);
	}
}

static void update(struct owner *o)
{
	bool are_ready = are_all_ready(o->group);

	switch (o->phase) {
	case PHASE_BEGINS:
		(o->group->busy_with ? scale_up : begin_again)(o);
		break;
	case PHASE_SCALES_UP:
		if (are_ready) {
			if (o->group->wire != CLOUD_AKS)
				mark_old(o);
			o->phase = PHASE_REPLACES;
			o->since = wire_now();
		} else if (wire_now() - o->since >= LAUNCHES) { /* NodeCreationFailure */
			fail(o, NULL);
		}
		break;
	case PHASE_REPLACES:
		replace_old(o, are_ready);
		break;
	case PHASE_SCALES_DOWN:
		scale_down(o);
		break;
	}
}

static void schedule(struct owner *o)
{
	struct cloud_group *g = o->group;
	bool switches_off = o->act == OWNER_SWITCHES_OFF;

	if (o->phase == PHASE_BEGINS) {
		o->size = g->desired;
		o->min = g->min;
		g->min = 0;
		cloud_owner_schedules(g, switches_off ? 0 : g->desired / 2);
		o->phase = PHASE_SCALES_UP;
		next_in(o, switches_off ? OFF : AWAY);
		return;
	}
	g->min = o->min;
	if (g->desired < o->size)
		cloud_owner_schedules(g, o->size);
	over(o);
}

/* One more before one goes: AZRebalance never takes a protected one; a spot machine goes as its notice says. */
static void rebalance(struct owner *o)
{
	struct cloud_machine *old = next_old(o), *extra = cloud_find(o->extra);
	bool is_spot = o->act == OWNER_REBALANCES_SPOT;

	if (old && old->is_protected && !is_spot) {
		o->old_count--;
		return;
	}
	if (old && is_spot && old->group->is_spot)
		old->is_recommended = true;
	if (old && !*o->extra) {
		snprintf(o->extra, sizeof o->extra, "%s", cloud_owner_adds(o->group, old)->id);
		next_in(o, SETTLES);
		return;
	}
	if (old && extra && extra->step != STEP_RUNNING && extra->step != STEP_TERMINATING &&
	    wire_now() - o->since < LAUNCHES)
		return;
	if (old && cloud_awake(o->group) > o->group->desired)
		cloud_owner_ends(old);
	if (extra) /* it stays in any case */
		*extra->replaces = '\0';
	if (!old || o->old_count < 2) {
		cloud_owner_sets(o->group, o->group->desired); /* what is one too many goes */
		over(o);
		return;
	}
	o->old_count--;
	*o->extra = '\0';
	next_in(o, 5 * MINUTE);
}

static void refresh(struct owner *o)
{
	struct cloud_machine *m = next_old(o);

	if (!m || (m->is_protected && wire_now() - o->since > WAITS_FOR_PROTECTED))
		over(o);
	else if (!m->is_protected && are_all_ready(o->group))
		replace(o, m);
}

/* AKS repairs a node that is not ready for long: boots it, and gives it its image anew. */
static void replace_unhealthy(struct owner *o)
{
	struct cloud_machine *m = next_old(o);

	if (m)
		replace(o, m);
	over(o);
}

static const struct {
	const char *name;
	millis begins;
	void (*goes_on)(struct owner *o);
} acts[OWNER_ACTS] = {
	[OWNER_UPDATES] = { "an update", SETS_UP, update },
	[OWNER_SCHEDULES] = { "a schedule", 1, schedule },
	[OWNER_SWITCHES_OFF] = { "a schedule of office hours", 1, schedule },
	[OWNER_BALANCES_ZONES] = { "zones that are balanced", 1, rebalance },
	[OWNER_REFRESHES] = { "an instance refresh", SETTLES, refresh },
	[OWNER_REPLACES_THE_UNHEALTHY] = { "health checks", 1, replace_unhealthy },
	[OWNER_REBALANCES_SPOT] = { "spot that is rebalanced", 1, rebalance },
};

static void tick(struct timer *t)
{
	for (size_t i = 0; i < GROUPS; i++)
		if (owners[i].group && wire_now() >= owners[i].next)
			acts[owners[i].act].goes_on(&owners[i]);
	timer_start(NULL, t, SECOND, tick);
}

bool owner_begins(struct cloud_group *g, enum owner_act act)
{
	struct owner *o = owner_of(NULL);

	if (owner_is_at_work(g) || !o || !cloud_awake(g) || (g->operation.state && !g->operation.is_over))
		return false;
	*o = (struct owner){ .group = g, .act = act };
	snprintf(o->name, sizeof o->name, "%s of node group %s", acts[act].name, g->name);
	for (const struct cloud_machine *m = g->machines; m && o->old_count < MACHINES; m = m->next)
		if (m->step == STEP_RUNNING && m->is_to_run)
			snprintf(o->old[o->old_count++], ID, "%s", m->id);
	if (act == OWNER_UPDATES)
		cloud_owner_is_busy(g, o->name);
	next_in(o, acts[act].begins);
	return true;
}

void owners_begin(void)
{
	memset(owners, 0, sizeof owners);
	timer_start(NULL, &each_second, SECOND, tick);
}

void owners_end(void)
{
	timer_stop(&each_second);
}
