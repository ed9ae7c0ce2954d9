/* Pods that are of use only together. */
#include "controller/cluster/model_inside.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[GANG_KIND_COUNT] = { "", "Job", "JobSet", "Kueue", "PodGroup", "LeaderWorkerSet" };

const char *gang_kind_name(enum gang_kind kind)
{
	return kind_names[kind];
}

/* A Job that Kueue admits is admitted whole, whatever the Job itself says. */
static struct gang_of_pod gang_of_job(const struct cluster *c, const struct pod *p)
{
	const struct workload *job = workload_by_uid(c, p->owner->uid);
	const struct workload *queued = workload_owned_by(c, CLUSTER_KUEUE_WORKLOADS, p->owner->uid);
	if (job == NULL && queued == NULL)
		return (struct gang_of_pod){ GANG_NONE, NULL, 1, false };
	return (struct gang_of_pod){
		.kind = GANG_JOB,
		.name = p->owner->name,
		.size = job != NULL ? job->size : queued->size,
		.is_suspended = (job != NULL && job->is_suspended) || (queued != NULL && queued->is_suspended),
	};
}

struct gang_of_pod gang_of(const struct cluster *c, const struct pod *p)
{
	if (p->gang_kind == GANG_NONE)
		return p->owner != NULL && strcmp(p->owner->kind, "Job") == 0
			       ? gang_of_job(c, p)
			       : (struct gang_of_pod){ GANG_NONE, NULL, 1, false };
	struct gang_of_pod g = { (enum gang_kind)p->gang_kind, p->gang, p->gang_size, false };
	enum cluster_kind kind = p->gang_kind == GANG_JOB_SET ? CLUSTER_JOB_SETS : CLUSTER_POD_GROUPS;
	if (p->gang_kind == GANG_JOB_SET || p->gang_kind == GANG_POD_GROUP) {
		const struct workload *w = workload_named(c, kind, p->namespace, p->gang);
		if (w != NULL) {
			g.size = w->size;
			g.is_suspended = w->is_suspended;
		}
	}
	return g;
}

struct gang_key {
	enum gang_kind kind;
	const char *name_space, *name;
};

static bool is_gang(const void *item, const void *key)
{
	const struct gang_entry *e = item;
	const struct gang_key *k = key;
	return e->gang.kind == k->kind && strcmp(e->gang.namespace, k->name_space) == 0 &&
	       strcmp(e->gang.name, k->name) == 0;
}

static struct gang_entry *entry_of(const struct gang_table *t, struct gang_key key)
{
	uint32_t hash = hash_text(hash_text((uint32_t)key.kind, key.name_space), key.name);
	return store_find(&t->store, hash, is_gang, &key);
}

static void count_pod(struct gang *g, const struct pod *p)
{
	g->exist++;
	g->pending += p->state == POD_UNSCHEDULED || p->state == POD_GATED;
	g->finished += p->state == POD_FINISHED;
	g->running += p->node != NULL && p->state != POD_FINISHED && p->state != POD_TERMINATING;
	g->gpus_milli += p->gpus_milli;
	if (g->exist == 1)
		g->pool = p->pool;
	else if (g->pool != p->pool)
		g->pool = -1;
	if (g->since == 0 || p->created_at < g->since)
		g->since = p->created_at;
}

struct gang_table gang_table_make(const struct cluster *c, struct arena *a)
{
	struct gang_table t = { .store = { .hash_offset = offsetof(struct gang_entry, hash) } };
	const struct pod *p = NULL;
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;) {
		struct gang_of_pod of = gang_of(c, p);
		if (of.kind == GANG_NONE)
			continue;
		struct gang_key key = { of.kind, p->namespace, of.name };
		struct gang_entry *e = entry_of(&t, key);
		if (e == NULL) {
			e = arena_new(a, struct gang_entry);
			e->hash = hash_text(hash_text((uint32_t)key.kind, key.name_space), key.name);
			e->gang = (struct gang){ .namespace = arena_strdup(a, p->namespace, strlen(p->namespace)),
						 .name = arena_strdup(a, of.name, strlen(of.name)),
						 .kind = of.kind,
						 .pool = p->pool };
			store_add(&t.store, e);
		}
		e->gang.is_suspended = e->gang.is_suspended || of.is_suspended;
		if (of.size > e->gang.size)
			e->gang.size = of.size;
		count_pod(&e->gang, p);
	}
	return t;
}

void gang_table_release(struct gang_table *t)
{
	store_release(&t->store);
}

/* Nobody said how many they are: those that there are. */
static void settle(struct gang *g)
{
	if (g->size <= 0)
		g->size = g->exist;
}

const struct gang *gang_table_find(const struct gang_table *t, const struct cluster *c, const struct pod *p)
{
	struct gang_of_pod of = gang_of(c, p);
	if (of.kind == GANG_NONE)
		return NULL;
	struct gang_entry *e = entry_of(t, (struct gang_key){ of.kind, p->namespace, of.name });
	if (e == NULL)
		return NULL;
	settle(&e->gang);
	return &e->gang;
}

bool gang_is_whole(const struct gang *g)
{
	return !g->is_suspended && g->exist >= g->size;
}

static int by_name(const void *a, const void *b)
{
	const struct gang *x = a, *y = b;
	int order = strcmp(x->namespace, y->namespace);
	if (order == 0)
		order = strcmp(x->name, y->name);
	return order != 0 ? order : (int)x->kind - (int)y->kind;
}

struct gang *cluster_gangs(const struct cluster *c, struct arena *a, size_t *count)
{
	struct gang_table t = gang_table_make(c, a);
	struct gang *gangs = arena_array(a, struct gang, t.store.count);
	struct gang_entry *e = NULL;
	*count = 0;
	for (size_t i = 0; (e = store_next(&t.store, &i)) != NULL;) {
		settle(&e->gang);
		if (e->gang.size > 1)
			gangs[(*count)++] = e->gang;
	}
	gang_table_release(&t);
	if (*count > 1)
		qsort(gangs, *count, sizeof *gangs, by_name);
	return gangs;
}
