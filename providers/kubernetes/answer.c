#include "providers/kubernetes/answer.h"

#include "base/decode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINES_MOST = 10000 };

struct owner_text {
	struct decoded_text replicas_raw;
	int64_t replicas, min, max;
	const char *resource_version, *operation, *paused;
	bool is_paused;
};

struct condition_text {
	const char *type, *status, *reason, *message;
	millis at;
};

struct machine_text {
	const char *name, *provider_id, *zone, *instance_type, *phase, *failure, *failure_message, *mark;
	millis created, deleted;
	struct decoded_list conditions;
};

struct page_text {
	struct decoded_list items;
	const char *more;
};

#define SPEC(struct_type, rows)                                                \
	{                                                                      \
		"", sizeof(struct_type), (rows), sizeof(rows) / sizeof *(rows) \
	}
#define OWNER_ROWS                                                                                    \
	FIELD(struct owner_text, replicas_raw, FIELD_RAW, "spec>replicas"),                           \
		FIELD(struct owner_text, resource_version, FIELD_STRING, "metadata>resourceVersion"), \
		FIELD(struct owner_text, operation, FIELD_STRING, "metadata>annotations>" OPERATION_ANNOTATION)

static const struct field node_pool_fields[] = {
	OWNER_ROWS,
	FIELD(struct owner_text, max, FIELD_COUNT, "spec>limits>nodes"),
};
static const struct field deployment_fields[] = {
	OWNER_ROWS,
	FIELD(struct owner_text, is_paused, FIELD_BOOL, "spec>paused"),
	FIELD(struct owner_text, paused, FIELD_STRING, "metadata>annotations>cluster.x-k8s.io/paused"),
	FIELD(struct owner_text, min, FIELD_COUNT,
	      "metadata>annotations>cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"),
	FIELD(struct owner_text, max, FIELD_COUNT,
	      "metadata>annotations>cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"),
};
static const struct record_spec owner_records[] = {
	[OBJECT_NODE_POOL] = SPEC(struct owner_text, node_pool_fields),
	[OBJECT_MACHINE_DEPLOYMENT] = SPEC(struct owner_text, deployment_fields),
};

static const struct field condition_fields[] = {
	FIELD(struct condition_text, type, FIELD_STRING, "type"),
	FIELD(struct condition_text, status, FIELD_STRING, "status"),
	FIELD(struct condition_text, reason, FIELD_STRING, "reason"),
	FIELD(struct condition_text, message, FIELD_STRING, "message"),
	FIELD(struct condition_text, at, FIELD_TIME, "lastTransitionTime"),
};
static const struct record_spec condition_record = SPEC(struct condition_text, condition_fields);

#define MACHINE_ROWS                                                                           \
	FIELD(struct machine_text, name, FIELD_STRING, "metadata>name"),                       \
		FIELD(struct machine_text, created, FIELD_TIME, "metadata>creationTimestamp"), \
		FIELD(struct machine_text, deleted, FIELD_TIME, "metadata>deletionTimestamp")
#define NODE_LABEL_ROWS                                                                                \
	FIELD(struct machine_text, zone, FIELD_STRING, "metadata>labels>topology.kubernetes.io/zone"), \
		FIELD(struct machine_text, instance_type, FIELD_STRING,                                \
		      "metadata>labels>node.kubernetes.io/instance-type")

