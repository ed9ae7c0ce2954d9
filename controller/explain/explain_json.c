#include "controller/explain/explain.h"

#include "base/json_write.h"

#include <string.h>

static void put_value(const struct field_info *f, int64_t value, struct buf *out)
{
	const char *name = strncmp(f->unit, "enum:", 5) ? NULL : field_enum_name(f->unit + 5, value);

	bool is_time = !strcmp(f->unit, "time");

	if (value == ABSENT || (is_time && !value)) {
		buf_text(out, "null");
	} else if (name) {
		json_write_text(name, out);
	} else if (is_time) {
		buf_text(out, "\"");
		explain_time_rfc3339(value, out);
		buf_text(out, "\"");
	} else {
		buf_printf(out, "%lld", (long long)value);
	}
}

static void put_fields(const struct record_info *info, const void *record, struct buf *out)
{
	const int64_t *values = record;

	for (size_t i = 0; i < info->count; i++) {
		buf_printf(out, "%s\"%s\":", i ? "," : "", info->fields[i].name);
		put_value(&info->fields[i], values[i], out);
	}
}

static void put_list(const char *name, const struct record_info *info, const void *records, size_t count,
		     struct buf *out)
{
	buf_printf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ",\n {" : "\n {");
		put_fields(info, (const int64_t *)records + i * info->count, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void put_groups(const struct explained *x, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];

	buf_text(out, ",\n\"groups\":[");
	for (size_t i = 0; i < x->plan->group_count; i++) {
		const struct group_spec *g = i < pool->group_count ? &x->fleet->groups[pool->groups[i]] : NULL;

		buf_text(out, i ? ",\n {\"name\":" : "\n {\"name\":");
		json_write_text(g ? g->name : "?", out);
		buf_printf(out, ",\"price_per_hour\":%lld,", g ? (long long)g->price_per_hour : 0LL);
		put_fields(&group_decision_info, &x->plan->groups[i], out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void put_input(const struct pool_snapshot *in, struct buf *out)
{
	buf_text(out, ",\n\"input\":{");
	put_fields(&pool_input_info, &in->input, out);
	put_list("scrapes", &scrape_input_info, in->scrapes, in->scrape_count, out);
	put_list("groups", &group_input_info, in->groups, in->group_count, out);
	put_list("starts", &start_input_info, in->starts, in->start_count, out);
	put_list("events", &event_input_info, in->events, in->event_count, out);
	put_list("deadlines", &deadline_input_info, in->deadlines, in->deadline_count, out);
	buf_text(out, "}");
}

static void put_units(struct buf *out)
{
	static const struct record_info *const infos[] = { &pool_decision_info,	  &group_decision_info,
							   &objective_price_info, &pool_input_info,
							   &scrape_input_info,	  &group_input_info,
							   &start_input_info,	  &event_input_info,
							   &deadline_input_info,  NULL };

	buf_text(out, ",\n\"units\":{");
	for (size_t i = 0; infos[i]; i++) {
		buf_printf(out, "%s\n \"%s\":{", i ? "," : "", infos[i]->name);
		for (size_t f = 0; f < infos[i]->count; f++)
			buf_printf(out, "%s\"%s\":\"%s\"", f ? "," : "", infos[i]->fields[f].name,
				   infos[i]->fields[f].unit);
		buf_text(out, "}");
	}
	buf_text(out, "}");
}

static void put_explanation(const struct explained *x, struct buf *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct explanation e = explain_decision(x, &scratch);

	buf_text(out, ",\n\"explanation\":[");
	for (size_t i = 0; i < e.count; i++) {
		buf_text(out, i ? ",\n {\"title\":" : "\n {\"title\":");
		json_write_text(e.parts[i].title, out);
		buf_text(out, ",\"text\":");
		json_write_text(e.parts[i].text, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void explain_json_members(const struct explained *x, const struct pool_snapshot *input, struct buf *out)
{
	buf_text(out, "\"decision\":{");
	put_fields(&pool_decision_info, &x->plan->decision, out);
	buf_text(out, "}");
	put_groups(x, out);
	put_list("prices", &objective_price_info, x->plan->prices, x->plan->price_count, out);
	if (input)
		put_input(input, out);
	put_units(out);
	put_explanation(x, out);
}

void explain_json(const struct explained *x, const struct pool_snapshot *input, struct buf *out)
{
	const struct pool_spec *pool = &x->fleet->pools[x->pool];

	buf_text(out, "{\"pool\":");
	json_write_text(pool->name, out);
	buf_text(out, ",\"namespace\":");
	json_write_text(pool->namespace, out);
	buf_printf(out, ",\"tick\":%lld,\"at\":\"", (long long)x->tick);
	explain_time_rfc3339(x->now, out);
	buf_printf(out, "\",\"objective_wait\":%lld,\n", (long long)pool->objective_wait);
	explain_json_members(x, input, out);
	buf_text(out, "}\n");
}
