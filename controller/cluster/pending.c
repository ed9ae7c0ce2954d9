/* Pods that wait for a node: where the scheduler's filters would put them, who could give more, and why nobody can. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/terminal.h"
#include "controller/cluster/fit.h"
#include "controller/cluster/model_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_GROUPS = 3, EXAMPLES_MOST = 64, HOST_SIZE = 32 };

/* --- what a new node of a group would be --- */

/*
 * Nodes of one group may differ, in their zone for one: any of them is an example of the next, and so are those that
 * were there. Labels are shared among nodes that are alike, so that there are few.
 */
struct examples {
	const struct label_set *labels[EXAMPLES_MOST];
	size_t count;
	int64_t nodes;
};

static void add_example(struct examples *of, const struct label_set *labels)
{
	size_t i = 0;
	while (i < of->count && of->labels[i] != labels)
		i++;
	if (i == of->count && i < EXAMPLES_MOST)
		of->labels[of->count++] = labels;
}

static void add_remembered(struct examples *of, const struct template *t)
{
	for (size_t i = 0; i < t->zone_count; i++)
		add_example(of, t->zones[i].labels);
}

static void add_node(struct examples *of, const struct node *n)
{
	of->nodes += !n->is_leaving;
	if (n->gpu_at != 0)
		add_example(of, n->labels);
}

/* --- one round: everybody who waits sits down, in the order of the scheduler --- */

/* A node that will be. */
struct added {
	struct fit_node *node;
	bool is_coming; /* its machine is on its way; else it is to be bought */
	bool is_any;	/* for pods of the pool that takes any: others do not rely on it, nor these on theirs */
};

struct round {
	const struct cluster *cluster;
	struct arena *arena;
	struct fit *fit;
	struct examples *examples; /* one per group */
	struct fit_node *nodes;	   /* that there are, by name */
	size_t node_count;
	struct added *added; /* that would come, the oldest first */
	size_t added_count, added_room;
	int64_t *expected;	 /* per group: machines on their way where nobody sits yet */
	int64_t *offered;	 /* per group: machines that may be bought yet for the pool that takes any */
	int64_t money;		 /* what its budget leaves for them */
	struct fit_node **seats; /* where somebody sat down, in order */
	size_t seat_count, seat_room;
	int64_t hosts; /* made up so far */
};

/* May the scheduler put anything there: what our own taints and those of others say is for the filters. */
static bool is_open(const struct node *n)
{
	return n->is_known && n->is_ready && !n->is_leaving;
}

static struct round round_new(const struct cluster *c, struct arena *a)
{
	struct round r = { .cluster = c, .arena = a, .fit = fit_new(c, a) };
	size_t count = 0;
	const struct node **nodes = cluster_nodes(c, -1, a, &count);
	r.money = c->money;
	r.examples = arena_array(a, struct examples, c->group_count);
	r.expected = arena_array(a, int64_t, c->group_count);
	r.offered = arena_array(a, int64_t, c->group_count);
	for (size_t i = 0; i < c->group_count; i++) {
		r.expected[i] = c->groups[i].expected;
		r.offered[i] = c->groups[i].offered;
		add_remembered(&r.examples[i], &c->groups[i].template);
	}
	r.nodes = arena_array(a, struct fit_node, count);
	for (size_t i = 0; i < count; i++) {
		if (nodes[i]->group >= 0)
			add_node(&r.examples[nodes[i]->group], nodes[i]);
		if (is_open(nodes[i]))
			r.nodes[r.node_count++] = fit_node_of(nodes[i]);
	}
	return r;
}

static void round_release(struct round *r)
{
	fit_release(r->fit);
	free(r->added);
	free(r->seats);
}

static struct fit_node *next_node(struct round *r, int group, const struct label_set *labels)
{
	const struct template *t = &r->cluster->groups[group].template;
	struct fit_node *n = arena_new(r->arena, struct fit_node);
	char *host = arena_alloc(r->arena, HOST_SIZE, 1);
	snprintf(host, HOST_SIZE, "new %" PRId64, ++r->hosts);
	*n = (struct fit_node){ .hostname = host,
				.labels = labels,
				.taints = t->taints,
				.cloud_taints = t->is_learned ? NULL : t->cloud_taints,
				.allocatable = t->allocatable,
				.residents = &t->residents,
				.group = group,
				.is_guess = !t->is_learned };
	return n;
}

