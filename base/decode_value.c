#include "base/decimal.h"
#include "base/decode_parts.h"
#include "base/quantity.h"

#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \uXXXX at *p, behind the u. */
static bool take_unit(const char **p, const char *end, unsigned *unit)
{
	*unit = 0;
	if (end - *p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(*(*p)++);
		if (digit < 0)
			return false;
		*unit = *unit << 4 | (unsigned)digit;
	}
	return true;
}

static bool take_code(const char **p, const char *end, unsigned *code)
{
	unsigned low;

	if (!take_unit(p, end, code) || !*code || (*code >= 0xdc00 && *code <= 0xdfff))
		return false;
	if (*code < 0xd800 || *code > 0xdbff)
		return true;
	if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
		return false;
	*p += 2;
	if (!take_unit(p, end, &low) || low < 0xdc00 || low > 0xdfff)
		return false;
	*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

static char *put_utf8(char *out, unsigned code)
{
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	}
	return out;
}

static bool take_escape(const char **p, const char *end, char **out)
{
	static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	unsigned code;

	if (*p == end)
		return false;
	char c = *(*p)++;
	if (c == 'u') {
		if (!take_code(p, end, &code))
			return false;
		*out = put_utf8(*out, code);
		return true;
	}
	const char *found = c ? strchr(names, c) : NULL;
	if (!found)
		return false;
	*(*out)++ = means[found - names];
	return true;
}

/* Bytes of the well-formed character at p, or 0. */
static size_t utf8_length(const unsigned char *p, const unsigned char *end)
{
	unsigned least, code;
	size_t n;

	if (*p >= 0xc2 && *p <= 0xdf)
		n = 2, code = *p & 0x1fU, least = 0x80;
	else if (*p >= 0xe0 && *p <= 0xef)
		n = 3, code = *p & 0x0fU, least = 0x800;
	else if (*p >= 0xf0 && *p <= 0xf4)
		n = 4, code = *p & 0x07U, least = 0x10000;
	else
		return 0;
	if ((size_t)(end - p) < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3fU);
	}
	return code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

const char *decode_text(const char *text, size_t len, struct arena *a, const char **out)
{
	const char *p = text, *end = text + len;
	char *copy = arena_alloc(a, len + 1, 1), *to = copy;

	while (p < end) {
		unsigned char c = (unsigned char)*p;
		if (c >= 0x20 && c < 0x80 && c != '\\') {
			*to++ = *p++;
		} else if (c == '\\') {
			p++;
			if (!take_escape(&p, end, &to))
				return "a text with a malformed escape";
		} else if (c < 0x20) {
			return "a text with a control character";
		} else {
			size_t n = utf8_length((const unsigned char *)p, (const unsigned char *)end);
			if (!n)
				return "a text that is not UTF-8";
			memcpy(to, p, n);
			to += n;
			p += n;
		}
	}
	*to = '\0';
	*out = copy;
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

const char *decode_number(const char *text, size_t len)
{
	static const char malformed[] = "a malformed value";
	const char *p = text, *end = text + len, *from;

	if (p < end && *p == '-')
		p++;
	from = p;
	p = digits(p, end);
	if (p == from || (*from == '0' && p - from > 1))
		return malformed;
	if (p < end && *p == '.') {
		from = ++p;
		p = digits(p, end);
		if (p == from)
			return malformed;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		from = p;
		p = digits(p, end);
		if (p == from)
			return malformed;
	}
	return p == end ? NULL : malformed;
}

bool decode_integer(const char *text, size_t len, int64_t *out)
{
	bool is_negative = len && *text == '-';
	int64_t value = 0;

	if (len == is_negative || len > 20)
		return false;
	for (size_t i = is_negative; i < len; i++)
		if (!is_digit(text[i]) || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, text[i] - '0', &value))
			return false;
	if (!is_negative && __builtin_mul_overflow(value, -1, &value))
		return false;
	*out = value;
	return true;
}

bool decode_count(const char *text, size_t len, int64_t *out)
{
	int64_t milli;

	if (decode_integer(text, len, out) || quantity_parse(text, len, out))
		return true;
	if (len > 1 && text[len - 1] == 'm' && decode_integer(text, len - 1, &milli) && milli >= 0) {
		*out = milli / 1000 + (milli % 1000 != 0);
		return true;
	}
	if (decimal_parse(text, len, 3, &milli) != DECIMAL_OK)
		return false;
	*out = milli / 1000 + (milli % 1000 != 0);
	return true;
}
