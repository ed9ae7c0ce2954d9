#include "providers/eks_exchange.h"

#include <string.h>

enum { ACTIVITIES_MOST = 100 };

void eks_ask(struct exchange *x, enum aws_service service, const char *method)
{
	x->request.service = service;
	x->request.method = method;
	x->request.body = strcmp(method, "POST") == 0 ? "" : NULL; /* set when the body is written */
	buf_clear(&x->path);
	buf_clear(&x->body);
}

void eks_ask_scaling(struct exchange *x)
{
	eks_ask(x, AWS_AUTOSCALING, "POST");
	buf_text(&x->path, "/");
}

static const char *text_of(const struct exchange *x)
{
	return x->request.response;
}

/* Which Auto Scaling group: of the node group, or the one that has the tags. */

static bool locate_is_due(const struct exchange *x)
{
	return !x->group;
}

static void locate_write(struct exchange *x)
{
	if (x->settings.tag_count) {
		eks_ask_scaling(x);
		eks_find_group(x->settings.tags, x->settings.tag_count, &x->body);
	} else {
		eks_ask(x, AWS_EKS, "GET");
		eks_nodegroup_path(&x->settings, &x->path);
	}
}

static bool locate_read(struct exchange *x, struct error *e)
{
	struct arena *a = &x->call->arena;
	struct eks_nodegroup found = { .status = "", .capacity_type = "", .image = "" };
	bool ok = x->settings.tag_count ? eks_read_found(text_of(x), x->request.response_len, a, &found.group, e)
					: eks_read_nodegroup(text_of(x), x->request.response_len, a, &found, e);

	if (!ok)
		return false;
	if (!found.group)
		return error_set(e, ERROR_CONFLICT, "node group %s has no Auto Scaling group yet (status %s)",
				 x->settings.nodegroup, found.status);
	x->seen.nodegroup = found;
	x->group = found.group;
	eks_lookup_keep(x->provider->lookup, x->call->settings, loop_now(x->provider->loop), &found);
	return true;
}

/* An update of the node group that goes on after its call. */

static bool update_is_due(const struct exchange *x)
{
	return x->call->pending && *x->call->pending && !x->is_update_read && x->settings.nodegroup &&
	       x->settings.cluster;
}

static void update_write(struct exchange *x)
{
	eks_ask(x, AWS_EKS, "GET");
	eks_update_path(&x->settings, x->call->pending, &x->path);
}

static bool update_read(struct exchange *x, struct error *e)
{
	struct eks_update u;

	if (!eks_read_update(text_of(x), x->request.response_len, &x->call->arena, &u, e))
		return false;
	x->is_update_read = true;
	x->is_update_running = u.progress == EKS_IN_PROGRESS;
	x->has_update_failed = u.progress == EKS_FAILED;
	x->update_failure = (struct launch_failure){ .id = u.created_at * 1024,
						     .at = u.created_at,
						     .kind = ERROR_INVALID,
						     .message = u.message,
						     .zone = "",
						     .instance_type = "" };
	if (!x->is_update_running)
		eks_lookup_forget(x->provider->lookup, x->call->settings);
	return true;
}

static bool update_forgives(struct exchange *x, const struct error *e)
{
	x->is_update_read = true;
	return e->kind == ERROR_NOT_FOUND || e->kind == ERROR_AUTH || e->kind == ERROR_INVALID;
}

/* The group, and once more before the size is lowered. */

static bool group_is_due(const struct exchange *x)
{
	return !x->is_group_read;
}

static void group_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_describe_groups(&x->group, 1, &x->body);
}

