/* preheat check: manifests, the objects beside them, live clusters. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/table.h"
#include "controller/commands/cluster_objects.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/contract/contract.h"
#include "controller/explain/explain.h"
#include "controller/manifest/reference.h"
#include "controller/simulation/files/world_file.h"
#include "controller/simulation/rivals/rival.h"
#include "providers/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found_object {
	const struct yaml_node *root;
	size_t times; /* as many of a cluster that are alike */
};

/* Everything that was read, and what is wrong with it. */
struct checked {
	struct arena *arena;
	struct findings *findings;
	const struct yaml_node **pools; /* WarmPools, and what should be one */
	size_t pool_count, pool_room;
	struct found_object *objects;
	size_t object_count, object_room;
	size_t passed_over;  /* of kinds that no rule is about */
	size_t charts;	     /* of Helm, whose templates were passed over */
	bool is_whole;	     /* objects came from a cluster */
	struct buf unlisted; /* kinds whose objects may not be read there */

	struct manifest manifest;
	bool has_manifest; /* there are pools, and nothing is wrong with them */
	struct contract_report report;
};

static bool is_named(const char *path, const char *name);
static const char *plural(size_t n);
static void check_object_name(const struct contract_object *o, struct buf *out);

/* From files and folders to objects. */
enum { FILES_MAX = 10000, FOLDERS_DEEP = 12 };

static const struct yaml_limits limits = {
	.bytes = (size_t)8 << 20, .nodes = 1000000, .depth = 64, .documents = 10000, .takes_all = true
};

static const char *text_of(const struct yaml_node *root, const char *key)
{
	const struct yaml_node *n = yaml_child(root, key);

	return n && n->kind == YAML_SCALAR ? n->text : "";
}

/* Ours, or nothing that says what it is: the manifest's reader tells what is wrong with it. */
static bool is_for_manifest(const struct yaml_node *root, bool is_named)
{
	if (!strncmp(text_of(root, "apiVersion"), "preheat.dev/", 12) || !strcmp(text_of(root, "kind"), "WarmPool"))
		return true;
	return is_named && (root->kind != YAML_MAP || !*text_of(root, "kind"));
}

static const struct yaml_node *items_of(const struct yaml_node *root)
{
	const char *kind = text_of(root, "kind");
	size_t len = strlen(kind);
	const struct yaml_node *items = yaml_child(root, "items");

	return len >= 4 && !strcmp(kind + len - 4, "List") && items && items->kind == YAML_LIST ? items : NULL;
}

static void add_object(struct checked *c, const struct yaml_node *root, size_t times)
{
	c->objects = arena_grow(c->arena, c->objects, c->object_count, &c->object_room, sizeof *c->objects);
	c->objects[c->object_count++] = (struct found_object){ root, times };
}

static void checked_add(struct checked *c, const struct yaml_node *root, bool is_named)
{
	const struct yaml_node *items = items_of(root);

	if (items) {
		for (const struct yaml_node *n = items->first; n; n = n->next)
			checked_add(c, n, is_named);
	} else if (is_for_manifest(root, is_named)) {
		c->pools =
			arena_grow(c->arena, c->pools, c->pool_count, &c->pool_room, sizeof(const struct yaml_node *));
		c->pools[c->pool_count++] = root;
	} else if (contract_knows(text_of(root, "kind"))) {
		add_object(c, root, 1);
	} else {
		c->passed_over++;
	}
}

static void find_in_file(struct checked *c, const char *name, const char *found, const char *allowed,
			 const char *remedy)
{
	findings_add(c->findings,
		     &(struct finding){ .file = name, .found = found, .allowed = allowed, .remedy = remedy });
}

static void add_documents(struct checked *c, const char *name, const struct yaml_documents *docs, bool is_named)
{
	size_t before = c->pool_count + c->object_count + c->passed_over;

	for (size_t i = 0; i < docs->count; i++)
		if (docs->roots[i])
			checked_add(c, docs->roots[i], is_named);
	if (is_named && before == c->pool_count + c->object_count + c->passed_over)
		find_in_file(c, name, "nothing in it", "at least one WarmPool or object of Kubernetes",
			     "see docs/manifest.md, or examples/first-try/pool.yaml");
}

static bool is_template(const struct buf *text)
{
	return !memchr(text->text, 0, text->len) && memmem(text->text, text->len, "{{", 2) != NULL;
}

static bool is_history(const struct buf *text)
{
	static const char head[] = "SQLite format 3"; /* and the 0 behind it */

	return text->len >= sizeof head && !memcmp(text->text, head, sizeof head);
}

static void read_text(struct checked *c, const char *name, const struct buf *text, bool is_named)
{
	if (is_history(text)) {
		find_in_file(c, name, "an SQLite database, as a history or a recording is one",
			     "manifests, in YAML or JSON",
			     "read it with history, explain, report, replay or view and --db FILE, or with simulate "
			     "--recording FILE");
		return;
	}
	CLEANUP(findings_release) struct findings own = { 0 };
	struct yaml_documents docs;
	size_t skip = text->len >= 3 && !memcmp(text->text, "\xef\xbb\xbf", 3) ? 3 : 0;
	struct yaml_source source = { name, text->text + skip, text->len - skip, limits };
	bool ok = yaml_parse_source(&source, c->arena, &docs, &own);

	if (!ok && is_template(text)) {
		find_in_file(c, name, "a template of Helm", "what it makes",
			     "render it first: helm template CHART | preheat check -");
		return;
	}
	for (size_t i = 0; i < own.count; i++)
		findings_add(c->findings, &own.items[i]);
	if (ok)
		add_documents(c, name, &docs, is_named);
}

static bool read_file(struct checked *c, const char *path, bool is_named, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!file_read(path, limits.bytes, &text, e))
		return false;
	read_text(c, strcmp(path, "-") ? path : "standard input", &text, is_named);
	return true;
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len > tail && !strcmp(name + len - tail, end);
}

