/*
 * A controller that leads, without a socket: the API server is a list of
 * what it was asked, the cloud tells what the test says, nodes and pods are
 * fed to the model. Time is played_api's.
 */
#pragma once
#include "controller/loop/group_operations.h"
#include "controller/loop/controller_state.h"
#include "tests/unit/cluster/model_objects.h"
#include "tests/unit/cluster/played_api.h"
#include "tests/unit/manifest/loaded.h"

#include <stdlib.h>
#include <unistd.h>

enum { CALLS_MOST = 200, WAITING_MOST = 32, MACHINES_MOST = 16 };

static struct {
	struct api_call *waiting[WAITING_MOST];
	size_t waiting_count;
	char *log[CALLS_MOST]; /* "PATCH /api/v1/nodes/n1 {...}" */
	size_t log_count;
	const char *workload;	     /* what GET of a Deployment answers */
	int64_t replicas;	     /* of its scale */
	const char *scale_fails;     /* such calls of its scale do; NULL: none */
	bool is_scaled_all_the_same; /* by a PUT that fails */
	bool budget_holds;
	bool pods_changed;	 /* since any watch showed them */
	const char *unseen_on;	 /* node with a pod that no watch shows; NULL: there is none */
	const char *unseen_node; /* provider id of a node that no watch shows; NULL: there is none */
	bool hides_nodes;	 /* they cannot be listed */
	const char *buffers;	 /* the version of CapacityBuffers that it knows; NULL: none */
	struct played_node {
		char name[16];
		bool is_marked, is_lent;
	} nodes[8];
} server;

/* As the server has it; made when it is not there. */
static inline struct played_node *served_node(const char *name)
{
	size_t i = 0;

	while (i < 7 && server.nodes[i].name[0] && strcmp(server.nodes[i].name, name) != 0)
		i++;
	snprintf(server.nodes[i].name, sizeof server.nodes[i].name, "%s", name);
	return &server.nodes[i];
}

static inline void write_served_node(struct api_call *c, char *text, size_t room)
{
	struct played_node *n = served_node(strrchr(c->path, '/') + 1);

	if (c->body && strstr(c->body, "\"unschedulable\":"))
		n->is_marked = strstr(c->body, "\"unschedulable\":true");
	if (c->body && strstr(c->body, "lent-by"))
		n->is_lent = !strstr(c->body, "lent-by\":null");
	snprintf(text, room, "{\"metadata\":{\"resourceVersion\":\"1\"%s},\"spec\":{%s}}",
		 n->is_lent ? ",\"labels\":{\"preheat.dev/lent-by\":\"chat\"}" : "",
		 n->is_marked ? "\"unschedulable\":true,\"taints\":[{\"key\":\"preheat.dev/draining\",\"value\":"
				"\"remove\",\"effect\":\"NoSchedule\"}]"
			      : "");
}

static struct provider_call *looks[8];
static size_t look_count;
static struct provider_call *changes[8]; /* that wait for an answer */
static size_t change_count;
static struct machine machines[8][MACHINES_MOST];
static size_t machine_count[8];
static char machine_texts[8][MACHINES_MOST][2][64];

static void serve(struct api_call *c)
{
	char *line = NULL;
	assert_true(server.log_count < CALLS_MOST && server.waiting_count < WAITING_MOST);
	assert_true(asprintf(&line, "%s %s %s", c->method, c->path, c->body ? c->body : "") > 0);
	server.log[server.log_count++] = line;
	server.waiting[server.waiting_count++] = c;
}

static void forget_call(struct api_call *c)
{
	for (size_t i = 0; i < server.waiting_count; i++)
		if (server.waiting[i] == c)
			server.waiting[i] = server.waiting[--server.waiting_count];
}

