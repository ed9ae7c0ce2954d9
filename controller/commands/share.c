/* preheat share: which pools belong on one stock of slots, and what that saves. */
#include "base/file.h"
#include "base/quantity.h"
#include "base/schedule.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "controller/commands/command.h"
#include "controller/commands/compare.h"
#include "controller/commands/print.h"
#include "controller/commands/trace_argument.h"
#include "controller/manifest/manifest.h"
#include "controller/simulation/share_trial.h"

#include <stdio.h>
#include <string.h>

/* --- asked --- */

struct asked {
	struct option_list pools, traces;
	const char *gpu_memory, *host_memory, *engine_memory, *residual_memory, *weights, *failed_wakes, *output,
		*timeline;
	millis sleep, wake, warm_up, tick;
	double scale;
	int64_t seed;
	bool compare;

	struct arena arena;
	struct manifest manifest;
	struct trace *read;  /* what was read: one per pool of the manifest; released with the question */
	struct trace *split; /* by class; likewise */
	size_t read_count, split_count;
	struct fleet_spec fleet; /* of the models, each with its own node groups */
	const struct trace **traffic;
	struct world_spec world;
	struct share_engine_spec spec;
	struct simulation simulation;
};

static void release(struct asked *q)
{
	for (size_t i = 0; i < q->read_count; i++)
		trace_release(&q->read[i]);
	for (size_t i = 0; i < q->split_count; i++)
		trace_release(&q->split[i]);
	arena_release(&q->arena);
}

static bool read_memory(const char *option, const char *text, int64_t *mib, struct error *e)
{
	char room[QUOTE_ROOM];
	int64_t bytes;

	if (!quantity_parse(text, strlen(text), &bytes) || bytes < 0 || bytes >= INT64_C(1) << 50)
		return error_set(e, ERROR_INVALID, "--%s: found %s; allowed: bytes with a suffix, such as 80Gi", option,
				 quote(room, text, strlen(text)));
	*mib = (bytes + (1 << 20) - 1) >> 20;
	return true;
}

/* Medians are asked for; the 95th percentile of a sleep or wake is taken half as long again. */
static struct quantiles around(millis median)
{
	return (struct quantiles){ median, median + median / 2 };
}

static bool read_spec(struct asked *q, struct error *e)
{
	struct share_engine_spec *s = &q->spec;

	if (!read_memory("gpu-memory", q->gpu_memory, &s->slot.gpu_mib, e) ||
	    !read_memory("host-memory", q->host_memory, &s->slot.host_mib, e) ||
	    !read_memory("engine-memory", q->engine_memory, &s->gpu_awake_mib, e) ||
	    !read_memory("asleep-memory", q->residual_memory, &s->gpu_asleep_mib, e) ||
	    !read_memory("weights", q->weights, &s->host_asleep_mib, e))
		return false;
	if (s->gpu_asleep_mib > s->gpu_awake_mib || s->gpu_awake_mib > s->slot.gpu_mib)
		return error_set(e, ERROR_INVALID,
				 "--engine-memory: an engine awake takes %s; allowed: from --asleep-memory (%s) to "
				 "--gpu-memory (%s)",
				 q->engine_memory, q->residual_memory, q->gpu_memory);
	if (s->host_asleep_mib > s->slot.host_mib)
		return error_set(e, ERROR_INVALID,
				 "--weights: one engine asleep takes %s; allowed: up to "
				 "--host-memory (%s)",
				 q->weights, q->host_memory);
	char room[QUOTE_ROOM];
	if (!share_parse(q->failed_wakes, strlen(q->failed_wakes), &s->wake_failed_ppm) || s->wake_failed_ppm > 900000)
		return error_set(e, ERROR_INVALID, "--failed-wakes: found %s; allowed: 0%% to 90%%",
				 quote(room, q->failed_wakes, strlen(q->failed_wakes)));
	s->sleep = around(q->sleep);
	s->wake = around(q->wake);
	s->mend = (struct quantiles){ MINUTE, 2 * MINUTE };
	return true;
}

