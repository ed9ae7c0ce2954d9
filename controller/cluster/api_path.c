#include "controller/cluster/api.h"

#include "base/uri.h"

#include <string.h>
#include <time.h>

static void add_part(struct buf *out, const char *part)
{
	if (!part)
		return;
	buf_text(out, "/");
	uri_segment(part, out);
}

void api_object_path(const struct api_object *o, struct buf *out)
{
	bool is_core = !strchr(o->api_version, '/');

	buf_printf(out, "%s/%s", is_core ? "/api" : "/apis", o->api_version);
	if (o->name_space) {
		buf_text(out, "/namespaces");
		add_part(out, o->name_space);
	}
	add_part(out, o->plural);
	add_part(out, o->name);
	add_part(out, o->subresource);
}

void api_query(struct buf *url, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(url, "%c%s=", url->text && strchr(url->text, '?') ? '&' : '?', name);
	uri_escape(value, strlen(value), "", url);
}

void api_time(millis at, struct buf *out)
{
	time_t seconds = (time_t)(at / SECOND);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(out, "%s.%03d000Z", text, (int)(at % SECOND));
}
