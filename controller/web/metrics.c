#include "controller/web/metric.h"

#include "base/quantity.h"

#include <inttypes.h>
#include <string.h>

static const char *const type_names[] = { "gauge", "counter", "histogram" };
static const struct metric_list *const lists[] = { &pool_metrics, &signal_metrics,  &cost_metrics, &group_metrics,
						   &loop_metrics, &process_metrics, NULL };

/* Bytes of the UTF-8 character at `text`, 0 where there is none. One bad byte, and Prometheus refuses the whole page.
 */
static size_t character(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t len = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
	bool is_overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
	bool is_none = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90);

	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return is_overlong || is_none ? 0 : len;
}

static void escape(const char *text, bool is_label, struct buf *out)
{
	while (*text) {
		size_t len = character(text);
		if (*text == '\n')
			buf_text(out, "\\n");
		else if (*text == '\\' || (is_label && *text == '"'))
			buf_printf(out, "\\%c", *text);
		else
			buf_append(out, len ? text : "?", len ? len : 1);
		text += len ? len : 1;
	}
}

static void write_head(struct metric_sink *s)
{
	if (s->has_head)
		return;
	s->has_head = true;
	buf_printf(s->out, "# HELP %s ", s->metric->name);
	escape(s->metric->help, false, s->out);
	buf_printf(s->out, "\n# TYPE %s %s\n", s->metric->name, type_names[s->metric->type]);
}

static void write_value(int64_t value, int digits, struct buf *out)
{
	if (value < 0 && value > INT64_MIN) {
		buf_text(out, "-");
		value = -value;
	}
	fixed_format(value, digits, out);
}

static void write_labels(const struct metric_label *labels, struct buf *out)
{
	bool is_open = false;

	for (; labels && labels->name; labels++) {
		if (!labels->value)
			continue;
		buf_printf(out, "%s%s=\"", is_open ? "," : "{", labels->name);
		escape(labels->value, true, out);
		buf_text(out, "\"");
		is_open = true;
	}
	if (is_open)
		buf_text(out, "}");
}

static void write_sample(struct metric_sink *s, const char *suffix, const struct metric_label *labels, int64_t value,
			 int digits)
{
	write_head(s);
	buf_printf(s->out, "%s%s", s->metric->name, suffix);
	write_labels(labels, s->out);
	buf_text(s->out, " ");
	write_value(value, digits, s->out);
	buf_text(s->out, "\n");
}

void metric_sample(struct metric_sink *s, const struct metric_label *labels, int64_t value, int digits)
{
	write_sample(s, "", labels, value, digits);
}

void metric_seconds(struct metric_sink *s, const struct metric_label *labels, millis value)
{
	metric_sample(s, labels, value, 3);
}

void metric_choice(struct metric_sink *s, const struct metric_label *labels, const struct metric_choices *c,
		   int64_t now)
{
	struct metric_label all[METRIC_LABELS + 2] = { { 0 } };
	size_t n = 0;

	for (; labels && labels[n].name && n < METRIC_LABELS; n++)
		all[n] = labels[n];
	for (int64_t i = 0; i < c->count; i++) {
		all[n] = (struct metric_label){ c->label, c->name(i) };
		metric_sample(s, all, i == now, 0);
	}
}

void metric_counts(struct metric_sink *s, const struct published_counts *counts, const char *const names[3])
{
	for (size_t i = 0; i < counts->count; i++) {
		struct metric_label labels[4] = { { 0 } };
		for (size_t k = 0; k < 3 && names[k]; k++)
			labels[k] = (struct metric_label){ names[k], counts->items[i].labels[k] };
		metric_sample(s, labels, counts->items[i].count, 0);
	}
}

void metric_times(struct metric_sink *s, const struct published_times *t)
{
	static const int64_t bounds[PUBLISHED_BUCKETS - 1] = PUBLISHED_BOUNDS;
	int64_t below = 0;

	for (size_t i = 0; i < PUBLISHED_BUCKETS; i++) {
		CLEANUP(buf_release) struct buf bound = { 0 };
		if (i < PUBLISHED_BUCKETS - 1)
			fixed_format(bounds[i], 3, &bound);
		else
			buf_text(&bound, "+Inf");
		below += t->bucket[i];
		write_sample(s, "_bucket", (struct metric_label[]){ { "le", bound.text }, { 0 } }, below, 0);
	}
	write_sample(s, "_sum", NULL, t->sum_us, 6);
	write_sample(s, "_count", NULL, t->count, 0);
}

void metrics_write(const struct published *p, struct buf *out)
{
	for (size_t i = 0; lists[i]; i++)
		for (size_t k = 0; k < lists[i]->count; k++) {
			struct metric_sink sink = { .metric = &lists[i]->metrics[k], .shown = p, .out = out };
			sink.metric->write(&sink);
		}
}

static const char head[] = "# Metrics\n"
			   "\n"
			   "Written by `preheat run --print-metrics` from the tables that make the page "
			   "(controller/web/metrics_*.c): change\n"
			   "those, not this file. `/metrics` is Prometheus text; what is not known has no sample, and "
			   "never stands as 0. Pools and\n"
			   "node groups are told by the replica of the controller that leads.\n";

void metrics_write_reference(struct buf *out)
{
	buf_text(out, head);
	for (size_t i = 0; lists[i]; i++) {
		buf_printf(out, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n",
			   lists[i]->title);
		for (size_t k = 0; k < lists[i]->count; k++) {
			const struct metric *m = &lists[i]->metrics[k];
			buf_printf(out, "| `%s` | %s | %s | %s |\n", m->name, type_names[m->type], m->labels, m->help);
		}
	}
}
