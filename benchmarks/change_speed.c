/*
 * What a change of one of many WarmPools costs, apart from the tick: CPU time until the objects are a manifest
 * (choice), the history has it (history), and the policy state is carried over (memory); and by how much the history's
 * file grows. usage: change_speed [POOLS [CHANGES]]
 */
#include "base/clock.h"
#include "controller/loop/objects.h"
#include "controller/policy/policy_state.h"
#include "state/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum part { CHOICE, HISTORY, MEMORY, PARTS };

struct measuring {
	struct pool_object *items;
	size_t count;
	struct arena arenas[2]; /* by turns */
	struct manifest manifests[2];
	struct history *history;
	struct policy_state *memory;
	double began, took[PARTS];
};

static void must(bool ok, const struct error *e)
{
	if (!ok)
		exit(fprintf(stderr, "%s\n", e->message));
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void end_part(struct measuring *m, enum part part)
{
	double now = cpu_ms();

	m->took[part] += now - m->began;
	m->began = now;
}

/* As the API server tells it, with defaults. */
static void say(struct pool_object *o, size_t number, size_t wait)
{
	char spec[2048];
	int len = snprintf(
		spec, sizeof spec,
		"{\"class\":\"interactive\",\"mode\":\"observe\",\"objective\":{\"queueWait\":\"%zus\",\"attainment\":"
		"\"99%%\"},\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"app-%zu\"}},\"gpusPerReplica\":1,"
		"\"gpuResource\":\"nvidia.com/gpu\",\"maxSequences\":16},\"nodeGroups\":[{\"name\":\"g-%zu\","
		"\"external\":{\"label\":\"group\",\"value\":\"g-%zu\"},\"gpusPerNode\":1,\"pricePerHour\":1.2,"
		"\"min\":0,\"max\":8,\"capacityType\":\"on-demand\"}],\"headroom\":{\"min\":0}}",
		wait, number, number, number);

	pool_object_say(o, spec, (size_t)len);
}

static int by_name(const void *a, const void *b)
{
	const struct pool_object *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static void make_objects(struct measuring *m)
{
	char name[32];

	m->items = calloc(m->count, sizeof *m->items);
	must(m->items != NULL, &(struct error){ .message = "no memory" });
	for (size_t i = 0; i < m->count; i++) {
		snprintf(name, sizeof name, "pool-%zu", i);
		m->items[i] = (struct pool_object){
			.namespace = strdup("team"), .name = strdup(name), .uid = strdup(name), .created = (millis)i
		};
		say(&m->items[i], i, 2);
	}
	qsort(m->items, m->count, sizeof *m->items, by_name);
}

/* The history must go on from one manifest to the next. */
static void append_tick(struct measuring *m, int64_t tick)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct pool_snapshot *seen = arena_array(&a, struct pool_snapshot, m->count);
	struct pool_plan *planned = arena_array(&a, struct pool_plan, m->count);
	struct error e = { 0 };

	for (size_t i = 0; i < m->count; i++) {
		seen[i].groups = arena_new(&a, struct group_input);
		planned[i].groups = arena_new(&a, struct group_decision);
		seen[i].group_count = planned[i].group_count = 1;
	}
	must(history_append(m->history,
			    &(struct snapshot){ .tick = tick,
						.now = tick * 15 * SECOND,
						.interval = 15 * SECOND,
						.fleet = &m->manifests[tick % 2].fleet,
						.pools = seen },
			    &(struct plan){ planned, m->count }, &e),
	     &e);
}

static void choose(struct measuring *m, int turn)
{
	must(objects_choose(m->items, m->count, NULL, (struct choice_terms){ 0 }, &m->arenas[turn],
			    &m->manifests[turn]),
	     &(struct error){ .message = "no manifest" });
}

static void change(struct measuring *m, int number)
{
	const struct manifest *was = &m->manifests[(number + 1) % 2], *now = &m->manifests[number % 2];
	struct error e = { 0 };

	append_tick(m, number - 1);
	say(&m->items[m->count / 2], m->count / 2, (size_t)number + 2);
	m->began = cpu_ms();
	arena_release(&m->arenas[number % 2]);
	choose(m, number % 2);
	end_part(m, CHOICE);
	must(history_use_manifest(m->history, now->text, &now->fleet, &e), &e);
	end_part(m, HISTORY);
	struct policy_state *carried = policy_state_migrate(m->memory, &was->fleet, &now->fleet);
	policy_state_free(m->memory);
	m->memory = carried;
	end_part(m, MEMORY);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "choice", "history", "memory" };
	struct measuring m = { .count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000 };
	int changes = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 20;
	char folder[] = "/tmp/change_speed.XXXXXX", path[64];
	struct error e = { 0 };
	struct stat file;

	must(mkdtemp(folder) != NULL, &(struct error){ .message = "no folder" });
	snprintf(path, sizeof path, "%s/history.db", folder);
	make_objects(&m);
	choose(&m, 0);
	m.memory = policy_state_new(&m.manifests[0].fleet);
	m.history = history_create(&(struct history_setup){ .path = path,
							    .manifest = m.manifests[0].text,
							    .fleet = &m.manifests[0].fleet,
							    .program = "",
							    .policy = "",
							    .run = "",
							    .ticks_per_commit = 1,
							    .checkpoint_every = HOUR },
				   &e);
	must(m.history != NULL, &e);
	for (int i = 1; i <= changes; i++)
		change(&m, i);
	for (int i = 0; i < PARTS; i++)
		printf("%-8s %6.2f ms\n", names[i], m.took[i] / changes);
	must(history_finish(m.history, &e), &e);
	must(!stat(path, &file), &(struct error){ .message = "no file" });
	printf("file     %6.0f KiB, with the whole record of the next tick\n", (double)file.st_size / changes / 1024);
	must(!remove(path) && !remove(folder), &(struct error){ .message = "the folder stays" });
	return 0;
}
