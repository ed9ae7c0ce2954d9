#include "controller/traces/scale.h"

#include "base/exact.h"
#include "base/random.h"

#include <stdlib.h>

/* Lengths are resampled within windows of this width. */
#define LENGTHS_WINDOW (10 * MINUTE)

struct scaler {
	const struct trace *in;
	const struct trace_scaling *how;
	struct trace *out;
	struct random count, instant, lengths;
	size_t room;
	size_t from, to; /* requests in the window of the one at hand */
};

static void emit(struct scaler *s, const struct request *like, millis arrival)
{
	struct trace *t = s->out;

	if (t->request_count == s->room) {
		s->room = s->room ? s->room * 2 : 4096;
		t->requests = realloc(t->requests, s->room * sizeof *t->requests);
		if (!t->requests)
			abort();
	}
	t->requests[t->request_count] = *like;
	t->requests[t->request_count++].arrival = arrival;
}

/* Clones share the second, not the instant: nobody's service sees five requests in one millisecond. */
static millis within_second(struct scaler *s, millis t)
{
	millis start = t / SECOND * SECOND;
	millis room = s->in->length - start < SECOND ? s->in->length - start : SECOND;

	return start + (millis)(random_uniform(&s->instant) * (double)room);
}

static void multiply(struct scaler *s, const struct request *r)
{
	int64_t copies = random_round(&s->count, s->how->k);

	for (int64_t i = 0; i < copies; i++)
		emit(s, r, i ? within_second(s, r->arrival) : r->arrival);
}

/* Folds a time back at the ends of the trace. */
static millis reflect(millis t, millis length)
{
	while (t < 0 || t >= length)
		t = t < 0 ? -1 - t : 2 * length - 1 - t;
	return t;
}

static void move_window(struct scaler *s, size_t i)
{
	const struct request *all = s->in->requests;
	millis window = all[i].arrival / LENGTHS_WINDOW;

	if (i < s->to)
		return;
	s->from = i;
	for (s->to = i; s->to < s->in->request_count && all[s->to].arrival / LENGTHS_WINDOW == window; s->to++)
		;
}

static void jitter(struct scaler *s, size_t i)
{
	const struct request *all = s->in->requests;
	int64_t copies = random_round(&s->count, s->how->k / SCALE_GROUP);

	move_window(s, i);
	for (int64_t c = 0; c < copies; c++) {
		double shift = (double)s->how->sigma * random_normal(&s->instant);
		millis t = reflect(all[i].arrival + exact_round(shift), s->in->length);
		for (int clone = 0; clone < SCALE_GROUP; clone++) {
			size_t like = s->from + (size_t)(random_uniform(&s->lengths) * (double)(s->to - s->from));
			emit(s, &all[like], clone ? within_second(s, t) : t);
		}
	}
}

bool scale_requests(const struct trace *in, const struct trace_scaling *how, struct trace *out, struct error *e)
{
	struct scaler s = { .in = in,
			    .how = how,
			    .out = out,
			    .count = random_stream(how->seed, "scale-count"),
			    .instant = random_stream(how->seed, "scale-instant"),
			    .lengths = random_stream(how->seed, "scale-lengths") };

	if ((double)in->request_count * how->k > TRACE_MAX_SCALED_REQUESTS)
		return error_set(
			e, ERROR_INVALID,
			"%zu requests times %g are more than %d; use bins: preheat import TRACE --bin 10s -o BINS",
			in->request_count, how->k, TRACE_MAX_SCALED_REQUESTS);
	for (size_t i = 0; i < in->request_count; i++)
		if (how->jitter)
			jitter(&s, i);
		else
			multiply(&s, &in->requests[i]);
	requests_sort(out->requests, out->request_count);
	return true;
}
