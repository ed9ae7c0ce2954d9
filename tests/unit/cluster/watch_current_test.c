/* Whether what a watch has told is current, and what it does where it is refused. */
#include "base/log.h"
#include "tests/unit/cluster/watch_reader.h"

/* Just started, a server refuses everybody; what is refused for long is asked for rarely. */
static void refusals_are_asked_again_slowly_in_the_end(void **state)
{
	static const millis waits[] = { SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND };
	static const int statuses[] = { 401, 403, 404 };

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_PAGED, 0);
		for (size_t i = 0; i < 40; i++) { /* however it had failed before */
			play_failure(asked, ERROR_UNAVAILABLE);
			next_call(HOUR);
		}
		for (size_t i = 0; i < 12; i++) {
			millis at = play_now(), wait = i < 4 ? waits[i] : WATCH_SLOW;
			play_answer(asked, statuses[k], play_status(statuses[k], "Reason", NULL));
			next_call(HOUR);
			assert_in_range(play_now() - at, wait, wait * 6 / 5);
		}
		play_answer(asked, 200, LIST("5", "", OBJECT("a", "3", "1")));
		assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
		end_watch(w);
	}
}

/* What a server that starts refuses for a moment is not lost, and said to be old for as long. */
static void a_passing_refusal_keeps_what_is_known(void **state)
{
	static const int statuses[] = { 401, 403, 404 };

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_WHOLE, 0);
		play_answer(asked, 200, LIST("8", "", OBJECT("a", "3", "1")));
		next_call(1);
		for (int i = 0; i < 4; i++) {
			play_answer(asked, statuses[k], play_status(statuses[k], "Reason", NULL));
			assert_int_equal(watch_report(w)->state, WATCH_BEHIND);
			assert_int_not_equal(watch_report(w)->trouble.kind, ERROR_NONE);
			assert_true(watch_is_synced(w));
			next_call(HOUR);
			assert_non_null(strstr(asked->path, "resourceVersion=8"));
			assert_non_null(strstr(asked->path, "watch=true"));
		}
		play_accept(asked);
		assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
		assert_int_equal(watch_report(w)->trouble.kind, ERROR_NONE);
		assert_int_equal(told.gone, 0);
		assert_int_equal(told.synced, 1);
		play_answer(asked, 200, "");
		end_watch(w);
	}
}

/* A cluster that stands still sends nothing for a minute: the header says that the connection is there. */
static void behind_only_until_it_is_accepted(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_WHOLE, 0);

	(void)state;
	play_answer(asked, 200, LIST("8", "", ""));
	next_call(1);
	play_accept(asked);
	play_until(play_now() + MINUTE);
	assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
	play_answer(asked, 200, ""); /* its time was over */
	assert_int_equal(watch_report(w)->state, WATCH_BEHIND);
	assert_int_equal(watch_report(w)->trouble.kind, ERROR_NONE);
	next_call(1);
	play_accept(asked);
	assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
	play_failure(asked, ERROR_UNAVAILABLE);
	assert_int_equal(watch_report(w)->state, WATCH_BEHIND);
	assert_int_equal(watch_report(w)->trouble.kind, ERROR_UNAVAILABLE);
	next_call(HOUR);
	/* taken, and never answered */
	play_until(play_now() + WATCH_ACCEPT + 1);
	assert_int_equal(watch_report(w)->state, WATCH_BEHIND);
	assert_int_equal(watch_report(w)->trouble.kind, ERROR_TIMEOUT);
	assert_int_equal(watch_report(w)->failures, 2);
	next_call(HOUR);
	play_accept(asked);
	play_until(play_now() + HOUR);
	assert_int_equal(watch_report(w)->state, WATCH_SYNCED);
	end_watch(w);
}

