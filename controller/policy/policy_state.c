#include "controller/policy/policy_state.h"

#include "base/alloc.h"
#include "base/fnv1a.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t count, size_t size)
{
	return xcalloc(count, size);
}

struct header {
	uint64_t layout, pool_count, group_count, fleet;
};

/* What follows is apart from it: texts of other lengths are not alike. */
static uint64_t mix(uint64_t h, const void *bytes, size_t len)
{
	return fnv1a_bytes(fnv1a_bytes(h, bytes, len), "\xff", 1);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	return mix(h, text, strlen(text));
}

/* Tells one fleet from another by its pools and groups. */
static uint64_t fleet_mark(const struct fleet_spec *fleet)
{
	uint64_t h = FNV1A_START;

	for (size_t i = 0; i < fleet->pool_count; i++)
		h = mix_text(h, fleet->pools[i].name);
	for (size_t i = 0; i < fleet->group_count; i++)
		h = mix_text(mix_text(h, fleet->groups[i].provider), fleet->groups[i].name);
	return h;
}

/* Shadows are kept by the number of their rule: with other rules their numbers would mean something else. */
static uint64_t mix_rules(uint64_t h)
{
	static const struct tier_times any = { 300, 400, 60, 90, 30, 40 };
	struct rule room[RULES_MAX];
	struct family f;

	family_init(&f, &any, .01, room);
	for (size_t i = 0; i < f.count; i++) {
		const double rule[] = { f.rules[i].margin, f.rules[i].spare,	    f.rules[i].chase,
					f.rules[i].stock,  f.hold[f.rules[i].hold], f.rules[i].is_tiered };
		h = mix(h, rule, sizeof rule);
	}
	return h;
}

#define PLACE_OF(member) offsetof(struct pool_policy_state, member), sizeof(((struct pool_policy_state *)0)->member)

uint64_t policy_state_layout(void)
{
	static const size_t places[] = {
		PLACE_OF(demand),      PLACE_OF(capacity),
		PLACE_OF(lead),	       PLACE_OF(times),
		PLACE_OF(deals),       PLACE_OF(record),
		PLACE_OF(choice),      PLACE_OF(prices),
		PLACE_OF(ticks),       PLACE_OF(dear_since),
		PLACE_OF(stock_low),   sizeof(struct shadow_tiers),
		sizeof(struct shadow), sizeof(struct group_memory),
	};

	return mix_rules(mix(FNV1A_START, places, sizeof places));
}

/* The family is made from the manifest's lead times and stays, so that a rule keeps its meaning on the whole record. */
static struct tier_times times_of_manifest(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	static const struct lead_state nothing;

	return lead_tiers(&nothing, fleet, spec, 0).times;
}

static void begin_pool(struct pool_policy_state *p, const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	struct rule room[RULES_MAX];

	p->choice.rule = p->choice.fixed = p->choice.cheaper = p->choice.dearer = p->choice.tier_saving = ABSENT;
	p->times = times_of_manifest(fleet, spec);
	family_init(&p->family, &p->times, (double)spec->objective_late_ppm / 1e6, room);
	choice_priors(&p->family, &p->times, (double)spec->objective_wait / 1000);
	p->family.rules = allocate(p->family.count, sizeof *room);
	memcpy(p->family.rules, room, p->family.count * sizeof *room);
	p->shadows = allocate(p->family.count, sizeof *p->shadows);
	p->tiers = allocate(tiered_count(&p->family), sizeof *p->tiers);
}

void policy_state_make_room(struct demand_state *d, int64_t ticks)
{
	int64_t room = d->level_room ? d->level_room : 64;

	while (room < ticks && room < LEVELS_MOST)
		room *= 2;
	if (room == d->level_room)
		return;
	double *levels = allocate((size_t)room, sizeof *levels);
	for (int64_t i = 1; i <= d->level_room && i <= d->level_count; i++)
		levels[(d->level_count - i) % room] = d->levels[(d->level_count - i) % d->level_room];
	free(d->levels);
	d->levels = levels;
	d->level_room = room;
}

/* Of no pools yet. */
static struct policy_state *make_room(const struct fleet_spec *fleet)
{
	struct policy_state *m = allocate(1, sizeof *m);

