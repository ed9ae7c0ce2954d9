#include "controller/cluster/node.h"

#include "base/alloc.h"
#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const interruption_names[NODE_INTERRUPTION_COUNT] = { "", "spot interruption", "termination",
									 "rebalance recommendation", "maintenance" };

const char *node_interruption_name(enum node_interruption interruption)
{
	return interruption_names[interruption];
}

bool node_is_usable(const struct node *n)
{
	return n->is_known && n->is_ready && !n->is_cordoned && !n->is_draining && !n->is_leaving &&
	       n->owner == NODE_UNCLAIMED && n->interruption == NODE_STAYS;
}

int64_t node_gpus_held_milli(const struct node *n)
{
	int64_t held = n->gpus_used_milli;
	for (const struct pod *p = n->low_count > 0 ? n->pods : NULL; p != NULL; p = p->next)
		held -= pod_counts(p) && pod_is_expendable(p) ? p->gpus_milli : 0;
	return held;
}

const char *node_label(const struct node *n, const char *key)
{
	if (strcmp(key, "kubernetes.io/hostname") == 0)
		return n->hostname;
	return label_set_get(n->labels, key);
}

const char *node_taint_value(const struct node *n, const char *key)
{
	for (size_t i = 0; i < intern_count(n->taints); i++)
		if (!strcmp(n->taints->items[i].key, key))
			return n->taints->items[i].value;
	return NULL;
}

static bool is_named(const void *item, const void *key)
{
	return strcmp(((const struct node *)item)->name, key) == 0;
}

struct node *node_find(const struct cluster *c, const char *name)
{
	return store_find(&c->nodes, hash_text(0, name), is_named, name);
}

struct node *node_expect(struct cluster *c, const char *name)
{
	struct node *n = node_find(c, name);
	if (n != NULL)
		return n;
	n = xcalloc(1, sizeof *n);
	n->name = intern_text(&c->intern, name);
	n->provider_id = n->machine_id = n->zone = n->instance_type = n->capacity_type = n->drained_by = "";
	n->hash = hash_text(0, name);
	n->group = -1;
	store_add(&c->nodes, n);
	return n;
}

/* What the node object said; what hangs on the node otherwise stays. */
static void forget_object(struct cluster *c, struct node *n)
{
	if (n->provider_id[0] != '\0') {
		store_remove(&c->providers, n);
		intern_drop(&c->intern, n->provider_id);
	}
	intern_drop(&c->intern, n->labels);
	intern_drop(&c->intern, n->taints);
	intern_drop(&c->intern, n->allocatable);
	intern_drop(&c->intern, n->own_allocatable);
	intern_drop(&c->intern, n->own_whole);
	intern_drop(&c->intern, n->hostname);
	if (n->drained_by[0] != '\0')
		intern_drop(&c->intern, n->drained_by);
	n->drained_by = "";
	n->labels = NULL;
	n->taints = NULL;
	n->allocatable = n->own_allocatable = n->own_whole = NULL;
	n->hostname = NULL;
	n->provider_id = n->machine_id = n->zone = n->instance_type = n->capacity_type = "";
}

void node_release(struct cluster *c, struct node *n)
{
	forget_object(c, n);
	intern_drop(&c->intern, n->came_taints);
	intern_drop(&c->intern, n->born_taints);
	store_remove(&c->nodes, n);
	intern_drop(&c->intern, n->name);
	free(n);
}

void node_forget_unknown(struct cluster *c, struct node *n)
{
	if (!n->is_known && n->pods == NULL && n->slices == NULL)
		node_release(c, n);
}

static const char *first_label(const struct label_set *labels, const char *const *keys)
{
	for (; *keys != NULL; keys++) {
		const char *value = label_set_get(labels, *keys);
		if (value != NULL)
			return value;
	}
	return "";
}

const char *node_zone_of(const struct label_set *labels)
{
	static const char *const zones[] = { "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone",
					     NULL };
	return first_label(labels, zones);
}

static const char *capacity_type(const struct node *n)
{
	const char *key;
	for (size_t i = 0; (key = capacity_label_at(i)) != NULL; i++) {
		const char *told = label_set_get(n->labels, key);
		if (told != NULL)
			return capacity_of_word(told);
	}
	return "";
}

