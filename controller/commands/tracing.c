#include "controller/commands/tracing.h"

#include "base/log.h"
#include "base/text.h"
#include "controller/commands/access.h"
#include "controller/commands/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS_MOST = 32 };
static const millis LAST_WORDS = 2 * SECOND;

/* The variable of traces alone goes before the one of all signals. */
static const char *variable(const char *kind)
{
	char name[80];
	const char *value;

	snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_TRACES_%s", kind);
	value = access_variable(name);
	if (value)
		return value;
	snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s", kind);
	return access_variable(name);
}

static bool is_off(void)
{
	const char *disabled = access_variable("OTEL_SDK_DISABLED"),
		   *exporter = access_variable("OTEL_TRACES_EXPORTER");

	return (disabled && !strcmp(disabled, "true")) || (exporter && !strcmp(exporter, "none"));
}

/* The endpoint of all signals is a base; that of traces is taken as it is. */
static const char *endpoint(struct arena *a)
{
	const char *own = access_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	const char *base = access_variable("OTEL_EXPORTER_OTLP_ENDPOINT");
	char url[1024];

	if (own || !base)
		return own;
	snprintf(url, sizeof url, "%s%sv1/traces", base, base[strlen(base) - 1] == '/' ? "" : "/");
	return arena_strdup(a, url, strlen(url));
}

static int hex(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* Percent-decodes in place, as W3C Baggage writes values. */
static void decode_percent(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (*text == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			*out++ = (char)(hex(text[1]) * 16 + hex(text[2]));
			text += 2;
		} else {
			*out++ = *text;
		}
	}
	*out = '\0';
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

/* "key=value,key=value" as "keySEPARATORvalue"s. A value is never shown: it may be a secret. */
static bool read_pairs(const char *name, const char *text, const char *separator, struct arena *a, const char **out,
		       struct error *e)
{
	size_t count = 0;

	while (text && *text) {
		size_t len = strcspn(text, ",");
		const char *equal = memchr(text, '=', len);
		if (!equal || equal == text || count == PAIRS_MOST)
			return error_set(e, ERROR_INVALID,
					 "%s: item %zu is no key=value; allowed: at most %d, joined by commas", name,
					 count + 1, PAIRS_MOST);
		char *value = arena_strdup(a, equal + 1, len - (size_t)(equal + 1 - text));
		decode_percent(value);
		size_t room = len + strlen(separator) + 2;
		char *pair = arena_alloc(a, room, 1);
		snprintf(pair, room, "%.*s%s%s", (int)(equal - text), text, separator, value);
		if (!is_printable(pair))
			return error_set(e, ERROR_INVALID, "%s: item %zu holds control characters", name, count + 1);
		out[count++] = pair;
		text += len;
		text += *text == ',';
	}
	out[count] = NULL;
	return true;
}

static bool check_protocol(struct error *e)
{
	const char *protocol = variable("PROTOCOL");

	if (!protocol || !strcmp(protocol, "http/json"))
		return true;
	return error_set(
		e, ERROR_INVALID,
		"OTEL_EXPORTER_OTLP_PROTOCOL: found '%.40s'; allowed: http/json; do: name the collector's HTTP "
		"endpoint, usually port 4318",
		protocol);
}

bool tracing_open(struct tracing *t, struct loop *loop, struct http *http, const char *instance, struct error *e)
{
	const char *url = endpoint(&t->arena), *service = access_variable("OTEL_SERVICE_NAME");
	const char *headers[PAIRS_MOST + 1], *resource[PAIRS_MOST + 1];
	struct clock wall = clock_open();

	if (!url || is_off())
		return true;
	if (!check_protocol(e) ||
	    !read_pairs("OTEL_EXPORTER_OTLP_HEADERS", variable("HEADERS"), ": ", &t->arena, headers, e) ||
	    !read_pairs("OTEL_RESOURCE_ATTRIBUTES", access_variable("OTEL_RESOURCE_ATTRIBUTES"), "=", &t->arena,
			resource, e))
		return false;
	t->tls = (struct http_tls){ .ca_file = variable("CERTIFICATE"),
				    .cert_file = variable("CLIENT_CERTIFICATE"),
				    .key_file = variable("CLIENT_KEY") };
	t->otlp = otlp_open(loop, http,
			    &(struct otlp_settings){ .url = url,
						     .headers = headers,
						     .tls = &t->tls,
						     .service = service ? service : "preheat",
						     .version = command_version_text() + strlen("preheat "),
						     .instance = instance,
						     .resource = resource,
						     .seed = (uint64_t)clock_now(&wall) },
			    e);
	CLEANUP(buf_release) struct buf shown = { 0 };
	uri_show(url, &shown);
	if (t->otlp)
		log_info("tracing", LOG_S("url", shown.text), LOG_END);
	return t->otlp != NULL;
}

static void give_up(struct timer *t)
{
	*(bool *)t->user = true;
}

void tracing_close(struct tracing *t, struct loop *loop)
{
	bool is_over = false;
	struct timer timer = { .user = &is_over };

	if (t->otlp) {
		otlp_flush(t->otlp);
		timer_start(loop, &timer, LAST_WORDS, give_up);
		while (!otlp_is_idle(t->otlp) && !is_over && loop_once(loop))
			;
		timer_stop(&timer);
		otlp_close(t->otlp);
	}
	arena_release(&t->arena);
	*t = (struct tracing){ 0 };
}
