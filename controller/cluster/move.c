/* Whether the pods of a node have a place elsewhere, before any of them is asked to go there. */
#include "base/buf.h"
#include "controller/cluster/fit.h"
#include "controller/cluster/model_state.h"

#include <string.h>

enum { NAMES_MOST = 3, REFUSED_MOST = 64 };

/* Why a pod that could be evicted is not moved; NULL: it may be. */
static const char *bar(const struct cluster *c, const struct pod *p)
{
	bool is_job = p->owner != NULL && strcmp(p->owner->kind, "Job") == 0;
	bool is_any = p->pool < 0 || c->pools[p->pool].takes_any;
	bool is_coming = p->state == POD_SCHEDULED || p->state == POD_PULLING;
	if (p->is_placeholder || !is_any)
		return "is another pool's";
	if ((is_job || gang_of(c, p).kind != GANG_NONE) && p->evict != POD_EVICT_SAFE)
		return "is work that would restart elsewhere";
	if (p->has_gpus && is_coming)
		return "is on its way";
	return p->is_choosy
		       ? "may run on some nodes only: volumes or devices by claims, pod affinity or topology spread, "
			 "which are not looked at while it runs"
		       : NULL;
}

static const char *text_of(struct arena *a, const struct buf *text)
{
	return arena_strdup(a, text->text, text->len);
}

static const char *say(struct arena *a, const struct pod *p, const char *what)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	buf_printf(&out, "pod %s/%s %s", p->namespace, p->name, what);
	return text_of(a, &out);
}

/* The first that it fits; NULL, and why not on the one before, without. */
static struct fit_node *find(struct fit *f, const struct pod *p, struct fit_node *nodes, size_t count, char *why)
{
	for (size_t i = 0; i < count; i++)
		if (fit_pod(f, p, &nodes[i], why))
			return &nodes[i];
	return NULL;
}

/* Where those sit who wait. Of many that are alike one is asked about that finds no place. */
struct seating {
	struct fit *fit;
	struct fit_node *nodes;
	size_t count;
	const struct pod_shape *refused[REFUSED_MOST];
	size_t refused_count;
};

static void seat(struct seating *s, const struct pod *p)
{
	char unused[FIT_WHY_SIZE];
	for (size_t i = 0; i < s->refused_count; i++)
		if (s->refused[i] == p->shape)
			return;
	struct fit_node *n = find(s->fit, p, s->nodes, s->count, unused);
	if (n != NULL)
		fit_sit(s->fit, p, n);
	else if (s->refused_count < REFUSED_MOST)
		s->refused[s->refused_count++] = p->shape;
}

/* All nodes were asked about it already. Of a gang, or given up, it may get a place all the same. */
static bool has_none(const struct placed *w)
{
	bool may = w->placing == PLACING_NOT_YET || w->placing == PLACING_INCOMPLETE || w->placing == PLACING_THERE;
	return !may && w->gang == NULL && w->pod->given_up_until == 0;
}

/* Who waits, whoever it is, may get its place first. */
static void seat_those_that_wait(const struct cluster *c, struct fit *f, struct fit_node *nodes, size_t count)
{
	const struct placement *waiting = cluster_placement(c);
	struct seating s = { .fit = f, .nodes = nodes, .count = count };
	for (size_t i = 0; i < waiting->count; i++)
		if (!has_none(&waiting->items[i]) && !pod_is_expendable(waiting->items[i].pod))
			seat(&s, waiting->items[i].pod);
	for (const struct pod *p = c->waiting; p != NULL; p = p->next)
		if (p->state == POD_UNSCHEDULED && !pod_is_ours(p))
			seat(&s, p);
}

