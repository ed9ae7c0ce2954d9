#include "base/deflate.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

void deflate_bytes(const void *bytes, size_t len, struct buf *out)
{
	uLongf room = compressBound((uLong)len);
	unsigned char *packed = malloc(room);

	if (!packed) {
		fputs("out of memory\n", stderr);
		abort();
	}
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

uint32_t crc32_bytes(uint32_t crc, const void *bytes, size_t len)
{
	return (uint32_t)crc32_z(crc, bytes, len);
}

const char *deflate_library_version(void)
{
	return zlibVersion();
}
