#include "controller/cluster/model.h"

#include "base/alloc.h"
#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <strings.h>

struct nodes_by_use {
	struct arena arena;
	struct node_places places;
	uint64_t generation;
	bool is_made;
};

struct cluster *cluster_new(void)
{
	struct cluster *c = xcalloc(1, sizeof *c);
	intern_open(&c->intern);
	c->placement = xcalloc(1, sizeof *c->placement);
	c->by_use = xcalloc(1, sizeof *c->by_use);
	c->selector_plan = decode_plan_new(&selector_spec);
	for (size_t i = 0; i < CLUSTER_NEEDED_COUNT; i++)
		c->needed[i].hash_offset = offsetof(struct uid_key, hash);
	c->nodes.hash_offset = offsetof(struct node, hash);
	c->providers.hash_offset = offsetof(struct node, provider_hash);
	c->pods.hash_offset = offsetof(struct pod, hash);
	c->budgets.hash_offset = offsetof(struct uid_key, hash);
	c->quotas.hash_offset = offsetof(struct uid_key, hash);
	c->workloads.hash_offset = offsetof(struct uid_key, hash);
	c->workload_names.hash_offset = offsetof(struct workload, name_hash);
	c->workload_owners.hash_offset = offsetof(struct workload, owner_hash);
	c->device_slices.hash_offset = offsetof(struct uid_key, hash);
	c->device_classes.hash_offset = offsetof(struct uid_key, hash);
	c->device_claims.hash_offset = offsetof(struct uid_key, hash);
	c->device_claim_names.hash_offset = offsetof(struct device_claim, name_hash);
	return c;
}

static bool has_uid(const void *item, const void *key)
{
	const struct object_uid *a = &((const struct uid_key *)item)->uid, *b = key;
	return a->high == b->high && a->low == b->low;
}

struct uid_key model_uid_key(struct object_uid uid)
{
	return (struct uid_key){ uid, hash_bytes(0, &uid, sizeof uid) };
}

void *model_find_uid(const struct store *s, struct object_uid uid)
{
	return store_find(s, hash_bytes(0, &uid, sizeof uid), has_uid, &uid);
}

static void forget_all(struct cluster *c, struct store *s, void (*gone)(struct cluster *c, struct object_uid uid))
{
	const struct uid_key *k = NULL;
	for (size_t i = 0; (k = store_next(s, &i)) != NULL; i = 0)
		gone(c, k->uid);
	store_release(s);
}

void cluster_free(struct cluster *c)
{
	if (c == NULL)
		return;
	c->on_change = NULL;
	cluster_set_fleet(c, NULL, 0, NULL, 0);
	struct pod *p = NULL;
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		pod_release(c, p);
	store_release(&c->pods);
	struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL; i = 0)
		node_release(c, n);
	forget_all(c, &c->budgets, cluster_budget_gone);
	forget_all(c, &c->quotas, cluster_quota_gone);
	forget_all(c, &c->workloads, cluster_workload_gone);
	store_release(&c->workload_names);
	store_release(&c->workload_owners);
	cluster_storage_release(c);
	cluster_devices_release(c);
	decode_plan_free(c->selector_plan);
	arena_release(&c->placement->arena);
	free(c->placement);
	arena_release(&c->by_use->arena);
	free(c->by_use);
	store_release(&c->nodes);
	store_release(&c->providers);
	intern_close(&c->intern);
	arena_release(&c->fleet);
	arena_release(&c->scratch);
	free(c);
}

void cluster_on_change(struct cluster *c, cluster_change_fn *fn, void *user)
{
	c->on_change = fn;
	c->on_change_user = user;
}

void cluster_ignore_stamps(struct cluster *c, bool ignore)
{
	c->ignores_stamps = ignore;
}

static bool has_provider_id(const void *item, const void *key)
{
	return strcasecmp(((const struct node *)item)->provider_id, key) == 0;
}

const struct node *cluster_node(const struct cluster *c, const char *name)
{
	const struct node *n = node_find(c, name);
	return n != NULL && n->is_known ? n : NULL;
}

const struct node *cluster_node_by_machine(const struct cluster *c, const char *provider_id)
{
	return store_find(&c->providers, hash_any_case(provider_id), has_provider_id, provider_id);
}

size_t cluster_node_count(const struct cluster *c)
{
	size_t count = 0;
	const struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		count += n->is_known;
	return count;
}

size_t cluster_pod_count(const struct cluster *c)
{
	return c->pods.count;
}

static int by_node_name(const void *a, const void *b)
{
	return strcmp((*(const struct node *const *)a)->name, (*(const struct node *const *)b)->name);
}

const struct node **cluster_nodes(const struct cluster *c, int group, struct arena *a, size_t *count)
{
	const struct node **nodes = arena_array(a, const struct node *, c->nodes.count);
	const struct node *n = NULL;
	*count = 0;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		if (n->is_known && (group < 0 || n->group == group))
			nodes[(*count)++] = n;
	if (*count > 1)
		qsort(nodes, *count, sizeof(void *), by_node_name);
	return nodes;
}

struct used_node {
	double share; /* of its GPUs */
	const struct node *node;
};

static int by_share(const void *a, const void *b)
{
	const struct used_node *x = a, *y = b;
	return x->share != y->share ? (x->share > y->share ? -1 : 1) : strcmp(x->node->name, y->node->name);
}

static struct node_places sort_by_use(const struct cluster *c, struct arena *a)
{
	struct node_places out = { arena_array(a, const struct node *, c->nodes.count), 0 };
	struct used_node *nodes = arena_array(a, struct used_node, c->nodes.count);
	const struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		if (n->is_known)
			nodes[out.count++] = (struct used_node){
				n->gpus_milli == 0 ? INFINITY : (double)n->gpus_used_milli / (double)n->gpus_milli, n
			};
	if (out.count > 1)
		qsort(nodes, out.count, sizeof *nodes, by_share);
	for (size_t i = 0; i < out.count; i++)
		out.nodes[i] = nodes[i].node;
	return out;
}

struct node_places cluster_nodes_by_use(const struct cluster *c)
{
	struct nodes_by_use *u = c->by_use;
	if (!u->is_made || u->generation != c->generation) {
		arena_clear(&u->arena);
		u->places = sort_by_use(c, &u->arena);
		u->generation = c->generation;
		u->is_made = true;
	}
	return u->places;
}

static int by_pod_name(const void *a, const void *b)
{
	const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
	int order = strcmp(x->namespace, y->namespace);
	if (order == 0)
		order = strcmp(x->name, y->name);
	/* For a moment a pod and its successor of the same name are both there. */
	return order != 0 ? order : memcmp(x->uid, y->uid, sizeof x->uid);
}

static const struct pod **sort_pods(const struct pod **pods, size_t count)
{
	if (count > 1)
		qsort(pods, count, sizeof(void *), by_pod_name);
	return pods;
}

static size_t count_pool(const struct pool_known *pool, const struct pod **pods)
{
	size_t count = 0;
	for (const struct pod *p = pool->pods; p != NULL; p = p->pool_next, count++)
		if (pods != NULL)
			pods[count] = p;
	return count;
}

