#include "controller/loop/metering.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/web/published.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL_SETS_SHOWN = 100 }; /* of a pool; the rest is told as one */

/* A part of a pool's bill. */
struct label_part {
	struct cost_labels labels;
	uint32_t hash;		     /* of the labels */
	const struct label_set *set; /* of the pods it came from first: equal pointers, equal labels */
	int64_t gpus_milli;
	__int128 price; /* of these GPUs, micro-dollars per hour times 1000 */
	int64_t gpu_ms, dollars;
};

struct label_parts {
	struct label_part *items;
	size_t count, room;
};

/* One pool since the process started. */
struct pool_account {
	char key[130]; /* NAMESPACE/NAME */
	int64_t busy_ppm;
	struct cost_sums sums, tick; /* tick: of the one under way */
	struct label_parts tick_labels;
	struct published_label_cost *labels;
	size_t label_count;
};

/* A pod that holds GPUs for nothing, as far as is known. */
struct held {
	uint64_t uid[2];
	enum holding_kind kind;
	bool is_seen;		  /* in the look under way */
	millis since, seen, told; /* told 0: not yet */
	int64_t used_most;	  /* thousandths of GPUs in use at once; ABSENT when nobody tells */
};

struct metering {
	struct arena texts; /* of labels; never cleared, as few as are shown */
	struct pool_account *pools;
	size_t count, room;
	struct held *held; /* the first held_known by uid */
	size_t held_count, held_known;
	millis looked_at;
};

/* GPUs of one pod whose use is told. */
struct device_use {
	const char *namespace, *pod;
	int64_t told, in_use;
};
struct device_uses {
	struct device_use *items; /* by pod and namespace */
	size_t count;
};

static const struct cost_labels others = { COST_OTHERS, { "", "", "", "" } };

static struct pool_account *find(const struct metering *a, const struct live_pool *p)
{
	if (p->account < a->count && !strcmp(a->pools[p->account].key, p->key))
		return &a->pools[p->account];
	for (size_t i = 0; i < a->count; i++)
		if (!strcmp(a->pools[i].key, p->key))
			return &a->pools[i];
	return NULL;
}

/* A pool that comes and goes keeps its account, which is looked for by name once. */
static struct pool_account *pool_account_of(struct metering *a, struct live_pool *p)
{
	struct pool_account *found = find(a, p);

	if (!found) {
		a->pools = xgrow(a->pools, a->count, &a->room, sizeof *a->pools);
		found = &a->pools[a->count++];
		*found = (struct pool_account){ .busy_ppm = ABSENT };
		memcpy(found->key, p->key, strnlen(p->key, sizeof found->key - 1));
	}
	p->account = (size_t)(found - a->pools);
	return found;
}

/* --- the GPUs that exporters tell of, by the pod that holds them --- */

static int order(const char *namespace, const char *pod, const struct device_use *u)
{
	int by_pod = strcmp(pod, u->pod);

	return by_pod ? by_pod : strcmp(namespace, u->namespace);
}

static int by_pod(const void *left, const void *right)
{
	const struct device_use *a = left;

	return order(a->namespace, a->pod, right);
}

/* Texts live until the loop runs. */
static struct device_uses device_uses_read(const struct controller *c, struct arena *a)
{
	struct device_uses u = { 0 };
	size_t room = 0, told = 0;

	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		room += c->pools[i]->signals.owns_devices ? device_source_show(c->pools[i]->signals.devices).count : 0;
	u.items = arena_array(a, struct device_use, room + 1);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		if (!c->pools[i]->signals.owns_devices)
			continue;
		struct devices d = device_source_show(c->pools[i]->signals.devices);
		for (size_t k = 0; k < d.count; k++) {
			const struct device *g = &d.items[k];
			int64_t use = g->value[DEVICE_USE];
			if (*g->pod && use != DEVICE_UNKNOWN)
				u.items[told++] = (struct device_use){ g->namespace, g->pod, 1, use > 0 };
		}
	}
	if (told)
		qsort(u.items, told, sizeof *u.items, by_pod);
	for (size_t i = 0; i < told; i++) {
		struct device_use *last = u.count ? &u.items[u.count - 1] : NULL;
		if (!last || by_pod(last, &u.items[i]) != 0) {
			u.items[u.count++] = u.items[i];
			continue;
		}
		last->told += u.items[i].told;
		last->in_use += u.items[i].in_use;
	}
	return u;
}

