#include "signals/scrape.h"

#include "base/random.h"
#include "tests/unit/signals/fake_pods.h"

static void work(struct fake_pod *pod, int64_t requests)
{
	pod->started += requests;
	pod->completed += requests;
	pod->waited_short += requests;
}

static void a_round_is_the_sum_of_its_pods(void **state)
{
	struct fake_pool *p = fake_pool_open(3);

	(void)state;
	for (int i = 0; i < 3; i++)
		p->pods[i] = (struct fake_pod){ .running = 10 + i, .waiting = i, .started = 50, .completed = 40 };
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.expected, 3);
	assert_int_equal(r.fresh, 3);
	assert_int_equal(r.ready, 3);
	assert_int_equal(r.running, 33);
	assert_int_equal(r.running_draining, 0);
	assert_int_equal(r.waiting, 3);
	assert_int_equal(r.kv_cache_permille, 500);
	/* A first page gives no differences. */
	assert_int_equal(r.started, READING_UNKNOWN);
	assert_int_equal(r.late, READING_UNKNOWN);
	assert_int_equal(r.completed, 0);
	assert_int_equal(r.inter_token_latency_us, READING_UNKNOWN);

	work(&p->pods[0], 5);
	work(&p->pods[2], 7);
	p->pods[2].started += 2;
	r = fake_pool_round(p);
	assert_int_equal(r.started, 14);
	assert_int_equal(r.late, 0);
	assert_int_equal(r.completed, 12);
	assert_int_equal(r.prompt_tokens, 1200);
	assert_int_equal(r.output_tokens, 120);
	assert_int_equal(r.inter_token_latency_us, 20000);
	assert_true(r.at > clock_now(&p->clock) - INTERVAL && r.at <= clock_now(&p->clock));

	r = fake_pool_round(p);
	assert_int_equal(r.started, 0);
	assert_int_equal(r.completed, 0);
	assert_int_equal(r.inter_token_latency_us, READING_UNKNOWN);
	fake_pool_close(p);
}

/* Two queue, one of them gets no further; the third has room. */
static void what_full_pods_run_is_told_apart(void **state)
{
	struct fake_pool *p = fake_pool_open(3);
	struct pool_reading r;

	(void)state;
	p->pods[0] = (struct fake_pod){ .running = 8, .waiting = 3 };
	p->pods[1] = (struct fake_pod){ .running = 2, .waiting = 9 };
	p->pods[2] = (struct fake_pod){ .running = 1 };
	for (int i = 0; i < 8; i++) {
		work(&p->pods[0], 2);
		work(&p->pods[2], 1);
		r = fake_pool_round(p);
		if (i < 2)
			assert_int_equal(r.full, 0);
	}
	assert_int_equal(r.running, 11);
	assert_int_equal(r.full, 1);
	assert_int_equal(r.running_full, 8);
	fake_pool_close(p);
}

static void no_pods_are_a_reading_too(void **state)
{
	struct fake_pool *p = fake_pool_open(0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct pool_reading r = fake_pool_round(p);
		assert_int_equal(r.expected + r.fresh + r.running + r.waiting + r.completed, 0);
		assert_int_equal(r.started, READING_UNKNOWN);
	}
	fake_pool_close(p);
}

static void draining_pods_are_not_expected_and_count_apart(void **state)
{
	struct fake_pool *p = fake_pool_open(2);

	(void)state;
	p->pods[0].running = 3;
	p->pods[1].running = 4;
	p->targets[1].is_ready = false;
	source_set_targets(p->source, p->targets, 2);
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.expected, 1);
	assert_int_equal(r.fresh, 1);
	assert_int_equal(r.ready, 1);
	assert_int_equal(r.running, 3);
	assert_int_equal(r.running_draining, 4);
	p->pods[1].status = 500;
	r = fake_pool_round(p);
	assert_int_equal(r.fresh, 1);
	assert_int_equal(r.running_draining, 0);
	fake_pool_close(p);
}

