#include "controller/simulation/rivals/load.h"

/* Adds `weight` to every tick's mean for the part of it within [from, to). `steps` holds changes of the
 * level from one tick to the next, so that a long stay costs no more than a short one. */
static void occupy(struct load *d, double *steps, millis from, millis to, double weight)
{
	size_t first = (size_t)(from / d->interval), last = (size_t)(to / d->interval);

	if (first >= d->ticks)
		return;
	double part = weight * (double)(from % d->interval) / (double)d->interval;
	steps[first] += weight - part;
	steps[first + 1] += part;
	if (last >= d->ticks)
		return;
	part = weight * (double)(to % d->interval) / (double)d->interval;
	steps[last] -= weight - part;
	steps[last + 1] -= part;
}

static void add_bin(struct load *d, double *steps, const struct bin *b, millis width, const struct queue_truth *truth)
{
	if (!b->requests)
		return;
	double all = (double)b->requests;
	millis held =
		queue_service_ms(queue_service(truth, (double)b->prompt_tokens / all, (double)b->output_tokens / all));

	/* The mean stay, from every second of the bin. */
	for (millis at = 0; at < width; at += SECOND) {
		millis span = width - at < SECOND ? width - at : SECOND;
		double count = all * (double)span / (double)width;
		size_t tick = (size_t)((b->at + at) / d->interval);

		occupy(d, steps, b->at + at, b->at + at + held, count / (double)truth->slots);
		if (tick < d->ticks)
			d->arrived[tick] += (int64_t)((double)(at + span) * all / (double)width) -
					    (int64_t)((double)at * all / (double)width);
	}
}

static void add_requests(struct load *d, double *steps, const struct trace *t, const struct queue_truth *truth)
{
	for (size_t i = 0; i < t->request_count; i++) {
		const struct request *r = &t->requests[i];
		size_t tick = (size_t)(r->arrival / d->interval);
		millis held = queue_service_ms(queue_service(truth, r->prompt_tokens, r->output_tokens));

		occupy(d, steps, r->arrival, r->arrival + held, 1 / (double)truth->slots);
		if (tick < d->ticks)
			d->arrived[tick]++;
	}
}

struct load load_of(const struct trace *trace, const struct queue_truth *truth, millis interval, struct arena *a)
{
	struct load d = { .interval = interval, .ticks = (size_t)((trace->length + interval - 1) / interval) };
	double *steps = arena_array(a, double, d.ticks + 2), level = 0;

	d.offered = arena_array(a, double, d.ticks + 1);
	d.arrived = arena_array(a, int64_t, d.ticks + 1);
	if (trace->is_binned)
		for (size_t i = 0; i < trace->bin_count; i++)
			add_bin(&d, steps, &trace->bins[i], trace->bin_width, truth);
	else
		add_requests(&d, steps, trace, truth);
	for (size_t i = 0; i < d.ticks; i++) {
		level += steps[i];
		d.offered[i] = level > 1e-9 ? level : 0;
	}
	return d;
}

double load_mean(const struct load *d, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < d->ticks; i++)
		sum += d->offered[i];
	return from < d->ticks ? sum / (double)(d->ticks - from) : 0;
}

double load_peak(const struct load *d, size_t from)
{
	double peak = 0;

	for (size_t i = from; i < d->ticks; i++)
		if (d->offered[i] > peak)
			peak = d->offered[i];
	return peak;
}
