/* What clouds say of new nodes, as they write it: labels, taints, resources; and what makes no sense. */
#include "providers/azure/answer.h"
#include "providers/eks_group.h"
#include "providers/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "a=b", "a=b:NoSchedule", "a*8", each with a comma behind it. */
static const char *shown(const struct node_promise *p, struct buf *out)
{
	buf_clear(out);
	buf_text(out, "");
	for (size_t i = 0; i < p->label_count; i++)
		buf_printf(out, "%s=%s,", p->labels[i].key, p->labels[i].value);
	for (size_t i = 0; i < p->taint_count; i++)
		buf_printf(out, "%s=%s:%s,", p->taints[i].key, p->taints[i].value, p->taints[i].effect);
	for (size_t i = 0; i < p->resource_count; i++)
		buf_printf(out, "%s*%s,", p->resources[i].key, p->resources[i].value);
	return out->text;
}

static void expect(const char *what, const struct node_promise *p, const char *promises, const char *unread,
		   size_t unread_count)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (strcmp(shown(p, &text), promises) != 0)
		fail_msg("%s: %s", what, text.text);
	if (p->unread_count != unread_count || strcmp(p->unread ? p->unread : "", unread) != 0)
		fail_msg("%s: %zu, %s", what, p->unread_count, p->unread ? p->unread : "");
}

#define AWS   "k8s.io/cluster-autoscaler/node-template/"
#define AZURE "k8s.io_cluster-autoscaler_node-template_"

