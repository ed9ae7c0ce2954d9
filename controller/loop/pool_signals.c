#include "controller/loop/pool_signals.h"

#include "controller/loop/controller_state.h"
#include "controller/loop/stock.h"
#include "controller/loop/watch_sync.h"
#include "signals/engine_metrics.h"
#include "signals/external_queue.h"
#include "signals/prometheus_source.h"
#include "signals/recorded_source.h"
#include "signals/scrape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SOURCE_CUSTOM == (int)ENGINE_COUNT, "the manifest and the signals count engines alike");
_Static_assert((int)POD_SLEEP_1 == (int)SLEEP_OFFLOADED && (int)POD_SLEEP_UNTOLD == (int)SLEEP_UNTOLD,
	       "levels of sleep");
_Static_assert((int)METRIC_NAMES == (int)CUSTOM_COUNT, "and the names of a custom one");

/* --- what was read since the last tick --- */

/* A reading as the policy takes it. More than SCRAPES_MAX in one tick: the last two become one. */
static void add_scrape(struct pool_signals *s, const struct scrape_input *scrape)
{
	if (s->scrape_count < SCRAPES_MAX) {
		s->scrapes[s->scrape_count++] = *scrape;
		return;
	}
	struct scrape_input *last = &s->scrapes[SCRAPES_MAX - 1], sum = *scrape;
	if (sum.started != ABSENT && last->started != ABSENT)
		sum.started += last->started;
	sum.late += last->late;
	sum.refused += last->refused;
	sum.completed += last->completed;
	sum.prompt_tokens += last->prompt_tokens;
	sum.output_tokens += last->output_tokens;
	*last = sum;
}

/* What waits in the queue outside of the replicas; ABSENT: not known. `running`: what is worked on, and may be in it.
 */
static int64_t queued(const struct live_pool *p, int64_t running)
{
	const struct queue_text *q = &p->controller->manifest.pools[p->index].spec.signals.queue;
	int64_t waiting = p->signals.queue ? external_queue_waiting(p->signals.queue)
					   : activator_waiting(p->controller, p->index);

	if (waiting == READING_UNKNOWN)
		return ABSENT;
	if (q->counts == QUEUE_COUNTS_WAITING)
		return waiting;
	return waiting > running ? waiting - running : 0;
}

/* A queue of what is unfinished has those in it, too, that wait at the replicas. */
static int64_t with_queue(struct live_pool *p, const struct pool_reading *r)
{
	const struct queue_text *q = &p->controller->manifest.pools[p->index].spec.signals.queue;
	int64_t outside = queued(p, r->running + r->running_draining);

	p->signals.queued = outside;
	if (outside == ABSENT)
		return r->waiting;
	if (q->counts == QUEUE_COUNTS_WAITING)
		return r->waiting + outside;
	return r->waiting > outside ? r->waiting : outside;
}

void pool_signals_queued(struct controller *c, size_t pool)
{
	struct pool_signals *s = &c->pools[pool]->signals;
	int64_t now = queued(c->pools[pool], s->in_flight);

	if (!s->has_heard || now == ABSENT || s->queued == ABSENT)
		return;
	s->waiting += now - s->queued;
	s->queued = now;
	slots_read(c);
}

/* Of a pod among the source's targets. */
static const char *target_key(const struct pod *p, struct arena *a)
{
	char uid[37], text[1024];

	pod_uid_text(p, uid);
	snprintf(text, sizeof text, "%s/%s/%s", p->namespace, p->name, uid);
	return arena_strdup(a, text, strlen(text));
}

enum pod_sleep pool_signals_sleep(const struct controller *c, size_t pool, const struct pod *p, struct arena *a)
{
	return (enum pod_sleep)source_sleep(c->pools[pool]->signals.source, target_key(p, a));
}

/* Readiness does not tell who sleeps: the engines themselves do. */
static void note_sleepers(struct live_pool *p)
{
	struct controller *c = p->controller;
	struct source *source = p->signals.source;
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_pods(c->cluster, (int)p->index, &a, &count);

	for (size_t i = 0; source && i < count; i++)
		if (pods[i]->state == POD_READY && !pods[i]->is_placeholder)
			cluster_engine_told(c->cluster, pods[i], pool_signals_sleep(c, p->index, pods[i], &a),
					    clock_now(c->clock));
}

