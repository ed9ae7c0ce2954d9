/* preheat check: manifests, the objects beside them, and live clusters. */
#include "controller/commands/answer.h"
#include "controller/commands/check_parts.h"
#include "controller/commands/command.h"
#include "controller/manifest/reference.h"
#include "controller/simulation/files/world_file.h"

#include <stdio.h>
#include <string.h>

/* What was named on the command line: world files beside the manifests that they are about. */
struct named {
	const char **pools, **worlds;
	size_t pool_count, world_count;
};

static struct named sort_paths(const char *const *paths, size_t count, struct arena *a)
{
	struct named n = { arena_array(a, const char *, count), arena_array(a, const char *, count), 0, 0 };

	for (size_t i = 0; i < count; i++) {
		if (world_file_is(paths[i]))
			n.worlds[n.world_count++] = paths[i];
		else
			n.pools[n.pool_count++] = paths[i];
	}
	return n;
}

static struct {
	bool reads_cluster, is_strict;
	struct access_options access;
	const char *output;
} options;

static bool read_objects(struct checked *c, const struct named *n, struct error *e)
{
	if (n->world_count && !n->pool_count)
		return error_set(e, ERROR_INVALID, "%s: a world is checked against its pools; name their manifest, too",
				 n->worlds[0]);
	if (!n->pool_count && !options.reads_cluster)
		return error_set(e, ERROR_INVALID,
				 "nothing named; name a file, a folder or - for standard input, or ask for --cluster");
	if (options.reads_cluster && !check_read_cluster(c, &options.access, e))
		return false;
	return check_read_paths(c, n->pools, n->pool_count, e) || c->findings->count;
}

static bool check_worlds(struct checked *c, const struct named *n, struct error *e)
{
	for (size_t i = 0; i < n->world_count; i++)
		if (!world_file_check(n->worlds[i], c->has_manifest ? &c->manifest.fleet : NULL, c->arena, c->findings,
				      e))
			return false;
	return true;
}

static void judge(struct checked *c)
{
	struct contract *contract = contract_new(c->arena);
	struct error ignored;

	c->has_manifest = c->pool_count &&
			  manifest_load_roots(c->pools, c->pool_count, c->arena, &c->manifest, c->findings, &ignored);
	for (size_t i = 0; i < c->object_count; i++)
		contract_add(contract, c->objects[i]);
	contract_set_pools(contract, c->has_manifest ? &c->manifest : NULL, c->pool_count > 0 && !c->has_manifest);
	if (c->is_whole)
		contract_set_whole(contract);
	c->report = contract_judge(contract);
}

static int verdict(const struct checked *c)
{
	const struct contract_report *r = &c->report;
	bool has_errors = r->counts[CONTRACT_ERROR] || (options.is_strict && r->counts[CONTRACT_WARNING]);

	return c->findings->count || has_errors ? EXIT_FOUND : EXIT_DONE;
}

static int check(const char *const *paths, size_t count)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct checked c = { .arena = &a, .findings = &f };
	struct named named = sort_paths(paths, count, &a);
	struct error e = { 0 };

	if (!read_objects(&c, &named, &e))
		return command_failed(&command_check, &e);
	struct error unreadable = e;
	judge(&c);
	if (!check_worlds(&c, &named, &e))
		return command_failed(&command_check, &e);
	findings_sort(&f);
	check_print(&c, options.output);
	return f.is_incomplete ? command_failed(&command_check, &unreadable) : verdict(&c);
}

static int print_generated(void (*write)(struct buf *))
{
	CLEANUP(buf_release) struct buf text = { 0 };

	write(&text);
	fputs(text.text, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	bool wants_reference = false, wants_schema = false, wants_rules = false, wants_policies = false;
	const struct option_row rows[] = {
		{ "cluster", 0, OPTION_FLAG, NULL, "check the objects of a live cluster, nodes too; reads only",
		  &options.reads_cluster, NULL },
		{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "of the cluster only this namespace (default: all)",
		  &options.access.namespace, NULL },
		{ "kubeconfig", 0, OPTION_TEXT, "FILE",
		  "how to reach the API server (default: the pod's own, or KUBECONFIG)", &options.access.kubeconfig,
		  NULL },
		{ "context", 0, OPTION_TEXT, "NAME", "the context of the kubeconfig", &options.access.context, NULL },
		{ "strict", 0, OPTION_FLAG, NULL, "exit code 1 for warnings, too", &options.is_strict, NULL },
		{ "output", 'o', OPTION_CHOICE, "FORMAT", "how it is printed", &options.output, ANSWER_FORMS "|sarif" },
		{ "print-rules", 0, OPTION_FLAG, NULL, "print the rules of the scheduling contract (docs/contract.md)",
		  &wants_rules, NULL },
		{ "print-policies", 0, OPTION_FLAG, NULL,
		  "print them as admission policies (deploy/admission/policies/policies.yaml)", &wants_policies, NULL },
		{ "print-reference", 0, OPTION_FLAG, NULL, "print what a manifest may say (docs/manifest.md)",
		  &wants_reference, NULL },
		{ "print-schema", 0, OPTION_FLAG, NULL, "print its JSON Schema (docs/manifest.schema.json)",
		  &wants_schema, NULL },
	};
	int rest, code;

	options.output = "table";
	if (!command_options(&command_check, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (wants_rules)
		return print_generated(contract_write_reference);
	if (wants_policies)
		return print_generated(contract_write_policies);
	if (wants_reference)
		return print_generated(manifest_write_reference);
	if (wants_schema)
		return print_generated(manifest_write_json_schema);
	return check((const char *const *)argv + rest, (size_t)(argc - rest));
}

const struct command command_check = {
	.name = "check",
	.usage = "check [OPTIONS] FILE|FOLDER|-...",
	.summary = "Check manifests and what runs beside pools, in files or in a cluster",
	.examples = "  preheat check pool.yaml\n"
		    "  preheat check manifests/ --output json\n"
		    "  helm template my-release ./chart | preheat check - pools.yaml\n"
		    "  preheat check --cluster                 live objects, nodes too\n"
		    "  preheat check manifests/ -o sarif >preheat.sarif\n"
		    "  preheat check pool.yaml world.yaml      a world file against its pools\n"
		    "  kubectl get configmap preheat -o jsonpath='{.data.pools\\.yaml}' | preheat check -\n",
	.notes = "WarmPools are checked key by key (docs/manifest.md). Workloads, nodes, budgets and scalers are "
		 "judged by\n"
		 "the rules of the scheduling contract (docs/contract.md): each violation names its rule and remedy.\n"
		 "The annotation preheat.dev/ignore: RULE, RULE takes rules off an object.\n",
	.arguments = "FILE",
	.run = run,
};
