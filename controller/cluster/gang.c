/* What says how many pods belong together: Jobs, JobSets, PodGroups of four schedulers, Kueue's Workloads. */
#include "base/alloc.h"
#include "controller/cluster/model_state.h"

#include <stdlib.h>
#include <string.h>

static const millis LEADER_ALONE = 15 * SECOND;

static struct workload *find(const struct cluster *c, struct object_uid uid)
{
	return model_find_uid(&c->workloads, uid);
}

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

static int64_t within(int64_t value, int64_t otherwise)
{
	return value <= 0 ? otherwise : value > 1000000 ? 1000000 : value;
}

static int64_t sum_of_parts(const struct workload_record *r)
{
	const struct part_record *parts = r->parts.items;
	int64_t sum = 0;
	for (size_t i = 0; i < r->parts.count; i++)
		sum += parts[i].count > 0 ? within(parts[i].count, 1)
					  : within(parts[i].replicas, 1) * within(parts[i].parallelism, 1);
	return sum;
}

/* Pods with an index each, all of them at once: they speak to each other. More completions than that are a queue. */
static bool is_gang_job(const struct workload_record *r)
{
	const char *told = decoded_get(&r->annotations, "preheat.dev/gang");
	if (told != NULL)
		return is_text(told, "true") && r->parallelism > 1;
	return is_text(r->completion_mode, "Indexed") && r->parallelism > 1 && r->completions == r->parallelism;
}

/* Else some of its pods are made only when others run or are done: those that there are are what it needs. */
static bool is_made_at_once(const struct workload_record *r)
{
	const struct part_record *parts = r->parts.items;
	bool is_ordered = is_text(r->order, "InOrder") && r->parts.count > 1;
	for (size_t i = 0; i < r->parts.count; i++)
		is_ordered = is_ordered || parts[i].after.count > 0;
	return !is_ordered;
}

static void read_workload(struct workload *w, const struct workload_record *r)
{
	const struct condition_record *admitted = condition_of(&r->conditions, "Admitted");
	w->is_suspended = r->is_suspended;
	w->is_gang = true;
	switch ((int)w->kind) {
	case CLUSTER_JOBS:
		w->size = within(r->parallelism, 1);
		w->is_gang = is_gang_job(r);
		break;
	case CLUSTER_POD_GROUPS:
	case CLUSTER_NATIVE_POD_GROUPS:
	case CLUSTER_VOLCANO_POD_GROUPS:
	case CLUSTER_KAI_POD_GROUPS:
		w->size = within(r->least, 1);
		break;
	case CLUSTER_KUEUE_WORKLOADS:
		w->is_suspended = admitted == NULL || !is_text(admitted->status, "True");
		w->size = sum_of_parts(r);
		break;
	case CLUSTER_JOB_SETS:
		w->size = sum_of_parts(r);
		w->is_gang = is_made_at_once(r);
		break;
	default:
		w->size = sum_of_parts(r);
		break;
	}
}

static const char *controller_uid(const struct workload_record *r)
{
	const struct owner_record *owners = r->owners.items;
	for (size_t i = 0; i < r->owners.count; i++)
		if (owners[i].is_controller)
			return owners[i].uid;
	return NULL;
}

struct workload_name {
	enum cluster_kind kind;
	const char *name_space, *name;
};

static bool has_name(const void *item, const void *key)
{
	const struct workload *w = item;
	const struct workload_name *n = key;
	return w->kind == n->kind && strcmp(w->name_space, n->name_space) == 0 && strcmp(w->name, n->name) == 0;
}

static uint32_t name_hash(struct workload_name n)
{
	return hash_text(hash_text((uint32_t)n.kind, n.name_space), n.name);
}

static const struct workload *workload_named(const struct cluster *c, struct workload_name name)
{
	return store_find(&c->workload_names, name_hash(name), has_name, &name);
}

struct workload_owner {
	enum cluster_kind kind;
	const char *uid;
};

static bool has_owner(const void *item, const void *key)
{
	const struct workload *w = item;
	const struct workload_owner *o = key;
	return w->kind == o->kind && strcmp(w->owner, o->uid) == 0;
}

static uint32_t owner_hash(struct workload_owner o)
{
	return hash_text((uint32_t)o.kind, o.uid);
}

static const struct workload *workload_owned_by(const struct cluster *c, struct workload_owner owner)
{
	return store_find(&c->workload_owners, owner_hash(owner), has_owner, &owner);
}

static void add(struct cluster *c, struct workload *w)
{
	w->name_hash = name_hash((struct workload_name){ w->kind, w->name_space, w->name });
	store_add(&c->workloads, w);
	store_add(&c->workload_names, w);
	if (w->owner == NULL)
		return;
	w->owner_hash = owner_hash((struct workload_owner){ w->kind, w->owner });
	store_add(&c->workload_owners, w);
}

static void release(struct cluster *c, struct workload *w)
{
	store_remove(&c->workloads, w);
	store_remove(&c->workload_names, w);
	if (w->owner != NULL)
		store_remove(&c->workload_owners, w);
	intern_drop(&c->intern, w->name_space);
	intern_drop(&c->intern, w->name);
	intern_drop(&c->intern, w->owner);
	free(w);
}