void pool_signals_reading(void *pool, const struct pool_reading *r)
{
	struct live_pool *p = pool;
	struct scrape_input in = { .at = r->at,
				   .ready = r->ready,
				   .running = r->running,
				   .running_draining = r->running_draining,
				   .waiting = with_queue(p, r),
				   .full = r->full,
				   .running_full = r->running_full,
				   .started = r->started,
				   .late = r->late == READING_UNKNOWN ? 0 : r->late,
				   .refused = r->refused,
				   .completed = r->completed,
				   .prompt_tokens = r->prompt_tokens,
				   .output_tokens = r->output_tokens };

	p->signals.expected += r->expected;
	p->signals.fresh += r->fresh;
	p->signals.disputed += r->disputed;
	p->signals.last_expected = r->expected;
	p->signals.last_fresh = r->fresh;
	p->signals.last_disputed = r->disputed;
	p->signals.has_heard = true;
	note_sleepers(p);
	if (r->expected > 0 && r->fresh == 0)
		return; /* nothing is known */
	p->signals.in_flight = in.running + in.running_draining;
	p->signals.waiting = in.waiting;
	p->signals.started_ever += r->started == READING_UNKNOWN ? 0 : r->started;
	slots_read(p->controller);
	server_stats_note(&p->signals.server, r);
	if (p->signals.queued > 0 && !r->full) /* it waits before all of them instead */
		in.full = in.running_full = ABSENT;
	add_scrape(&p->signals, &in);
	if (r->inter_token_latency_us != READING_UNKNOWN) {
		p->signals.itl_sum += r->inter_token_latency_us;
		p->signals.itl_count++;
	}
	if (r->kv_cache_permille != READING_UNKNOWN) {
		p->signals.kv_sum += r->kv_cache_permille;
		p->signals.kv_count++;
	}
}

/* Pools whose pods are the work: every place on a usable node is a replica with one slot. What fits a node that is
 * there has its place, and runs as soon as the scheduler says so. A pending pod may be there for what still stands in
 * the queue: the larger of the two waits. */
void pool_signals_of_work(struct live_pool *p, const struct group_input *groups, size_t count)
{
	struct scrape_input s = { .at = clock_now(p->controller->clock),
				  .running = p->view.ready + p->view.starting + p->view.placed,
				  .running_draining = p->view.draining,
				  .waiting = p->view.pending - p->view.placed,
				  .full = ABSENT,
				  .running_full = ABSENT,
				  .started = ABSENT,
				  .completed = p->finished };

	for (size_t i = 0; i < count; i++)
		s.ready += groups[i].ready;
	p->signals.queued = queued(p, s.running + s.running_draining);
	if (p->signals.queued > s.waiting)
		s.waiting = p->signals.queued;
	p->signals.scrape_count = 0;
	p->signals.expected = 1;
	p->signals.fresh = cluster_is_fresh(p->controller); /* the API server tells */
	add_scrape(&p->signals, &s);
}

void pool_signals_taken(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		struct pool_signals *s = &c->pools[i]->signals;
		s->scrape_count = 0;
		s->expected = s->fresh = s->disputed = s->itl_sum = s->itl_count = s->kv_sum = s->kv_count = 0;
		c->pools[i]->finished = 0;
	}
}

void pool_signals_passed_over(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		struct pool_signals *s = &c->pools[i]->signals;
		s->expected = s->fresh = s->disputed = 0;
	}
}

void pool_signals_aged(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		struct pool_signals *s = &c->pools[i]->signals;
		s->expected = s->last_expected;
		s->fresh = s->last_fresh = 0;
	}
}

