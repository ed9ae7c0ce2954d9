/*
 * JSON as it streams by: every value with the path to it, nothing kept.
 * Several documents may follow each other (JSON Lines). Depth, path and the
 * size of one value are capped, so that no input costs more than the cap.
 */
#pragma once
#include "base/error.h"
#include "base/gzip.h"

#include <stddef.h>

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
