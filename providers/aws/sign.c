#include "providers/aws/sign.h"

#include "base/arena.h"
#include "base/signature.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_SEGMENTS 64

static const char algorithm[] = "AWS4-HMAC-SHA256";

const char *aws_date_text(millis at, char room[AWS_DATE_TEXT])
{
	time_t seconds = (time_t)(at / SECOND);
	struct tm t;

	gmtime_r(&seconds, &t);
	strftime(room, AWS_DATE_TEXT, "%Y%m%dT%H%M%SZ", &t);
	return room;
}

struct part {
	const char *text;
	size_t len;
};

/* Without empty and dot segments; what is too long for that is signed as it is, and refused by the service. */
static void write_normal_path(const char *path, struct buf *out)
{
	struct part segments[MOST_SEGMENTS];
	size_t count = 0, len = strlen(path);
	bool ends_open = len && path[len - 1] != '/';

	for (const char *p = path; *p;) {
		p += *p == '/';
		struct part s = { p, strcspn(p, "/") };
		p += s.len;
		if (s.len == 2 && memcmp(s.text, "..", 2) == 0)
			count -= count > 0;
		else if (s.len && !(s.len == 1 && *s.text == '.') && count < MOST_SEGMENTS)
			segments[count++] = s;
		else
			continue;
		ends_open = ends_open && !(s.len == 2 && memcmp(s.text, "..", 2) == 0 && !*p);
	}
	for (size_t i = 0; i < count; i++) {
		buf_text(out, "/");
		uri_escape(segments[i].text, segments[i].len, "", out);
	}
	if (!count || !ends_open)
		buf_text(out, "/");
}

static void write_path(const struct aws_message *m, struct buf *out)
{
	const char *path = *m->path ? m->path : "/";

	if (m->keeps_path)
		uri_escape(path, strlen(path), "/", out);
	else
		write_normal_path(path, out);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* As it would be with every byte encoded the one way that counts. */
static const char *escape_again(struct part p, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	for (size_t i = 0; i < p.len; i++) {
		char c = p.text[i];
		if (c == '%' && i + 2 < p.len && hex_digit(p.text[i + 1]) >= 0 && hex_digit(p.text[i + 2]) >= 0) {
			c = (char)(hex_digit(p.text[i + 1]) * 16 + hex_digit(p.text[i + 2]));
			i += 2;
		}
		uri_escape(&c, 1, "", &out);
	}
	return arena_strdup(a, out.text ? out.text : "", out.len);
}

struct pair {
	const char *key, *value;
	size_t index;
};

static int by_key(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;
	int order = strcmp(a->key, b->key);

	return order ? order : strcmp(a->value, b->value);
}

static bool write_query(const char *query, struct arena *a, struct buf *out)
{
	struct pair pairs[AWS_QUERY];
	size_t count = 0;

	for (const char *p = query; *p; p += *p == '&') {
		size_t len = strcspn(p, "&"), key = strcspn(p, "=&");
		if (count == AWS_QUERY)
			return false;
		pairs[count].key = escape_again((struct part){ p, key }, a);
		pairs[count++].value = key < len ? escape_again((struct part){ p + key + 1, len - key - 1 }, a) : "";
		p += len;
	}
	qsort(pairs, count, sizeof *pairs, by_key);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s=%s", i ? "&" : "", pairs[i].key, pairs[i].value);
	return true;
}

static const char *lower(const char *text, struct arena *a)
{
	char *copy = arena_strdup(a, text, strlen(text));

	for (char *p = copy; *p; p++)
		*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
	return copy;
}

/* Spaces at the ends go, runs of them become one. */
static const char *trim(const char *text, struct arena *a)
{
	char *copy = arena_strdup(a, text, strlen(text)), *to = copy;

	for (const char *p = copy; *p; p++) {
		if (!strchr(" \t\r\n", *p))
			*to++ = *p;
		else if (to > copy && to[-1] != ' ')
			*to++ = ' ';
	}
	to -= to > copy && to[-1] == ' ';
	*to = '\0';
	return copy;
}

static int by_name(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;
	int order = strcmp(a->key, b->key);

	return order ? order : (a->index > b->index) - (a->index < b->index);
}

static bool sort_headers(const struct aws_message *m, struct arena *a, struct pair out[AWS_HEADERS])
{
	if (m->header_count > AWS_HEADERS)
		return false;
	for (size_t i = 0; i < m->header_count; i++)
		out[i] = (struct pair){ lower(m->headers[i].name, a), trim(m->headers[i].value, a), i };
	qsort(out, m->header_count, sizeof *out, by_name);
	return true;
}

static void write_headers(const struct pair *sorted, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		bool goes_on = i && strcmp(sorted[i - 1].key, sorted[i].key) == 0;
		if (i && !goes_on)
			buf_text(out, "\n");
		buf_printf(out, "%s%s%s", goes_on ? "," : sorted[i].key, goes_on ? "" : ":", sorted[i].value);
	}
	buf_text(out, "\n");
}

