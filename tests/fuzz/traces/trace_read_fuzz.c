/* Any bytes as a trace: an error or a trace that holds what it promises. */
#include "controller/traces/trace.h"

#include "tests/unit/text_file.h"

#include <stdint.h>
#include <stdlib.h>

static void check(const struct trace *t)
{
	for (size_t i = 1; i < t->request_count; i++)
		if (t->requests[i - 1].arrival > t->requests[i].arrival)
			abort();
	for (size_t i = 0; i < t->bin_count; i++)
		if (t->bins[i].at % t->bin_width != t->bins[0].at % t->bin_width || t->bins[i].requests < 0)
			abort();
	if (!t->request_count && !t->bin_count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct text_file f = text_file(bytes, len);
	struct trace t, scaled;
	struct error e;

	if (trace_read(f.path, &t, &e)) {
		check(&t);
		bool is_small = t.length < HOUR && (!t.is_binned || t.bin_width >= 10 * SECOND);
		if (is_small && trace_scale(&t, (struct trace_scaling){ 7.5, true, 0, len }, &scaled, &e))
			trace_release(&scaled);
		trace_release(&t);
	}
	text_file_close(&f);
	return 0;
}
