/* A disk that others fill: the oldest ticks go, and what is decided goes on to be recorded and done. */
#include "controller/web/published.h"
#include "state/drain_record.h"
#include "state/guard_record.h"
#include "state/reserve.h"
#include "tests/unit/state/failing_disk.h"
#include "tests/world/laws.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cmocka.h>

/* --- a disk of its own --- */

#define DISK_BYTES ((int64_t)100 << 20)

static int64_t strangers; /* bytes of others on it */
static bool is_quota;	  /* what limits it is not what it tells of itself */

static int64_t bytes_of(const char *path, const char *end)
{
	char name[160];
	struct stat s;

	snprintf(name, sizeof name, "%s%s", path, end);
	return stat(name, &s) ? 0 : (int64_t)s.st_size;
}

static int64_t bytes_free(void)
{
	static const char *const ends[] = { "", "-wal", "-reserve", NULL };
	int64_t left = DISK_BYTES - strangers;

	for (const char *const *end = ends; *end; end++)
		left -= bytes_of(replica_history(0), *end);
	return left > 0 ? left : 0;
}

static bool has_room(sqlite3_int64 bytes)
{
	return bytes <= bytes_free();
}

int __wrap_statvfs(const char *path, struct statvfs *v);
int __wrap_statvfs(const char *path, struct statvfs *v)
{
	bool has_none = disk.is_full && strstr(path, "/1-");

	*v = (struct statvfs){ .f_frsize = 1,
			       .f_bavail = is_quota   ? (fsblkcnt_t)DISK_BYTES * 10
					   : has_none ? 0
						      : (fsblkcnt_t)bytes_free() };
	return 0;
}

int __real_posix_fallocate(int file, off_t at, off_t len);
int __wrap_posix_fallocate(int file, off_t at, off_t len);
int __wrap_posix_fallocate(int file, off_t at, off_t len)
{
	return disk.is_full || len > bytes_free() ? EDQUOT : __real_posix_fallocate(file, at, len);
}

static void others_leave(int64_t bytes)
{
	strangers += bytes_free() - bytes;
}

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
	"        instanceType: g5.xlarge, capacityType: on-demand, gpusPerNode: 1, pricePerHour: 1.21, min: 1, max: 8 "
	"}\n"
	"  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: 15s, p95: "
	"30s },\n"
	"      image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
	"  headroom: { min: 1 }\n"
	"  scaleDown: { after: 5m }\n";

static const struct replica_settings alone = { .manifest = chat_text };
static struct world_app *chat;
static struct cloud_group *group;

static int set_up(void **state)
{
	(void)state;
	world_begin(1);
	disk.has_room = has_room;
	disk.spares = NULL;
	disk.is_full = false;
	strangers = 0;
	is_quota = false;
	laws_expect_errors(true); /* the log says that it is full */
	group = world_group("chat-od", "chat", 1, 0, 8, 1);
	chat = world_app("chat", 1, 1, "25%");
	chat->rate = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
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

static struct history_span span_of(const char *path)
{
	struct error e = { 0 };
	struct history_span span = { 0 };
	struct history *h = history_open(path, &e);

	if (!h || !history_span(h, &span, &e))
		fail_msg("%s: %s", path, e.message);
	history_close(h);
	return span;
}

static bool is_grown(void)
{
	return world_ready("chat") >= 4;
}

static bool is_small(void)
{
	return world_desired("chat") <= 2;
}

static void until(bool (*is_so)(void), millis most)
{
	if (!world_until(is_so, most)) {
		laws_print_trace(60);
		fail_msg("%s", *laws_broken() ? laws_broken() : "it did not come to it in time");
	}
}

/* The history is some hours long, and then nothing is left, not even of the reserve. */
static void fill(void)
{
	replica_start(0, &alone);
	run(4 * HOUR);
	assert_true(reserve_is_there(replica_history(0)));
	others_leave(RESERVE_LOW / 2);
	run(MINUTE);
	assert_false(reserve_is_there(replica_history(0)));
	run(30 * MINUTE);
	others_leave(0);
}

static void growth_goes_on_where_no_byte_is_left(void **state)
{
	(void)state;
	fill();
	int64_t ticks = replica_published(0)->ticks;
	run(3 * HOUR);
	chat->rate = 4;
	until(is_grown, 30 * MINUTE);
	chat->rate = 0.2;
	until(is_small, 2 * HOUR);
	assert_true(replica_published(0)->ticks > ticks + 3 * 200);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_NONE);
	struct history_span span = span_of(replica_history(0));
	assert_true(span.first_tick > 0); /* the oldest went */
	assert_true(span.last_tick - span.first_tick > 200);
}

