#include "providers/kubernetes/group.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "providers/kubernetes/writers.h"
#include "providers/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_SIZE = 500, PAGES_MOST = 100, MACHINES_MOST = 10000 };

/* The annotation that keeps the token, so that a repeat lowers nothing twice. */
#define OPERATION_ANNOTATION "preheat.dev/operation"

/* What an owner takes at most, as a rule, until it has acted on another size. */
#define OWNER_ACTS (1 * SECOND)
/* How often it is waited for while it makes nothing, before what it was asked for is taken for stuck. */
enum { OWNER_LOOKS = 3 };

/* What we write into the annotation of a machine that shall go. */
#define VICTIM_MARK "preheat"

/* A machine that its controller will take first when the size falls, and what the annotation says. */
struct marked {
	const char *id, *mark;
};

/* Machines in pages; zeroed at first, in the arena. */
struct machine_list {
	struct machine *machines;
	size_t count, room;
	struct launch_failure *failures;
	size_t failure_count;
	struct marked *marked;
	size_t marked_count;
	const char **starting; /* NodeClaims that are no node with pods yet: Karpenter takes them first */
	size_t starting_count;
	const char *replaced; /* a NodeClaim that Karpenter is replacing by another; NULL: none */
	const char *drifted;  /* one that it will replace once it may; NULL: none */
	const char *more;     /* the token of the next page; "" after the last */
};

/* What the cluster's API says of groups that are objects there: pure reading. */

struct owner_text {
	struct decoded_text replicas_raw;
	int64_t replicas, min, max, generation, observed;
	struct decoded_list conditions, writers;
	const char *resource_version, *operation, *paused, *rollout, *topology;
	bool is_paused;
};

struct condition_text {
	const char *type, *status, *reason, *message;
	millis at;
};

struct machine_text {
	struct machine machine;
	const char *phase, *failure, *failure_message, *mark;
	const char *old_failure, *old_failure_message; /* where v1beta2 of Cluster API keeps what v1beta1 said */
	millis deleted;
	struct decoded_list conditions;
};

struct page_text {
	struct decoded_list items;
	const char *more;
};

static const struct field condition_fields[] = {
	FIELD(struct condition_text, type, FIELD_STRING, "type"),
	FIELD(struct condition_text, status, FIELD_STRING, "status"),
	FIELD(struct condition_text, reason, FIELD_STRING, "reason"),
	FIELD(struct condition_text, message, FIELD_STRING, "message"),
	FIELD(struct condition_text, at, FIELD_TIME, "lastTransitionTime"),
};
static const struct record_spec condition_record = RECORD(struct condition_text, condition_fields);

#define OWNER_ROWS                                                                                           \
	FIELD(struct owner_text, replicas_raw, FIELD_RAW, "spec>replicas"),                                  \
		FIELD(struct owner_text, resource_version, FIELD_STRING, "metadata>resourceVersion"),        \
		FIELD_LIST_OF(struct owner_text, writers, "metadata>managedFields", replicas_writer_record), \
		FIELD(struct owner_text, operation, FIELD_STRING, "metadata>annotations>" OPERATION_ANNOTATION)

static const struct field node_pool_fields[] = {
	OWNER_ROWS,
	FIELD(struct owner_text, max, FIELD_COUNT, "spec>limits>nodes"),
};
static const struct field deployment_fields[] = {
	OWNER_ROWS,
	FIELD(struct owner_text, topology, FIELD_STRING, "metadata>labels>topology.cluster.x-k8s.io/deployment-name"),
	FIELD(struct owner_text, generation, FIELD_INT, "metadata>generation"),
	FIELD(struct owner_text, observed, FIELD_INT, "status>observedGeneration"),
	FIELD_LIST_OF(struct owner_text, conditions, "status>conditions", condition_record),
	FIELD(struct owner_text, rollout, FIELD_STRING, "spec>rollout>strategy>type"),
	FIELD(struct owner_text, is_paused, FIELD_BOOL, "spec>paused"),
	FIELD(struct owner_text, paused, FIELD_STRING, "metadata>annotations>cluster.x-k8s.io/paused"),
	FIELD(struct owner_text, min, FIELD_COUNT,
	      "metadata>annotations>cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"),
	FIELD(struct owner_text, max, FIELD_COUNT,
	      "metadata>annotations>cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"),
};
static const struct record_spec owner_records[] = {
	[OBJECT_NODE_POOL] = RECORD(struct owner_text, node_pool_fields),
	[OBJECT_MACHINE_DEPLOYMENT] = RECORD(struct owner_text, deployment_fields),
};

#define MACHINE_ROWS                                                                                       \
	FIELD(struct machine_text, machine.id, FIELD_STRING, "metadata>name"),                             \
		FIELD(struct machine_text, machine.launched_at, FIELD_TIME, "metadata>creationTimestamp"), \
		FIELD(struct machine_text, deleted, FIELD_TIME, "metadata>deletionTimestamp")
#define NODE_LABEL_ROWS                                                                                        \
	FIELD(struct machine_text, machine.zone, FIELD_STRING, "metadata>labels>topology.kubernetes.io/zone"), \
		FIELD(struct machine_text, machine.instance_type, FIELD_STRING,                                \
		      "metadata>labels>node.kubernetes.io/instance-type")

