/* What a block says is read by one reader, for `check` and for the provider's calls. */
#include "providers/block.h"
#include "providers/node_marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define AKS "{\"subscription\":\"s\",\"cluster\":\"c\",\"pool\":\"p\","
#define API "{\"label\":\"l\",\"value\":\"v\","

static const struct {
	enum provider_choice provider;
	const char *settings, *told;
} refused[] = {
	{ PROVIDER_simulated, "{\"endpoint\":\"cloud:80\"}", "endpoint: found 'cloud:80'; allowed: a URL" },
	{ PROVIDER_eks, "{\"region\":\"-\",\"cluster\":\"c\",\"nodegroup\":\"n\"}",
	  "region: found '-'; allowed: a region" },
	{ PROVIDER_aks, AKS "\"resourceGroup\":\"a b\"}", "resourceGroup: found 'a b'; allowed: 1 to 90 letters" },
	{ PROVIDER_aks, AKS "\"resourceGroup\":\"r\",\"resourceManager\":\"http://a.example\"}",
	  "resourceManager: found 'http://a.example'; allowed: an https:// address" },
	{ PROVIDER_karpenter, "{\"nodePool\":\"a/b\"}", "nodePool: found 'a/b'; allowed: the name of a NodePool" },
	{ PROVIDER_cluster_api, API "\"machineDeployment\":\"A\",\"namespace\":\"n\"}",
	  "machineDeployment: found 'A'; allowed: the name of a MachineDeployment" },
	{ PROVIDER_cluster_api, API "\"machineDeployment\":\"a\",\"namespace\":\"\"}",
	  "namespace: found ''; allowed: the name of a namespace" },
	{ PROVIDER_external, "{\"label\":\"a,b\",\"value\":\"v\"}", "label: found 'a,b'; allowed: a label" },
	{ PROVIDER_external, "{\"label\":\"l\",\"value\":\"a b\"}", "value: found 'a b'; allowed: a label" },
};

static void each_reader_names_key_found_and_allowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct error e = { 0 };
		const struct provider_block *b = provider_block(refused[i].provider);
		assert_false(b->read(refused[i].settings, &a, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		if (!strstr(e.message, refused[i].told))
			fail_msg("row %zu: %s", i, e.message);
	}
}

/* Azure's rule for a resource group is letters of any alphabet. */
static void a_resource_group_may_be_of_any_alphabet(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };

	(void)state;
	assert_true(provider_block(PROVIDER_aks)->read(AKS "\"resourceGroup\":\"(r)_gr\xc3\xb6sse\"}", &a, &e));
}

static void no_provider_is_left_unread(void **state)
{
	(void)state;
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
		assert_non_null(provider_block(p)->read);
}

static void words_of_capacity(void **state)
{
	static const char *const words[][2] = { { "SPOT", "spot" },	      { "spot", "spot" },
						{ "ON_DEMAND", "on-demand" }, { "regular", "on-demand" },
						{ "on-demand", "on-demand" }, { "CAPACITY_BLOCK", "reserved" },
						{ "reserved", "reserved" },   { "else", "else" } };
	static const char *const labels[] = { "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
					      "kubernetes.azure.com/scalesetpriority", "preheat.dev/capacity-type" };

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_string_equal(capacity_of_word(words[i][0]), words[i][1]);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(capacity_label_at(i), labels[i]);
	assert_null(capacity_label_at(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reader_names_key_found_and_allowed),
		cmocka_unit_test(a_resource_group_may_be_of_any_alphabet),
		cmocka_unit_test(no_provider_is_left_unread),
		cmocka_unit_test(words_of_capacity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
