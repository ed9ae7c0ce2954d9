#include "signals/engine.h"

#include <string.h>

/* METRIC(quantity, rank, "name", label, value, is_largest), as struct engine_metric says */
#define METRIC(quantity_, rank_, name_, label_, value_, largest) \
	{ name_, ENGINE_##quantity_, rank_, label_, value_, largest },

static const struct engine_metric vllm[] = {
#include "signals/engines/vllm.def"
};
static const struct engine_metric sglang[] = {
#include "signals/engines/sglang.def"
};
static const struct engine_metric tgi[] = {
#include "signals/engines/tgi.def"
};
static const struct engine_metric triton[] = {
#include "signals/engines/triton.def"
};
static const struct engine_metric llamacpp[] = {
#include "signals/engines/llamacpp.def"
};
static const struct engine_metric dynamo[] = {
#include "signals/engines/dynamo.def"
};

#define METRICS(rows_)                                                    \
	{                                                                 \
		.rows = (rows_), .count = sizeof(rows_) / sizeof *(rows_) \
	}

static const struct engine_metrics metrics[ENGINE_COUNT] = { METRICS(vllm),   METRICS(sglang),	 METRICS(tgi),
							     METRICS(triton), METRICS(llamacpp), METRICS(dynamo) };
_Static_assert(sizeof vllm <= ENGINE_ROWS * sizeof *vllm && sizeof sglang <= ENGINE_ROWS * sizeof *sglang &&
		       sizeof dynamo <= ENGINE_ROWS * sizeof *dynamo && sizeof triton <= ENGINE_ROWS * sizeof *triton,
	       "an engine has at most ENGINE_ROWS rows");

static const char *const engine_texts[ENGINE_COUNT] = { "vllm", "sglang", "tgi", "triton", "llamacpp", "dynamo" };

struct engine_metrics engine_metrics(enum engine engine)
{
	return metrics[engine];
}

static const char *copy(const char *text, struct arena *a)
{
	return text ? arena_strdup(a, text, strlen(text)) : NULL;
}

struct engine_metrics engine_metrics_copy(const struct engine_metrics *m, struct arena *a)
{
	struct engine_metric *rows = arena_array(a, struct engine_metric, m->count);

	for (size_t i = 0; i < m->count; i++) {
		rows[i] = m->rows[i];
		rows[i].name = copy(m->rows[i].name, a);
		rows[i].label = copy(m->rows[i].label, a);
		rows[i].value = copy(m->rows[i].value, a);
	}
	return (struct engine_metrics){ .rows = rows, .count = m->count };
}

size_t engine_names(struct engine_metrics m, const char *names[ENGINE_ROWS], size_t name_of_row[ENGINE_ROWS])
{
	size_t count = 0;

	for (size_t i = 0; i < m.count; i++) {
		size_t at = 0;
		while (at < count && strcmp(names[at], m.rows[i].name))
			at++;
		name_of_row[i] = at;
		if (at == count)
			names[count++] = m.rows[i].name;
	}
	return count;
}

const char *engine_name(enum engine engine)
{
	return engine < ENGINE_COUNT ? engine_texts[engine] : "unknown";
}

bool engine_find(const char *name, enum engine *out)
{
	for (int i = 0; i < ENGINE_COUNT; i++)
		if (strcmp(engine_texts[i], name) == 0) {
			*out = (enum engine)i;
			return true;
		}
	return false;
}

const char *engine_quantity_name(enum engine_quantity quantity)
{
	static const char *const texts[] = { "running requests",
					     "waiting requests",
					     "KV cache use",
					     "prefix cache hits",
					     "load time",
					     "startup time",
					     "started requests",
					     "requests waited",
					     "queue wait",
					     "finished requests",
					     "prompt tokens",
					     "output tokens",
					     "seconds between tokens",
					     "times between tokens",
					     "time to first token",
					     "tokens looked for in the prefix cache",
					     "tokens found in the prefix cache" };

	_Static_assert(sizeof texts / sizeof *texts == ENGINE_QUANTITY_COUNT, "a text per quantity");
	return quantity < ENGINE_QUANTITY_COUNT ? texts[quantity] : "unknown";
}
