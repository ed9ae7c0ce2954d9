/* Rules about WarmPools and what acts beside them, about nodes, and about the annotation that ignores rules. */
#include "base/quantity.h"
#include "base/terminal.h"
#include "base/text.h"
#include "controller/contract/rule_runner.h"

#include <string.h>

static const struct fleet_spec *fleet_of(const struct check_run *c)
{
	static const struct fleet_spec none;

	return c->contract->manifest ? &c->contract->manifest->fleet : &none;
}

static const struct spec_text *text_of(const struct check_run *c, size_t pool)
{
	return &c->contract->manifest->pools[pool].spec;
}

static void rule_one_gpu_type(struct check_run *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];
		const struct group_facts *first = NULL;
		for (size_t k = 0; p->class != CLASS_ANY && k < p->group_count; k++) {
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

static void rule_fragmented_pool(struct check_run *c)
{
	const struct fleet_spec *fleet = fleet_of(c);
	size_t group;

	for (size_t i = 0; i < fleet->pool_count; i++)
		for (size_t k = 0; k < fleet->pool_count; k++) {
			const struct pool_spec *large = &fleet->pools[i], *small = &fleet->pools[k];
			if (small->class == CLASS_ANY || large->gpus_per_replica <= small->gpus_per_replica ||
			    !shares_group(large, small, &group) ||
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

	const struct priority *known = priority_find(c, w->priority_class);

	if (known) {
		*out = known->value;
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
static const struct workload *held_back(const struct check_run *c, const struct workload *batch, size_t *group)
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

static void rule_batch_holds(struct check_run *c, const struct workload *w)
{
	const struct pool_spec *p = pool_of(c->contract, w);
	size_t group = 0;
	if (!p || p->class == CLASS_INTERACTIVE || p->class == CLASS_EMBEDDING)
		return;
	const struct workload *other = held_back(c, w, &group);
	if (other)
		violate(c, &(struct breach){ &w->object, w->spec, NULL },
			"shares node group %s with %s %s, which serves people, and has no lower priority",
			fleet_of(c)->groups[group].name, other->object.ref.kind, other->object.ref.name);
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

static void rule_model_load(struct check_run *c)
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

static void rule_reservation_over(struct check_run *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct group_text *groups = text_of(c, i)->groups.items;
		for (size_t k = 0; k < text_of(c, i)->groups.count; k++) {
			const struct yaml_node *at = yaml_child(groups[k].node, "reservedUntil");
			if (groups[k].reserved_until && groups[k].reserved_until <= c->contract->now)
				violate(c, &(struct breach){ &c->contract->pools[i], at, NULL },
					"the reservation of node group %s ended at %s: nothing starts there, and what "
					"runs there goes",
					groups[k].name, at->text);
		}
	}
}

static void rule_budget_prices(struct check_run *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct pool_spec *p = &fleet_of(c)->pools[i];
		double budget = (double)p->budget_per_hour / 1e6;
		if (p->is_unpriced && p->budget_per_hour > 0)
			violate(c,
				&(struct breach){ &c->contract->pools[i],
						  yaml_child(text_of(c, i)->budget.node, "dollarsPerHour"), NULL },
				"its node groups have no price, so its budget of %s an hour counts as %s an hour",
				human_dollars(budget).text, human_spent(budget, true).text);
	}
}

/* What manifest_check_live() asks for. */
static void rule_run_needs(struct check_run *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct spec_text *s = text_of(c, i);
		const struct group_text *groups = s->groups.items;
		if (!s->workload.selector.match_labels.count && fleet_of(c)->pools[i].class != CLASS_ANY)
			violate(c,
				&(struct breach){ &c->contract->pools[i], s->workload.node ? s->workload.node : s->node,
						  "add workload.selector.matchLabels, the labels of its pods" },
				"does not say which pods serve it: simulate takes it so, record and run do not");
		for (size_t k = 0; k < s->groups.count; k++) {
			size_t g = fleet_of(c)->pools[i].groups[k];
			enum provider_choice p = (enum provider_choice)c->contract->manifest->groups[g].provider;
			if (!c->contract->manifest->groups[g].blocks[p].node)
				violate(c, &(struct breach){ &c->contract->pools[i], groups[k].node, NULL },
					"node group %s does not say where its nodes are bought: simulate and record "
					"take it so, run does not",
					groups[k].name);
		}
	}
}

/* The engines, each followed by what it tells. */
#define ENGINE(id, name, image, slots) { SOURCE_##id, name },
#define METRIC(quantity, ...)	       { -1, #quantity },
static const struct {
	int engine;
	const char *name;
} told[] = {
#include "signals/engines/all.def"
};
#undef ENGINE
#undef METRIC

/* Its name, where the engine does not tell of requests that it turned away; else NULL. */
static const char *hides_refusals(const struct signals_text *s)
{
	const char *name = NULL;

	if (s->engine == SOURCE_CUSTOM)
		return s->metrics.names[METRIC_REFUSED] ? NULL : "custom without metrics.refused";
	for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
		if (told[i].engine >= 0 && name)
			return name;
		if (told[i].engine >= 0)
			name = told[i].engine == s->engine ? told[i].name : NULL;
		else if (!strcmp(told[i].name, "REFUSED"))
			name = NULL;
	}
	return name;
}

static void rule_refusals_unseen(struct check_run *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct signals_text *s = &text_of(c, i)->signals;
		enum pool_class class = fleet_of(c)->pools[i].class;
		const char *name = class == CLASS_INTERACTIVE || class == CLASS_EMBEDDING ? hides_refusals(s) : NULL;
		if (name)
			violate(c, &(struct breach){ &c->contract->pools[i], yaml_child(s->node, "engine"), NULL },
				"engine %s does not tell of requests that it turns away: they count neither as "
				"arrived nor as late",
				name);
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

/* What was made for an object that is here is that, not one more. */
static bool is_made_by_another(const struct check_run *c, const struct scaler *s)
{
	for (size_t i = 0; i < c->contract->scaler_count; i++) {
		const struct object *other = &c->contract->scalers[i].object;
		if (!strcmp(other->ref.kind, s->maker_kind) && !strcmp(other->ref.name, s->maker) &&
		    same_namespace(other, &s->object))
			return true;
	}
	return false;
}

#define ONLY_ONE ", or set workload.warm: placeholders or metric in the WarmPool, so that only one sets replicas"

/* Who makes autoscalers makes them again: what is to be done is done there. */
static const struct {
	const char *kind, *remedy, *rest; /* its name stands between them */
} scaler_remedies[] = {
	{ "InferenceService", "annotate ",
	  " with serving.kserve.io/autoscalerClass: external (of no use in a KServe that does not know the class "
	  "none), or set workload.warm: metric in the WarmPool" },
	{ "LLMInferenceService", "leave replicas and scaling out of ",
	  ", or set workload.warm: metric in the WarmPool" },
	{ "ScaledObject", "delete ", ONLY_ONE },
	{ "PodAutoscaler", "delete ", ONLY_ONE },
	{ "HorizontalPodAutoscaler", "delete ", ONLY_ONE },
};

static const char *scaler_remedy(struct check_run *c, const struct scaler *s)
{
	const char *remedy = NULL;

	for (size_t i = 0; i < sizeof scaler_remedies / sizeof *scaler_remedies; i++) {
		const char *kind = scaler_remedies[i].kind, *first = scaler_remedies[i].remedy,
			   *rest = scaler_remedies[i].rest;
		if (!strcmp(s->maker_kind, kind))
			return say(c, "%s%s %s%s", first, kind, s->maker, rest);
		if (!strcmp(s->object.ref.kind, kind))
			remedy = say(c, "%sit%s", first, rest);
	}
	return remedy;
}

static void check_beside_pool(struct check_run *c, const struct scaler *s)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct workload_text *w = &text_of(c, i)->workload;
		if (w->warm != WARM_REPLICAS || fleet->pools[i].mode != MODE_ACT || !w->target.name ||
		    !same_namespace(&s->object, &c->contract->pools[i]) ||
		    !is_same_target(s, w->target.kind, w->target.name))
			continue;
		violate(c, &(struct breach){ &s->object, s->at, scaler_remedy(c, s) },
			"sets the replicas of %s %s/%s, and so does WarmPool %s (workload.warm: replicas)",
			s->target_kind, namespace_shown(&s->object), s->target, fleet->pools[i].name);
	}
}

static void rule_scaler_conflict(struct check_run *c)
{
	const struct contract *all = c->contract;

	for (size_t i = 0; i < all->scaler_count; i++) {
		const struct scaler *s = &all->scalers[i];
		if (is_made_by_another(c, s))
			continue;
		check_beside_pool(c, s);
		for (size_t k = 0; k < i; k++) {
			const struct scaler *other = &all->scalers[k];
			if (!same_namespace(&s->object, &other->object) || is_made_by_another(c, other) ||
			    !is_same_target(other, s->target_kind, s->target))
				continue;
			violate(c, &(struct breach){ &s->object, s->at, NULL },
				"sets the replicas of %s %s/%s, and so does %s %s", s->target_kind,
				namespace_shown(&s->object), s->target, other->object.ref.kind, other->object.ref.name);
			break;
		}
	}
}

/* A value of a scaler's spec: where it stands (NULL: nowhere), and its path for a message. */
struct scaler_value {
	const struct yaml_node *at;
	const char *path;
};

static struct scaler_value value_of(const struct scaler *s, const char *key)
{
	return (struct scaler_value){ YAML_AT(s->object.ref.at, "spec", key), key };
}

static void violate_value(struct check_run *c, const struct scaler *s, struct scaler_value v, const char *allowed)
{
	violate(c, &(struct breach){ &s->object, v.at, NULL }, "spec.%s: found %s; allowed: %s", v.path,
		shown_value(c, v.at), allowed);
}

static bool is_written(const struct yaml_node *n)
{
	const char *meaning = n ? yaml_plain_meaning(n) : NULL;

	return n && !(meaning && !strcmp(meaning, "nothing"));
}

static bool is_name(const struct yaml_node *n)
{
	return is_written(n) && n->kind == YAML_SCALAR && *n->text;
}

/* UNSAID: not written, or told. */
static int64_t scaler_count(struct check_run *c, const struct scaler *s, const char *key, int64_t least)
{
	struct scaler_value v = value_of(s, key);
	int64_t count;

	if (!is_written(v.at))
		return UNSAID;
	if (v.at->kind == YAML_SCALAR && v.at->is_plain && whole_parse(v.at->text, strlen(v.at->text), &count) &&
	    count >= least && count <= INT32_MAX)
		return count;
	violate_value(c, s, v, say(c, "a whole number from %d to %d", (int)least, INT32_MAX));
	return UNSAID;
}

/* Whether the target is named; else Kubernetes refuses the object, and no other rule can tell what it scales. */
static void check_scaled(struct check_run *c, const struct scaler *s, bool needs_kind)
{
	struct scaler_value v = value_of(s, "scaleTargetRef");
	const struct yaml_node *kind = yaml_child(v.at, "kind"), *name = yaml_child(v.at, "name");

	if (!v.at || v.at->kind != YAML_MAP) {
		violate_value(c, s, v, needs_kind ? "a map with kind and name" : "a map with name");
		return;
	}
	if (!is_name(name))
		violate_value(c, s, (struct scaler_value){ name, "scaleTargetRef.name" }, "the name of a workload");
	if (!is_name(kind) && (needs_kind || is_written(kind)))
		violate_value(c, s, (struct scaler_value){ kind, "scaleTargetRef.kind" },
			      "the kind of a workload, for example Deployment");
}

static void check_hpa(struct check_run *c, const struct scaler *s)
{
	struct scaler_value max = value_of(s, "maxReplicas"), metrics = value_of(s, "metrics");
	int64_t least = scaler_count(c, s, "minReplicas", 0), most = scaler_count(c, s, "maxReplicas", 1);

	if (!is_written(max.at))
		violate_value(c, s, max, "a whole number, minReplicas or more");
	if (most != UNSAID && least > most)
		violate_value(c, s, max, say(c, "minReplicas (%d) or more", (int)least));
	if (is_written(metrics.at) && metrics.at->kind != YAML_LIST)
		violate_value(c, s, metrics, "a list of metrics");
}

enum { KEDA_MOST = 100 }; /* maxReplicaCount where it is not written */

static void check_scaled_object(struct check_run *c, const struct scaler *s)
{
	struct scaler_value triggers = value_of(s, "triggers");
	int64_t idle = scaler_count(c, s, "idleReplicaCount", 0), least = scaler_count(c, s, "minReplicaCount", 0),
		most = scaler_count(c, s, "maxReplicaCount", 1);

	if (least > (most == UNSAID ? KEDA_MOST : most))
		violate_value(c, s, value_of(s, "minReplicaCount"),
			      say(c, "maxReplicaCount (%d) or less", (int)(most == UNSAID ? KEDA_MOST : most)));
	if (idle != UNSAID && idle >= (least == UNSAID ? 0 : least))
		violate_value(c, s, value_of(s, "idleReplicaCount"),
			      say(c, "less than minReplicaCount (%d)", (int)(least == UNSAID ? 0 : least)));
	if (!triggers.at || triggers.at->kind != YAML_LIST || !triggers.at->count)
		violate_value(c, s, triggers, "a list of one trigger or more");
	for (const struct yaml_node *n = triggers.at && triggers.at->kind == YAML_LIST ? triggers.at->first : NULL; n;
	     n = n->next)
		if (!is_name(yaml_child(n, "type")))
			violate_value(c, s, (struct scaler_value){ n, say(c, "triggers[%zu]", n->index) },
				      "a map with the trigger's type");
}

static void rule_scaler_spec(struct check_run *c)
{
	for (size_t i = 0; i < c->contract->scaler_count; i++) {
		const struct scaler *s = &c->contract->scalers[i];
		const struct yaml_node *spec = yaml_child(s->object.ref.at, "spec");
		bool is_hpa = !strcmp(s->object.ref.kind, "HorizontalPodAutoscaler");
		if ((!is_hpa && strcmp(s->object.ref.kind, "ScaledObject") != 0) || is_made_by_another(c, s))
			continue;
		if (!spec || spec->kind != YAML_MAP) {
			violate(c, &(struct breach){ &s->object, spec, NULL }, "spec: found %s; allowed: a map",
				shown_value(c, spec));
			continue;
		}
		check_scaled(c, s, is_hpa);
		if (is_hpa)
			check_hpa(c, s);
		else
			check_scaled_object(c, s);
	}
}

/* Whether anything of that kind and namespace was given: else the target stands elsewhere. */
static const struct workload *find_target(const struct check_run *c, size_t pool, bool *is_expected)
{
	const struct target_text *t = &text_of(c, pool)->workload.target;
	const struct workload *found = NULL;

	*is_expected = c->contract->is_whole;
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		if (!same_namespace(&w->object, &c->contract->pools[pool]) || strcmp(w->object.ref.kind, t->kind) != 0)
			continue;
		*is_expected = true;
		/* of several parts the one that is selected, if any is */
		if (!strcmp(w->object.ref.name, t->name) &&
		    (!found || labels_match(&text_of(c, pool)->workload.selector.match_labels, &w->labels)))
			found = w;
	}
	return found;
}