static const struct field node_claim_fields[] = {
	MACHINE_ROWS,
	NODE_LABEL_ROWS,
	FIELD(struct machine_text, machine.provider_id, FIELD_STRING, "status>providerID"),
	FIELD_LIST_OF(struct machine_text, conditions, "status>conditions", condition_record),
};
static const struct field machine_fields[] = {
	MACHINE_ROWS,
	FIELD(struct machine_text, machine.provider_id, FIELD_STRING, "spec>providerID"),
	FIELD(struct machine_text, mark, FIELD_STRING, "metadata>annotations>cluster.x-k8s.io/delete-machine"),
	FIELD(struct machine_text, machine.zone, FIELD_STRING, "spec>failureDomain"),
	FIELD(struct machine_text, phase, FIELD_STRING, "status>phase"),
	FIELD(struct machine_text, failure, FIELD_STRING, "status>failureReason"),
	FIELD(struct machine_text, failure_message, FIELD_STRING, "status>failureMessage"),
	FIELD(struct machine_text, old_failure, FIELD_STRING, "status>deprecated>v1beta1>failureReason"),
	FIELD(struct machine_text, old_failure_message, FIELD_STRING, "status>deprecated>v1beta1>failureMessage"),
};
static const struct field node_fields[] = {
	MACHINE_ROWS,
	NODE_LABEL_ROWS,
	FIELD(struct machine_text, machine.provider_id, FIELD_STRING, "spec>providerID"),
};
static const struct record_spec machine_records[] = {
	[OBJECT_NODE_POOL] = RECORD(struct machine_text, node_claim_fields),
	[OBJECT_MACHINE_DEPLOYMENT] = RECORD(struct machine_text, machine_fields),
	[OBJECT_NODE] = RECORD(struct machine_text, node_fields),
};
#define PAGE(kind)                                                                        \
	{                                                                                 \
		{ .path = "items",                                                        \
		  .type = FIELD_LIST,                                                     \
		  .offset = offsetof(struct page_text, items),                            \
		  .required = true,                                                       \
		  .of = &machine_records[kind] },                                         \
			FIELD(struct page_text, more, FIELD_STRING, "metadata>continue"), \
	}
static const struct field page_fields[OBJECT_KIND_COUNT][2] = {
	[OBJECT_NODE_POOL] = PAGE(OBJECT_NODE_POOL),
	[OBJECT_MACHINE_DEPLOYMENT] = PAGE(OBJECT_MACHINE_DEPLOYMENT),
	[OBJECT_NODE] = PAGE(OBJECT_NODE),
};

static const struct condition_text *condition(const struct decoded_list *list, const char *type)
{
	const struct condition_text *items = list->items;

	for (size_t i = 0; i < list->count; i++)
		if (items[i].type && !strcmp(items[i].type, type))
			return &items[i];
	return NULL;
}

static bool holds(const struct decoded_list *list, const char *type)
{
	const struct condition_text *c = condition(list, type);

	return c && c->status && !strcmp(c->status, "True");
}

/* Absent, or a whole number as Kubernetes has it. */
static bool read_replicas(struct decoded_text raw, struct owner_object *out, struct error *e)
{
	char digits[24] = "", *end;

	if (!raw.text || (raw.len == 4 && !memcmp(raw.text, "null", 4)))
		return true;
	if (raw.len < sizeof digits)
		memcpy(digits, raw.text, raw.len);
	out->replicas = strtoll(digits, &end, 10);
	out->has_replicas = true;
	return (digits[0] && !*end && out->replicas >= 0 && out->replicas <= INT32_MAX) ||
	       error_set(e, ERROR_INVALID, "spec>replicas: found %.*s; allowed: a whole number from 0 to %d",
			 (int)(raw.len < 40 ? raw.len : 40), raw.text, INT32_MAX);
}

static const char *writer_of(const struct owner_text *t, struct arena *a)
{
	const char *name = replicas_writer_last(&t->writers);

	return name && strcmp(name, OWN_FIELD_MANAGER) != 0 ? text_printf(a, "field manager %.100s", name) : "";
}

static bool read_owner(enum object_kind kind, const char *text, size_t len, struct arena *a, struct owner_object *out,
		       struct error *e)
{
	struct owner_text t;
	struct owner_object o = { 0 };

	if (!text_decode(&owner_records[kind], text, len, a, &t, e) || !read_replicas(t.replicas_raw, &o, e))
		return false;
	if (t.min < 0 || t.max < 0 || (t.max && t.min > t.max))
		return error_set(e, ERROR_INVALID, "its sizes: found %" PRId64 " to %" PRId64, t.min, t.max);
	o.min = t.min;
	o.max = t.max;
	o.is_bounded = kind == OBJECT_MACHINE_DEPLOYMENT && t.max;
	o.topology = text_or_empty(t.topology);
	o.resized_by = writer_of(&t, a);
	o.resource_version = text_or_empty(t.resource_version);
	o.operation = text_or_empty(t.operation);
	o.is_paused = t.is_paused || t.paused;
	/* With OnDelete old machines stay as long as somebody likes. */
	o.is_rolling = (t.observed && t.observed < t.generation) ||
		       (holds(&t.conditions, "RollingOut") && strcmp(text_or_empty(t.rollout), "OnDelete") != 0);
	*out = o;
	return true;
}

static bool is_one_of(const char *text, const char *const *list)
{
	for (; text && *list; list++)
		if (!strcmp(text, *list))
			return true;
	return false;
}

static enum machine_state state_of(enum object_kind kind, const struct machine_text *t)
{
	static const char *const there[] = { "Provisioned", "Running", NULL }, *const going[] = { "Deleting", "Deleted",
												  NULL };

	if (t->deleted || is_one_of(t->phase, going))
		return MACHINE_TERMINATING;
	if (kind == OBJECT_NODE || is_one_of(t->phase, there))
		return MACHINE_RUNNING;
	return holds(&t->conditions, "Launched") ? MACHINE_RUNNING : MACHINE_PENDING;
}

