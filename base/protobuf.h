/*
 * Protobuf messages as JSON text, by table, as decode.h reads it: a table
 * names the fields that are wanted, everything else is skipped at the cost
 * of its length. Depth is that of the tables, which never come round.
 *
 * As Kubernetes writes JSON: an empty text and a time that was never set are
 * left out, an empty message is {}. Elements of a list or a map that do not
 * stand together are refused, though Protobuf allows them: nobody writes it
 * so, and JSON could not say it.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum protobuf_kind {
	PROTOBUF_TEXT,
	PROTOBUF_INT,	       /* int32, int64 */
	PROTOBUF_BOOL,	       /* bool */
	PROTOBUF_TIME,	       /* a message of seconds = 1 and nanos = 2: as RFC 3339 text, to the millisecond */
	PROTOBUF_QUANTITY,     /* a message whose field 1 is the text */
	PROTOBUF_MESSAGE,      /* of `of` */
	PROTOBUF_INLINE,       /* a message `of` whose fields stand in the object around it */
	PROTOBUF_MAP,	       /* of texts by text */
	PROTOBUF_QUANTITY_MAP, /* of quantities by text */
};

struct protobuf_message;

struct protobuf_field {
	const char *name; /* in JSON */
	uint32_t number;
	enum protobuf_kind kind;
	bool is_list; /* repeated; of PROTOBUF_TEXT and PROTOBUF_MESSAGE */
	const struct protobuf_message *of;
};

struct protobuf_message {
	const char *name;		     /* "k8s.io.api.core.v1.Pod" */
	const struct protobuf_field *fields; /* at most 64 */
	size_t count;
};

/* Appends an object. Errors are ERROR_INVALID and name the message; `out` then ends anywhere. */
bool protobuf_to_json(const struct protobuf_message *m, const char *bytes, size_t len, struct buf *out,
		      struct error *e) MUST_USE;

/* One field of a message that comes in pieces. */
struct protobuf_part {
	uint32_t number;
	bool has_bytes; /* a text, bytes or a message; otherwise a number, which stands in the head */
	size_t head;	/* bytes of the tag, and of the length or the number */
	size_t size;	/* bytes of the value behind the head; they need not be there yet */
};

enum protobuf_cut { PROTOBUF_PART, PROTOBUF_MORE, PROTOBUF_BROKEN };

/* The field that begins with the first byte. PROTOBUF_MORE: its head is not all there. */
enum protobuf_cut protobuf_part_at(const char *bytes, size_t len, struct protobuf_part *out);
