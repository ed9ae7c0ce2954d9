/*
 * The settings of a rival as one text, "target=0.8,window=300", read by
 * table: one row a key with its documented default and what is allowed.
 * Times are seconds, shares are fractions of 1.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

enum { SETTINGS_MAX = 8 };

struct setting_row {
	const char *key;
	double fallback, least, most;
	const char *help; /* unit and meaning, "s; how long ..." */
};

/* What a rival keeps stopped, beside its own sizing: pool=static:N or pool=total:N, in replicas. */
enum stock_kind { STOCK_NONE, STOCK_STATIC, STOCK_TOTAL };

struct settings {
	double values[SETTINGS_MAX]; /* in the order of the rows */
	enum stock_kind stock;
	double stock_size;
	bool uses_lent; /* lent=1: takes lent nodes first and gives them back first */
};

/* Unknown keys, keys given twice and values out of range are errors that say what is allowed.
 * `who` names the rival in them. */
bool settings_parse(const char *who, const char *text, const struct setting_row *rows, size_t count,
		    struct settings *out, struct error *e) MUST_USE;
