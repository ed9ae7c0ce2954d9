#include "base/protobuf.h"

#include "base/json.h"
#include "base/millis.h"

#include <assert.h>
#include <inttypes.h>
#include <pb_decode.h>
#include <string.h>

enum { LONGEST_HEAD = 20 }; /* two varints of ten bytes */

static pb_istream_t stream_of(const char *bytes, size_t len)
{
	return pb_istream_from_buffer((const pb_byte_t *)bytes, len);
}

/* What is left of a stream over a buffer. */
static const char *bytes_at(const pb_istream_t *s)
{
	return s->state;
}

static size_t length_of_fixed(pb_wire_type_t type)
{
	return type == PB_WT_64BIT ? 8 : 4;
}

enum protobuf_cut protobuf_part_at(const char *bytes, size_t len, struct protobuf_part *out)
{
	pb_istream_t s = stream_of(bytes, len);
	enum protobuf_cut short_of = len < LONGEST_HEAD ? PROTOBUF_MORE : PROTOBUF_BROKEN;
	pb_wire_type_t type;
	uint64_t value = 0;
	bool is_end = false;

	if (!len)
		return PROTOBUF_MORE;
	if (!pb_decode_tag(&s, &type, &out->number, &is_end))
		return is_end || s.bytes_left ? PROTOBUF_BROKEN : short_of;
	out->has_bytes = type == PB_WT_STRING;
	if (!out->number ||
	    (type != PB_WT_STRING && type != PB_WT_VARINT && type != PB_WT_64BIT && type != PB_WT_32BIT))
		return PROTOBUF_BROKEN;
	bool is_whole = type == PB_WT_STRING || type == PB_WT_VARINT ? pb_decode_varint(&s, &value)
								     : pb_read(&s, NULL, length_of_fixed(type));
	if (!is_whole)
		return s.bytes_left ? PROTOBUF_BROKEN : short_of;
	if (out->has_bytes && value > SIZE_MAX / 4)
		return PROTOBUF_BROKEN;
	out->head = len - s.bytes_left;
	out->size = out->has_bytes ? (size_t)value : 0;
	return PROTOBUF_PART;
}

/* A walk over the fields of a message that is all there. */
struct walk {
	const char *name;
	pb_istream_t stream;
	pb_wire_type_t type;
	uint32_t number;
};

static bool broken(const struct walk *w, const char *what, struct error *e)
{
	return error_set(e, ERROR_INVALID, "%s: field %u: %s", w->name, (unsigned)w->number, what);
}

/* False at the end, and at an error. */
static bool next_field(struct walk *w, struct error *e)
{
	bool is_end = false;

	if (!w->stream.bytes_left)
		return false;
	if (pb_decode_tag(&w->stream, &w->type, &w->number, &is_end) && w->number)
		return true;
	broken(w, "no field", e);
	return false;
}

static bool skip_field(struct walk *w, struct error *e)
{
	return pb_skip_field(&w->stream, w->type) || broken(w, "ends too soon", e);
}

/* The bytes of a text or of a message; the walk goes behind them. */
static bool take_bytes(struct walk *w, struct walk *inner, struct error *e)
{
	uint64_t len = 0;

	if (w->type != PB_WT_STRING)
		return broken(w, "no text and no message", e);
	if (!pb_decode_varint(&w->stream, &len) || len > w->stream.bytes_left)
		return broken(w, "ends too soon", e);
	*inner = (struct walk){ .name = w->name, .stream = stream_of(bytes_at(&w->stream), (size_t)len) };
	return pb_read(&w->stream, NULL, (size_t)len) || broken(w, "ends too soon", e);
}

static bool take_number(struct walk *w, int64_t *out, struct error *e)
{
	uint64_t value = 0;

	if (w->type != PB_WT_VARINT || !pb_decode_varint(&w->stream, &value))
		return broken(w, "no whole number", e);
	*out = (int64_t)value;
	return true;
}

static bool write_text(const struct walk *text, struct buf *out, struct error *e)
{
	if (memchr(bytes_at(&text->stream), '\0', text->stream.bytes_left))
		return broken(text, "a text with a NUL byte", e);
	json_write_bytes(bytes_at(&text->stream), text->stream.bytes_left, out);
	return true;
}

/* Field `number` of a message, the last where it comes twice; empty where it does not come. */
static bool find_bytes(struct walk message, uint32_t number, struct walk *found, struct error *e)
{
	e->kind = ERROR_NONE;
	found->stream = stream_of("", 0);
	while (next_field(&message, e))
		if (!(message.number == number ? take_bytes(&message, found, e) : skip_field(&message, e)))
			return false;
	return e->kind == ERROR_NONE;
}

static bool find_numbers(struct walk message, int64_t found[2], struct error *e)
{
	e->kind = ERROR_NONE;
	while (next_field(&message, e)) {
		bool is_one = message.number == 1 || message.number == 2;
		if (!(is_one ? take_number(&message, &found[message.number - 1], e) : skip_field(&message, e)))
			return false;
	}
	return e->kind == ERROR_NONE;
}

