#include "base/file.h"
#include "base/random.h"
#include "tests/unit/signals/fake_prometheus.h"

#include <unistd.h>

static const struct fake_series normal[] = {
	{ "\"namespace\":\"llm\",\"pod\":\"a\",\"instance\":\"10.0.0.1:8000\"", 3000, "10", "1", "0.5", 50, 40, 40, 0,
	  false, false },
	{ "\"pod\":\"b\",\"instance\":\"elsewhere:1\"", 4000, "11", "2", "0.25", 50, 40, 40, 0, false, false },
	{ "\"instance\":\"[fd00::3]:8000\"", 5000, "12", "0", "0.75", 50, 40, 40, 0, false, false },
	{ "\"namespace\":\"llm\",\"pod\":\"d\"", 6000, "4", "0", "1.5", 50, 40, 40, 0, false, false },
};

static struct fake_prometheus *open_normal(void)
{
	struct fake_prometheus *p = fake_open();

	memcpy(p->series, normal, sizeof normal);
	p->count = sizeof normal / sizeof *normal;
	return p;
}

static void work(struct fake_series *s, int64_t requests)
{
	s->started += requests;
	s->completed += requests;
	s->short_waits += requests;
}

static void expect_trouble(const struct fake_prometheus *p, enum error_kind kind, const char *says)
{
	struct source_report r = source_report(p->source);

	if (r.trouble.kind != kind || !strstr(r.trouble.message, says) || strstr(r.trouble.message, "word@"))
		fail_msg("wanted kind %d, '%s', got kind %d, '%s'", (int)kind, says, (int)r.trouble.kind,
			 r.trouble.message);
}

static void a_round_is_the_sum_of_its_replicas(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	struct pool_reading r = fake_round(p, EVERY);
	assert_int_equal(r.expected, 3);
	assert_int_equal(r.fresh, 3);
	assert_int_equal(r.ready, 3);
	assert_int_equal(r.running, 33);
	assert_int_equal(r.running_draining, 4);
	assert_int_equal(r.waiting, 3);
	assert_int_equal(r.kv_cache_permille, 500);
	assert_int_equal(r.started, READING_UNKNOWN);
	assert_int_equal(r.late, READING_UNKNOWN);
	assert_int_equal(r.completed, 0);
	assert_int_equal(r.at, clock_now(&p->clock));
	expect_trouble(p, ERROR_NONE, "");

	work(&p->series[0], 5);
	work(&p->series[3], 7);
	p->series[1].long_waits += 4;
	r = fake_round(p, EVERY);
	assert_int_equal(r.started, 12);
	assert_int_equal(r.completed, 12);
	assert_int_equal(r.prompt_tokens, 1200);
	assert_int_equal(r.late, 4);
	r = fake_round(p, EVERY);
	assert_int_equal(r.started, 0);
	assert_int_equal(r.late, 0);
	fake_close(p);
}

static void resets_count_from_zero_and_silence_at_its_mean(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	fake_round(p, EVERY);
	p->series[0].started = 3; /* restarted */
	work(&p->series[1], 4);
	struct pool_reading r = fake_round(p, EVERY);
	assert_int_equal(r.started, 7);

	p->count = 0; /* nothing shown for two minutes */
	for (int i = 0; i < 7; i++)
		assert_int_equal(fake_round(p, EVERY).fresh, 0);
	p->count = 4;
	work(&p->series[1], 80);
	r = fake_round(p, EVERY);
	assert_int_equal(r.fresh, 3);
	assert_int_equal(r.started, 10); /* an eighth: 15 of 120 s */
	fake_close(p);
}

/* A clock that runs faster than the world's, the server's: what came in its silence is spread over as long by ours. */
static void a_fast_clock_tells_how_long_it_was_silent(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	p->clock.speed = 30;
	p->series[1].age = 100;
	fake_round(p, EVERY);
	p->count = 0;
	for (int i = 0; i < 7; i++)
		fake_round(p, EVERY);
	p->count = 4;
	work(&p->series[1], 80);
	assert_int_equal(fake_round(p, EVERY).started, 10); /* an eighth: 15 of 120 s */
	fake_close(p);
}

