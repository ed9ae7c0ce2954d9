#include "controller/manifest/variation.h"

#include "base/quantity.h"

#include <string.h>

static const int64_t PPM = 1000000, LEAST_ATTAINMENT = 500000, MOST_ATTAINMENT = 999990;
static const int64_t COST_MOST = INT64_C(10000000000), BUDGET_LEAST = 10000, BUDGET_MOST = INT64_C(1000000000000);
static const int64_t REPLICAS_MOST = 1000000;

/* A fleet whose specs may be changed. */
struct fleet_copy {
	struct pool_spec *pools;
	struct group_spec *groups;
	const struct fleet_spec *fleet;
};

bool variation_is_any(const struct variation *c)
{
	return c->objective || c->violation_cost || c->budget || c->max;
}

static bool is_named(const struct pool_spec *p, const char *name, size_t len)
{
	size_t space = strlen(p->namespace);

	if (strlen(p->name) == len && !strncmp(p->name, name, len))
		return true;
	return len > space && !strncmp(p->namespace, name, space) && name[space] == '/' &&
	       strlen(p->name) == len - space - 1 && !strncmp(p->name, name + space + 1, len - space - 1);
}

static bool find_pool(const struct fleet_copy *f, const char *name, size_t len, struct pool_spec **pool)
{
	for (size_t i = 0; i < f->fleet->pool_count; i++)
		if (is_named(&f->pools[i], name, len)) {
			*pool = &f->pools[i];
			return true;
		}
	return false;
}

/* Cuts "POOL=VALUE". */
static bool split(const struct fleet_copy *f, const char *option, const char *only, const char **text,
		  struct pool_spec **pool, struct error *e)
{
	const char *equals = strchr(*text, '=');
	const char *name = equals ? *text : only;
	size_t len = equals ? (size_t)(equals - *text) : only ? strlen(only) : 0;

	*text = equals ? equals + 1 : *text;
	if (!name && f->fleet->pool_count == 1) {
		*pool = &f->pools[0];
		return true;
	}
	if (name && find_pool(f, name, len, pool))
		return true;
	if (!name)
		return error_set(e, ERROR_INVALID, "%s: of which pool? there are %zu; do: give POOL=VALUE", option,
				 f->fleet->pool_count);
	return error_set(e, ERROR_INVALID, "%s: no pool '%.*s' in the manifest of that time; the first one is %s/%s",
			 option, (int)(len < 100 ? len : 100), name, f->pools[0].namespace, f->pools[0].name);
}

static bool set_objective(const char *name, struct pool_spec *p, const char *text, struct error *e)
{
	size_t wait_len = strcspn(text, ",");
	millis wait = p->objective_wait;
	int64_t share = PPM - p->objective_late_ppm;
	bool ok = true;

	if (text[wait_len] || !strchr(text, '%'))
		ok = duration_parse(text, wait_len, &wait) && wait > 0 && wait <= HOUR;
	if (text[wait_len] || strchr(text, '%')) {
		const char *rest = text[wait_len] ? text + wait_len + 1 : text;
		ok = ok && share_parse(rest, strlen(rest), &share) && share >= LEAST_ATTAINMENT &&
		     share <= MOST_ATTAINMENT;
	}
	if (!ok)
		return error_set(e, ERROR_INVALID,
				 "%s: found '%.60s'; allowed: a queue wait up to 1h, a share from 50%% to 99.999%%, "
				 "or both, like 2s,99.5%%",
				 name, text);
	p->objective_wait = wait;
	p->objective_late_ppm = PPM - share;
	p->violation_cost = 0;
	return true;
}

static bool set_violation_cost(const char *name, struct pool_spec *p, const char *text, struct error *e)
{
	int64_t cost;

	if (!fixed_parse(text, strlen(text), 6, &cost) || cost < 1 || cost > COST_MOST)
		return error_set(e, ERROR_INVALID, "%s: found '%.60s'; allowed: dollars above 0 up to 10000, like 0.01",
				 name, text);
	p->violation_cost = cost;
	return true;
}

static bool set_budget(const char *name, const struct fleet_copy *f, struct pool_spec *p, const char *text,
		       struct error *e)
{
	int64_t budget;

	if (!fixed_parse(text, strlen(text), 6, &budget) || budget < BUDGET_LEAST || budget > BUDGET_MOST)
		return error_set(e, ERROR_INVALID,
				 "%s: found '%.60s'; allowed: dollars an hour from 0.01 to 1000000, like 200", name,
				 text);
	for (size_t i = 0; i < f->fleet->pool_count; i++) {
		struct pool_spec *other = &f->pools[i];
		if (other == p || (*p->budget_name && !strcmp(other->budget_name, p->budget_name)))
			other->budget_per_hour = budget;
	}
	return true;
}

static bool set_max(const char *name, const struct fleet_copy *f, const struct pool_spec *p, const char *text,
		    struct error *e)
{
	int64_t left;

	if (!fixed_parse(text, strlen(text), 0, &left) || left < 1 || left > REPLICAS_MOST)
		return error_set(e, ERROR_INVALID, "%s: found '%.60s'; allowed: replicas from 1 to 1000000", name,
				 text);
	for (size_t i = 0; i < p->group_count; i++) {
		struct group_spec *g = &f->groups[p->groups[i]];
		int64_t each = replicas_per_node(g, p), nodes = each > 0 ? (left + each - 1) / each : 0;

		g->max_nodes = nodes < g->max_nodes ? nodes : g->max_nodes;
		g->min_nodes = g->min_nodes < g->max_nodes ? g->min_nodes : g->max_nodes;
		g->standby_max_nodes = g->standby_max_nodes < g->max_nodes ? g->standby_max_nodes : g->max_nodes;
		left -= g->max_nodes * each;
		left = left > 0 ? left : 0;
	}
	return true;
}

static struct fleet_copy copy_fleet(struct manifest *m, struct arena *a)
{
	struct fleet_copy f = { .fleet = &m->fleet };

	f.pools = arena_array(a, struct pool_spec, m->fleet.pool_count + 1);
	f.groups = arena_array(a, struct group_spec, m->fleet.group_count + 1);
	memcpy(f.pools, m->fleet.pools, m->fleet.pool_count * sizeof *f.pools);
	memcpy(f.groups, m->fleet.groups, m->fleet.group_count * sizeof *f.groups);
	m->fleet.pools = f.pools;
	m->fleet.groups = f.groups;
	return f;
}

bool variation_apply(const struct variation *c, const char *only, struct manifest *m, struct arena *a, struct error *e)
{
	struct fleet_copy f = copy_fleet(m, a);
	const char *objective = c->objective, *cost = c->violation_cost, *budget = c->budget, *max = c->max;
	const struct variation_names *names = c->names;
	struct pool_spec *p = NULL;

	if (objective && (!split(&f, names->objective, only, &objective, &p, e) ||
			  !set_objective(names->objective, p, objective, e)))
		return false;
	if (cost && (!split(&f, names->violation_cost, only, &cost, &p, e) ||
		     !set_violation_cost(names->violation_cost, p, cost, e)))
		return false;
	if (budget && (!split(&f, names->budget, only, &budget, &p, e) || !set_budget(names->budget, &f, p, budget, e)))
		return false;
	return !max || (split(&f, names->max, only, &max, &p, e) && set_max(names->max, &f, p, max, e));
}
