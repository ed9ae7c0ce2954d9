#include "controller/simulation/queue.h"

#include "base/exact.h"

#include <stddef.h>
#include <stdlib.h>

static void deadlines_open(struct deadline_book *b, millis deadline);
static void deadlines_add(struct deadline_book *b, millis due, int64_t work);
static void deadlines_take(struct deadline_book *b, int64_t work);

static bool is_late(const struct queue *q, size_t request, millis since, millis end, millis now);

double queue_service(const struct queue_truth *t, double prompt_tokens, double output_tokens)
{
	double ms = output_tokens * (double)t->inter_token_latency_us / 1000;

	if (t->prefill_tokens_per_second > 0)
		ms += (double)t->slots * prompt_tokens * 1000 / (double)t->prefill_tokens_per_second;
	return ms;
}

millis queue_service_ms(double service)
{
	return service < 1 ? 1 : service < (double)SERVICE_MOST ? (millis)(service + 0.5) : SERVICE_MOST;
}

enum { POINTS = 16, RING_MOST = 1 << 20 };

/* Like requests that arrived in the same second. */
struct cohort {
	millis since; /* end of the second of arrival, or when its replica was taken away */
	millis arrival;
	int64_t count, work; /* requests; slot-milliseconds in the book of deadlines */
	size_t bin;
	bool is_late; /* and was counted */
};

struct cohort_form {
	const struct bin *bins;
	size_t bin_count, bin; /* the first bin with arrivals still to come */
	millis bin_width, now; /* whole seconds that have passed */
	int64_t *service_ms;   /* mean per bin */
	struct cohort *queue;  /* ring, a power of two */
	size_t queue_head, queue_count, queue_room;
	int64_t *ends, *draining_ends; /* sequences that end in a second, by second modulo the ring */
	size_t ring;
	int64_t points_ppm[POINTS];		/* service times over their mean */
	int64_t carry[POINTS];			/* sixteenths of requests dealt so far: a permutation of 0..15 */
	int64_t debt_ms;			/* service time lost or won by rounding to seconds */
	int64_t running_prompt, running_output; /* tokens of what runs */
	int64_t running_late;			/* of what runs: counted as late */
	int64_t running_work;			/* of what runs, in the book of deadlines */
};

static void make_points(struct cohort_form *f, int64_t spread_permille)
{
	double points[POINTS];

	exact_lognormal_points((double)spread_permille / 1000, points, POINTS);
	for (int i = 0; i < POINTS; i++) {
		f->points_ppm[i] = exact_round(points[i] * 1000000);
		f->carry[i] = (i * 7) % POINTS;
	}
}

static int64_t share_of(int64_t whole, int64_t part, int64_t all)
{
	return part == all ? whole : (int64_t)((double)whole * (double)part / (double)all);
}

/* Slot-milliseconds; absurd traffic stops growing instead of overflowing. */
static int64_t work_of(const struct queue *q, int64_t count, millis service)
{
	int64_t work;

	if (!q->deadlines.width)
		return 0;
	return __builtin_mul_overflow(count, service, &work) || work > DEADLINE_WORK_MOST ? DEADLINE_WORK_MOST : work;
}

static int64_t work_sum(int64_t a, int64_t b)
{
	return a > DEADLINE_WORK_MOST - b ? DEADLINE_WORK_MOST : a + b;
}

static millis mean_service(const struct queue *q, const struct bin *b)
{
	if (!b->requests)
		return 1;
	double n = (double)b->requests;
	return queue_service_ms(queue_service(&q->truth, (double)b->prompt_tokens / n, (double)b->output_tokens / n));
}

