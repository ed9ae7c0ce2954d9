#include "base/workers.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { JOBS = 23, LARGE = 200 * 1000 };

static bool square(void *user, size_t job, void *answer, struct error *e)
{
	(void)user;
	(void)e;
	*(size_t *)answer = job * job;
	return true;
}

static const char *name(void *user, size_t job)
{
	static char text[32];

	(void)user;
	snprintf(text, sizeof text, "job %zu", job);
	return text;
}

static void count(void *user, size_t done)
{
	size_t *seen = user;

	assert_int_equal(done, *seen + 1);
	*seen = done;
}

static void answers_stand_in_the_order_of_the_jobs(void **state)
{
	size_t answers[JOBS] = { 0 }, seen = 0;
	bool is_done[JOBS] = { false };
	struct workers w = {
		.jobs = JOBS, .answer_size = sizeof *answers, .work = square, .name = name, .done = count, .user = &seen
	};
	struct error e = { 0 };

	(void)state;
	assert_true(workers_run(&w, answers, is_done, &e));
	for (size_t i = 0; i < JOBS; i++) {
		assert_true(is_done[i]);
		assert_int_equal(answers[i], i * i);
	}
	assert_int_equal(seen, JOBS);
}

static bool fill(void *user, size_t job, void *answer, struct error *e)
{
	(void)user;
	(void)e;
	memset(answer, (int)job + 1, LARGE);
	return true;
}

static void answers_may_be_larger_than_a_pipe(void **state)
{
	unsigned char *answers = calloc(3, LARGE);
	bool is_done[3] = { false };
	struct workers w = { .jobs = 3, .answer_size = LARGE, .work = fill, .name = name };
	struct error e = { 0 };

	(void)state;
	assert_non_null(answers);
	assert_true(workers_run(&w, answers, is_done, &e));
	for (size_t i = 0; i < 3; i++)
		assert_true(answers[i * LARGE] == i + 1 && answers[(i + 1) * LARGE - 1] == i + 1);
	free(answers);
}

static bool fail_at_five(void *user, size_t job, void *answer, struct error *e)
{
	(void)user;
	(void)answer;
	return job != 5 || error_set(e, ERROR_INVALID, "no such thing");
}

static void a_job_that_fails_is_named(void **state)
{
	char answers[JOBS];
	bool is_done[JOBS] = { false };
	struct workers w = { .jobs = JOBS, .answer_size = 1, .work = fail_at_five, .name = name };
	struct error e = { 0 };

	(void)state;
	assert_false(workers_run(&w, answers, is_done, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_string_equal(e.message, "job 5: no such thing");
}

static bool die_at_four(void *user, size_t job, void *answer, struct error *e)
{
	(void)user;
	(void)answer;
	(void)e;
	if (job == 4)
		kill(getpid(), SIGKILL);
	return true;
}

static bool leave_at_four(void *user, size_t job, void *answer, struct error *e)
{
	(void)user;
	(void)answer;
	(void)e;
	if (job == 4)
		_exit(7);
	return true;
}

static void a_worker_that_dies_is_one_clear_error(void **state)
{
	char answers[JOBS];
	bool is_done[JOBS] = { false };
	struct workers w = { .jobs = JOBS, .answer_size = 1, .work = die_at_four, .name = name };
	struct error e = { 0 };

	(void)state;
	assert_false(workers_run(&w, answers, is_done, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	assert_non_null(strstr(e.message, "job 4: the worker process was ended by signal 9"));
	w.work = leave_at_four;
	assert_false(workers_run(&w, answers, is_done, &e));
	assert_non_null(strstr(e.message, "job 4: the worker process ended early with code 7"));
}

static void stopped_before_it_begins_nothing_is_done(void **state)
{
	size_t answers[JOBS];
	bool is_done[JOBS] = { false };
	volatile int stop = 1;
	struct workers w = {
		.jobs = JOBS, .answer_size = sizeof *answers, .work = square, .name = name, .stop = &stop
	};
	struct error e = { 0 };

	(void)state;
	assert_true(workers_run(&w, answers, is_done, &e));
	for (size_t i = 0; i < JOBS; i++)
		assert_false(is_done[i]);
}

static void no_jobs_are_no_work(void **state)
{
	struct workers w = { .work = square, .name = name };
	struct error e = { 0 };

	(void)state;
	assert_true(workers_run(&w, NULL, NULL, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_stand_in_the_order_of_the_jobs),
		cmocka_unit_test(answers_may_be_larger_than_a_pipe),
		cmocka_unit_test(a_job_that_fails_is_named),
		cmocka_unit_test(a_worker_that_dies_is_one_clear_error),
		cmocka_unit_test(stopped_before_it_begins_nothing_is_done),
		cmocka_unit_test(no_jobs_are_no_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
