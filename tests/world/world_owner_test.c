/* Somebody else sets the replicas of what a pool serves: it is found out, let, named, and followed by us when it is
 * gone. */
#include "controller/web/published.h"
#include "tests/world/autoscaler.h"
#include "tests/world/laws.h"

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
	"    - { name: chat-od, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, zone: z1,\n"
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1, max: "
	"12 }\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 2 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings alone = { .manifest = chat_text };
static struct world_app *chat;

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	world_group("chat-od", "chat", 1, 0, 12, 1);
	chat = world_app("chat", 1, 1, "25%");
	autoscaler_begin();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	autoscaler_end();
	world_end();
	return 0;
}

static void assert_lawful(void)
{
	if (!*laws_broken())
		return;
	laws_print_trace(60);
	fail_msg("%s", laws_broken());
}

static void run(millis duration)
{
	world_run(duration);
	assert_lawful();
}

static void until(bool (*is_so)(void), millis most, const char *what)
{
	bool came = world_until(is_so, most);

	assert_lawful();
	if (came)
		return;
	laws_print_trace(60);
	fail_msg("%s: not within %lld s", what, (long long)(most / SECOND));
}

static bool serves_two(void)
{
	return world_ready("chat") >= 2 && world_is_at_rest();
}

static void begin(void)
{
	replica_start(0, &alone);
	until(serves_two, 30 * MINUTE, "two replicas of headroom serve");
}

/* The condition's message; NULL: it does not say so. */
static const char *contested(void)
{
	const struct published *p = replica_published(0);

	return p && p->pools ? p->pools[0].problem[PROBLEM_CONTESTED] : NULL;
}

static bool is_contested(void)
{
	return contested();
}

static bool is_at_peace(void)
{
	return !contested();
}

static void assert_named(const char *who, const char *remedy)
{
	if (!strstr(contested(), who) || !strstr(contested(), remedy))
		fail_msg("'%s' names no '%s', or advises no '%s'", contested(), who, remedy);
}

/* A chart of KServe's: as many at most as at least. */
static void an_autoscaler_is_let_and_followed_when_it_goes(void **state)
{
	(void)state;
	begin();
	int64_t writes = laws_scale_writes();
	struct object *hpa = autoscaler_create("chat", 1, 1, "", "");
	until(is_contested, 3 * MINUTE, "it says who else sets the replicas");
	assert_true(laws_scale_writes() - writes <= 1);
	assert_named("HorizontalPodAutoscaler hpa-chat", "set workload.warm: metric");
	assert_true(world_event_told("ReplicasContested"));
	writes = laws_scale_writes();
	run(3 * HOUR);
	apiserver_faults()->hides_scalers = true; /* which may stand all the same */
	run(30 * MINUTE);
	apiserver_faults()->hides_scalers = false;
	assert_int_equal(laws_scale_writes(), writes);
	assert_int_equal(world_replicas("chat"), 1);
	apiserver_delete(hpa);
	until(is_at_peace, 2 * MINUTE, "it sets them again");
	until(serves_two, 30 * MINUTE, "the headroom serves");
}

/* From the first moment on, with a metric of its own; what it asks for is served. */
static bool serves_five(void)
{
	return world_ready("chat") >= 5;
}

static void a_scaled_object_is_served(void **state)
{
	(void)state;
	struct object *hpa = autoscaler_create("chat", 1, 10, "scaledobject.keda.sh/name", "chat-scaler");
	autoscaler_wish(hpa, 1);
	replica_start(0, &alone);
	until(is_contested, 10 * MINUTE, "it says who else sets the replicas");
	assert_true(laws_scale_writes() <= 2);
	assert_named("ScaledObject chat-scaler", "delete it");
	autoscaler_wish(hpa, 5);
	until(serves_five, 30 * MINUTE, "nodes are bought for what it asks for");
	int64_t writes = laws_scale_writes();
	run(HOUR);
	assert_int_equal(laws_scale_writes(), writes);
	assert_int_equal(world_replicas("chat"), 5);
}

/* It lowers by one each half an hour, the longest that Kubernetes allows: as seldom as a person might, but it stands.
 */
static void a_slow_autoscaler_is_let_too(void **state)
{
	(void)state;
	begin();
	autoscalers_lower_each(30 * MINUTE);
	autoscaler_create("chat", 1, 1, "", "");
	until(is_contested, 65 * MINUTE, "it says who else sets the replicas");
	assert_named("HorizontalPodAutoscaler hpa-chat", "set workload.warm: metric");
	int64_t writes = laws_scale_writes();
	run(3 * HOUR);
	assert_int_equal(laws_scale_writes(), writes);
}

