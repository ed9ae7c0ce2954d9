#include "base/json_number.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

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

static bool on_event(void *user, const struct json_event *ev, struct error *e)
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
	struct json_number *n = calloc(1, sizeof *n);
	struct error e;

	if (!n || !parse(path, &n->path, &e))
		abort();
	memcpy(n->shown, path, strlen(path) + 1); /* shorter than the room: it was checked */
	n->json = json_open("answer", on_event, n);
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
