#include "controller/simulation/queue_forms.h"

#include <stdlib.h>

struct running_request {
	millis end;
	uint32_t seat : 31;
	uint32_t is_late : 1; /* and was counted */
	uint32_t request;
};

/* A request whose replica was taken away; it waits in front of all that never started. */
struct returned_request {
	millis since;
	uint32_t request;
	bool is_late; /* and was counted */
};

struct request_form {
	const struct request *requests;
	size_t count, head, next;		/* [head, next) waits, `next` arrives next */
	LIST(struct returned_request) returned; /* earliest arrival last */
	LIST(struct running_request) running;	/* heap, earliest end first */
	size_t *by_load;			/* first open seat with so many running, up to slots */
	int64_t lowest;				/* no open seat has fewer running */
};

static bool ends_before(const struct running_request *a, const struct running_request *b)
{
	return a->end != b->end ? a->end < b->end : a->request < b->request;
}

static void sink(struct request_form *f, size_t at)
{
	struct running_request *heap = f->running.items, moved = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= f->running.count)
			break;
		if (child + 1 < f->running.count && ends_before(&heap[child + 1], &heap[child]))
			child++;
		if (!ends_before(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void heap_add(struct queue *q, struct running_request r)
{
	struct request_form *f = q->requests;

	LIST_ROOM(q->arena, &f->running);
	struct running_request *heap = f->running.items;
	size_t at = f->running.count++;
	while (at > 0 && ends_before(&r, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = r;
}

static struct running_request heap_take(struct request_form *f)
{
	struct running_request first = f->running.items[0];

	f->running.items[0] = f->running.items[--f->running.count];
	if (f->running.count)
		sink(f, 0);
	return first;
}

static void seat_link(struct queue *q, size_t seat)
{
	struct request_form *f = q->requests;
	struct seat *s = &q->seats.items[seat];

	s->before = NONE;
	s->after = f->by_load[s->running];
	if (s->after != NONE)
		q->seats.items[s->after].before = seat;
	f->by_load[s->running] = seat;
	if (s->running < f->lowest)
		f->lowest = s->running;
}

static void seat_unlink(struct queue *q, size_t seat)
{
	struct seat *s = &q->seats.items[seat];

	if (s->before != NONE)
		q->seats.items[s->before].after = s->after;
	else
		q->requests->by_load[s->running] = s->after;
	if (s->after != NONE)
		q->seats.items[s->after].before = s->before;
}

/* NONE when every slot is taken. */
static size_t least_loaded(struct queue *q)
{
	struct request_form *f = q->requests;

	while (f->lowest < q->truth.slots && f->by_load[f->lowest] == NONE)
		f->lowest++;
	return f->lowest < q->truth.slots ? f->by_load[f->lowest] : NONE;
}

static millis service_of(const struct queue *q, size_t request)
{
	const struct request *r = &q->requests->requests[request];

	return queue_service_ms(queue_service(&q->truth, r->prompt_tokens, r->output_tokens));
}

static struct label_use *label_of(struct queue *q, size_t request)
{
	int32_t label = q->requests->requests[request].label;

	return q->labels && label >= 0 ? &q->labels[label] : NULL;
}

static bool is_late(const struct queue *q, size_t request, millis since, millis end, millis now)
{
	if (q->truth.deadline)
		return end > q->requests->requests[request].arrival + q->truth.deadline;
	return now - since > q->truth.objective_wait;
}

static void count_late(struct queue *q, size_t request)
{
	struct label_use *label = label_of(q, request);

	q->late++;
	if (label)
		label->late++;
}

static void seat_take(struct queue *q, size_t seat, size_t request, millis since, bool was_late, millis now)
{
	millis service = service_of(q, request);
	struct label_use *label = label_of(q, request);

	seat_unlink(q, seat);
	q->seats.items[seat].running++;
	seat_link(q, seat);
	bool late = was_late || is_late(q, request, since, now + service, now);
	heap_add(q, (struct running_request){ now + service, (uint32_t)seat & INT32_MAX, late, (uint32_t)request });
	q->running++;
	q->started++;
	waits_add(&q->waits, now - since, 1);
	if (late && !was_late)
		count_late(q, request);
	if (label)
		label->slot_ms += service;
}

/* Starts what waits, as far as there are slots. */
void requests_fill(struct queue *q, millis now)
{
	struct request_form *f = q->requests;

	while (q->waiting > 0) {
		size_t seat = least_loaded(q);
		if (seat == NONE)
			return;
		q->waiting--;
		if (f->returned.count) {
			struct returned_request r = f->returned.items[--f->returned.count];
			seat_take(q, seat, r.request, r.since, r.is_late, now);
		} else {
			size_t request = f->head++;
			seat_take(q, seat, request, f->requests[request].arrival, false, now);
		}
	}
}

static void arrive(struct queue *q)
{
	struct request_form *f = q->requests;
	size_t request = f->next++;
	millis now = f->requests[request].arrival;
	struct label_use *label = label_of(q, request);

	q->arrived++;
	q->waiting++;
	if (label)
		label->requests++;
	if (q->deadlines.width)
		deadlines_add(&q->deadlines, now + q->truth.deadline, service_of(q, request));
	requests_fill(q, now);
}

static void complete(struct queue *q)
{
	struct request_form *f = q->requests;
	struct running_request done = heap_take(f);
	struct seat *s = &q->seats.items[done.seat];
	const struct request *r = &f->requests[done.request];

	q->completed++;
	q->prompt_tokens += r->prompt_tokens;
	q->output_tokens += r->output_tokens;
	deadlines_take(&q->deadlines, q->deadlines.width ? service_of(q, done.request) : 0);
	if (s->state == SEAT_DRAINING) {
		q->running_draining--;
		if (--s->running == 0)
			LIST_ADD(q->arena, &q->emptied, ((struct emptied){ done.seat, done.end }));
		return;
	}
	q->running--;
	seat_unlink(q, done.seat);
	s->running--;
	seat_link(q, done.seat);
	requests_fill(q, done.end);
}

static millis gives_up_at(const struct queue *q)
{
	const struct request_form *f = q->requests;
	millis at = INT64_MAX;

	if (!q->truth.patience || !q->waiting)
		return at;
	if (f->returned.count)
		at = f->returned.items[f->returned.count - 1].since + q->truth.patience;
	if (f->head < f->next && f->requests[f->head].arrival + q->truth.patience < at)
		at = f->requests[f->head].arrival + q->truth.patience;
	return at;
}

static void give_up(struct queue *q, millis now)
{
	struct request_form *f = q->requests;
	bool counted = false;
	millis since = 0;
	size_t request;

	if (f->returned.count && f->returned.items[f->returned.count - 1].since + q->truth.patience <= now) {
		struct returned_request r = f->returned.items[--f->returned.count];
		request = r.request;
		since = r.since;
		counted = r.is_late;
	} else {
		request = f->head++;
		since = f->requests[request].arrival;
	}
	q->waiting--;
	q->gave_up++;
	deadlines_take(&q->deadlines, q->deadlines.width ? service_of(q, request) : 0);
	if (!counted && (q->truth.deadline || now - since > q->truth.objective_wait))
		count_late(q, request);
}

void requests_advance(struct queue *q, millis until)
{
	struct request_form *f = q->requests;

	for (;;) {
		millis done = f->running.count ? f->running.items[0].end : INT64_MAX;
		millis quits = gives_up_at(q);
		millis arrives = f->next < f->count ? f->requests[f->next].arrival : INT64_MAX;
		if (done <= quits && done <= arrives) {
			if (done > until)
				return;
			complete(q);
		} else if (quits <= arrives) {
			if (quits > until)
				return;
			give_up(q, quits);
		} else {
			if (arrives > until)
				return;
			arrive(q);
		}
	}
}

void requests_open(struct queue *q)
{
	struct request_form *f = arena_new(q->arena, struct request_form);

	if (q->trace) {
		f->requests = q->trace->requests;
		f->count = q->trace->request_count;
	}
	f->by_load = arena_array(q->arena, size_t, (size_t)q->truth.slots + 1);
	for (int64_t i = 0; i <= q->truth.slots; i++)
		f->by_load[i] = NONE;
	f->lowest = q->truth.slots;
	q->requests = f;
}

void requests_seat_open(struct queue *q, size_t seat, millis now)
{
	seat_link(q, seat);
	requests_fill(q, now);
}

millis requests_seat_drain(struct queue *q, size_t seat)
{
	int64_t running = q->seats.items[seat].running;

	seat_unlink(q, seat);
	q->running -= running;
	q->running_draining += running;
	return running ? -1 : 0;
}

static int by_arrival_descending(const void *a, const void *b)
{
	uint32_t x = ((const struct returned_request *)a)->request, y = ((const struct returned_request *)b)->request;

	return x < y ? 1 : x > y ? -1 : 0;
}

int64_t requests_seat_lose(struct queue *q, size_t seat, millis now)
{
	struct request_form *f = q->requests;
	struct seat *s = &q->seats.items[seat];
	size_t kept = 0;
	int64_t lost = 0;

	if (s->state == SEAT_OPEN) {
		seat_unlink(q, seat);
		q->running -= s->running;
	} else {
		q->running_draining -= s->running;
	}
	q->waiting += s->running;
	q->returned += s->running;
	for (size_t i = 0; i < f->running.count; i++) {
		struct running_request r = f->running.items[i];
		if (r.seat != seat) {
			f->running.items[kept++] = r;
			continue;
		}
		lost += now - (r.end - service_of(q, r.request));
		LIST_ADD(q->arena, &f->returned, ((struct returned_request){ now, r.request, r.is_late }));
	}
	f->running.count = kept;
	for (size_t i = kept / 2; i-- > 0;)
		sink(f, i);
	if (f->returned.count)
		qsort(f->returned.items, f->returned.count, sizeof *f->returned.items, by_arrival_descending);
	return lost;
}

int64_t requests_waiting_late(const struct queue *q, millis now)
{
	const struct request_form *f = q->requests;
	int64_t late = 0;

	for (size_t i = f->head; i < f->next; i++)
		late += is_late(q, i, f->requests[i].arrival, now, now);
	for (size_t i = 0; i < f->returned.count; i++) {
		const struct returned_request *r = &f->returned.items[i];
		late += !r->is_late && is_late(q, r->request, r->since, now, now);
	}
	return late;
}

double requests_slot_ms(const struct queue *q, millis span)
{
	const struct request_form *f = q->requests;
	double sum = 0;

	for (size_t i = 0; i < f->count && f->requests[i].arrival < span; i++)
		sum += (double)service_of(q, i);
	return sum;
}
