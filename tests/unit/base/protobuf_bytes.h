/* Protobuf as a test writes it: numbers below 2^63, texts and messages of any length. */
#pragma once
#include "base/buf.h"

#include <stdint.h>
#include <string.h>

static inline void pb_varint(struct buf *out, uint64_t value)
{
	do {
		unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		buf_append(out, &byte, 1);
		value >>= 7;
	} while (value);
}

static inline void pb_number(struct buf *out, unsigned field, int64_t value)
{
	pb_varint(out, (uint64_t)field << 3);
	pb_varint(out, (uint64_t)value);
}

static inline void pb_bytes(struct buf *out, unsigned field, const char *bytes, size_t len)
{
	pb_varint(out, (uint64_t)field << 3 | 2);
	pb_varint(out, len);
	buf_append(out, bytes, len);
}

static inline void pb_text(struct buf *out, unsigned field, const char *text)
{
	pb_bytes(out, field, text, strlen(text));
}

/* Releases the message. */
static inline void pb_message(struct buf *out, unsigned field, struct buf *message)
{
	pb_bytes(out, field, message->len ? message->text : "", message->len);
	buf_release(message);
}
