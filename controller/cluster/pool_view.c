#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <string.h>

/* A node that takes no more of our pods, and whose pods must move; or that is gone, and its pods will follow. */
static bool is_emptied(const struct node *n)
{
	return !n->is_known || n->is_draining || n->is_leaving || n->interruption != NODE_STAYS;
}

static int position(const struct pool_known *pool, int group)
{
	for (size_t i = 0; i < pool->group_count; i++)
		if (group >= 0 && pool->groups[i] == group)
			return (int)i;
	return -1;
}

static void count_replica(struct pool_view *v, struct pool_group_view *g, const struct pod *p)
{
	if (p->state == POD_TERMINATING || is_emptied(p->node)) {
		v->draining++;
		g->draining++;
	} else if (p->state == POD_READY && p->engine == POD_ENGINE_WAKING) {
		v->waking++;
		v->starting++;
		g->starting++;
	} else if (p->state == POD_READY && p->engine != POD_ENGINE_AWAKE) {
		v->asleep++;
		g->asleep++;
		v->falling_asleep += p->engine == POD_ENGINE_FALLING_ASLEEP;
		v->discarded += p->sleep == POD_SLEEP_2;
	} else if (p->state == POD_READY) {
		bool ends =
			(p->owner != NULL && strcmp(p->owner->kind, "Job") == 0) || p->evict == POD_EVICT_ON_COMPLETION;
		v->ready++;
		g->ready++;
		v->work += ends;
	} else {
		bool has_fallen = p->state == POD_STARTED && p->ready_at > 0;
		v->starting++;
		g->starting++;
		v->fallen += has_fallen;
		g->fallen += has_fallen;
	}
}

static void keep_fallen(struct pool_view *v)
{
	v->all_fell = !v->ready && v->fallen > 0;
	if (!v->all_fell)
		return;
	v->ready = v->fallen;
	v->starting -= v->fallen;
	for (size_t i = 0; i < v->group_count; i++) {
		v->groups[i].ready = v->groups[i].fallen;
		v->groups[i].starting -= v->groups[i].fallen;
	}
}

/* Replicas of the pool on a node that could go: all of them serve or sleep, and nobody else holds a GPU there. Of these
 * those that serve, else 0. */
static int64_t alone_on(const struct node *n, int pool)
{
	int64_t replicas = 0;
	if (!node_is_usable(n) || n->is_protected)
		return 0;
	for (const struct pod *p = n->pods; p != NULL; p = p->next) {
		bool is_replica = p->pool == pool && !p->is_placeholder;
		if (!pod_counts(p))
			continue;
		if ((p->pool != pool && p->has_gpus && !pod_is_expendable(p)) ||
		    (is_replica && (p->state != POD_READY || p->engine == POD_ENGINE_WAKING)))
			return 0;
		replicas += is_replica && p->engine == POD_ENGINE_AWAKE;
	}
	return replicas;
}

static void count_placed(struct pool_view *v, const struct pool_known *pool, const struct pod *p)
{
	struct pool_group_view nowhere = { 0 };
	int at = position(pool, p->node->group);
	struct pool_group_view *g = at < 0 ? &nowhere : &v->groups[at];
	if (!pod_counts(p))
		return;
	g->gpus_milli += p->gpus_milli;
	if (p->is_placeholder) {
		v->placeholders += p->state != POD_TERMINATING;
		g->placeholders += p->state != POD_TERMINATING;
		return;
	}
	count_replica(v, g, p);
	v->elsewhere += at < 0;
	int64_t alone = alone_on(p->node, p->pool);
	if (alone > 0 && (g->least_on_node == 0 || alone < g->least_on_node))
		g->least_on_node = alone;
}

/* What one replica asks: as its pods do, or as far as the manifest says. */
struct replica {
	const struct resources *requests; /* NULL without an example */
	const char *resource;
	int64_t gpus_milli; /* of the resource */
};

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Whom to think away: placeholders of a pool, by its index, or these. */
enum { NOBODY = -1, EXPENDABLE = -2 };

static bool is_thought_away(const struct pod *p, int whom)
{
	return whom == EXPENDABLE ? pod_is_expendable(p) : whom != NOBODY && p->is_placeholder && p->pool == whom;
}