static bool take_group(struct exchange *x, bool is_alone, struct error *e)
{
	bool (*read)(const char *, size_t, const char *, struct arena *, struct eks_group *, struct error *) =
		is_alone ? eks_read_group : eks_read_group_of;

	if (!read(text_of(x), x->request.response_len, x->group, &x->call->arena, &x->seen.group, e)) {
		if (e->kind == ERROR_NOT_FOUND)
			eks_lookup_forget(x->provider->lookup, x->call->settings);
		return false;
	}
	x->is_group_read = true;
	x->seen.now = x->request.answered_at ? x->request.answered_at : aws_now(x->provider->aws);
	return true;
}

/* A look at the group: others are asked for with it, and what was told with others serves. */

static bool recall_group(struct exchange *x, struct error *e)
{
	struct provider *p = x->provider;
	const struct eks_told *told =
		x->group ? eks_together_take(p->together, &x->settings, x->group, loop_now(p->loop)) : NULL;
	struct error ignored;

	(void)e;
	if (told && eks_read_group_of(told->text, told->len, x->group, &x->call->arena, &x->seen.group, &ignored)) {
		x->is_group_read = true;
		x->seen.now = told->answered_at ? told->answered_at : aws_now(p->aws);
	}
	return true;
}

static void groups_write(struct exchange *x)
{
	const char *names[EKS_TOGETHER];
	struct provider *p = x->provider;

	x->asked_for = eks_together_names(p->together, &x->settings, x->group, loop_now(p->loop), names);
	eks_ask_scaling(x);
	eks_describe_groups(names, x->asked_for, &x->body);
	x->era = eks_together_era(p->together);
}

static bool groups_read(struct exchange *x, struct error *e)
{
	struct provider *p = x->provider;

	if (!take_group(x, x->asked_for == 1, e))
		return false;
	eks_together_keep(p->together, &x->settings, x->group, loop_now(p->loop),
			  &(struct eks_told){ text_of(x), x->request.response_len, x->era, x->request.answered_at });
	return true;
}

static bool group_read(struct exchange *x, struct error *e)
{
	return take_group(x, true, e);
}

static bool again_is_due(const struct exchange *x)
{
	return !x->has_read_again;
}

static bool again_read(struct exchange *x, struct error *e)
{
	x->has_read_again = true;
	return group_read(x, e);
}

/* The warm pool, page by page. */

static bool pool_is_due(const struct exchange *x)
{
	return x->seen.group.pool.exists && !x->is_pool_read;
}

static void pool_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_describe_pool(x->group, x->page, &x->body);
}

static bool pool_read(struct exchange *x, struct error *e)
{
	struct eks_list list;

	if (!eks_read_pool(text_of(x), x->request.response_len, &x->call->arena, &list, e))
		return false;
	if (x->seen.pool_count + list.count > EKS_MACHINES || (list.next && !list.count))
		return error_set(e, ERROR_INVALID, "a warm pool without end");
	struct eks_instance *all = arena_array(&x->call->arena, struct eks_instance, x->seen.pool_count + list.count);
	if (x->seen.pool_count)
		memcpy(all, x->seen.pool, x->seen.pool_count * sizeof *all);
	if (list.count)
		memcpy(all + x->seen.pool_count, list.items, list.count * sizeof *all);
	x->seen.pool = all;
	x->seen.pool_count += list.count;
	x->page = list.next;
	x->is_pool_read = !list.next;
	return true;
}

static bool pool_forgives(struct exchange *x, const struct error *e)
{
	x->is_pool_read = x->seen.was_pool_denied = e->kind == ERROR_AUTH;
	return x->is_pool_read;
}

/* Whether a machine that is named and not in the group may be in the pool. */
static bool named_pool_is_due(const struct exchange *x)
{
	if (!pool_is_due(x))
		return false;
	for (size_t i = 0; i < x->call->id_count; i++) {
		bool is_found = false;
		for (size_t k = 0; k < x->seen.group.instance_count && !is_found; k++)
			is_found = strcmp(x->seen.group.instances[k].id, x->call->ids[i]) == 0;
		if (!is_found)
			return true;
	}
	return false;
}

/* Why machines are missing. */

