/* What we send: equal to what the official SDK sends, and known to the services' models by every name. */
#include "base/file.h"
#include "base/json.h"
#include "providers/eks_wire.h"
#include "tests/unit/providers/contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct eks_settings c1 = { .cluster = "c1", .nodegroup = "ng1", .region = "us-west-2" };
static const char *const groups[] = { "eks-ng1-abc", "b" }, *const ids[] = { "i-0abc", "i-0def" };

static void write_groups(struct buf *out)
{
	eks_describe_groups(groups, 2, out);
}
static void write_size(struct buf *out)
{
	eks_set_size("eks-ng1-abc", 4, out);
}
static void write_terminate(struct buf *out)
{
	eks_terminate("i-0abc", out);
}
static void write_activities(struct buf *out)
{
	eks_describe_activities("eks-ng1-abc", 20, out);
}
static void write_protect(struct buf *out)
{
	eks_protect("eks-ng1-abc", ids, 2, true, out);
}
static void write_protect_new(struct buf *out)
{
	eks_protect_new("eks-ng1-abc", true, out);
}
static void write_pool(struct buf *out)
{
	eks_put_pool("eks-ng1-abc", &(struct eks_pool_size){ 1, 4, "Stopped", true }, out);
}
static void write_describe_pool(struct buf *out)
{
	eks_describe_pool("eks-ng1-abc", NULL, out);
}
static void write_launch(struct buf *out)
{
	eks_launch_instances("eks-ng1-abc", 2, "us-west-2a", "t", out);
}
static void write_pool_page(struct buf *out)
{
	eks_describe_pool("g", "a+b/c==", out);
}
static void write_find(struct buf *out)
{
	eks_find_group((const struct eks_tag[]){ { "team", "ml & more" }, { "gpu", NULL } }, 2, out);
}
static void write_release(struct buf *out)
{
	eks_protect("g", ids, 1, false, out);
}

/* The forms, with the number of the golden request that each equals; 0: it has none. */
static const struct {
	size_t golden;
	const char *model;
	void (*write)(struct buf *out);
} forms[] = {
	{ 5, "aws/autoscaling.json", write_groups },	     { 6, "aws/autoscaling.json", write_size },
	{ 7, "aws/autoscaling.json", write_terminate },	     { 8, "aws/autoscaling.json", write_activities },
	{ 9, "aws/autoscaling.json", write_protect },	     { 10, "aws/autoscaling.json", write_pool },
	{ 11, "aws/autoscaling.json", write_describe_pool }, { 14, "aws/autoscaling.json", write_launch },
	{ 0, "aws/autoscaling.json", write_pool_page },	     { 0, "aws/autoscaling.json", write_find },
	{ 0, "aws/autoscaling.json", write_protect_new },    { 0, "aws/autoscaling.json", write_release },
	{ 0, "aws/sts.json", eks_caller_identity },
};
enum { FORMS = sizeof forms / sizeof *forms };

/* What of the golden requests we never send: ListNodegroups, DeleteWarmPool, SuspendProcesses; of UpdateNodegroupConfig
 * only the warm pool's part. */
static const size_t not_ours[] = { 2, 3, 12, 13 };

struct parameter {
	const char *name, *value;
};

static size_t split(char *form, struct parameter *out, size_t room)
{
	size_t count = 0;

	for (char *p = strtok_r(form, "&", &form); p; p = strtok_r(NULL, "&", &form)) {
		char *equals = strchr(p, '=');
		assert_non_null(equals);
		*equals = '\0';
		assert_true(count < room);
		out[count++] = (struct parameter){ p, equals + 1 };
	}
	return count;
}

