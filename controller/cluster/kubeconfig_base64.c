#include "controller/cluster/kubeconfig_parts.h"

#include <string.h>

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

bool base64_decode(const char *text, struct buf *out)
{
	unsigned bits = 0, count = 0, padding = 0;

	for (; *text; text++) {
		int digit = digit_of(*text);
		if (strchr(" \n\r\t", *text))
			continue;
		if (*text == '=') {
			padding++;
			continue;
		}
		if (digit < 0 || padding)
			return false;
		bits = bits << 6 | (unsigned)digit;
		if (++count % 4 != 1) {
			char byte = (char)(bits >> (8 - count % 4 * 2) % 8);
			buf_append(out, &byte, 1);
		}
	}
	return count % 4 != 1 && padding <= 2 && (count + padding) % 4 == 0;
}
