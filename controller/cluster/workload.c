/* What says how many pods belong together: Jobs, JobSets, PodGroups, Kueue's Workloads. */
#include "controller/cluster/model_inside.h"

#include <stdlib.h>
#include <string.h>

static bool has_uid(const void *item, const void *key)
{
	const struct workload *w = item;
	const struct object_uid *uid = key;
	return w->uid[0] == uid->high && w->uid[1] == uid->low;
}

static struct workload *find(const struct cluster *c, struct object_uid uid)
{
	return store_find(&c->workloads, hash_bytes(0, &uid, sizeof uid), has_uid, &uid);
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
		w->size = within(r->least, 1);
		break;
	case CLUSTER_KUEUE_WORKLOADS:
		w->is_suspended = admitted == NULL || !is_text(admitted->status, "True");
		w->size = sum_of_parts(r);
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

static void release(struct cluster *c, struct workload *w)
{
	store_remove(&c->workloads, w);
	intern_drop(&c->intern, w->name_space);
	intern_drop(&c->intern, w->name);
	intern_drop(&c->intern, w->owner);
	free(w);
}

bool cluster_workload_seen(struct cluster *c, enum cluster_kind kind, const struct workload_record *r,
			   const struct watch_seen *seen)
{
	struct workload *w = find(c, seen->uid);
	if (w == NULL) {
		w = model_alloc(sizeof *w);
		w->kind = kind;
		w->name_space = intern_text(&c->intern, seen->name_space == NULL ? "" : seen->name_space);
		w->name = intern_text(&c->intern, seen->name);
		w->owner = intern_text(&c->intern, controller_uid(r));
		w->uid[0] = seen->uid.high;
		w->uid[1] = seen->uid.low;
		w->hash = hash_bytes(0, &seen->uid, sizeof seen->uid);
		store_add(&c->workloads, w);
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
	if (w != NULL)
		release(c, w);
}

const struct workload *workload_named(const struct cluster *c, enum cluster_kind kind, const char *name_space,
				      const char *name)
{
	const struct workload *w = NULL;
	for (size_t i = 0; (w = store_next(&c->workloads, &i)) != NULL;)
		if (w->kind == kind && strcmp(w->name, name) == 0 && strcmp(w->name_space, name_space) == 0)
			return w;
	return NULL;
}

const struct workload *workload_by_uid(const struct cluster *c, const char *uid)
{
	return find(c, object_uid_of(uid));
}

const struct workload *workload_owned_by(const struct cluster *c, enum cluster_kind kind, const char *uid)
{
	const struct workload *w = NULL;
	for (size_t i = 0; (w = store_next(&c->workloads, &i)) != NULL;)
		if (w->kind == kind && w->owner != NULL && strcmp(w->owner, uid) == 0)
			return w;
	return NULL;
}
