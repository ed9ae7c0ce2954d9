/* Services whose pools have nobody awake: requests are held, and never find nobody. */
#include "base/buf.h"
#include "tests/world/lawful.h"
#include "tests/world/services.h"

#include <stdio.h>
#include <string.h>

static struct {
	struct buf manifest;
	struct replica_settings settings;
	struct world_app *apps[2];
} all;

static void write_pool(const char *name, const char *more, const char *wait, const char *mode)
{
	buf_printf(&all.manifest,
		   "apiVersion: preheat.dev/v1alpha1\n"
		   "kind: WarmPool\n"
		   "metadata: { name: %s, namespace: llm }\n"
		   "spec:\n"
		   "  mode: %s\n"
		   "  %s\n"
		   "  objective: { queueWait: %s, attainment: 95%% }\n"
		   "  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 5s },\n"
		   "      queue: { activator: { service: %s } } }\n"
		   "---\n",
		   name, mode, more, wait, name);
}

static const char shared[] =
	"share: { name: small, wakeWithin: 30s }\n"
	"  workload: { selector: { matchLabels: { app: %s } }, gpusPerReplica: 1, maxSequences: 8 }\n"
	"  nodeGroups:\n"
	"    - { name: shared, provider: simulated, simulated: { endpoint: \"http://cloud.world\" },\n"
	"        zone: z1, instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 12,\n"
	"        pricePerHour: 1.21, min: 0, max: 8 }";

static const char own[] = "workload: { selector: { matchLabels: { app: %s } }, gpusPerReplica: 1, maxSequences: 8,\n"
			  "      scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: %s } }\n"
			  "  nodeGroups:\n"
			  "    - { name: own, provider: simulated, simulated: { endpoint: \"http://cloud.world\" },\n"
			  "        zone: z1, instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1,\n"
			  "        pricePerHour: 1.21, min: 0, max: 8 }";

static bool are_up(void)
{
	return world_ready("m0") && world_ready("m1");
}

static void sleep_all(const char *name)
{
	engines_label(name, 0, "asleep");
	engines_sleep(name, 1, 1);
}

static void begin_shared(const char *mode)
{
	static const char *const names[] = { "m0", "m1" };
	char more[1000];

	world_begin(1);
	memset(&all, 0, sizeof all);
	world_group("shared", "shared", 12, 0, 8, 1);
	for (size_t i = 0; i < 2; i++) {
		all.apps[i] = world_shared_app(names[i], "shared", 1);
		all.apps[i]->service_s = 2;
		snprintf(more, sizeof more, shared, names[i]);
		write_pool(names[i], more, "10s", mode);
		world_service(names[i]);
	}
	all.settings.manifest = all.manifest.text;
	until(are_up, HOUR, "the engines do not start");
	sleep_all("m0");
	sleep_all("m1");
}

static int end(void **state)
{
	buf_release(&all.manifest);
	return tear_down(state);
}

static bool both_are_held(void)
{
	return world_service_is_held("m0") && world_service_is_held("m1");
}

static bool first_is_served(void)
{
	return all.apps[0]->requests - all.apps[0]->waiting > 10;
}

static bool second_is_served(void)
{
	return all.apps[1]->requests - all.apps[1]->waiting > 10;
}

static bool first_is_off_the_way(void)
{
	return !world_service_is_held("m0");
}

static void lead(void)
{
	until(both_are_held, MINUTE, "the doors do not open");
	world_service_leads("m0");
	world_service_leads("m1");
}

/* One slot, two models: who is asked by its Service wakes, and the Service always leads somewhere. */
static void whoever_is_asked_wakes(void **state)
{
	(void)state;
	begin_shared("act");
	replica_start(0, &all.settings);
	lead();
	for (int round = 0; round < 5; round++) {
		all.apps[0]->rate = 1;
		until(first_is_served, MINUTE, "nobody wakes the first");
		until(first_is_off_the_way, MINUTE, "the door stays open");
		run(MINUTE);
		assert_true(first_is_off_the_way());
		all.apps[0]->rate = 0;
		run(10 * SECOND);
		all.apps[1]->rate = 1;
		until(second_is_served, 2 * MINUTE, "nobody wakes the second");
		all.apps[1]->rate = 0;
		run(10 * SECOND);
		all.apps[0]->requests = all.apps[1]->requests = 0;
	}
	replica_stop(0);
}

