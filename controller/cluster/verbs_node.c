#include "controller/cluster/verbs_body.h"

#include <string.h>

enum { ROUNDS = 6 };

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

static bool pairs_differ(const struct decoded_map *have, const struct verb_pair *want, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = NULL;
		for (size_t k = 0; k < have->count; k++)
			if (!strcmp(have->pairs[k].key, want[i].key))
				value = have->pairs[k].value;
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
		verbs_member("key", c->add[i].key, out);
		verbs_member("value", c->add[i].value, out);
		verbs_member("effect", c->add[i].effect, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

/* False: the node is as wished already. */
static bool write_patch(struct node_change *c, const struct found_node *n)
{
	bool cordon = c->cordon != CORDON_KEEP && n->is_unschedulable != (c->cordon == CORDON_ON);
	bool taints = taints_differ(c, n);
	bool annotations = pairs_differ(&n->annotations, c->annotations, c->annotation_count);
	bool labels = pairs_differ(&n->labels, c->labels, c->label_count);

	if (!cordon && !taints && !annotations && !labels)
		return false;
	buf_clear(&c->body);
	buf_text(&c->body, "{\"metadata\":{");
	verbs_member("resourceVersion", n->resource_version, &c->body);
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

	if (call->status == 409 && ++c->rounds < ROUNDS) {
		read_node(c);
		return;
	}
	c->is_changed = call->error.kind == ERROR_NONE;
	complete(c, &call->error);
}

static bool understand(struct node_change *c, struct arena *a, struct found_node *n, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&node_record);
	bool ok = decode_record(plan, c->call.response, c->call.response_len, a, n, e);

	decode_plan_free(plan);
	return ok || error_wrap(e, "node %s", c->node);
}

static void node_came(struct api_call *call)
{
	struct node_change *c = call->user;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = call->error;
	struct found_node n;

	if (e.kind != ERROR_NONE || !understand(c, &a, &n, &e) || !write_patch(c, &n)) {
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
	c->is_changed = false;
	buf_clear(&c->path);
	api_object_path(&(struct api_object){ .api_version = "v1", .plural = "nodes", .name = c->node }, &c->path);
	read_node(c);
}