static bool activities_are_due(const struct exchange *x)
{
	return !x->are_activities_read && eks_has_open_ends(&x->seen.group);
}

static void activities_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_describe_activities(x->group, ACTIVITIES_MOST, &x->body);
}

static bool activities_read(struct exchange *x, struct error *e)
{
	struct eks_list list;

	if (!eks_read_activities(text_of(x), x->request.response_len, &x->call->arena, &list, e))
		return false;
	x->seen.activities = list.items;
	x->seen.activity_count = list.count;
	x->are_activities_read = true;
	x->seen.told_before =
		eks_lookup_see(x->provider->lookup, x->call->settings, eks_newest_failure(list.items, list.count));
	return true;
}

#define DECIDE(name_, function) static const struct step name_ = { .name = "a decision", .decide = (function) }

static const struct step locate = { .name = "looking for its Auto Scaling group",
				    .is_due = locate_is_due,
				    .write = locate_write,
				    .read = locate_read };
static const struct step update = { .name = "DescribeUpdate",
				    .is_due = update_is_due,
				    .write = update_write,
				    .read = update_read,
				    .forgives = update_forgives };
static const struct step group = {
	.name = "DescribeAutoScalingGroups", .is_due = group_is_due, .write = group_write, .read = group_read
};
static const struct step groups = {
	.name = "DescribeAutoScalingGroups", .is_due = group_is_due, .write = groups_write, .read = groups_read
};
static const struct step again = {
	.name = "DescribeAutoScalingGroups", .is_due = again_is_due, .write = group_write, .read = again_read
};
static const struct step pool = { .name = "DescribeWarmPool",
				  .is_due = pool_is_due,
				  .write = pool_write,
				  .read = pool_read,
				  .forgives = pool_forgives };
static const struct step named_pool = { .name = "DescribeWarmPool",
					.is_due = named_pool_is_due,
					.write = pool_write,
					.read = pool_read,
					.forgives = pool_forgives };
static const struct step activities = { .name = "DescribeScalingActivities",
					.is_due = activities_are_due,
					.write = activities_write,
					.read = activities_read };
DECIDE(recall, recall_group);
DECIDE(grow, eks_decide_grow);
DECIDE(remove_named, eks_decide_remove);
DECIDE(stop, eks_decide_stop);
DECIDE(standby, eks_decide_standby);
DECIDE(cancel, eks_decide_cancel);
DECIDE(rest, eks_decide_rest);

#define PLAN(...) ((const struct step *const[]){ __VA_ARGS__, NULL })

const struct step *const *const eks_plans[PROVIDER_VERB_COUNT] = {
	[PROVIDER_DESCRIBE] = PLAN(&locate, &update, &recall, &groups, &pool, &activities),
	[PROVIDER_GROW] = PLAN(&locate, &group, &grow, &eks_step_put_pool, &eks_step_launch, &eks_step_size,
			       &eks_step_protect, &eks_step_launched),
	[PROVIDER_REMOVE] = PLAN(&locate, &group, &named_pool, &remove_named, &eks_step_protect, &eks_step_put_pool,
				 &eks_step_terminate, &eks_step_config_if_free),
	[PROVIDER_STOP] = PLAN(&locate, &group, &stop, &eks_step_config, &eks_step_wait_for_pool, &eks_step_protect,
			       &eks_step_put_pool, &eks_step_release, &eks_step_size),
	[PROVIDER_STANDBY] = PLAN(&locate, &group, &standby, &eks_step_put_pool, &eks_step_config, &eks_step_protect),
	[PROVIDER_CANCEL] = PLAN(&locate, &group, &cancel, &eks_step_protect, &eks_step_put_pool, &eks_step_terminate,
				 &again, &rest, &eks_step_protect, &eks_step_size, &eks_step_config_if_free),
	[PROVIDER_CHECK] = PLAN(&eks_step_identity, &eks_step_probe),
};
