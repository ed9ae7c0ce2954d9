/*
 * A pool's bill by the labels of who holds its GPUs. A node's GPUs are
 * shared over the pods that hold any of them, in proportion; what no pod
 * holds (machines that start or stand empty, placeholders, stopped ones)
 * stays without one.
 */
#include "controller/loop/account_parts.h"
#include "controller/loop/node_group_parts.h"

#include <stdlib.h>
#include <string.h>

static const struct cost_labels_text *names_of(const struct controller *c, size_t pool)
{
	return &c->manifest.pools[pool].spec.cost_labels;
}

static struct cost_labels labels_of(const struct cost_labels_text *names, const struct pod *p)
{
	const char *const keys[COST_LABEL_COUNT] = { names->cost_center, names->product, names->environment,
						     names->workload_type };
	struct cost_labels l = { .holder = COST_BY_PODS };

	for (int i = 0; i < COST_LABEL_COUNT; i++) {
		const char *value = keys[i] && keys[i][0] ? pod_label(p, keys[i]) : NULL;
		l.value[i] = value ? value : "";
	}
	return l;
}

/* FNV-1a. */
static uint32_t hash_of(const struct cost_labels *l)
{
	uint32_t hash = 2166136261u + (uint32_t)l->holder;

	for (int i = 0; i < COST_LABEL_COUNT; i++)
		for (const char *at = l->value[i];; at++) {
			hash = (hash ^ (unsigned char)*at) * 16777619u;
			if (!*at)
				break;
		}
	return hash;
}

static struct label_part *add_part(struct label_parts *parts, const struct cost_labels *labels)
{
	if (parts->count == parts->room) {
		parts->room = parts->room ? 2 * parts->room : 8;
		parts->items = realloc(parts->items, parts->room * sizeof *parts->items);
		if (!parts->items)
			abort();
	}
	struct label_part *made = &parts->items[parts->count++];
	*made = (struct label_part){ .labels = *labels, .hash = hash_of(labels) };
	return made;
}

static struct label_part *find_part(struct label_parts *parts, const struct cost_labels *labels)
{
	uint32_t hash = hash_of(labels);

	for (size_t i = 0; i < parts->count; i++)
		if (parts->items[i].hash == hash && cost_labels_equal(&parts->items[i].labels, labels))
			return &parts->items[i];
	return NULL;
}

/* As many as the history keeps apart: whoever gives each pod labels of its own shall not slow the tick. */
static struct label_part *part_of(struct label_parts *parts, const struct cost_labels_text *names, const struct pod *p)
{
	static const struct cost_labels others = { COST_OTHERS, { "", "", "", "" } };

	for (size_t i = 0; i < parts->count; i++)
		if (parts->items[i].set == p->labels && p->labels)
			return &parts->items[i];
	struct cost_labels labels = labels_of(names, p);
	struct label_part *part = find_part(parts, &labels);
	if (!part && parts->count >= COST_LABEL_SETS) {
		part = find_part(parts, &others);
		return part ? part : add_part(parts, &others);
	}
	if (part)
		return part;
	part = add_part(parts, &labels);
	part->set = p->labels;
	return part;
}

static bool holds(const struct pod *p)
{
	return pod_counts(p) && p->has_gpus && !p->is_placeholder && p->gpus_milli > 0;
}

/* On whose bill the pod is: its pool's where that uses the group, else that of the first pool of the group. */
static size_t payer(const struct controller *c, const struct pod *p, size_t group)
{
	return p->pool >= 0 && pool_position(fleet_of(c), (size_t)p->pool, group) >= 0 ? (size_t)p->pool
										       : first_pool(fleet_of(c), group);
}

static void share_node(struct account *a, struct controller *c, size_t group, const struct node *n,
		       struct arena *scratch)
{
	const struct group_spec *g = &fleet_of(c)->groups[group];
	const struct pod **pods;
	size_t count;
	int64_t held = 0;