static bool write_time(const struct walk *message, struct buf *out, struct error *e)
{
	int64_t found[2] = { 0 };

	if (!find_numbers(*message, found, e))
		return false;
	if (found[0] < 0 || found[0] > INT64_MAX / 1000 / SECOND || found[1] < 0 || found[1] >= 1000000000)
		return broken(message, "no time", e);
	json_write_time(found[0] * SECOND + found[1] / 1000000, out);
	return true;
}

static bool write_quantity(const struct walk *message, struct buf *out, struct error *e)
{
	struct walk text = *message;

	return find_bytes(*message, 1, &text, e) && write_text(&text, out, e);
}

/* One entry: a message of key = 1 and value = 2. */
static bool write_pair(const struct walk *entry, bool is_quantity, struct buf *out, struct error *e)
{
	struct walk key = *entry, value = *entry;

	if (!find_bytes(*entry, 1, &key, e) || !find_bytes(*entry, 2, &value, e) || !write_text(&key, out, e))
		return false;
	buf_text(out, ":");
	return is_quantity ? write_quantity(&value, out, e) : write_text(&value, out, e);
}

static bool write_fields(const struct protobuf_message *m, struct walk w, struct buf *out, struct error *e);

static bool write_object(const struct protobuf_message *m, const struct walk *message, struct buf *out, struct error *e)
{
	buf_text(out, "{");
	if (!write_fields(m, *message, out, e))
		return false;
	buf_text(out, "}");
	return true;
}

static bool write_value(const struct protobuf_field *f, const struct walk *value, struct buf *out, struct error *e)
{
	switch (f->kind) {
	case PROTOBUF_TEXT:
		return write_text(value, out, e);
	case PROTOBUF_TIME:
		return write_time(value, out, e);
	case PROTOBUF_QUANTITY:
		return write_quantity(value, out, e);
	case PROTOBUF_MAP:
	case PROTOBUF_QUANTITY_MAP:
		return write_pair(value, f->kind == PROTOBUF_QUANTITY_MAP, out, e);
	case PROTOBUF_MESSAGE:
		return write_object(f->of, value, out, e);
	case PROTOBUF_INT:
	case PROTOBUF_BOOL:
	case PROTOBUF_INLINE:
		break;
	}
	return error_set(e, ERROR_INTERNAL, "%s: a table's field has no value of its own", f->name);
}

static bool write_number(const struct protobuf_field *f, struct walk *w, struct buf *out, struct error *e)
{
	int64_t value = 0;

	if (!take_number(w, &value, e))
		return false;
	if (f->kind == PROTOBUF_BOOL)
		buf_text(out, value ? "true" : "false");
	else
		buf_printf(out, "%" PRId64, value);
	return true;
}

static bool is_map(const struct protobuf_field *f)
{
	return f->kind == PROTOBUF_MAP || f->kind == PROTOBUF_QUANTITY_MAP;
}

/* What the JSON of Kubernetes leaves out, too. */
static bool is_unsaid(const struct protobuf_field *f, const struct walk *value)
{
	return !value->stream.bytes_left && !f->is_list && (f->kind == PROTOBUF_TEXT || f->kind == PROTOBUF_TIME);
}

static void write_name(const struct protobuf_field *f, struct buf *out)
{
	json_write_comma(out);
	json_write_text(f->name, out);
	buf_text(out, f->is_list ? ":[" : is_map(f) ? ":{" : ":");
}

static const char *close_of(const struct protobuf_field *f)
{
	return !f ? "" : f->is_list ? "]" : is_map(f) ? "}" : "";
}

static const struct protobuf_field *field_of(const struct protobuf_message *m, uint32_t number)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->fields[i].number == number)
			return &m->fields[i];
	return NULL;
}

/* The list or the map `open` goes on only while its elements stand together. */
static bool write_fields(const struct protobuf_message *m, struct walk w, struct buf *out, struct error *e)
{
	const struct protobuf_field *open = NULL;
	uint64_t came = 0;

	assert(m->count <= 64);
	w.name = m->name;
	e->kind = ERROR_NONE;
	while (next_field(&w, e)) {
		const struct protobuf_field *f = field_of(m, w.number);
		struct walk value = w;
		bool is_number = f && (f->kind == PROTOBUF_INT || f->kind == PROTOBUF_BOOL);
		if (!f ? !skip_field(&w, e) : !is_number && !take_bytes(&w, &value, e))
			return false;
		if (!f || is_unsaid(f, &value))
			continue;
		if (f != open) {
			buf_text(out, close_of(open));
			open = f->is_list || is_map(f) ? f : NULL;
			uint64_t bit = UINT64_C(1) << (f - m->fields);
			if (came & bit)
				return broken(&w, "comes twice", e);
			came |= bit;
			if (f->kind != PROTOBUF_INLINE)
				write_name(f, out);
		} else {
			buf_text(out, ",");
		}
		value.number = w.number;
		bool ok = is_number		       ? write_number(f, &w, out, e)
			  : f->kind == PROTOBUF_INLINE ? write_fields(f->of, value, out, e)
						       : write_value(f, &value, out, e);
		if (!ok)
			return false;
	}
	buf_text(out, close_of(open));
	return e->kind == ERROR_NONE;
}

bool protobuf_to_json(const struct protobuf_message *m, const char *bytes, size_t len, struct buf *out, struct error *e)
{
	struct walk w = { .name = m->name, .stream = stream_of(bytes, len) };

	return write_object(m, &w, out, e);
}
