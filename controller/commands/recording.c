#include "controller/commands/recording.h"

#include "base/alloc.h"
#include "base/exact.h"
#include "base/random.h"
#include "base/schedule.h"
#include "controller/commands/command.h"
#include "controller/policy/decide.h"
#include "controller/restore/restore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file written for nobody else: fewer commits are quicker, and a crash leaves nothing. */
enum { TICKS_PER_COMMIT = 1000 };

struct writing {
	struct history *history;
	const struct manifest *manifest;
	const struct recorded_signals *signals;
	struct policy_state *memory;
	struct arena arena; /* of the tick */
	size_t next[256];   /* reading of each recorded pool */
	int64_t ready[256]; /* in the last one, by pool of the fleet */
	int64_t tick;
	millis now, interval;
};

static const struct recorded_pool *recorded(const struct writing *w, size_t pool, size_t *index)
{
	const struct pool_spec *spec = &w->manifest->fleet.pools[pool];
	char key[160];

	snprintf(key, sizeof key, "%s/%s", spec->namespace, spec->name);
	for (*index = 0; *index < w->signals->count; ++*index)
		if (!strcmp(w->signals->pools[*index].key, key))
			return &w->signals->pools[*index];
	return NULL;
}

static int64_t or_absent(int64_t value)
{
	return value == READING_UNKNOWN ? ABSENT : value;
}

static struct scrape_input scrape_of(const struct pool_reading *r)
{
	return (struct scrape_input){ .at = r->at,
				      .ready = r->ready,
				      .running = r->running,
				      .running_draining = r->running_draining,
				      .waiting = r->waiting,
				      .full = or_absent(r->full),
				      .running_full = or_absent(r->running_full),
				      .started = or_absent(r->started),
				      .late = r->late == READING_UNKNOWN ? 0 : r->late,
				      .refused = r->refused,
				      .completed = r->completed,
				      .prompt_tokens = r->prompt_tokens,
				      .output_tokens = r->output_tokens };
}

/* The readings of the tick; where none is, nothing could be read from the replicas that were there before. */
static void take_readings(struct writing *w, size_t pool, struct pool_snapshot *out)
{
	struct scrape_input *scrapes = arena_array(&w->arena, struct scrape_input, SCRAPES_MAX);
	size_t index;
	const struct recorded_pool *p = recorded(w, pool, &index);

	out->scrapes = scrapes;
	out->input.inter_token_latency_us = out->input.kv_cache_permille = ABSENT;
	for (; p && w->next[index] < p->count && p->readings[w->next[index]].at <= w->now; w->next[index]++) {
		const struct pool_reading *r = &p->readings[w->next[index]];
		out->input.scrapes_expected += r->expected;
		out->input.scrapes_fresh += r->fresh;
		out->input.scrapes_disputed += r->disputed;
		w->ready[pool] = r->ready;
		if (r->fresh && out->scrape_count < SCRAPES_MAX)
			scrapes[out->scrape_count++] = scrape_of(r);
		if (r->inter_token_latency_us != READING_UNKNOWN)
			out->input.inter_token_latency_us = r->inter_token_latency_us;
		if (r->kv_cache_permille != READING_UNKNOWN)
			out->input.kv_cache_permille = r->kv_cache_permille;
	}
	if (p && !out->input.scrapes_expected)
		out->input.scrapes_expected = w->ready[pool];
}

/* All replicas are shown in the groups in order of preference, as far as these have room. */
static void place_replicas(struct writing *w, size_t pool, struct pool_snapshot *out)
{
	const struct fleet_spec *fleet = &w->manifest->fleet;
	const struct pool_spec *spec = &fleet->pools[pool];
	struct group_input *groups = arena_array(&w->arena, struct group_input, spec->group_count);
	int64_t left = w->ready[pool];

	out->groups = groups;
	out->group_count = spec->group_count;
	out->input.ready = left;
	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet->groups[spec->groups[i]];
		int64_t each = replicas_per_node(g, spec), room = g->max_nodes * each;
		int64_t here = left < room || i + 1 == spec->group_count ? left : room;
		groups[i] = (struct group_input){ .ready = here,
						  .least_on_node = here < each ? here : each,
						  .billed_gpus_milli = here * spec->gpus_per_replica * 1000,
						  .nodes = each > 0 ? (here + each - 1) / each : 0 };
		left -= here;
	}
}

