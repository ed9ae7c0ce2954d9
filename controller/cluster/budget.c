/* Limits that others set: disruption budgets and quotas of GPUs. */
#include "controller/cluster/model_inside.h"

#include <stdlib.h>
#include <string.h>

static bool is_budget(const void *item, const void *key)
{
	const struct budget *b = item;
	const struct object_uid *uid = key;
	return b->uid[0] == uid->high && b->uid[1] == uid->low;
}

static bool is_quota(const void *item, const void *key)
{
	const struct quota_known *q = item;
	const struct object_uid *uid = key;
	return q->uid[0] == uid->high && q->uid[1] == uid->low;
}

static const char *space_of(const struct watch_seen *seen)
{
	return seen->name_space == NULL ? "" : seen->name_space;
}

bool cluster_budget_seen(struct cluster *c, const struct budget_record *r, const struct watch_seen *seen)
{
	uint32_t hash = hash_bytes(0, &seen->uid, sizeof seen->uid);
	struct budget *b = store_find(&c->budgets, hash, is_budget, &seen->uid);
	if (b == NULL) {
		b = model_alloc(sizeof *b);
		b->name_space = intern_text(&c->intern, space_of(seen));
		b->name = intern_text(&c->intern, seen->name);
		b->uid[0] = seen->uid.high;
		b->uid[1] = seen->uid.low;
		b->hash = hash;
		store_add(&c->budgets, b);
	}
	intern_drop(&c->intern, b->labels);
	intern_drop(&c->intern, b->expressions);
	b->labels = model_labels(c, &r->match_labels);
	b->expressions = model_expressions(c, &r->expressions);
	b->allowed = r->allowed;
	arena_clear(&c->scratch);
	return true;
}

void cluster_budget_gone(struct cluster *c, struct object_uid uid)
{
	struct budget *b = store_find(&c->budgets, hash_bytes(0, &uid, sizeof uid), is_budget, &uid);
	if (b == NULL)
		return;
	store_remove(&c->budgets, b);
	intern_drop(&c->intern, b->name_space);
	intern_drop(&c->intern, b->name);
	intern_drop(&c->intern, b->labels);
	intern_drop(&c->intern, b->expressions);
	free(b);
}

bool budget_selects(const struct budget *b, const struct pod *p)
{
	if (strcmp(b->name_space, p->namespace) != 0)
		return false;
	for (size_t i = 0; i < intern_count(b->labels); i++) {
		const char *value = label_set_get(p->labels, b->labels->items[i].key);
		if (value == NULL || strcmp(value, b->labels->items[i].value) != 0)
			return false;
	}
	struct fit_node as_node = { .labels = p->labels };
	return fit_requirements(b->expressions, &as_node);
}

/* "requests.nvidia.com/gpu", and what else names a GPU. */
static const struct resources *gpu_amounts(struct cluster *c, const struct decoded_map *map)
{
	struct resource *rows = arena_array(&c->scratch, struct resource, map->count);
	size_t count = 0;
	for (size_t i = 0; i < map->count; i++) {
		const char *name = map->pairs[i].key;
		int64_t milli = 0;
		if (strncmp(name, "requests.", 9) == 0 && device_is_gpu(name + 9) &&
		    amount_milli(map->pairs[i].value, &milli))
			rows[count++] = (struct resource){ name, milli };
	}
	return model_resources(c, rows, count);
}

bool cluster_quota_seen(struct cluster *c, const struct quota_record *r, const struct watch_seen *seen)
{
	cluster_quota_gone(c, seen->uid);
	const struct resources *hard = gpu_amounts(c, &r->hard);
	if (hard == NULL)
		return false;
	struct quota_known *q = model_alloc(sizeof *q);
	q->name_space = intern_text(&c->intern, space_of(seen));
	q->name = intern_text(&c->intern, seen->name);
	q->hard = hard;
	q->used = gpu_amounts(c, &r->used);
	q->uid[0] = seen->uid.high;
	q->uid[1] = seen->uid.low;
	q->hash = hash_bytes(0, &seen->uid, sizeof seen->uid);
	store_add(&c->quotas, q);
	arena_clear(&c->scratch);
	return true;
}

void cluster_quota_gone(struct cluster *c, struct object_uid uid)
{
	struct quota_known *q = store_find(&c->quotas, hash_bytes(0, &uid, sizeof uid), is_quota, &uid);
	if (q == NULL)
		return;
	store_remove(&c->quotas, q);
	intern_drop(&c->intern, q->name_space);
	intern_drop(&c->intern, q->name);
	intern_drop(&c->intern, q->hard);
	intern_drop(&c->intern, q->used);
	free(q);
}

static int by_name(const void *a, const void *b)
{
	const struct quota *x = a, *y = b;
	int order = strcmp(x->namespace, y->namespace);
	if (order == 0)
		order = strcmp(x->name, y->name);
	return order != 0 ? order : strcmp(x->resource, y->resource);
}

struct quota *cluster_quotas(const struct cluster *c, struct arena *a, size_t *count)
{
	const struct quota_known *q = NULL;
	size_t room = 0, at = 0;
	for (size_t i = 0; (q = store_next(&c->quotas, &i)) != NULL;)
		room += intern_count(q->hard);
	struct quota *quotas = arena_array(a, struct quota, room);
	for (size_t i = 0; (q = store_next(&c->quotas, &i)) != NULL;)
		for (size_t k = 0; k < intern_count(q->hard); k++) {
			const struct resource *hard = &q->hard->items[k];
			quotas[at++] = (struct quota){
				.namespace = arena_strdup(a, q->name_space, strlen(q->name_space)),
				.name = arena_strdup(a, q->name, strlen(q->name)),
				.resource = arena_strdup(a, hard->name, strlen(hard->name)),
				.hard = hard->milli / 1000,
				.used = resources_get(q->used, hard->name) / 1000,
			};
		}
	if (room > 1)
		qsort(quotas, room, sizeof *quotas, by_name);
	*count = room;
	return quotas;
}
