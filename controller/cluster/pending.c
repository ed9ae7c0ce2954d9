/* Pods that wait for a node: what they ask, who could give it, and why nobody can. */
#include "base/buf.h"
#include "base/quantity.h"
#include "controller/cluster/model_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_SIZE = 200, WHY_GROUPS = 3, EXAMPLES_MOST = 64 };

/* Whether a pod could run on an empty node, as the scheduler's filters say; and if not, why. */

static const char *value_of(const struct fit_node *n, const char *key)
{
	if (key == NULL)
		return n->name;
	if (strcmp(key, "kubernetes.io/hostname") == 0)
		return n->hostname;
	return label_set_get(n->labels, key);
}

/* A label that is simply not told to us. What a name or a host is, nobody can say of a node to come. */
static bool may_be_there(const struct fit_node *n, const char *key)
{
	bool is_one_host = key == NULL || strcmp(key, "kubernetes.io/hostname") == 0;
	return n->is_guess && !is_one_host && label_set_get(n->labels, key) == NULL;
}

static bool is_beyond(const char *value, const char *bound, bool wants_more)
{
	int64_t a = 0, b = 0;
	if (value == NULL || bound == NULL || decimal_parse(value, strlen(value), 0, &a) != DECIMAL_OK ||
	    decimal_parse(bound, strlen(bound), 0, &b) != DECIMAL_OK)
		return false;
	return wants_more ? a > b : a < b;
}

/* Rows [first, last) are one expression. */
static bool fits_expression(const struct requirement *first, const struct requirement *last, const struct fit_node *n)
{
	const char *value = value_of(n, first->key);
	bool is_listed = false;
	for (const struct requirement *r = first; r < last; r++)
		is_listed = is_listed || (value != NULL && r->value != NULL && strcmp(value, r->value) == 0);
	if (may_be_there(n, first->key))
		return first->operation != REQUIRE_UNKNOWN;
	switch ((enum requirement_operation)first->operation) {
	case REQUIRE_IN:
		return is_listed;
	case REQUIRE_NOT_IN:
		return !is_listed;
	case REQUIRE_EXISTS:
		return value != NULL;
	case REQUIRE_ABSENT:
		return value == NULL;
	case REQUIRE_MORE:
	case REQUIRE_LESS:
		return is_beyond(value, first->value, first->operation == REQUIRE_MORE);
	case REQUIRE_UNKNOWN:
		break;
	}
	return false;
}

/* One of the terms must fit, with all of its expressions. */
bool fit_requirements(const struct requirement_set *set, const struct fit_node *n)
{
	size_t count = intern_count(set), at = 0;
	while (at < count) {
		int64_t term = set->items[at].term;
		bool fits = true;
		while (at < count && set->items[at].term == term) {
			size_t first = at;
			while (at < count && set->items[at].term == term &&
			       set->items[at].expression == set->items[first].expression)
				at++;
			fits = fits && fits_expression(&set->items[first], &set->items[at], n);
		}
		if (fits)
			return true;
	}
	return count == 0;
}

static bool same_or_none(const char *a, const char *b)
{
	return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

static bool is_tolerated(const struct taint *t, const struct toleration_set *set)
{
	for (size_t i = 0; i < intern_count(set); i++) {
		const struct toleration *s = &set->items[i];
		bool effect = s->effect == NULL || same_or_none(s->effect, t->effect);
		bool key = s->key == NULL ? s->is_equal == 0 : strcmp(s->key, t->key) == 0;
		if (effect && key && (s->is_equal == 0 || same_or_none(s->value, t->value)))
			return true;
	}
	return false;
}

static bool fits_taints(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size)
{
	for (size_t i = 0; i < intern_count(n->taints); i++) {
		const struct taint *t = &n->taints->items[i];
		bool repels = same_or_none(t->effect, "NoSchedule") || same_or_none(t->effect, "NoExecute");
		if (!repels || is_tolerated(t, s->tolerations))
			continue;
		snprintf(why, size, "does not tolerate the taint %s%s%s:%s", t->key, t->value == NULL ? "" : "=",
			 t->value == NULL ? "" : t->value, t->effect);
		return false;
	}
	return true;
}

static bool fits_selector(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size)
{
	for (size_t i = 0; i < intern_count(s->selector); i++) {
		const struct label *wanted = &s->selector->items[i];
		const char *value = value_of(n, wanted->key);
		if (may_be_there(n, wanted->key) || (value != NULL && strcmp(value, wanted->value) == 0))
			continue;
		if (value == NULL)
			snprintf(why, size, "its node selector wants %s=%s, nodes have no such label", wanted->key,
				 wanted->value);
		else
			snprintf(why, size, "its node selector wants %s=%s, nodes have %s", wanted->key, wanted->value,
				 value);
		return false;
	}
	return true;
}

static void print_amount(char *text, size_t size, const char *name, int64_t milli)
{
	static const int64_t gi = INT64_C(1) << 30;
	if (strcmp(name, "memory") == 0)
		snprintf(text, size, "%" PRId64 ".%" PRId64 "Gi", milli / 1000 / gi, milli / 1000 % gi * 10 / gi);
	else if (milli % 1000 != 0)
		snprintf(text, size, "%" PRId64 "m", milli);
	else
		snprintf(text, size, "%" PRId64, milli / 1000);
}

static bool fits_resources(const struct pod_shape *s, const struct fit_node *n, bool gpus, char *why, size_t size)
{
	for (size_t i = 0; i < intern_count(s->requests); i++) {
		const struct resource *wanted = &s->requests->items[i];
		int64_t there = resources_get(n->allocatable, wanted->name);
		bool is_gpu = device_is_gpu(wanted->name);
		if (is_gpu != gpus || there >= wanted->milli || (n->is_guess && !is_gpu))
			continue;
		char a[40], b[40];
		print_amount(a, sizeof a, wanted->name, wanted->milli);
		print_amount(b, sizeof b, wanted->name, there);
		if (there == 0)
			snprintf(why, size, "wants %s %s, nodes have none", a, wanted->name);
		else
			snprintf(why, size, "wants %s %s, a node has %s", a, wanted->name, b);
		return false;
	}
	return true;
}

static bool fit_shape(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size)
{
	if (!fits_resources(s, n, true, why, size) || !fits_selector(s, n, why, size))
		return false;
	if (!fit_requirements(s->affinity, n)) {
		snprintf(why, size, "its node affinity selects no such node");
		return false;
	}
	return fits_taints(s, n, why, size) && fits_resources(s, n, false, why, size);
}

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
