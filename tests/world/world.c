#include "tests/world/world.h"

#include "base/log.h"
#include "controller/cluster/api.h"
#include "controller/loop/controller.h"
#include "tests/unit/manifest/loaded.h"
#include "tests/world/laws.h"
#include "tests/world/conditions.h"
#include "tests/world/replica.h"
#include "tests/world/services.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char NAMESPACE[] = "llm";

static struct {
	uint64_t seed;
	struct timer second;
	struct world_app apps[WORLD_APPS];
	size_t app_count;
	int ips;
	int64_t pods, ended_serving;
	bool has_no_scheduler, keeps_images;
	struct timed_job {
		struct world_job job;
		millis runs;
	} jobs[WORLD_JOBS];
	size_t job_count;
} world;

/* --- who is there --- */

struct world_app *world_app_at(size_t i)
{
	return i < world.app_count ? &world.apps[i] : NULL;
}

/* One that came through the API is given its life when it is first looked at. */
struct pod_life *pod_life(const struct object *pod)
{
	struct object *o = (struct object *)(uintptr_t)pod;

	if (!o->extra)
		o->extra = calloc(1, sizeof(struct pod_life));
	if (!o->extra)
		abort();
	return o->extra;
}

/* Made to have an image pulled, and for nothing else. */
static bool is_prefetch(const struct object *pod)
{
	return value_at(pod->value, "metadata>labels>preheat.dev/prefetch");
}

struct world_app *pod_app(const struct object *pod)
{
	struct pod_life *life = pod_life(pod);

	for (size_t i = 0; !life->app && i < world.app_count; i++)
		if (value_is(pod->value, "metadata>labels>app", world.apps[i].name))
			life->app = &world.apps[i];
	return life->app;
}

const char *pod_node(const struct object *pod)
{
	return value_text(pod->value, "spec>nodeName");
}

bool pod_is_going(const struct object *pod)
{
	return value_at(pod->value, "metadata>deletionTimestamp");
}

static const struct value *container_of(const struct object *pod)
{
	return value_at(pod->value, "spec>containers")->first;
}

static int64_t gpus_of(const struct object *pod)
{
	return value_int(container_of(pod), "resources>limits>nvidia.com/gpu");
}

struct object *world_node_of(const char *machine)
{
	return apiserver_find(KIND_NODE, "", machine);
}

int64_t world_ready(const char *app)
{
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		count += value_is(p->value, "metadata>labels>app", app) && pod_life(p)->is_ready && !pod_is_going(p);
	return count;
}

int64_t world_replicas(const char *app)
{
	const struct object *d = apiserver_find(KIND_DEPLOYMENT, NAMESPACE, app);

	return d ? value_int(d->value, "spec>replicas") : 0;
}

void world_set_replicas(const char *app, int64_t replicas)
{
	struct object *d = apiserver_find(KIND_DEPLOYMENT, NAMESPACE, app);

	apiserver_scale(d, "kubectl", replicas);
}

int64_t world_desired(const char *pool)
{
	int64_t sum = 0;

	for (size_t i = 0; cloud_group_at(i); i++)
		sum += !strcmp(cloud_group_at(i)->pool, pool) ? cloud_group_at(i)->desired : 0;
	return sum;
}

bool world_event_told(const char *reason)
{
	for (const struct object *e = apiserver_first(KIND_EVENT); e; e = e->next)
		if (value_is(e->value, "reason", reason))
			return true;
	return false;
}

bool world_event_says(const char *reason, const char *part)
{
	for (const struct object *e = apiserver_first(KIND_EVENT); e; e = e->next)
		if (value_is(e->value, "reason", reason) && strstr(value_text(e->value, "note"), part))
			return true;
	return false;
}

int64_t world_ended_serving(void)
{
	return world.ended_serving;
}

struct world_app *world_app(const char *name, int64_t replicas, int gpus, const char *max_unavailable)
{
	struct world_app *a = &world.apps[world.app_count++];

