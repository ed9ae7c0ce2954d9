/* Pods that wait for a node: what they ask, who could give it, and why nobody can. */
#include "controller/cluster/model_inside.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_SIZE = 200, WHY_GROUPS = 3, EXAMPLES_MOST = 64 };

/* Pods that are told together. */
struct entry {
	struct pending_shape shape;
	const struct pod_shape *asks;
	uint32_t hash;
};

struct entry_key {
	const struct pod_shape *asks;
	const char *name_space;
	int pool;
	bool is_incomplete, is_placeholder;
};

static bool is_entry(const void *item, const void *key)
{
	const struct entry *e = item;
	const struct entry_key *k = key;
	return e->asks == k->asks && e->shape.pool == k->pool && e->shape.is_incomplete_gang == k->is_incomplete &&
	       e->shape.example->is_placeholder == k->is_placeholder && strcmp(e->shape.namespace, k->name_space) == 0;
}

static uint32_t hash_of(const struct entry_key *k)
{
	uintptr_t asks = (uintptr_t)k->asks;
	uint32_t hash = hash_bytes((uint32_t)(k->is_incomplete + 2 * k->is_placeholder), &asks, sizeof asks);
	return hash_text(hash_bytes(hash, &k->pool, sizeof k->pool), k->name_space);
}

static bool is_before(const struct pod *a, const struct pod *b)
{
	if (a->created_at != b->created_at)
		return a->created_at < b->created_at;
	int order = strcmp(a->name, b->name);
	return order != 0 ? order < 0 : memcmp(a->uid, b->uid, sizeof a->uid) < 0;
}

static void count_pod(struct store *entries, const struct pod *p, bool is_incomplete, struct arena *a)
{
	struct entry_key key = { p->shape, p->namespace, p->pool, is_incomplete, p->is_placeholder };
	struct entry *e = store_find(entries, hash_of(&key), is_entry, &key);
	if (e == NULL) {
		e = arena_new(a, struct entry);
		e->asks = p->shape;
		e->hash = hash_of(&key);
		e->shape = (struct pending_shape){ .namespace = arena_strdup(a, p->namespace, strlen(p->namespace)),
						   .example = p,
						   .since = p->created_at,
						   .pool = p->pool,
						   .gpus_milli = p->gpus_milli,
						   .is_incomplete_gang = is_incomplete };
		store_add(entries, e);
	}
	e->shape.count++;
	if (is_before(p, e->shape.example)) {
		e->shape.example = p;
		e->shape.since = p->created_at;
	}
}

static struct fit_node template_node(const struct group_known *g)
{
	return (struct fit_node){ .labels = g->template.labels,
				  .taints = g->template.taints,
				  .allocatable = g->template.allocatable,
				  .is_guess = !g->template.is_learned };
}

/*
 * Nodes of one group may differ, in their zone for one: any of them is an example of the next. Labels are shared among
 * nodes that are alike, so that there are few.
 */
struct examples {
	const struct label_set *labels[EXAMPLES_MOST];
	size_t count;
	int64_t nodes;
};

static void add_example(struct examples *of, const struct node *n)
{
	size_t i = 0;
	of->nodes += !n->is_leaving;
	while (i < of->count && of->labels[i] != n->labels)
		i++;
	if (i == of->count && i < EXAMPLES_MOST && n->gpu_at != 0)
		of->labels[of->count++] = n->labels;
}

static struct examples *examples_of(const struct cluster *c, struct arena *a)
{
	struct examples *groups = arena_array(a, struct examples, c->group_count);
	size_t count = 0;
	const struct node **nodes = cluster_nodes(c, -1, a, &count);
	for (size_t i = 0; i < count; i++)
		if (nodes[i]->group >= 0)
			add_example(&groups[nodes[i]->group], nodes[i]);
	return groups;
}

static bool fits_a_node(const struct group_known *g, const struct examples *of, const struct pod_shape *s)
{
	char unused[WHY_SIZE];
	struct fit_node as = { .taints = g->template.taints, .allocatable = g->template.allocatable };
	for (size_t i = 0; i < of->count; i++) {
		as.labels = of->labels[i];
		if (fit_shape(s, &as, unused, sizeof unused))
			return true;
	}
	return false;
}

static bool fits_group(const struct group_known *g, const struct examples *of, const struct pod_shape *s)
{
	char unused[WHY_SIZE];
	struct fit_node next = template_node(g);
	return fit_shape(s, &next, unused, sizeof unused) || fits_a_node(g, of, s);
}