/* --- sources --- */

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
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct prometheus_source_settings s = { .source = *settings,
						      .url = t->url,
						      .reach = reach_of(&t->auth, &t->tls),
						      .labels = labels_of(&t->labels, &a),
						      .label_count = t->labels.count };
	struct source *source = prometheus_source_open(c->loop, c->settings.http, c->clock, &s);
	return source;
}

static void recording_over(void *user)
{
	struct controller *c = user;

	if (++c->recording.over == c->settings.recorded->count)
		c->settings.on_recording_over(c->settings.user);
}

/* One of a manifest that came later goes on where the recording is. */
static struct source *open_recorded(struct controller *c, size_t pool, const struct source_settings *settings)
{
	const struct recorded_signals *all = c->settings.recorded;
	struct recorded_source_settings s = { .source = *settings, .begun = all->begun };

	if (!c->recording.since)
		c->recording.since = clock_mono(c->clock) + 1; /* 0 says never */
	s.begun += clock_mono(c->clock) + 1 - c->recording.since;
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->pools[i].key, c->pools[pool]->key)) {
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

	if (s->engine == SOURCE_SHARE)
		return stock_source_open(c, pool, settings);
	if (c->settings.recorded)
		return open_recorded(c, pool, settings);
	if (s->prometheus.url)
		return open_prometheus(c, &s->prometheus, settings);
	return scrape_source_open(c->loop, c->settings.http, c->clock,
				  &(struct scrape_source_settings){
					  .source = *settings, .reach = reach_of(&s->scrape.auth, &s->scrape.tls) });
}

millis pool_signals_interval(const struct controller *c, size_t pool)
{
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;

	return s->prometheus.url ? s->prometheus.interval : s->scrape.interval;
}

static struct source *source_of(struct controller *c, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct engine_metrics custom;
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;
	struct source_settings settings = { .pool = fleet_of(c)->pools[pool].name,
					    .engine = (enum engine)s->engine,
					    .interval = pool_signals_interval(c, pool),
					    .objective_us = fleet_of(c)->pools[pool].objective_wait * 1000,
					    .on_reading = pool_signals_reading,
					    .user = c->pools[pool] };

	if (runs_work(c, pool))
		return NULL;
	if (s->engine == SOURCE_CUSTOM) {
		custom = custom_metrics(s->metrics.names, &a);
		settings.custom = &custom;
	}
	struct source *source = open_source(c, pool, &settings);
	return source;
}

static struct external_queue *queue_of(struct controller *c, size_t pool)
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

	if (!q->node || q->activator.service)
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

static void devices_open(struct controller *c, size_t pool)
{
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;
	const struct devices_text *t = &s->devices;
	struct live_pool *p = c->pools[pool];
	CLEANUP(arena_release) struct arena a = { 0 };

	if (!t->node)
		return;
	for (size_t i = 0; i < fleet_of(c)->pool_count && !p->signals.devices; i++)
		if (c->pools[i] && c->pools[i]->signals.devices && are_alike(s, &c->manifest.pools[i].spec.signals))
			p->signals.devices = c->pools[i]->signals.devices;
	if (p->signals.devices)
		return;
	const struct device_source_settings settings = {
		.url = devices_url(s),
		.reach = reach_of(t->url || t->auth.node ? &t->auth : &s->prometheus.auth,
				  t->url || t->tls.node ? &t->tls : &s->prometheus.tls),
		.labels = labels_of(&t->labels, &a),
		.label_count = t->labels.count,
		.interval = t->interval
	};
	p->signals.devices = device_source_open(c->loop, c->settings.http, c->clock, &settings);
	p->signals.owns_devices = true;
}

void pool_signals_open(struct controller *c, size_t pool)
{
	struct pool_signals *s = &c->pools[pool]->signals;

	s->source = source_of(c, pool);
	s->queue = queue_of(c, pool);
	s->queued = s->queue ? ABSENT : 0;
	devices_open(c, pool);
}

/* NULL when there is none. */
static struct live_pool *sharer_of(const struct controller *c, const struct live_pool *owner)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (c->pools[i] && c->pools[i] != owner && c->pools[i]->signals.devices == owner->signals.devices)
			return c->pools[i];
	return NULL;
}

