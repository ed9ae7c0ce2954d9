/* Whether a node can be emptied now, rule by rule in the order of Cluster Autoscaler: the first that decides, decides.
 */
#include "controller/cluster/model_inside.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
	const struct budget *b = NULL;
	for (size_t i = 0; (b = store_next(&c->budgets, &i)) != NULL;) {
		if (!budget_selects(b, p))
			continue;
		of.count++;
		of.are_spent = of.are_spent || b->allowed < 1;
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
	bool is_ours = p->is_placeholder || (evicts_pool >= 0 && p->pool == evicts_pool);
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