/* A device that is broken is no more allocatable, and the machine's all the same. */
static void raise_to_capacity(struct cluster *c, struct resource *amounts, size_t count, const struct node_record *r)
{
	size_t all = 0;
	const struct resource *capacity = model_amounts(c, &r->capacity, &all);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < all; k++)
			if (strchr(amounts[i].name, '/') != NULL && strcmp(amounts[i].name, capacity[k].name) == 0 &&
			    amounts[i].milli < capacity[k].milli)
				amounts[i].milli = capacity[k].milli;
}

static void read_resources(struct cluster *c, struct node *n, const struct node_record *r)
{
	size_t count = 0;
	struct resource *amounts = model_amounts(c, &r->allocatable, &count);
	struct resource devices[DEVICE_ROWS_MOST];
	n->own_allocatable = model_resources(c, amounts, count);
	n->allocatable = model_with_devices(c, n->own_allocatable, devices, device_slices_rows(c, n, devices));
	raise_to_capacity(c, amounts, count, r);
	n->own_whole = model_resources(c, amounts, count);
}

static void read_identity(struct cluster *c, struct node *n, const struct node_record *r)
{
	static const char *const types[] = { "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
					     NULL };
	struct decoded_pair *pairs = arena_array(&c->scratch, struct decoded_pair, r->labels.count);
	struct decoded_map labels = { pairs, 0 };
	for (size_t i = 0; i < r->labels.count; i++)
		if (strcmp(r->labels.pairs[i].key, "kubernetes.io/hostname") != 0)
			pairs[labels.count++] = r->labels.pairs[i];
	n->labels = model_labels(c, &labels);
	const char *drained_by = decoded_get(&r->annotations, "preheat.dev/draining");
	if (drained_by != NULL && drained_by[0] != '\0')
		n->drained_by = intern_text(&c->intern, drained_by);
	n->hostname = intern_text(&c->intern, decoded_get(&r->labels, "kubernetes.io/hostname"));
	n->taints = model_taints(c, &r->taints);
	read_resources(c, n, r);
	n->zone = node_zone_of(n->labels);
	n->instance_type = first_label(n->labels, types);
	n->capacity_type = capacity_type(n);
	if (r->provider_id != NULL && r->provider_id[0] != '\0') {
		n->provider_id = intern_text(&c->intern, r->provider_id);
		n->machine_id = machine_of_provider_id(n->provider_id);
		n->provider_hash = hash_any_case(n->provider_id);
		store_add(&c->providers, n);
	}
}

enum taint_meaning { TAINT_STARTING, TAINT_LAGGING, TAINT_OURS, TAINT_OWNED, TAINT_INTERRUPTED };
enum key_part { WHOLE, PREFIX, SUFFIX };

/* Of Kubernetes, of autoscalers on any cloud, and our own; those of clouds are in node_taint_marks. */
struct taint_rule {
	const char *key;
	enum key_part part;
	enum taint_meaning meaning;
	int value;
};
static const struct taint_rule taint_rules[] = {
	{ "preheat.dev/draining", WHOLE, TAINT_OURS, 0 },
	{ "ToBeDeletedByClusterAutoscaler", WHOLE, TAINT_OWNED, NODE_AUTOSCALER },
	{ "DeletionCandidateOfClusterAutoscaler", WHOLE, TAINT_OWNED, NODE_AUTOSCALER },
	{ "atlassian.com/escalator", PREFIX, TAINT_OWNED, NODE_ESCALATOR },
	{ "node.cloudprovider.kubernetes.io/shutdown", WHOLE, TAINT_INTERRUPTED, NODE_MAINTAINED },
	{ "startup-taint.cluster-autoscaler.kubernetes.io/", PREFIX, TAINT_STARTING, 0 },
	{ "ignore-taint.cluster-autoscaler.kubernetes.io/", PREFIX, TAINT_STARTING, 0 },
	{ "readiness.k8s.io/", PREFIX, TAINT_STARTING, 0 },
	{ "node.cloudprovider.kubernetes.io/uninitialized", WHOLE, TAINT_STARTING, 0 },
	{ "node.cluster.x-k8s.io/uninitialized", WHOLE, TAINT_STARTING, 0 },
	{ "/agent-not-ready", SUFFIX, TAINT_STARTING, 0 }, /* of CSI drivers and of Cilium */
	{ "cni.istio.io/not-ready", WHOLE, TAINT_STARTING, 0 },
	{ "node.gardener.cloud/critical-components-not-ready", WHOLE, TAINT_STARTING, 0 },
	/* The node controller takes them off some seconds after the condition that they follow. */
	{ "node.kubernetes.io/not-ready", WHOLE, TAINT_LAGGING, 0 },
	{ "node.kubernetes.io/unreachable", WHOLE, TAINT_LAGGING, 0 },
	{ "node.kubernetes.io/network-unavailable", WHOLE, TAINT_LAGGING, 0 },
};

