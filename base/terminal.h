/*
 * What a stream can show, and a progress line. Colour appears only on a
 * terminal and never as the only sign; NO_COLOR and TERM=dumb turn it off.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct terminal {
	bool is_terminal;
	bool has_color;
	bool is_unicode; /* block characters may be used */
	int width;	 /* columns; 100 when it is no terminal */
};

enum style { STYLE_PLAIN, STYLE_STRONG, STYLE_FAINT, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_FIRST, STYLE_SECOND };

struct terminal terminal_of(FILE *stream);
/* Escape sequence that switches a style on (STYLE_PLAIN: everything off); "" without colour. */
const char *terminal_style(const struct terminal *t, enum style style);

/* One line on standard error that rewrites itself; nothing at all when that is no terminal. */
struct progress {
	const char *what; /* "simulating" */
	const char *unit; /* "ticks" */
	int64_t total;	  /* 0: unknown */
	int64_t started_ms, shown_ms;
	bool is_on;
};

struct progress progress_start(const char *what, const char *unit, int64_t total);
void progress_show(struct progress *p, int64_t done); /* cheap: draws at most ten times a second */
void progress_end(struct progress *p);		      /* wipes the line */
