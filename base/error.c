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

/* No default: a new kind must be given a name and a class here to compile. */
const char *error_kind_name(enum error_kind kind)
{
	switch (kind) {
	case ERROR_NONE:
		return "none";
	case ERROR_STOCKOUT:
		return "stockout";
	case ERROR_QUOTA:
		return "quota";
	case ERROR_THROTTLED:
		return "throttled";
	case ERROR_AUTH:
		return "auth";
	case ERROR_NOT_FOUND:
		return "not-found";
	case ERROR_CONFLICT:
		return "conflict";
	case ERROR_INVALID:
		return "invalid";
	case ERROR_TIMEOUT:
		return "timeout";
	case ERROR_UNAVAILABLE:
		return "unavailable";
	case ERROR_CANCELLED:
		return "cancelled";
	case ERROR_INTERNAL:
		return "internal";
	}
	return "?";
}

bool error_is_transient(const struct error *e)
{
	switch (e->kind) {
	case ERROR_THROTTLED:
	case ERROR_TIMEOUT:
	case ERROR_UNAVAILABLE:
		return true;
	case ERROR_NONE:
	case ERROR_STOCKOUT:
	case ERROR_QUOTA:
	case ERROR_AUTH:
	case ERROR_NOT_FOUND:
	case ERROR_CONFLICT:
	case ERROR_INVALID:
	case ERROR_CANCELLED:
	case ERROR_INTERNAL:
		return false;
	}
	return false;
}