/* A node of the group that the pod would fit, were it there: it is, from then on. NULL, and why not, without. */
static struct fit_node *open_node(struct round *r, int group, const struct pod *p, char why[FIT_WHY_SIZE])
{
	const struct examples *of = &r->examples[group];
	char said[FIT_WHY_SIZE], unused[FIT_WHY_SIZE];
	for (size_t i = 0; i <= of->count; i++) {
		const struct label_set *labels = i == 0 ? r->cluster->groups[group].template.labels : of->labels[i - 1];
		struct fit_node *n = next_node(r, group, labels);
		fit_add(r->fit, n);
		if (fit_pod(r->fit, p, n, said))
			return n;
		if (i == 0 || fit_shape(p->shape, n, unused)) /* what it came closest to says most */
			memcpy(why, said, sizeof said);
		fit_take_away(r->fit, n);
	}
	return NULL;
}

static bool fits_group(struct round *r, int group, const struct pod *p, char why[FIT_WHY_SIZE])
{
	struct fit_node *n = open_node(r, group, p, why);
	if (n != NULL)
		fit_take_away(r->fit, n);
	return n != NULL;
}

static void sit(struct round *r, const struct pod *p, struct fit_node *n)
{
	fit_sit(r->fit, p, n);
	r->seats = xgrow(r->seats, r->seat_count, &r->seat_room, sizeof(void *));
	r->seats[r->seat_count++] = n;
}

static bool can_pay(const struct round *r, int group)
{
	return r->cluster->budget == 0 || r->money >= r->cluster->groups[group].price;
}

/* May one more be bought there for pods of the kind, of the pool that takes any? */
static bool may_buy(const struct round *r, struct kind *k, int group)
{
	k->lacks_money = k->lacks_money || (r->offered[group] > 0 && !can_pay(r, group));
	return r->offered[group] > 0 && can_pay(r, group);
}

static void buy(struct round *r, int group, int machines)
{
	r->offered[group] -= machines;
	r->money -= machines * r->cluster->groups[group].price;
}

/* As if those after the first `seats` had not sat down, and the nodes after the first `added` were not thought of. */
static void stand_up(struct round *r, size_t seats, size_t added)
{
	while (r->seat_count > seats)
		fit_leave(r->fit, r->seats[--r->seat_count]);
	while (r->added_count > added) {
		const struct added *last = &r->added[--r->added_count];
		fit_take_away(r->fit, last->node);
		r->expected[last->node->group] += last->is_coming;
		buy(r, last->node->group, -(int)last->is_any);
	}
}

/* Too few of its GPUs are free, whatever they are called: most nodes need no other look. Sums of parts are rounded. */
static bool lacks_gpus(const struct node *n, int64_t needed_milli)
{
	enum { ROUNDED_MILLI = 200 };
	int64_t left = n->gpus_milli - n->gpus_used_milli;
	return n->gpus_milli > 0 && needed_milli > 0 && (left <= 0 || left < needed_milli - ROUNDED_MILLI);
}

/* Its scheduler makes room for it there: the pods that it pre-empts may stay for all of their grace. */
static struct fit_node *find_nominated(struct round *r, const struct pod *p)
{
	for (size_t i = 0; p->nominated != NULL && i < r->node_count; i++)
		if (strcmp(r->nodes[i].name, p->nominated) == 0)
			return &r->nodes[i];
	return NULL;
}

/* Where one of its kind fits, none of those before it does from then on: nodes only fill. A claim is of one pod. */
static struct fit_node *find_there(struct round *r, const struct pod *p, struct kind *k)
{
	char unused[FIT_WHY_SIZE];
	bool are_alike = !fit_minds_others(r->fit, p);
	const struct label_set *labels = NULL; /* they tell what a device is of a GPU; most nodes share them */
	int64_t needed = p->gpus_milli;
	size_t i = k->there_from;
	for (; i < r->node_count; i++) {
		const struct node *n = r->nodes[i].node;
		if (n->labels != labels)
			needed = devices_whole_milli(n->labels, p->shape->requests);
		labels = n->labels;
		if (!lacks_gpus(n, needed) && fit_pod(r->fit, p, &r->nodes[i], unused))
			break;
	}
	if (are_alike && (i == r->node_count || intern_count(p->shape->claims) == 0))
		k->there_from = i;
	return i < r->node_count ? &r->nodes[i] : NULL;
}

static bool is_among(const int *groups, size_t count, int group)
{
	for (size_t i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* --- why not --- */

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

static const char *say_why(struct round *r, const struct pod *p, const int *groups, size_t count)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	const struct cluster *c = r->cluster;
	if (count == 0) {
		buf_text(&out, "there is no node group for it");
	} else if (!say_too_few(c, p->shape, groups, count, &out)) {
		for (size_t i = 0; i < count && i < WHY_GROUPS; i++) {
			char why[FIT_WHY_SIZE] = "";
			if (fits_group(r, groups[i], p, why))
				snprintf(why, sizeof why, "beside the others of its kind it would not fit");
			buf_printf(&out, "%s%s: %s", i == 0 ? "" : "; ", c->groups[groups[i]].name, why);
		}
		if (count > WHY_GROUPS)
			buf_printf(&out, "; and %zu more node groups do not fit", count - WHY_GROUPS);
	}
	return arena_strdup(r->arena, out.text, out.len);
}

/* NULL as long as one of the groups may grow. */
static const char *say_full(const struct round *r, const int *groups, size_t count)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	for (size_t i = 0; i < count; i++) {
		const struct group_known *g = &r->cluster->groups[groups[i]];
		if (r->examples[groups[i]].nodes < g->max)
			return NULL;
		buf_printf(&out, "%snode group %s has its most nodes, %" PRId64, i == 0 ? "" : "; ", g->name, g->max);
	}
	return count == 0 ? NULL : arena_strdup(r->arena, out.text, out.len);
}