static void cohorts_open(struct queue *q)
{
	struct cohort_form *f = arena_new(q->arena, struct cohort_form);
	int64_t longest = 1;

	f->bins = q->trace->bins;
	f->bin_count = q->trace->bin_count;
	f->bin_width = q->trace->bin_width > 0 ? q->trace->bin_width : SECOND;
	f->service_ms = arena_array(q->arena, int64_t, f->bin_count + 1);
	make_points(f, q->truth.spread_permille);
	for (size_t i = 0; i < f->bin_count; i++) {
		f->service_ms[i] = mean_service(q, &f->bins[i]);
		if (f->service_ms[i] > longest)
			longest = f->service_ms[i];
	}
	int64_t seconds = longest / 1000 * (f->points_ppm[POINTS - 1] / 1000 + 1) / 1000 + 16;
	for (f->ring = 64; (int64_t)f->ring <= seconds && f->ring < RING_MOST;)
		f->ring *= 2;
	f->ends = arena_array(q->arena, int64_t, f->ring);
	f->draining_ends = arena_array(q->arena, int64_t, f->ring);
	f->queue_room = 64;
	f->queue = arena_array(q->arena, struct cohort, f->queue_room);
	q->cohorts = f;
}

static void queue_make_room(struct queue *q)
{
	struct cohort_form *f = q->cohorts;

	if (f->queue_count < f->queue_room)
		return;
	struct cohort *grown = arena_array(q->arena, struct cohort, f->queue_room * 2);
	for (size_t i = 0; i < f->queue_count; i++)
		grown[i] = f->queue[(f->queue_head + i) & (f->queue_room - 1)];
	f->queue = grown;
	f->queue_head = 0;
	f->queue_room *= 2;
}

static void queue_back(struct queue *q, struct cohort c)
{
	struct cohort_form *f = q->cohorts;

	queue_make_room(q);
	f->queue[(f->queue_head + f->queue_count++) & (f->queue_room - 1)] = c;
	q->waiting += c.count;
}

static void queue_front(struct queue *q, struct cohort c)
{
	struct cohort_form *f = q->cohorts;

	queue_make_room(q);
	f->queue_head = (f->queue_head - 1) & (f->queue_room - 1);
	f->queue[f->queue_head] = c;
	f->queue_count++;
	q->waiting += c.count;
}

/* Returns its work. */
static int64_t queue_take(struct queue *q, int64_t count)
{
	struct cohort_form *f = q->cohorts;
	struct cohort *c = &f->queue[f->queue_head];
	int64_t work = share_of(c->work, count, c->count);

	c->work -= work;
	c->count -= count;
	q->waiting -= count;
	if (!c->count) {
		f->queue_head = (f->queue_head + 1) & (f->queue_room - 1);
		f->queue_count--;
	}
	return work;
}

/* Takes the slots; returns how many will miss their deadline. */
static int64_t deal(struct queue *q, const struct cohort *c, int64_t count)
{
	struct cohort_form *f = q->cohorts;
	int64_t second = f->now / SECOND, most = (int64_t)f->ring - 1, missed = 0;
	millis due = q->truth.deadline ? c->arrival + q->truth.deadline : INT64_MAX;

	for (int i = 0; i < POINTS; i++) {
		f->carry[i] += count;
		int64_t part = f->carry[i] / POINTS;
		f->carry[i] %= POINTS;
		if (!part)
			continue;
		int64_t ms = f->service_ms[c->bin] * f->points_ppm[i] / 1000000 + f->debt_ms;
		int64_t seconds = ms < SECOND ? 1 : ms / SECOND < most ? ms / SECOND : most;
		f->debt_ms = ms - seconds * SECOND;
		if (f->debt_ms < -4 * SECOND || f->debt_ms > 4 * SECOND)
			f->debt_ms = 0;
		f->ends[(size_t)(second + seconds) & (f->ring - 1)] += part;
		if (f->now + seconds * SECOND > due)
			missed += part;
	}
	return missed;
}

static void start(struct queue *q, const struct cohort *c, int64_t count)
{
	struct cohort_form *f = q->cohorts;
	const struct bin *b = &f->bins[c->bin];
	millis wait = f->now - c->since;
	int64_t late = deal(q, c, count);

	if (!q->truth.deadline)
		late = wait > q->truth.objective_wait ? count : 0;
	q->running += count;
	q->started += count;
	q->late += c->is_late ? 0 : late;
	f->running_late += c->is_late ? count : late;
	f->running_prompt += (int64_t)((double)b->prompt_tokens * (double)count / (double)b->requests);
	f->running_output += (int64_t)((double)b->output_tokens * (double)count / (double)b->requests);
	waits_add(&q->waits, wait, count);
}

