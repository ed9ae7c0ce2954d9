/* A drain is interrupted at each of its steps: in the end every mark and every machine has an owner. */
#include "tests/world/laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The provider's block and the instance type are those of the cloud. */
static const char spec_format[] =
	"{'class':'interactive','objective':{'queueWait':'2s','attainment':'99%%'},'mode':'act',"
	"'workload':{'selector':{'matchLabels':{'app':'chat'}},'scaleTargetRef':{'apiVersion':'apps/v1','kind':"
	"'Deployment','name':'chat'},'gpusPerReplica':1,'maxSequences':8,'prefillTokensPerSecond':'25k',"
	"'interTokenLatency':'30ms'},'signals':{'engine':'vllm','scrape':{'port':8000,'path':'/metrics','interval':"
	"'15s'}},'nodeGroups':[{'name':'gpu',%s,'zone':'z1','instanceType':'%s','capacityType':'on-demand','"
	"gpusPerNode':1,'pricePerHour':1.21,'min':1,"
	"'max':10}],'leadTime':{'provision':{'p50':'45s','p95':'70s'},'register':{'p50':'20s','p95':'30s'},'device':{"
	"'p50':'15s','p95':'30s'},'image':{'p50':'60s','p95':'90s'},'load':{'p50':'60s','p95':'90s'}},'headroom':{'min'"
	":2},'scaleDown':{'after':'5m'}}";

static const struct replica_settings objects = { .watches_objects = true, .elects = true };
static struct world_app *chat;
static struct cloud_group *gpu;

static const struct {
	enum cloud_wire wire;
	const char *block, *type;
} clouds[] = {
	{ CLOUD_SIMULATED, "'provider':'simulated','simulated':{'endpoint':'http://cloud.world'}", "g5.xlarge" },
	{ CLOUD_EKS,
	  "'provider':'eks','eks':{'cluster':'world','nodegroup':'gpu','region':'eu-west-1','endpoint':'" CLOUD_AWS
	  "'}",
	  "g5.xlarge" },
	{ CLOUD_AKS,
	  "'provider':'aks','aks':{'resourceGroup':'rg','cluster':'world','pool':'gpu',"
	  "'subscription':'00000000-0000-0000-0000-000000000000'}",
	  "Standard_NC4as_T4_v3" },
};

enum { CLOUDS = sizeof clouds / sizeof *clouds };
static size_t cloud; /* of the world that begins next */

static struct object *pool(void)
{
	return apiserver_find(KIND_WARM_POOL, "llm", "chat");
}

static void create_pool(void)
{
	char spec[sizeof spec_format + 400];

	snprintf(spec, sizeof spec, spec_format, clouds[cloud].block, clouds[cloud].type);
	apiserver_create(KIND_WARM_POOL,
			 value_of("{'apiVersion':'preheat.dev/v1alpha1','kind':'WarmPool','metadata':{'name':'chat',"
				  "'namespace':'llm','generation':1},'spec':%s}",
				  spec));
}

static void edit(const char *path, const char *text)
{
	value_set_text(pool()->value, path, text);
	value_set_int(pool()->value, "metadata>generation", value_int(pool()->value, "metadata>generation") + 1);
	apiserver_changed(pool());
}

static void set_budget(const char *most)
{
	value_set_text(apiserver_find(KIND_BUDGET, "llm", "chat")->value, "spec>maxUnavailable", most);
}

static int set_up(void **state)
{
	(void)state;
	world_begin(7);
	gpu = cloud_add(&(struct cloud_group){ .name = "gpu",
					       .pool = "chat",
					       .zone = "z1",
					       .instance_type = clouds[cloud].type,
					       .min = 1,
					       .max = 10,
					       .gpus = 1,
					       .has_azure_ids = clouds[cloud].wire == CLOUD_SIMULATED,
					       .wire = clouds[cloud].wire },
			1);
	chat = world_app("chat", 1, 1, "50%");
	create_pool();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	world_end();
	return 0;
}

static void assert_lawful(const char *what)
{
	if (!*laws_broken())
		return;
	laws_print_trace(80);
	fail_msg("%s: %s", what, laws_broken());
}

static void run(millis duration)
{
	world_run(duration);
	assert_lawful("");
}

