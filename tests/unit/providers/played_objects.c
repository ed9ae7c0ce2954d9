#include "tests/unit/providers/played_objects.h"

#include "base/decode.h"
#include "base/net/http.h"
#include "base/net/retry.h"
#include "base/net/server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wire_server {
	struct server *server;
	struct server_route routes[3];
	struct modelled_cloud *cloud;
	char url[64], operation[64];
	bool marked[CLOUD_MACHINES];
	int64_t version;
};

struct change {
	int64_t replicas;
	const char *version, *operation, *mark;
};
static const struct field change_fields[] = {
	FIELD(struct change, replicas, FIELD_INT, "spec>replicas"),
	FIELD(struct change, version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct change, operation, FIELD_STRING, "metadata>annotations>preheat.dev/operation"),
	FIELD(struct change, mark, FIELD_STRING, "metadata>annotations>cluster.x-k8s.io/delete-machine"),
};
static const struct record_spec change_record = { "", sizeof(struct change), change_fields, 4 };

/* --- what an API server shows --- */

static void show_owner(const struct wire_server *s, struct buf *out)
{
	const struct modelled_cloud *c = s->cloud;

	buf_printf(out,
		   "{\"metadata\":{\"resourceVersion\":\"%" PRId64
		   "\",\"annotations\":{\"preheat.dev/operation\":\"%s\","
		   "\"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size\":\"%" PRId64 "\","
		   "\"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size\":\"%" PRId64 "\"}},"
		   "\"spec\":{\"replicas\":%" PRId64 ",\"limits\":{\"nodes\":\"%" PRId64 "\"}}}",
		   s->version, s->operation, c->min, c->max, c->desired, c->max);
}

static void show_machines(const struct wire_server *s, struct buf *out)
{
	buf_text(out, "{\"metadata\":{},\"items\":[");
	for (size_t i = 0; i < s->cloud->count; i++) {
		const struct modelled_machine *m = &s->cloud->machines[i];
		bool runs = m->state == MACHINE_RUNNING;

		buf_printf(
			out,
			"%s{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"%s%s},\"spec\":"
			"{"
			"\"providerID\":\"x:///%s\",\"failureDomain\":\"z1\"},\"status\":{\"providerID\":\"x:///%s\","
			"\"phase\":\"%s\",\"conditions\":[{\"type\":\"Launched\",\"status\":\"%s\",\"reason\":\"x\"}]}"
			"}",
			i ? "," : "", m->id,
			m->state == MACHINE_TERMINATING ? ",\"deletionTimestamp\":\"2026-01-02T00:00:00Z\"" : "",
			s->marked[i] ? ",\"annotations\":{\"cluster.x-k8s.io/delete-machine\":\"preheat\"}" : "", m->id,
			m->id, runs ? "Running" : "Provisioning", runs ? "True" : "Unknown");
	}
	buf_text(out, "]}");
}

static void refuse(struct server_answer *a, const struct error *e)
{
	a->status = e->kind == ERROR_THROTTLED	 ? 429
		    : e->kind == ERROR_AUTH	 ? 403
		    : e->kind == ERROR_NOT_FOUND ? 404
		    : e->kind == ERROR_CONFLICT	 ? 409
		    : e->kind == ERROR_INVALID	 ? 422
						 : 503;
	buf_clear(&a->body);
	buf_printf(&a->body, "{\"kind\":\"Status\",\"message\":\"%s\"}", e->message);
	if (e->kind == ERROR_THROTTLED)
		a->headers[0] = "Retry-After: 7";
}

static bool is_owner(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strncmp(name, "/at-", 4) == 0;
}

static void show(const struct server_request *q, struct server_answer *a)
{
	struct wire_server *s = q->user;
	struct error e;

	if (strcmp(q->path, "/apis/cluster.x-k8s.io") == 0) {
		buf_text(&a->body, "{\"preferredVersion\":{\"version\":\"v1beta2\"}}");
	} else if (server_query(q, "labelSelector")) {
		show_machines(s, &a->body);
	} else if (is_owner(q->path)) {
		s->cloud->answered++;
		show_owner(s, &a->body);
	} else {
		error_set(&e, ERROR_NOT_FOUND, "no such object");
		refuse(a, &e);
	}
}

/* --- what its controllers do --- */

/* A size that falls takes those marked; Karpenter's NodeClaims go by being deleted. */
static void shrink(struct wire_server *s, int64_t size)
{
	for (size_t i = 0; i < s->cloud->count && s->cloud->desired > size; i++)
		if (s->marked[i] && s->cloud->machines[i].state != MACHINE_TERMINATING) {
			s->cloud->machines[i].state = MACHINE_TERMINATING;
			s->cloud->desired--;
		}
	s->cloud->desired = size;
}