static bool is_undone(void)
{
	return world_replicas("chat") == 1;
}

/* It was seen once, and cannot be by the time that the number is left to it. */
static void an_autoscaler_that_hides_is_let_and_told(void **state)
{
	(void)state;
	begin();
	autoscalers_lower_each(30 * MINUTE);
	autoscaler_create("chat", 1, 1, "", "");
	until(is_undone, 35 * MINUTE, "it lowers the number");
	run(5 * MINUTE);
	apiserver_faults()->hides_scalers = true;
	until(is_contested, 65 * MINUTE, "it says that somebody sets the replicas");
	int64_t writes = laws_scale_writes();
	run(2 * HOUR);
	apiserver_faults()->hides_scalers = false;
	assert_int_equal(laws_scale_writes(), writes);
}

static bool serves_three(void)
{
	return world_ready("chat") >= 3;
}

static bool is_small(void)
{
	return world_desired("chat") <= 2 && world_is_at_rest();
}

/* What stood when it was let is no measure of what the other asks for later, and no reason to keep machines. */
static void fewer_than_stood_are_served_too(void **state)
{
	(void)state;
	begin();
	chat->rate = 6;
	until(serves_five, HOUR, "five serve");
	struct object *hpa = autoscaler_create("chat", 4, 4, "", "");
	until(is_contested, 10 * MINUTE, "it says who else sets the replicas");
	chat->rate = 0;
	value_set_text(hpa->value, "spec>minReplicas", "1");
	autoscaler_wish(hpa, 1);
	until(is_small, 3 * HOUR, "the machines of the traffic are gone");
	autoscaler_wish(hpa, 3);
	until(serves_three, 30 * MINUTE, "nodes are bought for what it asks for");
}

static void an_inference_service_is_told_to_be_external(void **state)
{
	(void)state;
	begin();
	autoscaler_create("chat", 1, 1, "serving.kserve.io/inferenceservice", "llama");
	until(is_contested, 5 * MINUTE, "it says who else sets the replicas");
	assert_named("InferenceService llama", "serving.kserve.io/autoscalerClass: external");
}

/* Without an autoscaler KServe's own controller writes the number, as a program called manager. */
static void a_service_without_an_autoscaler_is_told_the_same(void **state)
{
	(void)state;
	value_set_text(apiserver_find(KIND_DEPLOYMENT, "llm", "chat")->value,
		       "metadata>labels>serving.kserve.io/inferenceservice", "llama");
	begin();
	gitops_apply("chat", "manager", 1, 3 * MINUTE);
	until(is_contested, 20 * MINUTE, "it says who else sets the replicas");
	assert_named("InferenceService llama", "serving.kserve.io/autoscalerClass: external");
}

/* Its autoscaler is made by KServe, too, which makes it again. */
static void an_llm_service_is_told_to_leave_the_number_out(void **state)
{
	struct value *deployment = apiserver_find(KIND_DEPLOYMENT, "llm", "chat")->value;

	(void)state;
	value_set_text(deployment, "metadata>labels>app.kubernetes.io/part-of", "llminferenceservice");
	value_set_text(deployment, "metadata>labels>app.kubernetes.io/name", "glm");
	begin();
	autoscaler_create("chat", 1, 1, "app.kubernetes.io/part-of", "llminferenceservice");
	until(is_contested, 5 * MINUTE, "it says who else sets the replicas");
	assert_named("LLMInferenceService glm", "leave replicas and scaling out of it");
}

static void an_llm_service_with_a_number_is_told_the_same(void **state)
{
	struct value *deployment = apiserver_find(KIND_DEPLOYMENT, "llm", "chat")->value;

	(void)state;
	value_set_text(deployment, "metadata>labels>app.kubernetes.io/part-of", "llminferenceservice");
	value_set_text(deployment, "metadata>labels>app.kubernetes.io/name", "glm");
	begin();
	gitops_apply("chat", "manager", 1, 3 * MINUTE);
	until(is_contested, 20 * MINUTE, "it says who else sets the replicas");
	assert_named("LLMInferenceService glm", "leave replicas and scaling out of it");
}

/* Under our own name, and not what we set. */
static void another_preheat_is_let_and_named(void **state)
{
	(void)state;
	begin();
	gitops_apply("chat", "preheat", 1, 3 * MINUTE);
	until(is_contested, 20 * MINUTE, "it says who else sets the replicas");
	run(5 * MINUTE);
	assert_named("another Preheat", "let one WarmPool of one cluster name it");
}

