/*
 * What acts in the controller: the lease, the gate, the verbs, and a node group with its history, its operations and
 * its provider. Only who decides is missing: here it is a list.
 */
#include "base/log.h"
#include "controller/cluster/lease.h"
#include "controller/cluster/verbs.h"
#include "controller/loop/group_operations.h"
#include "state/launch.h"
#include "tests/nemesis/stops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const millis GO_ON = 5 * SECOND;

static struct {
	struct loop *loop;
	struct http *http;
	struct api *api;
	struct lease *lease;
	struct provider *cloud;
	const struct provider_ops *ops;
	struct clock wall;
	struct kubeconfig access;
	char server[64], settings[300];
	bool is_leading, is_open, is_closed; /* open: the group and its history */
	bool is_active[STEPS];
	struct timer again;
	struct node_group group;
	struct group_context context;
	struct history *history;
	struct starts starts;
	struct throttle throttle;
	provider_counts calls;
	struct node_change cordon, uncordon;
	struct eviction evict;
	struct scale_call scale;
} us;

static struct group_spec spec = { .name = "g",
				  .zone = "",
				  .instance_type = "",
				  .capacity_type = CAPACITY_ON_DEMAND,
				  .gpus_per_node = 1,
				  .max_nodes = 10 };
static const size_t indices[] = { 0 };
static const struct pool_spec pool = {
	.name = "chat", .namespace = "d", .gpus_per_replica = 1, .groups = indices, .group_count = 1, .budget_name = ""
};
static const struct group_user user = { 0, 0 };
static const struct group_users users = { &user, 1 };
static const struct fleet_spec fleet = { &spec, 1, &pool, 1, &users };

static void go_on(struct timer *t);

static void go_on_after(millis wait)
{
	timer_start(us.loop, &us.again, wait, go_on);
}

/* --- the cluster --- */

static void over(enum stops_step step, const struct error *e)
{
	if (!us.is_active[step])
		stops_fail("a call was completed twice");
	us.is_active[step] = false;
	all->done[step] |= e->kind == ERROR_NONE;
	go_on_after(e->kind == ERROR_NONE ? 0 : 50);
}

static void node_over(struct node_change *c)
{
	over(c == &us.cordon ? TO_CORDON : TO_UNCORDON, &c->error);
}

static void evict_over(struct eviction *v)
{
	over(TO_EVICT, &v->error);
}

static void scale_over(struct scale_call *c)
{
	over(TO_SCALE, &c->error);
}

static void mark_node(struct node_change *c, const struct verb_pair *mark)
{
	*c = (struct node_change){ .node = "n1", .annotations = mark, .annotation_count = 1, .done = node_over };
	node_change_start(us.api, c);
}

static void ask_cluster(enum stops_step step)
{
	static const struct verb_pair on = { "mark", "on" }, off = { "mark", "off" };

	us.is_active[step] = true;
	if (step == TO_CORDON || step == TO_UNCORDON) {
		mark_node(step == TO_CORDON ? &us.cordon : &us.uncordon, step == TO_CORDON ? &on : &off);
	} else if (step == TO_EVICT) {
		us.evict = (struct eviction){
			.name_space = "d", .pod = "p", .uid = "u", .grace_seconds = -1, .done = evict_over
		};
		eviction_start(us.api, &us.evict);
	} else {
		us.scale = (struct scale_call){ .api_version = "apps/v1",
						.kind = "Deployment",
						.name_space = "d",
						.name = "w",
						.is_write = true,
						.replicas = 3,
						.done = scale_over };
		scale_start(us.api, &us.scale);
	}
}

/* --- the node group --- */

static struct node_stages stages(void *nobody, const char *machine)
{
	const struct machine *m = us.is_open ? node_group_machine(&us.group, machine) : NULL;

	(void)nobody;
	return m && m->state == MACHINE_RUNNING ? (struct node_stages){ 1, 2, 3 } : (struct node_stages){ 0 };
}

static bool may_act(void *nobody)
{
	(void)nobody;
	return us.is_leading;
}

