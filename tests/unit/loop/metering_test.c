/* A controller's books: who holds what, over seeded clusters; nothing is lost between pools, states and labels. */
#include "controller/loop/metering.h"
#include "tests/unit/loop/played_controller.h"

#include <unistd.h>

static const char pools_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, maxSequences: 8 }\n"
	"  costLabels: { costCenter: example.com/cc }\n"
	"  nodeGroups:\n"
	"    - { name: g5, provider: simulated, gpusPerNode: 4, pricePerHour: 4.84, min: 0, max: 10 }\n"
	"---\n"
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: embed, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: embedding\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: embed } } }\n"
	"  nodeGroups: [ { name: g5 } ]\n";

#define ALL	 ((struct hour_range){ 0, INT64_MAX })
#define FOR_EVER (INT64_C(1) << 60)

static char folder[] = "/tmp/preheat-account-XXXXXX";
static char path[64];
static struct controller *c;
static struct pool_snapshot snapshots[2];
static struct pool_plan plans[2];
static struct group_input inputs[2];
static struct group_decision decisions[2];

static void node(const char *name)
{
	char text[700];

	snprintf(text, sizeof text,
		 "{'metadata':{'name':'%s','uid':'%s','labels':{'simulated.preheat.dev/node-group':'g5'}},"
		 "'spec':{'providerID':'simulated://%s'},'status':{'allocatable':{'nvidia.com/gpu':'4','cpu':'64'},"
		 "'conditions':[{'type':'Ready','status':'True'}]}}",
		 name, name, name);
	see(c->cluster, CLUSTER_NODES, text, (struct moment){ clock_now(c->clock), false });
}

static void pod(const char *name, const char *labels, const char *on, int gpus, const char *status)
{
	char text[900];
	unsigned number = 0;

	for (const char *at = name; *at; at++)
		number = number * 31 + (unsigned char)*at;
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'llm','name':'%s','uid':'00000000-0000-0000-0000-0000%08x','labels':{%s},"
		 "'ownerReferences':[{'kind':'ReplicaSet','name':'r','uid':'r','controller':true}]},"
		 "'spec':{'nodeName':'%s','containers':[{'image':'i','resources':{'limits':{'nvidia.com/gpu':'%d'}}}]},"
		 "'status':{%s}}",
		 name, number, labels, on, gpus, status);
	see(c->cluster, CLUSTER_PODS, text, (struct moment){ clock_now(c->clock), false });
}

#define RUNS  "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]"
#define ENDED "'phase':'Succeeded'"

/* What exporters tell. */
static struct device told_devices[8];
static size_t told_count;
struct devices __wrap_device_source_show(const struct device_source *s);
struct devices __wrap_device_source_show(const struct device_source *s)
{
	(void)s;
	return (struct devices){ told_devices, told_count };
}

static void device(const char *of, int64_t use)
{
	struct device *d = &told_devices[told_count++];

	*d = (struct device){ .node = "n1", .id = "0", .namespace = "llm", .pod = of };
	for (int i = 0; i < DEVICE_QUANTITY_COUNT; i++)
		d->value[i] = DEVICE_UNKNOWN;
	d->value[DEVICE_USE] = use;
}

