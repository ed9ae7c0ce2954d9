/* Runs all rules over all objects, and puts what they find in order. */
#include "controller/contract/rule_runner.h"

#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *contract_severity_name(enum contract_severity s)
{
	static const char *const names[] = { "error", "warning", "note" };

	return names[s];
}

static const char *visible(struct arena *a, const struct buf *text)
{
	return buf_ok(text) ? text_visible(arena_strdup(a, text->text, text->len), a) : "too long to say";
}

const char *say(struct check_run *c, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { .cap = 4000 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	return visible(c->contract->arena, &text);
}

const char *shown_value(struct check_run *c, const struct yaml_node *n)
{
	char room[QUOTE_ROOM];

	if (!n)
		return "nothing";
	if (n->kind != YAML_SCALAR)
		return n->kind == YAML_MAP ? "a map" : "a list";
	return say(c, "%s", quote(room, n->text, strlen(n->text)));
}

/* Whether a list of ids with commas or spaces holds one. */
static bool lists(const char *list, const char *id)
{
	size_t len = strlen(id);

	for (; list && *list; list += strcspn(list, ", ")) {
		list += strspn(list, ", ");
		if (!strncmp(list, id, len) && (list[len] == '\0' || strchr(", ", list[len])))
			return true;
	}
	return false;
}

static bool is_ignored(const struct check_run *c, const struct object *o)
{
	if (lists(label_of(&o->annotations, CONTRACT_IGNORE), c->rule->id))
		return true;
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		if (w->object.ref.at == o->ref.at && lists(label_of(&w->annotations, CONTRACT_IGNORE), c->rule->id))
			return true;
	}
	return false;
}

void violate(struct check_run *c, const struct breach *b, const char *found, ...)
{
	CLEANUP(buf_release) struct buf text = { .cap = 4000 };
	struct arena *a = c->contract->arena;
	va_list ap;

	va_start(ap, found);
	buf_vprintf(&text, found, ap);
	va_end(ap);
	ADD(a, c->items, c->count, struct contract_violation) = (struct contract_violation){
		.rule = c->rule,
		.object = &b->object->ref,
		.at = b->at ? b->at : b->object->ref.at,
		.found = visible(a, &text),
		.remedy = b->remedy ? b->remedy : c->rule->remedy,
		.is_ignored = is_ignored(c, b->object),
	};
}

static int compare_places(const struct yaml_node *a, const struct yaml_node *b)
{
	int order = strcmp(a->file, b->file);

	if (!order)
		order = (a->line > b->line) - (a->line < b->line);
	return order ? order : (a->column > b->column) - (a->column < b->column);
}

/* Live objects have no place of their own. */
static int compare_objects(const struct contract_object *a, const struct contract_object *b)
{
	int order = compare_places(a->at, b->at);

	if (!order)
		order = strcmp(a->kind, b->kind);
	if (!order)
		order = strcmp(a->namespace, b->namespace);
	return order ? order : strcmp(a->name, b->name);
}

static int compare(const void *left, const void *right)
{
	const struct contract_violation *a = left, *b = right;
	int order = compare_objects(a->object, b->object);

	if (!order)
		order = (a->rule->severity > b->rule->severity) - (a->rule->severity < b->rule->severity);
	if (!order)
		order = compare_places(a->at, b->at);
	if (!order)
		order = strcmp(a->rule->id, b->rule->id);
	return order ? order : strcmp(a->found, b->found);
}

static bool has_gpu_work(const struct contract *c)
{
	for (size_t i = 0; i < c->workload_count; i++)
		if (c->workloads[i].gpus)
			return true;
	return false;
}

/* GPUs that are claimed by what cannot be read here are not seen by any rule. */
static void tell_claims(struct check_run *run, const char **texts, struct contract_report *r)
{
	const struct contract *c = run->contract;
	const struct workload *absent = NULL, *unknown = NULL;
	size_t absents = 0, unknowns = 0;

	for (size_t i = 0; i < c->workload_count; i++) {
		const struct workload *w = &c->workloads[i];
		absents += w->claim_absent ? w->object.ref.times : 0;
		unknowns += w->class_unknown ? w->object.ref.times : 0;
		absent = absent || !w->claim_absent ? absent : w;
		unknown = unknown || !w->class_unknown ? unknown : w;
	}
	if (absent)
		texts[r->unjudged_count++] = say(
			run,
			"what %zu workload%s of GPUs by resource claims that are not among the objects, or that have "
			"no devices.requests (%s/%s: %s); give the ResourceClaims and ResourceClaimTemplates, too",
			absents, absents == 1 ? " asks" : "s ask", absent->object.ref.namespace,
			absent->object.ref.name, absent->claim_absent);
	if (unknown)
		texts[r->unjudged_count++] =
			say(run,
			    "what %zu workload%s by a DeviceClass that is not known to be of GPUs (%s/%s: '%s'); those "
			    "with gpu in their name, and mig., are",
			    unknowns, unknowns == 1 ? " claims" : "s claim", unknown->object.ref.namespace,
			    unknown->object.ref.name, unknown->class_unknown);
}

static void tell_unjudged(struct check_run *run, struct contract_report *r)
{
	const struct contract *c = run->contract;
	const char **texts = arena_array(c->arena, const char *, 4);

	tell_claims(run, texts, r);

	if (!c->manifest && has_gpu_work(c))
		texts[r->unjudged_count++] =
			c->has_broken_pools ? "the WarmPools have mistakes: whether pods belong to a pool, fit its "
					      "node groups and keep its objective was not judged"
					    : "no WarmPool is among the objects: whether pods belong to a pool, fit "
					      "its node groups and keep its objective was not judged";
	for (size_t i = 0; c->manifest && i < c->manifest->fleet.group_count; i++)
		if (!c->groups[i].source && has_gpu_work(c)) {
			texts[r->unjudged_count++] =
				"of some node groups neither a node nor an instanceType of the table "
				"in docs/contract.md is known: whether pods fit them was not judged";
			break;
		}
	r->unjudged = texts;
}

struct contract_report contract_judge(struct contract *c)
{
	struct check_run run = { .contract = c };
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	contract_resolve(c);
	for (size_t i = 0; i < count; i++) {
		run.rule = &rules[i];
		if (rules[i].judge)
			rules[i].judge(&run);
		for (size_t k = 0; !rules[i].judge && k < c->workload_count; k++)
			if (!rules[i].is_about || rules[i].is_about(c, &c->workloads[k]))
				rules[i].judge_workload(&run, &c->workloads[k]);
	}
	if (run.count)
		qsort(run.items, run.count, sizeof *run.items, compare);
	struct contract_report r = { .items = run.items, .count = run.count, .objects = c->objects };
	for (size_t i = 0; i < run.count; i++) {
		const struct contract_violation *v = &run.items[i];
		*(v->is_ignored ? &r.ignored : &r.counts[v->rule->severity]) += v->object->times;
	}
	tell_unjudged(&run, &r);
	return r;
}

const struct contract_rule *contract_rules(size_t *count)
{
	static const struct rule_list *const lists[] = { &rules_of_pods, &rules_of_serving, &rules_of_sleep,
							 &rules_of_pools };
	static struct contract_rule all[RULES_MOST];
	size_t filled = 0;

	for (size_t i = 0; i < sizeof lists / sizeof(const struct rule_list *); i++) {
		assert(filled + lists[i]->count <= RULES_MOST);
		memcpy(&all[filled], lists[i]->items, lists[i]->count * sizeof *all);
		filled += lists[i]->count;
	}
	*count = filled;
	return all;
}
