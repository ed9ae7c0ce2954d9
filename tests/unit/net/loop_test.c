#include "base/net/loop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static char order[16];

static void note(struct timer *t)
{
	strncat(order, t->user, sizeof order - strlen(order) - 1);
}

static void timers_fire_in_the_order_of_their_ends(void **state)
{
	struct loop *l = loop_open();
	struct timer a = { .user = "a" }, b = { .user = "b" }, c = { .user = "c" };

	(void)state;
	order[0] = '\0';
	timer_start(l, &c, 30, note);
	timer_start(l, &a, 0, note);
	timer_start(l, &b, 10, note);
	assert_string_equal(order, ""); /* never inside the call */
	loop_run(l);
	assert_string_equal(order, "abc");
	assert_false(timer_is_running(&a));
	loop_close(l);
}

/* After a long sleep everything is due at once: what bars the rest comes first. */
static void an_urgent_timer_is_first(void **state)
{
	struct loop *l = loop_open();
	struct timer a = { .user = "a" }, b = { .user = "b" }, last = { .user = "u", .is_urgent = true };

	(void)state;
	order[0] = '\0';
	timer_start(l, &a, 0, note);
	timer_start(l, &b, 1, note);
	timer_start(l, &last, 2, note);
	for (millis start = loop_now(l); loop_now(l) - start < 5;)
		;
	loop_run(l);
	assert_string_equal(order, "uab");
	loop_close(l);
}

static void a_timer_never_fires_early(void **state)
{
	struct loop *l = loop_open();

	(void)state;
	for (millis after = 0; after < 5; after++) {
		struct timer t = { .user = "t" };
		millis start = loop_now(l);
		timer_start(l, &t, after, note);
		loop_run(l);
		assert_true(loop_now(l) - start >= after);
	}
	loop_close(l);
}

static void a_stopped_timer_is_silent(void **state)
{
	struct loop *l = loop_open();
	struct timer a = { .user = "a" }, b = { .user = "b" }, never = { 0 };

	(void)state;
	order[0] = '\0';
	timer_stop(&never);
	timer_start(l, &a, 0, note);
	timer_start(l, &b, 0, note);
	assert_true(timer_is_running(&a));
	timer_stop(&a);
	timer_stop(&a);
	loop_run(l);
	assert_string_equal(order, "b");
	loop_close(l);
}

static void a_timer_set_anew_fires_once(void **state)
{
	struct loop *l = loop_open();
	struct timer a = { .user = "a" };

	(void)state;
	order[0] = '\0';
	timer_start(l, &a, HOUR, note);
	timer_start(l, &a, 0, note);
	loop_run(l);
	assert_string_equal(order, "a");
	loop_close(l);
}

static void again(struct timer *t)
{
	int *left = t->user;

	if (--*left)
		timer_start(t->loop, t, 0, again);
	else
		loop_stop(t->loop);
}

static void a_timer_may_start_itself_and_stop_the_loop(void **state)
{
	struct loop *l = loop_open();
	int left = 5;
	struct timer t = { .user = &left }, forever = { .user = "x" };

	(void)state;
	timer_start(l, &forever, HOUR, note);
	timer_start(l, &t, 0, again);
	loop_run(l);
	assert_int_equal(left, 0);
	timer_stop(&forever);
	assert_false(loop_poll(l));
	loop_close(l);
}

static int seen;

static void count(struct signal_watch *w, int number)
{
	seen += number == SIGUSR1;
	signal_watch_stop(w);
}

static void a_signal_arrives_from_the_loop(void **state)
{
	struct loop *l = loop_open();
	struct signal_watch w = { 0 };

	(void)state;
	seen = 0;
	signal_watch_start(l, &w, SIGUSR1, count);
	raise(SIGUSR1);
	assert_int_equal(seen, 0);
	loop_run(l);
	assert_int_equal(seen, 1);
	loop_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_fire_in_the_order_of_their_ends),
		cmocka_unit_test(an_urgent_timer_is_first),
		cmocka_unit_test(a_timer_never_fires_early),
		cmocka_unit_test(a_stopped_timer_is_silent),
		cmocka_unit_test(a_timer_set_anew_fires_once),
		cmocka_unit_test(a_timer_may_start_itself_and_stop_the_loop),
		cmocka_unit_test(a_signal_arrives_from_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
