#include "controller/cluster/watch.h"

#include "base/log.h"
#include "tests/unit/cluster/played_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct thing {
	int64_t value;
	bool is_kept;
};
static const struct field thing_fields[] = {
	FIELD(struct thing, value, FIELD_INT, "spec>value"),
	FIELD(struct thing, is_kept, FIELD_BOOL, "spec>kept"),
};
static const struct record_spec thing_record = { "", sizeof(struct thing), thing_fields, 2 };

enum { MOST = 4096 };

/* What was told, as a reader keeps it. */
static struct {
	struct {
		struct object_uid uid;
		int64_t value;
	} items[MOST];
	size_t count;
	int seen, gone, wrong, synced, stopped;
	char names[2048];
	struct watch *stop_at_next; /* stops the watch from inside a callback */
} told;

static size_t told_at(struct object_uid uid)
{
	size_t i = 0;

	while (i < told.count && (told.items[i].uid.high != uid.high || told.items[i].uid.low != uid.low))
		i++;
	return i;
}

static bool on_object(void *user, const void *record, const struct watch_seen *seen)
{
	const struct thing *t = record;
	size_t at = told_at(seen->uid);
	size_t used = strlen(told.names);

	(void)user;
	told.seen++;
	snprintf(told.names + used, sizeof told.names - used, "%s ", seen->name);
	if (told.stop_at_next)
		watch_stop(told.stop_at_next);
	if (!t->is_kept) {
		if (at < told.count)
			told.items[at] = told.items[--told.count];
		return false;
	}
	told.count += at == told.count;
	told.items[at].uid = seen->uid;
	told.items[at].value = t->value;
	return true;
}

static void on_gone(void *user, struct object_uid uid, millis arrived)
{
	size_t at = told_at(uid);

	(void)user, (void)arrived;
	told.gone++;
	if (at == told.count)
		told.wrong++;
	else
		told.items[at] = told.items[--told.count];
}

static void on_synced(void *user)
{
	(void)user;
	told.synced++;
}

static void on_stopped(void *user)
{
	(void)user;
	told.stopped++;
}

static struct watch *begin_watch(struct api *api, enum watch_way way, int page)
{
	memset(&told, 0, sizeof told);
	return watch_start(api, &(struct watch_spec){ .name = "things",
						      .path = "/apis/x/v1/things",
						      .label_selector = "a in (b,c)",
						      .object = &thing_record,
						      .way = way,
						      .page = page,
						      .on_object = on_object,
						      .on_gone = on_gone,
						      .on_synced = on_synced,
						      .on_stopped = on_stopped });
}

static void end_watch(struct watch *w)
{
	watch_stop(w);
	play_until(play_now() + 1);
	assert_int_equal(told.stopped, 1);
	play_end();
}

/* The one call that is under way. */
static struct api_call *asked;
static int asked_count;

static void note_call(struct api_call *c)
{
	asked = c;
	asked_count++;
}

