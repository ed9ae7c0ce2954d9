/*
 * What was learned survives a change of the manifest as far as it still means
 * the same. Shadow fleets and the choice among them stay while the family of
 * rules and the wait that makes a request late stay; what was measured of
 * demand, replicas and starts outlives even that.
 */
#include "controller/policy/memory.h"

#include <string.h>

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
	return a->factor == b->factor && a->chase == b->chase && a->stock == b->stock && a->hold == b->hold &&
	       a->is_tiered == b->is_tiered;
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
static void carry_measured(struct pool_memory *to, const struct pool_memory *from, bool is_same_wait)
{
	to->demand = from->demand;
	to->capacity = from->capacity;
	to->lead = from->lead;
	to->reclaimed = from->reclaimed;
	to->replacing = from->replacing;
	to->bridged_since = from->bridged_since;
	to->surplus_since = from->surplus_since;
	if (is_same_wait) {
		to->choice.own_started = from->choice.own_started;
		to->choice.own_late = from->choice.own_late;
	}
}

static void carry_all(struct pool_memory *to, const struct pool_memory *from)
{
	struct family family = to->family;

	*to = *from;
	to->family = family;
}

static void carry_pool(struct pool_memory *to, const struct pool_memory *from, const struct pool_spec *was,
		       const struct pool_spec *now)
{
	bool is_same_wait = was->objective_wait == now->objective_wait;

	if (was->gpus_per_replica != now->gpus_per_replica) {
		to->lead = from->lead; /* another replica on the same machines */
		return;
	}
	if (is_same_wait && is_same_family(&to->family, &from->family))
		carry_all(to, from);
	else
		carry_measured(to, from, is_same_wait);
	if (!has_same_priors(was, now))
		to->capacity = (struct capacity_state){ 0 };
	if (was->objective_late_ppm != now->objective_late_ppm || was->violation_cost != now->violation_cost)
		to->choice.reviewed_at = 0; /* at the next tick */
}

struct memory *memory_carry(const struct memory *old, const struct fleet_spec *was, const struct fleet_spec *now)
{
	struct memory *m = memory_new(now);

	for (size_t i = 0; i < now->pool_count; i++)
		for (size_t k = 0; k < was->pool_count; k++)
			if (!strcmp(now->pools[i].name, was->pools[k].name) &&
			    !strcmp(now->pools[i].namespace, was->pools[k].namespace))
				carry_pool(&m->pools[i], &old->pools[k], &was->pools[k], &now->pools[i]);
	for (size_t i = 0; i < now->group_count; i++)
		for (size_t k = 0; k < was->group_count; k++)
			if (!strcmp(now->groups[i].name, was->groups[k].name) &&
			    !strcmp(now->groups[i].provider, was->groups[k].provider))
				m->groups[i] = old->groups[k];
	return m;
}
