/*
 * Groups that are objects of the cluster: an API server with one owner "gpu" and its machines as a test plays
 * them, and calls to a provider that ask it.
 */
#pragma once
#include "base/buf.h"
#include "base/net/loop.h"
#include "providers/provider.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MACHINES = 1200, LOG = 16 * 1024 };

struct played_machine {
	char name[24];
	bool is_there, runs, is_going;
	bool has_no_machine; /* a NodeClaim without a providerID */
	bool is_joining;     /* one whose node is not ready yet */
	bool is_replaced;    /* one that Karpenter replaces, as it drifted */
	bool has_drifted;    /* one that it will replace */
	bool joins_next;     /* it runs by the time it is marked */
	bool comes_next;     /* its controller makes it once its owner's machines were listed */
	bool is_empty;	     /* no pods are on its node: Karpenter takes it when the size falls */
	char mark[16];	     /* that it shall go first */
};

/* A NodePool or MachineDeployment with its machines, and what was asked. */
static struct played {
	int64_t replicas, version;
	bool has_replicas, is_paused, is_rolling, is_marked_paused, is_of_topology;
	const char *writer;  /* of its replicas, last; NULL: it is not written down */
	int behind;	     /* generations that its controller has not seen */
	const char *rollout; /* strategy; NULL: none */
	char operation[64];
	struct played_machine machines[MACHINES];
	int machine_count;
	char log[LOG];			      /* "PATCH /path {body}\n" of what changes something */
	int conflicts;			      /* of the next patches of the owner */
	struct played_machine *replaced_next; /* Karpenter begins to replace it as the size falls */
	int lost;			      /* answers of the next changing calls */
	int64_t min;			      /* as Cluster Autoscaler is told it */
	bool is_endless;
	millis delay; /* of each answer */
	bool is_silent;
	const char *first;  /* the answer to the next read; NULL: the right one */
	const char *denied; /* what a review with this in it is about */
	bool is_old;	    /* it knows no reviews of who one is */
	struct loop *loop;
} played;

struct answer {
	struct timer timer;
	struct cluster_call *call;
	struct error error;
	struct buf body;
};

static inline void deliver(struct timer *t)
{
	struct answer *a = t->user;
	struct cluster_call *c = a->call;

	c->error = a->error;
	c->response = a->body.text ? a->body.text : "";
	c->response_len = a->body.len;
	c->exchange = NULL;
	c->done(c);
	buf_release(&a->body);
	free(a);
}

static inline void write_owner(struct buf *out)
{
	char replicas[40] = "", writers[500] = "";

	if (played.writer)
		snprintf(writers, sizeof writers,
			 "\"managedFields\":[{\"manager\":\"%s\",\"operation\":\"Update\",\"subresource\":\"scale\","
			 "\"time\":\"2026-01-02T00:00:00Z\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{}}}},"
			 "{\"manager\":\"first\",\"operation\":\"Apply\",\"time\":\"2026-01-01T00:00:00Z\","
			 "\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{},\"f:template\":{}}}},"
			 "{\"manager\":\"karpenter\",\"operation\":\"Update\",\"time\":\"2026-01-03T00:00:00Z\","
			 "\"fieldsV1\":{\"f:status\":{\"f:replicas\":{}}}}],",
			 played.writer);
	if (played.has_replicas)
		snprintf(replicas, sizeof replicas, "\"replicas\":%" PRId64 ",", played.replicas);
	buf_printf(out,
		   "{\"metadata\":{\"name\":\"gpu\",%s\"labels\":{%s},\"generation\":9,\"resourceVersion\":\"%" PRId64
		   "\",\"annotations\":{%s\"preheat.dev/operation\":"
		   "\"%s\",\"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size\":\"9\","
		   "\"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size\":\"%" PRId64 "\"}},"
		   "\"spec\":{%s\"limits\":{\"nodes\":\"9\"},\"paused\":%s,\"rollout\":{\"strategy\":"
		   "{\"type\":\"%s\"}}},\"status\":{\"observedGeneration\":%d,\"conditions\":[{\"type\":\"RollingOut\","
		   "\"status\":\"%s\",\"reason\":\"x\"}]}}",
		   writers, played.is_of_topology ? "\"topology.cluster.x-k8s.io/deployment-name\":\"md-0\"" : "",
		   played.version, played.is_marked_paused ? "\"cluster.x-k8s.io/paused\":\"\"," : "", played.operation,
		   played.min, replicas, played.is_paused ? "true" : "false",
		   played.rollout ? played.rollout : "RollingUpdate", 9 - played.behind,
		   played.is_rolling ? "True" : "False");
}

