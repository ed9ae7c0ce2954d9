#include "signals/custom.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static const struct custom_row {
	enum custom_name name;
	enum engine_quantity quantity;
	int rank;
	const char *ending;
	bool is_largest;
} custom_rows[] = {
	{ CUSTOM_RUNNING, ENGINE_RUNNING, 0, "", false },
	{ CUSTOM_WAITING, ENGINE_WAITING, 0, "", false },
	{ CUSTOM_KV_CACHE, ENGINE_KV_CACHE, 0, "", true },
	{ CUSTOM_STARTED, ENGINE_STARTED, 0, "", false },
	{ CUSTOM_FIRST_TOKEN, ENGINE_STARTED, 1, "_count", false },
	{ CUSTOM_QUEUE_WAIT, ENGINE_STARTED, 2, "_count", false },
	{ CUSTOM_COMPLETED, ENGINE_COMPLETED, 0, "", false },
	{ CUSTOM_PROMPT_TOKENS, ENGINE_PROMPT_TOKENS, 0, "", false },
	{ CUSTOM_OUTPUT_TOKENS, ENGINE_OUTPUT_TOKENS, 0, "", false },
	{ CUSTOM_QUEUE_WAIT, ENGINE_WAITED, 0, "_count", false },
	{ CUSTOM_QUEUE_WAIT, ENGINE_WAIT_BUCKET, 0, "_bucket", false },
	{ CUSTOM_FIRST_TOKEN, ENGINE_FIRST_TOKEN_BUCKET, 0, "_bucket", false },
	{ CUSTOM_TOKEN_LATENCY, ENGINE_LATENCY_SUM, 0, "_sum", false },
	{ CUSTOM_TOKEN_LATENCY, ENGINE_LATENCY_COUNT, 0, "_count", false },
	{ CUSTOM_PREFIX_QUERIES, ENGINE_PREFIX_QUERIES, 0, "", false },
	{ CUSTOM_PREFIX_HITS, ENGINE_PREFIX_HITS, 0, "", false },
	{ CUSTOM_LOAD_TIME, ENGINE_LOAD_TIME, 0, "", true },
	{ CUSTOM_STARTUP_TIME, ENGINE_STARTUP_TIME, 0, "", true },
};

static struct engine_metric make_row(const struct custom_row *row, const char *text, struct arena *a)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct metric_name m;

	if (!metric_name_parse(text, &m))
		abort();
	buf_append(&name, text, m.name_len);
	buf_text(&name, row->ending);
	return (struct engine_metric){ .name = arena_strdup(a, name.text, name.len),
				       .quantity = row->quantity,
				       .rank = row->rank,
				       .label = m.label_len ? arena_strdup(a, m.label, m.label_len) : NULL,
				       .value = m.label_len ? arena_strdup(a, m.value, m.value_len) : NULL,
				       .is_largest = row->is_largest };
}

struct engine_metrics custom_metrics(const char *const names[CUSTOM_COUNT], struct arena *a)
{
	size_t most = sizeof custom_rows / sizeof *custom_rows, count = 0;
	struct engine_metric *made = arena_array(a, struct engine_metric, most);

	for (size_t i = 0; i < most; i++)
		if (names[custom_rows[i].name])
			made[count++] = make_row(&custom_rows[i], names[custom_rows[i].name], a);
	return (struct engine_metrics){ .rows = made, .count = count };
}
