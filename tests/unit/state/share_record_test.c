/* What shares decided and moved is read back as it was written. */
#include "state/share_record.h"
#include "tests/unit/state/history_made.h"

/* A process ends at any time: what was begun is open, what failed is open until its slot is mended. */
static void a_move_is_open_until_its_end(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	struct engine_move_record sleep = { .uid = "u-1",
					    .asked_at = start,
					    .pod = "llm/code-1",
					    .pool = "llm/code",
					    .share = "llm/small",
					    .slot = "node-7",
					    .why = "code idle for 720 s; chat has 31 waiting and no engine awake" };
	struct engine_move_record wake = sleep, *found;
	struct error e = { 0 };
	size_t count;

	(void)state;
	wake.uid = "u-2";
	wake.pool = "llm/chat";
	wake.is_wake = true;
	wake.asked_at = start + 5;
	unlink(path);
	struct history *h = history_create(&setup, &e);
	assert_true(engine_move_save(h, &sleep, &e) && engine_move_save(h, &wake, &e));
	sleep.outcome = "done";
	sleep.took = 1200;
	sleep.ended_at = start + 4;
	assert_true(engine_move_end(h, &sleep, &e));
	wake.outcome = "/wake_up: HTTP status 500";
	assert_true(engine_move_end(h, &wake, &e)); /* its slot is being mended */
	const struct share_decision d = { "llm/large", start, "1 2", "3" };
	assert_true(share_decision_save(h, &d, &e));
	history_close(h);

	h = history_edit(path, &e);
	assert_true(engine_move_open(h, &a, &found, &count, &e));
	assert_int_equal(count, 1);
	assert_string_equal(found[0].outcome, wake.outcome);
	assert_string_equal(found[0].pod, "llm/code-1");
	assert_true(found[0].is_wake);
	wake.outcome = "another";
	wake.ended_at = start + 9;
	assert_true(engine_move_end(h, &wake, &e));
	assert_true(engine_move_open(h, &a, &found, &count, &e));
	assert_int_equal(count, 0);
	const struct engine_move_filter chat = { start, start + 5, "llm/chat", 10 };
	assert_true(engine_move_find(h, &chat, &a, &found, &count, &e));
	assert_int_equal(count, 1);
	assert_string_equal(found[0].outcome, "/wake_up: HTTP status 500"); /* the first stays */
	assert_int_equal(found[0].ended_at, start + 9);
	struct engine_moves_told told;
	struct pool_spec pool = { .namespace = "llm", .name = "chat", .share = "small" };
	const struct fleet_spec one = { .pools = &pool, .pool_count = 1 };
	assert_true(engine_move_around(h, &(struct pool_then){ &one, 0, start + MINUTE }, &a, &told, &e));
	assert_int_equal(told.count, 1);
	assert_true(engine_move_around(h, &(struct pool_then){ &one, 0, start + HOUR }, &a, &told, &e));
	assert_int_equal(told.count, 0); /* long ago */
	pool.share = NULL;
	assert_true(engine_move_around(h, &(struct pool_then){ &one, 0, start + MINUTE }, &a, &told, &e));
	assert_int_equal(told.count, 0);
	struct share_decisions decisions;
	assert_true(share_decision_find(h, start, start, &a, &decisions, &e));
	assert_int_equal(decisions.count, 1);
	assert_string_equal(decisions.items[0].plan, "3");
	history_close(h);
	unlink(path);
}

