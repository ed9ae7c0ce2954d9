#include "controller/commands/command.h"

#include "base/json_write.h"
#include "base/quantity.h"
#include "base/table.h"
#include "controller/manifest/manifest.h"
#include "controller/manifest/reference.h"
#include "controller/simulation/files/world_file.h"

#include <stdio.h>
#include <string.h>

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
		{ .name = "pool" },	 { .name = "class" },	  { .name = "mode" },
		{ .name = "objective" }, { .name = "sequences" }, { .name = "lead_time", .title = "LEAD P50/P95" },
		{ .name = "headroom" },	 { .name = "budget" },	  { .name = "node_groups", .title = "NODE GROUPS" },
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
		{ .name = "standby" },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	CLEANUP(buf_release) struct buf text = { 0 };

	for (size_t i = 0; i < m->fleet.group_count; i++) {
		const struct group_spec *g = &m->fleet.groups[i];
		table_text(t, g->name);
		table_text(t, g->provider);
		buf_text(&text, capacity_type_name(g->capacity_type));
		mark(manifest_group_gives(m, i, "capacityType"), &text);
		add_cell(t, &text);
		number_cell(t, g->gpus_per_node, manifest_group_gives(m, i, "gpusPerNode"), &text);
		fixed_format(g->price_per_hour, DOLLAR_DIGITS, &text);
		mark(manifest_group_gives(m, i, "pricePerHour"), &text);
		add_cell(t, &text);
		number_cell(t, g->min_nodes, manifest_group_gives(m, i, "min"), &text);
		number_cell(t, g->max_nodes, manifest_group_gives(m, i, "max"), &text);
		standby_cell(g, &text);
		add_cell(t, &text);
	}
	table_print(t, format, stdout);
	table_free(t);
}

static void print_manifest(const struct manifest *m)
{
	print_pools(m, TABLE_PLAIN);
	puts("");
	print_groups(m, TABLE_PLAIN);
	printf("\n* a default; everything else is as written\n%zu pool%s on %zu node group%s: nothing wrong\n",
	       m->fleet.pool_count, plural(m->fleet.pool_count), m->fleet.group_count, plural(m->fleet.group_count));
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

static void json_member(const char *key, const char *text, struct buf *out)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":", key);
	json_write_text(text, out);
}

static void write_finding_json(const struct finding *item, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "\n    {");
	json_member("file", item->file, out);
	buf_printf(out, ",\"line\":%zu,\"column\":%zu", item->line, item->column);
	json_member("path", item->path, out);
	json_member("found", item->found, out);
	json_member("allowed", item->allowed, out);
	json_member("remedy", item->remedy, out);
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

/* `m` NULL: nothing was understood. */
static void print_json(const struct findings *f, const struct manifest *m)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	buf_printf(&out, "{\n  \"valid\": %s,\n  \"findings\": [", m ? "true" : "false");
	for (size_t i = 0; i < f->count; i++)
		write_finding_json(&f->items[i], &out);
	buf_printf(&out, "%s],\n  \"more\": %zu", f->count ? "\n  " : "", f->more);
	if (m)
		write_names(m, &out);
	buf_text(&out, "\n}\n");
	fputs(out.text, stdout);
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

static bool load(const struct named *n, struct arena *a, struct manifest *m, struct findings *f, struct error *e)
{
	if (n->world_count && !n->pool_count)
		return error_set(e, ERROR_INVALID, "%s: a world is checked against its pools; name their manifest, too",
				 n->worlds[0]);
	bool is_valid = manifest_load(n->pools, n->pool_count, a, m, f, e);
	bool has_fleet = is_valid;
	for (size_t i = 0; i < n->world_count; i++) {
		if (!world_file_check(n->worlds[i], has_fleet ? &m->fleet : NULL, a, f, e))
			return false;
		is_valid = is_valid && !f->count;
	}
	findings_sort(f);
	return is_valid;
}

static int check(const char *const *paths, size_t count, bool wants_json)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct named named = sort_paths(paths, count, &a);
	struct manifest m;
	struct error e = { 0 };
	bool is_valid = load(&named, &a, &m, &f, &e);

	if (wants_json)
		print_json(&f, is_valid ? &m : NULL);
	else if (is_valid)
		print_manifest(&m);
	else if (f.count)
		print_findings(&f);
	if (f.is_incomplete || (!is_valid && !f.count))
		return command_failed(&command_check, &e);
	return is_valid ? EXIT_DONE : EXIT_FOUND;
}

static int print_generated(void (*write)(struct buf *))
{
	CLEANUP(buf_release) struct buf text = { 0 };

	write(&text);
	fputs(text.text, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	const char *output = "table";
	bool wants_reference = false, wants_schema = false;
	const struct option_row rows[] = {
		{ "output", 'o', OPTION_CHOICE, "FORMAT", "table or json", &output, "table|json" },
		{ "print-reference", 0, OPTION_FLAG, NULL, "print what a manifest may say (docs/manifest.md)",
		  &wants_reference, NULL },
		{ "print-schema", 0, OPTION_FLAG, NULL, "print its JSON Schema (docs/manifest.schema.json)",
		  &wants_schema, NULL },
	};
	int rest, code;

	if (!command_options(&command_check, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (wants_reference)
		return print_generated(manifest_write_reference);
	if (wants_schema)
		return print_generated(manifest_write_json_schema);
	return check((const char *const *)argv + rest, (size_t)(argc - rest), !strcmp(output, "json"));
}

const struct command command_check = {
	.name = "check",
	.usage = "check [OPTIONS] FILE|FOLDER|-...",
	.summary = "Check manifests, and show what they are understood to say",
	.examples = "  preheat check pool.yaml\n"
		    "  preheat check manifests/ --output json\n"
		    "  preheat check pool.yaml world.yaml      a world file against its pools\n"
		    "  kubectl get configmap preheat -o jsonpath='{.data.pools\\.yaml}' | preheat check -\n",
	.arguments = "FILE",
	.run = run,
};