const struct pod **cluster_pods(const struct cluster *c, int pool, struct arena *a, size_t *count)
{
	size_t first = pool < 0 ? 0 : (size_t)pool, end = pool < 0 ? c->pool_count : first + 1, room = 0;
	for (size_t i = first; i < end; i++)
		room += count_pool(&c->pools[i], NULL);
	const struct pod **pods = arena_array(a, const struct pod *, room);
	*count = 0;
	for (size_t i = first; i < end; i++)
		*count += count_pool(&c->pools[i], pods + *count);
	return sort_pods(pods, room);
}

const struct pod **cluster_prefetches(const struct cluster *c, struct arena *a, size_t *count)
{
	const struct pod **pods = arena_array(a, const struct pod *, c->prefetch_count), *p = NULL;
	size_t at = 0;
	for (size_t i = 0; at < c->prefetch_count && (p = store_next(&c->pods, &i)) != NULL;)
		if (p->is_prefetch)
			pods[at++] = p;
	*count = at;
	return sort_pods(pods, at);
}

const struct pod **cluster_node_pods(const struct cluster *c, const struct node *n, struct arena *a, size_t *count)
{
	(void)c;
	size_t room = 0, at = 0;
	for (const struct pod *p = n->pods; p != NULL; p = p->next)
		room++;
	const struct pod **pods = arena_array(a, const struct pod *, room);
	for (const struct pod *p = n->pods; p != NULL; p = p->next)
		pods[at++] = p;
	*count = room;
	return sort_pods(pods, room);
}

struct cluster_gpus cluster_gpus(const struct cluster *c)
{
	struct cluster_gpus sum = { 0 };
	const struct node *n = NULL;
	const struct pod *p = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;) {
		sum.allocatable_milli += n->gpus_milli;
		sum.used_milli += n->is_known ? n->gpus_used_milli : 0;
	}
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		sum.finished_milli += p->state == POD_FINISHED ? p->gpus_milli : 0;
	return sum;
}

/* The pools and groups that everything is sorted into. */

static const char *copy(struct arena *a, const char *text)
{
	return text == NULL ? NULL : arena_strdup(a, text, strlen(text));
}

static const char *copy_or_none(struct arena *a, const char *text)
{
	return text == NULL || text[0] == '\0' ? NULL : copy(a, text);
}

static struct pool_known copy_pool(struct arena *a, const struct cluster_pool *p)
{
	struct pool_known known = {
		.name = copy(a, p->name),
		.name_space = copy(a, p->namespace),
		.selector = arena_array(a, struct cluster_label, p->selector_count),
		.selector_count = p->selector_count,
		.gpus_per_replica = p->gpus_per_replica,
		.gpu_resource = copy_or_none(a, p->gpu_resource),
		.groups = arena_array(a, int, p->group_count),
		.group_count = p->group_count,
		.share = copy_or_none(a, p->share),
		.port = p->port,
		.is_unpriced = p->is_unpriced,
		.takes_any = p->takes_any,
	};
	for (size_t i = 0; i < p->selector_count; i++)
		known.selector[i] =
			(struct cluster_label){ copy(a, p->selector[i].key), copy(a, p->selector[i].value) };
	for (size_t i = 0; i < p->group_count; i++)
		known.groups[i] = p->groups[i];
	return known;
}

const char *group_gpu_resource(const struct cluster_group *g)
{
	return g->gpu_resource == NULL || g->gpu_resource[0] == '\0' ? "nvidia.com/gpu" : g->gpu_resource;
}

static const struct cluster_taint *copy_taints(struct arena *a, const struct cluster_taint *taints, size_t count)
{
	struct cluster_taint *known = arena_array(a, struct cluster_taint, count);
	for (size_t i = 0; i < count; i++)
		known[i] = (struct cluster_taint){ copy(a, taints[i].key), copy_or_none(a, taints[i].value),
						   copy(a, taints[i].effect) };
	return known;
}

static struct group_known copy_group(struct cluster *c, struct arena *a, const struct cluster_group *g)
{
	return (struct group_known){
		.name = copy(a, g->name),
		.provider = copy(a, g->provider),
		.label = { copy(a, g->label.key), copy(a, g->label.value) },
		.provider_id_prefix = copy_or_none(a, g->provider_id_prefix),
		.gpus_per_node = g->gpus_per_node,
		.max = g->max,
		.price = g->price,
		.drives_marked_nodes = g->drives_marked_nodes,
		.startup_taints = copy_taints(a, g->startup_taints, g->startup_taint_count),
		.startup_taint_count = g->startup_taint_count,
		.gpu_resource = copy(a, group_gpu_resource(g)),
		.template = template_of(c, g),
	};
}

static void drop_templates(struct cluster *c)
{
	for (size_t i = 0; i < c->group_count; i++)
		template_drop(c, &c->groups[i].template);
}

/* What was bought for it stays its own wherever its group stands now. */
static void keep_order(const struct cluster *c, struct pod *p, const struct group_known *groups, size_t count)
{
	const struct group_known *g = &c->groups[p->own_group];
	p->has_machine = false;
	for (size_t i = 0; i < count && !p->has_machine; i++) {
		p->has_machine = strcmp(groups[i].name, g->name) == 0 && strcmp(groups[i].provider, g->provider) == 0;
		p->own_group = (int)i;
	}
	p->is_told = p->is_told && p->has_machine;
}

void cluster_set_fleet(struct cluster *c, const struct cluster_pool *pools, size_t pool_count,
		       const struct cluster_group *groups, size_t group_count)
{
	struct arena fleet = { 0 };
	c->generation++;
	struct pool_known *known_pools = arena_array(&fleet, struct pool_known, pool_count);
	struct group_known *known_groups = arena_array(&fleet, struct group_known, group_count);
	for (size_t i = 0; i < pool_count; i++)
		known_pools[i] = copy_pool(&fleet, &pools[i]);
	for (size_t i = 0; i < group_count; i++)
		known_groups[i] = copy_group(c, &fleet, &groups[i]);
	struct pod *p = NULL;
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;) {
		pod_leave_pool(p);
		if (p->has_machine)
			keep_order(c, p, known_groups, group_count);
	}
	drop_templates(c);
	arena_release(&c->fleet);
	c->fleet = fleet;
	c->pools = known_pools;
	c->pool_count = pool_count;
	c->groups = known_groups;
	c->group_count = group_count;
	struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;)
		node_place(c, n);
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		pod_place(c, p);
	arena_clear(&c->scratch);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Takes over the caller's references to the `words` texts of each row, of which the first `texts` are such. */
static const void *settle(struct cluster *c, enum intern_kind kind, void *rows, size_t count, size_t size, size_t texts)
{
	const void *set = intern_rows(&c->intern, kind, rows, count);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < texts; k++)
			intern_drop(&c->intern, ((const void **)((char *)rows + i * size))[k]);
	return set;
}

static const char *text_or_null(struct cluster *c, const char *text)
{
	return text == NULL || text[0] == '\0' ? NULL : intern_text(&c->intern, text);
}

