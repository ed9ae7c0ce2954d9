#include "controller/simulation/world.h"

#include "base/buf.h"
#include "controller/simulation/modelled_world.h"

static millis happens_next(const struct world *w);

static struct happens happens_take(struct world *w);

static struct world_totals pool_totals(const struct pool_state *p);

static void world_start_fleet(struct world *w);

static void world_scrape(struct world *w);

static int64_t or_else(int64_t value, int64_t otherwise)
{
	return value > 0 ? value : otherwise;
}

struct queue_truth queue_truth_of(const struct pool_spec *p, const struct pool_world *pw)
{
	int64_t slots = or_else(pw->max_sequences, p->max_sequences) * pw->capacity_permille / 1000;
	int64_t prefill = or_else(pw->prefill_tokens_per_second, p->prefill_tokens_per_second);

	return (struct queue_truth){ .slots = slots > 0 ? slots : 1,
				     .prefill_tokens_per_second = prefill * pw->capacity_permille / 1000,
				     .inter_token_latency_us =
					     or_else(pw->inter_token_latency_us, p->inter_token_latency_us),
				     .spread_permille = pw->length_spread_permille,
				     .objective_wait = p->objective_wait,
				     .patience = pw->patience,
				     .deadline = pw->deadline };
}

struct random world_stream(const struct world *w, const char *purpose, int64_t index)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	buf_printf(&name, "%s/%lld", purpose, (long long)index);
	return random_stream(w->setup.seed, name.text);
}

static void open_groups(struct world *w, const struct world_spec *spec)
{
	w->groups = arena_array(&w->arena, struct group_state, w->fleet->group_count);
	for (size_t i = 0; i < w->fleet->group_count; i++) {
		struct group_state *g = &w->groups[i];
		g->spec = &w->fleet->groups[i];
		g->world = &spec->groups[i];
		g->index = i;
		g->leads = world_stream(w, "lead-times", (int64_t)i);
		g->failures = world_stream(w, "failures", (int64_t)i);
		g->losses = world_stream(w, "losses", (int64_t)i);
		for (size_t k = 0; k < g->world->loss_count; k++)
			happens_add(w, g->world->losses[k].from, HAPPENS_LOSS_WINDOW, i, k);
	}
}

static void open_pool(struct world *w, struct pool_state *p, const struct trace *trace)
{
	struct queue_truth truth = queue_truth_of(p->spec, p->world);

	p->first_start = p->last_start = NONE;
	p->holdings = arena_array(&w->arena, struct holding, p->spec->group_count);
	for (size_t i = 0; i < p->spec->group_count; i++) {
		struct holding *h = &p->holdings[i];
		h->pool = p;
		h->group = &w->groups[p->spec->groups[i]];
		h->index = i;
		int64_t per_node = holding_per_node(h);
		if (p->world->lendable.group == i && per_node > 0)
			h->foreign_free = p->world->lendable.replicas / per_node;
	}
	queue_open(&p->queue, &truth, trace, &w->arena);
}

struct world *world_new(const struct world_setup *setup)
{
	struct arena arena = { 0 };
	struct world *w = arena_new(&arena, struct world);

	w->arena = arena;
	w->setup = *setup;
	w->fleet = setup->fleet;
	struct world_spec spec = setup->spec ? *setup->spec : world_spec_default(setup->fleet, &w->arena);
	open_groups(w, &spec);
	w->pools = arena_array(&w->arena, struct pool_state, w->fleet->pool_count);
	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		w->pools[i].spec = &w->fleet->pools[i];
		w->pools[i].world = &spec.pools[i];
		w->pools[i].index = i;
		open_pool(w, &w->pools[i], setup->traces[i]);
	}
	int64_t readings = (setup->interval + SCRAPE_PERIOD - 1) / SCRAPE_PERIOD;
	w->scrape_period = SCRAPE_PERIOD * ((readings + SCRAPES_MAX - 1) / SCRAPES_MAX);
	w->next_scrape = w->scrape_period;
	world_start_fleet(w);
	return w;
}

void world_free(struct world *w)
{
	if (!w)
		return;
	struct arena arena = w->arena; /* the world lies in it */
	arena_release(&arena);
}

