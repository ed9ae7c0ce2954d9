#include "providers/eks_answer.h"

#include "base/decimal.h"
#include "base/decode.h"

#include <ctype.h>
#include <string.h>

struct nodegroup_text {
	const char *name, *status, *capacity_type, *image, *pool_state;
	struct decoded_list groups;
	bool is_enabled, reuses;
	int64_t least, prepared;
};

static const struct field name_fields[] = { { .path = "name", .type = FIELD_STRING, .required = true } };
static const struct record_spec name_record = { "", sizeof(const char *), name_fields, 1 };

static const struct field nodegroup_fields[] = {
	{ .path = "nodegroup>nodegroupName",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct nodegroup_text, name),
	  .required = true },
	FIELD(struct nodegroup_text, status, FIELD_STRING, "nodegroup>status"),
	FIELD(struct nodegroup_text, capacity_type, FIELD_STRING, "nodegroup>capacityType"),
	FIELD(struct nodegroup_text, image, FIELD_STRING, "nodegroup>amiType"),
	{ .path = "nodegroup>resources>autoScalingGroups",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct nodegroup_text, groups),
	  .of = &name_record },
	FIELD(struct nodegroup_text, is_enabled, FIELD_BOOL, "nodegroup>warmPoolConfig>enabled"),
	FIELD(struct nodegroup_text, least, FIELD_INT, "nodegroup>warmPoolConfig>minSize"),
	FIELD(struct nodegroup_text, prepared, FIELD_INT, "nodegroup>warmPoolConfig>maxGroupPreparedCapacity"),
	FIELD(struct nodegroup_text, pool_state, FIELD_STRING, "nodegroup>warmPoolConfig>poolState"),
	FIELD(struct nodegroup_text, reuses, FIELD_BOOL, "nodegroup>warmPoolConfig>reuseOnScaleIn"),
};
static const struct record_spec nodegroup_record = { "", sizeof(struct nodegroup_text), nodegroup_fields,
						     sizeof nodegroup_fields / sizeof *nodegroup_fields };

struct update_text {
	const char *id, *status;
	struct decoded_list errors;
	struct decoded_text created_at;
};

struct error_text {
	const char *code, *message;
};

static const struct field error_fields[] = {
	FIELD(struct error_text, code, FIELD_STRING, "errorCode"),
	FIELD(struct error_text, message, FIELD_STRING, "errorMessage"),
};
static const struct record_spec error_record = { "", sizeof(struct error_text), error_fields, 2 };

static const struct field update_fields[] = {
	{ .path = "update>id", .type = FIELD_STRING, .offset = offsetof(struct update_text, id), .required = true },
	{ .path = "update>status",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct update_text, status),
	  .required = true },
	{ .path = "update>errors",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct update_text, errors),
	  .of = &error_record },
	FIELD(struct update_text, created_at, FIELD_RAW, "update>createdAt"),
};
static const struct record_spec update_record = { "", sizeof(struct update_text), update_fields, 4 };

static bool decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* As Auto Scaling writes it: EKS has capitals. */
static const char *pool_state(struct arena *a, const char *text)
{
	char *state = arena_strdup(a, text, strlen(text));

	for (size_t i = 0; state[i]; i++)
		state[i] = (char)(i ? tolower((unsigned char)state[i]) : toupper((unsigned char)state[i]));
	return state;
}

bool eks_read_nodegroup(const char *text, size_t len, struct arena *a, struct eks_nodegroup *out, struct error *e)
{
	struct nodegroup_text t;

	if (!decode(&nodegroup_record, text, len, a, &t, e))
		return false;
	if (t.groups.count > 1)
		return error_set(e, ERROR_INVALID,
				 "node group %s has several Auto Scaling groups; name one as autoScalingGroup", t.name);
	*out = (struct eks_nodegroup){ .status = or_empty(t.status),
				       .capacity_type = or_empty(t.capacity_type),
				       .image = or_empty(t.image),
				       .has_pool = t.is_enabled };
	if (t.groups.count)
		out->group = *(const char *const *)t.groups.items;
	out->pool = (struct eks_pool){ .exists = t.is_enabled,
				       .least = t.least,
				       .prepared = t.prepared,
				       .state = pool_state(a, t.pool_state ? t.pool_state : "Stopped"),
				       .reuses = t.reuses };
	return true;
}

/* Seconds since 1970, with a fraction, as a bare number. */
static millis read_seconds(struct decoded_text t)
{
	int64_t milli;

	return t.text && decimal_parse(t.text, t.len, 3, &milli) == DECIMAL_OK ? milli : 0;
}

bool eks_read_update(const char *text, size_t len, struct arena *a, struct eks_update *out, struct error *e)
{
	struct update_text t;

	if (!decode(&update_record, text, len, a, &t, e))
		return false;
	*out = (struct eks_update){ .id = t.id, .message = "", .created_at = read_seconds(t.created_at) };
	if (strcmp(t.status, "Successful") == 0)
		out->progress = EKS_SUCCEEDED;
	else if (strcmp(t.status, "Failed") == 0 || strcmp(t.status, "Cancelled") == 0)
		out->progress = EKS_FAILED;
	if (t.errors.count) {
		const struct error_text *first = t.errors.items;
		out->message = first->message ? first->message : or_empty(first->code);
	}
	return true;
}