/* A fleet that grows is not blind: who was asked while it started and is ready a moment later is asked again first. */
static void who_gets_ready_after_it_was_asked_is_not_missed(void **state)
{
	struct fake_pool *p = fake_pool_open(3);

	(void)state;
	p->pods[1].status = p->pods[2].status = 503;
	p->targets[1].is_ready = p->targets[2].is_ready = false;
	source_set_targets(p->source, p->targets, 3);
	played_settle();
	while (!p->pods[2].asked)
		fake_pool_step(p);
	p->targets[1].is_ready = p->targets[2].is_ready = true;
	source_set_targets(p->source, p->targets, 3);
	while (!p->reading_count)
		fake_pool_step(p);
	assert_int_equal(p->readings[0].expected, 1);
	assert_int_equal(p->readings[0].fresh, 1);
	assert_int_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
	while (p->reading_count < 2)
		fake_pool_step(p);
	assert_int_equal(p->readings[1].expected, 3);
	assert_int_equal(p->readings[1].fresh, 1);
	assert_int_not_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
	fake_pool_close(p);
}

static void a_restarted_server_counts_from_zero(void **state)
{
	struct fake_pool *p = fake_pool_open(2);

	(void)state;
	work(&p->pods[0], 1000);
	work(&p->pods[1], 1000);
	fake_pool_round(p);
	p->pods[0] = (struct fake_pod){ 0 };
	work(&p->pods[0], 3);
	work(&p->pods[1], 4);
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.started, 7);
	assert_int_equal(r.completed, 7);
	fake_pool_close(p);
}

#define LEVELS "vllm:num_requests_running 1\nvllm:num_requests_waiting 1\n"

static const struct {
	int status;
	const char *page;
	enum error_kind kind;
	const char *says;
} blackouts[] = {
	{ 500, "oops", ERROR_UNAVAILABLE, "HTTP status 500" },
	{ 404, "", ERROR_NOT_FOUND, "HTTP status 404" },
	{ 403, "", ERROR_AUTH, "HTTP status 403" },
	{ 302, "", ERROR_INVALID, "HTTP status 302" },
	{ 429, "", ERROR_THROTTLED, "HTTP status 429" },
	{ 0, "", ERROR_NOT_FOUND, "has no vllm:num_requests_running" },
	{ 0, "<html>login</html>\n", ERROR_NOT_FOUND, "has no vllm:num_requests_running" },
	{ 0, "vllm:num_requests_running NaN\n", ERROR_INVALID, "'NaN' is not a number" },
	{ 0, "vllm:num_requests_running -3\n", ERROR_INVALID, "'-3' is less than nothing" },
	{ 0, "vllm:num_requests_running 1e99\n", ERROR_INVALID, "'1e99' is more than can be" },
	{ 0, LEVELS "vllm:request_success_total{engine=\"0\"} NaN\n", ERROR_INVALID, "'NaN' is not a number" },
	{ 0, LEVELS "vllm:request_success_total{engine=\"0\"} 1e13\n", ERROR_INVALID, "cannot be" },
	{ 0, LEVELS "vllm:request_success_total{engine=\"0", ERROR_INVALID, "line 3: the page ends within it" },
};

static void what_makes_no_sense_is_not_fresh_and_says_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof blackouts / sizeof *blackouts; i++) {
		struct fake_pool *p = fake_pool_open(3);
		for (int n = 0; n < 3; n++)
			p->pods[n] = (struct fake_pod){ .running = 10, .waiting = 1, .completed = 100 };
		fake_pool_round(p);
		p->pods[1].page = blackouts[i].page;
		p->pods[1].status = blackouts[i].status;
		for (int n = 0; n < 3; n++)
			work(&p->pods[n], 5);
		struct pool_reading r = fake_pool_round(p);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 2);
		assert_int_equal(r.running, 20);
		assert_int_equal(r.waiting, 2);
		assert_int_equal(r.completed, 10);
		const struct error *e = fake_pool_trouble(p);
		assert_int_equal(e->kind, blackouts[i].kind);
		assert_non_null(strstr(e->message, blackouts[i].says));
		assert_non_null(strstr(e->message, "/pod/1: "));

		/* Back again, with what it did meanwhile; a page that jumped is what the next is compared with. */
		p->pods[1].page = NULL;
		p->pods[1].status = 0;
		r = fake_pool_round(p);
		assert_int_equal(r.fresh, 3);
		assert_int_equal(r.running, 30);
		assert_in_range(r.completed, 5, 105);
		assert_int_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
		fake_pool_close(p);
	}
}