static int set_up(void **state)
{
	(void)state;
	struct error e = { 0 };

	told_count = 0;
	c = play_controller(pools_text);
	c->pools[0]->signals.owns_devices = true;
	snprintf(c->pools[0]->key, sizeof c->pools[0]->key, "llm/chat");
	snprintf(c->pools[1]->key, sizeof c->pools[1]->key, "llm/embed");
	c->history = history_create(&(struct history_setup){ .path = path,
							     .manifest = "none",
							     .fleet = &c->manifest.fleet,
							     .program = "test",
							     .policy = "preheat",
							     .run = "run",
							     .ticks_per_commit = 1,
							     .checkpoint_every = HOUR },
				    &e);
	assert_string_equal(e.message, "");
	c->metering = metering_new();
	for (int i = 0; i < 2; i++) {
		snapshots[i] = (struct pool_snapshot){ .groups = &inputs[i], .group_count = 1 };
		plans[i] = (struct pool_plan){ .groups = &decisions[i], .group_count = 1 };
		inputs[i] = (struct group_input){ 0 };
	}
	c->tick.number = 0;
	c->snapshot = (struct snapshot){ 0, clock_now(c->clock), 15 * SECOND, &c->manifest.fleet, snapshots };
	c->plan = (struct plan){ plans, 2 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	history_close(c->history);
	c->history = NULL;
	metering_free(c->metering);
	close_controller(c);
	unlink(path);
	return 0;
}

static void tick(millis later)
{
	struct error e = { 0 };

	c->snapshot.tick = c->tick.number++;
	c->snapshot.now += later;
	metering_tick(c->metering, c);
	if (!history_append(c->history, &c->snapshot, &c->plan, &e))
		fail_msg("%s", e.message);
	metering_taken(c->metering);
}

static const struct published_label_cost *find(const struct published_pool *p, enum cost_holder holder,
					       const char *center, const char *product)
{
	for (size_t i = 0; i < p->label_cost_count; i++) {
		const struct cost_labels *l = &p->label_costs[i].labels;
		if (l->holder == holder && !strcmp(l->value[LABEL_COST_CENTER], center) &&
		    !strcmp(l->value[LABEL_PRODUCT], product))
			return &p->label_costs[i];
	}
	return NULL;
}

static struct published_pool shown(size_t pool)
{
	struct published_pool p = { 0 };

	metering_show(c->metering, c, pool, &p);
	return p;
}

/* Two nodes of four GPUs; the manifest renames one label. */
static void a_node_is_shared_by_what_its_pods_hold(void **state)
{
	(void)state;
	node("n1");
	node("n2");
	node("n3");
	pod("a", "'app':'chat','example.com/cc':'ml','product':'assistant'", "n1", 2, RUNS);
	pod("b", "'app':'chat','cost-center':'not this one'", "n1", 1, RUNS);
	pod("c", "'app':'other','example.com/cc':'research'", "n2", 1, RUNS); /* of no pool: its group's first pays */
	inputs[0] = (struct group_input){ .ready = 3, .billed_gpus_milli = 12000 };
	tick(15 * SECOND);
	struct published_pool p = shown(0);
	assert_int_equal(cost_billed_gpu_ms(p.cost), 12 * 15000);
	const struct published_label_cost *ml = find(&p, COST_BY_PODS, "ml", "assistant"),
					  *none = find(&p, COST_BY_PODS, "", ""),
					  *research = find(&p, COST_BY_PODS, "research", ""),
					  *nobody = find(&p, COST_NO_POD, "", "");
	assert_non_null(ml);
	assert_non_null(none);
	assert_non_null(research);
	assert_non_null(nobody);
	/* Two thirds of a node, a third, a whole one, and one that nobody uses. */
	assert_in_range(ml->gpu_ms, 4 * 15000 * 2 / 3 - 30, 4 * 15000 * 2 / 3 + 30);
	assert_in_range(none->gpu_ms, 4 * 15000 / 3 - 30, 4 * 15000 / 3 + 30);
	assert_int_equal(research->gpu_ms, 60000);
	assert_int_equal(nobody->gpu_ms + ml->gpu_ms + none->gpu_ms, 120000);
	assert_int_equal(ml->dollars + none->dollars + research->dollars + nobody->dollars, cost_micro_dollars(p.cost));
}

static void what_is_late_counts_until_nobody_saw(void **state)
{
	(void)state;
	inputs[0] = (struct group_input){ .billed_gpus_milli = 1000 };
	tick(15 * SECOND);
	tick(40 * SECOND);
	assert_int_equal(shown(0).cost->watched_ms, 55 * SECOND);
	tick(HOUR); /* away */
	assert_int_equal(shown(0).cost->watched_ms, 70 * SECOND);
	tick(1); /* the wall's clock was set back */
	assert_int_equal(shown(0).cost->watched_ms, 70 * SECOND + 1);
}

static void what_another_leader_billed_is_not_billed_again(void **state)
{
	(void)state;
	inputs[0] = (struct group_input){ .billed_gpus_milli = 1000 };
	tick(15 * SECOND);
	metering_free(c->metering); /* of a process that takes over, with the other's history */
	c->metering = metering_new();
	tick(5 * SECOND);
	assert_int_equal(shown(0).cost->watched_ms, 5 * SECOND);
}

static int64_t held_count(enum holding_kind kind, millis *least)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct holding *held;
	struct error e = { 0 };
	int64_t n = 0;
	size_t count;

	assert_true(history_holdings(c->history, &(struct usage_filter){ 0, FOR_EVER, NULL }, &a, &held, &count, &e));
	for (size_t i = 0; i < count; i++)
		if (held[i].kind == kind) {
			n++;
			*least = held[i].until - held[i].since;
		}
	return n;
}

