#include "providers/eks_settings.h"

#include "base/decode.h"
#include "base/quote.h"
#include "providers/aws/endpoint.h"

#include <string.h>

struct texts {
	const char *cluster, *nodegroup, *region, *group, *tags, *endpoint, *launch, *warm_pool, *tagged;
};

static const struct field text_fields[] = {
	FIELD(struct texts, cluster, FIELD_STRING, "cluster"),
	FIELD(struct texts, nodegroup, FIELD_STRING, "nodegroup"),
	{ .path = "region", .type = FIELD_STRING, .offset = offsetof(struct texts, region), .required = true },
	FIELD(struct texts, group, FIELD_STRING, "autoScalingGroup"),
	FIELD(struct texts, tags, FIELD_STRING, "tags"),
	FIELD(struct texts, endpoint, FIELD_STRING, "endpoint"),
	FIELD(struct texts, launch, FIELD_STRING, "launch"),
	FIELD(struct texts, warm_pool, FIELD_STRING, "warmPool"),
	FIELD(struct texts, tagged, FIELD_STRING, "clusterAutoscalerTags"),
};
static const struct record_spec text_record = { "", sizeof(struct texts), text_fields,
						sizeof text_fields / sizeof *text_fields };

static const char *told(const char *text)
{
	return text && *text ? text : NULL;
}

static bool wrong(const char *key, const char *found, const char *allowed, struct error *e)
{
	char shown[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "%s: found %s; allowed: %s", key, quote(shown, found, strlen(found)),
			 allowed);
}

/* What EKS allows; it goes into a path that is signed. */
static bool is_name(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t len = strlen(text);

	return len && len <= 100 && strspn(text, allowed) == len && *text != '-' && *text != '_';
}

static bool choose(const char *key, const char *text, const char *const *names, const char *allowed, struct error *e)
{
	return !text || !*text || !strcmp(text, names[0]) || !strcmp(text, names[1]) ||
	       (names[2] && !strcmp(text, names[2])) || wrong(key, text, allowed, e);
}

static bool read_choices(const struct texts *t, struct eks_settings *out, struct error *e)
{
	static const char *const launches[] = { "capacity", "instances", NULL };
	static const char *const pools[] = { "existing", "nodegroup", "autoScalingGroup" };
	static const char *const manners[] = { "refuse", "ignore", NULL };

	if (!choose("launch", t->launch, launches, "capacity, instances", e) ||
	    !choose("warmPool", t->warm_pool, pools, "existing, nodegroup, autoScalingGroup", e) ||
	    !choose("clusterAutoscalerTags", t->tagged, manners, "refuse, ignore", e))
		return false;
	if (t->launch && strcmp(t->launch, "instances") == 0)
		out->launch = EKS_LAUNCH_INSTANCES;
	if (t->warm_pool && strcmp(t->warm_pool, "nodegroup") == 0)
		out->warm_pool = EKS_POOL_NODEGROUP;
	if (t->warm_pool && strcmp(t->warm_pool, "autoScalingGroup") == 0)
		out->warm_pool = EKS_POOL_GROUP;
	out->takes_tagged = t->tagged && strcmp(t->tagged, "ignore") == 0;
	return true;
}

static bool read_tag(char *text, struct eks_settings *out, struct error *e)
{
	char *equals;

	while (*text == ' ')
		text++;
	for (size_t len = strlen(text); len && text[len - 1] == ' ';)
		text[--len] = '\0';
	equals = strchr(text, '=');
	if (equals)
		*equals++ = '\0';
	if (!*text || strlen(text) > 128 || (equals && strlen(equals) > 256))
		return error_set(e, ERROR_INVALID,
				 "tags: found a tag without a key, or too long; allowed: key=value "
				 "pairs, or keys, with commas between");
	if (out->tag_count == EKS_TAGS)
		return error_set(e, ERROR_INVALID, "tags: found more than %d; allowed: %d at most", EKS_TAGS, EKS_TAGS);
	out->tags[out->tag_count++] = (struct eks_tag){ text, equals };
	return true;
}

static bool read_tags(const char *text, struct arena *a, struct eks_settings *out, struct error *e)
{
	char *copy = arena_strdup(a, text, strlen(text));

	for (char *p = copy; p;) {
		char *comma = strchr(p, ',');
		if (comma)
			*comma++ = '\0';
		if (!read_tag(p, out, e))
			return false;
		p = comma;
	}
	return true;
}

static bool is_group_name(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return strlen(text) <= 255;
}

static bool check(const struct eks_settings *s, struct error *e)
{
	if (!aws_is_region(s->region))
		return wrong("region", s->region, "a region such as eu-west-1", e);
	if (s->cluster && !is_name(s->cluster))
		return wrong("cluster", s->cluster, "letters, digits, '-' and '_', at most 100", e);
	if (s->nodegroup && !is_name(s->nodegroup))
		return wrong("nodegroup", s->nodegroup, "letters, digits, '-' and '_', at most 100", e);
	if (s->auto_scaling_group && !is_group_name(s->auto_scaling_group))
		return wrong("autoScalingGroup", s->auto_scaling_group, "a name of at most 255 characters", e);
	if (s->auto_scaling_group && s->tag_count)
		return error_set(e, ERROR_INVALID, "both autoScalingGroup and tags; allowed: one of them");
	if (!s->auto_scaling_group && !s->tag_count && !(s->cluster && s->nodegroup))
		return error_set(e, ERROR_INVALID,
				 "nothing says which Auto Scaling group; allowed: cluster and nodegroup, or "
				 "autoScalingGroup, or tags");
	if (s->warm_pool == EKS_POOL_NODEGROUP && !(s->cluster && s->nodegroup))
		return error_set(e, ERROR_INVALID, "warmPool: nodegroup needs cluster and nodegroup");
	if (s->endpoint && !aws_is_own_url(s->endpoint))
		return wrong("endpoint", s->endpoint,
			     "a host below amazonaws.com, amazonaws.com.cn or api.aws, or this machine; others by "
			     "AWS_ENDPOINT_URL of the controller",
			     e);
	return true;
}

static bool read(const char *json, struct arena *a, struct eks_settings *out, struct error *e)
{
	static const struct aws_environment nothing;
	struct decode_plan *plan = decode_plan_new(&text_record);
	CLEANUP(buf_release) struct buf ignored = { 0 };
	struct texts t;
	bool ok = decode_record(plan, json, strlen(json), a, &t, e);

	decode_plan_free(plan);
	if (!ok)
		return false;
	out->cluster = told(t.cluster);
	out->nodegroup = told(t.nodegroup);
	out->region = t.region;
	out->auto_scaling_group = told(t.group);
	out->endpoint = told(t.endpoint);
	return read_choices(&t, out, e) && (!told(t.tags) || read_tags(t.tags, a, out, e)) && check(out, e) &&
	       aws_endpoint(&nothing, out->endpoint, AWS_EKS, out->region, &ignored, e);
}

bool eks_read_settings(const char *json, struct arena *a, struct eks_settings *out, struct error *e)
{
	*out = (struct eks_settings){ 0 };
	return read(json, a, out, e) || error_wrap(e, "settings of eks");
}
