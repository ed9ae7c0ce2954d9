/*
 * What the model of the cluster says of pods that wait, for tests/rig/placement.py. Lines on standard input: "world
 * NAME", "group NAME GPUS", an object's kind in the plural and its JSON, and "say". To each "say" a line for each pod
 * that waits, "WORLD NAMESPACE/POD there|new|nowhere|later GROUP WHY", and "." at last.
 */
#include "tests/unit/cluster/model_objects.h"

#include <stdlib.h>

enum { GROUPS_MOST = 8 };

static const char *const kinds[CLUSTER_KIND_COUNT] = {
	[CLUSTER_NODES] = "nodes",
	[CLUSTER_PODS] = "pods",
	[CLUSTER_VOLUME_CLAIMS] = "persistentvolumeclaims",
	[CLUSTER_VOLUMES] = "persistentvolumes",
	[CLUSTER_STORAGE_CLASSES] = "storageclasses",
	[CLUSTER_NAMESPACES] = "namespaces",
	[CLUSTER_RESOURCE_SLICES] = "resourceslices",
	[CLUSTER_DEVICE_CLASSES] = "deviceclasses",
	[CLUSTER_RESOURCE_CLAIMS] = "resourceclaims",
};

static const char *const verdicts[] = { [PLACING_NOT_YET] = "later",
					[PLACING_INCOMPLETE] = "later",
					[PLACING_THERE] = "there",
					[PLACING_NEW] = "new",
					[PLACING_NOWHERE] = "nowhere" };

struct state {
	struct cluster *cluster;
	struct arena texts;
	char *world;
	struct cluster_group groups[GROUPS_MOST];
	size_t group_count;
};

static void say(const struct state *s)
{
	const struct placement *p = cluster_placement(s->cluster);

	for (size_t i = 0; i < p->count; i++) {
		const struct placed *w = &p->items[i];
		printf("%s %s/%s %s %s %s\n", s->world, w->pod->namespace, w->pod->name, verdicts[w->placing],
		       w->group >= 0 ? s->groups[w->group].name : "-", w->why ? w->why : "-");
	}
	puts(".");
	fflush(stdout);
}

static void begin(struct state *s, const char *name)
{
	cluster_free(s->cluster);
	arena_clear(&s->texts);
	s->cluster = cluster_new();
	s->world = arena_strdup(&s->texts, name, strlen(name));
	s->group_count = 0;
}

static void add_group(struct state *s, char *line)
{
	char *gpus = strchr(line, ' ');

	if (!gpus || s->group_count == GROUPS_MOST)
		exit(2);
	*gpus++ = '\0';
	s->groups[s->group_count++] =
		group_named(arena_strdup(&s->texts, line, strlen(line)), strtoll(gpus, NULL, 10), 99);
	cluster_set_fleet(s->cluster, NULL, 0, s->groups, s->group_count);
}

static void add_object(struct state *s, const char *kind, const char *json)
{
	for (int k = 0; k < CLUSTER_KIND_COUNT; k++)
		if (kinds[k] && !strcmp(kinds[k], kind)) {
			see_now(s->cluster, (enum cluster_kind)k, json);
			return;
		}
	fprintf(stderr, "no kind %s\n", kind);
	exit(2);
}

int main(void)
{
	struct state s = { 0 };
	char *line = NULL;
	size_t room = 0;

	for (ssize_t len; (len = getline(&line, &room, stdin)) > 0;) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		char *rest = strchr(line, ' ');
		if (rest)
			*rest++ = '\0';
		if (!strcmp(line, "say"))
			say(&s);
		else if (!rest)
			exit(2);
		else if (!strcmp(line, "world"))
			begin(&s, rest);
		else if (!strcmp(line, "group"))
			add_group(&s, rest);
		else
			add_object(&s, line, rest);
	}
	free(line);
	cluster_free(s.cluster);
	arena_release(&s.texts);
	return 0;
}