static void show_schedule(const struct writing *w, const struct pool_spec *spec, struct pool_input *in)
{
	struct schedule_state s = { 0 };

	if (spec->schedule_count)
		s = schedule_at(spec->schedule, spec->schedule_count, w->now);
	in->schedule_floor = s.floor;
	in->schedule_next_floor = s.next_floor;
	in->schedule_next_at = s.next_at;
}

static bool write_tick(struct writing *w, struct error *e)
{
	const struct fleet_spec *fleet = &w->manifest->fleet;
	struct pool_snapshot *pools = arena_array(&w->arena, struct pool_snapshot, fleet->pool_count);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		take_readings(w, i, &pools[i]);
		place_replicas(w, i, &pools[i]);
		show_schedule(w, &fleet->pools[i], &pools[i].input);
	}
	const struct snapshot s = {
		.tick = w->tick, .now = w->now, .interval = w->interval, .fleet = fleet, .pools = pools
	};
	if (!restore_keep(w->history, w->memory, e))
		return false;
	struct plan plan = policy_decide(&s, w->memory, &w->arena);
	bool ok = history_append(w->history, &s, &plan, e);
	arena_clear(&w->arena);
	return ok;
}

static bool write_all(struct writing *w, struct error *e)
{
	millis last = 0;

	for (size_t i = 0; i < w->signals->count; i++) {
		const struct recorded_pool *p = &w->signals->pools[i];
		last = p->readings[p->count - 1].at > last ? p->readings[p->count - 1].at : last;
	}
	for (w->now = w->signals->begun; w->now < last + w->interval; w->now += w->interval, w->tick++)
		if (!write_tick(w, e))
			return false;
	return true;
}

bool recording_write(const char *path, const char *run, const struct manifest *m,
		     const struct recorded_signals *signals, millis interval, struct error *e)
{
	struct writing w = { .manifest = m, .signals = signals, .interval = interval };

	if (m->fleet.pool_count > sizeof w.ready / sizeof *w.ready)
		return error_set(e, ERROR_INVALID, "%zu pools; allowed: %zu at once", m->fleet.pool_count,
				 sizeof w.ready / sizeof *w.ready);
	w.history = history_create(&(struct history_setup){ .path = path,
							    .manifest = m->text,
							    .fleet = &m->fleet,
							    .program = command_version_text() + strlen("preheat "),
							    .policy = "preheat",
							    .run = run,
							    .ticks_per_commit = TICKS_PER_COMMIT,
							    .checkpoint_every = HOUR },
				   e);
	if (!w.history)
		return false;
	w.memory = policy_state_new(&m->fleet);
	bool ok = write_all(&w, e);
	policy_state_free(w.memory);
	arena_release(&w.arena);
	if (ok)
		return history_finish(w.history, e);
	history_close(w.history);
	unlink(path);
	return false;
}

/* A tick's completions count for this much of themselves a tick later: some minutes. */
static const double MEMORY = 0.95;

/* What the readings of one pool have come to. */
struct tally {
	double prompt, output, completed; /* of lately */
	int64_t waiting, in_service;	  /* at the last reading; ABSENT before the first */
	int64_t debt;			  /* more started than the queue could give: taken from the next arrivals */
	size_t unknown;			  /* first bins, before any request completed */
};

static void *allocate(size_t count, size_t size)
{
	return xcalloc(count, size);
}

static int64_t known(int64_t value)
{
	return value == ABSENT ? 0 : value;
}

static int64_t arrivals(struct tally *t, const struct scrape_input *s)
{
	int64_t waiting = known(s->waiting), in_service = known(s->running) + known(s->running_draining);
	int64_t started = s->started;

	if (t->waiting == ABSENT) {
		t->waiting = waiting;
		t->in_service = in_service;
	}
	if (started == ABSENT)
		started = known(s->completed) + in_service - t->in_service;
	int64_t arrived = started + waiting - t->waiting;
	t->waiting = waiting;
	t->in_service = in_service;
	return arrived;
}

static int64_t tokens(double sum, const struct tally *t, int64_t requests)
{
	return (int64_t)(sum / t->completed * (double)requests + 0.5);
}