#define OBJECT(uid, rv, value)                                                               \
	"{\"metadata\":{\"name\":\"n" uid "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv \
	"\"},\"spec\":{\"value\":" value ",\"kept\":true}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define LIST(rv, next, items) \
	"{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define BOOKMARK(rv, annotated)                                                                         \
	"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Thing\",\"metadata\":{\"resourceVersion\":\"" rv \
	"\",\"annotations\":{" annotated "}}}}\n"
#define END_OF_LIST "\"k8s.io/initial-events-end\":\"true\""

static void send(const char *text)
{
	play_chunk(asked, text, strlen(text));
}

/* Time passes until the next call is made. */
static void next_call(millis most)
{
	int before = asked_count;
	millis end = play_now() + most;

	while (asked_count == before)
		if (!play_step(end))
			fail_msg("no call within %lld ms", (long long)most);
}

static void a_streamed_list_becomes_the_watch(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_STREAMED, 0);

	(void)state;
	assert_non_null(strstr(asked->path, "/apis/x/v1/things?labelSelector=a%20in%20%28b%2Cc%29&watch=true"));
	assert_non_null(strstr(asked->path, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
	assert_null(strstr(asked->path, "resourceVersion="));
	send(EVENT("ADDED", OBJECT("a", "3", "1")) EVENT("ADDED", OBJECT("b", "4", "2")));
	assert_false(watch_is_synced(w));
	send(BOOKMARK("7", "")); /* an ordinary one ends nothing */
	assert_int_equal(told.synced, 0);
	send(BOOKMARK("9", END_OF_LIST));
	assert_true(watch_is_synced(w));
	assert_int_equal(told.synced, 1);
	send(EVENT("DELETED", OBJECT("a", "10", "1")) EVENT("MODIFIED", OBJECT("b", "11", "5")));
	assert_int_equal(told.count, 1);
	assert_int_equal(told.items[0].value, 5);
	play_answer(asked, 200, "");
	next_call(WATCH_LONGEST);
	assert_non_null(strstr(asked->path, "resourceVersion=11"));
	assert_null(strstr(asked->path, "sendInitialEvents"));
	assert_int_equal(watch_report(w)->reconnects, 1);
	end_watch(w);
}

static void what_is_not_offered_is_remembered(void **state)
{
	static const int refusals[] = { 422, 400 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_STREAMED, 2);
		play_answer(asked, refusals[i], play_status(refusals[i], "Invalid", NULL));
		next_call(1);
		assert_non_null(strstr(asked->path, "limit=2"));
		play_answer(asked, 200, LIST("8", "t/1==", OBJECT("a", "3", "1")));
		next_call(1);
		assert_non_null(strstr(asked->path, "&continue=t%2F1%3D%3D"));
		assert_int_equal(told.synced, 0);
		play_answer(asked, 200, LIST("8", "", OBJECT("b", "4", "1")));
		assert_int_equal(told.synced, 1);
		next_call(1);
		assert_non_null(strstr(asked->path, "resourceVersion=8"));
		send(EVENT("ERROR",
			   "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"));
		next_call(WATCH_FIRST);
		assert_non_null(strstr(asked->path, "limit=2")); /* not tried again */
		assert_int_equal(watch_report(w)->relists, 1);
		end_watch(w);
	}
}

static void a_new_list_tells_what_is_gone_once(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 2);

	(void)state;
	play_answer(asked, 200, LIST("8", "x", OBJECT("a", "3", "1") "," OBJECT("b", "4", "1")));
	next_call(1);
	play_answer(asked, 200, LIST("8", "", OBJECT("c", "5", "1")));
	next_call(1);
	play_answer(asked, 410, play_status(410, "Expired", NULL));
	next_call(WATCH_FIRST);
	play_answer(asked, 200, LIST("20", "y", OBJECT("a", "3", "1")));
	next_call(1);
	assert_int_equal(told.gone, 0); /* the list is not whole */
	play_answer(asked, 410, play_status(410, "Expired", NULL));
	next_call(2 * WATCH_FIRST);
	assert_null(strstr(asked->path, "continue"));
	play_answer(asked, 200, LIST("30", "", OBJECT("b", "4", "1") "," OBJECT("d", "25", "1")));
	assert_int_equal(told.gone, 2);
	assert_int_equal(told.wrong, 0);
	assert_int_equal(told.count, 2);
	assert_int_equal(watch_report(w)->objects, 2);
	next_call(1);
	send(EVENT("DELETED", OBJECT("a", "31", "1"))); /* told already */
	assert_int_equal(told.gone, 2);
	end_watch(w);
}

