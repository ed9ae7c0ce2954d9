/* Images that come to a node while its devices still come up: starts are shorter by that, and all else is as before. */
#include "controller/web/published.h"
#include "tests/world/lawful.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CHAT(PREFETCH, MODE)                                                                                           \
	"apiVersion: preheat.dev/v1alpha1\n"                                                                           \
	"kind: WarmPool\n"                                                                                             \
	"metadata: { name: chat, namespace: llm }\n"                                                                   \
	"spec:\n"                                                                                                      \
	"  mode: " MODE "\n"                                                                                           \
	"  class: interactive\n"                                                                                       \
	"  objective: { queueWait: 2s, attainment: 99% }\n"                                                            \
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { name: chat }, gpusPerReplica: 1,\n" \
	"      maxSequences: 8, prefillTokensPerSecond: 25k, interTokenLatency: 30ms" PREFETCH " }\n"                  \
	"  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"                         \
	"  nodeGroups:\n"                                                                                              \
	"    - { name: od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"          \
	"        instanceType: g5.xlarge, gpusPerNode: 1, pricePerHour: 1.21, min: 0, max: 20 }\n"                     \
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s,\n"     \
	"      p95: 30s }, image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"                            \
	"  headroom: { min: 3 }\n"                                                                                     \
	"  scaleDown: { after: 5m }\n"

static const struct replica_settings plain = { .manifest = CHAT("", "act") },
				     ahead = { .manifest = CHAT(", prefetch: image", "act") },
				     watched = { .manifest = CHAT(", prefetch: image", "observe") },
				     by_objects = { .watches_objects = true };
static struct world_app *chat;

static void set_up_world(void)
{
	world_begin(4);
	world_keeps_images();
	world_group("od", "chat", 1, 0, 20, 0);
	chat = world_app("chat", 0, 1, "25%");
}

static int set_up(void **state)
{
	(void)state;
	set_up_world();
	return 0;
}

static int64_t prefetches(void)
{
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		count += value_at(p->value, "metadata>labels>preheat.dev/prefetch") != NULL;
	return count;
}

static bool one_is_there(void)
{
	return prefetches() > 0;
}