bool cluster_workload_seen(struct cluster *c, enum cluster_kind kind, const struct workload_record *r,
			   const struct watch_seen *seen)
{
	struct workload *w = find(c, seen->uid);
	c->generation++;
	if (w == NULL) {
		w = xcalloc(1, sizeof *w);
		w->kind = kind;
		w->name_space = intern_text(&c->intern, seen->name_space == NULL ? "" : seen->name_space);
		w->name = intern_text(&c->intern, seen->name);
		w->owner = intern_text(&c->intern, controller_uid(r));
		w->id = model_uid_key(seen->uid);
		add(c, w);
	}
	read_workload(w, r);
	if (w->is_gang)
		return true;
	release(c, w);
	return false;
}

void cluster_workload_gone(struct cluster *c, struct object_uid uid)
{
	struct workload *w = find(c, uid);
	c->generation++;
	if (w != NULL)
		release(c, w);
}

static const struct workload *workload_by_uid(const struct cluster *c, const char *uid)
{
	return find(c, object_uid_of(uid));
}

/* Pods that are of use only together. */

/* A Job that Kueue admits is admitted whole, whatever the Job itself says. */
static struct gang_of_pod gang_of_job(const struct cluster *c, const struct pod *p)
{
	const struct workload *job = workload_by_uid(c, p->owner->uid);
	const struct workload *queued =
		workload_owned_by(c, (struct workload_owner){ CLUSTER_KUEUE_WORKLOADS, p->owner->uid });
	if (job == NULL && queued == NULL)
		return (struct gang_of_pod){ GANG_NONE, NULL, 1, false };
	return (struct gang_of_pod){
		.kind = GANG_JOB,
		.name = p->owner->name,
		.size = job != NULL ? job->size : queued->size,
		.is_suspended = (job != NULL && job->is_suspended) || (queued != NULL && queued->is_suspended),
	};
}

/* What says how large one is; CLUSTER_KIND_COUNT: its pods alone do. */
static enum cluster_kind kind_of(enum gang_kind kind)
{
	static const enum cluster_kind kinds[GANG_KIND_COUNT] = {
		[GANG_NONE] = CLUSTER_KIND_COUNT,
		[GANG_JOB] = CLUSTER_KIND_COUNT,
		[GANG_JOB_SET] = CLUSTER_JOB_SETS,
		[GANG_KUEUE] = CLUSTER_KIND_COUNT,
		[GANG_POD_GROUP] = CLUSTER_POD_GROUPS,
		[GANG_NATIVE] = CLUSTER_NATIVE_POD_GROUPS,
		[GANG_VOLCANO] = CLUSTER_VOLCANO_POD_GROUPS,
		[GANG_KAI] = CLUSTER_KAI_POD_GROUPS,
		[GANG_LEADER_WORKER_SET] = CLUSTER_KIND_COUNT,
	};
	return kinds[kind];
}

static bool serves(const struct pod *p)
{
	return p->owner != NULL && (is_text(p->owner->kind, "ReplicaSet") || is_text(p->owner->kind, "StatefulSet"));
}

/* Volcano and KAI make a PodGroup of whatever they schedule: where one pod is enough for it, or where it cannot be read
 * and replicas are in it, each stands for itself. */
static bool is_of_none(const struct pod *p, const struct workload *w)
{
	bool is_of_any = p->gang_kind == GANG_VOLCANO || p->gang_kind == GANG_KAI;
	return p->gang_kind == GANG_NONE || (w == NULL && is_of_any && serves(p)) ||
	       (w != NULL && w->kind != CLUSTER_JOB_SETS && w->size <= 1);
}

struct gang_of_pod gang_of(const struct cluster *c, const struct pod *p)
{
	enum cluster_kind kind = kind_of((enum gang_kind)p->gang_kind);
	const struct workload *w = NULL;
	if (kind != CLUSTER_KIND_COUNT)
		w = workload_named(c, (struct workload_name){ kind, p->namespace, p->gang });
	if (is_of_none(p, w))
		return p->owner != NULL && strcmp(p->owner->kind, "Job") == 0
			       ? gang_of_job(c, p)
			       : (struct gang_of_pod){ GANG_NONE, NULL, 1, false };
	struct gang_of_pod g = { (enum gang_kind)p->gang_kind, p->gang, p->gang_size, false };
	if (w != NULL) {
		g.size = w->size;
		g.is_suspended = w->is_suspended;
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
	g->is_looked_at = g->is_looked_at || (p->state == POD_UNSCHEDULED && p->is_looked_at);
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

/* Nobody said how many they are: those that there are. Nor does a leader's size hold as long as it is alone: its
 * workers may be made only once it has its place, or serves. */
static void settle(const struct cluster *c, struct gang *g)
{
	bool is_alone = g->kind == GANG_LEADER_WORKER_SET && g->exist == 1 && c->followed_at - g->since > LEADER_ALONE;
	if (g->size <= 0 || is_alone)
		g->size = g->exist;
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
	struct gang_entry *e = NULL;
	for (size_t i = 0; (e = store_next(&t.store, &i)) != NULL;)
		settle(c, &e->gang);
	return t;
}

void gang_table_release(struct gang_table *t)
{
	store_release(&t->store);
}

const struct gang *gang_table_find(const struct gang_table *t, const struct cluster *c, const struct pod *p)
{
	struct gang_of_pod of = gang_of(c, p);
	if (of.kind == GANG_NONE)
		return NULL;
	struct gang_entry *e = entry_of(t, (struct gang_key){ of.kind, p->namespace, of.name });
	return e == NULL ? NULL : &e->gang;
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
		if (e->gang.size > 1)
			gangs[(*count)++] = e->gang;
	}
	gang_table_release(&t);
	if (*count > 1)
		qsort(gangs, *count, sizeof *gangs, by_name);
	return gangs;
}