static inline void answer_call(struct api_call *c)
{
	char text[256] = "{}";

	if (strstr(c->path, "/eviction") && server.budget_holds) {
		play_answer(c, 429, play_status(429, "TooManyRequests", "DisruptionBudget"));
		return;
	}
	if (strstr(c->path, "/eviction") && server.pods_changed && strstr(c->body, "resourceVersion")) {
		play_answer(c, 409, play_status(409, "Conflict", NULL));
		return;
	}
	if (!strncmp(c->path, "/apis/autoscaling.x-k8s.io/", 27) && !strcmp(c->method, "GET")) {
		bool is_known = server.buffers && !strcmp(c->path + 27, server.buffers);
		play_answer(c, is_known ? 200 : 404,
			    is_known ? "{\"resources\":[{\"name\":\"capacitybuffers\",\"kind\":\"CapacityBuffer\","
				       "\"namespaced\":true}]}"
				     : play_status(404, "NotFound", NULL));
		return;
	}
	if (!strncmp(c->path, "/api/v1/pods?", 13))
		snprintf(text, sizeof text, "{\"items\":[%s%s%s]}",
			 server.unseen_on ? "{\"metadata\":{\"name\":\"late\"},\"spec\":{\"nodeName\":\"" : "",
			 server.unseen_on ? server.unseen_on : "", server.unseen_on ? "\"}}" : "");
	if (!strncmp(c->path, "/api/v1/nodes?", 14) && server.hides_nodes) {
		play_answer(c, 500, play_status(500, "InternalError", NULL));
		return;
	}
	if (!strncmp(c->path, "/api/v1/nodes?", 14))
		snprintf(text, sizeof text, "{\"items\":[%s%s%s]}",
			 server.unseen_node ? "{\"metadata\":{\"name\":\"late\"},\"spec\":{\"providerID\":\"" : "",
			 server.unseen_node ? server.unseen_node : "", server.unseen_node ? "\"}}" : "");
	if (strstr(c->path, "/api/v1/nodes/"))
		write_served_node(c, text, sizeof text);
	bool fails = strstr(c->path, "/scale") && server.scale_fails && !strcmp(c->method, server.scale_fails);
	const char *replicas = strstr(c->path, "/scale") && c->body ? strstr(c->body, "\"replicas\":") : NULL;
	if (replicas && (!fails || server.is_scaled_all_the_same))
		server.replicas = atoll(replicas + strlen("\"replicas\":"));
	if (fails) {
		play_answer(c, 500, play_status(500, "InternalError", NULL));
		return;
	}
	if (strstr(c->path, "/scale"))
		snprintf(text, sizeof text,
			 "{\"metadata\":{\"name\":\"chat\",\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":%lld}}",
			 (long long)server.replicas);
	else if (strstr(c->path, "/deployments/") && !strcmp(c->method, "GET")) {
		play_answer(c, server.workload ? 200 : 404,
			    server.workload ? server.workload : play_status(404, "NotFound", NULL));
		return;
	}
	play_answer(c, strstr(c->path, "/eviction") ? 201 : 200, text);
}

/* Answers what waits, and what comes of it, until nothing does; half a second passes between. */
static inline void settle_calls(void)
{
	for (int i = 0; i < 8; i++) {
		play_until(play_now() + 10);
		while (server.waiting_count) {
			struct api_call *c = server.waiting[0];
			forget_call(c);
			answer_call(c);
		}
	}
}

/* The last call that contains both; NULL without. */
static inline const char *asked(const char *what, const char *with)
{
	for (size_t i = server.log_count; i-- > 0;)
		if (strstr(server.log[i], what) && strstr(server.log[i], with))
			return server.log[i];
	return NULL;
}

static inline void forget_log(void)
{
	for (size_t i = 0; i < server.log_count; i++)
		free(server.log[i]);
	server.log_count = 0;
}

static void provider_begin(struct provider *p, struct provider_call *c)
{
	(void)p;
	if (c->verb == PROVIDER_DESCRIBE)
		looks[look_count++] = c;
	else
		changes[change_count++] = c;
}

static void provider_ignore(struct provider *p, struct provider_call *c)
{
	(void)p;
	(void)c;
}

static const struct provider_ops played_ops = { .name = "simulated",
						.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY |
							     PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
							     PROVIDER_CANCELS,
						.start = provider_begin,
						.cancel = provider_ignore };

static bool works_here(void *user, size_t pool)
{
	return runs_work(user, pool);
}

bool __wrap_cluster_is_fresh(const struct controller *c);
static bool is_fresh = true;
bool __wrap_cluster_is_fresh(const struct controller *c)
{
	(void)c;
	return is_fresh;
}

bool __wrap_cluster_told_since(const struct controller *c, millis at);
static millis told_last = INT64_MAX; /* by the watches */
bool __wrap_cluster_told_since(const struct controller *c, millis at)
{
	(void)c;
	return told_last >= at;
}

static provider_counts played_counts;
static struct loaded played_manifest;