void pool_signals_close(struct controller *c, struct live_pool *p)
{
	struct live_pool *heir = p->signals.owns_devices ? sharer_of(c, p) : NULL;

	source_close(p->signals.source);
	external_queue_close(p->signals.queue);
	if (heir)
		heir->signals.owns_devices = true;
	else if (p->signals.owns_devices)
		device_source_close(p->signals.devices);
	p->signals = (struct pool_signals){ 0 };
}

/* --- which pods are read --- */

static bool is_selected(const struct selector_text *s, const struct pod *p)
{
	for (size_t i = 0; i < s->match_labels.count; i++) {
		const char *found = pod_label(p, s->match_labels.items[i].key);
		if (!found || strcmp(found, s->match_labels.items[i].value) != 0)
			return false;
	}
	return true;
}

static bool is_read(const struct pod *p)
{
	return (p->state == POD_READY || p->state == POD_TERMINATING || p->state == POD_STARTED) && p->ip[0] &&
	       !p->is_placeholder;
}

static void write_server(const struct scrape_text *s, const struct pod *p, struct buf *out)
{
	bool is_v6 = strchr(p->ip, ':');

	buf_printf(out, "%s://%s%s%s:%lld", s->scheme == SCHEME_HTTPS ? "https" : "http", is_v6 ? "[" : "", p->ip,
		   is_v6 ? "]" : "", (long long)s->port);
}

struct http_auth *pool_signals_server(const struct controller *c, size_t pool, const struct pod *p)
{
	const struct scrape_text *s = &c->manifest.pools[pool].spec.signals.scrape;
	CLEANUP(buf_release) struct buf url = { 0 };
	struct http_auth_settings reach = reach_of(&s->auth, &s->tls);

	write_server(s, p, &url);
	return http_auth_open(url.text, &reach);
}

static struct source_target target_of(const struct controller *c, size_t pool, const struct pod *p, struct arena *a)
{
	const struct scrape_text *s = &c->manifest.pools[pool].spec.signals.scrape;
	bool is_going = p->node && p->node->is_draining;
	CLEANUP(buf_release) struct buf url = { 0 };

	write_server(s, p, &url);
	buf_text(&url, s->path);
	return (struct source_target){
		.key = target_key(p, a),
		.namespace = p->namespace,
		.pod = p->name,
		.address = p->ip,
		.url = arena_strdup(a, url.text, url.len),
		.is_ready = p->state == POD_READY && !is_going && p->engine_label == POD_ENGINE_AWAKE,
		.has_fallen = (p->state == POD_STARTED && p->ready_at) || (p->state == POD_READY && is_going)
	};
}

void pool_signals_targets(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	c->targets_changed = false;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		size_t count, n = 0;
		if (!c->pools[i]->signals.source)
			continue;
		const struct pod **pods = cluster_pods(c->cluster, (int)i, &a, &count);
		struct source_target *targets = arena_array(&a, struct source_target, count);
		for (size_t k = 0; k < count; k++)
			if (is_read(pods[k]) && is_selected(&c->manifest.pools[i].spec.signals.pod_selector, pods[k]))
				targets[n++] = target_of(c, i, pods[k], &a);
		source_set_targets(c->pools[i]->signals.source, targets, n);
	}
}

bool pool_signals_in_flight(const struct controller *c, size_t pool, const struct pod *p, struct arena *a,
			    int64_t *count, millis *age)
{
	struct source *s = c->pools[pool]->signals.source;

	if (fleet_of(c)->pools[pool].is_stock)
		return p->node && stock_in_flight(c, p->node, a, count, age);
	return s && source_in_flight(s, target_key(p, a), count, age);
}

/* --- what model servers tell for people, and how long stages took --- */

/* Twice and a minute: a probe's period and a cold cache explain less. */
static const int64_t TIMES_APART = 2;

static const millis BEYOND = MINUTE;

enum { MEASURED_LEAST = 3 };