static void a_view_is_read_as_it_was_written(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf written = { 0 }, again = { 0 };
	struct share_engine engines[] = { { 1, SHARE_AWAKE, 5, 2, 0, true }, { 0, SHARE_ASLEEP, 7, 0, 9, false } };
	const struct share_slot slots[] = {
		{ .gpu_mib = 24000, .host_mib = -1, .engines = engines, .engine_count = 2, .cleared_for = 0 },
		{ .cleared_for = SHARE_NONE, .is_leaving = true },
	};
	const struct share_member members[] = { { .need = 2, .waiting = 31 }, { .late = 4, .allowed_milli = 5 } },
				  indebted[] = { { .need = 2 }, { .allowed_milli = -1000 } };
	const struct share_times times[] = { { 600, 2400 }, { 1, 2 } };
	size_t rules;
	const struct share_view v = { 1767571200000, slots, 2, members, 2, times, share_rules(&rules) };
	struct share_view read;
	struct error e;

	share_view_write(&v, &written);
	assert_true(share_view_read(written.text, &a, &read, &e));
	share_view_write(&read, &again);
	assert_string_equal(written.text, again.text);
	assert_int_equal(read.slots[1].cleared_for, SHARE_NONE);
	assert_int_equal(read.slots[0].engines[1].state, SHARE_ASLEEP);
	assert_int_equal(read.times[0].wake, 2400);
	/* cut anywhere, or with something behind it, it is damaged */
	for (size_t i = 0; i + 1 < written.len; i++) {
		char *cut = arena_strdup(&a, written.text, i);
		if (share_view_read(cut, &a, &read, &e) && written.text[i] == ' ')
			fail_msg("a view of %zu bytes is taken for whole", i);
	}
	buf_text(&written, " 1");
	assert_false(share_view_read(written.text, &a, &read, &e));
	assert_false(share_view_read("1 2 3", &a, &read, &e));
	/* it would be divided by nothing */
	const struct share_view no_room = { v.now, slots, 2, indebted, 2, times, v.rule };
	buf_clear(&written);
	share_view_write(&no_room, &written);
	assert_false(share_view_read(written.text, &a, &read, &e));
}

static void a_tally_is_read_as_it_was_written(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf written = { 0 }, again = { 0 };
	struct share_tally_member members[] = { { UINT64_MAX, 1.5, 3000, 1 }, { 7, 0, 0, 0 } };
	const struct share_tally t = { .hour = 491000,
				       .rule = 3,
				       .was = 1,
				       .asked = 1000.25,
				       .late = { 1, 2.5 },
				       .strain = { .5, 1e6 },
				       .members = members,
				       .member_count = 2 };
	struct share_tally read;
	struct error e;

	share_tally_write(&t, &written);
	assert_true(share_tally_read(written.text, &a, &read, &e));
	share_tally_write(&read, &again);
	assert_string_equal(written.text, again.text);
	assert_true(read.rule == 3 && read.strain[1] == 1e6 && read.members[0].key == UINT64_MAX);
	for (size_t i = 0; i + 1 < written.len; i++) {
		char *cut = arena_strdup(&a, written.text, i);
		if (share_tally_read(cut, &a, &read, &e) && written.text[i] == ' ')
			fail_msg("a tally of %zu bytes is taken for whole", i);
	}
	assert_false(share_tally_read("3 1 0 0 0", &a, &read, &e)); /* of other rules */
}

/* A choice is kept, and what was counted since is written over. */
static void the_last_choice_is_found(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct history_setup setup = { path, "", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
	const struct share_choice_record rows[] = { { "llm/small", start, start, "", "1" },
						    { "llm/small", start, start + 5, "", "2" },
						    { "llm/small", start + HOUR, start + HOUR, "it sleeps", "3" },
						    { "llm/large", start, start, "", "4" } };
	struct pool_spec pool = { .namespace = "llm", .name = "chat", .share = "small" };
	const struct fleet_spec one = { .pools = &pool, .pool_count = 1 };
	struct engine_moves_told told;
	struct share_choices found;
	struct error e = { 0 };

	(void)state;
	unlink(path);
	struct history *h = history_create(&setup, &e);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_true(share_choice_save(h, &rows[i], &e));
	assert_true(
		share_choice_find(h, &(struct share_choice_filter){ 0, INT64_MAX, "llm/small", 9 }, &a, &found, &e));
	assert_int_equal(found.count, 2);
	assert_string_equal(found.items[0].tally, "2");
	assert_string_equal(found.items[1].why, "it sleeps");
	assert_true(engine_move_around(h, &(struct pool_then){ &one, 0, start + HOUR - 1 }, &a, &told, &e));
	assert_string_equal(told.choice.why, "");
	assert_true(engine_move_around(h, &(struct pool_then){ &one, 0, start + HOUR }, &a, &told, &e));
	assert_string_equal(told.choice.why, "it sleeps");
	history_close(h);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_view_is_read_as_it_was_written),
					    cmocka_unit_test(a_move_is_open_until_its_end),
					    cmocka_unit_test(a_tally_is_read_as_it_was_written),
					    cmocka_unit_test(the_last_choice_is_found) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
