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

enum { SHADOW_VALUES = offsetof(struct shadow, block_low) + sizeof((struct shadow){ 0 }.block_low) };

/* A shadow in a checkpoint. */
struct shadow_bytes {
	unsigned char values[SHADOW_VALUES]; /* up to its ring */
	uint16_t cold_ring[COLD_RING];
	unsigned char unused[4]; /* zero: it ends where whole words do */
};
_Static_assert(sizeof(struct shadow_bytes) % 8 == 0, "checkpoints have no gaps of a compiler's");

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
		PLACE_OF(demand),
		PLACE_OF(capacity),
		PLACE_OF(lead),
		PLACE_OF(times),
		PLACE_OF(deals),
		PLACE_OF(record),
		PLACE_OF(choice),
		PLACE_OF(prices),
		PLACE_OF(ticks),
		PLACE_OF(dear_since),
		PLACE_OF(stock_low),
		sizeof(struct shadow_tiers),
		sizeof(struct shadow_bytes),
		sizeof(struct group_memory),
	};

	return mix_rules(mix(FNV1A_START, places, sizeof places));
}

/* The family is made from the manifest's lead times and stays, so that a rule keeps its meaning on the whole record. */
static struct tier_times times_of_manifest(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	static const struct lead_state nothing;

	return lead_tiers(&nothing, fleet, spec, 0).times;
}

/* All that the rules of a pool are made from. */
struct rule_source {
	struct tier_times times;
	int64_t late_ppm;
	millis wait;
};

/* Pools that say the same share their rules. */
struct rule_set {
	struct rule_set *next;
	size_t holders;
	struct rule_source source;
	struct family family;
	struct rule rules[];
};

static struct rule_source rule_source_of(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	return (struct rule_source){ times_of_manifest(fleet, spec), spec->objective_late_ppm, spec->objective_wait };
}

static bool is_same_source(const struct rule_source *a, const struct rule_source *b)
{
	const struct tier_times *x = &a->times, *y = &b->times;

	return a->late_ppm == b->late_ppm && a->wait == b->wait && x->cold_p50 == y->cold_p50 &&
	       x->cold_p95 == y->cold_p95 && x->wake_p50 == y->wake_p50 && x->wake_p95 == y->wake_p95 &&
	       x->reclaim_p50 == y->reclaim_p50 && x->reclaim_p95 == y->reclaim_p95;
}

static struct rule_set *make_rules(const struct rule_source *source)
{
	struct rule room[RULES_MAX];
	struct family family;

	family_init(&family, &source->times, (double)source->late_ppm / 1e6, room);
	choice_priors(&family, &source->times, (double)source->wait / 1000);
	struct rule_set *set = allocate(1, sizeof *set + family.count * sizeof *room);
	memcpy(set->rules, room, family.count * sizeof *room);
	family.rules = set->rules;
	set->source = *source;
	set->family = family;
	return set;
}

static struct rule_set *hold_rules(struct policy_state *m, const struct rule_source *source)
{
	struct rule_set *set = m->rule_sets;

	while (set && !is_same_source(&set->source, source))
		set = set->next;
	if (!set) {
		set = make_rules(source);
		set->next = m->rule_sets;
		m->rule_sets = set;
	}
	set->holders++;
	return set;
}

static struct rule_set *rules_of(const struct pool_policy_state *p)
{
	return (struct rule_set *)(void *)((char *)p->family.rules - offsetof(struct rule_set, rules));
}

static void let_rules_go(struct policy_state *m, struct rule_set *set)
{
	struct rule_set **at = &m->rule_sets;

	if (--set->holders)
		return;
	while (*at && *at != set)
		at = &(*at)->next;
	*at = set->next;
	free(set);
}

static void begin_pool(struct policy_state *m, struct pool_policy_state *p, const struct fleet_spec *fleet,
		       const struct pool_spec *spec)
{
	const struct rule_source source = rule_source_of(fleet, spec);

	p->choice.rule = p->choice.fixed = p->choice.cheaper = p->choice.dearer = p->choice.tier_saving = ABSENT;
	p->times = source.times;
	p->family = hold_rules(m, &source)->family;
	p->shadows = allocate(p->family.count, sizeof *p->shadows);
	p->tiers = allocate(tiered_count(&p->family), sizeof *p->tiers);
}