static const char *scheduler_of(const struct pod *p)
{
	return p->shape->scheduler == NULL ? "default-scheduler" : p->shape->scheduler;
}

static const char *text_of(struct round *r, struct buf *out)
{
	return arena_strdup(r->arena, out->text, out->len);
}

static const char *say_unseen(struct round *r, const struct pod *p)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	buf_printf(&out, "its scheduler %s has not looked at it yet: no machine is bought before it has",
		   scheduler_of(p));
	return text_of(r, &out);
}

static const char *say_expendable(struct round *r, const struct pod *p)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	buf_printf(&out, "its priority %d is below %d: it is expendable, and no machine is bought for it", p->priority,
		   POD_EXPENDABLE_BELOW);
	return text_of(r, &out);
}

static const char *say_passed_over(struct round *r, const struct pod *p, const char *node)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	buf_printf(&out, "by the scheduler's filters it fits node %s, where its scheduler %s does not place it", node,
		   scheduler_of(p));
	if (p->trouble_text[0] != '\0')
		buf_printf(&out, ": %s", p->trouble_text);
	return text_of(r, &out);
}

static const char *say_given_up(struct round *r, const struct pod *p)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	buf_printf(&out,
		   "for %" PRId64
		   " minutes there was a node that it fits by the scheduler's filters, and its scheduler %s "
		   "did not place it: no machine is held for it",
		   (int64_t)(WAITING_GIVES_UP / MINUTE), scheduler_of(p));
	if (p->trouble_text[0] != '\0')
		buf_printf(&out, " (%s)", p->trouble_text);
	return text_of(r, &out);
}

/* NULL as long as the others may be about to come, or are held back. */
static const char *say_incomplete(struct round *r, const struct pod *p, const struct gang *g)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	if (g->is_suspended || r->cluster->followed_at - p->created_at < WAITING_IS_SLOW)
		return NULL;
	buf_printf(&out, "%" PRId64 " of %" PRId64 " pods of its gang %s exist: no machine is bought before all do",
		   g->exist, g->size, g->name);
	return text_of(r, &out);
}

/* --- who waits --- */

static bool is_kind(const void *item, const void *key)
{
	const struct kind *a = item, *b = key;
	return a->asks == b->asks && a->pool == b->pool && a->is_placeholder == b->is_placeholder &&
	       a->name_space == b->name_space;
}

static uint32_t kind_hash(const struct kind *k)
{
	uintptr_t words[] = { (uintptr_t)k->asks, (uintptr_t)k->name_space, (uintptr_t)k->pool, k->is_placeholder };
	return hash_bytes(0, words, sizeof words);
}

static bool is_before(const struct pod *a, const struct pod *b)
{
	if (a->created_at != b->created_at)
		return a->created_at < b->created_at;
	int order = strcmp(a->name, b->name);
	return order != 0 ? order < 0 : memcmp(a->uid, b->uid, sizeof a->uid) < 0;
}

/* Whether the group has what the pod selects by, as far as labels go, without guessing. */
static bool is_sure(const struct group_known *g, const struct pod_shape *asks)
{
	const struct template *t = &g->template;
	const struct fit_node told = { .labels = t->labels };
	for (size_t i = 0; !t->is_learned && i < intern_count(asks->selector); i++)
		if (label_set_get(t->labels, asks->selector->items[i].key) == NULL)
			return false;
	return t->is_learned || fit_requirements(asks->affinity, &told);
}

static void sort_by_price(const struct cluster *c, int *groups, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		int group = groups[i];
		size_t at = i;
		for (; at > 0 && c->groups[groups[at - 1]].price > c->groups[group].price; at--)
			groups[at] = groups[at - 1];
		groups[at] = group;
	}
}

/* The order stays otherwise. */
static void put_sure_first(struct round *r, struct kind *k, int *groups)
{
	int *others = arena_array(r->arena, int, k->group_count);
	size_t count = 0;
	k->sure_count = 0;
	for (size_t i = 0; i < k->group_count; i++)
		if (is_sure(&r->cluster->groups[groups[i]], k->asks))
			groups[k->sure_count++] = groups[i];
		else
			others[count++] = groups[i];
	memcpy(groups + k->sure_count, others, count * sizeof *others);
}

