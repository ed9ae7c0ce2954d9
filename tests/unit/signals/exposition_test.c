#include "signals/exposition.h"

#include "base/buf.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = { "a_total", "vllm:num_requests_running", "b_bucket", "a" };
static const struct exposition_names table = { names, sizeof names / sizeof *names };

static bool write_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	(void)e;
	buf_printf(user, "%s{%.*s}=%.*s@%.*s;", names[s->name], (int)s->labels.len, s->labels.text, (int)s->value.len,
		   s->value.text, (int)s->time.len, s->time.text);
	return true;
}

/* Fed in pieces of `piece` bytes; "" and an error's message, or what was told. */
static char *read_in_pieces(const char *page, size_t len, size_t piece, struct error *e)
{
	struct buf out = { 0 };
	struct exposition *x = exposition_open(table, 100, write_sample, &out);
	bool ok = true;

	*e = (struct error){ 0 };
	buf_text(&out, "");
	for (size_t at = 0; ok && at < len; at += piece)
		ok = exposition_feed(x, page + at, len - at < piece ? len - at : piece, e);
	ok = ok && exposition_finish(x, e);
	exposition_close(x);
	assert_int_equal(ok, e->kind == ERROR_NONE);
	return out.text;
}

static const struct {
	const char *page, *told, *error;
} pages[] = {
	{ "", "", NULL },
	{ "a 1\n", "a{}=1@;", NULL },
	{ "a 1", NULL, "line 1: the page ends within it" },
	{ "# HELP a Help.\n# TYPE a gauge\na 1\n\n  \t\na 2\n", "a{}=1@;a{}=2@;", NULL },
	{ "a\t 1 \t1712345678\n", "a{}=1@1712345678;", NULL },
	{ " a 1\r\n", "a{}=1@;", NULL },
	{ "a{} 1\na{x=\"y\"} 2\na{x=\"y\",} 3\n", "a{}=1@;a{x=\"y\"}=2@;a{x=\"y\",}=3@;", NULL },
	{ "a{ x = \"y\" , z=\"\" } 2\n", "a{ x = \"y\" , z=\"\" }=2@;", NULL },
	{ "a{x=\"}\\\"\\\\\"} 2\n", "a{x=\"}\\\"\\\\\"}=2@;", NULL },
	{ "a_total 1\nab 2\naa 3\na_total_created 4\na 5\n", "a_total{}=1@;a{}=5@;", NULL },
	{ "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n",
	  "vllm:num_requests_running{engine=\"0\",model_name=\"m\"}=3.0@;", NULL },
	{ "a NaN\na +Inf\na -1\na 1e+06\n", "a{}=NaN@;a{}=+Inf@;a{}=-1@;a{}=1e+06@;", NULL },
	{ "b_bucket{le=\"1\"} 2 # {trace_id=\"t\"} 0.5 1.2\n# EOF\n", "b_bucket{le=\"1\"}=2@;", NULL },
	{ "a 1 1.5 # {} 3\n# EOF", "a{}=1@1.5;", NULL },
	{ "a 1\n# EOF\na 2\nrest", "a{}=1@;", NULL },
	/* what is not asked for is not looked at */
	{ "<html>\n{\"json\": 1}\nother{ 1\na 1\n", "a{}=1@;", NULL },
	{ "a\n", NULL, "line 1: a: no value" },
	{ "a{x=\"1\"}\n", NULL, "line 1: a: no value" },
	{ "\na{x} 1\n", NULL, "line 2: a: a label is written name=\"value\"" },
	{ "a{=\"1\"} 1\n", NULL, "line 1: a: a label is written name=\"value\"" },
	{ "a{x=1} 1\n", NULL, "line 1: a: a label is written name=\"value\"" },
	{ "a{x=\"1} 1\n", NULL, "line 1: a: a label's value has no closing quote" },
	{ "a{x=\"1\\\n", NULL, "line 1: a: a label's value has no closing quote" },
	{ "a{x=\"1\" y=\"2\"} 1\n", NULL, "line 1: a: after a label comes a comma or the closing brace" },
	{ "a{x=\"1\"\n", NULL, "line 1: a: after a label comes a comma or the closing brace" },
	{ "a{x=\"1\",\n", NULL, "line 1: a: the labels have no closing brace" },
	{ "a{\n", NULL, "line 1: a: the labels have no closing brace" },
	{ "a 1 2 3\n", NULL, "line 1: a: more than a value and a time" },
};

