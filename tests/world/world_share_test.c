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
	bool is_sglang, has_stock;
} all;

static const char two_slots[] = "  budget: { dollarsPerHour: 2.5 }\n";

/* Of the next world, for each model. */
static const char *signals[MODELS_MOST];

static void read_by(int model, const char *how)
{
	signals[model] = how;
}

/* Of the next world. */
static const char *queue_wait = "10s";

/* The group that all pools name. */
static void write_group(int gpus, int least)
{
	buf_printf(&all.manifest,
		   "  nodeGroups:\n"
		   "    - { name: shared, provider: simulated, simulated: { endpoint: \"http://cloud.world\" },\n"
		   "        zone: z1, instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: %d,\n"
		   "        pricePerHour: 1.21, min: %d, max: 8 }\n"
		   "---\n",
		   gpus, least);
}

static void write_pool(int model, const char *mode)
{
	const char *name = all.names[model];
	const char *how = signals[model] ? signals[model] : "scrape: { port: 8000, path: /metrics, interval: 5s }";

	buf_printf(&all.manifest,
		   "apiVersion: preheat.dev/v1alpha1\n"
		   "kind: WarmPool\n"
		   "metadata: { name: %s, namespace: llm }\n"
		   "spec:\n"
		   "  mode: %s\n"
		   "  share: { name: small, level: %d, wakeWithin: 30s }\n"
		   "  objective: { queueWait: %s, attainment: 95%% }\n"
		   "  workload: { selector: { matchLabels: { app: %s } }, gpusPerReplica: 1, maxSequences: 8 }\n"
		   "  signals: { engine: %s, %s,\n"
		   "      queue: { json: { url: \"http://gateway.world/%s\", path: waiting }, interval: 5s } }\n",
		   name, mode, all.level, queue_wait, name, all.is_sglang ? "sglang" : "vllm", how, name);
	write_group(all.has_stock ? 1 : 12, all.has_stock);
}

