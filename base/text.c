#include "base/text.h"

#include <stdio.h>
#include <string.h>

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

enum { LONGEST = 64 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: insert, delete, change, swap neighbours. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][LONGEST + 1], m = strlen(a), n = strlen(b);

	if (m > LONGEST || n > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t *now = rows[i % 3], *last = rows[(i - 1) % 3];
		const size_t *before = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= n; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return rows[m % 3][n];
}

static bool is_beginning(const char *word, const char *name)
{
	return strlen(word) >= 3 && strncmp(word, name, strlen(word)) == 0;
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
	const char *nearest = NULL;
	size_t best = (strlen(word) + 2) / 3 + 1;

	if (strlen(word) < 2)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t d = is_beginning(word, names[i]) ? 0 : distance(word, names[i]);

		if (d < best) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}

void uri_escape(const char *text, size_t len, const char *kept, struct buf *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (size_t i = 0; i < len; i++)
		if (text[i] && (strchr(plain, text[i]) || strchr(kept, text[i])))
			buf_append(out, &text[i], 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)text[i]);
}

void uri_segment(const char *text, struct buf *out)
{
	size_t len = strlen(text);

	if (strspn(text, ".") < len) {
		uri_escape(text, len, "", out);
		return;
	}
	for (size_t i = 0; i < len; i++)
		buf_text(out, "%2E");
}

void uri_show(const char *url, struct buf *out)
{
	const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
	const char *at = memrchr(host, '@', strcspn(host, "/?#"));
	const char *rest = at ? at + 1 : host;

	buf_append(out, url, (size_t)(host - url));
	buf_append(out, rest, strcspn(rest, "?#"));
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS	"0123456789"

static size_t word(const char *text, const char *first, const char *rest)
{
	return *text && strchr(first, *text) ? strspn(text, rest) : 0;
}

bool metric_name_parse(const char *text, struct metric_name *out)
{
	struct metric_name m = { .name_len = word(text, LETTERS ":", LETTERS DIGITS ":") };
	const char *p = text + m.name_len;

	if (!m.name_len || strlen(text) > METRIC_NAME_LONGEST)
		return false;
	if (*p == '{') {
		m.label = p + 1;
		m.label_len = word(m.label, LETTERS, LETTERS DIGITS);
		p = m.label + m.label_len;
		if (!m.label_len || strncmp(p, "=\"", 2) != 0)
			return false;
		m.value = p + 2;
		m.value_len = strspn(m.value, LETTERS DIGITS ":./ -");
		p = m.value + m.value_len;
		if (!m.value_len || strncmp(p, "\"}", 2) != 0)
			return false;
		p += 2;
	}
	if (*p)
		return false;
	*out = m;
	return true;
}

size_t utf8_length(const char *p, const char *end)
{
	const unsigned char *c = (const unsigned char *)p;
	size_t len = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;

	if ((size_t)(end - p) < len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	bool is_overlong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
	bool is_surrogate = *c == 0xed && c[1] > 0x9f, is_beyond = *c == 0xf4 && c[1] > 0x8f;
	return is_overlong || is_surrogate || is_beyond ? 0 : len;
}
