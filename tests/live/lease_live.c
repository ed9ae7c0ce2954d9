/*
 * A replica that leads when it may, and writes while it does: `lease_live NAME`. It tells on its output what became of
 * it, a line each. tests/live/lease.sh kills, stops and wakes several of them. SIGTERM: gives the lease back and ends.
 */
#include "controller/cluster/lease.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct loop *loop;
static struct http *http;
static struct clock wall;
static struct kubeconfig access_config;
static struct api *api;

static struct {
	const char *name;
	struct lease *lease;
	struct timer next;
	struct api_call call;
	char body[128];
	bool is_writing, is_stopping, is_closed;
} replica;

static void write_mark(struct timer *t);

static void fail(const struct error *e)
{
	fprintf(stderr, "%s\n", e->message);
	exit(1);
}

static void write_done(struct api_call *c)
{
	(void)c;
	replica.is_writing = false;
	if (lease_is_held(replica.lease) && !replica.is_stopping)
		timer_start(loop, &replica.next, 50, write_mark);
}

static void write_mark(struct timer *t)
{
	(void)t;
	if (replica.is_writing)
		return;
	replica.is_writing = true;
	replica.call = (struct api_call){ .method = "PATCH",
					  .path = "/api/v1/namespaces/live/configmaps/marks",
					  .body = replica.body,
					  .content_type = "application/merge-patch+json",
					  .effect = API_WRITE,
					  .done = write_done };
	api_start(api, &replica.call);
}

static void tell(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void on_won(void *user)
{
	(void)user;
	tell("won");
	api_set_gate(api, API_GATE_OPEN, NULL);
	timer_start(loop, &replica.next, 0, write_mark);
}

static void on_lost(void *user, const char *why)
{
	(void)user, (void)why;
	api_set_gate(api, API_GATE_LEASE_ONLY, "this replica does not lead");
	timer_stop(&replica.next);
	tell("lost");
}

static void on_holder(void *user)
{
	char line[300];

	(void)user;
	if (!replica.lease)
		return;
	snprintf(line, sizeof line, "holder %s", lease_holder(replica.lease));
	tell(line);
}

static void closed(void *user)
{
	(void)user;
	replica.is_closed = true;
}

static void asked_to_end(struct signal_watch *w, int number)
{
	(void)number;
	signal_watch_stop(w);
	replica.is_stopping = true;
	timer_stop(&replica.next);
	lease_close(replica.lease, closed, NULL);
}

static void lead(void)
{
	struct signal_watch end = { 0 };
	struct error e;

	api_set_gate(api, API_GATE_LEASE_ONLY, "this replica does not lead");
	snprintf(replica.body, sizeof replica.body, "{\"data\":{\"by\":\"%s\"}}", replica.name);
	replica.lease = lease_open(&(struct lease_setup){ .api = api,
							  .name_space = "live",
							  .name = "replicas",
							  .identity = replica.name,
							  .duration = 3 * SECOND,
							  .renew_deadline = 2 * SECOND,
							  .retry = 300,
							  .on_won = on_won,
							  .on_lost = on_lost,
							  .on_holder = on_holder },
				   &e);
	if (!replica.lease)
		fail(&e);
	signal_watch_start(loop, &end, SIGTERM, asked_to_end);
	while (!replica.is_closed || api_active(api))
		loop_once(loop);
}

int main(int argc, char **argv)
{
	char agent[64];
	struct error e;

	if (argc != 2 || !getenv("KUBECONFIG")) {
		fputs("usage: lease_live NAME, with KUBECONFIG set; see tests/live/lease.sh\n", stderr);
		return 2;
	}
	replica.name = argv[1];
	snprintf(agent, sizeof agent, "lease-live/%s", argv[1]);
	loop = loop_open();
	http = http_open(loop, agent, &e);
	wall = clock_open();
	if (!http ||
	    !kubeconfig_read(&(struct kubeconfig_wish){ .environment = getenv("KUBECONFIG") }, &access_config, &e))
		fail(&e);
	api = api_open(&(struct api_setup){ .loop = loop, .http = http, .clock = &wall, .access = &access_config });
	lead();
	api_close(api);
	http_close(http);
	kubeconfig_release(&access_config);
	loop_close(loop);
	return 0;
}
