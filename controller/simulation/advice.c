#include "controller/simulation/advice.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A change that saves less of what a pool costs is not worth a change. */
static const double SAVED_LEAST = .02, LATER_MOST = 1.1;
/* More failed starts than this of the group's: another comes first. */
static const double FAILED_MOST = .25;
enum { FAILED_LEAST = 4, FLOORS_TRIED = 2 };
/* How more can cost less. */
static const char limit_why[] = "now a dearer rule runs all day to make up for the peaks that the limit makes late";

struct making {
	const struct world_setup *as_is;
	struct arena *arena;
	struct advice *out;
	struct trial *trials;
	struct buf text;
	size_t count, pool, of_pool;
};

/* What was written into the text. */
static const char *taken(struct making *m)
{
	const char *text = arena_strdup(m->arena, m->text.text, m->text.len);

	m->text.len = 0;
	return text;
}

/* A world to change, and the advice that will speak of it. */
static struct trial_world *begin(struct making *m, struct advice **out)
{
	if (m->of_pool == ADVICE_MOST)
		return NULL;
	const struct pool_spec *p = &m->as_is->fleet->pools[m->pool];
	struct trial_world *w = arena_new(m->arena, struct trial_world);

	*w = trial_copy(m->as_is, m->arena);
	*out = &m->out[m->count];
	**out = (struct advice){ .pool = m->pool, .allowed = (double)p->objective_late_ppm / 1e6 };
	(*out)->allowed_with = (*out)->allowed;
	m->trials[m->count] = (struct trial){ m->pool, w };
	m->count++;
	m->of_pool++;
	return w;
}

static void try_floor(struct making *m, int64_t floor)
{
	struct advice *a;
	struct trial_world *w = begin(m, &a);

	if (!w)
		return;
	w->pools[m->pool].headroom_min = floor;
	buf_printf(&m->text, "headroom.min: %" PRId64, floor);
	a->setting = taken(m);
}

static void try_standby(struct making *m, size_t group, int64_t machines)
{
	struct advice *a;
	struct trial_world *w = begin(m, &a);

	if (!w)
		return;
	w->groups[group].standby_max_nodes = machines;
	a->is_shared = true;
	buf_printf(&m->text, "nodeGroups[%s].standby.max: %" PRId64, w->groups[group].name, machines);
	a->setting = taken(m);
	if (machines > m->as_is->fleet->groups[group].standby_max_nodes) {
		buf_printf(&m->text, "disks of %" PRId64 " stopped machines", machines);
		a->needs = taken(m);
	}
}

static void try_max(struct making *m, size_t group)
{
	struct advice *a;
	struct trial_world *w = begin(m, &a);

	if (!w)
		return;
	int64_t max = w->groups[group].max_nodes + (w->groups[group].max_nodes + 1) / 2;
	w->groups[group].max_nodes = max;
	a->is_shared = true;
	buf_printf(&m->text, "nodeGroups[%s].max: %" PRId64, w->groups[group].name, max);
	a->setting = taken(m);
	buf_printf(&m->text, "quota for %" PRId64 " machines", max);
	a->needs = taken(m);
	a->why = limit_why;
}

static void try_budget(struct making *m)
{
	struct advice *a;
	struct trial_world *w = begin(m, &a);

	if (!w)
		return;
	int64_t budget = w->pools[m->pool].budget_per_hour * 3 / 2;
	w->pools[m->pool].budget_per_hour = budget;
	buf_printf(&m->text, "budget.dollarsPerHour: %.2f", (double)budget / 1e6);
	a->setting = taken(m);
	a->why = limit_why;
}

/* The group at `position` comes first. */
static void try_first(struct making *m, size_t position)
{
	struct advice *a;
	struct trial_world *w = begin(m, &a);

	if (!w)
		return;
	struct pool_spec *p = &w->pools[m->pool];
	size_t *groups = arena_array(m->arena, size_t, p->group_count);
	groups[0] = p->groups[position];
	for (size_t i = 0, n = 1; i < p->group_count; i++)
		if (i != position)
			groups[n++] = p->groups[i];
	p->groups = groups;
	buf_printf(&m->text, "nodeGroups: %s first", w->groups[groups[0]].name);
	a->setting = taken(m);
}

static void try_objective(struct making *m, int64_t late_ppm)
{
	struct advice *a;
	struct trial_world *w = begin(m, &a);

	if (!w)
		return;
	w->pools[m->pool].objective_late_ppm = late_ppm;
	a->allowed_with = (double)late_ppm / 1e6;
	buf_printf(&m->text, "objective.attainment: %g%%", 100 - (double)late_ppm / 1e4);
	a->setting = taken(m);
	a->needs = "whoever waits to agree";
}

static double price_of_gpu(const struct group_spec *g)
{
	return (double)g->price_per_hour / (double)(g->gpus_per_node > 0 ? g->gpus_per_node : 1);
}

static bool fails_often(const struct advice_record *r, size_t position)
{
	int64_t all = r->served[position] + r->lost[position];

	return r->lost[position] >= FAILED_LEAST && (double)r->lost[position] > FAILED_MOST * (double)all;
}