/* What KServe makes is not called as the service is. */
static const struct service *named_service(const struct check_run *c, size_t pool, const struct target_text *t)
{
	for (size_t i = 0; i < c->contract->service_count; i++) {
		const struct service *s = &c->contract->services[i];
		if (same_namespace(&s->object, &c->contract->pools[pool]) && !strcmp(s->object.ref.name, t->name) &&
		    !strcmp(s->workload_kind, t->kind))
			return s;
	}
	return NULL;
}

static void check_target(struct check_run *c, size_t pool, const struct target_text *t)
{
	struct breach b = { &c->contract->pools[pool], t->node, NULL };
	bool is_expected = false;

	if (find_target(c, pool, &is_expected))
		return;
	const struct service *s = named_service(c, pool, t);
	if (s) {
		b.remedy = say(c, "set workload.scaleTargetRef.name: %s", s->workload);
		violate(c, &b,
			"its scaleTargetRef names %s %s, which is not there; the one that KServe makes for %s %s is %s",
			t->kind, t->name, s->object.ref.kind, t->name, s->workload);
	} else if (is_expected) {
		violate(c, &b, "its scaleTargetRef names %s %s, which is not there", t->kind, t->name);
	}
}

static void rule_pool_target(struct check_run *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct target_text *t = &text_of(c, i)->workload.target;
		if (t->name && contract_knows(t->kind))
			check_target(c, i, t);
	}
}

