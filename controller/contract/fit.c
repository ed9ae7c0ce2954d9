/* Where a pod may run: node selector and affinity against labels, tolerations against taints. */
#include "controller/contract/parts.h"

#include <stdio.h>
#include <string.h>

const struct taint usual_taint = { "nvidia.com/gpu", "present", "NoSchedule" };

/* The last that was told of a key counts: nodes are seen after the manifest was read. */
static const char *label_in(const struct group_facts *g, const char *key)
{
	for (size_t i = g->label_count; i > 0; i--)
		if (!strcmp(g->labels[i - 1].key, key))
			return g->labels[i - 1].value;
	return NULL;
}

/* What is written in a value stands in the product's name: "NVIDIA-A10G" of a group with A10G. */
static bool names_gpu(const char *product, const char *gpu)
{
	size_t len = strlen(gpu);

	for (const char *p = product; *p; p += strcspn(p, "-"), p += *p == '-')
		if (!strncmp(p, gpu, len) && (p[len] == '\0' || p[len] == '-'))
			return true;
	return false;
}

static bool has_value(const struct requirement *r, const char *value)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->values[i], value))
			return true;
	return false;
}

static int64_t number(const char *text)
{
	int64_t value = 0;

	for (; *text >= '0' && *text <= '9' && value < INT64_MAX / 100; text++)
		value = value * 10 + (*text - '0');
	return value;
}

static enum fit judge_value(const struct requirement *r, const char *value)
{
	if (!strcmp(r->relation, "In"))
		return value && has_value(r, value) ? FIT_YES : FIT_NO;
	if (!strcmp(r->relation, "NotIn"))
		return value && has_value(r, value) ? FIT_NO : FIT_YES;
	if (!strcmp(r->relation, "Exists"))
		return value ? FIT_YES : FIT_NO;
	if (!strcmp(r->relation, "DoesNotExist"))
		return value ? FIT_NO : FIT_YES;
	if (!strcmp(r->relation, "Gt") || !strcmp(r->relation, "Lt")) {
		bool is_more = *r->relation == 'G';
		if (!value || r->count != 1)
			return FIT_NO;
		return (is_more ? number(value) > number(r->values[0]) : number(value) < number(r->values[0])) ? FIT_YES
													       : FIT_NO;
	}
	return FIT_MAYBE;
}

/* A product that the instance type gives away, though no node was seen that says it. */
static enum fit judge_product(const struct requirement *r, const struct group_facts *g)
{
	bool is_in = !strcmp(r->relation, "In");

	if (!g->gpu || (!is_in && strcmp(r->relation, "NotIn") != 0))
		return FIT_MAYBE;
	for (size_t i = 0; i < r->count; i++)
		if (names_gpu(r->values[i], g->gpu))
			return is_in ? FIT_MAYBE : FIT_NO;
	return is_in ? FIT_NO : FIT_MAYBE;
}

static enum fit judge_requirement(const struct requirement *r, const struct group_facts *g)
{
	const char *value = label_in(g, r->key);
	char memory[24];

	if (!value && !g->has_all_labels) {
		if (!strcmp(r->key, "nvidia.com/gpu.product"))
			return judge_product(r, g);
		if (strcmp(r->key, "nvidia.com/gpu.memory") != 0 || g->gpu_memory_mib == UNSAID ||
		    (*r->relation != 'G' && *r->relation != 'L'))
			return FIT_MAYBE;
		snprintf(memory, sizeof memory, "%lld", (long long)g->gpu_memory_mib);
		value = memory;
	}
	return judge_value(r, value);
}

static enum fit fit_term(const struct term *t, const struct group_facts *g, const struct requirement **why)
{
	enum fit fit = FIT_YES;

	for (size_t i = 0; i < t->count; i++) {
		enum fit one = judge_requirement(&t->items[i], g);
		if (one < fit) {
			fit = one;
			*why = one == FIT_NO ? &t->items[i] : *why;
		}
	}
	return t->count ? fit : FIT_NO;
}

static enum fit fit_terms(const struct workload *w, const struct group_facts *g, const struct requirement **why)
{
	enum fit best = FIT_NO;

	for (size_t i = 0; i < w->term_count; i++) {
		enum fit one = fit_term(&w->terms[i], g, why);
		best = one > best ? one : best;
	}
	return w->term_count ? best : FIT_YES;
}

enum fit fit_group(const struct workload *w, const struct group_facts *g, const struct requirement **why)
{
	const struct requirement *ignored = NULL;
	enum fit fit = fit_terms(w, g, why ? why : &ignored);

	for (size_t i = 0; fit != FIT_NO && i < w->node_selector.count; i++) {
		const struct schema_label *l = &w->node_selector.items[i];
		const struct requirement r = { .key = l->key, .relation = "In", .values = &l->value, .count = 1 };
		enum fit one = judge_requirement(&r, g);
		fit = one < fit ? one : fit;
	}
	return fit;
}

bool tolerates(const struct toleration *t, const struct taint *taint)
{
	if (*t->effect && strcmp(t->effect, taint->effect) != 0)
		return false;
	if (!strcmp(t->relation, "Exists"))
		return !*t->key || !strcmp(t->key, taint->key);
	return !strcmp(t->key, taint->key) && !strcmp(t->value, taint->value);
}

bool workload_tolerates(const struct workload *w, const struct taint *taint)
{
	for (size_t i = 0; i < w->toleration_count; i++)
		if (tolerates(&w->tolerations[i], taint))
			return true;
	return false;
}

bool taint_bars(const struct taint *t)
{
	return !strcmp(t->effect, "NoSchedule") || !strcmp(t->effect, "NoExecute");
}

bool taint_is_of_gpus(const char *key)
{
	static const char *const keys[] = { "nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/i915" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}
