/* Models that share GPUs under the live loop: engines that take seconds to sleep and to wake, fail and hang. */
#include "base/buf.h"
#include "controller/web/published.h"
#include "state/share_record.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS_MOST = 12 };

static struct {
	struct buf manifest;
	struct replica_settings settings;
	struct world_app *apps[MODELS_MOST];
	char names[MODELS_MOST][16];
	int models, slots, level;
} all;

static void write_pool(const char *name, const char *mode)
{
	buf_printf(&all.manifest,
		   "apiVersion: preheat.dev/v1alpha1\n"
		   "kind: WarmPool\n"
		   "metadata: { name: %s, namespace: llm }\n"
		   "spec:\n"
		   "  mode: %s\n"
		   "  share: { name: small, level: %d, wakeWithin: 30s }\n"
		   "  objective: { queueWait: 10s, attainment: 95%% }\n"
		   "  workload: { selector: { matchLabels: { app: %s } }, gpusPerReplica: 1, maxSequences: 8 }\n"
		   "  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 5s },\n"
		   "      queue: { json: { url: \"http://gateway.world/%s\", path: waiting }, interval: 5s } }\n"
		   "  nodeGroups:\n"
		   "    - { name: shared, provider: simulated, simulated: { endpoint: \"http://cloud.world\" },\n"
		   "        zone: z1, instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 12,\n"
		   "        pricePerHour: 1.21, min: 0, max: 8 }\n"
		   "---\n",
		   name, mode, all.level, name, name);
}

/* What has nowhere to go. */
static void serve_gateway(struct wire_call *c)
{
	char body[64];

	for (int i = 0; i < all.models; i++)
		if (!strcmp(c->path + 1, all.names[i])) {
			snprintf(body, sizeof body, "{\"waiting\":%lld}", (long long)all.apps[i]->waiting);
			wire_answer(c, 200, NULL, body);
			return;
		}
	wire_answer(c, 404, NULL, "");
}

static bool is_up(void)
{
	for (int i = 0; i < all.models; i++)
		if (world_ready(all.names[i]) < all.slots)
			return false;
	return true;
}

/* All engines have started, one after the other, and sleep. */
static void begin_on(int nodes, int models, int slots, uint64_t seed, const char *mode)
{
	int level = all.level ? all.level : 1;

	world_begin(seed);
	memset(&all, 0, sizeof all);
	all.models = models;
	all.slots = slots;
	all.level = level;
	world_group("shared", "shared", 12, 0, 8, nodes);
	wire_host("http://gateway.world/", serve_gateway);
	for (int i = 0; i < models; i++) {
		snprintf(all.names[i], sizeof all.names[i], "m%02d", i);
		all.apps[i] = world_shared_app(all.names[i], "shared", slots);
		all.apps[i]->service_s = 2;
		all.apps[i]->has_claims = nodes < slots;
		write_pool(all.names[i], mode);
	}
	all.settings.manifest = all.manifest.text;
	until(is_up, HOUR, "the engines do not start");
	for (int i = 0; i < models; i++) {
		engines_label(all.names[i], 0, "asleep");
		engines_sleep(all.names[i], slots, all.level);
	}
}

static void begin(int models, int slots, uint64_t seed, const char *mode)
{
	begin_on(slots, models, slots, seed, mode);
}

static int end(void **state)
{
	buf_release(&all.manifest);
	all.level = 1;
	return tear_down(state);
}

static int64_t served(int model)
{
	return all.apps[model]->requests - all.apps[model]->waiting;
}

static int64_t count_moves(const char *outcome)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct engine_move_filter f = { 0, INT64_MAX, NULL, 100000 };
	struct engine_move_record *rows;
	struct error e = { 0 };
	size_t count = 0;
	int64_t found = 0;
	struct history *h = history_open(replica_history(0), &e);

	if (!h || !engine_move_find(h, &f, &a, &rows, &count, &e))
		fail_msg("%s", e.message);
	for (size_t i = 0; i < count; i++)
		found += outcome ? rows[i].outcome && !strncmp(rows[i].outcome, outcome, strlen(outcome))
				 : !rows[i].ended_at;
	history_close(h);
	return found;
}

