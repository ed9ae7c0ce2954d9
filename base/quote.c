#include "base/quote.h"

#include <stdio.h>

enum { SHOWN = 40 };

const char *quote(char room[QUOTE_ROOM], const char *text, size_t len)
{
	size_t n = 0, shown = len < SHOWN ? len : SHOWN;

	room[n++] = '\'';
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c >= 0x20 && c < 0x7f)
			room[n++] = (char)c;
		else
			n += (size_t)snprintf(room + n, 5, "\\x%02x", c);
	}
	snprintf(room + n, QUOTE_ROOM - n, shown < len ? "...'" : "'");
	return room;
}
