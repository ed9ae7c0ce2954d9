/* How page and API refuse: {"error":{"code":403,"reason":"Forbidden","message":"..."}}, as docs/openapi.json has it. */
#pragma once
#include "base/net/server.h"

/* "Forbidden" for 403; one word, as the API server has them. */
const char *refusal_reason(int status);
/* The status, the type and the body; what was in the body is gone. */
void refusal_write(struct server_answer *a, int status, const char *message);
/* The same with the status that stands in it: for server_settings. */
void refusal_of_server(struct server_answer *a, const char *message);