	if (world.app_count > WORLD_APPS)
		abort();
	*a = (struct world_app){
		.name = name, .gpus = gpus, .slots = 8, .service_s = 6.3, .random = random_stream(world.seed, name)
	};
	apiserver_create(
		KIND_DEPLOYMENT,
		value_of("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'%s','namespace':'%s'},"
			 "'spec':{'replicas':%" PRId64 ",'selector':{'matchLabels':{'app':'%s'}},'template':{"
			 "'metadata':{'labels':{'app':'%s'}},'spec':{'terminationGracePeriodSeconds':600,"
			 "'nodeSelector':{'pool':'%s'},'tolerations':[{'key':'nvidia.com/gpu','operator':'Exists',"
			 "'effect':'NoSchedule'},{'key':'kubernetes.azure.com/scalesetpriority','operator':"
			 "'Exists','effect':'NoSchedule'}],'containers':[{'name':'server','image':'%s:1','resources':{"
			 "'requests':{'nvidia.com/gpu':'%d'},'limits':{'nvidia.com/gpu':'%d'}}}]}}}}",
			 name, NAMESPACE, replicas, name, name, name, name, gpus, gpus));
	if (*max_unavailable)
		apiserver_create(
			KIND_BUDGET,
			value_of("{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'%s',"
				 "'namespace':'%s'},'spec':{'maxUnavailable':'%s','selector':{'matchLabels':{"
				 "'app':'%s'}}},'status':{'disruptionsAllowed':0}}",
				 name, NAMESPACE, max_unavailable, name));
	return a;
}

struct world_app *world_shared_app(const char *name, const char *nodes, int64_t replicas)
{
	struct world_app *a = world_app(name, replicas, 1, "");
	struct object *d = apiserver_find(KIND_DEPLOYMENT, NAMESPACE, name);

	a->is_shared = true;
	a->sleep_ms = 1200;
	a->wake_ms = 2500;
	value_set_text(d->value, "spec>template>spec>nodeSelector>pool", nodes);
	value_set_text(d->value, "spec>template>metadata>labels>preheat.dev/engine-state", "awake");
	return a;
}

struct world_app *world_app_beside(const char *name, struct world_app *host)
{
	struct world_app *a = world_shared_app(name, "nowhere", 0);

	a->host = host;
	host->is_host = true;
	return a;
}

struct cloud_group *world_group(const char *name, const char *pool, int gpus, int64_t min, int64_t max, int64_t initial)
{
	return cloud_add(&(struct cloud_group){ .name = name,
						.pool = pool,
						.zone = "z1",
						.instance_type = "g5.xlarge",
						.min = min,
						.max = max,
						.gpus = gpus },
			 initial);
}

/* --- nodes --- */

static void mark_node(struct value *v, const struct cloud_mark *m)
{
	char path[160];

	for (; m && m->key; m++) {
		snprintf(path, sizeof path, "metadata>labels>%s", m->key);
		if (m->effect)
			value_add(value_at(v, "spec>taints"),
				  value_of("{'key':'%s','value':'%s','effect':'%s'}", m->key, m->value, m->effect));
		else
			value_set_text(v, path, m->value);
	}
}

static struct object *register_node(const struct cloud_machine *m)
{
	static const char *const labels[] = { "simulated.preheat.dev/node-group", "eks.amazonaws.com/nodegroup",
					      "kubernetes.azure.com/agentpool" };
	const struct cloud_group *g = m->group;
	char id[256];
	cloud_provider_id(m, true, id);
	struct value *v = value_of(
		"{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s',"
		"'node.kubernetes.io/instance-type':'%s','topology.kubernetes.io/zone':'%s','pool':'%s','%s':'%s'}},"
		"'spec':{'providerID':'%s','taints':[{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'},{"
		"'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'}]},'status':{'allocatable':{'cpu':'64',"
		"'memory':'480Gi','pods':'110'}}}",
		m->id, m->id, g->instance_type, cloud_zone_name(g, m->zone), g->pool, labels[g->wire], g->name, id);
	if (g->is_spot && g->wire == CLOUD_AKS)
		value_add(value_at(v, "spec>taints"), value_of("{'key':'kubernetes.azure.com/scalesetpriority','value':"
							       "'spot','effect':'NoSchedule'}"));
	mark_node(v, g->marks);
	condition_set(value_at(v, "status"), "Ready", false, "KubeletNotReady");
	struct object *o = apiserver_create(KIND_NODE, v);
	struct node_life *n = calloc(1, sizeof *n);
	if (!n)
		abort();
	n->machine = m;
	o->extra = n;
	return o;
}

void world_plain_node(const char *name, int cpus)
{
	struct object *o = apiserver_create(
		KIND_NODE, value_of("{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','labels':{"
				    "'kubernetes.io/hostname':'%s'}},'spec':{},'status':{'allocatable':{'cpu':'%d',"
				    "'memory':'16Gi','pods':'110'},'conditions':[{'type':'Ready','status':'True'}]}}",
				    name, name, cpus));

	o->extra = calloc(1, sizeof(struct node_life));
	if (!o->extra)
		abort();
}