/* An outage does not make the next one longer, and what was absent stays so. */
static void outages_do_not_add_up(void **state)
{
	static const bool is_absent[] = { false, true };

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_WHOLE, 0);
		if (is_absent[k])
			play_answer(asked, 404, "404 page not found\n");
		else
			play_answer(asked, 200, LIST("8", "", ""));
		next_call(HOUR);
		for (int outage = 0; outage < 10; outage++) {
			if (!is_absent[k]) {
				play_accept(asked);
				play_until(play_now() + 10 * SECOND);
			}
			millis at = play_now();
			play_failure(asked, ERROR_UNAVAILABLE);
			assert_int_equal(watch_report(w)->state, is_absent[k] ? WATCH_ABSENT : WATCH_BEHIND);
			next_call(HOUR);
			assert_true(is_absent[k] || play_now() - at <= WATCH_FIRST);
		}
		if (is_absent[k]) {
			play_answer(asked, 404, "404 page not found\n");
			assert_int_equal(watch_report(w)->state, WATCH_ABSENT);
			assert_int_equal(watch_report(w)->trouble.kind, ERROR_NONE);
		}
		assert_int_equal(told.synced, 1);
		end_watch(w);
	}
}

/* After an outage the list is begun at once; where lists do not help, ever later. */
static void an_expired_version_after_an_outage(void **state)
{
	struct watch *w = begin_watch(play_begin(note_call), WATCH_WHOLE, 0);
	millis longest = 0;

	(void)state;
	play_answer(asked, 200, LIST("8", "", ""));
	next_call(1);
	play_accept(asked);
	play_until(play_now() + 10 * SECOND);
	for (int i = 0; i < 20; i++) {
		play_failure(asked, ERROR_UNAVAILABLE);
		next_call(HOUR);
	}
	for (int i = 0; i < 40; i++) {
		millis at = play_now();
		play_answer(asked, 410, play_status(410, "Expired", NULL));
		next_call(HOUR);
		longest = play_now() - at > longest ? play_now() - at : longest;
		assert_true(i || longest <= WATCH_FIRST);
		play_answer(asked, 200, LIST("30", "", ""));
		next_call(1);
		play_accept(asked);
	}
	assert_true(longest > WATCH_LONGEST / 2);
	end_watch(w);
}

/* One of several servers may lag: what was seen of another must not come back. */
static void no_list_goes_back_in_time(void **state)
{
	static const struct {
		int status;
		const char *cause;
	} refusals[] = { { 504, "ResourceVersionTooLarge" }, { 410, NULL } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct watch *w = begin_watch(play_begin(note_call), WATCH_WHOLE, 0);
		assert_non_null(strstr(asked->path, "resourceVersion=0"));
		play_answer(asked, 200, LIST("8", "", ""));
		next_call(1);
		send(BOOKMARK("12", ""));
		play_answer(asked, 410, play_status(410, "Expired", NULL));
		assert_int_equal(watch_report(w)->trouble.kind, ERROR_NOT_FOUND); /* not current */
		next_call(HOUR);
		assert_non_null(strstr(asked->path, "&resourceVersion=12"));
		assert_null(strstr(asked->path, "watch="));
		play_failure(asked, ERROR_UNAVAILABLE);
		next_call(HOUR);
		assert_non_null(strstr(asked->path, "&resourceVersion=12"));
		play_answer(asked, refusals[i].status, play_status(refusals[i].status, "Reason", refusals[i].cause));
		next_call(HOUR);
		assert_null(strstr(asked->path, "resourceVersion")); /* as etcd has it now, by pages */
		assert_non_null(strstr(asked->path, "limit=5000"));
		play_answer(asked, 200, LIST("5", "", ""));
		next_call(1);
		assert_non_null(strstr(asked->path, "resourceVersion=5"));
		play_answer(asked, 410, play_status(410, "Expired", NULL));
		next_call(HOUR);
		assert_non_null(strstr(asked->path, "&resourceVersion=5"));
		end_watch(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_are_asked_again_slowly_in_the_end),
		cmocka_unit_test(a_passing_refusal_keeps_what_is_known),
		cmocka_unit_test(behind_only_until_it_is_accepted),
		cmocka_unit_test(outages_do_not_add_up),
		cmocka_unit_test(an_expired_version_after_an_outage),
		cmocka_unit_test(no_list_goes_back_in_time),
	};

	log_level_set(LEVEL_ERROR);
	return cmocka_run_group_tests_name("watches, current", tests, NULL, NULL);
}
