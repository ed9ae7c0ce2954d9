/* Lead times on their way into the file and out of it. */
#include "state/lead_time.h"

#include "state/history_file.h"

struct pending {
	int64_t day;
	size_t pool;
	struct lead_row row;
};

#define DAY (24 * HOUR)

static const millis TOOK_MOST = INT64_C(7) * DAY;
enum { COUNT_MOST = 1000000 };

/* From a second to three hours, each a fifth of a doubling longer. */
static const millis bounds[LEAD_BUCKETS - 1] = {
	1000,	 1100,	  1300,	   1500,    1700,    2000,    2300,    2600,	3000,	 3500,	  4000,	   4600,
	5300,	 6100,	  7000,	   8000,    9200,    10600,   12100,   13900,	16000,	 18400,	  21000,   24000,
	28000,	 32000,	  37000,   42000,   49000,   56000,   64000,   74000,	84000,	 97000,	  111000,  128000,
	147000,	 169000,  194000,  223000,  256000,  294000,  338000,  388000,	446000,	 512000,  588000,  676000,
	776000,	 891000,  1024000, 1176000, 1351000, 1552000, 1783000, 2048000, 2353000, 2702000, 3104000, 3566000,
	4096000, 4705000, 5405000, 6208000, 7132000, 8192000, 9410000, 10809000
};

millis lead_bucket_upto(int64_t bucket)
{
	return bucket < LEAD_BUCKETS - 1 ? bounds[bucket] : INT64_MAX;
}

int64_t lead_bucket_of(millis took)
{
	int64_t bucket = 0;

	while (bucket < LEAD_BUCKETS - 1 && took > bounds[bucket])
		bucket++;
	return bucket;
}

static bool is_same(const struct pending *a, const struct pending *b)
{
	return a->day == b->day && a->pool == b->pool && a->row.group == b->row.group && a->row.kind == b->row.kind &&
	       a->row.stage == b->row.stage && a->row.bucket == b->row.bucket;
}

static void note(struct history *h, const struct pending *p)
{
	struct pending *items = (void *)h->lead_times.text;

	for (size_t i = 0; i < h->lead_times.len / sizeof *items; i++)
		if (is_same(&items[i], p)) {
			items[i].row.samples += p->row.samples;
			items[i].row.ms += p->row.ms;
			return;
		}
	buf_append(&h->lead_times, p, sizeof *p);
}

void history_note_lead_times(struct history *h, const struct snapshot *s, size_t place)
{
	const struct fleet_place *to = &h->places[place];
	const struct pool_snapshot *pool = &s->pools[place];

	if (s->interval == 0) /* the tick that follows has them all */
		return;
	for (size_t i = 0; i < pool->event_count; i++) {
		const struct event_input *v = &pool->events[i];
		bool is_stage = v->what == EVENT_STAGE && v->stage >= 0 && v->stage < STAGE_COUNT;

		if (!(is_stage || v->what == EVENT_SERVING) || v->value < 0 || v->value > TOOK_MOST || v->count <= 0 ||
		    v->count > COUNT_MOST || v->group < 0 || (size_t)v->group >= to->groups.count || v->kind < 0 ||
		    v->kind >= START_KIND_COUNT)
			continue;
		note(h, &(struct pending){ .day = (s->now - 1) / DAY,
					   .pool = to->pool,
					   .row = { .group = to->groups.position[v->group],
						    .kind = (enum start_kind)v->kind,
						    .stage = is_stage ? v->stage : LEAD_TOTAL,
						    .bucket = lead_bucket_of(v->value),
						    .samples = v->count,
						    .ms = (int64_t)((__int128)v->value * v->count) } });
	}
}

static bool save(struct history *h, const struct pending *p, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "INSERT INTO lead_time VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
				  " samples = samples + excluded.samples, ms = ms + excluded.ms");
	const int64_t values[] = { (int64_t)p->pool, p->day,	    (int64_t)p->row.group, p->row.kind,
				   p->row.stage,     p->row.bucket, p->row.samples,	   p->row.ms };

	db_bind_ints(s, values, sizeof values / sizeof *values);
	return db_run(s, e);
}

bool history_save_lead_times(struct history *h, struct error *e)
{
	const struct pending *items = (const void *)h->lead_times.text;

	for (size_t i = 0; i < h->lead_times.len / sizeof *items; i++)
		if (!save(h, &items[i], e))
			return false;
	buf_clear(&h->lead_times);
	return true;
}

/* --- reading --- */

static bool take_row(struct rows *r, const struct statement *s, struct error *e)
{
	const int64_t kind = db_column_int(s, 2);
	struct lead_row row = { .group = (size_t)db_column_int(s, 1),
				.kind = (enum start_kind)kind,
				.stage = db_column_int(s, 0),
				.bucket = db_column_int(s, 3),
				.samples = db_column_int(s, 4),
				.ms = db_column_int(s, 5) };

	if (row.stage < 0 || row.stage >= LEAD_STAGES || kind < 0 || kind >= START_KIND_COUNT || row.bucket < 0 ||
	    row.bucket >= LEAD_BUCKETS || row.samples < 0 || row.ms < 0)
		return error_set(e, ERROR_INVALID, "%s: damaged: lead times that cannot be", db_path(r->history->db));
	buf_append(&r->found, &row, sizeof row);
	return true;
}

bool lead_read(struct history *h, const struct lead_question *q, struct arena *a, struct lead_row **rows, size_t *count,
	       struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (h->has_levels) {
		struct statement *s =
			db_prepare(h->db, "SELECT stage, position, kind, bucket, CAST(sum(samples) AS INTEGER), "
					  "CAST(sum(ms) AS INTEGER) FROM lead_time"
					  " WHERE pool = ? AND day BETWEEN ? AND ? GROUP BY stage, position, kind,"
					  " bucket ORDER BY stage, position, kind, bucket");
		DB_BIND(s, DB_I((int64_t)q->pool), DB_I(q->from / DAY), DB_I((q->to - 1) / DAY));
		if (!rows_read(&r, s, take_row, e))
			return false;
	}
	*rows = rows_array(&r.found, sizeof **rows, a, count);
	return true;
}
