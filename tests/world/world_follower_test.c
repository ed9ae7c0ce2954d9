/* Who leads next goes on from the newest memory there is, however much of the past it has copied; and no past is lost.
 */
#include "base/buf.h"
#include "controller/web/published.h"
#include "controller/web/web.h"
#include "state/history.h"
#include "tests/world/laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char chat_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { apiVersion: apps/v1, kind: "
	"Deployment,\n"
	"      name: chat }, gpusPerReplica: 1, maxSequences: 8, prefillTokensPerSecond: 25k, interTokenLatency: 30ms "
	"}\n"
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"
	"  nodeGroups:\n"
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1, max: 8 "
	"}\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"
	"  headroom: { min: 1 }\n";

static const struct replica_settings elected = { .manifest = chat_text, .elects = true };

/* More ticks than a batch may have. */
#define LONG (10 * HOUR)

enum cut { CUT_NONE, CUT_PAST, CUT_HALF, CUT_ALL };
static enum cut cut; /* of what a follower asks its leader for */
static int batches;  /* that it asked for */

static struct wire_fate fate(const struct wire_call *c)
{
	bool is_past = strstr(c->path, "way=2") != NULL;

	if (strncmp(c->host, "http://replica-", strlen("http://replica-")) != 0)
		return (struct wire_fate){ 0 };
	batches++;
	return (struct wire_fate){ .is_refused = cut == CUT_ALL || (cut == CUT_PAST && is_past),
				   .is_answer_half = cut == CUT_HALF };
}

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	wire_on_leave(fate);
	laws_expect_errors(true); /* the log tells what is set aside */
	world_group("chat-od", "chat", 1, 0, 8, 1);
	world_app("chat", 1, 1, "25%")->rate = 1;
	cut = CUT_NONE;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world_end();
	return 0;
}

static void run(millis duration)
{
	world_run(duration);
	if (!*laws_broken())
		return;
	laws_print_trace(60);
	fail_msg("%s", laws_broken());
}

static void until(bool (*is_so)(void), millis most)
{
	if (!world_until(is_so, most)) {
		laws_print_trace(60);
		fail_msg("%s", *laws_broken() ? laws_broken() : "it did not come to it in time");
	}
}

static struct history_span span_of(int who)
{
	struct error e = { 0 };
	struct history_span span = { 0 };
	struct history *h = history_open(replica_history(who), &e);

	if (!h || !history_span(h, &span, &e))
		fail_msg("%s: %s", replica_history(who), e.message);
	history_close(h);
	return span;
}

static bool first_leads(void)
{
	return replica_leads(0);
}

static bool second_leads(void)
{
	return replica_leads(1);
}

static bool second_asked_twice(void)
{
	return batches >= 2;
}

/* The first has led for long, the second has just come. */
static void begin(enum cut how)
{
	replica_start(0, &elected);
	until(first_leads, MINUTE);
	run(LONG);
	cut = how;
	batches = 0;
	replica_start(1, &elected);
	until(second_asked_twice, MINUTE);
}

static void who_has_just_come_leads_with_the_newest_memory(void **state)
{
	(void)state;
	begin(CUT_PAST);
	replica_kill(0);
	struct history_span was = span_of(0);
	until(second_leads, 2 * MINUTE);
	run(MINUTE);
	struct history_span is = span_of(1);
	assert_true(was.last_tick > 2000);
	assert_true(is.last_tick > was.last_tick);
	assert_true(is.first_tick > 0 && is.first_tick > was.last_tick - 300); /* from the last checkpoint on */
}

static bool second_is_ready(void)
{
	CLEANUP(buf_release) struct buf why = { 0 };

	return replica_published(1) && health_is_ready(replica_published(1), &why);
}

/* Whoever updates replicas one by one waits for that before the one that has the past is stopped. */
static void who_lacks_the_past_is_not_ready(void **state)
{
	(void)state;
	begin(CUT_PAST);
	run(4 * MINUTE);
	assert_false(second_is_ready());
	cut = CUT_NONE;
	until(second_is_ready, 2 * MINUTE);
	assert_int_equal(span_of(1).first_tick, span_of(0).first_tick);
	cut = CUT_ALL;
	run(10 * MINUTE);
	assert_true(second_is_ready()); /* that it falls behind is told, and changes nothing */
}

static void without_pools_both_are_ready(void **state)
{
	const struct replica_settings none = { .elects = true, .watches_objects = true };

	(void)state;
	replica_start(0, &none);
	replica_start(1, &none);
	run(2 * MINUTE);
	assert_true(second_is_ready());
}

/* Where nobody can copy, nobody waits for ever. */
static void who_hears_nothing_is_ready_after_a_while(void **state)
{
	(void)state;
	begin(CUT_ALL);
	run(4 * MINUTE);
	assert_false(second_is_ready());
	until(second_is_ready, 3 * MINUTE);
}

