/*
 * Records whose members are all int64_t, listed in one table each
 * (*.def). The table makes the struct, and names, unit and meaning of every
 * member, so that recording, comparing and explaining need no code per field.
 *
 *     MEMBER(name, unit, "what it says")
 *
 * Units: "count", "milli" (thousandths of the thing the text names),
 * "ppm", "ms", "us", "time" (ms since the epoch), "micro$", "enum:NAME".
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* A value that was not told. Absent is not zero. */
#define ABSENT INT64_MIN

struct field_info {
	const char *name, *unit, *help;
};

struct record_info {
	const char *name;
	size_t count;
	const struct field_info *fields;
};

/* Names of an "enum:NAME" value, e.g. ("limit", 3) -> "stock-out"; NULL when there is none. */
const char *field_enum_name(const char *enum_name, int64_t value);
