/* The API, asked without sockets: wrong questions, pages that fit together, sums that are those of the ticks. */
#include "base/json.h"
#include "base/net/loop.h"
#include "state/level.h"
#include "tests/unit/web/api_made.h"

#include <sqlite3.h>

struct asked {
	struct loop *loop;
	struct made made;
	struct web_api *api;
};

static void begin(struct asked *a, int64_t ticks)
{
	a->loop = loop_open();
	made_begin(&a->made, ticks);
	a->api = web_api_open(&(struct web_api_setup){
		.loop = a->loop, .history = a->made.path, .version = "0.1.0", .verb_name = made_verb });
}

static void end(struct asked *a)
{
	web_api_close(a->api);
	made_end(&a->made);
	loop_close(a->loop);
}

static void expect(struct asked *a, const char *url, int status, const char *text)
{
	int got;
	char *answer = ask(a->api, url, &got);

	if (got != status || !strstr(answer, text))
		fail_msg("%s: %d %.300s", url, got, answer);
	free(answer);
}

static void wrong_questions_get_one_clear_answer(void **state)
{
	static const struct {
		const char *url;
		int status;
		const char *text;
	} cases[] = {
		{ "/api", 404, "there is no such path" },
		{ "/api/v2", 404, "there is no such path" },
		{ "/api/v1/", 404, "there is no such path" },
		{ "/api/v1?x=1", 400, "found the parameter 'x'; allowed: none" },
		{ "/api/v1/pools/llm", 404, "there is no such path" },
		{ "/api/v1/pools//chat", 404, "there is no such path" },
		{ "/api/v1/pools/llm/nope", 404, "no pool llm/nope in this history" },
		{ "/api/v1/pools/llm/chat/series?points=0", 400,
		  "points: found '0'; allowed: a whole number from 1 to 2000" },
		{ "/api/v1/pools/llm/chat/series?points=x", 400, "points: found 'x'" },
		{ "/api/v1/pools/llm/chat/series?points=1&points=2", 400, "points: found twice" },
		{ "/api/v1/pools/llm/chat/series?from=yesterday", 400,
		  "from: found 'yesterday'; allowed: a time such as" },
		{ "/api/v1/pools/llm/chat/series?from=now&to=-1h", 400, "from: found a time that is not before to" },
		{ "/api/v1/pools/llm/chat/lead-time?kind=hot", 400,
		  "kind: found 'hot'; allowed: cold|wake|refill|reclaim|place|rouse" },
		{ "/api/v1/pools/llm/chat/rules?x", 400, "found the parameter 'x'" },
		{ "/api/v1/decisions?pool=x", 404, "pool: no 'x'" },
		{ "/api/v1/decisions?group=x", 404, "group: no node group 'x'" },
		{ "/api/v1/decisions?limit=x", 400, "limit: found 'x'" },
		{ "/api/v1/decisions?changed=yes", 400, "changed: found 'yes'; allowed: true or false" },
		{ "/api/v1/decisions?count=501", 400, "count: found '501'" },
		{ "/api/v1/decisions?cursor=x", 400, "cursor: found 'x'" },
		{ "/api/v1/decisions?cursor=1.x", 400, "cursor: found '1.x'" },
		{ "/api/v1/decisions?largest=true&cursor=99999", 400, "cursor: found '99999'" },
		{ "/api/v1/decisions?pool=", 400, "pool: found ''" },
		{ "/api/v1/decisions/x/llm/chat", 404, "tick: found 'x'" },
		{ "/api/v1/decisions/-1/llm/chat", 404, "tick: found '-1'" },
		{ "/api/v1/decisions/999999/llm/chat", 404, "no tick 999999" },
		{ "/api/v1/decisions/1/llm/none", 404, "no pool llm/none" },
		{ "/api/v1/report?midnight=-72h", 400, "midnight: found a time that is not in the last two days" },
		{ "/api/v1/incidents?pool=x", 404, "pool: no 'x'" },
		{ "/api/v1/incidents?from=-32d", 400, "from: found more than 31 days before to" },
		{ "/api/v1/cost?by=x", 400, "by: found 'x'; allowed: pool|class|label" },
		{ "/api/v1/cost?by=label", 400, "label: allowed with by=label" },
		{ "/api/v1/cost?label=product", 400, "label: allowed with by=label" },
		{ "/api/v1/launches?cursor=5", 400, "cursor: found '5'" },
		{ "/api/v1/what-if/1", 404, "no what-if '1'" },
	};
	struct asked a;

	(void)state;
	begin(&a, 50);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(&a, cases[i].url, cases[i].status, cases[i].text);
	end(&a);
}

static void methods_are_told(void **state)
{
	struct asked a;
	int status;

	(void)state;
	begin(&a, 5);
	char *answer = ask_with(a.api, "PUT", "/api/v1/what-if", "", &status);
	assert_int_equal(status, 405);
	assert_non_null(strstr(answer, "found the method PUT; allowed here: GET, HEAD, POST"));
	free(answer);
	answer = ask_with(a.api, "POST", "/api/v1/what-if", "{}", &status); /* no program to run */
	assert_int_equal(status, 503);
	free(answer);
	end(&a);
}

