/*
 * Bytes made small and back, and their checksum. Only what this program
 * wrote itself is read back, so the size of the original is known and is
 * the limit.
 */
#pragma once
#include "base/buf.h"

#include <stdint.h>

/* Appends `bytes` in zlib's format. Equal bytes give equal bytes with one version of zlib. */
void deflate_bytes(const void *bytes, size_t len, struct buf *out);

/* Fills `out`, which holds exactly `size` bytes; ERROR_INVALID when the bytes are damaged or of another size. */
bool inflate_bytes(const void *bytes, size_t len, void *out, size_t size, struct error *e) MUST_USE;

/* CRC-32 of ISO 3309, continued from `crc`; 0 starts. */
uint32_t crc32_bytes(uint32_t crc, const void *bytes, size_t len);

/* Version of zlib that runs: "1.2.13". */
const char *deflate_library_version(void);