static bool is_key(const char *key, const char *wanted, enum key_part part)
{
	size_t len = strlen(wanted), all = strlen(key);
	if (part == SUFFIX)
		return all >= len && strcmp(key + all - len, wanted) == 0;
	return strncmp(key, wanted, len + (part == WHOLE)) == 0;
}

/* NULL without. */
static const struct taint_rule *rule_of(const char *key)
{
	for (size_t i = 0; i < sizeof taint_rules / sizeof taint_rules[0]; i++)
		if (is_key(key, taint_rules[i].key, taint_rules[i].part))
			return &taint_rules[i];
	return NULL;
}

/* What a cloud or its tools say by a taint; the last row of the table where they say nothing. */
static const struct taint_mark *cloud_mark(const char *key)
{
	const struct taint_mark *mark = node_taint_marks;
	while (mark->key != NULL && !is_key(key, mark->key, mark->is_prefix ? PREFIX : WHOLE))
		mark++;
	return mark;
}

/* The gravest of several: what is sure to go soonest. */
static void interrupt(struct node *n, enum node_interruption why)
{
	if (why != NODE_STAYS && (n->interruption == NODE_STAYS || why < n->interruption))
		n->interruption = why;
}

static void read_taint(struct node *n, const char *key)
{
	const struct taint_mark *mark = cloud_mark(key);
	if (mark->owner != NODE_UNCLAIMED)
		n->owner = mark->owner;
	interrupt(n, mark->interruption);
	const struct taint_rule *rule = rule_of(key);
	if (rule == NULL)
		return;
	if (rule->meaning == TAINT_STARTING)
		n->is_ready = false;
	if (rule->meaning == TAINT_LAGGING)
		n->is_kept_off = true;
	if (rule->meaning == TAINT_OURS)
		n->is_draining = true;
	if (rule->meaning == TAINT_OWNED)
		n->owner = (enum node_owner)rule->value;
	if (rule->meaning == TAINT_INTERRUPTED)
		interrupt(n, (enum node_interruption)rule->value);
}

static bool is_same_text(const char *a, const char *b)
{
	return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

bool node_taint_is_told(const struct taint *t, const struct cluster_taint *told, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(told[i].key, t->key) == 0 && is_same_text(told[i].effect, t->effect) &&
		    (told[i].value == NULL || told[i].value[0] == '\0' || is_same_text(told[i].value, t->value)))
			return true;
	return false;
}

/* One of a start, as was told of the group. */
static bool is_startup_taint(const struct cluster *c, const struct node *n, const struct taint *t)
{
	const struct group_known *g = n->group < 0 ? NULL : &c->groups[n->group];
	return g != NULL && node_taint_is_told(t, g->startup_taints, g->startup_taint_count);
}

static bool has_startup_taint(const struct cluster *c, const struct node *n)
{
	for (size_t i = 0; i < intern_count(n->taints); i++)
		if (is_startup_taint(c, n, &n->taints->items[i]))
			return true;
	return false;
}

static void read_taints(const struct cluster *c, struct node *n)
{
	bool has_startup = has_startup_taint(c, n);
	n->is_kept_off = false;
	for (size_t i = 0; i < intern_count(n->taints); i++)
		read_taint(n, n->taints->items[i].key);
	n->is_starting = n->is_ready && !n->is_kept_off && has_startup;
	n->is_ready &= !has_startup;
	n->is_kept_off &= n->is_ready;
	n->is_ready &= !n->is_kept_off;
}

static bool says_true(const struct condition_record *condition)
{
	return condition != NULL && condition->status != NULL && strcmp(condition->status, "True") == 0;
}

static bool is_true(const char *text)
{
	return text != NULL && strcmp(text, "true") == 0;
}