static void nothing_is_written_in_mode_observe(void **state)
{
	(void)state;
	begin_shared("observe");
	replica_start(0, &all.settings);
	all.apps[0]->rate = 1;
	run(3 * MINUTE);
	assert_false(world_service_is_held("m0"));
	replica_stop(0);
}

/* Whoever leads next goes on; a follower holds nothing. */
static void another_leader_opens_its_own(void **state)
{
	(void)state;
	begin_shared("act");
	all.settings.elects = true;
	replica_start(0, &all.settings);
	run(30 * SECOND);
	replica_start(1, &all.settings);
	lead();
	replica_kill(0);
	all.apps[0]->rate = 1;
	until(first_is_served, 3 * MINUTE, "nobody wakes the first");
	replica_stop(1);
}

/* Engines sleep all the same. */
static void a_service_that_is_none_is_told(void **state)
{
	(void)state;
	begin_shared("act");
	apiserver_delete(apiserver_find(KIND_SERVICE, "llm", "m0"));
	engines_sleep("m0", 1, 0);
	engines_label("m0", 0, "awake");
	replica_start(0, &all.settings);
	run(7 * MINUTE);
	assert_true(world_event_told("ActivatorNotOpen"));
	assert_int_equal(engines_count("m0", 1), 1);
	replica_stop(0);
}

/* The same where the Service can be read, and nothing be written. */
static void a_slice_that_is_refused_is_told(void **state)
{
	(void)state;
	begin_shared("act");
	apiserver_faults()->refuses_slices = true;
	engines_sleep("m0", 1, 0);
	engines_label("m0", 0, "awake");
	replica_start(0, &all.settings);
	run(7 * MINUTE);
	assert_true(world_event_told("ActivatorNotOpen"));
	assert_int_equal(engines_count("m0", 1), 1);
	replica_stop(0);
}

static bool own_is_gone(void)
{
	return !world_ready("own");
}

static bool own_is_served(void)
{
	return all.apps[0]->requests > 10 && all.apps[0]->waiting < 5;
}

/* A pool with machines of its own goes to zero where a start may be waited for, and comes back. */
static void from_zero_and_back(void **state)
{
	char more[1000];

	(void)state;
	world_begin(1);
	memset(&all, 0, sizeof all);
	world_group("own", "own", 1, 0, 8, 1);
	all.apps[0] = world_app("own", 1, 1, "");
	all.apps[0]->service_s = 2;
	snprintf(more, sizeof more, own, "own", "own");
	write_pool("own", more, "10m", "act");
	world_service("own");
	all.settings.manifest = all.manifest.text;
	replica_start(0, &all.settings);
	all.apps[0]->rate = 1;
	until(own_is_served, 30 * MINUTE, "it is not served at first");
	world_service_leads("own");
	all.apps[0]->rate = 0;
	until(own_is_gone, 6 * HOUR, "it does not go to zero");
	run(2 * MINUTE);
	assert_true(world_service_is_held("own"));
	all.apps[0]->requests = all.apps[0]->waiting;
	all.apps[0]->rate = 1;
	until(own_is_served, 30 * MINUTE, "it does not come back");
	replica_stop(0);
}

/* --- pools that come and go --- */

static const struct replica_settings of_objects = { .watches_objects = true };

static struct object *create_pool(const char *name, const char *app)
{
	return apiserver_create(
		KIND_WARM_POOL,
		value_of("{'apiVersion':'preheat.dev/"
			 "v1alpha1','kind':'WarmPool','metadata':{'name':'%s','namespace':'llm',"
			 "'generation':1},'spec':{'mode':'act','share':{'name':'small','wakeWithin':'30s'},"
			 "'objective':{'queueWait':'10s','attainment':'95%%'},'workload':{'selector':{'matchLabels':{"
			 "'app':'%s'}},'gpusPerReplica':1,'maxSequences':8},'signals':{'engine':'vllm','scrape':{"
			 "'port':8000,'path':'/metrics','interval':'5s'},'queue':{'activator':{'service':'%s'}}},"
			 "'nodeGroups':[{'name':'shared','provider':'simulated','simulated':{"
			 "'endpoint':'http://"
			 "cloud.world'},'zone':'z1','instanceType':'g5.xlarge','capacityType':'on-demand',"
			 "'gpusPerNode':12,'pricePerHour':1.21,'min':0,'max':8}]}}",
			 name, app, app));
}