/* Whoever decides again with what was recorded comes to the same. */
static int64_t assert_shares_replay(void)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct share_decisions rows = { 0 };
	struct error e = { 0 };
	struct history *h = history_open(replica_history(0), &e);

	if (!h || !share_decision_find(h, 0, INT64_MAX, &a, &rows, &e))
		fail_msg("%s", e.message);
	for (size_t i = 0; i < rows.count; i++) {
		CLEANUP(buf_release) struct buf plan = { 0 };
		struct share_view v;
		if (!share_view_read(rows.items[i].view, &a, &v, &e))
			fail_msg("%s", e.message);
		const struct share_plan p = share_decide(&v, &a);
		share_plan_write(&v, &p, &plan);
		assert_string_equal(plan.text ? plan.text : "", rows.items[i].plan);
	}
	history_close(h);
	return (int64_t)rows.count;
}

static bool first_is_served(void)
{
	return served(0) > 10;
}

static bool second_is_served(void)
{
	return served(1) > 10;
}

/* One slot, two models: whoever is asked wakes, and the other makes room. */
static void whoever_is_asked_wakes(void **state)
{
	(void)state;
	begin(2, 1, 1, "act");
	replica_start(0, &all.settings);
	run(2 * MINUTE);
	assert_int_equal(served(0) + served(1), 0);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	all.apps[0]->rate = 0;
	run(MINUTE);
	all.apps[1]->rate = 1;
	until(second_is_served, 2 * MINUTE, "nobody wakes the second");
	assert_int_equal(engines_count("m00", 1), 1);
	replica_stop(0);
	assert_true(count_moves("done") >= 3);
	assert_int_equal(count_moves(NULL), 0);
	assert_true(assert_shares_replay() >= 3);
	assert_replays(replica_history(0));
}

static void nobody_is_moved_in_mode_observe(void **state)
{
	(void)state;
	begin(2, 1, 1, "observe");
	laws_stand_still(false);
	replica_start(0, &all.settings);
	all.apps[0]->rate = 1;
	run(3 * MINUTE);
	assert_int_equal(served(0), 0);
	assert_int_equal(engines_count("m00", 1), 1);
	replica_stop(0);
	assert_int_equal(count_moves("done") + count_moves(NULL), 0);
	assert_true(assert_shares_replay() > 0); /* and it says what it would have done */
}

static bool is_mended(void)
{
	return served(0) > 10 && world_ready("m00") == all.slots;
}

static void a_wake_that_fails_is_mended(void **state)
{
	(void)state;
	begin(2, 2, 1, "act");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->wakes_fail = 1;
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "no other engine takes over");
	until(is_mended, 30 * MINUTE, "the slot is not mended");
	replica_stop(0);
	assert_true(world_event_told("EngineBroken"));
}

static void a_wake_that_hangs_is_mended(void **state)
{
	(void)state;
	begin(2, 2, 1, "act");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->wakes_hang = 1;
	all.apps[0]->rate = 1;
	until(first_is_served, 2 * MINUTE, "no other engine takes over");
	until(is_mended, 30 * MINUTE, "the slot is not mended");
	replica_stop(0);
}

/* What starts anew serves, and the other model is served all the while. */
static void wakes_that_always_fail_disturb_nobody_else(void **state)
{
	(void)state;
	begin(2, 2, 1, "act");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->wakes_fail = 1000;
	all.apps[0]->rate = all.apps[1]->rate = 1;
	run(3 * HOUR);
	assert_true(world_event_told("EngineBroken"));
	assert_true(served(1) > 3 * 3600 * 9 / 10);
	assert_true(served(0) > 3 * 3600 * 8 / 10);
	replica_stop(0);
}

/* A node of two GPUs, each of them a claim that one pod of each model names. */
static void claim_gpus(void)
{
	struct object *node = apiserver_first(KIND_NODE);
	int numbers[MODELS_MOST] = { 0 };

	value_set_text(node->value, "metadata>labels>nvidia.com/gpu.count", "2");
	apiserver_changed(node);
	for (int i = 0; i < all.slots; i++)
		apiserver_create(
			KIND_DEVICE_CLAIM,
			value_of("{'apiVersion':'resource.k8s.io/"
				 "v1','kind':'ResourceClaim','metadata':{'name':'slot-%d',"
				 "'namespace':'llm'},'status':{'allocation':{'devices':{'results':[{'request':'gpu',"
				 "'driver':'gpu.nvidia.com','pool':'%s','device':'gpu-%d'}]}}}}",
				 i, node->name, i));
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		for (int i = 0; i < all.models; i++)
			if (value_is(p->value, "metadata>labels>app", all.names[i])) {
				value_set(p->value, "spec>resourceClaims",
					  value_of("[{'name':'gpu','resourceClaimName':'slot-%d'}]", numbers[i]++));
				apiserver_changed(p);
			}
}