/* Each refusal of a list, and what follows: the state, and how long until the next call. */
static void failures(void **state)
{
	static const struct {
		long status; /* 0: no answer, of `kind` */
		enum error_kind kind;
		enum watch_state expected;
		millis least, most;
	} cases[] = {
		{ 401, ERROR_AUTH, WATCH_REFUSED, WATCH_SLOW, WATCH_SLOW * 6 / 5 },
		{ 403, ERROR_AUTH, WATCH_REFUSED, WATCH_SLOW, WATCH_SLOW * 6 / 5 },
		{ 404, ERROR_NONE, WATCH_ABSENT, WATCH_SLOW, WATCH_SLOW * 6 / 5 },
		{ 429, ERROR_THROTTLED, WATCH_STARTING, 10 * SECOND, 10 * SECOND + WATCH_FIRST },
		{ 500, ERROR_UNAVAILABLE, WATCH_STARTING, 1, WATCH_FIRST },
		{ 503, ERROR_UNAVAILABLE, WATCH_STARTING, 1, WATCH_FIRST },
		{ 504, ERROR_TIMEOUT, WATCH_STARTING, 1, WATCH_FIRST },
		{ 0, ERROR_UNAVAILABLE, WATCH_STARTING, 1, WATCH_FIRST },
		{ 0, ERROR_TIMEOUT, WATCH_STARTING, 1, WATCH_FIRST },
		{ 0, ERROR_INVALID, WATCH_STARTING, 1, WATCH_FIRST },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);
		millis at = play_now();
		if (cases[i].status)
			play_answer(asked, cases[i].status, play_status((int)cases[i].status, "Reason", NULL));
		else
			play_failure(asked, cases[i].kind);
		if (watch_report(w)->state != cases[i].expected || watch_report(w)->trouble.kind != cases[i].kind)
			fail_msg("case %zu: %s, %s", i, watch_state_name(watch_report(w)->state),
				 watch_report(w)->trouble.message);
		assert_int_equal(watch_is_synced(w), cases[i].status == 404);
		next_call(HOUR);
		if (play_now() - at < cases[i].least || play_now() - at > cases[i].most)
			fail_msg("case %zu: again after %lld ms", i, (long long)(play_now() - at));
		play_answer(asked, 200, LIST("5", "", OBJECT("a", "3", "1")));
		assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
		assert_int_equal(watch_report(w)->trouble.kind, ERROR_NONE);
		end_watch(w);
	}
}

static void backs_off_further_each_time(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);
	millis longest = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		millis at = play_now();
		play_failure(asked, ERROR_UNAVAILABLE);
		next_call(HOUR);
		longest = play_now() - at > longest ? play_now() - at : longest;
	}
	assert_true(longest > WATCH_LONGEST * 9 / 10 && longest <= WATCH_LONGEST);
	end_watch(w);
}

/* What ends a watch that was in sync, and where it goes on. */
static void a_watch_that_ends(void **state)
{
	static const struct {
		const char *text; /* sent before */
		long status;	  /* then this answer; 0: no answer; -1: `text` has ended it */
		const char *path;
	} cases[] = {
		{ "", 200, "resourceVersion=8" },
		{ EVENT("ADDED", OBJECT("b", "12", "1")), 0, "resourceVersion=12" },
		{ BOOKMARK("15", ""), 0, "resourceVersion=15" },
		{ EVENT("DELETED", OBJECT("zz", "16", "1")), 200, "resourceVersion=16" },
		{ EVENT("ADDED", OBJECT("b", "12", "1")) "{\"type\":\"ADDED\",\"obj", 0, "resourceVersion=12" },
		{ EVENT("ADDED",
			"{\"metadata\":{\"name\":\"x\",\"uid\":\"x\",\"resourceVersion\":\"13\"},\"spec\":{\"value\":"
			"\"no number\"}}"),
		  0, "resourceVersion=13" },
		{ EVENT("NEWS", "{}"), 0, "resourceVersion=8" },
		{ EVENT("ERROR", "{\"kind\":\"Status\",\"code\":500,\"message\":\"etcd\"}"), -1, "resourceVersion=8" },
		{ EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"message\":\"old\"}"), -1, "limit=" },
		{ EVENT("ERROR", "[]"), -1, "limit=" },
		{ "<html>oops</html>", -1, "limit=" },
		{ "", 410, "limit=" },
		{ "", 429, "resourceVersion=8" },
		{ "", 500, "resourceVersion=8" },
		{ "", 403, "limit=" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);
		play_answer(asked, 200, LIST("8", "", OBJECT("a", "3", "1")));
		next_call(1);
		bool ok = !*cases[i].text || play_chunk(asked, cases[i].text, strlen(cases[i].text));
		assert_int_equal(ok, cases[i].status != -1);
		if (cases[i].status > 0)
			play_answer(asked, cases[i].status,
				    cases[i].status == 200 ? "" : play_status((int)cases[i].status, "Reason", NULL));
		else if (!cases[i].status)
			play_failure(asked, ERROR_UNAVAILABLE);
		assert_int_equal(watch_is_synced(w), cases[i].status != 403);
		next_call(HOUR);
		if (!strstr(asked->path, cases[i].path))
			fail_msg("case %zu: %s, not %s", i, asked->path, cases[i].path);
		assert_int_equal(told.gone, 0);
		end_watch(w);
	}
}

