#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_write(const void *bytes, size_t len, struct buf *out)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i += 3) {
		unsigned group = 0;
		char four[4];
		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (i + k < len ? b[i + k] : 0U);
		for (size_t k = 0; k < 4; k++)
			four[k] = i + k <= len ? digits[group >> (18 - 6 * k) & 63] : '=';
		buf_append(out, four, sizeof four);
	}
}

bool base64_read(const char *text, size_t len, struct buf *out)
{
	unsigned bits = 0, count = 0, padding = 0;

	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
		if (text[i] && strchr(" \n\r\t", text[i]))
			continue;
		if (text[i] == '=') {
			padding++;
			continue;
		}
		if (!digit || padding)
			return false;
		bits = (bits << 6 | (unsigned)(digit - digits)) & 0xffffff;
		if (++count % 4 != 1) {
			unsigned char byte = (unsigned char)(bits >> (8 - count % 4 * 2) % 8);
			buf_append(out, &byte, 1);
		}
	}
	return count % 4 != 1 && padding <= 2 && (count + padding) % 4 == 0;
}