static void until(bool (*is_so)(void), millis most, const char *what)
{
	bool came = world_until(is_so, most);

	assert_lawful(what);
	if (came)
		return;
	laws_print_trace(80);
	fail_msg("%s: not within %lld s", what, (long long)(most / SECOND));
}

/* --- what there is to see --- */

static bool is_marked(const struct object *node)
{
	const struct value *taints = value_at(node->value, "spec>taints");

	for (const struct value *t = taints ? taints->first : NULL; t; t = t->next)
		if (value_is(t, "key", "preheat.dev/draining"))
			return true;
	const struct value *all = value_at(node->value, "metadata>annotations");
	for (const struct value *a = all ? all->first : NULL; a; a = a->next)
		if (!strcmp(a->key, "preheat.dev/draining"))
			return true;
	return value_is(node->value, "spec>unschedulable", "true");
}

static int64_t count_marked(void)
{
	int64_t count = 0;

	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		const struct node_life *life = n->extra;
		count += is_marked(n) && life->machine->step == STEP_RUNNING;
	}
	return count;
}

static bool nothing_is_marked(void)
{
	return count_marked() == 0;
}

static bool is_any_marked(void)
{
	return count_marked() > 0;
}

static bool runs_there(const struct object *node, bool is_going)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), node->name) && pod_is_going(p) >= is_going)
			return true;
	return false;
}

static bool is_any_evicted(void)
{
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next)
		if (is_marked(n) && runs_there(n, true))
			return true;
	return false;
}

static bool is_any_emptied(void)
{
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next)
		if (is_marked(n) && !runs_there(n, false))
			return true;
	return false;
}

static bool is_any_ended(void)
{
	for (const struct cloud_machine *m = gpu->machines; m; m = m->next)
		if (m->step == STEP_TERMINATING)
			return true;
	return false;
}

static int64_t most_machines;

static bool is_any_gone(void)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = gpu->machines; m; m = m->next)
		count++;
	most_machines = count > most_machines ? count : most_machines;
	return count < most_machines;
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
	return world_desired("chat") <= 2 && world_is_at_rest() && nothing_is_marked();
}

static bool zero_leads(void)
{
	return replica_leader() == 0;
}

static bool one_leads(void)
{
	return replica_leader() == 1;
}

