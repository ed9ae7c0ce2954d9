/* What is wrong, for people and for programs. */
#include "base/json.h"
#include "controller/commands/answer.h"
#include "controller/commands/check_parts.h"

#include <stdio.h>
#include <string.h>

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

void check_object_name(const struct contract_object *o, struct buf *out)
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

static void print_heading(const struct contract_object *o)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	check_object_name(o, &name);
	if (is_live(o->at))
		puts(name.text);
	else
		printf("%s:%zu:%zu: %s\n", o->at->file, o->at->line, o->at->column, name.text);
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

static void print_violations(const struct contract_report *r)
{
	const struct contract_object *last = NULL;

	for (size_t i = 0; i < r->count; i++) {
		const struct contract_violation *v = &r->items[i];
		if (v->is_ignored)
			continue;
		if (!last || v->object->at != last->at) {
			if (last)
				puts("");
			print_heading(v->object);
		}
		last = v->object;
		print_violation(v);
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
	print_violations(&c->report);
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
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < c->findings->count; i++)
		add_finding_row(t, &c->findings->items[i]);
	for (size_t i = 0; i < c->report.count; i++)
		add_row(t, &c->report.items[i]);
	table_print(t, format, stdout);
	table_free(t);
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

static void write_violation_json(const struct contract_violation *v, struct buf *out)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	yaml_path(v->at, &path);
	json_write_comma(out);
	buf_text(out, "\n    {");
	json_member("severity", contract_severity_name(v->rule->severity), out);
	json_member("rule", v->rule->id, out);
	json_member("kind", v->object->kind, out);
	json_member("namespace", v->object->namespace, out);
	json_member("name", v->object->name, out);
	if (is_live(v->at)) {
		buf_text(out, ",\"file\":null,\"line\":null,\"column\":null");
	} else {
		json_member("file", v->at->file, out);
		buf_printf(out, ",\"line\":%zu,\"column\":%zu", v->at->line, v->at->column);
	}
	json_member("path", path.text, out);
	json_member("found", v->found, out);
	json_member("remedy", v->remedy, out);
	buf_printf(out, ",\"ignored\":%s}", v->is_ignored ? "true" : "false");
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

void check_print(const struct checked *c, const char *form)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	if (!strcmp(form, "table")) {
		print_text(c);
	} else if (!strcmp(form, "sarif")) {
		check_write_sarif(c, &out);
		fwrite(out.text, 1, out.len, stdout);
	} else if (!strcmp(form, "json") || !strcmp(form, "yaml")) {
		CLEANUP(answer_release) struct answer answer = { 0 };
		write_json(c, &answer.json);
		answer_print(&answer, form);
	} else {
		print_rows(c, table_format_of(form));
	}
}
