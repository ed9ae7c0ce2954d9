/* Pods with an engine of each of two models, on ports of their own: the pod is a slot, and slices say who serves. */
#include "base/buf.h"
#include "controller/web/published.h"
#include "state/share_record.h"
#include "tests/world/lawful.h"
#include "tests/world/replays.h"
#include "tests/world/services.h"

#include <stdio.h>
#include <string.h>

static struct {
	struct buf manifest;
	struct replica_settings settings;
	struct world_app *apps[2];
	int slots;
} all;

static const char *const names[] = { "m0", "m1" };

/* share: its line of the spec. */
static void write_pool_of(int model, const char *mode, const char *share)
{
	buf_printf(&all.manifest,
		   "apiVersion: preheat.dev/v1alpha1\n"
		   "kind: WarmPool\n"
		   "metadata: { name: %s, namespace: llm }\n"
		   "spec:\n"
		   "  mode: %s\n"
		   "%s"
		   "  objective: { queueWait: 10s, attainment: 95%% }\n"
		   "  workload: { selector: { matchLabels: { app: m0 } }, gpusPerReplica: 1, maxSequences: 8 }\n"
		   "  nodeGroups:\n"
		   "    - { name: shared, provider: simulated, simulated: { endpoint: \"http://cloud.world\" },\n"
		   "        zone: z1, instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 12,\n"
		   "        pricePerHour: 1.21, min: 0, max: 8 }\n"
		   "  signals: { engine: vllm, scrape: { port: %d, path: /metrics, interval: 5s },\n"
		   "      queue: { activator: { service: %s } } }\n"
		   "---\n",
		   names[model], mode, share, 8000 + model, names[model]);
}

static void write_pool(int model, const char *mode, const char *memory)
{
	char share[160];

	snprintf(share, sizeof share, "  share: { name: small, wakeWithin: 30s%s }\n", memory);
	write_pool_of(model, mode, share);
}

static bool are_up(void)
{
	return world_ready("m0") == all.slots;
}

/* All engines sleep, on one node of many GPUs. */
static void begin(int slots, uint64_t seed, const char *memory)
{
	world_begin(seed);
	memset(&all, 0, sizeof all);
	all.slots = slots;
	world_group("shared", "shared", 12, 0, 8, 1);
	all.apps[0] = world_shared_app("m0", "shared", slots);
	all.apps[0]->has_claims = true; /* several on a node */
	all.apps[1] = world_app_beside("m1", all.apps[0]);
	for (int i = 0; i < 2; i++) {
		all.apps[i]->service_s = 2;
		write_pool(i, "act", memory);
		world_service(names[i]);
	}
	all.settings.manifest = all.manifest.text;
	until(are_up, HOUR, "the engines do not start");
	for (int i = 0; i < 2; i++) {
		engines_label(names[i], 0, "asleep");
		engines_sleep(names[i], slots, 1);
	}
}

static int end(void **state)
{
	buf_release(&all.manifest);
	return tear_down(state);
}

static int64_t served(int model)
{
	return all.apps[model]->requests - all.apps[model]->waiting;
}

static bool first_is_served(void)
{
	return served(0) > 10;
}

static bool second_is_served(void)
{
	return served(1) > 10;
}

static bool both_are_held(void)
{
	return world_service_is_held("m0") && world_service_is_held("m1");
}

static bool leads_to(int model, const char *ip)
{
	char name[32];

	snprintf(name, sizeof name, "%s-preheat", names[model]);
	const struct object *slice = apiserver_find(KIND_SLICE, "llm", name);
	const struct value *ends = slice ? value_at(slice->value, "endpoints") : NULL;
	for (const struct value *e = ends ? ends->first : NULL; e; e = e->next)
		if (!strcmp(value_at(e, "addresses")->first->text, ip))
			return true;
	return false;
}

static const char *waits_of(int model)
{
	const struct published *p = replica_published(0);

	return p && p->pools[model].problem[PROBLEM_ENGINE_WAITS] ? p->pools[model].problem[PROBLEM_ENGINE_WAITS] : "";
}