static void what_is_old_is_not_fresh(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	p->series[0].age = 46 * SECOND;
	struct pool_reading r = fake_round(p, EVERY);
	assert_int_equal(r.expected, 3);
	assert_int_equal(r.fresh, 2);
	assert_int_equal(r.running, 23);
	expect_trouble(p, ERROR_TIMEOUT, "/prom: it has not read pod a for more than 3 intervals");
	p->series[0].age = 45 * SECOND;
	assert_int_equal(fake_round(p, EVERY).fresh, 3);
	expect_trouble(p, ERROR_NONE, "");
	p->count = 3;
	p->series[1].labels = "\"pod\":\"other\"";
	r = fake_round(p, EVERY);
	assert_int_equal(r.fresh, 2);
	expect_trouble(p, ERROR_NOT_FOUND, "no series of pod b");
	fake_close(p);
}

/* Prometheus reads a pod that is new when its turn comes; a server that tells of nobody is another matter. */
static void who_is_new_is_not_missed_for_a_minute(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	fake_targets(p, 2);
	p->count = 2;
	assert_int_equal(fake_round(p, EVERY).expected, 2);
	fake_targets(p, 3);
	struct pool_reading r = fake_round(p, EVERY);
	assert_int_equal(r.expected, 2);
	assert_int_equal(r.fresh, 2);
	p->count = 0;
	assert_int_equal(fake_round(p, EVERY).expected, 3);
	p->count = 2;
	assert_int_equal(fake_round(p, EVERY).expected, 2);
	r = fake_round(p, MINUTE);
	assert_int_equal(r.expected, 3);
	assert_int_equal(r.fresh, 2);
	p->count = 3;
	assert_int_equal(fake_round(p, EVERY).fresh, 3);
	p->count = 2;
	assert_int_equal(fake_round(p, EVERY).expected, 3); /* known, and gone */
	fake_close(p);
}

static const struct {
	const char *running, *waiting;
	enum error_kind kind;
	const char *says;
} lies[] = {
	{ "NaN", "0", ERROR_INVALID, "a: running requests: the value 'NaN' is not a number" },
	{ "+Inf", "0", ERROR_INVALID, "a: running requests: the value '+Inf' is more than can be" },
	{ "-1", "0", ERROR_INVALID, "is less than nothing" },
	{ "1e12", "0", ERROR_INVALID, "more than 1000000 requests cannot be" },
	{ "1", "", ERROR_INVALID, "a: no waiting requests" },
	{ "many", "0", ERROR_INVALID, "'many' is not a number" },
};

static void a_replica_that_lies_is_not_believed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct fake_prometheus *p = open_normal();
		fake_round(p, EVERY);
		p->series[0].running = lies[i].running;
		p->series[0].waiting = lies[i].waiting;
		work(&p->series[0], 5);
		work(&p->series[1], 5);
		struct pool_reading r = fake_round(p, EVERY);
		assert_int_equal(r.fresh, 2);
		assert_int_equal(r.running, 23);
		assert_int_equal(r.started, 5);
		expect_trouble(p, lies[i].kind, lies[i].says);
		p->series[0] = normal[0];
		work(&p->series[0], 5);
		assert_int_equal(fake_round(p, EVERY).started, 5);
		fake_close(p);
	}
}

static void a_jump_is_refused_once(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	fake_round(p, EVERY);
	p->series[0].completed = INT64_C(10000000000);
	struct pool_reading r = fake_round(p, EVERY);
	assert_int_equal(r.fresh, 2);
	expect_trouble(p, ERROR_INVALID, "a: finished requests: 9999999960 more within 15000 ms cannot be");
	r = fake_round(p, EVERY);
	assert_int_equal(r.fresh, 3);
	assert_int_equal(r.completed, 0);
	fake_close(p);
}

