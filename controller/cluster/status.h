/* What the API server says when it refuses: a Status object, and the error that it means to us. */
#pragma once
#include "base/decode.h"
#include "base/millis.h"

struct api_cause {
	const char *reason; /* "DisruptionBudget", "FieldValueInvalid" */
	const char *field, *message;
};

struct api_status {
	const char *reason; /* "Expired", "Forbidden", "AlreadyExists"; NULL when the answer was no Status */
	const char *message;
	const char *kind, *name; /* of the object it is about */
	int64_t code;
	int64_t retry_after_seconds;
	struct decoded_list causes; /* of struct api_cause */
};

extern const struct record_spec status_record;

/* Texts live in the arena. An answer that is no Status leaves `out` empty. */
void status_read(const char *text, size_t len, struct arena *a, struct api_status *out);
bool status_has_cause(const struct api_status *s, const char *reason);
/*
 * 401 403 AUTH, 404 NOT_FOUND, 409 CONFLICT, 410 NOT_FOUND, 422 and other 4xx INVALID, 429 THROTTLED, 504 TIMEOUT,
 * 5xx UNAVAILABLE. The message is the server's own, with method and path before it.
 */
bool status_error(const struct api_status *s, long code, const char *call, struct error *e);