static inline void write_machine(const struct played_machine *m, int number, struct buf *out)
{
	char mark[80] = "";

	if (m->mark[0])
		snprintf(mark, sizeof mark, ",\"annotations\":{\"cluster.x-k8s.io/delete-machine\":\"%s\"}", m->mark);
	buf_printf(out,
		   "{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":\"2026-01-01T00:%02d:%02dZ\"%s%s,\"labels\":{"
		   "\"topology.kubernetes.io/zone\":\"z1\",\"node.kubernetes.io/instance-type\":\"g5.xlarge\"}},"
		   "\"spec\":{\"providerID\":\"aws:///z1/"
		   "i-%s\",\"failureDomain\":\"z1\"},\"status\":{\"phase\":\"%s\",\"providerID\":"
		   "\"%s%s\",\"conditions\":[{\"type\":\"Launched\",\"status\":\"%s\",\"reason\":\"x\"},"
		   "{\"type\":\"Initialized\",\"status\":\"%s\",\"reason\":\"x\"}%s%s]}}",
		   m->name, number / 60 % 60, number % 60,
		   m->is_going ? ",\"deletionTimestamp\":\"2026-01-02T00:00:00Z\"" : "", mark, m->name,
		   m->runs ? "Running" : "Provisioning", m->has_no_machine ? "" : "aws:///z1/i-",
		   m->has_no_machine ? "" : m->name, m->runs ? "True" : "Unknown", m->is_joining ? "Unknown" : "True",
		   m->is_replaced ? ",{\"type\":\"DisruptionReason\",\"status\":\"True\",\"reason\":\"Drifted\"}" : "",
		   m->has_drifted ? ",{\"type\":\"Drifted\",\"status\":\"True\",\"reason\":\"x\"}" : "");
}

static inline void write_page(const char *path, struct buf *out)
{
	const char *from = strstr(path, "continue=");
	int first = from ? atoi(from + strlen("continue=")) : 0, shown = 0, i = first;

	assert_non_null(strstr(path, "limit=500&labelSelector="));
	buf_text(out, "{\"items\":[");
	for (; i < played.machine_count && shown < 500; i++)
		if (played.machines[i].is_there) {
			buf_text(out, shown++ ? "," : "");
			write_machine(&played.machines[i], i, out);
		}
	buf_printf(out, "],\"metadata\":{\"continue\":\"");
	if (i < played.machine_count || played.is_endless)
		buf_printf(out, "%d", i);
	buf_text(out, "\"}}");
	for (int k = 0; k < played.machine_count; k++)
		played.machines[k].is_there |= played.machines[k].comes_next;
}

static inline void read_path(const char *path, struct answer *a)
{
	if (played.first) {
		buf_text(&a->body, played.first);
		played.first = NULL;
	} else if (!strcmp(path, "/apis/cluster.x-k8s.io")) {
		buf_text(&a->body,
			 "{\"kind\":\"APIGroup\",\"preferredVersion\":{\"groupVersion\":\"cluster.x-k8s.io/v1beta2\","
			 "\"version\":\"v1beta2\"}}");
	} else if (strchr(path, '?')) {
		write_page(path, &a->body);
	} else if (strstr(path, "/gpu")) {
		write_owner(&a->body);
	} else {
		error_set(&a->error, ERROR_NOT_FOUND, "GET %s: not found", path);
	}
}

static inline struct played_machine *machine_at(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	for (int i = 0; i < played.machine_count; i++)
		if (played.machines[i].is_there && !strcmp(played.machines[i].name, name))
			return &played.machines[i];
	return NULL;
}

/* Karpenter's static deprovisioner: as many as are too many, of those without pods. */
static inline void deprovision(void)
{
	int64_t excess = -played.replicas;

	for (int i = 0; i < played.machine_count; i++)
		excess += played.machines[i].is_there && !played.machines[i].is_going;
	for (int i = 0; i < played.machine_count && excess > 0; i++)
		if (played.machines[i].is_empty && !played.machines[i].is_going) {
			played.machines[i].is_going = true;
			excess--;
		}
}

static inline void patch_owner(const char *body, struct answer *a)
{
	const char *token = strstr(body, "preheat.dev/operation\":\""), *version = strstr(body, "resourceVersion\":\"");

	assert_non_null(version);
	if (played.conflicts > 0 || atoll(version + strlen("resourceVersion\":\"")) != played.version) {
		played.conflicts--;
		error_set(&a->error, ERROR_CONFLICT, "the object has been modified");
		return;
	}
	played.replicas = atoll(strstr(body, "\"replicas\":") + strlen("\"replicas\":"));
	played.version++;
	if (played.replaced_next)
		played.replaced_next->is_replaced = true;
	deprovision();
	if (token)
		snprintf(played.operation, sizeof played.operation, "%.*s",
			 (int)strcspn(token + strlen("preheat.dev/operation\":\""), "\""),
			 token + strlen("preheat.dev/operation\":\""));
}

