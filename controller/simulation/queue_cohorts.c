#include "controller/simulation/queue_forms.h"

#include "base/exact.h"

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

/* Mid-quantiles of a log-normal distribution with mean 1 and the given coefficient of variation. */
static void make_points(struct cohort_form *f, int64_t spread_permille)
{
	double cv = (double)spread_permille / 1000, sum = 0, points[POINTS];
	double sigma = exact_sqrt(exact_log(1 + cv * cv));

	for (int i = 0; i < POINTS; i++) {
		points[i] = exact_exp(sigma * exact_normal_quantile((i + 0.5) / POINTS));
		sum += points[i];
	}
	for (int i = 0; i < POINTS; i++) {
		f->points_ppm[i] = exact_round(points[i] / sum * POINTS * 1000000);
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

void cohorts_open(struct queue *q)
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

void cohorts_advance(struct queue *q, millis until)
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

millis cohorts_seat_drain(struct queue *q, millis now)
{
	struct cohort_form *f = q->cohorts;
	millis last;
	int64_t moved = take_share(f, f->ends, f->draining_ends, (int64_t)q->open_seats, &last);

	q->running -= moved;
	q->running_draining += moved;
	return last > now ? last : now;
}

int64_t cohorts_seat_lose(struct queue *q, bool is_draining, millis now)
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

int64_t cohorts_waiting_late(const struct queue *q, millis now)
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

double cohorts_slot_ms(const struct queue *q, millis span)
{
	const struct cohort_form *f = q->cohorts;
	double sum = 0;

	for (size_t i = 0; i < f->bin_count && f->bins[i].at < span; i++)
		sum += (double)f->bins[i].requests * (double)f->service_ms[i];
	return sum;
}
