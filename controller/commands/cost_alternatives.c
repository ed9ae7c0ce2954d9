#include "controller/commands/cost_alternatives.h"

#include "base/table.h"
#include "controller/commands/recorded_world.h"
#include "controller/simulation/rivals/alternative.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Every day of UTC is a run of its own: what a fleet was two hours before a
 * midnight no longer matters after it, memory stays that of a day, and a day
 * comes to the same whenever it is asked about.
 */
static const millis LEAD = 2 * HOUR, PERIOD = 30 * DAY;

enum fleet { FLEET_RECORDED, FLEET_AUTOSCALER, FLEET_STATIC, FLEET_HOT_ONLY, FLEET_PREHEAT, FLEET_COUNT };
static const char *const fleet_names[] = { "recorded", "autoscaler", "static", "hot-only", "preheat" };

struct sums {
	int64_t requests, late, gpu_ms, micro_dollars; /* late: ABSENT where it is not known */
	bool is_known;
};

/* Percent of the slots that an HPA aims at: the highest that keeps the objective is what a team would have come to. It
 * is found by halves, as a lower one is late less often. */
static const int targets[] = { 80, 75, 70, 65, 60, 55, 50, 45, 40, 35, 30 };
enum { TARGETS = sizeof targets / sizeof *targets };

struct judged {
	bool is_priced;
	struct sums *days[FLEET_COUNT];
	const char *setting[FLEET_COUNT]; /* NULL: none */
	const char *team;		  /* formerAutoscaler of the manifest; NULL: an HPA is sought */
	int64_t peak, allowed_ppm;
	struct recorded_fleet fit;
	bool has_traffic, has_kept;
	struct sums *tried_days; /* under targets[tried] */
	int tried, first, last;	 /* the targets that are left to try */
};

struct alternatives {
	struct history_args *args;
	struct cost_period *period;
	struct judged *pools; /* one per history_pools() */
	size_t pool_count;
	int64_t first_day, day_count; /* since 1970 */
};

static bool is_asked(const struct alternatives *x, size_t pool)
{
	return pool != RECORDING_NONE && (x->args->pool_index == ANY || (size_t)x->args->pool_index == pool);
}

/* --- what was recorded --- */

static void take_hours(struct alternatives *x, const struct costs *c)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct cost_hour *h = &c->hours[i];
		int64_t day = h->hour * HOUR / DAY - x->first_day;

		if (!is_asked(x, h->pool) || day < 0 || day >= x->day_count)
			continue;
		struct sums *s = &x->pools[h->pool].days[FLEET_RECORDED][day];
		s->requests += h->sums.started;
		s->late += h->sums.late;
		s->gpu_ms += cost_billed_gpu_ms(&h->sums);
		s->micro_dollars += cost_micro_dollars(&h->sums);
		s->is_known = true;
	}
}

/* --- what the model makes of it --- */

/* The ticks of a day and of two hours before it; false when none are kept. */
static bool find_day(struct alternatives *x, int64_t day, int64_t *first, int64_t *last, millis *from, struct error *e)
{
	struct history *h = x->args->history;
	millis begin = (x->first_day + day) * DAY, end = begin + DAY, last_end;

	*from = begin > x->period->from ? begin : x->period->from;
	end = end < x->period->to ? end : x->period->to;
	if (!history_tick_at(h, *from - LEAD, first, e) || !history_tick_at(h, end, last, e) ||
	    !history_tick_end(h, *last, &last_end, e))
		return false;
	*first += *from - LEAD >= x->args->span.from;
	if (*first > *last || last_end <= *from)
		*first = *last + 1;
	return true;
}

static struct sums sums_of(const struct score *s)
{
	return (struct sums){ s->requests, s->late, s->gpu_ms, s->micro_dollars, true };
}

static void print_setting(const struct judged *j, struct buf *out)
{
	if (j->team)
		buf_text(out, j->team);
	else
		buf_printf(out, "target=0.%02d,window=300", targets[j->tried]);
}