const struct label_set *model_labels(struct cluster *c, const struct decoded_map *map)
{
	struct label *rows = arena_array(&c->scratch, struct label, map->count);
	for (size_t i = 0; i < map->count; i++)
		rows[i] = (struct label){ intern_text(&c->intern, map->pairs[i].key),
					  intern_text(&c->intern, map->pairs[i].value) };
	if (map->count > 1)
		qsort(rows, map->count, sizeof *rows, by_text);
	return settle(c, INTERN_LABELS, rows, map->count, sizeof *rows, 2);
}

struct resource *model_amounts(struct cluster *c, const struct decoded_map *map, size_t *count)
{
	struct resource *rows = arena_array(&c->scratch, struct resource, map->count);
	*count = 0;
	for (size_t i = 0; i < map->count; i++) {
		const char *name = map->pairs[i].key;
		int64_t milli = 0;
		bool counts = strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 || strcmp(name, "pods") == 0 ||
			      strcmp(name, "ephemeral-storage") == 0 || strncmp(name, "hugepages-", 10) == 0 ||
			      strchr(name, '/') != NULL;
		if (counts && amount_milli(map->pairs[i].value, &milli) && milli > 0)
			rows[(*count)++] = (struct resource){ name, milli };
	}
	return rows;
}

const struct resources *model_resources(struct cluster *c, struct resource *rows, size_t count)
{
	struct resource *own = arena_array(&c->scratch, struct resource, count);
	for (size_t i = 0; i < count; i++)
		own[i] = (struct resource){ intern_text(&c->intern, rows[i].name), rows[i].milli };
	if (count > 1)
		qsort(own, count, sizeof *own, by_text);
	return settle(c, INTERN_RESOURCES, own, count, sizeof *own, 1);
}

const struct taint_set *model_taints(struct cluster *c, const struct decoded_list *taints)
{
	const struct taint_record *from = taints->items;
	struct taint *rows = arena_array(&c->scratch, struct taint, taints->count);
	size_t count = 0;
	for (size_t i = 0; i < taints->count; i++)
		if (from[i].key != NULL)
			rows[count++] =
				(struct taint){ intern_text(&c->intern, from[i].key), text_or_null(c, from[i].value),
						text_or_null(c, from[i].effect) };
	if (count > 1)
		qsort(rows, count, sizeof *rows, by_text);
	return settle(c, INTERN_TAINTS, rows, count, sizeof *rows, 3);
}

const struct toleration_set *model_tolerations(struct cluster *c, const struct decoded_list *tolerations)
{
	const struct toleration_record *from = tolerations->items;
	struct toleration *rows = arena_array(&c->scratch, struct toleration, tolerations->count);
	for (size_t i = 0; i < tolerations->count; i++)
		rows[i] = (struct toleration){ text_or_null(c, from[i].key), text_or_null(c, from[i].value),
					       text_or_null(c, from[i].effect),
					       from[i].operation == NULL || strcmp(from[i].operation, "Exists") != 0 };
	return settle(c, INTERN_TOLERATIONS, rows, tolerations->count, sizeof *rows, 3);
}

static int64_t operation_of(const char *name)
{
	static const char *const names[] = { [REQUIRE_IN] = "In",	  [REQUIRE_NOT_IN] = "NotIn",
					     [REQUIRE_EXISTS] = "Exists", [REQUIRE_ABSENT] = "DoesNotExist",
					     [REQUIRE_MORE] = "Gt",	  [REQUIRE_LESS] = "Lt" };
	for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i], name) == 0)
			return (int64_t)i;
	return REQUIRE_UNKNOWN;
}

struct rows {
	struct requirement *items;
	size_t count;
};

/* `is_field`: metadata.name, the only field that there is. Counts only where there are no items yet. */
static void add_expressions(struct cluster *c, struct rows *rows, int64_t term, const struct decoded_list *list,
			    bool is_field)
{
	const struct expression_record *from = list->items;
	for (size_t i = 0; i < list->count; i++) {
		const struct text_record *values = from[i].values.items;
		size_t count = from[i].values.count == 0 ? 1 : from[i].values.count;
		for (size_t k = 0; k < count; k++, rows->count++) {
			if (rows->items == NULL)
				continue;
			const char *value = from[i].values.count == 0 ? NULL : values[k].text;
			const char *key = is_field ? NULL : from[i].key == NULL ? "" : from[i].key;
			rows->items[rows->count] = (struct requirement){
				.term = term,
				.expression = (int64_t)i + (is_field ? 1000 : 0),
				.operation = operation_of(from[i].operation),
				.key = intern_text(&c->intern, key),
				.value = intern_text(&c->intern, value),
			};
		}
	}
}

static void add_terms(struct cluster *c, struct rows *rows, const struct decoded_list *terms)
{
	const struct term_record *from = terms->items;
	for (size_t i = 0; i < terms->count; i++) {
		add_expressions(c, rows, (int64_t)i, &from[i].expressions, false);
		add_expressions(c, rows, (int64_t)i, &from[i].fields, true);
		if (from[i].expressions.count + from[i].fields.count > 0)
			continue;
		/* An empty term selects nothing. */
		if (rows->items != NULL)
			rows->items[rows->count] =
				(struct requirement){ .term = (int64_t)i, .operation = REQUIRE_UNKNOWN };
		rows->count++;
	}
}

const struct requirement_set *model_requirements(struct cluster *c, const struct decoded_list *terms,
						 const struct decoded_list *expressions)
{
	struct rows rows = { 0 };

	/* Counted first, then filled in. */
	for (int pass = 0; pass < 2; pass++) {
		if (pass == 1)
			rows.items = arena_array(&c->scratch, struct requirement, rows.count + 1);
		rows.count = 0;
		if (terms != NULL)
			add_terms(c, &rows, terms);
		else
			add_expressions(c, &rows, 0, expressions, false);
	}
	const void *set = intern_rows(&c->intern, INTERN_REQUIREMENTS, rows.items, rows.count);
	for (size_t i = 0; i < rows.count; i++) {
		intern_drop(&c->intern, rows.items[i].key);
		intern_drop(&c->intern, rows.items[i].value);
	}
	return set;
}

/* Labels are expressions with one value each. */
const struct requirement_set *model_selector(struct cluster *c, const struct decoded_map *labels,
					     const struct decoded_list *expressions)
{
	const struct expression_record *from = expressions->items;
	size_t count = labels->count + expressions->count;
	struct expression_record *all = arena_array(&c->scratch, struct expression_record, count);
	for (size_t i = 0; i < labels->count; i++) {
		struct text_record *value = arena_new(&c->scratch, struct text_record);
		value->text = labels->pairs[i].value;
		all[i] = (struct expression_record){ labels->pairs[i].key, "In", { value, 1 } };
	}
	for (size_t i = 0; i < expressions->count; i++)
		all[labels->count + i] = from[i];
	struct decoded_list list = { all, count };
	return model_requirements(c, NULL, &list);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIST(owner, member, where, record)                                                              \
	{                                                                                               \
		.path = (where), .type = FIELD_LIST, .offset = offsetof(owner, member), .of = &(record) \
	}
#define MAP(owner, member, where, filter)                                                                \
	{                                                                                                \
		.path = (where), .type = FIELD_MAP, .offset = offsetof(owner, member), .wants = (filter) \
	}
#define RECORD(record, table)                           \
	{                                               \
		"", sizeof(record), table, COUNT(table) \
	}

static bool is_one_of(const char *key, size_t len, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strlen(*names) == len && memcmp(*names, key, len) == 0)
			return true;
	return false;
}

