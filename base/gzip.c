#include "base/gzip.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { RAW_ROOM = 128 * 1024, PEEK_ROOM = 64 * 1024 };

struct gzip {
	char *name;
	int fd;
	bool is_raw_end; /* the file has no more bytes */
	bool is_started; /* the first bytes were looked at */
	bool is_packed;	 /* gzip */
	bool is_in_member;
	bool is_end;
	z_stream z;
	unsigned char raw[RAW_ROOM]; /* z.next_in, z.avail_in lie in here, for plain text too */
	char peeked[PEEK_ROOM];
	size_t peek_at, peek_len;
};

struct gzip *gzip_open(const char *path, struct error *e)
{
	bool is_input = !strcmp(path, "-");
	int fd = is_input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		error_set(e, file_error_kind(errno), "%s: %s", is_input ? "standard input" : path, strerror(errno));
		return NULL;
	}
	struct gzip *g = xcalloc(1, sizeof *g);
	g->name = xstrdup(is_input ? "standard input" : path);
	g->fd = fd;
	return g;
}

void gzip_close(struct gzip *g)
{
	if (!g)
		return;
	if (g->is_packed)
		inflateEnd(&g->z);
	close(g->fd);
	free(g->name);
	free(g);
}

const char *gzip_name(const struct gzip *g)
{
	return g->name;
}

/* Adds raw bytes behind those not yet used. */
static bool fill(struct gzip *g, struct error *e)
{
	if (g->z.avail_in && g->z.next_in != g->raw)
		memmove(g->raw, g->z.next_in, g->z.avail_in);
	g->z.next_in = g->raw;
	while (!g->is_raw_end && g->z.avail_in < sizeof g->raw) {
		ssize_t n = read(g->fd, g->raw + g->z.avail_in, sizeof g->raw - g->z.avail_in);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(e, file_error_kind(errno), "%s: %s", g->name, strerror(errno));
		g->is_raw_end = n == 0;
		g->z.avail_in += (unsigned)n;
		if (n > 0 && g->z.avail_in >= 2)
			break;
	}
	return true;
}

static bool start(struct gzip *g, struct error *e)
{
	if (!fill(g, e))
		return false;
	g->is_started = true;
	g->is_packed = g->z.avail_in >= 2 && g->raw[0] == 0x1f && g->raw[1] == 0x8b;
	if (g->is_packed && inflateInit2(&g->z, 15 + 16) != Z_OK)
		return error_set(e, ERROR_INTERNAL, "%s: cannot start unpacking", g->name);
	g->is_in_member = g->is_packed;
	return true;
}

/* After one member: another, the end, or bytes that are neither. */
static bool next_member(struct gzip *g, struct error *e)
{
	if (g->z.avail_in < 2 && !fill(g, e))
		return false;
	while (g->z.avail_in && *g->z.next_in == 0) { /* padding, as tape and block copies leave it */
		g->z.next_in++;
		g->z.avail_in--;
		if (g->z.avail_in < 2 && !fill(g, e))
			return false;
	}
	if (!g->z.avail_in) {
		g->is_end = true;
		return true;
	}
	if (g->z.avail_in < 2 || g->z.next_in[0] != 0x1f || g->z.next_in[1] != 0x8b)
		return error_set(e, ERROR_INVALID,
				 "%s: bytes that are not gzip follow the compressed part; pack it again", g->name);
	g->is_in_member = inflateReset(&g->z) == Z_OK;
	return g->is_in_member || error_set(e, ERROR_INTERNAL, "%s: cannot unpack", g->name);
}

/* One step of unpacking into z.next_out. */
static bool inflate_some(struct gzip *g, struct error *e)
{
	if (!g->is_in_member)
		return next_member(g, e);
	if (!g->z.avail_in && !fill(g, e))
		return false;
	if (!g->z.avail_in)
		return error_set(e, ERROR_INVALID,
				 "%s: the compressed file ends in the middle (truncated); copy or download it again",
				 g->name);
	int rc = inflate(&g->z, Z_NO_FLUSH);
	if (rc == Z_STREAM_END)
		g->is_in_member = false;
	else if (rc != Z_OK && rc != Z_BUF_ERROR)
		return error_set(e, ERROR_INVALID, "%s: the compressed file is damaged (%s); copy or download it again",
				 g->name, g->z.msg ? g->z.msg : "bad data");
	return true;
}

static bool read_plain(struct gzip *g, void *bytes, size_t room, size_t *got, struct error *e)
{
	if (!g->z.avail_in && !fill(g, e))
		return false;
	*got = room < g->z.avail_in ? room : g->z.avail_in;
	memcpy(bytes, g->z.next_in, *got);
	g->z.next_in += *got;
	g->z.avail_in -= (unsigned)*got;
	g->is_end = *got == 0 && room > 0;
	return true;
}

static bool read_on(struct gzip *g, void *bytes, size_t room, size_t *got, struct error *e)
{
	if (!g->is_started && !start(g, e))
		return false;
	if (!g->is_packed)
		return read_plain(g, bytes, room, got, e);
	unsigned asked = room > (1U << 30) ? 1U << 30 : (unsigned)room;
	g->z.next_out = bytes;
	g->z.avail_out = asked;
	while (!g->is_end && g->z.avail_out == asked)
		if (!inflate_some(g, e))
			return false;
	*got = asked - g->z.avail_out;
	return true;
}

