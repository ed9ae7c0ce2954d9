#include "base/quantity.h"
#include "controller/manifest/draft.h"

#include <string.h>

enum { DOLLAR_DIGITS = 6 };

static bool has_budget(const struct spec_text *s)
{
	return s->budget.node && s->budget.dollars_per_hour;
}

static bool is_shared(const struct spec_text *a, const struct spec_text *b)
{
	return has_budget(a) && has_budget(b) && *a->budget.name && !strcmp(a->budget.name, b->budget.name);
}

/* Pools before this one that share its budget must name the same amount. */
static void check_agreement(struct draft *d, size_t pool)
{
	const struct spec_text *s = draft_spec(d, pool);

	for (size_t i = 0; i < pool; i++) {
		const struct spec_text *other = draft_spec(d, i);
		if (!is_shared(s, other) || other->budget.dollars_per_hour == s->budget.dollars_per_hour)
			continue;
		const struct yaml_node *at = other->budget.node;
		CLEANUP(buf_release) struct buf allowed = { 0 };
		fixed_format(other->budget.dollars_per_hour, DOLLAR_DIGITS, &allowed);
		buf_printf(&allowed, ", as at %s:%zu:%zu under the same name", at->file, at->line, at->column);
		schema_find_key(d->findings, s->budget.node, "dollarsPerHour", NULL, allowed.text,
				"make both equal, or name another budget");
		return;
	}
}

static bool pool_names_group(const struct spec_text *s, const char *name)
{
	for (size_t i = 0; i < s->groups.count; i++)
		if (draft_groups(s)[i].name && !strcmp(draft_groups(s)[i].name, name))
			return true;
	return false;
}

static bool budget_covers_group(const struct draft *d, const struct spec_text *s, const char *name)
{
	if (pool_names_group(s, name))
		return true;
	for (size_t i = 0; i < d->pool_count; i++)
		if (is_shared(s, draft_spec(d, i)) && pool_names_group(draft_spec(d, i), name))
			return true;
	return false;
}

/* What the budget pays in any case, and the cheapest node it could buy. */
static void check_amount(struct draft *d, const struct spec_text *s)
{
	int64_t least = 0, cheapest = INT64_MAX;

	for (size_t i = 0; i < d->group_count; i++) {
		const struct group_text *g = &d->groups[i].merged;
		if (!budget_covers_group(d, s, g->name))
			continue;
		least += g->min * g->price_per_hour;
		if (g->max && g->price_per_hour < cheapest)
			cheapest = g->price_per_hour;
	}
	bool is_too_small = cheapest != INT64_MAX && cheapest > s->budget.dollars_per_hour;
	if (least <= s->budget.dollars_per_hour && !is_too_small)
		return;
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_text(&allowed, "at least ");
	fixed_format(is_too_small && cheapest > least ? cheapest : least, DOLLAR_DIGITS, &allowed);
	buf_text(&allowed,
		 is_too_small && cheapest > least ? ", the price of one node" : ", what min of the node groups costs");
	schema_find_key(d->findings, s->budget.node, "dollarsPerHour", NULL, allowed.text,
			"raise the budget or lower min");
}

void check_budgets(struct draft *d)
{
	for (size_t i = 0; i < d->pool_count; i++) {
		if (!has_budget(draft_spec(d, i)))
			continue;
		check_agreement(d, i);
		check_amount(d, draft_spec(d, i));
	}
}
