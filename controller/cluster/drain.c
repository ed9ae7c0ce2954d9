/* Limits that others set: disruption budgets and GPU quotas, and whether a node can be emptied. */
#include "base/alloc.h"
#include "base/buf.h"
#include "controller/cluster/model_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *space_of(const struct watch_seen *seen)
{
	return seen->name_space == NULL ? "" : seen->name_space;
}

bool cluster_budget_seen(struct cluster *c, const struct budget_record *r, const struct watch_seen *seen)
{
	struct budget *b = model_find_uid(&c->budgets, seen->uid);
	if (b == NULL) {
		b = xcalloc(1, sizeof *b);
		b->name_space = intern_text(&c->intern, space_of(seen));
		b->name = intern_text(&c->intern, seen->name);
		b->id = model_uid_key(seen->uid);
		store_add(&c->budgets, b);
	}
	intern_drop(&c->intern, b->labels);
	intern_drop(&c->intern, b->expressions);
	b->labels = model_labels(c, &r->match_labels);
	b->expressions = model_requirements(c, NULL, &r->expressions);
	b->allowed = r->allowed;
	b->lets_unready_go = (r->unhealthy_policy != NULL && strcmp(r->unhealthy_policy, "AlwaysAllow") == 0) ||
			     (r->healthy_least > 0 && r->healthy >= r->healthy_least);
	arena_clear(&c->scratch);
	return true;
}

void cluster_budget_gone(struct cluster *c, struct object_uid uid)
{
	struct budget *b = model_find_uid(&c->budgets, uid);
	if (b == NULL)
		return;
	store_remove(&c->budgets, b);
	intern_drop(&c->intern, b->name_space);
	intern_drop(&c->intern, b->name);
	intern_drop(&c->intern, b->labels);
	intern_drop(&c->intern, b->expressions);
	free(b);
}

static bool budget_selects(const struct budget *b, const struct pod *p)
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
	struct quota_known *q = xcalloc(1, sizeof *q);
	q->name_space = intern_text(&c->intern, space_of(seen));
	q->name = intern_text(&c->intern, seen->name);
	q->hard = hard;
	q->used = gpu_amounts(c, &r->used);
	q->id = model_uid_key(seen->uid);
	store_add(&c->quotas, q);
	arena_clear(&c->scratch);
	return true;
}