static void a_start_on_a_full_disk_leads(void **state)
{
	(void)state;
	fill();
	replica_stop(0);
	replica_start(0, &alone);
	chat->rate = 4;
	until(is_grown, 40 * MINUTE);
}

/* Where nothing can be recorded nothing is done, and it goes on as soon as there is room. */
static void nothing_is_done_that_is_not_recorded(void **state)
{
	(void)state;
	fill();
	disk.is_full = true;
	run(MINUTE);
	chat->rate = 4;
	laws_stand_still(true);
	run(30 * MINUTE);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_UNAVAILABLE);
	laws_stand_still(false);
	disk.is_full = false;
	until(is_grown, 30 * MINUTE);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_NONE);
	strangers = 0;
	run(20 * MINUTE);
	assert_true(reserve_is_there(replica_history(0)));
}

/* A quota, which the disk does not tell of: a write that fails is the first to show it. */
static void fill_quota(void)
{
	is_quota = true;
	replica_start(0, &alone);
	run(4 * HOUR);
	assert_true(reserve_is_there(replica_history(0)));
	others_leave(0);
}

static void growth_goes_on_where_a_quota_is_used_up(void **state)
{
	(void)state;
	fill_quota();
	chat->rate = 4;
	until(is_grown, 30 * MINUTE);
	run(3 * HOUR);
	assert_false(reserve_is_there(replica_history(0)));
	others_leave(0); /* nor is there room for what its reserve was */
	int64_t ticks = replica_published(0)->ticks;
	run(3 * HOUR);
	chat->rate = 0.2;
	until(is_small, 2 * HOUR);
	assert_true(replica_published(0)->ticks > ticks + 3 * 200);
	assert_true(replica_published(0)->is_history_disk_full);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_NONE);
	strangers = 0;
	run(20 * MINUTE);
	assert_true(reserve_is_there(replica_history(0)));
	assert_false(replica_published(0)->is_history_disk_full);
}

/* With no room for a single byte nothing is done; it is told, and goes on as soon as there is some. */
static void a_quota_that_leaves_nothing_is_waited_for(void **state)
{
	(void)state;
	is_quota = true;
	replica_start(0, &alone);
	run(HOUR);
	disk.is_full = true;
	run(MINUTE);
	chat->rate = 4;
	laws_stand_still(true);
	run(30 * MINUTE);
	assert_true(replica_published(0)->is_history_disk_full);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_UNAVAILABLE);
	laws_stand_still(false);
	disk.is_full = false;
	until(is_grown, 30 * MINUTE);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_NONE);
}

static const char chat_spec[] =
	"{'mode':'act','class':'interactive','objective':{'queueWait':'2s','attainment':'99%'},'workload':{'selector':{"
	"'matchLabels':{'app':'chat'}},'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'chat'},"
	"'gpusPerReplica':1,'maxSequences':8,'prefillTokensPerSecond':'25k','interTokenLatency':'30ms'},'signals':{"
	"'engine':'vllm','scrape':{'port':8000,'path':'/metrics','interval':'15s'}},'nodeGroups':[{'name':'chat-od',"
	"'provider':'simulated','simulated':{'endpoint':'http://cloud.world'},'zone':'z1','instanceType':'g5.xlarge',"
	"'capacityType':'on-demand','gpusPerNode':1,'pricePerHour':1.21,'min':1,'max':8}],'leadTime':{'provision':{'"
	"p50'"
	":'45s','p95':'70s'},'register':{'p50':'20s','p95':'30s'},'device':{'p50':'15s','p95':'30s'},'image':{'p50':"
	"'60s','p95':'90s'},'load':{'p50':'60s','p95':'90s'}},'headroom':{'min':1},'scaleDown':{'after':'5m'}}";

static struct object *create_pool(const char *name, const char *node_group)
{
	struct object *pool =
		apiserver_create(KIND_WARM_POOL, value_of("{'apiVersion':'preheat.dev/v1alpha1','kind':'WarmPool',"
							  "'metadata':{'name':'%s','namespace':'llm','generation':1},"
							  "'spec':%s}",
							  name, chat_spec));

	value_set_text(value_at(pool->value, "spec>nodeGroups")->first, "name", node_group);
	return pool;
}

/* It cannot be recorded either: that of before stays in force until it can. */
static void another_manifest_waits_for_room(void **state)
{
	static const struct replica_settings objects = { .watches_objects = true };

	(void)state;
	is_quota = true;
	struct object *pool = create_pool("chat", "chat-od");
	replica_start(0, &objects);
	run(HOUR);
	disk.is_full = true;
	run(MINUTE);
	value_set_int(pool->value, "spec>headroom>min", 4);
	value_set_int(pool->value, "metadata>generation", 2);
	apiserver_changed(pool);
	laws_stand_still(true);
	run(30 * MINUTE);
	laws_stand_still(false);
	disk.is_full = false;
	until(is_grown, 30 * MINUTE);
	assert_int_equal(replica_published(0)->history_error.kind, ERROR_NONE);
}