static void add_tick(struct tally *t, const struct pool_snapshot *s, struct bin *bins, size_t index)
{
	struct bin *bin = &bins[index];
	int64_t arrived = -t->debt;

	t->prompt *= MEMORY;
	t->output *= MEMORY;
	t->completed *= MEMORY;
	for (size_t i = 0; i < s->scrape_count; i++) {
		arrived += arrivals(t, &s->scrapes[i]);
		t->prompt += (double)known(s->scrapes[i].prompt_tokens);
		t->output += (double)known(s->scrapes[i].output_tokens);
		t->completed += (double)known(s->scrapes[i].completed);
	}
	t->debt = arrived < 0 ? -arrived : 0;
	bin->requests += arrived > 0 ? arrived : 0;
	if (t->completed <= 0) {
		t->unknown = index + 1;
		return;
	}
	/* The first bins are as long as the first requests that completed. */
	for (size_t i = t->unknown ? 0 : index; i <= index; i++) {
		bins[i].prompt_tokens = tokens(t->prompt, t, bins[i].requests);
		bins[i].output_tokens = tokens(t->output, t, bins[i].requests);
	}
	t->unknown = 0;
}

/* A recorded stretch, as it is read. */
struct stretch {
	struct history *history;
	int64_t from, to;
	millis counted; /* what a counter of it is a mean of; 0: of its own tick */
};

/* Ticks are laid on a grid of bins: the clock of who wrote them may have jittered, stood still or run on alone. */
struct grid {
	millis start, width;
	size_t count;
};

static size_t bin_of(const struct grid *g, millis end)
{
	int64_t index = (end - g->start + g->width / 2) / g->width - 1;

	return index < 0 ? 0 : (size_t)index >= g->count ? g->count - 1 : (size_t)index;
}

/* A tick of several bins has had its requests all along. */
static void spread(struct bin *bins, size_t index, size_t over)
{
	struct bin whole = bins[index];

	over = over > index + 1 ? index + 1 : over;
	for (size_t i = 0; over > 1 && i < over; i++) {
		struct bin *b = &bins[index - i];
		int64_t left = (int64_t)(over - i);
		b->requests = whole.requests / left;
		b->prompt_tokens = whole.prompt_tokens / left;
		b->output_tokens = whole.output_tokens / left;
		whole.requests -= b->requests;
		whole.prompt_tokens -= b->prompt_tokens;
		whole.output_tokens -= b->output_tokens;
	}
}

static void take_tick(const struct grid *g, struct tally *tally, const struct tick_record *r, struct trace *trace)
{
	size_t index = bin_of(g, r->now);

	add_tick(tally, &r->snapshot, trace->bins, index);
	spread(trace->bins, index, (size_t)((r->interval + g->width / 2) / g->width));
}

static void note_silence(const struct tick_record *r, millis before, struct recording *out)
{
	if (before && r->now - before > r->interval + r->interval / 2)
		out->silent += r->now - before - r->interval;
	out->blind_ticks += r->snapshot.input.scrapes_expected > 0 && r->snapshot.input.scrapes_fresh == 0;
}

/* Busier recordings are counted by second, and longer ones (some six weeks) keep the bins of their ticks. */
enum { SCATTERED_REQUESTS = 3000000, SCATTERED_SECONDS = 4000000 };

/* Lengths of requests over their mean: as in the modelled world where nothing else is said. */
#define LENGTH_SPREAD 1.0
enum { LENGTHS = 64 };

struct lengths {
	double points[LENGTHS];
	double drawn, sum;     /* of lately: what is drawn comes to what was seen to complete */
	millis width, counted; /* of a bin, and of the time before its end that its requests came in */
	struct random random;
};

static int32_t one_of(int64_t tokens, const struct bin *of, double length)
{
	double mine = (double)tokens / (double)of->requests * length + .5;

	return mine < TRACE_MAX_TOKENS ? (int32_t)mine : TRACE_MAX_TOKENS;
}

static void scatter_bin(const struct bin *b, struct lengths *l, struct request *out)
{
	millis begin = b->at + l->width - l->counted;
	double sum = 0;

	for (int64_t i = 0; i < b->requests; i++) {
		millis at = begin + (millis)(random_uniform(&l->random) * (double)l->counted);
		out[i] = (struct request){ .arrival = at > 0 ? at : 0,
					   .label = (int32_t)(random_uniform(&l->random) * LENGTHS) };
		sum += l->points[out[i].label];
	}
	l->drawn = l->drawn * MEMORY + (double)b->requests;
	l->sum = l->sum * MEMORY + sum;
	for (int64_t i = 0; i < b->requests; i++) {
		double length = l->points[out[i].label] * l->drawn / l->sum;
		out[i].prompt_tokens = one_of(b->prompt_tokens, b, length);
		out[i].output_tokens = one_of(b->output_tokens, b, length);
		out[i].label = -1;
	}
}

