/* Rules about WarmPools and what acts beside them. */
#include "controller/contract/parts.h"

#include <string.h>

static const struct fleet_spec *fleet_of(const struct court *c)
{
	static const struct fleet_spec none;

	return c->contract->manifest ? &c->contract->manifest->fleet : &none;
}

static const struct spec_text *text_of(const struct court *c, size_t pool)
{
	return &c->contract->manifest->pools[pool].spec;
}

void judge_one_gpu_type(struct court *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];
		const struct group_facts *first = NULL;
		for (size_t k = 0; k < p->group_count; k++) {
			const struct group_facts *g = &c->contract->groups[p->groups[k]];
			if (!g->gpu || !g->spec->max_nodes)
				continue;
			first = first ? first : g;
			if (!strcmp(first->gpu, g->gpu) &&
			    (first->gpu_memory_mib == g->gpu_memory_mib || first->has_all_labels || g->has_all_labels))
				continue;
			violate(c, &(struct breach){ &c->contract->pools[i], text_of(c, i)->node, NULL },
				"node group %s has %s, node group %s has %s", first->spec->name, first->gpu,
				g->spec->name, g->gpu);
			break;
		}
	}
}

static bool shares_group(const struct pool_spec *a, const struct pool_spec *b, size_t *group)
{
	for (size_t i = 0; i < a->group_count; i++)
		for (size_t k = 0; k < b->group_count; k++)
			if (a->groups[i] == b->groups[k]) {
				*group = a->groups[i];
				return true;
			}
	return false;
}

void judge_fragmented_pool(struct court *c)
{
	const struct fleet_spec *fleet = fleet_of(c);
	size_t group;

	for (size_t i = 0; i < fleet->pool_count; i++)
		for (size_t k = 0; k < fleet->pool_count; k++) {
			const struct pool_spec *large = &fleet->pools[i], *small = &fleet->pools[k];
			if (large->gpus_per_replica <= small->gpus_per_replica || !shares_group(large, small, &group) ||
			    fleet->groups[group].gpus_per_node <= small->gpus_per_replica)
				continue;
			violate(c, &(struct breach){ &c->contract->pools[k], text_of(c, k)->node, NULL },
				"its replicas of %lld GPUs share node group %s with those of %lld of WarmPool %s, and "
				"leave "
				"gaps that these do not fit",
				(long long)small->gpus_per_replica, fleet->groups[group].name,
				(long long)large->gpus_per_replica, large->name);
		}
}

/* The value of its PriorityClass, or the place among the names of deploy/. */
static bool priority_of(const struct contract *c, const struct workload *w, int64_t *out)
{
	static const char *const names[] = { "gpu-batch", "gpu-standard", "gpu-critical" };

	for (size_t i = 0; i < c->priority_count; i++)
		if (!strcmp(c->priorities[i].object.ref.name, w->priority_class)) {
			*out = c->priorities[i].value;
			return true;
		}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], w->priority_class)) {
			*out = (int64_t)i + 1;
			return true;
		}
	*out = 0;
	return !*w->priority_class;
}

/* A workload of an interactive pool on a node group of `batch` that does not come before it. */
static const struct workload *held_back(const struct court *c, const struct workload *batch, size_t *group)
{
	int64_t own, others;

	if (!priority_of(c->contract, batch, &own))
		return NULL;
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		const struct pool_spec *p = pool_of(c->contract, w);
		if (p && p->class == CLASS_INTERACTIVE && w->gpu_resource && !w->is_owned &&
		    shares_group(p, pool_of(c->contract, batch), group) && priority_of(c->contract, w, &others) &&
		    own >= others)
			return w;
	}
	return NULL;
}

void judge_batch_holds(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		const struct pool_spec *p = pool_of(c->contract, w);
		size_t group = 0;
		if (!p || !w->gpu_resource || w->is_owned || p->class == CLASS_INTERACTIVE ||
		    p->class == CLASS_EMBEDDING)
			continue;
		const struct workload *other = held_back(c, w, &group);
		if (other)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"shares node group %s with %s %s, which serves people, and has no lower priority",
				fleet_of(c)->groups[group].name, other->object.ref.kind, other->object.ref.name);
	}
}

static bool keeps_one(const struct fleet_spec *fleet, const struct pool_spec *p)
{
	int64_t least = p->headroom_min;

	for (size_t i = 0; i < p->schedule_count; i++)
		least += 1;
	for (size_t i = 0; i < p->group_count; i++)
		least += fleet->groups[p->groups[i]].min_nodes;
	return least > 0;
}

void judge_model_load(struct court *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];
		millis load = p->stage[STAGE_LOAD].p50 ? p->stage[STAGE_LOAD].p50 : p->lead_time.p50;
		if (p->class != CLASS_INTERACTIVE || p->mode != MODE_ACT || p->violation_cost || keeps_one(fleet, p) ||
		    load <= p->objective_wait)
			continue;
		violate(c, &(struct breach){ &c->contract->pools[i], text_of(c, i)->node, NULL },
			"nothing is kept warm, and a replica takes %lld s to load: the first requests wait longer than "
			"the objective's %lld ms",
			(long long)(load / SECOND), (long long)p->objective_wait);
	}
}