static struct kind *kind_of(struct round *r, struct store *kinds, const struct pod *p)
{
	const struct cluster *c = r->cluster;
	struct kind key = {
		.asks = p->shape, .name_space = p->namespace, .pool = p->pool, .is_placeholder = p->is_placeholder
	};
	struct kind *k = store_find(kinds, kind_hash(&key), is_kind, &key);
	if (k != NULL)
		return k;
	k = arena_new(r->arena, struct kind);
	*k = key;
	k->hash = kind_hash(&key);
	k->is_any = p->pool >= 0 && c->pools[p->pool].takes_any;
	k->group_count = p->pool >= 0 ? c->pools[p->pool].group_count : c->group_count;
	int *groups = arena_array(r->arena, int, k->group_count), *fitting = arena_array(r->arena, int, k->group_count);
	for (size_t i = 0; i < k->group_count; i++)
		groups[i] = p->pool >= 0 ? c->pools[p->pool].groups[i] : (int)i;
	k->sure_count = k->group_count;
	if (k->is_any) {
		sort_by_price(c, groups, k->group_count);
		put_sure_first(r, k, groups);
	}
	for (size_t i = 0; i < k->group_count; i++) {
		char unused[FIT_WHY_SIZE];
		if (fits_group(r, groups[i], p, unused))
			fitting[k->fitting_count++] = groups[i];
	}
	k->groups = groups;
	k->fitting = fitting;
	store_add(kinds, k);
	return k;
}

struct choice {
	const int *groups;
	size_t count;
};

/* Beside others first. What a machine on its way will be like shows who sits down there first. */
static struct fit_node *find_added(struct round *r, const struct pod *p, struct kind *k, struct choice of,
				   bool is_coming)
{
	char unused[FIT_WHY_SIZE];
	for (size_t i = r->added_count; i-- > 0;) {
		struct added *a = &r->added[i];
		if (a->is_coming == is_coming && (is_coming || a->is_any == k->is_any) &&
		    is_among(of.groups, of.count, a->node->group) && fit_pod(r->fit, p, a->node, unused))
			return a->node;
	}
	for (size_t i = 0; i < of.count; i++) {
		bool may_open = is_coming ? r->expected[of.groups[i]] > 0 : !k->is_any || may_buy(r, k, of.groups[i]);
		struct fit_node *n = may_open ? open_node(r, of.groups[i], p, unused) : NULL;
		if (n == NULL)
			continue;
		r->added = xgrow(r->added, r->added_count, &r->added_room, sizeof *r->added);
		r->added[r->added_count++] = (struct added){ n, is_coming, !is_coming && k->is_any };
		r->expected[n->group] -= is_coming;
		buy(r, n->group, !is_coming && k->is_any);
		return n;
	}
	return NULL;
}

/* What was bought for it stays its own: a dearer group that can be had again meanwhile would be a second machine, and
 * one that comes for others would be lacking there. Else on no machine that might do while one can be had that does:
 * not even on one that comes for others. Of what is on its way at the start nobody knows for whom it was bought: it is
 * for those who waited. */
static struct fit_node *find_to_come(struct round *r, struct placed *w)
{
	struct kind *k = w->kind;
	const struct pod *p = w->pod;
	bool has_own = p->has_machine && is_among(k->groups, k->group_count, p->own_group);
	const struct choice sure = { k->groups, k->sure_count },
			    rest = { k->groups + k->sure_count, k->group_count - k->sure_count },
			    own = { &p->own_group, has_own };
	bool knows_owners = r->cluster->knows_owners;
	const struct {
		struct choice of;
		enum placing placing;
	} steps[] = { { knows_owners ? own : sure, PLACING_COMING },
		      { knows_owners ? sure : rest, PLACING_COMING },
		      { sure, PLACING_NEW },
		      { rest, PLACING_COMING },
		      { rest, PLACING_NEW } };
	struct fit_node *n = NULL;
	for (size_t i = 0; n == NULL && i < sizeof steps / sizeof *steps; i++) {
		w->placing = steps[i].placing;
		if (w->placing == PLACING_NEW || p->pool >= 0) /* what comes was bought for pods of pools */
			n = find_added(r, p, k, steps[i].of, w->placing == PLACING_COMING);
	}
	return n;
}

static bool fits_some(struct round *r, const struct pod *p, const struct kind *k)
{
	char unused[FIT_WHY_SIZE];
	for (size_t i = 0; i < k->group_count; i++)
		if (fits_group(r, k->groups[i], p, unused))
			return true;
	return false;
}