void cluster_quota_gone(struct cluster *c, struct object_uid uid)
{
	struct quota_known *q = model_find_uid(&c->quotas, uid);
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

/* Whether a node can be emptied now, rule by rule in the order of Cluster Autoscaler: the first that decides, decides.
 */

static const char *const reason_names[DRAIN_REASON_COUNT] = {
	[DRAIN_POSSIBLE] = "",
	[DRAIN_NODE_PROTECTED] = "ScaleDownDisabledAnnotation",
	[DRAIN_NODE_FOREIGN] = "NotAutoscaled",
	[DRAIN_NOT_REPLICATED] = "NotReplicated",
	[DRAIN_SYSTEM_POD] = "UnmovableKubeSystemPod",
	[DRAIN_NOT_SAFE] = "NotSafeToEvictAnnotation",
	[DRAIN_ON_COMPLETION] = "BlockedByOnCompletionPod",
	[DRAIN_LOCAL_STORAGE] = "LocalStorageRequested",
	[DRAIN_BUDGET] = "NotEnoughPdb",
	[DRAIN_BUDGETS_MISCONFIGURED] = "SeveralPdbs",
};

const char *drain_reason_name(enum drain_reason reason)
{
	return reason_names[reason];
}

struct budgets_of_pod {
	size_t count;
	const struct budget *first, *second; /* by name */
	bool are_spent;
};

static struct budgets_of_pod budgets_of(const struct cluster *c, const struct pod *p)
{
	struct budgets_of_pod of = { 0 };
	bool is_ready = p->state == POD_READY;
	const struct budget *b = NULL;
	for (size_t i = 0; (b = store_next(&c->budgets, &i)) != NULL;) {
		if (!budget_selects(b, p))
			continue;
		of.count++;
		of.are_spent = of.are_spent || (b->allowed < 1 && (is_ready || !b->lets_unready_go));
		if (of.first == NULL || strcmp(b->name, of.first->name) < 0) {
			of.second = of.first;
			of.first = b;
		} else if (of.second == NULL || strcmp(b->name, of.second->name) < 0) {
			of.second = b;
		}
	}
	return of;
}

/* Pods that no drain waits for. */
static bool is_left_alone(const struct pod *p)
{
	return p->kind == POD_STATIC || p->kind == POD_DAEMON || p->state == POD_TERMINATING ||
	       p->state == POD_FINISHED;
}

/* What the pod's own standing says; budgets come after, for the API server asks them whatever the pod says. */
static enum drain_reason standing(const struct pod *p, bool is_ours, bool has_budget, millis now)
{
	if (p->evict == POD_EVICT_ON_COMPLETION)
		return DRAIN_ON_COMPLETION;
	if (p->evict == POD_EVICT_SAFE)
		return DRAIN_POSSIBLE;
	if (!is_ours && p->kind == POD_BARE)
		return DRAIN_NOT_REPLICATED;
	if (!is_ours && strcmp(p->namespace, "kube-system") == 0 && !has_budget)
		return DRAIN_SYSTEM_POD;
	if (p->evict == POD_EVICT_NEVER || p->undisturbed_until > now)
		return DRAIN_NOT_SAFE;
	return !is_ours && p->has_local_storage ? DRAIN_LOCAL_STORAGE : DRAIN_POSSIBLE;
}

static enum drain_reason judge(const struct cluster *c, const struct pod *p, int evicts_pool, millis now,
			       struct budgets_of_pod *budgets)
{
	bool is_ours = pod_goes_with_node(p, evicts_pool);
	*budgets = budgets_of(c, p);
	enum drain_reason reason = standing(p, is_ours, budgets->count > 0, now);
	if (reason != DRAIN_POSSIBLE)
		return reason;
	if (budgets->count > 1)
		return DRAIN_BUDGETS_MISCONFIGURED;
	/* One disruption is enough to begin with: the rest follows as their successors get ready. */
	return budgets->are_spent ? DRAIN_BUDGET : DRAIN_POSSIBLE;
}

static const char *sentence(enum drain_reason reason, const struct pod *p, const struct budgets_of_pod *b,
			    struct arena *a)
{
	static const char *const because[DRAIN_REASON_COUNT] = {
		[DRAIN_NOT_REPLICATED] = "has no controller that would make a new one",
		[DRAIN_SYSTEM_POD] = "is of kube-system and has no disruption budget",
		[DRAIN_NOT_SAFE] = "says that it must not be evicted",
		[DRAIN_ON_COMPLETION] = "is to be left to finish",
		[DRAIN_LOCAL_STORAGE] = "keeps files on the node",
	};
	assert(reason != DRAIN_BUDGET || b->first != NULL);
	assert(reason != DRAIN_BUDGETS_MISCONFIGURED || (b->first != NULL && b->second != NULL));
	CLEANUP(buf_release) struct buf out = { 0 };
	buf_printf(&out, "pod %s/%s ", p->namespace, p->name);
	if (reason == DRAIN_BUDGET)
		buf_printf(&out, "may not be disrupted now: budget %s allows none", b->first->name);
	else if (reason == DRAIN_BUDGETS_MISCONFIGURED)
		buf_printf(
			&out,
			"is selected by more than one disruption budget (%s, %s): the API server refuses to evict it",
			b->first->name, b->second->name);
	else
		buf_text(&out, because[reason]);
	return arena_strdup(a, out.text, out.len);
}

static int by_priority(const void *a, const void *b)
{
	const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	int order = strcmp(x->namespace, y->namespace);
	if (order == 0)
		order = strcmp(x->name, y->name);
	return order != 0 ? order : memcmp(x->uid, y->uid, sizeof x->uid);
}

struct drain_verdict cluster_drain(const struct cluster *c, const struct node *n, int evicts_pool, millis now,
				   struct arena *a)
{
	size_t count = 0;
	const struct pod **pods = cluster_node_pods(c, n, a, &count);
	struct drain_verdict v = { .text = "", .evict = arena_array(a, const struct pod *, count) };
	if (n->owner != NODE_UNCLAIMED) {
		v.reason = DRAIN_NODE_FOREIGN;
		v.text = "the node is in the care of another autoscaler";
	} else if (n->is_protected) {
		v.reason = DRAIN_NODE_PROTECTED;
		v.text = "an annotation of the node says that it must stay";
	}
	for (size_t i = 0; i < count; i++) {
		struct budgets_of_pod budgets = { 0 };
		if (is_left_alone(pods[i]))
			continue;
		v.evict[v.evict_count++] = pods[i];
		enum drain_reason reason = judge(c, pods[i], evicts_pool, now, &budgets);
		if (v.reason != DRAIN_POSSIBLE || reason == DRAIN_POSSIBLE)
			continue;
		v.reason = reason;
		v.blocker = pods[i];
		v.text = sentence(reason, pods[i], &budgets, a);
	}
	if (v.evict_count > 1)
		qsort(v.evict, v.evict_count, sizeof(void *), by_priority);
	return v;
}
