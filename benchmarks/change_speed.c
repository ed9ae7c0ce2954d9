/*
 * What a change of one of many WarmPools costs where it is weighed against the others and becomes the manifest in
 * force: CPU time of each part, on one core. usage: change_speed [POOLS [CHANGES]]
 */
#include "base/clock.h"
#include "controller/loop/objects.h"
#include "controller/policy/policy_state.h"
#include "state/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char *spec_of(int number, int min)
{
	char text[2048];

	snprintf(text, sizeof text,
		 "{\"class\":\"interactive\",\"mode\":\"observe\",\"objective\":{\"queueWait\":\"2s\",\"attainment\":"
		 "\"99%%\"},\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"app-%d\"}},\"gpusPerReplica\":1,"
		 "\"gpuResource\":\"nvidia.com/"
		 "gpu\",\"maxSequences\":16},\"nodeGroups\":[{\"name\":\"g-%d\",\"external\":"
		 "{\"label\":\"group\",\"value\":\"g-%d\"},\"gpusPerNode\":1,\"pricePerHour\":1.2,\"min\":0,\"max\":8,"
		 "\"capacityType\":\"on-demand\"}],\"headroom\":{\"min\":%d}}",
		 number, number, number, min);
	return strdup(text);
}

static int by_name(const void *a, const void *b)
{
	const struct pool_object *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static struct pool_object *make_objects(int count)
{
	struct pool_object *items = calloc((size_t)count, sizeof *items);
	char name[32];

	for (int i = 0; items && i < count; i++) {
		snprintf(name, sizeof name, "pool-%d", i);
		items[i] = (struct pool_object){ .namespace = strdup("team"),
						 .name = strdup(name),
						 .uid = strdup(name),
						 .spec = spec_of(i, 0),
						 .created = i };
	}
	if (!items)
		exit(1);
	qsort(items, (size_t)count, sizeof *items, by_name);
	return items;
}

enum part { CHOICE, HISTORY, MEMORY, PARTS };

int main(int argc, char **argv)
{
	static const char *const names[] = { "choice", "history", "memory" };
	int count = argc > 1 ? atoi(argv[1]) : 1000, changes = argc > 2 ? atoi(argv[2]) : 20;
	struct pool_object *items = make_objects(count);
	struct arena arenas[2] = { 0 };
	struct manifest manifests[2] = { 0 };
	double took[PARTS] = { 0 };
	struct error e = { 0 };
	char folder[] = "/tmp/change_speed.XXXXXX", path[64];

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/history.db", folder);
	if (!objects_choose(items, (size_t)count, NULL, false, &arenas[0], &manifests[0]))
		return 1;
	struct policy_state *memory = policy_state_new(&manifests[0].fleet);
	struct history *h = history_create(&(struct history_setup){ .path = path,
								    .manifest = manifests[0].text,
								    .fleet = &manifests[0].fleet,
								    .program = "",
								    .policy = "",
								    .run = "",
								    .ticks_per_commit = 1,
								    .checkpoint_every = HOUR },
					   &e);
	for (int i = 1; i <= changes; i++) {
		struct arena *a = &arenas[i % 2];
		struct manifest *was = &manifests[(i + 1) % 2], *now = &manifests[i % 2];
		char *spec = spec_of(count / 2, i % 8);
		pool_object_say(&items[count / 2], spec, strlen(spec));
		free(spec);
		arena_release(a);
		double begun = now_ms();
		if (!objects_choose(items, (size_t)count, NULL, false, a, now))
			return 1;
		took[CHOICE] += now_ms() - begun;
		begun = now_ms();
		if (!history_use_manifest(h, now->text, &now->fleet, &e))
			return 1;
		took[HISTORY] += now_ms() - begun;
		begun = now_ms();
		struct policy_state *next = policy_state_migrate(memory, &was->fleet, &now->fleet);
		policy_state_free(memory);
		memory = next;
		took[MEMORY] += now_ms() - begun;
	}
	for (int i = 0; i < PARTS; i++)
		printf("%-8s %8.2f ms a change\n", names[i], took[i] / changes);
	return 0;
}
