/*
 * Pods that hold GPUs for nothing: looked for once a minute, told once it
 * has lasted. What is kept of each is small, and of so many only, that a
 * fleet of idle pods costs little; the history has their names.
 */
#include "controller/loop/account_parts.h"

#include <stdlib.h>
#include <string.h>

enum { HELD_MOST = 5000 };

static const millis LOOK_EVERY = MINUTE, TELL_EVERY = 10 * MINUTE, READ_LATELY = 5 * MINUTE;
/* How long it must have lasted: work may pause, and pods that ended are cleaned up after a while. */
static const millis patience[HOLDING_KIND_COUNT] = { 30 * MINUTE, 10 * MINUTE, 30 * MINUTE };

static int by_pod(const void *left, const void *right)
{
	const struct held *a = left, *b = right;
	int order = (a->uid[0] > b->uid[0]) - (a->uid[0] < b->uid[0]);

	if (!order)
		order = (a->uid[1] > b->uid[1]) - (a->uid[1] < b->uid[1]);
	return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

/* New ones stand behind those of the looks before, which are sorted; no pod comes twice in a look. */
static struct held *held_of(struct account *a, const struct pod *p, enum holding_kind kind, millis now)
{
	const struct held wanted = { .uid = { p->uid[0], p->uid[1] }, .kind = kind, .since = now, .used_most = ABSENT };
	struct held *found = a->held_known ? bsearch(&wanted, a->held, a->held_known, sizeof wanted, by_pod) : NULL;

	if (found || a->held_count >= HELD_MOST)
		return found;
	if (!a->held)
		a->held = calloc(HELD_MOST, sizeof *a->held);
	if (!a->held)
		abort();
	a->held[a->held_count] = wanted;
	return &a->held[a->held_count++];
}

static void tell(struct controller *c, struct held *h, const struct pod *p)
{
	char uid[37];

	pod_uid_text(p, uid);
	history_holding(c->history, &(struct holding){ .uid = uid,
						       .kind = h->kind,
						       .since = h->since,
						       .until = h->seen,
						       .namespace = p->namespace,
						       .pod = p->name,
						       .node = p->node ? p->node->name : "",
						       .gpus_milli = p->gpus_milli,
						       .used_most_milli = h->used_most });
	h->told = h->seen;
}

/* `used`: GPUs in use at this look, in thousandths; ABSENT when nobody tells. */
static void note(struct account *a, struct controller *c, const struct pod *p, enum holding_kind kind, int64_t used)
{
	struct held *h = held_of(a, p, kind, c->snapshot.now);

	if (!h)
		return;
	h->seen = c->snapshot.now;
	h->is_seen = true;
	if (used != ABSENT && (h->used_most == ABSENT || h->used_most < used))
		h->used_most = used;
	/* Of the right size, as far as is known: told only where the opposite was. */
	bool is_fair = kind == HOLDING_OVERSIZED && h->used_most >= p->gpus_milli && !h->told;
	if (!is_fair && h->seen - h->since >= patience[kind] && h->seen - h->told >= TELL_EVERY)
		tell(c, h, p);
}

/* As its GPUs tell, else as its model server does: nothing runs or waits in it. Who tells nothing is not accused. */
static bool is_unused(const struct controller *c, const struct pod *p, const struct device_use *use,
		      struct arena *scratch)
{
	int64_t in_flight;
	millis age;

	if (use)
		return use->in_use == 0;
	if (p->state != POD_READY || p->pool < 0 || (size_t)p->pool >= fleet_of(c)->pool_count ||
	    !c->pools[p->pool].source)
		return false;
	return source_in_flight(c->pools[p->pool].source, pod_key(p, scratch), &in_flight, &age) && age < READ_LATELY &&
	       in_flight == 0;
}

static void look_at(struct account *a, struct controller *c, const struct pod *p, const struct device_uses *uses,
		    struct arena *scratch)
{
	if (!p->has_gpus || p->is_placeholder)
		return;
	if (p->state == POD_FINISHED)
		note(a, c, p, HOLDING_FINISHED, ABSENT);
	if (p->state != POD_READY && p->state != POD_STARTED)
		return;
	const struct device_use *use = device_uses_find(uses, p->namespace, p->name);
	if (is_unused(c, p, use, scratch))
		note(a, c, p, HOLDING_UNUSED, ABSENT);
	/* For as long as it runs, so that what it ever used is known. */
	if (use && p->gpus_milli >= 2000 && use->told * 1000 == p->gpus_milli)
		note(a, c, p, HOLDING_OVERSIZED, use->in_use * 1000);
}

/* Those that were told and are not seen any more held until they were seen last. */
static void settle(struct account *a, struct controller *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->held_count; i++) {
		struct held *h = &a->held[i];
		if (h->is_seen) {
			h->is_seen = false;
			a->held[kept++] = *h;
			continue;
		}
		char uid[37];
		const struct pod gone = { .uid = { h->uid[0], h->uid[1] } };
		pod_uid_text(&gone, uid);
		if (h->told && h->told != h->seen)
			history_holding_until(c->history, uid, h->kind, h->since, h->seen);
	}
	a->held_count = a->held_known = kept;
	if (kept)
		qsort(a->held, kept, sizeof *a->held, by_pod);
}

void account_look(struct account *a, struct controller *c)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	size_t nodes, pods;

	if (a->looked_at && c->snapshot.now - a->looked_at < LOOK_EVERY)
		return;
	a->looked_at = c->snapshot.now;
	const struct device_uses uses = device_uses_read(c, &scratch);
	const struct node **n = cluster_nodes(c->cluster, -1, &scratch, &nodes);
	for (size_t i = 0; i < nodes; i++) {
		const struct pod **p = cluster_node_pods(c->cluster, n[i], &scratch, &pods);
		for (size_t k = 0; k < pods; k++)
			look_at(a, c, p[k], &uses, &scratch);
	}
	settle(a, c);
}