/* --- traffic --- */

static bool read_trace(struct asked *q, const char *text, struct error *e)
{
	struct trace scaled;
	const char *path;
	size_t pool;

	if (!trace_argument_split(&q->manifest.fleet, text, &pool, &path, e))
		return false;
	struct trace *t = &q->read[pool];
	if (q->traffic[pool])
		return error_set(e, ERROR_INVALID, "--trace: pool %s has its traffic already; give each pool one",
				 q->manifest.fleet.pools[pool].name);
	if (!trace_read(path, t, e))
		return false;
	q->traffic[pool] = t;
	if (t->is_binned)
		return error_set(e, ERROR_INVALID,
				 "--trace %s: it holds counts per bin; a share is simulated request "
				 "by request: give the requests",
				 path);
	if (q->scale == 1)
		return true;
	if (!trace_scale(t, (struct trace_scaling){ .k = q->scale, .jitter = q->scale > 6, .seed = (uint64_t)q->seed },
			 &scaled, e))
		return error_wrap(e, "--scale");
	trace_release(t);
	*t = scaled;
	return true;
}

static bool read_traces(struct asked *q, struct error *e)
{
	q->read_count = q->manifest.fleet.pool_count;
	q->read = arena_array(&q->arena, struct trace, q->read_count);
	q->traffic = arena_array(&q->arena, const struct trace *, q->read_count);
	for (size_t i = 0; i < q->traces.count; i++)
		if (!read_trace(q, q->traces.items[i], e))
			return false;
	for (size_t i = 0; i < q->read_count; i++)
		if (!q->traffic[i])
			return error_set(e, ERROR_INVALID, "no traffic for pool %s: name its trace with --trace %sFILE",
					 q->manifest.fleet.pools[i].name, q->read_count > 1 ? "POOL=" : "");
	return true;
}

/* A pool that is only observed acts in a simulation. Each has machines of its own. */
static void copy_pool(struct asked *q, size_t from, size_t to, struct group_spec *groups, struct pool_spec *pools)
{
	const struct fleet_spec *given = &q->manifest.fleet;
	struct pool_spec *p = &pools[to];

	*p = given->pools[from];
	p->mode = MODE_ACT;
	size_t *own = arena_array(&q->arena, size_t, p->group_count);
	for (size_t i = 0; i < p->group_count; i++) {
		own[i] = q->fleet.group_count++;
		groups[own[i]] = given->groups[p->groups[i]];
	}
	p->groups = own;
}

static bool split_classes(struct asked *q, struct error *e)
{
	const struct trace *t = q->traffic[0];

	q->split = arena_array(&q->arena, struct trace, t->label_count + 1);
	if (!trace_split(t, q->split, e))
		return error_wrap(e, "--trace");
	q->split_count = t->label_count;
	q->traffic = arena_array(&q->arena, const struct trace *, q->split_count);
	for (size_t i = 0; i < q->split_count; i++)
		q->traffic[i] = &q->split[i];
	return true;
}

/* The models: the pools of several manifests, or the classes of one trace, for each of which the manifest stands. */
static bool make_fleet(struct asked *q, struct error *e)
{
	const struct fleet_spec *given = &q->manifest.fleet;
	bool by_class = given->pool_count == 1;

	if (by_class && !split_classes(q, e))
		return false;
	size_t count = by_class ? q->split_count : given->pool_count, groups = 0;
	if (count < 2 || count > SHARE_MEMBERS_MAX)
		return error_set(e, ERROR_INVALID,
				 "found %zu models; allowed: 2 to %d, as classes of a trace or as pools", count,
				 SHARE_MEMBERS_MAX);
	for (size_t i = 0; i < count; i++)
		groups += given->pools[by_class ? 0 : i].group_count;
	struct pool_spec *pools = arena_array(&q->arena, struct pool_spec, count);
	struct group_spec *all = arena_array(&q->arena, struct group_spec, groups);
	for (size_t i = 0; i < count; i++) {
		copy_pool(q, by_class ? 0 : i, i, all, pools);
		if (by_class)
			pools[i].name = q->read[0].labels[i];
	}
	q->fleet.pools = pools;
	q->fleet.pool_count = count;
	q->fleet.groups = all;
	return true;
}