static const struct device_use *device_uses_find(const struct device_uses *u, const char *namespace, const char *pod)
{
	const struct device_use wanted = { .namespace = namespace, .pod = pod };

	return u->count ? bsearch(&wanted, u->items, u->count, sizeof *u->items, by_pod) : NULL;
}

/* --- pods that hold GPUs for nothing --- */

/* Looked for once a minute, told once it has lasted. What is kept of each is small, and of so many only, that a fleet
 * of idle pods costs little; the history has their names. */
enum { HELD_MOST = 5000 };

static const millis LOOK_EVERY = MINUTE, TELL_EVERY = 10 * MINUTE, READ_LATELY = 5 * MINUTE;

/* How long it must have lasted: work may pause, and pods that ended are cleaned up after a while. */
static const millis patience[HOLDING_KIND_COUNT] = { 30 * MINUTE, 10 * MINUTE, 30 * MINUTE };

static int held_by_pod(const void *left, const void *right)
{
	const struct held *a = left, *b = right;
	int order = (a->uid[0] > b->uid[0]) - (a->uid[0] < b->uid[0]);

	if (!order)
		order = (a->uid[1] > b->uid[1]) - (a->uid[1] < b->uid[1]);
	return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

/* New ones stand behind those of the looks before, which are sorted; no pod comes twice in a look. */
static struct held *held_of(struct metering *a, const struct pod *p, enum holding_kind kind, millis now)
{
	const struct held wanted = { .uid = { p->uid[0], p->uid[1] }, .kind = kind, .since = now, .used_most = ABSENT };
	struct held *found =
		a->held_known ? bsearch(&wanted, a->held, a->held_known, sizeof wanted, held_by_pod) : NULL;

	if (found || a->held_count >= HELD_MOST)
		return found;
	if (!a->held)
		a->held = xcalloc(HELD_MOST, sizeof *a->held);
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
static void note(struct metering *a, struct controller *c, const struct pod *p, enum holding_kind kind, int64_t used)
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
	if (p->state != POD_READY || p->pool < 0 || (size_t)p->pool >= fleet_of(c)->pool_count)
		return false;
	bool is_unused = true;
	for (; p && is_unused; p = p->beside)
		is_unused = pool_signals_in_flight(c, (size_t)p->pool, p, scratch, &in_flight, &age) &&
			    age < READ_LATELY && in_flight == 0;
	return is_unused;
}

static void look_at(struct metering *a, struct controller *c, const struct pod *p, const struct device_uses *uses,
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
static void settle(struct metering *a, struct controller *c)
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
		qsort(a->held, kept, sizeof *a->held, held_by_pod);
}

static void look_at_idle(struct metering *a, struct controller *c)
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

/* --- the bill by labels --- */

/* A pool's bill by the labels of who holds its GPUs. A node's GPUs are shared over the pods that hold any of them, in
 * proportion; what no pod holds (machines that start or stand empty, placeholders, stopped ones) stays without one. */

static struct cost_labels labels_of(const struct cost_labels_text *names, const struct pod *p)
{
	const char *const keys[COST_LABEL_COUNT] = { names->cost_center, names->product, names->environment,
						     names->workload_type };
	struct cost_labels l = { .holder = COST_BY_PODS };

	for (int i = 0; i < COST_LABEL_COUNT; i++) {
		const char *value = keys[i] && keys[i][0] ? pod_label(p, keys[i]) : NULL;
		l.value[i] = value ? value : "";
	}
	return l;
}

/* FNV-1a. */
static uint32_t hash_of(const struct cost_labels *l)
{
	uint32_t hash = 2166136261u + (uint32_t)l->holder;

	for (int i = 0; i < COST_LABEL_COUNT; i++)
		for (const char *at = l->value[i];; at++) {
			hash = (hash ^ (unsigned char)*at) * 16777619u;
			if (!*at)
				break;
		}
	return hash;
}

static struct label_part *add_part(struct label_parts *parts, const struct cost_labels *labels)
{
	parts->items = xgrow(parts->items, parts->count, &parts->room, sizeof *parts->items);
	struct label_part *made = &parts->items[parts->count++];
	*made = (struct label_part){ .labels = *labels, .hash = hash_of(labels) };
	return made;
}

static struct label_part *find_part(struct label_parts *parts, const struct cost_labels *labels)
{
	uint32_t hash = hash_of(labels);

	for (size_t i = 0; i < parts->count; i++)
		if (parts->items[i].hash == hash && cost_labels_equal(&parts->items[i].labels, labels))
			return &parts->items[i];
	return NULL;
}

/* As many as the history keeps apart: whoever gives each pod labels of its own shall not slow the tick. */
static struct label_part *part_of(struct label_parts *parts, const struct cost_labels_text *names, const struct pod *p)
{
	for (size_t i = 0; i < parts->count; i++)
		if (parts->items[i].set == p->labels && p->labels)
			return &parts->items[i];
	struct cost_labels labels = labels_of(names, p);
	struct label_part *part = find_part(parts, &labels);
	if (!part && parts->count >= COST_LABEL_SETS) {
		part = find_part(parts, &others);
		return part ? part : add_part(parts, &others);
	}
	if (part)
		return part;
	part = add_part(parts, &labels);
	part->set = p->labels;
	return part;
}

static bool holds(const struct pod *p)
{
	return pod_counts(p) && p->has_gpus && !p->is_placeholder && p->gpus_milli > 0;
}

static void share_node(struct metering *a, struct controller *c, size_t group, const struct node *n,
		       struct arena *scratch)
{
	const struct group_spec *g = &fleet_of(c)->groups[group];
	const struct pod **pods;
	size_t count;
	int64_t held = 0;

	pods = cluster_node_pods(c->cluster, n, scratch, &count);
	for (size_t i = 0; i < count; i++)
		held += holds(pods[i]) ? pods[i]->gpus_milli : 0;
	for (size_t i = 0; i < count && held > 0; i++) {
		if (!holds(pods[i]))
			continue;
		/* On its pool's bill where that uses the group, else on that of the first pool of the group. */
		bool is_own = pods[i]->pool >= 0 && pool_position(fleet_of(c), (size_t)pods[i]->pool, group) >= 0;
		size_t pool = is_own ? (size_t)pods[i]->pool : first_pool(fleet_of(c), group);
		struct label_parts *parts = &pool_account_of(a, c->pools[pool])->tick_labels;
		struct label_part *part = part_of(parts, &c->manifest.pools[pool].spec.cost_labels, pods[i]);
		int64_t gpus = (int64_t)((__int128)g->gpus_per_node * 1000 * pods[i]->gpus_milli / held);
		part->gpus_milli += gpus;
		part->price += (__int128)gpus * g->price_per_hour / g->gpus_per_node;
	}
}

/* What the pool is billed for now and no pod holds. */
static struct label_part nobody(const struct controller *c, size_t pool, const struct label_parts *parts)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct label_part left = { .labels = { COST_NO_POD, { "", "", "", "" } } };

	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet_of(c)->groups[spec->groups[i]];
		int64_t billed = c->snapshot.pools[pool].groups[i].billed_gpus_milli;
		left.gpus_milli += billed;
		left.price += (__int128)billed * g->price_per_hour / g->gpus_per_node;
	}
	for (size_t i = 0; i < parts->count; i++) {
		left.gpus_milli -= parts->items[i].gpus_milli;
		left.price -= parts->items[i].price;
	}
	if (left.gpus_milli < 0)
		left.gpus_milli = 0;
	if (left.price < 0)
		left.price = 0;
	return left;
}

