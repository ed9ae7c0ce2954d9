#include "controller/traces/trace.h"

#include <stdlib.h>
#include <string.h>

void trace_release(struct trace *t)
{
	for (size_t i = 0; i < t->label_count; i++)
		free(t->labels[i]);
	free(t->labels);
	free(t->requests);
	free(t->bins);
	*t = (struct trace){ 0 };
}

millis trace_end(const struct trace *t)
{
	if (t->is_binned)
		return t->bin_count ? t->bins[t->bin_count - 1].at + t->bin_width : 0;
	if (!t->request_count)
		return 0;
	return (t->requests[t->request_count - 1].arrival / SECOND + 1) * SECOND;
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* Least significant digit first, 11 bits a pass: stable, and a week of milliseconds needs three. */
void requests_sort(struct request *requests, size_t count)
{
	enum { BITS = 11, DIGITS = 1 << BITS };
	millis most = 0;
	bool is_sorted = true;

	for (size_t i = 0; i < count; i++) {
		is_sorted &= !i || requests[i - 1].arrival <= requests[i].arrival;
		most = requests[i].arrival > most ? requests[i].arrival : most;
	}
	if (is_sorted)
		return;
	struct request *spare = must(malloc(count * sizeof *spare)), *from = requests, *to = spare;
	for (int shift = 0; most >> shift; shift += BITS) {
		size_t starts[DIGITS + 1] = { 0 };
		for (size_t i = 0; i < count; i++)
			starts[(from[i].arrival >> shift & (DIGITS - 1)) + 1]++;
		for (int d = 0; d < DIGITS; d++)
			starts[d + 1] += starts[d];
		for (size_t i = 0; i < count; i++)
			to[starts[from[i].arrival >> shift & (DIGITS - 1)]++] = from[i];
		struct request *swap = from;
		from = to;
		to = swap;
	}
	if (from != requests)
		memcpy(requests, from, count * sizeof *from);
	free(spare);
}

static bool bin_fits(const struct bin *b, struct error *e)
{
	if (b->requests <= TRACE_MAX_BIN_REQUESTS && b->prompt_tokens <= TRACE_MAX_BIN_TOKENS &&
	    b->output_tokens <= TRACE_MAX_BIN_TOKENS)
		return true;
	return error_set(e, ERROR_INVALID,
			 "more than %lld requests or %lld tokens fall into one bin; make the bins shorter",
			 (long long)TRACE_MAX_BIN_REQUESTS, (long long)TRACE_MAX_BIN_TOKENS);
}

/* One bin, or one request as a bin of its own. */
static struct bin item(const struct trace *in, size_t i)
{
	if (in->is_binned)
		return in->bins[i];
	const struct request *r = &in->requests[i];
	return (struct bin){ r->arrival, 1, r->prompt_tokens, r->output_tokens };
}

bool trace_to_bins(const struct trace *in, millis width, struct trace *out, struct error *e)
{
	if (width <= 0 || (in->is_binned && width % in->bin_width))
		return error_set(e, ERROR_INVALID, "bins of %lld ms cannot be made; allowed: a multiple of %lld ms",
				 (long long)width, (long long)(in->is_binned ? in->bin_width : 1));
	size_t count = in->is_binned ? in->bin_count : in->request_count;
	size_t room = (size_t)(trace_end(in) / width) + 1;
	if (room > count)
		room = count;
	if (room > TRACE_MAX_BINS)
		return error_set(e, ERROR_INVALID, "bins of %lld ms are more than %d; make them longer",
				 (long long)width, TRACE_MAX_BINS);
	struct trace t = { .is_binned = true, .bin_width = width, .bins = must(calloc(room + 1, sizeof *t.bins)) };
	for (size_t i = 0; i < count; i++) {
		struct bin add = item(in, i), *last = t.bin_count ? &t.bins[t.bin_count - 1] : NULL;
		if (!last || add.at >= last->at + width) {
			last = &t.bins[t.bin_count++];
			last->at = add.at / width * width;
		}
		last->requests += add.requests;
		last->prompt_tokens += add.prompt_tokens;
		last->output_tokens += add.output_tokens;
		if (!bin_fits(last, e)) {
			trace_release(&t);
			return false;
		}
	}
	t.length = trace_end(&t);
	*out = t;
	return true;
}
