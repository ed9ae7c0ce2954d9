/*
 * Clouds that say one thing and do another: reads that are old or out of order, a yes that means nothing, launches that
 * fail late, and somebody else who sizes the same group. What is bought is what was decided, whatever reads show.
 */
#include "controller/web/published.h"
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char chat_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { apiVersion: apps/v1, kind: "
	"Deployment,\n"
	"      name: chat }, gpusPerReplica: 1, maxSequences: 8, prefillTokensPerSecond: 25k, interTokenLatency: 30ms "
	"}\n"
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"
	"  nodeGroups:\n"
	"    - { name: first, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 0.48, min: 0, max: 20 }\n"
	"    - { name: second, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1.21, min: 0, max: 20 }\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 2 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings alone = { .manifest = chat_text };
static const struct replica_settings elected = { .manifest = chat_text, .elects = true };
static struct world_app *chat;
static struct cloud_group *first, *second;

static int set_up(void **state)
{
	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	world_begin(1);
	first = world_group("first", "chat", 1, 0, 20, 1);
	second = world_group("second", "chat", 1, 0, 20, 0);
	chat = world_app("chat", 1, 1, "25%");
	return 0;
}

static bool serves_two(void)
{
	return world_ready("chat") >= 2;
}

static bool is_grown(void)
{
	return world_ready("chat") >= 5;
}

static bool is_down(void)
{
	return world_desired("chat") <= 2 && world_is_at_rest();
}

static void begin(void)
{
	replica_start(0, &alone);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
}

static int64_t total_bought(void)
{
	return first->bought + second->bought;
}

/* Grows, and comes down again; nobody else did anything. */
static void grow_and_shrink(int64_t most)
{
	int64_t bought = total_bought();

	chat->rate = 4;
	until(is_grown, 30 * MINUTE, "replicas for the traffic serve");
	run(15 * MINUTE);
	assert_true(total_bought() - bought <= most);
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down to its headroom");
	assert_false(world_event_told("ForeignSizeChange"));
	assert_false(world_event_told("GrowthHeld"));
}

static void reads_of_a_minute_ago_buy_nothing_twice(void **state)
{
	(void)state;
	first->reads = second->reads = (struct cloud_reads){ MINUTE, false };
	begin();
	int64_t changes = first->changes + second->changes;
	grow_and_shrink(12); /* 11 where reads are fresh */
	assert_true(first->changes + second->changes - changes < 40);
}

/* --- four pods, on EKS --- */

/* %s: how it launches. */
static const char train_format[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: train, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: training\n"
	"  objective: { queueWait: 15m, attainment: 95%% }\n"
	"  workload: { selector: { matchLabels: { app: train } }, gpusPerReplica: 1 }\n"
	"  signals: { engine: pods }\n"
	"  nodeGroups:\n"
	"    - { name: train, provider: eks, zone: z1, instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1, min: "
	"0,\n"
	"        max: 20, eks: { cluster: world, nodegroup: train, launch: %s, region: eu-west-1,\n"
	"        endpoint: \"" CLOUD_AWS "\" } }\n"
	"  leadTime: { total: { p50: 150s, p95: 260s } }\n"
	"  scaleDown: { after: 4m }\n";

static bool run_four(void)
{
	return world_job_running("j") == 4;
}

/* One leader, and what it describes is 60 s old, from before the pods came to long after they run. */
static void four_pods_get_four(bool launches, bool is_loose)
{
	const struct world_job job = { "j", "train", 4, is_loose, 1, NULL, 0 };
	char text[sizeof train_format + 20];
	const struct replica_settings one = { .manifest = text, .elects = true };

	world_end();
	world_begin(3);
	snprintf(text, sizeof text, train_format, launches ? "instances" : "capacity");
	struct cloud_group *train = cloud_add(&(struct cloud_group){ .name = "train",
								     .pool = "train",
								     .zone = "z1",
								     .instance_type = "g5.xlarge",
								     .max = 20,
								     .gpus = 1,
								     .wire = CLOUD_EKS,
								     .launches = launches,
								     .reads = { MINUTE, false } },
					      0);
	replica_start(0, &one);
	run(3 * MINUTE);
	assert_int_equal(replica_leader(), 0);
	int64_t changes = train->changes;
	world_job(&job);
	until(run_four, 15 * MINUTE, "all four run");
	run(20 * MINUTE);
	assert_int_equal(train->bought, 4);
	assert_int_equal(train->desired, 4);
	assert_int_equal(train->changes - changes, 1); /* one call */
	assert_false(world_event_told("ForeignSizeChange"));
	assert_false(world_event_told("GrowthHeld"));
}

static void four_pods_get_four_machines_on_reads_of_a_minute_ago(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		four_pods_get_four(i / 2, i % 2);
}

static void reads_out_of_order_buy_nothing_twice(void **state)
{
	(void)state;
	first->reads = second->reads = (struct cloud_reads){ 119 * SECOND, true };
	begin();
	grow_and_shrink(12); /* 11 where reads are fresh */
}

static bool is_accepted(void)
{
	return world_desired("chat") >= 4;
}

/* Killed after the cloud said yes and before a read shows it: the law never_bought_twice looks on. */
static void a_restart_before_a_read_shows_it_buys_nothing_twice(void **state)
{
	(void)state;
	begin();
	first->reads = second->reads = (struct cloud_reads){ 119 * SECOND, false };
	run(3 * MINUTE);
	for (int i = 0; i < 4; i++) {
		chat->rate = 4;
		until(is_accepted, 20 * MINUTE, "machines are asked for");
		world_events(i * 7);
		replica_kill(0);
		run(i * 5 * SECOND);
		replica_start(0, &alone);
		until(is_grown, 30 * MINUTE, "replicas for the traffic serve");
		chat->rate = 0;
		until(is_down, 3 * HOUR, "it comes down");
	}
	assert_false(world_event_told("ForeignSizeChange"));
}

static bool one_leads(void)
{
	return replica_leader() == 1;
}

static bool zero_leads(void)
{
	return replica_leader() == 0;
}

static void another_leader_before_a_read_shows_it_buys_nothing_twice(void **state)
{
	(void)state;
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "the first leads");
	replica_start(1, &elected);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	first->reads = second->reads = (struct cloud_reads){ 119 * SECOND, false };
	run(3 * MINUTE);
	int64_t before = total_bought();
	chat->rate = 4;
	until(is_accepted, 20 * MINUTE, "machines are asked for");
	replica_kill(0);
	until(one_leads, MINUTE, "the other leads");
	until(is_grown, 30 * MINUTE, "replicas for the traffic serve");
	assert_true(total_bought() - before <= 10);
}

static const struct published_group *published_of(size_t i)
{
	const struct published *p = replica_published(0);

	return p ? &p->groups[i] : NULL;
}

static bool has_fallen_back(void)
{
	return second->desired >= 3;
}

static void a_yes_that_means_nothing_falls_back_and_is_told(void **state)
{
	(void)state;
	begin();
	first->faults.no_effect = -1;
	chat->rate = 4;
	until(has_fallen_back, 15 * MINUTE, "the next group is used");
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	run(30 * MINUTE);
	assert_true(published_of(0)->unseen_nodes > 0);
	assert_int_equal(published_of(0)->resized, 0);
	assert_int_equal(published_of(0)->growth_held, 0);
	assert_true(world_event_told("LaunchUnseen"));
	const char *unseen = replica_published(0)->pools[0].problem[PROBLEM_UNSEEN];
	assert_true(unseen && strstr(unseen, "the cloud accepted call preheat-") && strstr(unseen, "-first-"));
	assert_false(world_event_told("ForeignSizeChange"));
	assert_false(world_event_told("GrowthHeld"));
	first->faults.no_effect = 0;
	chat->rate = 0;
	until(is_down, 3 * HOUR, "it comes down");
}

static void one_less_than_it_said_is_made_up_for(void **state)
{
	(void)state;
	begin();
	first->faults.one_less = 3;
	grow_and_shrink(16);
	assert_int_equal(published_of(0)->resized, 0);
}

static void half_an_answer_is_none(void **state)
{
	(void)state;
	begin();
	first->faults.half_answer = 3;
	chat->rate = 4;
	until(is_grown, 30 * MINUTE, "replicas for the traffic serve");
	assert_false(world_event_told("ForeignSizeChange"));
}

/* Machines that are asked for and fail a quarter of an hour later, as agent pools of AKS do. */
static void a_launch_that_fails_late_falls_back(void **state)
{
	(void)state;
	begin();
	first->faults.stock_out = -1;
	first->faults.fails_after = 15 * MINUTE;
	chat->rate = 4;
	until(is_grown, 30 * MINUTE, "replicas serve on the next group");
	run(HOUR);
	chat->rate = 0;
	first->faults = (struct cloud_faults){ 0 };
	until(is_down, 3 * HOUR, "it comes down");
}

static void meddle(int64_t size, millis every, millis duration)
{
	for (; duration > 0; duration -= every) {
		cloud_owner_sets(first, size);
		run(every);
	}
}

static bool is_quiet(void)
{
	return published_of(0)->contended == 0;
}

/* Who raises it every ten seconds is left alone with it, and it is said; once they are quiet it goes on. */
static void whoever_raises_it_against_us_is_left_alone(void **state)
{
	(void)state;
	begin();
	int64_t before = total_bought();
	meddle(8, 10 * SECOND, 2 * HOUR);
	assert_true(world_event_says("NodeGroupContended", "another writer (its owner) undoes"));
	assert_true(world_event_says("NodeGroupContended", " an hour for nothing"));
	assert_true(published_of(0)->contended > 0);
	assert_true(total_bought() - before <= 36); /* the eight, four times */
	assert_true(published_of(0)->resized >= 3);
	until(is_down, 3 * HOUR, "it comes down once they are quiet");
	assert_int_equal(published_of(0)->contended, 0);
}

static bool is_contended(void)
{
	return published_of(0) && published_of(0)->contended > 0;
}

/* Else each restart would buy and end three times more. */
static void a_restart_does_not_begin_the_fight_anew(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 12 * 60 && !is_contended(); i++) {
		cloud_owner_sets(first, 8);
		run(10 * SECOND);
	}
	assert_true(is_contended());
	int64_t size = first->desired, resized = published_of(0)->resized;
	replica_kill(0);
	replica_start(0, &alone);
	run(MINUTE);
	assert_true(is_contended());
	run(8 * MINUTE);
	assert_int_equal(first->desired, size);
	assert_true(resized >= 3);
	until(is_quiet, 15 * MINUTE, "they were quiet for long enough");
	until(is_down, 3 * HOUR, "it comes down");
}

