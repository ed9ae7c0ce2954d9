#include "controller/loop/coming.h"

#include "controller/loop/controller_state.h"

#include <stdlib.h>
#include <string.h>

static size_t group_of(const struct controller *c, const struct start *s)
{
	return fleet_of(c)->pools[s->pool].groups[s->group];
}

static bool is_for_machine(const struct start *s)
{
	return (s->kind == START_COLD || s->kind == START_WAKE) && s->stage < STAGE_IMAGE && !s->pod[0];
}

/* What is drained or about to go takes no pods, ready or not. */
static bool will_be_usable(const struct controller *c, size_t group, const char *machine)
{
	const struct node_group *g = c->groups[group];
	const struct machine *m = node_group_machine(g, machine);
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;

	if (!m || !machine_counts(m) || node_group_is_removing(g, machine))
		return false;
	return !n || !n->is_known || (!n->is_draining && !n->is_leaving && n->interruption == NODE_STAYS);
}

/* As the policy takes it: it is not counted on any more, and what replaces it must not wait for it, too. */
static bool is_overdue(const struct controller *c, const struct start *s)
{
	return c->has_decided &&
	       policy_start_is_overdue(&c->plan.pools[s->pool].decision, s->kind, clock_now(c->clock) - s->asked_at);
}

/* --- the machines, by the starts that wait for them --- */

struct coming_machine {
	size_t first; /* the oldest start that waits for it */
	int64_t gpus; /* that no start is meant for */
};

struct coming {
	struct coming_machine *items;
	size_t count;
};

struct named_start {
	const struct start *start;
	size_t index;
};

static int by_machine(const void *left, const void *right)
{
	const struct named_start *a = left, *b = right;
	int order = strcmp(a->start->machine, b->start->machine);

	return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Starts that have a machine of the group, those of one machine side by side. */
static struct named_start *sort_starts(const struct controller *c, size_t group, struct arena *a, size_t *count)
{
	struct named_start *out = arena_array(a, struct named_start, c->starts.count);

	*count = 0;
	for (size_t i = 0; i < c->starts.count; i++)
		if (c->starts.items[i].machine[0] && group_of(c, &c->starts.items[i]) == group)
			out[(*count)++] = (struct named_start){ &c->starts.items[i], i };
	if (*count > 1)
		qsort(out, *count, sizeof *out, by_machine);
	return out;
}

static struct coming see(const struct controller *c, size_t group, struct arena *a)
{
	size_t count;
	const struct named_start *all = sort_starts(c, group, a, &count);
	struct coming out = { arena_array(a, struct coming_machine, count), 0 };

	for (size_t i = 0, next; i < count; i = next) {
		const struct start *first = NULL;
		struct coming_machine m = { 0, fleet_of(c)->groups[group].gpus_per_node };
		for (next = i; next < count && !strcmp(all[next].start->machine, all[i].start->machine); next++) {
			const struct start *s = all[next].start;
			m.gpus -= fleet_of(c)->pools[s->pool].gpus_per_replica;
			if (first || !is_for_machine(s))
				continue;
			first = s;
			m.first = all[next].index;
		}
		if (first && will_be_usable(c, group, first->machine) && !is_overdue(c, first))
			out.items[out.count++] = m;
	}
	return out;
}

/* The youngest start that waits for a machine that nobody knows the name of yet; NULL without. */
static const struct start *unnamed_in(const struct controller *c, size_t group)
{
	for (size_t i = c->starts.count; i-- > 0;) {
		const struct start *s = &c->starts.items[i];
		if (is_for_machine(s) && !s->machine[0] && group_of(c, s) == group)
			return is_overdue(c, s) ? NULL : s;
	}
	return NULL;
}

/* A place is counted with what it leaves over, as where starts are fitted to what comes. */
static int64_t unnamed_places(const struct controller *c, size_t pool, size_t group)
{
	int64_t each = replicas_on_node(c, pool, group), size = fleet_of(c)->groups[group].gpus_per_node;

	if (!c->groups[group]->is_known || each <= 0 || !unnamed_in(c, group))
		return 0;
	return node_group_unclaimed_gpus(c->groups[group]) / (size / each);
}

void coming_tell(struct controller *c)
{
	for (size_t g = 0; g < fleet_of(c)->group_count; g++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		int64_t unnamed = unnamed_in(c, g) ? node_group_missing(c->groups[g]) : 0;
		cluster_expect(c->cluster, g, unnamed + (int64_t)see(c, g, &a).count);
	}
}

/* --- room --- */

/* A start of the pool in the group that waits for a machine that is counted on. */
static bool is_counted_on(const struct controller *c, const struct start *s, size_t pool, size_t position)
{
	return s->pool == pool && s->group == (int64_t)position && is_for_machine(s) && !is_overdue(c, s) &&
	       (!s->machine[0] || will_be_usable(c, group_of(c, s), s->machine));
}

static int64_t awaited(const struct controller *c, size_t pool, size_t position)
{
	int64_t count = 0;

	for (size_t i = 0; i < c->starts.count; i++)
		count += is_counted_on(c, &c->starts.items[i], pool, position);
	return count;
}

static bool lacks_machines(const struct pool_view *v)
{
	for (size_t i = 0; i < v->group_count; i++)
		if (v->groups[i].lacking > 0)
			return true;
	return false;
}

int64_t coming_places(const struct controller *c, size_t pool, size_t position)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t group = fleet_of(c)->pools[pool].groups[position];
	int64_t gpus = fleet_of(c)->pools[pool].gpus_per_replica, places = unnamed_places(c, pool, group);
	const struct pool_view *v = &c->pools[pool]->view;
	const struct coming coming = see(c, group, &a);

	for (size_t i = 0; i < coming.count; i++)
		if (coming.items[i].gpus > 0 && gpus > 0)
			places += coming.items[i].gpus / gpus;
	if (!lacks_machines(v))
		return places;
	/* Free GPUs are no places for its pods: only those that are meant for them are. */
	int64_t meant = v->groups[position].joining - awaited(c, pool, position);
	meant = meant > 0 ? meant : 0;
	return meant < places ? meant : places;
}