static bool check_times(const struct asked *q, struct error *e)
{
	millis length = 0;

	for (size_t i = 0; i < q->fleet.pool_count; i++)
		length = q->traffic[i]->length > length ? q->traffic[i]->length : length;
	if (q->tick < SECOND || q->tick > 10 * MINUTE || q->tick % SECOND)
		return error_set(e, ERROR_INVALID, "--interval: found %.3f s; allowed: whole seconds from 1s to 10m",
				 (double)q->tick / 1000);
	return q->warm_up < length ||
	       error_set(e, ERROR_INVALID,
			 "--warm-up: %.0f s leave nothing to score, the traffic lasts %.0f s; make it shorter",
			 (double)q->warm_up / 1000, (double)length / 1000);
}

static bool read_all(struct asked *q, struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };

	if (!q->pools.count)
		return error_set(e, ERROR_INVALID, "no pool: name its manifest with -f FILE");
	if (!q->traces.count)
		return error_set(e, ERROR_INVALID, "no traffic: name a trace with --trace [POOL=]FILE");
	if (!read_spec(q, e) || !manifest_load(q->pools.items, q->pools.count, &q->arena, &q->manifest, &f, e) ||
	    !read_traces(q, e) || !make_fleet(q, e) || !check_times(q, e))
		return false;
	q->world = world_spec_default(&q->fleet, &q->arena);
	/* Monday, 2024-01-01, 00:00 UTC */
	q->simulation = (struct simulation){ .world = { &q->fleet, &q->world, q->traffic, INT64_C(1704067200000),
							q->tick, (uint64_t)q->seed, schedule_at },
					     .policy = &policy_preheat,
					     .setting = "",
					     .warm_up = q->warm_up };
	return true;
}

/* --- answered --- */

/* A line of the answer. */
struct line {
	const char *proposal;
	const struct share_group *group; /* NULL: of all models */
	double slots;			 /* mean */
	int64_t most;			 /* ABSENT: not one stock */
	int64_t slot_ms, alone_ms;
	int64_t requests, late;
	double allowed; /* late requests */
	size_t models, met;
	int64_t wakes; /* ABSENT: none sleep */
	const char *setting;
};

struct answer {
	struct asked *q;
	struct share_case c;
	struct run_result alone;
	struct table *table;
	struct output *timeline; /* NULL: not asked for */
	millis scored;
	struct progress progress;
	int64_t steps;
	const char *best; /* proposal that keeps the objectives for least */
	int64_t best_ms, alone_ms;
};

static const struct table_column columns[] = {
	{ .name = "proposal" },
	{ .name = "models", .is_right = true },
	{ .name = "slots_mean", .title = "SLOTS", .is_right = true },
	{ .name = "slots_most", .title = "MOST", .is_right = true },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "saving_ppm", .title = "SAVES", .is_right = true },
	{ .name = "late_ppm", .title = "LATE", .is_right = true },
	{ .name = "allowed_ppm", .title = "ALLOWED", .is_right = true },
	{ .name = "models_met", .title = "MET", .is_right = true },
	{ .name = "wakes_a_day", .title = "WAKES A DAY", .is_right = true },
	{ .name = "setting" },
	{ .name = "members", .is_wide = true },
};

static double gpu_hours(const struct answer *a, int64_t slot_ms)
{
	return (double)slot_ms * (double)a->q->fleet.pools[0].gpus_per_replica / (double)HOUR;
}