static const struct {
	const char *failing;
	int status;
	const char *body;
	enum error_kind kind;
	const char *says;
} refusals[] = {
	{ "timestamp", 503, "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}",
	  ERROR_UNAVAILABLE, "HTTP status 503: query timed out" },
	{ "timestamp", 422, "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many\\nseries\"}",
	  ERROR_INVALID, "HTTP status 422: too many\\x0aseries" },
	{ "timestamp", 200, "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"slow\"}", ERROR_TIMEOUT,
	  "timeout: slow" },
	{ "timestamp", 401, "<html>", ERROR_AUTH, "HTTP status 401" },
	{ "timestamp", 200, "<html>", ERROR_INVALID, "not JSON" },
	{ "timestamp", 200, "", ERROR_INVALID, "" },
	{ "timestamp", 200, "[]", ERROR_INVALID, "no answer of Prometheus' API" },
	{ "timestamp", 200, "{}", ERROR_INVALID, "no answer of Prometheus' API" },
	{ "timestamp", 200, "{\"status\":\"success\"}", ERROR_INVALID, "without data.result" },
	{ "timestamp", 200, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[", ERROR_INVALID,
	  "" },
	{ "timestamp", 200, "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,\"x\"]}}",
	  ERROR_INVALID, "resultType: found 'string'" },
	{ "timestamp", 200, "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}",
	  ERROR_INVALID, "a scalar" },
	{ "timestamp", 200, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
	  ERROR_NOT_FOUND, "no series of vllm:num_requests_running" },
	{ "timestamp", 200,
	  "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"pod\":\"x\"},"
	  "\"value\":[1,\"2\"]}]}}",
	  ERROR_NOT_FOUND, "1 series, none of a pod of the pool" },
	{ "timestamp", 200,
	  "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},\"histogram\":[1,{}]}"
	  "]}}",
	  ERROR_INVALID, "native histogram" },
	{ "sum by", 500, "", ERROR_UNAVAILABLE, "running requests: http" },
};

/* Nothing is known then, which is not nothing. */
static void a_server_that_refuses_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct fake_prometheus *p = open_normal();
		fake_round(p, EVERY);
		p->failing = refusals[i].failing;
		p->status = refusals[i].status;
		p->body = refusals[i].body;
		work(&p->series[0], 5);
		struct pool_reading r = fake_round(p, EVERY);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 0);
		expect_trouble(p, refusals[i].kind, refusals[i].says);
		assert_int_equal(source_report(p->source).blind, 1);
		p->failing = NULL;
		r = fake_round(p, EVERY);
		assert_int_equal(r.fresh, 3);
		assert_int_equal(r.started, 5); /* nothing was lost */
		fake_close(p);
	}
}

static void a_partial_answer_tells_the_rest(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	fake_round(p, EVERY);
	fake_round(p, EVERY);
	p->failing = "time_to_first_token";
	p->status = 422;
	p->body = "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"no\"}";
	p->extra =
		",\"warnings\":[\"store \\u0007 is away\",\"and more\"],\"infos\":[\"metric might not be a counter\"]";
	work(&p->series[0], 5);
	struct pool_reading r = fake_round(p, EVERY);
	assert_int_equal(r.fresh, 3);
	assert_int_equal(r.started, READING_UNKNOWN); /* not zero */
	assert_int_equal(r.completed, 5);
	expect_trouble(p, ERROR_INVALID, "started requests: ");
	assert_string_equal(source_report(p->source).warning, "store \\x07 is away");
	p->failing = p->extra = NULL;
	work(&p->series[0], 2);
	r = fake_round(p, EVERY);
	assert_int_equal(r.started, 7); /* with what could not be asked */
	assert_int_equal(r.completed, 2);
	assert_string_equal(source_report(p->source).warning, "");
	fake_close(p);
}

static void a_server_that_drips_or_never_ends_is_contained(void **state)
{
	static const struct {
		struct played_answer other;
		const char *body;
		enum error_kind kind;
		const char *says;
	} cases[] = { { { .is_silent = true }, "{\"status\":", ERROR_TIMEOUT, "" },
		      { { .is_endless = true },
			"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[",
			ERROR_INVALID,
			"" },
		      { { .kind = ERROR_UNAVAILABLE }, "", ERROR_UNAVAILABLE, "" } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fake_prometheus *p = open_normal();
		struct played_answer other = cases[i].other;
		buf_text(&other.body, cases[i].body);
		p->other = &other;
		source_close(p->source);
		fake_open_source(p, &(struct http_auth_settings){ 0 }, SECOND);
		played_turn(SECOND - 1);
		assert_int_equal(p->reading_count != 0, cases[i].kind != ERROR_TIMEOUT);
		played_turn(1);
		assert_true(p->reading_count > 0);
		assert_int_equal(p->readings[0].expected, 3);
		assert_int_equal(p->readings[0].fresh, 0);
		expect_trouble(p, cases[i].kind, cases[i].says);
		fake_close(p);
		buf_release(&other.body);
	}
}

