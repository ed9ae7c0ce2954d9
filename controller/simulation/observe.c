#include "controller/simulation/parts.h"

static int64_t free_places(const struct world *w, const struct holding *h)
{
	int64_t places = 0, size = h->group->spec->gpus_per_node, need = h->pool->spec->gpus_per_replica;

	if (size < 2 && !w->offers)
		return 0; /* a machine of one GPU that runs is full */
	for (size_t i = 0; i < w->nodes.count; i++) {
		const struct node *n = &w->nodes.items[i];
		if (n->group == h->group->index && node_takes_places(w, n))
			places += (size - n->gpus_held) / need;
	}
	return places;
}

/* Of our own nodes; of lent ones only where there are no others. */
static int64_t least_on_node(const struct world *w, const struct holding *h)
{
	int64_t least[2] = { 0, 0 };

	if (h->group->spec->gpus_per_node == h->pool->spec->gpus_per_replica)
		return h->ready.count > 0;
	for (size_t i = 0; i < h->ready.count; i++) {
		const struct node *n = &w->nodes.items[w->replicas.items[h->ready.items[i]].node];
		struct tenants t = node_tenants(w, n, h);
		if (!t.others && (!least[n->is_foreign] || t.ready < least[n->is_foreign]))
			least[n->is_foreign] = t.ready;
	}
	return least[least[0] == 0];
}

static struct group_input show_group(const struct world *w, const struct holding *h)
{
	return (struct group_input){ .ready = (int64_t)h->ready.count,
				     .draining = h->draining,
				     .least_on_node = least_on_node(w, h),
				     .billed_gpus_milli = h->hot.level,
				     .standby = (int64_t)h->stopped.count * holding_per_node(h),
				     .lent = holding_lent(w, h),
				     .free_places = free_places(w, h),
				     .nodes = h->group->nodes,
				     .standby_nodes = h->group->standby_nodes };
}

static struct start_input show_start(const struct world *w, const struct replica *r)
{
	return (struct start_input){ .group = (int64_t)r->holding->index,
				     .kind = (int64_t)r->kind,
				     .asked_at = w->setup.start + r->asked_at,
				     .stage = (int64_t)r->stage,
				     .count = 1 };
}

static bool are_alike(const struct start_input *a, const struct start_input *b)
{
	return a->group == b->group && a->kind == b->kind && a->asked_at == b->asked_at && a->stage == b->stage;
}

/* Oldest first; those asked together and in one stage are one row. */
static void show_starts(const struct world *w, const struct pool_state *p, struct arena *a, struct pool_snapshot *out)
{
	size_t most = 0, count = 0;

	for (size_t id = p->first_start; id != NONE; id = w->replicas.items[id].after)
		most++;
	struct start_input *rows = arena_array(a, struct start_input, most);
	for (size_t id = p->first_start; id != NONE; id = w->replicas.items[id].after) {
		struct start_input row = show_start(w, &w->replicas.items[id]);
		size_t same = count;
		while (same > 0 && rows[same - 1].asked_at == row.asked_at && !are_alike(&rows[same - 1], &row))
			same--;
		if (same > 0 && are_alike(&rows[same - 1], &row))
			rows[same - 1].count++;
		else
			rows[count++] = row;
	}
	out->starts = rows;
	out->start_count = count;
}

static struct pool_input show_pool(const struct pool_state *p, const struct group_input *groups)
{
	const struct queue *q = &p->queue;
	struct pool_input in = { .scrapes_expected = p->scrapes_expected,
				 .scrapes_fresh = p->scrapes_fresh,
				 .schedule_floor = p->schedule.floor,
				 .schedule_next_floor = p->schedule.next_floor,
				 .schedule_next_at = p->schedule.next_at,
				 .inter_token_latency_us = q->running ? q->truth.inter_token_latency_us : ABSENT,
				 .kv_cache_permille = ABSENT }; /* the model has slots, no KV cache */

	for (size_t i = 0; i < p->spec->group_count; i++) {
		in.ready += groups[i].ready;
		in.draining += groups[i].draining;
		in.lent += groups[i].lent;
	}
	if (!p->scrapes_fresh && p->scrapes_expected)
		in.inter_token_latency_us = ABSENT;
	return in;
}

static struct pool_snapshot show(const struct world *w, const struct pool_state *p, struct arena *a)
{
	struct group_input *groups = arena_array(a, struct group_input, p->spec->group_count);
	struct scrape_input *scrapes = arena_array(a, struct scrape_input, p->scrape_count);
	struct event_input *events = arena_array(a, struct event_input, p->events.count);
	struct deadline_input *deadlines = arena_array(a, struct deadline_input, DEADLINES_SHOWN);
	struct pool_snapshot out = { .scrapes = scrapes,
				     .groups = groups,
				     .events = events,
				     .deadlines = deadlines,
				     .scrape_count = p->scrape_count,
				     .group_count = p->spec->group_count,
				     .event_count = p->events.count };

	for (size_t i = 0; i < p->spec->group_count; i++)
		groups[i] = show_group(w, &p->holdings[i]);
	for (size_t i = 0; i < p->scrape_count; i++)
		scrapes[i] = p->scrapes[i];
	for (size_t i = 0; i < p->events.count; i++)
		events[i] = p->events.items[i];
	out.deadline_count =
		deadlines_show(&p->queue.deadlines, w->now, p->queue.truth.slots, w->setup.start, deadlines);
	show_starts(w, p, a, &out);
	out.input = show_pool(p, groups);
	return out;
}

struct snapshot world_snapshot(const struct world *w, struct arena *a)
{
	struct pool_snapshot *pools = arena_array(a, struct pool_snapshot, w->fleet->pool_count);

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		pools[i] = show(w, &w->pools[i], a);
	return (struct snapshot){ .tick = w->tick - 1,
				  .now = w->setup.start + w->now,
				  .interval = w->setup.interval,
				  .fleet = w->fleet,
				  .pools = pools };
}