static bool run_pool(struct alternatives *x, const struct recorded_world *w, size_t pool, int64_t day, struct error *e)
{
	CLEANUP(buf_release) struct buf setting = { 0 };
	struct judged *j = &x->pools[w->recorded[pool]];
	const struct alternative fixed = { "static", j->setting[FLEET_STATIC], j->peak };
	struct score score;

	print_setting(j, &setting);
	const struct alternative autoscaler = { j->team ? "configured" : "hpa", setting.text, 0 };
	if (!alternative_run(&w->simulation, pool, &autoscaler, &score, e))
		return error_wrap(e, "pool %s%s", w->manifest.fleet.pools[pool].name,
				  j->team ? ": formerAutoscaler" : "");
	j->tried_days[day] = sums_of(&score);
	if (j->days[FLEET_STATIC][day].is_known)
		return true;
	if (!alternative_run(&w->simulation, pool, &fixed, &score, e))
		return false;
	j->days[FLEET_STATIC][day] = sums_of(&score);
	return true;
}

static void measure_pool(struct alternatives *x, const struct recorded_world *w, size_t pool)
{
	struct judged *j = &x->pools[w->recorded[pool]];
	int64_t peak = alternative_peak(&w->simulation, pool);
	struct recorded_fleet day = calibration_replay(w->rec.measured, pool, w->traces[pool], &w->spec);

	j->peak = peak > j->peak ? peak : j->peak;
	recorded_fleet_add(&j->fit, &day);
	j->has_traffic = true;
}

typedef bool day_take_fn(struct alternatives *x, struct recorded_world *w, int64_t day, struct error *e);

static bool measure_day(struct alternatives *x, struct recorded_world *w, int64_t day, struct error *e)
{
	(void)day;
	(void)e;
	for (size_t i = 0; i < w->manifest.fleet.pool_count; i++)
		if (is_asked(x, w->recorded[i]) && w->traces[i])
			measure_pool(x, w, i);
	return true;
}

static bool is_open(const struct judged *j)
{
	return j->has_traffic && j->fit.fits && j->first <= j->last;
}

static bool run_day(struct alternatives *x, struct recorded_world *w, int64_t day, struct error *e)
{
	for (size_t i = 0; i < w->manifest.fleet.pool_count; i++)
		if (is_asked(x, w->recorded[i]) && w->traces[i] && is_open(&x->pools[w->recorded[i]]) &&
		    !run_pool(x, w, i, day, e))
			return false;
	return true;
}

static bool read_day(struct alternatives *x, int64_t day, day_take_fn *take, struct error *e)
{
	struct history_args args = *x->args;
	struct recorded_world w;
	int64_t first, last;
	millis from;

	if (!find_day(x, day, &first, &last, &from, e))
		return false;
	if (first > last)
		return true;
	args.arena = (struct arena){ 0 };
	bool ok = recorded_world_read(&args, first, last, DAY + LEAD, &w, e);
	if (ok) {
		millis lead = from - w.rec.start;
		w.simulation.warm_up = lead > 0 ? lead / w.rec.interval * w.rec.interval : 0;
		w.simulation.observer_count = 0;
		ok = take(x, &w, day, e);
	}
	recorded_world_release(&w);
	arena_release(&args.arena);
	return ok;
}

static bool read_days(struct alternatives *x, const char *what, day_take_fn *take, struct error *e)
{
	struct progress progress = progress_start(what, "days", x->day_count);
	bool ok = true;

	for (int64_t i = 0; ok && i < x->day_count; i++) {
		ok = read_day(x, i, take, e);
		progress_show(&progress, i + 1);
	}
	progress_end(&progress);
	return ok;
}

static double late_share(const struct sums *days, int64_t count)
{
	double late = 0, requests = 0;

	for (int64_t i = 0; i < count; i++) {
		late += (double)days[i].late;
		requests += (double)days[i].requests;
	}
	return requests > 0 ? late / requests : 0;
}

