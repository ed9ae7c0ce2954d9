#include "controller/cluster/verbs.h"

#include "base/decode.h"
#include "base/json.h"

#include <string.h>

enum { NODE_ROUNDS = 6, SCALE_ROUNDS = 4 }; /* after conflicts */

/* "KEY":{...} with null for what is taken away; nothing for no pairs. */
static void verbs_pairs(const char *key, const struct verb_pair *pairs, size_t count, struct buf *out)
{
	if (!count)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":{");
	for (size_t i = 0; i < count; i++) {
		if (pairs[i].value) {
			api_member(pairs[i].key, pairs[i].value, out);
			continue;
		}
		json_write_comma(out);
		json_write_text(pairs[i].key, out);
		buf_text(out, ":null");
	}
	buf_text(out, "}");
}

static const struct {
	const char *method, *content_type;
	bool is_repeatable;
} verbs[] = {
	[OBJECT_GET] = { "GET", NULL, true },
	[OBJECT_CREATE] = { "POST", NULL, false },
	[OBJECT_PUT] = { "PUT", NULL, false },
	[OBJECT_PATCH] = { "PATCH", MERGE_PATCH, true },
	[OBJECT_APPLY] = { "PATCH", "application/apply-patch+yaml", true },
	[OBJECT_DELETE] = { "DELETE", NULL, true },
};

static void object_answered(struct api_call *c)
{
	struct object_call *o = c->user;

	o->error = c->error;
	o->status = c->status;
	o->response = c->response;
	o->response_len = c->response_len;
	buf_release(&o->path);
	o->done(o);
}

void object_start(struct api *a, struct object_call *o)
{
	buf_clear(&o->path);
	api_object_path(&o->object, &o->path);
	api_query(&o->path, "labelSelector", o->selector);
	if (o->verb == OBJECT_APPLY) {
		api_query(&o->path, "fieldManager", "preheat");
		api_query(&o->path, "force", "true");
	}
	o->call = (struct api_call){ .method = verbs[o->verb].method,
				     .path = o->path.text,
				     .body = o->body,
				     .content_type = verbs[o->verb].content_type,
				     .effect = o->verb == OBJECT_GET ? API_READ : API_WRITE,
				     .is_repeatable = verbs[o->verb].is_repeatable,
				     .done = object_answered,
				     .user = o };
	api_start(a, &o->call);
}

static bool decode_once(const struct record_spec *spec, const struct api_call *c, struct arena *a, void *record,
			struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, c->response, c->response_len, a, record, e);

	decode_plan_free(plan);
	return ok;
}

/* A taint as it stands: what others wrote into it is written back. */
struct found_taint {
	const char *key, *value, *effect;
	struct decoded_text whole;
};

struct found_node {
	const char *resource_version;
	bool is_unschedulable;
	struct decoded_list taints;
	struct decoded_map annotations, labels;
};

static const struct field taint_fields[] = {
	{ .path = "key", .type = FIELD_STRING, .offset = offsetof(struct found_taint, key), .required = true },
	FIELD(struct found_taint, value, FIELD_STRING, "value"),
	{ .path = "effect", .type = FIELD_STRING, .offset = offsetof(struct found_taint, effect), .required = true },
	FIELD(struct found_taint, whole, FIELD_RAW, ""),
};
static const struct record_spec taint_record = { "", sizeof(struct found_taint), taint_fields, 4 };

static const struct field node_fields[] = {
	{ .path = "metadata>resourceVersion",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct found_node, resource_version),
	  .required = true },
	FIELD(struct found_node, is_unschedulable, FIELD_BOOL, "spec>unschedulable"),
	{ .path = "spec>taints",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct found_node, taints),
	  .of = &taint_record },
	FIELD(struct found_node, annotations, FIELD_MAP, "metadata>annotations"),
	FIELD(struct found_node, labels, FIELD_MAP, "metadata>labels"),
};
static const struct record_spec node_record = { "", sizeof(struct found_node), node_fields, 5 };

static void read_node(struct node_change *c);

static void complete(struct node_change *c, const struct error *e)
{
	c->error = *e;
	buf_release(&c->path);
	buf_release(&c->body);
	c->done(c);
}

