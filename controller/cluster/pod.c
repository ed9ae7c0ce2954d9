#include "controller/cluster/model_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[POD_STATE_COUNT] = {
	[POD_UNSCHEDULED] = "unscheduled",
	[POD_GATED] = "gated",
	[POD_SCHEDULED] = "scheduled",
	[POD_PULLING] = "pulling",
	[POD_STARTED] = "started",
	[POD_CRASHING] = "crashing",
	[POD_READY] = "ready",
	[POD_TERMINATING] = "terminating",
	[POD_FINISHED] = "finished",
};
static const char *const trouble_names[POD_TROUBLE_COUNT] = {
	[POD_FINE] = "",
	[POD_IMAGE_PULL] = "ImagePullBackOff",
	[POD_IMAGE_NAME] = "InvalidImageName",
	[POD_CONFIG] = "CreateContainerConfigError",
	[POD_CRASH_LOOP] = "CrashLoopBackOff",
	[POD_UNSCHEDULABLE] = "Unschedulable",
};

const char *pod_state_name(enum pod_state state)
{
	return state_names[state];
}

const char *pod_trouble_name(enum pod_trouble trouble)
{
	return trouble_names[trouble];
}

const char *pod_label(const struct pod *p, const char *key)
{
	return label_set_get(p->labels, key);
}

void pod_uid_text(const struct pod *p, char text[37])
{
	snprintf(text, 37, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, p->uid[0] >> 32,
		 p->uid[0] >> 16 & 0xffff, p->uid[0] & 0xffff, p->uid[1] >> 48, p->uid[1] & 0xffffffffffff);
}

bool pod_counts(const struct pod *p)
{
	return p->state != POD_FINISHED && p->state != POD_GATED;
}

static bool has_uid(const void *item, const void *key)
{
	const struct pod *p = item;
	const struct object_uid *uid = key;
	return p->uid[0] == uid->high && p->uid[1] == uid->low;
}

static uint32_t uid_hash(struct object_uid uid)
{
	return hash_bytes(0, &uid, sizeof uid);
}

void pod_weigh(struct pod *p)
{
	p->gpus_milli = devices_whole_milli(p->node == NULL ? NULL : p->node->labels, p->shape->requests);
}

static struct node *home(const struct pod *p)
{
	return (struct node *)(uintptr_t)p->node;
}

void pod_attach(struct cluster *c, struct pod *p, struct node *n)
{
	struct pod **head = n == NULL ? &c->waiting : &n->pods;
	p->node = n;
	p->next = *head;
	p->link = head;
	if (p->next != NULL)
		p->next->link = &p->next;
	*head = p;
	pod_weigh(p);
	if (n == NULL)
		return;
	n->placeholder_count += p->is_placeholder;
	if (pod_counts(p))
		n->gpus_used_milli += p->gpus_milli;
}

void pod_detach(struct pod *p)
{
	*p->link = p->next;
	if (p->next != NULL)
		p->next->link = p->link;
	p->link = NULL;
	if (p->node == NULL)
		return;
	home(p)->placeholder_count -= p->is_placeholder;
	if (pod_counts(p))
		home(p)->gpus_used_milli -= p->gpus_milli;
}

static bool is_of(const struct pod *p, const struct pool_known *pool)
{
	bool is_here = strcmp(pool->name_space, p->namespace) == 0;
	if (p->is_placeholder) /* never by the selector: a Service that selects the pool's pods must not see it */
		return is_here && strcmp(label_set_get(p->labels, "preheat.dev/placeholder"), pool->name) == 0;
	bool is_one = is_here && pool->selector_count > 0;
	for (size_t k = 0; is_one && k < pool->selector_count; k++) {
		const char *value = label_set_get(p->labels, pool->selector[k].key);
		is_one = value != NULL && strcmp(value, pool->selector[k].value) == 0;
	}
	return is_one;
}

void pod_leave_pool(struct pod *p)
{
	if (p->pool_link == NULL)
		return;
	*p->pool_link = p->pool_next;
	if (p->pool_next != NULL)
		p->pool_next->pool_link = p->pool_link;
	p->pool_next = NULL;
	p->pool_link = NULL;
}

void pod_place(struct cluster *c, struct pod *p)
{
	p->pool = -1;
	for (size_t i = 0; p->pool < 0 && i < c->pool_count; i++)
		if (is_of(p, &c->pools[i]))
			p->pool = (int)i;
	if (p->pool < 0)
		return;
	struct pod **head = &c->pools[p->pool].pods;
	p->pool_next = *head;
	p->pool_link = head;
	if (p->pool_next != NULL)
		p->pool_next->pool_link = &p->pool_next;
	*head = p;
}