static void keep_target(struct alternatives *x, struct judged *j)
{
	CLEANUP(buf_release) struct buf setting = { 0 };
	bool keeps = late_share(j->tried_days, x->day_count) * 1e6 <= (double)j->allowed_ppm;

	if (keeps || !j->has_kept) {
		print_setting(j, &setting);
		j->setting[FLEET_AUTOSCALER] = arena_strdup(&x->args->arena, setting.text, setting.len);
		memcpy(j->days[FLEET_AUTOSCALER], j->tried_days, (size_t)x->day_count * sizeof *j->tried_days);
	}
	j->has_kept |= keeps;
	if (keeps)
		j->last = j->tried - 1;
	else
		j->first = j->tried + 1;
}

static void set_static(struct alternatives *x, struct judged *j)
{
	CLEANUP(buf_release) struct buf setting = { 0 };

	buf_printf(&setting, "replicas=%" PRId64, j->peak);
	j->setting[FLEET_STATIC] = arena_strdup(&x->args->arena, setting.text, setting.len);
}

/* The peak and the fit of the model come first. */
static bool run_days(struct alternatives *x, struct error *e)
{
	bool ok = read_days(x, "measuring", measure_day, e), is_done = false;

	for (size_t i = 0; i < x->pool_count; i++)
		set_static(x, &x->pools[i]);
	while (ok && !is_done) {
		is_done = true;
		for (size_t i = 0; i < x->pool_count; i++) {
			x->pools[i].tried = (x->pools[i].first + x->pools[i].last) / 2;
			is_done &= !is_open(&x->pools[i]);
		}
		ok = is_done || read_days(x, "modelling", run_day, e);
		for (size_t i = 0; ok && i < x->pool_count; i++)
			if (is_open(&x->pools[i]))
				keep_target(x, &x->pools[i]);
	}
	return ok;
}

/* --- what its own shadows make of it --- */

/* A pool that acts, without its fast tiers. */
static void take_hot_only(struct judged *j, const struct pool_decision *d, int64_t days)
{
	if (d->tier_saving_permille == ABSENT || d->tier_saving_permille >= 1000)
		return;
	j->setting[FLEET_HOT_ONLY] = "shadows";
	for (int64_t i = 0; i < days; i++) {
		const struct sums *was = &j->days[FLEET_RECORDED][i];
		double dearer = 1000 / (double)(1000 - d->tier_saving_permille);
		j->days[FLEET_HOT_ONLY][i] =
			(struct sums){ was->requests, ABSENT, (int64_t)((double)was->gpu_ms * dearer),
				       (int64_t)((double)was->micro_dollars * dearer), was->is_known };
	}
}

/* A pool that is only watched, under the rule that it would follow; at the price of the GPUs that it had. */
static void take_watched(struct judged *j, const struct pool_decision *d, int64_t days)
{
	if (d->rule_gpu_milli == ABSENT || d->rule_late_ppm == ABSENT)
		return;
	j->setting[FLEET_PREHEAT] = "shadows";
	for (int64_t i = 0; i < days; i++) {
		const struct sums *was = &j->days[FLEET_RECORDED][i];
		int64_t gpu_ms = d->rule_gpu_milli * (DAY / 1000);
		double price = was->gpu_ms > 0 ? (double)was->micro_dollars / (double)was->gpu_ms : 0;
		j->days[FLEET_PREHEAT][i] = (struct sums){ was->requests, was->requests * d->rule_late_ppm / 1000000,
							   gpu_ms, (int64_t)((double)gpu_ms * price), was->is_known };
	}
}

static void take_last(void *user, const struct cursor_tick *t)
{
	struct alternatives *x = user;

	for (size_t i = 0; i < t->snapshot.fleet->pool_count; i++) {
		const struct pool_decision *d = &t->plans[i]->decision;
		struct judged *j = &x->pools[t->pools[i]];

		if (t->damage[i].kind != ERROR_NONE || !is_asked(x, t->pools[i]))
			continue;
		if (t->snapshot.fleet->pools[i].mode == MODE_ACT)
			take_hot_only(j, d, x->day_count);
		else
			take_watched(j, d, x->day_count);
	}
}

