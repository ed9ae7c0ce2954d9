#include "controller/web/refusal.h"

#include "base/json.h"

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

const char *refusal_reason(int status)
{
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return status < 500 ? "BadRequest" : "InternalError";
}

void refusal_write(struct server_answer *a, int status, const char *message)
{
	a->status = status;
	a->content_type = "application/json";
	buf_clear(&a->body);
	buf_printf(&a->body, "{\"error\":{\"code\":%d,\"reason\":\"%s\",\"message\":", status, refusal_reason(status));
	json_write_text(message, &a->body);
	buf_text(&a->body, "}}\n");
}

void refusal_of_server(struct server_answer *a, const char *message)
{
	refusal_write(a, a->status, message);
}
