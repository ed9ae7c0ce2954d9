#include "controller/policy/standing.h"

#include "base/exact.h"
#include "controller/policy/choose.h"
#include "controller/policy/memory.h"

static struct rule_standing standing_of(const struct pool_memory *m, const struct choice_input *in, size_t rule,
					int64_t gpus)
{
	const struct rule *r = &m->family.rules[rule];
	double share = choice_share(in, rule);

	return (struct rule_standing){
		.margin_permille = exact_round(r->margin * 1000),
		.hold_ms = exact_round(m->family.hold[r->hold] * 1000),
		.chase_permille = exact_round(r->chase * 1000),
		.stock_permille = r->is_tiered ? exact_round(r->stock * 1000) : ABSENT,
		.gpu_milli = m->record.ticks > 0
				     ? exact_round(m->shadows[rule].held / m->record.ticks * (double)gpus * 1000)
				     : ABSENT,
		.share_ppm = exact_round(share * 1e6),
		.meets = share <= m->choice.target,
	};
}

struct rule_standing *policy_standings(const struct memory *m, const struct fleet_spec *fleet, size_t pool,
				       struct arena *a, int64_t *target_ppm)
{
	const struct pool_memory *p = &m->pools[pool];
	const struct choice_input in = { .family = &p->family, .shadows = p->shadows, .record = &p->record };
	struct rule_standing *out = arena_array(a, struct rule_standing, p->family.count + 1);

	for (size_t i = 0; i < p->family.count; i++)
		out[i] = standing_of(p, &in, i, fleet->pools[pool].gpus_per_replica);
	*target_ppm = exact_round(p->choice.target * 1e6);
	return out;
}
