/*
 * A stream of bytes from a file, a pipe or standard input, plain or gzip
 * (told apart by the first two bytes, never by the name). Every member of a
 * .gz is read and its length and CRC are checked: a cut or damaged file is
 * an error, never a short read.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

struct gzip;

/* "-" is standard input. NULL with an error when it cannot be opened; the caller closes. */
struct gzip *gzip_open(const char *path, struct error *e) MUST_USE;
void gzip_close(struct gzip *g); /* takes NULL */
/* "FILE", or "standard input". */
const char *gzip_name(const struct gzip *g);
/* Fills up to `room` bytes; *got is 0 only at the end. Errors name the file. */
bool gzip_read(struct gzip *g, void *bytes, size_t room, size_t *got, struct error *e) MUST_USE;
/* The next bytes (up to 64 KiB), still to be read; valid until the next read. */
bool gzip_peek(struct gzip *g, const char **bytes, size_t *len, struct error *e) MUST_USE;
