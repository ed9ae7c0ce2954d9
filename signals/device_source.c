#include "signals/device_source.h"

#include "signals/reading.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_BYTES = (size_t)128 << 20;

struct device_source {
	struct loop *loop;
	const struct clock *clock;
	struct prometheus *prometheus;
	struct prometheus_call call;
	struct buf query;
	millis interval, asked_at, read_at; /* clock_mono() */
	bool has_begun, is_asked, is_closed;
	struct timer timer;
	struct device_list *list, *next;
	struct devices shown;
	struct error trouble, refusal;
};

static void free_source(struct device_source *s)
{
	timer_stop(&s->timer);
	prometheus_close(s->prometheus);
	device_list_free(s->list);
	device_list_free(s->next);
	buf_release(&s->query);
	free(s);
}

static void on_timer(struct timer *t)
{
	device_source_advance(t->user);
}

static void wait_for_next(struct device_source *s)
{
	millis next = s->asked_at + s->interval, now = clock_mono(s->clock);

	timer_start(s->loop, &s->timer, clock_real(s->clock, next > now ? next - now : 0), on_timer);
}

static const char *label_of(const void *of, const char *name)
{
	return prometheus_label(of, name);
}

/* A GPU that lies does not hide the others. */
static bool on_sample(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct device_source *s = user;
	struct exposition_names names = device_names();
	const char *name = sample->series ? prometheus_label(sample->series, "__name__") : NULL;
	struct error refusal;

	(void)e;
	for (size_t i = 0; name && i < names.count; i++)
		if (!strcmp(names.names[i], name) &&
		    !device_list_take(s->next, i, sample->value, label_of, sample->series, &refusal))
			s->refusal = refusal;
	return true;
}

static void on_done(struct prometheus_call *c)
{
	struct device_source *s = c->user;

	s->is_asked = false;
	if (s->is_closed) {
		free_source(s);
		return;
	}
	s->trouble = c->error.kind != ERROR_NONE ? c->error : s->refusal;
	if (c->error.kind == ERROR_NONE) {
		device_list_free(s->list);
		s->list = s->next;
		s->next = NULL;
		s->shown = device_list_show(s->list);
		s->read_at = clock_mono(s->clock);
		if (!s->shown.count)
			error_set(&s->trouble, ERROR_NOT_FOUND,
				  "%s: no series of DCGM_FI_DEV_GPU_UTIL; does it read DCGM "
				  "exporters, and are the labels right?",
				  prometheus_url(s->prometheus));
	}
	wait_for_next(s);
}

void device_source_advance(struct device_source *s)
{
	millis now = clock_mono(s->clock), timeout = clock_real(s->clock, s->interval) / 2;

	if (s->is_asked)
		return;
	if (s->has_begun && now - s->asked_at < s->interval) {
		wait_for_next(s);
		return;
	}
	s->has_begun = s->is_asked = true;
	s->asked_at = now;
	device_list_free(s->next);
	s->next = device_list_new();
	s->refusal = (struct error){ 0 };
	s->call.timeout = timeout > SECOND ? timeout : SECOND;
	prometheus_start(s->prometheus, &s->call);
}

static void write_query(const struct device_source_settings *settings, struct buf *out)
{
	struct exposition_names names = device_names();

	buf_text(out, "{__name__=~\"");
	for (size_t i = 0; i < names.count; i++)
		buf_printf(out, "%s%s", i ? "|" : "", names.names[i]);
	buf_text(out, "\"");
	for (size_t i = 0; i < settings->label_count; i++) {
		buf_printf(out, ",%s=", settings->labels[i].name);
		promql_text(settings->labels[i].value, out);
	}
	buf_text(out, "}");
}

struct device_source *device_source_open(struct loop *loop, struct http *http, const struct clock *clock,
					 const struct device_source_settings *settings)
{
	struct device_source *s = calloc(1, sizeof *s);

	if (!s)
		abort();
	s->loop = loop;
	s->clock = clock;
	s->interval = settings->interval;
	s->prometheus = prometheus_open(loop, http, settings->url, &settings->reach);
	write_query(settings, &s->query);
	s->call = (struct prometheus_call){ .query = s->query.text,
					    .most_samples = (size_t)DEVICES_MOST * device_names().count,
					    .most_bytes = MOST_BYTES,
					    .on_sample = on_sample,
					    .done = on_done,
					    .user = s };
	s->timer.user = s;
	timer_start(loop, &s->timer, 0, on_timer);
	return s;
}

void device_source_close(struct device_source *s)
{
	if (!s)
		return;
	s->is_closed = true;
	timer_stop(&s->timer);
	if (s->is_asked)
		prometheus_cancel(&s->call);
	else
		free_source(s);
}

struct devices device_source_show(const struct device_source *s)
{
	bool is_recent = s->list && clock_mono(s->clock) - s->read_at <= READING_GAP * s->interval;

	return is_recent ? s->shown : (struct devices){ 0 };
}

const struct error *device_source_trouble(const struct device_source *s)
{
	return &s->trouble;
}
