#include "controller/loop/pod_template.h"

#include "controller/loop/controller_state.h"

#include <string.h>

static const struct field container_fields[] = {
	FIELD(struct template_container, image, FIELD_STRING, "image"),
	FIELD(struct template_container, pull_policy, FIELD_STRING, "imagePullPolicy"),
	FIELD(struct template_container, limits, FIELD_MAP, "resources>limits"),
};

static const struct record_spec container_record = { "", sizeof(struct template_container), container_fields,
						     sizeof container_fields / sizeof *container_fields };

#define POD "spec>template>spec>"

static const struct field template_fields[] = {
	{ .path = POD "containers",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct pod_template, containers),
	  .required = true,
	  .of = &container_record },
	{ .path = POD "initContainers",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct pod_template, init_containers),
	  .of = &container_record },
	FIELD(struct pod_template, node_selector, FIELD_RAW, POD "nodeSelector"),
	FIELD(struct pod_template, tolerations, FIELD_RAW, POD "tolerations"),
	FIELD(struct pod_template, affinity, FIELD_RAW, POD "affinity"),
	FIELD(struct pod_template, pull_secrets, FIELD_RAW, POD "imagePullSecrets"),
	FIELD(struct pod_template, runtime_class, FIELD_RAW, POD "runtimeClassName"),
	FIELD(struct pod_template, service_account, FIELD_RAW, POD "serviceAccountName"),
};

static const struct record_spec template_record = { "", sizeof(struct pod_template), template_fields,
						    sizeof template_fields / sizeof *template_fields };

void pod_template_get(struct controller *c, size_t pool, struct object_call *call,
		      void (*done)(struct object_call *call), void *user)
{
	const struct target_text *t = &c->manifest.pools[pool].spec.workload.target;

	*call = (struct object_call){ .verb = OBJECT_GET,
				      .object = { .api_version = t->api_version,
						  .plural = strcmp(t->kind, "StatefulSet") ? "deployments"
											   : "statefulsets",
						  .name_space = fleet_of(c)->pools[pool].namespace,
						  .name = t->name },
				      .done = done,
				      .user = user };
	object_start(c->api, call);
}

bool pod_template_read(const struct object_call *call, struct arena *a, struct pod_template *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&template_record);
	bool ok = decode_record(plan, call->response, call->response_len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

void pod_template_write(const char *key, const struct decoded_text *value, struct buf *out)
{
	if (!value->text)
		return;
	buf_printf(out, ",\"%s\":", key);
	buf_append(out, value->text, value->len);
}