static void whoever_lowers_it_against_us_is_left_alone(void **state)
{
	(void)state;
	begin();
	int64_t before = total_bought();
	chat->rate = 4;
	meddle(1, 10 * SECOND, 2 * HOUR);
	assert_true(world_event_told("NodeGroupContended"));
	assert_true(total_bought() - before <= 36);
	assert_true(world_ready("chat") >= 5); /* on the other group */
	until(is_quiet, 5 * HOUR, "it is over");
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(reads_of_a_minute_ago_buy_nothing_twice),
		SCENARIO(four_pods_get_four_machines_on_reads_of_a_minute_ago),
		SCENARIO(reads_out_of_order_buy_nothing_twice),
		SCENARIO(a_restart_before_a_read_shows_it_buys_nothing_twice),
		SCENARIO(another_leader_before_a_read_shows_it_buys_nothing_twice),
		SCENARIO(a_yes_that_means_nothing_falls_back_and_is_told),
		SCENARIO(one_less_than_it_said_is_made_up_for),
		SCENARIO(half_an_answer_is_none),
		SCENARIO(a_launch_that_fails_late_falls_back),
		SCENARIO(whoever_raises_it_against_us_is_left_alone),
		SCENARIO(a_restart_does_not_begin_the_fight_anew),
		SCENARIO(whoever_lowers_it_against_us_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