/* Karpenter says why a launch failed in the condition, Cluster API in the status. */
static bool failure_of(const struct machine_text *t, struct launch_failure *out)
{
	const struct condition_text *c = condition(&t->conditions, "Launched");
	const char *failure = t->failure ? t->failure : t->old_failure;
	bool is_refused = c && c->status && c->reason && !strcmp(c->status, "False");

	if (!is_refused && !failure)
		return false;
	const char *code = is_refused ? c->reason : failure;
	const char *message = is_refused ? c->message : t->failure ? t->failure_message : t->old_failure_message;
	millis at = is_refused ? c->at : t->machine.launched_at;
	*out = (struct launch_failure){ .id = at,
					.at = at,
					.kind = strstr(code, "InsufficientCapacity") ? ERROR_STOCKOUT
										     : ERROR_UNAVAILABLE,
					.message = message ? message : code,
					.count = 1,
					.zone = text_or_empty(t->machine.zone),
					.instance_type = text_or_empty(t->machine.instance_type) };
	return true;
}

static void make_room(struct machine_list *list, struct arena *a)
{
	struct machine_list more = *list;

	if (list->count < list->room)
		return;
	more.room = list->room ? 2 * list->room : 64;
	more.machines = arena_array(a, struct machine, more.room);
	more.failures = arena_array(a, struct launch_failure, more.room);
	more.marked = arena_array(a, struct marked, more.room);
	more.starting = arena_array(a, const char *, more.room);
	if (list->room) {
		memcpy(more.machines, list->machines, list->count * sizeof *more.machines);
		memcpy(more.failures, list->failures, list->failure_count * sizeof *more.failures);
		memcpy(more.marked, list->marked, list->marked_count * sizeof *more.marked);
		memcpy(more.starting, list->starting, list->starting_count * sizeof *more.starting);
	}
	*list = more;
}

static bool take(enum object_kind kind, const struct machine_text *t, struct arena *a, struct machine_list *list,
		 struct error *e)
{
	struct machine m = t->machine;

	if (!m.id || !*m.id)
		return error_set(e, ERROR_INVALID, "a machine without a name");
	if (list->count == MACHINES_MOST)
		return error_set(e, ERROR_INVALID, "more than %d machines", MACHINES_MOST);
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->machines[i].id, m.id))
			return error_set(e, ERROR_INVALID, "machine %.100s is listed twice", m.id);
	m.provider_id = text_or_empty(m.provider_id);
	m.zone = text_or_empty(m.zone);
	m.instance_type = text_or_empty(m.instance_type);
	m.state = state_of(kind, t);
	make_room(list, a);
	list->machines[list->count++] = m;
	list->failure_count += failure_of(t, &list->failures[list->failure_count]);
	if (m.state == MACHINE_TERMINATING)
		return true;
	if (t->mark)
		list->marked[list->marked_count++] = (struct marked){ m.id, t->mark };
	if (!m.provider_id[0] || (condition(&t->conditions, "Initialized") && !holds(&t->conditions, "Initialized")))
		list->starting[list->starting_count++] = m.id;
	if (holds(&t->conditions, "DisruptionReason"))
		list->replaced = m.id;
	if (holds(&t->conditions, "Drifted"))
		list->drifted = m.id;
	return true;
}

static bool read_machines(enum object_kind kind, const char *text, size_t len, struct arena *a,
			  struct machine_list *list, struct error *e)
{
	const struct record_spec spec = { "", sizeof(struct page_text), page_fields[kind], 2 };
	struct page_text t;

	if (!text_decode(&spec, text, len, a, &t, e))
		return false;
	const struct machine_text *items = t.items.items;
	for (size_t i = 0; i < t.items.count; i++)
		if (!take(kind, &items[i], a, list, e))
			return false;
	list->more = text_or_empty(t.more);
	return true;
}

static bool read_version(const char *text, size_t len, struct arena *a, const char **out, struct error *e)
{
	static const struct field fields[] = { { .path = "preferredVersion>version", .type = FIELD_STRING } };
	static const struct record_spec spec = RECORD(const char *, fields);
	const char *version;

	if (!text_decode(&spec, text, len, a, &version, e))
		return false;
	if (!version || !*version)
		return error_set(e, ERROR_INVALID, "the server tells no preferred version");
	*out = version;
	return true;
}

/* What we wish of a group that nobody is asked for. Lives as long as the provider. */
struct wish {
	char *group;
	int64_t size;	/* 0 once that many were there */
	char **leaving; /* machines that were released, and are the other autoscaler's to remove */
	size_t leaving_count;
};

struct objects {
	struct provider base;
	const struct object_provider *kind;
	struct cluster_door cluster;
	struct wish *wishes; /* of groups without an owner */
	size_t wish_count;
};

struct object_call {
	struct exchange base;
	struct object_group group;
	struct owner_object owner;
	struct machine_list list;
	const char **victims;
	size_t victim_count, at;
	struct cluster_call request;
	struct buf path, body;
	int pages;
	void (*then)(struct object_call *x);
	size_t spared; /* of the victims: the size fell, and others went in their place */
	bool is_asking;
	bool has_lowered;
	int looks;	   /* at an owner that is still to make machines, since it made one */
	int64_t made;	   /* as of the last such look */
	bool is_gone_fine; /* a 404 is what we want */
	bool is_told;	   /* nothing is to be asked */
};

static struct objects *objects_of(const struct object_call *x)
{
	return (struct objects *)x->base.provider;
}

static const struct object_provider *kind_of(const struct object_call *x)
{
	return objects_of(x)->kind;
}

