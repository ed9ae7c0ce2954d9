/* Any bytes as a number: refused, or a value that prints and reads back as itself. */
#include "base/quantity.h"

#include "base/arena.h"
#include "base/schedule.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(buf_release) struct buf copy = { 0 };
	const char *in = (const char *)bytes;
	int64_t value, again;

	if (duration_parse_us(in, len, &value)) {
		duration_format_us(value, &text);
		if (value < 0 || !duration_parse_us(text.text, text.len, &again) || again != value)
			abort();
	}
	buf_clear(&text);
	if (share_parse(in, len, &value)) {
		share_format(value, &text);
		if (value < 0 || !share_parse(text.text, text.len, &again) || again != value)
			abort();
	}
	buf_clear(&text);
	if (fixed_parse(in, len, 6, &value)) {
		fixed_format(value, 6, &text);
		if (value < 0 || !fixed_parse(text.text, text.len, 6, &again) || again != value)
			abort();
	}
	if (quantity_parse(in, len, &value) && value < 0)
		abort();
	buf_append(&copy, bytes, len);
	if (weekdays_parse(copy.text, true, &value) && (value < 1 || value > 0x7f))
		abort();
	return 0;
}