static bool is_manifest(const char *name)
{
	return ends_in(name, ".yaml") || ends_in(name, ".yml") || ends_in(name, ".json");
}

static bool is_shown(const char *name)
{
	return *name != '.';
}

struct walk {
	struct checked *checked;
	size_t files, depth;
};

static bool read_folder(struct walk *w, const struct folder *folder, struct error *e);

static bool read_entry(struct walk *w, const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct folder below;

	if (!folder_list(path, is_shown, &a, &below, e))
		return false;
	if (below.is_folder)
		return w->depth >= FOLDERS_DEEP || read_folder(w, &below, e);
	if (!is_manifest(path))
		return true;
	if (++w->files > FILES_MAX)
		return error_set(e, ERROR_INVALID, "%s: more than %d files in this folder; name a part of it", path,
				 FILES_MAX);
	return read_file(w->checked, path, false, e);
}

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

static bool is_chart(const struct folder *folder)
{
	for (size_t i = 0; i < folder->count; i++)
		if (is_named(folder->paths[i], "Chart.yaml"))
			return true;
	return false;
}

/* Templates are no objects; what they make is. */
static bool read_folder(struct walk *w, const struct folder *folder, struct error *e)
{
	bool ok = true, has_templates = is_chart(folder);

	w->depth++;
	for (size_t i = 0; ok && i < folder->count; i++) {
		if (has_templates && is_named(folder->paths[i], "templates"))
			w->checked->charts++;
		else
			ok = read_entry(w, folder->paths[i], e);
	}
	w->depth--;
	return ok;
}

static bool read_path(struct checked *c, const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct walk w = { .checked = c };
	struct folder folder = { 0 };

	if (strcmp(path, "-") != 0 && !folder_list(path, is_shown, &a, &folder, e))
		return false;
	if (!folder.is_folder)
		return read_file(c, path, true, e);
	if (!read_folder(&w, &folder, e))
		return false;
	return w.files || error_set(e, ERROR_INVALID, "%s: no *.yaml, *.yml or *.json file in this folder", path);
}

/* What cannot be read is told beside what is wrong with the rest; the error keeps the first. */
static void find_unreadable(struct checked *c, const char *path, const struct error *why, struct error *first)
{
	size_t len = strlen(path);
	bool names_path = !strncmp(why->message, path, len) && !strncmp(why->message + len, ": ", 2);

	find_in_file(c, path, names_path ? why->message + len + 2 : why->message, "a manifest that can be read",
		     "correct the name, or give the file to this user");
	if (!c->findings->is_incomplete)
		*first = *why;
	c->findings->is_incomplete = true;
}

/* Files, folders and "-". False: something could not be read at all; the rest was. */
static bool check_read_paths(struct checked *c, const char *const *paths, size_t count, struct error *e)
{
	for (size_t i = 0; i < count; i++) {
		struct error why = { 0 };
		if (!read_path(c, paths[i], &why))
			find_unreadable(c, paths[i], &why, e);
	}
	return !c->findings->is_incomplete;
}

/* Objects of a live cluster. */