/* Two jobs read one pod; the one that was chosen stays, until it grows old. */
static void a_replica_read_twice_counts_once(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	p->series[p->count] = normal[0];
	p->series[p->count++].labels = "\"pod\":\"a\",\"instance\":\"10.0.0.1:8000\",\"job\":\"second\"";
	p->series[4].age = 1000;
	p->series[4].running = "20";
	for (int i = 0; i < 3; i++) {
		struct pool_reading r = fake_round(p, EVERY);
		assert_int_equal(r.running, 43);
		p->series[0].age = 0; /* newer now, and yet not chosen */
	}
	p->series[4].age = 50 * SECOND;
	assert_int_equal(fake_round(p, EVERY).running, 33);
	fake_close(p);
}

static void no_replicas_ask_nothing(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	fake_targets(p, 0);
	for (int i = 0; i < 3; i++) {
		struct pool_reading r = fake_round(p, EVERY);
		assert_int_equal(r.expected + r.fresh + r.running + r.waiting, 0);
	}
	assert_int_equal(p->asked, 0);
	fake_targets(p, 4);
	assert_int_equal(fake_round(p, EVERY).fresh, 3);
	assert_int_equal(p->asked, 20);
	fake_close(p);
}

static void in_flight_is_told_with_its_age(void **state)
{
	struct fake_prometheus *p = open_normal();
	int64_t count;
	millis age;

	(void)state;
	assert_false(source_in_flight(p->source, "llm/a/1", &count, &age));
	fake_round(p, EVERY);
	clock_turn(&p->clock, 4 * SECOND);
	assert_true(source_in_flight(p->source, "llm/a/1", &count, &age));
	assert_int_equal(count, 11);
	assert_int_equal(age, 7 * SECOND); /* it was scraped three seconds before it was asked for */
	assert_false(source_in_flight(p->source, "llm/z/1", &count, &age));
	fake_targets(p, 3);
	fake_close(p);
}

static void secrets_are_read_for_every_call_and_never_told(void **state)
{
	struct fake_prometheus *p = open_normal();
	char path[] = "/tmp/preheat-secret-XXXXXX";
	struct error e;

	(void)state;
	close(mkstemp(path));
	source_close(p->source);
	fake_open_source(p, &(struct http_auth_settings){ .bearer_token_file = path }, EVERY);
	fake_round(p, EVERY);
	expect_trouble(p, ERROR_AUTH, "found nothing; allowed: a secret on one line");
	assert_int_equal(p->asked, 0);
	assert_true(file_write(path, "one\n", 4, &e));
	assert_int_equal(fake_round(p, EVERY).fresh, 3);
	assert_string_equal(p->authorization, "Bearer one");
	assert_true(file_write(path, "tw\to", 4, &e));
	fake_round(p, EVERY);
	expect_trouble(p, ERROR_AUTH, "found a control character");

	source_close(p->source);
	assert_true(file_write(path, "open sesame", 11, &e));
	fake_open_source(p, &(struct http_auth_settings){ .username = "Aladdin", .password_file = path }, EVERY);
	fake_round(p, EVERY);
	assert_string_equal(p->authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
	unlink(path);
	fake_round(p, EVERY);
	expect_trouble(p, ERROR_AUTH, path);
	fake_close(p);
}

/* Ranks that work on the same requests count once. */
/* Prometheus reads a page of it, on which nothing is of the engine; one that it does not read is missed for ever. */
static void who_never_tells_a_level_is_not_waited_for(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		struct fake_prometheus *p = open_normal();
		struct pool_reading r = { 0 };
		bool is_read = way == 0;
		p->series[2].is_worker = true;
		p->series[2].is_down = way == 1;
		if (way == 2)
			p->series[2].labels = "\"instance\":\"other:1\"";
		for (int n = 0; n < 20; n++)
			r = fake_round(p, EVERY);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 2);
		expect_trouble(p, ERROR_NOT_FOUND,
			       "no series of pod c; do: have it read, or name those that tell with");
		for (int n = 0; n < 3; n++)
			r = fake_round(p, EVERY);
		assert_int_equal(r.expected, is_read ? 2 : 3);
		assert_int_equal(r.fresh, 2);
		assert_int_equal(strstr(source_report(p->source).warning, "1 ready pods refuse") != NULL, is_read);
		expect_trouble(p, is_read ? ERROR_NONE : ERROR_NOT_FOUND, "");
		/* It tells at last. */
		p->series[2] = normal[2];
		r = fake_round(p, EVERY);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 3);
		/* One that told once is a server, whatever it says later. */
		p->series[2].is_worker = true;
		for (int n = 0; n < 30; n++)
			r = fake_round(p, EVERY);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 2);
		fake_close(p);
	}
}

