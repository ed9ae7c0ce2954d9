#include "controller/simulation/files/world_file.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t order[] = { 0, 1 };
static const struct group_spec groups[] = { { .name = "spot", .gpus_per_node = 4 },
					    { .name = "od", .gpus_per_node = 1 } };
static const struct pool_spec pools[] = {
	{ .name = "chat", .groups = order, .group_count = 2, .gpus_per_replica = 1, .lend_to = 1u << CLASS_BATCH },
	{ .name = "batch", .groups = order, .group_count = 1, .gpus_per_replica = 1 },
};
static const struct fleet_spec fleet = { groups, 2, pools, 2, NULL };

static bool read_text(const char *text, struct arena *a, struct world_spec *out, struct error *e)
{
	char path[] = "world_file_test.XXXXXX";
	int fd = mkstemp(path);
	size_t len = strlen(text);

	assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
	bool is_read = world_file_read(path, &fleet, a, out, e);
	unlink(path);
	return is_read;
}

static const char every_key[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: World\n"
	"pools:\n"
	"  - name: chat\n"
	"    capacity: 60%\n"
	"    maxSequences: 80\n"
	"    prefillTokensPerSecond: 20k\n"
	"    interTokenLatency: 40ms\n"
	"    leadTime: { total: { p50: 400s, p95: 900s }, load: { p50: 60s, p95: 90s } }\n"
	"    placeShare: 40%\n"
	"    reclaim: { p50: 30s, p95: 60s }\n"
	"    lengthSpread: 1.5\n"
	"    patience: 60s\n"
	"    replicas: 0\n"
	"    telemetry: [ { from: 1h, to: 2h, fault: stale, share: 30% } ]\n"
	"  - { name: batch, deadline: 4h }\n"
	"nodeGroups:\n"
	"  - name: od\n"
	"    stockOuts: [ { from: 2h, to: 4h }, { from: 5h, to: 6h, error: quota } ]\n"
	"    losses: [ { from: 3h, to: 3h30m, share: 30% } ]\n"
	"    lossPerHour: 2%\n"
	"    failedStarts: 1%\n"
	"    slowStarts: { share: 5%, factor: 2.5 }\n"
	"    wakesRefused: { share: 20%, by: hour }\n"
	"    wake: { p50: 100s, p95: 200s }\n"
	"lendable: { pool: chat, nodeGroup: od, replicas: 12, reclaim: { p50: 40s, p95: 70s } }\n";

static void check_chat(const struct pool_world *chat)
{
	assert_int_equal(chat->capacity_permille, 600);
	assert_int_equal(chat->max_sequences, 80);
	assert_int_equal(chat->prefill_tokens_per_second, 20000);
	assert_int_equal(chat->inter_token_latency_us, 40000);
	assert_int_equal(chat->lead_time.p95, 900 * SECOND);
	assert_int_equal(chat->stage[STAGE_LOAD].p50, 60 * SECOND);
	assert_int_equal(chat->place_share_permille, 400);
	assert_int_equal(chat->reclaim.p50, 30 * SECOND);
	assert_int_equal(chat->length_spread_permille, 1500);
	assert_int_equal(chat->patience, MINUTE);
	assert_int_equal(chat->initial_replicas, 0);
	assert_int_equal(chat->telemetry_count, 1);
	assert_int_equal(chat->telemetry[0].fault, TELEMETRY_STALE);
	assert_int_equal(chat->telemetry[0].share_ppm, 300000);
	assert_int_equal(chat->lendable.replicas, 12);
	assert_int_equal(chat->lendable.group, 1);
	assert_int_equal(chat->lendable.restart_loss, MINUTE);
}

static void check_on_demand(const struct group_world *od)
{
	assert_int_equal(od->stockouts[0].kind, ERROR_STOCKOUT);
	assert_int_equal(od->stockouts[1].kind, ERROR_QUOTA);
	assert_int_equal(od->losses[0].share_ppm, 300000);
	assert_int_equal(od->loss_per_hour_ppm, 20000);
	assert_int_equal(od->failed_start_ppm, 10000);
	assert_int_equal(od->slow_start_ppm, 50000);
	assert_int_equal(od->slow_factor_permille, 2500);
	assert_int_equal(od->wake_refused_ppm, 200000);
	assert_true(od->wake_refused_by_hour);
	assert_int_equal(od->wake.p95, 200 * SECOND);
}

static void all_keys_are_understood(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct world_spec w;
	struct error e = { 0 };

	(void)state;
	if (!read_text(every_key, &a, &w, &e))
		fail_msg("%s", e.message);
	check_chat(&w.pools[0]);
	check_on_demand(&w.groups[1]);
	assert_int_equal(w.pools[1].deadline, 4 * HOUR);
	assert_int_equal(w.pools[1].capacity_permille, 1000);
	assert_int_equal(w.pools[1].initial_replicas, -1);
	assert_int_equal(w.pools[1].reclaim.p50, 0);
	assert_int_equal(w.groups[0].stockout_count, 0);
}

static void mistakes_are_told_with_their_place(void **state)
{
	static const struct {
		const char *text, *place, *words;
	} cases[] = {
		{ "nonsense: 1\n", ":1:", "nonsense" },
		{ "pools:\n  - { name: nobody }\n", ":2:", "chat, batch" },
		{ "nodeGroups:\n  - { name: chat }\n", ":2:", "spot, od" },
		{ "lendable: { pool: nobody, replicas: 3 }\n", ":1:", "chat, batch" },
		{ "lendable: { pool: batch, replicas: 4 }\n", ":1:", "lends" },
		{ "lendable: { pool: chat, nodeGroup: gpu, replicas: 4 }\n", ":1:", "spot, od" },
		{ "lendable: { pool: chat, replicas: 3 }\n", ":1:", "one node" },
		{ "pools:\n  - { name: chat, reclaim: { p50: 2m, p95: 1m } }\n", ":2:", "p50" },
		{ "nodeGroups:\n  - name: od\n    stockOuts: [ { from: 2h, to: 1h } ]\n", ":3:", "after from" },
		{ "pools:\n  - { name: chat, capacity: -5% }\n", ":2:", "capacity" },
		{ "kind: WarmPool\n", ":1:", "World" },
		{ "stockout: [\n", ":", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct world_spec w;
		struct error e = { 0 };
		assert_false(read_text(cases[i].text, &a, &w, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		if (!strstr(e.message, cases[i].place) || !strstr(e.message, cases[i].words))
			fail_msg("%s -> %s", cases[i].text, e.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys_are_understood),
		cmocka_unit_test(mistakes_are_told_with_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