/* Nodes come before pods, which are kept by where they stand. */
static const struct object_kind kinds[] = {
	{ "v1", "Node", "nodes", false, false },
	{ "v1", "ResourceQuota", "resourcequotas", true, false },
	{ "apps/v1", "Deployment", "deployments", true, false },
	{ "apps/v1", "StatefulSet", "statefulsets", true, false },
	{ "apps/v1", "DaemonSet", "daemonsets", true, false },
	{ "batch/v1", "Job", "jobs", true, false },
	{ "batch/v1", "CronJob", "cronjobs", true, false },
	{ "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true, false },
	{ "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, false },
	{ "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", false, false },
	{ "preheat.dev/v1alpha1", "WarmPool", "warmpools", true, true },
	{ "jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", true, true },
	{ "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", true, true },
	{ "keda.sh/v1alpha1", "ScaledObject", "scaledobjects", true, true },
	{ "autoscaling.aibrix.ai/v1alpha1", "PodAutoscaler", "podautoscalers", true, true },
	{ "serving.kserve.io/v1beta1", "InferenceService", "inferenceservices", true, true },
	{ "serving.kserve.io/v1alpha1", "LLMInferenceService", "llminferenceservices", true, true },
	{ "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", true, true },
	{ "resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", true, true },
	{ "v1", "Service", "services", true, true },
	{ "networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true, true },
	{ "inference.networking.k8s.io/v1", "InferencePool", "inferencepools", true, true },
	OBJECT_KIND_TEMPLATES,
	{ "argoproj.io/v1alpha1", "Rollout", "rollouts", true, true },
	{ "kubeflow.org/v1", "PyTorchJob", "pytorchjobs", true, true },
	{ "v1", "Pod", "pods", true, false },
};

static void take_object(void *user, const struct yaml_node *object, size_t times)
{
	if (times == 1)
		checked_add(user, object, false);
	else
		add_object(user, object, times);
}

static bool leaves_out(void *user, const struct object_kind *kind, const struct error *why)
{
	struct checked *c = user;

	if (!kind->is_optional || why->kind != ERROR_AUTH)
		return false;
	buf_printf(&c->unlisted, "%s%s", c->unlisted.len ? ", " : "", kind->plural);
	return true;
}

static bool check_read_cluster(struct checked *c, const struct cluster_args *o, struct error *e)
{
	const struct object_reader reader = { .kinds = kinds,
					      .count = sizeof kinds / sizeof *kinds,
					      .arena = c->arena,
					      .take = take_object,
					      .leaves_out = leaves_out,
					      .joins_pods = true,
					      .user = c };

	c->is_whole = !o->namespace;
	bool ok = cluster_objects_read(&reader, o, e);
	if (ok && c->unlisted.len)
		fprintf(stderr, "%s check: these may not be listed, and count as absent: %s\n", command_program(),
			c->unlisted.text);
	buf_release(&c->unlisted);
	return ok;
}

/* What pools and node groups are understood to say. */

enum { DOLLAR_DIGITS = 6 };

/* "99%*": the star marks a default. */
static void mark(bool is_given, struct buf *out)
{
	if (!is_given)
		buf_text(out, "*");
}

static bool gives(const struct yaml_node *map, const char *key)
{
	return yaml_child(map, key);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void add_cell(struct table *t, struct buf *text)
{
	table_text(t, text->text);
	buf_clear(text);
}

static void objective_cell(const struct pool_spec *p, const struct spec_text *s, struct buf *out)
{
	if (p->class == CLASS_ANY) {
		buf_text(out, "none");
		return;
	}
	if (p->violation_cost) {
		buf_text(out, "$");
		fixed_format(p->violation_cost, DOLLAR_DIGITS, out);
		buf_text(out, " per request later than ");
	} else {
		share_format(1000000 - p->objective_late_ppm, out);
		buf_text(out, " within ");
	}
	duration_format(p->objective_wait, out);
	mark(gives(s->objective.node, "queueWait"), out);
}

static void quantiles_cell(struct quantiles q, struct buf *out)
{
	duration_format(q.p50, out);
	buf_text(out, "/");
	duration_format(q.p95, out);
}

static void lead_time_cell(const struct pool_spec *p, const struct spec_text *s, struct buf *out)
{
	if (p->lead_time.p95)
		quantiles_cell(p->lead_time, out);
	else
		buf_text(out, "by stage");
	mark(s->lead_time.node, out);
}

static void headroom_cell(const struct pool_spec *p, const struct spec_text *s, struct buf *out)
{
	buf_printf(out, "%lld", (long long)p->headroom_min);
	mark(gives(s->headroom.node, "min"), out);
	if (p->headroom_max)
		buf_printf(out, "..%lld", (long long)p->headroom_max);
	if (p->schedule_count)
		buf_printf(out, ", %zu window%s by clock", p->schedule_count, plural(p->schedule_count));
}

static void budget_cell(const struct pool_spec *p, struct buf *out)
{
	if (!p->budget_per_hour) {
		buf_text(out, "none");
		return;
	}
	buf_text(out, "$");
	fixed_format(p->budget_per_hour, DOLLAR_DIGITS, out);
	buf_printf(out, "/h%s%s", *p->budget_name ? " " : "", p->budget_name);
}

static void group_names(const struct manifest *m, const struct pool_spec *p, struct buf *out)
{
	for (size_t i = 0; i < p->group_count; i++)
		buf_printf(out, i ? ",%s" : "%s", m->fleet.groups[p->groups[i]].name);
}

static void print_pools(const struct manifest *m, enum table_format format)
{
	static const struct table_column columns[] = {
		{ .name = "pool" },
		{ .name = "class" },
		{ .name = "mode" },
		{ .name = "objective" },
		{ .name = "sequences", .is_wide = true },
		{ .name = "lead_time", .title = "LEAD P50/P95" },
		{ .name = "headroom", .is_wide = true },
		{ .name = "budget", .is_wide = true },
		{ .name = "node_groups", .title = "NODE GROUPS" },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	CLEANUP(buf_release) struct buf text = { 0 };

	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		const struct pool_spec *p = &m->fleet.pools[i];
		const struct spec_text *s = &m->pools[i].spec;
		table_text(t, p->name);
		buf_text(&text, pool_class_name(p->class));
		mark(gives(s->node, "class"), &text);
		add_cell(t, &text);
		buf_text(&text, pool_mode_name(p->mode));
		mark(gives(s->node, "mode"), &text);
		add_cell(t, &text);
		objective_cell(p, s, &text);
		add_cell(t, &text);
		buf_printf(&text, "%lld", (long long)p->max_sequences);
		mark(gives(s->workload.node, "maxSequences"), &text);
		add_cell(t, &text);
		lead_time_cell(p, s, &text);
		add_cell(t, &text);
		headroom_cell(p, s, &text);
		add_cell(t, &text);
		budget_cell(p, &text);
		add_cell(t, &text);
		group_names(m, p, &text);
		add_cell(t, &text);
	}
	table_print(t, format, stdout);
	table_free(t);
}

static void number_cell(struct table *t, int64_t value, bool is_given, struct buf *text)
{
	buf_printf(text, "%lld", (long long)value);
	mark(is_given, text);
	add_cell(t, text);
}

static void standby_cell(const struct group_spec *g, struct buf *out)
{
	if (!g->standby_max_nodes) {
		buf_text(out, "none");
		return;
	}
	buf_printf(out, "%lld at ", (long long)g->standby_max_nodes);
	share_format(g->standby_price_ppm, out);
	buf_text(out, ", ");
	quantiles_cell(g->standby_lead_time, out);
}

/* "spot", "reserved, ended 2026-11-01T10:00:00Z". */
static void capacity_cell(const struct group_spec *g, millis now, struct buf *out)
{
	buf_text(out, capacity_type_name(g->capacity_type));
	if (!g->ends_at)
		return;
	buf_text(out, g->ends_at > now ? " until " : ", ended ");
	explain_time_rfc3339(g->ends_at, out);
}

static void print_groups(const struct manifest *m, enum table_format format)
{
	static const struct table_column columns[] = {
		{ .name = "node_group", .title = "NODE GROUP" },
		{ .name = "provider" },
		{ .name = "capacity_type", .title = "CAPACITY" },
		{ .name = "gpus", .is_right = true },
		{ .name = "dollars_per_hour", .title = "$/HOUR", .is_right = true },
		{ .name = "min", .is_right = true },
		{ .name = "max", .is_right = true },
		{ .name = "standby", .is_wide = true },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	CLEANUP(buf_release) struct buf text = { 0 };
	const struct clock wall = clock_open();

	for (size_t i = 0; i < m->fleet.group_count; i++) {
		const struct group_spec *g = &m->fleet.groups[i];
		table_text(t, g->name);
		table_text(t, g->provider);
		capacity_cell(g, clock_now(&wall), &text);
		mark(manifest_group_gives(m, i, "capacityType"), &text);
		add_cell(t, &text);
		number_cell(t, g->gpus_per_node, manifest_group_gives(m, i, "gpusPerNode"), &text);
		if (manifest_group_gives(m, i, "pricePerHour")) {
			fixed_format(g->price_per_hour, DOLLAR_DIGITS, &text);
			add_cell(t, &text);
		} else {
			table_absent(t);
		}
		number_cell(t, g->min_nodes, manifest_group_gives(m, i, "min"), &text);
		number_cell(t, g->max_nodes, manifest_group_gives(m, i, "max"), &text);
		standby_cell(g, &text);
		add_cell(t, &text);
	}
	table_print(t, format, stdout);
	table_free(t);
}

/* What the pools are understood to say. */
static void check_print_pools(const struct manifest *m)
{
	print_pools(m, TABLE_PLAIN);
	puts("");
	print_groups(m, TABLE_PLAIN);
	puts("\n* a default; everything else is as written");
}

/* SARIF 2.1.0, as code scanning reads it. */

static const char manifest_rule[] = "manifest";

static void write_rule(const struct contract_rule *r, struct buf *out)
{
	CLEANUP(buf_release) struct buf help = { 0 };

	buf_printf(&help, "%s Do: %s.", r->why, r->remedy);
	json_write_comma(out);
	buf_text(out, "\n          {");
	print_json_text("id", r->id, out);
	buf_text(out, ",\"shortDescription\":{");
	print_json_text("text", r->title, out);
	buf_text(out, "},\"fullDescription\":{");
	print_json_text("text", r->why, out);
	buf_text(out, "},\"help\":{");
	print_json_text("text", help.text, out);
	buf_printf(out, "},\"helpUri\":\"https://preheat.dev/docs/contract#%s\"", r->id);
	buf_printf(out,
		   ",\"defaultConfiguration\":{\"level\":\"%s\"},\"properties\":{\"tags\":[\"kubernetes\",\"gpu\"],",
		   contract_severity_name(r->severity));
	print_json_text("kinds", r->kinds, out);
	buf_text(out, "}}");
}

static void write_rules(struct buf *out)
{
	static const struct contract_rule manifest = {
		.id = manifest_rule,
		.severity = CONTRACT_ERROR,
		.kinds = "WarmPool",
		.title = "A WarmPool says only what Preheat understands",
		.why = "Unknown keys, impossible values and contradictions would be acted on as something else.",
		.remedy = "see docs/manifest.md",
	};
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	for (size_t i = 0; i < count; i++)
		write_rule(&rules[i], out);
	write_rule(&manifest, out);
}

/* A path as a relative URI. */
static void write_uri(const char *path, struct buf *out)
{
	CLEANUP(buf_release) struct buf uri = { 0 };

	for (const char *p = path; *p; p++) {
		if (*p == '%' || *p == ' ' || *p == '#' || *p == '?' || (unsigned char)*p < 0x20 ||
		    (unsigned char)*p >= 0x7f)
			buf_printf(&uri, "%%%02X", (unsigned char)*p);
		else
			buf_append(&uri, p, 1);
	}
	print_json_text("uri", uri.len ? uri.text : ".", out);
}

static void write_place(const char *file, size_t line, size_t column, struct buf *out)
{
	buf_text(out, "\"physicalLocation\":{\"artifactLocation\":{");
	write_uri(file, out);
	buf_text(out, "}");
	if (line)
		buf_printf(out, ",\"region\":{\"startLine\":%zu,\"startColumn\":%zu}", line, column ? column : 1);
	buf_text(out, "}");
}

static void write_logical_location(const struct contract_violation *v, struct buf *out)
{
	CLEANUP(buf_release) struct buf name = { 0 }, path = { 0 };
	const struct contract_object *o = v->object;

	buf_printf(&name, "%s/%s%s%s", o->kind, o->namespace, *o->namespace ? "/" : "", o->name);
	yaml_path(v->at, &path);
	buf_text(out, ",\"logicalLocations\":[{");
	print_json_text("name", o->name, out);
	if (path.len)
		buf_printf(&name, "/%s", path.text);
	print_json_text("fullyQualifiedName", name.text, out);
	buf_text(out, ",\"kind\":\"resource\"}]");
}

/* What is live has no file: its address in the cluster stands there. */
static void write_location(const struct contract_violation *v, struct buf *out)
{
	CLEANUP(buf_release) struct buf address = { 0 };
	const struct contract_object *o = v->object;

	buf_text(out, ",\"locations\":[{");
	if (*v->at->file) {
		write_place(v->at->file, v->at->line, v->at->column, out);
	} else {
		buf_printf(&address, "cluster/%s/%s/%s", *o->namespace ? o->namespace : "-", o->kind, o->name);
		write_place(address.text, 0, 0, out);
	}
	write_logical_location(v, out);
	buf_text(out, "}]");
}

static void write_result(const struct contract_violation *v, size_t rule, struct buf *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };

	check_object_name(v->object, &message);
	buf_printf(&message, ": %s. Do: %s.", v->found, v->remedy);
	json_write_comma(out);
	buf_text(out, "\n        {");
	print_json_text("ruleId", v->rule->id, out);
	buf_printf(out, ",\"ruleIndex\":%zu,\"level\":\"%s\",\"message\":{", rule,
		   contract_severity_name(v->rule->severity));
	print_json_text("text", message.text, out);
	buf_text(out, "}");
	write_location(v, out);
	if (v->object->times > 1)
		buf_printf(out, ",\"occurrenceCount\":%zu", v->object->times);
	if (v->is_ignored)
		buf_text(out, ",\"suppressions\":[{\"kind\":\"inSource\",\"justification\":\"" CONTRACT_IGNORE "\"}]");
	buf_text(out, "}");
}

static void write_finding(const struct finding *f, size_t rule, struct buf *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };

	buf_printf(&message, "%s%sfound %s%s%s%s%s", f->path, *f->path ? ": " : "", f->found,
		   *f->allowed ? "; allowed: " : "", f->allowed, *f->remedy ? "; do: " : "", f->remedy);
	json_write_comma(out);
	buf_printf(out, "\n        {\"ruleId\":\"%s\",\"ruleIndex\":%zu,\"level\":\"error\",\"message\":{",
		   manifest_rule, rule);
	print_json_text("text", message.text, out);
	buf_text(out, "},\"locations\":[{");
	write_place(f->file, f->line, f->column, out);
	buf_text(out, "}]}");
}

static void write_results(const struct checked *c, struct buf *out)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	for (size_t i = 0; i < c->findings->count; i++)
		write_finding(&c->findings->items[i], count, out);
	for (size_t i = 0; i < c->report.count; i++)
		write_result(&c->report.items[i], (size_t)(c->report.items[i].rule - rules), out);
}

static void check_write_sarif(const struct checked *c, struct buf *out)
{
	const char *version = strchr(command_version_text(), ' ');

	buf_text(out, "{\n  \"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"version\":\"2.1.0\",\n"
		      "  \"runs\":[\n    {\n      \"tool\":{\n        \"driver\":{\n          \"name\":\"preheat\"");
	print_json_text("semanticVersion", version ? version + 1 : "0", out);
	buf_text(out, ",\n          \"rules\":[");
	write_rules(out);
	buf_text(out, "]\n        }\n      },\n      \"columnKind\":\"unicodeCodePoints\",\n      \"results\":[");
	write_results(c, out);
	buf_text(out, "]\n    }\n  ]\n}\n");
}

/* What is wrong, for people and for programs. */

/* "Deployment llm/chat" */
static void check_object_name(const struct contract_object *o, struct buf *out)
{
	buf_printf(out, "%s %s%s%s", o->kind, o->namespace, *o->namespace ? "/" : "", *o->name ? o->name : "(no name)");
}

static bool is_live(const struct yaml_node *at)
{
	return !*at->file;
}

static void print_findings(const struct findings *f)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	size_t files = 0, all = f->count + f->more;

	for (size_t i = 0; i < f->count; i++) {
		finding_print(&f->items[i], &text);
		buf_text(&text, "\n");
		files += !i || strcmp(f->items[i].file, f->items[i - 1].file) != 0;
	}
	fputs(text.text, stdout);
	if (f->more)
		printf("and %zu more\n", f->more);
	printf("\n%zu mistake%s in %zu file%s\n", all, plural(all), files, plural(files));
}

/* All that is wrong with an object, and with others of a cluster in the same way. */
struct wrong_object {
	const struct contract_violation *first;
	size_t count, shown; /* of its violations; those that are not ignored */
	size_t alike;	     /* of the first: it, and those after it with which the same is wrong */
};

static int compare_violations(const struct contract_violation *a, const struct contract_violation *b)
{
	CLEANUP(buf_release) struct buf place = { 0 }, other = { 0 };
	int order = (a->rule > b->rule) - (a->rule < b->rule);

	if (!order)
		order = a->is_ignored - b->is_ignored;
	if (!order)
		order = strcmp(a->found, b->found);
	if (!order)
		order = strcmp(a->remedy, b->remedy);
	if (order)
		return order;
	yaml_path(a->at, &place);
	yaml_path(b->at, &other);
	return strcmp(place.len ? place.text : "", other.len ? other.text : "");
}

/* 0: the same is wrong with both. What stands in a file is told by its place. */
static int compare_wrongs(const struct wrong_object *a, const struct wrong_object *b)
{
	int order = is_live(a->first->object->at) - is_live(b->first->object->at);

	if (!order && !is_live(a->first->object->at))
		return (a->first > b->first) - (a->first < b->first);
	if (!order)
		order = strcmp(a->first->object->kind, b->first->object->kind);
	if (!order)
		order = (a->count > b->count) - (a->count < b->count);
	for (size_t i = 0; !order && i < a->count; i++)
		order = compare_violations(&a->first[i], &b->first[i]);
	return order;
}

static int compare_for_sort(const void *left, const void *right)
{
	const struct wrong_object *a = left, *b = right;
	int order = compare_wrongs(a, b);

	return order ? order : (a->first > b->first) - (a->first < b->first);
}

static int compare_firsts(const void *left, const void *right)
{
	const struct wrong_object *const *a = left, *const *b = right;

	return ((*a)->first > (*b)->first) - ((*a)->first < (*b)->first);
}

/* "Node gpu-1", "pool.yaml:1:1: Deployment llm/chat", "5000 times, for example Node gpu-1, gpu-2, gpu-3". */
static void print_heading(const struct wrong_object *w)
{
	enum { EXAMPLES = 3 };
	CLEANUP(buf_release) struct buf name = { 0 };
	const struct contract_object *o = w->first->object;
	size_t times = 0;

	check_object_name(o, &name);
	for (size_t i = 0; i < w->alike; i++)
		times += w[i].first->object->times;
	if (!is_live(o->at))
		printf("%s:%zu:%zu: ", o->at->file, o->at->line, o->at->column);
	if (times > 1)
		printf("%zu times, for example ", times);
	fputs(name.text, stdout);
	for (size_t i = 1; i < w->alike && i < EXAMPLES; i++) {
		o = w[i].first->object;
		printf(", %s%s%s", o->namespace, *o->namespace ? "/" : "", o->name);
	}
	puts("");
}

static void print_violation(const struct contract_violation *v)
{
	CLEANUP(buf_release) struct buf place = { 0 };

	yaml_path(v->at, &place);
	printf("  %-7s  %s: %s\n", contract_severity_name(v->rule->severity), v->rule->id, v->found);
	if (!is_live(v->at))
		printf("           at %zu:%zu%s%s\n", v->at->line, v->at->column, place.len ? " " : "",
		       place.len ? place.text : "");
	else if (place.len)
		printf("           at %s\n", place.text);
	printf("           do: %s\n", v->remedy);
}

/* Those with which the same is wrong stand side by side; NULL: there are none. */
static struct wrong_object *wrong_objects(const struct checked *c, size_t *count)
{
	struct wrong_object *all = arena_array(c->arena, struct wrong_object, c->report.count);

	*count = 0;
	for (size_t i = 0; i < c->report.count; i++) {
		const struct contract_violation *v = &c->report.items[i];
		if (!i || v->object->at != v[-1].object->at)
			all[(*count)++] = (struct wrong_object){ .first = v };
		all[*count - 1].count++;
		all[*count - 1].shown += !v->is_ignored;
	}
	if (*count)
		qsort(all, *count, sizeof *all, compare_for_sort);
	return all;
}

/* In the order of the first of each. */
static const struct wrong_object **first_of_each(struct wrong_object *all, size_t count, struct arena *a,
						 size_t *firsts)
{
	const struct wrong_object **out = arena_array(a, const struct wrong_object *, count);

	*firsts = 0;
	for (size_t i = 0; i < count; i += all[i].alike) {
		all[i].alike = 1;
		while (i + all[i].alike < count && !compare_wrongs(&all[i], &all[i + all[i].alike]))
			all[i].alike++;
		if (all[i].shown)
			out[(*firsts)++] = &all[i];
	}
	if (*firsts)
		qsort(out, *firsts, sizeof(const struct wrong_object *), compare_firsts);
	return out;
}

static void print_violations(const struct checked *c)
{
	size_t count, firsts;
	struct wrong_object *all = wrong_objects(c, &count);
	const struct wrong_object **groups = first_of_each(all, count, c->arena, &firsts);

	for (size_t i = 0; i < firsts; i++) {
		if (i)
			puts("");
		print_heading(groups[i]);
		for (size_t k = 0; k < groups[i]->count; k++)
			if (!groups[i]->first[k].is_ignored)
				print_violation(&groups[i]->first[k]);
	}
}

static void print_count(size_t n, const char *what, const char *before)
{
	printf("%s%zu %s%s", before, n, what, plural(n));
}

static void print_summary(const struct checked *c)
{
	const struct contract_report *r = &c->report;
	bool is_clean = !r->counts[CONTRACT_ERROR] && !r->counts[CONTRACT_WARNING] && !r->counts[CONTRACT_NOTE];

	for (size_t i = 0; i < r->unjudged_count; i++)
		printf("Not judged: %s.\n", r->unjudged[i]);
	if (c->charts)
		printf("Not judged: templates of %zu chart%s of Helm; render them: helm template CHART | preheat check "
		       "-\n",
		       c->charts, plural(c->charts));
	print_count(r->objects, "object", "");
	if (c->passed_over)
		printf(" (and %zu of kinds that no rule is about)", c->passed_over);
	if (is_clean) {
		printf(c->findings->count ? ": no rule broken" : ": nothing wrong");
	} else {
		print_count(r->counts[CONTRACT_ERROR], "error", ": ");
		print_count(r->counts[CONTRACT_WARNING], "warning", ", ");
		print_count(r->counts[CONTRACT_NOTE], "note", ", ");
	}
	if (r->ignored)
		printf("; %zu ignored by " CONTRACT_IGNORE, r->ignored);
	puts("");
}

static void print_text(const struct checked *c)
{
	if (c->findings->count)
		print_findings(c->findings);
	if (c->has_manifest && c->manifest.fleet.pool_count) {
		check_print_pools(&c->manifest);
		puts("");
	}
	print_violations(c);
	if (c->report.count > c->report.ignored)
		puts("");
	if (!c->findings->count || c->report.objects)
		print_summary(c);
}

static void add_number(struct table *t, size_t n, bool is_known)
{
	if (is_known)
		table_count(t, (int64_t)n);
	else
		table_absent(t);
}

static void add_finding_row(struct table *t, const struct finding *f)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	table_text(t, "error");
	table_text(t, "manifest");
	table_text(t, "WarmPool");
	table_absent(t);
	table_absent(t);
	table_text(t, f->file);
	add_number(t, f->line, f->line);
	add_number(t, f->column, f->line);
	table_text(t, f->path);
	buf_printf(&text, "%s%s%s", f->found, *f->allowed ? "; allowed: " : "", f->allowed);
	table_text(t, text.text);
	table_text(t, f->remedy);
	table_value(t, "no", "false");
	table_count(t, 1);
}

