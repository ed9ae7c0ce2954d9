#include "base/json.h"
#include "providers/azure/pool.h"
#include "providers/azure/text.h"

#include <inttypes.h>
#include <string.h>

static const char *const read_only[] = {
#define READ_ONLY(path) path,
#include "providers/azure/pool_read_only.def"
#undef READ_ONLY
};

static const char COUNT[] = "properties>count", OF_SIZE[] = "properties>virtualMachinesProfile>scale>manual[]>count";

struct writing {
	struct buf *out;
	int64_t count;
	bool is_of_machines, has_count;
	int skipping; /* depth of the container that is left out; -1: none */
	struct {
		size_t path_len;
		bool is_array, has_items;
	} open[JSON_MAX_DEPTH];
};

static bool is_left_out(const struct writing *w, const char *path)
{
	for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
		if (strcmp(path, read_only[i]) == 0)
			return true;
	return w->is_of_machines && strcmp(path, COUNT) == 0; /* the sum of its sizes */
}

/* The comma and the key. */
static void begin(struct writing *w, const struct json_event *v)
{
	if (!v->depth)
		return;
	size_t parent = w->open[v->depth - 1].path_len;
	if (w->open[v->depth - 1].has_items)
		buf_text(w->out, ",");
	w->open[v->depth - 1].has_items = true;
	if (w->open[v->depth - 1].is_array)
		return;
	const char *key = v->path + parent + (parent ? 1 : 0);
	azure_write_json(key, strlen(key), w->out);
	buf_text(w->out, ":");
}

static void write_scalar(struct writing *w, const struct json_event *v)
{
	bool is_size = strcmp(v->path, w->is_of_machines ? OF_SIZE : COUNT) == 0;

	begin(w, v);
	if (is_size && v->type == JSON_NUMBER) {
		w->has_count = true;
		buf_printf(w->out, "%" PRId64, w->count);
	} else if (v->type == JSON_STRING) {
		azure_write_json(v->text, v->len, w->out);
	} else if (v->type == JSON_NULL) {
		buf_text(w->out, "null");
	} else {
		buf_append(w->out, v->text, v->len);
	}
}

static bool take(void *user, const struct json_event *v, struct error *e)
{
	struct writing *w = user;

	(void)e;
	if (w->skipping >= 0) {
		if (v->type == JSON_CLOSE && v->depth == w->skipping)
			w->skipping = -1;
		return true;
	}
	if (v->type == JSON_CLOSE) {
		buf_text(w->out, v->is_array ? "]" : "}");
		return true;
	}
	if (is_left_out(w, v->path)) {
		if (v->type == JSON_OPEN)
			w->skipping = v->depth;
		return true;
	}
	if (v->type != JSON_OPEN) {
		write_scalar(w, v);
		return true;
	}
	begin(w, v);
	buf_text(w->out, v->is_array ? "[" : "{");
	w->open[v->depth].path_len = strlen(v->path);
	w->open[v->depth].is_array = v->is_array;
	w->open[v->depth].has_items = false;
	return true;
}

bool azure_pool_write(const char *text, size_t len, int64_t count, struct buf *out, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct azure_pool pool;

	if (!azure_pool_read(text, len, &scratch, &pool, e))
		return false;
	struct writing w = { .out = out, .count = count, .is_of_machines = pool.is_of_machines, .skipping = -1 };
	struct json *j = json_open("agent pool", take, &w);
	bool ok = json_feed(j, text, len, e) && json_finish(j, e);
	json_close(j);
	if (!ok)
		return false;
	if (!w.has_count)
		return error_set(e, ERROR_INVALID, "agent pool: found no count to change");
	return true;
}