/* Ends the call with what stands in its error. */
static void finish(struct object_call *x)
{
	exchange_finish(&x->base);
}

static void *grown_by_one(void *items, size_t count, size_t size)
{
	return xrealloc(items, count + 1, size);
}

/* Made when there is none; valid until the next one is made. */
static struct wish *wish_of(struct objects *p, const char *group)
{
	for (size_t i = 0; i < p->wish_count; i++)
		if (!strcmp(p->wishes[i].group, group))
			return &p->wishes[i];
	p->wishes = grown_by_one(p->wishes, p->wish_count, sizeof *p->wishes);
	p->wishes[p->wish_count] = (struct wish){ .group = xstrdup(group) };
	return &p->wishes[p->wish_count++];
}

/* What a call that changes something makes of it. */
static void wish_change(struct wish *w, const struct provider_call *c)
{
	if (c->verb == PROVIDER_GROW) {
		w->size = c->desired > w->size ? c->desired : w->size;
		return;
	}
	if (c->verb == PROVIDER_CANCEL) {
		w->size = c->desired;
		return;
	}
	for (size_t i = 0; i < c->id_count; i++) {
		if (text_is_among(c->ids[i], (const char *const *)w->leaving, w->leaving_count))
			continue;
		w->leaving = grown_by_one(w->leaving, w->leaving_count, sizeof *w->leaving);
		w->leaving[w->leaving_count++] = xstrdup(c->ids[i]);
		w->size -= w->size > 0;
	}
}

static bool is_listed(const struct machine_list *list, const char *id)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->machines[i].id, id))
			return true;
	return false;
}

/* Machines that leave are shown as such, those gone forgotten. Returns the size that is asked for. */
static int64_t wish_settle(struct wish *w, struct machine_list *list)
{
	size_t kept = 0;
	int64_t there = 0;

	for (size_t i = 0; i < w->leaving_count; i++)
		if (is_listed(list, w->leaving[i]))
			w->leaving[kept++] = w->leaving[i];
		else
			free(w->leaving[i]);
	w->leaving_count = kept;
	for (size_t i = 0; i < list->count; i++) {
		struct machine *m = &list->machines[i];
		if (text_is_among(m->id, (const char *const *)w->leaving, w->leaving_count))
			m->state = MACHINE_TERMINATING;
		there += m->state != MACHINE_TERMINATING;
	}
	if (there >= w->size)
		w->size = 0; /* they came; fewer later is the other autoscaler's doing */
	return there > w->size ? there : w->size;
}

static void wishes_free(struct objects *p)
{
	for (size_t i = 0; i < p->wish_count; i++) {
		for (size_t k = 0; k < p->wishes[i].leaving_count; k++)
			free(p->wishes[i].leaving[k]);
		free(p->wishes[i].leaving);
		free(p->wishes[i].group);
	}
	free(p->wishes);
}

bool is_object_name(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return len > 0 && len <= 253 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len && name[0] != '.';
}

bool object_name_check(const char *key, const char *name, const char *allowed, struct error *e)
{
	char shown[QUOTE_ROOM];
	const char *text = text_or_empty(name);

	return is_object_name(text) || error_set(e, ERROR_INVALID, "settings: %s: found %s; allowed: %s", key,
						 quote(shown, text, strlen(text)), allowed);
}

static int64_t machines_there(const struct machine_list *list)
{
	int64_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->machines[i].state != MACHINE_TERMINATING;
	return count;
}

static void answered(struct cluster_call *r)
{
	struct object_call *x = r->user;
	struct provider_call *c = x->base.call;

	x->is_asking = false;
	c->retry_after = r->retry_after;
	if (x->base.is_cancelled)
		error_set(&c->error, ERROR_CANCELLED, "cancelled");
	else if (r->error.kind != ERROR_NONE && !(x->is_gone_fine && r->error.kind == ERROR_NOT_FOUND))
		c->error = r->error;
	if (c->error.kind != ERROR_NONE)
		finish(x);
	else
		x->then(x);
}

/* Of the next request, whose body is empty so far. */
static void PRINTF(2, 3) write_path(struct object_call *x, const char *fmt, ...)
{
	va_list ap;

	buf_clear(&x->path);
	buf_clear(&x->body);
	va_start(ap, fmt);
	buf_vprintf(&x->path, fmt, ap);
	va_end(ap);
}

/* A request with what is in path and body, unless the call's time is over. */
static void ask(struct object_call *x, const char *method, void (*then)(struct object_call *))
{
	bool is_review = x->base.call->verb == PROVIDER_CHECK, changes = strcmp(method, "GET") != 0 && !is_review;
	const struct cluster_door *door = &objects_of(x)->cluster;

	if (loop_now(x->base.provider->loop) >= x->base.ends_at) {
		error_set(&x->base.call->error, ERROR_TIMEOUT, "not over in its time");
		finish(x);
		return;
	}
	x->then = then;
	x->is_asking = true;
	x->request = (struct cluster_call){ .method = method,
					    .path = x->path.text,
					    .body = x->body.len ? x->body.text : NULL,
					    .content_type = is_review ? NULL : "application/merge-patch+json",
					    .changes = changes,
					    .timeout = exchange_left(&x->base),
					    .done = answered,
					    .user = x };
	door->start(door->user, &x->request);
}

static bool fails(struct object_call *x, bool ok, const char *what)
{
	if (ok)
		return false;
	error_wrap(&x->base.call->error, "%s", what);
	finish(x);
	return true;
}

