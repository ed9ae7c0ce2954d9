/* The steps that change something. */
#include "providers/eks_exchange.h"

#include <inttypes.h>
#include <string.h>

enum { LAUNCHED_MOST = 100, TOKEN_KEPT = 48 /* of the 64 that AWS takes */ };

static const char *text_of(const struct exchange *x)
{
	return x->request.response;
}

static bool protect_is_due(const struct exchange *x)
{
	return x->protect_at < x->protect_count;
}

static size_t portion(size_t at, size_t count)
{
	return count - at < EKS_IDS_AT_ONCE ? count - at : EKS_IDS_AT_ONCE;
}

static void protect_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_protect(x->group, x->to_protect + x->protect_at, portion(x->protect_at, x->protect_count), true, &x->body);
}

static bool protect_read(struct exchange *x, struct error *e)
{
	(void)e;
	x->protect_at += portion(x->protect_at, x->protect_count);
	return true;
}

static bool release_is_due(const struct exchange *x)
{
	return x->release_at < x->release_count;
}

static void release_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_protect(x->group, x->to_release + x->release_at, portion(x->release_at, x->release_count), false, &x->body);
}

static bool release_read(struct exchange *x, struct error *e)
{
	(void)e;
	x->release_at += portion(x->release_at, x->release_count);
	return true;
}

static bool put_pool_is_due(const struct exchange *x)
{
	return x->must_size_pool && !x->is_pool_sized && !eks_pool_is_nodegroups(&x->seen);
}

static void put_pool_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_put_pool(x->group, &x->pool_size, &x->body);
}

static bool put_pool_read(struct exchange *x, struct error *e)
{
	(void)e;
	x->is_pool_sized = true;
	return true;
}

static bool config_is_due(const struct exchange *x)
{
	return x->must_size_pool && !x->is_pool_sized && eks_pool_is_nodegroups(&x->seen);
}

static void config_write(struct exchange *x)
{
	eks_ask(x, AWS_EKS, "POST");
	eks_config_path(&x->settings, &x->path);
	eks_config_body(&x->pool_size, x->call->token, &x->body);
}

static bool config_read(struct exchange *x, struct error *e)
{
	struct eks_update u;

	if (!eks_read_update(text_of(x), x->request.response_len, &x->call->arena, &u, e))
		return false;
	x->is_pool_sized = true;
	x->call->operation = u.id;
	eks_lookup_forget(x->provider->lookup, x->call->settings);
	return true;
}

/* The machines are gone already; what the pool takes for that it is asked again for its size. */
static bool config_forgives(struct exchange *x, const struct error *e)
{
	x->is_pool_sized = true;
	return e->kind == ERROR_CONFLICT;
}

static bool terminate_is_due(const struct exchange *x)
{
	return x->victim_at < x->victim_count;
}

static void terminate_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_terminate(x->victims[x->victim_at], &x->body);
}

static bool terminate_read(struct exchange *x, struct error *e)
{
	(void)e;
	x->victim_at++;
	return true;
}

static bool terminate_forgives(struct exchange *x, const struct error *e)
{
	bool is_gone = e->kind == ERROR_INVALID && strcasestr(x->request.refusal.message, "not found");

	x->victim_at += is_gone;
	return is_gone;
}

static bool size_is_due(const struct exchange *x)
{
	return x->must_size && !x->is_sized;
}

static void size_write(struct exchange *x)
{
	eks_ask_scaling(x);
	eks_set_size(x->group, x->target, &x->body);
}

static bool size_read(struct exchange *x, struct error *e)
{
	(void)e;
	x->is_sized = true;
	return true;
}

/* LaunchInstances: a zone after the other, until all are there or every zone has refused. */

static bool launch_is_due(const struct exchange *x)
{
	size_t zones = x->seen.group.zone_count ? x->seen.group.zone_count : 1;

	return x->to_launch > 0 && x->zone_at < zones;
}