static bool is_same_taint(const struct found_taint *f, const struct node_taint *t)
{
	return !strcmp(f->key, t->key) && !strcmp(f->effect, t->effect);
}

static bool is_in(const struct found_taint *f, const struct node_taint *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_same_taint(f, &list[i]))
			return true;
	return false;
}

static bool has_taint(const struct found_node *n, const struct node_taint *t)
{
	const struct found_taint *found = n->taints.items;

	for (size_t i = 0; i < n->taints.count; i++)
		if (is_same_taint(&found[i], t) &&
		    !strcmp(found[i].value ? found[i].value : "", t->value ? t->value : ""))
			return true;
	return false;
}

static bool taints_differ(const struct node_change *c, const struct found_node *n)
{
	const struct found_taint *found = n->taints.items;

	for (size_t i = 0; i < c->add_count; i++)
		if (!has_taint(n, &c->add[i]))
			return true;
	for (size_t i = 0; i < n->taints.count; i++)
		if (is_in(&found[i], c->remove, c->remove_count))
			return true;
	return false;
}

static const char *value_of(const struct decoded_map *have, const char *key)
{
	for (size_t i = 0; i < have->count; i++)
		if (!strcmp(have->pairs[i].key, key))
			return have->pairs[i].value;
	return NULL;
}

static bool pairs_differ(const struct decoded_map *have, const struct verb_pair *want, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = value_of(have, want[i].key);
		if (!value != !want[i].value || (value && strcmp(value, want[i].value) != 0))
			return true;
	}
	return false;
}

