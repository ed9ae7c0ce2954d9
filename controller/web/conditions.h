/* What each condition says of a pool. Private to this folder. */
#pragma once
#include "controller/web/status_object.h"

struct condition_text {
	enum condition_status status;
	const char *reason; /* CamelCase */
	struct buf *message;
};

/* Fills `out` in, whose message is empty. */
void condition_tell(enum condition_type type, const struct published *p, size_t pool, struct condition_text *out);
/* "2026-01-02T15:04:05Z", in quotes; null for 0. */
void status_time(millis at, struct buf *out);
