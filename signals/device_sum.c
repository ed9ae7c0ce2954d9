#include "signals/device.h"

#include <string.h>

static int64_t or_zero(int64_t value)
{
	return value == DEVICE_NOT_TOLD ? 0 : value;
}

static int64_t memory_of(const struct device *d)
{
	return or_zero(d->value[DEVICE_MEMORY_USED]) + or_zero(d->value[DEVICE_MEMORY_FREE]);
}

bool device_pod_find(struct devices d, const char *namespace, const char *pod, struct device_pod *out)
{
	struct device_pod p = { .use_permille = DEVICE_NOT_TOLD };

	for (size_t i = 0; i < d.count; i++) {
		const struct device *g = &d.items[i];
		if (strcmp(g->pod, pod) != 0 || strcmp(g->namespace, namespace) != 0)
			continue;
		p.devices++;
		if (g->value[DEVICE_USE] > p.use_permille)
			p.use_permille = g->value[DEVICE_USE];
		p.memory_used_mib += or_zero(g->value[DEVICE_MEMORY_USED]);
		p.memory_mib += memory_of(g);
		p.power_mw += or_zero(g->value[DEVICE_POWER]);
	}
	if (!p.devices)
		return false;
	*out = p;
	return true;
}

/* What a further replica of the pool could take of one node: free GPUs that are large enough, in whole replicas. */
struct room {
	int64_t fitting, memory_mib;
};

static int64_t end_node(struct room *r, int64_t gpus_per_replica)
{
	int64_t taken = r->fitting - r->fitting % gpus_per_replica;
	int64_t usable = r->fitting ? r->memory_mib * taken / r->fitting : 0;

	*r = (struct room){ 0 };
	return usable;
}

static int64_t largest_replica(struct devices d, const struct device_question *q)
{
	int64_t largest = DEVICE_NOT_TOLD;

	for (size_t i = 0; i < d.count; i++)
		if (*d.items[i].pod && q->is_replica(q->user, d.items[i].namespace, d.items[i].pod) &&
		    d.items[i].value[DEVICE_MEMORY_USED] > largest)
			largest = d.items[i].value[DEVICE_MEMORY_USED];
	return largest;
}

static void add(struct device_sums *s, const struct device *g, int64_t *use, int64_t *told)
{
	int64_t xid = or_zero(g->value[DEVICE_XID]);

	s->devices++;
	s->held += *g->pod != '\0';
	s->memory_used_mib += or_zero(g->value[DEVICE_MEMORY_USED]);
	s->memory_free_mib += or_zero(g->value[DEVICE_MEMORY_FREE]);
	s->power_mw += or_zero(g->value[DEVICE_POWER]);
	s->failing += xid != 0;
	s->last_xid = xid ? xid : s->last_xid;
	if (*g->pod && g->value[DEVICE_USE] != DEVICE_NOT_TOLD) {
		*use += g->value[DEVICE_USE];
		++*told;
	}
}

struct device_sums device_sum(struct devices d, const struct device_question *q)
{
	struct device_sums s = { .use_permille = DEVICE_NOT_TOLD,
				 .replica_mib = largest_replica(d, q),
				 .stranded_permille = DEVICE_NOT_TOLD };
	struct room room = { 0 };
	int64_t use = 0, told = 0, usable = 0;
	const char *node = "";

	for (size_t i = 0; i < d.count; i++) {
		const struct device *g = &d.items[i];
		if (strcmp(node, g->node) != 0)
			usable += end_node(&room, q->gpus_per_replica);
		node = g->node;
		if (!q->is_pools_node(q->user, g->node))
			continue;
		add(&s, g, &use, &told);
		if (!*g->pod && s.replica_mib != DEVICE_NOT_TOLD &&
		    or_zero(g->value[DEVICE_MEMORY_FREE]) >= s.replica_mib) {
			room.fitting++;
			room.memory_mib += g->value[DEVICE_MEMORY_FREE];
		}
	}
	usable += end_node(&room, q->gpus_per_replica);
	if (told)
		s.use_permille = use / told;
	if (s.replica_mib != DEVICE_NOT_TOLD && s.memory_free_mib > 0)
		s.stranded_permille = (s.memory_free_mib - usable) * 1000 / s.memory_free_mib;
	return s;
}