/* Of those named: there, and not going already; a start that is cancelled must not run by now. */
static void choose_victims(struct object_call *x)
{
	const struct provider_call *c = x->base.call;

	x->victims = arena_array(&x->base.call->arena, const char *, x->list.count + 1);
	for (size_t i = 0; i < x->list.count; i++) {
		const struct machine *m = &x->list.machines[i];
		if (text_is_among(m->id, c->ids, c->id_count) && m->state != MACHINE_TERMINATING &&
		    !(c->verb == PROVIDER_CANCEL && m->state == MACHINE_RUNNING))
			x->victims[x->victim_count++] = m->id;
	}
}

static int64_t others_marked(const struct object_call *x)
{
	int64_t count = 0;

	for (size_t i = 0; i < x->list.marked_count; i++)
		count += !text_is_among(x->list.marked[i].id, x->victims, x->victim_count);
	return count;
}

/*
 * Without those named; but whoever is not named and not marked to go keeps its place, whatever the size is: it may have
 * been lowered for the same machines before, by a call that nobody remembers.
 */
static int64_t size_without(const struct object_call *x)
{
	int64_t victims = (int64_t)x->victim_count, staying = machines_there(&x->list) - victims;
	int64_t size = x->owner.replicas - victims, least = staying - others_marked(x);

	size = size > least ? size : least;
	size = size < x->owner.replicas ? size : x->owner.replicas;
	if (x->base.call->verb != PROVIDER_CANCEL)
		return size > 0 ? size : 0;
	least = x->base.call->desired > staying ? x->base.call->desired : staying;
	least = x->owner.min > least ? x->owner.min : least;
	return size > least ? least : size > 0 ? size : 0;
}

static void delete_next(struct object_call *x)
{
	if (!kind_of(x)->deletes_victims || x->at == x->victim_count) {
		if (x->spared)
			error_set(&x->base.call->error, ERROR_CONFLICT,
				  x->list.replaced ? "NodeClaim %.100s stands: Karpenter began to replace one"
						   : "NodeClaim %.100s stands: Karpenter took another in its place",
				  x->victims[x->victim_count]);
		finish(x);
		return;
	}
	write_path(x, "%s/%s", x->group.list, x->victims[x->at++]);
	x->is_gone_fine = true;
	ask(x, "DELETE", delete_next);
}

/*
 * Whether this very call lowered the size before, and its answer was lost. Where no NodeClaim is too many the lower
 * size was used up by another one that Karpenter took.
 */
static bool is_repeat(const struct object_call *x)
{
	return !strcmp(x->owner.operation, x->base.call->token) &&
	       !(kind_of(x)->deletes_victims && machines_there(&x->list) == x->owner.replicas);
}

static void get_page(struct object_call *x);

static void forget_list(struct object_call *x)
{
	x->list = (struct machine_list){ 0 };
	x->pages = 0;
	x->victim_count = 0;
}

static void look_again(struct timer *t)
{
	struct object_call *x = t->user;

	forget_list(x);
	get_page(x);
}

/* As many of those named as are still too many; none while one that is too many may be a replacement. */
static void take_rest(struct object_call *x)
{
	int64_t excess = x->list.replaced ? 0 : machines_there(&x->list) - x->owner.replicas;
	size_t most = excess > 0 ? (size_t)excess : 0;

	choose_victims(x);
	if (x->victim_count > most) {
		x->spared = x->victim_count - most;
		x->victim_count = most;
	}
	delete_next(x);
}

/*
 * Karpenter takes at once as many NodeClaims as are too many now, those without pods first, so mostly those named.
 * Whoever deletes a claim at the same moment loses two for a size that fell by one.
 */
static void lowered(struct object_call *x)
{
	bool acts = kind_of(x)->deletes_victims && machines_there(&x->list) > x->owner.replicas;

	if (acts)
		timer_start(x->base.provider->loop, &x->base.timer, OWNER_ACTS, look_again);
	else
		delete_next(x);
}

/* Size and token in one write: a repeat finds its token and lowers nothing. */
static void lower(struct object_call *x)
{
	int64_t size = size_without(x);

	x->at = 0;
	if (size == x->owner.replicas || is_repeat(x)) {
		delete_next(x);
		return;
	}
	write_path(x, "%s", x->group.owner);
	buf_text(&x->body, "{\"metadata\":{\"resourceVersion\":");
	json_write_text(x->owner.resource_version, &x->body);
	buf_text(&x->body, ",\"annotations\":{\"" OPERATION_ANNOTATION "\":");
	json_write_text(x->base.call->token, &x->body);
	buf_printf(&x->body, "}},\"spec\":{\"replicas\":%" PRId64 "}}", size);
	x->is_gone_fine = false;
	x->has_lowered = true;
	x->owner.replicas = size;
	ask(x, "PATCH", lowered);
}

/* `value`: as JSON; null takes the mark away. */
static void mark(struct object_call *x, const char *machine, const char *value, void (*then)(struct object_call *x))
{
	write_path(x, "%s/%s", x->group.list, machine);
	buf_printf(&x->body, "{\"metadata\":{\"annotations\":{\"%s\":%s}}}", kind_of(x)->victim_annotation, value);
	x->is_gone_fine = true;
	ask(x, "PATCH", then);
}

/* By the answer to its mark. */
static bool runs_by_now(struct object_call *x)
{
	struct provider_call *c = x->base.call;
	struct machine_text t;
	struct error e = { 0 };

	return x->request.error.kind == ERROR_NONE &&
	       text_decode(&machine_records[kind_of(x)->kind], x->request.response, x->request.response_len, &c->arena,
			   &t, &e) &&
	       state_of(kind_of(x)->kind, &t) == MACHINE_RUNNING;
}