	m->pool_count = fleet->pool_count;
	m->fleet = fleet_mark(fleet);
	m->group_count = fleet->group_count;
	m->pools = allocate(m->pool_count, sizeof *m->pools);
	m->groups = allocate(m->group_count, sizeof *m->groups);
	return m;
}

struct policy_state *policy_state_new(const struct fleet_spec *fleet)
{
	struct policy_state *m = make_room(fleet);

	for (size_t i = 0; i < m->pool_count; i++)
		begin_pool(&m->pools[i], fleet, &fleet->pools[i]);
	return m;
}

void policy_state_free(struct policy_state *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->pool_count; i++) {
		free(m->pools[i].family.rules);
		free(m->pools[i].shadows);
		free(m->pools[i].tiers);
		free(m->pools[i].demand.levels);
	}
	free(m->pools);
	free(m->groups);
	free(m);
}

/* A checkpoint of a pool: all that does not follow from the manifest, then its levels and its shadows. */
enum {
	POOL_FROM = offsetof(struct pool_policy_state, demand.busy),
	POOL_BYTES = sizeof(struct pool_policy_state) - POOL_FROM
};

static size_t shadow_bytes(const struct pool_policy_state *p)
{
	return p->family.count * sizeof *p->shadows;
}

static size_t level_bytes(const struct pool_policy_state *p)
{
	return (size_t)p->demand.level_room * sizeof *p->demand.levels;
}

static size_t tiers_bytes(const struct pool_policy_state *p)
{
	return tiered_count(&p->family) * sizeof *p->tiers;
}

void policy_state_encode(const struct policy_state *m, struct buf *out)
{
	struct header h = { policy_state_layout(), m->pool_count, m->group_count, m->fleet };

	buf_append(out, &h, sizeof h);
	for (size_t i = 0; i < m->pool_count; i++) {
		const struct pool_policy_state *p = &m->pools[i];
		buf_append(out, (const char *)p + POOL_FROM, POOL_BYTES);
		buf_append(out, (const char *)p->demand.levels, level_bytes(p));
		buf_append(out, (const char *)p->shadows, shadow_bytes(p));
		buf_append(out, (const char *)p->tiers, tiers_bytes(p));
	}
	buf_append(out, m->groups, m->group_count * sizeof *m->groups);
}

static bool is_rule(const struct pool_policy_state *p, int64_t rule)
{
	return rule == ABSENT || (rule >= 0 && (size_t)rule < p->family.count);
}

static bool is_count(int64_t n)
{
	return n >= 0 && n < INT64_C(1) << 40;
}

static bool are_real(const double *x, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(x[i] > -1e15 && x[i] < 1e15))
			return false;
	return true;
}

/* A sum of squares of such numbers. */
static bool is_square(double x)
{
	return x >= 0 && x < 1e30;
}

#define IS_REAL(x)	are_real(&(x), 1)
#define ARE_REAL(array) are_real(array, sizeof(array) / sizeof(array)[0])

static bool is_sound_shadow(const struct shadow *s, bool has_tiers)
{
	const int32_t counts[] = { s->ready,	    s->cold,	  s->wake,  s->reclaim,	    s->refill, s->replace_cold,
				   s->replace_wake, s->reclaimed, s->stock, s->quiet_ticks, s->deals };

	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		if (counts[i] < -(1 << 24) || counts[i] > 1 << 24)
			return false;
	for (int i = 0; i < STOCK_BLOCKS; i++)
		if (s->block_low[i] < -(1 << 24) || s->block_low[i] > 1 << 24)
			return false;
	if (!has_tiers && (s->wake || s->reclaim || s->refill || s->replace_cold || s->replace_wake))
		return false;
	return s->ready >= 0 && s->deals >= 0 && IS_REAL(s->backlog) && IS_REAL(s->cost) && IS_REAL(s->held) &&
	       IS_REAL(s->late) && IS_REAL(s->late_hour) && is_square(s->late_squares) && IS_REAL(s->bad_hours);
}