/*
 * Who writes the number again and again: a file that somebody applies, or what the server tells of who applied it.
 * Writes of other forms happen once; but Argo CD makes its applies of them, which own what is defaulted, too.
 * https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
static bool stands_in_last_apply(const struct workload *w)
{
	const struct yaml_node *last = YAML_AT(w->object.ref.at, "metadata", "annotations",
					       "kubectl.kubernetes.io/last-applied-configuration");

	return last && last->kind == YAML_SCALAR && strstr(last->text, "\"replicas\":");
}

static const struct yaml_node *applied_replicas(const struct workload *w, const char **manager)
{
	const struct yaml_node *meta = YAML_AT(w->object.ref.at, "metadata"),
			       *replicas = YAML_AT(w->object.ref.at, "spec", "replicas"),
			       *writers = yaml_child(meta, "managedFields");

	*manager = NULL;
	if (!yaml_child(meta, "resourceVersion"))
		return is_written(replicas) ? replicas : NULL;
	for (const struct yaml_node *n = writers && writers->kind == YAML_LIST ? writers->first : NULL; n;
	     n = n->next) {
		const struct yaml_node *name = yaml_child(n, "manager"), *how = yaml_child(n, "operation");
		bool applies =
			is_name(name) && is_name(how) &&
			(!strcmp(how->text, "Apply") || (!strncmp(name->text, "argocd", 6) && stands_in_last_apply(w)));
		if (!applies || !YAML_AT(n, "fieldsV1", "f:spec", "f:replicas"))
			continue;
		*manager = name->text;
		return replicas;
	}
	return NULL;
}

static void rule_target_replicas(struct check_run *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct workload_text *t = &text_of(c, i)->workload;
		const char *pool = fleet_of(c)->pools[i].name, *manager;
		bool is_expected;
		const struct workload *w = t->target.name ? find_target(c, i, &is_expected) : NULL;
		const struct yaml_node *n = w ? applied_replicas(w, &manager) : NULL;
		if (!n || t->warm != WARM_REPLICAS || fleet_of(c)->pools[i].mode != MODE_ACT)
			continue;
		const struct breach b = { &w->object, n, NULL };
		if (manager)
			violate(c, &b,
				"field manager %s applies its replicas, and WarmPool %s sets them, too "
				"(workload.warm: replicas)",
				manager, pool);
		else
			violate(c, &b,
				"sets its replicas to %s wherever it is applied, and WarmPool %s sets them, too "
				"(workload.warm: replicas)",
				shown_value(c, n), pool);
	}
}

/* Leader and workers of a group, of which the leader alone is the replica. */
static bool selects_workers(const struct check_run *c, const struct schema_labels *selector, const struct workload *one)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		if (w != one && w->object.ref.at == one->object.ref.at &&
		    !strcmp(w->object.ref.kind, "LeaderWorkerSet") && labels_match(selector, &w->labels) &&
		    labels_match(selector, &one->labels))
			return true;
	}
	return false;
}