/* --- printed --- */

static const struct table_column columns[] = {
	{ .name = "namespace", .is_wide = true },
	{ .name = "pool" },
	{ .name = "fleet" },
	{ .name = "from", .is_wide = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "saved_dollars", .title = "SAVED", .is_right = true },
	{ .name = "saved_share", .title = "OF IT", .is_right = true, .is_wide = true },
	{ .name = "gpu_hours", .title = "GPU H", .is_right = true },
	{ .name = "late_ppm", .title = "LATE", .is_right = true },
	{ .name = "requests", .is_right = true, .is_wide = true },
	{ .name = "late", .title = "LATE REQUESTS", .is_right = true, .is_wide = true },
	{ .name = "setting" },
	{ .name = "model_fits", .title = "MODEL FITS", .is_wide = true },
};

static void add_saved(struct table *t, const struct sums *had, const struct sums *other, bool is_priced)
{
	if (!is_priced) { /* only the share, of GPU hours */
		table_absent(t);
		other->gpu_ms > 0 ? table_share(t, (double)(other->gpu_ms - had->gpu_ms) / (double)other->gpu_ms)
				  : table_absent(t);
		return;
	}
	double saved = (double)(other->micro_dollars - had->micro_dollars) / 1e6;

	table_dollars(t, saved);
	if (other->micro_dollars > 0)
		table_share(t, saved * 1e6 / (double)other->micro_dollars);
	else
		table_absent(t);
}

static void add_late(struct table *t, const struct sums *s)
{
	if (s->late == ABSENT || s->requests <= 0)
		table_absent(t);
	else
		table_share(t, (double)s->late / (double)s->requests);
	table_count(t, s->requests);
	if (s->late == ABSENT)
		table_absent(t);
	else
		table_count(t, s->late);
}

struct row {
	size_t pool;
	enum fleet fleet;
	millis from;
	const struct sums *had, *is;
};

static void add_row(const struct alternatives *x, const struct row *r, struct table *t)
{
	const struct history_pool *pool = &history_pools(x->args->history, &(size_t){ 0 })[r->pool];
	const struct judged *j = &x->pools[r->pool];
	CLEANUP(buf_release) struct buf from = { 0 };

	history_args_print_time(x->args, r->from, true, &from);
	table_text(t, pool->namespace);
	table_text(t, pool->name);
	table_text(t, fleet_names[r->fleet]);
	table_text(t, from.text);
	j->is_priced ? table_dollars(t, (double)r->is->micro_dollars / 1e6) : table_absent(t);
	if (r->fleet == FLEET_RECORDED) {
		table_absent(t);
		table_absent(t);
	} else {
		add_saved(t, r->had, r->is, j->is_priced);
	}
	table_decimal(t, (double)r->is->gpu_ms / (double)HOUR, 1);
	add_late(t, r->is);
	j->setting[r->fleet] ? table_text(t, j->setting[r->fleet]) : table_absent(t);
	table_value(t, j->fit.fits ? "yes" : "no", j->fit.fits ? "true" : "false");
}

static void add_sums(struct sums *to, const struct sums *more)
{
	to->requests += more->requests;
	to->late = to->late == ABSENT || more->late == ABSENT ? ABSENT : to->late + more->late;
	to->gpu_ms += more->gpu_ms;
	to->micro_dollars += more->micro_dollars;
	to->is_known = true;
}

