#include "controller/cluster/pod.h"

#include "base/alloc.h"
#include "base/quantity.h"
#include "controller/cluster/model_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pod_label(const struct pod *p, const char *key)
{
	return label_set_get(p->labels, key);
}

static const char *own_engine_label(const struct pod *p)
{
	return p->engine_key == NULL ? NULL : label_set_get(p->labels, p->engine_key);
}

bool pod_is_labelled_apart(const struct pod *p)
{
	return pod_has_engines(p) || own_engine_label(p) != NULL;
}

const char *pod_engine_label(const struct pod *p)
{
	const char *own = own_engine_label(p), *common = label_set_get(p->labels, ENGINE_STATE_LABEL);
	bool is_of_one = common != NULL && strcmp(common, "awake") != 0; /* of several it says not which */
	return own == NULL && pod_has_engines(p) && is_of_one ? NULL : own != NULL ? own : common;
}

static bool has_engine(const struct pod *p, const char *key)
{
	for (; p != NULL; p = p->beside)
		if (p->engine_key != NULL && strcmp(p->engine_key, key) == 0)
			return true;
	return false;
}

bool pod_has_left_engine(const struct pod *p)
{
	for (size_t i = 0; i < intern_count(p->labels); i++) {
		const struct label *l = &p->labels->items[i];
		if (strncmp(l->key, ENGINE_STATE_PREFIX, strlen(ENGINE_STATE_PREFIX)) == 0 &&
		    strcmp(l->value, "asleep") != 0 && !has_engine(p, l->key))
			return true;
	}
	return false;
}

void uid_text(const uint64_t uid[2], char text[37])
{
	snprintf(text, 37, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, uid[0] >> 32,
		 uid[0] >> 16 & 0xffff, uid[0] & 0xffff, uid[1] >> 48, uid[1] & 0xffffffffffff);
}

void pod_uid_text(const struct pod *p, char text[37])
{
	uid_text(p->uid, text);
}

bool pod_is_ours(const struct pod *p)
{
	return p->has_gpus || p->pool >= 0;
}

static bool is_low(const struct pod *p)
{
	return p->priority < POD_EXPENDABLE_BELOW;
}

bool pod_is_expendable(const struct pod *p)
{
	return is_low(p) && p->pool < 0 && !p->is_placeholder;
}

