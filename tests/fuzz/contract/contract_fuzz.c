/* Any bytes as objects of a cluster, WarmPools among them: judged to the end, and every violation says where and what.
 */
#include "controller/contract/contract.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static bool is_pool(const struct yaml_node *root)
{
	const struct yaml_node *kind = yaml_child(root, "kind");

	return kind && kind->kind == YAML_SCALAR && !strcmp(kind->text, "WarmPool");
}

static void check_report(const struct contract_report *r)
{
	size_t sum = r->ignored;

	for (int s = 0; s < CONTRACT_SEVERITIES; s++)
		sum += r->counts[s];
	require(sum == r->count);
	for (size_t i = 0; i < r->count; i++) {
		const struct contract_violation *v = &r->items[i];
		require(v->rule && v->object && v->object->at && v->at && v->at->line && *v->found && *v->remedy);
		for (const char *p = v->found; *p; p++)
			require((unsigned char)*p >= 0x20 && *p != 0x7f);
	}
}

static void judge(const struct yaml_documents *docs, struct arena *a)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	struct contract *c = contract_new(a, 0);
	const struct yaml_node **pools = arena_array(a, const struct yaml_node *, docs->count + 1);
	struct manifest m;
	struct error e;
	size_t count = 0;

	for (size_t i = 0; i < docs->count; i++) {
		if (docs->roots[i] && is_pool(docs->roots[i]))
			pools[count++] = docs->roots[i];
		else if (docs->roots[i])
			contract_add(c, docs->roots[i], 1);
	}
	if (count && manifest_load_roots(pools, count, a, &m, &f, &e))
		contract_set_pools(c, &m, false);
	struct contract_report r = contract_judge(c);
	check_report(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct yaml_documents docs;

	struct yaml_source source = {
		"fuzz",
		(const char *)bytes,
		len,
		{ .bytes = 1 << 20, .nodes = 20000, .depth = 64, .documents = 100, .takes_all = true }
	};

	if (yaml_parse_source(&source, &a, &docs, &f))
		judge(&docs, &a);
	return 0;
}