static int64_t guarded(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += m->is_protected;
	return count;
}

static bool is_recorded_as_guarded(void)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	struct history *h = history_open(replica_history(0), &e);
	const char **machines;
	size_t count;

	assert_non_null(h);
	assert_true(guard_record_find(h, "chat-od", &a, &machines, &count, &e));
	history_close(h);
	return machines;
}

/* That the cloud may choose among its machines again cannot be recorded, and is once there is room. */
static void a_group_that_is_left_is_forgotten_once_there_is_room(void **state)
{
	static const struct replica_settings objects = { .watches_objects = true };

	(void)state;
	is_quota = true;
	group->protects = true;
	world_group("embed-od", "embed", 1, 0, 8, 0);
	struct object *pool = create_pool("chat", "chat-od"), *other = create_pool("embed", "embed-od");
	value_set_text(other->value, "spec>mode", "observe");
	value_set_text(other->value, "spec>workload>selector>matchLabels>app", "embed");
	value_set_text(other->value, "spec>workload>scaleTargetRef>name", "embed");
	replica_start(0, &objects);
	run(HOUR);
	assert_true(guarded(group) > 0 && is_recorded_as_guarded());
	disk.is_full = true;
	run(MINUTE);
	apiserver_delete(pool);
	run(10 * MINUTE);
	assert_int_equal(guarded(group), 0);
	assert_true(is_recorded_as_guarded());
	disk.is_full = false;
	run(2 * MINUTE);
	assert_false(is_recorded_as_guarded());
}

/* --- one call that fails during a drain --- */

static bool is_marked(const struct object *node)
{
	const struct value *all = value_at(node->value, "metadata>annotations");

	for (const struct value *a = all ? all->first : NULL; a; a = a->next)
		if (!strcmp(a->key, "preheat.dev/draining"))
			return true;
	return false;
}

static int64_t count_marked(void)
{
	int64_t count = 0;

	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next)
		count += is_marked(n);
	return count;
}

/* Whoever looks has a disk that is well. */
static void assert_marks_are_recorded(void)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct failing_disk kept = disk;
	struct drain_record *rows;
	struct error e = { 0 };
	size_t count;

	disk.fails_at = 0;
	struct history *h = history_open(replica_history(0), &e);
	if (!h || !drain_record_marked(h, &a, &rows, &count, &e))
		fail_msg("%s", e.message);
	history_close(h);
	disk.fails_at = kept.fails_at;
	disk.changes = kept.changes;
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		bool is_recorded = !is_marked(n);
		for (size_t i = 0; i < count && !is_recorded; i++)
			is_recorded = !strcmp(rows[i].node, n->name);
		if (!is_recorded)
			fail_msg("change %ld fails: node %s is marked and in no row", disk.fails_at, n->name);
	}
}

static int64_t marked; /* at the last look */
static long first_change, last_change;

/* Who ended, as what it cannot record it may not do, is started again. */
static bool has_come_down(void)
{
	int64_t count = count_marked();

	if (!replica_is_up(0))
		replica_start(0, &alone);
	if (count && !marked && !first_change)
		first_change = disk.changes;
	if (count != marked)
		assert_marks_are_recorded();
	marked = count;
	last_change = disk.changes;
	return is_small() && world_is_at_rest() && !count;
}

/* Grown, and with nothing more to do; then the change of that number fails. 0: none. */
static void drain_where_fails(void **state, int code, long number)
{
	set_up(state);
	disk.code = code;
	disk.changes = disk.fails_at = marked = first_change = 0;
	replica_start(0, &alone);
	chat->rate = 4;
	until(is_grown, HOUR);
	until(world_is_at_rest, HOUR);
	chat->rate = 0.2;
	disk.changes = 0;
	disk.fails_at = number;
	disk.fails_on = false;
	replicas_may_fail(code == SQLITE_IOERR);
	until(has_come_down, 2 * HOUR);
	run(5 * MINUTE);
	assert_int_equal(count_marked(), 0);
	assert_true(disk.changes >= number);
	replicas_may_fail(false);
	disk.fails_at = 0;
	tear_down(state);
}

