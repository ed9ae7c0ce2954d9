/* Any bytes as a recording: an error or a sorted trace. */
#include "controller/traces/import.h"

#include "tests/unit/text_file.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const values[] = { "auto", "counter", "rate", "increase" };
	struct text_file f = text_file(bytes, len);
	const char *path = f.path;
	struct import_options options = { "auto", values[len % 4] };
	struct import_report report;
	struct trace t;
	struct error e;

	if (trace_import(&path, 1, &options, &t, &report, &e)) {
		for (size_t i = 1; i < t.request_count; i++)
			if (t.requests[i - 1].arrival > t.requests[i].arrival)
				abort();
		trace_release(&t);
	}
	text_file_close(&f);
	return 0;
}