static void release_shadows(struct pool_policy_state *p)
{
	for (size_t i = 0; p->shadows && i < p->family.count; i++)
		shadow_release(&p->shadows[i]);
	free(p->shadows);
	free(p->tiers);
	p->shadows = NULL;
	p->tiers = NULL;
}

static void release_pool(struct policy_state *m, struct pool_policy_state *p)
{
	if (!p->family.rules)
		return;
	release_shadows(p);
	free(p->demand.levels);
	let_rules_go(m, rules_of(p));
	*p = (struct pool_policy_state){ 0 };
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

struct policy_state *policy_state_new(const struct fleet_spec *fleet)
{
	struct policy_state *m = allocate(1, sizeof *m);

	m->pool_count = fleet->pool_count;
	m->fleet = fleet_mark(fleet);
	m->group_count = fleet->group_count;
	m->pools = allocate(m->pool_count, sizeof *m->pools);
	m->groups = allocate(m->group_count, sizeof *m->groups);
	for (size_t i = 0; i < m->pool_count; i++)
		begin_pool(m, &m->pools[i], fleet, &fleet->pools[i]);
	return m;
}

void policy_state_free(struct policy_state *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->pool_count; i++)
		release_pool(m, &m->pools[i]);
	free(m->pools);
	free(m->groups);
	free(m);
}

/* A checkpoint of a pool: all that does not follow from the manifest, then its levels and its shadows. */
enum {
	POOL_FROM = offsetof(struct pool_policy_state, demand.busy),
	POOL_BYTES = sizeof(struct pool_policy_state) - POOL_FROM
};

static size_t level_bytes(const struct pool_policy_state *p)
{
	return (size_t)p->demand.level_room * sizeof *p->demand.levels;
}

static size_t tiers_bytes(const struct pool_policy_state *p)
{
	return tiered_count(&p->family) * sizeof *p->tiers;
}

static void encode_shadow(const struct shadow *s, struct buf *out)
{
	struct shadow_bytes bytes = { 0 };

	memcpy(bytes.values, s, sizeof bytes.values);
	if (s->cold_ring)
		memcpy(bytes.cold_ring, s->cold_ring, sizeof bytes.cold_ring);
	buf_append(out, &bytes, sizeof bytes);
}

