/* Placeholders and replicas, against an API server that the test plays. */
#include "controller/loop/observe.h"
#include "tests/unit/loop/played_controller.h"

static const char pool_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99%% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { kind: Deployment, name: chat },\n"
	"      warm: %s, maxSequences: 8, interTokenLatency: 30ms }\n"
	"  nodeGroups:\n"
	"    - { name: g5, provider: simulated, gpusPerNode: 1, pricePerHour: 1.2, min: 0, max: 10 }\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"
	"  mode: %s\n";

#define CHAT  "'app':'chat'"
#define HOLDS "'preheat.dev/placeholder':'chat'"

static const char workload[] = "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"template\":{\"spec\":{"
			       "\"containers\":[{\"image\":\"vllm:1\",\"resources\":{\"limits\":"
			       "{\"nvidia.com/gpu\":\"1\"}}}],\"nodeSelector\":{\"gpu\":\"a10\"}}}}}";
static const char newer[] =
	"{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"image\":\"vllm:2\",\"resources\":{\"limits\":"
	"{\"nvidia.com/gpu\":\"1\"}}}],\"nodeSelector\":{\"gpu\":\"a10\"}}}}}";

static struct controller *c;

static void open_warm(const char *how, const char *mode)
{
	char text[2048];

	snprintf(text, sizeof text, pool_text, how, mode);
	c = play_controller(text);
	server.workload = workload;
	server.replicas = 2;
	have_machine(0, "m1", MACHINE_RUNNING);
	have_machine(0, "m2", MACHINE_RUNNING);
	have_machine(0, "m3", MACHINE_RUNNING);
	have_node(c, "m1", "", "");
	have_node(c, "m2", "", "");
	have_node(c, "m3", "", "");
	cloud_tells(c, 0);
}

static int held(void **state)
{
	(void)state;
	open_warm("placeholders", "act");
	return 0;
}

static int scaled(void **state)
{
	(void)state;
	open_warm("replicas", "act");
	return 0;
}

static int watched(void **state)
{
	(void)state;
	open_warm("placeholders", "observe");
	return 0;
}

static int paused(void **state)
{
	(void)state;
	open_warm("replicas", "paused");
	return 0;
}

static int buffered(void **state)
{
	(void)state;
	open_warm("buffer", "act");
	server.buffers = "v1beta1";
	return 0;
}

static int tear_down(void **state)
{
	server.buffers = NULL;
	(void)state;
	close_controller(c);
	return 0;
}

static void decide(int64_t replicas)
{
	act_on(c, (struct group_decision){ 0 }, replicas);
	settle_calls();
}

static void hold_what_does_not_serve(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	decide(3);
	const char *applied = asked("PATCH", "/deployments/chat-placeholder?fieldManager=preheat");
	assert_non_null(applied);
	assert_non_null(strstr(applied, "\"replicas\":2"));
	assert_non_null(strstr(applied, "\"image\":\"vllm:1\""));
	assert_non_null(strstr(applied, "\"nodeSelector\":{\"gpu\":\"a10\"}"));
	assert_non_null(strstr(applied, "\"priorityClassName\":\"preheat-placeholder\""));
	assert_non_null(
		strstr(applied, "\"requests\":{\"nvidia.com/gpu\":\"1\"},\"limits\":{\"nvidia.com/gpu\":\"1\"}"));
	assert_non_null(strstr(applied, "\"preheat.dev/ignore\":\"gpu-needs-pool, cost-labels\""));
	assert_null(asked("/scale", ""));
	forget_log();
	have_pod(c, "h", HOLDS, "m2", true);
	have_pod(c, "i", HOLDS, "m3", true);
	decide(3);
	assert_int_equal(server.log_count, 0);
}

/* Somebody else scales up: the pods that wait push placeholders out, and as many fewer are wanted. */
static void more_replicas_leave_fewer_placeholders(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	decide(3);
	forget_log();
	have_pod(c, "h", HOLDS, "m2", true);
	have_pod(c, "b", CHAT, "", false);
	decide(3);
	assert_non_null(strstr(asked("PATCH", "chat-placeholder"), "\"replicas\":1"));
	have_pod(c, "b", CHAT, "m3", true);
	have_pod(c, "d", CHAT, "", false);
	decide(3);
	assert_non_null(strstr(asked("PATCH", "chat-placeholder"), "\"replicas\":0"));
}

