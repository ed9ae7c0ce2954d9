/* Pieces of text as Azure's answers and requests hold them. Pure. */
#pragma once
#include "base/buf.h"
#include "base/decode.h"

/* One whole JSON value by a table; see decode_record(). */
bool azure_decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		  struct error *e) MUST_USE;
/* In quotes, escaped; the bytes may hold NUL. */
void azure_write_json(const char *text, size_t len, struct buf *out);
/* A sentence of the other side, in one line and cut to the room. */
void azure_show(const char *text, char *room, size_t size);