/* As the history tells. */
static bool is_told_to_wait(int model, int holder)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct engine_moves_told told;
	struct error e = { 0 };
	struct history *h = history_open(replica_history(0), &e);

	if (!h ||
	    !engine_move_around(h, &(struct pool_then){ replica_published(0)->fleet, (size_t)model, INT64_MAX - DAY },
				&a, &told, &e))
		fail_msg("%s", e.message);
	history_close(h);
	return told.waits_for && !strcmp(told.waits_for, names[holder]);
}

static int64_t open_moves(void)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct engine_move_record *rows;
	struct error e = { 0 };
	size_t count = 0;
	struct history *h = history_open(replica_history(0), &e);

	if (!h || !engine_move_open(h, &a, &rows, &count, &e))
		fail_msg("%s", e.message);
	history_close(h);
	return (int64_t)count;
}

/* One pod, two models: whoever is asked wakes, the other makes room, and the Service of each leads to its engine while
 * that is awake, and else to us. */
static void whoever_is_asked_wakes(void **state)
{
	(void)state;
	begin(1, 1, "");
	replica_start(0, &all.settings);
	until(both_are_held, MINUTE, "the doors do not open");
	world_service_leads("m0");
	world_service_leads("m1");
	const struct object *pod = apiserver_first(KIND_POD);
	char ip[32];
	snprintf(ip, sizeof ip, "%s", value_text(pod->value, "status>podIP"));
	for (int round = 0; round < 4; round++) {
		all.apps[0]->rate = 1;
		until(first_is_served, MINUTE, "nobody wakes the first");
		run(MINUTE);
		assert_true(leads_to(0, ip) && !leads_to(1, ip));
		assert_true(value_is(pod->value, "metadata>labels>engine-state.preheat.dev/m0", "awake"));
		assert_true(value_is(pod->value, "metadata>labels>engine-state.preheat.dev/m1", "asleep"));
		all.apps[0]->rate = 0;
		run(10 * SECOND);
		all.apps[1]->rate = 1;
		until(second_is_served, 2 * MINUTE, "nobody wakes the second");
		all.apps[1]->rate = 0;
		run(MINUTE);
		assert_true(leads_to(1, ip) && !leads_to(0, ip));
		all.apps[0]->requests = all.apps[1]->requests = 0;
	}
	replica_stop(0);
	assert_true(leads_to(1, ip)); /* it serves without us */
	assert_int_equal(open_moves(), 0);
	assert_replays(replica_history(0));
}

/* Each pod is a slot, on one node: both models are served at once. */
static void pods_are_slots(void **state)
{
	(void)state;
	begin(2, 2, "");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = all.apps[1]->rate = 1;
	run(10 * MINUTE);
	assert_true(served(0) > 500 && served(1) > 500);
	assert_int_equal(engines_count("m0", 0), 1);
	assert_int_equal(engines_count("m1", 0), 1);
	replica_stop(0);
}

static bool second_is_broken(void)
{
	return world_event_told("EngineBroken");
}

/* Both fit the GPUs of their pod. Where one does not wake, the pod is restarted once the other serves nobody. */
static void a_pod_is_mended_once_nobody_serves_in_it(void **state)
{
	(void)state;
	begin(1, 3, ", engineMemoryGiB: 10, sleepingMemoryGiB: 1");
	all.apps[0]->are_two_awake = true;
	struct object *node = apiserver_first(KIND_NODE);
	value_set_text(node->value, "metadata>labels>nvidia.com/gpu.memory", "24576");
	apiserver_changed(node);
	char pod[64];
	snprintf(pod, sizeof pod, "%s", apiserver_first(KIND_POD)->name);
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	all.apps[1]->wakes_fail = 1;
	all.apps[1]->rate = 1;
	until(second_is_broken, 2 * MINUTE, "the second wakes");
	run(10 * MINUTE);
	assert_true(apiserver_find(KIND_POD, "llm", pod)); /* the first works there all the while */
	assert_true(served(0) > 500);
	all.apps[0]->rate = 0;
	until(second_is_served, HOUR, "the pod is not mended");
	assert_null(apiserver_find(KIND_POD, "llm", pod));
	replica_stop(0);
}