static void mark_next(struct object_call *x);

/* A start that was to be cancelled, whose node came since it was listed, stays. */
static void marked(struct object_call *x)
{
	if (x->base.call->verb != PROVIDER_CANCEL || !runs_by_now(x)) {
		mark_next(x);
		return;
	}
	const char *machine = x->victims[--x->at];
	x->victims[x->at] = x->victims[--x->victim_count];
	mark(x, machine, "null", mark_next);
}

static void mark_next(struct object_call *x)
{
	if (!kind_of(x)->victim_annotation || x->at == x->victim_count)
		lower(x);
	else
		mark(x, x->victims[x->at++], "\"" VICTIM_MARK "\"", marked);
}

/* A mark that an earlier call left on a machine that stayed: it would go in the place of those named. */
static void unmark_next(struct object_call *x)
{
	while (x->at < x->list.marked_count && text_is_among(x->list.marked[x->at].id, x->victims, x->victim_count))
		x->at++;
	if (x->at == x->list.marked_count) {
		x->at = 0;
		mark_next(x);
		return;
	}
	const struct marked *m = &x->list.marked[x->at++];
	if (strcmp(m->mark, VICTIM_MARK) != 0) {
		error_set(&x->base.call->error, ERROR_CONFLICT,
			  "machine %.100s has the annotation %s of another owner and would go first; do: take it away, "
			  "or let it go",
			  m->id, kind_of(x)->victim_annotation);
		finish(x);
		return;
	}
	mark(x, m->id, "null", unmark_next);
}

/*
 * What Karpenter began with a NodeClaim, as a sentence; NULL: nothing. It makes the other one first, beyond the size.
 * When it gives a replacement up it clears the condition, and may leave a claim too many of which nobody can tell what
 * it is for. It takes that away itself within a minute, before it tries again (pkg/controllers/disruption).
 */
static const char *owner_does(const struct object_call *x)
{
	const struct machine_list *list = &x->list;
	int64_t there = machines_there(list);
	struct arena *a = &x->base.call->arena;

	if (list->replaced)
		return text_printf(a,
				   "Karpenter replaces NodeClaim %.100s; kubectl describe nodeclaim %.100s tells why",
				   list->replaced, list->replaced);
	if (list->drifted && there > x->owner.replicas)
		return text_printf(a,
				   "NodeClaim %.100s drifted, and Karpenter has %" PRId64 " NodeClaims for a size of "
				   "%" PRId64 ", which it settles itself",
				   list->drifted, there, x->owner.replicas);
	return NULL;
}

/*
 * What a lower size would undo, false with ERROR_CONFLICT. When it falls below the NodeClaims, Karpenter's
 * deprovisioner takes those without a machine first, then those without pods, whatever else is named
 * (pkg/controllers/static/deprovisioning): a start that was paid for.
 * Cluster API spreads it over the old and the new machines of a rollout.
 */
static bool undoes_nothing(const struct object_call *x, int64_t size, struct error *e)
{
	const struct machine_list *list = &x->list;

	if (x->owner.is_rolling)
		return error_set(e, ERROR_CONFLICT, "it is rolling out");
	if (!kind_of(x)->deletes_victims || machines_there(list) <= size)
		return true;
	for (size_t i = 0; i < list->starting_count; i++)
		if (!text_is_among(list->starting[i], x->victims, x->victim_count))
			return error_set(e, ERROR_CONFLICT,
					 "NodeClaim %.100s is still starting and would be taken first",
					 list->starting[i]);
	return true;
}

static void read_group(struct object_call *x);

static void read_again(struct timer *t)
{
	struct object_call *x = t->user;

	forget_list(x);
	read_group(x);
}

/*
 * Of machines that the owner is still to make none can be marked. Had it made one by the time the size falls, it would
 * choose among all that have no node yet, also one that is about to get its own.
 */
static bool wait_for_owner(struct object_call *x, int64_t size)
{
	int64_t made = machines_there(&x->list);

	if (!kind_of(x)->victim_annotation || made >= x->owner.replicas ||
	    x->owner.replicas - size <= (int64_t)x->victim_count)
		return false;
	x->looks = made > x->made ? 0 : x->looks;
	x->made = made;
	if (x->looks++ == OWNER_LOOKS)
		return false;
	timer_start(x->base.provider->loop, &x->base.timer, OWNER_ACTS, read_again);
	return true;
}

/* Once the owner and its machines were read: against that version. */
static void shrink(struct object_call *x)
{
	struct error *e = &x->base.call->error;
	int64_t going = machines_there(&x->list) - x->owner.replicas;

	choose_victims(x);
	int64_t others = others_marked(x), size = size_without(x);
	bool lowers = size != x->owner.replicas && !is_repeat(x);
	if (lowers && wait_for_owner(x, size))
		return;
	const char *theirs = lowers || x->victim_count ? owner_does(x) : NULL;
	if (theirs)
		error_set(e, ERROR_CONFLICT, "%s", theirs);
	else if (lowers && !undoes_nothing(x, size, e))
		; /* said */
	else if (lowers && size < x->owner.min)
		error_set(e, ERROR_INVALID, "size %" PRId64 " would be below its min of %" PRId64 "; lower that", size,
			  x->owner.min);
	else if (lowers && going > 0 && others > going)
		error_set(e, ERROR_CONFLICT, "it is taking machines away");
	if (e->kind != ERROR_NONE)
		finish(x);
	else if (!lowers || going > 0)
		mark_next(x); /* others that are marked are on their way already */
	else
		unmark_next(x);
}

