/* preheat init: from a cluster to WarmPools and, where a Prometheus has kept a week, to a verdict. Read only. */
#include "base/file.h"
#include "base/terminal.h"
#include "base/yaml.h"
#include "controller/commands/cluster_objects.h"
#include "controller/commands/command.h"
#include "controller/commands/discover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(int argc, char **argv);

static struct init_options {
	struct cluster_args access;
	struct option_list files;
	const char *prometheus, *out;
	millis last;
	bool force;
} options = { .out = "preheat", .last = 7 * DAY };

static const struct yaml_limits limits = {
	.bytes = (size_t)64 << 20, .nodes = 4000000, .depth = 128, .documents = 10000, .takes_all = true
};

static const struct object_kind kinds[] = {
	{ "v1", "Node", "nodes", false, false },
	{ "apps/v1", "Deployment", "deployments", true, false },
	{ "apps/v1", "StatefulSet", "statefulsets", true, false },
	{ "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, true },
	{ "keda.sh/v1alpha1", "ScaledObject", "scaledobjects", true, true },
	OBJECT_KIND_TEMPLATES,
	{ "resource.k8s.io/v1", "ResourceSlice", "resourceslices", false, true },
	{ "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", true, true },
	{ "v1", "Pod", "pods", true, false },
};

struct init {
	struct arena arena;
	struct discovery *found;
	struct buf pools, fallback, autoscalers, week, verdict, table; /* paths */
	bool has_fallback, has_autoscalers, is_refused, made_folder;
};

static void init_release(struct init *x)
{
	buf_release(&x->pools);
	buf_release(&x->fallback);
	buf_release(&x->autoscalers);
	buf_release(&x->week);
	buf_release(&x->verdict);
	buf_release(&x->table);
	arena_release(&x->arena);
}

static void take(void *user, const struct yaml_node *object, size_t times)
{
	(void)times; /* 1 */
	discovery_add(((struct init *)user)->found, object);
}

static bool leaves_out(void *user, const struct object_kind *kind, const struct error *why)
{
	struct init *x = user;

	fprintf(stderr, "%s init: %s were not read%s: %s\n", command_program(), kind->plural,
		kind->is_optional ? ", and are left out of what follows" : "", why->message);
	x->is_refused |= !kind->is_optional;
	return true;
}

static bool read_files(struct init *x, struct error *e)
{
	for (size_t i = 0; i < options.files.count; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		CLEANUP(findings_release) struct findings findings = { 0 };
		const char *path = options.files.items[i];
		struct yaml_documents docs;

		if (!file_read(path, limits.bytes, &text, e))
			return false;
		const struct yaml_source source = { path, text.text ? text.text : "", text.len, limits };
		if (!yaml_parse_source(&source, &x->arena, &docs, &findings))
			return findings_error(&findings, e);
		for (size_t k = 0; k < docs.count; k++)
			if (docs.roots[k])
				discovery_add(x->found, docs.roots[k]);
	}
	return true;
}

static bool read_objects(struct init *x, struct error *e)
{
	const struct object_reader reader = { .kinds = kinds,
					      .count = sizeof kinds / sizeof *kinds,
					      .arena = &x->arena,
					      .take = take,
					      .leaves_out = leaves_out,
					      .user = x };

	if (options.files.count)
		return read_files(x, e);
	return cluster_objects_read(&reader, &options.access, e);
}

static bool is_free(const char *path, struct error *e)
{
	return options.force || access(path, F_OK) != 0 ||
	       error_set(e, ERROR_CONFLICT, "%s is there; do: give another --out DIR, or --force to replace it", path);
}

static bool prepare(struct init *x, struct error *e)
{
	buf_printf(&x->pools, "%s/pools.yaml", options.out);
	buf_printf(&x->fallback, "%s/default-pool.yaml", options.out);
	buf_printf(&x->autoscalers, "%s/autoscalers.yaml", options.out);
	buf_printf(&x->week, "%s/week.db", options.out);
	buf_printf(&x->verdict, "%s/verdict", options.out);
	buf_printf(&x->table, "%s/verdict.txt", options.out);
	x->made_folder = mkdir(options.out, 0777) == 0;
	if (!x->made_folder && errno != EEXIST)
		return error_set(e, file_error_kind(errno), "%s: %s", options.out, strerror(errno));
	return is_free(x->pools.text, e) && is_free(x->fallback.text, e) && is_free(x->autoscalers.text, e) &&
	       is_free(x->week.text, e) && is_free(x->verdict.text, e) && is_free(x->table.text, e);
}

static bool write_found(struct init *x, struct error *e)
{
	CLEANUP(buf_release) struct buf pools = { 0 }, fallback = { 0 }, autoscalers = { 0 };

	discovery_write_pools(x->found, options.prometheus,
			      options.files.count ? options.files.items[0] : "the cluster", &pools);
	x->has_autoscalers = discovery_write_autoscalers(x->found, &autoscalers) > 0;
	x->has_fallback = discovery_write_default(x->found, &fallback);
	return file_write(x->pools.text, pools.text, pools.len, e) &&
	       (!x->has_fallback || file_write(x->fallback.text, fallback.text, fallback.len, e)) &&
	       (!x->has_autoscalers || file_write(x->autoscalers.text, autoscalers.text, autoscalers.len, e));
}

/* Another verb in a process of its own, its standard output in the file (NULL: ours). Its exit code. */
static int other(const char *verb, const char *output, char **argv)
{
	const struct command *c = command_find(NULL, verb);
	int argc = 0, status = 0;

	while (argv[argc])
		argc++;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		if (output && !freopen(output, "w", stdout))
			_exit(EXIT_ENVIRONMENT);
		int code = c->run(argc, argv);
		fflush(NULL);
		_exit(code);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_ENVIRONMENT;
}

static const struct yaml_node *read_tree(struct init *x, const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct yaml_documents docs;
	struct error e = { 0 };

	buf_printf(&path, "%s/%s", x->verdict.text, name);
	if (!file_read(path.text, limits.bytes, &text, &e))
		return NULL;
	const struct yaml_source source = { path.text, text.text, text.len, limits };
	return yaml_parse_source(&source, &x->arena, &docs, &findings) && docs.count ? docs.roots[0] : NULL;
}

static double number(const struct yaml_node *map, const char *key)
{
	const char *text = yaml_text(map, key);

	return text ? strtod(text, NULL) : 0;
}

static bool is_true(const struct yaml_node *map, const char *key)
{
	const char *text = yaml_text(map, key);

	return text && !strcmp(text, "true");
}

/* "13.4 GPU hours ($16.39) with 0.02 % late" */
static void say_cost(const struct yaml_node *map)
{
	printf("%.1f GPU hours", number(map, "gpu_hours"));
	if (number(map, "dollars") > 0)
		printf(" (%s)", human_dollars(number(map, "dollars")).text);
	printf(" with %s late", human_share(number(map, "late_share")).text);
}

/* A row of the comparison, where its objective is known to be missed, or met by chance only. */
static void say_row(const struct yaml_node *row)
{
	const struct yaml_node *scored = yaml_child(row, "scored");
	double draws = number(scored, "draws"), met = number(scored, "draws_met");
	bool is_met = is_true(row, "meets_objective"), is_split = met > 0 && met < draws;

	say_cost(row);
	struct human least = human_share(number(scored, "late_share_least")),
		     most = human_share(number(scored, "late_share_most"));
	if (draws > 1 && strcmp(least.text, most.text) != 0)
		printf(" (%s to %s in %.0f draws)", least.text, most.text, draws);
	if (is_split)
		printf(", which %s the objective on the mean, and met it in %.0f of the draws",
		       is_met ? "keeps" : "misses", met);
	else if (!is_met)
		fputs(", which misses the objective", stdout);
}

static void say_ours(const struct yaml_node *rows, const char *pool)
{
	for (const struct yaml_node *r = rows ? rows->first : NULL; r; r = r->next) {
		const char *of = yaml_text(r, "pool"), *policy = yaml_text(r, "policy");

		if (of && policy && !strcmp(of, pool) && !strcmp(policy, "preheat"))
			say_row(r);
	}
}

static void say_rivals(const struct yaml_node *rows, const char *pool)
{
	for (const struct yaml_node *r = rows ? rows->first : NULL; r; r = r->next) {
		const char *of = yaml_text(r, "pool"), *policy = yaml_text(r, "policy"),
			   *object = yaml_text(r, "object");

		if (!of || !policy || strcmp(of, pool) != 0)
			continue;
		if (object) {
			printf("\n  your %s, in the model: ", object);
			say_row(r);
		} else if (!strcmp(policy, "hpa") && is_true(r, "is_cheapest")) {
			printf("\n  an HPA at its best, known only afterwards (%s): ", yaml_text(r, "setting"));
			say_row(r);
		}
	}
}

/* What simulate wrote, in a sentence for each pool. */
static bool say_verdict(struct init *x)
{
	const struct yaml_node *summary = read_tree(x, "summary.json"), *rows = read_tree(x, "compare.json");
	const struct yaml_node *recorded = summary ? yaml_child(summary, "recorded") : NULL;
	bool has_unseen = false;

	for (const struct yaml_node *r = recorded ? recorded->first : NULL; r; r = r->next) {
		printf("\n%s: you held ", r->key);
		say_cost(r);
		if (!is_true(r, "model_fits")) {
			printf(".\n  The model does not fit what was recorded, so there is no verdict; %s says "
			       "why.\n",
			       x->table.text);
			continue;
		}
		printf(".\n  Preheat would have held ");
		say_ours(rows, r->key);
		say_rivals(rows, r->key);
		putchar('\n');
		has_unseen |= is_true(r, "has_unseen_starts");
	}
	if (has_unseen)
		puts("\nWhat you held is of replicas that served: Prometheus does not tell of machines that started or "
		     "stood "
		     "idle,\nwhich were billed too. The other hours count them.");
	return recorded != NULL;
}

static int judge_week(struct init *x)
{
	CLEANUP(buf_release) struct buf last = { 0 };

	buf_printf(&last, "%llds", (long long)(options.last / SECOND));
	printf("\nThe last %s, from %s:\n", human_duration(options.last).text, options.prometheus);
	char *import[] = { "import",  "--prometheus", (char *)(uintptr_t)options.prometheus,
			   "-f",      x->pools.text,  "--last",
			   last.text, "--out",	      x->week.text,
			   NULL };
	enum { AUTOSCALERS_AT = 9 };
	char *simulate[] = { "simulate",
			     "--recording",
			     x->week.text,
			     "--compare",
			     "--rivals",
			     "hpa",
			     "--out",
			     x->verdict.text,
			     "--force",
			     x->has_autoscalers ? "--autoscalers" : NULL,
			     x->autoscalers.text,
			     NULL };
	if (options.force)
		unlink(x->week.text);
	int code = other("import", NULL, import);
	if (code != EXIT_DONE)
		return code;
	code = other("simulate", x->table.text, simulate);
	if (code == EXIT_USAGE && x->has_autoscalers) { /* the model has none of them, which was said */
		puts("\nYour autoscalers are not in the model; without them:");
		x->has_autoscalers = false;
		simulate[AUTOSCALERS_AT] = NULL;
		code = other("simulate", x->table.text, simulate);
	}
	return code == EXIT_DONE && !say_verdict(x) ? EXIT_ENVIRONMENT : code;
}

static void say_next(const struct init *x, bool has_verdict)
{
	puts("\nNext:");
	if (has_verdict) {
		printf("  # why the largest decision was made; charts: %s/report.html\n  %s explain --db %s "
		       "--largest\n",
		       x->verdict.text, command_program(), x->verdict.text);
	} else {
		printf("  # a week of what these pools see, read-only; then the verdict\n  %s record -f %s --for 7d "
		       "--db %s\n",
		       command_program(), x->pools.text, x->week.text);
		printf("  %s simulate --recording %s --compare%s%s\n", command_program(), x->week.text,
		       x->has_autoscalers ? " --autoscalers " : "", x->has_autoscalers ? x->autoscalers.text : "");
	}
	printf("  # after an edit\n  %s check %s%s%s\n", command_program(), x->pools.text, x->has_fallback ? " " : "",
	       x->has_fallback ? x->fallback.text : "");
	if (has_verdict)
		printf("  # decides and records, changes nothing\n  %s run -f %s --dry-run\n", command_program(),
		       x->pools.text);
}

static int nothing_found(const struct init *x)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	discovery_print(x->found, &text);
	fputs(text.text ? text.text : "", stdout);
	const struct discovery_lack lack = discovery_lacks(x->found);
	fprintf(stderr, "%s init: nothing to look after: found %s in %s%s; do: %s\n", command_program(), lack.lack,
		options.files.count	   ? "the files given"
		: options.access.namespace ? "the cluster and namespace "
					   : "the cluster",
		options.access.namespace ? options.access.namespace : "", lack.remedy);
	return EXIT_FOUND;
}