/* What differs on every node and nobody selects by would keep equal nodes from sharing their labels. */
static bool wants_node_label(const char *key, size_t len)
{
	static const char *const unwanted[] = { "nvidia.com/gfd.timestamp", NULL };
	return !is_one_of(key, len, unwanted);
}

static bool wants_node_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "preheat.dev/draining",
					      "cluster-autoscaler.kubernetes.io/scale-down-disabled",
					      do_not_disrupt_annotation, "atlassian.com/no-delete", NULL };
	return is_one_of(key, len, wanted);
}

static bool wants_pod_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "cluster-autoscaler.kubernetes.io/safe-to-evict",
					      "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
					      "cluster-autoscaler.kubernetes.io/daemonset-pod",
					      do_not_disrupt_annotation,
					      "controller.kubernetes.io/pod-deletion-cost",
					      "kubernetes.io/config.mirror",
					      "kueue.x-k8s.io/pod-group-total-count",
					      "leaderworkerset.sigs.k8s.io/size",
					      "pod-group.scheduling.sigs.k8s.io/min-available",
					      ENGINE_STARTED_ANNOTATION,
					      "scheduling.k8s.io/group-name",
					      "pod-group-name",
					      NULL };
	size_t prefix = strlen(ENGINE_STARTED_PREFIX);
	return is_one_of(key, len, wanted) || (len > prefix && strncmp(key, ENGINE_STARTED_PREFIX, prefix) == 0);
}

static bool wants_workload_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "preheat.dev/gang", NULL };
	return is_one_of(key, len, wanted);
}

static const struct field taint_fields[] = {
	FIELD(struct taint_record, key, FIELD_STRING, "key"),
	FIELD(struct taint_record, value, FIELD_STRING, "value"),
	FIELD(struct taint_record, effect, FIELD_STRING, "effect"),
};
static const struct record_spec taint_spec = RECORD(struct taint_record, taint_fields);

static const struct field condition_fields[] = {
	FIELD(struct condition_record, type, FIELD_STRING, "type"),
	FIELD(struct condition_record, status, FIELD_STRING, "status"),
	FIELD(struct condition_record, reason, FIELD_STRING, "reason"),
	FIELD(struct condition_record, message, FIELD_STRING, "message"),
	FIELD(struct condition_record, changed_at, FIELD_TIME, "lastTransitionTime"),
};
static const struct record_spec condition_spec = RECORD(struct condition_record, condition_fields);

static const struct field node_fields[] = {
	FIELD(struct node_record, provider_id, FIELD_STRING, "spec>providerID"),
	FIELD(struct node_record, is_unschedulable, FIELD_BOOL, "spec>unschedulable"),
	FIELD(struct node_record, created_at, FIELD_TIME, "metadata>creationTimestamp"),
	FIELD(struct node_record, deleted_at, FIELD_TIME, "metadata>deletionTimestamp"),
	MAP(struct node_record, labels, "metadata>labels", wants_node_label),
	MAP(struct node_record, annotations, "metadata>annotations", wants_node_annotation),
	MAP(struct node_record, allocatable, "status>allocatable", NULL),
	MAP(struct node_record, capacity, "status>capacity", NULL),
	LIST(struct node_record, taints, "spec>taints", taint_spec),
	LIST(struct node_record, conditions, "status>conditions", condition_spec),
};
const struct record_spec node_spec = RECORD(struct node_record, node_fields);

static const struct field node_event_fields[] = {
	FIELD(struct node_event_record, node, FIELD_STRING, "involvedObject>name"),
	FIELD(struct node_event_record, reason, FIELD_STRING, "reason"),
	FIELD(struct node_event_record, first_at, FIELD_TIME, "firstTimestamp"),
	FIELD(struct node_event_record, last_at, FIELD_TIME, "lastTimestamp"),
	FIELD(struct node_event_record, at, FIELD_TIME, "eventTime"),
};
const struct record_spec node_event_spec = RECORD(struct node_event_record, node_event_fields);

static const struct field owner_fields[] = {
	FIELD(struct owner_record, kind, FIELD_STRING, "kind"),
	FIELD(struct owner_record, name, FIELD_STRING, "name"),
	FIELD(struct owner_record, uid, FIELD_STRING, "uid"),
	FIELD(struct owner_record, is_controller, FIELD_BOOL, "controller"),
};
static const struct record_spec owner_spec = RECORD(struct owner_record, owner_fields);

static const struct field toleration_fields[] = {
	FIELD(struct toleration_record, key, FIELD_STRING, "key"),
	FIELD(struct toleration_record, operation, FIELD_STRING, "operator"),
	FIELD(struct toleration_record, value, FIELD_STRING, "value"),
	FIELD(struct toleration_record, effect, FIELD_STRING, "effect"),
};
static const struct record_spec toleration_spec = RECORD(struct toleration_record, toleration_fields);

static const struct field text_fields[] = { FIELD(struct text_record, text, FIELD_STRING, "") };
static const struct record_spec text_spec = RECORD(struct text_record, text_fields);

static const struct field expression_fields[] = {
	FIELD(struct expression_record, key, FIELD_STRING, "key"),
	FIELD(struct expression_record, operation, FIELD_STRING, "operator"),
	LIST(struct expression_record, values, "values", text_spec),
};
static const struct record_spec expression_spec = RECORD(struct expression_record, expression_fields);

static const struct field term_fields[] = {
	LIST(struct term_record, expressions, "matchExpressions", expression_spec),
	LIST(struct term_record, fields, "matchFields", expression_spec),
};
static const struct record_spec term_spec = RECORD(struct term_record, term_fields);

static const struct field port_fields[] = {
	FIELD(struct port_record, ip, FIELD_STRING, "hostIP"),
	FIELD(struct port_record, protocol, FIELD_STRING, "protocol"),
	FIELD(struct port_record, port, FIELD_INT, "hostPort"),
	FIELD(struct port_record, own, FIELD_INT, "containerPort"),
};
static const struct record_spec port_spec = RECORD(struct port_record, port_fields);

static const struct field selector_fields[] = {
	MAP(struct selector_record, labels, "matchLabels", NULL),
	LIST(struct selector_record, expressions, "matchExpressions", expression_spec),
};
const struct record_spec selector_spec = RECORD(struct selector_record, selector_fields);

static const struct field pod_term_fields[] = {
	FIELD(struct pod_term_record, topology, FIELD_STRING, "topologyKey"),
	FIELD(struct pod_term_record, selector, FIELD_RAW, "labelSelector"),
	FIELD(struct pod_term_record, of_namespaces, FIELD_RAW, "namespaceSelector"),
	LIST(struct pod_term_record, namespaces, "namespaces", text_spec),
};
static const struct record_spec pod_term_spec = RECORD(struct pod_term_record, pod_term_fields);

