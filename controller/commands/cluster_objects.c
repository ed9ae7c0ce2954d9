#include "controller/commands/cluster_objects.h"

#include "base/decode.h"
#include "base/findings.h"
#include "base/resource.h"
#include "providers/block.h"

#include <stdlib.h>
#include <string.h>

static const millis PATIENCE = 30 * SECOND;
static const struct yaml_limits object_limits = {
	.bytes = (size_t)8 << 20, .nodes = 200000, .depth = 128, .documents = 1
};

enum part { CREATED, LABELS, ANNOTATIONS, OWNERS, SPEC, ALLOCATABLE, PHASE, CONDITIONS, VALUE, PARTS };

struct told_object {
	struct decoded_text name, namespace, parts[PARTS];
	const char *node;
};

static const struct field object_fields[] = {
	FIELD(struct told_object, name, FIELD_RAW, "metadata>name"),
	FIELD(struct told_object, namespace, FIELD_RAW, "metadata>namespace"),
	FIELD(struct told_object, parts[CREATED], FIELD_RAW, "metadata>creationTimestamp"),
	FIELD(struct told_object, parts[LABELS], FIELD_RAW, "metadata>labels"),
	FIELD(struct told_object, parts[ANNOTATIONS], FIELD_RAW, "metadata>annotations"),
	FIELD(struct told_object, parts[OWNERS], FIELD_RAW, "metadata>ownerReferences"),
	FIELD(struct told_object, parts[SPEC], FIELD_RAW, "spec"),
	FIELD(struct told_object, parts[ALLOCATABLE], FIELD_RAW, "status>allocatable"),
	FIELD(struct told_object, parts[PHASE], FIELD_RAW, "status>phase"),
	FIELD(struct told_object, parts[CONDITIONS], FIELD_RAW, "status>conditions"),
	FIELD(struct told_object, parts[VALUE], FIELD_RAW, "value"),
	FIELD(struct told_object, node, FIELD_STRING, "spec>nodeName"),
};
static const struct record_spec object_record = { "items[]", sizeof(struct told_object), object_fields,
						  sizeof object_fields / sizeof *object_fields };

struct told_list {
	const char *next;
};

static const struct field list_fields[] = { FIELD(struct told_list, next, FIELD_STRING, "metadata>continue") };
static const struct record_spec list_record = { "", sizeof(struct told_list), list_fields, 1 };

struct listing {
	const struct object_reader *reader;
	const struct object_kind *kind;
	const char **gpu_nodes; /* by name, once nodes were read */
	size_t gpu_node_count;
};

static void write_part(const char *key, const struct decoded_text *part, const char *before, struct buf *out)
{
	if (!part->len)
		return;
	buf_printf(out, "%s\"%s\":", before, key);
	buf_append(out, part->text, part->len);
}