static int64_t launched_at_once(const struct exchange *x)
{
	return x->to_launch < LAUNCHED_MOST ? x->to_launch : LAUNCHED_MOST;
}

/* A repeat of the same request has no second effect; another number or zone is another request. */
static void launch_write(struct exchange *x)
{
	CLEANUP(buf_release) struct buf token = { 0 };
	const struct eks_group *g = &x->seen.group;

	const char *told = x->call->token;
	size_t len = strlen(told);

	eks_ask_scaling(x);
	/* Of a long one its end, where it differs from the one before. */
	buf_printf(&token, "%s-%zu-%" PRId64, told + (len > TOKEN_KEPT ? len - TOKEN_KEPT : 0), x->zone_at,
		   x->to_launch);
	for (size_t i = 0; i < token.len; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/", token.text[i]))
			token.text[i] = '-';
	eks_launch_instances(x->group, launched_at_once(x), g->zone_count > 1 ? g->zones[x->zone_at] : NULL, token.text,
			     &x->body);
}

static bool launch_read(struct exchange *x, struct error *e)
{
	struct eks_launched launched;

	if (!eks_read_launched(text_of(x), x->request.response_len, &x->call->arena, &launched, e))
		return false;
	x->zone_at += launched.count < launched_at_once(x);
	x->to_launch -= launched.count;
	for (size_t i = 0; i < launched.error_count; i++) {
		const struct eks_launch_error *l = &launched.errors[i];
		enum error_kind kind = eks_failure_kind(l->code, l->message, NULL);
		if (i == 0 || kind != ERROR_STOCKOUT)
			error_set(&x->launch_error, kind, "%s %s: %s: %s", l->zone, l->type, l->code, l->message);
	}
	return true;
}

static bool decide_launched(struct exchange *x, struct error *e)
{
	if (x->to_launch <= 0)
		return true;
	if (x->launch_error.kind == ERROR_NONE)
		error_set(&x->launch_error, ERROR_STOCKOUT, "no zone had any");
	*e = x->launch_error;
	return error_wrap(e, "%" PRId64 " of %" PRId64 " machines were not launched", x->to_launch,
			  x->target - x->seen.group.desired);
}

static bool decide_wait(struct exchange *x, struct error *e)
{
	if (!x->must_wait_for_pool)
		return true;
	return error_set(e, ERROR_CONFLICT,
			 "the warm pool is being enlarged; once that is over machines can be stopped");
}

const struct step eks_step_protect = {
	.name = "SetInstanceProtection", .is_due = protect_is_due, .write = protect_write, .read = protect_read
};
const struct step eks_step_release = {
	.name = "SetInstanceProtection", .is_due = release_is_due, .write = release_write, .read = release_read
};
const struct step eks_step_put_pool = {
	.name = "PutWarmPool", .is_due = put_pool_is_due, .write = put_pool_write, .read = put_pool_read
};
const struct step eks_step_config = {
	.name = "UpdateNodegroupConfig", .is_due = config_is_due, .write = config_write, .read = config_read
};
const struct step eks_step_config_if_free = { .name = "UpdateNodegroupConfig",
					      .is_due = config_is_due,
					      .write = config_write,
					      .read = config_read,
					      .forgives = config_forgives };
const struct step eks_step_terminate = { .name = "TerminateInstanceInAutoScalingGroup",
					 .is_due = terminate_is_due,
					 .write = terminate_write,
					 .read = terminate_read,
					 .forgives = terminate_forgives };
const struct step eks_step_size = {
	.name = "SetDesiredCapacity", .is_due = size_is_due, .write = size_write, .read = size_read
};
const struct step eks_step_launch = {
	.name = "LaunchInstances", .is_due = launch_is_due, .write = launch_write, .read = launch_read
};
const struct step eks_step_launched = { .name = "a decision", .decide = decide_launched };
const struct step eks_step_wait_for_pool = { .name = "a decision", .decide = decide_wait };
