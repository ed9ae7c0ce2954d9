#include "controller/commands/provider_check.h"

#include "base/text.h"
#include "controller/commands/access.h"
#include "controller/commands/answer.h"
#include "controller/commands/command.h"

#include <stdio.h>
#include <string.h>

extern const struct command provider_command_check;

static const millis USUAL_TIMEOUT = MINUTE;

struct options {
	struct option_list pools, groups;
	const char *output;
	struct access_options access;
	millis timeout;
};

static bool is_asked_for(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->groups.count; i++)
		if (!strcmp(o->groups.items[i], name))
			return true;
	return !o->groups.count;
}

static bool check_names(const struct options *o, const struct fleet_spec *fleet, struct arena *a, struct error *e)
{
	const char **names = arena_array(a, const char *, fleet->group_count);
	CLEANUP(buf_release) struct buf all = { 0 };
	char shown[QUOTE_ROOM];

	for (size_t i = 0; i < fleet->group_count; i++) {
		names[i] = fleet->groups[i].name;
		buf_printf(&all, i ? ", %s" : "%s", names[i]);
	}
	for (size_t i = 0; i < o->groups.count; i++) {
		const char *wanted = o->groups.items[i];
		size_t k = 0;
		while (k < fleet->group_count && strcmp(names[k], wanted) != 0)
			k++;
		if (k < fleet->group_count)
			continue;
		const char *near = nearest_name(wanted, names, fleet->group_count);
		return error_set(e, ERROR_INVALID, "--group: no node group is called %s; %s%s%s",
				 quote(shown, wanted, strlen(wanted)),
				 near ? "did you mean '" : "there are: ", near ? near : all.text, near ? "'?" : "");
	}
	return true;
}

/* Which pools are on the group, and whether any of them acts. */
static void add_pools(const struct fleet_spec *fleet, size_t group, struct arena *a, struct group_check *g)
{
	CLEANUP(buf_release) struct buf names = { 0 };

	g->is_watched = true;
	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];
		for (size_t k = 0; k < p->group_count; k++) {
			if (p->groups[k] != group)
				continue;
			buf_printf(&names, "%s%s/%s", names.len ? ", " : "", p->namespace, p->name);
			g->is_watched &= p->mode != MODE_ACT;
		}
	}
	g->pools = arena_strdup(a, names.text ? names.text : "", names.len);
}

static size_t choose(const struct options *o, const struct fleet_spec *fleet, struct arena *a, struct group_check *out)
{
	size_t count = 0;

	for (size_t i = 0; i < fleet->group_count; i++) {
		if (!is_asked_for(o, fleet->groups[i].name))
			continue;
		out[count].spec = &fleet->groups[i];
		add_pools(fleet, i, a, &out[count++]);
	}
	return count;
}

static int print(const struct options *o, struct group_check *groups, size_t count, struct arena *a)
{
	static const int codes[] = { EXIT_DONE, EXIT_FOUND, EXIT_ENVIRONMENT };
	enum group_verdict worst = GROUP_FINE;

	for (size_t i = 0; i < count; i++) {
		group_check_judge(&groups[i], a);
		worst = groups[i].verdict > worst ? groups[i].verdict : worst;
	}
	if (answer_is_for_programs(o->output)) {
		CLEANUP(answer_release) struct answer answer = { .rows = "nodeGroups" };
		provider_check_write_json(groups, count, a, &answer.json);
		answer_print(&answer, o->output);
	} else {
		provider_check_print(groups, count, !strcmp(o->output, "wide"), a);
	}
	return codes[worst];
}

static bool load(const struct options *o, struct arena *a, struct manifest *m, struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };

	if (!o->pools.count)
		return error_set(e, ERROR_INVALID, "no pool: name its manifest with --pool FILE");
	return manifest_load(o->pools.items, o->pools.count, a, m, &f, e) && check_names(o, &m->fleet, a, e);
}

static int check(const struct options *o)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct manifest m;
	struct error e = { 0 };

	if (!load(o, &a, &m, &e))
		return command_failed(&provider_command_check, &e);
	struct group_check *groups = arena_array(&a, struct group_check, m.fleet.group_count);
	size_t count = choose(o, &m.fleet, &a, groups);
	if (!provider_check_ask(groups, count, &o->access, o->timeout, &e))
		return command_failed(&provider_command_check, &e);
	int code = print(o, groups, count, &a);
	for (size_t i = 0; i < count; i++) {
		provider_call_release(&groups[i].check);
		provider_call_release(&groups[i].describe);
	}
	return code;
}

static int run(int argc, char **argv)
{
	struct options o = { .output = "table", .timeout = USUAL_TIMEOUT };
	const struct option_row rows[] = {
		{ "pool", 'p', OPTION_LIST, "FILE", "a manifest of WarmPools, or a folder of them; may be given again",
		  &o.pools, NULL },
		{ "group", 'g', OPTION_LIST, "GROUP", "only this node group; may be given again (default: all)",
		  &o.groups, NULL },
		ANSWER_OPTION(&o.output),
		{ "timeout", 0, OPTION_PERIOD, "DURATION", "for each node group; all are asked at once (default: 1m)",
		  &o.timeout, NULL },
		{ "kubeconfig", 0, OPTION_TEXT, "FILE",
		  "for node groups that are objects of the cluster (default: the pod's own, or KUBECONFIG)",
		  &o.access.kubeconfig, NULL },
		{ "context", 0, OPTION_TEXT, "NAME", "the context of the kubeconfig", &o.access.context, NULL },
	};
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&provider_command_check, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		char shown[QUOTE_ROOM];
		error_set(&e, ERROR_INVALID, "found %s; allowed: options only; do: name a manifest with --pool FILE",
			  quote(shown, argv[rest], strlen(argv[rest])));
		return command_failed(&provider_command_check, &e);
	}
	return check(&o);
}

const struct command provider_command_check = {
	.name = "provider check",
	.usage = "provider check --pool FILE... [OPTION...]",
	.summary = "Tell who we are to each node group's cloud, what we may do, see and would change",
	.examples = "  preheat provider check --pool pools.yaml\n"
		    "  preheat provider check --pool pools.yaml --group g5-od --output json\n"
		    "  kubectl -n preheat exec -i sts/preheat -- preheat provider check --pool - <pools.yaml\n",
	.notes = "Nothing is changed: what cannot be known without acting is told as unknown.\n"
		 "Exit code 1: something that is needed is denied, or a change would be refused.\n"
		 "3: no answer, or none in time.\n",
	.run = run,
};
