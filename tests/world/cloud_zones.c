/* A group in several zones, as Auto Scaling spreads it over them. */
#include "tests/world/cloud.h"

#include <stdio.h>
#include <string.h>

size_t cloud_zone_count(const struct cloud_group *g)
{
	return g->zone_count ? g->zone_count : 1;
}

const char *cloud_zone_name(const struct cloud_group *g, size_t zone)
{
	static const char *const names[CLOUD_ZONES] = { "z1", "z2", "z3" };

	return zone ? names[zone] : g->zone;
}

bool cloud_zone_is_dry(const struct cloud_group *g, size_t zone)
{
	return g->faults.dry_zones >> zone & 1;
}

static void count_machines(const struct cloud_group *g, bool is_to_run, int64_t load[CLOUD_ZONES])
{
	memset(load, 0, CLOUD_ZONES * sizeof *load);
	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		load[m->zone] += m->is_to_run == is_to_run && m->step != STEP_TERMINATING;
}

void cloud_zone_load(const struct cloud_group *g, int64_t load[CLOUD_ZONES])
{
	count_machines(g, true, load);
}

/* Of those with any at hand, if there is one. */
static size_t thinnest(const struct cloud_group *g, const int64_t load[CLOUD_ZONES], bool is_of_all)
{
	size_t thin = CLOUD_ZONES;

	for (size_t i = 0; i < cloud_zone_count(g); i++)
		if ((is_of_all || !cloud_zone_is_dry(g, i)) && (thin == CLOUD_ZONES || load[i] < load[thin]))
			thin = i;
	return thin;
}

size_t cloud_zone_to_fill(struct cloud_group *g, bool is_to_run)
{
	int64_t load[CLOUD_ZONES];

	count_machines(g, is_to_run, load);
	size_t first = thinnest(g, load, true), thin = thinnest(g, load, false);
	if (thin == CLOUD_ZONES)
		return first;
	if (cloud_zone_is_dry(g, first))
		cloud_note_failure(g, &(struct cloud_failure){ .count = 1, .zone = first });
	return thin;
}

int64_t cloud_balancing(const struct cloud_group *g)
{
	int64_t beyond = cloud_awake(g) - g->desired, count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += !strcmp(m->id, g->balancing) && m->is_to_run && m->step != STEP_TERMINATING;
	return beyond <= 0 ? 0 : beyond < count ? beyond : count;
}

/* The oldest of the zone that is in service and may end. */
static struct cloud_machine *unprotected_in(const struct cloud_group *g, size_t zone)
{
	for (struct cloud_machine *m = g->machines; m; m = m->next)
		if (m->zone == zone && m->is_to_run && m->step == STEP_RUNNING && !cloud_is_held(m) &&
		    !m->is_protected && !m->is_taken)
			return m;
	return NULL;
}

/* AZRebalance launches in the thin zone first; it goes beyond the group's max by a tenth, at least by one. */
static void begin_to_balance(struct cloud_group *g)
{
	int64_t load[CLOUD_ZONES], beyond = g->max / 10 > 1 ? g->max / 10 : 1;
	size_t fat = 0;

	cloud_zone_load(g, load);
	size_t thin = thinnest(g, load, true);
	for (size_t i = 0; i < cloud_zone_count(g); i++)
		fat = load[i] > load[fat] ? i : fat;
	const struct cloud_machine *victim = unprotected_in(g, fat);
	if (load[fat] - load[thin] < 2 || !victim || cloud_zone_is_dry(g, thin) || g->faults.stock_out ||
	    g->faults.quota || cloud_awake(g) >= g->max + beyond)
		return;
	cloud_note_past(g);
	struct cloud_machine *m = cloud_launch(g, true, CLOUD_ZONED, thin);
	snprintf(m->replaces, sizeof m->replaces, "%s", victim->id);
	snprintf(g->balancing, sizeof g->balancing, "%s", m->id);
	cloud_note_past(g);
}

/* Once the new one is in service one of the fullest zone ends, which may be the new one: as long as there are more than
 * are wished for, and one that is not protected. */
static void end_balancing(struct cloud_group *g)
{
	struct cloud_machine *extra = cloud_find(g->balancing);

	if (extra && (extra->step == STEP_PENDING || cloud_is_held(extra)))
		return;
	struct cloud_machine *old = cloud_awake(g) > g->desired ? cloud_choose_to_end(g) : NULL;
	if (!old && extra && extra->step == STEP_RUNNING && cloud_awake(g) > g->desired)
		return; /* all are protected: it waits */
	if (old)
		cloud_owner_ends(old);
	if (extra)
		*extra->replaces = '\0';
	*g->balancing = '\0';
}

void cloud_balance_zones(struct cloud_group *g)
{
	if (cloud_zone_count(g) == 1 || wire_now() % (30 * SECOND))
		return;
	if (*g->balancing)
		end_balancing(g);
	else if (!g->is_left_unbalanced && !g->busy_with && !g->refusal_count && cloud_awake(g) == g->desired)
		begin_to_balance(g);
}