static void pages_are_read_however_they_are_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		for (size_t piece = 1; piece <= strlen(pages[i].page) + 1; piece++) {
			struct error e;
			char *told = read_in_pieces(pages[i].page, strlen(pages[i].page), piece, &e);
			if (pages[i].error) {
				assert_int_equal(e.kind, ERROR_INVALID);
				assert_string_equal(e.message, pages[i].error);
			} else {
				assert_int_equal(e.kind, ERROR_NONE);
				assert_string_equal(told, pages[i].told);
			}
			free(told);
		}
}

static void refused(const struct buf *page, const char *message)
{
	static const size_t pieces[] = { 1 << 20, 1000, 7 };

	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct error e;
		free(read_in_pieces(page->text, page->len, pieces[i], &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_string_equal(e.message, message);
	}
}

static void lines_labels_and_samples_are_capped(void **state)
{
	struct buf page = { 0 };

	(void)state;
	buf_text(&page, "b 1\na{l=\"");
	for (int i = 0; i < EXPOSITION_LINE; i++)
		buf_text(&page, "x");
	buf_text(&page, "\"} 1\n");
	refused(&page, "line 2: longer than 16384 bytes");

	buf_clear(&page);
	buf_text(&page, "a{");
	for (int i = 0; i <= EXPOSITION_LABELS; i++)
		buf_printf(&page, "l%d=\"\",", i);
	buf_text(&page, "} 1\n");
	refused(&page, "line 1: a: more than 64 labels");

	buf_clear(&page);
	for (int i = 0; i <= 100; i++)
		buf_text(&page, "a 1\n");
	refused(&page, "line 101: more than 100 samples of the metrics asked for");
	buf_release(&page);
}

/* The adapters of a server in one label, say. */
static void a_long_line_of_another_name_is_passed_over(void **state)
{
	static const size_t pieces[] = { 1 << 20, 1000, 7 };
	struct buf page = { 0 };

	(void)state;
	buf_text(&page, "a 1\nadapters{names=\"");
	for (int i = 0; i < 2 * EXPOSITION_LINE; i++)
		buf_text(&page, i % 100 ? "x" : ",a 7");
	buf_text(&page, "\"} 1\na 2 x x\n");
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct error e;
		free(read_in_pieces(page.text, page.len, pieces[i], &e));
		assert_string_equal(e.message, "line 3: a: more than a value and a time");
		free(read_in_pieces(page.text, page.len - strlen("\na 2 x x\n"), pieces[i], &e));
		assert_string_equal(e.message, "line 2: the page ends within it");
	}
	buf_release(&page);
}

static bool refuse(void *user, const struct exposition_sample *s, struct error *e)
{
	(void)user, (void)s;
	return error_set(e, ERROR_QUOTA, "not this one");
}

static void a_refused_sample_ends_the_page(void **state)
{
	struct exposition *x = exposition_open(table, 100, refuse, NULL);
	struct error e = { 0 };

	(void)state;
	assert_false(exposition_feed(x, "other 1\na 1\n", 12, &e));
	assert_int_equal(e.kind, ERROR_QUOTA);
	assert_string_equal(e.message, "line 2: a: not this one");
	exposition_close(x);
}

/* A zero byte ends a name of ours, not one on a page; some of these are sought where ours is kept. */
static void a_zero_byte_is_part_of_a_name(void **state)
{
	char *name = strdup("a"), line[] = "a?00000 1\n";
	const char *one[] = { name };
	struct exposition *x = exposition_open((struct exposition_names){ one, 1 }, 100, refuse, NULL);
	struct error e = { 0 };

	(void)state;
	line[1] = '\0';
	for (int i = 0; i < 5000; i++) {
		for (int digit = 0, rest = i; digit < 5; digit++, rest /= 10)
			line[2 + digit] = (char)('0' + rest % 10);
		assert_true(exposition_feed(x, line, sizeof line - 1, &e));
	}
	exposition_close(x);
	free(name);
}

