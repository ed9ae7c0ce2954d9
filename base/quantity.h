/*
 * Numbers as people write them, in exact integers: "0.48", "2s", "1h30m",
 * "99.9%", "25k". The parsers take a text of the given length that need not
 * end in NUL; they return false and leave the output untouched when the
 * text is not wholly of the form, is negative, is finer than the unit kept,
 * or does not fit.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits, a minus before them or none. */
bool whole_parse(const char *text, size_t len, int64_t *out) MUST_USE;
/* "12", "0.48" times 10^digits, digits <= 9: fixed_parse("0.48", 4, 6, &v) gives 480000. */
bool fixed_parse(const char *text, size_t len, int digits, int64_t *out) MUST_USE;
/* Units us, ms, s, m, h, d, w, each at most once, largest first; a fraction of up to six digits. */
bool duration_parse(const char *text, size_t len, millis *out) MUST_USE;
bool duration_parse_us(const char *text, size_t len, int64_t *microseconds) MUST_USE;
/* "99.9%" in parts per million: 999000. */
bool share_parse(const char *text, size_t len, int64_t *ppm) MUST_USE;
/* A whole number after the suffix: k M G T (powers of 1000), Ki Mi Gi Ti (powers of 1024). "1.5k" gives 1500. */
bool quantity_parse(const char *text, size_t len, int64_t *out) MUST_USE;

/* The shortest text that the parser reads back as the same value, for value >= 0. */
void fixed_format(int64_t value, int digits, struct buf *out);
void duration_format_us(int64_t microseconds, struct buf *out);
void duration_format(millis value, struct buf *out);
void share_format(int64_t ppm, struct buf *out);

/*
 * Decimal text to whole numbers without floats: "12.3456" with 3 places is
 * 12346 (halves away from 0). Also ISO 8601 times.
 */

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
/* The same in whole milliseconds. */
bool time_parse(const char *text, size_t len, millis *out) MUST_USE;
/* The part of ISO 8601 that leaves nothing open, RFC 3339: dashes, a point before the fraction, always a zone. */
bool time_parse_exact(const char *text, millis *out) MUST_USE;
