/* preheat status: pools as rows. */
#include "base/quantity.h"
#include "base/terminal.h"
#include "base/schedule.h"
#include "controller/commands/access.h"
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/status_rows.h"
#include "controller/explain/explain.h"
#include "controller/policy/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
	struct access_options access;
	bool is_everywhere, is_utc;
	const char *db, *pool, *output;
} options = { .output = "table" };

static const struct option_row rows[] = {
	{ "db", 0, OPTION_TEXT, "FILE", "the newest decisions of a history, instead of asking the API server",
	  &options.db, NULL },
	{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "only pools of this namespace (default: the kubeconfig's)",
	  &options.access.namespace, NULL },
	{ "all-namespaces", 'A', OPTION_FLAG, NULL, "pools of all namespaces", &options.is_everywhere, NULL },
	{ "pool", 'p', OPTION_TEXT, "POOL", "only this pool: NAME or NAMESPACE/NAME", &options.pool, NULL },
	ANSWER_OPTION(&options.output),
	{ "utc", 0, OPTION_FLAG, NULL, "times in UTC instead of this machine's zone", &options.is_utc, NULL },
	{ "kubeconfig", 0, OPTION_TEXT, "FILE", "how to reach the API server (default: the pod's own, or KUBECONFIG)",
	  &options.access.kubeconfig, NULL },
	{ "context", 0, OPTION_TEXT, "NAME", "the context of the kubeconfig", &options.access.context, NULL },
};

static const struct table_column columns[] = {
	{ .name = "cluster" }, /* of a fleet only */
	{ .name = "namespace" },
	{ .name = "name" },
	{ .name = "class" },
	{ .name = "mode" },
	{ .name = "hot", .is_right = true },
	{ .name = "starting", .is_right = true, .is_wide = true },
	{ .name = "draining", .is_right = true, .is_wide = true },
	{ .name = "standby", .is_right = true },
	{ .name = "headroom", .is_right = true },
	{ .name = "demand", .is_right = true },
	{ .name = "wished", .is_right = true, .is_wide = true },
	{ .name = "decided", .is_right = true, .is_wide = true },
	{ .name = "lead_time", .title = "LEAD-TIME", .is_right = true },
	{ .name = "wait", .is_right = true },
	{ .name = "limit" },
	{ .name = "last_change", .title = "LAST-CHANGE", .is_right = true },
	{ .name = "conditions", .is_wide = true },
	{ .name = "reason", .is_wide = true },
};

static const millis SILENT = 5 * MINUTE;

static bool is_for_programs(void)
{
	return table_is_for_programs(table_format_of(options.output));
}

static void add_text(struct table *t, const char *text)
{
	if (text)
		table_text(t, text);
	else
		table_absent(t);
}

static void add_count(struct table *t, int64_t n)
{
	if (n == ABSENT)
		table_absent(t);
	else
		table_count(t, n);
}

/* "3.2" is a number for programs, too. */
static void add_replicas(struct table *t, const char *text)
{
	int64_t tenths;

	if (text && decimal_parse(text + (*text == '-'), strlen(text + (*text == '-')), 1, &tenths) == DECIMAL_OK)
		table_value(t, text, text);
	else
		add_text(t, text);
}

/* An age for people, a time for programs. */
static void add_time(struct table *t, millis at, millis now)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!at) {
		table_absent(t);
		return;
	}
	if (!is_for_programs()) {
		millis age = now > at ? (now - at) / SECOND * SECOND : 0;
		table_text(t, age ? human_duration(age).text : "0s");
		return;
	}
	explain_time_rfc3339(at, &text);
	table_text(t, text.text);
}

static void add_row(struct table *t, const struct status_row *r, millis now)
{
	if (r->cluster)
		table_text(t, r->cluster);
	table_text(t, r->namespace);
	table_text(t, r->name);
	add_text(t, r->class);
	add_text(t, r->mode);
	add_count(t, r->hot);
	add_count(t, r->starting);
	add_count(t, r->draining);
	add_count(t, r->standby);
	add_replicas(t, r->headroom);
	add_replicas(t, r->demand);
	add_count(t, r->wished);
	add_count(t, r->decided);
	add_text(t, r->lead_time);
	add_text(t, r->wait);
	add_text(t, r->limit);
	if (r->limit && strcmp(r->limit, "none") != 0)
		table_style(t, r->refusal ? STYLE_BAD : STYLE_WARN);
	add_time(t, r->changed_at, now);
	add_text(t, r->conditions);
	if (r->conditions)
		table_style(t, STYLE_WARN);
	add_text(t, r->refusal ? r->refusal : r->reason);
}