static void add_row(struct table *t, const struct contract_violation *v)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	bool has_place = !is_live(v->at);

	yaml_path(v->at, &path);
	table_text(t, contract_severity_name(v->rule->severity));
	table_text(t, v->rule->id);
	table_text(t, v->object->kind);
	table_text(t, v->object->namespace);
	table_text(t, v->object->name);
	if (has_place)
		table_text(t, v->at->file);
	else
		table_absent(t);
	add_number(t, v->at->line, has_place);
	add_number(t, v->at->column, has_place);
	table_text(t, path.text);
	table_text(t, v->found);
	table_text(t, v->remedy);
	table_value(t, v->is_ignored ? "yes" : "no", v->is_ignored ? "true" : "false");
	table_count(t, (int64_t)v->object->times);
}

static void print_rows(const struct checked *c, enum table_format format)
{
	static const struct table_column columns[] = {
		{ .name = "severity" },
		{ .name = "rule" },
		{ .name = "kind" },
		{ .name = "namespace" },
		{ .name = "name" },
		{ .name = "file" },
		{ .name = "line", .is_right = true },
		{ .name = "column", .is_right = true },
		{ .name = "path" },
		{ .name = "found" },
		{ .name = "remedy" },
		{ .name = "ignored" },
		{ .name = "times", .is_right = true },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < c->findings->count; i++)
		add_finding_row(t, &c->findings->items[i]);
	for (size_t i = 0; i < c->report.count; i++)
		add_row(t, &c->report.items[i]);
	table_print(t, format, stdout);
	table_free(t);
}

