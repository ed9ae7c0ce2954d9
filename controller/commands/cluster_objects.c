#include "controller/commands/cluster_objects.h"

#include "base/decode.h"
#include "base/findings.h"
#include "base/resource.h"
#include "providers/block.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static const millis PATIENCE = 30 * SECOND, FIRST = 10 * SECOND;
static const struct yaml_limits object_limits = {
	.bytes = (size_t)8 << 20, .nodes = 200000, .depth = 128, .documents = 1
};

enum part {
	CREATED,
	LABELS,
	ANNOTATIONS,
	OWNERS,
	SPEC,
	ALLOCATABLE,
	PHASE,
	CONDITIONS,
	ALLOCATION,
	CLAIMS_MADE,
	VALUE,
	PARTS
};

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
	FIELD(struct told_object, parts[ALLOCATION], FIELD_RAW, "status>allocation"),
	FIELD(struct told_object, parts[CLAIMS_MADE], FIELD_RAW, "status>resourceClaimStatuses"),
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

/* Pods that are alike, by the first of them. */
struct shape {
	const struct yaml_node *pod;
	bool is_on_gpus;
	size_t times;
	struct shape *next;
};

struct listing {
	const struct object_reader *reader;
	const struct object_kind *kind;
	const char **gpu_nodes; /* by name, once nodes were read */
	size_t gpu_node_count;
	void *shape_tree; /* of tsearch(3) */
	struct shape *shapes, **last_shape;
};

static bool joins(const struct listing *l)
{
	return l->reader->joins_pods && !strcmp(l->kind->kind, "Pod");
}

static void write_part(const char *key, const struct decoded_text *part, const char *before, struct buf *out)
{
	if (!part->len)
		return;
	buf_printf(out, "%s\"%s\":", before, key);
	buf_append(out, part->text, part->len);
}

