/* Replicas that tell a part of what they should, and those that contradict themselves. */
#include "tests/unit/signals/fake_pods.h"

static const char workers_page[] =
	"# TYPE python_info gauge\npython_info{version=\"3.12\"} 1.0\nray_node_cpu_count 8.0\n";

/* Answers of what is no server of the engine; `holds`: it is one, or may be, and is missed for ever. */
static const struct {
	const char *name;
	int status;
	const char *type, *page;
	bool holds;
} partial[] = {
	{ "a worker of Ray, a headless rank with its own metrics", 0, "text/plain; version=0.0.4", workers_page,
	  false },
	{ "JSON where text was expected", 0, "application/json", "[{\"iter\": 1,\n\"active\": 2}]", false },
	{ "no metrics at that path", 404, NULL, "", false },
	{ "an engine's counters without its levels", 0, NULL, "vllm:prompt_tokens_total 9\n", true },
	{ "counters that never counted, as of a rank that serves nobody", 0, NULL,
	  "vllm:prompt_tokens_total 0\nvllm:kv_cache_usage_perc 0\n", false },
	{ "JSON that says that it is text, without an end of line", 0, "text/plain", "{\"active\": 2}", false },
	{ "a word", 0, "text/plain; charset=utf-8", "ok", false },
	{ "no content", 204, NULL, "", false },
	{ "a redirect", 302, NULL, "", false },
	{ "TLS on that port", 400, "text/plain", "Client sent an HTTP request to an HTTPS server.\n", false },
	{ "who may not read", 403, NULL, "", true },
	{ "who comes too often", 429, NULL, "", true },
	{ "an error", 500, NULL, "", true },
	{ "a page that was cut", 0, "text/plain", "vllm:num_requests_running 1", true },
};

static void who_never_tells_a_level_is_not_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof partial / sizeof *partial; i++) {
		struct fake_pool *p = fake_pool_open(3);
		struct pool_reading r;
		p->pods[2] = (struct fake_pod){ .status = partial[i].status,
						.type = partial[i].type,
						.page = partial[i].page };
		print_message("%s\n", partial[i].name);
		/* It may yet become one: for five minutes it is missed. */
		for (int n = 0; n < 60; n++) {
			r = fake_pool_round(p);
			assert_int_equal(r.expected, 3);
			assert_int_equal(r.fresh, 2);
		}
		for (int n = 0; n < 3; n++)
			r = fake_pool_round(p);
		assert_int_equal(r.expected, partial[i].holds ? 3 : 2);
		assert_int_equal(r.fresh, 2);
		assert_int_equal(strstr(source_report(p->source).warning, "1 ready pods refuse") != NULL,
				 !partial[i].holds);
		/* One that told once is a server, whatever it says later. */
		p->pods[1] = p->pods[2];
		for (int n = 0; n < 90; n++)
			r = fake_pool_round(p);
		assert_int_equal(r.expected, partial[i].holds ? 3 : 2);
		assert_int_equal(r.fresh, 1);
		fake_pool_close(p);
	}
}

/* What a pod does for a time: T tells, R refuses the connection, B answers 503, S is silent. */
enum { BEFORE = 59, AFTER = 63 };

/* A headless rank listens on no port. One of which a connection was ever had is a server that has gone. */
static const struct {
	const char *name;
	const char *first; /* of each pod, for 5 rounds; NULL: none */
	const char *then;  /* of each pod */
	int rounds;	   /* of `then` */
	int64_t expected, fresh;
} refusing[] = {
	{ "one refuses beside two that tell, and may yet begin to listen", NULL, "TTR", BEFORE, 3, 2 },
	{ "one has refused for five minutes", NULL, "TTR", AFTER, 2, 2 },
	{ "two have beside one that tells", NULL, "TRR", AFTER, 1, 1 },
	{ "all refuse: a wrong port is no pool of ranks", NULL, "RRR", AFTER, 3, 0 },
	{ "one told before", "TTT", "TTR", AFTER, 3, 2 },
	{ "one answered before, if only an error", "TTB", "TTR", AFTER, 3, 2 },
	{ "one was silent before", "TTS", "TTR", AFTER, 2, 2 },
	{ "one is silent: its host may be gone", NULL, "TTS", AFTER, 3, 2 },
	{ "it listens at last", "TTR", "TTT", 1, 3, 3 },
};