void policy_state_encode(const struct policy_state *m, struct buf *out)
{
	struct header h = { policy_state_layout(), m->pool_count, m->group_count, m->fleet };

	buf_append(out, &h, sizeof h);
	for (size_t i = 0; i < m->pool_count; i++) {
		const struct pool_policy_state *p = &m->pools[i];
		buf_append(out, (const char *)p + POOL_FROM, POOL_BYTES);
		buf_append(out, (const char *)p->demand.levels, level_bytes(p));
		for (size_t k = 0; k < p->family.count; k++)
			encode_shadow(&p->shadows[k], out);
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

static bool take_shadow(struct encoded *from, struct shadow *s)
{
	struct shadow_bytes bytes;

	if (!take(from, &bytes, sizeof bytes))
		return false;
	memcpy(s, bytes.values, sizeof bytes.values);
	if (s->cold) {
		s->cold_ring = allocate(COLD_RING, sizeof *s->cold_ring);
		memcpy(s->cold_ring, bytes.cold_ring, sizeof bytes.cold_ring);
	}
	return true;
}

static bool take_shadows(struct encoded *from, struct pool_policy_state *p)
{
	for (size_t i = 0; i < p->family.count; i++)
		if (!take_shadow(from, &p->shadows[i]))
			return false;
	return true;
}

static bool take_pool(struct encoded *from, struct pool_policy_state *p)
{
	return take(from, (char *)p + POOL_FROM, POOL_BYTES) && take_levels(from, &p->demand) &&
	       take_shadows(from, p) && take(from, p->tiers, tiers_bytes(p)) && is_sound(p);
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
	struct family family = to->family, former = from->family;

	release_shadows(to);
	*to = *from;
	to->family = family;
	*from = (struct pool_policy_state){ .family = former };
}

static void carry_learned(struct pool_policy_state *to, struct pool_policy_state *from, bool is_same_wait)
{
	if (is_same_wait && is_same_family(&to->family, &from->family))
		carry_all(to, from);
	else
		carry_measured(to, from, is_same_wait);
}

/* A pool in a manifest. */
struct told_pool {
	const struct fleet_spec *fleet;
	const struct pool_spec *spec;
};

/* Nothing of what `p` holds is lost: what goes over is moved. */
static void carry_pool(struct policy_state *m, struct pool_policy_state *p, const struct pool_spec *was,
		       const struct told_pool *told)
{
	const struct pool_spec *now = told->spec;
	const struct rule_source source = rule_source_of(told->fleet, now);
	bool is_same_replica = was->gpus_per_replica == now->gpus_per_replica;

	if (!is_same_replica || !is_same_source(&rules_of(p)->source, &source)) {
		struct pool_policy_state from = *p;
		*p = (struct pool_policy_state){ 0 };
		begin_pool(m, p, told->fleet, now);
		if (is_same_replica)
			carry_learned(p, &from, was->objective_wait == now->objective_wait);
		else
			p->lead = from.lead; /* another replica on the same machines */
		release_pool(m, &from);
	}
	if (!is_same_replica)
		return;
	if (!has_same_priors(was, now))
		p->capacity = (struct capacity_state){ 0 };
	if (was->objective_late_ppm != now->objective_late_ppm || was->violation_cost != now->violation_cost)
		p->choice.reviewed_at = 0; /* at the next tick */
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

static bool are_same_pools(const struct fleet_spec *was, const struct fleet_spec *now)
{
	bool are_same = was->pool_count == now->pool_count;

	for (size_t i = 0; are_same && i < now->pool_count; i++)
		are_same = !strcmp(was->pools[i].name, now->pools[i].name) &&
			   !strcmp(was->pools[i].namespace, now->pools[i].namespace);
	return are_same;
}

/* Those that nobody goes on with are released. */
static void move_pools(struct policy_state *m, struct policy_state *old, const struct fleet_spec *was,
		       const struct fleet_spec *now)
{
	m->pools = allocate(now->pool_count, sizeof *m->pools);
	for (size_t i = 0, after = 0; i < now->pool_count; i++) {
		size_t k = former_pool(was, &now->pools[i], after);
		if (k == was->pool_count) {
			begin_pool(m, &m->pools[i], now, &now->pools[i]);
			continue;
		}
		m->pools[i] = old->pools[k];
		old->pools[k] = (struct pool_policy_state){ 0 };
		carry_pool(m, &m->pools[i], &was->pools[k], &(struct told_pool){ now, &now->pools[i] });
		after = k + 1;
	}
	for (size_t k = 0; k < was->pool_count; k++)
		release_pool(m, &old->pools[k]);
}

/* Mostly it is one pool that changes: the others stay where they are. */
static void keep_pools(struct policy_state *m, struct policy_state *old, const struct fleet_spec *was,
		       const struct fleet_spec *now)
{
	m->pools = old->pools;
	old->pools = NULL;
	old->pool_count = 0;
	for (size_t i = 0; i < now->pool_count; i++)
		carry_pool(m, &m->pools[i], &was->pools[i], &(struct told_pool){ now, &now->pools[i] });
}

struct policy_state *policy_state_migrate(struct policy_state *old, const struct fleet_spec *was,
					  const struct fleet_spec *now)
{
	struct policy_state *m = allocate(1, sizeof *m);

	*m = (struct policy_state){ .pool_count = now->pool_count,
				    .group_count = now->group_count,
				    .rule_sets = old->rule_sets,
				    .fleet = fleet_mark(now),
				    .groups = allocate(now->group_count, sizeof *m->groups) };
	old->rule_sets = NULL;
	if (are_same_pools(was, now))
		keep_pools(m, old, was, now);
	else
		move_pools(m, old, was, now);
	for (size_t i = 0, after = 0; i < now->group_count; i++) {
		size_t k = former_group(was, &now->groups[i], after);
		if (k == was->group_count)
			continue;
		m->groups[i] = old->groups[k];
		after = k + 1;
	}
	return m;
}