/* Grown, at rest, and then without traffic. */
static void begin(void)
{
	replica_start(0, &objects);
	until(zero_leads, MINUTE, "it leads");
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	chat->rate = 4;
	until(is_grown, 20 * MINUTE, "replicas for the traffic serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	chat->rate = 0;
	most_machines = 0;
}

/* --- every step x every interruption --- */

static const struct {
	const char *name;
	bool (*is_there)(void);
} steps[] = {
	{ "marked", is_any_marked }, { "evicted", is_any_evicted }, { "emptied", is_any_emptied },
	{ "ended", is_any_ended },   { "gone", is_any_gone },
};

static void kill_it(void)
{
	replica_kill(0);
	run(20 * SECOND);
	replica_start(0, &objects);
}

static void stop_it(void)
{
	replica_stop(0);
	run(SECOND);
	replica_start(0, &objects);
}

static void edit_it(void)
{
	edit("spec>scaleDown>after", "4m");
}

static void delete_it(void)
{
	apiserver_delete(pool());
}

static void delete_and_kill_it(void)
{
	apiserver_delete(pool());
	kill_it();
}

static void observe(void)
{
	edit("spec>mode", "observe");
}

static void pause_it(void)
{
	replica_pause(0, true);
	until(one_leads, 2 * MINUTE, "the other leads");
	replica_pause(0, false);
}

static void delete_and_pause_it(void)
{
	apiserver_delete(pool());
	pause_it();
}

static const struct {
	const char *name;
	void (*happens)(void);
	bool (*is_over)(void);
	millis within;
	bool needs_other;
} interruptions[] = {
	{ "kill", kill_it, is_down, 25 * MINUTE, false },
	{ "stop", stop_it, is_down, 25 * MINUTE, false },
	{ "edit", edit_it, is_down, 25 * MINUTE, false },
	{ "delete", delete_it, nothing_is_marked, 12 * MINUTE, false },
	{ "delete and kill", delete_and_kill_it, nothing_is_marked, 12 * MINUTE, false },
	{ "observe", observe, nothing_is_marked, 12 * MINUTE, false },
	{ "lost lease", pause_it, is_down, 25 * MINUTE, true },
	{ "delete and lost lease", delete_and_pause_it, nothing_is_marked, 12 * MINUTE, true },
};

enum { STEPS = sizeof steps / sizeof *steps, INTERRUPTIONS = sizeof interruptions / sizeof *interruptions };

/* So many timers before the step shows; the world is the same each time. */
static void go_to(void **state, size_t step, bool needs_other, int64_t before)
{
	static int64_t events[CLOUDS][2][STEPS];
	int64_t *known = &events[cloud][needs_other][step];

	set_up(state);
	begin();
	if (needs_other) {
		replica_start(1, &objects);
		run(2 * MINUTE);
	}
	if (*known) {
		world_events(*known - before);
		return;
	}
	for (; !steps[step].is_there() && wire_now() < 4 * HOUR; ++*known)
		world_events(1);
	assert_true(steps[step].is_there());
	if (before) {
		tear_down(state);
		go_to(state, step, needs_other, before);
	}
}

/* Each so-manieth interruption is played. */
static unsigned long every = 1;

static void interrupt(void **state, size_t step, size_t how, int64_t before)
{
	static unsigned long count;
	char what[120];

	if (count++ % every)
		return;
	go_to(state, step, interruptions[how].needs_other, before);
	snprintf(what, sizeof what, "cloud %zu: %s, %lld events before a node is %s", cloud, interruptions[how].name,
		 (long long)before, steps[step].name);
	interruptions[how].happens();
	until(interruptions[how].is_over, interruptions[how].within, what);
	run(3 * MINUTE);
	assert_true(interruptions[how].is_over());
	tear_down(state);
}

static void interrupted_at_any_step_every_mark_is_ended(void **state)
{
	static const int64_t before[] = { 0, 1, 6 };

	for (size_t how = 0; how < INTERRUPTIONS; how++)
		for (size_t step = 0; step < STEPS; step++)
			for (size_t i = 0; i < sizeof before / sizeof *before; i++)
				interrupt(state, step, how, before[i]);
	set_up(state);
}

/* As on EKS and AKS: an AKS node is named, and its removal shown, by other calls; on EKS machines are protected. */
static void interrupted_on_the_clouds_every_mark_is_ended(void **state)
{
	for (cloud = 1; cloud < CLOUDS; cloud++)
		for (size_t how = 0; how < INTERRUPTIONS; how++)
			for (size_t step = 0; step < STEPS; step++)
				interrupt(state, step, how, 0);
	cloud = 0;
	set_up(state);
}

/* --- the process ends --- */

enum { NODES_MOST = 16 };
static struct {
	char names[NODES_MOST][64];
	size_t count;
} given_back, left_behind;

static void list_marked(char names[NODES_MOST][64], size_t *count)
{
	*count = 0;
	for (const struct object *n = apiserver_first(KIND_NODE); n && *count < NODES_MOST; n = n->next)
		if (is_marked(n))
			snprintf(names[(*count)++], sizeof *names, "%s", n->name);
}

/* Those of then that are there still; but for one on its way when the process was asked to end, no other. */
static void assert_as_left_behind(const char *what, bool is_over)
{
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		bool was_marked = false;
		for (size_t i = 0; i < left_behind.count; i++)
			was_marked |= !strcmp(left_behind.names[i], n->name);
		if (is_over ? is_marked(n) != was_marked : was_marked && !is_marked(n))
			fail_msg("%s: node %s is %smarked", what, n->name, was_marked ? "no more " : "");
	}
}

static void lose_history(int who)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-reserve", NULL };
	char path[160];

	for (const char *const *end = ends; *end; end++) {
		snprintf(path, sizeof path, "%s%s", replica_history(who), *end);
		unlink(path);
	}
}

/* Who comes after the process that was asked to end. */
static const struct {
	const char *name;
	int who;
	bool forgets; /* with a history that holds nothing */
} next_ones[] = { { "the next process", 0, false },
		  { "the next process, on a new volume", 0, true },
		  { "another replica", 1, false } };