void world_plain_pod(const struct object *node, const char *name, int cpus, const char *more)
{
	struct object *o = apiserver_create(
		KIND_POD,
		value_of("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'llm',"
			 "'labels':{'app':'%s'},'ownerReferences':[{'kind':'ReplicaSet','name':'%s','uid':'r-1',"
			 "'controller':true}]%s},'spec':{'nodeName':'%s','tolerations':[{'operator':'Exists'}],"
			 "'containers':[{'name':'c','image':'i:1','resources':{'requests':{'cpu':'%d'}}}]},'status':{"
			 "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}",
			 name, name, name, more, node->name, cpus));

	o->extra = calloc(1, sizeof(struct pod_life));
	if (!o->extra)
		abort();
}

static bool is_node_ready(const struct object *node)
{
	const struct value *list = value_at(node->value, "status>conditions");

	for (const struct value *c = list ? list->first : NULL; c; c = c->next)
		if (value_is(c, "type", "Ready"))
			return value_is(c, "status", "True");
	return false;
}

static void forget_pods(const char *node)
{
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (!strcmp(pod_node(p), node))
			apiserver_delete(p);
	}
}

/* Engines of shares stand on machines of a stock, which is told to go by what it holds. */
static void look_at_engines(const char *node)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), node) && pod_app(p) && pod_app(p)->is_shared &&
		    (pod_life(p)->engine.running || pod_life(p)->beside.running))
			laws_break("no_request_ends_with_a_slot", "%s works, and its machine is ended", p->name);
}

static void lose_node(struct object *node, bool keeps)
{
	look_at_engines(node->name);
	forget_pods(node->name);
	if (!keeps) {
		apiserver_delete(node);
	} else if (is_node_ready(node)) {
		condition_set(value_at(node->value, "status"), "Ready", false, "NodeShutdown");
		value_set(node->value, "status>allocatable>nvidia.com/gpu", NULL);
		node_notice_over(node);
		apiserver_changed(node);
	}
}

const char *world_unrest(void)
{
	static char text[160];

	for (size_t i = 0; cloud_group_at(i); i++)
		for (const struct cloud_machine *m = cloud_group_at(i)->machines; m; m = m->next) {
			const struct object *node = world_node_of(m->id);
			const struct node_life *life = node ? node->extra : NULL;
			bool is_marked = life && life->cordoned_since;
			snprintf(text, sizeof text, "machine %s is %s", m->id,
				 is_marked ? "cordoned" : "there and has no node");
			if (m->step == STEP_RUNNING && (is_marked || !node))
				return text;
		}
	return NULL;
}

/* The node controller notices a while after the kubelet that a node is ready: until then pods are kept away. */
static void lift_not_ready(struct object *node)
{
	if (node_untaint(node, "node.kubernetes.io/not-ready"))
		apiserver_changed(node);
}

static void kubelet(const struct cloud_machine *m)
{
	struct object *node = world_node_of(m->id);
	millis up = wire_now() - m->since;

	if (!cloud_has_power(m)) {
		bool keeps = m->group->keeps_node && m->step != STEP_TERMINATING;
		if (node && (m->step != STEP_STOPPING || up > 5 * SECOND))
			lose_node(node, keeps);
		return;
	}
	millis reg = m->was_stopped ? 10 * SECOND : cloud_delay(m, "register", 20 * SECOND, 30 * SECOND);
	millis device = m->was_stopped ? 5 * SECOND : cloud_delay(m, "device", 15 * SECOND, 30 * SECOND);
	if (m->is_instant)
		reg = device = 0;
	millis noticed = cloud_delay(m, "ready", 2 * SECOND, 15 * SECOND);
	if (!node && up >= reg / 2 && !m->never_registers)
		node = register_node(m);
	if (!node)
		return;
	bool is_ready = is_node_ready(node), has_gpus = value_at(node->value, "status>allocatable>nvidia.com/gpu");
	if (up >= reg && !is_ready) {
		condition_set(value_at(node->value, "status"), "Ready", true, "KubeletReady");
		apiserver_changed(node);
	}
	if (up >= reg + noticed)
		lift_not_ready(node);
	if (up >= reg + device && !has_gpus && !m->has_no_device) {
		value_set(node->value, "status>allocatable>nvidia.com/gpu", value_of("'%d'", m->group->gpus));
		apiserver_changed(node);
	}
	node_give_notice(m, node);
}

