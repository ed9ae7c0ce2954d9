#include "base/buf.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : BUF_DEFAULT_CAP;

	if (b->failed || more > cap - b->len) {
		b->failed = true;
		return false;
	}
	if (b->room - b->len > more)
		return true;
	size_t room = b->room ? b->room : 256;
	while (room - b->len <= more)
		room *= 2;
	b->text = xrealloc(b->text, room, 1);
	b->room = room;
	return true;
}

void buf_append(struct buf *b, const void *bytes, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len)
		memcpy(b->text + b->len, bytes, len);
	b->len += len;
	b->text[b->len] = '\0';
}

void buf_text(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text));
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	if (n < 0 || !reserve(b, (size_t)n))
		b->failed = true;
	else
		b->len += (size_t)vsnprintf(b->text + b->len, (size_t)n + 1, fmt, again);
	va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

bool buf_ok(const struct buf *b)
{
	return !b->failed;
}

void buf_drop(struct buf *b, size_t len)
{
	if (!len)
		return;
	memmove(b->text, b->text + len, b->len - len + 1);
	b->len -= len;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->text)
		b->text[0] = '\0';
}

void buf_release(struct buf *b)
{
	free(b->text);
	*b = (struct buf){ .cap = b->cap };
}