static int init(struct init *x, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	int code = EXIT_DONE;

	x->found = discovery_new(&x->arena);
	if (!prepare(x, e) || !read_objects(x, e))
		return EXIT_ENVIRONMENT;
	if (x->is_refused) {
		fprintf(stderr, "%s init: nothing was written; do: give this account list on what is named above\n",
			command_program());
		return EXIT_FOUND;
	}
	if (!discovery_finish(x->found))
		return nothing_found(x);
	if (!write_found(x, e))
		return EXIT_ENVIRONMENT;
	discovery_print(x->found, &text);
	printf("Found:\n%s\nWritten: %s%s%s%s%s\n\n", text.text, x->pools.text, x->has_autoscalers ? ", " : "",
	       x->has_autoscalers ? x->autoscalers.text : "", x->has_fallback ? ", " : "",
	       x->has_fallback ? x->fallback.text : "");
	other("check", NULL, (char *[]){ "check", x->pools.text, x->has_fallback ? x->fallback.text : NULL, NULL });
	if (options.prometheus)
		code = judge_week(x);
	say_next(x, options.prometheus && code == EXIT_DONE);
	return code;
}

static int run(int argc, char **argv)
{
	static const struct option_row rows[] = {
		{ "filename", 'f', OPTION_LIST, "FILE", "objects from kubectl get -o yaml instead of a cluster",
		  &options.files, NULL },
		{ "prometheus", 0, OPTION_TEXT, "URL", "judge the traffic that this server kept", &options.prometheus,
		  NULL },
		{ "last", 0, OPTION_PERIOD, "DURATION", "with --prometheus: how far back (default: 7d)", &options.last,
		  NULL },
		{ "out", 0, OPTION_TEXT, "DIR", "where files are written (default: preheat)", &options.out, NULL },
		{ "force", 0, OPTION_FLAG, NULL, "replace existing files", &options.force, NULL },
		{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "only this one (default: all)", &options.access.namespace,
		  NULL },
		CLUSTER_ARGS_OPTIONS(&options.access),
	};
	CLEANUP(init_release) struct init x = { 0 };
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_init, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.100s'; allowed: options only; files are given with -f FILE",
			  argv[rest]);
		return command_failed(&command_init, &e);
	}
	code = init(&x, &e);
	if (x.made_folder)
		(void)rmdir(options.out); /* where nothing was written */
	return e.kind == ERROR_NONE ? code : command_failed(&command_init, &e);
}

static const struct option_rule rules[] = {
	{ "last", OPTION_NEEDS, "prometheus" },
	{ "namespace", OPTION_EXCLUDES, "filename" },
	{ "kubeconfig", OPTION_EXCLUDES, "filename" },
	{ "context", OPTION_EXCLUDES, "filename" },
	{ 0 },
};

const struct command command_init = {
	.name = "init",
	.usage = "init [--prometheus URL] [--out DIR]",
	.summary = "Find what serves on GPUs in a cluster, write its WarmPools, and judge its last week",
	.examples = "  preheat init\n"
		    "  preheat init --prometheus http://prometheus:9090 --out trial\n"
		    "  kubectl get nodes,pods,deploy,sts,hpa -A -o yaml | preheat init -f -\n",
	.notes =
		"Reads only. Pools are written in mode observe: nothing acts until you change that. GPU pods that are\n"
		"no model server it knows get default-pool.yaml, a pool of class any.\n"
		"Exit code 1: nothing was found, or something could not be listed; the message names it.\n",
	.rules = rules,
	.run = run,
};
