#include "controller/manifest/draft.h"

#include <string.h>

static bool is_resource_name(const char *text)
{
	static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	const char *slash = strchr(text, '/');
	size_t domain = slash ? (size_t)(slash - text) : 0;

	if (!domain || domain > 253 || !strspn(text, lower) || !strchr(lower, text[domain - 1]))
		return false;
	for (size_t i = 0; i < domain; i++)
		if (!strchr(lower, text[i]) && !strchr(".-", text[i]))
			return false;
	const char *name = slash + 1;
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = strlen(name);
	if (!len || len > 63 || !strchr(letters, name[0]) || !strchr(letters, name[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr(letters, name[i]) && !strchr("-_.", name[i]))
			return false;
	return true;
}

static void settle_warmth(struct draft *d, struct workload_text *w)
{
	static const char *const found[] = { [WARM_REPLICAS] = "replicas without scaleTargetRef",
					     [WARM_PLACEHOLDERS] = "placeholders without scaleTargetRef",
					     [WARM_BUFFER] = "buffer without scaleTargetRef" };
	static const char *const remedies[] = {
		[WARM_REPLICAS] = "name what is to be scaled",
		[WARM_PLACEHOLDERS] = "name what runs the serving pods: its image is kept warm",
		[WARM_BUFFER] = "name what runs the serving pods: room is kept for more of them",
	};

	if (!is_given(w->node, "warm"))
		w->warm = w->target.name ? WARM_REPLICAS : WARM_METRIC;
	else if (w->warm != WARM_METRIC && !w->target.node)
		schema_find_key(d->findings, w->node, "warm", found[w->warm], "metric, or a scaleTargetRef beside it",
				remedies[w->warm]);
}

/* The pods themselves are the work: one sequence each, and nothing that could be asked. */
static void settle_pods(struct draft *d, struct spec_text *s)
{
	struct workload_text *w = &s->workload;
	static const char remedy[] = "delete it, or name the model server as engine";

	if (s->signals.engine != SOURCE_PODS)
		return;
	if (!is_given(w->node, "maxSequences"))
		w->max_sequences = 1;
	else if (w->max_sequences != 1)
		schema_find_key(d->findings, w->node, "maxSequences", NULL, "1 with signals.engine pods",
				"delete it, or name the model server as engine: a pod is one piece of work");
	if (s->signals.scrape.node)
		schema_find_key(d->findings, s->signals.node, "scrape", "scrape with engine pods",
				"no source: the pods are counted", remedy);
	if (s->signals.prometheus.node)
		schema_find_key(d->findings, s->signals.node, "prometheus", "prometheus with engine pods",
				"no source: the pods are counted", remedy);
}

void check_workload(struct draft *d, size_t pool)
{
	struct spec_text *s = &d->pools[pool].spec;

	if (!is_resource_name(s->workload.gpu_resource))
		schema_find_key(d->findings, s->workload.node, "gpuResource", NULL,
				"an extended resource as nodes offer it, like nvidia.com/gpu",
				"write DOMAIN/NAME; kubectl describe node shows it under Allocatable");
	settle_warmth(d, &s->workload);
	settle_pods(d, s);
}
