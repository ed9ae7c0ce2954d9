#include "base/terminal.h"
#include "base/table.h"
#include "controller/commands/provider_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const enum style verdict_styles[] = { STYLE_GOOD, STYLE_BAD, STYLE_WARN };
static const enum style state_styles[] = { STYLE_GOOD, STYLE_BAD, STYLE_WARN };

static void print_line(const char *title, const char *text)
{
	printf("  %-10s %s\n", title, text);
}

static void print_all(const char *title, const struct sentences *s)
{
	for (size_t i = 0; i < s->count; i++)
		print_line(i ? "" : title, s->items[i]);
}

static void print_machines(const struct group_description *d, struct arena *a)
{
	struct machine_row *rows;
	size_t count = machine_rows(d, a, &rows);

	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		const struct machine_row *r = &rows[i];
		buf_printf(&text, "%" PRId64 " %s%s%s%s%s%s", r->count, machine_state_name(r->state),
			   *r->instance_type ? " " : "", r->instance_type, *r->zone ? " in " : "", r->zone,
			   r->is_standby && r->state != MACHINE_STOPPED ? ", for standby" : "");
		print_line(i ? "" : "machines", text.text);
	}
	if (!count)
		print_line("machines", "none");
}

static void print_failures(const struct group_description *d)
{
	for (size_t i = 0; i < d->failure_count; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		const struct launch_failure *f = &d->failures[i];
		buf_printf(&text, "%" PRId64 " %s%s%s%s%s: %s", f->count, error_kind_name(f->kind),
			   *f->instance_type ? " " : "", f->instance_type, *f->zone ? " in " : "", f->zone, f->message);
		print_line(i ? "" : "failures", text.text);
	}
	if (!d->failure_count)
		print_line("failures", "none that leave machines missing");
}

static void print_sight(const struct group_check *g, struct arena *a)
{
	const struct group_description *d = &g->describe.description;
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%" PRId64 " asked for; cloud %" PRId64, d->desired, d->min);
	if (d->max)
		buf_printf(&text, " to %" PRId64, d->max);
	else
		buf_text(&text, " and up");
	buf_printf(&text, ", manifest %" PRId64 " to %" PRId64, g->spec->min_nodes, g->spec->max_nodes);
	if (d->abilities & PROVIDER_HAS_STANDBY)
		buf_printf(&text, "; standby %" PRId64 ", manifest up to %" PRId64, d->standby,
			   g->spec->standby_max_nodes);
	print_line("size", text.text);
	print_machines(d, a);
	print_failures(d);
	if (d->is_busy)
		print_line("busy", "an operation is under way there");
}

static void print_permissions(const struct group_check *g, bool is_wide)
{
	static const struct table_column columns[] = {
		{ .name = "permission" }, { .name = "state" }, { .name = "for" }, { .name = "answer", .is_wide = true }
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < g->check.permission_count; i++) {
		CLEANUP(buf_release) struct buf purpose = { 0 };
		const struct permission *p = &g->check.permissions[i];
		bool is_spare = p->state == PERMISSION_DENIED && group_check_can_do_without(g, p);
		buf_printf(&purpose, "%s%s", p->purpose, is_spare ? " (not needed here)" : "");
		if (p->state == PERMISSION_UNKNOWN && *p->message)
			buf_printf(&purpose, ": %s", p->message);
		table_text(t, p->action);
		table_text(t, permission_state_name(p->state));
		table_style(t, is_spare ? STYLE_FAINT : state_styles[p->state]);
		table_text(t, purpose.text);
		table_text(t, p->message);
	}
	if (table_rows(t)) {
		puts("");
		table_print(t, is_wide ? TABLE_WIDE : TABLE_PLAIN, stdout);
	}
	table_free(t);
}

static void print_group(const struct group_check *g, const struct terminal *t, bool is_wide, struct arena *a)
{
	bool was_asked = g->error.kind == ERROR_NONE;

	printf("%s%s%s: %s%s%s\n", terminal_style(t, STYLE_STRONG), g->spec->name, terminal_style(t, STYLE_PLAIN),
	       terminal_style(t, verdict_styles[g->verdict]), group_verdict_name(g->verdict),
	       terminal_style(t, STYLE_PLAIN));
	print_line("pools", g->pools);
	print_line("provider", g->spec->provider);
	if (was_asked && g->check.identity)
		print_line("we are", g->check.identity);
	if (was_asked && g->describe.error.kind == ERROR_NONE)
		print_sight(g, a);
	print_all("refused", &g->refused);
	print_all("would", &g->would);
	print_all("note", &g->notes);
	if (was_asked)
		print_permissions(g, is_wide);
	puts("");
}

void provider_check_print(const struct group_check *groups, size_t count, bool is_wide, struct arena *a)
{
	struct terminal t = terminal_of(stdout);
	size_t counts[GROUP_UNANSWERED + 1] = { 0 };

	for (size_t i = 0; i < count; i++) {
		print_group(&groups[i], &t, is_wide, a);
		counts[groups[i].verdict]++;
	}
	printf("%zu node group%s: %zu fine, %zu refused, %zu unanswered. Nothing was changed.\n", count,
	       count == 1 ? "" : "s", counts[GROUP_FINE], counts[GROUP_REFUSED], counts[GROUP_UNANSWERED]);
}
