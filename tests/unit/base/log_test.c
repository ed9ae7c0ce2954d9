#include "base/log.h"
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define START "{\"ts\":\"2025-11-20T08:15:04.250Z\",\"level\":\"info\",\"event\":\"launch-asked\""

static struct clock hour; /* 2025-11-20 08:15:04.250 */
static struct buf written;

static void keep(void *user, enum log_level level, const char *line)
{
	(void)user;
	(void)level;
	buf_printf(&written, "%s%s", written.len ? "\n" : "", line);
}

static struct log_setup as(bool is_human)
{
	return (struct log_setup){ .least = LEVEL_INFO, .is_human = is_human, .clock = &hour, .write = keep };
}

static int begin(void **state)
{
	struct log_setup s = as(false);

	(void)state;
	hour = clock_open_by_hand(1763626504250);
	buf_clear(&written);
	buf_text(&written, "");
	log_set_up(&s);
	return 0;
}

static void a_line_is_json(void **state)
{
	(void)state;
	log_info("launch-asked", LOG_S("group", "g5"), LOG_I("count", 2), LOG_B("dryRun", false), LOG_END);
	assert_string_equal(written.text, START ",\"group\":\"g5\",\"count\":2,\"dryRun\":false}");
}

static void an_event_needs_no_fields(void **state)
{
	(void)state;
	log_info("launch-asked", LOG_END);
	assert_string_equal(written.text, START "}");
}

static void a_failure_has_its_kind(void **state)
{
	struct error e;

	(void)state;
	error_set(&e, ERROR_TIMEOUT, "GET https://a/b: no answer");
	log_info("launch-asked", LOG_E(&e), LOG_S("none", NULL), LOG_END);
	assert_string_equal(written.text,
			    START ",\"error\":\"GET https://a/b: no answer\",\"kind\":\"timeout\",\"none\":null}");
}

static void texts_cannot_break_the_line(void **state)
{
	static const struct {
		const char *text, *json, *human;
	} cases[] = {
		{ "", "\"\"", "\"\"" },
		{ "two words", "\"two words\"", "\"two words\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"", "\"a\\\"b\\\\c\"" },
		{ "new\nline\r\x1b[31m", "\"new\\nline\\u000d\\u001b[31m\"", "\"new\\nline\\u000d\\u001b[31m\"" },
		{ "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"", "gr\xc3\xbc\xc3\x9f" },
		{ "bad\xff\xc3", "\"bad\xef\xbf\xbd\xef\xbf\xbd\"", "bad\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc2\x9b"
		  "31m",
		  "\"\xef\xbf\xbd\xef\xbf\xbd"
		  "31m\"",
		  "\xef\xbf\xbd\xef\xbf\xbd"
		  "31m" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x94\xa5", "\"\xf0\x9f\x94\xa5\"", "\xf0\x9f\x94\xa5" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char wanted[256];
		struct log_setup human = as(true);
		begin(NULL);
		log_info("launch-asked", LOG_S("t", cases[i].text), LOG_END);
		snprintf(wanted, sizeof wanted, START ",\"t\":%s}", cases[i].json);
		assert_string_equal(written.text, wanted);
		buf_clear(&written);
		log_set_up(&human);
		log_info("launch-asked", LOG_S("t", cases[i].text), LOG_END);
		snprintf(wanted, sizeof wanted, "08:15:04 info launch-asked t=%s", cases[i].human);
		assert_string_equal(written.text, wanted);
	}
}

static void secrets_are_never_written(void **state)
{
	static const char *const secret[] = { "token",	  "bearerToken",  "id-token",	 "Authorization",
					      "password", "clientSecret", "private_key", "privateKeyPem",
					      "Cookie",	  "credentials" };
	static const char *const harmless[] = { "tokenFile", "secretName", "tokens", "key", "tokenAge", "monkey" };

	(void)state;
	for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
		begin(NULL);
		log_info("launch-asked", LOG_S(secret[i], "hunter2"), LOG_END);
		assert_null(strstr(written.text, "hunter2"));
		assert_non_null(strstr(written.text, "\":\"(not shown)\"}"));
	}
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
		begin(NULL);
		log_info("launch-asked", LOG_S(harmless[i], "hunter2"), LOG_END);
		assert_non_null(strstr(written.text, "\":\"hunter2\"}"));
	}
}

static void long_texts_are_cut_between_characters(void **state)
{
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i < 2000; i++)
		buf_text(&text, "\xe2\x82\xac");
	log_info("launch-asked", LOG_S("t", text.text), LOG_I("after", 1), LOG_END);
	buf_release(&text);
	const char *end = strstr(written.text, "...\",\"after\":1}");
	assert_non_null(end);
	const char *start = strstr(written.text, "\"t\":\"") + 5;
	assert_int_equal(end - start, LOG_LONGEST_TEXT / 3 * 3);
}

static void a_line_has_a_longest_length(void **state)
{
	struct log_field fields[31] = { 0 };
	char text[600];

	(void)state;
	memset(text, '\1', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (size_t i = 0; i + 1 < sizeof fields / sizeof *fields; i++)
		fields[i] = LOG_S("t", text);
	log_fields(LEVEL_INFO, "launch-asked", fields);
	assert_true(written.len <= LOG_LONGEST);
	assert_true(written.len > LOG_LONGEST / 2);
	assert_string_equal(written.text + written.len - strlen("\",\"cut\":true}"), "\",\"cut\":true}");
}

static void what_is_below_the_level_is_not_written(void **state)
{
	(void)state;
	log_debug("a", LOG_END);
	assert_int_equal(written.len, 0);
	log_level_set(LEVEL_DEBUG);
	log_debug("a", LOG_END);
	assert_non_null(strstr(written.text, "\"level\":\"debug\",\"event\":\"a\""));
	log_level_set(LEVEL_ERROR);
	buf_clear(&written);
	log_warn("b", LOG_END);
	assert_int_equal(written.len, 0);
	log_error("c", LOG_END);
	assert_non_null(strstr(written.text, "\"level\":\"error\",\"event\":\"c\""));
}

static void levels_are_read_by_name(void **state)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	enum log_level level = LEVEL_WARN;

	(void)state;
	for (int i = LEVEL_DEBUG; i <= LEVEL_ERROR; i++) {
		assert_true(log_level_parse(names[i], &level));
		assert_int_equal(level, i);
	}
	assert_false(log_level_parse("verbose", &level));
	assert_false(log_level_parse("", &level));
	assert_false(log_level_parse("INFO", &level));
	assert_int_equal(level, LEVEL_ERROR);
}

static void people_see_color_only_where_asked(void **state)
{
	struct log_setup s = as(true);

	(void)state;
	s.has_color = true;
	log_set_up(&s);
	log_warn("node-stuck", LOG_S("node", "n1"), LOG_END);
	assert_string_equal(written.text, "08:15:04 \033[33mwarn\033[0m node-stuck node=n1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_line_is_json, begin),
		cmocka_unit_test_setup(an_event_needs_no_fields, begin),
		cmocka_unit_test_setup(a_failure_has_its_kind, begin),
		cmocka_unit_test_setup(texts_cannot_break_the_line, begin),
		cmocka_unit_test_setup(secrets_are_never_written, begin),
		cmocka_unit_test_setup(long_texts_are_cut_between_characters, begin),
		cmocka_unit_test_setup(a_line_has_a_longest_length, begin),
		cmocka_unit_test_setup(what_is_below_the_level_is_not_written, begin),
		cmocka_unit_test_setup(levels_are_read_by_name, begin),
		cmocka_unit_test_setup(people_see_color_only_where_asked, begin),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buf_release(&written);
	return failed;
}