static void rule_pool_selector(struct check_run *c)
{
	const struct fleet_spec *fleet = fleet_of(c);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct workload_text *t = &text_of(c, i)->workload;
		bool is_expected;
		const struct workload *w = t->target.name ? find_target(c, i, &is_expected) : NULL;
		const struct selector_text *heard = &text_of(c, i)->signals.pod_selector;
		if (w && t->selector.match_labels.count && !labels_match(&t->selector.match_labels, &w->labels))
			violate(c, &(struct breach){ &c->contract->pools[i], t->selector.node, NULL },
				"its selector does not match the pods of %s %s, which it scales", t->target.kind,
				t->target.name);
		/* Controllers of other kinds add labels of their own. */
		if (w && heard->match_labels.count && !labels_match(&heard->match_labels, &w->labels) &&
		    !strcmp(t->target.kind, "Deployment"))
			violate(c,
				&(struct breach){ &c->contract->pools[i], heard->node,
						  "make it a part of the pod template's labels" },
				"signals.podSelector matches no pod of %s %s: nothing would be heard, and nothing "
				"released",
				t->target.kind, t->target.name);
		if (w && t->warm == WARM_REPLICAS && t->selector.match_labels.count &&
		    selects_workers(c, &t->selector.match_labels, w))
			violate(c,
				&(struct breach){ &c->contract->pools[i], t->selector.node,
						  "add leaderworkerset.sigs.k8s.io/worker-index: \"0\" to it" },
				"its selector matches the workers of %s %s beside their leaders, and would count each "
				"pod as a replica",
				t->target.kind, t->target.name);
	}
}