static void pods_that_ended_are_told_once_it_lasts(void **state)
{
	(void)state;
	millis time = 0;

	node("n1");
	pod("done", "'app':'job'", "n1", 2, ENDED);
	for (int i = 0; i < 40; i++)
		tick(15 * SECOND);
	assert_int_equal(held_count(HOLDING_FINISHED, &time), 0); /* nine minutes and a bit */
	for (int i = 0; i < 20; i++)
		tick(15 * SECOND);
	assert_int_equal(held_count(HOLDING_FINISHED, &time), 1);
	assert_in_range(time, 10 * MINUTE, 11 * MINUTE);
	for (int i = 0; i < 100; i++)
		tick(15 * SECOND);
	assert_int_equal(held_count(HOLDING_FINISHED, &time), 1);
	assert_true(time >= 30 * MINUTE);
	/* It goes: the last that was seen is told. */
	pod("done", "'app':'job'", "n1", 2, RUNS);
	for (int i = 0; i < 8; i++)
		tick(15 * SECOND);
	assert_int_equal(held_count(HOLDING_FINISHED, &time), 1);
	assert_in_range(time, 38 * MINUTE, 40 * MINUTE);
}

static int64_t most_used(enum holding_kind kind)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct holding *held;
	struct error e = { 0 };
	size_t count;

	assert_true(history_holdings(c->history, &(struct usage_filter){ 0, FOR_EVER, NULL }, &a, &held, &count, &e));
	for (size_t i = 0; i < count; i++)
		if (held[i].kind == kind)
			return held[i].used_most_milli;
	return ABSENT;
}

static void ticks(int minutes)
{
	for (int i = 0; i < 4 * minutes; i++)
		tick(15 * SECOND);
}

static void gpus_that_do_nothing_are_told(void **state)
{
	(void)state;
	millis time = 0;

	node("n1");
	pod("busy", "'app':'job'", "n1", 1, RUNS);
	pod("lazy", "'app':'job'", "n1", 1, RUNS);
	pod("mute", "'app':'job'", "n1", 1, RUNS);
	device("busy", 700);
	device("lazy", 0);
	device("mute", DEVICE_UNKNOWN);
	ticks(45);
	assert_int_equal(held_count(HOLDING_UNUSED, &time), 1);
	assert_in_range(time, 30 * MINUTE, 45 * MINUTE);
	told_devices[1].value[DEVICE_USE] = 10; /* it begins to work, and is told for as long as it did not */
	ticks(60);
	assert_int_equal(held_count(HOLDING_UNUSED, &time), 1);
	assert_in_range(time, 43 * MINUTE, 46 * MINUTE);
	assert_int_equal(held_count(HOLDING_OVERSIZED, &time), 0);
}

static void requests_larger_than_ever_used_are_told(void **state)
{
	(void)state;
	millis time = 0;

	node("n1");
	node("n2");
	pod("large", "'app':'job'", "n1", 4, RUNS);
	for (int i = 0; i < 4; i++)
		device("large", i == 0 ? 900 : 0);
	ticks(20);
	assert_int_equal(held_count(HOLDING_OVERSIZED, &time), 0);
	told_devices[1].value[DEVICE_USE] = 900;
	ticks(1);
	told_devices[1].value[DEVICE_USE] = 0;
	ticks(20);
	assert_int_equal(held_count(HOLDING_OVERSIZED, &time), 1);
	assert_int_equal(most_used(HOLDING_OVERSIZED), 2000); /* at once, ever */
	assert_int_equal(held_count(HOLDING_UNUSED, &time), 0);
	for (int i = 0; i < 4; i++)
		told_devices[i].value[DEVICE_USE] = 900;
	ticks(15); /* all of them: nothing to blame any more */
	assert_int_equal(held_count(HOLDING_OVERSIZED, &time), 0);
}