static void write_names(const struct pair *sorted, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++)
		if (!i || strcmp(sorted[i - 1].key, sorted[i].key) != 0)
			buf_printf(out, "%s%s", i ? ";" : "", sorted[i].key);
}

static bool write_canonical(const struct aws_message *m, struct buf *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct pair sorted[AWS_HEADERS];
	struct sha256 hash = sha256_of(m->body, m->body_len);
	char room[SHA256_TEXT];

	if (!sort_headers(m, &scratch, sorted))
		return false;
	buf_printf(out, "%s\n", m->method);
	write_path(m, out);
	buf_text(out, "\n");
	if (!write_query(m->query, &scratch, out))
		return false;
	buf_text(out, "\n");
	write_headers(sorted, m->header_count, out);
	buf_text(out, "\n");
	write_names(sorted, m->header_count, out);
	buf_printf(out, "\n%s", sha256_text(&hash, room));
	return true;
}

static void write_scope(const struct aws_scope *s, struct buf *out)
{
	char date[AWS_DATE_TEXT];

	buf_printf(out, "%.8s/%s/%s/aws4_request", aws_date_text(s->at, date), s->region, s->service);
}

bool aws_string_to_sign(const struct aws_message *m, const struct aws_scope *s, struct buf *out)
{
	CLEANUP(buf_release) struct buf canonical = { 0 };
	char date[AWS_DATE_TEXT], room[SHA256_TEXT];

	if (!write_canonical(m, &canonical))
		return false;
	struct sha256 hash = sha256_of(canonical.text, canonical.len);
	buf_printf(out, "%s\n%s\n", algorithm, aws_date_text(s->at, date));
	write_scope(s, out);
	buf_printf(out, "\n%s", sha256_text(&hash, room));
	return true;
}

static struct sha256 chain(const struct sha256 *key, const char *text)
{
	return sha256_keyed(key->bytes, sizeof key->bytes, text, strlen(text));
}

static struct sha256 signing_key(const struct aws_scope *s, const struct aws_credentials *c)
{
	CLEANUP(buf_release) struct buf first = { 0 };
	char date[AWS_DATE_TEXT];

	aws_date_text(s->at, date);
	buf_printf(&first, "AWS4%s", c->secret_access_key);
	struct sha256 key = sha256_keyed(first.text, first.len, date, 8);
	explicit_bzero(first.text, first.len);
	key = chain(&key, s->region);
	key = chain(&key, s->service);
	return chain(&key, "aws4_request");
}

bool aws_sign(const struct aws_message *m, const struct aws_scope *s, const struct aws_credentials *c, struct buf *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct pair sorted[AWS_HEADERS];
	char room[SHA256_TEXT];

	if (!aws_string_to_sign(m, s, &text) || !sort_headers(m, &scratch, sorted))
		return false;
	struct sha256 key = signing_key(s, c), signature = chain(&key, text.text);
	buf_printf(out, "%s Credential=%s/", algorithm, c->access_key_id);
	write_scope(s, out);
	buf_text(out, ", SignedHeaders=");
	write_names(sorted, m->header_count, out);
	buf_printf(out, ", Signature=%s", sha256_text(&signature, room));
	return true;
}
