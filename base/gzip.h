/*
 * A stream of bytes from a file, a pipe or standard input, plain or gzip
 * (told apart by the first two bytes, never by the name). Every member of a
 * .gz is read and its length and CRC are checked: a cut or damaged file is
 * an error, never a short read.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

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

/*
 * Bytes made small and back, and their checksum. What this program wrote
 * itself is of a known size, which is the limit.
 */
/* Appends `bytes` in zlib's format. Equal bytes give equal bytes with one version of zlib. */
void deflate_bytes(const void *bytes, size_t len, struct buf *out);

/* Fills `out`, which holds exactly `size` bytes; ERROR_INVALID when the bytes are damaged or of another size. */
bool inflate_bytes(const void *bytes, size_t len, void *out, size_t size, struct error *e) MUST_USE;

/* Appends what gzip made of some bytes, all its members. ERROR_INVALID when they are damaged, cut, or of more than
 * `most` bytes. */
bool gunzip_bytes(const void *bytes, size_t len, size_t most, struct buf *out, struct error *e) MUST_USE;

/* CRC-32 of ISO 3309, continued from `crc`; 0 starts. */
uint32_t crc32_bytes(uint32_t crc, const void *bytes, size_t len);

/* Version of zlib that runs: "1.2.13". */
const char *deflate_library_version(void);

/*
 * A text, line by line, from a gzip stream. A line is at most 64 KiB; a
 * longer one is an error at once, however long it is. Line ends may be LF
 * or CRLF, the last may be missing; a byte order mark at the start is
 * skipped.
 */
#define LINE_MAX_BYTES ((size_t)64 * 1024)

struct lines {
	struct gzip *source; /* borrowed */
	int64_t number;	     /* of the line last returned, from 1 */
	char *room;
	size_t at, len;
	bool is_end;
};

/* Zeroed memory plus a source is a valid reader; the first call allocates. */
void lines_release(struct lines *l);
/* The next line without its end, NUL-terminated, valid until the next call; *line is NULL at the end.
 * The text may hold any byte, NUL too. Errors name the file and the line. */
bool lines_next(struct lines *l, char **line, size_t *len, struct error *e) MUST_USE;
