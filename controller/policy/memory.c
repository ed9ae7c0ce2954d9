#include "controller/policy/memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* First word of an encoded memory: changes with every change of the layout. */
static const uint64_t LAYOUT = UINT64_C(0x7068656d00000001) ^ ((uint64_t)sizeof(struct pool_memory) << 8);

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	if (!p)
		abort();
	return p;
}

/* The family is made from the manifest's lead times and stays, so that a rule keeps its meaning on the whole record. */
static void begin_pool(struct pool_memory *p, const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	p->choice.rule = p->choice.fixed = p->choice.cheaper = p->choice.dearer = p->choice.tier_saving = ABSENT;
	p->times = lead_tiers(&p->lead, fleet, spec).times;
	family_init(&p->family, &p->times, (double)spec->objective_late_ppm / 1e6);
	choice_priors(&p->family, &p->times, (double)spec->objective_wait / 1000);
}

struct memory *memory_new(const struct fleet_spec *fleet)
{
	struct memory *m = allocate(1, sizeof *m);

	m->pool_count = fleet->pool_count;
	m->group_count = fleet->group_count;
	m->pools = allocate(m->pool_count, sizeof *m->pools);
	m->groups = allocate(m->group_count, sizeof *m->groups);
	for (size_t i = 0; i < m->pool_count; i++)
		begin_pool(&m->pools[i], fleet, &fleet->pools[i]);
	return m;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	free(m->pools);
	free(m->groups);
	free(m);
}

struct header {
	uint64_t layout, pool_count, group_count;
};

/* A checkpoint of a pool: everything between the family and the shadows, then the shadows that the family uses. */
enum {
	POOL_FROM = offsetof(struct pool_memory, demand),
	POOL_BYTES = offsetof(struct pool_memory, shadows) - POOL_FROM
};

static size_t shadow_bytes(const struct pool_memory *p)
{
	return p->family.count * sizeof p->shadows[0];
}

void memory_encode(const struct memory *m, struct buf *out)
{
	struct header h = { LAYOUT, m->pool_count, m->group_count };

	buf_append(out, &h, sizeof h);
	for (size_t i = 0; i < m->pool_count; i++) {
		const struct pool_memory *p = &m->pools[i];
		buf_append(out, (const char *)p + POOL_FROM, POOL_BYTES);
		buf_append(out, p->shadows, shadow_bytes(p));
	}
	buf_append(out, m->groups, m->group_count * sizeof *m->groups);
}

/* Numbers that index arrays must be in range even in a memory that somebody made up. */
static bool is_sound(const struct pool_memory *p)
{
	bool ok = p->demand.level_count >= 0 && p->capacity.sample_count >= 0 && p->cold_step >= 0 &&
		  p->cold_step < 1 << 20 && p->ticks >= 0;

	if (p->choice.rule != ABSENT && (p->choice.rule < 0 || (size_t)p->choice.rule >= p->family.count))
		return false;
	if (p->choice.fixed != ABSENT && (p->choice.fixed < 0 || p->choice.fixed >= RULES_MAX))
		return false;
	for (size_t i = 0; ok && i < p->family.count; i++)
		ok = p->shadows[i].deals >= 0 && p->shadows[i].ready >= 0;
	return ok;
}

static size_t encoded_size(const struct memory *m)
{
	size_t size = sizeof(struct header) + m->group_count * sizeof *m->groups;

	for (size_t i = 0; i < m->pool_count; i++)
		size += POOL_BYTES + shadow_bytes(&m->pools[i]);
	return size;
}

struct memory *memory_decode(const void *bytes, size_t len, const struct fleet_spec *fleet, struct error *e)
{
	const unsigned char *at = bytes;
	struct header h;

	if (len < sizeof h || (memcpy(&h, at, sizeof h), h.layout != LAYOUT)) {
		error_set(e, ERROR_INVALID,
			  "checkpoint: made by another version of the policy; replay from the beginning "
			  "with that version, or start a new history");
		return NULL;
	}
	struct memory *m = memory_new(fleet);
	bool fits = h.pool_count == m->pool_count && h.group_count == m->group_count && len == encoded_size(m);
	at += sizeof h;
	for (size_t i = 0; fits && i < m->pool_count; i++) {
		struct pool_memory *p = &m->pools[i];
		memcpy((char *)p + POOL_FROM, at, POOL_BYTES);
		memcpy(p->shadows, at + POOL_BYTES, shadow_bytes(p));
		at += POOL_BYTES + shadow_bytes(p);
		fits = is_sound(p);
	}
	if (fits)
		memcpy(m->groups, at, m->group_count * sizeof *m->groups);
	if (fits)
		return m;
	error_set(e, ERROR_INVALID, "checkpoint: damaged, or of other pools than the manifest's");
	memory_free(m);
	return NULL;
}

void memory_fix_rule(struct memory *m, size_t pool, int64_t rule)
{
	m->pools[pool].choice.fixed = rule;
}
