#include "base/decode_parts.h"

#include "base/buf.h"
#include "base/quote.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A step of the records' path: a member's key, or any item of a list. */
struct segment {
	const char *key;
	size_t len;
	bool is_item;
};

enum stage {
	AT_VALUE,
	AT_FIRST_KEY, /* or the end of the object */
	AT_KEY,
	IN_KEY,
	AT_COLON,
	AT_FIRST_ITEM, /* or the end of the list */
	AFTER_VALUE,
	IN_CONTAINER,
	IN_TEXT,
	IN_BARE,
};

enum purpose { SKIPPED, RECORD, MEMBER };

/*
 * Only the containers on the way to the records are taken apart here: the
 * n-th open one is where segment n applies. Every other value is found the
 * end of, and what is wanted is then decoded in one piece.
 */
struct decoder {
	struct decoder_setup setup;
	size_t cap;
	struct segment segments[DECODE_OUTER_LEVELS];
	int segment_count;
	int open; /* containers on the way */
	enum stage stage;
	bool is_on_path; /* the value that follows */
	size_t documents;
	size_t offset; /* of the chunk in the stream */

	struct buf key;
	struct scan scan;
	enum purpose purpose;
	struct buf held;  /* of a value that began in an earlier chunk */
	const char *from; /* where the value begins in this chunk */

	struct arena arena, document_arena;
	unsigned char *record;
	bool has_failed;
};

static void cut_path(struct decoder *d, const char *path)
{
	while (*path) {
		size_t len = strcspn(path, ">");
		bool is_list = len >= 2 && !memcmp(path + len - 2, "[]", 2);
		assert(d->segment_count + 1 + is_list <= DECODE_OUTER_LEVELS);
		if (len - 2 * is_list)
			d->segments[d->segment_count++] = (struct segment){ .key = path, .len = len - 2 * is_list };
		if (is_list)
			d->segments[d->segment_count++] = (struct segment){ .is_item = true };
		path += len + (path[len] == '>');
	}
}

struct decoder *decoder_open(const struct decoder_setup *s)
{
	struct arena a = { 0 };
	struct decoder *d = calloc(1, sizeof *d);

	if (!d)
		abort();
	d->setup = *s;
	d->cap = s->record_cap ? s->record_cap : DECODE_RECORD_CAP;
	d->held.cap = d->cap + 1;
	d->key.cap = 4096;
	d->is_on_path = true;
	d->arena = a;
	d->record = calloc(1, s->records->spec->size ? s->records->spec->size : 1);
	if (!d->record)
		abort();
	if (s->document)
		memset(s->document_record, 0, s->document->spec->size);
	cut_path(d, s->records->spec->path);
	return d;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	buf_release(&d->key);
	buf_release(&d->held);
	arena_release(&d->arena);
	arena_release(&d->document_arena);
	free(d->record);
	free(d);
}

static bool failed(struct decoder *d, const char *at, const char *start, struct error *e)
{
	size_t offset = d->offset + (size_t)(at - start);

	d->has_failed = true;
	return error_wrap(e, "%s: byte %zu", d->setup.name, offset);
}

static bool unexpected(const char *p, const char *allowed, struct error *e)
{
	char room[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "found %s; allowed: %s", quote(room, p, 1), allowed);
}

/* A whole value, in the chunk or held from several. */
static bool use_value(struct decoder *d, const char *text, size_t len, struct error *e)
{
	bool ok = true;

	if (len > d->cap)
		return error_set(e, ERROR_INVALID, "a record of more than %zu bytes", d->cap);
	if (d->purpose == MEMBER)
		return decode_member(d->setup.document, (struct decoded_text){ d->key.text, d->key.len },
				     (struct decoded_text){ text, len }, &d->document_arena, d->setup.document_record,
				     e);
	if (d->purpose == RECORD) {
		ok = decode_record(d->setup.records, text, len, &d->arena, d->record, e) &&
		     d->setup.emit(d->setup.user, d->record, e);
		arena_clear(&d->arena);
	}
	return ok;
}

static void value_is_over(struct decoder *d)
{
	if (d->held.room > 256 * 1024)
		buf_release(&d->held);
	else
		buf_clear(&d->held);
	d->documents += !d->open;
	d->stage = d->open ? AFTER_VALUE : AT_VALUE;
	d->is_on_path = !d->open;
}

static bool end_value(struct decoder *d, const char *end, struct error *e)
{
	const char *text = d->from;
	size_t len = (size_t)(end - d->from);

	if (d->held.len && d->purpose != SKIPPED) {
		buf_append(&d->held, text, len);
		text = d->held.text;
		len = d->held.len;
		if (!buf_ok(&d->held))
			return error_set(e, ERROR_INVALID, "a record of more than %zu bytes", d->cap);
	}
	if (!use_value(d, text, len, e))
		return false;
	value_is_over(d);
	return true;
}

static bool begin_value(struct decoder *d, const char **p, struct error *e)
{
	const struct segment *next = d->is_on_path && d->open < d->segment_count ? &d->segments[d->open] : NULL;
	char c = **p;

	if (next && c == (next->is_item ? '[' : '{')) {
		d->open++;
		d->stage = next->is_item ? AT_FIRST_ITEM : AT_FIRST_KEY;
		++*p;
		return true;
	}
	if (next && c != 'n')
		return unexpected(*p, next->is_item ? "a list" : "an object", e);
	if (!c || !strchr("{[\"-0123456789tfn", c))
		return unexpected(*p, "a value", e);
	if (d->is_on_path)
		d->purpose = next ? SKIPPED : RECORD;
	d->from = *p;
	d->scan = (struct scan){ 0 };
	d->stage = c == '{' || c == '[' ? IN_CONTAINER : c == '"' ? IN_TEXT : IN_BARE;
	*p += c == '"';
	return true;
}