static bool any_value(void *user, const struct json_event *v, struct error *e)
{
	(void)user;
	(void)v;
	(void)e;
	return true;
}

static void every_answer_is_json(void **state)
{
	static const char *const urls[] = { "/api/v1",
					    "/api/v1/report",
					    "/api/v1/report?midnight=-3h",
					    "/api/v1/incidents",
					    "/api/v1/incidents?pool=llm/chat&from=-1h&count=1",
					    "/api/v1/incidents?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z",
					    "/api/v1/pools",
					    "/api/v1/pools/llm/chat",
					    "/api/v1/pools/llm/chat/series",
					    "/api/v1/pools/llm/batch/series?from=-1h&points=7",
					    "/api/v1/pools/llm/chat/rules",
					    "/api/v1/pools/llm/chat/lead-time",
					    "/api/v1/pools/llm/chat/lead-time?kind=rouse",
					    "/api/v1/pools/llm/chat/objective",
					    "/api/v1/cost",
					    "/api/v1/cost?by=class",
					    "/api/v1/cost?by=label&label=product",
					    "/api/v1/decisions",
					    "/api/v1/decisions?largest=true",
					    "/api/v1/decisions/7/llm/batch",
					    "/api/v1/launches",
					    "/api/v1/what-if",
					    "/api/v1/recommendations",
					    "/api/v1/alternatives",
					    "/api/v1/openapi.json" };
	struct asked a;

	(void)state;
	begin(&a, 500);
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct error e = { 0 };
		int status;
		char *answer = ask(a.api, urls[i], &status);
		struct json *j = json_open(urls[i], any_value, NULL);
		bool ok = json_feed(j, answer, strlen(answer), &e) && json_finish(j, &e);

		json_close(j);
		if (!ok || status != 200)
			fail_msg("%s: %d %s %.200s", urls[i], status, e.message, answer);
		free(answer);
	}
	end(&a);
}

/* --- pages --- */

static void next_cursor(const char *answer, char *cursor, size_t room)
{
	const char *next = strstr(answer, "\"next\":\"");

	*cursor = '\0';
	if (next) {
		next += strlen("\"next\":\"");
		snprintf(cursor, room, "%.*s", (int)strcspn(next, "\""), next);
	}
}

/* "TICK pool" of each item, in order. */
static void add_items(const char *answer, struct buf *out)
{
	for (const char *at = answer; (at = strstr(at, "{\"tick\":")); at++) {
		const char *pool = strstr(at, "\"pool\":\"") + strlen("\"pool\":\"");

		buf_printf(out, "%ld %.*s\n", strtol(at + strlen("{\"tick\":"), NULL, 10), (int)strcspn(pool, "\""),
			   pool);
	}
}

static void read_pages(struct asked *a, const char *filter, int count, struct buf *out)
{
	char cursor[80] = "", url[256];

	for (int page = 0; page < 2000; page++) {
		int status;

		snprintf(url, sizeof url, "/api/v1/decisions?count=%d%s%s%s", count, filter, *cursor ? "&cursor=" : "",
			 cursor);
		char *answer = ask(a->api, url, &status);
		assert_int_equal(status, 200);
		add_items(answer, out);
		next_cursor(answer, cursor, sizeof cursor);
		free(answer);
		if (!*cursor)
			return;
	}
	fail_msg("%s: pages without an end", filter);
}

static void pages_of_any_size_tell_the_same(void **state)
{
	static const char *const filters[] = { "",
					       "&changed=true",
					       "&pool=llm/batch",
					       "&limit=budget",
					       "&limit=none&changed=true",
					       "&group=spot",
					       "&group=od&changed=true",
					       "&from=+30m&to=-30m",
					       "&largest=true" };
	static const int counts[] = { 1, 7, 50 };
	struct asked a;

	(void)state;
	begin(&a, 420);
	expect(&a, "/api/v1/decisions?changed=true&from=-10m", 200, "\"ticks\":40");
	expect(&a, "/api/v1/decisions?count=500&largest=true", 200, "\"ticks\":420");
	expect(&a, "/api/v1/decisions?count=2&pool=llm/batch", 200, "\"ticks\":2");
	for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
		CLEANUP(buf_release) struct buf all = { 0 };

		read_pages(&a, filters[f], 500, &all);
		assert_true(all.len > 0);
		for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
			CLEANUP(buf_release) struct buf pages = { 0 };

			read_pages(&a, filters[f], counts[i], &pages);
			assert_string_equal(pages.text, all.text);
		}
	}
	CLEANUP(buf_release) struct buf everything = { 0 };
	read_pages(&a, "", 100, &everything);
	size_t lines = 0;
	for (const char *c = everything.text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 840);
	end(&a);
}

/* --- series --- */

static int64_t sum_of(const char *answer, const char *column, size_t *rows)
{
	char name[40];
	int64_t sum = 0;

	snprintf(name, sizeof name, "\"%s\":[", column);
	const char *at = strstr(answer, name);
	assert_non_null(at);
	*rows = 0;
	for (at += strlen(name); *at && *at != ']'; at += strcspn(at, ",]"), at += *at == ',') {
		sum += strtoll(at, NULL, 10);
		++*rows;
	}
	return sum;
}

