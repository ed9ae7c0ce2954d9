#include "controller/cluster/model_inside.h"

#include <stdlib.h>
#include <string.h>

static const char *const owner_names[NODE_OWNER_COUNT] = { "", "Karpenter", "Cluster Autoscaler", "Escalator" };
static const char *const interruption_names[NODE_INTERRUPTION_COUNT] = { "", "spot interruption",
									 "rebalance recommendation", "maintenance" };

const char *node_owner_name(enum node_owner owner)
{
	return owner_names[owner];
}

const char *node_interruption_name(enum node_interruption interruption)
{
	return interruption_names[interruption];
}

bool node_is_usable(const struct node *n)
{
	return n->is_known && n->is_ready && !n->is_cordoned && !n->is_draining && !n->is_leaving &&
	       n->owner == NODE_UNCLAIMED && n->interruption == NODE_STAYS;
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
	n = model_alloc(sizeof *n);
	n->name = intern_text(&c->intern, name);
	n->provider_id = n->machine_id = n->zone = n->instance_type = n->capacity_type = "";
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
	intern_drop(&c->intern, n->hostname);
	n->labels = NULL;
	n->taints = NULL;
	n->allocatable = NULL;
	n->hostname = NULL;
	n->provider_id = n->machine_id = n->zone = n->instance_type = n->capacity_type = "";
}

void node_release(struct cluster *c, struct node *n)
{
	forget_object(c, n);
	store_remove(&c->nodes, n);
	intern_drop(&c->intern, n->name);
	free(n);
}

void node_forget_unknown(struct cluster *c, struct node *n)
{
	if (!n->is_known && n->pods == NULL)
		node_release(c, n);
}

static const char *first_label(const struct node *n, const char *const *keys)
{
	for (; *keys != NULL; keys++) {
		const char *value = label_set_get(n->labels, *keys);
		if (value != NULL)
			return value;
	}
	return "";
}

static const char *capacity_type(const struct node *n)
{
	static const char *const keys[] = { "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
					    "kubernetes.azure.com/scalesetpriority", "preheat.dev/capacity-type",
					    NULL };
	const char *told = first_label(n, keys);
	if (strcmp(told, "SPOT") == 0)
		return "spot";
	if (strcmp(told, "ON_DEMAND") == 0 || strcmp(told, "regular") == 0)
		return "on-demand";
	return strcmp(told, "CAPACITY_BLOCK") == 0 ? "reserved" : told;
}

/* "aws:///eu-west-1a/i-0abc": the last part; of a scale set's machine the set too: "aks-gpu-vmss/virtualMachines/3". */
static const char *machine_id(const char *provider_id)
{
	const char *last = strrchr(provider_id, '/');
	const char *machines = strstr(provider_id, "/virtualMachines/");
	if (last == NULL)
		return provider_id;
	if (strncmp(provider_id, "azure://", 8) != 0 || machines == NULL)
		return last + 1;
	const char *set = machines;
	while (set > provider_id && set[-1] != '/')
		set--;
	return set;
}

static void read_identity(struct cluster *c, struct node *n, const struct node_record *r)
{
	static const char *const zones[] = { "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone",
					     NULL };
	static const char *const types[] = { "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
					     NULL };
	struct decoded_pair *pairs = arena_array(&c->scratch, struct decoded_pair, r->labels.count);
	struct decoded_map labels = { pairs, 0 };
	for (size_t i = 0; i < r->labels.count; i++)
		if (strcmp(r->labels.pairs[i].key, "kubernetes.io/hostname") != 0)
			pairs[labels.count++] = r->labels.pairs[i];
	n->labels = model_labels(c, &labels);
	n->hostname = intern_text(&c->intern, decoded_get(&r->labels, "kubernetes.io/hostname"));
	n->taints = model_taints(c, &r->taints);
	size_t count = 0;
	struct resource *amounts = model_amounts(c, &r->allocatable, &count);
	n->allocatable = model_resources(c, amounts, count);
	n->zone = first_label(n, zones);
	n->instance_type = first_label(n, types);
	n->capacity_type = capacity_type(n);
	if (r->provider_id != NULL && r->provider_id[0] != '\0') {
		n->provider_id = intern_text(&c->intern, r->provider_id);
		n->machine_id = machine_id(n->provider_id);
		n->provider_hash = hash_any_case(n->provider_id);
		store_add(&c->providers, n);
	}
}

enum taint_meaning { TAINT_ELSE, TAINT_STARTING, TAINT_OURS, TAINT_OWNED, TAINT_INTERRUPTED };

