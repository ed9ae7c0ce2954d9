#include "controller/cluster/model_inside.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void *model_alloc(size_t size)
{
	void *memory = calloc(1, size);
	if (memory == NULL)
		abort();
	return memory;
}

struct cluster *cluster_new(void)
{
	struct cluster *c = model_alloc(sizeof *c);
	intern_open(&c->intern);
	c->nodes.hash_offset = offsetof(struct node, hash);
	c->providers.hash_offset = offsetof(struct node, provider_hash);
	c->pods.hash_offset = offsetof(struct pod, hash);
	c->budgets.hash_offset = offsetof(struct budget, hash);
	c->quotas.hash_offset = offsetof(struct quota_known, hash);
	c->workloads.hash_offset = offsetof(struct workload, hash);
	return c;
}

static void forget_rest(struct cluster *c)
{
	const struct budget *b = NULL;
	const struct quota_known *q = NULL;
	const struct workload *w = NULL;
	for (size_t i = 0; (b = store_next(&c->budgets, &i)) != NULL; i = 0)
		cluster_budget_gone(c, (struct object_uid){ b->uid[0], b->uid[1] });
	for (size_t i = 0; (q = store_next(&c->quotas, &i)) != NULL; i = 0)
		cluster_quota_gone(c, (struct object_uid){ q->uid[0], q->uid[1] });
	for (size_t i = 0; (w = store_next(&c->workloads, &i)) != NULL; i = 0)
		cluster_workload_gone(c, (struct object_uid){ w->uid[0], w->uid[1] });
}

void cluster_free(struct cluster *c)
{
	if (c == NULL)
		return;
	c->on_change = NULL;
	cluster_set_fleet(c, NULL, 0, NULL, 0);
	struct pod *p = NULL;
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		pod_release(c, p);
	store_release(&c->pods);
	struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL; i = 0)
		node_release(c, n);
	forget_rest(c);
	store_release(&c->nodes);
	store_release(&c->providers);
	store_release(&c->budgets);
	store_release(&c->quotas);
	store_release(&c->workloads);
	intern_close(&c->intern);
	arena_release(&c->fleet);
	arena_release(&c->scratch);
	free(c);
}

void cluster_on_change(struct cluster *c, cluster_change_fn *fn, void *user)
{
	c->on_change = fn;
	c->on_change_user = user;
}

void cluster_ignore_stamps(struct cluster *c, bool ignore)
{
	c->ignores_stamps = ignore;
}

static bool has_provider_id(const void *item, const void *key)
{
	return strcasecmp(((const struct node *)item)->provider_id, key) == 0;
}

const struct node *cluster_node(const struct cluster *c, const char *name)
{
	const struct node *n = node_find(c, name);
	return n != NULL && n->is_known ? n : NULL;
}

const struct node *cluster_node_by_machine(const struct cluster *c, const char *provider_id)
{
	return store_find(&c->providers, hash_any_case(provider_id), has_provider_id, provider_id);
}

size_t cluster_node_count(const struct cluster *c)
{
	size_t count = 0;
	const struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		count += n->is_known;
	return count;
}

size_t cluster_pod_count(const struct cluster *c)
{
	return c->pods.count;
}

static int by_node_name(const void *a, const void *b)
{
	return strcmp((*(const struct node *const *)a)->name, (*(const struct node *const *)b)->name);
}

const struct node **cluster_nodes(const struct cluster *c, int group, struct arena *a, size_t *count)
{
	const struct node **nodes = arena_array(a, const struct node *, c->nodes.count);
	const struct node *n = NULL;
	*count = 0;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		if (n->is_known && (group < 0 || n->group == group))
			nodes[(*count)++] = n;
	if (*count > 1)
		qsort(nodes, *count, sizeof(void *), by_node_name);
	return nodes;
}

static int by_pod_name(const void *a, const void *b)
{
	const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
	int order = strcmp(x->namespace, y->namespace);
	if (order == 0)
		order = strcmp(x->name, y->name);
	/* For a moment a pod and its successor of the same name are both there. */
	return order != 0 ? order : memcmp(x->uid, y->uid, sizeof x->uid);
}

const struct pod **model_sorted_pods(const struct pod **pods, size_t count)
{
	if (count > 1)
		qsort(pods, count, sizeof(void *), by_pod_name);
	return pods;
}

static size_t count_pool(const struct pool_known *pool, const struct pod **pods)
{
	size_t count = 0;
	for (const struct pod *p = pool->pods; p != NULL; p = p->pool_next, count++)
		if (pods != NULL)
			pods[count] = p;
	return count;
}

const struct pod **cluster_pods(const struct cluster *c, int pool, struct arena *a, size_t *count)
{
	size_t first = pool < 0 ? 0 : (size_t)pool, end = pool < 0 ? c->pool_count : first + 1, room = 0;
	for (size_t i = first; i < end; i++)
		room += count_pool(&c->pools[i], NULL);
	const struct pod **pods = arena_array(a, const struct pod *, room);
	*count = 0;
	for (size_t i = first; i < end; i++)
		*count += count_pool(&c->pools[i], pods + *count);
	return model_sorted_pods(pods, room);
}

const struct pod **cluster_node_pods(const struct cluster *c, const struct node *n, struct arena *a, size_t *count)
{
	(void)c;
	size_t room = 0, at = 0;
	for (const struct pod *p = n->pods; p != NULL; p = p->next)
		room++;
	const struct pod **pods = arena_array(a, const struct pod *, room);
	for (const struct pod *p = n->pods; p != NULL; p = p->next)
		pods[at++] = p;
	*count = room;
	return model_sorted_pods(pods, room);
}

struct cluster_gpus cluster_gpus(const struct cluster *c)
{
	struct cluster_gpus sum = { 0 };
	const struct node *n = NULL;
	const struct pod *p = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;) {
		sum.allocatable_milli += n->gpus_milli;
		sum.used_milli += n->is_known ? n->gpus_used_milli : 0;
	}
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		sum.finished_milli += p->state == POD_FINISHED ? p->gpus_milli : 0;
	return sum;
}