/* Through the scale subresource. */
static void grow(struct object_call *x)
{
	struct provider_call *c = x->base.call;

	c->is_outdated = provider_is_outdated(c, x->owner.replicas, &c->error);
	if (c->is_outdated || c->desired <= x->owner.replicas) {
		finish(x);
		return;
	}
	if (x->owner.max && c->desired > x->owner.max) {
		error_set(&c->error, ERROR_INVALID, "%" PRId64 " machines are above its max of %" PRId64, c->desired,
			  x->owner.max);
		finish(x);
		return;
	}
	write_path(x, "%s/scale", x->group.owner);
	buf_text(&x->body, "{\"metadata\":{\"resourceVersion\":");
	json_write_text(x->owner.resource_version, &x->body);
	buf_printf(&x->body, "},\"spec\":{\"replicas\":%" PRId64 "}}", c->desired);
	ask(x, "PATCH", finish);
}

/* What the API server lets us do, as it tells by reviews: these store nothing. */

struct review {
	bool is_allowed;
	const char *reason, *user;
};

static const struct field review_fields[] = {
	FIELD(struct review, is_allowed, FIELD_BOOL, "status>allowed"),
	FIELD(struct review, reason, FIELD_STRING, "status>reason"),
	FIELD(struct review, user, FIELD_STRING, "status>userInfo>username"),
};
static const struct record_spec review_record = RECORD(struct review, review_fields);

static bool read_review(struct object_call *x, struct review *out)
{
	struct provider_call *c = x->base.call;

	return text_decode(&review_record, x->request.response, x->request.response_len, &c->arena, out, &c->error) ||
	       error_wrap(&c->error, "a review's answer");
}

static void write_member(const char *name, const char *text, struct buf *out)
{
	json_write_comma(out);
	json_write_text(name, out);
	buf_text(out, ":");
	json_write_text(text, out);
}

static void got_right(struct object_call *x);