static inline void open_pools(struct controller *c)
{
	c->fleet.throttles[0] = throttle_make(random_stream(1, "throttle"));
	c->pools = calloc(fleet_of(c)->pool_count, sizeof *c->pools);
	c->groups = calloc(fleet_of(c)->group_count, sizeof *c->groups);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		c->pools[i] = calloc(1, sizeof *c->pools[i]);
		*c->pools[i] = (struct live_pool){ .index = i, .controller = c, .is_new = true };
		c->pools[i]->scale.wanted = c->pools[i]->scale.is = ABSENT;
		c->pools[i]->placeholder.wanted = c->pools[i]->placeholder.is = ABSENT;
		c->pools[i]->buffer.wanted = c->pools[i]->buffer.is = ABSENT;
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++) {
		c->groups[i] = calloc(1, sizeof *c->groups[i]);
		node_group_open(c->groups[i], &c->context, i,
				&(struct group_access){ &played_ops, NULL, played_counts, &c->fleet.throttles[0], false,
							"{}" });
	}
}

static inline struct controller *play_controller(const char *manifest)
{
	struct controller *c = calloc(1, sizeof *c);

	memset(&server, 0, sizeof server);
	memset(machine_count, 0, sizeof machine_count);
	look_count = change_count = 0;
	is_fresh = true;
	told_last = INT64_MAX;
	load(&played_manifest, manifest);
	if (!played_manifest.ok)
		fail_msg("%s", played_manifest.error.message);
	c->manifest = played_manifest.manifest;
	c->api = play_begin(serve);
	play_on_cancel(forget_call);
	c->clock = api_clock(c->api);
	c->skew.at = clock_now(c->clock);
	c->skew.mono = clock_mono(c->clock);
	api_kind_learn(c->api, &(struct api_kind){ .api_version = "apps/v1",
						   .kind = "Deployment",
						   .plural = "deployments",
						   .is_namespaced = true,
						   .has_scale = true });
	c->cluster = cluster_new();
	cluster_on_change(c->cluster, start_progress_event, c);
	c->settings.interval = 15 * SECOND;
	c->context = (struct group_context){ .clock = c->clock,
					     .fleet = &c->manifest.fleet,
					     .starts = &c->starts,
					     .node_stages = start_progress_stages,
					     .runs_work = works_here,
					     .changed = act_soon,
					     .refused = fallback_note,
					     .user = c };
	fleet_tell_cluster(c);
	open_pools(c);
	tick_open(c);
	c->leader.state = STATE_LEADING;
	return c;
}

/* A history of its own in a file, until end_history(). */
static inline void keep_history(struct controller *c, const char *manifest, const char *path)
{
	struct error e = { 0 };

	c->history = history_resume(&(struct history_setup){ .path = path,
							     .manifest = manifest,
							     .fleet = fleet_of(c),
							     .program = "test",
							     .policy = "preheat",
							     .run = "test",
							     .ticks_per_commit = 1,
							     .checkpoint_every = HOUR },
				    &e);
	assert_string_equal(e.message, "");
}

static inline void end_history(struct controller *c, const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char name[80];

	history_close(c->history);
	c->history = c->context.history = NULL;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
}

static inline void close_controller(struct controller *c)
{
	tick_stop(c);
	settle_calls();
	drains_actor.stop(c);
	assert_true(drains_actor.is_idle(c));
	assert_true(headroom_actor.is_idle(c) && workload_scale_actor.is_idle(c));
	forget_log();
	timer_stop(&c->tick.drive);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		buf_release(&c->pools[i]->placeholder.pod);
		buf_release(&c->pools[i]->placeholder.body);
		buf_release(&c->pools[i]->buffer.body);
		free(c->pools[i]);
	}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++) {
		node_group_stop(c->groups[i]);
		node_group_close(c->groups[i]);
		free(c->groups[i]);
	}
	starts_release(&c->starts);
	buf_release(&c->cancels.path);
	free(c->drains.back_offs);
	cluster_free(c->cluster);
	arena_release(&c->tick.arena);
	free(c->idle.items);
	free(c->pools);
	free(c->groups);
	free(c);
	loaded_release(&played_manifest);
	play_end();
}

/* The cloud has the machine from its next telling on. */
static inline struct machine *have_machine(size_t group, const char *id, enum machine_state state)
{
	size_t i = machine_count[group]++;
	struct machine *m = &machines[group][i];

	snprintf(machine_texts[group][i][0], 64, "%s", id);
	snprintf(machine_texts[group][i][1], 64, "simulated://%s", id);
	*m = (struct machine){
		.id = machine_texts[group][i][0], .provider_id = machine_texts[group][i][1], .zone = "", .state = state
	};
	return m;
}