static const char *namespace_shown(const struct object *o)
{
	return *o->ref.namespace ? o->ref.namespace : "default";
}

static bool is_same_target(const struct scaler *a, const char *kind, const char *name)
{
	return *a->target && !strcmp(a->target, name) && !strcmp(a->target_kind, kind);
}

static void judge_beside_pool(struct court *c, const struct scaler *s)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct workload_text *w = &text_of(c, i)->workload;
		if (w->warm != WARM_REPLICAS || fleet->pools[i].mode != MODE_ACT || !w->target.name ||
		    !same_namespace(&s->object, &c->contract->pools[i]) ||
		    !is_same_target(s, w->target.kind, w->target.name))
			continue;
		violate(c,
			&(struct breach){
				&s->object, s->at,
				"delete it, or set workload.warm: placeholders or metric in the WarmPool, so that "
				"only one sets replicas" },
			"sets the replicas of %s %s/%s, and so does WarmPool %s (workload.warm: replicas)",
			s->target_kind, namespace_shown(&s->object), s->target, fleet->pools[i].name);
	}
}

void judge_scaler_conflict(struct court *c)
{
	const struct contract *all = c->contract;

	for (size_t i = 0; i < all->scaler_count; i++) {
		const struct scaler *s = &all->scalers[i];
		judge_beside_pool(c, s);
		for (size_t k = 0; k < i; k++) {
			const struct scaler *other = &all->scalers[k];
			if (!same_namespace(&s->object, &other->object) ||
			    !is_same_target(other, s->target_kind, s->target))
				continue;
			violate(c, &(struct breach){ &s->object, s->at, NULL },
				"sets the replicas of %s %s/%s, and so does %s %s", s->target_kind,
				namespace_shown(&s->object), s->target, other->object.ref.kind, other->object.ref.name);
			break;
		}
	}
}

/* Whether anything of that kind and namespace was given: else the target stands elsewhere. */
static const struct workload *find_target(const struct court *c, size_t pool, bool *is_expected)
{
	const struct target_text *t = &text_of(c, pool)->workload.target;
	const struct workload *found = NULL;

	*is_expected = c->contract->is_whole;
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		if (!same_namespace(&w->object, &c->contract->pools[pool]) || strcmp(w->object.ref.kind, t->kind) != 0)
			continue;
		*is_expected = true;
		if (!strcmp(w->object.ref.name, t->name))
			found = w;
	}
	return found;
}

void judge_pool_target(struct court *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct target_text *t = &text_of(c, i)->workload.target;
		bool is_expected = false;
		if (!t->name || !contract_knows(t->kind) || find_target(c, i, &is_expected) || !is_expected)
			continue;
		violate(c, &(struct breach){ &c->contract->pools[i], t->node, NULL },
			"its scaleTargetRef names %s %s, which is not there", t->kind, t->name);
	}
}

void judge_pool_selector(struct court *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct workload_text *t = &text_of(c, i)->workload;
		bool is_expected;
		const struct workload *w = t->target.name ? find_target(c, i, &is_expected) : NULL;
		if (w && t->selector.match_labels.count && !labels_match(&t->selector.match_labels, &w->labels))
			violate(c, &(struct breach){ &c->contract->pools[i], t->selector.node, NULL },
				"its selector does not match the pods of %s %s, which it scales", t->target.kind,
				t->target.name);
	}
}

static bool asks_in(const struct court *c, size_t pool, const struct quota *q)
{
	return same_namespace(&q->object, &c->contract->pools[pool]) &&
	       !strcmp(text_of(c, pool)->workload.gpu_resource, q->resource);
}

/* GPUs of all machines that pools under the quota may buy; a group that several name counts once. */
static int64_t most_gpus(const struct court *c, const struct quota *q)
{
	const struct fleet_spec *fleet = fleet_of(c);
	int64_t most = 0;

	for (size_t g = 0; g < fleet->group_count; g++) {
		bool is_named = false;
		for (size_t i = 0; i < fleet->pool_count; i++)
			for (size_t k = 0; k < fleet->pools[i].group_count && asks_in(c, i, q); k++)
				is_named = is_named || fleet->pools[i].groups[k] == g;
		most += is_named ? fleet->groups[g].max_nodes * fleet->groups[g].gpus_per_node : 0;
	}
	return most;
}

void judge_quota_below_max(struct court *c)
{
	for (size_t q = 0; q < c->contract->quota_count; q++) {
		const struct quota *quota = &c->contract->quotas[q];
		int64_t most = most_gpus(c, quota);
		if (most > quota->gpus)
			violate(c, &(struct breach){ &quota->object, quota->at, NULL },
				"allows %lld %s, and the pools of the namespace may buy machines with %lld",
				(long long)quota->gpus, quota->resource, (long long)most);
	}
}
