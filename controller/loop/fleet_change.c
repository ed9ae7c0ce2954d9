#include "controller/loop/fleet_change.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/watch_sync.h"

#include <stdlib.h>
#include <string.h>

/* Nothing that was begun under a manifest lasts longer: calls have deadlines. */
static const millis KEPT = 5 * MINUTE; /* of the world */

#define NOWHERE SIZE_MAX

/* Where the pools and groups of the manifest in force stand in the next one, or NOWHERE; and which go on as they are.
 */
struct fleet_map {
	const struct manifest *was, *now;
	size_t *pools, *groups;
	bool *pool_stays, *group_stays;
	int64_t *standby_first; /* of groups of the next that are opened anew */
	struct arena arena;
};

/* --- what is the same in both --- */

struct place {
	const char *namespace, *name;
	size_t index;
};

static int by_name(const void *a, const void *b)
{
	const struct place *left = a, *right = b;
	int by = strcmp(left->name, right->name);

	return by ? by : strcmp(left->namespace, right->namespace);
}

static size_t find_place(const struct place *places, size_t count, const char *namespace, const char *name)
{
	const struct place wanted = { namespace, name, 0 };
	const struct place *p = count ? bsearch(&wanted, places, count, sizeof *places, by_name) : NULL;

	return p ? p->index : NOWHERE;
}

static struct place *pools_by_name(const struct fleet_spec *fleet, struct arena *a)
{
	struct place *places = arena_array(a, struct place, fleet->pool_count + 1);

	for (size_t i = 0; i < fleet->pool_count; i++)
		places[i] = (struct place){ fleet->pools[i].namespace, fleet->pools[i].name, i };
	qsort(places, fleet->pool_count, sizeof *places, by_name);
	return places;
}

static struct place *groups_by_name(const struct fleet_spec *fleet, struct arena *a)
{
	struct place *places = arena_array(a, struct place, fleet->group_count + 1);

	for (size_t i = 0; i < fleet->group_count; i++)
		places[i] = (struct place){ fleet->groups[i].provider, fleet->groups[i].name, i };
	qsort(places, fleet->group_count, sizeof *places, by_name);
	return places;
}

static bool is_pool_at(const struct fleet_spec *fleet, size_t i, const struct pool_spec *p)
{
	return i < fleet->pool_count && !strcmp(fleet->pools[i].name, p->name) &&
	       !strcmp(fleet->pools[i].namespace, p->namespace);
}

static bool is_group_at(const struct fleet_spec *fleet, size_t i, const struct group_spec *g)
{
	return i < fleet->group_count && !strcmp(fleet->groups[i].name, g->name) &&
	       !strcmp(fleet->groups[i].provider, g->provider);
}

/* Mostly each stands where it stood; the search begins with the first that does not. */
static void place_pools(struct fleet_map *m)
{
	const struct fleet_spec *was = &m->was->fleet, *now = &m->now->fleet;
	const struct place *places = NULL;

	for (size_t i = 0; i < was->pool_count; i++) {
		const struct pool_spec *p = &was->pools[i];
		m->pools[i] = i;
		if (is_pool_at(now, i, p))
			continue;
		places = places ? places : pools_by_name(now, &m->arena);
		m->pools[i] = find_place(places, now->pool_count, p->namespace, p->name);
	}
}

static void place_groups(struct fleet_map *m)
{
	const struct fleet_spec *was = &m->was->fleet, *now = &m->now->fleet;
	const struct place *places = NULL;

	for (size_t i = 0; i < was->group_count; i++) {
		const struct group_spec *g = &was->groups[i];
		m->groups[i] = i;
		if (is_group_at(now, i, g))
			continue;
		places = places ? places : groups_by_name(now, &m->arena);
		m->groups[i] = find_place(places, now->group_count, g->provider, g->name);
	}
}

/* What its sources and calls are made from. An object that was not read again is the same. */
static bool is_same_pool(const struct fleet_map *m, size_t was, size_t now)
{
	const struct spec_text *a = &m->was->pools[was].spec, *b = &m->now->pools[now].spec;

	return m->was->pools[was].node == m->now->pools[now].node ||
	       (schema_equal(&workload_table, &a->workload, &b->workload) &&
		schema_equal(&signals_table, &a->signals, &b->signals) &&
		m->was->fleet.pools[was].objective_wait == m->now->fleet.pools[now].objective_wait);
}

