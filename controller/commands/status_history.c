#include "controller/commands/question.h"
#include "controller/commands/status_rows.h"
#include "controller/explain/explain.h"
#include "controller/manifest/manifest.h"
#include "controller/web/pool_figures.h"

#include <string.h>

static const char *keep(struct arena *a, const struct buf *text)
{
	return text->len ? arena_strdup(a, text->text, text->len) : NULL;
}

static void fill_figures(const struct pool_decision *d, struct arena *a, struct status_row *row)
{
	CLEANUP(buf_release) struct buf demand = { 0 }, headroom = { 0 }, lead = { 0 }, wait = { 0 };

	if (d->demand_milli != ABSENT) {
		figure_replicas(d->demand_milli, &demand);
		figure_replicas(figure_headroom_milli(d), &headroom);
	}
	figure_lead_time(d, &lead);
	row->demand = keep(a, &demand);
	row->headroom = keep(a, &headroom);
	row->lead_time = keep(a, &lead);
	figure_wait_text(d, &wait);
	row->wait = keep(a, &wait);
	row->hot = d->ready;
	row->standby = d->standby;
	row->starting = d->on_the_way;
	row->draining = d->draining;
	row->wished = d->wished;
	row->decided = d->decided;
	row->limit = limit_name((enum limit)d->held_by);
}

static bool load_fleet(struct question *q, struct manifest *m, struct error *e)
{
	struct findings findings = { 0 };
	const char *text;
	bool ok = history_manifest(q->history, q->span.last_tick, &q->arena, &text, e) &&
		  manifest_load_text("manifest", text, &q->arena, m, &findings, e);

	findings_release(&findings);
	return ok || error_wrap(e, "%s: its manifest", history_path(q->history));
}

/* When another size was asked for last; 0 when never. */
static bool find_change(struct question *q, size_t pool, millis *at, struct error *e)
{
	const struct history_filter f = { .pool = (int64_t)pool,
					  .from = q->span.first_tick,
					  .to = q->span.last_tick,
					  .limit = ANY,
					  .changed_only = true,
					  .most = 1 };
	struct history_hit *hits;
	struct tick_record r;
	size_t count;

	*at = 0;
	if (!history_find(q->history, &f, &q->arena, &hits, &count, e))
		return false;
	if (!count)
		return true;
	if (!history_read(q->history, hits[0].tick, pool, &r, e))
		return false;
	*at = r.now;
	return true;
}

struct source {
	const char *cluster;
	struct question question;
	struct manifest manifest;
	struct arena *arena;
};

static bool fill_row(struct source *s, size_t index, size_t pool, struct status_row *row, struct error *e)
{
	const struct pool_spec *spec = &s->manifest.fleet.pools[index];
	struct question *q = &s->question;
	struct tick_record r;

	if (!history_read(q->history, q->span.last_tick, pool, &r, e))
		return false;
	const struct explained x = {
		.fleet = &s->manifest.fleet, .pool = index, .tick = r.tick, .now = r.now, .plan = &r.plan
	};
	*row = (struct status_row){ .cluster = s->cluster,
				    .namespace = arena_strdup(s->arena, spec->namespace, strlen(spec->namespace)),
				    .name = arena_strdup(s->arena, spec->name, strlen(spec->name)),
				    .class = pool_class_name(spec->class),
				    .mode = pool_mode_name(spec->mode),
				    .decided_at = r.now,
				    .reason = explain_headline(&x, s->arena) };
	fill_figures(&r.plan.decision, s->arena, row);
	return find_change(q, pool, &row->changed_at, e);
}

static bool read_rows(struct source *s, const struct status_filter *f, struct status_rows *rows, struct error *e)
{
	struct question *q = &s->question;
	struct history_stretch stretch;

	if (!question_open(q, e) || !load_fleet(q, &s->manifest, e) ||
	    !history_stretch_at(q->history, q->span.last_tick, &q->arena, &stretch, e))
		return false;
	struct status_row *before = rows->items;
	rows->now = q->span.to > rows->now ? q->span.to : rows->now;
	rows->items = arena_array(s->arena, struct status_row, rows->count + stretch.pool_count);
	if (rows->count)
		memcpy(rows->items, before, rows->count * sizeof *before);
	for (size_t i = 0; i < stretch.pool_count; i++) {
		const char *namespace = s->manifest.fleet.pools[i].namespace;
		if ((f->namespace && strcmp(f->namespace, namespace) != 0) ||
		    (q->pool_index != ANY && q->pool_index != (int64_t)stretch.pools[i]))
			continue;
		if (!fill_row(s, i, stretch.pools[i], &rows->items[rows->count], e))
			return false;
		rows->count++;
	}
	return true;
}

static bool add_history(const char *db, const char *cluster, const struct status_filter *f, struct arena *a,
			struct status_rows *rows, struct error *e)
{
	struct source s = { .cluster = cluster, .question = { .db = db, .pool = f->pool }, .arena = a };
	bool ok = read_rows(&s, f, rows, e);

	question_close(&s.question);
	return ok;
}

/* A cluster that has no such pool, or nothing yet, is no reason to say nothing of the others. */
static bool add_fleet(const char *address, const struct status_filter *f, struct arena *a, struct status_rows *rows,
		      struct error *e)
{
	const char *const *clusters;
	size_t count;

	if (!history_clusters(address, a, &clusters, &count, e))
		return false;
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf db = { 0 };

		buf_printf(&db, "%s#%s", address, clusters[i]);
		if (!add_history(arena_strdup(a, db.text, db.len), clusters[i], f, a, rows, e) &&
		    e->kind != ERROR_NOT_FOUND)
			return false;
	}
	return true;
}

bool status_from_history(const char *db, const struct status_filter *f, struct arena *a, struct status_rows *rows,
			 struct error *e)
{
	*rows = (struct status_rows){ .is_fleet = history_is_fleet(db) };
	return rows->is_fleet ? add_fleet(db, f, a, rows, e) : add_history(db, NULL, f, a, rows, e);
}