static bool is_sound_lead(const struct lead_state *l)
{
	for (int i = 0; i < START_KIND_COUNT; i++)
		if (!(l->total[i].n >= 0) || !IS_REAL(l->total[i].n) || !IS_REAL(l->total[i].sum) ||
		    !IS_REAL(l->total[i].squares))
			return false;
	return l->first_wake.n >= 0 && IS_REAL(l->first_wake.n) && IS_REAL(l->first_wake.sum) &&
	       IS_REAL(l->first_wake.squares) && IS_REAL(l->asked_wakes) && IS_REAL(l->refused_wakes);
}

static bool is_sound_demand(const struct demand_state *d)
{
	return is_count(d->level_count) && IS_REAL(d->busy) && IS_REAL(d->finished) && d->finished >= 0 &&
	       IS_REAL(d->mean) && IS_REAL(d->last) && IS_REAL(d->level) && IS_REAL(d->busy_rate) &&
	       ARE_REAL(d->recent) && are_real(d->levels, (size_t)d->level_room);
}

static bool is_sound_capacity(const struct capacity_state *c)
{
	return is_count(c->sample_count) && ARE_REAL(c->saturated) && IS_REAL(c->busiest) && IS_REAL(c->kv_slots) &&
	       IS_REAL(c->fit_n) && IS_REAL(c->fit_x) && IS_REAL(c->fit_y) && IS_REAL(c->fit_xx) && IS_REAL(c->fit_xy);
}

static bool is_sound_choice(const struct pool_policy_state *p)
{
	const struct rule_memory *c = &p->choice;
	const double reals[] = { c->share,    c->target,	  c->sunk,	     c->own_started,
				 c->own_late, c->day_started,	  c->day_late,	     c->day_ticks,
				 c->day_held, c->day_shadow_late, c->day_shadow_held };

	return is_rule(p, c->rule) && is_rule(p, c->fixed) && is_rule(p, c->cheaper) && is_rule(p, c->dearer) &&
	       (c->rule != ABSENT || p->ticks == 0) && ARE_REAL(reals);
}

/* Numbers that index arrays, divide or are turned into others must be in range even in a memory that somebody made up.
 */
static bool is_sound(const struct pool_policy_state *p)
{
	const struct shadow_record *r = &p->record;
	bool ok = is_count(p->ticks) && is_count(p->reclaimed) && is_count(p->replacing) && is_count(p->swapping) &&
		  is_count(p->swapped) && p->cold_step < 1 << 20 && p->fast_step < 1 << 20 && is_sound_lead(&p->lead) &&
		  is_sound_demand(&p->demand) && is_sound_capacity(&p->capacity) && is_sound_choice(p) &&
		  IS_REAL(r->arrived) && IS_REAL(r->ticks) && IS_REAL(r->hours) && IS_REAL(r->level_ticks);

	if (p->ticks > 0 && (p->cold_step < 1 || p->fast_step < 1))
		return false;
	for (int i = 0; ok && i < DEALS; i++)
		ok = p->deals.cold[i] >= 0 && p->deals.cold[i] < COLD_RING && p->deals.wake[i] >= 0 &&
		     p->deals.wake[i] < FAST_RING && p->deals.reclaim[i] >= 0 && p->deals.reclaim[i] < FAST_RING;
	for (size_t i = 0; ok && i < p->family.count; i++)
		ok = is_sound_shadow(&p->shadows[i], i >= p->family.tiered_from);
	return ok;
}

static bool is_sound_group(const struct group_memory *g)
{
	return g->blocked_until >= 0 && g->wakes_blocked_until >= 0 && is_count(g->refusals) && g->refused_with >= 0 &&
	       g->refused_with <= ERROR_INTERNAL;
}

/* Bytes that are read one after the other. */
struct encoded {
	const unsigned char *at;
	size_t left;
};

static bool take(struct encoded *from, void *to, size_t len)
{
	if (len > from->left)
		return false;
	memcpy(to, from->at, len);
	from->at += len;
	from->left -= len;
	return true;
}