static bool close_outer(struct decoder *d, const char **p)
{
	const struct segment *s = &d->segments[d->open - 1];

	if (**p != (s->is_item ? ']' : '}'))
		return false;
	++*p;
	d->open--;
	value_is_over(d);
	return true;
}

static bool after_value(struct decoder *d, const char **p, struct error *e)
{
	bool is_list = d->segments[d->open - 1].is_item;

	if (close_outer(d, p))
		return true;
	if (**p != ',')
		return unexpected(*p, is_list ? "',' or ']'" : "',' or '}'", e);
	++*p;
	d->stage = is_list ? AT_VALUE : AT_KEY;
	d->is_on_path = is_list;
	return true;
}

static bool begin_key(struct decoder *d, const char **p, struct error *e)
{
	if (d->stage == AT_FIRST_KEY && close_outer(d, p))
		return true;
	if (**p != '"')
		return unexpected(*p, "a key in quotes", e);
	++*p;
	buf_clear(&d->key);
	d->scan = (struct scan){ 0 };
	d->stage = IN_KEY;
	return true;
}

static bool read_key(struct decoder *d, const char **p, const char *end, struct error *e)
{
	const char *from = *p;
	bool is_whole = scan_string(&d->scan, p, end);

	buf_append(&d->key, from, (size_t)(*p - from) - is_whole);
	if (!buf_ok(&d->key))
		return error_set(e, ERROR_INVALID, "a key of more than %zu bytes", d->key.cap);
	if (is_whole)
		d->stage = AT_COLON;
	return true;
}

/* Behind the colon: what is this member for? */
static void choose_purpose(struct decoder *d)
{
	const struct segment *s = &d->segments[d->open - 1];

	d->is_on_path = d->key.len == s->len && !memcmp(d->key.text, s->key, s->len);
	d->purpose = SKIPPED;
	if (!d->is_on_path && d->open == 1 && d->setup.document &&
	    decode_child(&d->setup.document->root, d->key.text, d->key.len))
		d->purpose = MEMBER;
	d->stage = AT_VALUE;
}

static bool scan_value(struct decoder *d, const char **p, const char *end, struct error *e)
{
	bool is_over = false;

	if (d->stage == IN_CONTAINER) {
		enum scan_result result = scan_container(&d->scan, p, end);
		if (result == SCAN_UNBALANCED || result == SCAN_TOO_DEEP)
			return error_set(e, ERROR_INVALID,
					 result == SCAN_TOO_DEEP ? "more than %d levels" : "brackets that do not match",
					 DECODE_DEPTH);
		is_over = result == SCAN_DONE;
	} else if (d->stage == IN_TEXT) {
		is_over = scan_string(&d->scan, p, end);
	} else {
		while (*p < end && !strchr(",]} \t\r\n:{[\"", **p))
			++*p;
		is_over = *p < end;
	}
	return !is_over || end_value(d, *p, e);
}

static bool step(struct decoder *d, const char **p, const char *end, struct error *e)
{
	switch (d->stage) {
	case IN_KEY:
		return read_key(d, p, end, e);
	case IN_CONTAINER:
	case IN_TEXT:
	case IN_BARE:
		return scan_value(d, p, end, e);
	default:
		break;
	}
	if (**p == ' ' || **p == '\n' || **p == '\t' || **p == '\r') {
		++*p;
		return true;
	}
	switch (d->stage) {
	case AT_FIRST_ITEM:
		if (close_outer(d, p))
			return true;
		d->is_on_path = true;
		return begin_value(d, p, e);
	case AT_VALUE:
		return begin_value(d, p, e);
	case AT_FIRST_KEY:
	case AT_KEY:
		return begin_key(d, p, e);
	case AT_COLON:
		if (**p != ':')
			return unexpected(*p, "':'", e);
		++*p;
		choose_purpose(d);
		return true;
	default:
		return after_value(d, p, e);
	}
}

bool decoder_feed(struct decoder *d, const char *bytes, size_t len, struct error *e)
{
	const char *p = bytes, *end = bytes + len;

	assert(!d->has_failed);
	d->from = bytes;
	while (p < end)
		if (!step(d, &p, end, e))
			return failed(d, p, bytes, e);
	if (d->stage >= IN_CONTAINER && d->purpose != SKIPPED) {
		buf_append(&d->held, d->from, (size_t)(end - d->from));
		if (!buf_ok(&d->held)) {
			error_set(e, ERROR_INVALID, "a record of more than %zu bytes", d->cap);
			return failed(d, end, bytes, e);
		}
	}
	d->offset += len;
	return true;
}

bool decoder_finish(struct decoder *d, struct error *e)
{
	static const char nothing[] = "";

	d->from = nothing;
	if (d->stage == IN_BARE && !d->open && !end_value(d, nothing, e))
		return failed(d, nothing, nothing, e);
	if (d->stage == AT_VALUE && !d->open && (d->documents || !d->segment_count))
		return true;
	error_set(e, ERROR_INVALID, d->documents || d->offset ? "it ends in the middle" : "it is empty");
	return failed(d, nothing, nothing, e);
}
