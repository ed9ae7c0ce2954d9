#include "controller/loop/parts.h"
#include "signals/engine_metrics.h"
#include "signals/external_queue.h"
#include "signals/prometheus_source.h"
#include "signals/recorded_source.h"
#include "signals/scrape.h"

#include <string.h>

_Static_assert((int)SOURCE_VLLM == (int)ENGINE_VLLM && (int)SOURCE_DYNAMO == (int)ENGINE_DYNAMO,
	       "the manifest and the signals count engines alike");
_Static_assert((int)METRIC_NAMES == (int)CUSTOM_COUNT, "and the names of a custom one");

static struct http_auth_settings reach_of(const struct auth_text *auth, const struct tls_text *tls)
{
	return (struct http_auth_settings){ .bearer_token_file = auth->bearer_token_file,
					.username = auth->basic.username,
					.password_file = auth->basic.password_file,
					.ca_file = tls->ca_file,
					.cert_file = tls->cert_file,
					.key_file = tls->key_file,
					.is_insecure = tls->verify == VERIFY_NOTHING,
					.server_name = tls->server_name };
}

static struct promql_label *labels_of(const struct schema_labels *l, struct arena *a)
{
	struct promql_label *labels = arena_array(a, struct promql_label, l->count);

	for (size_t i = 0; i < l->count; i++)
		labels[i] = (struct promql_label){ l->items[i].key, l->items[i].value };
	return labels;
}

static struct source *open_prometheus(struct controller *c, const struct prometheus_text *t,
				      const struct source_settings *settings)
{
	struct arena a = { 0 };
	const struct prometheus_source_settings s = { .source = *settings,
						      .url = t->url,
						      .reach = reach_of(&t->auth, &t->tls),
						      .labels = labels_of(&t->labels, &a),
						      .label_count = t->labels.count };
	struct source *source = prometheus_source_open(c->loop, c->settings.http, c->clock, &s);
	arena_release(&a);
	return source;
}

static void recording_over(void *user)
{
	struct controller *c = user;

	if (++c->recordings_over == c->settings.recorded->count)
		c->settings.on_recording_over(c->settings.user);
}

/* One of a manifest that came later goes on where the recording is. */
static struct source *open_recorded(struct controller *c, size_t pool, const struct source_settings *settings)
{
	const struct recorded_signals *all = c->settings.recorded;
	struct recorded_source_settings s = { .source = *settings, .begun = all->begun };

	if (!c->recording_since)
		c->recording_since = clock_mono(c->clock) + 1; /* 0 says never */
	s.begun += clock_mono(c->clock) + 1 - c->recording_since;
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->pools[i].key, c->pools[pool].key)) {
			s.readings = all->pools[i].readings;
			s.reading_count = all->pools[i].count;
			s.over = recording_over;
			s.over_user = c;
		}
	return recorded_source_open(c->loop, c->clock, &s);
}

static struct source *open_source(struct controller *c, size_t pool, const struct source_settings *settings)
{
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;

	if (c->settings.recorded)
		return open_recorded(c, pool, settings);
	if (s->prometheus.url)
		return open_prometheus(c, &s->prometheus, settings);
	return scrape_source_open(c->loop, c->settings.http, c->clock,
				  &(struct scrape_source_settings){
					  .source = *settings, .reach = reach_of(&s->scrape.auth, &s->scrape.tls) });
}

struct source *source_of_pool(struct controller *c, size_t pool)
{
	struct arena a = { 0 };
	struct engine_metrics custom;
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;
	struct source_settings settings = { .pool = fleet_of(c)->pools[pool].name,
					    .engine = (enum engine)s->engine,
					    .interval = s->prometheus.url ? s->prometheus.interval : s->scrape.interval,
					    .objective_us = fleet_of(c)->pools[pool].objective_wait * 1000,
					    .on_reading = observe_reading,
					    .user = &c->pools[pool] };

	if (runs_work(c, pool))
		return NULL;
	if (s->engine == SOURCE_CUSTOM) {
		custom = custom_metrics(s->metrics.names, &a);
		settings.custom = &custom;
	}
	struct source *source = open_source(c, pool, &settings);
	arena_release(&a);
	return source;
}

struct external_queue *queue_of_pool(struct controller *c, size_t pool)
{
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;
	const struct queue_text *q = &s->queue;
	CLEANUP(buf_release) struct buf picker = { 0 };
	bool is_own = q->url || q->json.url || q->picker.url;
	struct external_queue_settings settings = {
		.url = q->url ? q->url : s->prometheus.url,
		.expression = q->promql,
		.reach = reach_of(is_own || q->auth.node ? &q->auth : &s->prometheus.auth,
				  is_own || q->tls.node ? &q->tls : &s->prometheus.tls),
		.interval = q->interval,
		.deadline = q->deadline,
	};

	if (!q->node)
		return NULL;
	if (q->json.url) {
		settings.kind = EXTERNAL_QUEUE_JSON;
		settings.url = q->json.url;
		settings.expression = q->json.path;
	} else if (q->picker.url) {
		settings.kind = EXTERNAL_QUEUE_PICKER;
		settings.url = q->picker.url;
		settings.expression = q->picker.pool;
	} else if (q->picker.pool) {
		endpoint_picker_query(q->picker.pool, &picker);
		settings.expression = picker.text;
	}
	return external_queue_open(c->loop, c->settings.http, c->clock, &settings);
}

static const char *devices_url(const struct signals_text *s)
{
	return s->devices.url ? s->devices.url : s->prometheus.url;
}

static bool are_alike(const struct signals_text *x, const struct signals_text *y)
{
	const struct schema_labels *a = &x->devices.labels, *b = &y->devices.labels;

	if (strcmp(devices_url(x), devices_url(y)) != 0 || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i].key, b->items[i].key) != 0 || strcmp(a->items[i].value, b->items[i].value) != 0)
			return false;
	return true;
}

void devices_open(struct controller *c, size_t pool)
{
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;
	const struct devices_text *t = &s->devices;
	struct live_pool *p = &c->pools[pool];
	struct arena a = { 0 };

	if (!t->node)
		return;
	for (size_t i = 0; i < pool && !p->devices; i++)
		if (c->pools[i].devices && are_alike(s, &c->manifest.pools[i].spec.signals))
			p->devices = c->pools[i].devices;
	if (p->devices)
		return;
	const struct device_source_settings settings = {
		.url = devices_url(s),
		.reach = reach_of(t->url || t->auth.node ? &t->auth : &s->prometheus.auth,
				  t->url || t->tls.node ? &t->tls : &s->prometheus.tls),
		.labels = labels_of(&t->labels, &a),
		.label_count = t->labels.count,
		.interval = t->interval
	};
	p->devices = device_source_open(c->loop, c->settings.http, c->clock, &settings);
	p->owns_devices = true;
	arena_release(&a);
}