static void scatter_all(struct trace *t, size_t requests, struct lengths *l)
{
	struct request *all = allocate(requests + 1, sizeof *all), *next = all;

	for (size_t i = 0; i < t->bin_count; next += t->bins[i++].requests)
		scatter_bin(&t->bins[i], l, next);
	requests_sort(all, requests);
	free(t->bins);
	*t = (struct trace){ .requests = all, .request_count = requests, .length = t->length };
}

static void count_by_second(struct trace *t, size_t most, struct lengths *l)
{
	size_t each = (size_t)(t->bin_width / SECOND), count = t->bin_count * each;
	struct bin *seconds = allocate(count + 1, sizeof *seconds);
	struct request *requests = allocate(most + 1, sizeof *requests);

	for (size_t i = 0; i < count; i++)
		seconds[i].at = (millis)i * SECOND;
	for (size_t i = 0; i < t->bin_count; i++) {
		scatter_bin(&t->bins[i], l, requests);
		for (int64_t k = 0; k < t->bins[i].requests; k++) {
			struct bin *in = &seconds[requests[k].arrival / SECOND];
			in->requests++;
			in->prompt_tokens += requests[k].prompt_tokens;
			in->output_tokens += requests[k].output_tokens;
		}
	}
	free(requests);
	free(t->bins);
	t->bins = seconds;
	t->bin_count = count;
	t->bin_width = SECOND;
}

/*
 * Nobody saw when in a tick (or in the minute that Prometheus counts over) the requests came, nor how long each was.
 * Evenly would be kinder than anything real: queues form where some, or long ones, come together. Each comes at a
 * random moment of the tick, which is Poisson's traffic, with a length of its own.
 */
static void scatter(struct trace *t, millis counted, struct random random)
{
	struct lengths l = { .random = random, .width = t->bin_width };
	int64_t requests = 0, most = 0;

	for (size_t i = 0; i < t->bin_count; i++) {
		requests += t->bins[i].requests;
		most = t->bins[i].requests > most ? t->bins[i].requests : most;
	}
	l.counted = counted > t->bin_width ? counted : t->bin_width;
	exact_lognormal_points(LENGTH_SPREAD, l.points, LENGTHS);
	if (requests <= SCATTERED_REQUESTS)
		scatter_all(t, (size_t)requests, &l);
	else if (t->bin_width % SECOND == 0 && t->length / SECOND <= SCATTERED_SECONDS)
		count_by_second(t, (size_t)most, &l);
}

/* Where the pool was not in the manifest, and where nobody wrote, there is no traffic. */
static bool read_pool(const struct stretch *s, const struct grid *g, size_t pool, struct recording *out,
		      struct error *e)
{
	struct trace *trace = &out->traces[pool];
	struct tally tally = { .waiting = ABSENT };
	struct tick_record r;
	millis before = 0;

	trace->is_binned = true;
	trace->bins = allocate(g->count, sizeof *trace->bins);
	trace->bin_width = g->width;
	for (size_t i = 0; i < g->count; i++)
		trace->bins[i].at = (millis)i * g->width;
	for (int64_t tick = s->from; tick <= s->to; tick++) {
		if (!history_read(s->history, tick, pool, &r, e)) {
			if (e->kind == ERROR_NOT_FOUND)
				continue;
			return false;
		}
		if (r.interval == 0) /* read nothing, stands for no time */
			continue;
		if (!before)
			out->initial_replicas[pool] = r.snapshot.input.ready;
		take_tick(g, &tally, &r, trace);
		note_silence(&r, before, out);
		before = r.now;
	}
	if (before) {
		trace->bin_count = bin_of(g, before) + 1;
		trace->length = (millis)trace->bin_count * g->width;
		scatter(trace, s->counted, random_stream(pool, "arrivals within a tick"));
	}
	return true;
}