/* What two records of one pod may say differently. */
static void drop_texts(struct cluster *c, struct pod *p)
{
	intern_drop(&c->intern, p->image);
	intern_drop(&c->intern, p->labels);
	intern_drop(&c->intern, p->shape);
	intern_drop(&c->intern, p->owner);
	intern_drop(&c->intern, p->gang);
}

void pod_release(struct cluster *c, struct pod *p)
{
	drop_texts(c, p);
	intern_drop(&c->intern, p->trouble_text);
	intern_drop(&c->intern, p->namespace);
	free((void *)(uintptr_t)p->name);
	free(p);
}

static void tell_changes(struct cluster *c, const struct pod *p, const struct pod *before,
			 const struct watch_seen *seen)
{
	bool listed = seen->is_from_list, is_new = before->name == NULL, told = is_new;
	if (is_new)
		model_tell_pod(c, CLUSTER_POD_ADDED, p, p->created_at, listed);
	if (p->node != NULL && before->node == NULL) {
		model_tell_pod(c, CLUSTER_POD_SCHEDULED, p, p->scheduled_at, listed);
		told = true;
	}
	if (p->started_at != 0 && before->started_at == 0) {
		model_tell_pod(c, CLUSTER_POD_STARTED, p, p->started_at, listed);
		told = true;
	}
	if (p->state == POD_READY && (is_new || before->state != POD_READY)) {
		model_tell_pod(c, CLUSTER_POD_READY, p, before->ready_at == 0 ? p->ready_at : seen->arrived, listed);
		told = true;
	}
	bool differs = p->state != before->state || p->trouble != before->trouble || p->node != before->node ||
		       p->pool != before->pool || strcmp(p->ip, before->ip) != 0 || p->evict != before->evict ||
		       p->gpus_milli != before->gpus_milli || p->deletion_cost != before->deletion_cost ||
		       p->undisturbed_until != before->undisturbed_until || p->priority != before->priority;
	if (!told && differs)
		model_tell_pod(c, CLUSTER_POD_CHANGED, p, seen->arrived, listed);
}

static struct pod *pod_find(const struct cluster *c, struct object_uid uid)
{
	return store_find(&c->pods, uid_hash(uid), has_uid, &uid);
}

static struct pod *pod_new(struct cluster *c, const struct watch_seen *seen)
{
	struct pod *p = model_alloc(sizeof *p);
	p->namespace = intern_text(&c->intern, seen->name_space == NULL ? "" : seen->name_space);
	p->name = strdup(seen->name);
	if (p->name == NULL)
		abort();
	p->uid[0] = seen->uid.high;
	p->uid[1] = seen->uid.low;
	p->hash = uid_hash(seen->uid);
	store_add(&c->pods, p);
	return p;
}

/* Of what is over, only what asked for GPUs is worth remembering. */
static bool is_worth_keeping(const struct pod *p)
{
	return p->state != POD_FINISHED || p->has_gpus;
}

bool cluster_pod_seen(struct cluster *c, const struct pod_record *r, const struct watch_seen *seen)
{
	struct pod *p = pod_find(c, seen->uid);
	struct pod before = { 0 };
	if (p != NULL) {
		before = *p;
		pod_detach(p);
		pod_leave_pool(p);
	} else {
		p = pod_new(c, seen);
	}
	pod_read(c, p, r, seen);
	pod_place(c, p);
	bool has_node = r->node_name != NULL && r->node_name[0] != '\0';
	pod_attach(c, p, has_node ? node_expect(c, r->node_name) : NULL);
	tell_changes(c, p, &before, seen);
	if (before.node != NULL && before.node != p->node)
		node_forget_unknown(c, home(&before));
	drop_texts(c, &before); /* so late that what did not change was never freed */
	arena_clear(&c->scratch);
	if (is_worth_keeping(p))
		return true;
	cluster_pod_gone(c, seen->uid, seen->arrived);
	return false;
}

void cluster_pod_gone(struct cluster *c, struct object_uid uid, millis at)
{
	struct pod *p = pod_find(c, uid);
	if (p == NULL)
		return;
	model_tell_pod(c, CLUSTER_POD_GONE, p, at, false);
	struct node *n = home(p);
	pod_detach(p);
	pod_leave_pool(p);
	store_remove(&c->pods, p);
	pod_release(c, p);
	if (n != NULL)
		node_forget_unknown(c, n);
}

const struct pod *cluster_pod(const struct cluster *c, const char *uid)
{
	return pod_find(c, object_uid_of(uid));
}
