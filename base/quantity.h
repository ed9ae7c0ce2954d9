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
