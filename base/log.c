#include "base/log.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct log_setup setup = { .least = LEVEL_INFO };

static const char *const level_names[] = { "debug", "info", "warn", "error" };
static const char *const level_colors[] = { "\033[2m", "\033[36m", "\033[33m", "\033[31m" };

/* Compared without case, dashes and underscores. */
static const char *const secret_words[] = { "token",  "authorization", "password",   "secret",
					    "cookie", "bearer",	       "privatekey", "credential" };

/* A name about a secret that is none itself. */
static const char *const harmless_ends[] = { "file", "path", "name", "count", "age", "expires", "kind" };

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);

	return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* "token" but not "tokens", of which models speak. */
static bool has_secret_word(const char *plain)
{
	for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++) {
		const char *at = strstr(plain, secret_words[i]);
		bool is_tokens = at && strncmp(at, "tokens", 6) == 0;
		if (at && !is_tokens)
			return true;
	}
	return false;
}

static bool is_secret(const char *key)
{
	char plain[64];
	size_t n = 0;

	for (; *key && n + 1 < sizeof plain; key++)
		if (*key != '-' && *key != '_')
			plain[n++] = (char)(*key >= 'A' && *key <= 'Z' ? *key - 'A' + 'a' : *key);
	plain[n] = '\0';
	for (size_t i = 0; i < sizeof harmless_ends / sizeof *harmless_ends; i++)
		if (ends_with(plain, harmless_ends[i]))
			return false;
	return has_secret_word(plain);
}

/* Whatever a peer sent must not break the line: neither what is no UTF-8, nor the C1 controls that terminals obey. */
static void clean(const char *text, struct buf *out)
{
	const char *end = text + strlen(text);

	while (text < end) {
		bool is_control = *text == '\xc2' && (unsigned char)text[1] < 0xa0;
		size_t n = is_control ? 0 : utf8_length(text, end);
		if (out->len + (n ? n : 3) > LOG_LONGEST_TEXT) {
			buf_text(out, "...");
			return;
		}
		if (n)
			buf_append(out, text, n);
		else
			buf_text(out, "\xef\xbf\xbd");
		text += n ? n : 1;
	}
}

static bool needs_quotes(const char *text)
{
	if (!*text)
		return true;
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || strchr("\"=\\\177", *text))
			return true;
	return false;
}

static void add_text(const char *key, const char *text, struct buf *line)
{
	CLEANUP(buf_release) struct buf kept = { 0 };

	clean(text, &kept);
	const char *shown = kept.text ? kept.text : "";
	if (setup.is_human)
		buf_printf(line, " %s=", key);
	else
		buf_printf(line, ",\"%s\":", key);
	if (!setup.is_human || needs_quotes(shown))
		json_write_text(shown, line);
	else
		buf_text(line, shown);
}

static void add_plain(const char *key, const char *value, struct buf *line)
{
	buf_printf(line, setup.is_human ? " %s=%s" : ",\"%s\":%s", key, value);
}

static void add_failure(const struct error *e, struct buf *line)
{
	add_text("error", e->message, line);
	add_text("kind", error_kind_name(e->kind), line);
}

static void add_field(const struct log_field *f, struct buf *line)
{
	char number[24];

	if (is_secret(f->key)) {
		add_text(f->key, "(not shown)", line);
		return;
	}
	switch (f->type) {
	case LOG_NOTHING:
		return;
	case LOG_TEXT:
		if (f->text)
			add_text(f->key, f->text, line);
		else
			add_plain(f->key, "null", line);
		return;
	case LOG_INTEGER:
		snprintf(number, sizeof number, "%" PRId64, f->integer);
		add_plain(f->key, number, line);
		return;
	case LOG_BOOLEAN:
		add_plain(f->key, f->integer ? "true" : "false", line);
		return;
	case LOG_FAILURE:
		add_failure(f->failure, line);
		return;
	}
}

/* False once the line is full. */
static bool add_field_that_fits(const struct log_field *f, struct buf *line)
{
	size_t before = line->len;

	add_field(f, line);
	if (line->len + sizeof ",\"cut\":true}" <= LOG_LONGEST)
		return true;
	line->len = before;
	add_plain("cut", "true", line);
	return false;
}

static void add_start(enum log_level level, const char *event, struct buf *line)
{
	const struct clock machine = clock_open();
	millis now = clock_now(setup.clock ? setup.clock : &machine);
	time_t seconds = (time_t)(now / SECOND);
	const char *name = level_names[level];
	struct tm t;
	char day[32], time_of_day[16];

	gmtime_r(&seconds, &t);
	strftime(day, sizeof day, "%Y-%m-%d", &t);
	strftime(time_of_day, sizeof time_of_day, "%H:%M:%S", &t);
	if (!setup.is_human)
		buf_printf(line, "{\"ts\":\"%sT%s.%03dZ\",\"level\":\"%s\",\"event\":\"%s\"", day, time_of_day,
			   (int)(now % SECOND), name, event);
	else if (setup.has_color)
		buf_printf(line, "%s %s%s\033[0m %s", time_of_day, level_colors[level], name, event);
	else
		buf_printf(line, "%s %s %s", time_of_day, name, event);
}

void log_fields(enum log_level level, const char *event, const struct log_field *fields)
{
	static struct buf line; /* kept, so that a line costs no allocation */

	if (level < setup.least)
		return;
	buf_clear(&line);
	add_start(level, event, &line);
	for (const struct log_field *f = fields; f->type != LOG_NOTHING; f++)
		if (!add_field_that_fits(f, &line))
			break;
	if (!setup.is_human)
		buf_text(&line, "}");
	if (setup.write) {
		setup.write(setup.user, level, line.text);
	} else {
		/* In one piece, since several processes may share the stream; what cannot be written is lost. */
		buf_text(&line, "\n");
		file_write_all(STDERR_FILENO, line.text, line.len);
	}
}

void log_set_up(const struct log_setup *s)
{
	setup = *s;
}

void log_level_set(enum log_level least)
{
	setup.least = least;
}

bool log_level_parse(const char *text, enum log_level *out)
{
	for (int i = LEVEL_DEBUG; i <= LEVEL_ERROR; i++) {
		if (strcmp(text, level_names[i]) != 0)
			continue;
		*out = (enum log_level)i;
		return true;
	}
	return false;
}