static void numbers_are_exact_and_others_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum exposition_number is;
		int64_t micros;
	} cases[] = {
		{ "0", EXPOSITION_NUMBER, 0 },
		{ "-0", EXPOSITION_NUMBER, 0 },
		{ "-0.0", EXPOSITION_NUMBER, 0 },
		{ "1", EXPOSITION_NUMBER, 1000000 },
		{ "+1", EXPOSITION_NUMBER, 1000000 },
		{ "12.0", EXPOSITION_NUMBER, 12000000 },
		{ "1.2345678e+07", EXPOSITION_NUMBER, INT64_C(12345678000000) },
		{ "0.1234567", EXPOSITION_NUMBER, 123457 },
		{ "1e-9", EXPOSITION_NUMBER, 0 },
		{ "1e11", EXPOSITION_NUMBER, INT64_C(100000000000000000) },
		{ "1.1e11", EXPOSITION_HUGE, 0 },
		{ "1e400", EXPOSITION_HUGE, 0 },
		{ "NaN", EXPOSITION_NAN, 0 },
		{ "nan", EXPOSITION_NAN, 0 },
		{ "+Inf", EXPOSITION_INFINITE, 0 },
		{ "Inf", EXPOSITION_INFINITE, 0 },
		{ "-Inf", EXPOSITION_NEGATIVE, 0 },
		{ "-1", EXPOSITION_NEGATIVE, 0 },
		{ "-1e-300", EXPOSITION_NEGATIVE, 0 },
		{ "-1e300", EXPOSITION_NEGATIVE, 0 },
		{ "", EXPOSITION_NONSENSE, 0 },
		{ "+", EXPOSITION_NONSENSE, 0 },
		{ "+-1", EXPOSITION_NONSENSE, 0 },
		{ "--1", EXPOSITION_NONSENSE, 0 },
		{ "1_000", EXPOSITION_NONSENSE, 0 },
		{ "0x10", EXPOSITION_NONSENSE, 0 },
		{ "1.2.3", EXPOSITION_NONSENSE, 0 },
		{ "infinite", EXPOSITION_NONSENSE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t out = -7;
		struct exposition_slice text = { cases[i].text, strlen(cases[i].text) };
		assert_int_equal(exposition_value(text, 6, &out), cases[i].is);
		assert_int_equal(out, cases[i].is == EXPOSITION_NUMBER ? cases[i].micros : -7);
	}
}

static bool find_labels(void *user, const struct exposition_sample *s, struct error *e)
{
	struct exposition_slice out;

	(void)e;
	assert_true(exposition_label(s, "le", &out));
	assert_int_equal(out.len, 3);
	assert_memory_equal(out.text, "0.5", 3);
	assert_true(exposition_label(s, "odd", &out));
	assert_int_equal(out.len, 9);
	assert_memory_equal(out.text, "le=\\\"9\\\",", 9);
	assert_false(exposition_label(s, "l", &out));
	assert_false(exposition_label(s, "lex", &out));
	++*(int *)user;
	return true;
}

static void labels_are_found_by_name(void **state)
{
	static const char page[] = "a{odd=\"le=\\\"9\\\",\",le=\"0.5\"} 1\n"
				   "a{ x=\"1\" , odd = \"le=\\\"9\\\",\",le=\"0.5\", } 1\n";
	int seen = 0;
	struct exposition *x = exposition_open(table, 100, find_labels, &seen);
	struct error e;

	(void)state;
	assert_true(exposition_feed(x, page, sizeof page - 1, &e));
	assert_int_equal(seen, 2);
	exposition_close(x);
}

/* Pages of random pieces of lines: whatever comes out is the same for every cut. */
static void any_cut_of_any_page_tells_the_same(void **state)
{
	static const char *const parts[] = { "a",     "a_total", "b_bucket", "{",    "}",  "le=\"1\"", ",",
					     " ",     "1.5",	 "NaN",	     "\n",   "\n", "\n",       "#",
					     "# EOF", "\\\"",	 "\t",	     "x=\"", "-3", "e9" };

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct random r = random_stream(seed, "page");
		struct buf page = { 0 };
		struct error whole_error, cut_error;
		for (uint64_t n = random_next(&r) % 40 + 1; n; n--)
			buf_text(&page, parts[random_next(&r) % (sizeof parts / sizeof *parts)]);
		char *whole = read_in_pieces(page.text, page.len, page.len, &whole_error);
		char *cut = read_in_pieces(page.text, page.len, random_next(&r) % 9 + 1, &cut_error);
		if (strcmp(whole, cut) != 0 || strcmp(whole_error.message, cut_error.message) != 0)
			print_message("seed %llu\n", (unsigned long long)seed);
		assert_string_equal(whole, cut);
		assert_string_equal(whole_error.message, cut_error.message);
		free(whole);
		free(cut);
		buf_release(&page);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_read_however_they_are_cut),
		cmocka_unit_test(lines_labels_and_samples_are_capped),
		cmocka_unit_test(a_long_line_of_another_name_is_passed_over),
		cmocka_unit_test(a_refused_sample_ends_the_page),
		cmocka_unit_test(a_zero_byte_is_part_of_a_name),
		cmocka_unit_test(numbers_are_exact_and_others_are_told_apart),
		cmocka_unit_test(labels_are_found_by_name),
		cmocka_unit_test(any_cut_of_any_page_tells_the_same),
	};

	return cmocka_run_group_tests_name("exposition", tests, NULL, NULL);
}