static void machine_gone(struct cloud_machine *m)
{
	struct object *node = world_node_of(m->id);

	if (node)
		lose_node(node, false);
}

static void nodes_second(void)
{
	for (size_t i = 0; cloud_group_at(i); i++)
		for (const struct cloud_machine *m = cloud_group_at(i)->machines; m; m = m->next)
			kubelet(m);
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		struct node_life *life = n->extra;
		bool is_cordoned = value_is(n->value, "spec>unschedulable", "true");
		if (!is_cordoned)
			life->cordoned_since = 0;
		else if (!life->cordoned_since)
			life->cordoned_since = wire_now();
	}
}

/* --- deployments, the scheduler, kubelets of pods --- */

static bool is_finished(const struct object *pod)
{
	return value_is(pod->value, "status>phase", "Succeeded") || value_is(pod->value, "status>phase", "Failed");
}

/* Of one Deployment in a row, whatever others make. */
static int64_t next_number(struct object *owner)
{
	int64_t *made = owner->kind == KIND_DEPLOYMENT ? owner->extra : &world.pods;

	if (!made)
		made = owner->extra = calloc(1, sizeof *made);
	if (!made)
		abort();
	return ++*made;
}

static const char *kind_of_owner(const struct object *owner)
{
	for (size_t i = 0; i < world.app_count; i++)
		if (world.apps[i].is_daemon && !strcmp(world.apps[i].name, owner->name))
			return "DaemonSet";
	return owner->kind == KIND_JOB ? "Job" : "ReplicaSet";
}

static void create_pod(struct object *owner)
{
	const struct value *template = value_at(owner->value, "spec>template");
	struct value *v =
		value_of("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s-%05" PRId64 "','namespace':'%s',"
			 "'ownerReferences':[{'kind':'%s','name':'%s%s','uid':'%s','controller':true}]},"
			 "'status':{'phase':'Pending'}}",
			 owner->name, next_number(owner), owner->space, kind_of_owner(owner), owner->name,
			 owner->kind == KIND_JOB ? "" : "-rs", owner->uid);

	if (value_at(template, "metadata>labels"))
		value_set(v, "metadata>labels", value_copy(value_at(template, "metadata>labels")));
	if (value_at(template, "metadata>annotations"))
		value_set(v, "metadata>annotations", value_copy(value_at(template, "metadata>annotations")));
	value_set(v, "spec", value_copy(value_at(template, "spec")));
	struct object *o = apiserver_create(KIND_POD, v);
	struct pod_life *life = calloc(1, sizeof *life);
	if (!life)
		abort();
	life->ip = ++world.ips;
	life->is_engine = *value_text(v, "metadata>labels>app") && owner->kind != KIND_JOB;
	o->extra = life;
}

static bool is_of_job(const struct object *pod, const char *job)
{
	return value_is(pod->value, "metadata>labels>job", job);
}

static void create_job_pod(const struct world_job *j, const char *uid)
{
	struct object *o = apiserver_create(
		KIND_POD,
		value_of("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s-%05" PRId64 "','namespace':'%s',"
			 "'labels':{'app':'%s','job':'%s'},'ownerReferences':[{'kind':'Job','name':'%s','uid':'%s',"
			 "'controller':true}]},'spec':{'tolerations':[{'key':'nvidia.com/gpu','operator':'Exists',"
			 "'effect':'NoSchedule'}],'containers':[{'name':'work','image':'w:1','resources':{'requests':{"
			 "'cpu':'%d'},'limits':{'nvidia.com/gpu':'%d'}}}]%s},'status':{'phase':'Pending'}}",
			 j->name, ++world.pods, NAMESPACE, j->pool, j->name, j->name, uid, j->cpus,
			 j->gpus > 0 ? j->gpus : 1, j->spec ? j->spec : ""));
	struct pod_life *life = calloc(1, sizeof *life);

	if (!life)
		abort();
	life->ip = ++world.ips;
	o->extra = life;
}

void world_job(const struct world_job *j)
{
	const struct object *job = apiserver_create(
		KIND_JOB,
		value_of("{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'%s','namespace':'%s'},'spec':{"
			 "'parallelism':%" PRId64 ",'completions':%" PRId64 ",'completionMode':'%s'}}",
			 j->name, NAMESPACE, j->pods, j->pods, j->is_loose ? "NonIndexed" : "Indexed"));

	for (int64_t i = 0; i < j->pods; i++)
		create_job_pod(j, job->uid);
}