static int64_t used_on(const struct node *n, const char *resource, int without)
{
	int64_t sum = 0;
	for (const struct pod *p = n->pods; p != NULL; p = p->next)
		if (pod_counts(p) && !is_thought_away(p, without))
			sum = plus(sum, resources_get(p->shape->requests, resource));
	return sum;
}

static int64_t places_for(const struct node *n, const char *resource, int64_t each, int without)
{
	int64_t left = resources_get(n->allocatable, resource) - used_on(n, resource, without);
	char other[DEVICE_NAME_SIZE]; /* of the same GPUs */
	if (device_is_gpu(resource) && device_other_name(resource, other) && resources_get(n->allocatable, other) > 0)
		left -= used_on(n, other, without);
	return left <= 0 || each <= 0 ? 0 : left / each;
}

/* Replicas that fit beside what is there. */
static int64_t places_on(const struct node *n, const struct replica *r, int without)
{
	char other[DEVICE_NAME_SIZE]; /* nobody has said yet by which name its pods ask */
	bool is_other = r->requests == NULL && resources_get(n->allocatable, r->resource) == 0 &&
			device_other_name(r->resource, other);
	int64_t places = places_for(n, is_other ? other : r->resource, r->gpus_milli, without);
	for (size_t i = 0; places > 0 && r->requests != NULL && i < intern_count(r->requests); i++) {
		const struct resource *wanted = &r->requests->items[i];
		int64_t fit = places_for(n, wanted->name, wanted->milli, without);
		places = fit < places ? fit : places;
	}
	return places;
}

static bool is_newer(const struct pod *p, const struct pod *than)
{
	return than == NULL || p->created_at > than->created_at ||
	       (p->created_at == than->created_at && memcmp(p->uid, than->uid, sizeof p->uid) > 0);
}

/* The newest pod of the pool that is no placeholder, by creation and uid. One that fits nowhere is no example. */
static const struct pod *example_of(const struct cluster *c, size_t pool)
{
	const struct placement *waiting = cluster_placement(c);
	const struct pod *best = NULL;
	for (const struct pod *p = c->pools[pool].pods; p != NULL; p = p->pool_next)
		if (!p->is_placeholder && p->has_gpus && p->state != POD_UNSCHEDULED && is_newer(p, best))
			best = p;
	for (size_t i = 0; i < waiting->count; i++) {
		const struct pod *p = waiting->items[i].pod;
		if (p->pool == (int)pool && !p->is_placeholder && p->has_gpus &&
		    waiting->items[i].placing != PLACING_NOWHERE && is_newer(p, best))
			best = p;
	}
	return best;
}

/* Pods that claim the devices of a driver ask for the same GPUs. */
static const char *claimed_in_place_of(const char *resource, const struct resources *requests)
{
	char driver[DEVICE_NAME_SIZE];
	for (size_t i = 0; device_driver_of(resource, driver) && i < intern_count(requests); i++)
		if (strcmp(requests->items[i].name, driver) == 0)
			return requests->items[i].name;
	return resource;
}

static struct replica replica_of(const struct cluster *c, size_t index)
{
	const struct pool_known *pool = &c->pools[index];
	const struct pod *example = example_of(c, index);
	struct replica r = { NULL, pool->gpu_resource, pool->gpus_per_replica * 1000 };
	if (example != NULL)
		r.requests = example->shape->requests;
	if (r.resource != NULL && r.requests != NULL && resources_get(r.requests, r.resource) == 0)
		r.resource = claimed_in_place_of(r.resource, r.requests);
	for (size_t i = 0; r.resource == NULL && r.requests != NULL && i < intern_count(r.requests); i++)
		if (device_is_gpu(r.requests->items[i].name))
			r.resource = r.requests->items[i].name;
	if (r.resource == NULL)
		r.resource = pool->group_count > 0 ? c->groups[pool->groups[0]].gpu_resource : "nvidia.com/gpu";
	return r;
}