static const struct field node_claim_fields[] = {
	MACHINE_ROWS,
	NODE_LABEL_ROWS,
	FIELD(struct machine_text, provider_id, FIELD_STRING, "status>providerID"),
	{ .path = "status>conditions",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct machine_text, conditions),
	  .of = &condition_record },
};
static const struct field machine_fields[] = {
	MACHINE_ROWS,
	FIELD(struct machine_text, provider_id, FIELD_STRING, "spec>providerID"),
	FIELD(struct machine_text, mark, FIELD_STRING, "metadata>annotations>cluster.x-k8s.io/delete-machine"),
	FIELD(struct machine_text, zone, FIELD_STRING, "spec>failureDomain"),
	FIELD(struct machine_text, phase, FIELD_STRING, "status>phase"),
	FIELD(struct machine_text, failure, FIELD_STRING, "status>failureReason"),
	FIELD(struct machine_text, failure_message, FIELD_STRING, "status>failureMessage"),
};
static const struct field node_fields[] = {
	MACHINE_ROWS,
	NODE_LABEL_ROWS,
	FIELD(struct machine_text, provider_id, FIELD_STRING, "spec>providerID"),
};
static const struct record_spec machine_records[] = {
	[OBJECT_NODE_POOL] = SPEC(struct machine_text, node_claim_fields),
	[OBJECT_MACHINE_DEPLOYMENT] = SPEC(struct machine_text, machine_fields),
	[OBJECT_NODE] = SPEC(struct machine_text, node_fields),
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

static bool decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

/* Absent, or a whole number of at least 0. */
static bool read_replicas(struct decoded_text raw, struct owner_object *out, struct error *e)
{
	char digits[24] = "", *end;

	if (!raw.text || (raw.len == 4 && !memcmp(raw.text, "null", 4)))
		return true;
	if (raw.len < sizeof digits)
		memcpy(digits, raw.text, raw.len);
	out->replicas = strtoll(digits, &end, 10);
	out->has_replicas = true;
	return (digits[0] && !*end && out->replicas >= 0) ||
	       error_set(e, ERROR_INVALID, "spec>replicas: found %.*s; allowed: a whole number from 0 on",
			 (int)(raw.len < 40 ? raw.len : 40), raw.text);
}

bool owner_read(enum object_kind kind, const char *text, size_t len, struct arena *a, struct owner_object *out,
		struct error *e)
{
	struct owner_text t;
	struct owner_object o = { 0 };

	if (!decode(&owner_records[kind], text, len, a, &t, e) || !read_replicas(t.replicas_raw, &o, e))
		return false;
	if (t.min < 0 || t.max < 0 || (t.max && t.min > t.max))
		return error_set(e, ERROR_INVALID, "its sizes: found %" PRId64 " to %" PRId64, t.min, t.max);
	o.min = t.min;
	o.max = t.max;
	o.resource_version = t.resource_version ? t.resource_version : "";
	o.operation = t.operation ? t.operation : "";
	o.is_paused = t.is_paused || t.paused;
	*out = o;
	return true;
}

static const struct condition_text *condition(const struct machine_text *t, const char *type)
{
	const struct condition_text *items = t->conditions.items;

	for (size_t i = 0; i < t->conditions.count; i++)
		if (items[i].type && !strcmp(items[i].type, type))
			return &items[i];
	return NULL;
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
	const struct condition_text *launched = condition(t, "Launched");

	if (t->deleted || is_one_of(t->phase, going))
		return MACHINE_TERMINATING;
	if (kind == OBJECT_NODE || is_one_of(t->phase, there))
		return MACHINE_RUNNING;
	return launched && launched->status && !strcmp(launched->status, "True") ? MACHINE_RUNNING : MACHINE_PENDING;
}

/* Karpenter says why a launch failed in the condition, Cluster API in the status. */
static bool failure_of(const struct machine_text *t, struct launch_failure *out)
{
	const struct condition_text *c = condition(t, "Launched");
	bool is_refused = c && c->status && c->reason && !strcmp(c->status, "False");

	if (!is_refused && !t->failure)
		return false;
	const char *code = is_refused ? c->reason : t->failure;
	const char *message = is_refused ? c->message : t->failure_message;
	millis at = is_refused ? c->at : t->created;
	*out = (struct launch_failure){ .id = at,
					.at = at,
					.kind = strstr(code, "InsufficientCapacity") ? ERROR_STOCKOUT
										     : ERROR_UNAVAILABLE,
					.message = message ? message : code,
					.count = 1,
					.zone = t->zone ? t->zone : "",
					.instance_type = t->instance_type ? t->instance_type : "" };
	return true;
}

static void append(struct machine_list *list, const struct machine *m, struct arena *a)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct machine *machines = arena_array(a, struct machine, room);
		struct launch_failure *failures = arena_array(a, struct launch_failure, room);
		struct marked *marked = arena_array(a, struct marked, room);
		if (list->count)
			memcpy(machines, list->machines, list->count * sizeof *machines);
		if (list->failure_count)
			memcpy(failures, list->failures, list->failure_count * sizeof *failures);
		list->machines = machines;
		if (list->marked_count)
			memcpy(marked, list->marked, list->marked_count * sizeof *marked);
		list->failures = failures;
		list->marked = marked;
		list->room = room;
	}
	list->machines[list->count++] = *m;
}

static bool take(enum object_kind kind, const struct machine_text *t, struct arena *a, struct machine_list *list,
		 struct error *e)
{
	struct machine m = { .id = t->name,
			     .provider_id = t->provider_id ? t->provider_id : "",
			     .zone = t->zone ? t->zone : "",
			     .instance_type = t->instance_type ? t->instance_type : "",
			     .state = state_of(kind, t),
			     .launched_at = t->created };
	struct launch_failure failure;

	if (!t->name || !*t->name)
		return error_set(e, ERROR_INVALID, "a machine without a name");
	if (list->count == MACHINES_MOST)
		return error_set(e, ERROR_INVALID, "more than %d machines", MACHINES_MOST);
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->machines[i].id, t->name))
			return error_set(e, ERROR_INVALID, "machine %.100s is listed twice", t->name);
	append(list, &m, a);
	if (failure_of(t, &failure))
		list->failures[list->failure_count++] = failure;
	if (t->mark && m.state != MACHINE_TERMINATING)
		list->marked[list->marked_count++] = (struct marked){ t->name, t->mark };
	return true;
}

bool machine_list_read(enum object_kind kind, const char *text, size_t len, struct arena *a, struct machine_list *list,
		       struct error *e)
{
	const struct record_spec spec = { "", sizeof(struct page_text), page_fields[kind], 2 };
	struct page_text t;

	if (!decode(&spec, text, len, a, &t, e))
		return false;
	const struct machine_text *items = t.items.items;
	for (size_t i = 0; i < t.items.count; i++)
		if (!take(kind, &items[i], a, list, e))
			return false;
	list->more = t.more ? t.more : "";
	return true;
}

bool preferred_version_read(const char *text, size_t len, struct arena *a, const char **out, struct error *e)
{
	struct version_text {
		const char *version;
	} t;
	static const struct field fields[] = { FIELD(struct version_text, version, FIELD_STRING,
						     "preferredVersion>version") };
	static const struct record_spec spec = SPEC(struct version_text, fields);

	if (!decode(&spec, text, len, a, &t, e))
		return false;
	if (!t.version || !*t.version)
		return error_set(e, ERROR_INVALID, "the server tells no preferred version");
	*out = t.version;
	return true;
}