	pods = cluster_node_pods(c->cluster, n, scratch, &count);
	for (size_t i = 0; i < count; i++)
		held += holds(pods[i]) ? pods[i]->gpus_milli : 0;
	for (size_t i = 0; i < count && held > 0; i++) {
		if (!holds(pods[i]))
			continue;
		size_t pool = payer(c, pods[i], group);
		struct label_parts *parts = &account_of(a, c->pools[pool].key)->tick_labels;
		struct label_part *part = part_of(parts, names_of(c, pool), pods[i]);
		int64_t gpus = (int64_t)((__int128)g->gpus_per_node * 1000 * pods[i]->gpus_milli / held);
		part->gpus_milli += gpus;
		part->price += (__int128)gpus * g->price_per_hour / g->gpus_per_node;
	}
}

/* What the pool is billed for now and no pod holds. */
static struct label_part nobody(const struct controller *c, size_t pool, const struct label_parts *parts)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct label_part left = { .labels = { COST_NO_POD, { "", "", "", "" } } };

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet_of(c)->groups[spec->groups[i]];
		int64_t billed = c->snapshot.pools[pool].groups[i].billed_gpus_milli;
		left.gpus_milli += billed;
		left.price += (__int128)billed * g->price_per_hour / g->gpus_per_node;
	}
	for (size_t i = 0; i < parts->count; i++) {
		left.gpus_milli -= parts->items[i].gpus_milli;
		left.price -= parts->items[i].price;
	}
	if (left.gpus_milli < 0)
		left.gpus_milli = 0;
	if (left.price < 0)
		left.price = 0;
	return left;
}

static void share_bill(struct controller *c, size_t pool, struct pool_account *p, struct arena *scratch)
{
	struct label_parts *parts = &p->tick_labels;
	struct label_part left = nobody(c, pool, parts);

	*add_part(parts, &left.labels) = left;
	int64_t *weights = arena_array(scratch, int64_t, parts->count), *out;
	out = arena_array(scratch, int64_t, parts->count);
	/* The last one takes what has no weight: a bill of machines that nobody holds yet. */
	for (size_t i = 0; i < parts->count; i++)
		weights[i] = parts->items[parts->count - 1 - i].gpus_milli;
	cost_spread(cost_billed_gpu_ms(&p->tick), weights, parts->count, out);
	for (size_t i = 0; i < parts->count; i++)
		parts->items[parts->count - 1 - i].gpu_ms = out[i];
	for (size_t i = 0; i < parts->count; i++)
		weights[i] = (int64_t)(parts->items[parts->count - 1 - i].price / 1000);
	cost_spread(cost_micro_dollars(&p->tick) - p->tick.dollars[GPU_STANDBY], weights, parts->count, out);
	for (size_t i = 0; i < parts->count; i++)
		parts->items[parts->count - 1 - i].dollars = out[i];
	parts->items[parts->count - 1].dollars += p->tick.dollars[GPU_STANDBY];
}

void account_share(struct account *a, struct controller *c, struct arena *scratch)
{
	for (size_t g = 0; g < fleet_of(c)->group_count; g++) {
		size_t count;
		const struct node **nodes = cluster_nodes(c->cluster, (int)g, scratch, &count);

		for (size_t i = 0; i < count; i++)
			share_node(a, c, g, nodes[i], scratch);
	}
	for (size_t pool = 0; pool < fleet_of(c)->pool_count; pool++) {
		struct pool_account *p = account_of(a, c->pools[pool].key);

		share_bill(c, pool, p, scratch);
		for (size_t i = 0; i < p->tick_labels.count; i++) {
			const struct label_part *part = &p->tick_labels.items[i];
			if (part->gpu_ms || part->dollars)
				history_cost_label(c->history, c->snapshot.now, pool, &part->labels, part->gpu_ms,
						   part->dollars);
		}
	}
}
