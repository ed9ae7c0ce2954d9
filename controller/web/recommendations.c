#include "controller/web/recommendations.h"

#include "base/decode.h"
#include "base/list.h"
#include "controller/policy/fields.h"

#include <string.h>

struct advice_row {
	const char *namespace, *pool, *change, *needs, *why;
	struct decoded_text saves, dollars, gpu_hours, days;
	int64_t late_ppm, late_with_ppm, allowed_ppm, incidents, incidents_late, incidents_late_with;
};

static const struct field row_fields[] = {
	FIELD(struct advice_row, namespace, FIELD_STRING, "namespace"),
	FIELD(struct advice_row, pool, FIELD_STRING, "pool"),
	FIELD(struct advice_row, change, FIELD_STRING, "change"),
	FIELD(struct advice_row, needs, FIELD_STRING, "needs"),
	FIELD(struct advice_row, why, FIELD_STRING, "why"),
	FIELD(struct advice_row, days, FIELD_RAW, "tried_days"),
	FIELD(struct advice_row, incidents, FIELD_INT, "incidents"),
	FIELD(struct advice_row, incidents_late, FIELD_INT, "incidents_late"),
	FIELD(struct advice_row, incidents_late_with, FIELD_INT, "incidents_late_with"),
	FIELD(struct advice_row, saves, FIELD_RAW, "saves_dollars_a_day"),
	FIELD(struct advice_row, dollars, FIELD_RAW, "dollars_a_day"),
	FIELD(struct advice_row, gpu_hours, FIELD_RAW, "saves_gpu_hours_a_day"),
	FIELD(struct advice_row, late_ppm, FIELD_INT, "late_ppm"),
	FIELD(struct advice_row, late_with_ppm, FIELD_INT, "late_with_ppm"),
	FIELD(struct advice_row, allowed_ppm, FIELD_INT, "allowed_ppm"),
};
static const struct record_spec row_record = { "[]", sizeof(struct advice_row), row_fields,
					       sizeof row_fields / sizeof *row_fields };

struct reading {
	struct arena *arena;
	LIST(struct recommendation) items;
};

static const char *keep(struct arena *a, const char *text)
{
	return arena_strdup(a, text, strlen(text));
}

static bool take_row(void *user, void *record, struct error *e)
{
	const struct advice_row *row = record;
	struct reading *r = user;
	struct recommendation is = { 0 }, *to = &is;

	if (!decoded_number(&row->saves, 6, &to->saves) || !decoded_number(&row->dollars, 6, &to->dollars))
		to->saves = to->dollars = ABSENT; /* a pool without prices */
	if (!decoded_number(&row->gpu_hours, 6, &to->saves_gpu_hours))
		to->saves_gpu_hours = ABSENT;
	if (!row->namespace || !row->pool || !row->change || (to->saves == ABSENT && to->saves_gpu_hours == ABSENT) ||
	    !decoded_number(&row->days, 3, &to->days_milli))
		return error_set(e, ERROR_INVALID,
				 "found a row without namespace, pool, change, what it saves or days");
	to->namespace = keep(r->arena, row->namespace);
	to->pool = keep(r->arena, row->pool);
	to->change = keep(r->arena, row->change);
	to->needs = row->needs ? keep(r->arena, row->needs) : NULL;
	to->why = row->why ? keep(r->arena, row->why) : NULL;
	to->incidents = row->incidents;
	to->incidents_late = row->incidents_late;
	to->incidents_late_with = row->incidents_late_with;
	to->late_ppm = row->late_ppm;
	to->late_with_ppm = row->late_with_ppm;
	to->allowed_ppm = row->allowed_ppm;
	LIST_ADD(r->arena, &r->items, is);
	return true;
}

static void *read_rows(const char *text, size_t len, struct arena *a, struct error *e)
{
	struct reading r = { .arena = a };
	struct recommendations *out = arena_new(a, struct recommendations);
	struct decode_plan *plan = decode_plan_new(&row_record);
	struct decoder *d = decoder_open(
		&(struct decoder_setup){ .name = "advise", .records = plan, .emit = take_row, .user = &r });
	bool ok = decoder_feed(d, text, len, e) && decoder_finish(d, e);

	decoder_close(d);
	decode_plan_free(plan);
	*out = (struct recommendations){ r.items.items, r.items.count };
	return ok ? out : NULL;
}

static const char *const arguments[] = { "advise", "--from", "-30d", "--output", "json", NULL };

const struct daily_question recommendations_question = {
	.arguments = arguments,
	.suffix = ".advice.json",
	.output_most = (size_t)64 << 10,
	.timeout = HOUR,
	.read = read_rows,
};