static const struct {
	const char *key;
	bool is_prefix;
	enum taint_meaning meaning;
	int value;
} meanings[] = {
	{ "preheat.dev/draining", false, TAINT_OURS, 0 },
	{ "ToBeDeletedByClusterAutoscaler", false, TAINT_OWNED, NODE_AUTOSCALER },
	{ "DeletionCandidateOfClusterAutoscaler", false, TAINT_OWNED, NODE_AUTOSCALER },
	{ "atlassian.com/escalator", true, TAINT_OWNED, NODE_ESCALATOR },
	{ "karpenter.sh/disrupted", false, TAINT_OWNED, NODE_KARPENTER },
	{ "karpenter.sh/unregistered", false, TAINT_OWNED, NODE_KARPENTER },
	{ "aws-node-termination-handler/spot-itn", false, TAINT_INTERRUPTED, NODE_SPOT_INTERRUPTED },
	{ "aws-node-termination-handler/rebalance-recommendation", false, TAINT_INTERRUPTED, NODE_REBALANCED },
	{ "aws-node-termination-handler/", true, TAINT_INTERRUPTED, NODE_MAINTAINED },
	{ "cloud.google.com/impending-node-termination", false, TAINT_INTERRUPTED, NODE_SPOT_INTERRUPTED },
	{ "node.cloudprovider.kubernetes.io/shutdown", false, TAINT_INTERRUPTED, NODE_MAINTAINED },
	{ "simulated.preheat.dev/spot-taken", false, TAINT_INTERRUPTED, NODE_SPOT_INTERRUPTED },
	{ "startup-taint.cluster-autoscaler.kubernetes.io/", true, TAINT_STARTING, 0 },
	{ "ignore-taint.cluster-autoscaler.kubernetes.io/", true, TAINT_STARTING, 0 },
	{ "readiness.k8s.io/", true, TAINT_STARTING, 0 },
	{ "node.cloudprovider.kubernetes.io/uninitialized", false, TAINT_STARTING, 0 },
};

/* The gravest of several: what is sure to go soonest. */
static void interrupt(struct node *n, enum node_interruption why)
{
	if (why != NODE_STAYS && (n->interruption == NODE_STAYS || why < n->interruption))
		n->interruption = why;
}

static void read_taints(struct node *n)
{
	for (size_t i = 0; i < intern_count(n->taints); i++) {
		const char *key = n->taints->items[i].key;
		for (size_t k = 0; k < sizeof meanings / sizeof meanings[0]; k++) {
			size_t len = strlen(meanings[k].key) + (meanings[k].is_prefix ? 0 : 1);
			if (strncmp(key, meanings[k].key, len) != 0)
				continue;
			if (meanings[k].meaning == TAINT_STARTING)
				n->is_ready = false;
			if (meanings[k].meaning == TAINT_OURS)
				n->is_draining = true;
			if (meanings[k].meaning == TAINT_OWNED)
				n->owner = (enum node_owner)meanings[k].value;
			if (meanings[k].meaning == TAINT_INTERRUPTED)
				interrupt(n, (enum node_interruption)meanings[k].value);
			break;
		}
	}
}

static bool says_true(const struct condition_record *condition)
{
	return condition != NULL && condition->status != NULL && strcmp(condition->status, "True") == 0;
}

static bool is_true(const char *text)
{
	return text != NULL && strcmp(text, "true") == 0;
}

static bool says_preempted(const char *text)
{
	return text != NULL && strncmp(text, "Preempt", strlen("Preempt")) == 0;
}

/* Azure tells of any event in one condition, and of the kind in others, in its reason, or only in its message. */
static void read_interruption(struct node *n, const struct node_record *r)
{
	const struct condition_record *any = condition_of(&r->conditions, "VMEventScheduled");
	bool is_preempted = any != NULL && (says_preempted(any->reason) || says_preempted(any->message));

	n->interruption = n->notice;
	if (says_true(any))
		interrupt(n, is_preempted ? NODE_SPOT_INTERRUPTED : NODE_MAINTAINED);
	if (says_true(condition_of(&r->conditions, "PreemptScheduled")))
		interrupt(n, NODE_SPOT_INTERRUPTED);
}