/* A pod of it holds the GPU of a node; engines there ask for none. */
static void write_stock(const char *more)
{
	buf_printf(&all.manifest,
		   "apiVersion: preheat.dev/v1alpha1\n"
		   "kind: WarmPool\n"
		   "metadata: { name: small, namespace: llm }\n"
		   "spec:\n"
		   "  mode: act\n"
		   "  objective: { queueWait: 10s, attainment: 95%% }\n"
		   "  workload: { scaleTargetRef: { kind: Deployment, name: small },\n"
		   "      selector: { matchLabels: { app: small } } }\n"
		   "  scaleDown: { after: 5m }\n"
		   "  signals: { engine: share }\n%s",
		   more);
	write_group(1, 1);
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
	bool is_sglang = all.is_sglang;

	world_begin(seed);
	memset(&all, 0, sizeof all);
	all.models = models;
	all.slots = slots;
	all.level = level;
	all.is_sglang = is_sglang;
	world_group("shared", "shared", 12, 0, 8, nodes);
	wire_host("http://gateway.world/", serve_gateway);
	for (int i = 0; i < models; i++) {
		snprintf(all.names[i], sizeof all.names[i], "m%02d", i);
		all.apps[i] = world_shared_app(all.names[i], "shared", slots);
		all.apps[i]->service_s = 2;
		all.apps[i]->is_sglang = is_sglang;
		all.apps[i]->has_claims = nodes < slots;
		write_pool(i, mode);
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

/* A stock of one slot, which all models have an engine on, as on any other that comes. */
static void begin_stock(int models, uint64_t seed)
{
	enum { SLOTS_MOST = 8 };

	world_begin(seed);
	memset(&all, 0, sizeof all);
	all.models = models;
	all.slots = all.level = 1;
	all.has_stock = true;
	world_group("shared", "small", 1, 1, SLOTS_MOST, 1);
	wire_host("http://gateway.world/", serve_gateway);
	world_app("small", 1, 1, "");
	write_stock("");
	for (int i = 0; i < models; i++) {
		snprintf(all.names[i], sizeof all.names[i], "m%02d", i);
		all.apps[i] = world_shared_app(all.names[i], "small", SLOTS_MOST);
		all.apps[i]->gpus = 0;
		all.apps[i]->is_daemon = true;
		value_set(apiserver_find(KIND_DEPLOYMENT, "llm", all.names[i])->value, "spec>template>spec>containers",
			  value_of("[{'name':'server','image':'i:1'}]"));
		all.apps[i]->service_s = 2;
		write_pool(i, "act");
	}
	all.settings.manifest = all.manifest.text;
	until(is_up, HOUR, "the engines do not start");
	for (int i = 0; i < models; i++) {
		engines_label(all.names[i], 0, "asleep");
		engines_sleep(all.names[i], 1, 1);
	}
}

static int end(void **state)
{
	buf_release(&all.manifest);
	all.level = 1;
	all.is_sglang = false;
	memset(signals, 0, sizeof signals);
	queue_wait = "10s";
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

/* SGLang does not tell that it sleeps: what its calls made of it counts, until it starts anew. */
static void what_starts_anew_is_awake(void **state)
{
	(void)state;
	all.is_sglang = true;
	begin(2, 1, 1, "act");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	all.apps[0]->rate = 0;
	run(MINUTE);
	all.apps[1]->rate = 1;
	until(second_is_served, 2 * MINUTE, "nobody wakes the second");
	all.apps[1]->rate = 0;
	for (int i = 0; i < 2; i++) {
		run(8 * MINUTE); /* both sleep */
		if (i)		 /* whoever leads next has not seen it */
			replica_stop(0);
		engines_crash("m01", 1);
		run(2 * MINUTE);
		if (i)
			replica_start(0, &all.settings);
		int64_t before = served(0);
		all.apps[0]->rate = 1;
		run(10 * MINUTE);
		assert_true(served(0) > before + 500);
		all.apps[0]->rate = 0;
	}
	replica_stop(0);
	assert_int_equal(count_moves(NULL), 0);
	assert_shares_replay();
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

/* --- what is known late, or not at all --- */

/* Whoever is asked by turns. */
static void be_asked_by_turns(void (*each_second)(void))
{
	for (int i = 0; i < 12 * 60; i++) {
		all.apps[0]->rate = i / 120 % 2 ? 0.05 : 0.5;
		all.apps[1]->rate = i / 120 % 2 ? 0.5 : 0.05;
		run(SECOND);
		each_second();
	}
	assert_true(served(0) > 50 && served(1) > 50);
}

static struct {
	char pod[64];
	struct model_server engine;
	millis at;
} scraped[MODELS_MOST];
static millis scrape_every;

/* Each pod in its turn. */
static void scrape_pods(void)
{
	int i = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		if (!pod_app(p) || !pod_life(p)->is_up)
			continue;
		for (i = 0; scraped[i].pod[0] && strcmp(scraped[i].pod, p->name) != 0;)
			i++;
		if (scraped[i].pod[0] && wire_now() - scraped[i].at < scrape_every - i * 100)
			continue;
		snprintf(scraped[i].pod, sizeof scraped[i].pod, "%s", p->name);
		scraped[i].engine = pod_life(p)->engine;
		scraped[i].at = wire_now();
	}
}

static bool shown_by(const char *query, int i, double *value)
{
	const struct model_server *e = &scraped[i].engine;
	const struct {
		const char *text;
		double value;
	} rows[] = {
		{ "up%7B", 1 },
		{ "timestamp", (double)(WIRE_EPOCH + scraped[i].at) / 1000 },
		{ "num_requests_running", e->running },
		{ "num_requests_waiting", e->waiting },
		{ "discard_all", e->sleeps == 2 },
		{ "engine_sleep_state", !e->sleeps },
		{ "time_to_first_token_seconds_count", (double)e->started },
		{ "request_success", (double)e->completed },
	};

	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		if (strstr(query, rows[k].text)) {
			*value = rows[k].value;
			return true;
		}
	return false;
}

static void serve_prometheus(struct wire_call *c)
{
	CLEANUP(buf_release) struct buf page = { 0 };
	millis wall = WIRE_EPOCH + wire_now();
	const char *between = "";
	double value;

	buf_text(&page, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (int i = 0; i < MODELS_MOST && scraped[i].pod[0]; i++) {
		if (!shown_by(*c->body ? c->body : c->path, i, &value))
			continue;
		buf_printf(&page,
			   "%s{\"metric\":{\"namespace\":\"llm\",\"pod\":\"%s\"},\"value\":[%lld.%03lld,\"%.3f\"]}",
			   between, scraped[i].pod, (long long)(wall / 1000), (long long)(wall % 1000), value);
		between = ",";
	}
	buf_text(&page, "]}}");
	wire_answer(c, 200, NULL, page.text);
}

/* What a Prometheus server shows is as old as its scrape: of before a move it says nothing. */
static void what_was_scraped_before_a_move_is_old(void **state)
{
	static const struct {
		const char *how;
		millis scrape;
	} cases[] = {
		{ "prometheus: { url: \"http://prometheus.world\", interval: 15s }", 30 * SECOND },
		{ "prometheus: { url: \"http://prometheus.world\", interval: 5s }", 15 * SECOND },
	};

	for (size_t i = 0; i < 2; i++) {
		memset(scraped, 0, sizeof scraped);
		scrape_every = cases[i].scrape;
		for (int k = 0; k < 2; k++)
			read_by(k, cases[i].how);
		begin(2, 1, 1, "act");
		wire_host("http://prometheus.world/", serve_prometheus);
		scrape_pods();
		replica_start(0, &all.settings);
		be_asked_by_turns(scrape_pods);
		replica_stop(0);
		if (!i)
			end(state);
	}
}

/* One model's page is missed for seconds just as another has moved: what is known of engines is kept. */
static void a_missed_reading_forgets_nothing(void **state)
{
	for (int k = 0; k < 20; k++) {
		for (int i = 0; i < 3; i++)
			read_by(i, i == 2 ? "scrape: { port: 8000, path: /metrics, interval: 2s }"
					  : "scrape: { port: 8000, path: /metrics, interval: 15s }");
		begin(3, 2, (uint64_t)k + 1, "act");
		replica_start(0, &all.settings);
		all.apps[2]->rate = 1;
		run(MINUTE);
		all.apps[0]->rate = 1;
		run(MINUTE);
		all.apps[0]->rate = 0;
		run(30 * SECOND);
		all.apps[1]->rate = 1;
		for (int i = 0; i < 80; i++) {
			all.apps[2]->is_mute = i >= 2 * k && i < 2 * k + 3;
			run(SECOND);
		}
		replica_stop(0);
		if (k < 19)
			end(state);
	}
}

/* Its engine is left where it is, and has its GPU. */
static void who_leaves_the_share_keeps_its_gpu(void **state)
{
	(void)state;
	begin(2, 1, 1, "act");
	replica_start(0, &all.settings);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	replica_stop(0);
	buf_clear(&all.manifest);
	write_pool(1, "act");
	all.settings.manifest = all.manifest.text;
	replica_start(0, &all.settings);
	all.apps[1]->rate = 1;
	run(5 * MINUTE);
	assert_int_equal(served(1), 0);
	assert_int_equal(engines_count("m00", 0), 1);
	replica_stop(0);
}

static void who_embeds_is_woken(void **state)
{
	(void)state;
	begin(2, 1, 1, "act");
	all.apps[0]->has_no_completions = true;
	replica_start(0, &all.settings);
	all.apps[0]->rate = 1;
	until(first_is_served, MINUTE, "nobody wakes the first");
	replica_stop(0);
	assert_false(world_event_told("EngineBroken"));
}

static void hold_events(const struct apiserver_write *w)
{
	if (!strcmp(w->sub, "eviction"))
		apiserver_faults()->holds_events = true;
}

/* Evicted is not gone: until that is seen its slot is taken. */
static void a_broken_engine_holds_its_gpu(void **state)
{
	(void)state;
	begin(2, 1, 1, "act");
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->wakes_hang = 1;
	apiserver_on_write(hold_events);
	all.apps[0]->rate = 1;
	run(20 * SECOND);
	all.apps[0]->rate = 0;
	all.apps[1]->rate = 1;
	for (int i = 0; i < 180; i++) {
		run(SECOND);
		if (!apiserver_faults()->holds_events)
			continue;
		run(SECOND);
		apiserver_faults()->holds_events = false;
		apiserver_catch_up();
	}
	assert_true(world_event_told("EngineBroken"));
	assert_true(served(1) > 10);
	replica_stop(0);
}

/* Nobody knows what it does: it is left alone, and all others go on. */
static void a_mute_engine_stops_nobody_else(void **state)
{
	(void)state;
	begin(3, 2, 1, "act");
	replica_start(0, &all.settings);
	all.apps[2]->rate = 1;
	run(2 * MINUTE);
	all.apps[2]->is_mute = true;
	run(2 * MINUTE);
	all.apps[0]->rate = 1;
	until(first_is_served, 2 * MINUTE, "nobody wakes the first");
	assert_int_equal(engines_count("m02", 0), 1);
	replica_stop(0);
}

/* What begins and ends between two readings is work, too. */
static void short_requests_keep_it_awake(void **state)
{
	(void)state;
	begin(2, 2, 1, "act");
	all.apps[0]->service_s = 0.015;
	replica_start(0, &all.settings);
	all.apps[0]->rate = 1;
	run(2 * MINUTE);
	for (int i = 0; i < 3600; i++) {
		run(SECOND);
		assert_true(!all.apps[0]->waiting);
	}
	replica_stop(0);
}

/* A reading of before it woke says nothing of what runs there now. */
static void who_just_woke_is_not_idle(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		read_by(i, "scrape: { port: 8000, path: /metrics, interval: 15s }");
	begin(2, 1, 1, "act");
	all.apps[0]->service_s = all.apps[1]->service_s = 20;
	replica_start(0, &all.settings);
	run(MINUTE);
	all.apps[0]->rate = all.apps[1]->rate = 0.3;
	run(3 * MINUTE);
	assert_int_equal(count_moves("requests went on there"), 0);
	assert_true(served(0) + served(1) > 10);
	replica_stop(0);
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

/* --- the rule --- */

/* Each for ten seconds of every eight minutes. */
static void be_asked_now_and_then(int times)
{
	for (int i = 0; i < times; i++) {
		all.apps[0]->rate = all.apps[1]->rate = 1;
		run(10 * SECOND);
		all.apps[0]->rate = all.apps[1]->rate = 0;
		run(8 * MINUTE - 10 * SECOND);
	}
}

static void assert_one_choice(const char *words)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct share_choice_filter f = { 0, INT64_MAX, "llm/small", 100 };
	struct share_choices found;
	struct error e = { 0 };
	int64_t choices = 0;
	struct history *h = history_open(replica_history(0), &e);

	if (!h || !share_choice_find(h, &f, &a, &found, &e))
		fail_msg("%s", e.message);
	for (size_t i = 0; i < found.count; i++) {
		choices += *found.items[i].why != '\0';
		if (*found.items[i].why && !strstr(found.items[i].why, words))
			fail_msg("%s", found.items[i].why);
	}
	assert_int_equal(choices, 1);
	history_close(h);
}

/* A slot for each: by the first rule both sleep after five idle minutes, and wait for a wake whenever they are asked.
 */
static void who_need_not_sleep_stays_awake(void **state)
{
	(void)state;
	queue_wait = "2s";
	begin(2, 2, 1, "act");
	replica_start(0, &all.settings);
	be_asked_now_and_then(15);
	int64_t before = count_moves("done");
	assert_true(before > 10);
	be_asked_now_and_then(4);
	assert_int_equal(count_moves("done"), before);
	replica_stop(0);
	replica_start(0, &all.settings); /* and remembers it */
	be_asked_now_and_then(3);
	assert_int_equal(count_moves("done"), before);
	replica_stop(0);
	assert_one_choice("idle engines sleep only for another");
	assert_shares_replay();
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
		if (dies_at < count) {
			bool is_sglang = all.is_sglang;
			end(state);
			all.is_sglang = is_sglang;
		}
	}
}

static void killed_between_any_two_steps(void **state)
{
	be_killed_at_steps(32, 1, state);
}

/* Whoever goes on cannot ask how it is: what is told the same again crashes, starts anew, and serves. */
static void killed_between_any_two_steps_of_sglang(void **state)
{
	all.is_sglang = true;
	be_killed_at_steps(32, 1, state);
}

/* The weights are loaded again in steps of their own. */
static void killed_between_any_two_steps_of_level_2(void **state)
{
	be_killed_at_steps(44, 2, state);
}

static int64_t unserved(void)
{
	int64_t waiting = 0;

	for (int i = 0; i < all.models; i++)
		waiting += all.apps[i]->waiting;
	return waiting;
}

static bool all_are_served(void)
{
	return !unserved();
}

static bool has_three_slots(void)
{
	return world_ready("small") == 3 && !unserved();
}

static bool has_few_slots(void)
{
	return world_ready("small") <= 2 && world_desired("small") <= 2;
}

/* What the pools need together is bought, and given back once they need less. */
static void the_stock_follows_what_is_needed(void **state)
{
	(void)state;
	begin_stock(4, 1);
	replica_start(0, &all.settings);
	run(5 * MINUTE);
	assert_int_equal(world_desired("small"), 1);
	for (int i = 0; i < 3; i++)
		all.apps[i]->rate = 1;
	until(has_three_slots, 20 * MINUTE, "no slots are bought");
	run(20 * MINUTE);
	assert_in_range(world_desired("small"), 3, 4); /* with the spare that its rule keeps */
	assert_int_equal(unserved(), 0);
	all.apps[0]->rate = all.apps[1]->rate = 0;
	until(has_few_slots, 2 * HOUR, "slots that nobody needs are kept");
	run(5 * MINUTE);
	assert_int_equal(unserved(), 0);
	replica_stop(0);
	assert_int_equal(count_moves(NULL), 0);
	assert_shares_replay();
	assert_replays(replica_history(0));
}

/* What it needs is not known before somebody is in the share: it keeps its size, and follows them once they come. */
static void a_stock_comes_before_its_pools(void **state)
{
	(void)state;
	begin_stock(3, 2);
	buf_clear(&all.manifest);
	write_stock("");
	all.settings.manifest = all.manifest.text;
	replica_start(0, &all.settings);
	run(HOUR);
	assert_int_equal(world_desired("small"), 1);
	replica_stop(0);
	for (int i = 0; i < 3; i++)
		write_pool(i, "act");
	all.settings.manifest = all.manifest.text;
	replica_start(0, &all.settings);
	for (int i = 0; i < 3; i++)
		all.apps[i]->rate = 1;
	until(has_three_slots, 20 * MINUTE, "no slots are bought");
	run(20 * MINUTE);
	assert_int_equal(unserved(), 0);
	replica_stop(0);
	assert_int_equal(count_moves(NULL), 0);
	assert_shares_replay();
	assert_replays(replica_history(0));
}

/* An engine that works keeps its machine until another has taken over, or it has nothing left. */
static void no_request_ends_with_a_slot(void **state)
{
	(void)state;
	begin_stock(3, 1);
	replica_start(0, &all.settings);
	for (int i = 0; i < 3; i++) {
		all.apps[i]->rate = .05;
		all.apps[i]->service_s = 2 * 60;
	}
	until(has_three_slots, 20 * MINUTE, "no slots are bought");
	run(10 * MINUTE);
	replica_stop(0);
	buf_clear(&all.manifest);
	write_stock(two_slots);
	for (int i = 0; i < 3; i++)
		write_pool(i, "act");
	all.settings.manifest = all.manifest.text;
	all.apps[0]->rate = all.apps[1]->rate = .02;
	all.apps[2]->rate = 0;
	replica_start(0, &all.settings);
	until(has_few_slots, HOUR, "more than the budget pays for is kept");
	until(all_are_served, 10 * MINUTE, "two slots do not serve two models");
	replica_stop(0);
	assert_shares_replay();
	assert_replays(replica_history(0));
}

#define SCENARIO(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENARIO(whoever_is_asked_wakes),
		SCENARIO(what_starts_anew_is_awake),
		SCENARIO(nobody_is_moved_in_mode_observe),
		SCENARIO(a_wake_that_fails_is_mended),
		SCENARIO(a_wake_that_hangs_is_mended),
		SCENARIO(wakes_that_always_fail_disturb_nobody_else),
		SCENARIO(claims_are_slots),
		SCENARIO(what_was_scraped_before_a_move_is_old),
		SCENARIO(a_missed_reading_forgets_nothing),
		SCENARIO(who_leaves_the_share_keeps_its_gpu),
		SCENARIO(who_embeds_is_woken),
		SCENARIO(a_broken_engine_holds_its_gpu),
		SCENARIO(a_mute_engine_stops_nobody_else),
		SCENARIO(short_requests_keep_it_awake),
		SCENARIO(who_just_woke_is_not_idle),
		SCENARIO(twelve_models_on_four_slots),
		SCENARIO(who_need_not_sleep_stays_awake),
		SCENARIO(the_stock_follows_what_is_needed),
		SCENARIO(a_stock_comes_before_its_pools),
		SCENARIO(no_request_ends_with_a_slot),
		SCENARIO(killed_between_any_two_steps),
		SCENARIO(killed_between_any_two_steps_of_level_2),
		SCENARIO(killed_between_any_two_steps_of_sglang),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