/* A list does not say of its items what they are; what is made here does. */
static void write_object(const struct object_kind *kind, const struct told_object *o, struct buf *out)
{
	buf_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{", kind->api_version, kind->kind);
	write_part("name", &o->name, "", out);
	write_part("namespace", &o->namespace, ",", out);
	write_part("creationTimestamp", &o->parts[CREATED], ",", out);
	write_part("labels", &o->parts[LABELS], ",", out);
	write_part("annotations", &o->parts[ANNOTATIONS], ",", out);
	write_part("ownerReferences", &o->parts[OWNERS], ",", out);
	buf_text(out, "}");
	write_part("spec", &o->parts[SPEC], ",", out);
	write_part("value", &o->parts[VALUE], ",", out);
	buf_text(out, ",\"status\":{\"checked\":true");
	write_part("allocatable", &o->parts[ALLOCATABLE], ",", out);
	write_part("phase", &o->parts[PHASE], ",", out);
	write_part("conditions", &o->parts[CONDITIONS], ",", out);
	buf_text(out, "}}");
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool stands_on_gpus(const struct listing *l, const char *node)
{
	return node && l->gpu_node_count &&
	       bsearch(&node, l->gpu_nodes, l->gpu_node_count, sizeof *l->gpu_nodes, compare_names);
}

static bool mentions(const struct decoded_text *part, const char *word)
{
	return part->len && memmem(part->text, part->len, word, strlen(word));
}

/* What a workload made is judged by that workload, unless it stands on a GPU node or asks for one. */
static bool is_of_interest(const struct listing *l, const struct told_object *o)
{
	const struct decoded_text *spec = &o->parts[SPEC];

	return strcmp(l->kind->kind, "Pod") != 0 || !o->parts[OWNERS].len || stands_on_gpus(l, o->node) ||
	       mentions(spec, "/gpu") || mentions(spec, "/mig-");
}

static void note_gpu_node(struct listing *l, const struct yaml_node *root)
{
	const struct yaml_node *have = yaml_child(yaml_child(root, "status"), "allocatable"),
			       *name = yaml_child(yaml_child(root, "metadata"), "name");
	bool has_gpus = false;

	for (const struct yaml_node *n = have && have->kind == YAML_MAP ? have->first : NULL; n; n = n->next)
		has_gpus = has_gpus || device_is_gpu(n->key);
	if (!has_gpus || !name || name->kind != YAML_SCALAR)
		return;
	/* Doubles at powers of two. */
	if (!(l->gpu_node_count & (l->gpu_node_count - 1))) {
		size_t room = l->gpu_node_count ? 2 * l->gpu_node_count : 1;
		const char **grown = arena_array(l->reader->arena, const char *, room);
		if (l->gpu_node_count)
			memcpy(grown, l->gpu_nodes, l->gpu_node_count * sizeof *grown);
		l->gpu_nodes = grown;
	}
	l->gpu_nodes[l->gpu_node_count++] = name->text;
}

static bool take(void *user, void *record, struct error *e)
{
	struct listing *l = user;
	const struct told_object *o = record;
	CLEANUP(findings_release) struct findings own = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct yaml_documents docs;

	if (!o->name.len || !is_of_interest(l, o))
		return true;
	write_object(l->kind, o, &text);
	struct yaml_source source = { "", text.text, text.len, object_limits };
	if (!yaml_parse_source(&source, l->reader->arena, &docs, &own))
		return findings_error(&own, e);
	if (!docs.count || !docs.roots[0])
		return true;
	if (!strcmp(l->kind->kind, "Node"))
		note_gpu_node(l, docs.roots[0]);
	l->reader->take(l->reader->user, docs.roots[0]);
	return true;
}

static bool decode(struct listing *l, const struct buf *text, char **next, struct error *e)
{
	struct decode_plan *records = decode_plan_new(&object_record), *document = decode_plan_new(&list_record);
	struct told_list list = { 0 };
	struct decoder *d = decoder_open(&(struct decoder_setup){ .name = "the API server's answer",
								  .records = records,
								  .emit = take,
								  .user = l,
								  .document = document,
								  .document_record = &list });
	bool ok = decoder_feed(d, text->text ? text->text : "", text->len, e) && decoder_finish(d, e);

	*next = ok && list.next && *list.next ? arena_strdup(l->reader->arena, list.next, strlen(list.next)) : NULL;
	decoder_close(d);
	decode_plan_free(records);
	decode_plan_free(document);
	return ok;
}

static bool read_page(struct listing *l, struct cluster_access *x, const char *namespace, char **next, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };
	const struct api_object all = { .api_version = l->kind->api_version,
					.plural = l->kind->plural,
					.name_space = l->kind->is_namespaced ? namespace : NULL };

	api_object_path(&all, &path);
	api_query(&path, "limit", "500");
	api_query(&path, "continue", *next);
	return cluster_access_get(x, &(struct api_call){ .path = path.text, .timeout = PATIENCE }, &text, e) &&
	       decode(l, &text, next, e);
}

static bool read_kind(struct listing *l, struct cluster_access *x, const char *namespace, struct error *e)
{
	char *next = NULL;
	struct error why = { 0 };

	do {
		if (read_page(l, x, namespace, &next, &why))
			continue;
		bool is_missing = l->kind->is_optional && (why.kind == ERROR_NOT_FOUND || why.kind == ERROR_AUTH);
		if (is_missing && (why.kind == ERROR_NOT_FOUND || !l->reader->refused))
			return true;
		if (l->reader->refused) {
			l->reader->refused(l->reader->user, l->kind, &why);
			return true;
		}
		*e = why;
		return error_wrap(e, "reading %s from %s", l->kind->plural, api_server(x->api));
	} while (next);
	return true;
}

static bool read_templates(struct listing *l, struct cluster_access *x, struct error *e)
{
	bool ok = true;

	for (enum provider_choice p = 0; ok && p < PROVIDER_COUNT; p++) {
		const struct provider_block *b = provider_block(p);
		if (!b->template_kind)
			continue;
		CLEANUP(buf_release) struct buf version = { 0 };
		buf_printf(&version, "%s/%s", b->template_group, b->template_version);
		l->kind = &(struct object_kind){ version.text, b->template_kind, b->template_plural, false, true };
		ok = read_kind(l, x, NULL, e);
		l->kind = NULL;
	}
	return ok;
}

bool cluster_objects_read(const struct object_reader *r, const struct cluster_args *o, struct error *e)
{
	struct cluster_access x;
	bool ok = true;

	if (!cluster_access_open(&x, o, NULL, e))
		return false;
	struct listing l = { .reader = r };
	for (size_t i = 0; ok && i < r->count; i++) {
		const struct object_kind *kind = &r->kinds[i];

		l.kind = kind;
		ok = kind->kind ? read_kind(&l, &x, o->namespace, e) : read_templates(&l, &x, e);
		if (ok && kind->kind && !strcmp(kind->kind, "Node") && l.gpu_node_count)
			qsort(l.gpu_nodes, l.gpu_node_count, sizeof *l.gpu_nodes, compare_names);
	}
	cluster_access_close(&x);
	return ok;
}