static void fill(struct queue *q)
{
	struct cohort_form *f = q->cohorts;
	int64_t room = (int64_t)q->open_seats * q->truth.slots - q->running;

	while (room > 0 && q->waiting > 0) {
		struct cohort *c = &f->queue[f->queue_head];
		int64_t count = c->count < room ? c->count : room;
		start(q, c, count);
		f->running_work = work_sum(f->running_work, queue_take(q, count));
		room -= count;
	}
}

static void give_up(struct queue *q)
{
	struct cohort_form *f = q->cohorts;

	while (q->truth.patience && q->waiting > 0) {
		struct cohort *c = &f->queue[f->queue_head];
		millis wait = f->now - c->since;
		if (wait < q->truth.patience)
			return;
		q->gave_up += c->count;
		if (!c->is_late && (q->truth.deadline || wait > q->truth.objective_wait))
			q->late += c->count;
		deadlines_take(&q->deadlines, queue_take(q, c->count));
	}
}

/* Requests of a bin that have arrived by `at`: spread evenly. */
static int64_t arrived_by(const struct cohort_form *f, const struct bin *b, millis at)
{
	if (at <= b->at)
		return 0;
	return at >= b->at + f->bin_width ? b->requests
					  : (int64_t)((__int128)b->requests * (at - b->at) / f->bin_width);
}

static void arrive(struct queue *q)
{
	struct cohort_form *f = q->cohorts;

	while (f->bin < f->bin_count && f->bins[f->bin].at < f->now) {
		const struct bin *b = &f->bins[f->bin];
		int64_t count = arrived_by(f, b, f->now) - arrived_by(f, b, f->now - SECOND);
		if (count > 0) {
			q->arrived += count;
			int64_t work = work_of(q, count, f->service_ms[f->bin]);
			queue_back(q, (struct cohort){ f->now, f->now, count, work, f->bin, false });
			if (work)
				deadlines_add(&q->deadlines, f->now + q->truth.deadline, work);
		}
		if (b->at + f->bin_width > f->now)
			return;
		f->bin++;
	}
}

static void complete(struct queue *q)
{
	struct cohort_form *f = q->cohorts;
	size_t slot = (size_t)(f->now / SECOND) & (f->ring - 1);
	int64_t ready = f->ends[slot], draining = f->draining_ends[slot], done = ready + draining;

	if (!done)
		return;
	int64_t all = q->running + q->running_draining;
	int64_t prompt = share_of(f->running_prompt, done, all), output = share_of(f->running_output, done, all);
	int64_t work = share_of(f->running_work, done, all);
	f->ends[slot] = f->draining_ends[slot] = 0;
	f->running_prompt -= prompt;
	f->running_output -= output;
	f->running_work -= work;
	f->running_late -= share_of(f->running_late, done, all);
	q->running -= ready;
	q->running_draining -= draining;
	q->completed += done;
	q->prompt_tokens += prompt;
	q->output_tokens += output;
	deadlines_take(&q->deadlines, work);
}

/* Nothing can happen before the next bin: steps over the seconds until then. */
static void skip_idle(struct queue *q, millis until)
{
	struct cohort_form *f = q->cohorts;

	if (q->running || q->running_draining || q->waiting)
		return;
	millis next = f->bin < f->bin_count ? f->bins[f->bin].at / SECOND * SECOND : until;
	if (next > until)
		next = until / SECOND * SECOND;
	if (next > f->now)
		f->now = next / SECOND * SECOND;
}

