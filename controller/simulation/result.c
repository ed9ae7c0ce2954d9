#include "controller/simulation/parts.h"

struct world_totals pool_totals(const struct pool_state *p)
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
