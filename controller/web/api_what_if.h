/* The body of a what-if. */
#pragma once
#include "controller/web/api_parts.h"
#include "controller/web/what_if.h"

/* As it was sent; NULL: not there. Numbers as they stand in the text. */
struct what_if_body {
	const char *pool, *queue_wait, *attainment, *violation_cost, *budget, *max, *from, *to;
};

/* ERROR_INVALID says where, what was found, what is allowed. Texts live in the arena. */
bool what_if_body_read(const char *text, size_t len, struct arena *a, struct what_if_body *out,
		       struct error *e) MUST_USE;
