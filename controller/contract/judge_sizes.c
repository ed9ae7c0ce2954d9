/* Rules about CPU and memory beside the GPUs of a machine. */
#include "controller/contract/parts.h"

#include <string.h>

static const struct workload *gpu_workload(const struct court *c, size_t i)
{
	const struct workload *w = &c->contract->workloads[i];

	return w->gpu_resource && !w->is_owned && !w->is_daemon ? w : NULL;
}

void judge_requests_set(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		for (size_t k = 0; w && k < w->container_count; k++) {
			const struct container *one = &w->containers[k];
			bool lacks_cpu = one->cpu_milli == UNSAID, lacks_memory = one->memory_milli == UNSAID;
			if (!one->gpu_count || (!lacks_cpu && !lacks_memory))
				continue;
			violate(c, &(struct breach){ &w->object, one->resources ? one->resources : one->at, NULL },
				"container %s requests no %s", one->name,
				!lacks_memory ? "CPU"
				: !lacks_cpu  ? "memory"
					      : "CPU and no memory");
		}
	}
}

static long long tenths_of_gib(int64_t memory_milli)
{
	return (long long)(memory_milli / 1000 / ((INT64_C(1) << 30) / 10));
}

/* "node group g5 (g5.xlarge) has 3.9 CPUs and 14.5 GiB for pods" */
static const char *room_text(struct court *c, const struct group_facts *g)
{
	long long gib = tenths_of_gib(g->memory_milli);

	return say(c, "node group %s (%s) has %s%lld.%02lld CPUs and %lld.%lld GiB for pods", g->spec->name, g->source,
		   g->has_all_labels ? "" : "about ", (long long)(g->cpu_milli / 1000),
		   (long long)(g->cpu_milli % 1000 / 10), gib / 10, gib % 10);
}

static bool is_measured(const struct group_facts *g)
{
	return g->source && g->cpu_milli != UNSAID && g->memory_milli != UNSAID;
}

static int64_t times(int64_t value, int64_t n)
{
	return value > INT64_MAX / (n ? n : 1) ? INT64_MAX : value * n;
}

/* How many such pods the machine holds by CPU and memory, at most `most`. */
static int64_t held(const struct workload *w, const struct group_facts *g, int64_t most)
{
	while (most > 0 && (times(w->cpu_milli, most) > g->cpu_milli || times(w->memory_milli, most) > g->memory_milli))
		most--;
	return most;
}

static int64_t by_gpus(const struct workload *w, const struct group_facts *g)
{
	return w->gpus > 0 ? g->spec->gpus_per_node / w->gpus : 0;
}

static void each_group(struct court *c,
		       void (*judge)(struct court *, const struct workload *, const struct group_facts *))
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_workload(c, i);
		const struct group_facts *groups[GROUPS_MOST];
		size_t count = w && pool_of(c->contract, w) ? groups_of(c->contract, w, groups, GROUPS_MOST) : 0;
		for (size_t g = 0; g < count; g++)
			if (fit_group(w, groups[g], NULL) != FIT_NO)
				judge(c, w, groups[g]);
	}
}

static const char *ask_text(struct court *c, const struct workload *w)
{
	long long gib = tenths_of_gib(w->memory_milli);

	return say(c, "%lld.%02lld CPUs and %lld.%lld GiB", (long long)(w->cpu_milli / 1000),
		   (long long)(w->cpu_milli % 1000 / 10), gib / 10, gib % 10);
}

static void judge_fit(struct court *c, const struct workload *w, const struct group_facts *g)
{
	if (w->gpus > g->spec->gpus_per_node)
		violate(c, &(struct breach){ &w->object, w->spec, "ask for fewer, or give the pool larger machines" },
			"a pod asks for %lld GPUs, and a machine of node group %s has %lld", (long long)w->gpus,
			g->spec->name, (long long)g->spec->gpus_per_node);
	else if (is_measured(g) && !held(w, g, 1))
		violate(c, &(struct breach){ &w->object, w->spec, NULL }, "a pod asks for %s, but %s", ask_text(c, w),
			room_text(c, g));
}

void judge_fits_instance(struct court *c)
{
	each_group(c, judge_fit);
}

static void judge_stranded(struct court *c, const struct workload *w, const struct group_facts *g)
{
	int64_t by_gpu = by_gpus(w, g), fitting = is_measured(g) ? held(w, g, by_gpu) : by_gpu;

	if (fitting < by_gpu && fitting > 0)
		violate(c,
			&(struct breach){
				&w->object, w->spec,
				say(c, "ask for at most 1/%lld of the machine's CPU and memory", (long long)by_gpu) },
			"its GPUs would hold %lld pods, its CPU and memory hold %lld of %s: %s", (long long)by_gpu,
			(long long)fitting, ask_text(c, w), room_text(c, g));
}

void judge_strands_gpus(struct court *c)
{
	each_group(c, judge_stranded);
}