millis world_length(const struct world *w)
{
	millis longest = 0;

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		if (w->setup.traces[i] && w->setup.traces[i]->length > longest)
			longest = w->setup.traces[i]->length;
	return (longest + w->setup.interval - 1) / w->setup.interval * w->setup.interval;
}

static void open_loss_window(struct world *w, const struct happens *h)
{
	struct group_state *g = &w->groups[h->subject];
	const struct loss_window *window = &g->world->losses[h->serial];

	for (size_t i = 0; i < w->nodes.count; i++) {
		const struct node *n = node_of(w, i);
		if (n->group != g->index || n->state != NODE_RUNNING || n->is_foreign)
			continue;
		if (random_uniform(&g->losses) * 1e6 >= (double)window->share_ppm)
			continue;
		millis after = (millis)(random_uniform(&g->losses) * (double)(window->to - window->from));
		happens_add(w, window->from + after, HAPPENS_LOSS, i, n->serial);
	}
}

static void happen(struct world *w, const struct happens *h)
{
	switch (h->what) {
	case HAPPENS_STAGE:
	case HAPPENS_REFUSAL:
	case HAPPENS_GIVEN_UP:
	case HAPPENS_DRAINED:
		replica_happens(w, h);
		break;
	case HAPPENS_LOSS:
		if (node_of(w, h->subject)->serial == h->serial)
			node_lose(w, h->subject);
		break;
	case HAPPENS_OFFER_ENDS:
		if (node_of(w, h->subject)->serial == h->serial)
			node_offer_ends(w, h->subject);
		break;
	case HAPPENS_LOSS_WINDOW:
		open_loss_window(w, h);
		break;
	}
}

/* Replicas that ran empty since the last look; their machines are billed until that very moment. */
static void collect_emptied(struct world *w, struct queue *q)
{
	for (size_t i = 0; i < q->emptied.count; i++) {
		struct emptied *e = &q->emptied.items[i];
		happens_add(w, e->at, HAPPENS_DRAINED, e->seat, replica_of(w, e->seat)->serial);
	}
	q->emptied.count = 0;
}

static void step(struct world *w, millis until)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		queue_advance(&w->pools[i].queue, until);
		collect_emptied(w, &w->pools[i].queue);
	}
	w->now = until;
	while (happens_next(w) <= w->now) {
		struct happens h = happens_take(w);
		happen(w, &h);
	}
}

static millis next_stop(const struct world *w, millis end)
{
	millis next = end < w->next_scrape ? end : w->next_scrape, event = happens_next(w);

	if (event < next)
		next = event;
	return next > w->now ? next : w->now;
}

static void begin_tick(struct world *w, struct pool_state *p)
{
	p->before = pool_totals(p);
	p->scrape_count = 0;
	p->scrapes_expected = p->scrapes_fresh = 0;
	if (!w->has_applied)
		p->events.count = 0;
}

static void end_tick(struct world *w, struct pool_state *p)
{
	millis wall = w->setup.start + w->now;

	for (size_t i = 0; i < p->spec->group_count; i++) {
		meter_advance(&p->holdings[i].hot, w->now);
		meter_advance(&p->holdings[i].standby, w->now);
	}
	if (w->setup.schedule && (!w->tick || (p->schedule.next_at && wall >= p->schedule.next_at)))
		p->schedule = w->setup.schedule(p->spec->schedule, p->spec->schedule_count, wall);
}

void world_advance(struct world *w)
{
	millis end = w->now + w->setup.interval;

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		begin_tick(w, &w->pools[i]);
	w->has_applied = false;
	while (w->now < end || happens_next(w) <= end) {
		step(w, next_stop(w, end));
		if (w->now == w->next_scrape)
			world_scrape(w);
	}
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		end_tick(w, &w->pools[i]);
	w->tick++;
}

const struct pool_world pool_world_default = {
	.capacity_permille = 1000,
	.place_share_permille = 300,
	.length_spread_permille = 1000,
	.initial_replicas = -1,
	.lendable = { .reclaim = { 45 * SECOND, 75 * SECOND }, .restart_loss = MINUTE },
};