static void share_bill(struct controller *c, size_t pool, struct pool_account *p, struct arena *scratch)
{
	struct label_parts *parts = &p->tick_labels;
	struct label_part left = nobody(c, pool, parts);

	*add_part(parts, &left.labels) = left;
	int64_t *weights = arena_array(scratch, int64_t, parts->count), *out;
	out = arena_array(scratch, int64_t, parts->count);
	/* The last one takes what has no weight: a bill of machines that nobody holds yet. */
	for (size_t i = 0; i < parts->count; i++)
		weights[i] = parts->items[parts->count - 1 - i].gpus_milli;
	cost_spread(cost_billed_gpu_ms(&p->tick), weights, parts->count, out);
	for (size_t i = 0; i < parts->count; i++)
		parts->items[parts->count - 1 - i].gpu_ms = out[i];
	for (size_t i = 0; i < parts->count; i++)
		weights[i] = (int64_t)(parts->items[parts->count - 1 - i].price / 1000);
	cost_spread(cost_micro_dollars(&p->tick) - p->tick.dollars[GPU_STANDBY], weights, parts->count, out);
	for (size_t i = 0; i < parts->count; i++)
		parts->items[parts->count - 1 - i].dollars = out[i];
	parts->items[parts->count - 1].dollars += p->tick.dollars[GPU_STANDBY];
}