static int by_name(const void *left, const void *right)
{
	const struct parameter *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static const char *sorted(const char *form, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	struct parameter parameters[64];
	size_t count = split(arena_strdup(a, form, strlen(form)), parameters, 64);

	qsort(parameters, count, sizeof *parameters, by_name);
	for (size_t i = 0; i < count; i++)
		buf_printf(&out, "%s=%s\n", parameters[i].name, parameters[i].value);
	return arena_strdup(a, out.text, out.len);
}

static const char *golden_text(const struct contract *c, size_t number, const char *member)
{
	char path[64];

	snprintf(path, sizeof path, "requests[%zu]>%s", number, member);
	return contract_text(c, path);
}

static void forms_equal_those_of_the_sdk(void **state)
{
	struct contract golden = { .counted = "requests[]" };

	(void)state;
	if (!contract_read(&golden, "golden/aws-requests.json"))
		skip();
	assert_int_equal(golden.items, 14);
	for (size_t i = 0; i < FORMS; i++) {
		CLEANUP(buf_release) struct buf form = { 0 };
		if (!forms[i].golden)
			continue;
		forms[i].write(&form);
		assert_string_equal(golden_text(&golden, forms[i].golden, "method"), "POST");
		assert_string_equal(golden_text(&golden, forms[i].golden, "path"), "/");
		assert_string_equal(sorted(form.text, &golden.arena),
				    sorted(golden_text(&golden, forms[i].golden, "body"), &golden.arena));
	}
	contract_release(&golden);
}

static void paths_equal_those_of_the_sdk(void **state)
{
	CLEANUP(buf_release) struct buf nodegroup = { 0 }, update = { 0 }, config = { 0 };
	struct contract golden = { .counted = "requests[]" };

	(void)state;
	if (!contract_read(&golden, "golden/aws-requests.json"))
		skip();
	eks_nodegroup_path(&c1, &nodegroup);
	assert_string_equal(nodegroup.text, golden_text(&golden, 1, "path"));
	eks_config_path(&c1, &config);
	assert_string_equal(config.text, golden_text(&golden, 3, "path"));
	eks_update_path(&c1, "u1", &update);
	char *query = strchr(update.text, '?');
	*query = '\0';
	assert_string_equal(update.text, golden_text(&golden, 4, "path"));
	assert_string_equal(golden_text(&golden, 4, "query>nodegroupName"), "ng1");
	assert_string_equal(query + 1, "nodegroupName=ng1");
	contract_release(&golden);
}

static void every_golden_request_is_accounted_for(void **state)
{
	bool is_seen[15] = { [1] = true, [4] = true };

	(void)state;
	for (size_t i = 0; i < FORMS; i++)
		is_seen[forms[i].golden] = true;
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		is_seen[not_ours[i]] = true;
	for (size_t i = 1; i <= 14; i++)
		assert_true(is_seen[i]);
}

/* The shape of a member, by its name on the wire; of a list "member.N". */
static const char *shape_of(const struct contract *model, const char *shape, const char *name, size_t len)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	bool is_list;

	buf_printf(&path, "shapes>%s>type", shape);
	is_list = strcmp(contract_text(model, path.text), "list") == 0;
	buf_clear(&path);
	if (is_list && len == 6 && memcmp(name, "member", 6) == 0)
		buf_printf(&path, "shapes>%s>member>shape", shape);
	else if (!is_list)
		buf_printf(&path, "shapes>%s>members>%.*s>shape", shape, (int)len, name);
	return path.len ? contract_text(model, path.text) : NULL;
}

static void check_type(const struct contract *model, const char *shape, const struct parameter *p)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "shapes>%s>type", shape);
	const char *type = contract_text(model, path.text);
	if (strcmp(type, "integer") == 0)
		assert_int_equal(strspn(p->value, "-0123456789"), strlen(p->value));
	else if (strcmp(type, "boolean") == 0)
		assert_true(!strcmp(p->value, "true") || !strcmp(p->value, "false"));
	else
		assert_string_equal(type, "string");
}

static void check_parameter(const struct contract *model, const char *shape, const struct parameter *p)
{
	for (const char *name = p->name; *name;) {
		size_t len = strcspn(name, ".");
		const char *next = strspn(name, "0123456789") == len ? shape : shape_of(model, shape, name, len);
		if (!next)
			fail_msg("%s: no member %.*s of %s", p->name, (int)len, name, shape);
		shape = next;
		name += len + (name[len] == '.');
	}
	check_type(model, shape, p);
}