static void write_finding_json(const struct finding *item, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "\n    {");
	print_json_text("file", item->file, out);
	buf_printf(out, ",\"line\":%zu,\"column\":%zu", item->line, item->column);
	print_json_text("path", item->path, out);
	print_json_text("found", item->found, out);
	print_json_text("allowed", item->allowed, out);
	print_json_text("remedy", item->remedy, out);
	buf_text(out, "}");
}

static void write_names(const struct manifest *m, struct buf *out)
{
	buf_text(out, ",\n  \"pools\": [");
	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		json_write_comma(out);
		json_write_text(m->fleet.pools[i].name, out);
	}
	buf_text(out, "],\n  \"nodeGroups\": [");
	for (size_t i = 0; i < m->fleet.group_count; i++) {
		json_write_comma(out);
		json_write_text(m->fleet.groups[i].name, out);
	}
	buf_text(out, "]");
}

static void write_violation_json(const struct contract_violation *v, struct buf *out)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	yaml_path(v->at, &path);
	json_write_comma(out);
	buf_text(out, "\n    {");
	print_json_text("severity", contract_severity_name(v->rule->severity), out);
	print_json_text("rule", v->rule->id, out);
	print_json_text("kind", v->object->kind, out);
	print_json_text("namespace", v->object->namespace, out);
	print_json_text("name", v->object->name, out);
	if (is_live(v->at)) {
		buf_text(out, ",\"file\":null,\"line\":null,\"column\":null");
	} else {
		print_json_text("file", v->at->file, out);
		buf_printf(out, ",\"line\":%zu,\"column\":%zu", v->at->line, v->at->column);
	}
	print_json_text("path", path.text, out);
	print_json_text("found", v->found, out);
	print_json_text("remedy", v->remedy, out);
	print_json_bool("ignored", v->is_ignored, out);
	buf_printf(out, ",\"times\":%zu}", v->object->times);
}