const struct group_world group_world_default = { .slow_factor_permille = 3000 };

struct world_spec world_spec_default(const struct fleet_spec *fleet, struct arena *a)
{
	struct pool_world *pools = arena_array(a, struct pool_world, fleet->pool_count);
	struct group_world *groups = arena_array(a, struct group_world, fleet->group_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = pool_world_default;
	for (size_t i = 0; i < fleet->group_count; i++)
		groups[i] = group_world_default;
	return (struct world_spec){ .pools = pools, .groups = groups };
}

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
				     .standby_nodes = h->group->standby_nodes,
				     .standby_first = h->group->standby_first };
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

static const struct telemetry_window *fault_at(const struct pool_world *pw, millis now)
{
	for (size_t i = 0; i < pw->telemetry_count; i++)
		if (now >= pw->telemetry[i].from && now < pw->telemetry[i].to)
			return &pw->telemetry[i];
	return NULL;
}

/* Levels, and counters since the start. */
static struct scrape_input read_queue(const struct world *w, const struct queue *q)
{
	return (struct scrape_input){ .at = w->setup.start + w->now,
				      .ready = (int64_t)q->open_seats,
				      .running = q->running,
				      .running_draining = q->running_draining,
				      .waiting = q->waiting,
				      .full = q->waiting ? (int64_t)q->open_seats : 0, /* one queue for all */
				      .running_full = q->waiting ? q->running : 0,
				      .started = q->started,
				      .late = q->late,
				      .completed = q->completed,
				      .prompt_tokens = q->prompt_tokens,
				      .output_tokens = q->output_tokens };
}

/* What is left when only so many of the replicas answer. */
static void keep_share(struct scrape_input *s, int64_t ppm)
{
	int64_t *told[] = { &s->running,       &s->running_draining, &s->waiting, &s->full,
			    &s->running_full,  &s->started,	     &s->late,	  &s->completed,
			    &s->prompt_tokens, &s->output_tokens };

	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		*told[i] = (int64_t)((__int128)*told[i] * ppm / 1000000);
}

static void scrape_pool(struct world *w, struct pool_state *p)
{
	const struct telemetry_window *fault = fault_at(p->world, w->now);
	struct scrape_input now = read_queue(w, &p->queue), s = now;
	int64_t ready = now.ready, fresh = ready;

	p->scrapes_expected += ready;
	if (fault && fault->fault == TELEMETRY_MISSING)
		return;
	s.started -= p->read_before.started;
	s.late -= p->read_before.late;
	s.completed -= p->read_before.completed;
	s.prompt_tokens -= p->read_before.prompt_tokens;
	s.output_tokens -= p->read_before.output_tokens;
	p->read_before = now;
	if (fault && fault->fault == TELEMETRY_STALE) {
		fresh = ready * (1000000 - fault->share_ppm) / 1000000;
		keep_share(&s, ready ? fresh * 1000000 / ready : 0);
	} else if (fault) {
		keep_share(&s, 0);
	}
	p->scrapes_fresh += fresh;
	if (p->scrape_count < SCRAPES_MAX)
		p->scrapes[p->scrape_count++] = s;
}

/* scrape.c */
static void world_scrape(struct world *w)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		scrape_pool(w, &w->pools[i]);
	w->next_scrape += w->scrape_period;
}

static const struct lead_draw at_once = { .stuck_in = STAGE_COUNT };

static void add_node(struct world *w, struct holding *h, int64_t replicas)
{
	size_t node = node_add(w, h, NODE_BOOTING);

	w->groups[h->group->index].nodes++;
	for (int64_t i = 0; i < replicas; i++)
		replica_start(w, h, node, START_COLD, &at_once);
}

static int64_t wanted(const struct pool_state *p)
{
	if (p->world->initial_replicas >= 0)
		return p->world->initial_replicas;
	return (queue_demand_milli(&p->queue, 10 * MINUTE) + 999) / 1000;
}

