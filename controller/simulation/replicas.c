#include "controller/simulation/modelled_world.h"

void pool_event(struct world *w, struct holding *h, struct event_input e)
{
	e.group = (int64_t)h->index;
	LIST_ADD(&w->arena, &h->pool->events, e);
}

static size_t replica_add(struct world *w, struct holding *h, size_t node, enum start_kind kind)
{
	struct pool_state *p = h->pool;
	size_t id = w->unused_replicas.count ? w->unused_replicas.items[--w->unused_replicas.count] : w->replicas.count;

	if (id == w->replicas.count)
		LIST_ADD(&w->arena, &w->replicas, ((struct replica){ 0 }));
	*replica_of(w, id) = (struct replica){
		.state = REPLICA_STARTING,
		.kind = kind,
		.serial = ++w->serials,
		.holding = h,
		.node = node,
		.next_on_node = NONE,
		.before = p->last_start,
		.after = NONE,
		.asked_at = w->now,
	};
	if (p->last_start != NONE)
		replica_of(w, p->last_start)->after = id;
	else
		p->first_start = id;
	p->last_start = id;
	return id;
}

static void leave_starts(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	struct pool_state *p = r->holding->pool;

	if (r->before != NONE)
		replica_of(w, r->before)->after = r->after;
	else
		p->first_start = r->after;
	if (r->after != NONE)
		replica_of(w, r->after)->before = r->before;
	else
		p->last_start = r->before;
}

static void leave_ready(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	struct holding *h = r->holding;
	size_t last = h->ready.items[--h->ready.count];

	h->ready.items[r->position] = last;
	replica_of(w, last)->position = r->position;
}

static void enter_node(struct world *w, size_t id, size_t node)
{
	struct node *n = node_of(w, node);

	replica_of(w, id)->next_on_node = n->first;
	n->first = id;
	n->gpus_held += replica_of(w, id)->holding->pool->spec->gpus_per_replica;
	w->offers -= n->is_offered;
	n->is_offered = false;
	node_bill(w, node, w->now);
}

static void leave_node(struct world *w, size_t id, millis at)
{
	struct replica *r = replica_of(w, id);
	struct node *n = node_of(w, r->node);
	size_t *link = &n->first;

	while (*link != id)
		link = &replica_of(w, *link)->next_on_node;
	*link = r->next_on_node;
	n->gpus_held -= r->holding->pool->spec->gpus_per_replica;
	meter_change(&r->holding->hot, -r->billed_milli, at);
	r->billed_milli = 0;
	node_bill(w, r->node, at);
}

static void replica_forget(struct world *w, size_t id)
{
	replica_of(w, id)->state = REPLICA_UNUSED;
	replica_of(w, id)->serial = 0;
	LIST_ADD(&w->arena, &w->unused_replicas, id);
}

static void begin_stage(struct world *w, size_t id, millis wait)
{
	struct replica *r = replica_of(w, id);

	if (r->stage != r->lead.stuck_in)
		happens_add(w, w->now + wait + r->lead.stage[r->stage], HAPPENS_STAGE, id, r->serial);
}

size_t replica_start(struct world *w, struct holding *h, size_t node, enum start_kind kind,
		     const struct lead_draw *lead)
{
	size_t id = replica_add(w, h, node, kind);
	struct replica *r = replica_of(w, id);
	millis total = lead->wait;

	r->lead = *lead;
	for (size_t i = 0; i < STAGE_COUNT; i++)
		total += lead->stage[i];
	r->stage = kind == START_PLACE && lead->is_staged ? STAGE_IMAGE : 0;
	r->expected_at = w->now + total;
	h->starting++;
	enter_node(w, id, node);
	if (lead->stuck_in < STAGE_COUNT || total > lead->deadline)
		happens_add(w, w->now + lead->deadline, HAPPENS_GIVEN_UP, id, r->serial);
	begin_stage(w, id, lead->wait);
	return id;
}

void replica_refuse(struct world *w, struct holding *h, size_t node, enum start_kind kind, enum error_kind why)
{
	size_t id = replica_add(w, h, node, kind);
	millis after = kind == START_WAKE ? WAKE_REFUSED_AFTER : REFUSED_AFTER;

	replica_of(w, id)->refusal = why;
	happens_add(w, w->now + after, HAPPENS_REFUSAL, id, replica_of(w, id)->serial);
}