static void write_json(const struct checked *c, struct buf *out)
{
	const struct contract_report *r = &c->report;
	bool is_valid = !c->findings->count && !r->counts[CONTRACT_ERROR];

	buf_printf(out, "{\n  \"valid\": %s,\n  \"findings\": [", is_valid ? "true" : "false");
	for (size_t i = 0; i < c->findings->count; i++)
		write_finding_json(&c->findings->items[i], out);
	buf_printf(out, "%s],\n  \"more\": %zu,\n  \"violations\": [", c->findings->count ? "\n  " : "",
		   c->findings->more);
	for (size_t i = 0; i < r->count; i++)
		write_violation_json(&r->items[i], out);
	buf_printf(out, "%s],\n  \"counts\": {\"error\":%zu,\"warning\":%zu,\"note\":%zu,\"ignored\":%zu},\n",
		   r->count ? "\n  " : "", r->counts[CONTRACT_ERROR], r->counts[CONTRACT_WARNING],
		   r->counts[CONTRACT_NOTE], r->ignored);
	buf_printf(out, "  \"objects\": %zu,\n  \"passedOver\": %zu,\n  \"notJudged\": [", r->objects, c->passed_over);
	for (size_t i = 0; i < r->unjudged_count; i++) {
		json_write_comma(out);
		json_write_text(r->unjudged[i], out);
	}
	buf_printf(out, "],\n  \"charts\": %zu", c->charts);
	if (c->has_manifest)
		write_names(&c->manifest, out);
	buf_text(out, "\n}\n");
}