/* Whoever has requests never sleeps: that another waits for it is told, until it is served. */
static void whoever_waits_for_a_busy_one_is_told(void **state)
{
	(void)state;
	begin(1, 8, "");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = 4; /* for 2 s each */
	until(first_is_served, MINUTE, "nobody wakes the first");
	run(MINUTE);
	assert_false(world_event_told("EngineWaits"));
	all.apps[1]->rate = .1;
	run(MINUTE);
	assert_false(world_event_told("EngineWaits"));
	run(2 * MINUTE);
	assert_true(world_event_told("EngineWaits"));
	assert_non_null(strstr(waits_of(1), "those of m0"));
	assert_string_equal(waits_of(0), "");
	assert_true(is_told_to_wait(1, 0));
	all.apps[0]->rate = 0;
	until(second_is_served, 5 * MINUTE, "nobody wakes the second");
	run(MINUTE);
	assert_string_equal(waits_of(1), "");
	assert_false(is_told_to_wait(1, 0));
	replica_stop(0);
	assert_replays(replica_history(0));
}

/* Of an engine that cannot be read nobody knows what it does: it keeps the pod, is told of, and goes on once it is. */
static void who_cannot_be_read_keeps_the_pod(void **state)
{
	(void)state;
	begin(1, 9, "");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	run(MINUTE);
	all.apps[0]->is_mute = true;
	all.apps[1]->rate = .1;
	int64_t before = served(0);
	run(10 * MINUTE); /* laws hold: no request is lost */
	assert_true(served(0) > before + 500);
	assert_int_equal(served(1), 0);
	assert_true(world_event_told("EngineWaits"));
	all.apps[0]->rate = 0;
	run(5 * MINUTE);
	assert_int_equal(engines_count("m0", 0), 1);
	all.apps[0]->is_mute = false;
	until(second_is_served, 5 * MINUTE, "nobody wakes the second");
	replica_stop(0);
	assert_int_equal(open_moves(), 0);
	assert_replays(replica_history(0));
}

/* The machine's clock is put right at any step of a swap, forward or back, whether the API server tells its own or not.
 */
static void a_clock_is_put_right_during_a_swap(void **state)
{
	enum { STEPS = 8 };
	static const millis ahead[] = { 2 * HOUR, -2 * HOUR };

	for (int i = 0; i < 4 * STEPS; i++) {
		begin(1, (uint64_t)i + 1, "");
		wire_dates(i % 4 < 2, 0);
		wire_machine_ahead(ahead[i % 2]);
		replica_start(0, &all.settings);
		run(MINUTE);
		all.apps[0]->rate = 1;
		until(first_is_served, MINUTE, "nobody wakes the first");
		run(30 * SECOND);
		all.apps[0]->rate = 0;
		all.apps[1]->rate = 1;
		run(i / 4 * 3 * SECOND);
		wire_machine_ahead(0);
		until(second_is_served, 2 * MINUTE, "nobody wakes the second");
		all.apps[1]->rate = 0;
		all.apps[0]->requests = 0;
		run(20 * SECOND);
		all.apps[0]->rate = 1;
		until(first_is_served, 2 * MINUTE, "nobody wakes the first again");
		replica_stop(0);
		assert_int_equal(open_moves(), 0);
		if (i + 1 < 4 * STEPS)
			end(state);
	}
}

/* Requests go where the slice leads: an engine that it could not be told of stays awake. */
static void nobody_sleeps_where_the_slice_leads(void **state)
{
	(void)state;
	begin(1, 5, "");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	run(MINUTE);
	apiserver_faults()->refuses_slices = true;
	all.apps[0]->rate = 0;
	run(MINUTE);
	all.apps[1]->rate = 1;
	run(10 * MINUTE); /* a law holds: no_sleeper_in_routing */
	assert_int_equal(served(1), 0);
	apiserver_faults()->refuses_slices = false;
	until(second_is_served, 5 * MINUTE, "nobody wakes the second");
	replica_stop(0);
}