/* What a table does not say, on standard error. */
static void print_remarks(const struct status_rows *s, const char *namespace)
{
	millis newest = 0;

	if (!s->count && namespace)
		fprintf(stderr, "No WarmPools found in namespace %s; -A looks in all.\n", namespace);
	else if (!s->count)
		fputs("No WarmPools found.\n", stderr);
	for (size_t i = 0; i < s->count; i++) {
		const struct status_row *r = &s->items[i];
		newest = r->decided_at > newest ? r->decided_at : newest;
		if (s->is_fleet && s->now - r->decided_at > SILENT)
			fprintf(stderr, "%s: the last decision on %s/%s is %s older than the newest here\n", r->cluster,
				r->namespace, r->name, human_duration((s->now - r->decided_at) / SECOND * SECOND).text);
		if (r->refusal && !is_for_programs())
			fprintf(stderr, "%s/%s is refused: %s\n", r->namespace, r->name, r->refusal);
	}
	if (s->count && !newest && !options.db)
		fputs("Nothing has been decided yet: is the controller running?\n", stderr);
	else if (newest && s->now - newest > SILENT)
		fprintf(stderr, "The last decision is %s old: is the controller running?\n",
			human_duration((s->now - newest) / SECOND * SECOND).text);
	if (options.db && newest) {
		CLEANUP(buf_release) struct buf time = { 0 };
		explain_time(newest, options.is_utc ? 0 : zone_offset(newest), &time);
		fprintf(stderr, "As decided at %s%s.\n", time.text, options.is_utc ? " UTC" : "");
	}
}

static bool check(int argc, char **argv, int rest, struct error *e)
{
	if (rest < argc)
		return error_set(e, ERROR_INVALID,
				 "found '%.100s'; allowed: no arguments; one pool is given with --pool NAME",
				 argv[rest]);
	if (options.is_everywhere && options.access.namespace)
		return error_set(e, ERROR_INVALID, "--all-namespaces and --namespace contradict each other; give one");
	if (options.db && (options.access.kubeconfig || options.access.context))
		return error_set(
			e, ERROR_INVALID,
			"--db reads a history and asks no API server; give it without --kubeconfig and --context");
	return true;
}

static bool find_rows(struct arena *a, struct status_filter *f, struct status_rows *s, struct error *e)
{
	*f = (struct status_filter){ .namespace = options.access.namespace,
				     .pool = options.pool,
				     .is_everywhere = options.is_everywhere };
	if (options.db)
		return status_from_history(options.db, f, a, s, e);
	return status_from_cluster(&options.access, f, a, s, e);
}

static int run(int argc, char **argv)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct status_filter filter;
	struct status_rows found;
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_status, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (!check(argc, argv, rest, &e) || !find_rows(&a, &filter, &found, &e))
		return command_failed(&command_status, &e);
	const size_t left_out = found.is_fleet ? 0 : 1;
	struct table *t = table_new(columns + left_out, sizeof columns / sizeof *columns - left_out);
	for (size_t i = 0; i < found.count; i++)
		add_row(t, &found.items[i], found.now);
	if (found.count || is_for_programs())
		table_print(t, table_format_of(options.output), stdout);
	table_free(t);
	print_remarks(&found, filter.namespace);
	return EXIT_DONE;
}

const struct command command_status = {
	.name = "status",
	.usage = "status [OPTION...]",
	.summary = "Show what every pool has, wants and waits for",
	.examples = "  preheat status -A\n"
		    "  preheat status -n llm --pool chat -o wide\n"
		    "  preheat status --db /var/lib/preheat/history.db\n"
		    "  preheat status --db postgresql://db.internal/fleet      all clusters\n",
	.run = run,
};