static void a_new_image_is_rolled_out(void **state)
{
	(void)state;
	decide(2);
	have_pod(c, "h", HOLDS, "m2", true);
	have_pod(c, "i", HOLDS, "m3", true);
	forget_log();
	server.workload = newer;
	play_until(play_now() + MINUTE + SECOND);
	decide(2);
	const char *applied = asked("PATCH", "chat-placeholder");
	assert_non_null(applied);
	assert_non_null(strstr(applied, "vllm:2"));
	forget_log();
	play_until(play_now() + MINUTE + SECOND);
	decide(2);
	assert_non_null(asked("GET", "/deployments/chat"));
	assert_null(asked("PATCH", "")); /* as it was */
}

static void a_deployment_that_was_deleted_comes_back(void **state)
{
	(void)state;
	decide(2);
	have_pod(c, "h", HOLDS, "m2", true);
	decide(2);
	forget_log();
	pod_goes(c, "h");
	decide(2);
	assert_non_null(strstr(asked("PATCH", "chat-placeholder"), "\"replicas\":2"));
}

static void a_workload_that_is_missing_makes_none(void **state)
{
	(void)state;
	server.workload = NULL;
	decide(2);
	assert_non_null(asked("GET", "/deployments/chat"));
	assert_null(asked("PATCH", ""));
	server.workload = newer;
	play_until(play_now() + 11 * SECOND);
	decide(2);
	assert_non_null(asked("PATCH", "chat-placeholder"));
}

static void those_of_a_pool_that_is_warmed_otherwise_now_go(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "h", HOLDS, "m2", true);
	decide(2);
	const char *shrunk = asked("PATCH", "/deployments/chat-placeholder");
	assert_non_null(shrunk);
	assert_non_null(strstr(shrunk, "{\"spec\":{\"replicas\":0}}"));
	pod_goes(c, "h");
	forget_log();
	decide(2);
	assert_null(asked("PATCH", ""));
}

static void a_watched_pool_is_not_touched(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "h", HOLDS, "m2", true);
	decide(5);
	assert_int_equal(server.log_count, 0);
}

static void a_dry_run_asks_nothing(void **state)
{
	(void)state;
	c->context.is_barred = true;
	decide(5);
	assert_int_equal(server.log_count, 0);
}

static void sets_what_was_decided(void **state)
{
	(void)state;
	decide(5);
	assert_non_null(
		strstr(asked("PUT", "/deployments/chat/scale") ?: asked("PATCH", "/deployments/chat/scale"), "5"));
	assert_int_equal(c->pools[0]->scale.is, 5);
}

static void what_others_set_is_seen_and_set_again(void **state)
{
	(void)state;
	decide(5);
	forget_log();
	decide(5);
	assert_int_equal(server.log_count, 0);
	server.replicas = 1; /* kubectl scale */
	play_until(play_now() + MINUTE + SECOND);
	decide(5);
	assert_non_null(asked("GET", "/scale"));
	assert_non_null(strstr(asked("PUT", "/scale") ?: asked("PATCH", "/scale"), "5"));
	forget_log();
	play_until(play_now() + MINUTE + SECOND);
	decide(5);
	assert_non_null(asked("GET", "/scale"));
	assert_null(asked("PUT", "/scale") ?: asked("PATCH", "/scale"));
}

static void a_hung_call_ends_when_we_stop(void **state)
{
	(void)state;
	act_on(c, (struct group_decision){ 0 }, 5);
	play_until(play_now() + 10);
	assert_true(c->pools[0]->scale.is_calling);
	tick_stop(c);
	play_until(play_now() + 10);
	assert_false(c->pools[0]->scale.is_calling);
	assert_int_equal(server.waiting_count, 0);
}

