#include "controller/cluster/verbs_body.h"

#include <string.h>

const char *eviction_result_name(enum eviction_result r)
{
	switch (r) {
	case EVICTION_DONE:
		return "evicted";
	case EVICTION_GONE:
		return "gone";
	case EVICTION_BUDGET:
		return "blocked-by-budget";
	case EVICTION_THROTTLED:
		return "throttled";
	case EVICTION_MISCONFIGURED:
		return "misconfigured";
	case EVICTION_REFUSED:
		return "refused";
	case EVICTION_FAILED:
		return "failed";
	}
	return "";
}

static enum eviction_result result_of(const struct eviction *v, const struct api_call *c)
{
	const char *message = c->answer.message ? c->answer.message : "";

	if (c->error.kind == ERROR_NONE)
		return EVICTION_DONE;
	if (c->status == 404 || (c->status == 409 && v->uid && strstr(message, "UID")))
		return EVICTION_GONE;
	if (c->status == 429)
		return status_has_cause(&c->answer, "DisruptionBudget") ? EVICTION_BUDGET : EVICTION_THROTTLED;
	if (c->status == 500 && strstr(message, "more than one PodDisruptionBudget"))
		return EVICTION_MISCONFIGURED;
	return c->error.kind == ERROR_AUTH ? EVICTION_REFUSED : EVICTION_FAILED;
}

static void answered(struct api_call *c)
{
	struct eviction *v = c->user;

	v->result = result_of(v, c);
	v->error = c->error;
	if (v->result == EVICTION_DONE || v->result == EVICTION_GONE)
		v->error = (struct error){ 0 };
	v->retry_after = c->retry_after;
	buf_release(&v->path);
	buf_release(&v->body);
	v->done(v);
}

static void write_eviction(struct eviction *v)
{
	struct buf *out = &v->body;

	buf_clear(out);
	buf_text(out, "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{");
	verbs_member("name", v->pod, out);
	verbs_member("namespace", v->name_space, out);
	buf_text(out, "},\"deleteOptions\":{");
	if (v->uid) {
		buf_text(out, "\"preconditions\":{");
		verbs_member("uid", v->uid, out);
		buf_text(out, "}");
	}
	if (v->grace_seconds >= 0)
		buf_printf(out, "%s\"gracePeriodSeconds\":%lld", v->uid ? "," : "", (long long)v->grace_seconds);
	if (v->is_dry_run)
		buf_printf(out, "%s\"dryRun\":[\"All\"]", v->uid || v->grace_seconds >= 0 ? "," : "");
	buf_text(out, "}}");
}

void eviction_start(struct api *a, struct eviction *v)
{
	buf_clear(&v->path);
	api_object_path(&(struct api_object){ .api_version = "v1",
					      .plural = "pods",
					      .name_space = v->name_space,
					      .name = v->pod,
					      .subresource = "eviction" },
			&v->path);
	write_eviction(v);
	v->call = (struct api_call){ .method = "POST",
				     .path = v->path.text,
				     .body = v->body.text,
				     .effect = API_WRITE,
				     .done = answered,
				     .user = v };
	api_start(a, &v->call);
}