static void play(struct fake_pool *p, const char *acts, int rounds, struct pool_reading *r)
{
	static const struct played_answer refused = { .is_refused = true, .kind = ERROR_UNAVAILABLE },
					  silent = { .is_silent = true };

	for (size_t i = 0; i < p->count; i++) {
		p->pods[i].other = acts[i] == 'R' ? &refused : acts[i] == 'S' ? &silent : NULL;
		p->pods[i].status = acts[i] == 'B' ? 503 : 0;
	}
	while (rounds--)
		*r = fake_pool_round(p);
}

static void who_never_listened_is_not_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusing / sizeof *refusing; i++) {
		struct fake_pool *p = fake_pool_open(3);
		struct pool_reading r = { 0 };
		print_message("%s\n", refusing[i].name);
		if (refusing[i].first)
			play(p, refusing[i].first, 5, &r);
		play(p, refusing[i].then, refusing[i].rounds, &r);
		assert_int_equal(r.expected, refusing[i].expected);
		assert_int_equal(r.fresh, refusing[i].fresh);
		assert_int_equal(strstr(source_report(p->source).warning, "signals.podSelector") != NULL,
				 r.expected < 3);
		fake_pool_close(p);
	}
}

/* One that loads its model refuses, too; who is passed over comes back with its first answer, and stays. */
static void who_never_listened_is_so_only_while_it_is_ready(void **state)
{
	struct fake_pool *p = fake_pool_open(3);
	struct pool_reading r;

	(void)state;
	p->targets[2].is_ready = false;
	source_set_targets(p->source, p->targets, p->count);
	play(p, "TTR", AFTER, &r);
	p->targets[2].is_ready = true;
	source_set_targets(p->source, p->targets, p->count);
	play(p, "TTR", BEFORE, &r);
	assert_int_equal(r.expected, 3);
	assert_non_null(strstr(fake_pool_trouble(p)->message, "nothing listens there: is signals.scrape.port right? "
							      "signals.podSelector names the pods that tell"));
	play(p, "TTR", 5, &r);
	assert_int_equal(r.expected, 2);
	assert_int_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
	play(p, "TTT", 1, &r);
	assert_int_equal(r.expected, 3);
	play(p, "TTR", AFTER, &r);
	assert_int_equal(r.expected, 3);
	assert_null(strstr(fake_pool_trouble(p)->message, "podSelector"));
	fake_pool_close(p);
}

/* A wrong path or engine is no pool of workers. */
static void a_pool_of_which_nobody_tells_is_not_known(void **state)
{
	struct fake_pool *p = fake_pool_open(2);
	struct pool_reading r = { 0 };

	(void)state;
	p->pods[0].page = p->pods[1].page = workers_page;
	for (int n = 0; n < 90; n++)
		r = fake_pool_round(p);
	assert_int_equal(r.expected, 2);
	assert_int_equal(r.fresh, 0);
	assert_non_null(strstr(fake_pool_trouble(p)->message, "2 of 2 pods were not read, first: "));
	assert_string_equal(source_report(p->source).warning, ""); /* nobody is passed over */
	fake_pool_close(p);
}

static struct pool_reading rounds(struct fake_pool *p, int count)
{
	struct pool_reading r = { 0 };

	while (count--)
		r = fake_pool_round(p);
	return r;
}

/* Five minutes in a row, and what is not ready is neither waited for nor passed over. */
static void who_fails_between_is_missed_anew(void **state)
{
	struct fake_pool *p = fake_pool_open(3);

	(void)state;
	p->pods[2].page = workers_page;
	rounds(p, 40);
	p->pods[2].status = 500;
	rounds(p, 1);
	p->pods[2].status = 0;
	assert_int_equal(rounds(p, 40).expected, 3);
	assert_int_equal(rounds(p, 40).expected, 2);
	p->pods[1].status = 500; /* who is passed over is not named beside who is missed */
	rounds(p, 2);
	assert_int_equal(strncmp(fake_pool_trouble(p)->message, "pod pod-001: ", 13), 0);
	p->pods[1].status = 0;
	p->targets[2].is_ready = false;
	source_set_targets(p->source, p->targets, p->count);
	assert_int_equal(rounds(p, 3).expected, 2);
	assert_string_equal(source_report(p->source).warning, "");
	fake_pool_close(p);
}

static void set_ready(struct fake_pool *p, bool is_ready)
{
	for (size_t i = 0; i < p->count; i++) {
		p->targets[i].is_ready = is_ready;
		p->targets[i].has_fallen = !is_ready;
	}
	source_set_targets(p->source, p->targets, p->count);
}