static bool runs_work(void *nobody, size_t index)
{
	(void)nobody;
	(void)index;
	return false;
}

static void refused(void *nobody, const struct start *s, enum error_kind why)
{
	(void)nobody;
	(void)s;
	(void)why;
}

static void changed(void *nobody)
{
	(void)nobody;
	if (us.is_leading)
		go_on_after(0);
}

static void seen(void *nobody, const struct node_group *g)
{
	(void)g;
	changed(nobody);
}

/* As a leader does with what was under way when the one before it stopped. */
static void adopt(void)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch *open;
	size_t count;
	struct error e = { 0 };

	if (!launch_open_ones(us.history, &a, &open, &count, &e))
		stops_fail(e.message);
	for (size_t i = 0; i < count; i++)
		if (open[i].operation[0] && i + 1 == count)
			node_group_resume(&us.group, open[i].token, open[i].operation, open[i].asked_at);
		else if (!launch_end(us.history, open[i].token, "adopted", clock_now(&us.wall), &e))
			stops_fail(e.message);
}

static void open_group(void)
{
	struct error e = { 0 };
	const struct group_access access = { us.ops, us.cloud, us.calls, &us.throttle, false, us.settings };

	us.history = history_resume(&(struct history_setup){ .path = all->history,
							     .manifest = "chat",
							     .fleet = &fleet,
							     .program = "stops",
							     .policy = "preheat",
							     .run = "stops",
							     .ticks_per_commit = 1,
							     .checkpoint_every = HOUR },
				    &e);
	if (!us.history)
		stops_fail(e.message);
	us.throttle = throttle_make(random_stream((uint64_t)all->won, "throttle"));
	us.context = (struct group_context){ .loop = us.loop,
					     .clock = &us.wall,
					     .history = us.history,
					     .fleet = &fleet,
					     .starts = &us.starts,
					     .term = all->won,
					     .node_stages = stages,
					     .runs_work = runs_work,
					     .may_act = may_act,
					     .seen = seen,
					     .changed = changed,
					     .refused = refused };
	snprintf(us.context.life, sizeof us.context.life, "%016d", all->won);
	node_group_open(&us.group, &us.context, 0, &access);
	us.is_open = true;
	adopt();
	node_group_look(&us.group);
}

static void close_group(void)
{
	struct error e = { 0 };

	node_group_close(&us.group);
	starts_release(&us.starts);
	if (!history_finish(us.history, &e))
		stops_fail(e.message);
	us.is_open = false;
}

static void grow(void)
{
	const struct start like = { .pool = 0, .kind = START_COLD, .asked_at = clock_now(&us.wall) };
	int64_t missing = MOST - node_group_size(&us.group);

	all->done[TO_GROW] |= missing <= 0 && node_group_is_settled(&us.group);
	if (missing > 0)
		starts_ask(&us.starts, &like, node_group_grow(&us.group, missing));
}

static void shrink(void)
{
	if (node_group_size(&us.group) == MOST)
		node_group_remove(&us.group, us.group.seen.machines[0].id, PROVIDER_REMOVE);
	all->done[TO_REMOVE] |= node_group_size(&us.group) == LEFT && node_group_is_settled(&us.group);
}

/* --- who decides --- */

static bool is_active(void)
{
	for (int i = 0; i < STEPS; i++)
		if (us.is_active[i])
			return true;
	return us.is_open && !node_group_is_idle(&us.group);
}

static void closed(void *nobody)
{
	(void)nobody;
	us.is_closed = true;
}

static bool begin(enum stops_step step)
{
	if (step == TO_GROW && us.group.is_known)
		grow();
	else if (step == TO_REMOVE && us.group.is_known)
		shrink();
	else if (step != TO_GROW && step != TO_REMOVE && !us.is_active[step])
		ask_cluster(step);
	return !all->done[step];
}

/* Three at a time, one wave after the other. */
static void lead(void)
{
	int missing = 0;

	for (enum stops_step i = 0; i < STEPS && !(i == 3 && missing); i++)
		missing += !all->done[i] && begin(i);
	node_group_drive(&us.group);
	if (missing || is_active())
		go_on_after(GO_ON);
	else
		lease_close(us.lease, closed, NULL);
}