static bool asks_in(const struct check_run *c, size_t pool, const struct quota *q)
{
	return same_namespace(&q->object, &c->contract->pools[pool]) &&
	       !strcmp(text_of(c, pool)->workload.gpu_resource, q->resource);
}

/* GPUs of all machines that pools under the quota may buy; a group that several name counts once. */
static int64_t most_gpus(const struct check_run *c, const struct quota *q)
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

static void rule_quota_below_max(struct check_run *c)
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

static const struct machine *gpu_machine(const struct check_run *c, size_t i)
{
	const struct machine *m = &c->contract->machines[i];
	bool is_named =
		label_of(&m->labels, "nvidia.com/gpu.product") || label_of(&m->labels, "nvidia.com/gpu.present");
	const struct contract *all = c->contract;

	if (m->gpus > 0 || (m->gpus == UNSAID && is_named))
		return m;
	for (size_t g = 0; m->is_template && all->manifest && g < all->manifest->fleet.group_count; g++)
		if (is_template_of(m, manifest_group_label(all->manifest, g)))
			return m;
	return NULL;
}

static void rule_node_taint(struct check_run *c)
{
	for (size_t i = 0; i < c->contract->machine_count; i++) {
		const struct machine *m = gpu_machine(c, i);
		bool is_barred = !m;
		for (size_t t = 0; m && t < m->taint_count; t++)
			is_barred = is_barred || (taint_bars(&m->taints[t]) &&
						  strncmp(m->taints[t].key, "node.kubernetes.io/", 19) != 0 &&
						  strncmp(m->taints[t].key, "preheat.dev/", 12) != 0);
		if (!is_barred)
			violate(c, &(struct breach){ &m->object, m->taints_at, NULL },
				"has GPUs and no taint that keeps other pods away");
	}
}