static void refusal_ends(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);

	if (r->node != NONE && node_of(w, r->node)->state == NODE_REFUSING) {
		node_of(w, r->node)->state = NODE_STOPPED;
		LIST_ADD(&w->arena, &r->holding->stopped, r->node);
	}
	leave_starts(w, id);
	replica_forget(w, id);
}

static void refused(struct world *w, size_t id)
{
	const struct replica *r = replica_of(w, id);

	r->holding->pool->totals.refused++;
	pool_event(w, r->holding,
		   (struct event_input){
			   .what = EVENT_REFUSED, .kind = (int64_t)r->kind, .value = (int64_t)r->refusal, .count = 1 });
	refusal_ends(w, id);
}

static void node_is_empty(struct world *w, size_t node, enum start_kind kind)
{
	switch (kind) {
	case START_WAKE:
		node_stop(w, node, w->now);
		break;
	case START_RECLAIM:
		break; /* reclaim_undo() knows */
	case START_COLD:
	case START_REFILL:
	case START_PLACE:
	case START_KIND_COUNT:
		node_remove(w, node, w->now);
		break;
	}
}

void replica_cancel(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	size_t node = r->node;
	enum start_kind kind = r->kind;

	if (r->refusal != ERROR_NONE) {
		r->holding->pool->totals.refused++;
		refusal_ends(w, id);
		return;
	}
	leave_starts(w, id);
	r->holding->starting--;
	leave_node(w, id, w->now);
	replica_forget(w, id);
	if (node_of(w, node)->first == NONE)
		node_is_empty(w, node, kind);
	if (kind == START_RECLAIM)
		reclaim_undo(w, node, w->now);
}

static void serve(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	struct holding *h = r->holding;

	r->state = REPLICA_READY;
	r->position = h->ready.count;
	LIST_ADD(&w->arena, &h->ready, id);
	node_run(w, r->node);
	queue_seat_open(&h->pool->queue, id, w->now);
}

static void start_ends(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	size_t node = r->node;

	pool_event(
		w, r->holding,
		(struct event_input){
			.what = EVENT_SERVING, .kind = (int64_t)r->kind, .value = w->now - r->asked_at, .count = 1 });
	leave_starts(w, id);
	r->holding->starting--;
	if (r->kind != START_REFILL) {
		serve(w, id);
		return;
	}
	leave_node(w, id, w->now);
	replica_forget(w, id);
	if (node_of(w, node)->first == NONE)
		node_stop(w, node, w->now);
}

static void stage_ends(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);

	if (r->lead.is_staged && r->lead.stage[r->stage] > 0)
		pool_event(w, r->holding,
			   (struct event_input){ .what = EVENT_STAGE,
						 .kind = (int64_t)r->kind,
						 .stage = (int64_t)r->stage,
						 .value = r->lead.stage[r->stage],
						 .count = 1 });
	if (r->lead.is_staged && ++r->stage < STAGE_COUNT)
		begin_stage(w, id, 0);
	else
		start_ends(w, id);
}

static void given_up(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);

	pool_event(w, r->holding,
		   (struct event_input){ .what = EVENT_STUCK,
					 .kind = (int64_t)r->kind,
					 .stage = (int64_t)r->stage,
					 .value = w->now - r->asked_at,
					 .count = 1 });
	replica_cancel(w, id);
}

void replica_drain(struct world *w, size_t id, enum fate fate)
{
	struct replica *r = replica_of(w, id);
	millis empty = queue_seat_drain(&r->holding->pool->queue, id, w->now);

	leave_ready(w, id);
	r->state = REPLICA_DRAINING;
	r->fate = fate;
	r->holding->draining++;
	if (empty >= 0)
		happens_add(w, empty > w->now ? empty : w->now, HAPPENS_DRAINED, id, r->serial);
}

static void drained(struct world *w, size_t id, millis at)
{
	struct replica *r = replica_of(w, id);
	size_t node = r->node;
	enum fate fate = r->fate;

	queue_seat_close(&r->holding->pool->queue, id);
	r->holding->draining--;
	leave_node(w, id, at);
	replica_forget(w, id);
	if (node_of(w, node)->first != NONE)
		return;
	switch (fate) {
	case FATE_DELETE:
		node_remove(w, node, at);
		break;
	case FATE_STOP:
		node_stop(w, node, at);
		break;
	case FATE_GIVE:
		node_give(w, node, at);
		break;
	}
}

