/*
 * What the controller tells whoever runs it: one line per event on standard
 * error, JSON or for people. The only state of the program that is shared.
 *
 *	log_info("launch-asked", LOG_S("group", g), LOG_I("count", n), LOG_END);
 *	{"ts":"2025-11-20T08:15:04.250Z","level":"info","event":"launch-asked","group":"g5","count":2}
 *
 * An event is a name in kebab-case that stays the same for ever; what varies
 * is a field. A failure is logged once, by whoever decides what follows.
 * The value of a field whose key names a secret (token, authorization,
 * password, secret, cookie, private key) is never written; a name about one
 * (tokenFile, secretName) is, and so are tokens, of which models speak.
 */
#pragma once
#include "base/clock.h"
#include "base/error.h"

#include <stddef.h>

enum log_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };

enum log_type { LOG_NOTHING, LOG_TEXT, LOG_INTEGER, LOG_BOOLEAN, LOG_FAILURE };

struct log_field {
	enum log_type type;
	const char *key;
	const char *text; /* NULL is written as null */
	int64_t integer;
	const struct error *failure; /* becomes "error" and "kind" */
};

#define LOG_S(name, value) ((struct log_field){ .type = LOG_TEXT, .key = (name), .text = (value) })
#define LOG_I(name, value) ((struct log_field){ .type = LOG_INTEGER, .key = (name), .integer = (value) })
#define LOG_B(name, value) ((struct log_field){ .type = LOG_BOOLEAN, .key = (name), .integer = (value) ? 1 : 0 })
#define LOG_E(error)	   ((struct log_field){ .type = LOG_FAILURE, .key = "error", .failure = (error) })
#define LOG_END		   ((struct log_field){ .type = LOG_NOTHING })

#define log_debug(event, ...) log_fields(LEVEL_DEBUG, event, (const struct log_field[]){ __VA_ARGS__ })
#define log_info(event, ...)  log_fields(LEVEL_INFO, event, (const struct log_field[]){ __VA_ARGS__ })
#define log_warn(event, ...)  log_fields(LEVEL_WARN, event, (const struct log_field[]){ __VA_ARGS__ })
#define log_error(event, ...) log_fields(LEVEL_ERROR, event, (const struct log_field[]){ __VA_ARGS__ })

/*
 * `fields` ends with LOG_END. A text is cut after LOG_LONGEST_TEXT bytes and then ends in "..."; fields that do not fit
 * into a line of LOG_LONGEST bytes are left out, and "cut":true says so.
 */
#define LOG_LONGEST_TEXT 1024
#define LOG_LONGEST	 8192
void log_fields(enum log_level level, const char *event, const struct log_field *fields);

struct log_setup {
	enum log_level least;	   /* what is below is not written */
	bool is_human;		   /* "15:04:05 info launch-asked group=g5 count=2" (UTC) in place of JSON */
	bool has_color;		   /* only with is_human */
	const struct clock *clock; /* NULL: the machine's time */
	/* Takes each line, without its end, in place of standard error; for tests. */
	void (*write)(void *user, enum log_level level, const char *line);
	void *user;
};

/* Until it is called: LEVEL_INFO, JSON, standard error. */
void log_set_up(const struct log_setup *s);
void log_level_set(enum log_level least);
/* "debug", "info", "warn", "error"; false for any other text. */
bool log_level_parse(const char *text, enum log_level *out) MUST_USE;