static void share_bills(struct metering *a, struct controller *c, struct arena *scratch)
{
	for (size_t g = 0; g < fleet_of(c)->group_count; g++) {
		size_t count;
		const struct node **nodes = cluster_nodes(c->cluster, (int)g, scratch, &count);

		for (size_t i = 0; i < count; i++)
			share_node(a, c, g, nodes[i], scratch);
	}
	for (size_t pool = 0; pool < fleet_of(c)->pool_count; pool++) {
		struct pool_account *p = pool_account_of(a, c->pools[pool]);

		share_bill(c, pool, p, scratch);
		for (size_t i = 0; i < p->tick_labels.count; i++) {
			const struct label_part *part = &p->tick_labels.items[i];
			if (part->gpu_ms || part->dollars)
				history_cost_label(c->history, c->snapshot.now, pool, &part->labels, part->gpu_ms,
						   part->dollars);
		}
	}
}

/* --- the tick --- */

/* A tick that comes later stands for the time since the one before, up to so many intervals: beyond that nobody saw. */
enum { INTERVALS_MOST = 4 };

/* Whoever recorded the tick before: what another leader billed is billed. */
static millis elapsed(const struct controller *c)
{
	millis interval = c->settings.interval, before = history_last_at(c->history), since = c->snapshot.now - before;

	if (!before || since <= 0)
		return interval;
	return since < INTERVALS_MOST * interval ? since : interval;
}

static void bill(struct metering *a, struct controller *c, size_t pool, millis time)
{
	const struct cost_tick t = { &c->snapshot, pool, &c->plan.pools[pool], time, NULL };
	struct pool_account *p = pool_account_of(a, c->pools[pool]);

	p->tick = (struct cost_sums){ 0 };
	cost_add_tick(&p->tick, &t, &p->busy_ppm);
	history_cost(c->history, c->snapshot.now, pool, fleet_of(c)->pools[pool].class, &p->tick);
}

static void note_quotas(struct controller *c, millis time, struct arena *scratch)
{
	size_t count;
	const struct quota *quotas = cluster_quotas(c->cluster, scratch, &count);

	for (size_t i = 0; i < count; i++) {
		const struct quota *q = &quotas[i];
		history_quota(c->history, c->snapshot.now, time,
			      &(struct quota_seen){ q->namespace, q->name, q->resource, q->hard, q->used });
	}
}

void metering_tick(struct metering *a, struct controller *c)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	millis time = elapsed(c);

	for (size_t i = 0; i < a->count; i++) {
		a->pools[i].tick = (struct cost_sums){ 0 };
		a->pools[i].tick_labels.count = 0;
	}
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		bill(a, c, i, time);
	share_bills(a, c, &scratch);
	note_quotas(c, time, &scratch);
	look_at_idle(a, c);
}

/* --- since the process started --- */

static struct published_label_cost *shown_as(struct metering *a, struct pool_account *p, const struct cost_labels *l)
{
	for (size_t i = 0; i < p->label_count; i++)
		if (cost_labels_equal(&p->labels[i].labels, l))
			return &p->labels[i];
	if (p->label_count >= LABEL_SETS_SHOWN && l->holder == COST_BY_PODS)
		return shown_as(a, p, &others);
	p->labels = xrealloc(p->labels, p->label_count + 1, sizeof *p->labels);
	struct published_label_cost *made = &p->labels[p->label_count++];
	*made = (struct published_label_cost){ .labels = *l };
	for (int i = 0; i < COST_LABEL_COUNT; i++)
		made->labels.value[i] = arena_strdup(&a->texts, l->value[i], strlen(l->value[i]));
	return made;
}

void metering_taken(struct metering *a)
{
	for (size_t i = 0; i < a->count; i++) {
		struct pool_account *p = &a->pools[i];

		cost_add(&p->sums, &p->tick);
		for (size_t k = 0; k < p->tick_labels.count; k++) {
			const struct label_part *part = &p->tick_labels.items[k];
			struct published_label_cost *shown = shown_as(a, p, &part->labels);
			shown->gpu_ms += part->gpu_ms;
			shown->dollars += part->dollars;
		}
	}
}

void metering_show(const struct metering *a, const struct controller *c, size_t pool, struct published_pool *out)
{
	const struct pool_account *p = find(a, c->pools[pool]);

	if (!p)
		return;
	out->cost = &p->sums;
	out->label_costs = p->labels;
	out->label_cost_count = p->label_count;
}

struct metering *metering_new(void)
{
	return xnew(struct metering);
}

void metering_free(struct metering *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++) {
		free(a->pools[i].tick_labels.items);
		free(a->pools[i].labels);
	}
	free(a->pools);
	free(a->held);
	arena_release(&a->texts);
	free(a);
}