static bool is_same_group(const struct controller *c, struct fleet_map *m, size_t was, size_t now)
{
	return !strcmp(fleet_group_settings(c, m->was, was, &m->arena),
		       fleet_group_settings(c, m->now, now, &m->arena));
}

static void compare(const struct controller *c, const struct manifest *now, struct fleet_map *m)
{
	const struct fleet_spec *was = fleet_of(c);

	*m = (struct fleet_map){ .was = &c->manifest, .now = now };
	m->pools = arena_array(&m->arena, size_t, was->pool_count + 1);
	m->groups = arena_array(&m->arena, size_t, was->group_count + 1);
	m->pool_stays = arena_array(&m->arena, bool, was->pool_count + 1);
	m->standby_first = arena_array(&m->arena, int64_t, now->fleet.group_count + 1);
	m->group_stays = arena_array(&m->arena, bool, was->group_count + 1);
	place_pools(m);
	place_groups(m);
	for (size_t i = 0; i < was->pool_count; i++)
		m->pool_stays[i] = m->pools[i] != NOWHERE && is_same_pool(m, i, m->pools[i]);
	for (size_t i = 0; i < was->group_count; i++)
		m->group_stays[i] =
			m->groups[i] != NOWHERE && !c->groups[i]->is_stopped && is_same_group(c, m, i, m->groups[i]);
}

static bool is_in_same_share(const struct pool_spec *a, const struct pool_spec *b)
{
	return pool_is_in_share(a) ? pools_share(a, b) : !pool_is_in_share(b);
}

/* Which pods are a pool's, and what a node of a group is, may be asked of every pod and node there is. */
static bool is_same_to_cluster(const struct fleet_map *m)
{
	const struct fleet_spec *was = &m->was->fleet, *now = &m->now->fleet;
	bool is_same = was->pool_count == now->pool_count && was->group_count == now->group_count;

	for (size_t i = 0; is_same && i < was->group_count; i++)
		is_same = m->groups[i] == i && schema_equal(&group_table, &m->was->groups[i], &m->now->groups[i]);
	for (size_t i = 0; is_same && i < was->pool_count; i++) {
		const struct pool_spec *a = &was->pools[i], *b = &now->pools[i];
		is_same = m->pools[i] == i && m->pool_stays[i] && a->class == b->class && is_in_same_share(a, b) &&
			  a->group_count == b->group_count;
		for (size_t k = 0; is_same && k < a->group_count; k++)
			is_same = a->groups[k] == b->groups[k];
	}
	return is_same;
}

/* --- what stops at once --- */

static bool is_held_now(const struct fleet_map *m, size_t group)
{
	const struct fleet_spec *now = &m->now->fleet;
	const struct group_users *users = &now->users[m->groups[group]];

	for (size_t i = 0; i < users->count; i++)
		if (now->pools[users->items[i].pool].mode != MODE_ACT)
			return true;
	return false;
}

/* A pool is stopped when it is not to act any more, or its calls are not what they would be. */
static bool must_leave(const struct fleet_map *m, size_t pool)
{
	return !m->pool_stays[pool] ||
	       (m->was->fleet.pools[pool].mode != m->now->fleet.pools[m->pools[pool]].mode &&
		(m->was->fleet.pools[pool].mode == MODE_ACT || m->was->fleet.pools[pool].mode == MODE_SHARE));
}

static bool names_stopped_group(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; i < spec->group_count; i++)
		if (c->groups[spec->groups[i]]->is_stopped)
			return true;
	return false;
}

void fleet_change_begin(struct controller *c)
{
	struct fleet_map m;

	compare(c, &c->leader.next, &m);
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (m.groups[i] == NOWHERE || (node_group_is_ours(c->groups[i]) && is_held_now(&m, i)))
			node_group_hand_over(c->groups[i]);
		else if (!m.group_stays[i])
			node_group_stop(c->groups[i]);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		c->pools[i]->is_leaving = must_leave(&m, i);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (c->pools[i]->is_leaving || names_stopped_group(c, i))
			tick_stop_pool(c, i);
	arena_release(&m.arena);
}