static void put_members(const struct answer *a, const struct share_group *g)
{
	CLEANUP(buf_release) struct buf names = { 0 };

	for (size_t i = 0; g && i < g->count; i++)
		buf_printf(&names, i ? ", %s" : "%s", a->q->fleet.pools[g->pools[i]].name);
	g ? table_text(a->table, names.text) : table_absent(a->table);
}

static void put_line(struct answer *a, const struct line *l)
{
	struct table *t = a->table;
	double late = l->requests ? (double)l->late / (double)l->requests : 0;
	double allowed = l->requests ? l->allowed / (double)l->requests : 0;

	table_text(t, l->proposal);
	table_count(t, (int64_t)l->models);
	table_decimal(t, l->slots, 1);
	l->most == ABSENT ? table_absent(t) : table_count(t, l->most);
	table_decimal(t, gpu_hours(a, l->slot_ms), 1);
	table_share(t, l->alone_ms ? 1 - (double)l->slot_ms / (double)l->alone_ms : 0);
	table_share(t, late);
	table_style(t, (double)l->late <= l->allowed ? STYLE_GOOD : STYLE_BAD);
	table_share(t, allowed);
	table_count(t, (int64_t)l->met);
	table_style(t, l->met * 10 >= l->models * 9 ? STYLE_GOOD : STYLE_BAD);
	l->wakes == ABSENT ? table_absent(t) : table_decimal(t, (double)l->wakes * (double)DAY / (double)a->scored, 0);
	l->setting ? table_text(t, l->setting) : table_absent(t);
	put_members(a, l->group);
}

/* The proposal of all models that keeps the objectives for least is what is told at the end. */
static void consider(struct answer *a, const struct line *l)
{
	if ((double)l->late > l->allowed || l->met * 10 < l->models * 9 || (a->best && l->slot_ms >= a->best_ms))
		return;
	a->best = l->proposal;
	a->best_ms = l->slot_ms;
}

static void step(struct answer *a)
{
	progress_show(&a->progress, ++a->steps);
}

/* Of a pool alone, in milliseconds of replicas. */
static int64_t alone_ms(const struct answer *a, size_t pool)
{
	return a->alone.pools[pool].scored.gpu_ms / a->q->fleet.pools[pool].gpus_per_replica;
}

static void add_score(struct line *l, const struct pool_spec *p, const struct score *s)
{
	l->slot_ms += s->gpu_ms / p->gpus_per_replica;
	l->requests += s->requests;
	l->late += s->late;
	l->allowed += (double)s->requests * (double)p->objective_late_ppm / 1e6;
	l->models++;
	l->met += (double)s->late * 1e6 <= (double)s->requests * (double)p->objective_late_ppm;
}

static struct line line_of_alone(const struct answer *a, const char *name, const struct share_group *g)
{
	struct line l = { .proposal = name, .group = g, .most = ABSENT, .wakes = ABSENT };
	size_t count = g ? g->count : a->q->fleet.pool_count;

	for (size_t i = 0; i < count; i++) {
		size_t pool = g ? g->pools[i] : i;
		add_score(&l, &a->q->fleet.pools[pool], &a->alone.pools[pool].scored);
		l.alone_ms += alone_ms(a, pool);
	}
	l.slots = (double)l.slot_ms / (double)a->scored;
	return l;
}

static struct line line_of_share(const struct answer *a, const char *name, const struct share_group *g,
				 const struct share_result *r)
{
	struct line l = { .proposal = name,
			  .group = g,
			  .slots = (double)r->slot_ms / (double)a->scored,
			  .slot_ms = r->slot_ms,
			  .requests = r->requests,
			  .late = r->late,
			  .models = g->count,
			  .met = r->members_met,
			  .wakes = r->outcome.wakes };

	for (size_t i = 0; i < g->count; i++) {
		l.alone_ms += alone_ms(a, g->pools[i]);
		l.allowed += (double)r->outcome.members[i].requests *
			     (double)a->q->fleet.pools[g->pools[i]].objective_late_ppm / 1e6;
	}
	return l;
}