/* It knows that it has not all: better the leader comes back. */
static void who_lacks_the_newest_waits_for_the_leader(void **state)
{
	(void)state;
	begin(CUT_HALF);
	int64_t newest = replica_published(0)->ticks;
	replica_kill(0);
	run(3 * MINUTE);
	assert_false(replica_leads(1));
	assert_true(replica_published(1)->history_lag_ticks > 2000);
	cut = CUT_NONE;
	replica_start(0, &elected);
	until(first_leads, 2 * MINUTE);
	run(MINUTE);
	assert_true(span_of(0).last_tick >= newest);
	assert_int_equal(replica_published(1)->history_lag_ticks, 0);
}

static void nobody_waits_for_ever(void **state)
{
	(void)state;
	begin(CUT_HALF);
	replica_kill(0);
	until(second_leads, 7 * MINUTE);
}

static bool first_is_whole(void)
{
	return replica_is_up(0) && !replica_leads(0) && span_of(0).first_tick == 0;
}

/* The last ticks of one that led stay its own. It makes way for the other's history, which is shorter, and takes back
 * what came before. */
static void a_long_history_is_not_given_up_for_a_short_one(void **state)
{
	(void)state;
	begin(CUT_PAST);
	cut = CUT_ALL;
	run(5 * MINUTE); /* ticks that the second will never have */
	replica_kill(0);
	until(second_leads, 7 * MINUTE);
	cut = CUT_NONE;
	replica_start(0, &elected);
	run(2 * MINUTE);
	assert_true(span_of(1).first_tick > 0);
	until(first_is_whole, 5 * MINUTE);
	run(MINUTE);
	assert_true(span_of(0).last_tick >= span_of(1).last_tick - 1);
	replica_kill(1); /* and the other has it from there */
	until(first_leads, 2 * MINUTE);
	replica_start(1, &elected);
	run(5 * MINUTE);
	assert_int_equal(span_of(1).first_tick, 0);
}

enum { SMALL = 512 << 10 };

static int64_t size_of(int who)
{
	struct stat s;

	assert_int_equal(stat(replica_history(who), &s), 0);
	return s.st_size;
}

static bool is_set_aside(int who)
{
	char path[256];

	snprintf(path, sizeof path, "%s.1", replica_history(who));
	return access(path, F_OK) == 0;
}

/* A copy follows within seconds. */
static bool are_level(void)
{
	return span_of(0).last_tick == span_of(1).last_tick;
}

/* Both have a disk that holds some hours. The oldest goes on each, the newest stays the same, and no past is copied
 * that would go again. */
static void a_small_disk_holds_the_newest(void **state)
{
	static const struct replica_settings small = { .manifest = chat_text,
						       .elects = true,
						       .retention = { .bytes = SMALL } };

	(void)state;
	replica_start(0, &small);
	until(first_leads, MINUTE);
	run(LONG);
	replica_start(1, &small);
	run(2 * LONG);
	batches = 0;
	run(HOUR);
	assert_true(batches <= HOUR / (2 * SECOND));
	for (int who = 0; who < 2; who++) {
		assert_true(span_of(who).first_tick > 1000);
		assert_true(size_of(who) < SMALL * 3 / 2); /* with what is free in it */
		assert_true(span_of(who).last_tick - span_of(who).first_tick > 500);
	}
	until(are_level, 10 * SECOND);
	/* Begun anew it has no past to ask for, and sets nothing aside. */
	replica_stop(1);
	replica_start(1, &small);
	run(HOUR);
	until(are_level, 10 * SECOND);
	assert_false(is_set_aside(1));
	replica_kill(0);
	until(second_leads, 2 * MINUTE);
	run(LONG);
	assert_true(size_of(1) < SMALL * 3 / 2);
	assert_false(is_set_aside(1));
}

/* It is on the same disk: the history gives way to it, down to half. */
static void what_is_set_aside_counts(void **state)
{
	static const struct replica_settings small = { .manifest = chat_text, .retention = { .bytes = SMALL } };
	char name[160];

	(void)state;
	replica_start(0, &small);
	run(2 * LONG);
	assert_true(size_of(0) > SMALL * 3 / 4);
	snprintf(name, sizeof name, "%s.1-wal", replica_history(0));
	FILE *file = fopen(name, "w");
	assert_true(file && !fseek(file, SMALL, SEEK_SET) && fputc(0, file) == 0 && !fclose(file));
	run(LONG);
	assert_in_range(size_of(0), SMALL / 4, SMALL * 3 / 4);
	remove(name);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(who_has_just_come_leads_with_the_newest_memory),
		CASE(who_lacks_the_past_is_not_ready),
		CASE(without_pools_both_are_ready),
		CASE(who_hears_nothing_is_ready_after_a_while),
		CASE(who_lacks_the_newest_waits_for_the_leader),
		CASE(nobody_waits_for_ever),
		CASE(a_long_history_is_not_given_up_for_a_short_one),
		CASE(a_small_disk_holds_the_newest),
		CASE(what_is_set_aside_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