void world_job_for(const struct world_job *j, millis runs)
{
	if (world.job_count == WORLD_JOBS)
		return;
	world_job(j);
	world.jobs[world.job_count++] = (struct timed_job){ *j, runs };
}

void world_job_ends(const char *name)
{
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (is_of_job(p, name) && *pod_node(p)) {
			value_set_text(p->value, "status>phase", "Succeeded");
			pod_life(p)->is_ready = false;
			apiserver_changed(p);
		}
}

int64_t world_job_running(const char *name)
{
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		count += is_of_job(p, name) && pod_life(p)->is_ready;
	return count;
}

void world_scheduler(bool is_there)
{
	world.has_no_scheduler = !is_there;
}

void world_keeps_images(void)
{
	world.keeps_images = true;
}

static void end_pod(struct object *pod)
{
	char at[32];

	if (!*pod_node(pod)) {
		apiserver_delete(pod);
		return;
	}
	apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
	value_set_text(pod->value, "metadata>deletionTimestamp", at);
	value_set_int(pod->value, "metadata>deletionGracePeriodSeconds", 600);
	apiserver_changed(pod);
}

/* The ReplicaSet's controller learns of it by a watch, too: until then it takes the pod for what it was. */
static bool is_end_unseen(const struct object *pod)
{
	return pod_is_going(pod) && !pod_life(pod)->is_end_seen;
}

/* Smaller goes first, as a ReplicaSet chooses. */
static int64_t worth(const struct object *pod)
{
	const char *cost = "metadata>annotations>controller.kubernetes.io/pod-deletion-cost";
	int64_t rank = !*pod_node(pod)					 ? 0
		       : !pod_life(pod)->is_up				 ? 1
		       : !pod_life(pod)->is_ready && !is_end_unseen(pod) ? 2
									 : 3;

	return rank * (INT64_C(1) << 40) + value_int(pod->value, cost) * 1000;
}

static bool is_owned(const struct object *pod, const struct object *owner)
{
	const struct value *owners = value_at(pod->value, "metadata>ownerReferences");

	return owners && value_is(owners->first, "uid", owner->uid) && (!pod_is_going(pod) || is_end_unseen(pod)) &&
	       !is_finished(pod);
}

static void replicas_second(struct object *owner)
{
	int64_t want = value_int(owner->value, "spec>replicas"), have = 0, ready = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		have += is_owned(p, owner);
		ready += is_owned(p, owner) && pod_life(p)->is_ready;
	}
	for (size_t i = 0; i < world.app_count; i++)
		have += !strcmp(world.apps[i].name, owner->name) ? world.apps[i].gone_unseen : 0;
	if (value_int(owner->value, "status>replicas") != have ||
	    value_int(owner->value, "status>readyReplicas") != ready) {
		value_set_int(owner->value, "status>replicas", have);
		value_set_int(owner->value, "status>readyReplicas", ready);
		apiserver_changed(owner);
	}
	for (; have < want; have++)
		create_pod(owner);
	for (; have > want; have--) {
		struct object *least = NULL;
		for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
			if (is_owned(p, owner) && (!least || worth(p) <= worth(least)))
				least = p;
		if (!least)
			return; /* of those that went unseen */
		world.ended_serving += pod_life(least)->is_ready;
		end_pod(least);
	}
}

static bool is_tolerated(const struct object *pod, const struct value *taint)
{
	const struct value *list = value_at(pod->value, "spec>tolerations");

	for (const struct value *t = list ? list->first : NULL; t; t = t->next)
		if (value_is(t, "key", value_text(taint, "key")) || !value_at(t, "key"))
			return true;
	return !strcmp(value_text(taint, "effect"), "PreferNoSchedule");
}

static int64_t free_gpus(const struct object *node)
{
	int64_t left = value_int(node->value, "status>allocatable>nvidia.com/gpu");

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), node->name) && !is_finished(p))
			left -= gpus_of(p);
	return left;
}