bool gzip_read(struct gzip *g, void *bytes, size_t room, size_t *got, struct error *e)
{
	size_t ready = g->peek_len - g->peek_at;

	if (!ready)
		return read_on(g, bytes, room, got, e);
	*got = room < ready ? room : ready;
	memcpy(bytes, g->peeked + g->peek_at, *got);
	g->peek_at += *got;
	return true;
}

bool gzip_peek(struct gzip *g, const char **bytes, size_t *len, struct error *e)
{
	memmove(g->peeked, g->peeked + g->peek_at, g->peek_len - g->peek_at);
	g->peek_len -= g->peek_at;
	g->peek_at = 0;
	while (!g->is_end && g->peek_len < sizeof g->peeked) {
		size_t got;
		if (!read_on(g, g->peeked + g->peek_len, sizeof g->peeked - g->peek_len, &got, e))
			return false;
		g->peek_len += got;
	}
	*bytes = g->peeked;
	*len = g->peek_len;
	return true;
}

void deflate_bytes(const void *bytes, size_t len, struct buf *out)
{
	uLongf room = compressBound((uLong)len);
	unsigned char *packed = xmalloc(room);

	/* Fails only for want of memory or room, and both are there. */
	if (compress2(packed, &room, bytes, (uLong)len, Z_BEST_SPEED) != Z_OK)
		abort();
	buf_append(out, packed, room);
	free(packed);
}

bool inflate_bytes(const void *bytes, size_t len, void *out, size_t size, struct error *e)
{
	uLongf room = (uLongf)size;
	unsigned char nothing;
	int rc = uncompress(size ? out : &nothing, &room, bytes, (uLong)len);

	if (rc != Z_OK || room != size)
		return error_set(e, ERROR_INVALID, "compressed bytes are damaged");
	return true;
}

bool gunzip_bytes(const void *bytes, size_t len, size_t most, struct buf *out, struct error *e)
{
	z_stream z = { .next_in = (unsigned char *)bytes, .avail_in = (uInt)len };
	unsigned char some[4096];
	size_t all = 0;
	int rc = inflateInit2(&z, 15 + 16);

	while (rc == Z_OK && all <= most) {
		z.next_out = some;
		z.avail_out = sizeof some;
		rc = inflate(&z, Z_NO_FLUSH);
		all += sizeof some - z.avail_out;
		buf_append(out, some, sizeof some - z.avail_out);
		if (rc == Z_STREAM_END && z.avail_in)
			rc = inflateReset(&z); /* the next member */
	}
	inflateEnd(&z);
	if (all > most)
		return error_set(e, ERROR_INVALID, "more than %zu bytes once unpacked", most);
	return rc == Z_STREAM_END || error_set(e, ERROR_INVALID, "damaged gzip");
}

uint32_t crc32_bytes(uint32_t crc, const void *bytes, size_t len)
{
	return (uint32_t)crc32_z(crc, bytes, len);
}

const char *deflate_library_version(void)
{
	return zlibVersion();
}

enum { ROOM = 256 * 1024 };

void lines_release(struct lines *l)
{
	free(l->room);
	*l = (struct lines){ 0 };
}

static bool lines_fill(struct lines *l, struct error *e)
{
	size_t got;

	if (!l->room)
		l->room = xmalloc(ROOM + 1);
	memmove(l->room, l->room + l->at, l->len - l->at);
	l->len -= l->at;
	l->at = 0;
	if (!gzip_read(l->source, l->room + l->len, ROOM - l->len, &got, e))
		return false;
	l->is_end = got == 0;
	l->len += got;
	if (!l->number && l->len >= 3 && !memcmp(l->room, "\xef\xbb\xbf", 3))
		l->at = 3;
	return true;
}

bool lines_next(struct lines *l, char **line, size_t *len, struct error *e)
{
	char *end = NULL;

	for (;;) {
		size_t ready = l->len - l->at;
		if (ready)
			end = memchr(l->room + l->at, '\n', ready);
		if (end || l->is_end || ready > LINE_MAX_BYTES)
			break;
		if (!lines_fill(l, e))
			return false;
	}
	size_t n = end ? (size_t)(end - (l->room + l->at)) : l->len - l->at;
	if (n > LINE_MAX_BYTES)
		return error_set(e, ERROR_INVALID,
				 "%s:%lld: the line is longer than %zu bytes; a row is never so long: check that it is "
				 "the right file, and that "
				 "lines end in newlines",
				 gzip_name(l->source), (long long)l->number + 1, LINE_MAX_BYTES);
	*line = NULL;
	*len = 0;
	if (!end && !n)
		return true;
	*line = l->room + l->at;
	l->at += n + (end != NULL);
	l->number++;
	if (n && (*line)[n - 1] == '\r')
		n--;
	(*line)[n] = '\0';
	*len = n;
	return true;
}
