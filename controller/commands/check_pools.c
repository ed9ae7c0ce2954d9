/* What pools and node groups are understood to say. */
#include "base/quantity.h"
#include "base/table.h"
#include "controller/commands/check_parts.h"

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

void check_print_pools(const struct manifest *m)
{
	print_pools(m, TABLE_PLAIN);
	puts("");
	print_groups(m, TABLE_PLAIN);
	puts("\n* a default; everything else is as written");
}
