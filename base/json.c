#include "base/json.h"

#include "base/alloc.h"
#include "base/quantity.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
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

static int on_close(void *user)
{
	struct json *j = user;

	j->depth--;
	if (j->in_array[j->depth])
		path_cut(j, j->mark[j->depth] - 2);
	bool ok = tell(j, (struct json_event){ .type = JSON_CLOSE, .is_array = j->in_array[j->depth] });
	forget_key(j);
	return ok;
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
	struct json *j = xcalloc(1, sizeof *j);

	j->name = name;
	j->on_event = on_event;
	j->user = user;
	j->parser = xmust(yajl_alloc(&callbacks, NULL, j));
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

/* What stopped it, with its place; what yajl says where nobody else set an error. */
static bool stop(struct json *j, struct error *e)
{
	if (e->kind == ERROR_NONE) {
		unsigned char *why = yajl_get_error(j->parser, 0, NULL, 0);
		size_t len = why ? strcspn((char *)why, "\n") : 0;
		error_set(e, ERROR_INVALID, "not JSON: %.*s", (int)len, why ? (char *)why : "");
		if (why)
			yajl_free_error(j->parser, why);
	}
	return error_wrap(e, "%s:%zu:%zu", j->name, j->lines + 1, j->last_line + 1);
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
	return stop(j, e);
}

bool json_finish(struct json *j, struct error *e)
{
	*e = (struct error){ 0 };
	j->error = e;
	bool is_whole = yajl_complete_parse(j->parser) == yajl_status_ok && !j->depth;
	if (is_whole)
		return true;
	if (e->kind == ERROR_NONE)
		error_set(e, ERROR_INVALID, "the JSON ends in the middle (truncated)");
	return stop(j, e);
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

static void write_ascii(unsigned char c, struct buf *out)
{
	if (c == '"' || c == '\\')
		buf_printf(out, "\\%c", c);
	else if (c == '\n')
		buf_text(out, "\\n");
	else if (c < 0x20 || c == 0x7f)
		buf_printf(out, "\\u%04x", c);
	else
		buf_append(out, &c, 1);
}

void json_write_text(const char *text, struct buf *out)
{
	json_write_bytes(text, strlen(text), out);
}

void json_write_bytes(const char *text, size_t size, struct buf *out)
{
	const char *end = text + size;

	buf_text(out, "\"");
	while (text < end) {
		size_t len = utf8_length(text, end);

		if (len == 1)
			write_ascii((unsigned char)*text, out);
		else if (len)
			buf_append(out, text, len);
		else
			buf_text(out, "\\ufffd");
		text += len ? len : 1;
	}
	buf_text(out, "\"");
}

void json_write_time(millis at, struct buf *out)
{
	static const millis EARLIEST = 1, LATEST = INT64_C(253402300799999); /* the year 9999 */
	char text[40];
	struct tm tm;
	time_t seconds = (time_t)(at / SECOND);

	if (at < EARLIEST || at > LATEST || !gmtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm)) {
		buf_text(out, "null");
		return;
	}
	buf_printf(out, "\"%s", text);
	if (at % SECOND)
		buf_printf(out, ".%03d", (int)(at % SECOND));
	buf_text(out, "Z\"");
}

void json_write_comma(struct buf *out)
{
	size_t end = out->len;

	while (end && strchr(" \n\t", out->text[end - 1]))
		end--;
	if (end && !strchr("{[,:", out->text[end - 1]))
		buf_text(out, ",");
}

static const int64_t MOST = INT64_C(100000000000); /* thousandths */

enum step_kind { STEP_KEY, STEP_ITEM, STEP_ALL, STEP_EITHER };

struct step {
	enum step_kind kind;
	char key[JSON_NUMBER_PATH];
	int64_t item; /* of STEP_ITEM, STEP_EITHER: a pointer does not tell a key "0" from the first item */
};

struct path {
	struct step steps[JSON_NUMBER_STEPS];
	int count;
};

struct json_number {
	struct path path;
	struct json *json;
	bool in_array[JSON_MAX_DEPTH + 1];
	int64_t items[JSON_MAX_DEPTH + 1]; /* begun so far of the array at this depth */
	bool on_way[JSON_MAX_DEPTH + 1];   /* the container at this depth is on the way */
	int64_t sum;
	bool is_found;
	char shown[JSON_NUMBER_PATH];
};

static bool take_item(const char *text, size_t len, int64_t *item)
{
	*item = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || i > 8)
			return false;
		*item = *item * 10 + (text[i] - '0');
	}
	return len > 0;
}

static struct step *add(struct path *p, enum step_kind kind, struct error *e)
{
	if (p->count == JSON_NUMBER_STEPS) {
		error_set(e, ERROR_INVALID, "a path of more than %d steps", JSON_NUMBER_STEPS);
		return NULL;
	}
	p->steps[p->count] = (struct step){ .kind = kind };
	return &p->steps[p->count++];
}

/* "~1" is a slash, "~0" a tilde. */
static bool unescape(const char *from, size_t len, char *to)
{
	for (size_t i = 0; i < len; i++) {
		bool is_escape = from[i] == '~';
		if (is_escape && (i + 1 == len || (from[i + 1] != '0' && from[i + 1] != '1')))
			return false;
		*to++ = is_escape ? from[i + 1] == '1' ? '/' : '~' : from[i];
		i += is_escape;
	}
	return true;
}

