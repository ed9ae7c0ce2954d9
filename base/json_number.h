/*
 * One number out of a JSON document as it streams by. Where it stands says a
 * path: dotted keys ("queues[0].depth"; "queues[].depth" sums over all
 * items), or a JSON pointer, which begins with a slash ("/queues/0/depth").
 */
#pragma once
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { JSON_NUMBER_STEPS = 16, JSON_NUMBER_PATH = 300 };

struct json_number;
/* ERROR_INVALID when the path is none; it is copied. */
bool json_number_check(const char *path, struct error *e) MUST_USE;
struct json_number *json_number_open(const char *path); /* one that was checked */
void json_number_close(struct json_number *n);		/* takes NULL */
bool json_number_feed(struct json_number *n, const char *bytes, size_t len, struct error *e) MUST_USE;
/* After the last bytes: the number, or the sum, in whole units, at most 100 million. A number in quotes is one, null is
 * not; it must be there. */
bool json_number_finish(struct json_number *n, int64_t *out, struct error *e) MUST_USE;