static bool begins(const char *text, const char *start)
{
	return text != NULL && start != NULL && strncmp(text, start, strlen(start)) == 0;
}

static void read_interruption(struct node *n, const struct node_record *r)
{
	n->interruption = n->event_interruption;
	for (const struct condition_mark *m = node_condition_marks; m->type != NULL; m++) {
		const struct condition_record *told = condition_of(&r->conditions, m->type);
		if (says_true(told))
			interrupt(n, begins(told->reason, m->spot) || begins(told->message, m->spot)
					     ? NODE_SPOT_INTERRUPTED
					     : m->interruption);
	}
}

static void read_standing(const struct cluster *c, struct node *n, const struct node_record *r)
{
	const char *keep = decoded_get(&r->annotations, "atlassian.com/no-delete");
	n->is_ready = says_true(condition_of(&r->conditions, "Ready"));
	n->is_cordoned = r->is_unschedulable;
	n->is_leaving = r->deleted_at != 0;
	n->is_draining = decoded_get(&r->annotations, "preheat.dev/draining") != NULL;
	n->is_protected =
		is_true(decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/scale-down-disabled")) ||
		is_true(decoded_get(&r->annotations, do_not_disrupt_annotation)) || (keep != NULL && keep[0] != '\0');
	n->owner = label_set_get(n->labels, node_provisioner_label) != NULL ? NODE_PROVISIONER : NODE_UNCLAIMED;
	read_interruption(n, r);
	read_taints(c, n);
	if (n->ends)
		interrupt(n, NODE_TERMINATING);
}

static void settle_gpu_at(struct node *n, millis before, millis arrived, bool is_listed)
{
	/* The object does not say since when: at the earliest, since it is ready. */
	millis listed = n->ready_since != 0 ? n->ready_since : n->registered_at;
	n->gpu_at = n->gpus_milli == 0 ? 0 : before != 0 ? before : is_listed ? listed : arrived;
}

static void read_times(const struct cluster *c, struct node *n, const struct node_record *r,
		       const struct watch_seen *seen, const struct node *before)
{
	const struct condition_record *ready = condition_of(&r->conditions, "Ready");
	n->registered_at = before->is_known ? before->registered_at : model_moment(c, seen, r->created_at);
	millis turned = model_moment(c, seen, ready == NULL ? 0 : ready->changed_at);
	if (turned < n->registered_at) /* clocks differ; no stage takes less than nothing */
		turned = n->registered_at;
	bool was_ready = n->is_ready || n->is_kept_off; /* for whoever measures how long that took */
	n->ready_since = !was_ready ? 0 : before->ready_since != 0 ? before->ready_since : turned;
	if (says_true(ready)) /* a taint says otherwise, and not since when */
		turned = seen->arrived;
	n->unready_since = n->is_ready ? 0 : before->unready_since != 0 ? before->unready_since : turned;
	n->cordoned_since = !n->is_cordoned ? 0 : before->cordoned_since != 0 ? before->cordoned_since : seen->arrived;
	settle_gpu_at(n, before->gpu_at, seen->arrived, seen->is_from_list && !before->is_known);
}

static void keep_first_taints(struct node *n, const struct node *before)
{
	if (before->is_known || n->was_listed)
		return;
	intern_hold(n->taints);
	n->came_taints = n->taints;
}

/* Its pods' GPUs depend on how the node shares its devices. */
static void weigh_pods(struct node *n)
{
	n->gpus_used_milli = 0;
	for (struct pod *p = n->pods; p != NULL; p = p->next) {
		pod_weigh(p);
		n->gpus_used_milli += pod_counts(p) ? p->gpus_milli : 0;
	}
}

static void notify(struct cluster *c, enum cluster_change what, const struct node *n, millis at, bool is_listed)
{
	struct cluster_event event = { .what = what, .node = n, .at = at, .is_listed = is_listed };
	if (c->on_change != NULL && n->group >= 0)
		c->on_change(c->on_change_user, &event);
}

static void notify_changes(struct cluster *c, const struct node *n, const struct node *before, millis arrived,
			   bool listed)
{
	bool told = true;
	if (!before->is_known)
		notify(c, CLUSTER_NODE_ADDED, n, n->registered_at, listed);
	else
		told = false;
	if (n->is_ready && !before->is_ready) {
		notify(c, CLUSTER_NODE_READY, n, n->ready_since, listed);
		told = true;
	}
	if (!n->is_ready && before->is_ready) {
		notify(c, CLUSTER_NODE_UNREADY, n, n->unready_since, listed);
		told = true;
	}
	if (n->gpu_at != 0 && before->gpu_at == 0) {
		notify(c, CLUSTER_NODE_GPU, n, n->gpu_at, listed);
		told = true;
	}
	bool differs = n->is_cordoned != before->is_cordoned || n->is_draining != before->is_draining ||
		       n->is_leaving != before->is_leaving || n->is_protected != before->is_protected ||
		       n->owner != before->owner || n->interruption != before->interruption ||
		       n->gpus_milli != before->gpus_milli || n->group != before->group ||
		       n->allocatable != before->allocatable || n->taints != before->taints;
	if (!told && differs)
		notify(c, CLUSTER_NODE_CHANGED, n, arrived, listed);
}

static bool is_of(const struct node *n, const struct group_known *g)
{
	const char *value = label_set_get(n->labels, g->label.key);
	return value != NULL && strcmp(value, g->label.value) == 0 &&
	       (g->provider_id_prefix == NULL ||
		strncmp(n->provider_id, g->provider_id_prefix, strlen(g->provider_id_prefix)) == 0);
}

static int group_of(const struct cluster *c, const struct node *n)
{
	for (size_t i = 0; n->is_known && i < c->group_count; i++)
		if (is_of(n, &c->groups[i]))
			return (int)i;
	return -1;
}

/* One that offers its GPUs both as an extended resource and by a driver has them once. */
static int64_t node_gpus_milli(const struct node *n)
{
	int64_t all = devices_whole_milli(n->labels, n->allocatable), by_drivers = 0;
	for (size_t i = 0; i < intern_count(n->allocatable); i++)
		if (device_is_driver(n->allocatable->items[i].name))
			by_drivers += n->allocatable->items[i].milli;
	return all - by_drivers > by_drivers ? all - by_drivers : by_drivers;
}

bool cluster_node_seen(struct cluster *c, const struct node_record *r, const struct watch_seen *seen)
{
	c->generation++;
	struct node *n = node_expect(c, seen->name);
	if (n->is_known && (n->uid[0] != seen->uid.high || n->uid[1] != seen->uid.low)) {
		cluster_node_gone(c, (struct object_uid){ n->uid[0], n->uid[1] }, seen->arrived);
		n = node_expect(c, seen->name);
	}
	struct node before = *n;
	/* Held until the comparison: an equal value then has the same address. */
	intern_hold(before.taints);
	intern_hold(before.allocatable);
	forget_object(c, n);
	n->uid[0] = seen->uid.high;
	n->uid[1] = seen->uid.low;
	n->is_known = true;
	n->told_at = seen->arrived;
	n->was_listed = before.is_known ? before.was_listed : seen->is_from_list;
	read_identity(c, n, r);
	n->group = group_of(c, n);
	read_standing(c, n, r);
	n->gpus_milli = node_gpus_milli(n);
	read_times(c, n, r, seen, &before);
	keep_first_taints(n, &before);
	weigh_pods(n);
	node_place(c, n);
	notify_changes(c, n, &before, seen->arrived, seen->is_from_list);
	intern_drop(&c->intern, before.taints);
	intern_drop(&c->intern, before.allocatable);
	arena_clear(&c->scratch);
	return true;
}

void node_reweigh(struct cluster *c, struct node *n, millis at, bool is_listed)
{
	struct node before = *n;
	struct resource devices[DEVICE_ROWS_MOST];
	c->generation++;
	if (!n->is_known)
		return;
	n->allocatable = model_with_devices(c, n->own_allocatable, devices, device_slices_rows(c, n, devices));
	n->gpus_milli = node_gpus_milli(n);
	settle_gpu_at(n, before.gpu_at, at, is_listed);
	node_place(c, n);
	notify_changes(c, n, &before, at, is_listed);
	intern_drop(&c->intern, before.allocatable);
}

void cluster_node_gone(struct cluster *c, struct object_uid uid, millis at)
{
	struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		if (n->is_known && n->uid[0] == uid.high && n->uid[1] == uid.low)
			break;
	if (n == NULL)
		return;
	c->generation++;
	notify(c, CLUSTER_NODE_GONE, n, at, false);
	template_resident_left(c, n);
	if (n->group >= 0 && n->taught_at != 0)
		template_node_left(c, n, at);
	forget_object(c, n);
	intern_drop(&c->intern, n->came_taints);
	intern_drop(&c->intern, n->born_taints);
	struct node bare = { .name = n->name, .pods = n->pods, .slices = n->slices, .hash = n->hash, .group = -1 };
	bare.placeholder_count = n->placeholder_count;
	bare.low_count = n->low_count;
	bare.provider_id = bare.machine_id = bare.zone = bare.instance_type = bare.capacity_type = bare.drained_by = "";
	*n = bare;
	weigh_pods(n);
	c->generation++; /* whoever was told may have asked for nodes, and it is among them */
	node_forget_unknown(c, n);
}

#define MOST_MILLI INT64_C(1000000000) /* a million GPUs: sums of these fit */

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The whole number at the start of a text, 0 without. */
static int64_t leading_number(const char *text)
{
	int64_t value = 0;
	for (; *text >= '0' && *text <= '9' && value < 1000; text++)
		value = value * 10 + (*text - '0');
	return value;
}

/* Compute slices of a whole GPU: an A30 has four, all others seven. */
static int64_t slices_of(const struct label_set *labels)
{
	const char *product = label_set_get(labels, "nvidia.com/gpu.product");
	return product != NULL && strstr(product, "A30") != NULL ? 4 : 7;
}

/* Slices of one unit: of "nvidia.com/mig-3g.40gb" 3; under MIG's single strategy every nvidia.com/gpu is such a part.
 */
static int64_t unit_slices(const struct label_set *labels, const char *resource)
{
	if (starts_with(resource, "nvidia.com/mig-"))
		return leading_number(resource + strlen("nvidia.com/mig-"));
	const char *product = label_set_get(labels, "nvidia.com/gpu.product");
	const char *profile = product == NULL ? NULL : strstr(product, "-MIG-");
	return profile == NULL ? 0 : leading_number(profile + strlen("-MIG-"));
}

/* How many share one device. */
static int64_t sharers(const struct label_set *labels, const char *resource)
{
	char key[128];
	size_t len = strlen(resource), suffix = strlen(".shared");
	if (len > suffix && strcmp(resource + len - suffix, ".shared") == 0)
		len -= suffix;
	snprintf(key, sizeof key, "%.*s.replicas", (int)len, resource);
	const char *text = label_set_get(labels, key);
	int64_t value = text == NULL ? 1 : leading_number(text);
	return value < 1 ? 1 : value;
}

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - 500 - b ? INT64_MAX - 500 : a + b;
}