static bool take_levels(struct encoded *from, struct demand_state *d)
{
	int64_t room = d->level_room;

	d->level_room = 0;
	if (room < 0 || room > LEVELS_MOST || (room & (room - 1)))
		return false;
	if (room)
		d->levels = allocate((size_t)room, sizeof *d->levels);
	d->level_room = room;
	return !room || take(from, d->levels, (size_t)room * sizeof *d->levels);
}

static bool take_pool(struct encoded *from, struct pool_policy_state *p)
{
	return take(from, (char *)p + POOL_FROM, POOL_BYTES) && take_levels(from, &p->demand) &&
	       take(from, p->shadows, shadow_bytes(p)) && take(from, p->tiers, tiers_bytes(p)) && is_sound(p);
}

struct policy_state *policy_state_decode(const void *bytes, size_t len, const struct fleet_spec *fleet, struct error *e)
{
	struct encoded from = { bytes, len };
	struct header h;

	if (!take(&from, &h, sizeof h) || h.layout != policy_state_layout()) {
		error_set(e, ERROR_INVALID,
			  "checkpoint: made by another version of the policy; replay from the beginning "
			  "with that version, or start a new history");
		return NULL;
	}
	struct policy_state *m = policy_state_new(fleet);
	bool fits = h.pool_count == m->pool_count && h.group_count == m->group_count && h.fleet == m->fleet;
	for (size_t i = 0; fits && i < m->pool_count; i++)
		fits = take_pool(&from, &m->pools[i]);
	fits = fits && take(&from, m->groups, m->group_count * sizeof *m->groups) && !from.left;
	for (size_t i = 0; fits && i < m->group_count; i++)
		fits = is_sound_group(&m->groups[i]);
	if (fits)
		return m;
	error_set(e, ERROR_INVALID, "checkpoint: damaged, or of other pools than the manifest's");
	policy_state_free(m);
	return NULL;
}

void policy_state_fix_rule(struct policy_state *m, size_t pool, int64_t rule)
{
	m->pools[pool].choice.fixed = rule;
}

/*
 * What was learned survives a change of the manifest as far as it still means
 * the same. Shadow fleets and the choice among them stay while the family of
 * rules and the wait that makes a request late stay; what was measured of
 * demand, replicas and starts outlives even that.
 */

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
	return a->factor == b->factor && a->spare == b->spare && a->chase == b->chase && a->stock == b->stock &&
	       a->hold == b->hold && a->is_tiered == b->is_tiered;
}

static bool is_same_family(const struct family *a, const struct family *b)
{
	if (a->count != b->count || a->tiered_from != b->tiered_from || a->hold_count != b->hold_count)
		return false;
	for (size_t i = 0; i < a->hold_count; i++)
		if (a->hold[i] != b->hold[i])
			return false;
	for (size_t i = 0; i < a->count; i++)
		if (!is_same_rule(&a->rules[i], &b->rules[i]))
			return false;
	return true;
}

static bool has_same_priors(const struct pool_spec *a, const struct pool_spec *b)
{
	return a->max_sequences == b->max_sequences && a->tokens_per_second == b->tokens_per_second &&
	       a->prefill_tokens_per_second == b->prefill_tokens_per_second &&
	       a->inter_token_latency_us == b->inter_token_latency_us;
}

/* Another family: its shadows begin where the fleet stands, once the first lead time is over again. */
static void carry_measured(struct pool_policy_state *to, struct pool_policy_state *from, bool is_same_wait)
{
	to->demand = from->demand;
	from->demand.levels = NULL;
	to->capacity = from->capacity;
	to->lead = from->lead;
	to->reclaimed = from->reclaimed;
	to->replacing = from->replacing;
	to->swapping = from->swapping;
	to->swapped = from->swapped;
	to->dear_since = from->dear_since;
	to->bridged_since = from->bridged_since;
	to->surplus_since = from->surplus_since;
	if (is_same_wait) {
		to->choice.own_started = from->choice.own_started;
		to->choice.own_late = from->choice.own_late;
	}
}

/* All but the family: equal rules, though what is expected of them may be another. */
static void carry_all(struct pool_policy_state *to, struct pool_policy_state *from)
{
	struct family family = to->family;

	free(to->shadows);
	free(to->tiers);
	*to = *from;
	to->family = family;
	from->shadows = NULL;
	from->tiers = NULL;
	from->demand.levels = NULL;
}

