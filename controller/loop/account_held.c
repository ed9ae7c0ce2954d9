/* Pods that hold GPUs for nothing: looked for once a minute, told once it has lasted. */
#include "controller/loop/account_parts.h"

#include <stdlib.h>
#include <string.h>

static const millis LOOK_EVERY = MINUTE, TELL_EVERY = 10 * MINUTE, READ_LATELY = 5 * MINUTE;
/* How long it must have lasted: work may pause, and pods that ended are cleaned up after a while. */
static const millis patience[HOLDING_KIND_COUNT] = { 30 * MINUTE, 10 * MINUTE, 30 * MINUTE };

static struct held *held_of(struct account *a, const char *uid, enum holding_kind kind)
{
	for (size_t i = 0; i < a->held_count; i++)
		if (a->held[i].kind == kind && !strcmp(a->held[i].uid, uid))
			return &a->held[i];
	return NULL;
}

static void copy(char *to, size_t room, const char *from)
{
	size_t len = strnlen(from, room - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static struct held *add(struct account *a)
{
	if (a->held_count == a->held_room) {
		a->held_room = a->held_room ? 2 * a->held_room : 16;
		a->held = realloc(a->held, a->held_room * sizeof *a->held);
		if (!a->held)
			abort();
	}
	return &a->held[a->held_count++];
}

static void note(struct account *a, const struct pod *p, enum holding_kind kind, millis now)
{
	char uid[37];

	pod_uid_text(p, uid);
	struct held *h = held_of(a, uid, kind);
	if (!h) {
		h = add(a);
		*h = (struct held){ .kind = kind, .since = now };
		copy(h->uid, sizeof h->uid, uid);
		copy(h->namespace, sizeof h->namespace, p->namespace);
		copy(h->pod, sizeof h->pod, p->name);
		copy(h->node, sizeof h->node, p->node ? p->node->name : "");
	}
	h->gpus_milli = p->gpus_milli;
	h->seen = now;
	h->is_seen = true;
}

/* Its model server tells that nothing runs or waits in it; who tells nothing is not accused. */
static bool is_unused(const struct controller *c, const struct pod *p, struct arena *scratch)
{
	int64_t in_flight;
	millis age;

	if (p->state != POD_READY || p->pool < 0 || (size_t)p->pool >= fleet_of(c)->pool_count ||
	    !c->pools[p->pool].source)
		return false;
	return source_in_flight(c->pools[p->pool].source, pod_key(p, scratch), &in_flight, &age) && age < READ_LATELY &&
	       in_flight == 0;
}

static void look_at(struct account *a, struct controller *c, const struct pod *p, struct arena *scratch)
{
	if (!p->has_gpus || p->is_placeholder)
		return;
	if (p->state == POD_FINISHED)
		note(a, p, HOLDING_FINISHED, c->snapshot.now);
	else if (is_unused(c, p, scratch))
		note(a, p, HOLDING_UNUSED, c->snapshot.now);
}

static void tell(struct controller *c, struct held *h)
{
	history_holding(c->history, &(struct holding){ .uid = h->uid,
						       .kind = h->kind,
						       .since = h->since,
						       .until = h->seen,
						       .namespace = h->namespace,
						       .pod = h->pod,
						       .node = h->node,
						       .gpus_milli = h->gpus_milli,
						       .used_most_milli = ABSENT });
	h->told = h->seen;
}

/* Those that go on are told now and then, those that ended for the last time. */
static void settle(struct account *a, struct controller *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->held_count; i++) {
		struct held *h = &a->held[i];
		bool has_lasted = h->seen - h->since >= patience[h->kind];
		if (has_lasted && (!h->is_seen || h->seen - h->told >= TELL_EVERY) && h->seen != h->told)
			tell(c, h);
		if (!h->is_seen)
			continue;
		h->is_seen = false;
		a->held[kept++] = *h;
	}
	a->held_count = kept;
}

void account_look(struct account *a, struct controller *c)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	size_t nodes, pods;

	if (a->looked_at && c->snapshot.now - a->looked_at < LOOK_EVERY)
		return;
	a->looked_at = c->snapshot.now;
	const struct node **n = cluster_nodes(c->cluster, -1, &scratch, &nodes);
	for (size_t i = 0; i < nodes; i++) {
		const struct pod **p = cluster_node_pods(c->cluster, n[i], &scratch, &pods);
		for (size_t k = 0; k < pods; k++)
			look_at(a, c, p[k], &scratch);
	}
	settle(a, c);
}