/* In millionths, so that seven sevenths are one. */
static int64_t whole_micro(const struct label_set *labels, const struct resource *r)
{
	int64_t micro = r->milli > INT64_MAX / 7000 ? INT64_MAX / 7 : r->milli * 1000;
	if (!starts_with(r->name, "nvidia.com/"))
		return micro;
	int64_t slices = unit_slices(labels, r->name);
	micro /= sharers(labels, r->name);
	return slices == 0 || slices > 7 ? micro : micro * slices / slices_of(labels);
}

int64_t devices_whole_milli(const struct label_set *labels, const struct resources *set)
{
	int64_t sum = 0;
	for (size_t i = 0; i < intern_count(set); i++)
		if (device_is_gpu(set->items[i].name))
			sum = plus(sum, whole_micro(labels, &set->items[i]));
	return (sum + 500) / 1000 < MOST_MILLI ? (sum + 500) / 1000 : MOST_MILLI;
}

/* What an Event says of a node's machine: some tell of an interruption in no other way. */

/* A machine that is still there after so long was not taken. */
static const millis LASTS = 15 * MINUTE;

static enum node_interruption meaning_of(const char *reason)
{
	for (const struct event_mark *m = node_event_marks; reason != NULL && m->reason != NULL; m++)
		if (strcmp(reason, m->reason) == 0)
			return m->interruption;
	return NODE_STAYS;
}