static struct pool_reading after_six_minutes(struct fake_prometheus *p)
{
	struct pool_reading r = { 0 };

	for (int n = 0; n < 24; n++)
		r = fake_round(p, EVERY);
	return r;
}

/* A wrong label or engine is no pool of workers, also where one that drains tells. */
static void a_pool_of_which_nobody_tells_is_not_known(void **state)
{
	static const char *const troubles[] = { "no series of vllm:num_requests_running; is the engine right",
						"no series of pod a; do: have it read" };

	(void)state;
	for (size_t drains = 0; drains < 2; drains++) {
		struct fake_prometheus *p = open_normal();
		for (size_t i = 0; i < p->count - drains; i++)
			p->series[i].is_worker = true;
		struct pool_reading r = after_six_minutes(p);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 0);
		assert_string_equal(source_report(p->source).warning, "");
		expect_trouble(p, ERROR_NOT_FOUND, troubles[drains]);
		fake_close(p);
	}
}

/* It tells levels, and they make no sense; or one of its two pages cannot be read. */
static void who_tells_nonsense_is_waited_for(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct fake_prometheus *p = open_normal();
		p->series[2].is_worker = way;
		p->series[2].running = "NaN";
		p->series[4] = p->series[2];
		p->series[4].is_down = p->series[4].is_worker = true;
		p->count += (size_t)way;
		assert_int_equal(after_six_minutes(p).expected, 3);
		assert_string_equal(source_report(p->source).warning, "");
		fake_close(p);
	}
}

static void who_drains_is_not_passed_over(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	p->series[3].is_worker = true;
	assert_int_equal(after_six_minutes(p).expected, 3);
	assert_string_equal(source_report(p->source).warning, "");
	fake_close(p);
}

#define ONCE "max without (tp_rank, pp_rank, moe_ep_rank) ("

