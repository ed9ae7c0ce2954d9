/* Pools of many teams in one controller, as WarmPools in the API server: what one team changes is its own. */
#include "controller/policy/decide.h"
#include "controller/web/published.h"
#include "controller/restore/restore.h"
#include "tests/world/autoscaler.h"
#include "tests/world/laws.h"
#include "tests/world/replays.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char group_text[] =
	"{'name':'%s','provider':'simulated','simulated':{'endpoint':'http://cloud.world'},'zone':'z1',"
	"'instanceType':'g5.xlarge','capacityType':'on-demand','gpusPerNode':1,'pricePerHour':1.21,'min':%d,'max':8}";

static const struct replica_settings objects_only = { .watches_objects = true };
static struct world_app *chat;

static struct object *put_pool(const char *space, const char *name, const char *group, int min, int headroom)
{
	char group_json[512];

	snprintf(group_json, sizeof group_json, group_text, group, min);
	return apiserver_create(
		KIND_WARM_POOL,
		value_of("{'apiVersion':'preheat.dev/v1alpha1','kind':'WarmPool','metadata':{'name':'%s','namespace':"
			 "'%s'},'spec':{'mode':'act','class':'interactive','objective':{'queueWait':'2s','attainment':'"
			 "99%%'},"
			 "'workload':{'selector':{'matchLabels':{'app':'%s'}},'scaleTargetRef':{'apiVersion':"
			 "'apps/v1','kind':'Deployment','name':'%s'},'gpusPerReplica':1,'maxSequences':8,"
			 "'prefillTokensPerSecond':'25k','interTokenLatency':'30ms'},'signals':{'engine':'vllm',"
			 "'scrape':{'port':8000,'path':'/metrics','interval':'15s'}},'nodeGroups':[%s],'leadTime':{"
			 "'provision':{'p50':'45s','p95':'70s'},'register':{'p50':'20s','p95':'30s'},'device':{"
			 "'p50':'15s','p95':'30s'},'image':{'p50':'60s','p95':'90s'},'load':{'p50':'60s','p95':"
			 "'90s'}},'headroom':{'min':%d},'scaleDown':{'after':'5m'}}}",
			 name, space, name, name, group_json, headroom));
}

static void change_headroom(struct object *pool, int headroom)
{
	value_set_int(pool->value, "spec>headroom>min", headroom);
	apiserver_changed(pool);
}

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	wire_steady(5);
	world_group("chat-od", "chat", 1, 0, 8, 1);
	chat = world_app("chat", 1, 1, "25%");
	put_pool("llm", "chat", "chat-od", 1, 1);
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

static void run(millis duration)
{
	world_run(duration);
	if (!*laws_broken())
		return;
	laws_print_trace(60);
	fail_msg("%s", laws_broken());
}

static bool serves_two(void)
{
	return world_ready("chat") >= 2;
}

static void begin(void)
{
	replica_start(0, &objects_only);
	chat->rate = 1.5;
	if (!world_until(serves_two, 30 * MINUTE))
		fail_msg("two replicas never served");
	run(2 * MINUTE);
}

static bool is_contested(void)
{
	const struct published *p = replica_published(0);

	return p && p->pools && p->pools[0].problem[PROBLEM_CONTESTED];
}

/* Who sets the replicas beside us is known, and is not found out by two more numbers. What is edited makes the pool
 * read its replicas anew. */
static void a_contest_outlives_an_edit(void **state)
{
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	(void)state;
	begin();
	autoscaler_create("chat", 1, 1, "", "");
	assert_true(world_until(is_contested, 10 * MINUTE));
	int64_t writes = laws_scale_writes();
	value_set_text(pool->value, "spec>objective>queueWait", "3s");
	apiserver_changed(pool);
	run(10 * MINUTE);
	assert_int_equal(laws_scale_writes(), writes);
	assert_true(is_contested());
}

/* --- what was recorded of chat --- */

struct recorded {
	char *text;
	size_t len;
	int64_t ticks;
	size_t pools; /* in all that time */
};

static void write_numbers(FILE *out, const char *what, const void *record, size_t bytes)
{
	const int64_t *v = record;

	fprintf(out, " %s", what);
	for (size_t i = 0; i < bytes / sizeof *v; i++)
		fprintf(out, ",%" PRId64, v[i]);
}