static millis event_time(const struct node_event_record *r)
{
	millis at = r->last_at > r->first_at ? r->last_at : r->first_at;
	return at > r->at ? at : r->at;
}

/* Names of nodes come again: what was told of an earlier machine says nothing of this one. */
static bool is_of_this_machine(const struct cluster *c, const struct node *n, const struct node_event_record *r,
			       const struct watch_seen *seen)
{
	millis at = event_time(r);

	/* What a watch tells has just happened, whatever the clock of its reporter shows. */
	return !seen->is_from_list ||
	       (!c->ignores_stamps && at != 0 && at >= n->registered_at - SECOND && seen->arrived - at < LASTS);
}

bool cluster_node_event_seen(struct cluster *c, const struct node_event_record *r, const struct watch_seen *seen)
{
	enum node_interruption why = meaning_of(r->reason);
	struct node *n = why != NODE_STAYS && r->node != NULL ? node_find(c, r->node) : NULL;
	if (n == NULL || !n->is_known || !is_of_this_machine(c, n, r, seen))
		return false;
	if (n->event_interruption == NODE_STAYS || why < n->event_interruption)
		n->event_interruption = why;
	if (n->interruption == NODE_STAYS || why < n->interruption) {
		n->interruption = why;
		notify(c, CLUSTER_NODE_CHANGED, n, seen->arrived, seen->is_from_list);
	}
	return false;
}