static void tags_are_read_as_cluster_autoscaler_reads_them(void **state)
{
	static const struct {
		const char *tag, *value, *promises, *unread;
	} cases[] = {
		{ AWS "label/team", "ml", "team=ml,", "" },
		{ AWS "label/example.com/a_b", "", "example.com/a_b=,", "" },
		{ AWS "taint/dedicated", "ml:NoSchedule", "dedicated=ml:NoSchedule,", "" },
		{ AWS "taint/dedicated", ":NoExecute", "dedicated=:NoExecute,", "" },
		{ AWS "taint/example.com/x", "a:PreferNoSchedule", "example.com/x=a:PreferNoSchedule,", "" },
		{ AWS "resources/nvidia.com/mig-1g.10gb", "56", "nvidia.com/mig-1g.10gb*56,", "" },
		{ AWS "resources/ephemeral-storage", "100Gi", "ephemeral-storage*100Gi,", "" },
		{ AZURE "label_example.com_team", "ml", "example.com/team=ml,", "" },
		{ AZURE "label_a~2b", "c", "a_b=c,", "" },
		{ AZURE "taint_dedicated", "ml:NoSchedule", "dedicated=ml:NoSchedule,", "" },
		{ AZURE "resources_nvidia.com_gpu", "8", "nvidia.com/gpu*8,", "" },
		/* of something else */
		{ "team", "ml", "", "" },
		{ "k8s.io/cluster-autoscaler/enabled", "true", "", "" },
		{ AWS "autoscaling-options/scaledownunneededtime", "10m0s", "", "" },
		{ AWS "csi-driver", "ebs.csi.aws.com", "", "" },
		/* mistakes */
		{ AWS "label/", "ml", "", "label '': found 'ml'" },
		{ AWS "label/a b", "ml", "", "label 'a b': found 'ml'" },
		{ AWS "label/team", "m l", "", "label 'team': found 'm l'" },
		{ AWS "taint/dedicated", "ml", "", "taint 'dedicated': found 'ml'" },
		{ AWS "taint/dedicated", "", "", "taint 'dedicated': found ''" },
		{ AWS "taint/dedicated", "ml:NoScheduel", "", "taint 'dedicated': found 'ml:NoScheduel'" },
		{ AWS "taint/dedicated", "m l:NoSchedule", "", "taint 'dedicated': found 'm l:NoSchedule'" },
		{ AWS "resources/nvidia.com/gpu", "eight", "", "resource 'nvidia.com/gpu': found 'eight'" },
		{ AWS "resources/nvidia.com/gpu", "-1", "", "resource 'nvidia.com/gpu': found '-1'" },
		{ AWS "resources/a/b/c", "1", "", "resource 'a/b/c': found '1'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct node_promise p = { 0 };
		promise_tag(&p, &a, cases[i].tag, cases[i].value);
		expect(cases[i].tag, &p, cases[i].promises, cases[i].unread, *cases[i].unread ? 1 : 0);
	}
}

static void taints_are_read_as_kubectl_writes_them(void **state)
{
	static const struct {
		const char *text, *promises, *unread;
	} cases[] = {
		{ "sku=gpu:NoSchedule", "sku=gpu:NoSchedule,", "" },
		{ "CriticalAddonsOnly=true:NoSchedule", "CriticalAddonsOnly=true:NoSchedule,", "" },
		{ "example.com/x:NoExecute", "example.com/x=:NoExecute,", "" },
		{ "example.com/x=:NoExecute", "example.com/x=:NoExecute,", "" },
		{ "sku=gpu", "", "taint 'sku': found 'gpu'" },
		{ "sku", "", "taint 'sku': found ''" },
		{ "", "", "taint '': found ''" },
		{ "=gpu:NoSchedule", "", "taint '': found 'gpu:NoSchedule'" },
		{ "sku=gpu:Never", "", "taint 'sku': found 'gpu:Never'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct node_promise p = { 0 };
		promise_written_taint(&p, &a, cases[i].text);
		expect(cases[i].text, &p, cases[i].promises, cases[i].unread, *cases[i].unread ? 1 : 0);
	}
}

static void there_is_a_most_of_all(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct node_promise p = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%d", i);
		promise_label(&p, &a, key, "v");
		promise_taint(&p, &a, key, "v", "NoSchedule");
		promise_tag(&p, &a, text_printf(&a, AWS "resources/%s", key), "1");
	}
	assert_int_equal(p.label_count, PROMISE_MOST);
	assert_int_equal(p.taint_count, PROMISE_MOST);
	assert_int_equal(p.resource_count, PROMISE_MOST);
	assert_int_equal(p.unread_count, 3 * (100 - PROMISE_MOST));
	assert_string_equal(p.unread, "label 'k64': found 'v'");
}

#define NODEGROUP                                                                                                 \
	"{\"nodegroup\":{\"nodegroupName\":\"n\",\"status\":\"ACTIVE\",\"labels\":{\"team\":\"ml\",\"n\":\"1\"}," \
	"\"taints\":[{\"key\":\"dedicated\",\"value\":\"ml\",\"effect\":\"NO_SCHEDULE\"},"                        \
	"{\"key\":\"soft\",\"effect\":\"PREFER_NO_SCHEDULE\"},{\"key\":\"hard\",\"effect\":\"NO_EXECUTE\"},"      \
	"{\"key\":\"new\",\"effect\":\"SOMETHING_NEW\"},{}],"                                                     \
	"\"tags\":{\"" AWS "label/other\":\"x\",\"" AWS "resources/nvidia.com/gpu\":\"4\",\"owner\":\"me\"},"     \
	"\"resources\":{\"autoScalingGroups\":[{\"name\":\"g\"}]}}}"
#define OF_NODEGROUP "team=ml,n=1,dedicated=ml:NoSchedule,soft=:PreferNoSchedule,hard=:NoExecute,nvidia.com/gpu*4,"

static void a_node_group_tells_of_its_nodes(void **state)
{
	static const char empty[] =
		"{\"nodegroup\":{\"nodegroupName\":\"n\",\"labels\":null,\"taints\":null,\"tags\":{}}}";
	CLEANUP(arena_release) struct arena a = { 0 };
	struct eks_nodegroup n;
	struct error e = { 0 };

	(void)state;
	assert_true(eks_read_nodegroup(NODEGROUP, strlen(NODEGROUP), &a, &n, &e));
	expect("node group", &n.promise, OF_NODEGROUP, "taint 'new': found ':SOMETHING_NEW'", 2);
	assert_true(eks_read_nodegroup(empty, strlen(empty), &a, &n, &e));
	expect("empty", &n.promise, "", "", 0);
}

#define TAG(key, value) "<member><Key>" key "</Key><Value>" value "</Value></member>"
#define GROUP                                                                                                         \
	"<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult><AutoScalingGroups><member>"             \
	"<AutoScalingGroupName>g</AutoScalingGroupName><MinSize>0</MinSize><MaxSize>4</MaxSize>"                      \
	"<DesiredCapacity>0</DesiredCapacity><Tags>" TAG(AWS "label/team", "web") TAG(AWS "label/more", "y") TAG(     \
		AWS "taint/dedicated", "web:NoSchedule") TAG(AWS "taint/dedicated", "web:NoExecute")                  \
		TAG(AWS "taint/bad", "?") TAG(AWS "resources/nvidia.com/gpu", "8") TAG(                               \
			"Name", "n") "<member><Key>k8s.io/cluster-autoscaler/node-template/label/none</Key></member>" \
				     "</Tags></member></AutoScalingGroups></DescribeAutoScalingGroupsResult>"         \
				     "</DescribeAutoScalingGroupsResponse>"

/* What EKS gives nodes itself goes before what tags tell of it. */
static void a_node_group_goes_before_the_tags_of_its_auto_scaling_group(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct eks_seen s = { 0 };
	struct group_description d;
	struct error e = { 0 };

	(void)state;
	assert_true(eks_read_sole_group(GROUP, strlen(GROUP), "g", &a, &s.group, &e));
	eks_describe(&s, &a, &d);
	expect("tags alone", &d.promise,
	       "team=web,more=y,none=,dedicated=web:NoSchedule,dedicated=web:NoExecute,nvidia.com/gpu*8,",
	       "taint 'bad': found '?'", 1);
	assert_string_equal(d.cautions[d.caution_count - 1],
			    "1 of what the cloud says of new nodes makes no sense there and is left out: taint 'bad': "
			    "found '?'");
	assert_true(eks_read_nodegroup(NODEGROUP, strlen(NODEGROUP), &a, &s.nodegroup, &e));
	eks_describe(&s, &a, &d);
	expect("both", &d.promise,
	       "team=ml,n=1,more=y,none=,dedicated=ml:NoSchedule,soft=:PreferNoSchedule,hard=:NoExecute,"
	       "dedicated=web:NoExecute,nvidia.com/gpu*4,",
	       "taint 'new': found ':SOMETHING_NEW'", 3);
}

static void an_agent_pool_tells_of_its_nodes(void **state)
{
	static const char whole[] =
		"{\"properties\":{\"count\":0,\"nodeLabels\":{\"team\":\"ml\"},\"nodeTaints\":["
		"\"sku=gpu:NoSchedule\",\"oops\"],\"tags\":{\"owner\":\"me\",\"" AZURE "label_team\":\"web\",\"" AZURE
		"label_a\":\"b\",\"" AZURE "resources_nvidia.com_mig-1g.10gb\":\"7\"}}}";
	static const char empty[] = "{\"properties\":{\"count\":0,\"nodeLabels\":null,\"nodeTaints\":null}}";
	CLEANUP(arena_release) struct arena a = { 0 };
	struct azure_pool p;
	struct error e = { 0 };

	(void)state;
	assert_true(azure_pool_read(whole, strlen(whole), &a, &p, &e));
	expect("pool", &p.promise, "team=ml,a=b,sku=gpu:NoSchedule,nvidia.com/mig-1g.10gb*7,", "taint 'oops': found ''",
	       1);
	assert_true(azure_pool_read(empty, strlen(empty), &a, &p, &e));
	expect("empty", &p.promise, "", "", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags_are_read_as_cluster_autoscaler_reads_them),
		cmocka_unit_test(taints_are_read_as_kubectl_writes_them),
		cmocka_unit_test(there_is_a_most_of_all),
		cmocka_unit_test(a_node_group_tells_of_its_nodes),
		cmocka_unit_test(a_node_group_goes_before_the_tags_of_its_auto_scaling_group),
		cmocka_unit_test(an_agent_pool_tells_of_its_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
