/*
 * JSON as it streams by: every value with the path to it, nothing kept.
 * Several documents may follow each other (JSON Lines). Depth, path and the
 * size of one value are capped, so that no input costs more than the cap.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/gzip.h"
#include "base/millis.h"

#include <stddef.h>
#include <stdint.h>

enum { JSON_MAX_DEPTH = 32, JSON_MAX_PATH = 512, JSON_MAX_VALUE = 16 * 1024 * 1024 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_OPEN, JSON_CLOSE };

struct json_event {
	enum json_type type;
	bool is_array;	  /* of JSON_OPEN and JSON_CLOSE */
	int depth;	  /* open containers around the value; 0: the document itself */
	const char *path; /* keys joined by '>' (label keys hold '.' and '/'), "[]" for items: "data>result[]>metric" */
	const char *text; /* "true", "12.5", the string's bytes; not NUL-terminated */
	size_t len;
};

/* False, with the error set, ends the walk. */
typedef bool json_fn(void *user, const struct json_event *event, struct error *e);

struct json;

/* `name` is the file's, for messages; borrowed. */
struct json *json_open(const char *name, json_fn *on_event, void *user);
void json_close(struct json *j); /* takes NULL */
/* The next bytes, cut anywhere. Errors start with "NAME:LINE:COLUMN: "; nothing may be fed after one. */
bool json_feed(struct json *j, const char *bytes, size_t len, struct error *e) MUST_USE;
/* After the last bytes: an open document is an error. */
bool json_finish(struct json *j, struct error *e) MUST_USE;
/* All of a stream. */
bool json_read(struct gzip *source, json_fn *on_event, void *user, struct error *e) MUST_USE;

/* Pieces of JSON text into a buffer. */

/* A text in quotes, escaped. What is no UTF-8, as where a text was cut, becomes U+FFFD. */
void json_write_text(const char *text, struct buf *out);
void json_write_bytes(const char *text, size_t size, struct buf *out);
/* "2026-01-02T15:04:05Z", with milliseconds where there are some; null before 1970 and after the year 9999. */
void json_write_time(millis at, struct buf *out);
/* A comma unless the text so far ends where a value may follow: after an opening bracket, a comma or a colon. */
void json_write_comma(struct buf *out);

/*
 * One number out of a JSON document as it streams by. Where it stands says a
 * path: dotted keys ("queues[0].depth"; "queues[].depth" sums over all
 * items), or a JSON pointer, which begins with a slash ("/queues/0/depth").
 */

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
