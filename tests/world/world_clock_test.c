/* A machine whose clock is wrong: what is decided, recorded and learned is of the API server's time. */
#include "controller/web/published.h"
#include "state/history.h"
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define AHEAD (60 * DAY)

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
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1, max: 8 "
	"}\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 1 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings alone = { .manifest = chat_text },
				     elected = { .manifest = chat_text, .elects = true };
static struct world_app *chat;
static struct cloud_group *od;

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	od = world_group("chat-od", "chat", 1, 0, 8, 1);
	chat = world_app("chat", 1, 1, "25%");
	chat->rate = 1;
	return 0;
}

static struct history_span span_of(const char *path)
{
	struct error e = { 0 };
	struct history_span span = { 0 };
	struct history *h = history_open(path, &e);

	if (!h || !history_span(h, &span, &e))
		fail_msg("%s: %s", path, e.message);
	history_close(h);
	return span;
}

static void assert_now(millis at)
{
	millis apart = at - (WIRE_EPOCH + wire_now());

	if (apart > MINUTE || apart < -MINUTE)
		fail_msg("%lld s from the true time", (long long)(apart / SECOND));
}

static bool tells_clock(void)
{
	const struct published *p = replica_published(0);

	return p && p->pools && p->pools[0].problem[PROBLEM_CLOCK];
}