static void a_series_of_any_length_has_all_of_the_ticks(void **state)
{
	static const int points[] = { 1, 2, 5, 24, 100, 600, 2000 };
	struct level_sums all = { 0 };
	struct error e = { 0 };
	struct asked a;

	(void)state;
	begin(&a, 3500);
	for (int64_t t = 0; t < 3500; t++) {
		struct tick_record r;

		assert_true(history_read(a.made.history, t, 0, &r, &e));
		level_add_tick(&all, &r.snapshot, &r.plan, TICK);
	}
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		char url[128];
		size_t rows;
		int status;

		snprintf(url, sizeof url, "/api/v1/pools/llm/chat/series?from=-2d&points=%d", points[i]);
		char *answer = ask(a.api, url, &status);
		assert_int_equal(status, 200);
		assert_int_equal(sum_of(answer, "arrived", &rows), all.arrived);
		assert_int_equal(sum_of(answer, "late", &rows), all.late);
		assert_int_equal(sum_of(answer, "asked", &rows), all.asked);
		assert_true(rows > 0 && rows <= (size_t)points[i]);
		free(answer);
	}
	end(&a);
}

static void drop_sums(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE level; DROP TABLE lead_time", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void files_without_sums_tell_samples(void **state)
{
	struct asked a;
	struct error e = { 0 };

	(void)state;
	begin(&a, 7000);
	expect(&a, "/api/v1/pools/llm/chat/series?from=-2d", 200, "\"resolution\":\"5m\"");
	expect(&a, "/api/v1/pools/llm/chat/series?from=-2d&points=20", 200, "\"resolution\":\"5m\"");
	expect(&a, "/api/v1/pools/llm/chat/series?from=-360d", 200, "\"resolution\":\"5m\"");
	assert_true(history_finish(a.made.history, &e));
	a.made.history = NULL;
	web_api_close(a.api);
	drop_sums(a.made.path);
	a.api = web_api_open(&(struct web_api_setup){
		.loop = a.loop, .history = a.made.path, .version = "0.1.0", .verb_name = made_verb });
	expect(&a, "/api/v1/pools/llm/chat/series?from=-1h", 200, "\"resolution\":\"tick\"");
	expect(&a, "/api/v1/pools/llm/chat/series?from=-2d", 200, "\"resolution\":\"sample\"");
	expect(&a, "/api/v1/pools/llm/chat/series?from=-2d", 200, "\"arrived\":[null,");
	expect(&a, "/api/v1/pools", 200, "\"week\":{\"requests\":null,\"late\":null,\"share\":null}");
	expect(&a, "/api/v1/pools/llm/chat/lead-time", 200, "\"kinds\":[]");
	end(&a);
}

/* --- the file --- */

static void what_is_written_meanwhile_is_seen(void **state)
{
	struct asked a;

	(void)state;
	begin(&a, 0);
	expect(&a, "/api/v1", 200, "\"isReady\":false");
	expect(&a, "/api/v1/pools", 503, "no decisions in it yet");
	made_tick(&a.made, 0);
	expect(&a, "/api/v1", 200, "\"lastTick\":0");
	expect(&a, "/api/v1/pools", 200, "\"tick\":0");
	made_tick(&a.made, 1);
	expect(&a, "/api/v1/pools/llm/chat", 200, "\"tick\":1");
	end(&a);
}

/* As those do that put a history away. */
static void remove_log(const char *path)
{
	char name[100];

	snprintf(name, sizeof name, "%s-wal", path);
	unlink(name);
	snprintf(name, sizeof name, "%s-shm", path);
	unlink(name);
}

static void another_file_at_the_path_is_read(void **state)
{
	struct asked a;
	struct made other;
	struct error e = { 0 };

	(void)state;
	begin(&a, 10);
	expect(&a, "/api/v1", 200, "\"lastTick\":9");
	made_begin(&other, 3);
	assert_true(history_finish(other.history, &e));
	other.history = NULL;
	assert_true(history_finish(a.made.history, &e));
	a.made.history = NULL;
	remove_log(a.made.path);
	assert_int_equal(rename(other.path, a.made.path), 0);
	expect(&a, "/api/v1", 200, "\"lastTick\":2");
	unlink(a.made.path);
	expect(&a, "/api/v1", 200, "\"isReady\":false");
	expect(&a, "/api/v1/decisions", 503, "no such file");
	end(&a);
	made_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_questions_get_one_clear_answer),
		cmocka_unit_test(methods_are_told),
		cmocka_unit_test(every_answer_is_json),
		cmocka_unit_test(pages_of_any_size_tell_the_same),
		cmocka_unit_test(a_series_of_any_length_has_all_of_the_ticks),
		cmocka_unit_test(files_without_sums_tell_samples),
		cmocka_unit_test(what_is_written_meanwhile_is_seen),
		cmocka_unit_test(another_file_at_the_path_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