int64_t replica_evict(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	int64_t lost = 0;

	r->holding->pool->totals.lost++;
	switch (r->state) {
	case REPLICA_STARTING:
		leave_starts(w, id);
		r->holding->starting--;
		break;
	case REPLICA_READY:
		leave_ready(w, id);
		lost = queue_seat_lose(&r->holding->pool->queue, id, w->now);
		break;
	case REPLICA_DRAINING:
		r->holding->draining--;
		lost = queue_seat_lose(&r->holding->pool->queue, id, w->now);
		break;
	case REPLICA_UNUSED:
		break;
	}
	leave_node(w, id, w->now);
	replica_forget(w, id);
	return lost;
}

void replica_happens(struct world *w, const struct happens *h)
{
	if (replica_of(w, h->subject)->serial != h->serial)
		return;
	switch (h->what) {
	case HAPPENS_STAGE:
		stage_ends(w, h->subject);
		break;
	case HAPPENS_REFUSAL:
		refused(w, h->subject);
		break;
	case HAPPENS_GIVEN_UP:
		if (replica_of(w, h->subject)->state == REPLICA_STARTING)
			given_up(w, h->subject);
		break;
	case HAPPENS_DRAINED:
		drained(w, h->subject, h->at);
		break;
	case HAPPENS_LOSS:
	case HAPPENS_OFFER_ENDS:
	case HAPPENS_LOSS_WINDOW:
		break;
	}
}

/* Youngest first. */
void holding_cancel(struct world *w, struct holding *h, enum start_kind kind, int64_t count)
{
	size_t id = h->pool->last_start;

	while (count > 0 && id != NONE) {
		size_t before = replica_of(w, id)->before;
		if (replica_of(w, id)->holding == h && replica_of(w, id)->kind == kind) {
			replica_cancel(w, id);
			count--;
		}
		id = before;
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

struct tenants node_tenants(const struct world *w, const struct node *n, const struct holding *h)
{
	struct tenants t = { 0 };

	for (size_t i = n->first; i != NONE; i = w->replicas.items[i].next_on_node) {
		const struct replica *r = &w->replicas.items[i];
		if (r->holding == h && r->state == REPLICA_READY)
			t.ready++;
		else if (r->state != REPLICA_DRAINING)
			t.others++;
	}
	return t;
}

struct choice {
	bool is_wrong_owner; /* lent nodes are given back, our own are stopped or deleted */
	struct tenants tenants;
	int64_t running;
	size_t replica;
};

static bool is_better(const struct choice *a, const struct choice *b)
{
	if (a->is_wrong_owner != b->is_wrong_owner)
		return b->is_wrong_owner;
	if (a->tenants.others != b->tenants.others)
		return a->tenants.others < b->tenants.others;
	if (a->tenants.ready != b->tenants.ready)
		return a->tenants.ready < b->tenants.ready;
	if (a->running != b->running)
		return a->running < b->running;
	return a->replica < b->replica;
}

/* The node that empties soonest, nobody else's first, and on it the replica with the least to do. */
static size_t choose(const struct world *w, const struct holding *h, enum fate fate)
{
	struct choice best = { .replica = NONE };

	for (size_t i = 0; i < h->ready.count; i++) {
		size_t id = h->ready.items[i];
		const struct node *n = &w->nodes.items[w->replicas.items[id].node];
		struct choice c = { .is_wrong_owner = n->is_foreign != (fate == FATE_GIVE),
				    .tenants = node_tenants(w, n, h),
				    .running = queue_seat_running(&h->pool->queue, id),
				    .replica = id };
		if (best.replica == NONE || is_better(&c, &best))
			best = c;
	}
	return best.replica;
}

static void release(struct world *w, struct holding *h, int64_t count, enum fate fate)
{
	for (; count > 0 && h->ready.count > 0; count--)
		replica_drain(w, choose(w, h, fate), fate);
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void holding_release(struct world *w, struct holding *h, const struct group_decision *d)
{
	int64_t give = least(d->give_back, d->release), stop = least(d->stop, d->release - give);

	release(w, h, give, FATE_GIVE);
	release(w, h, stop, FATE_STOP);
	release(w, h, d->release - give - stop, FATE_DELETE);
}
