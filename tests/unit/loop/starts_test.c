/* A replica's way from asking to serving, told by what machines, nodes and pods show. */
#include "controller/loop/starts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct start cold(millis asked_at)
{
	return (struct start){ .pool = 1, .group = 0, .kind = START_COLD, .asked_at = asked_at };
}

/* A machine for starts of pool 1, group 0, whatever they were asked for as. */
static int64_t bind(struct starts *s, const char *machine, int64_t places, enum start_kind kind)
{
	struct start like = cold(0);

	like.kind = kind;
	memcpy(like.machine, machine, strlen(machine));
	return starts_bind_machine(s, &like, kind, places);
}

static const struct event_input *event(const struct starts *s, size_t i)
{
	assert_true(i < s->event_count);
	return &s->events[i].event;
}

static void expect_stage(const struct starts *s, size_t i, enum stage stage, int64_t value)
{
	assert_int_equal(event(s, i)->what, EVENT_STAGE);
	assert_int_equal(event(s, i)->stage, stage);
	assert_int_equal(event(s, i)->value, value);
}

static void every_stage_is_timed(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000);

	(void)state;
	starts_ask(&s, &like, 1);
	assert_int_equal(bind(&s, "m1", 1, like.kind), 1);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 61000 });
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 61000, .ready = 81500, .device = 90000 });
	assert_non_null(starts_bind_pod(&s, 1, 0, "m1", "pod-a"));
	starts_follow_pod(&s, &(struct pod_stages){ .uid = "pod-a", .scheduled = 90100, .started = 150000 });
	starts_follow_pod(
		&s, &(struct pod_stages){ .uid = "pod-a", .scheduled = 90100, .started = 150000, .ready = 210007 });
	expect_stage(&s, 0, STAGE_PROVISION, 60000);
	expect_stage(&s, 1, STAGE_REGISTER, 20500);
	expect_stage(&s, 2, STAGE_DEVICE, 8500);
	expect_stage(&s, 3, STAGE_IMAGE, 60000);
	expect_stage(&s, 4, STAGE_LOAD, 60007);
	assert_int_equal(event(&s, 5)->what, EVENT_SERVING);
	assert_int_equal(event(&s, 5)->value, 209007);
	assert_int_equal(s.event_count, 6);
	assert_int_equal(s.count, 0);
	starts_release(&s);
}

/* Objects are stamped in whole seconds: a later stage may seem to end before an earlier one. */
static void stages_never_last_less_than_nothing(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(5700);

	(void)state;
	starts_ask(&s, &like, 1);
	bind(&s, "m1", 1, like.kind);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 5000, .ready = 6000, .device = 5900 });
	for (size_t i = 0; i < s.event_count; i++)
		assert_true(event(&s, i)->value >= 0);
	assert_int_equal(s.items[0].stage, STAGE_IMAGE);
	assert_int_equal(s.items[0].stage_since, 6000);
	starts_release(&s);
}

static void a_machine_is_given_to_the_oldest(void **state)
{
	struct starts s = { 0 };
	struct start first = cold(1000), second = cold(2000), elsewhere = cold(500);

	(void)state;
	elsewhere.group = 1;
	starts_ask(&s, &elsewhere, 1);
	starts_ask(&s, &first, 2);
	starts_ask(&s, &second, 2);
	assert_int_equal(bind(&s, "m1", 3, START_COLD), 3);
	assert_string_equal(s.items[0].machine, "");
	for (size_t i = 1; i < 4; i++)
		assert_string_equal(s.items[i].machine, "m1");
	assert_string_equal(s.items[4].machine, "");
	assert_true(starts_know_machine(&s, "m1"));
	starts_release(&s);
}

static void what_comes_is_what_a_start_becomes(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000), woken = cold(0);

	(void)state;
	starts_ask(&s, &like, 2);
	woken.kind = START_WAKE;
	memcpy(woken.machine, "m1", 3);
	assert_int_equal(starts_bind_machine(&s, &woken, START_WAKE, 1), 0);
	assert_int_equal(starts_bind_machine(&s, &woken, START_COLD, 1), 1);
	assert_int_equal(s.items[0].kind, START_WAKE);
	assert_int_equal(s.items[1].kind, START_COLD);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 61000 });
	assert_int_equal(event(&s, 0)->kind, START_WAKE);
	starts_release(&s);
}

/* The stage it is found in then is cut short, and tells nothing. */
static void a_start_that_lost_its_machine_waits_for_another(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000);

	(void)state;
	starts_ask(&s, &like, 1);
	bind(&s, "m1", 1, START_COLD);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 2000 });
	starts_events_taken(&s);
	starts_unbind_machine(&s, 0, 5000);
	assert_false(starts_know_machine(&s, "m1"));
	assert_int_equal(s.items[0].stage, STAGE_PROVISION);
	assert_int_equal(bind(&s, "m2", 1, START_COLD), 1);
	starts_follow_node(&s, "m2", &(struct node_stages){ .registered = 9000, .ready = 9500 });
	expect_stage(&s, 0, STAGE_REGISTER, 500);
	assert_int_equal(s.event_count, 1);
	starts_release(&s);
}

