/*
 * The cloud's reads are old, and what was done last is not known: another replica leads, or the same one once more, and
 * it is in no copy of the history, or of another time; or its answer was lost. The group launches by count (EKS,
 * `launch: instances`), where what is not known of would be launched again. Laws: what is bought is what was decided.
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

static const char text[] =
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
	"    - { name: first, zone: z1, gpusPerNode: 1, pricePerHour: 0.48, min: 0, max: 20, provider: eks,\n"
	"        instanceType: g5.xlarge, eks: { cluster: world, nodegroup: first, launch: instances,\n"
	"        region: eu-west-1, endpoint: \"" CLOUD_AWS "\" } }\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 3 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings elected = { .manifest = text, .elects = true };
static struct cloud_group *first;
static struct world_app *chat;
static int64_t had; /* bought before */

static int set_up(void **state)
{
	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	world_begin(1);
	first = cloud_add(&(struct cloud_group){ .name = "first",
						 .pool = "chat",
						 .zone = "z1",
						 .instance_type = "g5.xlarge",
						 .max = 20,
						 .gpus = 1,
						 .wire = CLOUD_EKS,
						 .launches = true },
			  1);
	chat = world_app("chat", 1, 1, "25%");
	return 0;
}

static bool zero_leads(void)
{
	return replica_leader() == 0;
}

static bool one_leads(void)
{
	return replica_leader() == 1;
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

static bool serves_five(void)
{
	return world_ready("chat") >= 5;
}

static bool has_launched(void)
{
	return first->bought > had;
}

/* The first of two leads, all is calm, and reads are old from now on. */
static void begin(millis lag)
{
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "the first leads");
	replica_start(1, &elected);
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	first->reads = (struct cloud_reads){ lag, false };
	run(3 * MINUTE);
	had = first->bought;
	chat->rate = 4;
}

static void until_launched(void)
{
	for (int i = 0; i < 4000000 && !has_launched(); i++)
		world_events(1);
	assert_true(has_launched());
}

static void the_other_buys_nothing_twice(void)
{
	until(one_leads, 10 * MINUTE, "the other leads");
	run(5 * MINUTE);
	until(serves_five, 30 * MINUTE, "replicas for the traffic serve");
}

/* Rolling updates: the lease is free at once, and the copy lacks what was launched after the last tick. */
static void who_is_asked_to_end_leaves_no_launch_to_be_repeated(void **state)
{
	(void)state;
	begin(5 * SECOND);
	until_launched();
	had = first->bought;
	until_launched(); /* on a look between two ticks */
	replica_stop(0);
	the_other_buys_nothing_twice();
}

static void who_is_killed_leaves_no_launch_to_be_repeated(void **state)
{
	(void)state;
	begin(90 * SECOND);
	until_launched();
	replica_kill(0);
	the_other_buys_nothing_twice();
}

static void who_is_killed_between_ticks_leaves_none_either(void **state)
{
	(void)state;
	begin(60 * SECOND);
	until_launched();
	had = first->bought;
	until_launched();
	run(6 * SECOND);
	replica_kill(0);
	the_other_buys_nothing_twice();
}

/* Its rows are of a time that has not come here. */
static void a_leader_whose_clock_was_ahead_is_believed(void **state)
{
	(void)state;
	wire_turn_wall(50 * SECOND);
	begin(90 * SECOND);
	until(has_launched, 20 * MINUTE, "machines are launched");
	replica_kill(0);
	wire_turn_wall(0);
	the_other_buys_nothing_twice();
}

/* A jump that was followed at first, and is put right right after a launch. */
static void a_clock_that_is_put_right_hides_no_launch(void **state)
{
	(void)state;
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "it leads");
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	first->reads = (struct cloud_reads){ 90 * SECOND, false };
	run(3 * MINUTE);
	wire_turn_wall(15 * MINUTE);
	run(4 * MINUTE + 30 * SECOND);
	had = first->bought;
	chat->rate = 4;
	until(has_launched, 20 * MINUTE, "machines are launched");
	run(5 * MINUTE);
	until(serves_five, 30 * MINUTE, "replicas for the traffic serve");
}

static const char object[] =
	"{'apiVersion':'preheat.dev/v1alpha1','kind':'WarmPool','metadata':{'name':'chat','namespace':'llm'},'spec':{"
	"'mode':'act','class':'interactive','objective':{'queueWait':'2s','attainment':'99%'},'workload':{'selector':{"
	"'matchLabels':{'app':'chat'}},'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'chat'},"
	"'gpusPerReplica':1,'maxSequences':8,'prefillTokensPerSecond':'25k','interTokenLatency':'30ms'},'signals':{"
	"'engine':'vllm','scrape':{'port':8000,'path':'/"
	"metrics','interval':'15s'}},'nodeGroups':[{'name':'first','zone':"
	"'z1','gpusPerNode':1,'pricePerHour':0.48,'min':0,'max':20,'provider':'eks','instanceType':'g5.xlarge','eks':{"
	"'cluster':'world','nodegroup':'first','launch':'instances','region':'eu-west-1','endpoint':'" CLOUD_AWS
	"'}}],'leadTime':{'provision':{'p50':'45s','p95':'70s'},'register':{'p50':'20s','p95':'30s'},'device':{'p50':"
	"'15s','p95':'30s'},'image':{'p50':'60s','p95':'90s'},'load':{'p50':'60s','p95':'90s'}},'headroom':{'min':3},"
	"'scaleDown':{'after':'5m'}}}";

