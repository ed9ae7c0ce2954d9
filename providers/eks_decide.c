#include "providers/eks_exchange.h"

#include <inttypes.h>
#include <string.h>

static const struct eks_instance *instance_named(const struct eks_instance *items, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(items[i].id, id) == 0)
			return &items[i];
	return NULL;
}

static bool is_victim(const struct exchange *x, const char *id)
{
	for (size_t i = 0; i < x->victim_count; i++)
		if (strcmp(x->victims[i], id) == 0)
			return true;
	return false;
}

static bool may_touch(const struct exchange *x, struct error *e)
{
	if (!x->seen.group.is_tagged || x->settings.takes_tagged)
		return true;
	return error_set(
		e, ERROR_INVALID,
		"Auto Scaling group %s has tags k8s.io/cluster-autoscaler/..., so Cluster Autoscaler may size it, "
		"and nothing is changed (EKS puts these tags on every node group); where no Cluster Autoscaler "
		"uses it, set eks.clusterAutoscalerTags: ignore",
		x->group);
}

static bool keeps_min(const struct exchange *x, int64_t desired, struct error *e)
{
	const struct eks_group *g = &x->seen.group;

	if (desired >= g->min)
		return true;
	return error_set(e, ERROR_INVALID,
			 "size %" PRId64 " would be below MinSize %" PRId64
			 " of Auto Scaling group %s; lower its minimum",
			 desired, g->min, x->group);
}

/* Those that the termination policy could choose once the size falls: all in service that shall stay. */
static void protect_others(struct exchange *x)
{
	const struct eks_group *g = &x->seen.group;

	x->to_protect = arena_array(&x->call->arena, const char *, g->instance_count);
	x->protect_count = x->protect_at = 0;
	for (size_t i = 0; i < g->instance_count; i++)
		if (eks_is_in_service(&g->instances[i]) && !g->instances[i].is_protected &&
		    !is_victim(x, g->instances[i].id))
			x->to_protect[x->protect_count++] = g->instances[i].id;
}

static void add_victim(struct exchange *x, const char *id)
{
	if (!is_victim(x, id))
		x->victims[x->victim_count++] = id;
}

static void size_pool(struct exchange *x, int64_t least, int64_t prepared)
{
	const struct eks_pool *now = x->seen.group.pool.exists ? &x->seen.group.pool : &x->seen.nodegroup.pool;

	x->pool_size = (struct eks_pool_size){ .least = least,
					       .prepared = prepared,
					       .state = now->exists ? now->state : "Stopped",
					       .reuses = !now->exists || now->reuses };
	x->must_size_pool = true;
}

/*
 * A warm pool holds max(MinSize, MaxGroupPreparedCapacity - DesiredCapacity). It rests at MinSize 0, so that a size
 * that grows takes its machines out of the pool and nothing is refilled. A size that falls would fill it: where it
 * shall not, both are set so that the number holds before and after. The pool's default, up to the group's max, is left
 * alone.
 */
static void hold_pool(struct exchange *x, int64_t desired)
{
	const struct eks_group *g = &x->seen.group;
	int64_t standby = eks_standby(g);

	if (!g->pool.exists || g->pool.is_being_deleted || g->pool.prepared < 0 || desired >= g->desired)
		return;
	if (g->pool.prepared - desired <= standby)
		return;
	size_pool(x, eks_pool_is_nodegroups(&x->seen) ? 0 : standby, standby ? desired + standby : 0);
}

bool eks_decide_grow(struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;
	int64_t standby = eks_standby(g);

	if (!may_touch(x, e))
		return false;
	if (x->call->desired > g->max)
		return error_set(e, ERROR_INVALID,
				 "size %" PRId64 " is above MaxSize %" PRId64
				 " of Auto Scaling group %s; raise its maximum, or "
				 "lower max in the manifest",
				 x->call->desired, g->max, x->group);
	x->is_over = x->call->desired <= g->desired;
	if (x->is_over)
		return true;
	if (!g->may_launch)
		return error_set(e, ERROR_INVALID,
				 "the process Launch of Auto Scaling group %s is suspended; resume it", x->group);
	if (g->pool.exists && g->pool.least > 0 && g->pool.prepared >= 0 && !eks_pool_is_nodegroups(&x->seen))
		size_pool(x, 0, g->desired + standby);
	x->target = x->call->desired;
	if (x->settings.launch == EKS_LAUNCH_INSTANCES && !g->pool.exists)
		x->to_launch = x->call->desired - g->desired;
	else
		x->must_size = true;
	protect_others(x);
	return true;
}

static bool refuse_standing(const struct exchange *x, const char *id, struct error *e)
{
	const struct eks_instance *i = instance_named(x->seen.pool, x->seen.pool_count, id);

	if (!i || eks_is_leaving(i))
		return true;
	return error_set(e, ERROR_INVALID,
			 "machine %s is in the warm pool, where none can be named; lower the standby size", id);
}