static void a_start_with_the_clock_ahead_is_put_right(void **state)
{
	(void)state;
	wire_machine_ahead(AHEAD);
	replica_start(0, &alone);
	run(20 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	assert_in_range(replica_published(0)->clock_ahead, AHEAD - 2 * SECOND, AHEAD + 2 * SECOND);
	assert_true(tells_clock());
	wire_machine_ahead(0); /* it is put right, and nobody starts anew */
	run(10 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	assert_false(tells_clock());
	replica_stop(0);
	assert_now(span_of(replica_history(0)).to);
}

static void a_start_with_the_clock_behind_is_put_right(void **state)
{
	(void)state;
	wire_machine_ahead(-AHEAD);
	replica_start(0, &alone);
	run(20 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	assert_true(tells_clock());
}

/* Twenty true minutes, and ten that are sixty days later, as nobody told the time. */
static int64_t poison(void)
{
	replica_start(0, &alone);
	run(20 * MINUTE);
	replica_kill(0);
	int64_t last = span_of(replica_history(0)).last_tick;
	wire_dates(false, 0);
	wire_machine_ahead(AHEAD);
	replica_start(0, &alone);
	run(10 * MINUTE);
	replica_kill(0);
	assert_true(span_of(replica_history(0)).to > WIRE_EPOCH + wire_now() + AHEAD - HOUR);
	wire_machine_ahead(0);
	return last;
}

static void ticks_of_the_future_are_set_aside(void **state)
{
	int64_t last = poison();
	char aside[160];

	(void)state;
	wire_dates(true, 0);
	replica_start(0, &alone);
	run(5 * MINUTE);
	snprintf(aside, sizeof aside, "%s.1", replica_history(0));
	assert_now(replica_published(0)->snapshot->now);
	assert_in_range(replica_published(0)->snapshot->tick, last + 10, last + 22);
	assert_false(tells_clock());
	assert_true(span_of(aside).to > WIRE_EPOCH + wire_now() + AHEAD - HOUR); /* nothing is lost */
	assert_int_equal(span_of(aside).first_tick, 0);
	for (int i = 0; i < 3; i++) {
		replica_kill(0);
		replica_start(0, &alone);
		run(5 * MINUTE);
		assert_now(replica_published(0)->snapshot->now);
	}
	replica_stop(0);
	struct history_span span = span_of(replica_history(0));
	assert_int_equal(span.first_tick, 0);
	assert_true(span.last_tick > last + 60);
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

/* What nodes and pods do is stamped by the clock that starts are asked by: else a start is over before it began, lead
 * times are learned to be none, and whatever takes longer is bought again. */
static void with_the_clock_behind_lead_times_are_measured(void **state)
{
	(void)state;
	wire_machine_ahead(-10 * MINUTE);
	replica_start(0, &alone);
	run(5 * MINUTE);
	chat->rate = 3;
	until(serves_three, 30 * MINUTE, "replicas for the traffic serve");
	run(MINUTE);
	assert_in_range(replica_published(0)->plan->pools[0].decision.lead_cold_p95, 2 * MINUTE, 8 * MINUTE);
}

static bool is_placed(void)
{
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		count += *pod_node(p) != '\0';
	return count >= world_ready("chat") + 2;
}

/* Pods that a list tells of before the time is known are stamped by the machine's: nobody is given up for that. */
static void a_restart_behind_the_time_gives_up_nobody(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(5 * MINUTE);
	chat->rate = 3;
	until(is_placed, 30 * MINUTE, "two replicas are on nodes, and do not serve yet");
	replica_kill(0);
	int64_t bought = od->bought;
	wire_machine_ahead(-10 * MINUTE);
	replica_start(0, &alone);
	int64_t ready = world_ready("chat");
	run(8 * MINUTE);
	assert_true(world_ready("chat") >= ready + 2);
	assert_int_equal(od->bought, bought);
	assert_false(world_event_told("StartTimedOut"));
}

/* It was behind, and somebody sets it: what was right goes on, and no schedule of later begins early. */
static void a_machine_that_is_set_right_takes_nobody_along(void **state)
{
	(void)state;
	wire_machine_ahead(-20 * HOUR);
	replica_start(0, &alone);
	run(20 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	wire_machine_ahead(0);
	for (int i = 0; i < 30; i++) {
		run(20 * SECOND);
		assert_now(replica_published(0)->snapshot->now);
	}
	assert_false(tells_clock());
}

/* Without anybody's word time goes on from where it was told to be, until somebody tells. */
static int64_t had; /* bought before */

static bool two_are_bought(void)
{
	return od->bought >= had + 2;
}

/* As stages take: nothing was measured by two clocks. */
static void assert_lead_times(int who)
{
	const struct pool_decision *d = &replica_published(who)->plan->pools[0].decision;

	assert_in_range(d->lead_cold_p50, 2 * MINUTE, 5 * MINUTE);
	assert_in_range(d->lead_cold_p95, 3 * MINUTE, 8 * MINUTE);
	assert_int_equal(d->overdue, 0);
	assert_false(world_event_told("NodeStuck"));
}

/* The API server's clock, which ours follows, and the cloud's are so far apart; a restart finds machines on their way,
 * whose launches only the cloud tells of. */
static void adopt_beside(millis ahead)
{
	wire_host_ahead(APISERVER, ahead);
	replica_start(0, &alone);
	run(20 * MINUTE);
	had = od->bought;
	chat->rate = 6;
	until(two_are_bought, 30 * MINUTE, "machines for the traffic are bought");
	run(25 * SECOND);
	replica_kill(0);
	replica_start(0, &alone);
	run(12 * MINUTE);
	assert_lead_times(0);
}

static void a_server_ahead_of_the_cloud_spoils_no_lead_time(void **state)
{
	(void)state;
	adopt_beside(HOUR);
}

static void a_server_behind_the_cloud_spoils_no_lead_time(void **state)
{
	(void)state;
	adopt_beside(-HOUR);
}

static void it_heals_once_the_time_is_told(void **state)
{
	(void)state;
	poison();
	replica_start(0, &alone);
	run(10 * MINUTE);
	assert_true(replica_published(0)->snapshot->now > WIRE_EPOCH + wire_now() + AHEAD - HOUR);
	wire_dates(true, 0);
	run(2 * MINUTE);
	assert_true(tells_clock());
	run(10 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	assert_false(tells_clock());
}

static void a_clock_that_jumps_is_not_followed(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(20 * MINUTE);
	wire_machine_ahead(AHEAD);
	run(20 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	assert_true(tells_clock());
	replica_kill(0);
	replica_start(0, &alone);
	run(20 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
}

/* What the server's answers told before says nothing less of a clock that was put right since. */
static void a_jump_that_is_taken_back_sets_nothing_aside(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(20 * MINUTE);
	wire_machine_ahead(20 * HOUR);
	run(311 * SECOND); /* it is to be put right at the next tick */
	wire_machine_ahead(0);
	wire_dates(false, 0);
	run(10 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	replica_stop(0);
	assert_int_equal(span_of(replica_history(0)).first_tick, 0);
	assert_true(span_of(replica_history(0)).last_tick > 20 * 4);
}

/* Its Date is believed after a while, and not for longer than it tells it. */
static void a_server_that_is_wrong_for_an_hour(void **state)
{
	(void)state;
	replica_start(0, &alone);
	run(20 * MINUTE);
	wire_dates(true, AHEAD);
	run(HOUR);
	wire_dates(true, 0);
	run(20 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
	replica_stop(0);
	assert_now(span_of(replica_history(0)).to);
	assert_int_equal(span_of(replica_history(0)).first_tick, 0);
}

static bool zero_leads(void)
{
	return replica_leader() == 0;
}

static bool one_leads(void)
{
	return replica_leader() == 1;
}

static void begin_pair(void)
{
	laws_expect_errors(true);
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "the first leads");
	replica_start(1, &elected);
	run(20 * MINUTE);
}

/* Its timers stood still, and the lease is another's: nothing of what was due goes out. */
static void a_leader_whose_machine_slept_follows(void **state)
{
	(void)state;
	begin_pair();
	for (millis asleep = 5 * SECOND; asleep < HOUR; asleep *= 4) {
		int before = replica_leader();
		chat->rate = 4;
		run(100 * SECOND);
		replica_suspend(before);
		run(asleep);
		replica_pause(before, false);
		run(5 * MINUTE);
		chat->rate = 1;
		run(15 * MINUTE);
		assert_int_equal(replica_leader() != before, asleep > 15 * SECOND);
		assert_now(replica_published(replica_leader())->snapshot->now);
	}
}

/* The wall clocks of two replicas part by two seconds a minute, as those of machines without a source of time: whoever
 * leads lives by the API server's, and what the other goes on with is of the same time. */
static void two_clocks_that_part(void **state)
{
	(void)state;
	begin_pair();
	wire_turn_one_wall(0, 0, 17);
	wire_turn_one_wall(1, 0, -17);
	run(2 * HOUR);
	assert_int_equal(replica_leader(), 0);
	assert_now(replica_published(0)->snapshot->now);
	replica_kill(0);
	until(one_leads, 10 * MINUTE, "the other leads");
	run(10 * MINUTE);
	assert_now(replica_published(1)->snapshot->now);
	replica_start(0, &elected);
	run(HOUR);
	replica_stop(1);
	until(zero_leads, 10 * MINUTE, "the first leads again");
	run(10 * MINUTE);
	assert_now(replica_published(0)->snapshot->now);
}

static const struct replica_settings kept = { .manifest = chat_text, .elects = true, .retention = { .age = 6 * HOUR } };

/* By its own clock all of what it copies is old. */
static void a_follower_whose_clock_is_ahead_keeps_the_past(void **state)
{
	(void)state;
	replica_start(0, &kept);
	until(zero_leads, MINUTE, "the first leads");
	run(HOUR);
	wire_turn_one_wall(1, AHEAD, 0);
	replica_start(1, &kept);
	run(30 * MINUTE);
	assert_true(span_of(replica_history(1)).last_tick > 300);
	assert_int_equal(span_of(replica_history(1)).first_tick, 0);
}

/* A follower's clock is wrong by hours, and it leads while replicas load: it knows since when. */
static void lead_beside(millis ahead)
{
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "the first leads");
	wire_turn_one_wall(1, ahead, 0);
	replica_start(1, &elected);
	run(20 * MINUTE);
	had = od->bought;
	chat->rate = 6;
	until(two_are_bought, 30 * MINUTE, "machines for the traffic are bought");
	run(2 * MINUTE);
	replica_kill(0);
	until(one_leads, MINUTE, "the other leads");
	run(12 * MINUTE);
	assert_now(replica_published(1)->snapshot->now);
	assert_lead_times(1);
}

static void a_follower_hours_behind_leads_in_the_true_time(void **state)
{
	(void)state;
	lead_beside(-3 * HOUR);
}

static void a_follower_hours_ahead_leads_in_the_true_time(void **state)
{
	(void)state;
	lead_beside(3 * HOUR);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(a_start_with_the_clock_ahead_is_put_right),
		SCENARIO(a_start_with_the_clock_behind_is_put_right),
		SCENARIO(ticks_of_the_future_are_set_aside),
		SCENARIO(with_the_clock_behind_lead_times_are_measured),
		SCENARIO(a_machine_that_is_set_right_takes_nobody_along),
		SCENARIO(a_restart_behind_the_time_gives_up_nobody),
		SCENARIO(a_server_ahead_of_the_cloud_spoils_no_lead_time),
		SCENARIO(a_server_behind_the_cloud_spoils_no_lead_time),
		SCENARIO(it_heals_once_the_time_is_told),
		SCENARIO(a_clock_that_jumps_is_not_followed),
		SCENARIO(a_jump_that_is_taken_back_sets_nothing_aside),
		SCENARIO(a_server_that_is_wrong_for_an_hour),
		SCENARIO(a_leader_whose_machine_slept_follows),
		SCENARIO(two_clocks_that_part),
		SCENARIO(a_follower_whose_clock_is_ahead_keeps_the_past),
		SCENARIO(a_follower_hours_behind_leads_in_the_true_time),
		SCENARIO(a_follower_hours_ahead_leads_in_the_true_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
