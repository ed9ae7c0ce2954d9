#include "base/yaml_write.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* A map or list that is open. */
struct frame {
	bool is_list;
	bool is_begun;	/* has a child */
	bool is_inline; /* its first child stands on the line that is open, after "- " or at the very start */
	int indent;
	size_t mark; /* length of the path to it */
};

struct writer {
	struct buf *out;
	struct frame frames[JSON_MAX_DEPTH + 1];
};

/* Words that some reader of YAML takes for a truth value or nothing. */
static bool is_reserved(const char *text, size_t len)
{
	static const char *const words[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == len && !strncasecmp(words[i], text, len))
			return true;
	return false;
}

/* Whether it means the same text without quotes, to any reader. */
static bool is_plain(const char *text, size_t len)
{
	if (!len || (!isalpha((unsigned char)*text) && !strchr("_/", *text)) || is_reserved(text, len))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_last = i + 1 == len;

		if (!c || c >= 0x80 || !(isalnum(c) || strchr("_-/.,;()%$+=@' :", c)))
			return false;
		if ((c == ' ' && is_last) || (c == ':' && (is_last || text[i + 1] == ' ')))
			return false;
	}
	return true;
}

static void put_text(const char *text, size_t len, struct buf *out)
{
	CLEANUP(buf_release) struct buf whole = { 0 };

	if (is_plain(text, len)) {
		buf_append(out, text, len);
		return;
	}
	buf_append(&whole, text, len);
	json_write_text(whole.text ? whole.text : "", out);
}

/* Up to where a value is written: the line, "- " or the key. */
static void put_place(struct writer *w, struct frame *parent, const struct json_event *event)
{
	const char *key = event->path + parent->mark + (parent->mark > 0);

	if (parent->is_begun || !parent->is_inline)
		buf_printf(w->out, "\n%*s", parent->indent, "");
	parent->is_begun = true;
	if (parent->is_list) {
		buf_text(w->out, "-");
		return;
	}
	put_text(key, strlen(key), w->out);
	buf_text(w->out, ":");
}

static void open_frame(struct writer *w, const struct json_event *event)
{
	struct frame *f = &w->frames[event->depth];

	*f = (struct frame){ .is_list = event->is_array,
			     .is_inline = true,
			     .mark = strlen(event->path) + (event->is_array ? 2 : 0) };
	if (!event->depth)
		return;
	const struct frame *parent = f - 1;
	f->is_inline = parent->is_list;
	f->indent = parent->indent + (parent->is_list || !f->is_list ? 2 : 0);
}

static void put_value(struct writer *w, const struct json_event *event)
{
	buf_text(w->out, event->depth ? " " : "");
	if (event->type == JSON_STRING)
		put_text(event->text, event->len, w->out);
	else
		buf_append(w->out, event->text, event->len);
}

static bool on_event(void *user, const struct json_event *event, struct error *e)
{
	struct writer *w = user;

	(void)e;
	if (event->type == JSON_CLOSE) {
		struct frame *f = &w->frames[event->depth];
		if (!f->is_begun)
			buf_printf(w->out, "%s%s", event->depth && !f->is_inline ? " " : "", f->is_list ? "[]" : "{}");
		return true;
	}
	if (event->depth)
		put_place(w, &w->frames[event->depth - 1], event);
	if (event->type != JSON_OPEN) {
		put_value(w, event);
		return true;
	}
	open_frame(w, event);
	if (event->depth && w->frames[event->depth - 1].is_list)
		buf_text(w->out, " ");
	return true;
}

bool yaml_write_json(const char *json, size_t len, struct buf *out, struct error *e)
{
	struct writer w = { .out = out };
	struct json *j = json_open("answer", on_event, &w);
	bool ok = json_feed(j, json, len, e) && json_finish(j, e);

	json_close(j);
	buf_text(out, "\n");
	return ok;
}
