/* Base64 as RFC 4648 has it, with padding; base64url of tokens is in base/signature.h. Pure. */
#pragma once
#include "base/buf.h"
#include "base/error.h"

void base64_write(const void *bytes, size_t len, struct buf *out);
/* Appends the bytes; spaces and line ends are passed over. False when the text is no base64: what was appended until
 * then stays. */
bool base64_read(const char *text, size_t len, struct buf *out) MUST_USE;