static bool has_same_times(const struct tier_times *a, const struct tier_times *b)
{
	return a->cold_p50 == b->cold_p50 && a->cold_p95 == b->cold_p95 && a->wake_p50 == b->wake_p50 &&
	       a->wake_p95 == b->wake_p95 && a->reclaim_p50 == b->reclaim_p50 && a->reclaim_p95 == b->reclaim_p95;
}

/* A pool in a manifest. */
struct told_pool {
	const struct fleet_spec *fleet;
	const struct pool_spec *spec;
};

/* The family would be made anew from the same numbers: most pools, as a manifest changes for one of them. */
static bool is_made_alike(const struct told_pool *was, const struct told_pool *now)
{
	const struct tier_times before = times_of_manifest(was->fleet, was->spec);
	const struct tier_times after = times_of_manifest(now->fleet, now->spec);

	return was->spec->objective_wait == now->spec->objective_wait &&
	       was->spec->objective_late_ppm == now->spec->objective_late_ppm && has_same_times(&before, &after);
}

static void carry_learned(struct pool_policy_state *to, struct pool_policy_state *from, const struct told_pool *was,
			  const struct told_pool *now)
{
	bool is_same_wait = was->spec->objective_wait == now->spec->objective_wait;

	if (is_made_alike(was, now)) {
		*to = *from;
		*from = (struct pool_policy_state){ 0 };
		return;
	}
	begin_pool(to, now->fleet, now->spec);
	if (is_same_wait && is_same_family(&to->family, &from->family))
		carry_all(to, from);
	else
		carry_measured(to, from, is_same_wait);
}

static void carry_pool(struct pool_policy_state *to, struct pool_policy_state *from,
		       const struct told_pool *told_before, const struct told_pool *told_now)
{
	const struct pool_spec *was = told_before->spec, *now = told_now->spec;

	if (was->gpus_per_replica != now->gpus_per_replica) {
		begin_pool(to, told_now->fleet, now);
		to->lead = from->lead; /* another replica on the same machines */
		return;
	}
	carry_learned(to, from, told_before, told_now);
	if (!has_same_priors(was, now))
		to->capacity = (struct capacity_state){ 0 };
	if (was->objective_late_ppm != now->objective_late_ppm || was->violation_cost != now->violation_cost)
		to->choice.reviewed_at = 0; /* at the next tick */
}

/* Most keep their order, so that each stands behind the one before it. Returns pool_count where there was none. */
static size_t former_pool(const struct fleet_spec *was, const struct pool_spec *p, size_t after)
{
	for (size_t n = 0; n < was->pool_count; n++) {
		size_t k = (after + n) % was->pool_count;
		if (!strcmp(p->name, was->pools[k].name) && !strcmp(p->namespace, was->pools[k].namespace))
			return k;
	}
	return was->pool_count;
}

static size_t former_group(const struct fleet_spec *was, const struct group_spec *g, size_t after)
{
	for (size_t n = 0; n < was->group_count; n++) {
		size_t k = (after + n) % was->group_count;
		if (!strcmp(g->name, was->groups[k].name) && !strcmp(g->provider, was->groups[k].provider))
			return k;
	}
	return was->group_count;
}

struct policy_state *policy_state_migrate(struct policy_state *old, const struct fleet_spec *was,
					  const struct fleet_spec *now)
{
	struct policy_state *m = make_room(now);

	for (size_t i = 0, after = 0; i < now->pool_count; i++) {
		size_t k = former_pool(was, &now->pools[i], after);
		if (k == was->pool_count) {
			begin_pool(&m->pools[i], now, &now->pools[i]);
			continue;
		}
		carry_pool(&m->pools[i], &old->pools[k], &(struct told_pool){ was, &was->pools[k] },
			   &(struct told_pool){ now, &now->pools[i] });
		after = k + 1;
	}
	for (size_t i = 0, after = 0; i < now->group_count; i++) {
		size_t k = former_group(was, &now->groups[i], after);
		if (k == was->group_count)
			continue;
		m->groups[i] = old->groups[k];
		after = k + 1;
	}
	return m;
}
