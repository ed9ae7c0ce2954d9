#include "controller/cluster/status.h"

#include "base/text.h"

#include <string.h>

static const struct field cause_fields[] = {
	FIELD(struct api_cause, reason, FIELD_STRING, "reason"),
	FIELD(struct api_cause, field, FIELD_STRING, "field"),
	FIELD(struct api_cause, message, FIELD_STRING, "message"),
};
static const struct record_spec cause_record = { "", sizeof(struct api_cause), cause_fields, 3 };

static const struct field status_fields[] = {
	FIELD(struct api_status, reason, FIELD_STRING, "reason"),
	FIELD(struct api_status, message, FIELD_STRING, "message"),
	FIELD(struct api_status, kind, FIELD_STRING, "details>kind"),
	FIELD(struct api_status, name, FIELD_STRING, "details>name"),
	FIELD(struct api_status, code, FIELD_INT, "code"),
	FIELD(struct api_status, retry_after_seconds, FIELD_INT, "details>retryAfterSeconds"),
	{ .path = "details>causes",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct api_status, causes),
	  .of = &cause_record },
};
const struct record_spec status_record = { "", sizeof(struct api_status), status_fields,
					   sizeof status_fields / sizeof *status_fields };

void status_read(const char *text, size_t len, struct arena *a, struct api_status *out)
{
	struct decode_plan *plan = decode_plan_new(&status_record);
	struct error e;

	if (!decode_record(plan, text, len, a, out, &e))
		*out = (struct api_status){ 0 };
	decode_plan_free(plan);
}

bool status_has_cause(const struct api_status *s, const char *reason)
{
	const struct api_cause *causes = s->causes.items;

	for (size_t i = 0; i < s->causes.count; i++)
		if (causes[i].reason && !strcmp(causes[i].reason, reason))
			return true;
	return false;
}

static enum error_kind kind_of(long code)
{
	switch (code) {
	case 401:
	case 403:
		return ERROR_AUTH;
	case 404:
	case 410:
		return ERROR_NOT_FOUND;
	case 409:
		return ERROR_CONFLICT;
	case 429:
		return ERROR_THROTTLED;
	case 408:
	case 504:
		return ERROR_TIMEOUT;
	default:
		return code >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
	}
}

bool status_error(const struct api_status *s, long code, const char *call, struct error *e)
{
	const char *remedy = "";

	if (code == 401)
		remedy = "; the credentials are not accepted: renew them";
	else if (code == 403)
		remedy = "; give this identity the permission (deploy/base/rbac.yaml has all that Preheat needs)";
	return error_set(e, kind_of(code), "%s: %ld %.250s%s", call, code,
			 s->message && *s->message ? s->message : "without a reason", remedy);
}