static void check_print(const struct checked *c, const char *form)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	if (!strcmp(form, "table")) {
		print_text(c);
	} else if (!strcmp(form, "sarif")) {
		check_write_sarif(c, &out);
		fwrite(out.text, 1, out.len, stdout);
	} else if (!strcmp(form, "json") || !strcmp(form, "yaml")) {
		CLEANUP(print_tree_release) struct printed_tree answer = { 0 };
		write_json(c, &answer.json);
		print_tree(&answer, form);
	} else {
		print_rows(c, table_format_of(form));
	}
}

/* What was named on the command line: world files beside the manifests that they are about. */
struct named {
	const char **pools, **worlds;
	size_t pool_count, world_count;
};

static struct named sort_paths(const char *const *paths, size_t count, struct arena *a)
{
	struct named n = { arena_array(a, const char *, count), arena_array(a, const char *, count), 0, 0 };

	for (size_t i = 0; i < count; i++) {
		if (world_file_is(paths[i]))
			n.worlds[n.world_count++] = paths[i];
		else
			n.pools[n.pool_count++] = paths[i];
	}
	return n;
}

static struct {
	bool reads_cluster, is_strict;
	struct cluster_args access;
	const char *output;
} options;

static bool read_objects(struct checked *c, const struct named *n, struct error *e)
{
	if (n->world_count && !n->pool_count)
		return error_set(e, ERROR_INVALID, "%s: a world is checked against its pools; name their manifest, too",
				 n->worlds[0]);
	if (!n->pool_count && !options.reads_cluster)
		return error_set(e, ERROR_INVALID,
				 "nothing named; name a file, a folder or - for standard input, or ask for --cluster");
	if (options.reads_cluster && !check_read_cluster(c, &options.access, e))
		return false;
	return check_read_paths(c, n->pools, n->pool_count, e) || c->findings->count;
}