static inline bool answer_look(struct controller *c, size_t group)
{
	struct provider_call *call = NULL;

	for (size_t i = 0; i < look_count; i++)
		if (looks[i] == &c->groups[group]->look) {
			call = looks[i];
			looks[i] = looks[--look_count];
		}
	if (!call)
		return false;
	call->error = (struct error){ 0 };
	call->description = (struct group_description){ .max = 100, .abilities = played_ops.abilities, .lacks = "" };
	call->description.machines = arena_array(&call->arena, struct machine, machine_count[group]);
	for (size_t i = 0; i < machine_count[group]; i++) {
		struct machine *m = &machines[group][i];
		call->description.machines[call->description.machine_count++] = *m;
		call->description.desired += machine_counts(m);
		call->description.standby += machine_stands_by(m);
	}
	call->done(call);
	return true;
}

/* Also what is asked once more, as nodes came meanwhile. */
static inline void cloud_tells(struct controller *c, size_t group)
{
	node_group_look(c->groups[group]);
	if (!answer_look(c, group))
		abort(); /* nobody looks at it */
	while (answer_look(c, group))
		;
}

/* A node of the machine of that name; `more` goes into its metadata, `spec` into its spec. */
static inline const struct node *have_node(struct controller *c, const char *name, const char *more, const char *spec)
{
	char text[1024];

	snprintf(text, sizeof text,
		 "{'metadata':{'name':'%s','uid':'%s'%s,'labels':{'simulated.preheat.dev/node-group':'g5'%s}},"
		 "'spec':{'providerID':'simulated://%s'%s},'status':{'allocatable':{'nvidia.com/gpu':'1','cpu':'16'},"
		 "'conditions':[{'type':'Ready','status':'True'}]}}",
		 name, name, strstr(more, "annotations") ? more : "", strstr(more, "annotations") ? "" : more, name,
		 spec);
	struct played_node *served = served_node(name);
	served->is_marked = *spec;
	served->is_lent = strstr(more, "lent-by");
	see(c->cluster, CLUSTER_NODES, text, (struct moment){ clock_now(c->clock), false });
	return cluster_node(c->cluster, name);
}

#define MARKED(fate) \
	",'unschedulable':true,'taints':[{'key':'preheat.dev/draining','value':'" fate "','effect':'NoSchedule'}]"

/* A pod of an app on a node ("" for none yet), ready or pending, with a GPU and a controller. */
static inline void have_pod(struct controller *c, const char *name, const char *labels, const char *on, bool is_ready)
{
	char text[1024];

	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'llm','name':'%s','uid':'00000000-0000-0000-0000-0000000000%02x',"
		 "'resourceVersion':'7','labels':{%s},"
		 "'ownerReferences':[{'kind':'ReplicaSet','name':'r','uid':'r','controller':true}]},'spec':{%s%s%s"
		 "'containers':[{'image':'i','resources':{'limits':{'nvidia.com/gpu':'1'}}}]},'status':{%s}}",
		 name, (unsigned)(unsigned char)name[0], labels, *on ? "'nodeName':'" : "", on, *on ? "'," : "",
		 is_ready ? "'phase':'Running','conditions':[{'type':'Ready','status':'True'}]" : "'phase':'Pending'");
	see(c->cluster, CLUSTER_PODS, text, (struct moment){ clock_now(c->clock), false });
}

static inline void pod_goes(struct controller *c, const char *name)
{
	char uid[40];

	snprintf(uid, sizeof uid, "00000000-0000-0000-0000-0000000000%02x", (unsigned)(unsigned char)name[0]);
	cluster_pod_gone(c->cluster, object_uid_of(uid), clock_now(c->clock));
}

/* What the pools of the model are now. */
static inline void look_at_pools(struct controller *c)
{
	arena_clear(&c->tick.arena);
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		c->pools[i]->view = cluster_pool_view(c->cluster, i, &c->tick.arena);
}

/* Acts as the policy would have it: one decision for the first pool's first group, `decided` for each pool. */
static inline void act_on_decision(struct controller *c, struct group_decision first, struct pool_decision decision)
{
	struct pool_plan pools[4] = { 0 };
	struct group_decision groups[4][4] = { { first } };

	look_at_pools(c);
	c->snapshot.now = clock_now(c->clock);
	c->plan = (struct plan){ .pools = pools, .pool_count = fleet_of(c)->pool_count };
	for (size_t i = 0; i < c->plan.pool_count; i++) {
		pools[i].decision = decision;
		pools[i].groups = groups[i];
		pools[i].group_count = fleet_of(c)->pools[i].group_count;
	}
	c->has_decided = true;
	tick_act(c);
	c->plan = (struct plan){ 0 };
}

static inline void act_on(struct controller *c, struct group_decision first, int64_t decided)
{
	act_on_decision(c, first, (struct pool_decision){ .decided = decided });
}