/* Of required node affinities those of one term, with In alone. */
static bool fits_affinity(const struct object *pod, const struct object *node)
{
	const struct value *terms = value_at(pod->value, "spec>affinity>nodeAffinity>"
							 "requiredDuringSchedulingIgnoredDuringExecution>"
							 "nodeSelectorTerms");
	const struct value *list = terms ? value_at(terms->first, "matchExpressions") : NULL;
	const struct value *fields = terms ? value_at(terms->first, "matchFields") : NULL;

	if (fields && strcmp(value_text(value_at(fields->first, "values")->first, ""), node->name) != 0)
		return false; /* metadata.name, the only field that there is */

	for (const struct value *e = list ? list->first : NULL; e; e = e->next) {
		char path[160];
		bool is_listed = false;
		snprintf(path, sizeof path, "metadata>labels>%s", value_text(e, "key"));
		for (const struct value *v = value_at(e, "values")->first; v; v = v->next)
			is_listed |= !strcmp(value_text(v, ""), value_text(node->value, path));
		if (!is_listed)
			return false;
	}
	return true;
}

/* Volumes: a claim that is not there keeps a pod from every node. */
static bool has_claims(const struct object *pod)
{
	const struct value *list = value_at(pod->value, "spec>volumes");

	for (const struct value *v = list ? list->first : NULL; v; v = v->next) {
		const char *name = value_text(v, "persistentVolumeClaim>claimName");
		if (*name && !apiserver_find(KIND_VOLUME_CLAIM, pod->space, name))
			return false;
	}
	return true;
}

static bool has_processors(const struct object *pod, const struct object *node)
{
	int64_t left = value_int(node->value, "status>allocatable>cpu");

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), node->name) && !is_finished(p))
			left -= value_int(container_of(p), "resources>requests>cpu");
	return value_int(container_of(pod), "resources>requests>cpu") <= left;
}

static bool has_one_of(const struct object *node, const char *app)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), node->name) && value_is(p->value, "metadata>labels>app", app))
			return true;
	return false;
}

static bool fits(const struct object *pod, const struct object *node)
{
	const struct value *taints = value_at(node->value, "spec>taints");
	const struct value *selector = value_at(pod->value, "spec>nodeSelector");

	/* Both are taints, to who tolerates them all. */
	if (!is_prefetch(pod) && (!is_node_ready(node) || value_is(node->value, "spec>unschedulable", "true")))
		return false;
	for (const struct value *t = taints ? taints->first : NULL; t; t = t->next)
		if (!is_tolerated(pod, t))
			return false;
	if (selector && selector->first && !apiserver_selects(selector, node->value))
		return false;
	if (pod_app(pod) && pod_app(pod)->is_shared && !pod_app(pod)->has_claims &&
	    has_one_of(node, pod_app(pod)->name))
		return false;
	return free_gpus(node) >= gpus_of(pod) && has_processors(pod, node) && fits_affinity(pod, node) &&
	       has_claims(pod);
}

/* When the image of the pod's first container is on its node: one that is there, or on its way, is pulled once. */
static millis image_there(const struct object *pod)
{
	const char *name = value_text(container_of(pod), "image");
	struct node_life *n = world_node_of(pod_node(pod))->extra;
	struct random r = random_stream(world.seed, pod_node(pod));
	millis pull = (millis)random_lognormal(&r, 60 * SECOND, 90 * SECOND);
	size_t i = 0;

	while (i < n->image_count && strcmp(n->images[i].name, name) != 0)
		i++;
	if (i == sizeof n->images / sizeof *n->images)
		abort();
	if (i == n->image_count) {
		n->image_count++;
		snprintf(n->images[i].name, sizeof n->images[i].name, "%s", name);
		n->images[i].there = wire_now() + pull;
	}
	return n->images[i].there > wire_now() + 2 * SECOND ? n->images[i].there : wire_now() + 2 * SECOND;
}

static void bind(struct object *pod, const struct object *node)
{
	struct pod_life *life = pod_life(pod);
	struct random r = random_stream(world.seed, pod->name);

	value_set_text(pod->value, "spec>nodeName", node->name);
	condition_set(value_at(pod->value, "status"), "PodScheduled", true, "");
	life->bound = wire_now();
	if (is_prefetch(pod)) {
		apiserver_changed(pod);
		return;
	}
	life->image = wire_now() + (millis)random_lognormal(&r, 60 * SECOND, 90 * SECOND);
	if (world.keeps_images)
		life->image = image_there(pod);
	life->loaded = life->image + (millis)random_lognormal(&r, 60 * SECOND, 90 * SECOND);
	if (!life->is_engine)
		life->image = life->loaded = wire_now() + 2 * SECOND;
	apiserver_changed(pod);
}

/* Pushes out pods of lower priority on a node that fits then. */
static void preempt(const struct object *pod)
{
	int64_t priority = value_int(pod->value, "spec>priority");

	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (*pod_node(p) && value_is(p->value, "spec>priorityClassName", "preheat-placeholder") &&
		    priority >= 0 && !pod_is_going(p) && gpus_of(p) >= gpus_of(pod)) {
			end_pod(p);
			return;
		}
}