static bool is_set_to_two(void)
{
	return world_replicas("chat") == 2 && serves_two();
}

/* Up and down, an hour between: nobody is at war, and the number is ours again. */
static void a_person_who_scales_once_is_no_contest(void **state)
{
	static const int64_t numbers[] = { 5, 1 };

	(void)state;
	begin();
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		world_set_replicas("chat", numbers[i]);
		until(is_set_to_two, HOUR, "the number is ours again");
		run(HOUR);
		assert_null(contested());
	}
	assert_false(world_event_told("ReplicasContested"));
}

/* It puts back what stands in Git, and cannot be seen to go: it is tried now and then, ever more rarely. Autoscalers of
 * another workload, and of another kind of the same name, are not taken for it. */
static void a_field_manager_is_tried_again_now_and_then(void **state)
{
	(void)state;
	begin();
	autoscaler_create("embed", 1, 1, "", "");
	value_set_text(autoscaler_create("chat", 1, 1, "", "")->value, "spec>scaleTargetRef>kind", "StatefulSet");
	int64_t writes = laws_scale_writes();
	gitops_apply("chat", "argocd-controller", 1, 3 * MINUTE);
	until(is_contested, 20 * MINUTE, "it says who else sets the replicas");
	assert_named("field manager argocd-controller", "leave spec.replicas out");
	run(12 * HOUR);
	if (laws_scale_writes() - writes > 10)
		fail_msg("%lld writes in twelve hours", (long long)(laws_scale_writes() - writes));
	gitops_apply("chat", "argocd-controller", 1, 0);
	until(is_set_to_two, 8 * HOUR, "once it has left them out, the number is ours again");
	run(HOUR);
	assert_null(contested());
}

/* Apply what stands in Git every so often, whether or not somebody else has changed it. */
static void who_comes_round_is_let_after(millis each, int syncs)
{
	begin();
	int64_t writes = laws_scale_writes();
	gitops_apply("chat", "flux", 1, each);
	until(is_contested, syncs * each + 2 * MINUTE, "it says who else sets the replicas");
	assert_named("field manager flux", "leave spec.replicas out");
	assert_true(laws_scale_writes() - writes < syncs);
	writes = laws_scale_writes();
	run(24 * HOUR);
	if (laws_scale_writes() - writes > 16)
		fail_msg("%lld writes in a day", (long long)(laws_scale_writes() - writes));
}

static void who_heals_within_minutes_is_let_at_the_second_sync(void **state)
{
	(void)state;
	who_comes_round_is_let_after(4 * MINUTE, 2);
}

static void who_comes_every_ten_minutes_is_let_at_the_third_sync(void **state)
{
	(void)state;
	who_comes_round_is_let_after(10 * MINUTE, 3);
}

/* A chart with a number of replicas in it, from `least` to twice that apart: each time the number is ours again at
 * once. */
static void who_deploys_is_answered_each_time(millis least, int times)
{
	for (int i = 0; i < times; i++) {
		world_set_replicas("chat", 1);
		until(is_set_to_two, 10 * MINUTE, "the number is ours again");
		run(least + least * (i * 7 % 10) / 10);
		assert_null(contested());
	}
	assert_false(world_event_told("ReplicasContested"));
}

static void who_deploys_by_the_hour_is_answered_each_time(void **state)
{
	(void)state;
	begin();
	gitops_apply("chat", "helm", 1, HOUR);
	int64_t writes = laws_scale_writes();
	for (int i = 0; i < 24; i++) {
		run(50 * MINUTE);
		assert_null(contested());
		run(10 * MINUTE);
	}
	assert_in_range(laws_scale_writes() - writes, 22, 25);
	assert_false(world_event_told("ReplicasContested"));
}

static void who_deploys_now_and_then_is_answered_each_time(void **state)
{
	(void)state;
	begin();
	who_deploys_is_answered_each_time(20 * MINUTE, 20);
	who_deploys_is_answered_each_time(2 * HOUR, 10);
}

/* A release, and what mends it ten minutes later. */
static void two_deployments_one_soon_after_the_other_are_no_contest(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 6; i++) {
		who_deploys_is_answered_each_time(10 * MINUTE, 2);
		run(20 * MINUTE);
	}
}