static void a_hung_placeholder_ends_when_we_stop(void **state)
{
	(void)state;
	act_on(c, (struct group_decision){ 0 }, 5);
	play_until(play_now() + 10);
	assert_false(headroom_actor.is_idle(c));
	tick_stop(c);
	play_until(play_now() + 10);
	assert_true(headroom_actor.is_idle(c));
}

static void never_fewer_than_serve_outside_of_drains(void **state)
{
	(void)state;
	server.replicas = 3;
	have_pod(c, "a", CHAT, "m1", true);
	have_pod(c, "b", CHAT, "m2", true);
	have_pod(c, "d", CHAT, "m3", true);
	decide(1); /* the plan may be wrong: replicas go with their nodes */
	assert_null(asked("PUT", "/scale") ?: asked("PATCH", "/scale"));
	assert_int_equal(c->pools[0]->scale.is, 3);
}

/* Else the pods that go would be taken for what others want. */
static void what_was_lowered_counts_for_a_moment(void **state)
{
	(void)state;
	server.replicas = 4;
	decide(2);
	assert_int_equal(c->pools[0]->scale.is, 2);
	assert_int_equal(workload_scale_set(c, 0), 4);
	play_until(play_now() + 4 * SECOND);
	assert_int_equal(workload_scale_set(c, 0), 2);
}

#define OTHERS "'preheat.dev/placeholder':'gone'"
#define LEFT   OTHERS ",'preheat.dev/keeper':'default.preheat'"

/* The pool was taken out of the file, perhaps while nobody ran: its placeholders would hold GPUs for ever. */
static void those_of_a_pool_that_is_no_more_go(void **state)
{
	(void)state;
	have_pod(c, "l", LEFT, "m3", true);
	decide(2);
	const char *ended = asked("PATCH", "/namespaces/llm/deployments/gone-placeholder");
	assert_non_null(ended);
	assert_non_null(strstr(ended, "{\"spec\":{\"replicas\":0}}"));
	forget_log();
	pod_goes(c, "l");
	play_until(play_now() + MINUTE);
	decide(2);
	assert_null(asked("PATCH", "gone-placeholder"));
}

/* Made by somebody else, or by another controller of the cluster, whose pools we do not know. */
static void those_of_others_stay(void **state)
{
	(void)state;
	have_pod(c, "l", OTHERS, "m3", true);
	decide(2);
	assert_null(asked("PATCH", "gone-placeholder"));
}

static void nothing_left_over_is_ended_in_a_dry_run(void **state)
{
	(void)state;
	c->context.is_barred = true;
	have_pod(c, "l", LEFT, "m3", true);
	decide(2);
	assert_int_equal(server.log_count, 0);
}

/* Room for what was decided and does not serve yet; somebody else sets the replicas and brings the nodes. */
static void room_is_kept_by_a_buffer(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	decide(3);
	const char *applied =
		asked("PATCH", "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/llm/capacitybuffers/chat-preheat?"
			       "fieldManager=preheat");
	assert_non_null(applied);
	assert_non_null(strstr(applied, "\"replicas\":2"));
	assert_non_null(
		strstr(applied, "\"scalableRef\":{\"apiGroup\":\"apps\",\"kind\":\"Deployment\",\"name\":\"chat\"}"));
	assert_null(asked("/scale", ""));
	assert_null(asked("/deployments/", ""));
	forget_log();
	decide(3);
	assert_int_equal(server.log_count, 0);
	have_pod(c, "b", CHAT, "m2", false);
	decide(3);
	assert_non_null(strstr(asked("PATCH", "chat-preheat"), "\"replicas\":1"));
}

/* The other autoscaler goes on by itself: what it brings late was not asked for in vain. */
static void a_buffer_stands_while_nodes_do_not_come(void **state)
{
	(void)state;
	have_pod(c, "a", CHAT, "m1", true);
	decide(3);
	forget_log();
	static const struct pool_decision late[] = {
		{ .wished = 1, .floor = 3, .decided = 1, .held_by = LIMIT_STOCKOUT },
		{ .wished = 1, .floor = 3, .decided = 1, .held_by = LIMIT_MIN },
		{ .wished = 3, .decided = 2, .held_by = LIMIT_NONE },
	};
	for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
		act_on_decision(c, (struct group_decision){ 0 }, late[i]);
		settle_calls();
		assert_int_equal(server.log_count, 0);
	}
	act_on_decision(c, (struct group_decision){ 0 },
			(struct pool_decision){ .wished = 3, .decided = 2, .held_by = LIMIT_BUDGET });
	settle_calls();
	assert_non_null(strstr(asked("PATCH", "chat-preheat"), "\"replicas\":1"));
}

