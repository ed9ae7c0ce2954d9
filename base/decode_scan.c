#include "base/decode_parts.h"

enum { PLAIN, QUOTE, OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY };

static const unsigned char kinds[256] = {
	['"'] = QUOTE, ['{'] = OPEN_OBJECT, ['['] = OPEN_ARRAY, ['}'] = CLOSE_OBJECT, [']'] = CLOSE_ARRAY,
};

bool scan_string(struct scan *s, const char **p, const char *end)
{
	const char *at = *p;

	if (s->is_escaped && at < end) {
		s->is_escaped = false;
		at++;
	}
	for (; at < end; at++) {
		if (*at == '"') {
			*p = at + 1;
			return true;
		}
		if (*at == '\\' && ++at == end) {
			s->is_escaped = true;
			break;
		}
	}
	*p = end;
	return false;
}

static bool opened(struct scan *s, bool is_array)
{
	if (s->depth == DECODE_DEPTH)
		return false;
	uint64_t bit = UINT64_C(1) << (s->depth % 64), *word = &s->arrays[s->depth / 64];
	*word = is_array ? *word | bit : *word & ~bit;
	s->depth++;
	return true;
}

static bool closed(struct scan *s, bool is_array)
{
	if (!s->depth)
		return false;
	s->depth--;
	return (s->arrays[s->depth / 64] >> (s->depth % 64) & 1) == is_array;
}

enum scan_result scan_container(struct scan *s, const char **p, const char *end)
{
	const char *at = *p;

	for (;;) {
		if (s->is_in_string) {
			s->is_in_string = !scan_string(s, &at, end);
			if (s->is_in_string)
				break;
		}
		while (at < end && kinds[(unsigned char)*at] == PLAIN)
			at++;
		if (at == end)
			break;
		unsigned char kind = kinds[(unsigned char)*at++];
		if (kind == QUOTE) {
			s->is_in_string = true;
		} else if (kind == OPEN_OBJECT || kind == OPEN_ARRAY) {
			if (!opened(s, kind == OPEN_ARRAY))
				return SCAN_TOO_DEEP;
		} else if (!closed(s, kind == CLOSE_ARRAY)) {
			return SCAN_UNBALANCED;
		} else if (!s->depth) {
			*p = at;
			return SCAN_DONE;
		}
	}
	*p = end;
	return SCAN_MORE;
}