/* A life of the group ends before the next one begins. */
static void go_on(struct timer *t)
{
	(void)t;
	if (us.is_leading && us.is_open && !us.group.is_stopped) {
		lead();
		return;
	}
	if (us.is_open && !is_active())
		close_group();
	if (us.is_leading && !us.is_open)
		open_group();
	if (us.is_open)
		go_on_after(50);
}

static void on_won(void *nobody)
{
	(void)nobody;
	all->won++;
	us.is_leading = true;
	api_set_gate(us.api, API_GATE_OPEN, NULL);
	go_on_after(0);
}

static void on_lost(void *nobody, const char *why)
{
	(void)nobody;
	all->lost++;
	us.is_leading = false;
	api_set_gate(us.api, API_GATE_LEASE_ONLY, why);
	if (us.is_open)
		node_group_stop(&us.group);
	go_on_after(0);
}

static void write_settings(char *out, size_t size)
{
	if (all->wire == CLOUD_EKS)
		snprintf(out, size,
			 "{\"cluster\":\"world\",\"nodegroup\":\"g\",\"region\":\"eu-west-1\",\"endpoint\":"
			 "\"http://127.0.0.1:%d\",\"launch\":\"%s\",\"warmPool\":\"existing\"}",
			 all->port, all->launches ? "instances" : "capacity");
	else if (all->wire == CLOUD_AKS)
		snprintf(out, size,
			 "{\"subscription\":\"00000000-0000-0000-0000-000000000000\",\"resourceGroup\":\"rg\","
			 "\"cluster\":\"world\",\"pool\":\"g\"}");
	else
		snprintf(out, size, "{\"endpoint\":\"http://127.0.0.1:%d\",\"group\":\"g\"}", all->port);
}

static void open_replica(const struct stop *s, const char *ca)
{
	static const char *const providers[] = {
		[CLOUD_SIMULATED] = "simulated", [CLOUD_EKS] = "eks", [CLOUD_AKS] = "aks"
	};
	struct error e = { 0 };

	us.loop = loop_open();
	us.http = http_open(us.loop, "stops", &e);
	us.wall = clock_open();
	snprintf(us.server, sizeof us.server, "http%s://127.0.0.1:%d", ca ? "s" : "", ca ? all->tls_port : all->port);
	write_settings(us.settings, sizeof us.settings);
	us.access.server = us.server;
	us.access.tls.ca = ca;
	us.access.name_space = "d";
	us.api = api_open(&(struct api_setup){
		.loop = us.loop, .http = us.http, .clock = &us.wall, .access = &us.access, .seed = 1 });
	api_set_gate(us.api, API_GATE_LEASE_ONLY, "not yet");
	spec.provider = providers[all->wire];
	spec.settings = us.settings;
	us.ops = provider_find(spec.provider);
	us.cloud = us.ops->open(&(struct provider_setup){ .loop = us.loop, .http = us.http }, &e);
	us.lease = lease_open(&(struct lease_setup){ .api = us.api,
						     .name_space = "d",
						     .name = "preheat",
						     .identity = "us",
						     .renew_deadline = s->renew_deadline,
						     .retry = s->renew_deadline / 5,
						     .duration = s->renew_deadline + SECOND,
						     .on_won = on_won,
						     .on_lost = on_lost },
			      &e);
	if (!us.lease || !us.cloud)
		stops_fail(e.message);
}

void stops_replica(const struct stop *s, const char *ca)
{
	alarm(120);
	log_level_set(LEVEL_ERROR);
	stop_begin(s, &all->seen);
	open_replica(s, ca);
	while (!us.is_closed || us.is_open)
		loop_once(us.loop);
	timer_stop(&us.again);
	us.ops->close(us.cloud);
	api_close(us.api);
	http_close(us.http);
	loop_close(us.loop);
	_exit(0); /* not what was arranged for the end of the runs */
}