static void cohorts_advance(struct queue *q, millis until)
{
	struct cohort_form *f = q->cohorts;

	for (;;) {
		skip_idle(q, until);
		if (f->now + SECOND > until)
			return;
		f->now += SECOND;
		complete(q);
		arrive(q);
		give_up(q);
		fill(q);
	}
}

/* Takes one seat's share out of the sequences of `seats` seats, later ends included; returns how many, and moves
 * them to `to` unless it is NULL. *last: the latest end among them. */
static int64_t take_share(struct cohort_form *f, int64_t *from, int64_t *to, int64_t seats, millis *last)
{
	int64_t seen = 0, taken = 0, second = f->now / SECOND;

	*last = f->now;
	for (size_t i = 1; i < f->ring; i++) {
		size_t slot = (size_t)(second + (int64_t)i) & (f->ring - 1);
		if (!from[slot])
			continue;
		seen += from[slot];
		int64_t part = (2 * seen + seats) / (2 * seats) - taken;
		if (part > from[slot])
			part = from[slot];
		if (!part)
			continue;
		from[slot] -= part;
		if (to)
			to[slot] += part;
		taken += part;
		*last = (second + (int64_t)i) * SECOND;
	}
	return taken;
}

static millis cohorts_seat_drain(struct queue *q, millis now)
{
	struct cohort_form *f = q->cohorts;
	millis last;
	int64_t moved = take_share(f, f->ends, f->draining_ends, (int64_t)q->open_seats, &last);

	q->running -= moved;
	q->running_draining += moved;
	return last > now ? last : now;
}

static int64_t cohorts_seat_lose(struct queue *q, bool is_draining, millis now)
{
	struct cohort_form *f = q->cohorts;
	int64_t all = q->running + q->running_draining;
	size_t bin = f->bin < f->bin_count ? f->bin : f->bin_count - 1;
	millis last;

	while (bin > 0 && !f->bins[bin].requests)
		bin--;
	int64_t count = is_draining ? take_share(f, f->draining_ends, NULL, (int64_t)q->draining_seats, &last)
				    : take_share(f, f->ends, NULL, (int64_t)q->open_seats, &last);
	if (!count)
		return 0;
	*(is_draining ? &q->running_draining : &q->running) -= count;
	int64_t late = count == all ? f->running_late : share_of(f->running_late, count, all) + 1;
	if (late > count)
		late = count;
	if (late > f->running_late)
		late = f->running_late;
	f->running_late -= late;
	f->running_prompt -= share_of(f->running_prompt, count, all);
	f->running_output -= share_of(f->running_output, count, all);
	int64_t work = share_of(f->running_work, count, all), late_work = share_of(work, late, count);
	f->running_work -= work;
	q->returned += count;
	if (count > late)
		queue_front(q, (struct cohort){ now, now, count - late, work - late_work, bin, false });
	if (late)
		queue_front(q, (struct cohort){ now, now, late, late_work, bin, true });
	return count * f->service_ms[bin] / 2;
}

static int64_t cohorts_waiting_late(const struct queue *q, millis now)
{
	const struct cohort_form *f = q->cohorts;
	int64_t late = 0;

	for (size_t i = 0; i < f->queue_count; i++) {
		const struct cohort *c = &f->queue[(f->queue_head + i) & (f->queue_room - 1)];
		bool is_late = q->truth.deadline ? now > c->arrival + q->truth.deadline
						 : now - c->since > q->truth.objective_wait;
		late += c->is_late || !is_late ? 0 : c->count;
	}
	return late;
}

static double cohorts_slot_ms(const struct queue *q, millis span)
{
	const struct cohort_form *f = q->cohorts;
	double sum = 0;

	for (size_t i = 0; i < f->bin_count && f->bins[i].at < span; i++)
		sum += (double)f->bins[i].requests * (double)f->service_ms[i];
	return sum;
}

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
static void requests_fill(struct queue *q, millis now)
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

static void requests_arrive(struct queue *q)
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

static void requests_complete(struct queue *q)
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

static void requests_give_up(struct queue *q, millis now)
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