static void ask_right(struct object_call *x)
{
	const struct object_right *r = &kind_of(x)->rights[x->at];

	if (x->at == kind_of(x)->right_count) {
		finish(x);
		return;
	}
	write_path(x, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
	buf_text(&x->body, "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
			   "\"spec\":{\"resourceAttributes\":{");
	write_member("group", r->api_group, &x->body);
	write_member("resource", r->resource, &x->body);
	write_member("subresource", r->subresource, &x->body);
	write_member("verb", r->verb, &x->body);
	write_member("namespace", x->group.name_space, &x->body);
	write_member("name", r->is_of_owner ? x->group.name : "", &x->body);
	buf_text(&x->body, "}}}");
	ask(x, "POST", got_right);
}

static void got_right(struct object_call *x)
{
	const struct object_right *r = &kind_of(x)->rights[x->at];
	struct review said = { 0 };

	if (!read_review(x, &said)) {
		finish(x);
		return;
	}
	x->base.call->permissions[x->at++] = (struct permission){
		/* "patch nodepools/scale.karpenter.sh", as kubectl auth can-i has it */
		.action =
			text_printf(&x->base.call->arena, "%s %s%s%s%s%s", r->verb, r->resource,
				    *r->api_group ? "." : "", r->api_group, *r->subresource ? "/" : "", r->subresource),
		.purpose = r->purpose,
		.state = said.is_allowed ? PERMISSION_GRANTED : PERMISSION_DENIED,
		.message = said.reason ? said.reason : "",
	};
	x->base.call->permission_count = x->at;
	ask_right(x);
}

static void got_identity(struct object_call *x)
{
	struct review said = { 0 };

	/* Servers before Kubernetes 1.28 do not tell. */
	if (x->request.error.kind == ERROR_NONE && !read_review(x, &said)) {
		finish(x);
		return;
	}
	x->base.call->identity = said.user ? said.user : "whom the API server takes us for, which it does not tell";
	x->is_gone_fine = false;
	ask_right(x);
}

/* check.c */
static void check_rights(struct object_call *x)
{
	x->base.call->permissions = arena_array(&x->base.call->arena, struct permission, kind_of(x)->right_count);
	x->at = 0;
	x->is_gone_fine = true;
	write_path(x, "/apis/authentication.k8s.io/v1/selfsubjectreviews");
	buf_text(&x->body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}");
	ask(x, "POST", got_identity);
}

/* Times are whole seconds: those of one are one failure of several machines. */
static size_t merge_failures(struct launch_failure *f, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (kept && f[kept - 1].id == f[i].id)
			f[kept - 1].count += f[i].count;
		else
			f[kept++] = f[i];
	return kept;
}

/* Who else sets the size. A topology sets it only where it names a number; then it does so again and again. */
static void tell_writers(const struct object_call *x, struct group_description *d)
{
	struct arena *a = &x->base.call->arena;

	if (x->owner.is_bounded)
		group_description_caution(d, a,
					  "Cluster Autoscaler sizes it, too, where that runs for Cluster API: its "
					  "annotations cluster-api-autoscaler-node-group-min-size and -max-size say "
					  "so; take them off, and let min and max of the manifest bound it");
	if (kind_of(x)->has_owner && *x->owner.topology)
		group_description_caution(
			d, a,
			text_printf(
				a,
				"it is %s of its Cluster's topology, which undoes every other size where "
				"spec.topology.workers.machineDeployments sets replicas of it: leave them out there",
				x->owner.topology));
}

static void describe(struct object_call *x)
{
	struct group_description *d = &x->base.call->description;
	int64_t size = kind_of(x)->has_owner ? x->owner.replicas
					     : wish_settle(wish_of(objects_of(x), x->base.call->group), &x->list);

	const char *theirs = kind_of(x)->has_owner ? owner_does(x) : NULL;

	*d = (struct group_description){ .min = x->owner.min,
					 .max = x->owner.max,
					 .desired = size,
					 .machines = x->list.machines,
					 .machine_count = x->list.count,
					 .failures = x->list.failures,
					 .failure_count = x->list.failure_count,
					 .is_busy = theirs != NULL,
					 .busy_with = theirs,
					 .only_grows = x->owner.is_rolling,
					 .resized_by = text_or_empty(x->owner.resized_by),
					 .abilities = kind_of(x)->abilities,
					 .lacks = "" };
	tell_writers(x, d);
	group_description_sort(d);
	d->failure_count = merge_failures(d->failures, d->failure_count);
	finish(x);
}

static void got_page(struct object_call *x);

static void get_page(struct object_call *x)
{
	write_path(x, "%s?limit=%d&labelSelector=", x->group.list, PAGE_SIZE);
	uri_escape(x->group.selector, strlen(x->group.selector), "", &x->path);
	if (x->list.more && x->list.more[0]) {
		buf_text(&x->path, "&continue=");
		uri_escape(x->list.more, strlen(x->list.more), "", &x->path);
	}
	ask(x, "GET", got_page);
}

static void got_page(struct object_call *x)
{
	bool ok = read_machines(kind_of(x)->kind, x->request.response, x->request.response_len, &x->base.call->arena,
				&x->list, &x->base.call->error);

	if (ok && x->list.more[0] && ++x->pages == PAGES_MOST)
		ok = error_set(&x->base.call->error, ERROR_INVALID, "a list without end");
	if (fails(x, ok, "its machines"))
		return;
	if (x->list.more[0])
		get_page(x);
	else if (x->base.call->verb == PROVIDER_DESCRIBE)
		describe(x);
	else if (x->has_lowered)
		take_rest(x);
	else
		shrink(x);
}

static void got_owner(struct object_call *x)
{
	const struct object_provider *kind = kind_of(x);
	struct error *e = &x->base.call->error;
	bool ok = read_owner(kind->kind, x->request.response, x->request.response_len, &x->base.call->arena, &x->owner,
			     e) &&
		  kind->accepts(&x->owner, e);

	if (fails(x, ok, x->group.owner_plural))
		return;
	if (x->base.call->verb == PROVIDER_GROW)
		grow(x);
	else
		get_page(x);
}

static void read_group(struct object_call *x)
{
	if (!kind_of(x)->has_owner) {
		get_page(x);
		return;
	}
	write_path(x, "%s", x->group.owner);
	ask(x, "GET", got_owner);
}

static void got_version(struct object_call *x)
{
	const char *version = NULL;
	struct error *e = &x->base.call->error;
	bool ok = read_version(x->request.response, x->request.response_len, &x->base.call->arena, &version, e) &&
		  kind_of(x)->find(x->base.call, version, &x->group, e);

	if (!fails(x, ok, x->group.probe))
		read_group(x);
}

static bool accepts(struct exchange *base)
{
	struct object_call *x = (struct object_call *)base;
	struct provider_call *c = base->call;
	bool is_known = c->verb != PROVIDER_STOP && c->verb != PROVIDER_STANDBY &&
			(c->verb != PROVIDER_REMOVE || (kind_of(x)->abilities & PROVIDER_NAMES_VICTIMS));

	if (!is_known)
		return error_set(&c->error, ERROR_INVALID, "such a group knows no %s", provider_verb_name(c->verb));
	for (size_t i = 0; i < c->id_count; i++)
		if (!is_object_name(c->ids[i]))
			return error_set(&c->error, ERROR_INVALID, "a machine was named that can be none");
	if (!kind_of(x)->find(c, NULL, &x->group, &c->error))
		return false;
	x->is_told = !kind_of(x)->has_owner && provider_verb_changes(c->verb);
	if (x->is_told)
		wish_change(wish_of(objects_of(x), c->group), c);
	return true;
}

static void begin(struct exchange *base)
{
	struct object_call *x = (struct object_call *)base;

	if (x->is_told) {
		finish(x);
	} else if (base->call->verb == PROVIDER_CHECK) {
		check_rights(x);
	} else if (x->group.probe) {
		write_path(x, "%s", x->group.probe);
		ask(x, "GET", got_version);
	} else {
		read_group(x);
	}
}

static bool cancel(struct exchange *base)
{
	struct object_call *x = (struct object_call *)base;
	const struct cluster_door *door = &objects_of(x)->cluster;

	if (x->is_asking)
		door->cancel(door->user, &x->request);
	return x->is_asking;
}

static void end(struct exchange *base)
{
	struct object_call *x = (struct object_call *)base;

	buf_release(&x->path);
	buf_release(&x->body);
}

static const struct exchange_kind calls = {
	.size = sizeof(struct object_call),
	.read_deadline = 15 * SECOND,
	.change_deadline = 30 * SECOND,
	.accepts = accepts,
	.begin = begin,
	.cancel = cancel,
	.end = end,
};

struct provider *object_provider_open(const struct object_provider *kind, const struct provider_setup *s,
				      struct error *e)
{
	if (!s->cluster) {
		error_set(e, ERROR_INVALID, "there is no cluster whose objects could be scaled");
		return NULL;
	}
	struct objects *p = xcalloc(1, sizeof *p);
	*p = (struct objects){ .base = { .kind = &calls, .loop = s->loop }, .kind = kind, .cluster = *s->cluster };
	return &p->base;
}

void object_provider_close(struct provider *base)
{
	struct objects *p = (struct objects *)base;

	assert(!base->active);
	wishes_free(p);
	free(p);
}