static const struct field spread_fields[] = {
	FIELD(struct spread_record, topology, FIELD_STRING, "topologyKey"),
	FIELD(struct spread_record, otherwise, FIELD_STRING, "whenUnsatisfiable"),
	FIELD(struct spread_record, node_affinity, FIELD_STRING, "nodeAffinityPolicy"),
	FIELD(struct spread_record, node_taints, FIELD_STRING, "nodeTaintsPolicy"),
	FIELD(struct spread_record, max_skew, FIELD_INT, "maxSkew"),
	FIELD(struct spread_record, min_domains, FIELD_INT, "minDomains"),
	FIELD(struct spread_record, selector, FIELD_RAW, "labelSelector"),
	LIST(struct spread_record, keys, "matchLabelKeys", text_spec),
};
static const struct record_spec spread_spec = RECORD(struct spread_record, spread_fields);

static const struct field device_claim_fields[] = {
	FIELD(struct device_claim_record, name, FIELD_STRING, "name"),
	FIELD(struct device_claim_record, claim, FIELD_STRING, "resourceClaimName"),
};
static const struct record_spec device_claim_spec = RECORD(struct device_claim_record, device_claim_fields);

static const struct field container_fields[] = {
	FIELD(struct container_record, name, FIELD_STRING, "name"),
	FIELD(struct container_record, image, FIELD_STRING, "image"),
	FIELD(struct container_record, restart_policy, FIELD_STRING, "restartPolicy"),
	MAP(struct container_record, requests, "resources>requests", NULL),
	MAP(struct container_record, limits, "resources>limits", NULL),
	LIST(struct container_record, ports, "ports", port_spec),
};
static const struct record_spec container_spec = RECORD(struct container_record, container_fields);

static const struct field volume_fields[] = {
	FIELD(struct volume_record, name, FIELD_STRING, "name"),
	FIELD(struct volume_record, claim, FIELD_STRING, "persistentVolumeClaim>claimName"),
	FIELD(struct volume_record, ephemeral, FIELD_RAW, "ephemeral"),
	FIELD(struct volume_record, empty_dir, FIELD_RAW, "emptyDir"),
	FIELD(struct volume_record, host_path, FIELD_RAW, "hostPath"),
};
static const struct record_spec pod_volume_spec = RECORD(struct volume_record, volume_fields);

static const struct field container_status_fields[] = {
	FIELD(struct container_status_record, name, FIELD_STRING, "name"),
	FIELD(struct container_status_record, waiting, FIELD_STRING, "state>waiting>reason"),
	FIELD(struct container_status_record, message, FIELD_STRING, "state>waiting>message"),
	FIELD(struct container_status_record, running_at, FIELD_TIME, "state>running>startedAt"),
};
static const struct record_spec container_status_spec = RECORD(struct container_status_record, container_status_fields);

static const struct field gate_fields[] = { FIELD(struct text_record, text, FIELD_STRING, "name") };
static const struct record_spec gate_spec = RECORD(struct text_record, gate_fields);

#define REQUIRED      "requiredDuringSchedulingIgnoredDuringExecution"
#define NODE_AFFINITY "spec>affinity>nodeAffinity>" REQUIRED ">nodeSelectorTerms"

static const struct field pod_fields[] = {
	FIELD(struct pod_record, created_at, FIELD_TIME, "metadata>creationTimestamp"),
	FIELD(struct pod_record, deleted_at, FIELD_TIME, "metadata>deletionTimestamp"),
	FIELD(struct pod_record, deletion_grace, FIELD_INT, "metadata>deletionGracePeriodSeconds"),
	FIELD(struct pod_record, grace, FIELD_INT, "spec>terminationGracePeriodSeconds"),
	FIELD(struct pod_record, priority, FIELD_INT, "spec>priority"),
	FIELD(struct pod_record, node_name, FIELD_STRING, "spec>nodeName"),
	FIELD(struct pod_record, phase, FIELD_STRING, "status>phase"),
	FIELD(struct pod_record, scheduler, FIELD_STRING, "spec>schedulerName"),
	FIELD(struct pod_record, ip, FIELD_STRING, "status>podIP"),
	FIELD(struct pod_record, nominated, FIELD_STRING, "status>nominatedNodeName"),
	FIELD(struct pod_record, group, FIELD_STRING, "spec>schedulingGroup>podGroupName"),
	MAP(struct pod_record, labels, "metadata>labels", NULL),
	MAP(struct pod_record, annotations, "metadata>annotations", wants_pod_annotation),
	MAP(struct pod_record, selector, "spec>nodeSelector", NULL),
	MAP(struct pod_record, overhead, "spec>overhead", NULL),
	MAP(struct pod_record, requests, "spec>resources>requests", NULL),
	MAP(struct pod_record, limits, "spec>resources>limits", NULL),
	LIST(struct pod_record, owners, "metadata>ownerReferences", owner_spec),
	LIST(struct pod_record, tolerations, "spec>tolerations", toleration_spec),
	LIST(struct pod_record, terms, NODE_AFFINITY, term_spec),
	LIST(struct pod_record, containers, "spec>containers", container_spec),
	LIST(struct pod_record, init_containers, "spec>initContainers", container_spec),
	LIST(struct pod_record, volumes, "spec>volumes", pod_volume_spec),
	LIST(struct pod_record, near, "spec>affinity>podAffinity>" REQUIRED, pod_term_spec),
	LIST(struct pod_record, apart, "spec>affinity>podAntiAffinity>" REQUIRED, pod_term_spec),
	LIST(struct pod_record, spreads, "spec>topologySpreadConstraints", spread_spec),
	LIST(struct pod_record, claims, "spec>resourceClaims", device_claim_spec),
	LIST(struct pod_record, made_claims, "status>resourceClaimStatuses", device_claim_spec),
	LIST(struct pod_record, gates, "spec>schedulingGates", gate_spec),
	LIST(struct pod_record, conditions, "status>conditions", condition_spec),
	LIST(struct pod_record, statuses, "status>containerStatuses", container_status_spec),
	LIST(struct pod_record, init_statuses, "status>initContainerStatuses", container_status_spec),
};
const struct record_spec pod_spec = RECORD(struct pod_record, pod_fields);

static bool wants_claim_annotation(const char *key, size_t len)
{
	static const char *const wanted[] = { "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node",
					      NULL };
	return is_one_of(key, len, wanted);
}

static bool wants_storage(const char *key, size_t len)
{
	static const char *const wanted[] = { "storage", NULL };
	return is_one_of(key, len, wanted);
}

static bool wants_zone_label(const char *key, size_t len)
{
	return is_one_of(key, len, volume_zone_labels);
}

static const struct field volume_claim_fields[] = {
	FIELD(struct volume_claim_record, volume, FIELD_STRING, "spec>volumeName"),
	FIELD(struct volume_claim_record, storage_class, FIELD_STRING, "spec>storageClassName"),
	FIELD(struct volume_claim_record, phase, FIELD_STRING, "status>phase"),
	FIELD(struct volume_claim_record, deleted_at, FIELD_TIME, "metadata>deletionTimestamp"),
	MAP(struct volume_claim_record, annotations, "metadata>annotations", wants_claim_annotation),
	MAP(struct volume_claim_record, requests, "spec>resources>requests", wants_storage),
};
const struct record_spec volume_claim_spec = RECORD(struct volume_claim_record, volume_claim_fields);

