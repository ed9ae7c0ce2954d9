/*
 * One line of one replica is cut, in one direction or both, while all others work: what it does not hear costs nothing
 * twice and gives nothing back, and once the line works again all is as it should be.
 */
#include "tests/world/lawful.h"
#include "tests/world/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
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

static const struct replica_settings elected = { .manifest = text, .elects = true };
static struct world_app *chat;

static bool zero_leads(void)
{
	return replica_leader() == 0;
}

static bool one_leads(void)
{
	return replica_leader() == 1;
}

static bool serves_five(void)
{
	return world_ready("chat") >= 5;
}

static bool has_shrunk(void)
{
	return world_desired("chat") <= 3 && world_is_at_rest();
}

/* The first leads; traffic comes for which five must serve. */
static void begin(uint64_t seed)
{
	world_begin(seed);
	lines_begin();
	world_group("chat-od", "chat", 1, 0, 8, 1);
	chat = world_app("chat", 1, 1, "25%");
	replica_start(0, &elected);
	until(zero_leads, MINUTE, "the first leads");
	replica_start(1, &elected);
	run(5 * MINUTE);
}

static void end(void)
{
	until(serves_five, HOUR, "replicas for the traffic serve");
	run(20 * MINUTE);
	chat->rate = 0;
	until(has_shrunk, 3 * HOUR, "what is of no more use goes");
	world_end();
}

/* Whoever leads, or follows, loses each of its peers in each way, just before traffic comes and just before it goes. */
static void any_line_of_one_replica_may_be_cut(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int who = 0; who < WORLD_REPLICAS; who++)
		for (int peer = 0; peer < PEER_COUNT; peer++)
			for (int line = LINE_REFUSES; line < LINE_COUNT; line++) {
				if (who && (peer == PEER_CLOUD || peer == PEER_METRICS))
					continue; /* who follows asks neither */
				begin(seed++);
				laws_expect_errors(true);
				line_set(who, (enum peer)peer, (enum line)line);
				chat->rate = 4;
				run(4 * MINUTE);
				line_set(who, (enum peer)peer, LINE_WORKS);
				end();
			}
}

/* Its lease was renewed and it never hears so: it stops in time, and the other leads. */
static void a_leader_that_hears_no_answer_follows(void **state)
{
	(void)state;
	begin(1);
	laws_expect_errors(true);
	chat->rate = 4;
	line_set(0, PEER_API, LINE_LOSES_ANSWERS);
	until(one_leads, 2 * MINUTE, "the other leads");
	until(serves_five, HOUR, "replicas for the traffic serve");
	line_set(0, PEER_API, LINE_WORKS);
	run(20 * MINUTE);
	assert_int_equal(replica_leader(), 1);
	end();
}

/* Under load the leader alone reads no page: nothing of what serves is given back. */
static void a_leader_that_reads_no_page_gives_nothing_back(void **state)
{
	(void)state;
	for (int line = LINE_REFUSES; line < LINE_COUNT; line++) {
		begin(1);
		chat->rate = 4;
		until(serves_five, HOUR, "replicas for the traffic serve");
		run(20 * MINUTE);
		int64_t desired = world_desired("chat");
		line_set(0, PEER_METRICS, (enum line)line);
		for (int i = 0; i < 60; i++) {
			run(MINUTE);
			assert_true(world_desired("chat") >= desired);
		}
		line_set(0, PEER_METRICS, LINE_WORKS);
		end();
	}
}

/* With a name, or a part of it with *, only those. */
int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_line_of_one_replica_may_be_cut),
		cmocka_unit_test(a_leader_that_hears_no_answer_follows),
		cmocka_unit_test(a_leader_that_reads_no_page_gives_nothing_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
