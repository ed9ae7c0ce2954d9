#include "base/uri.h"

#include <string.h>

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
