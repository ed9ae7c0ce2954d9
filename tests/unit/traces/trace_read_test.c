#include "controller/traces/trace.h"

#include "base/buf.h"
#include "tests/unit/text_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define HEADER "arrival_s,prompt_tokens,output_tokens\n"
#define BINS   "t_s,n_req,prompt_tokens,output_tokens\n"

static bool read_text(const char *text, size_t len, struct trace *t, struct error *e)
{
	struct text_file f = text_file(text, len);
	bool ok = trace_read(f.path, t, e);

	text_file_close(&f);
	return ok;
}

static void requests_with_labels(void **state)
{
	const char *text =
		"arrival_s,prompt_tokens,output_tokens,class\r\n0.0005,1,2,a\r\n1.5,3,4,b\r\n1.5,5,6,a\r\n2,7,8,";
	struct trace t;
	struct error e;

	(void)state;
	assert_true(read_text(text, strlen(text), &t, &e));
	assert_false(t.is_binned);
	assert_int_equal(t.request_count, 4);
	assert_int_equal(t.requests[0].arrival, 1);
	assert_int_equal(t.requests[1].arrival, 1500);
	assert_int_equal(t.requests[2].prompt_tokens, 5);
	assert_int_equal(t.requests[2].output_tokens, 6);
	assert_int_equal(t.label_count, 2);
	assert_string_equal(t.labels[0], "a");
	assert_string_equal(t.labels[1], "b");
	assert_int_equal(t.requests[2].label, 0);
	assert_int_equal(t.requests[3].label, -1);
	assert_int_equal(t.length, 3000);
	trace_release(&t);
}

static void bins_with_gaps(void **state)
{
	const char *text = BINS "5,1,2,3\n35,4,5,6\n45,0,0,0\n\n";
	struct trace t;
	struct error e;

	(void)state;
	assert_true(read_text(text, strlen(text), &t, &e));
	assert_true(t.is_binned);
	assert_int_equal(t.bin_count, 3);
	assert_int_equal(t.bin_width, 10000);
	assert_int_equal(t.bins[1].at, 35000);
	assert_int_equal(t.bins[1].output_tokens, 6);
	assert_int_equal(t.length, 55000);
	trace_release(&t);
}

/* Each names the line and the column, and leaves the output alone. */
static void bad_input(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "", "the file is empty" },
		{ "\n", "wrong columns: found ''" },
		{ HEADER, "no rows after the first line" },
		{ "arrival,prompt,output\n1,2,3\n", ":1: wrong columns: found 'arrival,prompt,output'; allowed: "
						    "arrival_s,prompt_tokens,output_tokens[,class] or t_s,n_req" },
		{ "arrival_s,prompt_tokens,output_tokens,colour\n", ":1: wrong columns" },
		{ "arrival_s,prompt_tokens\n", ":1: wrong columns" },
		{ "1,2,3\n", ":1: wrong columns: found '1,2,3'" },
		{ HEADER "1,2\n", ":2: found 2 columns; allowed: 3" },
		{ HEADER "1,2,3,4\n", ":2: found 4 columns; allowed: 3" },
		{ HEADER "1,2,3,4,5,6,7\n", ":2: found at least 5 columns; allowed: 3" },
		{ HEADER "0,1,1\nNaN,2,3\n", ":3: column arrival_s: found 'NaN'; allowed: seconds" },
		{ HEADER "inf,2,3\n", ":2: column arrival_s: found 'inf'" },
		{ HEADER "-1,2,3\n", ":2: column arrival_s: found '-1'" },
		{ HEADER "1e18,2,3\n", ":2: column arrival_s: found '1e18'" },
		{ HEADER "1,-2,3\n",
		  ":2: column prompt_tokens: found '-2'; allowed: a whole number from 0 to 10000000" },
		{ HEADER "1,2.5,3\n", ":2: column prompt_tokens: found '2.5'" },
		{ HEADER "1,2,99999999999\n", ":2: column output_tokens: found '99999999999'" },
		{ HEADER "1,2,\n", ":2: column output_tokens: found nothing" },
		{ HEADER "1,2,nan\n", ":2: column output_tokens: found 'nan'" },
		{ HEADER "1,2,\x1b[31m\n", "found '\\x1b[31m'" },
		{ HEADER "2,1,1\n1,1,1\n", ":3: column arrival_s: earlier than the line before; rows must be sorted" },
		{ HEADER "1,1,1\n\n2,1,1\n", ":4: an empty line stands before this one" },
		{ "arrival_s,prompt_tokens,output_tokens,class\n1,1,1,\"a\"\n", ":2: column class: found '\"a\"'" },
		{ BINS "0,1,1,1\n", "only one bin" },
		{ BINS "0,1,1,1\n0,1,1,1\n", ":3: column t_s: not after the line before" },
		{ BINS "10,1,1,1\n0,1,1,1\n", ":3: column t_s: not after the line before" },
		{ BINS "0,1,1,1\n10,1,1,1\n25,1,1,1\n",
		  ":4: column t_s: found 25.000; allowed: whole bins of 10.000 s" },
		{ BINS "0,0,1,1\n10,1,1,1\n", ":2: column n_req: found 0 in a bin that has tokens" },
		{ BINS "0,1e12,1,1\n", ":2: column n_req: found '1e12'; allowed: a whole number from 0 to 1000000000" },
		{ BINS "0,-1,1,1\n", ":2: column n_req: found '-1'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace t = { .length = 77 };
		struct error e = { 0 };
		if (read_text(cases[i].text, strlen(cases[i].text), &t, &e) || !strstr(e.message, cases[i].message))
			fail_msg("case %zu: expected '%s', got '%s'", i, cases[i].message, e.message);
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_int_equal(t.length, 77);
	}
}

