/*
 * Stops of a leader at any of its calls: `stops_test [EVERY [FIRST]]`. One
 * process is an API server with a cloud, another a replica, made of what the
 * controller sends with: the lease, the gate, the verbs, a provider, the HTTP
 * client. It takes over a lease that ran out, grows, drains and shrinks; and
 * once for each stop it does so anew, with one stop of 90 s in it, in which
 * somebody else takes the lease. It loses, takes over again, and comes to the
 * end. No byte of a write may leave it while the lease is not its own.
 */
#include "base/net/process.h"
#include "base/net/server.h"
#include "controller/cluster/lease.h"
#include "controller/cluster/verbs.h"
#include "providers/provider.h"
#include "tests/nemesis/stop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 6, PAIR_ROOM = 10000 };
#define RENEW (10 * SECOND)

static struct shared {
	struct stop_seen seen;
	volatile int port, tls_port;
	/* of the server */
	volatile long run; /* another: all begins anew */
	volatile long version, writes;
	char holder[16];
	/* of the replica */
	volatile int won, lost, done[STEPS];
} * all;

static void fail(const char *what)
{
	fprintf(stderr, "stops_test: %s\n", what);
	_exit(1);
}

/* --- the API server and the cloud --- */

static long seen_run;
static bool is_taken; /* somebody else has the lease since the stop */

static void show_lease(struct server_answer *a)
{
	buf_printf(&a->body,
		   "{\"metadata\":{\"name\":\"preheat\",\"resourceVersion\":\"%ld\"},\"spec\":{\"holderIdentity\":"
		   "\"%s\",\"leaseDurationSeconds\":1,\"leaseTransitions\":%ld}}",
		   all->version, all->holder, all->version);
}

static void serve_lease(const struct server_request *q, struct server_answer *a)
{
	char version[48];

	snprintf(version, sizeof version, "\"resourceVersion\":\"%ld\"", all->version);
	if (strcmp(q->method, "GET") != 0 && !strstr(q->body, version)) {
		a->status = 409;
		return;
	}
	if (strcmp(q->method, "GET") != 0) {
		all->version++;
		snprintf(all->holder, sizeof all->holder, "%s", strstr(q->body, "\"us\"") ? "us" : "");
	}
	show_lease(a);
}

static void serve_any(const struct server_request *q, struct server_answer *a)
{
	a->content_type = "application/json";
	if (seen_run != all->run) {
		seen_run = all->run;
		is_taken = false;
		all->version = 1;
		snprintf(all->holder, sizeof all->holder, "other");
	}
	if (all->seen.has_stopped && !is_taken) {
		is_taken = true;
		all->version++;
		snprintf(all->holder, sizeof all->holder, "other");
	}
	if (strstr(q->path, "/leases")) {
		serve_lease(q, a);
		return;
	}
	all->writes += strcmp(q->method, "GET") != 0;
	if (!strcmp(q->path, "/apis/apps/v1"))
		buf_text(&a->body, "{\"resources\":[{\"name\":\"deployments\",\"kind\":\"Deployment\",\"namespaced\":"
				   "true},{\"name\":\"deployments/scale\",\"kind\":\"Scale\",\"namespaced\":true}]}");
	else if (strstr(q->path, "/scale"))
		buf_text(&a->body, "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":2},\"status\":{"
				   "\"replicas\":2}}");
	else
		buf_text(&a->body, "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{}}");
}

static int serve(struct loop *loop, const char *pair)
{
	static const struct server_route routes[] = { { NULL, "/*", serve_any, NULL } };
	struct error e = { 0 };
	struct server *s = server_open(loop,
				       &(struct server_settings){ .listen = "127.0.0.1:0",
								  .routes = routes,
								  .route_count = 1,
								  .tls_cert = pair,
								  .tls_key = pair },
				       &e);

	if (!s)
		fail(e.message);
	return server_port(s);
}

static void serve_until_killed(const char *pair)
{
	struct loop *loop = loop_open();

	all->tls_port = serve(loop, pair);
	all->port = serve(loop, NULL);
	loop_run(loop);
}

/* --- the replica --- */

static struct {
	struct loop *loop;
	struct http *http;
	struct api *api;
	struct lease *lease;
	struct provider *cloud;
	const struct provider_ops *ops;
	struct clock wall;
	struct kubeconfig access;
	char server[64], settings[128];
	bool is_leading, is_closed;
	bool is_active[STEPS];
	struct timer again;
	struct provider_call grow, remove;
	struct node_change cordon, uncordon;
	struct eviction evict;
	struct scale_call scale;
} us;

static void go_on(void);

static void again(struct timer *t)
{
	(void)t;
	go_on();
}