static void note_prefix(struct server_stats *s, const struct pool_reading *r)
{
	int64_t minute = r->at / MINUTE;
	struct prefix_minute *p = &s->prefix[minute % HISTOGRAM_MINUTES];

	if (r->more->prefix_queries == READING_UNKNOWN)
		return;
	if (p->minute != minute)
		*p = (struct prefix_minute){ .minute = minute };
	p->queries += r->more->prefix_queries;
	p->hits += r->more->prefix_hits;
}

void server_stats_note(struct server_stats *s, const struct pool_reading *r)
{
	if (!r->more)
		return;
	histogram_window_add(&s->wait, r->at, &r->more->wait);
	histogram_window_add(&s->first_token, r->at, &r->more->first_token);
	note_prefix(s, r);
	s->more_at = r->at;
	s->prefix_permille = r->more->prefix_permille;
	s->load_ms = r->more->load_ms;
	s->startup_ms = r->more->startup_ms;
}

static struct published_bounds bounds(const struct histogram *s, int percent)
{
	struct published_bounds b = { 0 };

	b.is_told = histogram_quantile(s, percent, &b.lower_us, &b.upper_us);
	return b;
}

static int64_t prefix_permille(const struct server_stats *s, millis now)
{
	int64_t queries = 0, hits = 0;

	for (int i = 0; i < HISTOGRAM_MINUTES; i++)
		if (now / MINUTE - s->prefix[i].minute < HISTOGRAM_MINUTES) {
			queries += s->prefix[i].queries;
			hits += s->prefix[i].hits;
		}
	if (!queries || hits > queries)
		return s->prefix_permille;
	return (int64_t)(((__int128)hits * 1000 + queries / 2) / queries);
}

static int by_size(const void *a, const void *b)
{
	millis left = *(const millis *)a, right = *(const millis *)b;

	return (left > right) - (left < right);
}

void stage_times_add(struct stage_times *t, millis duration)
{
	t->last[t->count++ % STAGE_TIMES_KEPT] = duration;
}

struct published_stage stage_times_show(const struct stage_times *t)
{
	int64_t n = t->count < STAGE_TIMES_KEPT ? t->count : STAGE_TIMES_KEPT;
	millis sorted[STAGE_TIMES_KEPT];

	if (!n)
		return (struct published_stage){ 0 };
	memcpy(sorted, t->last, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, by_size);
	return (struct published_stage){ .p50 = sorted[(n * 50 + 99) / 100 - 1],
					 .p95 = sorted[(n * 95 + 99) / 100 - 1],
					 .samples = t->count };
}

void stage_times_note(struct stage_times stages[STAGE_COUNT], const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->event_count; i++) {
		const struct event_input *e = &s->events[i];
		for (int64_t k = 0; e->what == EVENT_STAGE && k < e->count && k < STAGE_TIMES_KEPT; k++)
			stage_times_add(&stages[e->stage], e->value);
	}
}

static bool is_far_beyond(millis more, millis less)
{
	return more > TIMES_APART * less + BEYOND;
}

/* Loading the weights is a part of a start: it can be too long for it, never too short. */
const char *server_stats_load_differs(const struct server_stats *s, const struct stage_times *measured, struct arena *a)
{
	struct published_stage stage = stage_times_show(measured);
	bool has_startup = s->startup_ms != READING_UNKNOWN;
	int64_t told = has_startup ? s->startup_ms : s->load_ms;
	char text[400];

	if (!s->more_at || told == READING_UNKNOWN || stage.samples < MEASURED_LEAST)
		return NULL;
	if (is_far_beyond(told, stage.p50))
		snprintf(text, sizeof text,
			 "the servers tell that they need %lld s to start, but pods became ready after %lld s: is the "
			 "readiness "
			 "probe right, so that no request comes before the model is loaded?",
			 (long long)(told / SECOND), (long long)(stage.p50 / SECOND));
	else if (has_startup && is_far_beyond(stage.p50, told))
		snprintf(text, sizeof text,
			 "the servers tell that they need %lld s to start, but pods became ready after %lld s: what "
			 "else does the "
			 "pod wait for (init containers, a sidecar, the period of its probe)?",
			 (long long)(told / SECOND), (long long)(stage.p50 / SECOND));
	else
		return NULL;
	return arena_strdup(a, text, strlen(text));
}