static void read_standing(struct node *n, const struct node_record *r)
{
	const char *keep = decoded_get(&r->annotations, "atlassian.com/no-delete");
	n->is_ready = says_true(condition_of(&r->conditions, "Ready"));
	n->is_cordoned = r->is_unschedulable;
	n->is_leaving = r->deleted_at != 0;
	n->is_draining = decoded_get(&r->annotations, "preheat.dev/draining") != NULL;
	n->is_protected =
		is_true(decoded_get(&r->annotations, "cluster-autoscaler.kubernetes.io/scale-down-disabled")) ||
		is_true(decoded_get(&r->annotations, "karpenter.sh/do-not-disrupt")) ||
		(keep != NULL && keep[0] != '\0');
	n->owner = label_set_get(n->labels, "karpenter.sh/nodepool") != NULL ? NODE_KARPENTER : NODE_UNCLAIMED;
	read_interruption(n, r);
	read_taints(n);
}

static void read_times(const struct cluster *c, struct node *n, const struct node_record *r,
		       const struct watch_seen *seen, const struct node *before)
{
	const struct condition_record *ready = condition_of(&r->conditions, "Ready");
	n->registered_at = before->is_known ? before->registered_at : model_moment(c, seen, r->created_at);
	millis turned = model_moment(c, seen, ready == NULL ? 0 : ready->changed_at);
	if (turned < n->registered_at) /* clocks differ; no stage takes less than nothing */
		turned = n->registered_at;
	n->ready_since = !n->is_ready ? 0 : before->ready_since != 0 ? before->ready_since : turned;
	n->unready_since = n->is_ready ? 0 : before->unready_since != 0 ? before->unready_since : turned;
	/* The object does not say since when: at the earliest, since it is ready. */
	millis listed = n->ready_since != 0 ? n->ready_since : n->registered_at;
	if (n->gpus_milli == 0)
		n->gpu_at = 0;
	else if (before->gpu_at != 0)
		n->gpu_at = before->gpu_at;
	else
		n->gpu_at = seen->is_from_list && !before->is_known ? listed : seen->arrived;
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

static void tell_changes(struct cluster *c, const struct node *n, const struct node *before,
			 const struct watch_seen *seen)
{
	bool listed = seen->is_from_list;
	bool told = true;
	if (!before->is_known)
		model_tell_node(c, CLUSTER_NODE_ADDED, n, n->registered_at, listed);
	else
		told = false;
	if (n->is_ready && !before->is_ready) {
		model_tell_node(c, CLUSTER_NODE_READY, n, n->ready_since, listed);
		told = true;
	}
	if (!n->is_ready && before->is_ready) {
		model_tell_node(c, CLUSTER_NODE_UNREADY, n, n->unready_since, listed);
		told = true;
	}
	if (n->gpu_at != 0 && before->gpu_at == 0) {
		model_tell_node(c, CLUSTER_NODE_GPU, n, n->gpu_at, listed);
		told = true;
	}
	bool differs = n->is_cordoned != before->is_cordoned || n->is_draining != before->is_draining ||
		       n->is_leaving != before->is_leaving || n->is_protected != before->is_protected ||
		       n->owner != before->owner || n->interruption != before->interruption ||
		       n->gpus_milli != before->gpus_milli || n->group != before->group ||
		       n->allocatable != before->allocatable || n->taints != before->taints;
	if (!told && differs)
		model_tell_node(c, CLUSTER_NODE_CHANGED, n, seen->arrived, listed);
}

bool cluster_node_seen(struct cluster *c, const struct node_record *r, const struct watch_seen *seen)
{
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
	read_identity(c, n, r);
	read_standing(n, r);
	n->gpus_milli = devices_whole_milli(n->labels, n->allocatable);
	read_times(c, n, r, seen, &before);
	weigh_pods(n);
	node_place(c, n);
	tell_changes(c, n, &before, seen);
	intern_drop(&c->intern, before.taints);
	intern_drop(&c->intern, before.allocatable);
	arena_clear(&c->scratch);
	return true;
}

void cluster_node_gone(struct cluster *c, struct object_uid uid, millis at)
{
	struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		if (n->is_known && n->uid[0] == uid.high && n->uid[1] == uid.low)
			break;
	if (n == NULL)
		return;
	model_tell_node(c, CLUSTER_NODE_GONE, n, at, false);
	forget_object(c, n);
	struct node bare = { .name = n->name, .pods = n->pods, .hash = n->hash, .group = -1 };
	bare.placeholder_count = n->placeholder_count;
	bare.provider_id = bare.machine_id = bare.zone = bare.instance_type = bare.capacity_type = "";
	*n = bare;
	weigh_pods(n);
	node_forget_unknown(c, n);
}