static void every_parameter_is_known_to_the_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		CLEANUP(buf_release) struct buf form = { 0 }, path = { 0 };
		struct contract model = { 0 };
		struct parameter parameters[64];
		if (!contract_read(&model, forms[i].model))
			skip();
		forms[i].write(&form);
		size_t count = split(form.text, parameters, 64);
		assert_string_equal(parameters[0].name, "Action");
		assert_string_equal(parameters[1].name, "Version");
		assert_string_equal(parameters[1].value, contract_text(&model, "metadata>apiVersion"));
		buf_printf(&path, "operations>%s>name", parameters[0].value);
		assert_non_null(contract_text(&model, path.text));
		buf_clear(&path);
		buf_printf(&path, "operations>%s>input>shape", parameters[0].value);
		const char *shape = contract_text(&model, path.text);
		for (size_t k = 2; k < count; k++)
			check_parameter(&model, shape, &parameters[k]);
		contract_release(&model);
	}
}

static bool on_member(void *user, const struct json_event *event, struct error *e)
{
	const struct contract *model = user;
	CLEANUP(buf_release) struct buf path = { 0 };
	const char *last = strrchr(event->path, '>'), *shape = "UpdateNodegroupConfigRequest";

	(void)e;
	if (event->type == JSON_OPEN || event->type == JSON_CLOSE)
		return true;
	if (last) {
		buf_printf(&path, "shapes>%s>members>%.*s>shape", shape, (int)(last - event->path), event->path);
		shape = contract_text(model, path.text);
		assert_non_null(shape);
	}
	buf_clear(&path);
	buf_printf(&path, "shapes>%s>members>%s>shape", shape, last ? last + 1 : event->path);
	if (!contract_text(model, path.text))
		fail_msg("no member %s", event->path);
	return true;
}

static void the_body_of_a_change_is_known_to_the_model(void **state)
{
	CLEANUP(buf_release) struct buf body = { 0 };
	struct contract model = { 0 };
	struct error e;

	(void)state;
	if (!contract_read(&model, "aws/eks.json"))
		skip();
	eks_config_body(&(struct eks_pool_size){ 0, 7, "Stopped", true }, "token \"1\"", &body);
	assert_string_equal(body.text,
			    "{\"warmPoolConfig\":{\"enabled\":true,\"minSize\":0,\"maxGroupPreparedCapacity\":7,"
			    "\"poolState\":\"STOPPED\",\"reuseOnScaleIn\":true},\"clientRequestToken\":"
			    "\"token \\\"1\\\"\"}");
	struct json *j = json_open("body", on_member, &model);
	assert_true(json_feed(j, body.text, body.len, &e) && json_finish(j, &e));
	json_close(j);
	assert_string_equal(contract_text(&model, "operations>UpdateNodegroupConfig>http>requestUri"),
			    "/clusters/{name}/node-groups/{nodegroupName}/update-config");
	contract_release(&model);
}

/* A policy that lacks an action would show in production only. */
static void every_operation_stands_in_the_policies(void **state)
{
	static const char *const files[] = { "deploy/iam/aws-policy.json", "deploy/iam/aws-standby.json",
					     "deploy/iam/aws-launch.json", "deploy/iam/aws-protection.json" };
	CLEANUP(buf_release) struct buf policies = { 0 };
	struct error e;

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof(const char *); i++)
		assert_true(file_read(files[i], (size_t)1 << 16, &policies, &e));
	for (size_t i = 0; i < FORMS; i++) {
		CLEANUP(buf_release) struct buf form = { 0 }, action = { 0 };
		forms[i].write(&form);
		if (strcmp(forms[i].model, "aws/sts.json") == 0)
			continue; /* GetCallerIdentity needs none */
		buf_printf(&action, "\"autoscaling:%.*s\"", (int)strcspn(form.text + 7, "&"), form.text + 7);
		if (!strstr(policies.text, action.text))
			fail_msg("%s", action.text);
	}
	assert_non_null(strstr(policies.text, "\"eks:DescribeNodegroup\""));
	assert_non_null(strstr(policies.text, "\"eks:UpdateNodegroupConfig\""));
	assert_non_null(strstr(policies.text, "\"eks:DescribeUpdate\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_equal_those_of_the_sdk),
		cmocka_unit_test(paths_equal_those_of_the_sdk),
		cmocka_unit_test(every_golden_request_is_accounted_for),
		cmocka_unit_test(every_parameter_is_known_to_the_model),
		cmocka_unit_test(the_body_of_a_change_is_known_to_the_model),
		cmocka_unit_test(every_operation_stands_in_the_policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
