/* Model servers that lie, hang or fall silent under load: what they serve on is not given back, and it is told why. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POOL(who, least)                                                                                            \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                        \
	"kind: WarmPool\n"                                                                                          \
	"metadata: { name: chat, namespace: llm }\n"                                                                \
	"spec:\n"                                                                                                   \
	"  mode: act\n"                                                                                             \
	"  class: interactive\n"                                                                                    \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                         \
	"  workload: { selector: { matchLabels: { app: chat } }, gpusPerReplica: 1, maxSequences: 8,\n"             \
	"      scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: chat },\n"                            \
	"      prefillTokensPerSecond: 25k, interTokenLatency: 30ms }\n"                                            \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s }" who " }\n"               \
	"  nodeGroups:\n"                                                                                           \
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"  \
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: " least \
	",\n"                                                                                                       \
	"        max: 12 }\n"                                                                                       \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, load: { p50: 60s,\n"    \
	"      p95: 90s }, device: { p50: 15s, p95: 30s }, image: { p50: 60s, p95: 90s } }\n"                       \
	"  headroom: { min: 1 }\n"                                                                                  \
	"  scaleDown: { after: 5m }\n"

static const struct replica_settings alone = { .manifest = POOL("", "1") },
				     of_leaders = { .manifest =
							    POOL(", podSelector: { matchLabels: { tells: \"yes\" } }",
								 "1") },
				     of_none = { .manifest = POOL("", "0") };
static struct world_app *chat;
static struct cloud_group *od;

static bool is_loaded(void)
{
	return world_ready("chat") >= 5 && world_is_at_rest();
}

static bool is_begun(void)
{
	return world_ready("chat") >= 2 && world_is_at_rest();
}

static int begin_with(const struct replica_settings *settings, double rate)
{
	world_begin(1);
	od = world_group("chat-od", "chat", 1, 0, 12, 1);
	chat = world_app("chat", 1, 1, "25%");
	value_set_text(apiserver_first(KIND_DEPLOYMENT)->value, "spec>template>metadata>labels>tells", "yes");
	replica_start(0, settings);
	chat->rate = rate;
	if (!world_until(rate > 2 ? is_loaded : is_begun, HOUR))
		fail_msg("the fleet does not grow");
	world_run(20 * MINUTE);
	assert_lawful();
	return 0;
}

/* A fleet that needs all of what it has. */
static int set_up(void **state)
{
	(void)state;
	return begin_with(&alone, 5);
}

static int set_up_leaders(void **state)
{
	(void)state;
	return begin_with(&of_leaders, 5);
}

/* One that could grow. */
static int set_up_small(void **state)
{
	(void)state;
	return begin_with(&alone, 1);
}

/* What the last decision says of the signals, and their trouble. */
static const struct pool_decision *decision(void)
{
	return &replica_published(0)->plan->pools[0].decision;
}

static void assert_told(const char *why)
{
	const char *trouble = replica_published(0)->pools[0].signals_trouble;

	if (!trouble || !strstr(trouble, why))
		fail_msg("'%s' does not say '%s'", trouble ? trouble : "nothing", why);
}

/* For an hour nothing is given back, but what was on its way out before. */
static void assert_kept(void)
{
	int64_t replicas = world_replicas("chat"), desired = world_desired("chat");
	int64_t serving = replicas < desired ? replicas : desired;

	for (int i = 0; i < 60; i++) {
		world_run(MINUTE);
		assert_lawful();
		if (world_desired("chat") < serving || world_replicas("chat") < serving)
			fail_msg("%lld machines and %lld replicas after %d minutes, of %lld",
				 (long long)world_desired("chat"), (long long)world_replicas("chat"), i + 1,
				 (long long)serving);
	}
}

static bool is_down(void)
{
	return world_desired("chat") <= 2 && world_is_at_rest() && decision()->signals == SIGNALS_FRESH;
}

static void assert_released(void)
{
	chat->rate = 0;
	bool came = world_until(is_down, 3 * HOUR);
	assert_lawful();
	if (!came)
		fail_msg("the surplus stays, or nothing is heard: %lld machines", (long long)world_desired("chat"));
	assert_int_equal(decision()->disputed, 0);
}

static void levels_of_nothing_under_load_shrink_nothing(void **state)
{
	(void)state;
	chat->lie = LIE_ZERO_LEVELS;
	assert_kept();
	assert_int_equal(decision()->signals, SIGNALS_PARTIAL);
	assert_true(decision()->disputed > 0);
	assert_true(decision()->running_milli > 10000); /* as the counters tell: 5 requests/s of 6 s each */
	assert_told("its levels show no request, and its counters tell of");
	chat->lie = LIE_NONE;
	assert_released();
}

/* A gauge at a half, and less, of what runs: counters tell of the rest as it decodes. */
static void levels_of_a_share_under_load_shrink_nothing(void **state)
{
	static const int shares[] = { 100, 200, 333, 400, 500 };

	(void)state;
	chat->lie = LIE_LOW_LEVELS;
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		chat->shows_permille = shares[i];
		assert_kept();
		assert_int_equal(decision()->signals, SIGNALS_PARTIAL);
		assert_true(decision()->disputed > 0);
	}
	assert_told("its levels show too few requests");
	chat->lie = LIE_NONE;
	assert_released();
}