static int64_t or_absent(int64_t value)
{
	return value == READING_UNKNOWN ? ABSENT : value;
}

void server_stats_publish(const struct server_stats *s, millis now, struct published_serving *out)
{
	static const int percents[] = { 50, 99 };
	struct histogram wait = histogram_window_sum(&s->wait, now);
	struct histogram first_token = histogram_window_sum(&s->first_token, now);

	*out = (struct published_serving){ .prefix_permille = ABSENT, .load_ms = ABSENT, .startup_ms = ABSENT };
	if (!s->more_at || now - s->more_at > HISTOGRAM_MINUTES * MINUTE)
		return;
	for (int i = 0; i < 2; i++) {
		out->wait[i] = bounds(&wait, percents[i]);
		out->first_token[i] = bounds(&first_token, percents[i]);
	}
	out->prefix_permille = or_absent(prefix_permille(s, now));
	out->load_ms = or_absent(s->load_ms);
	out->startup_ms = or_absent(s->startup_ms);
}

/* --- what the GPUs tell --- */

/* Whose nodes and pods they are, by name. */
struct names {
	const char **nodes;
	size_t node_count;
	const struct pod **pods;
	size_t pod_count;
	const char *namespace;
};

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int by_pod(const void *left, const void *right)
{
	const struct pod *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

static int name_of_pod(const void *name, const void *pod)
{
	const struct pod *const *p = pod;

	return strcmp(name, (*p)->name);
}

static bool is_pools_node(void *user, const char *node)
{
	const struct names *n = user;

	return n->node_count && bsearch(&node, n->nodes, n->node_count, sizeof *n->nodes, by_text);
}

static bool is_replica(void *user, const char *namespace, const char *pod)
{
	const struct names *n = user;

	return !strcmp(namespace, n->namespace) && n->pod_count &&
	       bsearch(pod, n->pods, n->pod_count, sizeof(const struct pod *), name_of_pod);
}

static struct names names_of(const struct controller *c, size_t pool, struct arena *a)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	struct names n = { .namespace = spec->namespace };
	size_t count, room = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		cluster_nodes(c->cluster, (int)spec->groups[i], a, &count);
		room += count;
	}
	n.nodes = arena_array(a, const char *, room);
	for (size_t i = 0; i < spec->group_count; i++) {
		const struct node **nodes = cluster_nodes(c->cluster, (int)spec->groups[i], a, &count);
		for (size_t k = 0; k < count && n.node_count < room; k++)
			n.nodes[n.node_count++] = nodes[k]->name;
	}
	n.pods = cluster_pods(c->cluster, (int)pool, a, &n.pod_count);
	if (n.node_count)
		qsort(n.nodes, n.node_count, sizeof *n.nodes, by_text);
	if (n.pod_count)
		qsort(n.pods, n.pod_count, sizeof(const struct pod *), by_pod);
	return n;
}

static int64_t told(int64_t value)
{
	return value == DEVICE_UNKNOWN ? ABSENT : value;
}

void pool_signals_devices(const struct controller *c, size_t pool, struct published_devices *out, struct arena *a)
{
	struct device_source *source = c->pools[pool]->signals.devices;
	struct names names;

	*out = (struct published_devices){ 0 };
	if (!source || !device_source_show(source).count)
		return;
	names = names_of(c, pool, a);
	const struct device_question q = { is_pools_node, is_replica, &names,
					   fleet_of(c)->pools[pool].gpus_per_replica };
	struct device_sums s = device_sum(device_source_show(source), &q);
	*out = (struct published_devices){ .count = s.devices,
					   .held = s.held,
					   .failing = s.failing,
					   .last_xid = s.last_xid,
					   .use_permille = told(s.use_permille),
					   .memory_used_mib = s.memory_used_mib,
					   .memory_free_mib = s.memory_free_mib,
					   .power_mw = s.power_mw,
					   .stranded_permille = told(s.stranded_permille) };
}