static void an_absent_resource_loses_its_objects(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);

	(void)state;
	play_answer(asked, 200, LIST("8", "", OBJECT("a", "3", "1")));
	next_call(1);
	play_answer(asked, 404, "404 page not found\n");
	assert_int_equal(told.gone, 1);
	assert_int_equal(told.synced, 2);
	next_call(HOUR);
	play_answer(asked, 404, "404 page not found\n");
	assert_int_equal(told.synced, 2);
	next_call(HOUR);
	play_answer(asked, 200, LIST("9", "", ""));
	assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
	end_watch(w);
}

static void unreadable_objects_are_left_out(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);

	(void)state;
	play_answer(asked, 200, LIST("8", "", OBJECT("a", "3", "1") "," OBJECT("b", "3", "1")));
	next_call(1);
	play_answer(asked, 410, play_status(410, "Expired", NULL));
	next_call(HOUR);
	/* a is there, though it cannot be read now; what has no uid is nothing */
	play_answer(asked, 200, LIST("9", "", OBJECT("a", "7", "\"x\"") ",{\"metadata\":{\"name\":\"no uid\"}},7"));
	assert_int_equal(watch_report(w)->unreadable, 3);
	assert_int_equal(told.gone, 1);
	assert_int_equal(told.count, 1);
	end_watch(w);
}

static void stopped_from_inside(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_STREAMED, 0);

	(void)state;
	told.stop_at_next = w;
	send(EVENT("ADDED", OBJECT("a", "3", "1")) EVENT("ADDED", OBJECT("b", "4", "1")));
	play_until(play_now() + 1);
	assert_int_equal(told.seen, 1);
	assert_int_equal(told.stopped, 1);
	play_end();
	/* and while it waits for its next call */
	w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);
	play_failure(asked, ERROR_UNAVAILABLE);
	end_watch(w);
}

/* A server with a history that it forgets, behind a network that breaks. */
static struct {
	struct random random;
	struct {
		bool is_there, is_kept;
		int64_t uid, value, version;
	} objects[24];
	struct {
		int64_t version;
		char text[256];
	} history[4096];
	size_t events;
	int64_t version, oldest, uids; /* oldest: the first version that a watch may go on from */
	struct api_call *call;
	struct buf out; /* to be sent on the call */
	size_t sent;
	size_t told; /* events of the history that stand in `out` */
	bool is_list, is_watch, is_calm;
	int page_from;
	int64_t page_version;
} server;

static void write_object(size_t i, struct buf *out)
{
	buf_printf(out,
		   "{\"metadata\":{\"name\":\"n%zu\",\"namespace\":\"s\",\"uid\":\"%08llx-0000-4000-8000-%012zx\","
		   "\"resourceVersion\":\"%lld\",\"managedFields\":[{\"f:}\":\"\\\"]\"}]},\"spec\":{\"value\":%lld,"
		   "\"kept\":%s}}",
		   i, (unsigned long long)server.objects[i].uid, i, (long long)server.objects[i].version,
		   (long long)server.objects[i].value, server.objects[i].is_kept ? "true" : "false");
}

static uint64_t below(uint64_t n)
{
	return random_next(&server.random) % n;
}