static void count_node(struct pool_group_view *g, const struct node *n, int pool, const struct replica *r)
{
	g->nodes += !n->is_leaving;
	if (!node_is_usable(n))
		return;
	g->usable_nodes++;
	/* Most nodes are full: nothing to look for. Parts of GPUs are rounded, and say nothing so exact. */
	bool has_parts = n->gpus_milli % 1000 != 0 || n->gpus_used_milli % 1000 != 0;
	bool has_room = has_parts || n->gpus_milli > n->gpus_used_milli;
	int64_t free_places = has_room ? places_on(n, r, NOBODY) : 0;
	g->free_places += free_places;
	if (n->placeholder_count > 0)
		g->placeholder_places += places_on(n, r, pool) - free_places;
	if (n->low_count > 0)
		g->expendable_places += places_on(n, r, EXPENDABLE) - free_places;
}

/* Pods of the pool that are placed so, in one of its groups. */
static int64_t placed_so(const struct placement *p, int pool, int group, enum placing placing)
{
	int64_t count = 0;
	for (size_t i = 0; i < p->count; i++)
		count += p->items[i].pod->pool == pool && !p->items[i].pod->is_placeholder &&
			 p->items[i].placing == placing && p->items[i].group == group;
	return count;
}

/* Where its pods cannot sit beside the others, free GPUs are no places: only those that are meant for them are. */
static void count_places(const struct cluster *c, struct pool_view *v, int pool)
{
	const struct placement *p = cluster_placement(c);
	int64_t elsewhere = 0;
	for (size_t k = 0; k < v->group_count && c->pools[pool].takes_any; k++) {
		v->groups[k].lacking_nodes = p->count > 0 ? p->lacking[v->groups[k].group] : 0;
		v->groups[k].needless_nodes =
			p->count > 0 ? p->needless[v->groups[k].group] : c->groups[v->groups[k].group].expected;
	}
	for (size_t k = 0; k < v->group_count && p->count > 0; k++) {
		struct pool_group_view *g = &v->groups[k];
		g->joining = placed_so(p, pool, g->group, PLACING_COMING);
		g->lacking = placed_so(p, pool, g->group, PLACING_NEW);
		elsewhere += g->joining + g->lacking;
	}
	for (size_t k = 0; k < v->group_count && elsewhere > 0; k++) {
		v->groups[k].free_places = placed_so(p, pool, v->groups[k].group, PLACING_THERE);
		v->groups[k].expendable_places = 0;
	}
}

static void count_pending(const struct cluster *c, struct pool_view *v, int pool, struct arena *a)
{
	size_t count = 0;
	const struct pending_shape *shapes = cluster_pending(c, a, &count);
	struct gang_table gangs = { 0 };
	for (size_t i = 0; i < count; i++) {
		if (shapes[i].pool != pool || shapes[i].is_incomplete_gang || shapes[i].is_undecided)
			continue;
		if (shapes[i].is_stranded)
			v->stranded_milli += shapes[i].count * shapes[i].gpus_milli;
		if (shapes[i].example->is_placeholder)
			v->pending_placeholders += shapes[i].count;
		else if (shapes[i].why != NULL)
			v->unsatisfiable += shapes[i].count;
		else {
			v->pending += shapes[i].count;
			v->placed += shapes[i].placed;
		}
	}
	if (v->pending > 0)
		gangs = gang_table_make(c, a);
	const struct gang_entry *e = NULL;
	for (size_t i = 0; (e = store_next(&gangs.store, &i)) != NULL;)
		if (e->gang.pool == pool && e->gang.pending > 0 && gang_is_whole(&e->gang) &&
		    e->gang.size > v->largest_gang)
			v->largest_gang = e->gang.size;
	gang_table_release(&gangs);
}

struct pool_view cluster_pool_view(const struct cluster *c, size_t index, struct arena *a)
{
	const struct pool_known *pool = &c->pools[index];
	struct pool_view v = { .groups = arena_array(a, struct pool_group_view, pool->group_count),
			       .group_count = pool->group_count };
	struct replica replica = replica_of(c, index);
	const struct node *n = NULL;
	for (size_t i = 0; i < pool->group_count; i++)
		v.groups[i].group = pool->groups[i];
	for (const struct pod *p = pool->pods; p != NULL; p = p->pool_next)
		if (p->node != NULL)
			count_placed(&v, pool, p);
	keep_fallen(&v);
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;) {
		int at = n->is_known ? position(pool, n->group) : -1;
		if (at >= 0)
			count_node(&v.groups[at], n, (int)index, &replica);
	}
	count_pending(c, &v, (int)index, a);
	count_places(c, &v, (int)index);
	return v;
}
