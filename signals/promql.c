#include "signals/promql.h"

#include <inttypes.h>
#include <string.h>

static bool is_plain_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";

	return strchr(letters, name[0]) && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
							     "0123456789")] == '\0';
}

void promql_text(const char *value, struct buf *out)
{
	buf_text(out, "\"");
	for (const char *c = value; *c; c++) {
		if (*c == '\n')
			buf_text(out, "\\n");
		else if (*c == '"' || *c == '\\')
			buf_printf(out, "\\%c", *c);
		else
			buf_append(out, c, 1);
	}
	buf_text(out, "\"");
}

static void write_label(const char *name, const char *value, bool *has_one, struct buf *out)
{
	buf_printf(out, "%s%s=", *has_one ? "," : "", name);
	promql_text(value, out);
	*has_one = true;
}

static void write_selector(const struct promql_scope *s, const struct engine_metric *m, struct buf *out)
{
	bool has_one = false;

	if (is_plain_name(m->name))
		buf_text(out, m->name);
	buf_text(out, "{");
	if (!is_plain_name(m->name))
		write_label("__name__", m->name, &has_one, out);
	for (size_t i = 0; i < s->label_count; i++)
		write_label(s->labels[i].name, s->labels[i].value, &has_one, out);
	if (m->label)
		write_label(m->label, m->value, &has_one, out);
	buf_text(out, "}");
}

/* Around each selector, and by what the sum is taken. */
struct form {
	const char *before, *after, *by;
	bool is_latest;
};

/* The rows of a quantity, the best name first; a place that has the best is not asked for the others. */
static bool write_rows(const struct promql_scope *s, enum engine_quantity q, const struct form *f, struct buf *out)
{
	bool has_one = false;

	for (int rank = 0; rank < ENGINE_ROWS; rank++)
		for (size_t i = 0; i < s->metrics.count; i++) {
			const struct engine_metric *m = &s->metrics.rows[i];
			if (m->quantity != q || m->rank != rank)
				continue;
			buf_printf(out, "%s%s by (%s) (%s", has_one ? " or " : "",
				   m->is_largest || f->is_latest ? "max" : "sum", f->by, f->before);
			write_selector(s, m, out);
			buf_printf(out, "%s)", f->after);
			has_one = true;
		}
	return has_one;
}

bool promql_now(const struct promql_scope *s, enum engine_quantity q, struct buf *out)
{
	const struct form f = { .before = "",
				.after = "",
				.by = engine_is_bucket(q) ? PROMQL_PLACE ", le" : PROMQL_PLACE };

	return write_rows(s, q, &f, out);
}

void promql_read_at(const struct promql_scope *s, struct buf *out)
{
	const struct form f = { .before = "timestamp(", .after = ")", .by = PROMQL_PLACE, .is_latest = true };

	write_rows(s, ENGINE_RUNNING, &f, out);
}

static void write_seconds(millis value, struct buf *out)
{
	buf_printf(out, "%" PRId64, value / SECOND);
	if (value % SECOND)
		buf_printf(out, ".%03" PRId64, value % SECOND);
}

bool promql_pool(const struct promql_scope *s, enum engine_quantity q, millis step, millis window, struct buf *out)
{
	CLEANUP(buf_release) struct buf rows = { 0 };
	CLEANUP(buf_release) struct buf after = { 0 };
	bool is_level = engine_is_level(q), is_bucket = engine_is_bucket(q);

	buf_printf(&after, "[%" PRId64 "%s])", window % SECOND ? window : window / SECOND,
		   window % SECOND ? "ms" : "s");
	const struct form f = { .before = is_level ? "" : "increase(",
				.after = is_level ? "" : after.text,
				.by = is_bucket ? PROMQL_PLACE ", le" : PROMQL_PLACE };
	if (!write_rows(s, q, &f, &rows))
		return false;
	buf_text(out, q == ENGINE_KV_CACHE ? "avg(" : is_bucket ? "sum by (le) (" : "sum(");
	buf_printf(out, "max by (namespace, pod, instance%s) (%s))", is_bucket ? ", le" : "", rows.text);
	if (!is_level && window != step) {
		buf_text(out, " * ");
		write_seconds(step, out);
		buf_text(out, " / ");
		write_seconds(window, out);
	}
	return true;
}

void promql_pool_count(const struct promql_scope *s, struct buf *out)
{
	buf_text(out, "count(count by (namespace, pod, instance) (");
	promql_now(s, ENGINE_RUNNING, out);
	buf_text(out, "))");
}

void promql_pool_ready(const struct promql_scope *s, struct buf *out)
{
	const struct form f = { .before = "last_over_time(", .after = "[10m])", .by = "namespace, pod" };

	buf_text(out, "sum(max by (namespace, pod) (kube_pod_status_ready{condition=\"true\"}) * on (namespace, pod) "
		      "group by (namespace, pod) (");
	write_rows(s, ENGINE_RUNNING, &f, out);
	buf_text(out, "))");
}