static void requests_advance(struct queue *q, millis until)
{
	struct request_form *f = q->requests;

	for (;;) {
		millis done = f->running.count ? f->running.items[0].end : INT64_MAX;
		millis quits = gives_up_at(q);
		millis arrives = f->next < f->count ? f->requests[f->next].arrival : INT64_MAX;
		if (done <= quits && done <= arrives) {
			if (done > until)
				return;
			requests_complete(q);
		} else if (quits <= arrives) {
			if (quits > until)
				return;
			requests_give_up(q, quits);
		} else {
			if (arrives > until)
				return;
			requests_arrive(q);
		}
	}
}

static void requests_open(struct queue *q)
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

static void requests_seat_open(struct queue *q, size_t seat, millis now)
{
	seat_link(q, seat);
	requests_fill(q, now);
}

static millis requests_seat_drain(struct queue *q, size_t seat)
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

static int64_t requests_seat_lose(struct queue *q, size_t seat, millis now)
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

static int64_t requests_waiting_late(const struct queue *q, millis now)
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

static double requests_slot_ms(const struct queue *q, millis span)
{
	const struct request_form *f = q->requests;
	double sum = 0;

	for (size_t i = 0; i < f->count && f->requests[i].arrival < span; i++)
		sum += (double)service_of(q, i);
	return sum;
}

/* --- either form --- */

void queue_open(struct queue *q, const struct queue_truth *truth, const struct trace *trace, struct arena *a)
{
	*q = (struct queue){ .truth = *truth, .trace = trace, .arena = a };
	deadlines_open(&q->deadlines, truth->deadline);
	if (trace && trace->label_count)
		q->labels = arena_array(a, struct label_use, trace->label_count);
	if (trace && trace->is_binned)
		cohorts_open(q);
	else
		requests_open(q);
}

void queue_advance(struct queue *q, millis until)
{
	if (q->cohorts)
		cohorts_advance(q, until);
	else
		requests_advance(q, until);
}

void queue_seat_open(struct queue *q, size_t seat, millis now)
{
	while (q->seats.count <= seat)
		LIST_ADD(q->arena, &q->seats, ((struct seat){ 0 }));
	q->seats.items[seat] = (struct seat){ .state = SEAT_OPEN, .before = NONE, .after = NONE };
	q->open_seats++;
	if (q->requests)
		requests_seat_open(q, seat, now);
}

millis queue_seat_drain(struct queue *q, size_t seat, millis now)
{
	millis end = q->cohorts ? cohorts_seat_drain(q, now) : requests_seat_drain(q, seat);

	q->seats.items[seat].state = SEAT_DRAINING;
	q->open_seats--;
	q->draining_seats++;
	return end;
}

int64_t queue_seat_lose(struct queue *q, size_t seat, millis now)
{
	bool is_draining = q->seats.items[seat].state == SEAT_DRAINING;
	int64_t lost = q->cohorts ? cohorts_seat_lose(q, is_draining, now) : requests_seat_lose(q, seat, now);

	queue_seat_close(q, seat);
	if (q->requests)
		requests_fill(q, now);
	return lost;
}

void queue_seat_close(struct queue *q, size_t seat)
{
	if (q->seats.items[seat].state == SEAT_DRAINING)
		q->draining_seats--;
	else
		q->open_seats--;
	q->seats.items[seat].state = SEAT_CLOSED;
}

int64_t queue_seat_running(const struct queue *q, size_t seat)
{
	if (!q->cohorts)
		return q->seats.items[seat].running;
	return q->open_seats ? q->running / (int64_t)q->open_seats : 0;
}

int64_t queue_waiting_late(const struct queue *q, millis now)
{
	return q->cohorts ? cohorts_waiting_late(q, now) : requests_waiting_late(q, now);
}

int64_t queue_demand_milli(const struct queue *q, millis span)
{
	double slot_ms = q->cohorts ? cohorts_slot_ms(q, span) : requests_slot_ms(q, span);
	double milli = slot_ms * 1000 / ((double)span * (double)q->truth.slots);

	return milli < 1e15 ? (int64_t)milli : INT64_C(1000000000000000);
}

