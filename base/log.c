#include "base/log.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_write.h"

#include <errno.h>
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

/* Length of the UTF-8 character that starts here; 0 when it is none, or one of those that terminals obey. */
static size_t character(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : 4;

	if (s[0] >= 0xf5 || (s[0] >= 0x80 && s[0] < 0xc2))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	bool is_long_form = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
	bool is_no_character = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
	bool is_control = s[0] == 0xc2 && s[1] < 0xa0;
	return is_long_form || is_no_character || is_control ? 0 : n;
}

/* Whatever a peer sent must not break the line. */
static void clean(const char *text, struct buf *out)
{
	while (*text) {
		size_t n = character((const unsigned char *)text);
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

/* Whole lines, also when several processes share the stream; what cannot be written is lost. */
static void write_line(struct buf *line)
{
	buf_text(line, "\n");
	for (size_t at = 0; at < line->len;) {
		ssize_t n = write(STDERR_FILENO, line->text + at, line->len - at);
		if (n < 0 && errno != EINTR)
			return;
		at += n > 0 ? (size_t)n : 0;
	}
}

void log_fields(enum log_level level, const char *event, const struct log_field *fields)
{
	static struct buf line; /* kept, so that a line costs no allocation */

	if (!log_is_on(level))
		return;
	buf_clear(&line);
	add_start(level, event, &line);
	for (const struct log_field *f = fields; f->type != LOG_NOTHING; f++)
		if (!add_field_that_fits(f, &line))
			break;
	if (!setup.is_human)
		buf_text(&line, "}");
	if (setup.write)
		setup.write(setup.user, level, line.text);
	else
		write_line(&line);
}

void log_set_up(const struct log_setup *s)
{
	setup = *s;
}

void log_level_set(enum log_level least)
{
	setup.least = least;
}

bool log_is_on(enum log_level level)
{
	return level >= setup.least;
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

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}