bool eks_decide_remove(struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;

	if (!may_touch(x, e))
		return false;
	x->victims = arena_array(&x->call->arena, const char *, x->call->id_count);
	for (size_t i = 0; i < x->call->id_count; i++) {
		const struct eks_instance *found = instance_named(g->instances, g->instance_count, x->call->ids[i]);
		if (found && !eks_is_leaving(found))
			add_victim(x, found->id);
		else if (!found && !refuse_standing(x, x->call->ids[i], e))
			return false;
	}
	x->is_over = !x->victim_count;
	if (x->is_over)
		return true;
	x->target = g->desired - (int64_t)x->victim_count;
	if (!keeps_min(x, x->target, e))
		return false;
	protect_others(x);
	hold_pool(x, x->target);
	return true;
}

/* Everything is in service or on its way out: lowering the size then means those that are not protected. */
static bool is_settled(const struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;
	bool is_still = g->desired <= eks_alive(g);

	for (size_t i = 0; i < g->instance_count; i++)
		is_still &= eks_is_in_service(&g->instances[i]) || eks_is_leaving(&g->instances[i]);
	return is_still || error_set(e, ERROR_CONFLICT,
				     "machines of Auto Scaling group %s are starting; none can be sent "
				     "back to the warm pool until they run",
				     x->group);
}

/*
 * A machine that is named ends; one that the termination policy chooses goes back to a warm pool that reuses. So all
 * others are protected, these are not, and the size is lowered by as many.
 */
bool eks_decide_stop(struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;
	const char *lacks;

	if (!may_touch(x, e))
		return false;
	if (!(eks_abilities(&x->seen, &lacks) & PROVIDER_STOPS_NAMED))
		return error_set(e, ERROR_INVALID, "%s", lacks);
	x->victims = arena_array(&x->call->arena, const char *, x->call->id_count);
	x->to_release = arena_array(&x->call->arena, const char *, x->call->id_count);
	for (size_t i = 0; i < x->call->id_count; i++) {
		const struct eks_instance *found = instance_named(g->instances, g->instance_count, x->call->ids[i]);
		if (!found || !eks_is_in_service(found) || is_victim(x, found->id))
			continue;
		add_victim(x, found->id);
		if (found->is_protected)
			x->to_release[x->release_count++] = found->id;
	}
	x->is_over = !x->victim_count;
	if (x->is_over)
		return true;
	x->target = g->desired - (int64_t)x->victim_count;
	if (!keeps_min(x, x->target, e) || !is_settled(x, e))
		return false;
	protect_others(x);
	if (g->pool.prepared >= 0 && g->pool.prepared < g->desired + eks_standby(g)) {
		size_pool(x, 0, g->desired + eks_standby(g));
		x->must_wait_for_pool = eks_pool_is_nodegroups(&x->seen);
	}
	x->must_size = true;
	return true;
}

bool eks_decide_standby(struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;
	const char *lacks;
	int64_t size = x->call->desired;

	if (!may_touch(x, e))
		return false;
	if (!(eks_abilities(&x->seen, &lacks) & PROVIDER_HAS_STANDBY))
		return error_set(e, ERROR_INVALID, "%s", lacks);
	x->is_over = size == eks_standby(g) && (g->pool.exists || !size) && (g->pool.prepared >= 0 || !g->pool.exists);
	if (!x->is_over)
		size_pool(x, 0, size ? g->desired + size : 0);
	protect_others(x);
	return true;
}

static int64_t greatest(int64_t a, int64_t b, int64_t c)
{
	int64_t most = a > b ? a : b;

	return most > c ? most : c;
}

bool eks_decide_cancel(struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;

	if (!may_touch(x, e))
		return false;
	x->victims = arena_array(&x->call->arena, const char *, x->call->id_count);
	for (size_t i = 0; i < x->call->id_count; i++) {
		const struct eks_instance *found = instance_named(g->instances, g->instance_count, x->call->ids[i]);
		if (found && eks_is_starting(found))
			add_victim(x, found->id);
	}
	int64_t gone = (int64_t)x->victim_count;
	if (gone && !keeps_min(x, g->desired - gone, e))
		return false;
	x->target = greatest(x->call->desired, eks_alive(g) - gone, g->min);
	if (x->target > g->desired - gone)
		x->target = g->desired - gone;
	x->is_over = !gone && x->target == g->desired;
	protect_others(x);
	hold_pool(x, x->target);
	return true;
}

/* Auto Scaling may have got one meanwhile: it stays. */
bool eks_decide_rest(struct exchange *x, struct error *e)
{
	const struct eks_group *g = &x->seen.group;

	(void)e;
	x->target = greatest(x->call->desired, eks_alive(g), g->min);
	x->must_size = x->target < g->desired;
	if (x->must_size)
		protect_others(x);
	return true;
}