static void write_tick(FILE *out, int64_t tick, const struct tick_record *r)
{
	const struct pool_snapshot *s = &r->snapshot;

	fprintf(out, "tick %" PRId64 " at %" PRId64, tick, r->now);
	write_numbers(out, "input", &s->input, sizeof s->input);
	for (size_t i = 0; i < s->scrape_count; i++)
		write_numbers(out, "scrape", &s->scrapes[i], sizeof s->scrapes[i]);
	for (size_t i = 0; i < s->group_count; i++)
		write_numbers(out, "group", &s->groups[i], sizeof s->groups[i]);
	for (size_t i = 0; i < s->start_count; i++)
		write_numbers(out, "start", &s->starts[i], sizeof s->starts[i]);
	for (size_t i = 0; i < s->event_count; i++)
		write_numbers(out, "event", &s->events[i], sizeof s->events[i]);
	write_numbers(out, "decision", &r->plan.decision, sizeof r->plan.decision);
	for (size_t i = 0; i < r->plan.group_count; i++)
		write_numbers(out, "asked", &r->plan.groups[i], sizeof r->plan.groups[i]);
	fputc('\n', out);
}

/* All ticks of chat, number for number. The controller is stopped for it. */
static struct recorded read_chat(void)
{
	struct recorded all = { 0 };
	struct error e = { 0 };
	struct history_span span;
	size_t pool = 0, count;

	replica_stop(0);
	assert_replays(replica_history(0));
	struct history *h = history_open(replica_history(0), &e);
	if (!h || !history_span(h, &span, &e))
		fail_msg("%s", e.message);
	const struct history_pool *pools = history_pools(h, &count);
	while (pool < count && strcmp(pools[pool].name, "chat") != 0)
		pool++;
	FILE *out = open_memstream(&all.text, &all.len);
	for (int64_t tick = span.first_tick; tick <= span.last_tick; tick++) {
		struct tick_record r;
		if (history_read(h, tick, pool, &r, &e))
			write_tick(out, tick, &r);
		else if (e.kind != ERROR_NOT_FOUND) /* it was not in the manifest */
			fail_msg("tick %" PRId64 ": %s", tick, e.message);
	}
	fclose(out);
	all.pools = count;
	all.ticks = span.last_tick - span.first_tick + 1;
	history_close(h);
	return all;
}

static void assert_same(const struct recorded *a, const struct recorded *b)
{
	const char *x = a->text, *y = b->text;

	while (*x && *y && strcspn(x, "\n") == strcspn(y, "\n") && !strncmp(x, y, strcspn(x, "\n"))) {
		x += strcspn(x, "\n") + (x[strcspn(x, "\n")] != 0);
		y += strcspn(y, "\n") + (y[strcspn(y, "\n")] != 0);
	}
	if (*x || *y)
		fail_msg("alone:\n%.*s\nbeside others:\n%.*s", (int)strcspn(x, "\n"), x, (int)strcspn(y, "\n"), y);
	assert_int_equal(a->ticks, b->ticks);
}

/* --- the scenarios --- */

enum { TEAMS = 1000, ALIVE = 40, NEIGHBOURS = 6 };

/* Pool i of a thousand: before and after chat in the order of all. */
static struct object *put_team(int i)
{
	char name[32];

	snprintf(name, sizeof name, "team-%d", i);
	return put_pool(i % 2 ? "dev" : "teams", name, name, 0, 0);
}

/* Who has traffic of its own, and buys for it. */
static void put_neighbours(struct world_app **apps, struct object **pools)
{
	static const char *const names[NEIGHBOURS] = { "code", "docs", "mail", "maps", "news", "shop" };

	for (int i = 0; i < NEIGHBOURS; i++) {
		world_group(names[i], names[i], 1, 0, 8, 0);
		apps[i] = world_app(names[i], 0, 1, "25%");
		pools[i] = put_pool("llm", names[i], names[i], 0, 0);
	}
}

/* Load comes and goes, the pool is edited under it, and goes and comes in its midst. */
static void neighbours_live(int i, struct world_app **apps, struct object **pools)
{
	int k = i % NEIGHBOURS;

	apps[k]->rate = i < 600 && i % 400 < 300 ? 1.5 + k : 0;
	change_headroom(pools[k], i / NEIGHBOURS % 3);
	if (i % 251 == 250) {
		apiserver_delete(pools[k]);
		pools[k] = put_pool("llm", apps[k]->name, apps[k]->name, 0, 1);
	}
}

/* Ten minutes of traffic that rises and falls. Beside it, or not, others buy and give back, and a pool of another team
 * comes every 600 ms, is changed twice, and goes: five changes a second. */
