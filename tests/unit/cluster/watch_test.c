#include "base/log.h"
#include "tests/unit/cluster/watch_reader.h"

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
		{ 401, ERROR_AUTH, WATCH_REFUSED, SECOND, SECOND * 6 / 5 },
		{ 403, ERROR_AUTH, WATCH_REFUSED, SECOND, SECOND * 6 / 5 },
		{ 404, ERROR_NONE, WATCH_ABSENT, SECOND, SECOND * 6 / 5 },
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
		{ "", 403, "resourceVersion=8" },
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
		assert_true(watch_is_synced(w));
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
	for (int i = 0; i < 4; i++) {
		play_answer(asked, 404, "404 page not found\n");
		assert_int_equal(told.gone, 0);
		next_call(HOUR);
	}
	play_answer(asked, 404, "404 page not found\n");
	assert_int_equal(told.gone, 1);
	assert_int_equal(told.synced, 2);
	assert_int_equal(watch_report(w)->state, WATCH_ABSENT);
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
	play_answer(asked, 200,
		    LIST("9", "", OBJECT("a", "7", "\"x\"") ",{\"metadata\":{\"name\":\"no uid\"}},7,null"));
	assert_int_equal(watch_report(w)->unreadable, 4);
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
	};

	log_level_set(LEVEL_ERROR);
	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
