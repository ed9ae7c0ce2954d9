/* Rules about what a pod asks of GPUs, and for whom. */
#include "base/resource.h"
#include "controller/contract/parts.h"

#include <ctype.h>
#include <string.h>

static const struct workload *gpu_workload(const struct court *c, size_t i)
{
	const struct workload *w = &c->contract->workloads[i];

	return w->gpu_resource && !w->is_owned ? w : NULL;
}

static const char *shown(struct court *c, int64_t count)
{
	return count == UNSAID ? "none" : say(c, "%lld", (long long)count);
}

static void judge_ask(struct court *c, const struct workload *w, const struct container *k, const struct gpu_ask *ask)
{
	int64_t most = ask->requested > ask->limit ? ask->requested : ask->limit;

	if (ask->requested == ask->limit && ask->limit != UNSAID)
		return;
	const struct breach b = { &w->object, k->resources ? k->resources : k->at,
				  say(c, "write %s: \"%lld\" under requests and under limits", ask->resource,
				      (long long)(most > 0 ? most : 1)) };
	violate(c, &b, "container %s requests %s of %s and limits it to %s", k->name, shown(c, ask->requested),
		ask->resource, shown(c, ask->limit));
}

void judge_gpu_limits(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = &c->contract->workloads[i];
		for (size_t k = 0; !w->is_owned && k < w->container_count; k++)
			for (size_t g = 0; g < w->containers[k].gpu_count; g++)
				judge_ask(c, w, &w->containers[k], &w->containers[k].gpus[g]);
	}
}

static const char *namespace_of(const struct object *o)
{
	return *o->ref.namespace ? o->ref.namespace : "its namespace";
}

void judge_gpu_needs_pool(struct court *c)
{
	for (size_t i = 0; c->contract->manifest && i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const char *label = w ? label_of(&w->labels, CONTRACT_POOL) : NULL;
		const struct pool_spec *p = w ? pool_of(c->contract, w) : NULL;
		if (!w || (label && !strcmp(label, "none") && !p))
			continue;
		if (!p)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"asks for %lld %s, and no WarmPool in %s selects its pods", (long long)w->gpus,
				w->gpu_resource, namespace_of(&w->object));
		else if (label && strcmp(label, p->name) != 0)
			violate(c,
				&(struct breach){
					&w->object, w->spec,
					say(c, "write " CONTRACT_POOL ": %s, or change the pool's selector", p->name) },
				"its label " CONTRACT_POOL " says %s, but WarmPool %s selects its pods", label,
				p->name);
	}
}

void judge_pool_label(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const struct pool_spec *p = w ? pool_of(c->contract, w) : NULL;
		if (p && !label_of(&w->labels, CONTRACT_POOL))
			violate(c,
				&(struct breach){
					&w->object, w->spec,
					say(c, "add the label " CONTRACT_POOL ": %s to the pod template", p->name) },
				"its pods do not carry the label " CONTRACT_POOL);
	}
}

void judge_replica_size(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const struct pool_spec *p = w ? pool_of(c->contract, w) : NULL;
		if (!p || (p->class != CLASS_INTERACTIVE && p->class != CLASS_EMBEDDING))
			continue;
		const char *counted = c->contract->manifest->pools[w->pool].spec.workload.gpu_resource;
		if (strcmp(counted, w->gpu_resource) != 0 || w->gpus != p->gpus_per_replica)
			violate(c,
				&(struct breach){
					&w->object, w->spec,
					say(c,
					    "set workload.gpuResource: %s and workload.gpusPerReplica: %lld in "
					    "the WarmPool, or change the pod",
					    w->gpu_resource, (long long)w->gpus) },
				"a pod asks for %lld %s, but WarmPool %s counts %lld %s a replica", (long long)w->gpus,
				w->gpu_resource, p->name, (long long)p->gpus_per_replica, counted);
	}
}

static int64_t needed_mib(const struct workload *w)
{
	const char *text = label_of(&w->annotations, CONTRACT_MEMORY);
	int64_t milli;

	if (!text)
		text = label_of(&w->object.annotations, CONTRACT_MEMORY);
	return text && amount_milli(text, &milli) ? milli / 1000 / (1 << 20) : UNSAID;
}