/* Two models, both asked at once: on a node of two GPUs each has one, and neither waits for the other. */
static void claims_are_slots(void **state)
{
	(void)state;
	for (int has_claims = 0; has_claims < 2; has_claims++) {
		begin_on(1, 2, 2, 1, "act");
		claim_gpus();
		if (!has_claims) /* nobody knows who is on which GPU: nobody is woken */
			for (struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
				value_set(p->value, "spec>resourceClaims", NULL);
				apiserver_changed(p);
			}
		replica_start(0, &all.settings);
		run(MINUTE);
		all.apps[0]->rate = all.apps[1]->rate = 1;
		run(10 * MINUTE);
		if (has_claims) {
			assert_true(served(0) > 500 && served(1) > 500);
			assert_true(engines_count("m00", 0) == 1 && engines_count("m01", 0) == 1);
		} else {
			assert_int_equal(served(0) + served(1), 0);
		}
		replica_stop(0);
		assert_true(assert_shares_replay() >= (has_claims ? 1 : 0));
		if (!has_claims)
			end(state);
	}
}

/* Twelve models on four slots, each busy for some minutes of each hour. */
static void twelve_models_on_four_slots(void **state)
{
	(void)state;
	int64_t requests = 0, got = 0;

	begin(12, 4, 1, "act");
	replica_start(0, &all.settings);
	for (int minute = 0; minute < 60; minute++) {
		for (int i = 0; i < all.models; i++)
			all.apps[i]->rate = (minute + 5 * i) % 60 < 12 ? 1.5 : 0;
		run(MINUTE);
	}
	for (int i = 0; i < all.models; i++) {
		requests += all.apps[i]->requests;
		got += served(i);
		assert_true(served(i) > 500);
	}
	assert_true(got > requests - 60);
	print_message("%lld of %lld requests, %lld moves, %lld decisions\n", (long long)got, (long long)requests,
		      (long long)count_moves("done"), (long long)assert_shares_replay());
	replica_stop(0);
	assert_replays(replica_history(0));
}

/* --- killed between any two steps --- */

static int steps, dies_at;

static void step(void)
{
	if (++steps == dies_at)
		replica_die(0);
}

static void on_engine_call(const char *path)
{
	(void)path;
	step();
}

static void on_write(const struct apiserver_write *w)
{
	if (!strcmp(w->resource, "pods"))
		step();
}

/* Done, and nobody hears of it. */
static void on_answer(const struct wire_call *c)
{
	bool is_engine = !strncmp(c->host, "http://10.", 10);

	if (strcmp(c->method, "GET") != 0 && (is_engine || strstr(c->path, "/pods/")))
		step();
}

static void be_killed_at_steps(int count, int level, void **state)
{
	for (dies_at = 1; dies_at <= count; dies_at++) {
		all.level = level;
		begin(2, 1, (uint64_t)dies_at, "act");
		steps = 0;
		engines_on_call(on_engine_call);
		apiserver_on_write(on_write);
		wire_on_answer(on_answer);
		replica_start(0, &all.settings);
		run(30 * SECOND);
		all.apps[0]->rate = 1;
		for (int i = 0; i < 300; i++) {
			run(SECOND);
			if (i == 60) {
				all.apps[0]->rate = 0;
				all.apps[1]->rate = 1;
			}
			if (!replica_is_up(0))
				replica_start(0, &all.settings);
		}
		assert_true(steps > dies_at || dies_at > 12);
		assert_true(served(0) > 10 && served(1) > 10);
		replica_stop(0);
		assert_int_equal(count_moves(NULL), 0);
		assert_shares_replay();
		if (dies_at < count)
			end(state);
	}
}

static void killed_between_any_two_steps(void **state)
{
	be_killed_at_steps(32, 1, state);
}

/* The weights are loaded again in steps of their own. */
static void killed_between_any_two_steps_of_level_2(void **state)
{
	be_killed_at_steps(44, 2, state);
}

#define SCENARIO(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(whoever_is_asked_wakes),
		SCENARIO(nobody_is_moved_in_mode_observe),
		SCENARIO(a_wake_that_fails_is_mended),
		SCENARIO(a_wake_that_hangs_is_mended),
		SCENARIO(wakes_that_always_fail_disturb_nobody_else),
		SCENARIO(claims_are_slots),
		SCENARIO(twelve_models_on_four_slots),
		SCENARIO(killed_between_any_two_steps),
		SCENARIO(killed_between_any_two_steps_of_level_2),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