/* One share on a stock that is sized as it would be; a model alone stays as it is. */
static bool try_share(struct answer *a, const char *name, const struct share_group *g, struct line *out,
		      struct error *e)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	struct share_stock stock;

	if (g->count == 1) {
		*out = line_of_alone(a, name, g);
		return true;
	}
	struct share_result r;

	if (!share_run_best(&a->c, g, &own, &stock, &r, e))
		return false;
	*out = line_of_share(a, name, g, &r);
	out->most = stock.most;
	step(a);
	return true;
}

/* The group of all models holds them in the order of the fleet. */
static void write_span(void *user, const struct share_span *s)
{
	static const char *const states[] = { "asleep", "waking", "awake", "falling-asleep", "broken" };
	struct answer *a = user;
	CLEANUP(buf_release) struct buf row = { 0 };

	buf_printf(&row, "%.3f,%.3f,%zu,", (double)s->since / SECOND, (double)s->until / SECOND, s->slot + 1);
	csv_write_cell(a->q->fleet.pools[s->member].name, &row);
	buf_printf(&row, ",%s\n", states[s->state]);
	output_bytes(a->timeline, row.text, row.len);
}

/* The states of the engines on its slots are written on the way. */
static bool try_all_in_one(struct answer *a, const struct share_group *all, struct error *e)
{
	struct line l;

	if (a->timeline) {
		output_text(a->timeline, "from_s,until_s,slot,model,state\n");
		a->c.note = write_span;
		a->c.user = a;
	}
	bool ok = try_share(a, "one share", all, &l, e);
	a->c.note = NULL;
	if (!ok)
		return false;
	put_line(a, &l);
	consider(a, &l);
	return true;
}

static void add_line(struct line *sum, const struct line *l)
{
	sum->slots += l->slots;
	sum->slot_ms += l->slot_ms;
	sum->alone_ms += l->alone_ms;
	sum->requests += l->requests;
	sum->late += l->late;
	sum->allowed += l->allowed;
	sum->models += l->models;
	sum->met += l->met;
	if (l->wakes != ABSENT)
		sum->wakes += l->wakes;
}

/* Each share that is proposed, then all of them. */
static bool try_groups(struct answer *a, const struct share_group *groups, size_t count, struct error *e)
{
	struct line sum = { .proposal = "grouped", .most = ABSENT };

	for (size_t i = 0; i < count; i++) {
		char name[32];
		struct line l;
		snprintf(name, sizeof name, groups[i].count > 1 ? "share %zu" : "alone %zu", i + 1);
		if (!try_share(a, name, &groups[i], &l, e))
			return false;
		put_line(a, &l);
		add_line(&sum, &l);
	}
	put_line(a, &sum);
	consider(a, &sum);
	return true;
}

/* The fewest fixed slots on which idle engines sleep after a threshold: in hindsight. */
static void try_threshold(struct answer *a, const struct share_group *all)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	char setting[64];
	int64_t slots;
	millis threshold;
	struct share_result r = share_rival(&a->c, all, &own, &slots, &threshold);

	if (!r.slot_ms)
		return;
	struct line l = line_of_share(a, "threshold", all, &r);
	l.most = slots;
	snprintf(setting, sizeof setting, "idle=%lld,slots=%lld", (long long)(threshold / SECOND), (long long)slots);
	l.setting = setting;
	put_line(a, &l);
	step(a);
}

/* Each model's own best setting of a family in hindsight; the least late one where none keeps the objective. */
static struct line line_of_family(const struct answer *a, const struct comparison *c, const char *family)
{
	struct line l = {
		.proposal = family, .most = ABSENT, .wakes = ABSENT, .setting = "best per model in hindsight"
	};
	const struct compare_filter filter = { family, true };