static void ten_minutes(bool has_others)
{
	struct object *teams[TEAMS] = { 0 }, *pools[NEIGHBOURS];
	struct world_app *apps[NEIGHBOURS];

	if (has_others)
		put_neighbours(apps, pools);
	for (int i = 0; i < TEAMS + ALIVE; i++) {
		if (has_others && i < TEAMS)
			teams[i] = put_team(i);
		run(300);
		for (int k = 1; k <= 2; k++)
			if (has_others && i - k * ALIVE / 3 >= 0 && i - k * ALIVE / 3 < TEAMS)
				change_headroom(teams[i - k * ALIVE / 3], k);
		if (has_others)
			neighbours_live(i, apps, pools);
		run(300);
		if (has_others && i >= ALIVE)
			apiserver_delete(teams[i - ALIVE]);
		chat->rate = i > 700 ? 0.2 : i > 100 ? 4 : 1.5;
	}
	chat->rate = 2;
	run(20 * MINUTE);
	for (int i = 0; has_others && i < NEIGHBOURS; i++) /* all bought, and gave back */
		assert_in_range(world_desired(apps[i]->name), 0, cloud_group_at((size_t)i + 1)->sequence - 4);
}

static void other_teams_change_nothing_for_chat(void **state)
{
	struct recorded with, without;

	begin();
	ten_minutes(true);
	with = read_chat();
	assert_int_equal(with.pools, 1 + NEIGHBOURS + TEAMS);
	tear_down(state);
	set_up(state);
	begin();
	ten_minutes(false);
	without = read_chat();
	assert_true(without.ticks > 80);
	assert_same(&without, &with);
	free(with.text);
	free(without.text);
}

static bool is_growing(void)
{
	return world_desired("chat") >= 4;
}

static bool is_grown(void)
{
	return world_ready("chat") >= 4;
}

static int64_t ticks(void)
{
	return replica_published(0) ? replica_published(0)->ticks : 0;
}

static void until(bool (*is_so)(void), millis most)
{
	if (!world_until(is_so, most)) {
		laws_print_trace(60);
		fail_msg("%s", *laws_broken() ? laws_broken() : "it did not come to it in time");
	}
}

/* Not with the next tick, but when it is told so; and it goes on from what is there. */
static void a_paused_pool_stops_at_once(void **state)
{
	(void)state;
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	begin();
	chat->rate = 4;
	until(is_growing, 30 * MINUTE);
	value_set_text(pool->value, "spec>mode", "paused");
	apiserver_changed(pool);
	run(SECOND);
	laws_stand_still(true);
	run(20 * MINUTE);
	laws_stand_still(false);
	value_set_text(pool->value, "spec>mode", "act");
	apiserver_changed(pool);
	until(is_grown, 30 * MINUTE);
	free(read_chat().text);
}

static bool are_protected(bool all)
{
	for (const struct cloud_machine *m = cloud_group_at(0)->machines; m; m = m->next)
		if (m->step == STEP_RUNNING && m->is_protected != all)
			return false;
	return true;
}

static bool all_are_protected(void)
{
	return are_protected(true);
}

static bool none_is_protected(void)
{
	return are_protected(false);
}

/* An instance refresh, say, waits for protected machines, and fails. */
static void what_is_ours_no_more_is_protected_no_more(void **state)
{
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	(void)state;
	cloud_group_at(0)->protects = true;
	begin();
	until(all_are_protected, 5 * MINUTE);
	value_set_text(pool->value, "spec>mode", "paused");
	apiserver_changed(pool);
	until(none_is_protected, MINUTE);
	run(20 * MINUTE);
	assert_true(none_is_protected());
	value_set_text(pool->value, "spec>mode", "act");
	apiserver_changed(pool);
	until(all_are_protected, 5 * MINUTE);
	apiserver_delete(pool);
	until(none_is_protected, MINUTE);
	run(20 * MINUTE);
	assert_true(none_is_protected());
}

/* Nobody was there to lift it when it was paused. */
static void what_was_paused_while_nobody_ran_is_protected_no_more(void **state)
{
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	(void)state;
	cloud_group_at(0)->protects = true;
	begin();
	until(all_are_protected, 5 * MINUTE);
	replica_kill(0);
	value_set_text(pool->value, "spec>mode", "paused");
	apiserver_changed(pool);
	run(10 * MINUTE);
	assert_true(all_are_protected());
	replica_start(0, &objects_only);
	until(none_is_protected, 5 * MINUTE);
	run(20 * MINUTE);
	assert_true(none_is_protected());
	value_set_text(pool->value, "spec>mode", "act");
	apiserver_changed(pool);
	until(all_are_protected, 5 * MINUTE);
	free(read_chat().text);
}

