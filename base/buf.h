/*
 * A growing text with a largest allowed size. Once an append would pass the
 * cap the buffer fails and stays failed: callers append freely and ask
 * buf_ok() once at the end. `text` is never NULL after the first append and
 * always NUL-terminated.
 */
#pragma once
#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>

struct buf {
	char *text;
	size_t len, room;
	size_t cap; /* 0 means BUF_DEFAULT_CAP */
	bool failed;
};

#define BUF_DEFAULT_CAP ((size_t)256 << 20)

void buf_append(struct buf *b, const void *bytes, size_t len);
void buf_text(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF(2, 0);
bool buf_ok(const struct buf *b);
void buf_drop(struct buf *b, size_t len); /* the first bytes; the rest moves up */
void buf_clear(struct buf *b);		  /* keeps the memory and forgets a failure */
void buf_release(struct buf *b);	  /* frees; the buffer is empty and usable again */
