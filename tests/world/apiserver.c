#include "tests/world/apiserver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HISTORY = 4096, PARTS = 10 };

static const struct {
	const char *root, *plural, *kind;
	bool is_namespaced;
} kinds[KIND_COUNT] = {
	[KIND_NODE] = { "/api/v1", "nodes", "Node", false },
	[KIND_POD] = { "/api/v1", "pods", "Pod", true },
	[KIND_BUDGET] = { "/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", true },
	[KIND_QUOTA] = { "/api/v1", "resourcequotas", "ResourceQuota", true },
	[KIND_JOB] = { "/apis/batch/v1", "jobs", "Job", true },
	[KIND_EVENT] = { "/apis/events.k8s.io/v1", "events", "Event", true },
	[KIND_DEPLOYMENT] = { "/apis/apps/v1", "deployments", "Deployment", true },
	[KIND_LEASE] = { "/apis/coordination.k8s.io/v1", "leases", "Lease", true },
	[KIND_WARM_POOL] = { "/apis/preheat.dev/v1alpha1", "warmpools", "WarmPool", true },
	[KIND_VOLUME_CLAIM] = { "/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim", true },
	[KIND_VOLUME] = { "/api/v1", "persistentvolumes", "PersistentVolume", false },
	[KIND_STORAGE_CLASS] = { "/apis/storage.k8s.io/v1", "storageclasses", "StorageClass", false },
	[KIND_NAMESPACE] = { "/api/v1", "namespaces", "Namespace", false },
	[KIND_DEVICE_CLAIM] = { "/apis/resource.k8s.io/v1", "resourceclaims", "ResourceClaim", true },
	[KIND_SERVICE] = { "/api/v1", "services", "Service", true },
	[KIND_SLICE] = { "/apis/discovery.k8s.io/v1", "endpointslices", "EndpointSlice", true },
	[KIND_AUTOSCALER] = { "/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true },
};

struct change {
	int64_t version;
	enum kind kind;
	char *line; /* as a watch tells it */
	size_t len;
};

struct watching {
	struct watching *next;
	struct wire_call *call;
	enum kind kind;
	bool is_silent; /* core events: nothing of it is played */
	int64_t told;	/* up to this version */
	millis ends;
	millis bookmark;
};

static struct {
	struct object *first[KIND_COUNT], **end[KIND_COUNT];
	int64_t version, oldest; /* changes up to `oldest` are forgotten */
	struct change changes[HISTORY];
	size_t change_count; /* since the beginning; the last HISTORY are kept */
	struct watching *watches;
	struct timer watch_timer;
	struct apiserver_faults faults;
	void (*written)(const struct apiserver_write *w);
	uint64_t uids;
} server;

void apiserver_time(millis wall, char text[32])
{
	time_t seconds = (time_t)(wall / SECOND);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

struct apiserver_faults *apiserver_faults(void)
{
	return &server.faults;
}

void apiserver_on_write(void (*written)(const struct apiserver_write *w))
{
	server.written = written;
}

/* --- objects and versions --- */

struct object *apiserver_first(enum kind k)
{
	return server.first[k];
}

struct object *apiserver_find(enum kind k, const char *space, const char *name)
{
	struct object *o = server.first[k];

	while (o && (strcmp(o->name, name) != 0 || (kinds[k].is_namespaced && strcmp(o->space, space) != 0)))
		o = o->next;
	return o;
}

static void tell(struct watching *w)
{
	size_t from = server.change_count > HISTORY ? server.change_count - HISTORY : 0;

	if (server.faults.holds_events)
		return;
	for (size_t i = from; !w->is_silent && i < server.change_count; i++) {
		const struct change *c = &server.changes[i % HISTORY];
		if (c->kind == w->kind && c->version > w->told)
			wire_push(w->call, c->line, c->len);
	}
	w->told = server.version;
}

static void tell_last(void)
{
	const struct change *c = &server.changes[(server.change_count - 1) % HISTORY];

	for (struct watching *w = server.watches; w && !server.faults.holds_events; w = w->next) {
		if (c->kind == w->kind && !w->is_silent)
			wire_push(w->call, c->line, c->len);
		w->told = c->version;
	}
}

static void note(const struct object *o, const char *type)
{
	struct change *c = &server.changes[server.change_count++ % HISTORY];
	struct buf line = { 0 };

	value_set(o->value, "metadata>resourceVersion", value_of("'%" PRId64 "'", ++server.version));
	buf_printf(&line, "{\"type\":\"%s\",\"object\":", type);
	value_print(o->value, &line);
	buf_text(&line, "}\n");
	server.oldest = c->line ? c->version : server.oldest;
	free(c->line);
	*c = (struct change){ server.version, o->kind, line.text, line.len };
	tell_last();
}

static void settle_names(struct object *o)
{
	o->space = value_text(o->value, "metadata>namespace");
	o->name = value_text(o->value, "metadata>name");
	o->uid = value_text(o->value, "metadata>uid");
}

struct object *apiserver_create(enum kind k, struct value *v)
{
	struct object *o = calloc(1, sizeof *o);
	char at[32], uid[37];

	if (!o)
		abort();
	server.uids++;
	snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012" PRIx64, server.uids);
	apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
	o->kind = k;
	o->value = v;
	value_set_text(v, "metadata>uid", uid);
	value_set_text(v, "metadata>creationTimestamp", at);
	if (k == KIND_WARM_POOL)
		value_set_int(v, "metadata>generation", 1);
	settle_names(o);
	*server.end[k] = o;
	server.end[k] = &o->next;
	note(o, "ADDED");
	return o;
}

void apiserver_changed(struct object *o)
{
	settle_names(o);
	note(o, "MODIFIED");
}

void apiserver_delete(struct object *o)
{
	struct object **at = &server.first[o->kind];

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	if (!*at)
		server.end[o->kind] = at;
	note(o, "DELETED");
	value_free(o->value);
	free(o->extra);
	free(o);
}

/* --- answers --- */

static void answer_value(struct wire_call *c, long status, const struct value *v)
{
	struct buf text = { 0 };

	value_print(v, &text);
	wire_answer(c, status, "Content-Type: application/json", text.text);
	buf_release(&text);
}

static void refuse(struct wire_call *c, int code, const char *reason, const char *message, const char *cause)
{
	struct buf text = { 0 };

	buf_printf(&text,
		   "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"%s\","
		   "\"reason\":\"%s\",\"details\":{\"causes\":[",
		   message, reason);
	if (cause)
		buf_printf(&text, "{\"reason\":\"%s\",\"message\":\"held\"}", cause);
	buf_printf(&text, "]},\"code\":%d}", code);
	wire_answer(c, code, code == 429 && !cause ? "Retry-After: 1" : NULL, text.text);
	buf_release(&text);
}

static void not_found(struct wire_call *c)
{
	refuse(c, 404, "NotFound", "there is none", NULL);
}

static void conflict(struct wire_call *c)
{
	refuse(c, 409, "Conflict", "the object has been modified", NULL);
}

/* --- lists and watches --- */

/* Of the field selectors that there are only that of a pod's node is played: "?fieldSelector=spec.nodeName%3DNAME". */
/* Of a parameter of the query, as it is written there. */
static bool is_said(const char *query, const char *parameter, const char *text)
{
	const char *at = query ? strstr(query, parameter) : NULL;

	if (!at)
		return true;
	at += strlen(parameter);
	return strlen(text) == strcspn(at, "&") && !strncmp(text, at, strlen(text));
}

static bool is_selected(const struct object *o, const char *query)
{
	return is_said(query, "fieldSelector=spec.nodeName%3D", value_text(o->value, "spec>nodeName")) &&
	       is_said(query, "labelSelector=kubernetes.io%2Fservice-name%3D",
		       value_text(o->value, "metadata>labels>kubernetes.io/service-name")) &&
	       is_said(query, "labelSelector=endpointslice.kubernetes.io%2Fmanaged-by%3D",
		       value_text(o->value, "metadata>labels>endpointslice.kubernetes.io/managed-by"));
}

static void list(struct wire_call *c, enum kind k, bool is_silent, const char *space)
{
	struct buf text = { .cap = (size_t)64 << 20 };
	bool is_first = true;

	buf_printf(&text,
		   "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRId64
		   "\"},\"items\":[",
		   kinds[k].kind, strchr(kinds[k].root + 1, '/') + 1, server.version);
	for (const struct object *o = server.first[k]; o && !is_silent; o = o->next) {
		if ((*space && strcmp(space, o->space) != 0) || !is_selected(o, strchr(c->path, '?')))
			continue;
		buf_text(&text, is_first ? "" : ",");
		value_print(o->value, &text);
		is_first = false;
	}
	buf_text(&text, "]}");
	wire_answer(c, 200, NULL, text.text);
	buf_release(&text);
}

static void watch_gone(struct wire_call *c)
{
	struct watching **at = &server.watches;

	while (*at && (*at)->call != c)
		at = &(*at)->next;
	if (!*at)
		return;
	struct watching *w = *at;
	*at = w->next;
	free(w);
}

static void pass_watches(struct timer *t)
{
	for (struct watching *w = server.watches, *next; w; w = next) {
		next = w->next;
		if (wire_now() >= w->ends) {
			w->call->gone = NULL;
			wire_close(w->call);
			watch_gone(w->call);
		} else if (wire_now() >= w->bookmark && !server.faults.holds_events && !w->is_silent) {
			char text[200];
			int len = snprintf(text, sizeof text,
					   "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"metadata\":{"
					   "\"resourceVersion\":\"%" PRId64 "\"}}}\n",
					   kinds[w->kind].kind, server.version);
			wire_push(w->call, text, (size_t)len);
			w->bookmark = wire_now() + MINUTE;
		}
	}
	timer_start(NULL, t, 5 * SECOND, pass_watches);
}

static int64_t query_number(const char *query, const char *name)
{
	const char *at = query ? strstr(query, name) : NULL;

	return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static void watch(struct wire_call *c, enum kind k, bool is_silent, const char *query)
{
	struct watching *w = calloc(1, sizeof *w);
	int64_t from = query_number(query, "resourceVersion="), lasts = query_number(query, "timeoutSeconds=");

	if (!w)
		abort();
	if (from && from < server.oldest) {
		static const char expired[] = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
					      "\"reason\":\"Expired\",\"message\":\"too old resource version\"}}\n";
		free(w);
		wire_push(c, expired, sizeof expired - 1);
		wire_close(c);
		return;
	}
	*w = (struct watching){ .next = server.watches,
				.call = c,
				.kind = k,
				.is_silent = is_silent,
				.told = from,
				.ends = wire_now() + (lasts ? lasts : 300) * SECOND,
				.bookmark = wire_now() + MINUTE };
	server.watches = w;
	c->gone = watch_gone;
	wire_push(c, "", 0);
	tell(w);
}

void apiserver_cut_watches(void)
{
	while (server.watches)
		wire_cut(server.watches->call);
}

void apiserver_forget_versions(void)
{
	server.version++;
	server.oldest = server.version;
}

void apiserver_catch_up(void)
{
	server.faults.holds_events = false;
	for (struct watching *w = server.watches; w; w = w->next)
		tell(w);
}

/* --- one object --- */

struct asked {
	struct wire_call *call;
	enum kind kind;
	bool is_silent; /* core events */
	char space[64], name[128], sub[32];
	const char *query;
	struct value *body; /* NULL: none */
};

static void report(const struct asked *a, const char *verb, long status)
{
	const struct apiserver_write w = { .from = a->call->from,
					   .verb = verb,
					   .resource = kinds[a->kind].plural,
					   .sub = a->sub,
					   .space = a->space,
					   .name = a->name,
					   .status = status,
					   .is_again = a->call->is_again };
	if (server.written)
		server.written(&w);
}

static void answer_scale(const struct asked *a, const struct object *o)
{
	struct value *v =
		value_of("{'kind':'Scale','apiVersion':'autoscaling/v1','metadata':{'name':'%s','namespace':'%s',"
			 "'resourceVersion':'%s'},'spec':{'replicas':%" PRId64 "},'status':{'replicas':%" PRId64
			 ",'selector':'app=%s'}}",
			 o->name, o->space, value_text(o->value, "metadata>resourceVersion"),
			 value_int(o->value, "spec>replicas"), value_int(o->value, "status>replicas"),
			 value_text(o->value, "spec>selector>matchLabels>app"));

	answer_value(a->call, 200, v);
	value_free(v);
}

static bool is_stale(const struct asked *a, const struct object *o)
{
	const char *version = value_text(a->body, "metadata>resourceVersion");

	return *version && strcmp(version, value_text(o->value, "metadata>resourceVersion")) != 0;
}

/* A field is its last writer's; who once applied it still owns it, and others write other fields in the same moment. */
void apiserver_scale(struct object *o, const char *manager, int64_t replicas)
{
	char first[32], at[32];

	apiserver_time(WIRE_EPOCH, first);
	apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
	value_set(o->value, "metadata>managedFields",
		  value_of("[{'manager':'helm','operation':'Apply','time':'%s','fieldsV1':{'f:spec':{'f:replicas':{},"
			   "'f:selector':{}}}},{'manager':'%s','operation':'Update','subresource':'scale','time':'%s',"
			   "'fieldsV1':{'f:spec':{'f:replicas':{}}}},{'manager':'kube-controller-manager','operation':"
			   "'Update','subresource':'status','time':'%s','fieldsV1':{'f:status':{'f:replicas':{}}}}]",
			   first, manager, at, at));
	value_set_int(o->value, "spec>replicas", replicas);
	apiserver_changed(o);
}

static void write_scale(const struct asked *a, struct object *o)
{
	if (is_stale(a, o)) {
		report(a, "update", 409);
		conflict(a->call);
		return;
	}
	apiserver_scale(o, "preheat", value_int(a->body, "spec>replicas"));
	report(a, "update", 200);
	answer_scale(a, o);
}

bool apiserver_selects(const struct value *labels, const struct value *object)
{
	const struct value *l = labels ? labels->first : NULL;

	while (l) {
		const struct value *has = value_at(object, "metadata>labels"), *m = has ? has->first : NULL;
		while (m && strcmp(m->key, l->key) != 0)
			m = m->next;
		if (!m || strcmp(m->text, l->text) != 0)
			return false;
		l = l->next;
	}
	return labels && labels->first;
}

static bool is_healthy(const struct value *pod)
{
	const struct value *conditions = value_at(pod, "status>conditions");

	for (const struct value *c = conditions ? conditions->first : NULL; c; c = c->next)
		if (value_is(c, "type", "Ready"))
			return value_is(c, "status", "True") && !value_at(pod, "metadata>deletionTimestamp");
	return false;
}

/* maxUnavailable: a number or a share, rounded up, of the pods that there should be. */
int64_t apiserver_allowed(const struct object *budget)
{
	const struct value *selector = value_at(budget->value, "spec>selector>matchLabels");
	int64_t expected = 0, healthy = 0;
	bool has_deployment = false;

	for (const struct object *d = server.first[KIND_DEPLOYMENT]; d; d = d->next)
		if (value_equal(value_at(d->value, "spec>selector>matchLabels"), selector)) {
			expected = value_int(d->value, "spec>replicas");
			has_deployment = true;
		}
	for (const struct object *p = server.first[KIND_POD]; p; p = p->next) {
		healthy += apiserver_selects(selector, p->value) && is_healthy(p->value);
		expected += !has_deployment && apiserver_selects(selector, p->value); /* of another controller */
	}
	const char *text = value_text(budget->value, "spec>maxUnavailable");
	int64_t most = strtoll(text, NULL, 10);
	if (strchr(text, '%'))
		most = (most * expected + 99) / 100;
	int64_t allowed = healthy - (expected - most);
	return allowed > 0 ? allowed : 0;
}

static void begin_to_end(struct object *pod)
{
	char at[32];

	if (value_at(pod->value, "metadata>deletionTimestamp"))
		return;
	apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
	value_set_text(pod->value, "metadata>deletionTimestamp", at);
	value_set_int(pod->value, "metadata>deletionGracePeriodSeconds",
		      value_int(pod->value, "spec>terminationGracePeriodSeconds"));
	apiserver_changed(pod);
}

static bool is_budget_spent(const struct object *pod)
{
	for (const struct object *b = server.first[KIND_BUDGET]; b; b = b->next)
		if (!strcmp(b->space, pod->space) && is_healthy(pod->value) &&
		    apiserver_selects(value_at(b->value, "spec>selector>matchLabels"), pod->value) &&
		    !apiserver_allowed(b))
			return true;
	return false;
}

void apiserver_evict(struct object *pod)
{
	if (!is_budget_spent(pod))
		begin_to_end(pod);
}

static void evict(const struct asked *a, struct object *pod)
{
	const char *uid = value_text(a->body, "deleteOptions>preconditions>uid");
	const char *cause = is_budget_spent(pod) ? "DisruptionBudget" : NULL;

	if (*uid && strcmp(uid, pod->uid) != 0) {
		report(a, "create", 409);
		refuse(a->call, 409, "Conflict", "the UID in the precondition differs", NULL);
		return;
	}
	const char *version = value_text(a->body, "deleteOptions>preconditions>resourceVersion");
	if (*version && !value_is(pod->value, "metadata>resourceVersion", version)) {
		report(a, "create", 409);
		refuse(a->call, 409, "Conflict", "the ResourceVersion in the precondition differs", NULL);
		return;
	}
	report(a, "create", cause ? 429 : 201);
	if (cause) {
		refuse(a->call, 429, "TooManyRequests",
		       "Cannot evict pod as it would violate the pod's disruption budget.", cause);
		return;
	}
	if (!value_at(a->body, "deleteOptions>dryRun"))
		begin_to_end(pod);
	wire_answer(a->call, 201, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
}

static void create(const struct asked *a)
{
	struct value *v = value_copy(a->body);

	if (kinds[a->kind].is_namespaced)
		value_set_text(v, "metadata>namespace", a->space);
	if (a->kind == KIND_POD)
		value_set(v, "status", value_of("{'phase':'Pending'}"));
	const char *name = value_text(v, "metadata>name");
	bool is_there = apiserver_find(a->kind, a->space, name);
	struct asked named = *a;
	snprintf(named.name, sizeof named.name, "%s", name);
	report(&named, "create", is_there ? 409 : 201);
	if (is_there) {
		value_free(v);
		refuse(a->call, 409, "AlreadyExists", "it exists already", NULL);
		return;
	}
	answer_value(a->call, 201, apiserver_create(a->kind, v)->value);
}

/* Nothing but the status by its subresource, nothing of the status without it. */
static void patch(const struct asked *a, struct object *o)
{
	struct value *before = value_copy(o->value);

	if (is_stale(a, o)) {
		value_free(before);
		report(a, "patch", 409);
		conflict(a->call);
		return;
	}
	value_merge(o->value, a->body);
	value_set(o->value, "metadata>resourceVersion", value_copy(value_at(before, "metadata>resourceVersion")));
	if (o->kind == KIND_WARM_POOL && !value_equal(value_at(before, "spec"), value_at(o->value, "spec")))
		value_set_int(o->value, "metadata>generation", value_int(before, "metadata>generation") + 1);
	bool is_news = !value_equal(before, o->value);
	value_free(before);
	if (is_news)
		apiserver_changed(o);
	else
		settle_names(o);
	report(a, "patch", 200);
	answer_value(a->call, 200, o->value);
}

static void put(const struct asked *a, struct object *o)
{
	struct value *v;

	if (is_stale(a, o)) {
		report(a, "update", 409);
		conflict(a->call);
		return;
	}
	v = value_copy(a->body);
	value_set(v, "metadata>uid", value_copy(value_at(o->value, "metadata>uid")));
	value_set(v, "metadata>creationTimestamp", value_copy(value_at(o->value, "metadata>creationTimestamp")));
	value_free(o->value);
	o->value = v;
	apiserver_changed(o);
	report(a, "update", 200);
	answer_value(a->call, 200, o->value);
}

static void delete (const struct asked *a, struct object *o)
{
	const char *uid = value_text(a->body, "preconditions>uid");

	if (*uid && strcmp(uid, o->uid) != 0) {
		report(a, "delete", 409);
		refuse(a->call, 409, "Conflict", "the UID in the precondition differs", NULL);
		return;
	}
	const char *version = value_text(a->body, "preconditions>resourceVersion");
	if (*version && !value_is(o->value, "metadata>resourceVersion", version)) {
		report(a, "delete", 409);
		refuse(a->call, 409, "Conflict", "the ResourceVersion in the precondition differs", NULL);
		return;
	}
	report(a, "delete", 200);
	if (o->kind == KIND_POD && *value_text(o->value, "spec>nodeName"))
		begin_to_end(o);
	else
		apiserver_delete(o);
	wire_answer(a->call, 200, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
}

/* What the role of a controller has no right to, as of a subresource that is written in another way. */
static bool is_forbidden(const struct asked *a)
{
	const char *method = a->call->method;
	static const struct {
		const char *method, *verb;
	} verbs[] = { { "PATCH", "patch" }, { "PUT", "update" }, { "POST", "create" }, { "DELETE", "delete" } };
	const char *may = !strcmp(a->sub, "eviction") ? "POST" : !strcmp(a->sub, "scale") ? "PUT" : method;
	size_t i = 0;

	if (!strcmp(method, may) || !strcmp(method, "GET"))
		return false;
	while (strcmp(verbs[i].method, method) != 0)
		i++;
	report(a, verbs[i].verb, 403);
	refuse(a->call, 403, "Forbidden", "the role of preheat does not allow it", NULL);
	return true;
}

static void serve_object(const struct asked *a)
{
	const char *method = a->call->method;
	struct object *o = apiserver_find(a->kind, a->space, a->name);
	bool is_apply = !strcmp(method, "PATCH") && a->query && strstr(a->query, "fieldManager=");

	if (!o && is_apply)
		create(a);
	else if (!o)
		not_found(a->call);
	else if (is_forbidden(a))
		return;
	else if (!strcmp(a->sub, "eviction"))
		evict(a, o);
	else if (!strcmp(a->sub, "scale") && strcmp(method, "GET") != 0)
		write_scale(a, o);
	else if (!strcmp(a->sub, "scale"))
		answer_scale(a, o);
	else if (!strcmp(method, "GET"))
		answer_value(a->call, 200, o->value);
	else if (!strcmp(method, "PATCH"))
		patch(a, o);
	else if (!strcmp(method, "PUT"))
		put(a, o);
	else
		delete (a, o);
}

static void serve_collection(const struct asked *a)
{
	if (!strcmp(a->call->method, "POST"))
		create(a);
	else if (a->query && strstr(a->query, "watch=true"))
		watch(a->call, a->kind, a->is_silent, a->query);
	else
		list(a->call, a->kind, a->is_silent, a->space);
}

/* "/apis/apps/v1": the kinds that a group serves. */
static bool serve_discovery(struct wire_call *c, const char *path)
{
	struct buf text = { 0 };
	bool is_known = false;

	buf_text(&text, "{\"kind\":\"APIResourceList\",\"resources\":[");
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (!strcmp(kinds[i].root, path)) {
			buf_printf(&text, "%s{\"name\":\"%s\",\"kind\":\"%s\",\"namespaced\":%s}", is_known ? "," : "",
				   kinds[i].plural, kinds[i].kind, kinds[i].is_namespaced ? "true" : "false");
			if (i == KIND_DEPLOYMENT)
				buf_text(&text,
					 ",{\"name\":\"deployments/scale\",\"kind\":\"Scale\",\"namespaced\":true}");
			is_known = true;
		}
	buf_text(&text, "]}");
	if (is_known)
		wire_answer(c, 200, NULL, text.text);
	buf_release(&text);
	return is_known;
}

/* What is in front of the next '/'; "" at the end. */
static void take_part(const char **path, char *room, size_t size)
{
	size_t len;

	*path += **path == '/';
	len = strcspn(*path, "/");
	snprintf(room, size, "%.*s", (int)len, *path);
	*path += len;
}

static bool find_kind(struct asked *a, const char *path)
{
	char plural[64];

	for (size_t i = 0; i < KIND_COUNT; i++) {
		const char *rest = path;
		size_t len = strlen(kinds[i].root);
		if (strncmp(path, kinds[i].root, len) != 0 || path[len] != '/')
			continue;
		rest += len;
		if (!strncmp(rest, "/namespaces/", 12)) {
			rest += 11;
			take_part(&rest, a->space, sizeof a->space);
		}
		take_part(&rest, plural, sizeof plural);
		if (strcmp(plural, kinds[i].plural) != 0) {
			a->space[0] = '\0';
			continue;
		}
		a->kind = (enum kind)i;
		take_part(&rest, a->name, sizeof a->name);
		take_part(&rest, a->sub, sizeof a->sub);
		return true;
	}
	/* the old form of events, of which no controller here writes any */
	a->is_silent = !strncmp(path, "/api/v1/events", 14);
	a->kind = KIND_EVENT;
	return a->is_silent;
}

static bool strikes(int permille)
{
	return permille && random_next(wire_random()) % 1000 < (uint64_t)permille;
}

void apiserver_serve(struct wire_call *c)
{
	struct asked a = { .call = c };
	char path[512];

	if (server.faults.is_away) {
		wire_cut(c);
		return;
	}
	if (strikes(server.faults.refuse_permille) || strikes(server.faults.throttle_permille)) {
		bool is_throttle = server.faults.throttle_permille;
		refuse(c, is_throttle ? 429 : 500, is_throttle ? "TooManyRequests" : "InternalError", "not now", NULL);
		return;
	}
	snprintf(path, sizeof path, "%.*s", (int)strcspn(c->path, "?"), c->path);
	a.query = strchr(c->path, '?');
	if (serve_discovery(c, path))
		return;
	if (!find_kind(&a, path)) {
		not_found(c);
		return;
	}
	if (a.kind == KIND_SLICE && server.faults.refuses_slices && strcmp(c->method, "GET") != 0) {
		refuse(c, 500, "InternalError", "not now", NULL);
		return;
	}
	if (a.kind == KIND_AUTOSCALER && server.faults.hides_scalers) {
		refuse(c, 403, "Forbidden", "horizontalpodautoscalers.autoscaling is forbidden", NULL);
		return;
	}
	a.body = *c->body ? value_parse(c->body, strlen(c->body)) : NULL;
	if (a.name[0])
		serve_object(&a);
	else
		serve_collection(&a);
	value_free(a.body);
}

void apiserver_begin(void)
{
	memset(&server, 0, sizeof server);
	for (size_t i = 0; i < KIND_COUNT; i++)
		server.end[i] = &server.first[i];
	server.version = 100;
	wire_host(APISERVER, apiserver_serve);
	timer_start(NULL, &server.watch_timer, 5 * SECOND, pass_watches);
}

void apiserver_end(void)
{
	timer_stop(&server.watch_timer);
	for (size_t k = 0; k < KIND_COUNT; k++)
		while (server.first[k]) {
			struct object *o = server.first[k];
			server.first[k] = o->next;
			value_free(o->value);
			free(o->extra);
			free(o);
		}
	for (size_t i = 0; i < HISTORY; i++)
		free(server.changes[i].line);
	while (server.watches) {
		struct watching *w = server.watches;
		server.watches = w->next;
		w->call->gone = NULL;
		free(w);
	}
	memset(&server, 0, sizeof server);
}