static bool has_theme(const struct machine *m, const char *theme)
{
	size_t count;
	const struct known_label *known = known_labels(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(known[i].theme, theme) && !known[i].instead && label_of(&m->labels, known[i].key))
			return true;
	return false;
}

/* Clouds that mark spot alone: the machine's node group says that it is one of theirs. */
static bool may_lack_lifecycle(const struct machine *m)
{
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
		const struct provider_block *b = provider_block(p);
		if (b->capacity_label && !b->capacity_words[BLOCK_ON_DEMAND] && label_of(&m->labels, b->label.key))
			return true;
	}
	return false;
}

static void rule_node_labels(struct check_run *c)
{
	static const char *const themes[] = { "accelerator", "memory", "zone", "lifecycle" };

	for (size_t i = 0; i < c->contract->machine_count; i++) {
		const struct machine *m = gpu_machine(c, i);
		CLEANUP(buf_release) struct buf lacking = { 0 };
		for (size_t t = 0; m && !m->is_template && t < sizeof themes / sizeof *themes; t++)
			if (!has_theme(m, themes[t]) && (strcmp(themes[t], "lifecycle") != 0 || !may_lack_lifecycle(m)))
				buf_printf(&lacking, "%s%s", lacking.len ? ", " : "", themes[t]);
		if (lacking.len)
			violate(c, &(struct breach){ &m->object, NULL, NULL }, "has GPUs and no label of its %s",
				lacking.text);
	}
}