static void change_something(void)
{
	size_t i = below(24);
	const char *type = "MODIFIED";
	CLEANUP(buf_release) struct buf text = { 0 };

	if (server.events == 4096)
		return;
	server.objects[i].version = ++server.version;
	if (!server.objects[i].is_there) {
		type = "ADDED";
		server.objects[i].is_there = true;
		server.objects[i].uid = ++server.uids;
	} else if (below(3) == 0) {
		type = "DELETED";
		server.objects[i].is_there = false;
	}
	server.objects[i].is_kept = below(4) != 0;
	server.objects[i].value = (int64_t)below(1000);
	buf_printf(&text, "{\"type\":\"%s\",\"object\":", type);
	write_object(i, &text);
	buf_text(&text, "}\n");
	server.history[server.events].version = server.version;
	snprintf(server.history[server.events++].text, 256, "%s", text.text);
}

static void write_page(int limit)
{
	int written = 0, i = server.page_from;

	if (!server.page_from)
		server.page_version = server.version;
	buf_text(&server.out, "{\"items\":[");
	for (; i < 24 && written < limit; i++)
		if (server.objects[i].is_there) {
			buf_text(&server.out, written++ ? "," : "");
			write_object((size_t)i, &server.out);
		}
	buf_printf(&server.out, "],\"metadata\":{\"resourceVersion\":\"%lld\"", (long long)server.page_version);
	if (i < 24)
		buf_printf(&server.out, ",\"continue\":\"%d\"", i);
	buf_text(&server.out, "}}");
}

static int64_t number_after(const char *path, const char *key)
{
	const char *at = strstr(path, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void serve(struct api_call *c)
{
	server.call = c;
	buf_clear(&server.out);
	server.sent = 0;
	server.is_watch = strstr(c->path, "watch=true") != NULL;
	server.is_list = !server.is_watch || strstr(c->path, "sendInitialEvents");
}

/* The beginning of an answer, or a refusal; false: the call is over. */
static bool answer_begins(struct api_call *c)
{
	int64_t from = number_after(c->path, "resourceVersion="), next = number_after(c->path, "continue=");

	if (!server.is_calm && below(6) == 0) {
		static const int refusals[] = { 429, 500, 503, 410, 403, 404 };
		int refusal = refusals[below(server.is_list ? 5 : 4)];
		play_answer(c, refusal, play_status(refusal, "Whatever", NULL));
		return false;
	}
	if (server.is_list && server.is_watch) {
		for (size_t i = 0; i < 24; i++)
			if (server.objects[i].is_there) {
				buf_text(&server.out, "{\"type\":\"ADDED\",\"object\":");
				write_object(i, &server.out);
				buf_text(&server.out, "}\n");
			}
		buf_printf(&server.out,
			   "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%lld\","
			   "\"annotations\":{"
			   "\"k8s.io/initial-events-end\":\"true\"}}}}\n",
			   (long long)server.version);
		server.told = server.events;
	} else if (server.is_list) {
		server.page_from = next > 0 ? (int)next : 0;
		/* A page goes on from a version that may be gone; ours stands still between pages, or is expired. */
		if (next > 0 && server.page_version != server.version) {
			play_answer(c, 410, play_status(410, "Expired", NULL));
			return false;
		}
		write_page(strstr(c->path, "limit=5") ? 5 : 24);
	} else {
		if (from < server.oldest) {
			play_answer(c, 410, play_status(410, "Expired", NULL));
			return false;
		}
		for (server.told = 0; server.told < server.events && server.history[server.told].version <= from;)
			server.told++;
	}
	return true;
}

static void send_some(void)
{
	size_t left = server.out.len - server.sent, n = left ? 1 + below(left) : 0;

	if (server.is_calm)
		n = left;
	if (!n)
		return;
	const char *from = server.out.text + server.sent;
	server.sent += n;
	struct api_call *c = server.call;
	if (!play_chunk(c, from, n) && server.call == c)
		server.call = NULL;
}

static bool is_answering;

static void server_turn(void)
{
	if (!server.is_calm)
		for (uint64_t n = below(4); n; n--)
			change_something();
	if (!server.is_calm && below(12) == 0)
		server.oldest = server.version - (int64_t)below(4);
	if (!server.call) {
		is_answering = false;
		return;
	}
	struct api_call *c = server.call;
	if (!is_answering) {
		server.call = NULL;
		if (!answer_begins(c)) {
			return;
		}
		server.call = c;
		is_answering = true;
	}
	if (server.is_watch)
		for (; server.told < server.events; server.told++) {
			buf_text(&server.out, server.history[server.told].text);
			if (!server.is_calm && below(10) == 0) /* the same again */
				buf_text(&server.out, server.history[server.told].text);
		}
	send_some();
	if (!server.call) {
		is_answering = false;
		return;
	}
	bool is_all = server.sent == server.out.len;
	bool breaks = !server.is_calm && below(8) == 0;
	if (breaks || (!server.is_watch && is_all)) {
		server.call = NULL;
		is_answering = false;
		if (!breaks || (server.is_watch && is_all && below(2)))
			play_answer(c, 200, "");
		else
			play_failure(c, below(2) ? ERROR_UNAVAILABLE : ERROR_TIMEOUT);
	}
}

static void check_same(uint64_t seed)
{
	size_t kept = 0;

	for (size_t i = 0; i < 24; i++) {
		char uid[64];
		if (!server.objects[i].is_there || !server.objects[i].is_kept)
			continue;
		kept++;
		snprintf(uid, sizeof uid, "%08llx-0000-4000-8000-%012zx", (unsigned long long)server.objects[i].uid, i);
		size_t at = told_at(object_uid_of(uid));
		if (at == told.count || told.items[at].value != server.objects[i].value)
			fail_msg("seed %llu: object %zu was %s", (unsigned long long)seed, i,
				 at == told.count ? "lost" : "not told as it is");
	}
	if (kept != told.count || told.wrong)
		fail_msg("seed %llu: %zu objects of %zu, %d told gone that were not held", (unsigned long long)seed,
			 told.count, kept, told.wrong);
}

static void any_history_ends_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct buf out = server.out;
		memset(&server, 0, sizeof server);
		server.out = out;
		server.random = random_stream(seed, "server");
		is_answering = false;
		for (int i = 0; i < 20; i++)
			change_something();
		struct watch *w = begin_watch(play_begin(serve), (enum watch_way)(seed % 3), 5);
		for (int turn = 0; turn < 300 || !server.is_calm; turn++) {
			server.is_calm = turn >= 300;
			play_until(play_now() + (millis)below(400));
			server_turn();
		}
		for (int turn = 0; turn < 400; turn++) {
			play_until(play_now() + 400);
			server_turn();
		}
		if (watch_report(w)->state != WATCH_SYNCED)
			fail_msg("seed %llu: %s", (unsigned long long)seed, watch_state_name(watch_report(w)->state));
		check_same(seed);
		assert_int_equal(watch_report(w)->objects, told.count);
		end_watch(w);
	}
	buf_release(&server.out);
}