/* While nobody is there the marks stay as they are; whoever comes next ends them, and what they were for. */
static void the_process_ends(void **state, size_t step, size_t next)
{
	char what[120];

	go_to(state, step, false, 0);
	snprintf(what, sizeof what, "cloud %zu: %s, after an end when a node was %s", cloud, next_ones[next].name,
		 steps[step].name);
	list_marked(left_behind.names, &left_behind.count);
	replica_stop(0);
	run(5 * SECOND);
	assert_false(replica_is_up(0));
	assert_as_left_behind(what, false);
	list_marked(left_behind.names, &left_behind.count);
	for (int i = 0; i < 20; i++) {
		run(MINUTE);
		assert_as_left_behind(what, true);
	}
	if (next_ones[next].forgets)
		lose_history(0);
	replica_start(next_ones[next].who, &objects);
	until(is_down, 40 * MINUTE, what);
	run(3 * MINUTE);
	assert_true(is_down());
	tear_down(state);
}

static void who_ends_leaves_its_marks_to_the_next(void **state)
{
	for (cloud = 0; cloud < CLOUDS; cloud++)
		for (size_t next = 0; next < (cloud ? 1 : sizeof next_ones / sizeof *next_ones); next++)
			for (size_t step = 0; step < STEPS; step++)
				the_process_ends(state, step, next);
	cloud = 0;
	set_up(state);
}

/* As docs/deploy.md has it: the pools are deleted, and once no node is drained Preheat goes for good. */
static void an_uninstall_after_the_pools_leaves_no_mark(void **state)
{
	for (cloud = 0; cloud < CLOUDS; cloud++)
		for (size_t step = 0; step < STEPS; step++) {
			go_to(state, step, false, 0);
			delete_it();
			until(nothing_is_marked, 12 * MINUTE, steps[step].name);
			replica_stop(0);
			for (int i = 0; i < 30; i++) {
				run(MINUTE);
				assert_true(nothing_is_marked());
			}
			tear_down(state);
		}
	cloud = 0;
	set_up(state);
}

static void a_pool_that_comes_back_goes_on(void **state)
{
	(void)state;
	begin();
	until(is_any_marked, HOUR, "a node is marked");
	apiserver_delete(pool());
	until(nothing_is_marked, 5 * MINUTE, "the marks are taken off");
	create_pool();
	until(is_down, HOUR, "it comes down");
}

static bool is_told(const char *reason, const char *begins)
{
	for (const struct object *e = apiserver_first(KIND_EVENT); e; e = e->next)
		if (value_is(e->value, "reason", reason) &&
		    !strncmp(value_text(e->value, "note"), begins, strlen(begins)))
			return true;
	return false;
}

/* --- a budget that never allows --- */

static const char *condition(const char *type, const char *key)
{
	const struct value *list = value_at(pool()->value, "status>conditions");

	for (const struct value *c = list ? list->first : NULL; c; c = c->next)
		if (value_is(c, "type", type))
			return value_text(c, key);
	return "";
}

static bool is_blocked(void)
{
	return !strcmp(condition("DrainBlocked", "status"), "True");
}

static void a_budget_that_never_allows_cordons_nothing_and_is_told(void **state)
{
	(void)state;
	begin();
	set_budget("0");
	for (int i = 0; i < 40; i++) {
		run(MINUTE);
		assert_true(nothing_is_marked());
	}
	assert_true(is_blocked());
	assert_non_null(strstr(condition("DrainBlocked", "message"), "budget chat"));
	assert_non_null(strstr(condition("DrainBlocked", "message"), "pod llm/chat-"));
	assert_true(world_event_told("DrainBlocked"));
	assert_int_equal(world_desired("chat"), 7);
	assert_false(is_told("ScaledDown", "7 to "));
	set_budget("50%");
	until(is_down, HOUR, "it comes down");
	run(MINUTE);
	assert_false(is_blocked());
	assert_true(is_told("ScaledDown", "7 to 2 "));
}

/* Replicas are scaled down; what others run beside them must have a place, and they go one node at a time. */
static void what_others_run_there_without_another_place_keeps_the_nodes(void **state)
{
	(void)state;
	begin();
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		char name[80];
		snprintf(name, sizeof name, "web-%s", n->name);
		world_plain_pod(n, name, 40, "");
	}
	for (int i = 0; i < 40; i++) {
		run(MINUTE);
		assert_true(nothing_is_marked());
	}
	assert_true(is_blocked());
	assert_non_null(strstr(condition("DrainBlocked", "message"), "pod llm/web-"));
	assert_non_null(strstr(condition("DrainBlocked", "message"), "would have no place"));
	assert_int_equal(world_desired("chat"), 7);
	world_plain_node("plain", 64);
	until(is_down, HOUR, "it comes down");
	run(MINUTE);
	assert_false(is_blocked());
}