/* Nobody is ready any more, and nobody answers: that is not a pool at rest. */
static void fallen_replicas_are_missed_where_no_other_is_ready(void **state)
{
	struct fake_pool *p = fake_pool_open(2);

	(void)state;
	p->pods[0].running = p->pods[1].running = 7;
	fake_pool_round(p);
	set_ready(p, false);
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.expected, 2);
	assert_int_equal(r.fresh, 2); /* not ready, but they tell what they still run */
	assert_int_equal(r.ready, 0);
	assert_int_equal(r.running_draining, 14);
	p->pods[0].status = p->pods[1].status = 503;
	r = fake_pool_round(p);
	assert_int_equal(r.expected, 2);
	assert_int_equal(r.fresh, 0);
	p->targets[0].is_ready = true;
	source_set_targets(p->source, p->targets, p->count);
	p->pods[0].status = 0;
	fake_pool_round(p);
	r = fake_pool_round(p);
	assert_int_equal(r.expected, 1);
	assert_int_equal(r.fresh, 1);
	fake_pool_close(p);
}

static void who_contradicts_itself_is_counted_and_named(void **state)
{
	struct fake_pool *p = fake_pool_open(3);
	struct pool_reading r = { 0 };

	(void)state;
	for (int n = 0; n < 8; n++) {
		for (int i = 0; i < 3; i++) {
			p->pods[i].running = n && i == 1 ? 0 : 4;
			p->pods[i].completed += 100; /* of .2 s of decoding each: four at once */
			p->pods[i].started += 100;
		}
		r = fake_pool_round(p);
	}
	assert_int_equal(r.expected, 3);
	assert_int_equal(r.fresh, 3);
	assert_int_equal(r.disputed, 1);
	assert_int_equal(r.running, 12);
	assert_non_null(strstr(fake_pool_trouble(p)->message, "pod pod-001: its levels show no request"));
	p->pods[2].status = 500; /* of whom nothing is known goes first */
	r = fake_pool_round(p);
	assert_int_equal(r.fresh, 2);
	assert_non_null(strstr(fake_pool_trouble(p)->message, "pod pod-002: "));
	p->pods[2].status = 0;
	p->pods[1].running = 4;
	fake_pool_round(p);
	r = fake_pool_round(p);
	assert_int_equal(r.disputed, 0);
	assert_int_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
	fake_pool_close(p);
}

#define LEVELS "vllm:num_requests_running 3\nvllm:num_requests_waiting 0\n"

static void a_sleeping_server_starts_nothing(void **state)
{
	struct fake_pool *p = fake_pool_open(2);

	(void)state;
	p->pods[1].page = LEVELS "vllm:engine_sleep_state{sleep_state=\"awake\"} 1.0\n";
	assert_int_equal(fake_pool_round(p).ready, 2);
	p->pods[1].page = LEVELS "vllm:engine_sleep_state{sleep_state=\"awake\"} 0.0\n"
				 "vllm:engine_sleep_state{sleep_state=\"discard_all\"} 1.0\n";
	struct pool_reading r = fake_pool_round(p);
	assert_int_equal(r.ready, 1);
	assert_int_equal(r.expected, 1);
	assert_int_equal(r.fresh, 1);
	assert_int_equal(r.running_draining, 3);
	fake_pool_close(p);
}

static void refused_requests_are_counted(void **state)
{
	struct fake_pool *p = fake_pool_open(1);

	(void)state;
	p->pods[0].page = LEVELS "vllm:admission_rejections_total{reason=\"max_num_queued_reqs\"} 4.0\n"
				 "vllm:admission_rejections_total{reason=\"max_num_queued_tokens\"} 0.0\n";
	assert_int_equal(fake_pool_round(p).refused, 0);
	p->pods[0].page = LEVELS "vllm:admission_rejections_total{reason=\"max_num_queued_reqs\"} 9.0\n"
				 "vllm:admission_rejections_total{reason=\"max_num_queued_tokens\"} 2.0\n";
	assert_int_equal(fake_pool_round(p).refused, 7);
	fake_pool_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_never_tells_a_level_is_not_waited_for),
		cmocka_unit_test(who_never_listened_is_not_waited_for),
		cmocka_unit_test(who_never_listened_is_so_only_while_it_is_ready),
		cmocka_unit_test(a_pool_of_which_nobody_tells_is_not_known),
		cmocka_unit_test(who_fails_between_is_missed_anew),
		cmocka_unit_test(fallen_replicas_are_missed_where_no_other_is_ready),
		cmocka_unit_test(who_contradicts_itself_is_counted_and_named),
		cmocka_unit_test(a_sleeping_server_starts_nothing),
		cmocka_unit_test(refused_requests_are_counted),
	};

	return cmocka_run_group_tests_name("evidence of replicas", tests, NULL, NULL);
}