/* The one call comes to nothing: it is made again, by the next process, too. */
static void what_could_not_be_lifted_at_once_is_lifted_later(void **state)
{
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");
	struct cloud_group *g = cloud_group_at(0);

	(void)state;
	g->protects = true;
	begin();
	for (int restarts = 0; restarts <= 1; restarts++) {
		until(all_are_protected, 5 * MINUTE);
		g->faults.auth = -1;
		value_set_text(pool->value, "spec>mode", "paused");
		apiserver_changed(pool);
		run(10 * MINUTE);
		assert_true(all_are_protected());
		g->faults.auth = 0;
		if (restarts) {
			replica_kill(0);
			replica_start(0, &objects_only);
		}
		until(none_is_protected, 15 * MINUTE);
		run(20 * MINUTE);
		assert_true(none_is_protected());
		value_set_text(pool->value, "spec>mode", "act");
		apiserver_changed(pool);
	}
	until(all_are_protected, 5 * MINUTE);
	free(read_chat().text);
}

/* Between two ticks: nobody notices, not even in the history. */
static void an_edit_taken_back_is_none(void **state)
{
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	(void)state;
	begin();
	chat->rate = 4;
	until(is_growing, 30 * MINUTE);
	int64_t before = ticks();
	for (int i = 0; i < 40; i++) {
		value_set_text(pool->value, "spec>mode", i % 2 ? "act" : "paused");
		apiserver_changed(pool);
		run(700);
	}
	assert_in_range(ticks() - before, 1, 2);
	until(is_grown, 30 * MINUTE);
	free(read_chat().text);
}

/* What stands there is found again, and no machine is bought for it once more. */
static void a_pool_made_anew_goes_on(void **state)
{
	(void)state;
	begin();
	chat->rate = 4;
	until(is_grown, 30 * MINUTE);
	int64_t machines = world_desired("chat");
	put_team(1);
	run(20 * SECOND);
	apiserver_delete(apiserver_find(KIND_WARM_POOL, "llm", "chat"));
	run(MINUTE);
	put_pool("llm", "chat", "chat-od", 1, 1);
	run(2 * MINUTE);
	assert_in_range(world_desired("chat"), machines - 1, machines);
	run(30 * MINUTE);
	assert_int_equal(chat->waiting, 0);
	free(read_chat().text);
}

/* The group is asked of anew, and growth under way goes on there: not twice. */
static void a_changed_group_buys_nothing_twice(void **state)
{
	struct object *pool = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	(void)state;
	begin();
	chat->rate = 4;
	until(is_growing, 30 * MINUTE);
	value_set_text(value_at(pool->value, "spec>nodeGroups")->first, "simulated>endpoint", "http://cloud.world/");
	apiserver_changed(pool);
	until(is_grown, 30 * MINUTE);
	run(10 * MINUTE);
	free(read_chat().text);
}

/* Two pools of one group, of which one goes: what it leaves is no other pool's trouble. */
static void a_group_outlives_one_of_its_pools(void **state)
{
	(void)state;
	put_pool("dev", "lab", "chat-od", 1, 0);
	begin();
	chat->rate = 4;
	until(is_growing, 30 * MINUTE);
	apiserver_delete(apiserver_find(KIND_WARM_POOL, "dev", "lab"));
	until(is_grown, 30 * MINUTE);
	chat->rate = 0.2;
	run(20 * MINUTE);
	put_pool("dev", "lab", "chat-od", 1, 0);
	run(40 * MINUTE);
	free(read_chat().text);
}

/* The last pool's end stops acting, the next one's begin is a beginning. */
static void no_pool_at_all_and_one_again(void **state)
{
	(void)state;
	begin();
	apiserver_delete(apiserver_find(KIND_WARM_POOL, "llm", "chat"));
	run(2 * MINUTE);
	int64_t before = ticks();
	run(2 * MINUTE);
	assert_int_equal(ticks(), before);
	put_pool("llm", "chat", "chat-od", 1, 2);
	run(10 * MINUTE);
	assert_true(ticks() > before);
	free(read_chat().text);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		SCENARIO(a_contest_outlives_an_edit),
		SCENARIO(other_teams_change_nothing_for_chat),
		SCENARIO(a_paused_pool_stops_at_once),
		SCENARIO(what_is_ours_no_more_is_protected_no_more),
		SCENARIO(what_was_paused_while_nobody_ran_is_protected_no_more),
		SCENARIO(what_could_not_be_lifted_at_once_is_lifted_later),
		SCENARIO(an_edit_taken_back_is_none),
		SCENARIO(a_pool_made_anew_goes_on),
		SCENARIO(a_changed_group_buys_nothing_twice),
		SCENARIO(a_group_outlives_one_of_its_pools),
		SCENARIO(no_pool_at_all_and_one_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
