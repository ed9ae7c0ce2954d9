#include "signals/http_auth.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_SECRET = (size_t)64 << 10;

struct http_auth {
	struct arena arena;
	struct http_auth_settings settings;
	struct buf url; /* as it may be shown */
	struct http_tls tls;
	bool has_tls;
};

static const char *copy(struct http_auth *a, const char *text)
{
	return text ? arena_strdup(&a->arena, text, strlen(text)) : NULL;
}

struct http_auth *http_auth_open(const char *url, const struct http_auth_settings *s)
{
	struct http_auth *a = xcalloc(1, sizeof *a);

	uri_show(url, &a->url);
	a->settings.bearer_token_file = copy(a, s->bearer_token_file);
	a->settings.username = copy(a, s->username);
	a->settings.password_file = copy(a, s->password_file);
	a->tls.ca_file = copy(a, s->ca_file);
	a->tls.cert_file = copy(a, s->cert_file);
	a->tls.key_file = copy(a, s->key_file);
	a->tls.server_name = copy(a, s->server_name);
	a->tls.is_insecure = s->is_insecure;
	a->has_tls = s->ca_file || s->cert_file || s->key_file || s->server_name || s->is_insecure;
	return a;
}

void http_auth_close(struct http_auth *a)
{
	if (!a)
		return;
	arena_release(&a->arena);
	buf_release(&a->url);
	free(a);
}

const char *http_auth_url(const struct http_auth *a)
{
	return a->url.text;
}

/* What stands on the first line; anything else in it would be a header of its own. */
static bool read_secret(const char *path, struct buf *out, struct error *e)
{
	if (!file_read(path, MOST_SECRET, out, e)) {
		e->kind = ERROR_AUTH;
		return false;
	}
	while (out->len && strchr(" \t\r\n", out->text[out->len - 1]))
		out->text[--out->len] = '\0';
	if (!out->len)
		return error_set(e, ERROR_AUTH, "%s: found nothing; allowed: a secret on one line", path);
	for (size_t i = 0; i < out->len; i++)
		if ((unsigned char)out->text[i] < ' ' || out->text[i] == 127)
			return error_set(e, ERROR_AUTH, "%s: found a control character; allowed: a secret on one line",
					 path);
	return true;
}

static bool authorize(const struct http_auth *a, struct buf *out, struct error *e)
{
	CLEANUP(buf_release) struct buf secret = { 0 };
	CLEANUP(buf_release) struct buf pair = { 0 };
	const struct http_auth_settings *s = &a->settings;

	if (!read_secret(s->username ? s->password_file : s->bearer_token_file, &secret, e))
		return false;
	if (!s->username) {
		buf_printf(out, "Authorization: Bearer %s", secret.text);
		return true;
	}
	buf_printf(&pair, "%s:%s", s->username, secret.text);
	buf_text(out, "Authorization: Basic ");
	base64_write(pair.text, pair.len, out);
	return true;
}

bool http_auth_show(const struct http_auth *a, const char *accept, struct http_request *r, struct http_auth_shown *s,
		    struct error *e)
{
	bool has_secret = a->settings.bearer_token_file || (a->settings.username && a->settings.password_file);

	buf_clear(&s->authorization);
	if (has_secret && !authorize(a, &s->authorization, e))
		return false;
	s->headers[0] = accept;
	s->headers[1] = has_secret ? s->authorization.text : NULL;
	r->headers = s->headers;
	r->tls = a->has_tls ? &a->tls : NULL;
	return true;
}

void http_auth_shown_release(struct http_auth_shown *s)
{
	buf_release(&s->authorization);
}