static void whatever_fails_during_a_drain_no_mark_is_without_its_row(void **state)
{
	enum { BEFORE = 12, RUNS = 24 };
	static const int codes[] = { SQLITE_FULL, SQLITE_IOERR };

	for (size_t i = 0; i < 2; i++) {
		drain_where_fails(state, codes[i], 0);
		long from = first_change - BEFORE, to = last_change;
		assert_true(from > 0 && to > from);
		for (long n = 0; n < RUNS; n++) /* the first write of a row is among those before the first mark */
			drain_where_fails(state, codes[i], n < BEFORE ? from + n : from + n * (to - from) / RUNS);
	}
	disk.code = SQLITE_OK;
	set_up(state);
}

/* --- a follower's disk --- */

static const struct replica_settings elected = { .manifest = chat_text, .elects = true };

static bool is_the_leaders(const char *name)
{
	return !strstr(name, "/1-");
}

static bool is_copied(void)
{
	const struct published *p = replica_published(1);

	return p && p->history_lag_ticks == 0 && span_of(replica_history(1)).last_tick > 0;
}

static bool first_leads(void)
{
	return replica_leads(0);
}

static bool second_leads(void)
{
	return replica_leads(1);
}

/* A leader of some hours, and a follower that has its history when its own disk is full. */
static void follow(void)
{
	disk.spares = is_the_leaders;
	replica_start(0, &elected);
	until(first_leads, MINUTE);
	run(4 * HOUR);
	replica_start(1, &elected);
	run(MINUTE);
	until(is_copied, 10 * MINUTE);
	disk.is_full = true;
}

/* The leader goes on, and so does the copy once there is room: no tick of it is missing. */
static void a_followers_full_disk_is_its_own(void **state)
{
	(void)state;
	follow();
	int64_t last = span_of(replica_history(1)).last_tick;
	chat->rate = 4;
	until(is_grown, 30 * MINUTE);
	run(HOUR);
	assert_true(replica_leads(0) && replica_is_up(1));
	assert_true(replica_published(1)->history_lag_ticks > 200);
	assert_true(replica_published(1)->is_history_disk_full);
	assert_false(replica_published(0)->is_history_disk_full);
	assert_int_equal(span_of(replica_history(1)).last_tick, last);
	disk.is_full = false;
	until(is_copied, 5 * MINUTE);
	assert_false(replica_published(1)->is_history_disk_full);
	replica_kill(0);
	until(second_leads, 2 * MINUTE);
	assert_true(span_of(replica_history(1)).last_tick >= span_of(replica_history(0)).last_tick);
	chat->rate = 0.2;
	until(is_small, 2 * HOUR);
}

/* Its copy is old: it waits for the leader, and then leads with that. What it cannot record it does not do. */
static void a_follower_that_leads_on_a_full_disk_goes_on_once_there_is_room(void **state)
{
	(void)state;
	follow();
	run(HOUR);
	replica_kill(0);
	run(3 * MINUTE);
	assert_false(replica_leads(1));
	until(second_leads, 5 * MINUTE);
	run(MINUTE);
	chat->rate = 4;
	laws_stand_still(true);
	run(30 * MINUTE);
	assert_int_equal(replica_published(1)->history_error.kind, ERROR_UNAVAILABLE);
	laws_stand_still(false);
	disk.is_full = false;
	until(is_grown, 40 * MINUTE);
	assert_true(replica_leads(1));
}

/* The same where its disk tells of room that a quota does not give. */
static void a_followers_quota_is_its_own(void **state)
{
	(void)state;
	is_quota = true;
	a_followers_full_disk_is_its_own(state);
}

static void a_follower_that_leads_on_a_used_up_quota_goes_on_once_there_is_room(void **state)
{
	(void)state;
	is_quota = true;
	a_follower_that_leads_on_a_full_disk_goes_on_once_there_is_room(state);
}

#define SCENARIO(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	disk_begin();
	const struct CMUnitTest tests[] = {
		SCENARIO(growth_goes_on_where_no_byte_is_left),
		SCENARIO(a_start_on_a_full_disk_leads),
		SCENARIO(nothing_is_done_that_is_not_recorded),
		SCENARIO(growth_goes_on_where_a_quota_is_used_up),
		SCENARIO(a_quota_that_leaves_nothing_is_waited_for),
		SCENARIO(another_manifest_waits_for_room),
		SCENARIO(a_group_that_is_left_is_forgotten_once_there_is_room),
		cmocka_unit_test_setup_teardown(whatever_fails_during_a_drain_no_mark_is_without_its_row, NULL,
						tear_down),
		SCENARIO(a_followers_full_disk_is_its_own),
		SCENARIO(a_follower_that_leads_on_a_full_disk_goes_on_once_there_is_room),
		SCENARIO(a_followers_quota_is_its_own),
		SCENARIO(a_follower_that_leads_on_a_used_up_quota_goes_on_once_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