static bool check_worlds(struct checked *c, const struct named *n, struct error *e)
{
	for (size_t i = 0; i < n->world_count; i++)
		if (!world_file_check(n->worlds[i], c->has_manifest ? &c->manifest.fleet : NULL, c->arena, c->findings,
				      e))
			return false;
	return true;
}

/* Read by the model alone, and only once a comparison is made. */
static void check_former_autoscalers(struct checked *c)
{
	const struct policy_ops *configured = rival_find("configured");

	for (size_t i = 0; i < c->manifest.fleet.pool_count; i++) {
		const struct spec_text *spec = &c->manifest.pools[i].spec;
		struct error e = { 0 };
		void *state = spec->former_autoscaler
				      ? configured->open(&c->manifest.fleet, spec->former_autoscaler, &e)
				      : NULL;
		if (state)
			configured->close(state);
		else if (spec->former_autoscaler)
			schema_find_key(c->findings, spec->node, "formerAutoscaler", spec->former_autoscaler,
					"settings like total=40,min=2,max=20", e.message);
	}
}

static void judge(struct checked *c)
{
	const struct clock wall = clock_open();
	struct contract *contract = contract_new(c->arena, clock_now(&wall));
	struct error ignored;

	c->has_manifest = c->pool_count &&
			  manifest_load_roots(c->pools, c->pool_count, c->arena, &c->manifest, c->findings, &ignored);
	if (c->has_manifest)
		check_former_autoscalers(c);
	for (size_t i = 0; i < c->object_count; i++)
		contract_add(contract, c->objects[i].root, c->objects[i].times);
	contract_set_pools(contract, c->has_manifest ? &c->manifest : NULL, c->pool_count > 0 && !c->has_manifest);
	if (c->is_whole)
		contract_set_whole(contract);
	c->report = contract_judge(contract);
}

static int verdict(const struct checked *c)
{
	const struct contract_report *r = &c->report;
	bool has_errors = r->counts[CONTRACT_ERROR] || (options.is_strict && r->counts[CONTRACT_WARNING]);

	return c->findings->count || has_errors ? EXIT_FOUND : EXIT_DONE;
}

static int check(const char *const *paths, size_t count)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct checked c = { .arena = &a, .findings = &f };
	struct named named = sort_paths(paths, count, &a);
	struct error e = { 0 };

	if (!read_objects(&c, &named, &e))
		return command_failed(&command_check, &e);
	struct error unreadable = e;
	judge(&c);
	if (!check_worlds(&c, &named, &e))
		return command_failed(&command_check, &e);
	findings_sort(&f);
	check_print(&c, options.output);
	return f.is_incomplete ? command_failed(&command_check, &unreadable) : verdict(&c);
}

static int run(int argc, char **argv)
{
	bool wants_reference = false, wants_schema = false, wants_rules = false, wants_policies = false;
	const struct option_row rows[] = {
		{ "cluster", 0, OPTION_FLAG, NULL, "check the objects of a live cluster, nodes included; read-only",
		  &options.reads_cluster, NULL },
		{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "with --cluster: only this namespace (default: all)",
		  &options.access.namespace, NULL },
		CLUSTER_ARGS_OPTIONS(&options.access),
		{ "strict", 0, OPTION_FLAG, NULL, "exit code 1 also for warnings", &options.is_strict, NULL },
		{ "output", 'o', OPTION_CHOICE, "FORMAT", "how it is printed", &options.output, PRINT_FORMS "|sarif" },
		{ "print-rules", 0, OPTION_FLAG, NULL, "print the rules of the scheduling contract (docs/contract.md)",
		  &wants_rules, NULL },
		{ "print-policies", 0, OPTION_FLAG, NULL,
		  "print them as admission policies (deploy/admission/policies/policies.yaml)", &wants_policies, NULL },
		{ "print-reference", 0, OPTION_FLAG, NULL, "print the manifest reference (docs/manifest.md)",
		  &wants_reference, NULL },
		{ "print-schema", 0, OPTION_FLAG, NULL, "print its JSON Schema (docs/manifest.schema.json)",
		  &wants_schema, NULL },
	};
	int rest, code;

	options.output = "table";
	if (!command_options(&command_check, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (wants_rules)
		return command_print(contract_write_reference);
	if (wants_policies)
		return command_print(contract_write_policies);
	if (wants_reference)
		return command_print(manifest_write_reference);
	if (wants_schema)
		return command_print(manifest_write_json_schema);
	return check((const char *const *)argv + rest, (size_t)(argc - rest));
}

static const struct option_rule rules[] = {
	{ "namespace", OPTION_NEEDS, "cluster" },
	{ "kubeconfig", OPTION_NEEDS, "cluster" },
	{ "context", OPTION_NEEDS, "cluster" },
	{ 0 },
};

const struct command command_check = {
	.name = "check",
	.usage = "check [OPTIONS] FILE|FOLDER|-...",
	.summary = "Check manifests and what runs beside pools, in files or in a cluster",
	.examples = "  preheat check pool.yaml\n"
		    "  preheat check manifests/ --output json\n"
		    "  helm template my-release ./chart | preheat check - pools.yaml\n"
		    "  preheat check --cluster                 live objects, nodes too\n"
		    "  preheat check manifests/ -o sarif >preheat.sarif\n"
		    "  preheat check pool.yaml world.yaml      a world file against its pools\n"
		    "  kubectl get configmap preheat -o jsonpath='{.data.pools\\.yaml}' | preheat check -\n",
	.notes = "WarmPools are checked key by key (docs/manifest.md). Workloads, nodes, budgets and scalers are "
		 "judged by\n"
		 "the rules of the scheduling contract (docs/contract.md): each violation names its rule and remedy.\n"
		 "The annotation preheat.dev/ignore: RULE, RULE takes rules off an object.\n",
	.arguments = "FILE",
	.rules = rules,
	.run = run,
};