static const struct field volume_known_fields[] = {
	FIELD(struct volume_known_record, storage_class, FIELD_STRING, "spec>storageClassName"),
	FIELD(struct volume_known_record, phase, FIELD_STRING, "status>phase"),
	FIELD(struct volume_known_record, claim_namespace, FIELD_STRING, "spec>claimRef>namespace"),
	FIELD(struct volume_known_record, claim_name, FIELD_STRING, "spec>claimRef>name"),
	MAP(struct volume_known_record, labels, "metadata>labels", wants_zone_label),
	MAP(struct volume_known_record, capacity, "spec>capacity", wants_storage),
	LIST(struct volume_known_record, terms, "spec>nodeAffinity>required>nodeSelectorTerms", term_spec),
};
const struct record_spec volume_spec = RECORD(struct volume_known_record, volume_known_fields);

static const struct field topology_fields[] = {
	LIST(struct term_record, expressions, "matchLabelExpressions", expression_spec),
};
static const struct record_spec topology_spec = RECORD(struct term_record, topology_fields);

static const struct field storage_class_fields[] = {
	FIELD(struct storage_class_record, provisioner, FIELD_STRING, "provisioner"),
	FIELD(struct storage_class_record, mode, FIELD_STRING, "volumeBindingMode"),
	LIST(struct storage_class_record, terms, "allowedTopologies", topology_spec),
};
const struct record_spec storage_class_spec = RECORD(struct storage_class_record, storage_class_fields);

static const struct field namespace_fields[] = {
	MAP(struct namespace_record, labels, "metadata>labels", NULL),
};
const struct record_spec namespace_spec = RECORD(struct namespace_record, namespace_fields);

static const struct field device_fields[] = {
	FIELD(struct device_record, name, FIELD_STRING, "name"),
	FIELD(struct device_record, type, FIELD_STRING, "attributes>type>string"),
	FIELD(struct device_record, profile, FIELD_STRING, "attributes>profile>string"),
	LIST(struct device_record, taints, "taints", taint_spec),
};
static const struct record_spec device_spec = RECORD(struct device_record, device_fields);

static const struct field resource_slice_fields[] = {
	FIELD(struct resource_slice_record, driver, FIELD_STRING, "spec>driver"),
	FIELD(struct resource_slice_record, node, FIELD_STRING, "spec>nodeName"),
	FIELD(struct resource_slice_record, pool, FIELD_STRING, "spec>pool>name"),
	FIELD(struct resource_slice_record, generation, FIELD_INT, "spec>pool>generation"),
	FIELD(struct resource_slice_record, slice_count, FIELD_INT, "spec>pool>resourceSliceCount"),
	LIST(struct resource_slice_record, owners, "metadata>ownerReferences", owner_spec),
	LIST(struct resource_slice_record, devices, "spec>devices", device_spec),
};
const struct record_spec resource_slice_spec = RECORD(struct resource_slice_record, resource_slice_fields);

static const struct field cel_fields[] = { FIELD(struct text_record, text, FIELD_STRING, "cel>expression") };
static const struct record_spec cel_spec = RECORD(struct text_record, cel_fields);

static const struct field device_class_fields[] = {
	FIELD(struct device_class_record, extended, FIELD_STRING, "spec>extendedResourceName"),
	LIST(struct device_class_record, selectors, "spec>selectors", cel_spec),
};
const struct record_spec device_class_spec = RECORD(struct device_class_record, device_class_fields);

static const struct field alternative_fields[] = {
	FIELD(struct device_request_record, class, FIELD_STRING, "deviceClassName"),
	FIELD(struct device_request_record, mode, FIELD_STRING, "allocationMode"),
	FIELD(struct device_request_record, count, FIELD_INT, "count"),
};
static const struct record_spec alternative_spec = RECORD(struct device_request_record, alternative_fields);

static const struct field device_request_fields[] = {
	FIELD(struct device_request_record, class, FIELD_STRING, "exactly>deviceClassName"),
	FIELD(struct device_request_record, mode, FIELD_STRING, "exactly>allocationMode"),
	FIELD(struct device_request_record, count, FIELD_INT, "exactly>count"),
	FIELD(struct device_request_record, is_for_admin, FIELD_BOOL, "exactly>adminAccess"),
	LIST(struct device_request_record, selectors, "exactly>selectors", cel_spec),
	LIST(struct device_request_record, alternatives, "firstAvailable", alternative_spec),
};
static const struct record_spec device_request_spec = RECORD(struct device_request_record, device_request_fields);

static const struct field device_result_fields[] = {
	FIELD(struct device_result_record, driver, FIELD_STRING, "driver"),
	FIELD(struct device_result_record, device, FIELD_STRING, "device"),
	FIELD(struct device_result_record, is_for_admin, FIELD_BOOL, "adminAccess"),
};
static const struct record_spec device_result_spec = RECORD(struct device_result_record, device_result_fields);

static const struct field constraint_fields[] = { FIELD(struct text_record, text, FIELD_STRING, "matchAttribute") };
static const struct record_spec constraint_spec = RECORD(struct text_record, constraint_fields);

static const struct field resource_claim_fields[] = {
	FIELD(struct resource_claim_record, asks, FIELD_RAW, "spec"),
	LIST(struct resource_claim_record, owners, "metadata>ownerReferences", owner_spec),
	LIST(struct resource_claim_record, requests, "spec>devices>requests", device_request_spec),
	LIST(struct resource_claim_record, constraints, "spec>devices>constraints", constraint_spec),
	LIST(struct resource_claim_record, results, "status>allocation>devices>results", device_result_spec),
	LIST(struct resource_claim_record, terms, "status>allocation>nodeSelector>nodeSelectorTerms", term_spec),
	LIST(struct resource_claim_record, consumers, "status>reservedFor", owner_spec),
};
const struct record_spec resource_claim_spec = RECORD(struct resource_claim_record, resource_claim_fields);

static const struct field budget_fields[] = {
	MAP(struct budget_record, match_labels, "spec>selector>matchLabels", NULL),
	LIST(struct budget_record, expressions, "spec>selector>matchExpressions", expression_spec),
	FIELD(struct budget_record, allowed, FIELD_INT, "status>disruptionsAllowed"),
	FIELD(struct budget_record, healthy, FIELD_INT, "status>currentHealthy"),
	FIELD(struct budget_record, healthy_least, FIELD_INT, "status>desiredHealthy"),
	FIELD(struct budget_record, unhealthy_policy, FIELD_STRING, "spec>unhealthyPodEvictionPolicy"),
};
const struct record_spec budget_spec = RECORD(struct budget_record, budget_fields);

static const struct field quota_fields[] = {
	MAP(struct quota_record, hard, "status>hard", NULL),
	MAP(struct quota_record, used, "status>used", NULL),
};
const struct record_spec quota_spec = RECORD(struct quota_record, quota_fields);

static const struct field job_fields[] = {
	LIST(struct workload_record, owners, "metadata>ownerReferences", owner_spec),
	MAP(struct workload_record, annotations, "metadata>annotations", wants_workload_annotation),
	FIELD(struct workload_record, parallelism, FIELD_INT, "spec>parallelism"),
	FIELD(struct workload_record, completions, FIELD_INT, "spec>completions"),
	FIELD(struct workload_record, completion_mode, FIELD_STRING, "spec>completionMode"),
	FIELD(struct workload_record, is_suspended, FIELD_BOOL, "spec>suspend"),
};
const struct record_spec job_spec = RECORD(struct workload_record, job_fields);