static void labels_are_capped(void **state)
{
	struct buf text = { 0 };
	struct trace t;
	struct error e;

	(void)state;
	buf_text(&text, "arrival_s,prompt_tokens,output_tokens,class\n");
	for (int i = 0; i < TRACE_MAX_LABELS; i++)
		buf_printf(&text, "%d,1,1,label-%d\n", i, i);
	assert_true(read_text(text.text, text.len, &t, &e));
	assert_int_equal(t.label_count, TRACE_MAX_LABELS);
	assert_string_equal(t.labels[4000], "label-4000");
	trace_release(&t);
	buf_printf(&text, "%d,1,1,one-more\n", TRACE_MAX_LABELS);
	assert_false(read_text(text.text, text.len, &t, &e));
	assert_non_null(strstr(e.message, ":4098: column class: found 'one-more'; allowed: "));
	assert_non_null(strstr(e.message, "at most 4096 different"));
	buf_release(&text);
}

/* What is written reads back the same, in both forms. */
static void comes_back(void **state)
{
	static const char *const texts[] = {
		HEADER "0.000,1,2\n1.234,3,4\n1.234,0,0\n100.999,10000000,5\n",
		"arrival_s,prompt_tokens,output_tokens,class\n0.001,1,2,x y\n3.000,1,2,\n",
		BINS "0,1,2,3\n10,0,0,0\n30,4,5,6\n",
		BINS "0.500,1,2,3\n1,7,8,9\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct text_file f = text_file("", 0);
		char back[512];
		struct trace t;
		struct error e;
		assert_true(read_text(texts[i], strlen(texts[i]), &t, &e));
		int out = dup(STDOUT_FILENO);
		fflush(stdout);
		dup2(f.fd, STDOUT_FILENO);
		bool ok = trace_write(&t, "-", &e);
		dup2(out, STDOUT_FILENO);
		close(out);
		assert_true(ok);
		ssize_t n = pread(f.fd, back, sizeof back - 1, 0);
		back[n > 0 ? n : 0] = '\0';
		assert_string_equal(back, texts[i]);
		trace_release(&t);
		text_file_close(&f);
	}
}

static void counting_into_bins(void **state)
{
	const char *text = HEADER "0,1,2\n9.999,3,4\n10,5,6\n45,7,8\n";
	struct trace t, bins, wider;
	struct error e;

	(void)state;
	assert_true(read_text(text, strlen(text), &t, &e));
	assert_true(trace_to_bins(&t, 10 * SECOND, &bins, &e));
	assert_int_equal(bins.bin_count, 3);
	assert_int_equal(bins.bins[0].requests, 2);
	assert_int_equal(bins.bins[0].prompt_tokens, 4);
	assert_int_equal(bins.bins[0].output_tokens, 6);
	assert_int_equal(bins.bins[2].at, 40000);
	assert_int_equal(bins.length, 50000);
	assert_true(trace_to_bins(&bins, 20 * SECOND, &wider, &e));
	assert_int_equal(wider.bin_count, 2);
	assert_int_equal(wider.bins[0].requests, 3);
	assert_false(trace_to_bins(&bins, 15 * SECOND, &wider, &e));
	assert_non_null(strstr(e.message, "a multiple of 10000 ms"));
	trace_release(&t);
	trace_release(&bins);
	trace_release(&wider);
}

static void sorting_is_stable(void **state)
{
	enum { COUNT = 5000 };
	struct request rows[COUNT];
	uint64_t x = 1;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		rows[i] = (struct request){ .arrival = (millis)(x >> 40) % 3000 * (i % 2 ? 1 : 100000),
					    .prompt_tokens = i };
	}
	requests_sort(rows, COUNT);
	for (int i = 1; i < COUNT; i++) {
		assert_true(rows[i - 1].arrival <= rows[i].arrival);
		if (rows[i - 1].arrival == rows[i].arrival)
			assert_true(rows[i - 1].prompt_tokens < rows[i].prompt_tokens);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_with_labels),
		cmocka_unit_test(bins_with_gaps),
		cmocka_unit_test(bad_input),
		cmocka_unit_test(labels_are_capped),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(counting_into_bins),
		cmocka_unit_test(sorting_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