/* Whoever no longer acts leaves the way to an engine that serves, and takes away the one to itself. */
static void a_route_outlives_its_pool(void **state)
{
	char ip[32];

	(void)state;
	begin(1, 6, "");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	run(MINUTE);
	replica_stop(0);
	buf_clear(&all.manifest);
	for (int i = 0; i < 2; i++)
		write_pool(i, "paused", "");
	all.settings.manifest = all.manifest.text;
	snprintf(ip, sizeof ip, "%s", value_text(apiserver_first(KIND_POD)->value, "status>podIP"));
	laws_stand_still(false);
	replica_start(0, &all.settings);
	run(5 * MINUTE);
	assert_true(leads_to(0, ip));
	assert_false(world_service_is_held("m1"));
	assert_true(served(0) > 300);
	replica_stop(0);
}

/* The pod stays the other pool's, and so does the way to its engine. */
static void the_first_pool_leaves_the_share(void **state)
{
	(void)state;
	begin(1, 7, "");
	replica_start(0, &all.settings);
	run(MINUTE);
	replica_stop(0);
	buf_clear(&all.manifest);
	write_pool_of(0, "act", "");
	write_pool(1, "act", "");
	all.settings.manifest = all.manifest.text;
	replica_start(0, &all.settings);
	all.apps[1]->rate = 1;
	until(second_is_served, 2 * MINUTE, "nobody wakes the second");
	assert_int_equal(engines_count("m0", 1), 1);
	replica_stop(0);
}

static struct object *create_pool(int model)
{
	return apiserver_create(
		KIND_WARM_POOL,
		value_of("{'apiVersion':'preheat.dev/v1alpha1','kind':'WarmPool','metadata':{'name':'%s','namespace':"
			 "'llm','generation':1},'spec':{'mode':'act','share':{'name':'small','wakeWithin':'30s'},"
			 "'objective':{'queueWait':'10s','attainment':'95%%'},'workload':{'selector':{'matchLabels':{"
			 "'app':'m0'}},'gpusPerReplica':1,'maxSequences':8},'signals':{'engine':'vllm','scrape':{"
			 "'port':%d,'path':'/metrics','interval':'5s'},'queue':{'activator':{'service':'%s'}}},"
			 "'nodeGroups':[{'name':'shared','provider':'simulated','simulated':{'endpoint':"
			 "'http://cloud.world'},'zone':'z1','instanceType':'g5.xlarge','capacityType':'on-demand',"
			 "'gpusPerNode':12,'pricePerHour':1.21,'min':0,'max':8}]}}",
			 names[model], 8000 + model, names[model]));
}

static void edit_pool(struct object *pool, int64_t generation, const char *spec)
{
	struct value *patch = value_of("{'metadata':{'generation':%d},'spec':%s}", (int)generation, spec);

	value_merge(pool->value, patch);
	value_free(patch);
	apiserver_changed(pool);
}

/* Not only for whoever leads next. */
static void a_share_is_left_and_joined_by_an_edit(void **state)
{
	static const struct replica_settings of_objects = { .watches_objects = true };

	(void)state;
	begin(1, 7, "");
	struct object *first = create_pool(0);
	create_pool(1);
	replica_start(0, &of_objects);
	run(MINUTE);
	edit_pool(first, 2, "{'share':null}");
	run(30 * SECOND);
	all.apps[1]->rate = 1;
	until(second_is_served, 2 * MINUTE, "nobody wakes the second");
	assert_int_equal(engines_count("m0", 1), 1);
	all.apps[1]->rate = 0;
	run(MINUTE);
	edit_pool(first, 3, "{'share':{'name':'small','wakeWithin':'30s'}}");
	run(30 * SECOND);
	all.apps[0]->rate = 1;
	until(first_is_served, 10 * MINUTE, "nobody wakes the first, which is back");
	replica_stop(0);
}

