/* A fixed number of replicas: what most people run. */
#include "controller/simulation/rivals/rival.h"

#include <inttypes.h>

static const struct setting_row rows[] = {
	{ "replicas", 1, 0, 100000, "always so many" },
};

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	(void)memory;
	(void)v;
	return (int64_t)s->values[0];
}

static void sweep(struct sweep *s, const struct rival_scale *scale)
{
	enum { STEPS = 48 };
	int64_t low = (int64_t)(0.4 * scale->mean), high = whole_above(1.3 * scale->peak);

	if (low < 1)
		low = 1;
	if (high < low + STEPS - 1)
		high = low + STEPS - 1;
	for (int i = 0; i < STEPS; i++)
		sweep_add(s, false, "replicas=%" PRId64, low + (high - low) * i / (STEPS - 1));
}

const struct family family_static = {
	.name = "static",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = 1,
	.want = want,
	.sweep = sweep,
	.has_no_default = true,
};