static void schedule(struct object *pod)
{
	struct object *best = NULL;
	const struct value *status = value_at(pod->value, "status>conditions");

	if (world.has_no_scheduler)
		return;
	for (struct object *n = apiserver_first(KIND_NODE); n; n = n->next)
		if (fits(pod, n) && (!best || free_gpus(n) < free_gpus(best)))
			best = n;
	if (best) {
		bind(pod, best);
	} else if (!status) {
		condition_set(value_at(pod->value, "status"), "PodScheduled", false, "Unschedulable");
		apiserver_changed(pod);
		if (pod_life(pod)->is_engine)
			preempt(pod);
	}
}

void world_scheduler_looks(void)
{
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!*pod_node(p))
			schedule(p);
}

/* The kubelet makes no pod of its own network before the node is ready; then it pulls, and what has an image ends. */
static void run_prefetch(struct object *pod)
{
	struct pod_life *life = pod_life(pod);
	struct object *node = world_node_of(pod_node(pod));
	struct value *status = value_at(pod->value, "status");
	const char *app = value_text(pod->value, "metadata>labels>preheat.dev/prefetch");
	bool has_image = true, is_told = value_at(status, "containerStatuses");

	for (size_t i = 0; i < world.app_count; i++)
		has_image &= strcmp(world.apps[i].name, app) != 0 || !world.apps[i].no_image;
	if (!node || !is_node_ready(node) || is_finished(pod))
		return;
	if (!has_image && !is_told) {
		value_set(status, "containerStatuses",
			  value_of("[{'name':'image-0','ready':false,'state':{'waiting':{'reason':'ImagePullBackOff',"
				   "'message':'not found'}}}]"));
		apiserver_changed(pod);
	}
	if (has_image && !life->image)
		life->image = image_there(pod);
	if (has_image && wire_now() >= life->image) {
		value_set_text(status, "phase", "Succeeded");
		apiserver_changed(pod);
	}
}

static void run_pod(struct object *pod)
{
	struct pod_life *life = pod_life(pod);
	const struct world_app *a = pod_app(pod);
	struct value *status = value_at(pod->value, "status");
	char at[32];

	if (!life->is_up && wire_now() >= life->image && !(a && a->no_image)) {
		life->is_up = true;
		apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
		value_set_text(status, "phase", "Running");
		value_set(status, "podIP", value_of("'10.0.%d.%d'", life->ip / 250, life->ip % 250 + 1));
		value_set(status, "containerStatuses",
			  value_of("[{'name':'server','ready':false,'state':{'running':{'startedAt':'%s'}}}]", at));
		condition_set(status, "Ready", false, "ContainersNotReady");
		apiserver_changed(pod);
	}
	if (life->is_ready && a && a->is_unready && !pod_is_going(pod)) {
		life->is_ready = false;
		condition_set(status, "Ready", false, "ContainersNotReady");
		apiserver_changed(pod);
	}
	if (life->is_up && !life->is_ready && !(a && a->is_unready) && wire_now() >= life->loaded &&
	    !pod_is_going(pod)) {
		life->is_ready = true;
		life->ready_since = wire_now();
		condition_set(status, "Ready", true, "");
		apiserver_changed(pod);
	}
}

/* A pod that was told to go finishes what runs there. */
static bool has_ended(struct object *pod)
{
	struct pod_life *life = pod_life(pod);

	if (!pod_is_going(pod))
		return false;
	if (!life->ends)
		life->ends = wire_now() + 600 * SECOND;
	if (life->is_ready) {
		life->is_ready = false;
		condition_set(value_at(pod->value, "status"), "Ready", false, "ContainersNotReady");
		apiserver_changed(pod);
	}
	if (pod_app(pod) && pod_app(pod)->holds_pods)
		return false;
	return (!life->engine.running && !life->beside.running &&
		wire_now() - (life->ends - 600 * SECOND) >= 3 * SECOND) ||
	       wire_now() >= life->ends;
}

static void see_ends(void)
{
	if (apiserver_faults()->holds_events)
		return;
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		pod_life(p)->is_end_seen = pod_is_going(p);
	for (size_t i = 0; i < world.app_count; i++)
		world.apps[i].gone_unseen = 0;
}

