#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool(error_set)(struct error *e, enum error_kind kind, const char *fmt, ...)
{
	va_list ap;

	e->kind = kind;
	va_start(ap, fmt);
	vsnprintf(e->message, sizeof e->message, fmt, ap);
	va_end(ap);
	return false;
}

bool(error_wrap)(struct error *e, const char *fmt, ...)
{
	char inner[sizeof e->message];
	va_list ap;

	memcpy(inner, e->message, sizeof inner);
	va_start(ap, fmt);
	int n = vsnprintf(e->message, sizeof e->message, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof e->message)
		return false;
	/* Cutting a long cause short is fine; the context comes first. */
	if (snprintf(e->message + n, sizeof e->message - (size_t)n, ": %s", inner) < 0)
		e->message[n] = '\0';
	return false;
}

const char *error_kind_name(enum error_kind kind)
{
	static const char *const names[] = {
		[ERROR_NONE] = "none",
		[ERROR_STOCKOUT] = "stockout",
		[ERROR_QUOTA] = "quota",
		[ERROR_THROTTLED] = "throttled",
		[ERROR_AUTH] = "auth",
		[ERROR_NOT_FOUND] = "not-found",
		[ERROR_CONFLICT] = "conflict",
		[ERROR_INVALID] = "invalid",
		[ERROR_TIMEOUT] = "timeout",
		[ERROR_CANCELLED] = "cancelled",
		[ERROR_UNAVAILABLE] = "unavailable",
		[ERROR_INTERNAL] = "internal",
	};
	_Static_assert(sizeof names / sizeof *names == ERROR_INTERNAL + 1, "a kind without a name");

	return names[kind];
}

bool error_is_transient(const struct error *e)
{
	return e->kind == ERROR_THROTTLED || e->kind == ERROR_TIMEOUT || e->kind == ERROR_UNAVAILABLE;
}
