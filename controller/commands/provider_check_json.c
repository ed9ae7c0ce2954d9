#include "base/json.h"
#include "controller/commands/provider_check.h"

#include <inttypes.h>

static void name(const char *key, struct buf *out)
{
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
}

static void text_member(const char *key, const char *text, struct buf *out)
{
	name(key, out);
	if (text)
		json_write_text(text, out);
	else
		buf_text(out, "null");
}

static void number_member(const char *key, int64_t n, struct buf *out)
{
	name(key, out);
	buf_printf(out, "%" PRId64, n);
}

static void bool_member(const char *key, bool is_so, struct buf *out)
{
	name(key, out);
	buf_text(out, is_so ? "true" : "false");
}

static void write_sentences(const char *key, const struct sentences *s, struct buf *out)
{
	name(key, out);
	buf_text(out, "[");
	for (size_t i = 0; i < s->count; i++) {
		json_write_comma(out);
		json_write_text(s->items[i], out);
	}
	buf_text(out, "]");
}

static void write_error(const char *key, const struct error *e, struct buf *out)
{
	name(key, out);
	if (e->kind == ERROR_NONE) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{");
	text_member("kind", error_kind_name(e->kind), out);
	text_member("message", e->message, out);
	buf_text(out, "}");
}

static void write_permissions(const struct group_check *g, struct buf *out)
{
	name("permissions", out);
	buf_text(out, "[");
	for (size_t i = 0; i < g->check.permission_count; i++) {
		const struct permission *p = &g->check.permissions[i];
		json_write_comma(out);
		buf_text(out, "\n      {");
		text_member("action", p->action, out);
		text_member("state", permission_state_name(p->state), out);
		bool_member("needed", !group_check_can_do_without(g, p), out);
		text_member("purpose", p->purpose, out);
		text_member("message", p->message, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_machines(const struct group_description *d, struct arena *a, struct buf *out)
{
	struct machine_row *rows;
	size_t count = machine_rows(d, a, &rows);

	name("machines", out);
	buf_text(out, "[");
	for (size_t i = 0; i < count; i++) {
		json_write_comma(out);
		buf_text(out, "{");
		text_member("state", machine_state_name(rows[i].state), out);
		text_member("zone", rows[i].zone, out);
		text_member("instanceType", rows[i].instance_type, out);
		bool_member("standby", rows[i].is_standby, out);
		number_member("count", rows[i].count, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_failures(const struct group_description *d, struct buf *out)
{
	name("failures", out);
	buf_text(out, "[");
	for (size_t i = 0; i < d->failure_count; i++) {
		const struct launch_failure *f = &d->failures[i];
		json_write_comma(out);
		buf_text(out, "{");
		text_member("kind", error_kind_name(f->kind), out);
		text_member("zone", f->zone, out);
		text_member("instanceType", f->instance_type, out);
		number_member("count", f->count, out);
		text_member("message", f->message, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_sight(const struct group_check *g, struct arena *a, struct buf *out)
{
	const struct group_description *d = &g->describe.description;

	name("sees", out);
	if (g->error.kind != ERROR_NONE || g->describe.error.kind != ERROR_NONE) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{");
	number_member("min", d->min, out);
	number_member("max", d->max, out);
	number_member("desired", d->desired, out);
	number_member("standby", d->standby, out);
	bool_member("hasStandby", d->abilities & PROVIDER_HAS_STANDBY, out);
	bool_member("busy", d->is_busy, out);
	write_machines(d, a, out);
	write_failures(d, out);
	buf_text(out, "}");
}

void provider_check_write_json(const struct group_check *groups, size_t count, struct arena *a, struct buf *out)
{
	buf_text(out, "{\"nodeGroups\":[");
	for (size_t i = 0; i < count; i++) {
		const struct group_check *g = &groups[i];
		json_write_comma(out);
		buf_text(out, "\n  {");
		text_member("name", g->spec->name, out);
		text_member("pools", g->pools, out);
		text_member("provider", g->spec->provider, out);
		text_member("verdict", group_verdict_name(g->verdict), out);
		text_member("identity", g->check.identity, out);
		write_error("error", &g->error, out);
		write_error("checkError", &g->check.error, out);
		write_error("describeError", &g->describe.error, out);
		write_sight(g, a, out);
		write_sentences("refused", &g->refused, out);
		write_sentences("would", &g->would, out);
		write_sentences("notes", &g->notes, out);
		write_permissions(g, out);
		buf_text(out, "}");
	}
	buf_text(out, "\n]}\n");
}
