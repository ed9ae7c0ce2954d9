#include "tests/unit/simulation/toy.h"

#include "controller/simulation/queue.h"

enum { BINS = 60, SEATS = 4 };

/* Bins of very different service times: many short requests, then few long ones, then none. */
static struct trace uneven_trace(struct arena *a)
{
	struct bin *bins = arena_array(a, struct bin, BINS);

	for (size_t i = 0; i < BINS; i++) {
		int64_t n = i >= BINS / 2 ? 0 : i % 3 == 0 ? 200 : 7, tokens = i % 3 == 0 ? 50 : 4000;
		bins[i] = (struct bin){ (millis)i * 10 * SECOND, n, n * 10, n * tokens };
	}
	return (struct trace){
		.is_binned = true, .bin_width = 10 * SECOND, .bins = bins, .bin_count = BINS, .length = HOUR
	};
}

static struct trace uneven_requests(struct arena *a)
{
	struct request *r = arena_array(a, struct request, 400);

	for (size_t i = 0; i < 400; i++)
		r[i] = (struct request){ (millis)i * 700, 10, i % 3 ? 50 : 4000, -1 };
	return (struct trace){ .requests = r, .request_count = 400, .length = HOUR };
}

static int64_t booked(const struct queue *q)
{
	int64_t work = 0;

	for (size_t i = 0; i < DEADLINE_BUCKETS; i++)
		work += q->deadlines.work[i];
	return work;
}

static struct queue open_queue(const struct trace *trace, millis patience, struct arena *a)
{
	struct queue_truth truth = { .slots = 10,
				     .prefill_tokens_per_second = 10000,
				     .inter_token_latency_us = 10000,
				     .spread_permille = 1000,
				     .objective_wait = 2 * SECOND,
				     .patience = patience,
				     .deadline = 10 * MINUTE };
	struct queue q;

	queue_open(&q, &truth, trace, a);
	for (size_t seat = 0; seat < SEATS; seat++)
		queue_seat_open(&q, seat, 0);
	return q;
}

static void check_empty_when_done(const struct queue *q)
{
	assert_int_equal(q->waiting + q->running + q->running_draining, 0);
	assert_true(q->completed > 0);
	assert_int_equal(booked(q), 0);
}

static void work_done_leaves_the_book(const struct trace *trace, struct arena *a)
{
	struct queue q = open_queue(trace, 0, a);

	queue_advance(&q, 2 * MINUTE);
	assert_true(booked(&q) > 0);
	queue_advance(&q, 6 * HOUR);
	check_empty_when_done(&q);
}

/* Seats are lost and drained on the way, and requests give up. */
static void nothing_is_left_after_losses(const struct trace *trace, struct arena *a)
{
	struct queue q = open_queue(trace, 3 * MINUTE, a);

	for (size_t seat = 0; seat < SEATS - 1; seat++) {
		queue_advance(&q, (millis)(seat + 1) * MINUTE);
		if (seat == 1)
			queue_seat_drain(&q, seat, (millis)(seat + 1) * MINUTE);
		queue_seat_lose(&q, seat, (millis)(seat + 1) * MINUTE);
		assert_true(booked(&q) >= 0);
	}
	queue_advance(&q, 6 * HOUR);
	assert_true(q.returned > 0);
	check_empty_when_done(&q);
}

static void binned_book(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct trace trace = uneven_trace(&a);

	(void)state;
	work_done_leaves_the_book(&trace, &a);
	nothing_is_left_after_losses(&trace, &a);
}

static void request_book(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct trace trace = uneven_requests(&a);

	(void)state;
	work_done_leaves_the_book(&trace, &a);
	nothing_is_left_after_losses(&trace, &a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binned_book),
		cmocka_unit_test(request_book),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