static void start_pool(struct world *w, struct pool_state *p)
{
	int64_t left = wanted(p);

	for (size_t i = 0; i < p->spec->group_count; i++) {
		struct holding *h = &p->holdings[i];
		const struct group_spec *g = h->group->spec;
		int64_t per_node = holding_per_node(h);
		while (per_node > 0 && h->group->nodes < g->max_nodes && (left > 0 || h->group->nodes < g->min_nodes)) {
			int64_t here = left < 1 ? 1 : left < per_node ? left : per_node;
			add_node(w, h, here);
			left -= here;
		}
	}
}

/* What serves when the first request comes: what the first ten minutes need, in the preferred groups. */
static void world_start_fleet(struct world *w)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		start_pool(w, &w->pools[i]);
	while (happens_next(w) <= 0) {
		struct happens h = happens_take(w);
		replica_happens(w, &h);
	}
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		w->pools[i].events.count = 0;
}

static bool sooner(const struct happens *a, const struct happens *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void happens_add(struct world *w, millis at, enum happening what, size_t subject, uint64_t serial)
{
	struct happens added = { at, w->orders++, what, subject, serial };

	LIST_ROOM(&w->arena, &w->heap);
	struct happens *heap = w->heap.items;
	size_t i = w->heap.count++;
	for (; i > 0 && sooner(&added, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = added;
}

/* INT64_MAX when nothing will */
static millis happens_next(const struct world *w)
{
	return w->heap.count ? w->heap.items[0].at : INT64_MAX;
}

static struct happens happens_take(struct world *w)
{
	struct happens *heap = w->heap.items, first = heap[0], last = heap[--w->heap.count];
	size_t i = 0, count = w->heap.count;

	for (size_t child = 1; child < count; child = 2 * i + 1) {
		if (child + 1 < count && sooner(&heap[child + 1], &heap[child]))
			child++;
		if (!sooner(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

static struct world_totals pool_totals(const struct pool_state *p)
{
	const struct queue *q = &p->queue;
	struct world_totals t = p->totals;
	int64_t hot = 0, standby = 0;

	t.arrived = q->arrived;
	t.returned = q->returned;
	t.started = q->started;
	t.gave_up = q->gave_up;
	t.late = q->late;
	for (size_t i = 0; i < p->spec->group_count; i++) {
		hot += p->holdings[i].hot.sum;
		standby += p->holdings[i].standby.sum;
		t.micro_dollars += holding_micro_dollars(&p->holdings[i]);
	}
	t.gpu_ms = hot / 1000;
	t.standby_gpu_ms = standby / 1000;
	return t;
}

struct world_totals world_totals(const struct world *w, size_t pool)
{
	struct world_totals t = pool_totals(&w->pools[pool]);

	t.waiting_late = queue_waiting_late(&w->pools[pool].queue, w->now);
	return t;
}

const struct waits *world_waits(const struct world *w, size_t pool)
{
	return &w->pools[pool].queue.waits;
}

struct label_use world_label_use(const struct world *w, size_t pool, size_t label)
{
	const struct queue *q = &w->pools[pool].queue;

	return q->labels ? q->labels[label] : (struct label_use){ 0 };
}

struct tick_result world_result(const struct world *w, size_t pool)
{
	const struct pool_state *p = &w->pools[pool];
	struct world_totals now = pool_totals(p), before = p->before;
	struct tick_result r = { .arrived = now.arrived - before.arrived,
				 .started = now.started - before.started,
				 .late = now.late - before.late,
				 .waiting = p->queue.waiting,
				 .running = p->queue.running,
				 .running_draining = p->queue.running_draining,
				 .starts = now.starts - before.starts,
				 .removals = now.removals - before.removals,
				 .gpu_ms = now.gpu_ms - before.gpu_ms,
				 .micro_dollars = now.micro_dollars - before.micro_dollars,
				 .batch_lost_ms = now.batch_lost_ms - before.batch_lost_ms };

	for (size_t i = 0; i < p->spec->group_count; i++) {
		const struct holding *h = &p->holdings[i];
		r.ready += (int64_t)h->ready.count;
		r.starting += h->starting;
		r.draining += h->draining;
		r.standby += (int64_t)h->stopped.count * holding_per_node(h);
		r.lent += holding_lent(w, h);
	}
	return r;
}
