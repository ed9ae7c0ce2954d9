#include "base/net/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct outcome {
	int done;
	enum error_kind kind;
	int exit_code;
	char message[512], output[512], complaint[8192];
	struct loop *loop;
	int restarts;
};

static void keep(struct process *p)
{
	struct outcome *o = p->user;

	o->done++;
	o->kind = p->error.kind;
	o->exit_code = p->exit_code;
	memcpy(o->message, p->error.message, sizeof o->message);
	snprintf(o->output, sizeof o->output, "%s", p->output);
	snprintf(o->complaint, sizeof o->complaint, "%s", p->complaint);
	if (o->restarts-- > 0)
		process_start(o->loop, p);
}

static struct outcome run(const char *script, millis timeout, size_t max_output)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const char *const env[] = { "PREHEAT_TEST=from us", "HOME=/nowhere", NULL };
	struct outcome o = { 0 };
	struct process p = {
		.argv = argv, .env = env, .timeout = timeout, .max_output = max_output, .done = keep, .user = &o
	};

	o.loop = loop_open();
	process_start(o.loop, &p);
	assert_int_equal(o.done, 0);
	loop_run(o.loop);
	assert_int_equal(o.done, 1);
	assert_null(p.run);
	loop_close(o.loop);
	return o;
}

static void output_and_exit_code_are_caught(void **state)
{
	static const struct {
		const char *script, *output, *complaint;
		int exit_code;
	} cases[] = {
		{ "echo hello; echo oh >&2; exit 3", "hello\n", "oh\n", 3 },
		{ "true", "", "", 0 },
		{ "printf %s \"$PREHEAT_TEST $HOME\"", "from us /nowhere", "", 0 },
		{ "wc -c", "0\n", "", 0 },
		{ "exec >&- 2>&-; exit 4", "", "", 4 },
		{ "grep -c SigIgn:.*0000000$ /proc/self/status", "1\n", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct outcome o = run(cases[i].script, MINUTE, 100);
		assert_int_equal(o.kind, ERROR_NONE);
		assert_string_equal(o.output, cases[i].output);
		assert_string_equal(o.complaint, cases[i].complaint);
		assert_int_equal(o.exit_code, cases[i].exit_code);
	}
}

static void a_deadline_ends_it_and_what_it_started(void **state)
{
	(void)state;
	struct outcome o = run("sleep 1000 & sleep 1000", 50, 100);
	assert_int_equal(o.kind, ERROR_TIMEOUT);
	assert_string_equal(o.message, "command 'sh': not done within 50 ms, ended");
	o = run("exec >&- 2>&-; sleep 1000", 50, 100);
	assert_int_equal(o.kind, ERROR_TIMEOUT);
}

static void endless_output_is_refused(void **state)
{
	(void)state;
	struct outcome o = run("while :; do echo more; done", MINUTE, 1000);
	assert_int_equal(o.kind, ERROR_INVALID);
	assert_string_equal(o.message, "command 'sh': it wrote more than 1000 bytes, ended");
	o = run("printf 12345; printf 678", MINUTE, 8);
	assert_int_equal(o.kind, ERROR_NONE);
	assert_string_equal(o.output, "12345678");
}

static void long_complaints_are_cut(void **state)
{
	(void)state;
	struct outcome o =
		run("i=0; while [ $i -lt 1000 ]; do echo complaint >&2; i=$((i+1)); done; echo x", MINUTE, 10);
	assert_int_equal(o.kind, ERROR_NONE);
	assert_string_equal(o.output, "x\n");
	assert_int_equal(strlen(o.complaint), PROCESS_COMPLAINT);
}

static void a_signal_is_told(void **state)
{
	(void)state;
	struct outcome o = run("kill -9 $$", MINUTE, 10);
	assert_int_equal(o.kind, ERROR_UNAVAILABLE);
	assert_string_equal(o.message, "command 'sh': ended by signal 9");
}

static struct outcome start_of(const char *command)
{
	const char *const argv[] = { command, "secret argument", NULL };
	struct outcome o = { 0 };
	struct process p = { .argv = argv, .timeout = MINUTE, .max_output = 10, .done = keep, .user = &o };

	o.loop = loop_open();
	process_start(o.loop, &p);
	assert_int_equal(o.done, 0);
	loop_run(o.loop);
	assert_int_equal(o.done, 1);
	loop_close(o.loop);
	return o;
}

static void what_cannot_start_says_why(void **state)
{
	(void)state;
	struct outcome o = start_of("preheat-no-such-command");
	assert_int_equal(o.kind, ERROR_NOT_FOUND);
	assert_string_equal(o.message,
			    "command 'preheat-no-such-command': not found in PATH, install it or give its whole path");
	o = start_of("/no/such/command");
	assert_int_equal(o.kind, ERROR_NOT_FOUND);
	assert_string_equal(o.message, "command '/no/such/command': not found");
	o = start_of("/etc/passwd");
	assert_int_equal(o.kind, ERROR_AUTH);
}

static void a_cancelled_one_is_gone(void **state)
{
	const char *const argv[] = { "sleep", "1000", NULL };
	struct outcome o = { 0 };
	struct process p = { .argv = argv, .timeout = HOUR, .max_output = 10, .done = keep, .user = &o };

	(void)state;
	o.loop = loop_open();
	process_cancel(&p);
	process_start(o.loop, &p);
	process_cancel(&p);
	process_cancel(&p);
	assert_int_equal(o.done, 0);
	loop_run(o.loop);
	assert_int_equal(o.done, 1);
	assert_int_equal(o.kind, ERROR_CANCELLED);
	loop_close(o.loop);
}

static void it_may_start_anew_inside_done(void **state)
{
	const char *const argv[] = { "echo", "again", NULL };
	struct outcome o = { .restarts = 2 };
	struct process p = { .argv = argv, .timeout = MINUTE, .max_output = 10, .done = keep, .user = &o };

	(void)state;
	o.loop = loop_open();
	process_start(o.loop, &p);
	loop_run(o.loop);
	assert_int_equal(o.done, 3);
	assert_string_equal(o.output, "again\n");
	loop_close(o.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_exit_code_are_caught),
		cmocka_unit_test(a_deadline_ends_it_and_what_it_started),
		cmocka_unit_test(endless_output_is_refused),
		cmocka_unit_test(long_complaints_are_cut),
		cmocka_unit_test(a_signal_is_told),
		cmocka_unit_test(what_cannot_start_says_why),
		cmocka_unit_test(a_cancelled_one_is_gone),
		cmocka_unit_test(it_may_start_anew_inside_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