static void deadlines_open(struct deadline_book *b, millis deadline)
{
	/* A deadline spans at most 14 buckets, so that all that is due and one that is overdue can be shown. */
	*b = (struct deadline_book){ .width = deadline ? deadline / (DEADLINES_SHOWN - 3) + 1 : 0 };
}

static void add_to(int64_t *bucket, int64_t work)
{
	*bucket = work > DEADLINE_WORK_MOST - *bucket ? DEADLINE_WORK_MOST : *bucket + work;
}

static void deadlines_add(struct deadline_book *b, millis due, int64_t work)
{
	int64_t number = due / b->width;

	while (number - b->first >= DEADLINE_BUCKETS) {
		int64_t *oldest = &b->work[b->first % DEADLINE_BUCKETS];
		b->first++;
		add_to(&b->work[b->first % DEADLINE_BUCKETS], *oldest);
		*oldest = 0;
	}
	add_to(&b->work[(number > b->first ? number : b->first) % DEADLINE_BUCKETS], work);
}

/* Work was done, or given up: of the earliest due. */
static void deadlines_take(struct deadline_book *b, int64_t work)
{
	for (int64_t i = b->first; work > 0 && i < b->first + DEADLINE_BUCKETS; i++) {
		int64_t *bucket = &b->work[i % DEADLINE_BUCKETS];
		int64_t part = *bucket < work ? *bucket : work;
		*bucket -= part;
		work -= part;
	}
}

size_t deadlines_show(const struct deadline_book *b, millis now, int64_t slots, millis start,
		      struct deadline_input *out)
{
	size_t shown = 0;
	int64_t overdue = 0;

	for (int64_t i = b->first; b->width && i < b->first + DEADLINE_BUCKETS; i++) {
		int64_t work = b->work[i % DEADLINE_BUCKETS] / slots;
		if (i * b->width <= now)
			overdue += work;
		else if (work > 0 && shown < DEADLINES_SHOWN - 1)
			out[1 + shown++] = (struct deadline_input){ .due = start + i * b->width, .work_ms = work };
	}
	if (overdue) {
		out[0] = (struct deadline_input){ .due = start + now, .work_ms = overdue };
		return shown + 1;
	}
	for (size_t i = 0; i < shown; i++)
		out[i] = out[i + 1];
	return shown;
}

/* Up to WAITS_STEPS ms exact; beyond, WAITS_STEPS steps for each doubling. */
static size_t step_of(millis wait)
{
	if (wait < WAITS_STEPS)
		return wait > 0 ? (size_t)wait : 0;
	int shift = 63 - __builtin_clzll((unsigned long long)wait) - 5;
	size_t step = (size_t)(shift + 1) * WAITS_STEPS + ((size_t)(wait >> shift) - WAITS_STEPS);

	return step < WAITS_COUNT ? step : WAITS_COUNT - 1;
}

static millis middle_of(size_t step)
{
	if (step < WAITS_STEPS)
		return (millis)step;
	int shift = (int)(step / WAITS_STEPS) - 1;
	millis first = ((millis)(step % WAITS_STEPS) + WAITS_STEPS) << shift;

	return first + (((millis)1 << shift) - 1) / 2;
}

void waits_add(struct waits *w, millis wait, int64_t count)
{
	w->counts[step_of(wait)] += count;
}

millis waits_quantile(const struct waits *w, const struct waits *before, int64_t permille)
{
	int64_t total = 0, seen = 0;

	for (size_t i = 0; i < WAITS_COUNT; i++)
		total += w->counts[i] - (before ? before->counts[i] : 0);
	if (!total)
		return 0;
	for (size_t i = 0; i < WAITS_COUNT; i++) {
		seen += w->counts[i] - (before ? before->counts[i] : 0);
		if (seen * 1000 >= total * permille)
			return middle_of(i);
	}
	return middle_of(WAITS_COUNT - 1);
}
