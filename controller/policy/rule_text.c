#include "controller/policy/memory.h"

#include "base/exact.h"

size_t rule_count(const struct memory *m, size_t pool)
{
	return m->pools[pool].family.count;
}

void rule_describe(const struct memory *m, size_t pool, int64_t rule, struct buf *out)
{
	const struct family *f = &m->pools[pool].family;

	if (rule < 0 || (size_t)rule >= f->count) {
		buf_text(out, "none");
		return;
	}
	const struct rule *r = &f->rules[rule];
	buf_printf(out, "%lld %% over demand, hold %lld s, chase %.2f", (long long)exact_round(r->margin * 100),
		   (long long)exact_round(f->hold[r->hold]), r->chase);
	if (r->is_tiered)
		buf_printf(out, ", standby %.1f of hot", r->stock);
}
