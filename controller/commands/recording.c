#include "controller/commands/recording.h"

#include <stdio.h>
#include <stdlib.h>

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
	void *p = calloc(count ? count : 1, size);

	if (!p) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return p;
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
	bin->requests = arrived > 0 ? arrived : 0;
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
};

static bool check_length(const struct stretch *s, const struct tick_record *r, millis interval, struct error *e)
{
	return r->interval == interval ||
	       error_set(e, ERROR_INVALID,
			 "%s: ticks are not equally long (tick %lld); choose a stretch with --from and --to in which "
			 "they are",
			 history_path(s->history), (long long)r->tick);
}

/* Ticks at which the pool was not in the manifest leave a gap. */
static bool read_pool(const struct stretch *s, size_t pool, struct recording *out, struct error *e)
{
	struct trace *trace = &out->traces[pool];
	struct tally tally = { .waiting = ABSENT };
	struct tick_record r;

	trace->is_binned = true;
	trace->bins = allocate((size_t)(s->to - s->from + 1), sizeof *trace->bins);
	trace->bin_width = out->interval;
	for (int64_t tick = s->from; tick <= s->to; tick++) {
		if (!history_read(s->history, tick, pool, &r, e)) {
			if (e->kind == ERROR_NOT_FOUND)
				continue;
			return false;
		}
		if (!check_length(s, &r, out->interval, e))
			return false;
		if (!trace->bin_count)
			out->initial_replicas[pool] = r.snapshot.input.ready;
		trace->bins[trace->bin_count].at = r.now - r.interval - out->start;
		add_tick(&tally, &r.snapshot, trace->bins, trace->bin_count++);
	}
	if (trace->bin_count)
		trace->length = trace->bins[trace->bin_count - 1].at + trace->bin_width;
	return true;
}

static bool read_start(const struct stretch *s, struct arena *a, struct recording *out, struct error *e)
{
	struct history_stretch first;
	struct tick_record r;

	if (!history_stretch_at(s->history, s->from, a, &first, e) ||
	    !history_read(s->history, s->from, first.pool_count ? first.pools[0] : 0, &r, e))
		return false;
	out->interval = r.interval;
	out->start = r.now - r.interval;
	return true;
}

bool recording_read(struct history *h, int64_t from, int64_t to, struct arena *a, struct recording *out,
		    struct error *e)
{
	const struct stretch s = { h, from, to };

	*out = (struct recording){ 0 };
	history_pools(h, &out->pool_count);
	out->traces = arena_array(a, struct trace, out->pool_count);
	out->initial_replicas = arena_array(a, int64_t, out->pool_count);
	bool ok = read_start(&s, a, out, e);
	for (size_t pool = 0; ok && pool < out->pool_count; pool++)
		ok = read_pool(&s, pool, out, e);
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
