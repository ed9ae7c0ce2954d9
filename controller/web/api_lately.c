#include "controller/web/api_lately.h"

#include <string.h>

enum { PPM = 1000000 };

bool api_lately(struct api_call *c, size_t pool, millis length, struct level_sums *sums, struct error *e)
{
	const struct level_question q = { .pool = pool,
					  .width = length > 24 * HOUR ? LEVEL_HOUR : LEVEL_FIVE_MINUTES,
					  .from = c->span.to - length,
					  .to = c->span.to };
	struct level_row *rows;
	size_t count;

	*sums = (struct level_sums){ 0 };
	if (!level_read(c->history, &q, &c->arena, &rows, &count, e))
		return false;
	/* The row that begins before is not of this time. */
	for (size_t i = 0; i < count; i++)
		if (rows[i].from + level_millis(q.width) > q.from + level_millis(q.width) / 2)
			level_add(sums, &rows[i].sums);
	return true;
}

int64_t api_late_ppm(const struct level_sums *sums)
{
	return sums->started > 0 ? (int64_t)((__int128)sums->late * PPM / sums->started) : ABSENT;
}

int64_t api_budget_left(const struct pool_spec *spec, const struct level_sums *sums)
{
	__int128 may = (__int128)sums->started * spec->objective_late_ppm;

	if (may <= 0 || spec->violation_cost)
		return ABSENT;
	return (int64_t)(PPM - (__int128)sums->late * PPM * PPM / may);
}

static const struct api_member objective_members[] = {
	{ "queueWaitSeconds", API_NUMBER, .help = "a request that waits longer is late" },
	{ "attainment", API_NUMBER, .may_be_null = true,
	  .help = "share that must not be late; null with a violation cost" },
	{ "violationCost", API_NUMBER, .may_be_null = true,
	  .help = "dollars that a late request is worth, in place of it" },
};
const struct api_shape api_objective_shape = API_SHAPE("Objective", objective_members);

void api_write_objective(const struct pool_spec *spec, struct buf *out)
{
	bool has_cost = spec->violation_cost > 0;

	member_object(out, "objective");
	member_scaled(out, "queueWaitSeconds", spec->objective_wait, 3);
	member_scaled(out, "attainment", has_cost ? ABSENT : PPM - spec->objective_late_ppm, 6);
	member_scaled(out, "violationCost", has_cost ? spec->violation_cost : ABSENT, 6);
	bracket_end(out, '}');
}

const struct published_pool *api_live_pool(const struct api_call *c, const struct pool_spec *spec)
{
	const struct published *shown = api_shown(c);

	for (size_t i = 0; shown && shown->fleet && shown->pools && i < shown->fleet->pool_count; i++)
		if (!strcmp(shown->fleet->pools[i].name, spec->name) &&
		    !strcmp(shown->fleet->pools[i].namespace, spec->namespace))
			return &shown->pools[i];
	return NULL;
}
