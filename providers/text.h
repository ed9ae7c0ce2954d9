/* Pieces of text as the answers of every cloud hold them, and the rows of tables that read them. Pure. */
#pragma once
#include "base/decode.h"

#define FIELD_NEEDED(struct_type, member, kind, path_)                                                     \
	{                                                                                                  \
		.path = (path_), .type = (kind), .offset = offsetof(struct_type, member), .required = true \
	}
#define FIELD_LIST_OF(struct_type, member, path_, record)                                                      \
	{                                                                                                      \
		.path = (path_), .type = FIELD_LIST, .offset = offsetof(struct_type, member), .of = &(record), \
	}
#define RECORD(struct_type, rows)                                              \
	{                                                                      \
		"", sizeof(struct_type), (rows), sizeof(rows) / sizeof *(rows) \
	}
#define FIELD_LIST_NEEDED(struct_type, member, path_, record)                                                   \
	{                                                                                                       \
		.path = (path_), .type = FIELD_LIST, .offset = offsetof(struct_type, member), .required = true, \
		.of = &(record),                                                                                \
	}
/* Of a list of texts: each item is a const char *. */
extern const struct record_spec text_record;

/* One whole JSON value by a table that is used now and then; see decode_record(). */
bool text_decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		 struct error *e) MUST_USE;
/* Texts of a record that were absent become "", those in its lists too. */
void text_complete(const struct record_spec *spec, void *record);
/* A sentence of the other side, in one line and cut to the room; NULL is "". Ends at `len` or at a NUL. */
void text_show(const char *text, size_t len, char *room, size_t size);
/* The same text in the arena; NULL stays NULL. */
const char *text_keep(struct arena *a, const char *text);
char *text_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

bool text_is_among(const char *text, const char *const *list, size_t count);

static inline const char *text_or_empty(const char *text)
{
	return text ? text : "";
}
