#include "controller/traces/scale.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void copy_labels(const struct trace *in, struct trace *out)
{
	if (!in->label_count)
		return;
	out->labels = must(calloc(in->label_count, sizeof *out->labels));
	for (size_t i = 0; i < in->label_count; i++)
		out->labels[i] = must(strdup(in->labels[i]));
	out->label_count = in->label_count;
}

bool trace_scale(const struct trace *in, struct trace_scaling how, struct trace *out, struct error *e)
{
	struct trace t = { .is_binned = in->is_binned, .bin_width = in->bin_width };

	if (!(how.k > 0 && how.k <= TRACE_MAX_SCALE) || how.sigma < 0)
		return error_set(e, ERROR_INVALID, "a trace cannot be scaled by %g; allowed: above 0, up to %d", how.k,
				 TRACE_MAX_SCALE);
	how.jitter = how.jitter && how.k > SCALE_PLAIN_UP_TO;
	if (!how.sigma)
		how.sigma = in->length <= 2 * HOUR ? 60 * SECOND : 300 * SECOND;
	if (how.sigma > in->length)
		how.sigma = in->length;
	if (!(in->is_binned ? scale_bins(in, &how, &t, e) : scale_requests(in, &how, &t, e))) {
		trace_release(&t);
		return false;
	}
	copy_labels(in, &t);
	t.length = in->length;
	*out = t;
	return true;
}