	for (size_t i = 0; i < a->q->fleet.pool_count; i++) {
		const struct pool_spec *p = &a->q->fleet.pools[i];
		long row = compare_cheapest(c, i, &filter, p->objective_late_ppm, false);
		if (row == NO_ROW)
			row = compare_least_late(c, i, &filter, false);
		add_score(&l, p, &c->rows[row].pools[i].scored);
		l.alone_ms += alone_ms(a, i);
	}
	l.slots = (double)l.slot_ms / (double)a->scored;
	return l;
}

static bool try_rivals(struct answer *a, const struct share_group *all, struct error *e)
{
	static const char *const families[] = { "hpa", "keda" };
	CLEANUP(arena_release) struct arena own = { 0 };
	const struct compare_setup setup = { .simulation = &a->q->simulation, .ours = &a->alone, .rivals = "hpa,keda" };
	struct compare_result r;

	progress_end(&a->progress);
	if (!compare_run(&setup, &own, &r, e))
		return false;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		struct line l = line_of_family(a, &r.comparison, families[i]);
		put_line(a, &l);
	}
	a->progress = progress_start("simulating", "shares", 0);
	try_threshold(a, all);
	return true;
}

static void print(const struct answer *a)
{
	enum table_format format = table_format_of(a->q->output);
	double saves = 1 - (double)a->best_ms / (double)a->alone_ms;

	table_print(a->table, format, stdout);
	if (table_is_for_programs(format))
		return;
	if (a->best && a->best_ms < a->alone_ms)
		printf("\nOf those that keep the objectives, \"%s\" needs least: %s fewer GPU hours than each model "
		       "alone.\n",
		       a->best, human_share(saves).text);
	else
		printf("\nSharing saves nothing here: no proposal keeps the objectives for less than each model "
		       "alone.\n");
}

static bool try_everything(struct answer *a, struct error *e)
{
	struct share_group *groups, all = share_of_all(&a->c, &a->q->arena);
	size_t count = share_propose(&a->c, &a->q->arena, &groups);
	bool is_one = count == 1;
	struct line alone = line_of_alone(a, "each alone", NULL);

	a->alone_ms = alone.slot_ms;
	put_line(a, &alone);
	if (!share_fewest_slots(&a->c, &all))
		return error_set(e, ERROR_INVALID, "no slot holds an engine: raise --gpu-memory or --host-memory");
	return try_all_in_one(a, &all, e) && (is_one || try_groups(a, groups, count, e)) &&
	       (!a->q->compare || try_rivals(a, &all, e));
}

static bool answer(struct asked *q, struct error *e)
{
	struct answer a = { .q = q };

	if (!read_all(q, e))
		return false;
	if (q->timeline && !(a.timeline = output_open(q->timeline, e)))
		return false;
	a.c = share_case_of(&q->simulation, &q->spec, &q->arena);
	a.scored = (millis)a.c.steps * SHARE_STEP - q->warm_up;
	a.progress = progress_start("simulating", "shares", 0);
	a.table = table_new(columns, sizeof columns / sizeof *columns);
	bool ok = simulate(&q->simulation, &q->arena, &a.alone, e) && try_everything(&a, e);
	progress_end(&a.progress);
	if (!ok)
		output_abandon(a.timeline);
	else if (a.timeline)
		ok = output_commit(a.timeline, e);
	if (ok)
		print(&a);
	table_free(a.table);
	return ok;
}