/* A list does not say of its items what they are; what is made here does. */
static void write_object(const struct listing *l, const struct told_object *o, struct buf *out)
{
	const struct object_kind *kind = l->kind;

	buf_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{", kind->api_version, kind->kind);
	write_part("name", &o->name, "", out);
	write_part("namespace", &o->namespace, ",", out);
	if (!l->reader->joins_pods)
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
	write_part("allocation", &o->parts[ALLOCATION], ",", out);
	if (!l->reader->joins_pods) {
		write_part("conditions", &o->parts[CONDITIONS], ",", out);
		write_part("resourceClaimStatuses", &o->parts[CLAIMS_MADE], ",", out);
	}
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
	       mentions(spec, "/gpu") || mentions(spec, "/mig-") || mentions(spec, "\"resourceClaims\"");
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

/* What makes a pod its own beside its siblings, and no rule reads. */
static bool is_own(const struct yaml_node *n)
{
	static const char *const keys[] = { "nodeName",
					    "hostname",
					    "claimName",
					    "uid",
					    "statefulset.kubernetes.io/pod-name",
					    "apps.kubernetes.io/pod-index",
					    "batch.kubernetes.io/job-completion-index",
					    "leaderworkerset.sigs.k8s.io/group-index",
					    "leaderworkerset.sigs.k8s.io/group-key" };
	const struct yaml_node *map = n->parent;

	for (size_t i = 0; n->key && i < sizeof keys / sizeof(const char *); i++)
		if (!strcmp(n->key, keys[i]))
			return true;
	if (!map || !n->key)
		return false;
	if (map->key && !strcmp(map->key, "annotations"))
		return strncmp(n->key, "preheat.dev/", 12) != 0;
	bool is_owner = map->parent && map->parent->key && !strcmp(map->parent->key, "ownerReferences");
	return !strcmp(n->key, "name") && (is_owner || (map->key && !strcmp(map->key, "metadata")));
}

/* The volume of each pod's token has a name of chance. */
static const char *shared_text(const struct yaml_node *n)
{
	static const char token[] = "kube-api-access-";

	return is_own(n) ? "" : strncmp(n->text, token, sizeof token - 1) ? n->text : token;
}

static int compare_trees(const struct yaml_node *a, const struct yaml_node *b)
{
	int order = (a->kind > b->kind) - (a->kind < b->kind);

	if (!order)
		order = (a->count > b->count) - (a->count < b->count);
	if (!order && (a->key || b->key))
		order = strcmp(a->key ? a->key : "", b->key ? b->key : "");
	if (order || a->kind == YAML_SCALAR)
		return order ? order : strcmp(shared_text(a), shared_text(b));
	for (a = a->first, b = b->first; !order && a && b; a = a->next, b = b->next)
		order = compare_trees(a, b);
	return order;
}

static int compare_shapes(const void *left, const void *right)
{
	const struct shape *a = left, *b = right;

	return a->is_on_gpus != b->is_on_gpus ? a->is_on_gpus - b->is_on_gpus : compare_trees(a->pod, b->pod);
}

static const struct yaml_node *parse_object(const struct buf *text, struct arena *a, struct error *e)
{
	CLEANUP(findings_release) struct findings own = { 0 };
	struct yaml_source source = { "", text->text, text->len, object_limits };
	struct yaml_documents docs;

	if (!yaml_parse_source(&source, a, &docs, &own)) {
		findings_error(&own, e);
		return NULL;
	}
	return docs.roots[0];
}

/* The tree of a pod is kept only where it is the first of its shape. */
static bool join_pod(struct listing *l, const struct told_object *o, const struct buf *text, struct error *e)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	struct shape pod = { .pod = parse_object(text, &own, e), .is_on_gpus = stands_on_gpus(l, o->node) };

	if (!pod.pod)
		return false;
	struct shape *const *known = tfind(&pod, &l->shape_tree, compare_shapes);
	if (known) {
		(*known)->times++;
		return true;
	}
	struct shape *first = arena_new(l->reader->arena, struct shape);
	*first = (struct shape){ parse_object(text, l->reader->arena, e), pod.is_on_gpus, 1, NULL };
	if (!first->pod)
		return false;
	if (!tsearch(first, &l->shape_tree, compare_shapes))
		return error_set(e, ERROR_INTERNAL, "no memory left for the pods of the cluster");
	*l->last_shape = first;
	l->last_shape = &first->next;
	return true;
}

static void keep(void *shape)
{
	(void)shape; /* the arena's */
}

static void take_shapes(struct listing *l)
{
	for (const struct shape *s = l->shapes; s; s = s->next)
		l->reader->take(l->reader->user, s->pod, s->times);
	tdestroy(l->shape_tree, keep);
}

static bool take(void *user, void *record, struct error *e)
{
	struct listing *l = user;
	const struct told_object *o = record;
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!o->name.len || !is_of_interest(l, o))
		return true;
	write_object(l, o, &text);
	if (joins(l))
		return join_pod(l, o, &text, e);
	const struct yaml_node *root = parse_object(&text, l->reader->arena, e);
	if (!root)
		return false;
	if (!strcmp(l->kind->kind, "Node"))
		note_gpu_node(l, root);
	l->reader->take(l->reader->user, root, 1);
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
		if (l->kind->is_optional && why.kind == ERROR_NOT_FOUND)
			return true;
		if (l->reader->leaves_out(l->reader->user, l->kind, &why))
			return true;
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

/* What refuses connections is told at once, not for every kind after as many attempts; errors of a server that answers
 * are tried again, and told once where they stay. */
static bool find_server(struct cluster_access *x, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct error why = { 0 };

	if (cluster_access_get(x, &(struct api_call){ .path = "/version", .timeout = FIRST, .needs_server = true },
			       &text, &why) ||
	    (why.kind != ERROR_UNAVAILABLE && why.kind != ERROR_TIMEOUT))
		return true;
	return error_set(
		e, ERROR_UNAVAILABLE,
		"the API server cannot be asked: %s; do: see that it runs and can be reached from here, or name "
		"another with --kubeconfig and --context",
		why.message);
}

bool cluster_objects_read(const struct object_reader *r, const struct cluster_args *o, struct error *e)
{
	struct cluster_access x;

	if (!cluster_access_open(&x, o, NULL, e))
		return false;
	bool ok = find_server(&x, e);
	struct listing l = { .reader = r };
	l.last_shape = &l.shapes;
	for (size_t i = 0; ok && i < r->count; i++) {
		const struct object_kind *kind = &r->kinds[i];

		l.kind = kind;
		ok = kind->kind ? read_kind(&l, &x, o->namespace, e) : read_templates(&l, &x, e);
		if (ok && kind->kind && !strcmp(kind->kind, "Node") && l.gpu_node_count)
			qsort(l.gpu_nodes, l.gpu_node_count, sizeof *l.gpu_nodes, compare_names);
	}
	take_shapes(&l);
	cluster_access_close(&x);
	return ok;
}