/* The groups that the pod may go to and whose GPUs have less: "g5 (A10G, 24 GiB)". */
static const char *too_small(struct court *c, const struct workload *w, int64_t mib)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = groups_of(c->contract, w, groups, GROUPS_MOST);
	CLEANUP(buf_release) struct buf text = { 0 };

	for (size_t i = 0; i < count; i++)
		if (groups[i]->gpu_memory_mib != UNSAID && groups[i]->gpu_memory_mib < mib &&
		    fit_group(w, groups[i], NULL) != FIT_NO)
			buf_printf(&text, "%s%s (%s, %lld GiB)", text.len ? ", " : "", groups[i]->spec->name,
				   groups[i]->gpu ? groups[i]->gpu : "GPU",
				   (long long)(groups[i]->gpu_memory_mib / 1024));
	return text.len ? say(c, "%s", text.text) : NULL;
}

void judge_gpu_memory(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		int64_t mib = w ? needed_mib(w) : UNSAID;
		const char *groups = mib > 0 ? too_small(c, w, mib) : NULL;
		if (groups)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"needs %lld GiB of each GPU (" CONTRACT_MEMORY "), and may go to node group %s",
				(long long)((mib + 1023) / 1024), groups);
	}
}

/* "70" and "1.5" in thousandths; `end` is behind it. */
static int64_t thousandths(const char *p, const char **end)
{
	int64_t value = 0, unit = 1000;

	for (; isdigit((unsigned char)*p) && value < 10000000; p++)
		value = value * 10 + (*p - '0') * 1000;
	if (*p == '.' && isdigit((unsigned char)p[1]))
		for (p++; isdigit((unsigned char)*p); p++) {
			unit /= 10;
			value += (*p - '0') * unit;
		}
	*end = p;
	return value;
}

/* "Llama-3.1-70B-Instruct": 70000, thousandths of 10^9 parameters; 0 when the name does not say. */
static int64_t parameters_in(const char *name)
{
	for (const char *p = name; *p; p++) {
		bool starts =
			isdigit((unsigned char)*p) && (p == name || (!isalnum((unsigned char)p[-1]) && p[-1] != '.'));
		const char *end;
		if (!starts)
			continue;
		int64_t value = thousandths(p, &end);
		if ((*end == 'B' || *end == 'b') && !isalnum((unsigned char)end[1]) && value < 3000000)
			return value;
	}
	return 0;
}

static bool mentions(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(text, *words))
			return true;
	return false;
}

/* The words after the command, and within a shell's script. */
static void words_of(const struct container *k, struct buf *out)
{
	const struct yaml_node *lists[] = { k->command, k->args };

	for (size_t l = 0; l < 2; l++)
		for (const struct yaml_node *n = lists[l] && lists[l]->kind == YAML_LIST ? lists[l]->first : NULL; n;
		     n = n->next)
			if (n->kind == YAML_SCALAR)
				buf_printf(out, "%s ", n->text);
}

/* GiB of the weights: 2 bytes a parameter, 1 or a half where the words say so. */
static int64_t weights_gib(const struct container *k)
{
	static const char *const halves[] = { "awq", "gptq", "int4", "4bit", "fp4", "q4_", "w4a16", NULL };
	static const char *const bytes[] = { "fp8", "int8", "8bit", "q8_", "w8a8", "bitsandbytes", "quantiz", NULL };
	CLEANUP(buf_release) struct buf words = { .cap = 1 << 16 };

	words_of(k, &words);
	if (!words.len || !buf_ok(&words))
		return 0;
	int64_t bytes_x2 = mentions(words.text, halves) ? 1 : mentions(words.text, bytes) ? 2 : 4;
	return parameters_in(words.text) * bytes_x2 * 1000000 / 2 / (1 << 30);
}

void judge_model_size(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		for (size_t k = 0; w && w->gpus && needed_mib(w) == UNSAID && k < w->container_count; k++) {
			const struct container *one = &w->containers[k];
			int64_t gib = one->gpu_count ? weights_gib(one) : 0;
			const char *groups = gib ? too_small(c, w, gib * 1024 / w->gpus) : NULL;
			if (groups)
				violate(c, &(struct breach){ &w->object, one->args ? one->args : one->at, NULL },
					"the model's name says about %lld GiB of weights, for %lld GPUs of node group "
					"%s",
					(long long)gib, (long long)w->gpus, groups);
		}
	}
}

void judge_cost_labels(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const char *keys[COST_LABELS];
		CLEANUP(buf_release) struct buf lacking = { 0 };
		if (!w)
			continue;
		cost_label_keys(c->contract, w, keys);
		for (size_t k = 0; k < COST_LABELS; k++)
			if (!label_of(&w->labels, keys[k]) || !*label_of(&w->labels, keys[k]))
				buf_printf(&lacking, "%s%s", lacking.len ? ", " : "", keys[k]);
		if (lacking.len)
			violate(c, &(struct breach){ &w->object, w->spec, NULL }, "its pods lack the labels %s",
				lacking.text);
	}
}
