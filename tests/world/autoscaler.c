#include "tests/world/autoscaler.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const millis SYNC = 15 * SECOND;

static struct {
	struct timer sync, reconcile;
	const char *app, *manager; /* of the GitOps controller */
	int64_t replicas;
	millis each;
	millis period, lowered_at; /* of all autoscalers; period 0: they have no policy */
} others;

struct object *autoscaler_create(const char *app, int64_t min, int64_t max, const char *label, const char *made_by)
{
	struct value *v =
		value_of("{'apiVersion':'autoscaling/v2','kind':'HorizontalPodAutoscaler','metadata':{'name':'hpa-%s',"
			 "'namespace':'llm','labels':{'app':'%s'}},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1',"
			 "'kind':'Deployment','name':'%s'},'minReplicas':%" PRId64 ",'maxReplicas':%" PRId64 "}}",
			 app, app, app, min, max);

	if (*label) {
		char path[96];
		snprintf(path, sizeof path, "metadata>labels>%s", label);
		value_set_text(v, path, made_by);
	}
	return apiserver_create(KIND_AUTOSCALER, v);
}

void autoscaler_wish(struct object *hpa, int64_t replicas)
{
	value_set_int(hpa->value, "status>desiredReplicas", replicas);
}

void autoscalers_lower_each(millis period)
{
	others.period = period;
}

static void sync_one(const struct object *hpa)
{
	bool is_deployment = !strcmp(value_text(hpa->value, "spec>scaleTargetRef>kind"), "Deployment");
	struct object *d = is_deployment ? apiserver_find(KIND_DEPLOYMENT, hpa->space,
							  value_text(hpa->value, "spec>scaleTargetRef>name"))
					 : NULL;
	int64_t least = value_int(hpa->value, "spec>minReplicas"), most = value_int(hpa->value, "spec>maxReplicas");
	int64_t is = d ? value_int(d->value, "spec>replicas") : 0,
		wish = value_int(hpa->value, "status>desiredReplicas");

	if (!is)
		return;
	wish = wish ? wish : is;
	wish = wish < least ? least : wish > most ? most : wish;
	if (wish < is && others.period) {
		if (wire_now() - others.lowered_at < others.period)
			return;
		others.lowered_at = wire_now();
		wish = is - 1;
	}
	if (wish != is)
		apiserver_scale(d, "kube-controller-manager", wish);
}

static void sync_all(struct timer *t)
{
	for (const struct object *o = apiserver_first(KIND_AUTOSCALER); o; o = o->next)
		sync_one(o);
	timer_start(NULL, t, SYNC, sync_all);
}

static void reconcile(struct timer *t)
{
	struct object *d = apiserver_find(KIND_DEPLOYMENT, "llm", others.app);

	if (d && value_int(d->value, "spec>replicas") != others.replicas)
		apiserver_scale(d, others.manager, others.replicas);
	timer_start(NULL, t, others.each, reconcile);
}

void gitops_apply(const char *app, const char *manager, int64_t replicas, millis each)
{
	timer_stop(&others.reconcile);
	others.app = app;
	others.manager = manager;
	others.replicas = replicas;
	others.each = each;
	if (each)
		timer_start(NULL, &others.reconcile, each, reconcile);
}

size_t others_scaling(const char *app)
{
	size_t count = others.each && !strcmp(others.app, app);

	for (const struct object *o = apiserver_first(KIND_AUTOSCALER); o; o = o->next)
		count += value_is(o->value, "spec>scaleTargetRef>kind", "Deployment") &&
			 value_is(o->value, "spec>scaleTargetRef>name", app);
	return count;
}

void autoscaler_begin(void)
{
	timer_start(NULL, &others.sync, SYNC, sync_all);
}

void autoscaler_end(void)
{
	timer_stop(&others.sync);
	timer_stop(&others.reconcile);
	memset(&others, 0, sizeof others);
}