static void total_darkness_tells_nothing(void **state)
{
	struct fake_pool *p = fake_pool_open(4);

	(void)state;
	for (int i = 0; i < 4; i++)
		p->pods[i].running = 9;
	fake_pool_round(p);
	for (int i = 0; i < 4; i++)
		p->pods[i].status = 503;
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.expected, 4);
	assert_int_equal(r.fresh, 0);
	assert_int_equal(r.ready, 4);
	assert_int_equal(r.running, 0);
	assert_int_equal(r.started, READING_UNKNOWN);
	assert_int_equal(r.kv_cache_permille, READING_UNKNOWN);
	fake_pool_close(p);
}

static void long_silence_is_not_this_rounds_work(void **state)
{
	struct fake_pool *p = fake_pool_open(1);

	(void)state;
	fake_pool_round(p);
	for (int i = 0; i < 9; i++) {
		p->pods[0].status = 503;
		work(&p->pods[0], 100);
		assert_int_equal(fake_pool_round(p).fresh, 0);
	}
	p->pods[0].status = 0;
	work(&p->pods[0], 100);
	assert_int_equal(fake_pool_round(p).completed, 100); /* 1000 in 10 intervals */

	/* One missed page is not long. */
	p->pods[0].status = 503;
	work(&p->pods[0], 100);
	fake_pool_round(p);
	p->pods[0].status = 0;
	work(&p->pods[0], 100);
	assert_int_equal(fake_pool_round(p).completed, 200);
	fake_pool_close(p);
}

static void a_pod_that_is_no_target_is_forgotten(void **state)
{
	struct fake_pool *p = fake_pool_open(3);
	int64_t count;
	millis age;

	(void)state;
	for (int i = 0; i < 3; i++)
		p->pods[i].running = 1;
	fake_pool_round(p);
	source_set_targets(p->source, p->targets, 1);
	assert_false(source_in_flight(p->source, "pod-001", &count, &age));
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.expected, 1);
	assert_int_equal(r.running, 1);
	int64_t asked = p->pods[1].asked;

	/* The same key again is a new pod: no difference at first. A key told twice is one pod. */
	p->pods[1].completed = 50;
	p->targets[2] = p->targets[1];
	source_set_targets(p->source, p->targets, 3);
	r = fake_pool_round(p);
	assert_int_equal(r.expected, 2);
	assert_int_equal(r.completed, 0);
	assert_int_equal(p->pods[1].asked, asked + 1);

	/* At another address it is another one, too. */
	p->targets[1].url = p->urls[2];
	p->pods[2].completed = 70;
	source_set_targets(p->source, p->targets, 2);
	assert_int_equal(fake_pool_round(p).completed, 0);
	fake_pool_close(p);
}

static void parts_of_late_requests_are_not_lost(void **state)
{
	struct fake_pool *p = fake_pool_open(3);
	int64_t late = 0;

	(void)state;
	fake_pool_round(p);
	/* A wait between 1 and 2.5 s is past 2 s by a third. */
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 3; i++)
			p->pods[i].waited_long += 1;
		late += fake_pool_round(p).late;
	}
	assert_in_range(late, 9, 10);
	fake_pool_close(p);
}