static void of_groups(struct making *m, const struct pool_spec *p, const struct advice_record *r)
{
	const struct group_spec *groups = m->as_is->fleet->groups, *first = &groups[p->groups[0]];

	for (size_t i = 0; i < p->group_count; i++) {
		const struct group_spec *g = &groups[p->groups[i]];
		bool is_better = price_of_gpu(g) < price_of_gpu(first) || (fails_often(r, 0) && !fails_often(r, i));
		if (i > 0 && is_better)
			try_first(m, i);
		if (r->held_by & 1u << LIMIT_MAX)
			try_max(m, p->groups[i]);
		if (g->standby_max_nodes > 0) {
			try_standby(m, p->groups[i], 0);
			try_standby(m, p->groups[i],
				    g->standby_max_nodes * 2 < g->max_nodes ? g->standby_max_nodes * 2 : g->max_nodes);
		}
	}
}

static bool has_traffic(const struct trace *t)
{
	bool has_any = t && t->request_count > 0;

	for (size_t i = 0; t && i < t->bin_count && !has_any; i++)
		has_any = t->bins[i].requests > 0;
	return has_any;
}

static void of_pool(struct making *m, const struct advice_record *r)
{
	static const int64_t steps[] = { 50000, 10000, 5000, 1000 }; /* late requests allowed, in millionths */
	const struct pool_spec *p = &m->as_is->fleet->pools[m->pool];

	if (p->headroom_min > 0)
		try_floor(m, 0);
	for (int64_t more = 1; more <= FLOORS_TRIED; more++)
		try_floor(m, p->headroom_min + more);
	if (p->budget_per_hour > 0 && r->held_by & 1u << LIMIT_BUDGET)
		try_budget(m);
	of_groups(m, p, r);
	for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
		if (steps[i] > p->objective_late_ppm) {
			try_objective(m, steps[i]);
			break;
		}
}

size_t advice_candidates(const struct world_setup *as_is, const struct advice_record *records, struct arena *a,
			 struct advice *out, struct trial *trials)
{
	struct making m = { .as_is = as_is, .arena = a, .out = out, .trials = trials };

	for (m.pool = 0; m.pool < as_is->fleet->pool_count; m.pool++) {
		const struct pool_spec *p = &as_is->fleet->pools[m.pool];
		m.of_pool = 0;
		if (p->mode == MODE_ACT && p->group_count > 0 && has_traffic(as_is->traces[m.pool]))
			of_pool(&m, &records[m.pool]);
	}
	buf_release(&m.text);
	return m.count;
}

/* --- which pay --- */

static bool was_met(const struct advice *a)
{
	return a->result.late_share <= a->allowed;
}

static bool mends(const struct advice *a)
{
	return !was_met(a) && a->allowed_with <= a->allowed && a->result.late_with <= a->allowed;
}

static bool pays(const struct advice *a)
{
	const struct trial_result *r = &a->result;
	double most = was_met(a) ? a->allowed_with : r->late_share * LATER_MOST;

	return !r->is_chance && r->saved > SAVED_LEAST * r->dollars && r->late_with <= most;
}

/* Another objective is for somebody else to agree to. */
static int rank(const struct advice *a)
{
	return mends(a) ? 0 : a->allowed_with <= a->allowed ? 1 : 2;
}

static int by_worth(const void *left, const void *right)
{
	const struct advice *a = left, *b = right;

	if (rank(a) != rank(b))
		return rank(a) - rank(b);
	if (a->result.saved != b->result.saved)
		return a->result.saved > b->result.saved ? -1 : 1;
	return a->pool != b->pool ? (a->pool > b->pool) - (a->pool < b->pool) : strcmp(a->setting, b->setting);
}

static bool harms(const struct advice *a)
{
	double most = was_met(a) ? a->allowed_with : a->result.late_share * LATER_MOST;

	return a->result.late_with > most;
}

static bool is_same_change(const struct advice *a, const struct advice *b)
{
	return a->is_shared && b->is_shared && !strcmp(a->setting, b->setting);
}

/* By what another pool says of the same change. */
static bool is_spoilt(const struct advice *all, size_t count, const struct advice *a)
{
	for (size_t i = 0; i < count; i++)
		if (is_same_change(&all[i], a) && harms(&all[i]))
			return true;
	return false;
}

static bool is_said(const struct advice *all, size_t count, const struct advice *a)
{
	for (size_t i = 0; i < count; i++)
		if (is_same_change(&all[i], a))
			return true;
	return false;
}

size_t advice_keep(struct advice *all, size_t count)
{
	size_t kept = 0, told = 0;

	if (count > 1)
		qsort(all, count, sizeof *all, by_worth);
	for (size_t i = 0; i < count; i++)
		all[i].is_kept = (mends(&all[i]) || pays(&all[i])) && !is_spoilt(all, count, &all[i]);
	for (size_t i = 0; i < count; i++)
		if (all[i].is_kept)
			all[kept++] = all[i];
	for (size_t i = 0; i < kept; i++)
		if (!is_said(all, told, &all[i]))
			all[told++] = all[i];
	return told;
}
