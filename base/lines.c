#include "base/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 256 * 1024 };

void lines_release(struct lines *l)
{
	free(l->room);
	*l = (struct lines){ 0 };
}

static bool fill(struct lines *l, struct error *e)
{
	size_t got;

	if (!l->room) {
		l->room = malloc(ROOM + 1);
		if (!l->room)
			abort();
	}
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
		if (!fill(l, e))
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