static void put_spent(const struct pool_known *p, int64_t micro, struct buf *out)
{
	buf_text(out, human_spent((double)micro / 1e6, p->is_unpriced).text);
}

static void put_budget(const struct round *r, int group, const struct pool_known *p, struct buf *out)
{
	buf_text(out, "where more machines at ");
	put_spent(p, r->cluster->groups[group].price, out);
	buf_printf(out, " an hour are beyond the budget of WarmPool %s: ", p->name);
	put_spent(p, r->cluster->budget - r->money, out);
	buf_text(out, " of ");
	put_spent(p, r->cluster->budget, out);
	buf_text(out, " an hour are spent");
}

/* Of groups that could hold it, and may not grow for it now. */
static const char *say_stranded(const struct round *r, const struct kind *k)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	for (size_t i = 0; i < k->fitting_count && i < WHY_GROUPS; i++) {
		const struct group_known *g = &r->cluster->groups[k->fitting[i]];
		buf_printf(&out, "%sfits node group %s, ", i == 0 ? "" : "; ", g->name);
		if (k->lacks_money && r->offered[k->fitting[i]] > 0)
			put_budget(r, k->fitting[i], &r->cluster->pools[k->pool], &out);
		else if (r->examples[k->fitting[i]].nodes < g->max)
			buf_text(&out, "which can give it no machine now");
		else
			buf_printf(&out, "which has its most nodes, %" PRId64, g->max);
	}
	return arena_strdup(r->arena, out.text, out.len);
}

/* What another pool's group would do is no use to it, and the first thing to know. */
static const char *say_why_not(struct round *r, const struct pod *p, const struct kind *k)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	char unused[FIT_WHY_SIZE];
	for (size_t i = 0; k->is_any && i < r->cluster->group_count; i++) {
		if (is_among(k->groups, k->group_count, (int)i) || !fits_group(r, (int)i, p, unused))
			continue;
		buf_printf(&out, "fits node group %s, no pool may use it for this pod: WarmPool %s does not name it",
			   r->cluster->groups[i].name, r->cluster->pools[p->pool].name);
		return text_of(r, &out);
	}
	return say_why(r, p, k->groups, k->group_count);
}

static void refuse(struct round *r, struct placed *w)
{
	struct kind *k = w->kind;
	if (k->is_any && !k->is_refused && fits_some(r, w->pod, k)) {
		w->placing = PLACING_STRANDED;
		return;
	}
	w->placing = PLACING_NOWHERE;
	w->why = k->is_refused ? k->why : say_why_not(r, w->pod, k);
	k->is_refused = !fit_minds_others(r->fit, w->pod);
	k->why = w->why;
}

/* Of a gang it says nothing of those that it has a node for, as long as others lack one. */
static bool is_looked_at(const struct placed *w)
{
	return w->pod->is_looked_at || (w->gang != NULL && w->gang->is_looked_at);
}

static void place(struct round *r, struct placed *w)
{
	char why[FIT_WHY_SIZE] = "";
	const struct pod *p = w->pod;
	struct kind *k = w->kind;
	enum fit_verdict anywhere = fit_anywhere(r->fit, p, why);
	w->placing = PLACING_NOT_YET;
	if (r->cluster->heeds_schedulers && !is_looked_at(w)) {
		w->slow = p->is_slow ? say_unseen(r, p) : NULL;
		return;
	}
	if (pod_is_expendable(p)) {
		w->slow = say_expendable(r, p);
		return;
	}
	if (anywhere == FIT_UNKNOWN)
		return;
	if (anywhere == FIT_NEVER || p->given_up_until != 0) {
		w->placing = PLACING_NOWHERE;
		w->why = anywhere == FIT_NEVER ? arena_strdup(r->arena, why, strlen(why)) : say_given_up(r, p);
		return;
	}
	struct fit_node *n = find_nominated(r, p);
	bool is_awaited = n != NULL;
	if (n == NULL)
		n = find_there(r, p, k);
	w->placing = PLACING_THERE;
	if (n == NULL && !k->is_refused)
		n = find_to_come(r, w);
	if (n == NULL) {
		refuse(r, w);
		return;
	}
	sit(r, p, n);
	w->group = n->group;
	w->slow = w->placing == PLACING_THERE && p->is_slow && !is_awaited ? say_passed_over(r, p, n->name) : NULL;
}

static bool has_place(enum placing placing)
{
	return placing == PLACING_THERE || placing == PLACING_COMING || placing == PLACING_NEW;
}