/* Programs get a row a day; for people each fleet is one, over the days that it and the recorded one both have. */
static void add_fleet(const struct alternatives *x, size_t pool, enum fleet fleet, bool by_day, struct table *t)
{
	const struct judged *j = &x->pools[pool];
	struct sums had = { 0 }, is = { 0 };

	for (int64_t i = 0; i < x->day_count; i++) {
		const struct sums *recorded = &j->days[FLEET_RECORDED][i], *day = &j->days[fleet][i];
		if (!recorded->is_known || !day->is_known)
			continue;
		add_sums(&had, recorded);
		add_sums(&is, day);
		if (by_day)
			add_row(x, &(struct row){ pool, fleet, (x->first_day + i) * DAY, recorded, day }, t);
	}
	if (!by_day && is.is_known)
		add_row(x, &(struct row){ pool, fleet, x->period->from, &had, &is }, t);
}

static void print_misfit(const struct alternatives *x, size_t pool)
{
	const struct recorded_fleet *r = &x->pools[pool].fit;

	fprintf(stderr,
		"Note: the model does not fit pool %s (%.2f of the recorded GPU hours, %s late where %s was recorded), "
		"so it is asked for no other fleet.\n",
		history_pools(x->args->history, &(size_t){ 0 })[pool].name, r->hours_ratio,
		human_share(r->model_late_share).text, human_share(r->late_share).text);
}

static void print(const struct alternatives *x, const char *output)
{
	enum table_format format = table_format_of(output);
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < x->pool_count; i++) {
		for (int fleet = 0; fleet < FLEET_COUNT; fleet++)
			add_fleet(x, i, (enum fleet)fleet, table_is_for_programs(format), t);
		if (x->pools[i].has_traffic && !x->pools[i].fit.fits)
			print_misfit(x, i);
	}
	table_print(t, format, stdout);
	table_free(t);
}

static void make_room(struct alternatives *x)
{
	struct arena *a = &x->args->arena;

	x->first_day = x->period->from / DAY;
	x->day_count = (x->period->to - 1) / DAY - x->first_day + 1;
	history_pools(x->args->history, &x->pool_count);
	x->pools = arena_array(a, struct judged, x->pool_count);
	for (size_t i = 0; i < x->pool_count; i++) {
		x->pools[i].tried_days = arena_array(a, struct sums, (size_t)x->day_count);
		for (int fleet = 0; fleet < FLEET_COUNT; fleet++)
			x->pools[i].days[fleet] = arena_array(a, struct sums, (size_t)x->day_count);
	}
}

/* Of the manifest in force at the end. */
static bool take_objectives(struct alternatives *x, struct error *e)
{
	struct history_args *q = x->args;
	struct manifest m;

	if (!history_args_manifest(q->history, q->span.last_tick, &q->arena, &m, e))
		return false;
	for (size_t i = 0; i < m.fleet.pool_count; i++) {
		const struct pool_spec *spec = &m.fleet.pools[i];
		size_t pool = recording_pool(q->history, spec);
		if (pool == RECORDING_NONE)
			continue;
		struct judged *j = &x->pools[pool];
		j->allowed_ppm = spec->violation_cost ? 1000000 : spec->objective_late_ppm;
		j->is_priced = !m.fleet.pools[i].is_unpriced;
		j->team = m.pools[i].spec.former_autoscaler;
		j->last = j->team ? 0 : TARGETS - 1;
	}
	return true;
}

bool cost_alternatives_print(struct history_args *q, struct cost_period *p, const char *output, struct error *e)
{
	struct alternatives x = { .args = q, .period = p };
	const int64_t last = q->span.last_tick;
	struct costs c;

	if (!p->last && !p->from_text && !p->to_text)
		p->last = PERIOD;
	if (!costs_read(q, p, &c, e))
		return false;
	make_room(&x);
	take_hours(&x, &c);
	if (!take_objectives(&x, e) || !run_days(&x, e) ||
	    !tick_walk(q->history, &(struct tick_walk){ last, last, take_last, &x }, e))
		return false;
	print(&x, output);
	if (!table_is_for_programs(table_format_of(output)))
		printf("\n%s, the same traffic under each\n", c.period);
	return true;
}
