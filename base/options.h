/*
 * Command-line options by table (getopt_long underneath): one row parses,
 * checks, and prints the help of an option.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/millis.h"

#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_FLAG,	 /* bool *    : no argument */
	OPTION_TEXT,	 /* const char ** */
	OPTION_LIST,	 /* struct option_list * : may be given several times */
	OPTION_COUNT,	 /* int64_t * : whole number >= 0 */
	OPTION_POSITIVE, /* int64_t * : whole number >= 1 */
	OPTION_NUMBER,	 /* double *  : decimal number > 0 */
	OPTION_DURATION, /* millis *  : "15s", "1h30m" */
	OPTION_PERIOD,	 /* millis *  : a duration above 0; 0 is what stands for "not given" */
	OPTION_TIME,	 /* millis *  : RFC 3339; never relative, so that the clock decides nothing */
	OPTION_CHOICE,	 /* const char ** : one of `choices` */
};

struct option_list {
	const char **items; /* in the order given; points into argv */
	size_t count, room;
};

struct option_row {
	const char *name; /* "output": --output */
	char letter;	  /* 'o', or 0 */
	enum option_type type;
	const char *argument; /* "FILE", NULL for a flag */
	const char *help;
	void *target;	     /* holds the default before, the value after */
	const char *choices; /* "table|json|csv" for OPTION_CHOICE */
};

/* An option that has an effect only beside another, or none beside it. */
struct option_rule {
	const char *option;
	enum { OPTION_NEEDS, OPTION_EXCLUDES } how;
	const char *other;
};

struct option_table {
	const struct option_row *rows;
	size_t count;
	const struct option_rule *rules; /* ends in one without an option; NULL: none */
};

/* Fills the targets; *rest is the index of the first argument that is no option (getopt permutes).
 * An unknown option, a bad value or one that would have no effect is an error that names the option, what was found,
 * what is allowed. */
bool options_parse(int argc, char **argv, const struct option_table *t, int *rest, struct error *e) MUST_USE;
/* A time as OPTION_TIME has it, or "now", or "-2h": what is relative counts from `now`. False leaves the value
 * untouched. */
bool options_time(const char *text, millis now, millis *value) MUST_USE;

/* "-o, --output FORMAT"; without a letter four blanks stand in its place. */
void option_write_name(const struct option_row *row, struct buf *out);
/* Help, default and choices, as one sentence without a full stop. */
void option_write_help(const struct option_row *row, struct buf *out);
/* The aligned list for --help, on standard output, wrapped at the terminal's width. */
void options_print(const struct option_row *rows, size_t count);