static void quotas_are_kept(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct quota_hour *quotas;
	struct error e = { 0 };
	int64_t hard = 0, used = 0;
	size_t count;

	see(c->cluster, CLUSTER_QUOTAS,
	    "{'metadata':{'namespace':'llm','name':'gpus','uid':'q'},'spec':{'hard':{'requests.nvidia.com/gpu':'8'}},"
	    "'status':{'hard':{'requests.nvidia.com/gpu':'8'},'used':{'requests.nvidia.com/gpu':'3'}}}",
	    (struct moment){ clock_now(c->clock), false });
	for (int i = 0; i < 4; i++)
		tick(15 * SECOND);
	assert_true(
		history_quota_hours(c->history, &(struct usage_filter){ 0, FOR_EVER, "llm" }, &a, &quotas, &count, &e));
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(quotas[i].resource, "requests.nvidia.com/gpu");
		hard += quotas[i].hard_gpu_ms;
		used += quotas[i].used_gpu_ms;
	}
	assert_int_equal(hard, 8 * MINUTE);
	assert_int_equal(used, 3 * MINUTE);
}

/* --- any cluster --- */

static int64_t below(struct random *r, int64_t most)
{
	return (int64_t)(random_next(r) % (uint64_t)most);
}

static void draw_cluster(struct random *r)
{
	static const char *const apps[] = { "chat", "embed", "other" };
	char name[32], on[16], labels[160];

	for (int n = 0; n < 6; n++) {
		snprintf(on, sizeof on, "n%d", n);
		node(on);
		for (int k = 0; k < 4; k++) {
			if (below(r, 3) == 0)
				continue;
			snprintf(name, sizeof name, "p%d-%d", n, k);
			snprintf(labels, sizeof labels, "'app':'%s','example.com/cc':'c%d','product':'%d'",
				 apps[below(r, 3)], (int)below(r, 3), (int)below(r, 2));
			pod(name, labels, on, 1, below(r, 5) ? RUNS : ENDED);
		}
	}
}

static void labels_sum_to_the_bill(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 25; seed++) {
		struct random r = random_stream(seed, "account-test");
		draw_cluster(&r);
		for (int i = 0; i < 2; i++)
			inputs[i] = (struct group_input){ .ready = below(&r, 10),
							  .billed_gpus_milli = below(&r, 24000),
							  .standby_nodes = below(&r, 3) };
		tick(1 + below(&r, 50000));
		for (size_t pool = 0; pool < 2; pool++) {
			struct published_pool p = shown(pool);
			int64_t gpu_ms = 0, dollars = 0;
			for (size_t i = 0; i < p.label_cost_count; i++) {
				gpu_ms += p.label_costs[i].gpu_ms;
				dollars += p.label_costs[i].dollars;
			}
			if (gpu_ms != cost_billed_gpu_ms(p.cost) || dollars != cost_micro_dollars(p.cost))
				fail_msg("seed %llu, pool %zu: labels %lld GPU-ms, %lld micro-dollars; billed %lld, "
					 "%lld",
					 (unsigned long long)seed, pool, (long long)gpu_ms, (long long)dollars,
					 (long long)cost_billed_gpu_ms(p.cost), (long long)cost_micro_dollars(p.cost));
		}
	}
}

static void what_the_history_has_is_what_is_shown(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cost_sums sum[2] = { 0 };
	struct cost_hour *hours;
	struct error e = { 0 };
	struct random r = random_stream(5, "account-test");
	size_t count;

	draw_cluster(&r);
	for (int t = 0; t < 600; t++) {
		inputs[0].billed_gpus_milli = below(&r, 24000);
		inputs[1].ready = below(&r, 5);
		inputs[1].billed_gpus_milli = below(&r, 4000);
		tick(15 * SECOND);
	}
	assert_true(history_cost_hours(c->history, ALL, &a, &hours, &count, &e));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(hours[i].class, hours[i].pool == 0 ? CLASS_INTERACTIVE : CLASS_EMBEDDING);
		cost_add(&sum[hours[i].pool], &hours[i].sums);
	}
	for (size_t pool = 0; pool < 2; pool++)
		assert_memory_equal(&sum[pool], shown(pool).cost, sizeof sum[pool]);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_node_is_shared_by_what_its_pods_hold),
		CASE(what_is_late_counts_until_nobody_saw),
		CASE(what_another_leader_billed_is_not_billed_again),
		CASE(pods_that_ended_are_told_once_it_lasts),
		CASE(gpus_that_do_nothing_are_told),
		CASE(requests_larger_than_ever_used_are_told),
		CASE(quotas_are_kept),
		CASE(labels_sum_to_the_bill),
		CASE(what_the_history_has_is_what_is_shown),
	};

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/history.db", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
