#include "controller/web/recommendations.h"

#include "base/decode.h"
#include "base/quantity.h"

#include <string.h>

enum { ITEMS_MOST = 16 };

struct advice_row {
	const char *namespace, *pool, *change, *needs;
	struct decoded_text saves, dollars;
	int64_t late_ppm, late_with_ppm, allowed_ppm;
};

static const struct field row_fields[] = {
	FIELD(struct advice_row, namespace, FIELD_STRING, "namespace"),
	FIELD(struct advice_row, pool, FIELD_STRING, "pool"),
	FIELD(struct advice_row, change, FIELD_STRING, "change"),
	FIELD(struct advice_row, needs, FIELD_STRING, "needs"),
	FIELD(struct advice_row, saves, FIELD_RAW, "saves_dollars_a_day"),
	FIELD(struct advice_row, dollars, FIELD_RAW, "dollars_a_day"),
	FIELD(struct advice_row, late_ppm, FIELD_INT, "late_ppm"),
	FIELD(struct advice_row, late_with_ppm, FIELD_INT, "late_with_ppm"),
	FIELD(struct advice_row, allowed_ppm, FIELD_INT, "allowed_ppm"),
};
static const struct record_spec row_record = { "[]", sizeof(struct advice_row), row_fields,
					       sizeof row_fields / sizeof *row_fields };

struct reading {
	struct arena *arena;
	struct recommendation *items;
	size_t count;
};

static bool take_dollars(const struct decoded_text *text, int64_t *micro)
{
	bool is_negative = text->len && *text->text == '-';
	size_t sign = is_negative ? 1 : 0;

	if (!text->text || decimal_parse(text->text + sign, text->len - sign, 6, micro) != DECIMAL_OK)
		return false;
	*micro = is_negative ? -*micro : *micro;
	return true;
}

static const char *keep(struct arena *a, const char *text)
{
	return arena_strdup(a, text, strlen(text));
}

static bool take_row(void *user, void *record, struct error *e)
{
	const struct advice_row *row = record;
	struct reading *r = user;
	struct recommendation *to = &r->items[r->count];

	if (r->count == ITEMS_MOST)
		return true;
	if (!row->namespace || !row->pool || !row->change || !take_dollars(&row->saves, &to->saves) ||
	    !take_dollars(&row->dollars, &to->dollars))
		return error_set(e, ERROR_INVALID, "found a row without namespace, pool, change or dollars");
	to->namespace = keep(r->arena, row->namespace);
	to->pool = keep(r->arena, row->pool);
	to->change = keep(r->arena, row->change);
	to->needs = row->needs ? keep(r->arena, row->needs) : NULL;
	to->late_ppm = row->late_ppm;
	to->late_with_ppm = row->late_with_ppm;
	to->allowed_ppm = row->allowed_ppm;
	r->count++;
	return true;
}

static void *read_rows(const char *text, size_t len, struct arena *a, struct error *e)
{
	struct reading r = { a, arena_array(a, struct recommendation, ITEMS_MOST), 0 };
	struct recommendations *out = arena_new(a, struct recommendations);
	struct decode_plan *plan = decode_plan_new(&row_record);
	struct decoder *d = decoder_open(
		&(struct decoder_setup){ .name = "advise", .records = plan, .emit = take_row, .user = &r });
	bool ok = decoder_feed(d, text, len, e) && decoder_finish(d, e);

	decoder_close(d);
	decode_plan_free(plan);
	*out = (struct recommendations){ r.items, r.count };
	return ok ? out : NULL;
}

static const char *const arguments[] = { "advise", "--from", "-7d", "--output", "json", NULL };

const struct daily_question recommendations_question = {
	.arguments = arguments,
	.suffix = ".advice.json",
	.output_most = (size_t)64 << 10,
	.timeout = HOUR,
	.read = read_rows,
};