static void what_is_in_flight_is_known_by_pod(void **state)
{
	struct fake_pool *p = fake_pool_open(2);
	int64_t count = -1;
	millis age = -1;

	(void)state;
	assert_false(source_in_flight(p->source, "pod-000", &count, &age));
	assert_false(source_in_flight(p->source, "nobody", &count, &age));
	p->pods[0] = (struct fake_pod){ .running = 5, .waiting = 6 };
	fake_pool_round(p);
	assert_true(source_in_flight(p->source, "pod-000", &count, &age));
	assert_int_equal(count, 11);
	assert_in_range(age, 1, INTERVAL);
	p->pods[0].status = 500;
	fake_pool_round(p);
	assert_true(source_in_flight(p->source, "pod-000", &count, &age));
	assert_int_equal(count, 11);
	assert_in_range(age, INTERVAL, 2 * INTERVAL);
	fake_pool_close(p);
}

static void many_pods_are_asked_one_after_another(void **state)
{
	struct fake_pool *p = fake_pool_open(PODS);
	int64_t before = 0;

	(void)state;
	played_settle();
	for (int step = 0; step <= STEPS / 2; step++) {
		int64_t asked = 0;
		for (int i = 0; i < PODS; i++)
			asked += p->pods[i].asked;
		assert_in_range(asked - before, step ? 1 : 0, PODS / (STEPS / 2) + 1);
		before = asked;
		fake_pool_step(p);
	}
	assert_int_equal(before, PODS);
	assert_int_equal(p->reading_count, 1);
	assert_int_equal(p->readings[0].fresh, PODS);
	fake_pool_close(p);
}

static void a_held_up_loop_starts_over_without_a_burst(void **state)
{
	struct fake_pool *p = fake_pool_open(2);

	(void)state;
	fake_pool_round(p);
	clock_turn(&p->clock, 10 * INTERVAL);
	size_t before = p->reading_count;
	for (int i = 0; i < STEPS; i++)
		fake_pool_step(p);
	assert_in_range(p->reading_count - before, 1, 2);
	fake_pool_close(p);
}

/* One pod answers so; the others as they should. */
static void answer_is_contained(struct played_answer other, const char *body, enum error_kind kind, const char *says)
{
	struct fake_pool *p = fake_pool_open(2);

	buf_text(&other.body, body);
	p->pods[1].other = &other;
	source_close(p->source);
	fake_pool_source(p, 100);
	played_turn(99);
	assert_int_equal(p->reading_count, 1);
	assert_int_equal(p->readings[0].expected, 2);
	assert_int_equal(p->readings[0].fresh, 1);
	const struct error *e = fake_pool_trouble(p);
	assert_int_equal(e->kind, kind);
	if (!strstr(e->message, says))
		fail_msg("'%s' does not say '%s'", e->message, says);
	fake_pool_close(p);
	buf_release(&other.body);
}

static void servers_that_hang_or_never_end_are_contained(void **state)
{
	const struct played_answer silent = { .is_silent = true }, endless = { .is_endless = true };

	(void)state;
	answer_is_contained(silent, "", ERROR_TIMEOUT, "within 50 ms");
	answer_is_contained(silent, LEVELS, ERROR_TIMEOUT, "within 50 ms");
	answer_is_contained((struct played_answer){ .kind = ERROR_UNAVAILABLE }, LEVELS, ERROR_UNAVAILABLE,
			    "GET http://10.0.0.1");
	answer_is_contained(endless, "aaaaaaaaaaaaaaaa", ERROR_INVALID, "the page is longer than 2097152 bytes");
	answer_is_contained(endless, "never_asked_for{with=\"some\",labels=\"too\"} 1\n", ERROR_INVALID,
			    "the page is longer than 2097152 bytes");
}

static void drop_all(struct fake_pool *p)
{
	source_set_targets(p->source, NULL, 0);
}

static void close_it(struct fake_pool *p)
{
	source_close(p->source);
	p->source = NULL;
}

