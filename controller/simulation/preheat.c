#include "controller/simulation/simulate.h"

#include "base/quantity.h"
#include "controller/policy/decide.h"

#include <string.h>

struct preheat {
	struct memory *memory;
	struct arena arena;
};

static bool fix_rule(struct memory *m, const struct fleet_spec *fleet, const char *setting, struct error *e)
{
	int64_t rule;

	if (!*setting)
		return true;
	if (strncmp(setting, "rule=", 5) != 0 || !fixed_parse(setting + 5, strlen(setting + 5), 0, &rule))
		return error_set(e, ERROR_INVALID,
				 "preheat: setting '%s'; allowed: nothing, or rule=N to follow one rule; "
				 "the numbers stand in the decisions (preheat explain)",
				 setting);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		if (rule >= (int64_t)rule_count(m, i))
			return error_set(e, ERROR_INVALID, "preheat: rule=%lld; pool %s has rules 0 to %zu",
					 (long long)rule, fleet->pools[i].name, rule_count(m, i) - 1);
		memory_fix_rule(m, i, rule);
	}
	return true;
}

static void preheat_close(void *state)
{
	struct preheat *p = state;

	memory_free(p->memory);
	struct arena arena = p->arena; /* the state lies in it */
	arena_release(&arena);
}

static void *preheat_open(const struct fleet_spec *fleet, const char *setting, struct error *e)
{
	struct arena arena = { 0 };
	struct preheat *p = arena_new(&arena, struct preheat);

	p->arena = arena;
	p->memory = memory_new(fleet);
	if (fix_rule(p->memory, fleet, setting, e))
		return p;
	preheat_close(p);
	return NULL;
}

static struct plan preheat_decide(void *state, const struct snapshot *s, struct arena *a)
{
	return policy_decide(s, ((struct preheat *)state)->memory, a);
}

struct memory *preheat_memory(void *state)
{
	return ((struct preheat *)state)->memory;
}

const struct policy_ops policy_preheat = {
	.name = "preheat",
	.help = "shadow fleets: follows the rule that would have met the objective most cheaply so far",
	.open = preheat_open,
	.close = preheat_close,
	.decide = preheat_decide,
};