void cluster_node_ends(struct cluster *c, const struct node *seen, bool ends, millis at)
{
	struct node *n = node_find(c, seen->name);
	enum node_interruption before = n->interruption;

	n->ends = ends;
	if (ends)
		interrupt(n, NODE_TERMINATING);
	else if (before == NODE_TERMINATING)
		n->interruption = n->event_interruption; /* its object tells the rest again */
	if (n->interruption == before)
		return;
	c->generation++;
	notify(c, CLUSTER_NODE_CHANGED, n, at, false);
}

bool node_taint_passes(const char *key)
{
	static const char *const prefixes[] = { "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/",
						"status-taint.cluster-autoscaler.kubernetes.io/",
						"NodeWithImpairedVolumes", "preheat.dev/" };
	if (rule_of(key) != NULL)
		return true;
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (is_key(key, prefixes[i], PREFIX))
			return true;
	for (const struct taint_mark *m = node_taint_marks; m->key != NULL; m++)
		if (is_key(key, m->key, PREFIX))
			return true;
	return false;
}

const struct taint_set *node_lasting_taints(struct cluster *c, const struct node *n)
{
	size_t count = 0, all = intern_count(n->taints);
	struct taint *rows = arena_array(&c->scratch, struct taint, all);
	for (size_t i = 0; i < all; i++)
		if (!node_taint_passes(n->taints->items[i].key) && !is_startup_taint(c, n, &n->taints->items[i]))
			rows[count++] = n->taints->items[i];
	return intern_rows(&c->intern, INTERN_TAINTS, rows, count);
}

static bool is_being_provisioned(const struct node *n)
{
	for (size_t i = 0; i < intern_count(n->taints); i++)
		if (cloud_mark(n->taints->items[i].key)->owner == NODE_PROVISIONER)
			return true;
	return false;
}

/* A provisioner's nodes are not touched, unless the manifest names their group; those that it disrupts itself never. */
static void settle_owner(const struct cluster *c, struct node *n)
{
	bool is_marked = label_set_get(n->labels, node_provisioner_label) != NULL;

	if (is_marked && !is_being_provisioned(n) && (n->owner == NODE_PROVISIONER || n->owner == NODE_UNCLAIMED))
		n->owner = n->group >= 0 && c->groups[n->group].drives_marked_nodes ? NODE_UNCLAIMED : NODE_PROVISIONER;
}

/* What is told of a group may change while its nodes say nothing new. */
static void follow_startup_taints(const struct cluster *c, struct node *n)
{
	bool has_startup = has_startup_taint(c, n);
	if (n->is_ready && has_startup) {
		n->is_ready = false;
		n->is_starting = true;
		n->unready_since = n->ready_since;
		n->ready_since = 0;
	} else if (n->is_starting && !has_startup) {
		n->is_ready = true;
		n->is_starting = false;
		n->ready_since = n->unready_since;
		n->unready_since = 0;
	}
}

void node_place(struct cluster *c, struct node *n)
{
	n->group = group_of(c, n);
	if (n->is_known)
		settle_owner(c, n);
	follow_startup_taints(c, n);
	if (n->group >= 0)
		template_learn(c, n);
}
