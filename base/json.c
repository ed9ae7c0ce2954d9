#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

struct json {
	const char *name;
	yajl_handle parser;
	json_fn *on_event;
	void *user;
	struct error *error; /* of the call under way */
	char path[JSON_MAX_PATH];
	size_t path_len;
	size_t mark[JSON_MAX_DEPTH]; /* path length to return to after a value */
	bool in_array[JSON_MAX_DEPTH];
	int depth;
	size_t lines;	    /* line ends in earlier feeds */
	size_t last_line;   /* bytes after the last of them */
	size_t since_event; /* bytes fed since the last value: the size of the one that is open */
};

static bool path_append(struct json *j, const char *part, size_t len)
{
	if (j->path_len + len >= sizeof j->path)
		return error_set(j->error, ERROR_INVALID, "the keys on the way here are longer than %d bytes",
				 JSON_MAX_PATH - 1);
	memcpy(j->path + j->path_len, part, len);
	j->path_len += len;
	j->path[j->path_len] = '\0';
	return true;
}

static void path_cut(struct json *j, size_t len)
{
	j->path_len = len;
	j->path[len] = '\0';
}

static bool tell(struct json *j, struct json_event event)
{
	event.path = j->path;
	event.depth = j->depth;
	j->since_event = 0;
	return j->on_event(j->user, &event, j->error);
}

static void forget_key(struct json *j)
{
	path_cut(j, j->depth ? j->mark[j->depth - 1] : 0);
}

static bool scalar(struct json *j, enum json_type type, const char *text, size_t len)
{
	bool ok = tell(j, (struct json_event){ .type = type, .text = text, .len = len });

	forget_key(j);
	return ok;
}

static bool open_container(struct json *j, bool is_array)
{
	if (j->depth == JSON_MAX_DEPTH)
		return error_set(j->error, ERROR_INVALID, "nested deeper than %d", JSON_MAX_DEPTH);
	if (!tell(j, (struct json_event){ .type = JSON_OPEN, .is_array = is_array }))
		return false;
	if (is_array && !path_append(j, "[]", 2))
		return false;
	j->in_array[j->depth] = is_array;
	j->mark[j->depth++] = j->path_len;
	return true;
}

static bool close_container(struct json *j)
{
	j->depth--;
	if (j->in_array[j->depth])
		path_cut(j, j->mark[j->depth] - 2);
	bool ok = tell(j, (struct json_event){ .type = JSON_CLOSE, .is_array = j->in_array[j->depth] });
	forget_key(j);
	return ok;
}

static int on_null(void *j)
{
	return scalar(j, JSON_NULL, "null", 4);
}

static int on_bool(void *j, int v)
{
	return scalar(j, JSON_BOOL, v ? "true" : "false", v ? 4 : 5);
}

static int on_number(void *j, const char *s, size_t n)
{
	return scalar(j, JSON_NUMBER, s, n);
}

static int on_string(void *j, const unsigned char *s, size_t n)
{
	return scalar(j, JSON_STRING, (const char *)s, n);
}

static int on_open_map(void *j)
{
	return open_container(j, false);
}

static int on_open_array(void *j)
{
	return open_container(j, true);
}

static int on_close(void *j)
{
	return close_container(j);
}

static int on_key(void *user, const unsigned char *s, size_t n)
{
	struct json *j = user;

	j->since_event = 0;
	return (!j->path_len || path_append(j, ">", 1)) && path_append(j, (const char *)s, n);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_bool,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_open_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_close,
	.yajl_start_array = on_open_array,
	.yajl_end_array = on_close,
};

struct json *json_open(const char *name, json_fn *on_event, void *user)
{
	struct json *j = calloc(1, sizeof *j);

	if (!j)
		abort();
	j->name = name;
	j->on_event = on_event;
	j->user = user;
	j->parser = yajl_alloc(&callbacks, NULL, j);
	if (!j->parser)
		abort();
	yajl_config(j->parser, yajl_allow_multiple_values, 1);
	return j;
}

void json_close(struct json *j)
{
	if (!j)
		return;
	yajl_free(j->parser);
	free(j);
}

static void count_lines(struct json *j, const char *bytes, size_t len)
{
	const char *p = bytes, *end = bytes + len;

	for (const char *nl; (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1) {
		j->lines++;
		j->last_line = 0;
	}
	j->last_line += (size_t)(end - p);
}

static bool locate(const struct json *j, struct error *e)
{
	return error_wrap(e, "%s:%zu:%zu", j->name, j->lines + 1, j->last_line + 1);
}

static bool stop(struct json *j, struct error *e)
{
	if (e->kind == ERROR_NONE) {
		unsigned char *why = yajl_get_error(j->parser, 0, NULL, 0);
		size_t len = why ? strcspn((char *)why, "\n") : 0;
		error_set(e, ERROR_INVALID, "not JSON: %.*s", (int)len, why ? (char *)why : "");
		if (why)
			yajl_free_error(j->parser, why);
	}
	return locate(j, e);
}

bool json_feed(struct json *j, const char *bytes, size_t len, struct error *e)
{
	*e = (struct error){ 0 };
	j->error = e;
	j->since_event += len;
	if (yajl_parse(j->parser, (const unsigned char *)bytes, len) != yajl_status_ok) {
		size_t used = yajl_get_bytes_consumed(j->parser);
		count_lines(j, bytes, used < len ? used : len);
		return stop(j, e);
	}
	count_lines(j, bytes, len);
	if (j->since_event <= JSON_MAX_VALUE)
		return true;
	error_set(e, ERROR_INVALID, "a value is longer than %d bytes", JSON_MAX_VALUE);
	return locate(j, e);
}

bool json_finish(struct json *j, struct error *e)
{
	*e = (struct error){ 0 };
	j->error = e;
	bool is_whole = yajl_complete_parse(j->parser) == yajl_status_ok && !j->depth;
	if (e->kind != ERROR_NONE)
		return locate(j, e);
	if (is_whole)
		return true;
	error_set(e, ERROR_INVALID, "the JSON ends in the middle (truncated)");
	return locate(j, e);
}

bool json_read(struct gzip *source, json_fn *on_event, void *user, struct error *e)
{
	struct json *j = json_open(gzip_name(source), on_event, user);
	char bytes[16384];
	size_t got = 1;
	bool ok = true;

	while (ok && got) {
		ok = gzip_read(source, bytes, sizeof bytes, &got, e);
		if (ok && got)
			ok = json_feed(j, bytes, got, e);
	}
	ok = ok && json_finish(j, e);
	json_close(j);
	return ok;
}
