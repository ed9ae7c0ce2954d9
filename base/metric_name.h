/* The name of a metric as a person writes it: NAME, or NAME{label="value"} for the series with that label alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { METRIC_NAME_LONGEST = 300 };

/* Places in the text; label_len 0: none. */
struct metric_name {
	size_t name_len;
	const char *label, *value;
	size_t label_len, value_len;
};

/* Letters, digits, _ and : in names; in a value also - . / and spaces. False, with nothing in *out, for anything else.
 */
bool metric_name_parse(const char *text, struct metric_name *out);
