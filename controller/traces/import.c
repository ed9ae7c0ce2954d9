#include "controller/traces/import.h"

#include "controller/traces/import_rows.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct import_format {
	const char *name;
	import_looks_fn *looks;
	import_fn *read;
};

static const struct import_format formats[] = {
	{ "azure", looks_azure, import_azure },		 { "burstgpt", looks_burstgpt, import_burstgpt },
	{ "preheat", looks_preheat, import_preheat },	 { "prometheus", looks_prometheus, import_prometheus },
	{ "mooncake", looks_mooncake, import_mooncake }, { "vllm", looks_vllm, import_vllm },
};

bool import_add(struct import_rows *in, const struct import_row *row, struct error *e)
{
	if (in->count == TRACE_MAX_REQUESTS)
		return error_set(e, ERROR_INVALID, "more than %d requests; cut the recording", TRACE_MAX_REQUESTS);
	if (in->count == in->room) {
		in->room = in->room ? in->room * 2 : 4096;
		in->rows = realloc(in->rows, in->room * sizeof *in->rows);
		if (!in->rows)
			abort();
	}
	in->report->rows++;
	if (in->count && row->micros < in->rows[in->count - 1].arrival)
		in->report->unsorted++;
	in->rows[in->count++] =
		(struct request){ row->micros, (int32_t)row->prompt_tokens, (int32_t)row->output_tokens, row->label };
	return true;
}

void import_drop_failed(struct import_rows *in)
{
	in->report->rows++;
	in->report->failed++;
}

static const struct import_format *find_format(const char *name, const char *bytes, size_t len)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(name, "auto") ? !strcmp(name, formats[i].name) : formats[i].looks(bytes, len))
			return &formats[i];
	return NULL;
}

static void gzip_closep(struct gzip **g)
{
	gzip_close(*g);
}

static bool import_file(struct import_rows *in, const char *path, struct error *e)
{
	CLEANUP(gzip_closep) struct gzip *source = gzip_open(path, e);
	const char *bytes;
	size_t len;

	if (!source || !gzip_peek(source, &bytes, &len, e))
		return false;
	if (!len)
		return error_set(e, ERROR_INVALID, "%s: the file is empty", gzip_name(source));
	const struct import_format *f = find_format(in->options->from, bytes, len);
	if (!f)
		return error_set(e, ERROR_INVALID, "%s: the format is not recognised; allowed: --from %s",
				 gzip_name(source), IMPORT_FORMATS);
	if (in->report->format && strcmp(in->report->format, f->name))
		return error_set(e, ERROR_INVALID, "%s: is %s, the file before is %s; import them one by one",
				 gzip_name(source), f->name, in->report->format);
	in->report->format = f->name;
	return f->read(in, source, e);
}

/* Microseconds of the recording's own time to milliseconds since its first arrival. */
static bool settle(struct import_rows *in, struct error *e)
{
	int64_t first = in->report->keeps_start ? 0 : INT64_MAX;

	for (size_t i = 0; i < in->count; i++)
		first = in->rows[i].arrival < first ? in->rows[i].arrival : first;
	for (size_t i = 0; i < in->count; i++) {
		in->rows[i].arrival = (in->rows[i].arrival - first + 500) / 1000;
		if (in->rows[i].arrival > TRACE_MAX_LENGTH)
			return error_set(
				e, ERROR_INVALID,
				"the recording spans more than ten years; are its times in the expected unit?");
	}
	requests_sort(in->rows, in->count);
	in->report->origin_us = first;
	return true;
}

static bool finish(struct import_rows *in, struct trace *out, struct error *e)
{
	struct trace t = { 0 };

	if (in->series)
		return prometheus_bins(in->series, out, in->report, e);
	if (!in->count)
		return error_set(e, ERROR_INVALID, "no usable requests: %lld rows read, %lld of them failed requests",
				 (long long)in->report->rows, (long long)in->report->failed);
	if (!settle(in, e))
		return false;
	t.requests = in->rows;
	t.request_count = in->count;
	in->rows = NULL;
	labels_move(&in->labels, &t);
	t.length = trace_end(&t);
	*out = t;
	return true;
}

bool trace_import(const char *const *paths, size_t count, const struct import_options *options, struct trace *out,
		  struct import_report *report, struct error *e)
{
	struct import_rows in = { .options = options, .report = report };
	bool ok = true;

	*report = (struct import_report){ 0 };
	for (size_t i = 0; i < count && ok; i++)
		ok = import_file(&in, paths[i], e);
	ok = ok && finish(&in, out, e);
	prometheus_free(in.series);
	labels_release(&in.labels);
	free(in.rows);
	return ok;
}