static int run(int argc, char **argv)
{
	struct asked q = { .gpu_memory = "80Gi",
			   .host_memory = "512Gi",
			   .engine_memory = "60Gi",
			   .residual_memory = "1Gi",
			   .weights = "16Gi",
			   .failed_wakes = "0%",
			   .output = "table",
			   .sleep = 500,
			   .wake = 1500,
			   .tick = 15 * SECOND,
			   .scale = 1,
			   .seed = 1 };
	const struct option_row rows[] = {
		{ "filename", 'f', OPTION_LIST, "FILE",
		  "manifest: of one pool, which stands for each class of the trace, or of several", &q.pools, NULL },
		{ "trace", 0, OPTION_LIST, "[POOL=]FILE", "requests with a class column, or of a pool", &q.traces,
		  NULL },
		{ "scale", 0, OPTION_NUMBER, "K", "the traffic of each model K times as large", &q.scale, NULL },
		{ "wake", 0, OPTION_PERIOD, "DURATION", "median time in which an engine wakes", &q.wake, NULL },
		{ "sleep", 0, OPTION_PERIOD, "DURATION", "median time in which an engine falls asleep", &q.sleep,
		  NULL },
		{ "failed-wakes", 0, OPTION_TEXT, "SHARE", "wakes that fail; the engine is back after 1 to 2 minutes",
		  &q.failed_wakes, NULL },
		{ "gpu-memory", 0, OPTION_TEXT, "BYTES", "GPU memory of a slot", &q.gpu_memory, NULL },
		{ "host-memory", 0, OPTION_TEXT, "BYTES", "host memory of a slot for engines asleep", &q.host_memory,
		  NULL },
		{ "engine-memory", 0, OPTION_TEXT, "BYTES", "GPU memory of an engine awake", &q.engine_memory, NULL },
		{ "asleep-memory", 0, OPTION_TEXT, "BYTES", "GPU memory that stays with an engine asleep",
		  &q.residual_memory, NULL },
		{ "weights", 0, OPTION_TEXT, "BYTES", "host memory of an engine asleep", &q.weights, NULL },
		{ "compare", 0, OPTION_FLAG, NULL,
		  "beside an HPA and KEDA per model, and sleep after an idle threshold, each in hindsight", &q.compare,
		  NULL },
		{ "interval", 0, OPTION_DURATION, "DURATION", "time between decisions on the number of slots", &q.tick,
		  NULL },
		{ "warm-up", 0, OPTION_DURATION, "DURATION",
		  "left out of the score: the number of slots is chosen on it, and in hindsight without", &q.warm_up,
		  NULL },
		{ "seed", 0, OPTION_COUNT, "N", "the same seed gives the same bytes", &q.seed, NULL },
		{ "timeline", 0, OPTION_TEXT, "FILE",
		  "writes when which engine of \"one share\" slept or was awake, as CSV", &q.timeline, NULL },
		PRINT_OPTION(&q.output),
	};
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_share, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = rest == argc || error_set(&e, ERROR_INVALID, "unexpected '%s'; share takes options only", argv[rest]);
	ok = ok && answer(&q, &e);
	release(&q);
	return ok ? EXIT_DONE : command_failed(&command_share, &e);
}

const struct command command_share = {
	.name = "share",
	.usage = "share -f FILE --trace [POOL=]FILE [OPTIONS]",
	.summary = "Which models to put on the same GPUs, with engines that sleep, and what it saves",
	.examples = "  preheat share -f pool.yaml --trace clients.csv.gz --warm-up 2h\n"
		    "  preheat share -f pool.yaml --trace clients.csv.gz --wake 5s --engine-memory 18Gi --compare\n"
		    "  preheat share -f pools/ --trace chat=chat.csv.gz --trace code=code.csv.gz -o json\n",
	.notes = "A proposal for planning. In a cluster, pools of one spec.share swap engines (docs/sharing.md); the "
		 "number\n"
		 "of slots stays as it was deployed.\n"
		 "A slot is what one replica of the first pool runs on. On it stand engines of several models: awake "
		 "as\n"
		 "many as its GPU memory holds, the others asleep with their weights in host memory. \"one share\" "
		 "puts\n"
		 "all models together, \"share N\" those whose peaks fall apart; what saves nothing stays alone. The\n"
		 "number of slots follows the need by the policy that sizes a pool, which slot holds which engine "
		 "awake\n"
		 "is decided every 5 s and whenever a request finds no room. SAVES is against each model alone.\n",
	.run = run,
};
