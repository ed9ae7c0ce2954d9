#include "controller/cluster/scale_owner.h"

#include "base/decode.h"

#include <string.h>

/* KServe's controller is called by the name of its program, and marks what it makes. */
static const char KSERVE_MANAGER[] = "manager", HPA_MANAGER[] = "kube-controller-manager";
#define KSERVE_LABEL "serving.kserve.io/inferenceservice"
/* What it makes for an LLMInferenceService is a part of that; the label beside it has the name. KEDA copies labels. */
static const char LLM_PART[] = "llminferenceservice";
#define KEDA_LABEL "scaledobject.keda.sh/name"

struct writer_record {
	const char *name;
	millis at;
	struct decoded_text replicas; /* set, so that it wrote them */
};

static const struct field writer_fields[] = {
	FIELD(struct writer_record, name, FIELD_STRING, "manager"),
	FIELD(struct writer_record, at, FIELD_TIME, "time"),
	FIELD(struct writer_record, replicas, FIELD_RAW, "fieldsV1>f:spec>f:replicas"),
};
static const struct record_spec writer_record = { "", sizeof(struct writer_record), writer_fields, 3 };

struct target_record {
	struct decoded_list writers;
	const char *service, *part_of, *app;
	int64_t replicas;
};

static const struct field target_fields[] = {
	{ .path = "metadata>managedFields",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct target_record, writers),
	  .of = &writer_record },
	FIELD(struct target_record, service, FIELD_STRING, "metadata>labels>" KSERVE_LABEL),
	FIELD(struct target_record, part_of, FIELD_STRING, "metadata>labels>app.kubernetes.io/part-of"),
	FIELD(struct target_record, app, FIELD_STRING, "metadata>labels>app.kubernetes.io/name"),
	FIELD(struct target_record, replicas, FIELD_INT, "spec>replicas"),
};
static const struct record_spec target_record = { "", sizeof(struct target_record), target_fields, 5 };

struct autoscaler_record {
	const char *name, *kind, *target, *scaled_object, *service, *part_of;
};

static const struct field autoscaler_fields[] = {
	FIELD(struct autoscaler_record, name, FIELD_STRING, "metadata>name"),
	FIELD(struct autoscaler_record, scaled_object, FIELD_STRING, "metadata>labels>" KEDA_LABEL),
	FIELD(struct autoscaler_record, service, FIELD_STRING, "metadata>labels>" KSERVE_LABEL),
	FIELD(struct autoscaler_record, part_of, FIELD_STRING, "metadata>labels>app.kubernetes.io/part-of"),
	FIELD(struct autoscaler_record, kind, FIELD_STRING, "spec>scaleTargetRef>kind"),
	FIELD(struct autoscaler_record, target, FIELD_STRING, "spec>scaleTargetRef>name"),
};
static const struct record_spec autoscaler_record = { "", sizeof(struct autoscaler_record), autoscaler_fields, 6 };

struct list_record {
	struct decoded_list items;
};

static const struct field list_fields[] = {
	{ .path = "items",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct list_record, items),
	  .of = &autoscaler_record },
};
static const struct record_spec list_record = { "", sizeof(struct list_record), list_fields, 1 };

static void finish(struct scale_owner_call *c)
{
	struct arena texts = c->arena;

	c->arena = (struct arena){ 0 };
	buf_release(&c->path);
	c->done(c);
	arena_release(&texts);
}

/* False: it could not be read, and the error says why. */
static bool understand(struct scale_owner_call *c, const struct record_spec *spec, void *out)
{
	struct error e = c->call.error;

	if (e.kind == ERROR_NONE) {
		struct decode_plan *plan = decode_plan_new(spec);
		bool ok = decode_record(plan, c->call.response, c->call.response_len, &c->arena, out, &e);
		decode_plan_free(plan);
		if (ok)
			return true;
		error_wrap(&e, "the answer to %s", c->call.path);
	}
	if (c->error.kind != ERROR_CANCELLED)
		c->error = e;
	return false;
}

/* The last that wrote the replicas, by the server's time; NULL: nobody is written down. */
static const char *last_writer(const struct target_record *t)
{
	const struct writer_record *items = t->writers.items, *last = NULL;

	for (size_t i = 0; i < t->writers.count; i++)
		if (items[i].name && items[i].replicas.text && (!last || items[i].at >= last->at))
			last = &items[i];
	return last ? last->name : NULL;
}