static void uids(void **state)
{
	struct object_uid u = object_uid_of("8c0f3a44-12ab-4cde-8f01-23456789abcd");

	(void)state;
	assert_int_equal(u.high, UINT64_C(0x8c0f3a4412ab4cde));
	assert_int_equal(u.low, UINT64_C(0x8f0123456789abcd));
	struct object_uid a = object_uid_of("8c0f3a44-12ab-4cde-8f01-23456789abcdx"), b = object_uid_of("other");
	assert_true(a.high != u.high || a.low != u.low);
	assert_true(a.high != b.high);
	u = object_uid_of(NULL);
	assert_true(!u.high && !u.low);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uids),
		cmocka_unit_test(a_streamed_list_becomes_the_watch),
		cmocka_unit_test(what_is_not_offered_is_remembered),
		cmocka_unit_test(a_new_list_tells_what_is_gone_once),
		cmocka_unit_test(failures),
		cmocka_unit_test(backs_off_further_each_time),
		cmocka_unit_test(a_watch_that_ends),
		cmocka_unit_test(an_absent_resource_loses_its_objects),
		cmocka_unit_test(unreadable_objects_are_left_out),
		cmocka_unit_test(stopped_from_inside),
		cmocka_unit_test(any_history_ends_the_same),
	};

	log_level_set(LEVEL_ERROR);
	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