static const struct field replicated_job_fields[] = {
	FIELD(struct part_record, replicas, FIELD_INT, "replicas"),
	FIELD(struct part_record, parallelism, FIELD_INT, "template>spec>parallelism"),
	LIST(struct part_record, after, "dependsOn", gate_spec),
};
static const struct record_spec replicated_job_spec = RECORD(struct part_record, replicated_job_fields);

static const struct field job_set_fields[] = {
	FIELD(struct workload_record, is_suspended, FIELD_BOOL, "spec>suspend"),
	FIELD(struct workload_record, order, FIELD_STRING, "spec>startupPolicy>startupPolicyOrder"),
	LIST(struct workload_record, parts, "spec>replicatedJobs", replicated_job_spec),
};
const struct record_spec job_set_spec = RECORD(struct workload_record, job_set_fields);

static const struct field pod_group_fields[] = {
	FIELD(struct workload_record, least, FIELD_INT, "spec>minMember"),
};
const struct record_spec pod_group_spec = RECORD(struct workload_record, pod_group_fields);

static const struct field native_pod_group_fields[] = {
	FIELD(struct workload_record, least, FIELD_INT, "spec>schedulingPolicy>gang>minCount"),
};
const struct record_spec native_pod_group_spec = RECORD(struct workload_record, native_pod_group_fields);

static const struct field pod_set_fields[] = { FIELD(struct part_record, count, FIELD_INT, "count") };
static const struct record_spec pod_set_spec = RECORD(struct part_record, pod_set_fields);

static const struct field kueue_workload_fields[] = {
	LIST(struct workload_record, owners, "metadata>ownerReferences", owner_spec),
	LIST(struct workload_record, parts, "spec>podSets", pod_set_spec),
	LIST(struct workload_record, conditions, "status>conditions", condition_spec),
};
const struct record_spec kueue_workload_spec = RECORD(struct workload_record, kueue_workload_fields);

const char *decoded_get(const struct decoded_map *map, const char *key)
{
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->pairs[i].key, key) == 0)
			return map->pairs[i].value;
	return NULL;
}

const struct condition_record *condition_of(const struct decoded_list *conditions, const char *type)
{
	const struct condition_record *items = conditions->items;
	for (size_t i = 0; i < conditions->count; i++)
		if (items[i].type != NULL && strcmp(items[i].type, type) == 0)
			return &items[i];
	return NULL;
}

millis model_moment(const struct cluster *c, const struct watch_seen *seen, millis told)
{
	bool by_arrival = c->ignores_stamps || told == 0 || !seen->is_from_list || told > seen->arrived;
	return by_arrival ? seen->arrived : told;
}

/* The watches that feed the model. */

struct cluster_watches {
	struct api *api;
	struct watch *of[CLUSTER_KIND_COUNT];
	millis needed_at[CLUSTER_KIND_COUNT]; /* of those that are begun on demand */
	struct cluster_reader {
		struct cluster *cluster;
		enum cluster_kind kind;
	} readers[CLUSTER_KIND_COUNT];
};