static inline void patch_machine(struct played_machine *m, const char *body, struct answer *a)
{
	snprintf(m->mark, sizeof m->mark, "%s", strstr(body, "null") ? "" : "preheat");
	m->runs |= m->joins_next;
	write_machine(m, (int)(m - played.machines), &a->body);
}

static inline void change(struct cluster_call *c, struct answer *a)
{
	struct played_machine *m = machine_at(c->path);
	size_t len = strlen(played.log);

	snprintf(played.log + len, LOG - len, "%s %s %s\n", c->method, c->path, c->body ? c->body : "");
	if (strstr(c->path, "/gpu"))
		patch_owner(c->body, a);
	else if (!m)
		error_set(&a->error, ERROR_NOT_FOUND, "not found");
	else if (!strcmp(c->method, "DELETE"))
		m->is_going = true;
	else if (strstr(c->body, "delete-machine"))
		patch_machine(m, c->body, a);
	if (played.lost > 0) {
		played.lost--;
		error_set(&a->error, ERROR_UNAVAILABLE, "connection reset");
	}
}

static inline void review(const struct cluster_call *c, struct answer *a)
{
	bool is_denied = played.denied && strstr(c->body, played.denied);

	assert_string_equal(c->method, "POST");
	assert_null(c->content_type); /* JSON */
	if (strstr(c->path, "/selfsubjectaccessreviews"))
		buf_printf(&a->body, "{\"status\":{\"allowed\":%s}}",
			   is_denied ? "false,\"reason\":\"no role\"" : "true");
	else if (played.is_old)
		error_set(&a->error, ERROR_NOT_FOUND, "not found");
	else
		buf_text(&a->body,
			 "{\"status\":{\"userInfo\":{\"username\":\"system:serviceaccount:preheat:preheat\"}}}");
}

static inline void start(void *user, struct cluster_call *c)
{
	struct answer *a = calloc(1, sizeof *a);

	(void)user;
	assert_non_null(a);
	assert_true(c->timeout > 0);
	c->exchange = a;
	a->call = c;
	a->timer.user = a;
	if (played.is_silent)
		return;
	if (c->changes)
		change(c, a);
	else if (strstr(c->path, "reviews"))
		review(c, a);
	else
		read_path(c->path, a);
	timer_start(played.loop, &a->timer, played.delay, deliver);
}

static inline void cancel(void *user, struct cluster_call *c)
{
	struct answer *a = c->exchange;

	(void)user;
	error_set(&a->error, ERROR_CANCELLED, "cancelled");
	timer_start(played.loop, &a->timer, 0, deliver);
}

static const struct cluster_door door = { .start = start, .cancel = cancel };

/* --- asking --- */

struct asked {
	const struct provider_ops *ops;
	struct provider *provider;
	struct provider_call call;
	const char *settings;
	int done;
};

static inline void finished(struct provider_call *c)
{
	((struct asked *)c->user)->done++;
}

static inline struct asked open_provider(const char *name, const char *settings, int running)
{
	struct asked a = { .ops = provider_find(name), .settings = settings };
	struct error e = { 0 };

	played = (struct played){ .loop = loop_open(), .replicas = running, .has_replicas = true, .version = 7 };
	for (int i = 0; i < running; i++) {
		snprintf(played.machines[i].name, sizeof played.machines[i].name, "m-%d", i + 1);
		played.machines[i].is_there = played.machines[i].runs = true;
	}
	played.machine_count = running;
	a.provider = a.ops->open(&(struct provider_setup){ played.loop, NULL, &door }, &e);
	assert_non_null(a.provider);
	return a;
}

static inline void close_provider(struct asked *a)
{
	provider_call_release(&a->call);
	a->ops->close(a->provider);
	loop_close(played.loop);
}

struct recommendation {
	enum provider_verb verb;
	const char *token;
	int64_t desired, change;
	const char *ids[3];
};

static inline enum error_kind ask(struct asked *a, struct recommendation w)
{
	size_t count = 0;

	while (count < 3 && w.ids[count])
		count++;
	provider_call_release(&a->call);
	a->call = (struct provider_call){ .verb = w.verb,
					  .group = "g",
					  .settings = a->settings,
					  .token = w.token,
					  .desired = w.desired,
					  .change = w.change,
					  .ids = w.ids,
					  .id_count = count,
					  .done = finished,
					  .user = a };
	int before = a->done;
	a->ops->start(a->provider, &a->call);
	assert_int_equal(a->done, before);
	while (a->done == before && loop_once(played.loop))
		;
	assert_int_equal(a->done, before + 1);
	return a->call.error.kind;
}