static void over(int step, const struct error *e)
{
	if (!us.is_active[step])
		fail("a call was completed twice");
	us.is_active[step] = false;
	all->done[step] |= e->kind == ERROR_NONE;
	timer_start(us.loop, &us.again, e->kind == ERROR_NONE ? 0 : 50, again);
}

static void provider_over(struct provider_call *c)
{
	struct error e = c->error;

	provider_call_release(c);
	over(c == &us.grow ? 0 : 5, &e);
}

static void node_over(struct node_change *c)
{
	over(c == &us.cordon ? 1 : 4, &c->error);
}

static void evict_over(struct eviction *v)
{
	over(2, &v->error);
}

static void scale_over(struct scale_call *c)
{
	over(3, &c->error);
}

static void ask_cloud(struct provider_call *c, enum provider_verb verb)
{
	static const char *const ids[] = { "m-1" };

	*c = (struct provider_call){ .verb = verb,
				     .group = "g",
				     .settings = us.settings,
				     .token = "preheat-1-g-1",
				     .desired = 3,
				     .ids = ids,
				     .id_count = verb == PROVIDER_REMOVE,
				     .done = provider_over };
	us.ops->start(us.cloud, c);
}

static void mark_node(struct node_change *c, const struct verb_pair *mark)
{
	*c = (struct node_change){ .node = "n1", .annotations = mark, .annotation_count = 1, .done = node_over };
	node_change_start(us.api, c);
}

static void begin(int step)
{
	static const struct verb_pair on = { "mark", "on" }, off = { "mark", "off" };

	us.is_active[step] = true;
	switch (step) {
	case 0:
		ask_cloud(&us.grow, PROVIDER_GROW);
		break;
	case 1:
		mark_node(&us.cordon, &on);
		break;
	case 2:
		us.evict = (struct eviction){
			.name_space = "d", .pod = "p", .uid = "u", .grace_seconds = -1, .done = evict_over
		};
		eviction_start(us.api, &us.evict);
		break;
	case 3:
		us.scale = (struct scale_call){ .api_version = "apps/v1",
						.kind = "Deployment",
						.name_space = "d",
						.name = "w",
						.is_write = true,
						.replicas = 3,
						.done = scale_over };
		scale_start(us.api, &us.scale);
		break;
	case 4:
		mark_node(&us.uncordon, &off);
		break;
	default:
		ask_cloud(&us.remove, PROVIDER_REMOVE);
	}
}

static bool is_active(void)
{
	for (int i = 0; i < STEPS; i++)
		if (us.is_active[i])
			return true;
	return false;
}

static void closed(void *user)
{
	(void)user;
	us.is_closed = true;
}

/* Three at a time, one wave after the other. */
static void go_on(void)
{
	int missing = 0;

	if (!us.is_leading)
		return;
	for (int i = 0; i < STEPS && missing < 3; i++) {
		if (i == 3 && missing)
			break;
		missing += !all->done[i];
		if (!all->done[i] && !us.is_active[i])
			begin(i);
	}
	if (!missing && !is_active())
		lease_close(us.lease, closed, NULL);
}

static void on_won(void *user)
{
	(void)user;
	all->won++;
	us.is_leading = true;
	api_set_gate(us.api, API_GATE_OPEN, NULL);
	timer_start(us.loop, &us.again, 0, again);
}

static void on_lost(void *user, const char *why)
{
	(void)user;
	all->lost++;
	us.is_leading = false;
	api_set_gate(us.api, API_GATE_LEASE_ONLY, why);
	if (us.is_active[0])
		us.ops->cancel(us.cloud, &us.grow);
	if (us.is_active[5])
		us.ops->cancel(us.cloud, &us.remove);
}

static void open_replica(const struct stop *s, const char *ca)
{
	struct error e = { 0 };

	us.loop = loop_open();
	us.http = http_open(us.loop, "stops", &e);
	us.wall = clock_open();
	snprintf(us.server, sizeof us.server, "http%s://127.0.0.1:%d", ca ? "s" : "", ca ? all->tls_port : all->port);
	snprintf(us.settings, sizeof us.settings, "{\"endpoint\":\"http://127.0.0.1:%d\",\"group\":\"g\"}", all->port);
	us.access.server = us.server;
	us.access.tls.ca = ca;
	us.access.name_space = "d";
	us.api = api_open(&(struct api_setup){
		.loop = us.loop, .http = us.http, .clock = &us.wall, .access = &us.access, .seed = 1 });
	api_set_gate(us.api, API_GATE_LEASE_ONLY, "not yet");
	us.ops = provider_find("simulated");
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
		fail(e.message);
}