static const char left_over[] = "m0-left0";

static void leave_slice(struct object *service, bool is_wrong)
{
	(void)service;
	if (is_wrong)
		apiserver_create(KIND_SLICE,
				 value_of("{'metadata':{'name':'%s','namespace':'llm','labels':{"
					  "'kubernetes.io/service-name':'m0'}},'endpoints':[{'conditions':{}}]}",
					  left_over));
	else
		apiserver_delete(apiserver_find(KIND_SLICE, "llm", left_over));
}

static void select_pods(struct object *service, bool is_wrong)
{
	value_set(service->value, "spec>selector", value_of(is_wrong ? "{'app':'m0'}" : "{}"));
	apiserver_changed(service);
}

static void lead_elsewhere(struct object *service, bool is_wrong)
{
	value_set(service->value, "spec>ports",
		  value_of("[{'name':'http','protocol':'TCP','port':80,'targetPort':%d}]", is_wrong ? 8009 : 8000));
	apiserver_changed(service);
}

/* Requests would go to sleepers, or to another's engine: nobody is moved, until the Service is put right. */
static void a_service_that_leads_elsewhere_is_refused(void **state)
{
	static void (*const mistakes[])(struct object * service, bool is_wrong) = { leave_slice, select_pods,
										    lead_elsewhere };
	enum { COUNT = sizeof mistakes / sizeof *mistakes };

	for (size_t i = 0; i < COUNT; i++) {
		begin(1, 4 + i, "");
		struct object *service = apiserver_find(KIND_SERVICE, "llm", "m0");
		mistakes[i](service, true);
		laws_stand_still(false);
		replica_start(0, &all.settings);
		all.apps[0]->rate = 1;
		run(5 * MINUTE);
		assert_int_equal(served(0), 0);
		assert_true(world_event_told("EngineNotRouted"));
		mistakes[i](service, false);
		until(first_is_served, 3 * MINUTE, "nobody wakes once it is put right");
		replica_stop(0);
		assert_int_equal(open_moves(), 0);
		if (i + 1 < COUNT)
			end(state);
	}
}

/* --- killed at any step --- */

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
	if (!strcmp(w->resource, "pods") || !strcmp(w->resource, "endpointslices"))
		step();
}

static void killed_between_any_two_steps(void **state)
{
	enum { STEPS = 30 };

	for (dies_at = 1; dies_at <= STEPS; dies_at++) {
		begin(1, (uint64_t)dies_at, "");
		steps = 0;
		engines_on_call(on_engine_call);
		apiserver_on_write(on_write);
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
		assert_true(steps > dies_at);
		assert_true(served(0) > 10 && served(1) > 10);
		replica_stop(0);
		assert_int_equal(open_moves(), 0);
		if (dies_at < STEPS)
			end(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(whoever_is_asked_wakes, end),
		cmocka_unit_test_teardown(pods_are_slots, end),
		cmocka_unit_test_teardown(a_pod_is_mended_once_nobody_serves_in_it, end),
		cmocka_unit_test_teardown(whoever_waits_for_a_busy_one_is_told, end),
		cmocka_unit_test_teardown(who_cannot_be_read_keeps_the_pod, end),
		cmocka_unit_test_teardown(a_clock_is_put_right_during_a_swap, end),
		cmocka_unit_test_teardown(nobody_sleeps_where_the_slice_leads, end),
		cmocka_unit_test_teardown(a_route_outlives_its_pool, end),
		cmocka_unit_test_teardown(the_first_pool_leaves_the_share, end),
		cmocka_unit_test_teardown(a_share_is_left_and_joined_by_an_edit, end),
		cmocka_unit_test_teardown(a_service_that_leads_elsewhere_is_refused, end),
		cmocka_unit_test_teardown(killed_between_any_two_steps, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