static bool parse_pointer(const char *text, struct path *p, struct error *e)
{
	while (*text == '/') {
		size_t len = strcspn(++text, "/");
		int64_t item;
		bool is_item = take_item(text, len, &item);
		struct step *s = add(p, is_item ? STEP_EITHER : STEP_KEY, e);
		if (!s)
			return false;
		if (!unescape(text, len, s->key))
			return error_set(e, ERROR_INVALID, "~ in a JSON pointer is written ~0");
		s->item = is_item ? item : 0;
		text += len;
	}
	return true;
}

static bool parse_brackets(const char **text, struct path *p, struct error *e)
{
	while (**text == '[') {
		size_t len = strcspn(++*text, "]");
		struct step *s = add(p, len ? STEP_ITEM : STEP_ALL, e);
		if (!s)
			return false;
		if ((*text)[len] != ']' || (len && !take_item(*text, len, &s->item)))
			return error_set(e, ERROR_INVALID, "brackets hold a number from 0, or nothing for all items");
		*text += len + 1;
	}
	return true;
}

static bool parse_dotted(const char *text, struct path *p, struct error *e)
{
	bool is_first = true;

	while (*text) {
		if (!is_first && *text++ != '.')
			return error_set(e, ERROR_INVALID, "after ] comes a dot");
		size_t len = strcspn(text, ".[");
		if (!len && !(is_first && *text == '['))
			return error_set(e, ERROR_INVALID, "an empty key");
		struct step *s = len ? add(p, STEP_KEY, e) : NULL;
		if (len && !s)
			return false;
		if (s)
			memcpy(s->key, text, len);
		text += len;
		if (!parse_brackets(&text, p, e))
			return false;
		is_first = false;
	}
	return true;
}

static bool parse(const char *text, struct path *p, struct error *e)
{
	*p = (struct path){ 0 };
	if (!*text || strlen(text) >= JSON_NUMBER_PATH)
		return error_set(e, ERROR_INVALID, "a path of 1 to %d bytes is allowed", JSON_NUMBER_PATH - 1);
	return *text == '/' ? parse_pointer(text, p, e) : parse_dotted(text, p, e);
}

bool json_number_check(const char *path, struct error *e)
{
	struct path p;

	return parse(path, &p, e);
}

static const char *last_key(const char *path)
{
	const char *last = path;

	/* A key may itself hold '>', which no path that is asked for need have. */
	for (const char *c = path; *c; c++)
		if (*c == '>')
			last = c + 1;
	return last;
}

/* Whether the step that leads into a value at this depth is the one asked for. */
static bool leads_here(const struct json_number *n, const struct json_event *ev)
{
	int depth = ev->depth;
	const struct step *s;

	if (depth == 0)
		return true;
	if (depth > n->path.count || !n->on_way[depth - 1])
		return false;
	s = &n->path.steps[depth - 1];
	if (n->in_array[depth - 1])
		return s->kind == STEP_ALL || (s->kind != STEP_KEY && n->items[depth - 1] - 1 == s->item);
	return (s->kind == STEP_KEY || s->kind == STEP_EITHER) && !strcmp(last_key(ev->path), s->key);
}

static bool take(struct json_number *n, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];
	int64_t value = 0;
	bool is_number = (ev->type == JSON_NUMBER || ev->type == JSON_STRING) &&
			 decimal_parse(ev->text, ev->len, 3, &value) == DECIMAL_OK && value <= MOST;

	if (!is_number)
		return error_set(e, ERROR_INVALID, "%s: found %s; allowed: a number from 0 to 100 million", n->shown,
				 ev->type == JSON_OPEN ? ev->is_array ? "a list" : "an object"
						       : quote(room, ev->text, ev->len));
	n->sum += value;
	if (n->sum > MOST)
		return error_set(e, ERROR_INVALID, "%s: the sum is more than can be", n->shown);
	n->is_found = true;
	return true;
}

static bool on_number_event(void *user, const struct json_event *ev, struct error *e)
{
	struct json_number *n = user;

	if (ev->type == JSON_CLOSE)
		return true;
	if (ev->depth && n->in_array[ev->depth - 1])
		n->items[ev->depth - 1]++;
	bool is_on_way = leads_here(n, ev);
	if (is_on_way && ev->depth == n->path.count)
		return take(n, ev, e);
	if (ev->type != JSON_OPEN)
		return true;
	n->on_way[ev->depth] = is_on_way;
	n->in_array[ev->depth] = ev->is_array;
	n->items[ev->depth] = 0;
	return true;
}

struct json_number *json_number_open(const char *path)
{
	struct json_number *n = xnew(struct json_number);
	struct error e;

	if (!parse(path, &n->path, &e))
		abort();
	memcpy(n->shown, path, strlen(path) + 1); /* shorter than the room: it was checked */
	n->json = json_open("answer", on_number_event, n);
	return n;
}

void json_number_close(struct json_number *n)
{
	if (!n)
		return;
	json_close(n->json);
	free(n);
}

bool json_number_feed(struct json_number *n, const char *bytes, size_t len, struct error *e)
{
	return json_feed(n->json, bytes, len, e);
}

bool json_number_finish(struct json_number *n, int64_t *out, struct error *e)
{
	if (!json_finish(n->json, e))
		return false;
	if (!n->is_found)
		return error_set(e, ERROR_NOT_FOUND, "%s is not in the answer", n->shown);
	*out = (n->sum + 500) / 1000;
	return true;
}
