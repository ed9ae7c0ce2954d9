#include "controller/web/alternatives.h"

#include "base/decode.h"
#include "base/list.h"
#include "controller/policy/fields.h"

#include <string.h>

static const char recorded[] = "recorded";

/* --- what the command says --- */

struct cost_row {
	const char *namespace, *pool, *fleet, *setting;
	millis from;
	struct decoded_text dollars, requests, late;
	bool model_fits;
};

static const struct field row_fields[] = {
	FIELD(struct cost_row, namespace, FIELD_STRING, "namespace"),
	FIELD(struct cost_row, pool, FIELD_STRING, "pool"),
	FIELD(struct cost_row, fleet, FIELD_STRING, "fleet"),
	FIELD(struct cost_row, setting, FIELD_STRING, "setting"),
	FIELD(struct cost_row, from, FIELD_TIME, "from"),
	FIELD(struct cost_row, dollars, FIELD_RAW, "dollars"),
	FIELD(struct cost_row, requests, FIELD_RAW, "requests"),
	FIELD(struct cost_row, late, FIELD_RAW, "late"),
	FIELD(struct cost_row, model_fits, FIELD_BOOL, "model_fits"),
};
static const struct record_spec row_record = { "[]", sizeof(struct cost_row), row_fields,
					       sizeof row_fields / sizeof *row_fields };

/* A day of a pool under a fleet; rows of one fleet follow each other, "recorded" before the others of its pool. */
struct day {
	size_t fleet; /* of reading.fleets */
	millis from;
	int64_t micro_dollars, requests, late;
};

struct reading {
	struct arena *arena;
	LIST(struct alternative_fleet) fleets;
	LIST(struct day) days;
};

static const char *keep(struct arena *a, const char *text)
{
	return text ? arena_strdup(a, text, strlen(text)) : NULL;
}

static bool is_same(const struct alternative_fleet *f, const struct cost_row *row)
{
	return !strcmp(f->pool, row->pool) && !strcmp(f->namespace, row->namespace) && !strcmp(f->fleet, row->fleet);
}

static bool take_row(void *user, void *record, struct error *e)
{
	const struct cost_row *row = record;
	struct reading *r = user;
	struct day day = { .from = row->from };

	if (!row->namespace || !row->pool || !row->fleet || !row->from ||
	    !decoded_number(&row->requests, 0, &day.requests))
		return error_set(e, ERROR_INVALID, "found a row without pool, fleet, from or requests");
	if (!decoded_number(&row->dollars, 6, &day.micro_dollars)) /* no price is given */
		day.micro_dollars = 0;
	if (!decoded_number(&row->late, 0, &day.late))
		day.late = ABSENT;
	if (!r->fleets.count || !is_same(&r->fleets.items[r->fleets.count - 1], row)) {
		const struct alternative_fleet fleet = { .namespace = keep(r->arena, row->namespace),
							 .pool = keep(r->arena, row->pool),
							 .fleet = keep(r->arena, row->fleet),
							 .setting = keep(r->arena, row->setting),
							 .model_fits = row->model_fits };
		LIST_ADD(r->arena, &r->fleets, fleet);
	}
	day.fleet = r->fleets.count - 1;
	LIST_ADD(r->arena, &r->days, day);
	return true;
}

/* --- summed --- */

static void add(struct alternative_sum *s, const struct day *d, int64_t had)
{
	s->micro_dollars += d->micro_dollars;
	s->recorded += had;
	s->requests += d->requests;
	s->late = s->late == ABSENT || d->late == ABSENT ? ABSENT : s->late + d->late;
}

static millis last_day(const struct reading *r)
{
	millis last = 0;

	for (size_t i = 0; i < r->days.count; i++)
		last = r->days.items[i].from > last ? r->days.items[i].from : last;
	return last;
}

/* What the same pool cost on that day; the days of "recorded" begin at `first`. */
static int64_t recorded_on(const struct reading *r, size_t first, millis from)
{
	for (size_t i = first; i < r->days.count && r->days.items[i].fleet == r->days.items[first].fleet; i++)
		if (r->days.items[i].from == from)
			return r->days.items[i].micro_dollars;
	return 0;
}

static struct alternative_day *day_of(struct alternative_day *days, size_t *count, const char *fleet, millis from)
{
	for (size_t i = 0; i < *count; i++)
		if (days[i].from == from && !strcmp(days[i].fleet, fleet))
			return &days[i];
	days[*count] = (struct alternative_day){ .from = from, .fleet = fleet };
	return &days[(*count)++];
}

/* First what each day came to beside what it was; the rest of the pools is added as it was. */
static void sum_up(struct reading *r, struct alternatives *out)
{
	struct alternative_day *days = arena_array(r->arena, struct alternative_day, r->days.count + 1);
	millis week = last_day(r) - 6 * DAY;
	size_t first = 0, shown = 0;

	for (size_t i = 0; i < r->days.count; i++) {
		const struct day *d = &r->days.items[i];
		struct alternative_fleet *f = &r->fleets.items[d->fleet];
		bool is_recorded = !strcmp(f->fleet, recorded);

		if (is_recorded && (i == 0 || r->days.items[i - 1].fleet != d->fleet))
			first = i;
		int64_t had = recorded_on(r, first, d->from);
		add(&f->month, d, had);
		if (d->from >= week)
			add(&f->week, d, had);
		if (!is_recorded)
			day_of(days, &shown, f->fleet, d->from)->micro_dollars += d->micro_dollars - had;
	}
	for (size_t i = 0; i < r->days.count; i++)
		if (!strcmp(r->fleets.items[r->days.items[i].fleet].fleet, recorded))
			for (size_t k = 0; k < shown; k++)
				days[k].micro_dollars +=
					days[k].from == r->days.items[i].from ? r->days.items[i].micro_dollars : 0;
	*out = (struct alternatives){ r->fleets.items, r->fleets.count, days, shown };
}

static void *read_rows(const char *text, size_t len, struct arena *a, struct error *e)
{
	struct reading r = { .arena = a };
	struct alternatives *out = arena_new(a, struct alternatives);
	struct decode_plan *plan = decode_plan_new(&row_record);
	struct decoder *d =
		decoder_open(&(struct decoder_setup){ .name = "cost", .records = plan, .emit = take_row, .user = &r });
	bool ok = decoder_feed(d, text, len, e) && decoder_finish(d, e);

	decoder_close(d);
	decode_plan_free(plan);
	if (!ok)
		return NULL;
	sum_up(&r, out);
	return out;
}

static const char *const arguments[] = { "cost", "--alternatives", "--output", "json", NULL };

const struct daily_question alternatives_question = {
	.arguments = arguments,
	.suffix = ".alternatives.json",
	.output_most = (size_t)64 << 20,
	.timeout = HOUR,
	.read = read_rows,
};
