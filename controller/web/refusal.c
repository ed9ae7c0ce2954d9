#include "controller/web/refusal.h"

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 400, "BadRequest" },	    { 401, "Unauthorized" },	      { 403, "Forbidden" },
	{ 404, "NotFound" },	    { 405, "MethodNotAllowed" },      { 409, "Conflict" },
	{ 410, "Expired" },	    { 413, "RequestEntityTooLarge" }, { 415, "UnsupportedMediaType" },
	{ 429, "TooManyRequests" }, { 500, "InternalError" },	      { 503, "ServiceUnavailable" },
	{ 504, "Timeout" },
};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return status < 500 ? "BadRequest" : "InternalError";
}

struct cause {
	int64_t code;
	const char *reason, *message;
};

static const struct record_member cause_members[] = {
	{ "code", RECORD_COUNT(cause, code), .help = "the HTTP status" },
	{ "reason", RECORD_TEXT(cause, reason), .help = "in one word" },
	{ "message", RECORD_TEXT(cause, message), .help = "where, what was found, what is allowed, what to do" },
};
static const struct record_shape cause_shape = RECORD_SHAPE("Cause", cause, cause_members);

struct refusal {
	struct cause error;
};

static const struct record_member members[] = { { "error", RECORD_OBJECT(refusal, error, cause_shape),
						  .help = "why" } };
const struct record_shape refusal_shape = RECORD_SHAPE("Error", refusal, members);

void refusal_write(int status, const char *message, struct buf *body)
{
	const struct refusal r = { { status, reason_of(status), message } };

	buf_clear(body);
	record_write(&refusal_shape, &r, body);
	buf_text(body, "\n");
}