/* A manifest that is taken up anew, a leader that begins anew: at most two numbers are undone each time. */
static void a_leader_that_begins_anew_finds_out_as_fast(void **state)
{
	(void)state;
	begin();
	autoscaler_create("chat", 1, 1, "", "");
	until(is_contested, 5 * MINUTE, "it says who else sets the replicas");
	replica_kill(0);
	int64_t writes = laws_scale_writes();
	replica_start(0, &alone);
	until(is_contested, 10 * MINUTE, "the next life says so, too");
	assert_true(laws_scale_writes() - writes <= 2);
}

static bool first_leads(void)
{
	return replica_leads(0);
}

static bool second_leads(void)
{
	return replica_leads(1);
}

/* The one that stands still comes back as a follower, and goes on with what it knew once it leads again. */
static void what_another_of_ours_sets_is_no_contest(void **state)
{
	static const struct replica_settings elected = { .manifest = chat_text, .elects = true };

	(void)state;
	replica_start(0, &elected);
	until(serves_two, 30 * MINUTE, "two replicas of headroom serve");
	replica_start(1, &elected);
	run(MINUTE);
	for (int i = 1; i <= 2; i++) {
		int64_t before = world_replicas("chat");
		replica_pause(0, true);
		until(second_leads, 2 * MINUTE, "the other leads");
		chat->rate = 4 * i;
		run(5 * MINUTE);
		assert_true(world_replicas("chat") > before);
		replica_pause(0, false);
		run(30 * SECOND);
		replica_pause(1, true);
		until(first_leads, 2 * MINUTE, "the first leads again");
		run(2 * MINUTE);
		replica_pause(1, false);
		run(30 * SECOND);
		assert_null(contested());
	}
	assert_false(world_event_told("ReplicasContested"));
}

static bool is_evicting(void)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (pod_is_going(p))
			return true;
	return false;
}

static bool serves_six(void)
{
	return world_ready("chat") >= 6;
}

/* The watches of pods stand still at the API server, for us and for the workload's controller: it has not seen what was
 * evicted, and a lower number would take one that serves in its place. */
static void come_down_on_a_silent_watch(double rate)
{
	begin();
	chat->rate = rate;
	until(serves_six, 40 * MINUTE, "replicas for the traffic serve");
	run(20 * MINUTE);
	chat->rate = 0;
	for (int i = 0; i < 10000000 && !is_evicting(); i++)
		world_events(1);
	assert_true(is_evicting());
	int64_t ended = world_ended_serving();
	run(300); /* we are told, and the other controller not yet */
	apiserver_faults()->holds_events = true;
	run(50 * SECOND);
	apiserver_catch_up();
	until(serves_two, 3 * HOUR, "it comes down");
	assert_int_equal(world_ended_serving(), ended);
}

static void nothing_is_lowered_on_a_silent_watch(void **state)
{
	(void)state;
	come_down_on_a_silent_watch(5);
}

/* Several at once: that the second eviction was told says nothing of the last. */
static void nothing_is_lowered_for_several_on_a_silent_watch(void **state)
{
	(void)state;
	come_down_on_a_silent_watch(8);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(an_autoscaler_is_let_and_followed_when_it_goes),
		SCENARIO(a_scaled_object_is_served),
		SCENARIO(a_slow_autoscaler_is_let_too),
		SCENARIO(an_autoscaler_that_hides_is_let_and_told),
		SCENARIO(fewer_than_stood_are_served_too),
		SCENARIO(an_inference_service_is_told_to_be_external),
		SCENARIO(a_service_without_an_autoscaler_is_told_the_same),
		SCENARIO(an_llm_service_is_told_to_leave_the_number_out),
		SCENARIO(another_preheat_is_let_and_named),
		SCENARIO(an_llm_service_with_a_number_is_told_the_same),
		SCENARIO(a_person_who_scales_once_is_no_contest),
		SCENARIO(a_field_manager_is_tried_again_now_and_then),
		SCENARIO(who_heals_within_minutes_is_let_at_the_second_sync),
		SCENARIO(who_comes_every_ten_minutes_is_let_at_the_third_sync),
		SCENARIO(who_deploys_by_the_hour_is_answered_each_time),
		SCENARIO(who_deploys_now_and_then_is_answered_each_time),
		SCENARIO(two_deployments_one_soon_after_the_other_are_no_contest),
		SCENARIO(a_leader_that_begins_anew_finds_out_as_fast),
		SCENARIO(what_another_of_ours_sets_is_no_contest),
		SCENARIO(nothing_is_lowered_on_a_silent_watch),
		SCENARIO(nothing_is_lowered_for_several_on_a_silent_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