static const struct {
	const char *name, *path;
	const struct record_spec *object;
} kinds[CLUSTER_KIND_COUNT] = {
	[CLUSTER_NODES] = { "nodes", "/api/v1/nodes", &node_spec },
	[CLUSTER_PODS] = { "pods", "/api/v1/pods", &pod_spec },
	[CLUSTER_BUDGETS] = { "poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", &budget_spec },
	[CLUSTER_QUOTAS] = { "resourcequotas", "/api/v1/resourcequotas", &quota_spec },
	[CLUSTER_JOBS] = { "jobs", "/apis/batch/v1/jobs", &job_spec },
	[CLUSTER_JOB_SETS] = { "jobsets", "/apis/jobset.x-k8s.io/v1alpha2/jobsets", &job_set_spec },
	[CLUSTER_POD_GROUPS] = { "podgroups", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", &pod_group_spec },
	[CLUSTER_NATIVE_POD_GROUPS] = { "podgroups.k8s.io", "/apis/scheduling.k8s.io/v1beta1/podgroups",
					&native_pod_group_spec },
	[CLUSTER_VOLCANO_POD_GROUPS] = { "podgroups.volcano.sh", "/apis/scheduling.volcano.sh/v1beta1/podgroups",
					 &pod_group_spec },
	[CLUSTER_KAI_POD_GROUPS] = { "podgroups.run.ai", "/apis/scheduling.run.ai/v2alpha2/podgroups",
				     &pod_group_spec },
	[CLUSTER_KUEUE_WORKLOADS] = { "workloads.v1beta2", "/apis/kueue.x-k8s.io/v1beta2/workloads",
				      &kueue_workload_spec },
	[CLUSTER_KUEUE_WORKLOADS_OLD] = { "workloads.v1beta1", "/apis/kueue.x-k8s.io/v1beta1/workloads",
					  &kueue_workload_spec },
	[CLUSTER_NODE_EVENTS] = { "events", "/api/v1/events", &node_event_spec },
	[CLUSTER_VOLUME_CLAIMS] = { "persistentvolumeclaims", "/api/v1/persistentvolumeclaims", &volume_claim_spec },
	[CLUSTER_VOLUMES] = { "persistentvolumes", "/api/v1/persistentvolumes", &volume_spec },
	[CLUSTER_STORAGE_CLASSES] = { "storageclasses", "/apis/storage.k8s.io/v1/storageclasses", &storage_class_spec },
	[CLUSTER_NAMESPACES] = { "namespaces", "/api/v1/namespaces", &namespace_spec },
	[CLUSTER_RESOURCE_SLICES] = { "resourceslices", "/apis/resource.k8s.io/v1/resourceslices",
				      &resource_slice_spec },
	[CLUSTER_DEVICE_CLASSES] = { "deviceclasses", "/apis/resource.k8s.io/v1/deviceclasses", &device_class_spec },
	[CLUSTER_RESOURCE_CLAIMS] = { "resourceclaims", "/apis/resource.k8s.io/v1/resourceclaims",
				      &resource_claim_spec },
};

/* Longer than any watch lasts. */
static const millis EVENT_SILENCE = 15 * MINUTE;

static bool seen(void *user, const void *record, const struct watch_seen *object)
{
	struct cluster_reader *r = user;
	switch (r->kind) {
	case CLUSTER_NODES:
		return cluster_node_seen(r->cluster, record, object);
	case CLUSTER_PODS:
		return cluster_pod_seen(r->cluster, record, object);
	case CLUSTER_BUDGETS:
		return cluster_budget_seen(r->cluster, record, object);
	case CLUSTER_QUOTAS:
		return cluster_quota_seen(r->cluster, record, object);
	case CLUSTER_JOBS:
	case CLUSTER_JOB_SETS:
	case CLUSTER_POD_GROUPS:
	case CLUSTER_NATIVE_POD_GROUPS:
	case CLUSTER_VOLCANO_POD_GROUPS:
	case CLUSTER_KAI_POD_GROUPS:
	case CLUSTER_KUEUE_WORKLOADS:
		return cluster_workload_seen(r->cluster, r->kind, record, object);
	case CLUSTER_KUEUE_WORKLOADS_OLD:
		return cluster_workload_seen(r->cluster, CLUSTER_KUEUE_WORKLOADS, record, object);
	case CLUSTER_NODE_EVENTS:
		return cluster_node_event_seen(r->cluster, record, object);
	case CLUSTER_RESOURCE_SLICES:
		return cluster_slice_seen(r->cluster, record, object);
	case CLUSTER_DEVICE_CLASSES:
		return cluster_device_class_seen(r->cluster, record, object);
	case CLUSTER_RESOURCE_CLAIMS:
		return cluster_device_claim_seen(r->cluster, record, object);
	case CLUSTER_VOLUME_CLAIMS:
	case CLUSTER_VOLUMES:
	case CLUSTER_STORAGE_CLASSES:
	case CLUSTER_NAMESPACES:
		return cluster_needed_seen(r->cluster, r->kind, record, object);
	case CLUSTER_KIND_COUNT:
		break;
	}
	return false;
}

static void gone(void *user, struct object_uid uid, millis arrived)
{
	struct cluster_reader *r = user;
	switch (r->kind) {
	case CLUSTER_NODES:
		cluster_node_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_PODS:
		cluster_pod_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_BUDGETS:
		cluster_budget_gone(r->cluster, uid);
		break;
	case CLUSTER_QUOTAS:
		cluster_quota_gone(r->cluster, uid);
		break;
	case CLUSTER_JOBS:
	case CLUSTER_JOB_SETS:
	case CLUSTER_POD_GROUPS:
	case CLUSTER_NATIVE_POD_GROUPS:
	case CLUSTER_VOLCANO_POD_GROUPS:
	case CLUSTER_KAI_POD_GROUPS:
	case CLUSTER_KUEUE_WORKLOADS:
	case CLUSTER_KUEUE_WORKLOADS_OLD:
		cluster_workload_gone(r->cluster, uid);
		break;
	case CLUSTER_RESOURCE_SLICES:
		cluster_slice_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_DEVICE_CLASSES:
		cluster_device_class_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_RESOURCE_CLAIMS:
		cluster_device_claim_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_VOLUME_CLAIMS:
	case CLUSTER_VOLUMES:
	case CLUSTER_STORAGE_CLASSES:
	case CLUSTER_NAMESPACES:
		cluster_needed_gone(r->cluster, r->kind, uid);
		break;
	case CLUSTER_NODE_EVENTS:
	case CLUSTER_KIND_COUNT:
		break;
	}
}

static void needed_read(void *user)
{
	const struct cluster_reader *r = user;
	const struct cluster_event event = { .what = CLUSTER_NEEDED_READ };
	r->cluster->generation++;
	if (r->cluster->on_change != NULL)
		r->cluster->on_change(r->cluster->on_change_user, &event);
}

static struct watch *start(struct cluster *c, enum cluster_kind kind)
{
	bool is_events = kind == CLUSTER_NODE_EVENTS;
	struct watch_spec spec = {
		.name = kinds[kind].name,
		.path = kinds[kind].path,
		.field_selector = is_events ? "involvedObject.kind=Node" : NULL,
		.object = kinds[kind].object,
		.way = WATCH_WHOLE,
		/* The server sends no bookmarks for events: there silence is what is usual. */
		.silence = is_events ? EVENT_SILENCE : 0,
		.on_object = seen,
		.on_gone = gone,
		.on_synced = kind >= CLUSTER_VOLUME_CLAIMS ? needed_read : NULL,
		.user = &c->watches->readers[kind],
	};
	return watch_start(c->watches->api, &spec);
}

/* --- those that are begun when a pod that waits needs them --- */

static const millis NEEDED_LASTS = 10 * MINUTE;

static bool needs(const struct cluster *c, const struct pod *p, enum cluster_kind kind)
{
	const struct claim_set *claims = p->shape->claims;
	const struct pod_term_set *const terms[] = { p->shape->near, p->shape->apart };
	if (kind == CLUSTER_NAMESPACES) {
		for (size_t t = 0; t < 2; t++)
			for (size_t i = 0; i < intern_count(terms[t]); i++)
				if (terms[t]->items[i].of_namespaces != NULL)
					return true;
		return c->apart_by_labels > 0;
	}
	for (size_t i = 0; i < intern_count(claims); i++)
		if (claims->items[i].kind == CLAIM_VOLUME)
			return true;
	return false;
}

static bool is_needed(const struct cluster *c, enum cluster_kind kind)
{
	for (const struct pod *p = c->waiting; p != NULL; p = p->next)
		if (p->state == POD_UNSCHEDULED && pod_is_ours(p) && needs(c, p, kind))
			return true;
	return false;
}

void cluster_watch_needed(struct cluster *c, millis now)
{
	struct cluster_watches *w = c->watches;
	for (int i = CLUSTER_VOLUME_CLAIMS; w != NULL && i < CLUSTER_KIND_COUNT; i++) {
		enum cluster_kind kind = (enum cluster_kind)i;
		if (is_needed(c, kind)) {
			w->needed_at[i] = now;
			w->of[i] = w->of[i] == NULL ? start(c, kind) : w->of[i];
		} else if (w->of[i] != NULL && now - w->needed_at[i] > NEEDED_LASTS) {
			watch_stop(w->of[i]);
			w->of[i] = NULL;
			cluster_needed_forget(c, kind);
		}
	}
}

enum needed_state cluster_needed(const struct cluster *c, enum cluster_kind kind)
{
	if (c->watches == NULL)
		return NEEDED_KNOWN;
	const struct watch *w = c->watches->of[kind];
	enum watch_state state = w == NULL ? WATCH_STARTING : watch_report(w)->state;
	if (state == WATCH_REFUSED || state == WATCH_ABSENT)
		return NEEDED_REFUSED;
	return state == WATCH_STARTING ? NEEDED_COMING : NEEDED_KNOWN;
}

void cluster_watch_start(struct cluster *c, struct api *api)
{
	struct cluster_watches *w = xcalloc(1, sizeof *w);
	c->watches = w;
	w->api = api;
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++) {
		w->readers[i] = (struct cluster_reader){ c, (enum cluster_kind)i };
		if (i < CLUSTER_VOLUME_CLAIMS)
			w->of[i] = start(c, (enum cluster_kind)i);
	}
}

void cluster_watch_stop(struct cluster *c)
{
	if (c->watches == NULL)
		return;
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++)
		watch_stop(c->watches->of[i]);
	free(c->watches);
	c->watches = NULL;
}

const struct watch *cluster_watch_of(const struct cluster *c, enum cluster_kind kind)
{
	return c->watches == NULL ? NULL : c->watches->of[kind];
}

bool cluster_is_synced(const struct cluster *c)
{
	if (c->watches == NULL)
		return false;
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++) {
		const struct watch *w = c->watches->of[i];
		if (i >= CLUSTER_VOLUME_CLAIMS)
			break; /* whoever needs them waits for them */
		bool may_lack = i != CLUSTER_NODES && i != CLUSTER_PODS && watch_report(w)->state == WATCH_REFUSED;
		if (!watch_is_synced(w) && !may_lack)
			return false;
	}
	return true;
}