static void a_budget_that_closes_during_a_drain_gives_the_node_back(void **state)
{
	(void)state;
	begin();
	set_budget("1");
	until(is_any_evicted, HOUR, "a pod was evicted");
	set_budget("0");
	until(is_blocked, 5 * MINUTE, "it is told");
	until(nothing_is_marked, 9 * MINUTE, "the nodes work again");
	for (int i = 0; i < 20; i++) {
		run(MINUTE);
		assert_true(nothing_is_marked());
	}
	set_budget("50%");
	until(is_down, 2 * HOUR, "it comes down");
}

static bool is_any_of_them_marked(void)
{
	for (size_t i = 0; i < given_back.count; i++)
		if (is_marked(world_node_of(given_back.names[i])))
			return true;
	return false;
}

static void a_restart_leaves_the_nodes_alone_that_were_given_back(void **state)
{
	(void)state;
	begin();
	set_budget("1");
	until(is_any_evicted, HOUR, "a pod was evicted");
	set_budget("0");
	until(is_blocked, 5 * MINUTE, "it is told");
	list_marked(given_back.names, &given_back.count);
	assert_true(given_back.count > 0);
	until(nothing_is_marked, 9 * MINUTE, "the nodes work again");
	replica_kill(0);
	replica_start(0, &objects);
	until(zero_leads, 2 * MINUTE, "it leads again");
	set_budget("50%");
	for (int i = 0; i < 11 * 60; i++) {
		run(SECOND);
		assert_false(is_any_of_them_marked());
	}
	until(is_down, 2 * HOUR, "it comes down");
}

/* --- machines that others added --- */

static void machines_added_by_hand_stay_as_long_as_told(void **state)
{
	(void)state;
	edit("spec>scaleDown>after", "20m");
	replica_start(0, &objects);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	run(25 * MINUTE);
	cloud_owner_sets(gpu, gpu->desired + 3);
	for (int i = 0; i < 19; i++) {
		run(MINUTE);
		assert_int_equal(world_desired("chat"), 5);
	}
	until(is_down, HOUR, "it comes down");
}

/* --- nodes without GPUs --- */

/* The cloud refuses the end of a machine that shows no GPU: it is nobody's start any more, and goes all the same. */
static void a_node_without_gpus_whose_drain_was_given_up_goes(void **state)
{
	(void)state;
	replica_start(0, &objects);
	until(serves_two, 20 * MINUTE, "two replicas of headroom serve");
	until(world_is_at_rest, 30 * MINUTE, "nothing is on its way");
	gpu->faults.no_device = 1;
	cloud_owner_sets(gpu, gpu->desired + 1);
	until(is_any_marked, 2 * HOUR, "its start is given up");
	gpu->faults.auth = 1;
	until(nothing_is_marked, HOUR, "its drain is given up");
	assert_true(world_desired("chat") > 2);
	until(is_down, HOUR, "it goes");
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a number, each so-manieth interruption; then with a name, or a part of it with *, only those tests. */
int main(int argc, char **argv)
{
	if (argc > 1)
		every = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	assert(every);
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(interrupted_at_any_step_every_mark_is_ended, NULL, tear_down),
		cmocka_unit_test_setup_teardown(interrupted_on_the_clouds_every_mark_is_ended, NULL, tear_down),
		cmocka_unit_test_setup_teardown(who_ends_leaves_its_marks_to_the_next, NULL, tear_down),
		cmocka_unit_test_setup_teardown(an_uninstall_after_the_pools_leaves_no_mark, NULL, tear_down),
		SCENARIO(a_pool_that_comes_back_goes_on),
		SCENARIO(a_budget_that_never_allows_cordons_nothing_and_is_told),
		SCENARIO(what_others_run_there_without_another_place_keeps_the_nodes),
		SCENARIO(a_budget_that_closes_during_a_drain_gives_the_node_back),
		SCENARIO(a_restart_leaves_the_nodes_alone_that_were_given_back),
		SCENARIO(machines_added_by_hand_stay_as_long_as_told),
		SCENARIO(a_node_without_gpus_whose_drain_was_given_up_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