static void the_engines_names_are_asked_best_first(void **state)
{
	struct fake_prometheus *p = open_normal();

	(void)state;
	p->failing = "cache_usage";
	p->body = "";
	fake_round(p, EVERY);
	p->failing = NULL;
	const struct promql_label labels[] = { { "a", "x\\y\"z\n" } };
	const struct promql_scope scope = { engine_metrics(ENGINE_TRITON), labels, 1 };
	CLEANUP(buf_release) struct buf text = { 0 };
	assert_true(promql_now(&scope, ENGINE_RUNNING, &text));
	assert_string_equal(text.text,
			    "sum by (" PROMQL_PLACE ") (" ONCE "nv_trt_llm_request_metrics{a=\"x\\\\y\\\"z\\n\","
			    "request_type=\"scheduled\"})) or sum by (" PROMQL_PLACE ") (" ONCE
			    "trtllm_num_requests_running{a=\"x\\\\y\\\"z\\n\"})) or max by (" PROMQL_PLACE
			    ") (trtllm_model_config_info{a=\"x\\\\y\\\"z\\n\"}) * 0");
	buf_clear(&text);
	assert_false(promql_now(&scope, ENGINE_PREFIX_SHARE, &text));
	assert_int_equal(text.len, 0);
	assert_true(promql_pool(&scope, ENGINE_COMPLETED, 15000, 60000, &text));
	assert_string_equal(text.text,
			    "sum(max by (namespace, pod, instance) (max by (" PROMQL_PLACE
			    ") (increase(nv_inference_request_success{a=\"x\\\\y\\\"z\\n\"}[60s])) or "
			    "sum by (" PROMQL_PLACE ") (" ONCE "increase(trtllm_request_success_total{a=\"x\\\\y"
			    "\\\"z\\n\"}[60s]))))) * 15 / 60");
	buf_clear(&text);
	/* Names that are added up: counters, too, of which a function forgets the name. */
	const struct promql_scope several = { engine_metrics(ENGINE_LLAMACPP), NULL, 0 };
	assert_true(promql_pool(&several, ENGINE_PROMPT_TOKENS, 15000, 15000, &text));
	assert_string_equal(text.text, "sum(max by (namespace, pod, instance) (sum by (" PROMQL_PLACE ") (" ONCE
				       "label_replace(increase(llamacpp:prompt_tokens_total{}[15s]), \"metric\", "
				       "\"3\", \"namespace\", \".*\") or label_replace(increase("
				       "llamacpp:prompt_tokens_cached_total{}[15s]), \"metric\", \"4\", \"namespace\", "
				       "\".*\")))))");
	fake_close(p);
}

static void random_servers_are_never_overstated(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct fake_prometheus *p = open_normal();
		struct random r = random_stream(seed, "prometheus");
		int64_t worked = 0, told = 0;
		for (int round = 0; round < 30; round++) {
			struct pool_reading read = fake_round(p, EVERY);
			told += read.started == READING_UNKNOWN ? 0 : read.started;
			if (told > worked || read.fresh > read.expected)
				fail_msg("seed %" PRIu64 ": %" PRId64 " told, %" PRId64 " worked", seed, told, worked);
			p->failing = random_next(&r) % 4 ? NULL : random_next(&r) % 2 ? "timestamp" : "first_token";
			p->status = 500;
			p->body = "";
			int64_t requests = (int64_t)(random_next(&r) % 50);
			size_t pod = random_next(&r) % 4;
			work(&p->series[pod], requests);
			worked += requests;
			p->series[pod].age = (millis)(random_next(&r) % 60) * SECOND;
			if (random_next(&r) % 9 == 0)
				p->series[pod].started = 0;
			fake_targets(p, 3 + random_next(&r) % 2);
		}
		fake_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_round_is_the_sum_of_its_replicas),
		cmocka_unit_test(resets_count_from_zero_and_silence_at_its_mean),
		cmocka_unit_test(a_fast_clock_tells_how_long_it_was_silent),
		cmocka_unit_test(what_is_old_is_not_fresh),
		cmocka_unit_test(who_is_new_is_not_missed_for_a_minute),
		cmocka_unit_test(a_replica_that_lies_is_not_believed),
		cmocka_unit_test(a_jump_is_refused_once),
		cmocka_unit_test(a_server_that_refuses_is_named),
		cmocka_unit_test(a_partial_answer_tells_the_rest),
		cmocka_unit_test(a_server_that_drips_or_never_ends_is_contained),
		cmocka_unit_test(a_replica_read_twice_counts_once),
		cmocka_unit_test(no_replicas_ask_nothing),
		cmocka_unit_test(in_flight_is_told_with_its_age),
		cmocka_unit_test(secrets_are_read_for_every_call_and_never_told),
		cmocka_unit_test(who_never_tells_a_level_is_not_waited_for),
		cmocka_unit_test(a_pool_of_which_nobody_tells_is_not_known),
		cmocka_unit_test(who_tells_nonsense_is_waited_for),
		cmocka_unit_test(who_drains_is_not_passed_over),
		cmocka_unit_test(the_engines_names_are_asked_best_first),
		cmocka_unit_test(random_servers_are_never_overstated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