bool fleet_change_is_due(const struct controller *c)
{
	bool is_due = c->leader.has_next;

	for (size_t i = 0; is_due && i < fleet_of(c)->group_count; i++)
		is_due = !c->groups[i]->is_stopped || node_group_is_idle(c->groups[i]);
	for (size_t i = 0; is_due && i < fleet_of(c)->pool_count; i++)
		is_due = tick_has_left(c, i) || (!c->pools[i]->is_leaving && !names_stopped_group(c, i));
	return is_due;
}

/* --- taking it up --- */

static bool stays(const struct fleet_map *m, size_t pool, int64_t position, int64_t *now)
{
	size_t group = m->was->fleet.pools[pool].groups[position];

	if (m->pools[pool] == NOWHERE || !m->group_stays[group])
		return false;
	*now = pool_position(&m->now->fleet, m->pools[pool], m->groups[group]);
	return *now >= 0;
}

/* Starts of what stays; those of a group that is opened anew are found again with its machines. */
static void renumber_starts(struct controller *c, const struct fleet_map *m)
{
	struct starts *s = &c->starts;
	size_t kept = 0;
	int64_t now;

	for (size_t i = 0; i < s->count; i++) {
		if (!stays(m, s->items[i].pool, s->items[i].group, &now))
			continue;
		s->items[kept] = s->items[i];
		s->items[kept].pool = m->pools[s->items[i].pool];
		s->items[kept++].group = now;
	}
	s->count = kept;
	kept = 0;
	for (size_t i = 0; i < s->event_count; i++) {
		if (!stays(m, s->events[i].pool, s->events[i].event.group, &now))
			continue;
		s->events[kept] = s->events[i];
		s->events[kept].pool = m->pools[s->events[i].pool];
		s->events[kept++].event.group = now;
	}
	s->event_count = kept;
}

/* Decided last, as far as it is of the fleet in force: in the tick's arena, until the next decision. */
static void renumber_plan(struct controller *c, const struct fleet_map *m)
{
	const struct fleet_spec *now = &m->now->fleet;
	struct arena *a = &c->tick.arena;
	struct plan plan = { arena_array(a, struct pool_plan, now->pool_count + 1), now->pool_count };

	for (size_t i = 0; i < now->pool_count; i++) {
		plan.pools[i].group_count = now->pools[i].group_count;
		plan.pools[i].groups = arena_array(a, struct group_decision, now->pools[i].group_count + 1);
	}
	for (size_t i = 0; i < c->plan.pool_count; i++) {
		if (m->pools[i] == NOWHERE)
			continue;
		struct pool_plan *p = &plan.pools[m->pools[i]];
		p->decision = c->plan.pools[i].decision;
		for (size_t k = 0; k < c->plan.pools[i].group_count; k++) {
			int64_t at;
			if (stays(m, i, (int64_t)k, &at))
				p->groups[at] = c->plan.pools[i].groups[k];
		}
	}
	c->plan = plan;
}

/* The text of the manifest before lasts as long as a call may. */
static void replace_manifest(struct controller *c)
{
	struct former_manifest *f = xnew(struct former_manifest);

	*f = (struct former_manifest){ .next = c->fleet.former_manifests,
				       .arena = c->fleet.manifest_arena,
				       .since = loop_now(c->loop) };
	c->fleet.former_manifests = f;
	c->fleet.manifest_arena = c->leader.next_arena;
	c->manifest = c->leader.next;
	c->leader.next_arena = (struct arena){ 0 };
	c->leader.has_next = false;
	fleet_forget_manifests(c, loop_now(c->loop) - KEPT);
}

/* What becomes of the pools: those that stay go over, the others are closed; NULL where one is to be opened. */
static void move_pools(struct controller *c, const struct fleet_map *m, struct live_pool **former)
{
	size_t was_count = m->was->fleet.pool_count;
	struct live_pool **pools = xcalloc(m->now->fleet.pool_count + 1, sizeof(void *));

	for (size_t i = 0; i < was_count; i++) {
		struct live_pool *p = c->pools[i];
		if (!m->pool_stays[i]) {
			fleet_close_pool(c, p);
			former[i] = p;
			continue;
		}
		p->is_leaving = false;
		p->is_new = names_stopped_group(c, i);
		p->index = m->pools[i];
		pools[m->pools[i]] = p;
	}
	free(c->pools);
	c->pools = pools;
}