static void write_taints(const struct node_change *c, const struct found_node *n, struct buf *out)
{
	const struct found_taint *found = n->taints.items;
	size_t written = 0;

	buf_text(out, "\"taints\":[");
	for (size_t i = 0; i < n->taints.count; i++)
		if (!is_in(&found[i], c->remove, c->remove_count) && !is_in(&found[i], c->add, c->add_count))
			buf_printf(out, "%s%.*s", written++ ? "," : "", (int)found[i].whole.len, found[i].whole.text);
	for (size_t i = 0; i < c->add_count; i++) {
		buf_text(out, written++ ? ",{" : "{");
		api_member("key", c->add[i].key, out);
		api_member("value", c->add[i].value, out);
		api_member("effect", c->add[i].effect, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

/* Whether it carries what the change takes away. */
static bool is_marked(const struct node_change *c, const struct found_node *n)
{
	const struct found_taint *found = n->taints.items;

	for (size_t i = 0; i < n->taints.count; i++)
		if (is_in(&found[i], c->remove, c->remove_count))
			return true;
	for (size_t i = 0; i < c->annotation_count; i++)
		if (!c->annotations[i].value && value_of(&n->annotations, c->annotations[i].key))
			return true;
	return false;
}

static bool check_owner(struct node_change *c, const struct found_node *n, struct error *e)
{
	const char *found = c->owner ? value_of(&n->annotations, c->annotations[0].key) : NULL;

	c->is_others = found && strchr(found, '/') && strcmp(found, c->owner) != 0;
	if (!c->is_others)
		return true;
	return error_set(e, ERROR_CONFLICT, "node %s: its annotation %s is of %s, and %s leaves it alone", c->node,
			 c->annotations[0].key, found, c->owner);
}

/* False: the node is as wished already. */
static bool write_patch(struct node_change *c, const struct found_node *n)
{
	bool cordon = c->cordon == CORDON_ON ? !n->is_unschedulable
					     : c->cordon == CORDON_OFF && n->is_unschedulable && is_marked(c, n);
	bool taints = taints_differ(c, n);
	bool annotations = pairs_differ(&n->annotations, c->annotations, c->annotation_count);
	bool labels = pairs_differ(&n->labels, c->labels, c->label_count);

	if (!cordon && !taints && !annotations && !labels)
		return false;
	buf_clear(&c->body);
	buf_text(&c->body, "{\"metadata\":{");
	api_member("resourceVersion", n->resource_version, &c->body);
	verbs_pairs("annotations", c->annotations, annotations ? c->annotation_count : 0, &c->body);
	verbs_pairs("labels", c->labels, labels ? c->label_count : 0, &c->body);
	buf_text(&c->body, "},\"spec\":{");
	if (cordon)
		buf_printf(&c->body, "\"unschedulable\":%s%s", c->cordon == CORDON_ON ? "true" : "false",
			   taints ? "," : "");
	if (taints)
		write_taints(c, n, &c->body);
	buf_text(&c->body, "}}");
	return true;
}

static void written(struct api_call *call)
{
	struct node_change *c = call->user;

	if (call->status == 409 && ++c->rounds < NODE_ROUNDS) {
		read_node(c);
		return;
	}
	c->is_changed = call->error.kind == ERROR_NONE;
	complete(c, &call->error);
}

static void node_came(struct api_call *call)
{
	struct node_change *c = call->user;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = call->error;
	struct found_node n = { 0 };

	if (e.kind == ERROR_NONE && !decode_once(&node_record, call, &a, &n, &e))
		error_wrap(&e, "node %s", c->node);
	if (e.kind != ERROR_NONE || !check_owner(c, &n, &e) || !write_patch(c, &n)) {
		complete(c, &e);
		return;
	}
	c->call = (struct api_call){ .method = "PATCH",
				     .path = c->path.text,
				     .body = c->body.text,
				     .content_type = MERGE_PATCH,
				     .effect = API_WRITE,
				     .is_repeatable = true, /* the version lets it happen once */
				     .done = written,
				     .user = c };
	api_start(c->api, &c->call);
}

static void read_node(struct node_change *c)
{
	c->call = (struct api_call){ .path = c->path.text, .done = node_came, .user = c };
	api_start(c->api, &c->call);
}

void node_change_start(struct api *a, struct node_change *c)
{
	c->api = a;
	c->rounds = 0;
	c->is_changed = c->is_others = false;
	buf_clear(&c->path);
	api_object_path(&(struct api_object){ .api_version = "v1", .plural = "nodes", .name = c->node }, &c->path);
	read_node(c);
}

const char *eviction_result_name(enum eviction_result r)
{
	switch (r) {
	case EVICTION_DONE:
		return "evicted";
	case EVICTION_GONE:
		return "gone";
	case EVICTION_CHANGED:
		return "changed";
	case EVICTION_BUDGET:
		return "blocked-by-budget";
	case EVICTION_THROTTLED:
		return "throttled";
	case EVICTION_MISCONFIGURED:
		return "misconfigured";
	case EVICTION_REFUSED:
		return "refused";
	case EVICTION_FAILED:
		return "failed";
	}
	return "";
}

static enum eviction_result result_of(const struct eviction *v, const struct api_call *c)
{
	const char *message = c->answer.message ? c->answer.message : "";

	if (c->error.kind == ERROR_NONE)
		return EVICTION_DONE;
	if (c->status == 404 || (c->status == 409 && v->uid && strstr(message, "UID")))
		return EVICTION_GONE;
	if (c->status == 409 && v->version)
		return EVICTION_CHANGED;
	if (c->status == 429)
		return status_has_cause(&c->answer, "DisruptionBudget") ? EVICTION_BUDGET : EVICTION_THROTTLED;
	if (c->status == 500 && strstr(message, "more than one PodDisruptionBudget"))
		return EVICTION_MISCONFIGURED;
	return c->error.kind == ERROR_AUTH ? EVICTION_REFUSED : EVICTION_FAILED;
}

static void eviction_answered(struct api_call *c)
{
	struct eviction *v = c->user;

	v->result = result_of(v, c);
	v->error = c->error;
	if (v->result == EVICTION_DONE || v->result == EVICTION_GONE)
		v->error = (struct error){ 0 };
	v->retry_after = c->retry_after;
	buf_release(&v->path);
	buf_release(&v->body);
	v->done(v);
}

static void write_eviction(struct eviction *v)
{
	struct buf *out = &v->body;

	buf_clear(out);
	buf_text(out, "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{");
	api_member("name", v->pod, out);
	api_member("namespace", v->name_space, out);
	buf_text(out, "},\"deleteOptions\":{\"preconditions\":{");
	if (v->uid)
		api_member("uid", v->uid, out);
	if (v->version)
		buf_printf(out, "%s\"resourceVersion\":\"%lld\"", v->uid ? "," : "", (long long)v->version);
	buf_text(out, "}");
	if (v->grace_seconds >= 0)
		buf_printf(out, ",\"gracePeriodSeconds\":%lld", (long long)v->grace_seconds);
	buf_text(out, v->is_dry_run ? ",\"dryRun\":[\"All\"]}}" : "}}");
}

void eviction_start(struct api *a, struct eviction *v)
{
	buf_clear(&v->path);
	api_object_path(&(struct api_object){ .api_version = "v1",
					      .plural = "pods",
					      .name_space = v->name_space,
					      .name = v->pod,
					      .subresource = "eviction" },
			&v->path);
	write_eviction(v);
	v->call = (struct api_call){ .method = "POST",
				     .path = v->path.text,
				     .body = v->body.text,
				     .effect = API_WRITE,
				     .done = eviction_answered,
				     .user = v };
	api_start(a, &v->call);
}

/* The kinds of one group and version, as the server lists them. */
struct found_kind {
	const char *plural, *kind;
	bool is_namespaced;
};

static const struct field kind_fields[] = {
	{ .path = "name", .type = FIELD_STRING, .offset = offsetof(struct found_kind, plural), .required = true },
	{ .path = "kind", .type = FIELD_STRING, .offset = offsetof(struct found_kind, kind), .required = true },
	FIELD(struct found_kind, is_namespaced, FIELD_BOOL, "namespaced"),
};
static const struct record_spec kind_record = { "", sizeof(struct found_kind), kind_fields, 3 };

struct found_kinds {
	struct decoded_list resources;
};
static const struct field kinds_fields[] = {
	{ .path = "resources", .type = FIELD_LIST, .offset = 0, .required = true, .of = &kind_record },
};
static const struct record_spec kinds_record = { "", sizeof(struct found_kinds), kinds_fields, 1 };

static bool has_scale(const struct found_kinds *all, const char *plural)
{
	const struct found_kind *k = all->resources.items;
	size_t len = strlen(plural);

	for (size_t i = 0; i < all->resources.count; i++)
		if (!strncmp(k[i].plural, plural, len) && !strcmp(k[i].plural + len, "/scale"))
			return true;
	return false;
}

static bool take_kind(struct plural_call *c, const struct found_kinds *all)
{
	const struct found_kind *k = all->resources.items;

	for (size_t i = 0; i < all->resources.count; i++) {
		if (strcmp(k[i].kind, c->kind) != 0 || strchr(k[i].plural, '/'))
			continue;
		api_kind_learn(c->api, &(struct api_kind){ .api_version = c->api_version,
							   .kind = c->kind,
							   .plural = k[i].plural,
							   .is_namespaced = k[i].is_namespaced,
							   .has_scale = has_scale(all, k[i].plural) });
		return true;
	}
	return false;
}

static void complete_plural(struct plural_call *c)
{
	const struct api_kind *k = api_kind_known(c->api, c->api_version, c->kind);

	buf_release(&c->path);
	if (k) {
		c->plural = k->plural;
		c->is_namespaced = k->is_namespaced;
		c->has_scale = k->has_scale;
	}
	c->done(c);
}

static void kinds_came(struct api_call *call)
{
	struct plural_call *c = call->user;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct found_kinds all = { 0 };

	c->error = call->error;
	if (call->status == 404)
		error_set(&c->error, ERROR_NOT_FOUND, "the server knows no API %s: install what defines kind %s",
			  c->api_version, c->kind);
	else if (c->error.kind == ERROR_NONE && !decode_once(&kinds_record, call, &a, &all, &c->error))
		error_wrap(&c->error, "the kinds of %s", c->api_version);
	else if (c->error.kind == ERROR_NONE && !take_kind(c, &all))
		error_set(&c->error, ERROR_NOT_FOUND, "the server knows no kind %s in %s: check the spelling", c->kind,
			  c->api_version);
	complete_plural(c);
}

static void known_already(struct timer *t)
{
	complete_plural(t->user);
}

void plural_start(struct api *a, struct plural_call *c)
{
	c->api = a;
	c->error = (struct error){ 0 };
	c->plural = NULL;
	if (api_kind_known(a, c->api_version, c->kind)) {
		c->timer.user = c;
		timer_start(api_loop(a), &c->timer, 0, known_already);
		return;
	}
	buf_clear(&c->path);
	buf_printf(&c->path, "%s/%s", strchr(c->api_version, '/') ? "/apis" : "/api", c->api_version);
	c->call = (struct api_call){ .path = c->path.text, .done = kinds_came, .user = c };
	api_start(a, &c->call);
}

struct found_scale {
	const char *resource_version, *selector;
	int64_t wanted, running;
};

static const struct field scale_fields[] = {
	FIELD(struct found_scale, resource_version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct found_scale, selector, FIELD_STRING, "status>selector"),
	FIELD(struct found_scale, wanted, FIELD_INT, "spec>replicas"),
	FIELD(struct found_scale, running, FIELD_INT, "status>replicas"),
};
static const struct record_spec scale_record = { "", sizeof(struct found_scale), scale_fields, 4 };

/* Who serves, by the status of the object; kinds that do not tell have none. */
struct found_target {
	const char *resource_version;
	int64_t ready;
};

static const struct field target_fields[] = {
	FIELD(struct found_target, resource_version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct found_target, ready, FIELD_INT, "status>readyReplicas"),
};
static const struct record_spec target_record = { "", sizeof(struct found_target), target_fields, 2 };

static void read_scale(struct scale_call *c);

static void complete_scale(struct scale_call *c, const struct error *e)
{
	struct arena texts = c->arena;

	c->error = *e;
	c->arena = (struct arena){ 0 };
	buf_release(&c->path);
	buf_release(&c->body);
	c->done(c);
	arena_release(&texts);
}

/* What was decided is not true any more. */
static void give_way(struct scale_call *c)
{
	c->is_overtaken = true;
	complete_scale(c, &(struct error){ 0 });
}

static bool understand_scale(struct scale_call *c, const struct api_call *call, struct error *e)
{
	struct found_scale s = { 0 };

	if (!decode_once(&scale_record, call, &c->arena, &s, e))
		return error_wrap(e, "the scale of %s %s/%s", c->kind, c->name_space, c->name);
	c->version = s.resource_version;
	c->wanted = s.wanted;
	c->running = s.running;
	c->selector = s.selector;
	return true;
}

static void scale_written(struct api_call *call)
{
	struct scale_call *c = call->user;
	struct error e = call->error;

	if (call->status == 409 && c->wanted > c->replicas) {
		give_way(c);
		return;
	}
	if (call->status == 409 && ++c->rounds < SCALE_ROUNDS) {
		read_scale(c);
		return;
	}
	if (e.kind == ERROR_NONE && !understand_scale(c, call, &e))
		c->wanted = c->replicas;
	complete_scale(c, &e);
}

/* With the version that was read: whoever sets it at the same time is noticed. */
static void write_scale(struct scale_call *c)
{
	struct buf *out = &c->body;

	buf_clear(out);
	buf_text(out, "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{");
	api_member("name", c->name, out);
	api_member("namespace", c->name_space, out);
	api_member("resourceVersion", c->version, out);
	buf_printf(out, "},\"spec\":{\"replicas\":%lld}}", (long long)c->replicas);
	c->call = (struct api_call){ .method = "PUT",
				     .path = c->path.text,
				     .body = out->text,
				     .effect = API_WRITE,
				     .done = scale_written,
				     .user = c };
	api_start(c->api, &c->call);
}

/* Whoever may not read it is told nothing, and what was decided goes. */
static void target_read(struct api_call *call)
{
	struct scale_call *c = call->user;
	struct found_target t = { .resource_version = c->version };
	struct error e = call->error;

	if (e.kind == ERROR_NONE && !decode_once(&target_record, call, &c->arena, &t, &e))
		error_wrap(&e, "%s %s/%s", c->kind, c->name_space, c->name);
	if (e.kind != ERROR_NONE && e.kind != ERROR_AUTH)
		complete_scale(c, &e);
	else if (t.ready > c->replicas || !t.resource_version || strcmp(t.resource_version, c->version) != 0)
		give_way(c);
	else
		write_scale(c);
}

static void read_target(struct scale_call *c)
{
	buf_clear(&c->body);
	api_object_path(&(struct api_object){ .api_version = c->api_version,
					      .plural = c->lookup.plural,
					      .name_space = c->name_space,
					      .name = c->name },
			&c->body);
	c->call = (struct api_call){ .path = c->body.text, .done = target_read, .user = c };
	api_start(c->api, &c->call);
}

static void scale_read(struct api_call *call)
{
	struct scale_call *c = call->user;
	struct error e = call->error;

	if (e.kind != ERROR_NONE || !understand_scale(c, call, &e)) {
		complete_scale(c, &e);
		return;
	}
	c->is_found = true;
	if (!c->rounds)
		c->before = c->wanted;
	bool stays = (c->kept_above > 0 && c->wanted > c->kept_above && c->wanted > c->replicas) ||
		     (c->expects && c->wanted != c->expected);
	c->has_others = c->is_write && c->replicas > c->wanted && c->alive > c->running && c->alive > c->wanted;
	if (!c->is_write || c->wanted == c->replicas || stays || c->has_others)
		complete_scale(c, &e);
	else if (c->wanted > c->replicas && c->version)
		read_target(c);
	else
		write_scale(c);
}

static void read_scale(struct scale_call *c)
{
	c->call = (struct api_call){ .path = c->path.text, .done = scale_read, .user = c };
	api_start(c->api, &c->call);
}

static void plural_came(struct plural_call *p)
{
	struct scale_call *c = p->user;
	struct error e = p->error;

	if (e.kind == ERROR_NONE && !p->has_scale)
		error_set(&e, ERROR_INVALID, "kind %s of %s has no scale subresource: its replicas cannot be set",
			  c->kind, c->api_version);
	if (e.kind != ERROR_NONE) {
		complete_scale(c, &e);
		return;
	}
	api_object_path(&(struct api_object){ .api_version = c->api_version,
					      .plural = p->plural,
					      .name_space = c->name_space,
					      .name = c->name,
					      .subresource = "scale" },
			&c->path);
	read_scale(c);
}

void scale_start(struct api *a, struct scale_call *c)
{
	c->api = a;
	c->rounds = 0;
	c->selector = c->version = NULL;
	c->is_found = c->is_overtaken = false;
	c->wanted = c->running = c->before = 0;
	buf_clear(&c->path);
	c->lookup =
		(struct plural_call){ .api_version = c->api_version, .kind = c->kind, .done = plural_came, .user = c };
	plural_start(a, &c->lookup);
}

struct verdict {
	bool is_known, is_allowed, is_denied;
	struct decoded_text who;
	const char *name, *trouble, *reason, *evaluation;
};

static const struct field verdict_fields[] = {
	FIELD(struct verdict, is_known, FIELD_BOOL, "status>authenticated"),
	FIELD(struct verdict, who, FIELD_RAW, "status>user"),
	FIELD(struct verdict, trouble, FIELD_STRING, "status>error"),
	FIELD(struct verdict, is_allowed, FIELD_BOOL, "status>allowed"),
	FIELD(struct verdict, is_denied, FIELD_BOOL, "status>denied"),
	FIELD(struct verdict, reason, FIELD_STRING, "status>reason"),
	FIELD(struct verdict, evaluation, FIELD_STRING, "status>evaluationError"),
};
static const struct record_spec verdict_record = { "", sizeof(struct verdict), verdict_fields,
						   sizeof verdict_fields / sizeof *verdict_fields };

struct person {
	const char *name, *uid;
	struct decoded_text groups, extra;
};

static const struct field person_fields[] = {
	{ .path = "username", .type = FIELD_STRING, .offset = offsetof(struct person, name), .required = true },
	FIELD(struct person, uid, FIELD_STRING, "uid"),
	FIELD(struct person, groups, FIELD_RAW, "groups"),
	FIELD(struct person, extra, FIELD_RAW, "extra"),
};
static const struct record_spec person_record = { "", sizeof(struct person), person_fields,
						  sizeof person_fields / sizeof *person_fields };

static bool decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

static bool read_verdict(const struct api_call *c, struct arena *a, struct verdict *v, struct error *e)
{
	if (c->error.kind != ERROR_NONE) {
		*e = c->error;
		return false;
	}
	return decode(&verdict_record, c->response, c->response_len, a, v, e) ||
	       error_wrap(e, "the API server's answer to %s", c->path);
}

static void wipe(struct buf *b)
{
	if (b->text)
		explicit_bzero(b->text, b->room);
	buf_release(b);
}

static bool read_person(const char *who, size_t len, struct arena *a, struct person *out, struct error *e)
{
	return decode(&person_record, who, len, a, out, e) || error_wrap(e, "the user of a token");
}

static void learn_token(struct token_review *t)
{
	struct verdict v = { 0 };
	struct person who = { 0 };

	if (!read_verdict(&t->call, &t->arena, &v, &t->error))
		return;
	t->why = v.trouble;
	if (!v.is_known || !v.who.text || !read_person(v.who.text, v.who.len, &t->arena, &who, &t->error))
		return;
	t->is_known = true;
	t->name = who.name;
	t->who = arena_strdup(&t->arena, v.who.text, v.who.len);
}

static void token_answered(struct api_call *c)
{
	struct token_review *t = c->user;
	struct arena arena;

	wipe(&t->body);
	learn_token(t);
	arena = t->arena; /* done() may free or start it anew */
	t->arena = (struct arena){ 0 };
	t->done(t);
	arena_release(&arena);
}

void token_review_start(struct api *a, struct token_review *t)
{
	t->error = (struct error){ 0 };
	t->is_known = false;
	t->name = t->who = t->why = NULL;
	buf_text(&t->body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{");
	api_member("token", t->token, &t->body);
	buf_text(&t->body, "}}");
	t->token = NULL;
	t->call = (struct api_call){ .method = "POST",
				     .path = "/apis/authentication.k8s.io/v1/tokenreviews",
				     .body = t->body.text,
				     .effect = API_READ,
				     .timeout = REVIEW_TIMEOUT,
				     .done = token_answered,
				     .user = t };
	api_start(a, &t->call);
}

static void access_answered(struct api_call *c)
{
	struct access_review *r = c->user;
	struct verdict v = { 0 };
	struct arena arena;

	buf_release(&r->body);
	if (read_verdict(c, &r->arena, &v, &r->error)) {
		r->is_allowed = v.is_allowed && !v.is_denied;
		r->why = v.reason && *v.reason ? v.reason : v.evaluation;
	}
	arena = r->arena;
	r->arena = (struct arena){ 0 };
	r->done(r);
	arena_release(&arena);
}

static void write_raw(const char *key, struct decoded_text value, struct buf *out)
{
	if (!value.text)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	buf_append(out, value.text, value.len);
}

static void write_access(const struct access_review *r, const struct person *who, struct buf *out)
{
	buf_text(out, "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
		      "\"nonResourceAttributes\":{");
	api_member("path", r->path, out);
	api_member("verb", r->verb, out);
	buf_text(out, "}");
	api_member("user", who->name, out);
	api_member("uid", who->uid, out);
	write_raw("groups", who->groups, out);
	write_raw("extra", who->extra, out);
	buf_text(out, "}}");
}

bool access_review_start(struct api *a, struct access_review *r, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct person who = { 0 };

	if (!read_person(r->who, strlen(r->who), &scratch, &who, e))
		return false;
	r->error = (struct error){ 0 };
	r->is_allowed = false;
	r->why = NULL;
	write_access(r, &who, &r->body);
	r->who = r->verb = r->path = NULL;
	r->call = (struct api_call){ .method = "POST",
				     .path = "/apis/authorization.k8s.io/v1/subjectaccessreviews",
				     .body = r->body.text,
				     .effect = API_READ,
				     .timeout = REVIEW_TIMEOUT,
				     .done = access_answered,
				     .user = r };
	api_start(a, &r->call);
	return true;
}