static void an_older_version_does_too(void **state)
{
	(void)state;
	server.buffers = "v1alpha1";
	decide(2);
	assert_non_null(
		asked("PATCH", "/apis/autoscaling.x-k8s.io/v1alpha1/namespaces/llm/capacitybuffers/chat-preheat"));
}

static void without_buffers_nothing_is_written(void **state)
{
	(void)state;
	server.buffers = NULL;
	decide(2);
	assert_null(asked("PATCH", "capacitybuffers"));
	assert_true(headroom_actor.is_idle(c));
	server.buffers = "v1beta1"; /* switched on later */
	play_until(play_now() + MINUTE);
	decide(2);
	assert_non_null(asked("PATCH", "capacitybuffers"));
}

static void a_hung_buffer_ends_when_we_stop(void **state)
{
	(void)state;
	act_on(c, (struct group_decision){ 0 }, 5);
	play_until(play_now() + 10);
	assert_false(headroom_actor.is_idle(c));
	tick_stop(c);
	play_until(play_now() + 10);
	assert_true(headroom_actor.is_idle(c));
}

#define BUFFERED(f) cmocka_unit_test_setup_teardown(f, buffered, tear_down)
#define HELD(f)	    cmocka_unit_test_setup_teardown(f, held, tear_down)
#define SCALED(f)   cmocka_unit_test_setup_teardown(f, scaled, tear_down)

/* While somebody else sets the replicas, every pod that waits is that owner's wish, however large our number was. */
static void pods_of_another_owner_are_wanted(void **state)
{
	struct live_pool *p = c->pools[0];

	(void)state;
	p->scale.wanted = 2;
	p->scale.is = 4;
	p->view.ready = 1;
	p->view.pending = 2;
	assert_int_equal(workload_scale_set(c, 0), 4);
	assert_int_equal(observe_wanted_pods(c, 0), 0);
	p->scale.contest.is_left = true;
	assert_int_equal(workload_scale_set(c, 0), ABSENT);
	assert_int_equal(observe_wanted_pods(c, 0), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HELD(hold_what_does_not_serve),
		HELD(more_replicas_leave_fewer_placeholders),
		HELD(a_new_image_is_rolled_out),
		HELD(a_deployment_that_was_deleted_comes_back),
		HELD(a_workload_that_is_missing_makes_none),
		SCALED(those_of_a_pool_that_is_no_more_go),
		SCALED(those_of_others_stay),
		SCALED(nothing_left_over_is_ended_in_a_dry_run),
		SCALED(those_of_a_pool_that_is_warmed_otherwise_now_go),
		cmocka_unit_test_setup_teardown(a_watched_pool_is_not_touched, watched, tear_down),
		cmocka_unit_test_setup_teardown(a_watched_pool_is_not_touched, paused, tear_down),
		SCALED(a_dry_run_asks_nothing),
		HELD(a_dry_run_asks_nothing),
		SCALED(sets_what_was_decided),
		SCALED(what_others_set_is_seen_and_set_again),
		SCALED(a_hung_call_ends_when_we_stop),
		HELD(a_hung_placeholder_ends_when_we_stop),
		SCALED(never_fewer_than_serve_outside_of_drains),
		SCALED(what_was_lowered_counts_for_a_moment),
		BUFFERED(room_is_kept_by_a_buffer),
		BUFFERED(a_buffer_stands_while_nodes_do_not_come),
		BUFFERED(an_older_version_does_too),
		BUFFERED(without_buffers_nothing_is_written),
		BUFFERED(a_hung_buffer_ends_when_we_stop),
		BUFFERED(a_dry_run_asks_nothing),
		SCALED(pods_of_another_owner_are_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