/* Nothing but its kind decides where it may sit. */
static bool is_like_its_kind(struct round *r, const struct placed *w)
{
	const struct pod *p = w->pod;
	bool has_own = p->has_machine && !is_among(w->kind->groups, w->kind->sure_count, p->own_group);
	return p->nominated == NULL && p->given_up_until == 0 && !has_own && !pod_is_expendable(p) &&
	       intern_count(p->shape->claims) == 0 && !fit_minds_others(r->fit, p) &&
	       (!r->cluster->heeds_schedulers || is_looked_at(w));
}

/* How many of a gang wait; their kind if each may stand for any other, else NULL. */
static bool is_of_one_kind(struct round *r, const struct placed *items, size_t count, size_t first, int64_t *pods)
{
	const struct kind *k = items[first].kind;
	bool are_alike = true;
	*pods = 0;
	for (size_t i = first; i < count; i++) {
		if (items[i].gang != items[first].gang)
			continue;
		++*pods;
		are_alike = are_alike && items[i].kind == k && is_like_its_kind(r, &items[i]);
	}
	return are_alike;
}

/* One before it failed where nothing has changed since: so does it, without looking again at each node. */
static bool fails_like_before(const struct round *r, const struct kind *k, const struct gang *g, int64_t pods)
{
	const struct failed_gang *f = &k->failed;
	return f->is_known && f->seats == r->seat_count && f->added == r->added_count && pods > f->placed &&
	       g->size - g->running > f->placed;
}

static const struct placed *fail_like_before(struct placed *items, size_t count, size_t first)
{
	const struct kind *k = items[first].kind;
	const struct placed *worst = NULL;
	int64_t placed = 0;
	for (size_t i = first; i < count; i++) {
		struct placed *w = &items[i];
		if (w->gang != items[first].gang)
			continue;
		w->is_done = true;
		w->placing = placed < k->failed.placed ? PLACING_THERE : k->failed.placing;
		w->why = w->placing == PLACING_NOWHERE ? k->why : NULL;
		worst = worst == NULL && placed == k->failed.placed ? w : worst;
		placed++;
	}
	return worst;
}

static void refuse_gang(struct round *r, struct placed *items, size_t count, size_t first, const struct placed *worst)
{
	CLEANUP(buf_release) struct buf why = { 0 };
	buf_printf(&why, "%s of its gang finds no place: %s", worst->pod->name, worst->why == NULL ? "" : worst->why);
	const char *text = text_of(r, &why);
	for (size_t i = first; i < count; i++) {
		if (items[i].gang != items[first].gang || items[i].placing == PLACING_NOWHERE)
			continue;
		items[i].placing = worst->placing;
		items[i].why = worst->placing == PLACING_NOWHERE ? text : NULL;
	}
}

/* As many of a gang as it needs at once, or none: less would hold machines for nothing. */
static void place_gang(struct round *r, struct placed *items, size_t count, size_t first)
{
	size_t seats = r->seat_count, added = r->added_count;
	const struct gang *gang = items[first].gang;
	const struct placed *worst = NULL;
	int64_t placed = 0, pods;
	bool are_alike = is_of_one_kind(r, items, count, first, &pods);
	if (are_alike && fails_like_before(r, items[first].kind, gang, pods)) {
		refuse_gang(r, items, count, first, fail_like_before(items, count, first));
		return;
	}
	for (size_t i = first; i < count; i++)
		if (items[i].gang == gang)
			items[i].kind->was_from = items[i].kind->there_from;
	for (size_t i = first; i < count; i++) {
		if (items[i].gang != gang)
			continue;
		place(r, &items[i]);
		items[i].is_done = true;
		placed += has_place(items[i].placing);
		if (!has_place(items[i].placing) && (worst == NULL || worst->placing != PLACING_NOWHERE))
			worst = &items[i];
	}
	if (worst == NULL || gang->running + placed >= gang->size)
		return;
	for (size_t i = first; i < count && r->seat_count > seats; i++) /* its own took the place of the rest */
		if (items[i].gang == gang)
			items[i].kind->there_from = items[i].kind->was_from;
	stand_up(r, seats, added);
	if (are_alike)
		items[first].kind->failed = (struct failed_gang){ true, seats, added, placed, worst->placing };
	refuse_gang(r, items, count, first, worst);
}

static int by_turn(const void *a, const void *b)
{
	const struct pod *x = ((const struct placed *)a)->pod, *y = ((const struct placed *)b)->pod;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x == y ? 0 : is_before(x, y) ? -1 : 1;
}