static bool is_small(void)
{
	return world_desired("chat") <= 2 && world_is_at_rest();
}

/* Levels as they were at night, through a day: the fleet grows by what its counters tell, and stays. */
static void levels_of_before_hold_no_growth_up(void **state)
{
	(void)state;
	chat->rate = .4;
	until(is_small, 3 * HOUR, "the night");
	run(MINUTE);
	chat->lie = LIE_OLD_LEVELS;
	run(5 * MINUTE);
	chat->rate = 5;
	until(is_loaded, HOUR, "the fleet grows");
	assert_kept();
	chat->lie = LIE_NONE;
	assert_released();
}

static bool is_backlog_long(void)
{
	return engines_least_load(chat) > 30000;
}

/* What nobody adds to is no demand, and what still waits is not gone because its gauges say so. */
static void a_backlog_that_its_levels_deny_shrinks_nothing(void **state)
{
	(void)state;
	chat->rate = 40;
	assert_true(world_until(is_backlog_long, HOUR));
	chat->rate = 0;
	world_run(20 * MINUTE);
	chat->lie = LIE_ZERO_LEVELS;
	int64_t serving = world_desired("chat");
	while (engines_least_load(chat) > 200) {
		world_run(15 * SECOND);
		assert_lawful();
		assert_int_equal(world_desired("chat"), serving);
	}
	chat->lie = LIE_NONE;
	assert_released();
}

static bool is_disputed(void)
{
	return decision()->disputed > 0;
}

/* What stands still for minutes may work at long prompts, and is believed until then. */
static void hung_engines_are_named_and_shrink_nothing(void **state)
{
	(void)state;
	chat->lie = LIE_HUNG;
	chat->rate = 0;
	assert_true(world_until(is_disputed, 20 * MINUTE));
	assert_kept();
	assert_int_equal(decision()->signals, SIGNALS_PARTIAL);
	assert_true(decision()->disputed > 0);
	assert_told("no counter has moved for");
	chat->lie = LIE_NONE;
	assert_released();
}

/* Overload can fail readiness probes: nobody is ready, and nobody answers. */
static void replicas_that_fell_silent_shrink_nothing(void **state)
{
	(void)state;
	chat->is_unready = chat->is_mute = true;
	assert_kept();
	assert_true(decision()->signals >= SIGNALS_STALE);
	chat->is_unready = chat->is_mute = false;
	assert_released();
}

/* A process stands still while its model servers fall mute: what it heard before is no evidence when it goes on, and a
 * machine that it did not watch was not idle. held_on_missing looks on. */
static void what_was_heard_before_a_stop_shrinks_nothing(void **state)
{
	(void)state;
	int64_t machines;

	cloud_owner_sets(od, od->desired + 1);
	run(3 * MINUTE + 8 * SECOND);
	machines = cloud_awake(od);
	replica_pause(0, true);
	run(MINUTE);
	chat->is_mute = true;
	run(7 * MINUTE);
	replica_pause(0, false);
	run(20 * MINUTE);
	assert_int_equal(cloud_awake(od), machines);
	assert_true(decision()->signals >= SIGNALS_STALE);
	chat->is_mute = false;
	assert_released();
}

/* Who must answer is selected: one that is no leader any more, and does not answer, keeps nothing from being released.
 */
static void who_is_not_selected_is_not_missed(void **state)
{
	(void)state;
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (value_is(p->value, "metadata>labels>tells", "yes")) {
			value_set_text(p->value, "metadata>labels>tells", "no");
			apiserver_changed(p);
			break;
		}
	assert_released();
}

static bool is_first_there(void)
{
	return world_ready("chat") > 0;
}

/* From nothing: what is on its way is not cancelled for a replica that serves and was not read yet. */
static void the_first_that_serves_cancels_nothing_unread(void **state)
{
	(void)state;
	world_begin(1);
	od = world_group("chat-od", "chat", 1, 0, 12, 0);
	chat = world_app("chat", 3, 1, "25%");
	world_run(MINUTE);
	replica_start(0, &of_none);
	chat->rate = 20;
	chat->is_mute = true;
	assert_true(world_until(is_first_there, HOUR));
	int64_t desired = world_desired("chat");
	assert_true(desired >= 3);
	for (int i = 0; i < 60; i++) {
		world_run(5 * SECOND);
		assert_true(world_desired("chat") >= desired);
	}
	assert_lawful();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(levels_of_nothing_under_load_shrink_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(levels_of_a_share_under_load_shrink_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(levels_of_before_hold_no_growth_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_backlog_that_its_levels_deny_shrinks_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hung_engines_are_named_and_shrink_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(replicas_that_fell_silent_shrink_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_heard_before_a_stop_shrinks_nothing, set_up_small, tear_down),
		cmocka_unit_test_setup_teardown(who_is_not_selected_is_not_missed, set_up_leaders, tear_down),
		cmocka_unit_test_teardown(the_first_that_serves_cancels_nothing_unread, tear_down),
	};

	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
