#include "controller/loop/account_parts.h"

#include <stdlib.h>
#include <string.h>

/* A tick that comes later stands for the time since the one before, up to so many intervals: beyond that nobody saw. */
enum { INTERVALS_MOST = 4 };

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

struct account *account_new(void)
{
	return must(calloc(1, sizeof(struct account)));
}

void account_free(struct account *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++) {
		free(a->pools[i].tick_labels.items);
		free(a->pools[i].labels);
	}
	free(a->pools);
	free(a->held);
	arena_release(&a->texts);
	free(a);
}

static struct pool_account *find(const struct account *a, const char *key)
{
	for (size_t i = 0; i < a->count; i++)
		if (!strcmp(a->pools[i].key, key))
			return &a->pools[i];
	return NULL;
}

struct pool_account *account_of(struct account *a, const char *key)
{
	struct pool_account *p = find(a, key);

	if (p)
		return p;
	a->pools = must(realloc(a->pools, (a->count + 1) * sizeof *a->pools));
	p = &a->pools[a->count++];
	*p = (struct pool_account){ .busy_ppm = ABSENT };
	memcpy(p->key, key, strnlen(key, sizeof p->key - 1));
	return p;
}

/* Whoever recorded the tick before: what another leader billed is billed. */
static millis elapsed(const struct controller *c)
{
	millis interval = c->snapshot.interval, before = history_last_at(c->history), since = c->snapshot.now - before;

	if (!before || since <= 0)
		return interval;
	return since < INTERVALS_MOST * interval ? since : interval;
}

static void bill(struct account *a, struct controller *c, size_t pool, millis time)
{
	const struct cost_tick t = { &c->snapshot, pool, &c->plan.pools[pool], time, NULL };
	struct pool_account *p = account_of(a, c->pools[pool].key);

	p->tick = (struct cost_sums){ 0 };
	cost_add_tick(&p->tick, &t, &p->busy_ppm);
	history_cost(c->history, c->snapshot.now, pool, fleet_of(c)->pools[pool].class, &p->tick);
}

static void note_quotas(struct controller *c, millis time, struct arena *scratch)
{
	size_t count;
	const struct quota *quotas = cluster_quotas(c->cluster, scratch, &count);

	for (size_t i = 0; i < count; i++) {
		const struct quota *q = &quotas[i];
		history_quota(c->history, c->snapshot.now, time,
			      &(struct quota_seen){ q->namespace, q->name, q->resource, q->hard, q->used });
	}
}

void account_tick(struct account *a, struct controller *c)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	millis time = elapsed(c);

	for (size_t i = 0; i < a->count; i++) {
		a->pools[i].tick = (struct cost_sums){ 0 };
		a->pools[i].tick_labels.count = 0;
	}
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		bill(a, c, i, time);
	account_share(a, c, &scratch);
	note_quotas(c, time, &scratch);
	account_look(a, c);
}

/* --- since the process started --- */

static struct published_label_cost *shown_as(struct account *a, struct pool_account *p, const struct cost_labels *l)
{
	static const struct cost_labels others = { COST_OTHERS, { "", "", "", "" } };

	for (size_t i = 0; i < p->label_count; i++)
		if (cost_labels_equal(&p->labels[i].labels, l))
			return &p->labels[i];
	if (p->label_count >= LABEL_SETS_SHOWN && l->holder == COST_BY_PODS)
		return shown_as(a, p, &others);
	p->labels = must(realloc(p->labels, (p->label_count + 1) * sizeof *p->labels));
	struct published_label_cost *made = &p->labels[p->label_count++];
	*made = (struct published_label_cost){ .labels = *l };
	for (int i = 0; i < COST_LABEL_COUNT; i++)
		made->labels.value[i] = arena_strdup(&a->texts, l->value[i], strlen(l->value[i]));
	return made;
}

void account_taken(struct account *a)
{
	for (size_t i = 0; i < a->count; i++) {
		struct pool_account *p = &a->pools[i];

		cost_add(&p->sums, &p->tick);
		for (size_t k = 0; k < p->tick_labels.count; k++) {
			const struct label_part *part = &p->tick_labels.items[k];
			struct published_label_cost *shown = shown_as(a, p, &part->labels);
			shown->gpu_ms += part->gpu_ms;
			shown->dollars += part->dollars;
		}
	}
}

void account_show(const struct account *a, const struct controller *c, size_t pool, struct published_pool *out)
{
	const struct pool_account *p = find(a, c->pools[pool].key);

	if (!p)
		return;
	out->cost = &p->sums;
	out->label_costs = p->labels;
	out->label_cost_count = p->label_count;
}