static void check_ignored(struct check_run *c, const struct object *o, const struct schema_labels *annotations)
{
	const char *ids[RULES_MOST], *list = label_of(annotations, CONTRACT_IGNORE);
	size_t count, len;
	const struct contract_rule *all = contract_rules(&count);

	for (; list && *(list += strspn(list, ", ")); list += len) {
		bool is_known = false;
		len = strcspn(list, ", ");
		for (size_t i = 0; i < count; i++) {
			ids[i] = all[i].id;
			is_known = is_known || (strlen(ids[i]) == len && !strncmp(ids[i], list, len));
		}
		if (is_known)
			continue;
		const char *word = say(c, "%.*s", (int)(len < 60 ? len : 60), list),
			   *near = nearest_name(word, ids, count);
		violate(c,
			&(struct breach){ o, yaml_child(o->ref.at, "metadata"),
					  near ? say(c, "write %s, if that is meant", near) : NULL },
			"its annotation " CONTRACT_IGNORE " names '%s', which is not a rule", word);
	}
}

static void rule_unknown_ignore(struct check_run *c)
{
	const struct contract *all = c->contract;
	const struct yaml_node *last = NULL;

	for (size_t i = 0; i < all->workload_count; i++) {
		const struct workload *w = &all->workloads[i];
		if (w->is_owned)
			continue;
		if (w->object.ref.at != last)
			check_ignored(c, &w->object, &w->object.annotations);
		if (w->spec->parent != w->object.ref.at)
			check_ignored(c, &w->object, &w->annotations);
		last = w->object.ref.at;
	}
	for (size_t i = 0; all->manifest && i < all->manifest->fleet.pool_count; i++)
		check_ignored(c, &all->pools[i], &all->pools[i].annotations);
	for (size_t i = 0; i < all->budget_count; i++)
		check_ignored(c, &all->budgets[i].object, &all->budgets[i].object.annotations);
	for (size_t i = 0; i < all->scaler_count; i++)
		check_ignored(c, &all->scalers[i].object, &all->scalers[i].object.annotations);
}

