/* The clouds are those of tests/world: what they use of its wire is here over a real server. */
#include "base/net/server.h"
#include "tests/nemesis/stops.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CLOUD_HOSTS = 8, LINES = 4, LINE = 400 };

static struct {
	struct random random;
	struct {
		const char *prefix;
		void (*serve)(struct wire_call *c);
	} hosts[CLOUD_HOSTS];
	size_t host_count;
	long run;
	millis began;  /* CLOCK_MONOTONIC */
	bool is_taken; /* somebody else has the lease since the stop */
} now;

struct heard {
	struct wire_call call; /* first: a call is what was heard */
	struct server_answer *answer;
};

/* --- the wire --- */

static millis mono(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (millis)t.tv_sec * SECOND + t.tv_nsec / 1000000;
}

/* The cloud's time goes on with the clocks of the replica. */
millis wire_now(void)
{
	return mono() - now.began + all->seen.ahead;
}

millis wire_host_wall(const char *url, millis at)
{
	(void)url;
	return WIRE_EPOCH + at;
}

struct random *wire_random(void)
{
	return &now.random;
}

void wire_host(const char *prefix, void (*serve)(struct wire_call *c))
{
	if (now.host_count == CLOUD_HOSTS)
		stops_fail("too many hosts");
	now.hosts[now.host_count].prefix = prefix;
	now.hosts[now.host_count++].serve = serve;
}

static bool is_below(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* One of the answer's headers; addresses of Azure's own become ours. */
static void take_header(struct server_answer *a, size_t *count, const char *line, size_t len)
{
	static char lines[LINES][LINE];
	const char *theirs = memmem(line, len, CLOUD_ARM, strlen(CLOUD_ARM));

	if (is_below(line, "Content-Type:"))
		a->content_type = memmem(line, len, "xml", 3) ? "text/xml" : "application/json";
	else if (*count == LINES)
		stops_fail("too many headers");
	else if (theirs)
		snprintf(lines[*count], LINE, "%.*shttp://127.0.0.1:%d%.*s", (int)(theirs - line), line, all->port,
			 (int)(line + len - theirs) - (int)strlen(CLOUD_ARM), theirs + strlen(CLOUD_ARM));
	else
		snprintf(lines[*count], LINE, "%.*s", (int)len, line);
	if (!is_below(line, "Content-Type:")) {
		a->headers[*count] = lines[*count];
		++*count;
	}
}

void wire_answer_bytes(struct wire_call *c, long status, const char *headers, const char *body, size_t len)
{
	struct server_answer *a = ((struct heard *)c)->answer;
	size_t count = 0;

	a->status = (int)status;
	for (const char *line = headers ? headers : ""; *line; line += strcspn(line, "\n"), line += *line == '\n')
		take_header(a, &count, line, strcspn(line, "\n"));
	buf_append(&a->body, body, len);
}

void wire_answer(struct wire_call *c, long status, const char *headers, const char *body)
{
	wire_answer_bytes(c, status, headers, body, strlen(body));
}

void wire_cut(struct wire_call *c)
{
	(void)c;
	stops_fail("no fault of the cloud's was asked for");
}

/* --- the cloud --- */

static void called(const struct cloud_call *c)
{
	bool is_done = c->status == 202 && !c->is_repeat;

	all->bought += is_done ? c->launched : 0;
	all->ended += is_done ? c->ended : 0;
	all->alive = cloud_awake(c->group);
	if (all->most < all->alive)
		all->most = all->alive;
}

static void begin_cloud(void)
{
	now.began = mono();
	now.host_count = 0;
	now.random = random_stream(1, "stops");
	cloud_end();
	cloud_begin(1);
	cloud_on_call(called);
	cloud_add(&(struct cloud_group){ .name = "g",
					 .pool = "chat",
					 .zone = "z1",
					 .instance_type = all->wire == CLOUD_AKS ? "Standard_NC6s_v3" : "g5.xlarge",
					 .max = 10,
					 .gpus = 1,
					 .wire = all->wire,
					 .launches = all->launches },
		  FEWEST);
}

/* By its path, which those of the API server have nothing in common with; NULL: it is none of the cloud's. */
static const char *host_of(const char *path)
{
	if (strstr(path, "/oauth2/"))
		return "https://login.microsoftonline.com";
	if (is_below(path, "/subscriptions/"))
		return CLOUD_ARM;
	if (is_below(path, "/v1/groups/"))
		return CLOUD;
	return !strcmp(path, "/") || is_below(path, "/clusters/") ? CLOUD_AWS : NULL;
}

static bool serve_cloud(const struct server_request *q, struct server_answer *a)
{
	const char *host = host_of(q->path), *match = server_header(q, "If-Match");
	char path[600];

	if (!host)
		return false;
	/* The version is all that Azure's queries say. */
	snprintf(path, sizeof path, "%s%s", q->path, !strcmp(host, CLOUD_ARM) ? "?api-version=1" : "");
	struct heard h = { .call = { .method = q->method,
				     .path = path,
				     .host = host,
				     .body = q->body,
				     .if_match = match ? match : "" },
			   .answer = a };
	for (size_t i = 0; i < now.host_count; i++)
		if (!strcmp(now.hosts[i].prefix, host))
			now.hosts[i].serve(&h.call);
	return true;
}

/* --- the API server --- */

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

static void serve_cluster(const struct server_request *q, struct server_answer *a)
{
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

static void serve_any(const struct server_request *q, struct server_answer *a)
{
	a->content_type = "application/json";
	if (now.run != all->run) {
		now.run = all->run;
		now.is_taken = false;
		all->version = 1;
		snprintf(all->holder, sizeof all->holder, "other");
		begin_cloud();
	}
	if (all->seen.has_stopped && !now.is_taken) {
		now.is_taken = true;
		all->version++;
		snprintf(all->holder, sizeof all->holder, "other");
	}
	if (strstr(q->path, "/leases"))
		serve_lease(q, a);
	else if (!serve_cloud(q, a))
		serve_cluster(q, a);
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
		stops_fail(e.message);
	return server_port(s);
}

void stops_serve(const char *pair)
{
	struct loop *loop = loop_open();

	all->tls_port = serve(loop, pair);
	all->port = serve(loop, NULL);
	loop_run(loop);
}
