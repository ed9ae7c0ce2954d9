/* How page and API refuse: {"error":{"code":403,"reason":"Forbidden","message":"..."}}, as docs/openapi.json has it. */
#pragma once
#include "base/record.h"

extern const struct record_shape refusal_shape;
/* What was in the body is gone. */
void refusal_write(int status, const char *message, struct buf *body);