/* The start beside which there is room, on the machine that was asked for first. NULL: there is none. */
static const struct start *find_room(const struct controller *c, const struct coming *coming, size_t pool, size_t group)
{
	int64_t gpus = fleet_of(c)->pools[pool].gpus_per_replica;
	size_t best = c->starts.count;

	for (size_t i = 0; i < coming->count; i++)
		if (coming->items[i].gpus >= gpus && coming->items[i].first < best)
			best = coming->items[i].first;
	if (best < c->starts.count)
		return &c->starts.items[best];
	return unnamed_places(c, pool, group) > 0 ? unnamed_in(c, group) : NULL;
}

/* As far as the one beside it, and it may take as long: what its stages take is learned from that one alone. */
static void join(struct controller *c, size_t pool, size_t position, const struct start *beside)
{
	struct start like = *beside;

	like.pool = pool;
	like.group = (int64_t)position;
	like.ends_at_device = runs_work(c, pool) || is_buffered(c, pool);
	like.is_adopted = true;
	like.has_served = false;
	struct start *s = starts_ask(&c->starts, &like, 1);
	s->stage = like.stage;
	s->stage_since = like.stage_since;
}

int64_t coming_join(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	int64_t joined = 0;

	for (; joined < count; joined++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		const struct coming coming = see(c, group, &a);
		const struct start *beside = find_room(c, &coming, pool, group);
		if (!beside)
			break;
		join(c, pool, position, beside);
	}
	return joined;
}

/* --- no room --- */

/* Others wait for it, too: a machine is never left without any, or nobody would count on it. */
static bool shares_its_machine(const struct controller *c, const struct start *s)
{
	int64_t starts = 0, machines = s->machine[0] ? 1 : node_group_missing(c->groups[group_of(c, s)]);

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *t = &c->starts.items[i];
		starts += is_for_machine(t) && group_of(c, t) == group_of(c, s) && !strcmp(t->machine, s->machine);
	}
	return starts > machines;
}

void coming_drop_unusable(struct controller *c, size_t pool)
{
	const struct pool_view *v = &c->pools[pool]->view;

	/* Its starts are the GPUs of machines that are meant whole for its pods. */
	for (size_t k = 0; !takes_any(c, pool) && k < v->group_count; k++) {
		int64_t unusable = v->groups[k].lacking > 0 ? awaited(c, pool, k) - v->groups[k].joining : 0;
		unusable = unusable < v->groups[k].lacking ? unusable : v->groups[k].lacking;
		for (size_t i = c->starts.count; i-- > 0 && unusable > 0;) {
			const struct start *s = &c->starts.items[i];
			if (!is_counted_on(c, s, pool, k) || !shares_its_machine(c, s))
				continue;
			starts_drop(&c->starts, i);
			unusable--;
		}
	}
}