static void move_groups(struct controller *c, struct fleet_map *m)
{
	struct node_group **groups = xcalloc(m->now->fleet.group_count + 1, sizeof(void *));

	for (size_t i = 0; i < m->was->fleet.group_count; i++) {
		struct node_group *g = c->groups[i];
		if (m->group_stays[i]) {
			g->index = m->groups[i];
			groups[m->groups[i]] = g;
			continue;
		}
		if (m->groups[i] != NOWHERE)
			m->standby_first[m->groups[i]] = g->is_known ? node_group_standby_first(g) : g->recalled_first;
		else if (g->must_unguard)
			fleet_tell_left(group_spec_of(g), "its machines are protected from scale-in, and the call that "
							  "was to lift it failed: somebody has to");
		node_group_close(g);
		free(g);
	}
	free(c->groups);
	c->groups = groups;
}

/* The settings of groups that stay stand in the manifest of before. */
static void open_groups(struct controller *c, const struct fleet_map *m, bool *ok, struct error *e)
{
	fleet_begin_life(c);
	for (size_t i = 0; *ok && i < fleet_of(c)->group_count; i++) {
		if (c->groups[i]) {
			c->groups[i]->settings = fleet_group_settings(c, &c->manifest, i, &c->fleet.manifest_arena);
			continue;
		}
		*ok = fleet_open_group(c, i, e);
		if (*ok)
			c->groups[i]->recalled_first = m->standby_first[i];
	}
	*ok = *ok && fleet_adopt_operations(c, e);
	for (size_t i = 0; *ok && i < fleet_of(c)->group_count; i++)
		if (!c->groups[i]->is_known)
			node_group_look(c->groups[i]);
}

static void open_pools(struct controller *c, const struct fleet_map *m, struct live_pool **former)
{
	for (size_t i = 0; i < m->was->fleet.pool_count; i++) {
		if (former[i] && m->pools[i] != NOWHERE)
			fleet_open_pool(c, m->pools[i], former[i], true);
		free(former[i]);
	}
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (!c->pools[i])
			fleet_open_pool(c, i, NULL, true);
}

static void adopt(struct controller *c)
{
	pool_signals_targets(c);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (c->pools[i]->is_new)
			start_progress_adopt(c, NULL, i);
	marks_adopt(c);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		c->pools[i]->is_new = false;
}

static bool forget_guards(struct controller *c, struct error *e)
{
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		if (c->groups[i]->is_stopped && !node_group_forget_guard(c->groups[i], e))
			return false;
	return true;
}

bool fleet_change(struct controller *c, struct error *e)
{
	struct manifest was = c->manifest;
	struct fleet_map m;
	bool ok = true;

	if (!forget_guards(c, e))
		return false;
	if (!history_use_manifest(c->history, c->leader.next.text, &c->leader.next.fleet, e))
		return false;
	compare(c, &c->leader.next, &m);
	struct live_pool **former = arena_array(&m.arena, struct live_pool *, was.fleet.pool_count + 1);
	struct policy_state *memory = policy_state_migrate(c->memory, &was.fleet, &c->leader.next.fleet);
	policy_state_free(c->memory);
	c->memory = memory;
	renumber_starts(c, &m);
	renumber_plan(c, &m);
	drains_renumber(c, m.pools, m.groups);
	move_pools(c, &m, former);
	move_groups(c, &m);
	replace_manifest(c);
	m.was = &was;
	m.now = &c->manifest;
	publish_make_room(c);
	if (!is_same_to_cluster(&m))
		fleet_tell_cluster(c);
	open_groups(c, &m, &ok, e);
	open_pools(c, &m, former);
	adopt(c);
	arena_release(&m.arena);
	log_info("manifest-in-force", LOG_I("pools", (int64_t)fleet_of(c)->pool_count), LOG_END);
	return ok;
}
