/* One pod of three lies: it adds nothing, the others count, and the trouble names it and says why. */
#include "tests/unit/signals/fake_pods.h"

#define LEVELS "vllm:num_requests_running 1\nvllm:num_requests_waiting 1\n"

static void write_twice(struct buf *out)
{
	buf_text(out, LEVELS "vllm:request_success_total{a=\"1\"} 1\nvllm:request_success_total{a=\"1\"} 2\n");
}

static void write_million(struct buf *out)
{
	buf_text(out, LEVELS);
	for (int i = 0; i < 30000; i++)
		buf_printf(out, "vllm:request_success_total{i=\"%d\"} 1\n", i);
}

static void write_unasked_million(struct buf *out)
{
	buf_text(out, LEVELS);
	for (int i = 0; i < 200000; i++)
		buf_printf(out, "other{i=\"%d\"} 1\n", i);
}

static void write_long_line(struct buf *out)
{
	buf_text(out, LEVELS "vllm:request_success_total{a=\"");
	for (int i = 0; i < 20000; i++)
		buf_text(out, "x");
	buf_text(out, "\"} 1\n");
}

static void write_jump(struct buf *out)
{
	buf_text(out, LEVELS "vllm:request_success_total{engine=\"0\"} 1e13\n");
}

static void write_crowd(struct buf *out)
{
	buf_text(out, "vllm:num_requests_running 1e7\nvllm:num_requests_waiting 1\n");
}

static void write_nan(struct buf *out)
{
	buf_text(out, "vllm:num_requests_running NaN\nvllm:num_requests_waiting 1\n");
}

static void write_negative(struct buf *out)
{
	buf_text(out, "vllm:num_requests_running 1\nvllm:num_requests_waiting -4\n");
}

static void write_login(struct buf *out)
{
	buf_text(out, "<html><body>please log in</body></html>\n");
}

static void write_nothing(struct buf *out)
{
	buf_text(out, "");
}

static const struct lie {
	const char *name;
	void (*write)(struct buf *out);
	int status;
	const char *type, *says;
} lies[] = {
	{ "NaN", write_nan, 0, NULL, "line 1: vllm:num_requests_running: the value 'NaN' is not a number" },
	{ "negative", write_negative, 0, NULL,
	  "line 2: vllm:num_requests_waiting: the value '-4' is less than nothing" },
	{ "more than can run", write_crowd, 0, NULL, "more than 1000000 requests cannot be" },
	{ "a jump", write_jump, 0, NULL, "finished requests: 9999999999900 more within 5000 ms cannot be" },
	{ "twice", write_twice, 0, NULL, "vllm:request_success_total: the same series twice" },
	{ "a million series", write_million, 0, NULL, "more than 20000 samples" },
	{ "series not asked for", write_unasked_million, 0, NULL, "the page is longer than 2097152 bytes" },
	{ "a long line", write_long_line, 0, NULL, "longer than 16384 bytes" },
	{ "another page", write_login, 0, "text/html",
	  "has no vllm:num_requests_running or ray_vllm_num_requests_running: is this the metrics page of the "
	  "engine? (its type is 'text/html')" },
	{ "nothing", write_nothing, 0, NULL, "has no vllm:num_requests_running" },
	{ "a redirect", write_login, 302, NULL, "HTTP status 302: redirects are not followed" },
	{ "refused", write_nothing, 403, NULL, "HTTP status 403" },
};

static void a_lie_is_contained_and_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct fake_pool *p = fake_pool_open(3);
		CLEANUP(buf_release) struct buf bytes = { 0 };
		for (int n = 0; n < 3; n++)
			p->pods[n] = (struct fake_pod){ .running = 10, .waiting = 1, .completed = 100 };
		fake_pool_round(p);
		assert_int_equal(fake_pool_trouble(p)->kind, ERROR_NONE);

		lies[i].write(&bytes);
		p->pods[1].bytes = &bytes;
		p->pods[1].status = lies[i].status;
		p->pods[1].type = lies[i].type;
		struct pool_reading r = fake_pool_round(p);
		assert_int_equal(r.expected, 3);
		assert_int_equal(r.fresh, 2);
		assert_int_equal(r.running, 20);
		assert_int_equal(r.waiting, 2);
		assert_int_not_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
		if (!strstr(fake_pool_trouble(p)->message, lies[i].says) ||
		    strncmp(fake_pool_trouble(p)->message, "pod pod-001: ", 13) != 0)
			fail_msg("%s: %s", lies[i].name, fake_pool_trouble(p)->message);

		p->pods[1] = p->pods[0];
		fake_pool_round(p);
		assert_int_equal(fake_pool_round(p).fresh, 3);
		assert_int_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
		fake_pool_close(p);
	}
}

static void several_are_counted(void **state)
{
	struct fake_pool *p = fake_pool_open(5);

	(void)state;
	for (int i = 1; i < 4; i++)
		p->pods[i].status = 500;
	p->targets[3].is_ready = false;
	source_set_targets(p->source, p->targets, 5);
	fake_pool_round(p);
	assert_int_not_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
	assert_non_null(strstr(fake_pool_trouble(p)->message, "2 of 4 pods were not read, first: pod pod-001: http"));
	fake_pool_close(p);
}

/* Something in between keeps an old page, with the times that it had. */
static void a_time_that_stands_still_is_noticed(void **state)
{
	static const char *const pages[] = {
		"vllm:num_requests_running 7 1700000000000\nvllm:num_requests_waiting 1 1700000000000\n",
		"vllm:num_requests_running 7 1700000000.25\nvllm:num_requests_waiting 1\n# EOF\n"
	};

	(void)state;
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		struct fake_pool *p = fake_pool_open(1);
		p->pods[0].page = pages[i];
		for (int round = 0; round <= READING_GAP; round++)
			assert_int_equal(fake_pool_round(p).fresh, 1);
		assert_int_equal(fake_pool_round(p).fresh, 0);
		assert_int_not_equal(fake_pool_trouble(p)->kind, ERROR_NONE);
		assert_non_null(strstr(fake_pool_trouble(p)->message, "time stamps have stood still for 20 s"));
		p->pods[0].page = "vllm:num_requests_running 7 1\nvllm:num_requests_waiting 1 1\n";
		assert_int_equal(fake_pool_round(p).fresh, 1); /* far in the past, but another one: clocks differ */
		fake_pool_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lie_is_contained_and_named),
		cmocka_unit_test(several_are_counted),
		cmocka_unit_test(a_time_that_stands_still_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