/* The group has another name of ours from now on: what was launched under the old one is not shown yet, and all that
 * was known of it is of another group. */
static void a_group_that_is_renamed_is_not_launched_again(void **state)
{
	static const struct replica_settings objects = { .watches_objects = true };

	(void)state;
	struct object *pool = apiserver_create(KIND_WARM_POOL, value_of("%s", object));
	replica_start(0, &objects);
	until(serves_three, 30 * MINUTE, "the headroom serves");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	first->reads = (struct cloud_reads){ 90 * SECOND, false };
	run(3 * MINUTE);
	had = first->bought;
	chat->rate = 4;
	until_launched();
	value_set_text(value_at(pool->value, "spec>nodeGroups")->first, "name", "g5");
	apiserver_changed(pool);
	run(5 * MINUTE);
	until(serves_five, 30 * MINUTE, "replicas for the traffic serve");
}

static bool is_down(void)
{
	return first->desired == 3 && world_is_at_rest();
}

/* Five serve, three are enough; so many answers of what ends them are lost. */
static void shrink(struct cloud_reads reads, int lost)
{
	begin(0);
	first->reads = reads;
	until(serves_five, 30 * MINUTE, "replicas for the traffic serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	int64_t bought = first->bought;
	chat->rate = 0;
	first->faults.lost_answer = lost;
	until(is_down, 3 * HOUR, "it comes down");
	assert_int_equal(first->bought, bought);
}

/* Law: ended_once. */
static void what_is_ended_and_not_answered_is_not_ended_again(void **state)
{
	(void)state;
	shrink((struct cloud_reads){ MINUTE, false }, 1);
	assert_int_equal(first->faults.lost_answer, 0);
}

static millis last_end;
static int throttled;

/* Of an operation that ends several the first is done. */
static struct wire_fate throttle_a_second(const struct wire_call *c)
{
	if (!c->body || !strstr(c->body, "Action=TerminateInstance"))
		return (struct wire_fate){ 0 };
	first->faults.throttle = wire_now() - last_end < SECOND && !throttled;
	throttled += first->faults.throttle;
	last_end = wire_now();
	return (struct wire_fate){ 0 };
}

static void what_is_ended_before_a_throttle_is_not_ended_again(void **state)
{
	(void)state;
	last_end = throttled = 0;
	wire_on_leave(throttle_a_second);
	shrink((struct cloud_reads){ MINUTE, true }, 0);
	assert_int_equal(throttled, 1);
}

static millis first_asked;
static bool is_ended;

/* Until a later attempt than reads are old all of them are lost on their way. */
static struct wire_fate swallow_for_long(const struct wire_call *c)
{
	if (!c->body || !strstr(c->body, "Action=TerminateInstance"))
		return (struct wire_fate){ 0 };
	first_asked = first_asked ? first_asked : wire_now();
	is_ended = wire_now() - first_asked > 2 * MINUTE;
	return (struct wire_fate){ .is_swallowed = !is_ended };
}

/* Its row is of the first attempt, and what the cloud did of the last: no look of before that is acted on. */
static void what_was_ended_at_a_late_attempt_is_waited_for(void **state)
{
	(void)state;
	begin(0);
	first->reads = (struct cloud_reads){ 90 * SECOND, false };
	until(serves_five, 30 * MINUTE, "replicas for the traffic serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	chat->rate = 0;
	first_asked = is_ended = 0;
	wire_on_leave(swallow_for_long);
	for (int i = 0; i < 4000000 && !is_ended; i++)
		world_events(1);
	assert_true(is_ended);
	run(2 * SECOND);
	int64_t left = first->desired;
	replica_kill(0);
	until(one_leads, 30 * SECOND, "the other leads");
	run(40 * SECOND);
	assert_int_equal(first->desired, left);
	until(is_down, 3 * HOUR, "it comes down");
}

static struct wire_fate refuse_replicas(const struct wire_call *c)
{
	return (struct wire_fate){ .is_refused = !strncmp(c->host, "http://replica-", 15) };
}

/* A NetworkPolicy between the replicas: it is told of, and who would lead on a memory of long ago waits for the leader.
 */
static void who_hears_nothing_does_not_lead_on_an_old_memory(void **state)
{
	(void)state;
	begin(0);
	wire_on_leave(refuse_replicas);
	run(40 * MINUTE);
	assert_true(replica_published(1)->history_lag_ticks > 100);
	replica_kill(0);
	run(4 * MINUTE);
	assert_false(replica_leads(1));
	until(one_leads, 3 * MINUTE, "nobody waits for ever");
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(who_is_asked_to_end_leaves_no_launch_to_be_repeated),
		SCENARIO(who_is_killed_leaves_no_launch_to_be_repeated),
		SCENARIO(who_is_killed_between_ticks_leaves_none_either),
		SCENARIO(a_leader_whose_clock_was_ahead_is_believed),
		SCENARIO(a_clock_that_is_put_right_hides_no_launch),
		SCENARIO(a_group_that_is_renamed_is_not_launched_again),
		SCENARIO(what_is_ended_and_not_answered_is_not_ended_again),
		SCENARIO(what_is_ended_before_a_throttle_is_not_ended_again),
		SCENARIO(what_was_ended_at_a_late_attempt_is_waited_for),
		SCENARIO(who_hears_nothing_does_not_lead_on_an_old_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