/* The group whose nodes have most of the GPUs that are asked for, when too few are what all of them lack. */
static bool say_too_few(const struct cluster *c, const struct pod_shape *s, const int *groups, size_t count,
			struct buf *out)
{
	for (size_t i = 0; i < intern_count(s->requests); i++) {
		const struct resource *wanted = &s->requests->items[i];
		int64_t most = 0;
		int best = -1;
		for (size_t k = 0; k < count; k++) {
			int64_t there = resources_get(c->groups[groups[k]].template.allocatable, wanted->name);
			if (there > most) {
				most = there;
				best = groups[k];
			}
		}
		if (!device_is_gpu(wanted->name) || most >= wanted->milli)
			continue;
		buf_printf(out, "wants %" PRId64 " %s; ", wanted->milli / 1000, wanted->name);
		if (best < 0)
			buf_text(out, "no node group has any");
		else
			buf_printf(out, "largest node group %s has %" PRId64 " per node", c->groups[best].name,
				   most / 1000);
		return true;
	}
	return false;
}

static const char *say_why(const struct cluster *c, const struct pod_shape *s, const int *groups, size_t count,
			   struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	if (count == 0) {
		buf_text(&out, "there is no node group for it");
	} else if (!say_too_few(c, s, groups, count, &out)) {
		for (size_t i = 0; i < count && i < WHY_GROUPS; i++) {
			char why[WHY_SIZE] = "";
			struct fit_node next = template_node(&c->groups[groups[i]]);
			fit_shape(s, &next, why, sizeof why);
			buf_printf(&out, "%s%s: %s", i == 0 ? "" : "; ", c->groups[groups[i]].name, why);
		}
		if (count > WHY_GROUPS)
			buf_printf(&out, "; and %zu more node groups do not fit", count - WHY_GROUPS);
	}
	return arena_strdup(a, out.text, out.len);
}

/* NULL as long as one of the groups may grow. */
static const char *say_full(const struct cluster *c, const struct examples *of, const int *groups, size_t count,
			    struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	for (size_t i = 0; i < count; i++) {
		const struct group_known *g = &c->groups[groups[i]];
		if (of[groups[i]].nodes < g->max)
			return NULL;
		buf_printf(&out, "%snode group %s has its most nodes, %" PRId64, i == 0 ? "" : "; ", g->name, g->max);
	}
	return count == 0 ? NULL : arena_strdup(a, out.text, out.len);
}

static void judge(const struct cluster *c, const struct examples *examples, struct entry *e, struct arena *a)
{
	size_t count = e->shape.pool >= 0 ? c->pools[e->shape.pool].group_count : c->group_count;
	int *groups = arena_array(a, int, count), *fitting = arena_array(a, int, count);
	for (size_t i = 0; i < count; i++)
		groups[i] = e->shape.pool >= 0 ? c->pools[e->shape.pool].groups[i] : (int)i;
	for (size_t i = 0; i < count; i++)
		if (fits_group(&c->groups[groups[i]], &examples[groups[i]], e->asks))
			fitting[e->shape.group_count++] = groups[i];
	e->shape.groups = fitting;
	e->shape.full = say_full(c, examples, fitting, e->shape.group_count, a);
	if (e->shape.group_count == 0)
		e->shape.why = say_why(c, e->asks, groups, count, a);
}

static int by_age(const void *a, const void *b)
{
	const struct pending_shape *x = a, *y = b;
	int order = strcmp(x->namespace, y->namespace);
	if (order != 0)
		return order;
	return x->example == y->example ? 0 : is_before(x->example, y->example) ? -1 : 1;
}

struct pending_shape *cluster_pending(const struct cluster *c, struct arena *a, size_t *count)
{
	struct store entries = { .hash_offset = offsetof(struct entry, hash) };
	struct gang_table gangs = { 0 };
	bool has_gangs = false;
	for (const struct pod *p = c->waiting; p != NULL; p = p->next) {
		if (p->state != POD_UNSCHEDULED || (!p->has_gpus && p->pool < 0))
			continue;
		bool is_of_gang = gang_of(c, p).kind != GANG_NONE;
		if (is_of_gang && !has_gangs)
			gangs = gang_table_make(c, a);
		has_gangs = has_gangs || is_of_gang;
		const struct gang *g = is_of_gang ? gang_table_find(&gangs, c, p) : NULL;
		count_pod(&entries, p, g != NULL && !gang_is_whole(g), a);
	}
	struct pending_shape *shapes = arena_array(a, struct pending_shape, entries.count);
	*count = 0;
	if (entries.count == 0)
		return shapes;
	const struct examples *examples = examples_of(c, a);
	struct entry *e = NULL;
	for (size_t i = 0; (e = store_next(&entries, &i)) != NULL;) {
		judge(c, examples, e, a);
		shapes[(*count)++] = e->shape;
	}
	gang_table_release(&gangs);
	store_release(&entries);
	if (*count > 1)
		qsort(shapes, *count, sizeof *shapes, by_age);
	return shapes;
}