static void a_pod_takes_the_start_of_its_machine_before_a_placement(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000), place = cold(900);

	(void)state;
	place.kind = START_PLACE;
	starts_ask(&s, &place, 1);
	starts_ask(&s, &like, 1);
	bind(&s, "m1", 1, like.kind);
	assert_int_equal(starts_bind_pod(&s, 1, 0, "m1", "a")->kind, START_COLD);
	assert_int_equal(starts_bind_pod(&s, 1, 0, "m7", "b")->kind, START_PLACE);
	assert_null(starts_bind_pod(&s, 1, 0, "m1", "c"));
	assert_null(starts_bind_pod(&s, 0, 0, "m1", "c"));
	starts_release(&s);
}

/* What was found half way tells nothing of the stages before, and the one it was found in is cut short. */
static void adopted_starts_tell_only_what_was_seen(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000);

	(void)state;
	like.is_adopted = true;
	starts_ask(&s, &like, 1);
	bind(&s, "m1", 1, like.kind);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 61000 });
	assert_int_equal(s.event_count, 0);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 61000, .ready = 70000 });
	expect_stage(&s, 0, STAGE_REGISTER, 9000);
	starts_release(&s);
}

static void places_for_work_end_with_the_device(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000);

	(void)state;
	like.ends_at_device = true;
	starts_ask(&s, &like, 8);
	bind(&s, "m1", 8, like.kind);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 2000, .ready = 3000, .device = 4000 });
	assert_int_equal(s.count, 0);
	int64_t serving = 0;
	for (size_t i = 0; i < s.event_count; i++)
		serving += event(&s, i)->what == EVENT_SERVING;
	assert_int_equal(serving, 8);
	starts_release(&s);
}

static void refills_end_when_their_machine_is_stopped(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000);

	(void)state;
	like.kind = START_REFILL;
	starts_ask(&s, &like, 1);
	bind(&s, "m1", 1, like.kind);
	starts_follow_node(&s, "m1", &(struct node_stages){ .registered = 2000, .ready = 3000, .device = 4000 });
	assert_int_equal(s.count, 1);
	starts_machine_stopped(&s, "m1", 9000);
	assert_int_equal(s.count, 0);
	assert_int_equal(event(&s, 0)->what, EVENT_SERVING);
	assert_int_equal(event(&s, 0)->kind, START_REFILL);
	starts_release(&s);
}

static void ends_that_are_no_success_say_why(void **state)
{
	struct starts s = { 0 };
	struct start like = cold(1000);

	(void)state;
	starts_ask(&s, &like, 3);
	starts_refuse(&s, 0, ERROR_STOCKOUT);
	starts_stuck(&s, 0, 5000);
	starts_drop(&s, 0);
	assert_int_equal(event(&s, 0)->what, EVENT_REFUSED);
	assert_int_equal(event(&s, 0)->value, ERROR_STOCKOUT);
	assert_int_equal(event(&s, 1)->what, EVENT_STUCK);
	assert_int_equal(event(&s, 1)->value, 4000);
	assert_int_equal(s.event_count, 2);
	assert_int_equal(s.count, 0);
	starts_release(&s);
}

static void shown_oldest_first_and_alike_ones_together(void **state)
{
	struct starts s = { 0 };
	struct start young = cold(3000), old = cold(1000), other = cold(2000);
	struct arena a = { 0 };
	size_t count;

	(void)state;
	other.pool = 0;
	starts_ask(&s, &young, 2);
	starts_ask(&s, &other, 1);
	starts_ask(&s, &old, 3);
	const struct start_input *rows = starts_show(&s, 1, false, &a, &count);
	assert_int_equal(count, 2);
	assert_int_equal(rows[0].asked_at, 1000);
	assert_int_equal(rows[0].count, 3);
	assert_int_equal(rows[1].asked_at, 3000);
	assert_int_equal(rows[1].count, 2);
	arena_release(&a);
	starts_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stage_is_timed),
		cmocka_unit_test(stages_never_last_less_than_nothing),
		cmocka_unit_test(a_machine_is_given_to_the_oldest),
		cmocka_unit_test(what_comes_is_what_a_start_becomes),
		cmocka_unit_test(a_start_that_lost_its_machine_waits_for_another),
		cmocka_unit_test(a_pod_takes_the_start_of_its_machine_before_a_placement),
		cmocka_unit_test(adopted_starts_tell_only_what_was_seen),
		cmocka_unit_test(places_for_work_end_with_the_device),
		cmocka_unit_test(refills_end_when_their_machine_is_stopped),
		cmocka_unit_test(ends_that_are_no_success_say_why),
		cmocka_unit_test(shown_oldest_first_and_alike_ones_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