/* Those that are ours and have no node, with the gangs that they are of. */
static struct placed *who_waits(const struct cluster *c, struct gang_table *gangs, struct arena *a, size_t *count)
{
	size_t room = 0;
	bool has_gangs = false;
	for (const struct pod *p = c->waiting; p != NULL; p = p->next)
		room++;
	struct placed *items = arena_array(a, struct placed, room);
	*count = 0;
	for (const struct pod *p = c->waiting; p != NULL; p = p->next) {
		if (p->state != POD_UNSCHEDULED || !pod_is_ours(p))
			continue;
		bool is_of_gang = gang_of(c, p).kind != GANG_NONE;
		if (is_of_gang && !has_gangs)
			*gangs = gang_table_make(c, a);
		has_gangs = has_gangs || is_of_gang;
		const struct gang *g = is_of_gang ? gang_table_find(gangs, c, p) : NULL;
		items[(*count)++] = (struct placed){ .pod = p, .gang = g, .group = -1 };
	}
	if (*count > 1)
		qsort(items, *count, sizeof *items, by_turn);
	return items;
}

static void place_all(struct round *r, struct placement *out)
{
	struct store kinds = { .hash_offset = offsetof(struct kind, hash) };
	for (size_t i = 0; i < out->count; i++) {
		struct placed *w = &out->items[i];
		w->kind = kind_of(r, &kinds, w->pod);
	}
	for (size_t i = 0; i < out->count; i++) {
		struct placed *w = &out->items[i];
		if (w->is_done)
			continue;
		if (w->gang != NULL && !gang_is_whole(w->gang)) {
			w->placing = PLACING_INCOMPLETE;
			w->why = w->kind->fitting_count == 0 ? say_why(r, w->pod, w->kind->groups, w->kind->group_count)
							     : NULL;
			w->slow = say_incomplete(r, w->pod, w->gang);
		} else if (w->gang != NULL) {
			place_gang(r, out->items, out->count, i);
		} else {
			place(r, w);
		}
	}
	out->lacking = arena_array(r->arena, int64_t, r->cluster->group_count);
	out->needless = r->expected;
	for (size_t i = 0; i < r->added_count; i++)
		out->lacking[r->added[i].node->group] += r->added[i].is_any;
	for (size_t i = 0; i < out->count; i++)
		out->items[i].full =
			out->items[i].placing == PLACING_STRANDED
				? say_stranded(r, out->items[i].kind)
				: say_full(r, out->items[i].kind->fitting, out->items[i].kind->fitting_count);
	store_release(&kinds);
}

const struct placement *cluster_placement(const struct cluster *c)
{
	struct placement *p = c->placement;
	if (p->is_made && p->generation == c->generation)
		return p;
	struct gang_table gangs = { 0 };
	arena_clear(&p->arena);
	p->items = who_waits(c, &gangs, &p->arena, &p->count);
	p->generation = c->generation;
	p->is_made = true;
	if (p->count > 0) {
		struct round r = round_new(c, &p->arena);
		place_all(&r, p);
		round_release(&r);
	}
	gang_table_release(&gangs);
	return p;
}

void cluster_expect(struct cluster *c, size_t group, int64_t machines)
{
	struct group_known *g = &c->groups[group];
	c->generation += g->expected != machines;
	g->expected = machines;
}

void cluster_offer(struct cluster *c, size_t group, int64_t machines)
{
	struct group_known *g = &c->groups[group];
	c->generation += g->offered != machines;
	g->offered = machines;
}

bool cluster_offer_money(struct cluster *c, int64_t budget, int64_t left)
{
	bool is_new = c->budget != budget || c->money != left;
	c->generation += is_new;
	c->budget = budget;
	c->money = left;
	return is_new;
}

/* --- as it is told --- */

struct entry {
	struct pending_shape shape;
	const struct placed *like;
	uint32_t hash;
};

static bool is_told_together(enum placing a, enum placing b)
{
	return a == b || (has_place(a) && has_place(b));
}

static bool is_entry(const void *item, const void *key)
{
	const struct placed *a = ((const struct entry *)item)->like, *b = key;
	return a->kind == b->kind && is_told_together(a->placing, b->placing) &&
	       (a->pod->given_up_until != 0) == (b->pod->given_up_until != 0);
}

/* Of no pool: its place is on a node that nobody may buy. */
static const char *say_stray(const struct cluster *c, const struct placed *w, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	if (w->pod->pool >= 0 || w->placing != PLACING_NEW || w->group < 0)
		return NULL;
	buf_printf(&out,
		   "fits node group %s, no pool may use it: no WarmPool selects the pod, and nothing is bought for it",
		   c->groups[w->group].name);
	return arena_strdup(a, out.text, out.len);
}

static const char *copy(struct arena *a, const char *text)
{
	return text == NULL ? NULL : arena_strdup(a, text, strlen(text));
}