bool pod_goes_with_node(const struct pod *p, int pool)
{
	return p->is_placeholder || pod_is_expendable(p) || (pool >= 0 && p->pool == pool);
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

static bool is_apart_by_labels(const struct pod *p)
{
	const struct pod_term_set *apart = p->shape->apart;
	for (size_t i = 0; apart != NULL && i < intern_count(apart); i++)
		if (apart->items[i].of_namespaces != NULL)
			return true;
	return false;
}

static void take_engine(struct pod *to, const struct pod *from)
{
	to->engine = from->engine;
	to->engine_label = from->engine_label;
	to->sleep = from->sleep;
	to->engine_since = from->engine_since;
	to->engine_started = from->engine_started;
	to->engine_key = from->engine_key;
}

/* Its other engines are where it is, and as it is. */
static void follow_beside(struct pod *p)
{
	for (struct pod *e = p->beside; e != NULL; e = e->beside) {
		const struct pod own = *e;
		*e = *p;
		e->pool = own.pool;
		take_engine(e, &own);
		e->beside = own.beside;
		e->pool_next = own.pool_next;
		e->pool_link = own.pool_link;
		e->is_beside = true;
		e->gpus_milli = 0;
		e->next = NULL;
		e->link = NULL;
		e->refusals = NULL;
	}
}

static void pod_attach(struct cluster *c, struct pod *p, struct node *n)
{
	c->prefetch_count += p->is_prefetch;
	c->apart_count += p->shape->apart != NULL;
	c->apart_by_labels += is_apart_by_labels(p);
	c->generation++;
	struct pod **head = n == NULL ? &c->waiting : &n->pods;
	p->node = n;
	p->next = *head;
	p->link = head;
	if (p->next != NULL)
		p->next->link = &p->next;
	*head = p;
	pod_weigh(p);
	follow_beside(p);
	if (n == NULL)
		return;
	n->placeholder_count += p->is_placeholder;
	n->low_count += is_low(p);
	if (pod_counts(p))
		n->gpus_used_milli += p->gpus_milli;
	if (pod_is_resident(p))
		template_resident_came(c, n);
}

static void pod_detach(struct cluster *c, struct pod *p)
{
	c->prefetch_count -= p->is_prefetch;
	c->apart_count -= p->shape->apart != NULL;
	c->apart_by_labels -= is_apart_by_labels(p);
	c->generation++;
	*p->link = p->next;
	if (p->next != NULL)
		p->next->link = p->link;
	p->link = NULL;
	if (p->node == NULL)
		return;
	if (pod_is_resident(p))
		template_resident_left(c, p->node);
	home(p)->placeholder_count -= p->is_placeholder;
	home(p)->low_count -= is_low(p);
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

static void leave_list(struct pod *p)
{
	if (p->pool_link == NULL)
		return;
	*p->pool_link = p->pool_next;
	if (p->pool_next != NULL)
		p->pool_next->pool_link = p->pool_link;
	p->pool_next = NULL;
	p->pool_link = NULL;
}

void pod_leave_pool(struct pod *p)
{
	for (struct pod *e = p; e != NULL; e = e->beside)
		leave_list(e);
}

static void join_list(struct cluster *c, struct pod *p)
{
	struct pod **head = &c->pools[p->pool].pods;
	p->pool_next = *head;
	p->pool_link = head;
	if (p->pool_next != NULL)
		p->pool_next->pool_link = &p->pool_next;
	*head = p;
}

static void drop_beside(struct cluster *c, struct pod *e)
{
	for (struct pod *next = NULL; e != NULL; e = next) {
		next = e->beside;
		intern_drop(&c->intern, e->engine_key);
		free(e);
	}
}

/* What two records of one pod may say differently. */
static void drop_texts(struct cluster *c, struct pod *p)
{
	intern_drop(&c->intern, p->image);
	intern_drop(&c->intern, p->labels);
	intern_drop(&c->intern, p->shape);
	intern_drop(&c->intern, p->owner);
	intern_drop(&c->intern, p->gang);
	intern_drop(&c->intern, p->nominated);
}

void pod_release(struct cluster *c, struct pod *p)
{
	drop_texts(c, p);
	drop_beside(c, p->beside);
	intern_drop(&c->intern, p->engine_key);
	intern_drop(&c->intern, p->trouble_text);
	intern_drop(&c->intern, p->namespace);
	free((void *)(uintptr_t)p->name);
	free(p->refusals);
	free(p);
}

static void notify(struct cluster *c, enum cluster_change what, const struct pod *p, millis at, bool is_listed)
{
	struct cluster_event event = { .what = what, .pod = p, .at = at, .is_listed = is_listed };
	if (c->on_change != NULL && (pod_is_ours(p) || p->is_prefetch))
		c->on_change(c->on_change_user, &event);
}

/* has_moved: an engine in it sleeps or wakes. */
static void notify_changes(struct cluster *c, const struct pod *p, const struct pod *before,
			   const struct watch_seen *seen, bool has_moved)
{
	bool listed = seen->is_from_list, is_new = before->name == NULL, told = is_new;
	if (is_new)
		notify(c, CLUSTER_POD_ADDED, p, p->created_at, listed);
	if (p->node != NULL && before->node == NULL) {
		notify(c, CLUSTER_POD_SCHEDULED, p, p->scheduled_at, listed);
		told = true;
	}
	if (p->started_at != 0 && before->started_at == 0) {
		notify(c, CLUSTER_POD_STARTED, p, p->started_at, listed);
		told = true;
	}
	if (p->state == POD_READY && (is_new || before->state != POD_READY)) {
		notify(c, CLUSTER_POD_READY, p, before->ready_at == 0 ? p->ready_at : seen->arrived, listed);
		told = true;
	}
	bool differs = p->state != before->state || p->trouble != before->trouble || p->node != before->node ||
		       p->pool != before->pool || strcmp(p->ip, before->ip) != 0 || p->evict != before->evict ||
		       p->gpus_milli != before->gpus_milli || p->deletion_cost != before->deletion_cost ||
		       p->undisturbed_until != before->undisturbed_until || p->priority != before->priority ||
		       has_moved;
	if (!told && differs)
		notify(c, CLUSTER_POD_CHANGED, p, seen->arrived, listed);
}

/* How far a pod is, and since when. */

static const struct {
	const char *reason;
	enum pod_trouble trouble;
} troubles[] = {
	{ "ErrImagePull", POD_IMAGE_PULL },	   { "ImagePullBackOff", POD_IMAGE_PULL },
	{ "RegistryUnavailable", POD_IMAGE_PULL }, { "SignatureValidationFailed", POD_IMAGE_PULL },
	{ "InvalidImageName", POD_IMAGE_NAME },	   { "ErrImageNeverPull", POD_IMAGE_NAME },
	{ "ImageInspectError", POD_IMAGE_NAME },   { "CreateContainerConfigError", POD_CONFIG },
	{ "CreateContainerError", POD_CONFIG },	   { "RunContainerError", POD_CONFIG },
	{ "CrashLoopBackOff", POD_CRASH_LOOP },
};

struct progress {
	enum pod_trouble trouble;
	const char *text;
	millis running_at; /* of the last container to start; 0 while one is missing */
	bool are_running;
};

static enum pod_trouble trouble_of(const char *reason)
{
	for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
		if (strcmp(troubles[i].reason, reason) == 0)
			return troubles[i].trouble;
	return POD_FINE;
}

static void look_for_trouble(struct progress *p, const struct decoded_list *statuses)
{
	const struct container_status_record *items = statuses->items;
	for (size_t i = 0; i < statuses->count; i++) {
		if (p->trouble != POD_FINE || items[i].waiting == NULL)
			continue;
		p->trouble = trouble_of(items[i].waiting);
		p->text = items[i].message;
	}
}

static struct progress containers_of(const struct pod_record *r)
{
	struct progress p = { 0 };
	const struct container_status_record *items = r->statuses.items;
	look_for_trouble(&p, &r->init_statuses);
	look_for_trouble(&p, &r->statuses);
	p.are_running = r->statuses.count > 0;
	for (size_t i = 0; i < r->statuses.count; i++) {
		p.are_running = p.are_running && items[i].running_at != 0;
		if (items[i].running_at > p.running_at)
			p.running_at = items[i].running_at;
	}
	return p;
}

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

static enum pod_state state_of(const struct pod_record *r, const struct progress *p)
{
	const struct condition_record *ready = condition_of(&r->conditions, "Ready");
	if (is_text(r->phase, "Succeeded") || is_text(r->phase, "Failed"))
		return POD_FINISHED;
	if (r->deleted_at != 0)
		return POD_TERMINATING;
	if (r->node_name == NULL || r->node_name[0] == '\0')
		return r->gates.count > 0 ? POD_GATED : POD_UNSCHEDULED;
	if (ready != NULL && is_text(ready->status, "True"))
		return POD_READY;
	if (p->trouble == POD_IMAGE_PULL || p->trouble == POD_IMAGE_NAME)
		return POD_PULLING;
	if (p->trouble == POD_CRASH_LOOP)
		return POD_CRASHING;
	return p->are_running ? POD_STARTED : POD_SCHEDULED;
}

/*
 * Once known a time stays: a replica that is ready for the second time was first ready then. Clocks differ, but no
 * stage takes less than nothing.
 */
static millis kept(millis before, bool has_happened, millis at, millis least)
{
	if (before != 0 || !has_happened)
		return before;
	return at < least ? least : at;
}

/* The object says when the grace ends. */
static millis deletion_asked(const struct pod_record *r)
{
	bool is_sane = r->deletion_grace > 0 && r->deletion_grace < r->deleted_at / SECOND;
	return is_sane ? r->deleted_at - r->deletion_grace * SECOND : r->deleted_at;
}

static void read_progress(struct cluster *c, struct pod *p, const struct pod_record *r, const struct watch_seen *seen)
{
	struct progress now = containers_of(r);
	const struct condition_record *scheduled = condition_of(&r->conditions, "PodScheduled");
	const struct condition_record *ready = condition_of(&r->conditions, "Ready");
	p->state = state_of(r, &now);
	if (p->state == POD_UNSCHEDULED && scheduled != NULL && is_text(scheduled->reason, "Unschedulable")) {
		now.trouble = POD_UNSCHEDULABLE;
		now.text = scheduled->message;
	}
	p->is_looked_at = scheduled != NULL;
	p->trouble = p->state == POD_READY || p->state == POD_FINISHED ? POD_FINE : now.trouble;
	intern_drop(&c->intern, p->trouble_text);
	size_t len = p->trouble == POD_FINE || now.text == NULL ? 0 : strnlen(now.text, 200);
	p->trouble_text = intern_bytes(&c->intern, len == 0 ? "" : now.text, len);

	bool has_node = r->node_name != NULL && r->node_name[0] != '\0';
	millis placed = model_moment(c, seen, scheduled == NULL ? 0 : scheduled->changed_at);
	millis started = model_moment(c, seen, now.running_at);
	millis served = model_moment(c, seen, ready == NULL ? 0 : ready->changed_at);
	millis going = model_moment(c, seen, deletion_asked(r));
	p->created_at = kept(p->created_at, true, model_moment(c, seen, r->created_at), 0);
	p->scheduled_at = kept(p->scheduled_at, has_node, placed, p->created_at);
	p->started_at = kept(p->started_at, now.are_running || p->state == POD_READY, started, p->scheduled_at);
	p->ready_at = kept(p->ready_at, p->state == POD_READY, served, p->started_at);
	p->terminating_at = kept(p->terminating_at, r->deleted_at != 0, going, p->created_at);
}

/* What a pod object says, apart from how far it is. */

static void read_owner(struct cluster *c, struct pod *p, const struct pod_record *r)
{
	const struct owner_record *owners = r->owners.items;
	p->owner = NULL;
	p->kind = POD_BARE;
	for (size_t i = 0; i < r->owners.count; i++) {
		const struct owner_record *o = &owners[i];
		if (!o->is_controller || o->kind == NULL || o->name == NULL || o->uid == NULL)
			continue;
		struct pod_owner row = { intern_text(&c->intern, o->kind), intern_text(&c->intern, o->name),
					 intern_text(&c->intern, o->uid) };
		p->owner = intern_rows(&c->intern, INTERN_OWNER, &row, 1);
		intern_drop(&c->intern, row.kind);
		intern_drop(&c->intern, row.name);
		intern_drop(&c->intern, row.uid);
		p->kind = is_text(o->kind, "DaemonSet") ? POD_DAEMON
			  : is_text(o->kind, "Node")	? POD_STATIC
							: POD_REPLICATED;
		break;
	}
	if (decoded_get(&r->annotations, "kubernetes.io/config.mirror") != NULL)
		p->kind = POD_STATIC;
	else if (is_text(decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/daemonset-pod"), "true"))
		p->kind = POD_DAEMON;
}

/* Whether a comma-separated list holds the name. */
static bool lists(const char *list, const char *name)
{
	size_t len = strlen(name);
	while (list != NULL && *list != '\0') {
		list += strspn(list, ", ");
		if (strncmp(list, name, len) == 0 && (list[len] == '\0' || list[len] == ',' || list[len] == ' '))
			return true;
		list = strchr(list, ',');
	}
	return false;
}

static bool is_in_memory(const struct volume_record *v)
{
	static const char memory[] = "\"Memory\"";
	return v->empty_dir.text != NULL &&
	       memmem(v->empty_dir.text, v->empty_dir.len, memory, sizeof memory - 1) != NULL;
}

static bool has_local_storage(const struct pod_record *r)
{
	const char *excused =
		decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes");
	const struct volume_record *volumes = r->volumes.items;
	for (size_t i = 0; i < r->volumes.count; i++) {
		bool is_local = volumes[i].host_path.text != NULL ||
				(volumes[i].empty_dir.text != NULL && !is_in_memory(&volumes[i]));
		if (is_local && (volumes[i].name == NULL || !lists(excused, volumes[i].name)))
			return true;
	}
	return false;
}

static int whole_or(const char *text, int otherwise)
{
	int64_t value = 0;
	bool is_negative = text != NULL && text[0] == '-';
	if (text == NULL || decimal_parse(text + is_negative, strlen(text + is_negative), 0, &value) != DECIMAL_OK ||
	    value > INT32_MAX)
		return otherwise;
	return is_negative ? (int)-value : (int)value;
}

static void read_wishes(const struct cluster *c, struct pod *p, const struct pod_record *r)
{
	const char *evict = decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict");
	const char *still = decoded_get(&r->annotations, do_not_disrupt_annotation);
	millis duration = 0;
	p->evict = is_text(evict, "true")	     ? POD_EVICT_SAFE
		   : is_text(evict, "false")	     ? POD_EVICT_NEVER
		   : is_text(evict, "on-completion") ? POD_EVICT_ON_COMPLETION
						     : POD_EVICT_UNSAID;
	p->undisturbed_until = 0;
	if (is_text(still, "true"))
		p->undisturbed_until = INT64_MAX;
	else if (still != NULL && duration_parse(still, strlen(still), &duration) && duration < DAY * 3650)
		p->undisturbed_until =
			(c->ignores_stamps || r->created_at == 0 ? p->created_at : r->created_at) + duration;
	p->has_local_storage = has_local_storage(r);
	p->deletion_cost = whole_or(decoded_get(&r->annotations, "controller.kubernetes.io/pod-deletion-cost"), 0);
	p->priority = (int)(r->priority > INT32_MAX ? INT32_MAX : r->priority < INT32_MIN ? INT32_MIN : r->priority);
	p->grace_seconds = r->grace < 0 ? 0 : r->grace > DAY ? (int)DAY : (int)r->grace;
}

/* Its container has started anew since the label was written. */
static bool is_label_old(const struct pod *p, const struct pod_record *r)
{
	char key[sizeof ENGINE_STARTED_PREFIX + 256] = ENGINE_STARTED_ANNOTATION;
	if (pod_is_labelled_apart(p))
		snprintf(key, sizeof key, ENGINE_STARTED_PREFIX "%s", p->engine_key + strlen(ENGINE_STATE_PREFIX));
	int64_t started = whole_or(decoded_get(&r->annotations, key), 0);
	return started != 0 && p->engine_started != 0 && p->engine_started != started * SECOND;
}

/* r: NULL where only its pools are others. */
static enum pod_engine engine_label_of(const struct pod *p, const struct pod_record *r)
{
	if (r != NULL && is_label_old(p, r))
		return POD_ENGINE_AWAKE;
	static const char *const names[POD_ENGINE_COUNT] = { "awake", "falling-asleep", "asleep", "waking" };
	const char *state = pod_engine_label(p);
	for (int i = 0; i < POD_ENGINE_COUNT; i++)
		if (is_text(state, names[i]))
			return (enum pod_engine)i;
	return is_text(label_set_get(p->labels, "dual-pods.llm-d.ai/sleeping"), "true") ||
			       is_text(label_set_get(p->labels, "sleeping"), "true")
		       ? POD_ENGINE_ASLEEP
		       : POD_ENGINE_AWAKE;
}

static bool settle_engine(struct pod *p, millis at)
{
	bool is_awake = p->engine_label == POD_ENGINE_AWAKE;
	enum pod_engine now = is_awake && p->sleep != POD_SLEEP_NONE ? POD_ENGINE_ASLEEP : p->engine_label;
	bool differs = now != p->engine;
	if (differs || p->engine_since == 0)
		p->engine_since = at;
	p->engine = now;
	return differs;
}

/* The one that it had, out of its list; else a new one. */
static struct pod *engine_beside(struct pod **had, const char *key)
{
	while (*had != NULL && (*had)->engine_key != key)
		had = &(*had)->beside;
	struct pod *e = *had;
	if (e != NULL) {
		*had = e->beside;
		return e;
	}
	e = xcalloc(1, sizeof *e);
	e->is_beside = true;
	return e;
}

/* What was known of another engine is not so of this one. */
static void take_key(struct cluster *c, struct pod *e, const char *key)
{
	const char *was = e->engine_key;
	e->engine_key = key;
	intern_drop(&c->intern, was);
	if (was == key || (was == NULL && !e->is_beside))
		return;
	e->sleep = POD_SLEEP_NONE;
	e->engine_label = engine_label_of(e, NULL);
	settle_engine(e, e->engine_since);
}

static const char *engine_key(struct cluster *c, const struct pool_known *pool)
{
	char key[sizeof ENGINE_STATE_PREFIX + 256];
	if (pool->share == NULL)
		return NULL;
	snprintf(key, sizeof key, ENGINE_STATE_PREFIX "%s", pool->name);
	return intern_text(&c->intern, key);
}

/* An engine of the pool stands beside those that the pod has: of two on one port nobody knows which it is. */
static bool has_another(const struct cluster *c, const struct pod *p, const struct pool_known *pool)
{
	const struct pool_known *first = &c->pools[p->pool];
	bool is_of_share =
		first->share != NULL && pool->share != NULL && strcmp(first->share, pool->share) == 0 && is_of(p, pool);
	for (; is_of_share && p != NULL; p = p->beside)
		is_of_share = c->pools[p->pool].port != pool->port;
	return is_of_share;
}

static void change_places(struct pod *p, struct pod *e)
{
	const struct pod was = *p;
	take_engine(p, e);
	take_engine(e, &was);
}

static void place_beside(struct cluster *c, struct pod *p)
{
	struct pod *had = p->beside, **end = &p->beside;
	const char *key = p->pool < 0 ? NULL : engine_key(c, &c->pools[p->pool]);
	for (struct pod *e = had; e != NULL; e = e->beside) /* another pool is the first now */
		if (e->engine_key == key)
			change_places(p, e);
	take_key(c, p, key);
	p->beside = NULL;
	for (size_t i = key == NULL || p->is_placeholder ? c->pool_count : (size_t)p->pool + 1; i < c->pool_count;
	     i++) {
		if (!has_another(c, p, &c->pools[i]))
			continue;
		key = engine_key(c, &c->pools[i]);
		struct pod *e = engine_beside(&had, key);
		e->labels = p->labels;
		take_key(c, e, key);
		e->pool = (int)i;
		e->beside = NULL;
		*end = e;
		end = &e->beside;
		join_list(c, e);
	}
	drop_beside(c, had);
	follow_beside(p);
}

/* Of those that no other pool selects. A DaemonSet's pods are for nodes that there are, and so are expendable ones; a
 * placeholder is of its own pool or left over. */
static bool is_of_any(const struct pod *p)
{
	return p->has_gpus && !p->is_placeholder && p->kind != POD_DAEMON && p->kind != POD_STATIC &&
	       !pod_is_expendable(p);
}

/* Pools of a share come before others: a pool that has left it leaves them the pods in which they have engines, too. */
static int pool_of(const struct cluster *c, const struct pod *p)
{
	int first = -1, any = -1;
	for (size_t i = 0; i < c->pool_count; i++) {
		const struct pool_known *pool = &c->pools[i];
		if (pool->takes_any) {
			any = (int)i;
		} else if ((first < 0 || pool->share != NULL) && is_of(p, pool)) {
			first = (int)i;
			if (pool->share != NULL)
				break;
		}
	}
	return first < 0 && is_of_any(p) ? any : first;
}

void pod_place(struct cluster *c, struct pod *p)
{
	p->pool = -1;	     /* who is of none may be expendable */
	if (!p->is_prefetch) /* whatever a selector says */
		p->pool = pool_of(c, p);
	if (p->pool >= 0)
		join_list(c, p);
	place_beside(c, p);
}

static const char *gang_name(const struct pod *p, const struct pod_record *r, const char *label, const char *annotation)
{
	return label != NULL	    ? label_set_get(p->labels, label)
	       : annotation != NULL ? decoded_get(&r->annotations, annotation)
				    : r->group;
}

static void read_gang(struct cluster *c, struct pod *p, const struct pod_record *r)
{
	static const struct {
		enum gang_kind kind;
		const char *label, *annotation; /* whose value is its name; without both it is in the pod's spec */
		const char *size;
	} marks[] = {
		{ GANG_KUEUE, "kueue.x-k8s.io/pod-group-name", NULL, "kueue.x-k8s.io/pod-group-total-count" },
		{ GANG_LEADER_WORKER_SET, "leaderworkerset.sigs.k8s.io/group-key", NULL,
		  "leaderworkerset.sigs.k8s.io/size" },
		{ GANG_POD_GROUP, "scheduling.x-k8s.io/pod-group", NULL,
		  "pod-group.scheduling.sigs.k8s.io/min-available" },
		{ GANG_POD_GROUP, "pod-group.scheduling.sigs.k8s.io/name", NULL,
		  "pod-group.scheduling.sigs.k8s.io/min-available" },
		{ GANG_NATIVE, NULL, NULL, "" },
		{ GANG_JOB_SET, "jobset.sigs.k8s.io/jobset-name", NULL, "" },
		{ GANG_VOLCANO, NULL, "scheduling.k8s.io/group-name", "" },
		{ GANG_KAI, NULL, "pod-group-name", "" },
	};
	p->gang = NULL;
	p->gang_kind = GANG_NONE;
	p->gang_size = 0;
	for (size_t i = 0; p->gang == NULL && i < sizeof marks / sizeof marks[0]; i++) {
		const char *name = gang_name(p, r, marks[i].label, marks[i].annotation);
		if (name == NULL || name[0] == '\0')
			continue;
		p->gang = intern_text(&c->intern, name);
		p->gang_kind = (int)marks[i].kind;
		p->gang_size = whole_or(decoded_get(&r->annotations, marks[i].size), 0);
	}
}

/* That asks for GPUs, else the first; NULL: none is told. */
static const struct container_record *main_container(const struct pod_record *r)
{
	const struct container_record *items = r->containers.items;
	for (size_t i = 0; i < r->containers.count; i++) {
		const struct decoded_map *maps[] = { &items[i].requests, &items[i].limits };
		for (size_t m = 0; m < 2; m++)
			for (size_t k = 0; k < maps[m]->count; k++)
				if (device_is_gpu(maps[m]->pairs[k].key))
					return &items[i];
	}
	return r->containers.count > 0 ? items : NULL;
}

/* That has the port; NULL: none says so. */
static const struct container_record *container_on(const struct pod_record *r, int64_t port)
{
	const struct container_record *items = r->containers.items;
	for (size_t i = 0; i < r->containers.count; i++) {
		const struct port_record *ports = items[i].ports.items;
		for (size_t k = 0; k < items[i].ports.count; k++)
			if (ports[k].own == port)
				return &items[i];
	}
	return NULL;
}

/* `port`: of one of several engines; 0: of the only one. */
static millis engine_started(const struct pod_record *r, int64_t port)
{
	const struct container_record *engine = port == 0 ? main_container(r) : container_on(r, port);
	const struct container_status_record *items = r->statuses.items;
	for (size_t i = 0; engine != NULL && i < r->statuses.count; i++)
		if (is_text(items[i].name, engine->name))
			return items[i].running_at;
	return 0;
}

static bool asks_for_gpus(const struct pod *p)
{
	for (size_t i = 0; i < intern_count(p->shape->requests); i++)
		if (device_is_gpu(p->shape->requests->items[i].name))
			return true;
	return false;
}

/* Of a claim that was not read nobody knows what is held by it: it may be GPUs. */
static void settle_claims(struct cluster *c, struct pod *p, bool is_bound)
{
	struct resource rows[DEVICE_DRIVERS_MOST];
	p->shape = model_shape_with(c, p->shape, rows, device_claims_rows(c, p, rows));
	p->has_gpus = asks_for_gpus(p) || device_claims_gpus(c, p) ||
		      (is_bound && p->state != POD_FINISHED && device_claims_unread(c, p));
}

/* Kubernetes' own are numbers of 64 bits; another server's may be any text. */
static int64_t read_version(const char *text)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;

	return digits > 0 && digits <= 18 && text[digits] == '\0' ? strtoll(text, NULL, 10) : 0;
}

static void read_object(struct cluster *c, struct pod *p, const struct pod_record *r, const struct watch_seen *seen)
{
	p->version = read_version(seen->resource_version);
	p->labels = model_labels(c, &r->labels);
	p->shape = model_shape(c, r, p->name);
	const struct container_record *engine = main_container(r);
	p->image = intern_text(&c->intern, engine == NULL || engine->image == NULL ? "" : engine->image);
	p->nominated = r->nominated == NULL || r->nominated[0] == '\0' ? NULL : intern_text(&c->intern, r->nominated);
	p->is_choosy = model_is_choosy(r);
	p->is_placeholder = label_set_get(p->labels, "preheat.dev/placeholder") != NULL;
	p->is_prefetch = label_set_get(p->labels, PREFETCH_LABEL) != NULL;
	read_owner(c, p, r);
	read_progress(c, p, r, seen);
	settle_claims(c, p, r->node_name != NULL && r->node_name[0] != '\0');
	read_wishes(c, p, r);
	read_gang(c, p, r);
	snprintf(p->ip, sizeof p->ip, "%s", r->ip == NULL ? "" : r->ip);
}

/* Whether any is in another state than it was. */
static bool read_engines(const struct cluster *c, struct pod *p, const struct pod_record *r, millis at)
{
	bool has_moved = false;
	for (struct pod *e = p; e != NULL; e = e->beside) {
		e->engine_started = engine_started(r, pod_is_labelled_apart(e) ? c->pools[e->pool].port : 0);
		e->engine_label = engine_label_of(e, r);
		has_moved |= settle_engine(e, at);
	}
	return has_moved;
}

struct pod *pod_find(const struct cluster *c, struct object_uid uid)
{
	return store_find(&c->pods, uid_hash(uid), has_uid, &uid);
}

static struct pod *pod_new(struct cluster *c, const struct watch_seen *seen)
{
	struct pod *p = xcalloc(1, sizeof *p);
	p->namespace = intern_text(&c->intern, seen->name_space == NULL ? "" : seen->name_space);
	p->name = xstrdup(seen->name);
	p->uid[0] = seen->uid.high;
	p->uid[1] = seen->uid.low;
	p->hash = uid_hash(seen->uid);
	store_add(&c->pods, p);
	return p;
}

/* Of what is over, only what asked for GPUs is worth remembering, what has pulled, and who is of a gang. */
static bool is_worth_keeping(const struct pod *p)
{
	return p->state != POD_FINISHED || p->has_gpus || p->is_prefetch || p->gang_kind != GANG_NONE;
}

bool cluster_pod_seen(struct cluster *c, const struct pod_record *r, const struct watch_seen *seen)
{
	struct pod *p = pod_find(c, seen->uid);
	struct pod before = { 0 };
	if (p != NULL) {
		before = *p;
		pod_detach(c, p);
		pod_leave_pool(p);
	} else {
		p = pod_new(c, seen);
	}
	read_object(c, p, r, seen);
	pod_place(c, p);
	bool has_moved = read_engines(c, p, r, seen->arrived);
	bool has_node = r->node_name != NULL && r->node_name[0] != '\0';
	pod_attach(c, p, has_node ? node_expect(c, r->node_name) : NULL);
	if (before.name != NULL && before.node == NULL && p->node != NULL && !seen->is_from_list)
		c->bound_at = seen->arrived;
	if (before.name != NULL && before.node == NULL && p->node != NULL)
		given_up_one_helped(c, p, before.shape, seen->arrived);
	notify_changes(c, p, &before, seen, has_moved);
	bool is_new = before.name == NULL || (before.state == POD_UNSCHEDULED) != (p->state == POD_UNSCHEDULED);
	if (is_new || before.shape->claims != p->shape->claims)
		device_claims_shared(c, p, seen->arrived);
	if (before.node != NULL && before.node != p->node)
		node_forget_unknown(c, home(&before));
	drop_texts(c, &before); /* so late that what did not change was never freed */
	arena_clear(&c->scratch);
	if (is_worth_keeping(p))
		return true;
	cluster_pod_gone(c, seen->uid, seen->arrived);
	return false;
}

void pod_reweigh(struct cluster *c, struct pod *p, millis at, bool is_listed)
{
	bool was_ours = pod_is_ours(p);
	const struct pod_shape *before = p->shape;
	intern_hold(before); /* an equal value then has the same address */
	bool had_gpus = p->has_gpus;
	pod_detach(c, p);
	pod_leave_pool(p);
	settle_claims(c, p, p->node != NULL);
	pod_place(c, p);
	pod_attach(c, p, home(p));
	if (p->state != POD_FINISHED && (p->shape != before || p->has_gpus != had_gpus))
		notify(c, was_ours ? CLUSTER_POD_CHANGED : CLUSTER_POD_ADDED, p, at, is_listed);
	intern_drop(&c->intern, before);
}

void cluster_engine_told(struct cluster *c, const struct pod *pod, enum pod_sleep sleep, millis at)
{
	struct pod *p = pod_find(c, (struct object_uid){ pod->uid[0], pod->uid[1] }), *e = p;
	while (e != NULL && e->pool != pod->pool)
		e = e->beside;
	if (e == NULL || e->sleep == sleep)
		return;
	e->sleep = sleep;
	if (settle_engine(e, at))
		notify(c, CLUSTER_POD_CHANGED, p, at, false);
}

void cluster_pod_gone(struct cluster *c, struct object_uid uid, millis at)
{
	struct pod *p = pod_find(c, uid);
	if (p == NULL)
		return;
	notify(c, CLUSTER_POD_GONE, p, at, false);
	struct node *n = home(p);
	pod_detach(c, p);
	pod_leave_pool(p);
	device_claims_shared(c, p, at);
	store_remove(&c->pods, p);
	pod_release(c, p);
	if (n != NULL)
		node_forget_unknown(c, n);
	arena_clear(&c->scratch);
}

const struct pod *cluster_pod(const struct cluster *c, const char *uid)
{
	return pod_find(c, object_uid_of(uid));
}