/* clang-format off */
static const struct contract_rule rules[] = {
	{ "one-gpu-type", CONTRACT_ERROR, "WarmPool",
	  "All node groups of a pool have the same GPU",
	  "Capacity of a replica, start time and price are learnt for the pool; two types make every one of them wrong.",
	  "give each GPU type a WarmPool of its own", false, NULL, NULL, rule_one_gpu_type },
	{ "fragmented-pool", CONTRACT_WARNING, "WarmPool",
	  "Small and large models do not share a node group",
	  "A few small replicas on each machine leave no machine free for a large one, though GPUs are idle.",
	  "give small and large models node groups of their own", false, NULL, NULL, rule_fragmented_pool },
	{ "batch-holds", CONTRACT_ERROR, PODS,
	  "Batch on shared machines has a lower priority than interactive work",
	  "When requests come, replicas wait until batch ends by itself.",
	  "set priorityClassName: gpu-batch here and gpu-critical there, or give batch node groups of its own", false,
	  asks_for_gpus, rule_batch_holds, NULL },
	{ "model-load", CONTRACT_WARNING, "WarmPool",
	  "A pool that may be empty can load within its objective",
	  "The first requests after a quiet time wait for machine, image and model.",
	  "set headroom.min: 1, or accept the wait with violationCost", false, NULL, NULL, rule_model_load },
	{ "reservation-over", CONTRACT_WARNING, "WarmPool",
	  "The reservation of a node group has not ended",
	  "A node group whose end has passed gets no machine, and the pool is smaller by it.",
	  "set reservedUntil to the end of the next reservation, or leave the node group out", false, NULL, NULL,
	  rule_reservation_over },
	{ "budget-prices", CONTRACT_WARNING, "WarmPool",
	  "A pool with a budget has prices",
	  "Where nobody gave a price, a GPU counts as a dollar an hour: a budget of $8 buys eight GPUs, whatever they cost.",
	  "give pricePerHour to its node groups, or bound it by their max in place of the budget", false, NULL, NULL,
	  rule_budget_prices },
	{ "run-needs", CONTRACT_NOTE, "WarmPool",
	  "A pool has what run asks for",
	  "It is refused when it is deployed, though it could be simulated.",
	  "add the block of its cloud before it is deployed: eks, aks, karpenter, clusterApi, external, or simulated: { endpoint: http://... } for a trial",
	  false, NULL, NULL, rule_run_needs },
	{ "refusals-unseen", CONTRACT_NOTE, "WarmPool",
	  "Requests that are turned away are seen",
	  "Where servers refuse what is too much and tell nothing of it, the objective reads as met while clients are refused.",
	  "let servers queue without a limit (SGLang: leave --max-queued-requests out), or watch refusals at the gateway", false,
	  NULL, NULL, rule_refusals_unseen },
	{ "scaler-conflict", CONTRACT_ERROR, "HorizontalPodAutoscaler, ScaledObject, PodAutoscaler, InferenceService, LLMInferenceService",
	  "One controller sets the replicas of a workload",
	  "Two that write the same number undo each other, and machines are bought and given back for it.",
	  "keep one of the two", false, NULL, NULL, rule_scaler_conflict },
	{ "scaler-spec", CONTRACT_ERROR, "HorizontalPodAutoscaler, ScaledObject",
	  "An autoscaler says what it scales, and within which bounds",
	  "The API server or KEDA refuses it; and nobody can tell whether it sets the replicas of a pool's workload.",
	  "correct it as its kind allows", false, NULL, NULL, rule_scaler_spec },
	{ "pool-target", CONTRACT_WARNING, "WarmPool",
	  "What a pool scales is there",
	  "The pool buys machines and nothing comes to run on them.",
	  "correct workload.scaleTargetRef, or apply the workload", false, NULL, NULL, rule_pool_target },
	{ "target-replicas", CONTRACT_NOTE, SERVE,
	  "What a pool scales leaves its replicas out",
	  "Whoever applies it undoes Preheat's number: a deployment for a minute, a GitOps controller again within minutes, so that Preheat leaves the number to it.",
	  "leave spec.replicas out (a first start begins with one), or set workload.warm: metric in the WarmPool", false,
	  NULL, NULL, rule_target_replicas },
	{ "pool-selector", CONTRACT_ERROR, "WarmPool",
	  "A pool selects the pods of what it scales",
	  "Replicas that are not selected are not read: the pool sees no demand and no capacity.",
	  "make workload.selector.matchLabels a part of the pod template's labels", false, NULL, NULL, rule_pool_selector },
	{ "quota-below-max", CONTRACT_WARNING, "ResourceQuota",
	  "The quota allows what the pools may buy",
	  "Machines beyond the quota stand idle: the API server refuses the pods.",
	  "raise the quota, or lower max of the node groups", false, NULL, NULL, rule_quota_below_max },
	{ "node-taint", CONTRACT_ERROR, "Node, NodePool",
	  "GPU nodes repel pods that do not ask for them",
	  "Without a taint the scheduler fills GPU nodes with whatever is pending.",
	  "taint the node group: nvidia.com/gpu=present:NoSchedule", false, NULL, NULL, rule_node_taint },
	{ "node-labels", CONTRACT_WARNING, "Node",
	  "GPU nodes say what they are",
	  "Selectors, reports and prices go by the labels of accelerator, memory, zone and lifecycle.",
	  "run GPU feature discovery, and set the labels that docs/contract.md lists on the node group", false, NULL, NULL, rule_node_labels },
	{ "unknown-ignore", CONTRACT_WARNING, "all",
	  "preheat.dev/ignore names rules that exist",
	  "A misspelt id ignores nothing.",
	  "name rules of this page, with commas between", false, NULL, NULL, rule_unknown_ignore },
};
/* clang-format on */

const struct rule_list rules_of_pools = { rules, sizeof rules / sizeof *rules };