static const char *say_where(struct arena *a, size_t pods, const struct fit_node *nodes, const bool *is_used,
			     size_t count)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	size_t told = 0, all = 0;
	for (size_t i = 0; i < count; i++)
		all += is_used[i];
	if (pods == 0)
		return "no pod would have to move";
	if (pods == 1)
		buf_text(&out, "its pod fits on ");
	else
		buf_printf(&out, "its %zu pods fit on ", pods);
	for (size_t i = 0; i < count && told < NAMES_MOST; i++)
		if (is_used[i])
			buf_printf(&out, "%s%s", told++ == 0 ? "" : told == all ? " and " : ", ", nodes[i].name);
	if (all > told)
		buf_printf(&out, " and %zu more", all - told);
	return text_of(a, &out);
}

/* The last first. */
static struct move_verdict place_all(struct fit *f, const struct pod **pods, size_t pod_count, struct fit_node *nodes,
				     size_t count, struct arena *a)
{
	struct move_verdict v = { .pods = pod_count };
	bool *is_used = arena_array(a, bool, count);
	for (size_t i = pod_count; i-- > 0;) {
		char why[FIT_WHY_SIZE] = "no other node has room";
		struct fit_node *n = NULL;
		if (fit_anywhere(f, pods[i], why) == FIT_MAY)
			n = find(f, pods[i], nodes, count, why);
		if (n == NULL) {
			CLEANUP(buf_release) struct buf out = { 0 };
			buf_printf(&out, "would have no place: %s", why);
			v.text = say(a, pods[i], out.text);
			return v;
		}
		fit_sit(f, pods[i], n);
		is_used[n - nodes] = true;
	}
	v.is_possible = true;
	v.text = say_where(a, v.pods, nodes, is_used, count);
	return v;
}

/* Those that are hardest to place last. */
static void by_gpus(const struct pod **pods, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct pod *p = pods[i];
		size_t at = i;
		for (; at > 0 && pods[at - 1]->gpus_milli > p->gpus_milli; at--)
			pods[at] = pods[at - 1];
		pods[at] = p;
	}
}

static struct move_verdict find_places(const struct cluster *c, const struct node *n, const struct pod **pods,
				       size_t pod_count, struct node_places to, struct arena *a)
{
	by_gpus(pods, pod_count);
	struct fit_node *nodes = arena_array(a, struct fit_node, to.count);
	for (size_t i = 0; i < to.count; i++)
		nodes[i] = fit_node_of(to.nodes[i]);
	struct fit *f = fit_new(c, a);
	for (size_t i = 0; i < pod_count; i++)
		fit_expect(f, pods[i]);
	fit_empty(f, n);
	seat_those_that_wait(c, f, nodes, to.count);
	const struct move_verdict v = place_all(f, pods, pod_count, nodes, to.count, a);
	fit_release(f);
	return v;
}

struct move_verdict cluster_move(const struct cluster *c, const struct node *n, struct node_places to, millis now,
				 struct arena *a)
{
	const struct drain_verdict d = cluster_drain(c, n, -1, now, a);
	size_t count = 0;
	if (d.reason != DRAIN_POSSIBLE)
		return (struct move_verdict){ .text = d.text, .pods = d.evict_count };
	for (size_t i = 0; i < d.evict_count; i++) {
		if (pod_is_expendable(d.evict[i]))
			continue;
		const char *why = bar(c, d.evict[i]);
		if (why != NULL)
			return (struct move_verdict){ .text = say(a, d.evict[i], why), .pods = d.evict_count };
		d.evict[count++] = d.evict[i];
	}
	return find_places(c, n, d.evict, count, to, a);
}

struct move_verdict cluster_displace(const struct cluster *c, const struct node *n, int pool, struct node_places to,
				     millis now, struct arena *a)
{
	const struct drain_verdict d = cluster_drain(c, n, pool, now, a);
	size_t count = 0;
	for (size_t i = 0; i < d.evict_count; i++)
		if (!pod_goes_with_node(d.evict[i], pool))
			d.evict[count++] = d.evict[i];
	if (count == 0)
		return (struct move_verdict){ .is_possible = true, .text = "no pod needs another place" };
	return find_places(c, n, d.evict, count, to, a);
}