static void name_owner(struct scale_owner_call *c, enum scale_owner owner, const char *name)
{
	c->owner = owner;
	c->owner_name = name;
}

/* It can only be one that went since: nothing else in that program scales. */
static bool is_of_no_autoscaler(const struct scale_owner_call *c)
{
	return c->owner == SCALE_OWNER_FIELD_MANAGER && !strcmp(c->owner_name, HPA_MANAGER);
}

static void autoscalers_came(struct api_call *call)
{
	struct scale_owner_call *c = call->user;
	struct list_record list;

	if (!understand(c, &list_record, &list)) {
		finish(c);
		return;
	}
	if (is_of_no_autoscaler(c))
		name_owner(c, SCALE_OWNER_NONE, "");
	const struct autoscaler_record *items = list.items.items;
	for (size_t i = 0; i < list.items.count && !c->stands; i++) {
		const struct autoscaler_record *a = &items[i];
		if (!a->target || strcmp(a->target, c->name) != 0 || !a->kind || strcmp(a->kind, c->kind) != 0)
			continue;
		c->stands = true;
		if (c->llm_service && a->part_of && !strcmp(a->part_of, LLM_PART))
			name_owner(c, SCALE_OWNER_LLM_SERVICE, c->llm_service);
		else if (a->service)
			name_owner(c, SCALE_OWNER_INFERENCE_SERVICE, a->service);
		else if (a->scaled_object)
			name_owner(c, SCALE_OWNER_SCALED_OBJECT, a->scaled_object);
		else
			name_owner(c, SCALE_OWNER_AUTOSCALER, a->name ? a->name : "");
	}
	finish(c);
}

static void ask(struct scale_owner_call *c, const struct api_object *o, void (*then)(struct api_call *call))
{
	buf_clear(&c->path);
	api_object_path(o, &c->path);
	c->call = (struct api_call){ .path = c->path.text, .done = then, .user = c };
	api_start(c->api, &c->call);
}

static void ask_autoscalers(struct scale_owner_call *c)
{
	if (c->error.kind == ERROR_CANCELLED) {
		finish(c);
		return;
	}
	ask(c,
	    &(struct api_object){ .api_version = "autoscaling/v2",
				  .plural = "horizontalpodautoscalers",
				  .name_space = c->name_space },
	    autoscalers_came);
}

static void target_came(struct api_call *call)
{
	struct scale_owner_call *c = call->user;
	struct target_record t;

	if (understand(c, &target_record, &t)) {
		const char *writer = last_writer(&t);
		name_owner(c, SCALE_OWNER_NONE, "");
		if (t.part_of && !strcmp(t.part_of, LLM_PART))
			c->llm_service = t.app;
		if (writer && c->llm_service && !strcmp(writer, KSERVE_MANAGER))
			name_owner(c, SCALE_OWNER_LLM_SERVICE, c->llm_service);
		else if (writer && t.service && !strcmp(writer, KSERVE_MANAGER))
			name_owner(c, SCALE_OWNER_INFERENCE_SERVICE, t.service);
		else if (writer && strcmp(writer, OWN_FIELD_MANAGER) != 0)
			name_owner(c, SCALE_OWNER_FIELD_MANAGER, writer);
		else if (writer && t.replicas != c->ours)
			name_owner(c, SCALE_OWNER_PREHEAT, "");
	}
	ask_autoscalers(c);
}

static void plural_came(struct plural_call *p)
{
	struct scale_owner_call *c = p->user;

	c->error = p->error;
	if (p->error.kind != ERROR_NONE) {
		ask_autoscalers(c);
		return;
	}
	ask(c,
	    &(struct api_object){
		    .api_version = c->api_version, .plural = p->plural, .name_space = c->name_space, .name = c->name },
	    target_came);
}

void scale_owner_start(struct api *a, struct scale_owner_call *c)
{
	c->api = a;
	c->error = (struct error){ 0 };
	c->stands = false;
	c->llm_service = NULL;
	name_owner(c, SCALE_OWNER_UNKNOWN, "");
	c->lookup =
		(struct plural_call){ .api_version = c->api_version, .kind = c->kind, .done = plural_came, .user = c };
	plural_start(a, &c->lookup);
}

void scale_owner_cancel(struct scale_owner_call *c)
{
	api_cancel(&c->lookup.call);
	api_cancel(&c->call);
}
