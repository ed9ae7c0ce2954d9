/* SARIF 2.1.0, as code scanning reads it. */
#include "base/json.h"
#include "controller/commands/check_parts.h"
#include "controller/commands/command.h"

#include <string.h>

static const char manifest_rule[] = "manifest";

static void member(const char *key, const char *text, struct buf *out)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":", key);
	json_write_text(text, out);
}

static void write_rule(const struct contract_rule *r, struct buf *out)
{
	CLEANUP(buf_release) struct buf help = { 0 };

	buf_printf(&help, "%s Do: %s.", r->why, r->remedy);
	json_write_comma(out);
	buf_text(out, "\n          {");
	member("id", r->id, out);
	buf_text(out, ",\"shortDescription\":{");
	member("text", r->title, out);
	buf_text(out, "},\"fullDescription\":{");
	member("text", r->why, out);
	buf_text(out, "},\"help\":{");
	member("text", help.text, out);
	buf_printf(out, "},\"helpUri\":\"https://preheat.dev/docs/contract#%s\"", r->id);
	buf_printf(out,
		   ",\"defaultConfiguration\":{\"level\":\"%s\"},\"properties\":{\"tags\":[\"kubernetes\",\"gpu\"],",
		   contract_severity_name(r->severity));
	member("kinds", r->kinds, out);
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
	member("uri", uri.len ? uri.text : ".", out);
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

static void write_object(const struct contract_violation *v, struct buf *out)
{
	CLEANUP(buf_release) struct buf name = { 0 }, path = { 0 };
	const struct contract_object *o = v->object;

	buf_printf(&name, "%s/%s%s%s", o->kind, o->namespace, *o->namespace ? "/" : "", o->name);
	yaml_path(v->at, &path);
	buf_text(out, ",\"logicalLocations\":[{");
	member("name", o->name, out);
	if (path.len)
		buf_printf(&name, "/%s", path.text);
	member("fullyQualifiedName", name.text, out);
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
	write_object(v, out);
	buf_text(out, "}]");
}

static void write_result(const struct contract_violation *v, size_t rule, struct buf *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };

	check_object_name(v->object, &message);
	buf_printf(&message, ": %s. Do: %s.", v->found, v->remedy);
	json_write_comma(out);
	buf_text(out, "\n        {");
	member("ruleId", v->rule->id, out);
	buf_printf(out, ",\"ruleIndex\":%zu,\"level\":\"%s\",\"message\":{", rule,
		   contract_severity_name(v->rule->severity));
	member("text", message.text, out);
	buf_text(out, "}");
	write_location(v, out);
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
	member("text", message.text, out);
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

void check_write_sarif(const struct checked *c, struct buf *out)
{
	const char *version = strchr(command_version_text(), ' ');

	buf_text(out, "{\n  \"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"version\":\"2.1.0\",\n"
		      "  \"runs\":[\n    {\n      \"tool\":{\n        \"driver\":{\n          \"name\":\"preheat\"");
	member("semanticVersion", version ? version + 1 : "0", out);
	buf_text(out, ",\n          \"rules\":[");
	write_rules(out);
	buf_text(out, "]\n        }\n      },\n      \"columnKind\":\"unicodeCodePoints\",\n      \"results\":[");
	write_results(c, out);
	buf_text(out, "]\n    }\n  ]\n}\n");
}