static struct entry *entry_of(struct store *entries, const struct placed *w, struct arena *a)
{
	uintptr_t kind = (uintptr_t)w->kind;
	uint32_t hash = hash_bytes(0, &kind, sizeof kind);
	struct entry *e = store_find(entries, hash, is_entry, w);
	if (e != NULL)
		return e;
	int *groups = arena_array(a, int, w->kind->fitting_count);
	for (size_t i = 0; i < w->kind->fitting_count; i++)
		groups[i] = w->kind->fitting[i];
	e = arena_new(a, struct entry);
	*e = (struct entry){ .shape = { .namespace = copy(a, w->pod->namespace),
					.example = w->pod,
					.since = w->pod->created_at,
					.pool = w->pod->pool,
					.gpus_milli = w->pod->gpus_milli,
					.groups = groups,
					.group_count = w->placing == PLACING_NOWHERE ? 0 : w->kind->fitting_count,
					.why = copy(a, w->why),
					.full = copy(a, w->full),
					.is_stranded = w->placing == PLACING_STRANDED,
					.is_incomplete_gang = w->placing == PLACING_INCOMPLETE,
					.is_undecided = w->placing == PLACING_NOT_YET },
			     .like = w,
			     .hash = hash };
	store_add(entries, e);
	return e;
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
	const struct placement *p = cluster_placement(c);
	struct store entries = { .hash_offset = offsetof(struct entry, hash) };
	for (size_t i = 0; i < p->count; i++) {
		const struct placed *w = &p->items[i];
		struct entry *e = entry_of(&entries, w, a);
		e->shape.count++;
		e->shape.placed += w->placing == PLACING_THERE;
		if (e->shape.slow == NULL)
			e->shape.slow = copy(a, w->slow);
		if (e->shape.stray == NULL)
			e->shape.stray = say_stray(c, w, a);
		if (is_before(w->pod, e->shape.example)) {
			e->shape.example = w->pod;
			e->shape.since = w->pod->created_at;
		}
	}
	struct pending_shape *shapes = arena_array(a, struct pending_shape, entries.count);
	const struct entry *e = NULL;
	*count = 0;
	for (size_t i = 0; (e = store_next(&entries, &i)) != NULL;)
		shapes[(*count)++] = e->shape;
	store_release(&entries);
	if (*count > 1)
		qsort(shapes, *count, sizeof *shapes, by_age);
	return shapes;
}

static const char *note_of(const struct cluster *c, const struct placed *w, struct arena *a)
{
	const char *stray = w->why == NULL ? say_stray(c, w, a) : NULL;
	if (w->why != NULL)
		return w->why;
	return stray != NULL ? stray : w->placing == PLACING_STRANDED ? w->full : w->slow;
}

static int by_note_turn(const void *a, const void *b)
{
	const struct pod_note *x = a, *y = b;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return x->pod == y->pod ? 0 : is_before(x->pod, y->pod) ? -1 : 1;
}

struct pod_note *cluster_pod_notes(const struct cluster *c, struct arena *a, size_t *count)
{
	const struct placement *p = cluster_placement(c);
	struct pod_note *notes = arena_array(a, struct pod_note, p->count);
	*count = 0;
	for (size_t i = 0; i < p->count; i++)
		p->items[i].kind->notes = 0;
	for (size_t i = 0; i < p->count; i++) {
		const struct placed *w = &p->items[i];
		const char *text = note_of(c, w, a);
		if (text != NULL)
			notes[(*count)++] = (struct pod_note){ w->pod, text, w->kind->notes++ };
	}
	if (*count > 1)
		qsort(notes, *count, sizeof *notes, by_note_turn);
	return notes;
}

/* What was on its way for it is not any more. */
static bool lost_its_machine(const struct placed *w)
{
	return w->placing == PLACING_NEW || w->placing == PLACING_STRANDED || w->placing == PLACING_NOWHERE;
}

struct pod_order *cluster_pod_orders(struct cluster *c, struct arena *a, size_t *count)
{
	const struct placement *p = cluster_placement(c);
	struct pod_order *orders = arena_array(a, struct pod_order, p->count);
	*count = 0;
	for (size_t i = 0; i < p->count; i++) {
		const struct placed *w = &p->items[i];
		struct pod *pod = (struct pod *)(uintptr_t)w->pod;
		if (lost_its_machine(w))
			pod->has_machine = pod->is_told = false;
		if (w->placing != PLACING_COMING || pod->is_placeholder)
			continue;
		pod->own_group = pod->has_machine ? pod->own_group : w->group;
		pod->has_machine = true;
		if (!pod->is_told)
			orders[(*count)++] = (struct pod_order){ pod, w->group };
	}
	c->knows_owners = true;
	return orders;
}

void cluster_order_is_told(struct cluster *c, const struct pod_order *o)
{
	struct pod *told = pod_find(c, (struct object_uid){ o->pod->uid[0], o->pod->uid[1] });
	told->is_told = true;
}

void cluster_forget_owners(struct cluster *c)
{
	struct pod *p = NULL;
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		p->has_machine = p->is_told = false;
	c->knows_owners = false;
	c->generation++;
}