static void forget_pod(struct object *p)
{
	struct world_app *a = pod_app(p);

	if (a)
		a->gone_unseen += is_end_unseen(p);
	apiserver_delete(p);
}

/* All run together for as long as they do; what was evicted is made again. */
static void job_second(const struct timed_job *t)
{
	const struct world_job *j = &t->job;
	struct object *job = apiserver_find(KIND_JOB, NAMESPACE, j->name);
	int64_t have = 0, bound = 0;
	millis last = 0;

	for (const struct object *p = job ? apiserver_first(KIND_POD) : NULL; p; p = p->next)
		if (is_of_job(p, j->name) && !pod_is_going(p)) {
			have++;
			bound += *pod_node(p) != '\0';
			last = pod_life(p)->bound > last ? pod_life(p)->bound : last;
		}
	for (; job && have < j->pods; have++)
		create_job_pod(j, job->uid);
	if (!job || bound < j->pods || wire_now() < last + t->runs)
		return;
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (is_of_job(p, j->name))
			apiserver_delete(p);
	}
	apiserver_delete(job);
}

/* What a WarmPool owned goes with it, as the garbage collector has it. */
static void collect_pods(void)
{
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		const struct value *owners = value_at(p->value, "metadata>ownerReferences");
		const struct object *pool = apiserver_first(KIND_WARM_POOL);
		next = p->next;
		while (owners && pool && !value_is(owners->first, "uid", pool->uid))
			pool = pool->next;
		if (owners && value_is(owners->first, "kind", "WarmPool") && !pool && !pod_is_going(p))
			end_pod(p);
	}
}

static void pods_second(void)
{
	see_ends();
	collect_pods();
	for (size_t i = 0; i < world.job_count; i++)
		job_second(&world.jobs[i]);
	for (struct object *d = apiserver_first(KIND_DEPLOYMENT); d; d = d->next)
		replicas_second(d);
	for (struct object *p = apiserver_first(KIND_POD), *next; p; p = next) {
		next = p->next;
		if (has_ended(p))
			forget_pod(p);
		else if (!*pod_node(p))
			schedule(p);
		else if (is_prefetch(p))
			run_prefetch(p);
		else
			run_pod(p);
	}
	for (struct object *b = apiserver_first(KIND_BUDGET); b; b = b->next)
		if (value_int(b->value, "status>disruptionsAllowed") != apiserver_allowed(b)) {
			value_set_int(b->value, "status>disruptionsAllowed", apiserver_allowed(b));
			apiserver_changed(b);
		}
}

/* --- time --- */

static void second(struct timer *t)
{
	cloud_advance();
	nodes_second();
	pods_second();
	for (size_t i = 0; i < world.app_count; i++)
		engines_second(&world.apps[i]);
	services_second();
	laws_look();
	timer_start(NULL, t, SECOND, second);
}

void world_run(millis duration)
{
	millis until = wire_now() + duration;

	while (replicas_step(until))
		;
}

void world_events(int64_t count)
{
	while (count-- > 0)
		replicas_step(wire_now() + SECOND);
}

bool world_until(bool (*is_so)(void), millis most)
{
	millis until = wire_now() + most;

	while (wire_now() < until && !*laws_broken()) {
		if (is_so())
			return true;
		world_run(SECOND);
	}
	return is_so();
}

bool world_is_at_rest(void)
{
	for (size_t i = 0; cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		for (const struct cloud_machine *m = g->machines; m; m = m->next)
			if (m->step != STEP_RUNNING && m->step != STEP_STOPPED)
				return false;
		if (g->refusal_count)
			return false;
	}
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!pod_life(p)->is_ready || pod_is_going(p))
			return false;
	for (const struct object *n = apiserver_first(KIND_NODE); n; n = n->next) {
		const struct node_life *life = n->extra;
		if (life->cordoned_since && life->machine->step == STEP_RUNNING)
			return false;
	}
	return true;
}

void world_begin(uint64_t seed)
{
	memset(&world, 0, sizeof world);
	world.seed = seed;
	log_set_up(&(struct log_setup){ .least = LEVEL_DEBUG, .clock = wire_clock(), .write = laws_log });
	wire_begin(seed);
	apiserver_begin();
	cloud_begin(seed);
	cloud_told_gone(machine_gone);
	engines_begin();
	replicas_begin(seed);
	laws_begin();
	timer_start(NULL, &world.second, SECOND, second);
}

void world_end(void)
{
	replicas_end();
	services_end();
	timer_stop(&world.second);
	apiserver_end();
	cloud_end();
	wire_end();
}
