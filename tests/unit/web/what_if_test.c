/* What-if, with a script in place of the program. */
#include "controller/web/what_if.h"

#include "controller/policy/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct site {
	struct loop *loop;
	struct what_ifs *jobs;
	char folder[40], program[64];
};

static struct site open_site(const char *script)
{
	struct site s = { .loop = loop_open(), .folder = "/tmp/preheat-what-if-XXXXXX" };

	assert_non_null(mkdtemp(s.folder));
	snprintf(s.program, sizeof s.program, "%s/program", s.folder);
	FILE *f = fopen(s.program, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(s.program, 0700), 0);
	return s;
}

static void begin(struct site *s)
{
	s->jobs = what_ifs_open(&(struct what_ifs_setup){ s->loop, s->program, "h.db" });
}

static void close_site(struct site *s)
{
	what_ifs_close(s->jobs);
	loop_close(s->loop);
	unlink(s->program);
	rmdir(s->folder);
}

static struct what_if_request request(const char *max)
{
	struct what_if_request r = { .pool = "llm/chat", .from = INT64_C(1704067200000), .to = INT64_C(1704070800000) };

	snprintf(r.max, sizeof r.max, "%s", max);
	return r;
}

static int64_t add(struct site *s, const char *max)
{
	struct what_if_request r = request(max);
	struct error e = { 0 };
	const struct what_if *j = what_ifs_add(s->jobs, &r, &e);

	assert_string_equal(e.message, "");
	assert_non_null(j);
	return j->id;
}

static const struct what_if *wait_for(struct site *s, int64_t id, enum what_if_state state)
{
	while (what_ifs_find(s->jobs, id)->state != state)
		assert_true(loop_once(s->loop));
	return what_ifs_find(s->jobs, id);
}

#define ANSWER                                                                                                      \
	"echo '{\"progress\":0.40}' >&2\n"                                                                          \
	"echo '[{\"pool\":\"chat\",\"figure\":\"requests\",\"recorded\":100,\"model_same\":100,\"model_with\":100," \
	"\"difference\":0},{\"pool\":\"chat\",\"figure\":\"dollars\",\"recorded\":12.50,\"model_same\":12.25,"      \
	"\"model_with\":9.75,\"difference\":-2.5},{\"pool\":\"chat\",\"figure\":\"late allowed, %\","               \
	"\"recorded\":1.000,\"model_same\":1.000,\"model_with\":0.500},{\"pool\":\"chat\",\"figure\":\"of "         \
	"later\",\"recorded\":1}]'\n"

static void an_answer_is_kept(void **state)
{
	struct site s = open_site(ANSWER);

	(void)state;
	begin(&s);
	const struct what_if *j = wait_for(&s, add(&s, "3"), WHAT_IF_DONE);
	assert_int_equal(j->percent, 100);
	assert_int_equal(j->recorded.dollars, 12500000);
	assert_int_equal(j->same.dollars, 12250000);
	assert_int_equal(j->changed.dollars, 9750000);
	assert_int_equal(j->recorded.requests, 100000000);
	assert_true(j->recorded.gpu_hours == ABSENT);
	assert_int_equal(j->recorded.allowed, 1000000);
	assert_int_equal(j->changed.allowed, 500000);
	assert_true(j->ended_at >= j->asked_at);
	close_site(&s);
}

static void what_it_is_told_are_the_options_of_replay(void **state)
{
	struct site s = open_site("[ \"$*\" = \"replay --progress --output json --db h.db --pool llm/chat --from "
				  "2024-01-01T00:00:00Z --to 2024-01-01T01:00:00Z --objective llm/chat=2s,99% --max "
				  "llm/chat=3\" ] || { echo \"told $*\" >&2; exit 2; }\n" ANSWER);
	struct what_if_request r = request("3");
	struct error e = { 0 };

	(void)state;
	begin(&s);
	snprintf(r.objective, sizeof r.objective, "2s,99%%");
	int64_t id = what_ifs_add(s.jobs, &r, &e)->id;
	while (what_ifs_find(s.jobs, id)->state < WHAT_IF_DONE)
		loop_once(s.loop);
	assert_string_equal(what_ifs_find(s.jobs, id)->message, "");
	close_site(&s);
}

static void failures_say_why(void **state)
{
	static const struct {
		const char *script, *message;
	} cases[] = {
		{ "echo '{\"progress\":0.1}' >&2; echo 'preheat replay: no' >&2; exit 2", "preheat replay: no" },
		{ "exit 3", "it ended without an answer" },
		{ "echo '[{'", "replay" },
		{ "kill -9 $$", "ended by signal 9" },
		{ "head -c 400000 /dev/zero", "it wrote more than" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct site s = open_site(cases[i].script);

		begin(&s);
		const struct what_if *j = wait_for(&s, add(&s, "3"), WHAT_IF_FAILED);
		if (!strstr(j->message, cases[i].message))
			fail_msg("%s: %s", cases[i].script, j->message);
		close_site(&s);
	}
}

static void one_runs_and_few_wait(void **state)
{
	static const char *const sizes[] = { "1", "2", "3", "4", "5" };
	struct site s = open_site("echo '{\"progress\":0.25}' >&2; sleep 600");
	struct what_if_request r = request("1");
	struct error e = { 0 };
	int64_t ids[5];

	(void)state;
	begin(&s);
	ids[0] = add(&s, sizes[0]);
	while (what_ifs_find(s.jobs, ids[0])->percent != 25)
		loop_once(s.loop);
	assert_null(what_ifs_add(s.jobs, &r, &e));
	assert_int_equal(e.kind, ERROR_CONFLICT);
	for (size_t i = 1; i < 5; i++)
		ids[i] = add(&s, sizes[i]);
	r = request("6");
	assert_null(what_ifs_add(s.jobs, &r, &e));
	assert_int_equal(e.kind, ERROR_THROTTLED);
	what_ifs_cancel(s.jobs, ids[2]);
	assert_int_equal(what_ifs_find(s.jobs, ids[2])->state, WHAT_IF_CANCELLED);
	what_ifs_cancel(s.jobs, ids[0]);
	wait_for(&s, ids[0], WHAT_IF_CANCELLED);
	wait_for(&s, ids[1], WHAT_IF_RUNNING); /* the one that waited longest */
	close_site(&s);			       /* while it runs */
}

static void those_that_ended_are_kept_for_a_while(void **state)
{
	struct site s = open_site(ANSWER);
	int count = 0;

	(void)state;
	begin(&s);
	for (int i = 0; i < 30; i++)
		wait_for(&s, add(&s, "3"), WHAT_IF_DONE);
	for (const struct what_if *j = what_ifs_all(s.jobs); j; j = j->next)
		count++;
	assert_true(count >= 20 && count <= 21);
	assert_null(what_ifs_find(s.jobs, 1));
	assert_non_null(what_ifs_find(s.jobs, 30));
	close_site(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_kept),
		cmocka_unit_test(what_it_is_told_are_the_options_of_replay),
		cmocka_unit_test(failures_say_why),
		cmocka_unit_test(one_runs_and_few_wait),
		cmocka_unit_test(those_that_ended_are_kept_for_a_while),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