static void change_pool(struct object *pool, const char *field, int64_t to)
{
	value_set_int(pool->value, field, to);
	value_set_int(pool->value, "metadata>generation", 2);
	apiserver_changed(pool);
}

static bool second_is_off_the_way(void)
{
	return !world_service_is_held("m1");
}

static void nobody_answers_for_a_pool_that_is_deleted(void **state)
{
	(void)state;
	begin_shared("act");
	struct object *first = create_pool("m0", "m0"), *second = create_pool("m1", "m1");
	replica_start(0, &of_objects);
	until(both_are_held, MINUTE, "the doors do not open");
	apiserver_delete(first);
	until(first_is_off_the_way, MINUTE, "the door of the first stays open");
	assert_true(world_service_is_held("m1"));
	apiserver_delete(second); /* now there is no pool at all */
	until(second_is_off_the_way, MINUTE, "the door of the last stays open");
	replica_stop(0);
}

static void nobody_answers_for_a_pool_that_was_deleted_meanwhile(void **state)
{
	(void)state;
	begin_shared("act");
	struct object *first = create_pool("m0", "m0"), *second = create_pool("m1", "m1");
	replica_start(0, &of_objects);
	until(both_are_held, MINUTE, "the doors do not open");
	run(MINUTE);
	replica_stop(0);
	apiserver_delete(first);
	replica_start(0, &of_objects);
	until(first_is_off_the_way, MINUTE, "the door of the first stays open");
	assert_true(world_service_is_held("m1"));
	run(MINUTE);
	replica_stop(0);
	apiserver_delete(second);
	replica_start(0, &of_objects);
	until(second_is_off_the_way, MINUTE, "the door of the last stays open");
	replica_stop(0);
}

/* Another controller's, of pools that are not ours. */
static void another_controllers_slice_stays(void **state)
{
	(void)state;
	begin_shared("act");
	apiserver_create(
		KIND_SLICE,
		value_of("{'metadata':{'name':'chat-preheat','namespace':'llm','labels':{"
			 "'kubernetes.io/service-name':'chat','endpointslice.kubernetes.io/managed-by':'preheat',"
			 "'preheat.dev/keeper':'another.preheat'}},'endpoints':[{'addresses':['10.0.0.9']}]}"));
	create_pool("m0", "m0");
	struct object *second = create_pool("m1", "m1");
	replica_start(0, &of_objects);
	until(both_are_held, MINUTE, "the doors do not open");
	apiserver_delete(second);
	until(second_is_off_the_way, MINUTE, "the door stays open");
	run(MINUTE);
	assert_true(world_service_is_held("chat"));
	replica_stop(0);
}

/* The first. */
static struct object *lead_two_pools(void)
{
	begin_shared("act");

	struct object *first = create_pool("m0", "m0");
	create_pool("m1", "m1");
	replica_start(0, &of_objects);
	lead();
	run(63 * SECOND);
	return first;
}

/* The Service leads here all the while. */
static void an_edit_keeps_the_door(void **state)
{
	(void)state;
	struct object *first = lead_two_pools();
	change_pool(first, "spec>workload>maxSequences", 9);
	run(MINUTE);
	assert_true(world_service_is_held("m0"));
	replica_stop(0);
}

/* The slice is the same object: what ends the one door does not take the other's. */
static void a_service_that_another_pool_takes_over_is_held(void **state)
{
	(void)state;
	struct object *first = lead_two_pools();
	create_pool("m2", "m0");
	apiserver_delete(first);
	run(MINUTE);
	assert_true(world_service_is_held("m0"));
	replica_stop(0);
}

#define SCENARIO(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(whoever_is_asked_wakes),
		SCENARIO(nothing_is_written_in_mode_observe),
		SCENARIO(another_leader_opens_its_own),
		SCENARIO(a_service_that_is_none_is_told),
		SCENARIO(a_slice_that_is_refused_is_told),
		SCENARIO(from_zero_and_back),
		SCENARIO(nobody_answers_for_a_pool_that_is_deleted),
		SCENARIO(nobody_answers_for_a_pool_that_was_deleted_meanwhile),
		SCENARIO(another_controllers_slice_stays),
		SCENARIO(an_edit_keeps_the_door),
		SCENARIO(a_service_that_another_pool_takes_over_is_held),
	};

	return cmocka_run_group_tests_name("activator", tests, NULL, NULL);
}