static void a_reading_may_change_or_close_the_source(void **state)
{
	struct fake_pool *p = fake_pool_open(5);

	(void)state;
	p->on_reading = drop_all;
	fake_pool_round(p);
	assert_int_equal(fake_pool_round(p).expected, 0);
	source_set_targets(p->source, p->targets, 5);
	p->on_reading = close_it;
	fake_pool_round(p);
	assert_null(p->source);
	fake_pool_close(p);
}

static void it_can_be_closed_while_a_call_is_in_flight(void **state)
{
	struct played_answer silent = { .is_silent = true };
	struct fake_pool *p = fake_pool_open(2);

	(void)state;
	p->pods[0].other = p->pods[1].other = &silent;
	played_settle();
	assert_int_equal(played_active(), 1);
	source_set_targets(p->source, p->targets + 1, 1); /* forgotten while it is asked */
	played_settle();
	assert_int_equal(played_active(), 1);
	close_it(p);
	assert_int_equal(p->reading_count, 0);
	fake_pool_close(p);
}

/* Random work, restarts, darkness, comings and goings: never negative, never more than was done. */
static void random_pools_are_never_overstated(void **state)
{
	enum { ROUNDS = 25 };

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct random r = random_stream(seed, "pool");
		struct fake_pool *p = fake_pool_open(random_next(&r) % 8 + 1);
		int64_t done = 0, told = 0;
		for (int round = 0; round < ROUNDS; round++) {
			for (size_t i = 0; i < p->count; i++) {
				int64_t n = (int64_t)(random_next(&r) % 50);
				if (random_next(&r) % 20 == 0)
					p->pods[i] = (struct fake_pod){ 0 };
				p->pods[i].running = (int64_t)(random_next(&r) % 100);
				p->pods[i].status = random_next(&r) % 5 == 0 ? 503 : 0;
				work(&p->pods[i], n);
				done += n;
			}
			source_set_targets(p->source, p->targets, p->count - random_next(&r) % 2);
			struct pool_reading reading = fake_pool_round(p);
			told += reading.completed;
			assert_true(reading.fresh <= reading.expected && reading.expected <= (int64_t)p->count);
			assert_true(reading.running >= 0 && reading.running <= 100 * reading.fresh);
			assert_true(reading.completed >= 0 && reading.waiting >= 0);
			assert_true(reading.started >= 0 || reading.started == READING_UNKNOWN);
		}
		if (told > done)
			print_message("seed %" PRIu64 "\n", seed);
		assert_true(told <= done);
		fake_pool_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_round_is_the_sum_of_its_pods),
		cmocka_unit_test(what_full_pods_run_is_told_apart),
		cmocka_unit_test(no_pods_are_a_reading_too),
		cmocka_unit_test(draining_pods_are_not_expected_and_count_apart),
		cmocka_unit_test(who_gets_ready_after_it_was_asked_is_not_missed),
		cmocka_unit_test(a_restarted_server_counts_from_zero),
		cmocka_unit_test(what_makes_no_sense_is_not_fresh_and_says_why),
		cmocka_unit_test(total_darkness_tells_nothing),
		cmocka_unit_test(long_silence_is_not_this_rounds_work),
		cmocka_unit_test(a_pod_that_is_no_target_is_forgotten),
		cmocka_unit_test(parts_of_late_requests_are_not_lost),
		cmocka_unit_test(what_is_in_flight_is_known_by_pod),
		cmocka_unit_test(many_pods_are_asked_one_after_another),
		cmocka_unit_test(a_held_up_loop_starts_over_without_a_burst),
		cmocka_unit_test(servers_that_hang_or_never_end_are_contained),
		cmocka_unit_test(a_reading_may_change_or_close_the_source),
		cmocka_unit_test(it_can_be_closed_while_a_call_is_in_flight),
		cmocka_unit_test(random_pools_are_never_overstated),
	};

	return cmocka_run_group_tests_name("scrape", tests, NULL, NULL);
}