static void run_replica(const struct stop *s, const char *ca)
{
	alarm(30);
	stop_begin(s, &all->seen);
	open_replica(s, ca);
	while (!us.is_closed || is_active())
		loop_once(us.loop);
	timer_stop(&us.again);
	us.ops->close(us.cloud);
	api_close(us.api);
	http_close(us.http);
	loop_close(us.loop);
	_exit(0); /* not what was arranged for the end of the runs */
}

/* --- the runs --- */

static pid_t server;

static void end_server(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static pid_t start(const struct stop *s, const char *ca)
{
	all->run++;
	all->won = all->lost = 0;
	all->writes = 0;
	for (int i = 0; i < STEPS; i++)
		all->done[i] = 0;
	all->seen = (struct stop_seen){ 0 };
	pid_t pid = fork();
	if (!pid)
		run_replica(s, ca);
	return pid;
}

static bool report(const struct stop *s, int code)
{
	static const char *const kinds[] = { "none", "process", "machine", "signal" };

	if (code == 0 && !all->seen.late)
		return true;
	all->seen.what[strcspn(all->seen.what, "\r\n")] = '\0';
	fprintf(stderr, "stop of kind %s at call %ld (%s): %s, %ld late sends; won %d, lost %d; first: %.60s\n",
		kinds[s->kind], s->at, all->seen.where, code ? "it did not end well" : "it ended", all->seen.late,
		all->won, all->lost, all->seen.what);
	return false;
}

static bool run(const struct stop *s, const char *ca)
{
	int code = 0;

	waitpid(start(s, ca), &code, 0);
	return report(s, code);
}

static int stops(const char *ca, long every, long first)
{
	struct stop s = { .kind = STOP_NOT, .renew_deadline = RENEW, .lasts = 90 * SECOND };
	int broken = !run(&s, ca);
	long calls = all->seen.calls, runs = 0, lost = 0;

	if (all->won != 1 || all->lost != 1 || all->writes != STEPS)
		fail("without a stop it did not do each thing once");
	for (long at = first; at < calls; at += every)
		for (s.kind = STOP_PROCESS; s.kind <= STOP_MACHINE; s.kind++) {
			s.at = at;
			broken += !run(&s, ca);
			lost += all->lost > 1;
			runs++;
		}
	printf("%s: %ld calls, %ld stops, the lease was lost in %ld, %d broke the law\n", ca ? "https" : "http", calls,
	       runs, lost, broken);
	return broken + !lost;
}

/* In truth: SIGSTOP before the first byte of a write, until the lease is over, and SIGCONT. */
static int stop_in_truth(const char *ca)
{
	const struct stop s = { .kind = STOP_SIGNAL, .at = -1, .renew_deadline = 300 };
	const struct timespec longer = { .tv_nsec = 350 * 1000000 };
	int code = 0;
	pid_t pid = start(&s, ca);

	waitpid(pid, &code, WUNTRACED);
	if (!WIFSTOPPED(code))
		fail("it was not stopped");
	nanosleep(&longer, NULL);
	kill(pid, SIGCONT);
	waitpid(pid, &code, 0);
	return !report(&s, code) + (all->lost < 2);
}

static void made(struct process *p)
{
	snprintf(p->user, PAIR_ROOM, "%s", p->output);
}

/* A key and its certificate, in one text. */
static void make_pair(char *out)
{
	static const char *const argv[] = { "openssl",
					    "req",
					    "-x509",
					    "-newkey",
					    "ec",
					    "-pkeyopt",
					    "ec_paramgen_curve:prime256v1",
					    "-nodes",
					    "-keyout",
					    "-",
					    "-out",
					    "-",
					    "-subj",
					    "/CN=us",
					    "-days",
					    "2",
					    "-addext",
					    "subjectAltName=IP:127.0.0.1",
					    NULL };
	struct loop *loop = loop_open();
	struct process p = { .argv = argv, .timeout = MINUTE, .max_output = PAIR_ROOM - 1, .done = made, .user = out };

	process_start(loop, &p);
	while (p.run)
		loop_once(loop);
	loop_close(loop);
}

int main(int argc, char **argv)
{
	long every = argc > 1 ? strtol(argv[1], NULL, 10) : 1, first = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	static char pair[PAIR_ROOM];
	int broken = 0;

	all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED || every < 1)
		fail("it cannot begin");
	make_pair(pair);
	server = fork();
	if (!server)
		serve_until_killed(pair);
	while (!all->port)
		usleep(1000);
	atexit(end_server);
	broken += stops(NULL, every, first) + stops(pair, every, first);
	broken += stop_in_truth(NULL) + stop_in_truth(pair);
	return broken > 0;
}