static bool resize(struct wire_server *s, const struct change *c, struct error *e)
{
	char token[32];

	if (!c->version || atoll(c->version) != s->version)
		return error_set(e, ERROR_CONFLICT, "the object has been modified");
	snprintf(token, sizeof token, "version %" PRId64, s->version++);
	snprintf(s->operation, sizeof s->operation, "%s", c->operation ? c->operation : "");
	struct provider_call grow = { .verb = PROVIDER_GROW, .desired = c->replicas, .token = token };
	if (c->replicas >= s->cloud->desired)
		return cloud_do(s->cloud, &grow, e);
	shrink(s, c->replicas);
	return true;
}

static bool do_change(struct wire_server *s, const struct server_request *q, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct decode_plan *plan = decode_plan_new(&change_record);
	struct modelled_machine *m = cloud_machine(s->cloud, strrchr(q->path, '/') + 1);
	struct change c = { 0 };
	bool is_delete = strcmp(q->method, "DELETE") == 0;
	bool ok = is_delete || decode_record(plan, q->body, q->body_len, &scratch, &c, e);

	decode_plan_free(plan);
	if (!ok)
		return false;
	if (strstr(q->path, "/at-"))
		return resize(s, &c, e);
	if (!m)
		return error_set(e, ERROR_NOT_FOUND, "no such machine");
	if (is_delete)
		m->state = MACHINE_TERMINATING;
	else
		s->marked[m - s->cloud->machines] = c.mark;
	return true;
}

static void change(const struct server_request *q, struct server_answer *a)
{
	struct error e;

	if (do_change(q->user, q, &e))
		buf_text(&a->body, "{}");
	else
		refuse(a, &e);
}

struct wire_server *objects_open(struct loop *loop, struct modelled_cloud *cloud)
{
	struct wire_server *s = calloc(1, sizeof *s);
	struct error e;

	assert(s);
	*s = (struct wire_server){ .cloud = cloud, .version = 7 };
	s->routes[0] = (struct server_route){ "GET", "/apis/*", show, s };
	s->routes[1] = (struct server_route){ "PATCH", "/apis/*", change, s };
	s->routes[2] = (struct server_route){ "DELETE", "/apis/*", change, s };
	s->server = server_open(
		loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 3 }, &e);
	assert(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	return s;
}

void objects_close(struct wire_server *s)
{
	server_close(s->server);
	free(s);
}

const char *objects_url(const struct wire_server *s)
{
	return s->url;
}

void objects_name(const char *url, struct buf *out)
{
	buf_printf(out, "at-%d", atoi(strrchr(url, ':') + 1));
}

/* --- the way there --- */

struct cluster_visit {
	struct http *http;
	int port; /* of what the settings do not name */
};

struct trip {
	struct http_request http;
	struct cluster_call *call;
	struct buf url;
	char type[80];
	const char *headers[2];
};

static void arrived(struct http_request *r)
{
	struct trip *t = r->user;
	struct cluster_call *c = t->call;
	const char *after = r->error.kind == ERROR_NONE ? http_header(r, "Retry-After") : NULL;

	c->error = r->error;
	if (c->error.kind == ERROR_NONE && http_status_kind(r->status) != ERROR_NONE)
		error_set(&c->error, http_status_kind(r->status), "status %ld", r->status);
	c->retry_after = after ? retry_after(after, 0) : 0;
	c->response = r->response;
	c->response_len = r->response_len;
	c->done(c);
	buf_release(&t->url);
	free(t);
}

static void set_out(void *user, struct cluster_call *c)
{
	struct cluster_visit *v = user;
	struct trip *t = calloc(1, sizeof *t);
	const char *at = strstr(c->path, "at-");

	assert(t);
	t->call = c;
	buf_printf(&t->url, "http://127.0.0.1:%d%s", at ? atoi(at + 3) : v->port, c->path);
	snprintf(t->type, sizeof t->type, "Content-Type: %s", c->content_type ? c->content_type : "application/json");
	t->headers[0] = t->type;
	t->http = (struct http_request){ .method = c->method,
					 .url = t->url.text,
					 .headers = t->headers,
					 .body = c->body,
					 .body_len = c->body ? strlen(c->body) : 0,
					 .timeout = c->timeout,
					 .max_response = 1 << 20,
					 .done = arrived,
					 .user = t };
	c->exchange = t;
	http_start(v->http, &t->http);
}

static void turn_back(void *user, struct cluster_call *c)
{
	(void)user;
	http_cancel(&((struct trip *)c->exchange)->http);
}

static struct cluster_door open_way(struct http *http, const char *url)
{
	struct cluster_visit *v = calloc(1, sizeof *v);

	assert(v);
	*v = (struct cluster_visit){ http, atoi(strrchr(url, ':') + 1) };
	return (struct cluster_door){ .start = set_out, .cancel = turn_back, .user = v };
}

static void close_way(struct cluster_door *door)
{
	free(door->user);
}

const struct cluster_way objects_way = { open_way, close_way };
