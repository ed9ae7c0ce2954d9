/* Recommendations, with a script in place of the program. */
#include "controller/web/recommendations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define ROW                                                                                                         \
	"[{\"namespace\":\"llm\",\"pool\":\"chat\",\"change\":\"headroom.min: 2\",\"saves_dollars_a_day\":-3.9712," \
	"\"dollars_a_day\":521.9790,\"late_ppm\":25250,\"late_with_ppm\":7937,\"allowed_ppm\":10000,\"is_chance\":" \
	"false,\"needs\":null,\"why\":\"of the limit\",\"tried_days\":29.5,\"incidents\":2,\"incidents_late\":410," \
	"\"incidents_late_with\":30}]"

struct site {
	struct loop *loop;
	struct daily *d;
	char folder[40], program[64], history[64], kept[80], runs[64];
};

/* Each run leaves a line, so that they can be counted. */
static void write_program(const struct site *s, const char *script)
{
	FILE *f = fopen(s->program, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\necho \"$@\" >>%s\n%s\n", s->runs, script);
	fclose(f);
	assert_int_equal(chmod(s->program, 0700), 0);
}

static struct site open_site(void)
{
	struct site s = { .loop = loop_open(), .folder = "/tmp/preheat-advise-XXXXXX" };

	assert_non_null(mkdtemp(s.folder));
	snprintf(s.program, sizeof s.program, "%s/program", s.folder);
	snprintf(s.history, sizeof s.history, "%s/h.db", s.folder);
	snprintf(s.kept, sizeof s.kept, "%s/h.db.advice.json", s.folder);
	snprintf(s.runs, sizeof s.runs, "%s/runs", s.folder);
	return s;
}

static void begin(struct site *s, bool is_kept)
{
	s->d = daily_open(&(struct daily_setup){ s->loop, s->program, s->history, is_kept, 0 },
			  &recommendations_question);
}

static void close_site(struct site *s)
{
	daily_close(s->d);
	loop_close(s->loop);
	unlink(s->program);
	unlink(s->kept);
	unlink(s->runs);
	rmdir(s->folder);
}

static const struct daily_shown *wait_for(struct site *s)
{
	const struct daily_shown *now = daily_look(s->d);

	while (now->state == DAILY_TRYING)
		assert_true(loop_once(s->loop) || now->state != DAILY_TRYING);
	return now;
}

static const struct recommendations *changes(const struct daily_shown *shown)
{
	return shown->answer;
}

static int runs_of(const struct site *s)
{
	FILE *f = fopen(s->runs, "r");
	int lines = 0;

	for (int c = 0; f && (c = getc(f)) != EOF;)
		lines += c == '\n';
	if (f)
		fclose(f);
	return lines;
}

static void who_looks_first_begins_it_and_once(void **state)
{
	struct site s = open_site();

	(void)state;
	write_program(&s, "echo '" ROW "'");
	begin(&s, false);
	assert_int_equal(daily_look(s.d)->state, DAILY_TRYING);
	assert_int_equal(daily_look(s.d)->tried_at, 0);
	const struct daily_shown *now = wait_for(&s);
	assert_int_equal(now->state, DAILY_TRIED);
	assert_true(now->tried_at > 0 && changes(now)->count == 1);
	assert_string_equal(changes(now)->items[0].change, "headroom.min: 2");
	assert_int_equal(changes(now)->items[0].saves, -3971200);
	assert_int_equal(changes(now)->items[0].late_with_ppm, 7937);
	assert_null(changes(now)->items[0].needs);
	assert_string_equal(changes(now)->items[0].why, "of the limit");
	assert_int_equal(changes(now)->items[0].days_milli, 29500);
	assert_int_equal(changes(now)->items[0].incidents, 2);
	assert_int_equal(changes(now)->items[0].incidents_late, 410);
	assert_int_equal(changes(now)->items[0].incidents_late_with, 30);
	wait_for(&s);
	assert_int_equal(runs_of(&s), 1);
	daily_ask(s.d);
	wait_for(&s);
	assert_int_equal(runs_of(&s), 2);
	assert_int_equal(access(s.kept, F_OK), -1);
	close_site(&s);
}

static void it_looks_by_itself(void **state)
{
	struct site s = open_site();

	(void)state;
	write_program(&s, "echo '" ROW "'");
	s.d = daily_open(&(struct daily_setup){ s.loop, s.program, s.history, false, 1 }, &recommendations_question);
	while (!runs_of(&s))
		assert_true(loop_once(s.loop));
	wait_for(&s);
	assert_int_equal(runs_of(&s), 1);
	close_site(&s);
}

static void nothing_that_pays_is_an_answer(void **state)
{
	struct site s = open_site();

	(void)state;
	write_program(&s, "echo '[]'");
	begin(&s, false);
	const struct daily_shown *now = wait_for(&s);
	assert_int_equal(now->state, DAILY_TRIED);
	assert_int_equal(changes(now)->count, 0);
	close_site(&s);
}

/* What was found before stays. */
static void a_failure_is_told_and_not_tried_at_every_look(void **state)
{
	struct site s = open_site();

	(void)state;
	write_program(&s, "echo '" ROW "'");
	begin(&s, false);
	wait_for(&s);
	write_program(&s, "echo 'preheat advise: no traffic' >&2; echo more >&2; exit 3");
	daily_ask(s.d);
	const struct daily_shown *now = wait_for(&s);
	assert_int_equal(now->state, DAILY_FAILED);
	assert_string_equal(now->message, "preheat advise: no traffic");
	assert_int_equal(changes(now)->count, 1);
	wait_for(&s);
	assert_int_equal(runs_of(&s), 2);
	write_program(&s, "echo '[{\"pool\":3}]'");
	daily_ask(s.d);
	assert_int_equal(wait_for(&s)->state, DAILY_FAILED);
	close_site(&s);
}

static void a_controller_knows_them_after_a_restart(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct site s = open_site();
	struct daily_shown read;
	struct error e = { 0 };

	(void)state;
	write_program(&s, "echo '" ROW "'");
	assert_true(daily_read(s.history, &recommendations_question, &a, &read, &e));
	assert_int_equal(read.state, DAILY_NEVER);
	begin(&s, true);
	wait_for(&s);
	daily_close(s.d);
	assert_true(daily_read(s.history, &recommendations_question, &a, &read, &e));
	assert_true(read.state == DAILY_TRIED && changes(&read)->count == 1 && read.tried_at > 0);
	begin(&s, true);
	assert_int_equal(daily_look(s.d)->state, DAILY_TRIED);
	assert_string_equal(changes(daily_look(s.d))->items[0].pool, "chat");
	assert_int_equal(runs_of(&s), 1);
	FILE *f = fopen(s.kept, "w");
	assert_non_null(f);
	fputs("[{", f);
	fclose(f);
	assert_false(daily_read(s.history, &recommendations_question, &a, &read, &e));
	assert_non_null(strstr(e.message, "h.db.advice.json"));
	close_site(&s);
}

static void what_runs_ends_with_it(void **state)
{
	struct site s = open_site();

	(void)state;
	write_program(&s, "exec sleep 1000");
	begin(&s, false);
	daily_look(s.d);
	assert_true(loop_once(s.loop)); /* it is started from there */
	close_site(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_looks_first_begins_it_and_once),
		cmocka_unit_test(it_looks_by_itself),
		cmocka_unit_test(nothing_that_pays_is_an_answer),
		cmocka_unit_test(a_failure_is_told_and_not_tried_at_every_look),
		cmocka_unit_test(a_controller_knows_them_after_a_restart),
		cmocka_unit_test(what_runs_ends_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
