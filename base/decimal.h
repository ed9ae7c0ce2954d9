/*
 * Decimal text to whole numbers without floats: "12.3456" with 3 places is
 * 12346 (halves away from 0). Also ISO 8601 times.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum decimal_result {
	DECIMAL_OK,
	DECIMAL_MALFORMED, /* not a plain decimal number: empty, letters, NaN, a sign other than a leading '-' */
	DECIMAL_NEGATIVE,  /* a well-formed number below 0 */
	DECIMAL_FRACTION,  /* digits other than 0 after the point where places = 0 */
	DECIMAL_HUGE,	   /* beyond 10^17 units */
};

/* Reads all of text[0..len): digits, a fraction, an exponent. `places` 0 to 9. *out only on DECIMAL_OK. */
enum decimal_result decimal_parse(const char *text, size_t len, int places, int64_t *out);

/* "2023-11-16 18:15:46.6805900", "2024-05-10T00:00:00+02:00", "...Z" to microseconds since 1970 UTC;
 * no zone means UTC. False when it is no such time. */
bool decimal_parse_time(const char *text, size_t len, int64_t *micros);