static bool none_is_there(void)
{
	return prefetches() == 0;
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

struct starts_took {
	millis total, stages[STAGE_COUNT];
};

static struct starts_took three_starts(const struct replica_settings *s)
{
	struct starts_took took;
	millis began = wire_now();

	replica_start(0, s);
	until(serves_three, 20 * MINUTE, "three replicas of headroom serve");
	took.total = wire_now() - began;
	run(MINUTE);
	for (int i = 0; i < STAGE_COUNT; i++)
		took.stages[i] = replica_published(0)->pools[0].stage[i].p50;
	until(world_is_at_rest, 10 * MINUTE, "nothing is on its way, and no pod that pulls is left");
	return took;
}

/* The pull begins when the node is ready, not when its GPUs are there: it is shorter by the stage device. */
static void a_start_is_shorter_by_what_overlaps(void **state)
{
	(void)state;
	struct starts_took without = three_starts(&plain), with;

	world_end();
	set_up_world();
	with = three_starts(&ahead);
	for (int i = 0; i < STAGE_COUNT; i++)
		print_message("%s: %lld s, with prefetch %lld s\n", stage_name((enum stage)i),
			      (long long)(without.stages[i] / SECOND), (long long)(with.stages[i] / SECOND));
	for (int i = 0; i <= STAGE_DEVICE; i++)
		assert_in_range(with.stages[i], without.stages[i] - SECOND, without.stages[i] + SECOND);
	millis saved = without.stages[STAGE_IMAGE] - with.stages[STAGE_IMAGE];
	/* Kubernetes takes a while to notice that the node is ready, and keeps the pull away until then. */
	assert_in_range(saved, SECOND, with.stages[STAGE_DEVICE] + 2 * SECOND);
	assert_true(with.total < without.total);
}

/* The template's image, by its account and secrets, for no GPU, and for nobody's selector: laws.c looks at the last. */
static void the_pod_is_what_a_kubelet_pulls_for(void **state)
{
	(void)state;
	struct object *d = apiserver_find(KIND_DEPLOYMENT, "llm", "chat");

	value_set(d->value, "spec>template>spec>imagePullSecrets", value_of("[{'name':'registry'}]"));
	value_set_text(d->value, "spec>template>spec>serviceAccountName", "chat");
	value_set(d->value, "spec>template>spec>initContainers",
		  value_of("[{'name':'fetch','image':'fetch:2'},{'name':'again','image':'chat:1'},"
			   "{'name':'mine','image':'mine:1','imagePullPolicy':'Never'}]"));
	replica_start(0, &ahead);
	until(one_is_there, 10 * MINUTE, "a node registers and gets its pod");
	const struct object *p = apiserver_first(KIND_POD);
	while (!value_at(p->value, "metadata>labels>preheat.dev/prefetch"))
		p = p->next;
	const struct value *spec = value_at(p->value, "spec"), *first = value_at(spec, "containers")->first;
	assert_string_equal(value_text(first, "image"), "chat:1");
	assert_string_equal(value_text(first->next, "image"), "fetch:2");
	assert_null(first->next->next);
	assert_string_equal(value_text(value_at(spec, "imagePullSecrets")->first, "name"), "registry");
	assert_string_equal(value_text(spec, "serviceAccountName"), "chat");
	assert_string_equal(value_text(spec, "automountServiceAccountToken"), "false");
	assert_null(value_at(p->value, "metadata>labels>app"));
}

static bool is_told(void)
{
	return world_event_told("PrefetchFailed");
}

/* Told once, and the start goes on as without. */
static void an_image_that_does_not_come_is_told(void **state)
{
	(void)state;
	chat->no_image = true;
	replica_start(0, &ahead);
	until(is_told, 10 * MINUTE, "it is told");
	assert_true(world_event_says("PrefetchFailed", "not found"));
	chat->no_image = false;
	until(serves_three, 30 * MINUTE, "three replicas serve");
	until(none_is_there, 10 * MINUTE, "none is left");
}

static void who_only_observes_makes_none(void **state)
{
	(void)state;
	replica_start(0, &watched);
	run(MINUTE);
	world_set_replicas("chat", 2);
	cloud_owner_sets(cloud_group_at(0), 2);
	for (int i = 0; i < 20 * 60; i++) {
		run(SECOND);
		assert_int_equal(prefetches(), 0);
	}
	assert_int_equal(world_ready("chat"), 2);
}

/* --- none is left over --- */

static struct object *put_pool(void)
{
	return apiserver_create(
		KIND_WARM_POOL,
		value_of("{'apiVersion':'preheat.dev/v1alpha1','kind':'WarmPool','metadata':{'name':'chat','namespace':"
			 "'llm'},'spec':{'mode':'act','class':'interactive','objective':{'queueWait':'2s','attainment':"
			 "'99%%'},'workload':{'selector':{'matchLabels':{'app':'chat'}},'scaleTargetRef':{'apiVersion':"
			 "'apps/v1','kind':'Deployment','name':'chat'},'prefetch':'image','gpusPerReplica':1,"
			 "'maxSequences':8},'signals':{'engine':'vllm','scrape':{'port':8000,'path':'/metrics',"
			 "'interval':'15s'}},'nodeGroups':[{'name':'od','provider':'simulated','simulated':{'endpoint':"
			 "'http://cloud.world'},'zone':'z1','instanceType':'g5.xlarge','gpusPerNode':1,'pricePerHour':"
			 "1.21,'min':0,'max':8}],'headroom':{'min':2},'scaleDown':{'after':'5m'}}}"));
}

static struct object *pool_with_one_under_way(void)
{
	struct object *pool = put_pool();

	replica_start(0, &by_objects);
	until(one_is_there, 10 * MINUTE, "a node registers and gets its pod");
	return pool;
}

static void a_pool_that_only_observes_from_now_on_leaves_none(void **state)
{
	(void)state;
	struct object *pool = pool_with_one_under_way();

	value_set_text(pool->value, "spec>mode", "observe");
	apiserver_changed(pool);
	run(MINUTE);
	assert_int_equal(prefetches(), 0);
	run(10 * MINUTE);
	assert_int_equal(prefetches(), 0);
}

static void a_pool_that_is_deleted_leaves_none(void **state)
{
	(void)state;
	apiserver_delete(pool_with_one_under_way());
	run(MINUTE);
	assert_int_equal(prefetches(), 0);
}

/* The API's answer to the first that is made may be lost with the process, or be the last that it saw. */
static void a_death_at_any_moment_makes_no_second_one(void **state)
{
	(void)state;
	for (int64_t events = 0; events < 24; events++) {
		world_end();
		set_up_world();
		replica_start(0, &ahead);
		until(one_is_there, 10 * MINUTE, "a node registers and gets its pod");
		world_events(events);
		replica_kill(0);
		run(20 * SECOND);
		replica_start(0, &ahead);
		until(serves_three, 20 * MINUTE, "three replicas serve");
		until(none_is_there, 10 * MINUTE, "none is left");
		run(10 * MINUTE);
		assert_int_equal(prefetches(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_start_is_shorter_by_what_overlaps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_pod_is_what_a_kubelet_pulls_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_image_that_does_not_come_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_only_observes_makes_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pool_that_only_observes_from_now_on_leaves_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pool_that_is_deleted_leaves_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_death_at_any_moment_makes_no_second_one, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