/* The shortest tick makes the bins. */
static bool read_grid(const struct stretch *s, struct arena *a, struct grid *g, struct error *e)
{
	struct history_stretch at;
	struct tick_record r;
	millis end = 0;

	for (int64_t tick = s->from; tick <= s->to; tick = at.until < s->to ? at.until + 1 : s->to + 1) {
		if (!history_stretch_at(s->history, tick, a, &at, e))
			return false;
		for (int64_t t = tick; t <= s->to && t <= at.until; t++) {
			if (!history_read(s->history, t, at.pool_count ? at.pools[0] : 0, &r, e))
				return false;
			if (r.interval == 0)
				continue;
			g->start = !g->width ? r.now - r.interval : g->start;
			g->width = !g->width || r.interval < g->width ? r.interval : g->width;
			end = r.now;
		}
	}
	if (g->width <= 0)
		return error_set(e, ERROR_INVALID, "%s: no ticks in that stretch", history_path(s->history));
	g->count = (size_t)((end - g->start) / g->width) + 2;
	return g->count <= TRACE_MAX_BINS ||
	       error_set(e, ERROR_INVALID, "%s: the recording is too long for its ticks; choose a stretch of it",
			 history_path(s->history));
}

/* Prometheus counts by increase() over a minute (signals/prometheus_range.h). */
static bool find_counted(struct stretch *s, struct arena *a, struct error *e)
{
	const char *run;

	if (!history_fact(s->history, "run", a, &run, e))
		return false;
	s->counted = !strncmp(run, RECORDING_IMPORTED, strlen(RECORDING_IMPORTED)) ? MINUTE : 0;
	return true;
}

bool recording_read(struct history *h, int64_t from, int64_t to, struct arena *a, struct recording *out,
		    struct error *e)
{
	struct stretch s = { .history = h, .from = from, .to = to };

	*out = (struct recording){ 0 };
	history_pools(h, &out->pool_count);
	out->traces = arena_array(a, struct trace, out->pool_count);
	out->initial_replicas = arena_array(a, int64_t, out->pool_count);
	struct grid g = { 0 };
	bool ok = find_counted(&s, a, e) && read_grid(&s, a, &g, e);
	out->start = g.start;
	out->interval = g.width;
	for (size_t pool = 0; ok && pool < out->pool_count; pool++)
		ok = read_pool(&s, &g, pool, out, e);
	if (!ok)
		recording_release(out);
	return ok;
}

void recording_release(struct recording *r)
{
	for (size_t i = 0; i < r->pool_count; i++)
		trace_release(&r->traces[i]);
	r->pool_count = 0;
}

static void measure_tick(void *calibration, const struct cursor_tick *t)
{
	calibration_tick(calibration, &t->snapshot, t->plans);
}

bool recording_measure(struct history *h, const struct recorded_ticks *ticks, const struct fleet_spec *fleet,
		       struct arena *a, struct calibration **out, struct error *e)
{
	*out = calibration_new(fleet, ticks->start, a);
	return tick_walk(h, &(struct tick_walk){ ticks->from, ticks->to, measure_tick, *out }, e);
}

size_t recording_pool(const struct history *h, const struct pool_spec *spec)
{
	size_t count;
	const struct history_pool *pools = history_pools(h, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(pools[i].name, spec->name) && !strcmp(pools[i].namespace, spec->namespace))
			return i;
	return RECORDING_NONE;
}

bool recording_world(const struct recording_question *q, const struct trace **traces, struct arena *a,
		     struct world_spec *out, struct error *e)
{
	const struct fleet_spec *fleet = q->fleet;
	struct world_spec spec = world_spec_default(fleet, a);
	struct pool_world *worlds = arena_array(a, struct pool_world, fleet->pool_count);
	struct trace **measured = arena_array(a, struct trace *, fleet->pool_count);
	struct calibration *c;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		worlds[i] = spec.pools[i];
		measured[i] = q->pools[i] == RECORDING_NONE ? NULL : &q->rec->traces[q->pools[i]];
		traces[i] = measured[i];
		if (measured[i])
			worlds[i].initial_replicas = q->rec->initial_replicas[q->pools[i]];
	}
	spec.pools = worlds;
	if (!recording_measure(q->history, &q->ticks, fleet, a, &c, e))
		return false;
	calibration_world(c, measured, &spec);
	q->rec->measured = c;
	*out = spec;
	return true;
}
