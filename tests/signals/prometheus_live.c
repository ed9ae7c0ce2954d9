/*
 * Readings by way of a real Prometheus are those of asking the replicas
 * themselves: five modelled servers, read both ways at once, through work, a
 * restart and a failure. Both begin before the work and end after it, so that
 * their sums are exact, whatever the phase of the scrapes.
 *
 * GPUs, kube-state-metrics and our own /metrics are pages in FOLDER: dcgm.prom, kube_state.prom, preheat.prom.
 *
 *   prometheus_live FOLDER   writes FOLDER/prometheus.yml, then FOLDER/port, on which the server is awaited
 */
#include "base/file.h"
#include "base/net/server.h"
#include "signals/external_queue.h"
#include "signals/device.h"
#include "signals/prometheus_range.h"
#include "signals/prometheus_source.h"
#include "signals/scrape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PODS = 5 };
static const millis INTERVAL = SECOND, PATIENCE = 90 * SECOND;

struct pod {
	int64_t running, waiting, done, slow; /* slow: of done, waited longer than a second */
	bool is_broken;
};

struct way {
	const char *name;
	struct source *source;
	struct pool_reading last;
	int64_t readings, started, late, completed, prompt_tokens;
	int64_t quiet; /* readings in a row that told of no work */
};

enum phase { BEFORE, WORK, PAUSE, MORE, AFTER, BROKEN, RANGE, END };

struct test {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct clock clock;
	struct pod pods[PODS];
	struct way scraped, asked;
	enum phase phase;
	millis begun, phase_at, work_at;
	int64_t done, late, steps;
	int64_t range_readings, range_completed;
	struct pool_reading range_last;
	struct device_source *devices;
	struct external_queue *backlog;
	struct timer timer;
	bool failed;
	char folder[200], url[64];
};

static void page(const struct pod *p, struct buf *out)
{
	static const char wait[] = "vllm:request_queue_time_seconds";

	buf_printf(out, "vllm:num_requests_running{engine=\"0\"} %" PRId64 "\n", p->running);
	buf_printf(out, "vllm:num_requests_waiting{engine=\"0\"} %" PRId64 "\n", p->waiting);
	buf_printf(out, "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n");
	for (int i = 0; i < 2; i++)
		buf_printf(out, "vllm:request_success_total{engine=\"0\",finished_reason=\"%s\"} %" PRId64 "\n",
			   i ? "stop" : "length", i ? p->done - p->done / 3 : p->done / 3);
	buf_printf(out, "vllm:prompt_tokens_total{engine=\"0\"} %" PRId64 "\n", p->done * 100);
	buf_printf(out, "vllm:generation_tokens_total{engine=\"0\"} %" PRId64 "\n", p->done * 7);
	buf_printf(out, "vllm:time_to_first_token_seconds_count{engine=\"0\"} %" PRId64 "\n", p->done);
	buf_printf(out, "%s_bucket{le=\"1.0\"} %" PRId64 "\n", wait, p->done - p->slow);
	buf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRId64 "\n%s_count %" PRId64 "\n", wait, p->done, wait, p->done);
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	struct test *t = q->user;
	size_t pod = strtoul(q->path + strlen("/pod/"), NULL, 10) % PODS;

	if (t->pods[pod].is_broken)
		a->status = 503;
	page(&t->pods[pod], &a->body);
}

static void answer_file(const struct server_request *q, struct server_answer *a)
{
	struct test *t = q->user;
	char path[300];
	struct error e;

	snprintf(path, sizeof path, "%s/%s", t->folder, q->path + strlen("/file/"));
	if (!file_read(path, 1 << 20, &a->body, &e))
		a->status = 404;
}

static void on_reading(void *user, const struct pool_reading *r)
{
	struct way *w = user;

	w->last = *r;
	w->readings += r->fresh == PODS;
	w->started += r->started == READING_UNKNOWN ? 0 : r->started;
	w->late += r->late == READING_UNKNOWN ? 0 : r->late;
	w->completed += r->completed;
	w->prompt_tokens += r->prompt_tokens;
	w->quiet = r->completed ? 0 : w->quiet + 1;
}

static void fail(struct test *t, const char *what)
{
	struct source_report r = source_report(t->asked.source);

	printf("FAILED: %s\n  scraped: started %" PRId64 ", completed %" PRId64 ", late %" PRId64 "\n"
	       "  asked:   started %" PRId64 ", completed %" PRId64 ", late %" PRId64 "\n"
	       "  really:  %" PRId64 " and %" PRId64 " late\n  %s\n",
	       what, t->scraped.started, t->scraped.completed, t->scraped.late, t->asked.started, t->asked.completed,
	       t->asked.late, t->done, t->late, r.trouble.message);
	t->failed = true;
	loop_stop(t->loop);
}

static bool is_exact(const struct test *t, const struct way *w)
{
	return w->started == t->done && w->completed == t->done && w->late == t->late &&
	       w->prompt_tokens == t->done * 100;
}

static bool levels_agree(const struct test *t)
{
	const struct pool_reading *a = &t->scraped.last, *b = &t->asked.last;

	return a->running == b->running && a->running_draining == b->running_draining && a->waiting == b->waiting &&
	       a->expected == b->expected && a->fresh == b->fresh && a->kv_cache_permille == b->kv_cache_permille;
}

static void do_work(struct test *t)
{
	for (int i = 0; i < PODS; i++) {
		struct pod *p = &t->pods[i];
		int64_t requests = 1 + (t->steps + i) % 4;
		bool is_slow = t->steps % 10 == i;
		p->running = 3 + (t->steps + i) % 7;
		p->waiting = t->steps % 3;
		p->done += requests;
		p->slow += is_slow;
		t->done += requests;
		t->late += is_slow;
	}
	t->steps++;
}

static void range_reading(void *user, const struct pool_reading *r)
{
	struct test *t = user;

	t->range_readings++;
	t->range_last = *r;
	t->range_completed += r->completed;
}

static void range_done(void *user, const struct prometheus_range_report *report, const struct error *e)
{
	struct test *t = user;
	double share = (double)t->range_completed / (double)t->done;

	if (e->kind != ERROR_NONE || report->partial.kind != ERROR_NONE)
		printf("  %s%s\n", e->message, report->partial.message);
	if (e->kind != ERROR_NONE || report->partial.kind != ERROR_NONE || report->refused || share < .93 ||
	    share > 1.07)
		fail(t, "the range tells something else");
	if (t->range_last.expected != PODS || t->range_last.fresh != PODS - 1)
		fail(t, "the range knows the replica that was ready and not read");
	printf("range: %" PRId64 " readings, %" PRId64 " of %" PRId64 " requests\n", t->range_readings,
	       t->range_completed, t->done);
	loop_stop(t->loop);
}

static const struct promql_label labels[] = { { "namespace", "llm" } };

static void ask_range(struct test *t)
{
	millis now = (millis)time(NULL) * SECOND;
	const struct prometheus_range_settings s = {
		.url = t->url,
		.engine = ENGINE_VLLM,
		.labels = labels,
		.label_count = 1,
		.objective_us = 1000000,
		.from = now - (clock_mono(&t->clock) - t->work_at) / SECOND * SECOND - 5 * SECOND,
		.to = now + SECOND, /* the last step begins after whatever was scraped until now */
		.step = SECOND,
		.interval = SECOND
	};
	const struct prometheus_range_events events = { range_reading, range_done, t };
	CLEANUP(buf_release) struct buf text = { 0 };

	prometheus_range_print(&s, &text);
	printf("%s", text.text);
	prometheus_range_start(t->loop, t->http, &s, &events);
}

static bool is_node(void *user, const char *node)
{
	(void)user;
	return !strcmp(node, "node-a");
}

static bool is_replica(void *user, const char *namespace, const char *pod)
{
	(void)user;
	return !strcmp(namespace, "llm") && !strncmp(pod, "pod-", 4);
}

static void check_devices(struct test *t)
{
	const struct device_question q = { is_node, is_replica, NULL, 1 };
	struct devices d = device_source_show(t->devices);
	struct device_sums s = device_sum(d, &q);

	printf("GPUs: %" PRId64 ", %" PRId64 " held, use %" PRId64 ", stranded %" PRId64 ", XID %" PRId64 " %s\n",
	       s.devices, s.held, s.use_permille, s.stranded_permille, s.last_xid,
	       device_source_trouble(t->devices)->message);
	if (s.devices != 2 || s.held != 1 || s.use_permille != 734 || s.failing != 1 || s.last_xid != 31 ||
	    s.memory_free_mib != 24461 || s.stranded_permille != 1730 * 1000 / 24461 || s.power_mw != 227000)
		fail(t, "the GPUs tell something else");
	printf("queue: %" PRId64 " %s\n", external_queue_waiting(t->backlog),
	       external_queue_trouble(t->backlog)->message);
	if (external_queue_waiting(t->backlog) != 17)
		fail(t, "our own metrics tell another queue");
}

static bool is_quiet(const struct test *t)
{
	return t->scraped.quiet >= 4 && t->asked.quiet >= 4;
}

/* What ends each phase; the next begins at once. */
static bool is_over(struct test *t, millis passed)
{
	switch (t->phase) {
	case BEFORE:
		return t->scraped.readings >= 3 && t->asked.readings >= 3;
	case WORK:
	case MORE:
		return passed > 4 * SECOND;
	case PAUSE:
	case AFTER:
		return is_quiet(t) && passed > 3 * SECOND;
	case BROKEN:
		return t->scraped.last.fresh == PODS - 1 && t->asked.last.fresh == PODS - 1;
	case RANGE:
	case END:
		break;
	}
	return false;
}

static void enter(struct test *t, enum phase phase)
{
	t->phase = phase;
	t->phase_at = clock_mono(&t->clock);
	t->scraped.quiet = t->asked.quiet = 0;
	if (phase == WORK)
		t->work_at = t->phase_at;
	if (phase == MORE)
		t->pods[2].done = t->pods[2].slow = 0; /* its server starts again */
	if (phase == BROKEN) {
		printf("really %" PRId64 " requests, %" PRId64 " late; scraped %" PRId64 ", asked %" PRId64 "\n",
		       t->done, t->late, t->scraped.completed, t->asked.completed);
		if (!is_exact(t, &t->scraped) || !is_exact(t, &t->asked) || !levels_agree(t))
			fail(t, "both ways must tell what was done, no more and no less");
		t->pods[0].is_broken = true;
	}
	if (phase == AFTER)
		check_devices(t);
	if (phase == RANGE) {
		struct source_report r = source_report(t->asked.source);
		printf("broken: %s\n", r.trouble.message);
		if (!levels_agree(t))
			fail(t, "both ways must see the same replica fail");
		ask_range(t);
	}
}

static void on_step(struct timer *timer)
{
	struct test *t = timer->user;
	millis now = clock_mono(&t->clock);

	if (now - t->begun > PATIENCE) {
		fail(t, "it took too long");
		return;
	}
	if (t->phase == WORK || t->phase == MORE)
		do_work(t);
	if (is_over(t, now - t->phase_at))
		enter(t, (enum phase)(t->phase + 1));
	if (!t->failed)
		timer_start(t->loop, &t->timer, 100, on_step);
}

static void open_sources(struct test *t)
{
	struct source_settings s = { .pool = "chat",
				     .engine = ENGINE_VLLM,
				     .interval = INTERVAL,
				     .objective_us = 1000000,
				     .on_reading = on_reading };
	struct source_target targets[PODS];
	char keys[PODS][16], urls[PODS][64];

	for (int i = 0; i < PODS; i++) {
		snprintf(keys[i], sizeof keys[i], "pod-%d", i);
		snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%d/pod/%d", server_port(t->server), i);
		targets[i] = (struct source_target){ .key = keys[i],
						     .namespace = "llm",
						     .pod = keys[i],
						     .address = "10.0.0.1",
						     .url = urls[i],
						     .is_ready = true };
	}
	s.user = &t->scraped;
	t->scraped.source =
		scrape_source_open(t->loop, t->http, &t->clock, &(struct scrape_source_settings){ .source = s });
	s.user = &t->asked;
	t->asked.source = prometheus_source_open(
		t->loop, t->http, &t->clock,
		&(struct prometheus_source_settings){ .source = s, .url = t->url, .labels = labels, .label_count = 1 });
	t->devices = device_source_open(t->loop, t->http, &t->clock,
					&(struct device_source_settings){ .url = t->url, .interval = INTERVAL });
	t->backlog =
		external_queue_open(t->loop, t->http, &t->clock,
				    &(struct external_queue_settings){ .kind = EXTERNAL_QUEUE_PROMQL,
								       .url = t->url,
								       .expression = "max(preheat_pool_queue_requests)",
								       .interval = INTERVAL,
								       .deadline = INTERVAL });
	source_set_targets(t->scraped.source, targets, PODS);
	source_set_targets(t->asked.source, targets, PODS);
}

static bool write_file(const struct test *t, const char *name, const struct buf *text, struct error *e)
{
	char path[300];

	snprintf(path, sizeof path, "%s/%s", t->folder, name);
	return file_write(path, text->text, text->len, e);
}

/* The usual set-up keeps the labels of kube-state-metrics, and puts the exporter's pod before the holder's. */
static const struct {
	const char *name;
	bool keeps_labels;
} pages[] = { { "dcgm", false }, { "kube_state", true }, { "preheat", true } };

/* A port that is free now; the server takes it a moment later. */
static bool choose_port(struct test *t, struct error *e)
{
	CLEANUP(buf_release) struct buf config = { 0 };
	CLEANUP(buf_release) struct buf port = { 0 };
	struct server *free_one = server_open(t->loop, &(struct server_settings){ .listen = "127.0.0.1:0" }, e);

	if (!free_one)
		return false;
	buf_printf(&port, "%d\n", server_port(free_one));
	snprintf(t->url, sizeof t->url, "http://127.0.0.1:%d", server_port(free_one));
	server_close(free_one);
	buf_text(&config, "global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n");
	for (int i = 0; i < PODS; i++)
		buf_printf(&config,
			   "- { job_name: model-%d, metrics_path: /pod/%d, static_configs: [ { targets: "
			   "['127.0.0.1:%d'], labels: { namespace: llm, pod: pod-%d } } ] }\n",
			   i, i, server_port(t->server), i);
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		buf_printf(
			&config,
			"- { job_name: %s, honor_labels: %s, metrics_path: /file/%s.prom, static_configs: [ { targets: "
			"['127.0.0.1:%d'], labels: { namespace: monitoring, pod: %s-x } } ] }\n",
			pages[i].name, pages[i].keeps_labels ? "true" : "false", pages[i].name, server_port(t->server),
			pages[i].name);
	return write_file(t, "prometheus.yml", &config, e) && write_file(t, "port", &port, e);
}

static void close_all(struct test *t)
{
	timer_stop(&t->timer);
	source_close(t->scraped.source);
	source_close(t->asked.source);
	device_source_close(t->devices);
	external_queue_close(t->backlog);
	http_cancel_all(t->http);
	while (http_active(t->http))
		loop_once(t->loop);
	server_close(t->server);
	http_close(t->http);
	loop_close(t->loop);
}

int main(int argc, char **argv)
{
	static struct test t;
	static struct server_route routes[] = { { "GET", "/pod/*", answer, &t },
						{ "GET", "/file/*", answer_file, &t } };
	struct error e = { 0 };

	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(t.folder, sizeof t.folder, "%s", argv[1]);
	t.loop = loop_open();
	t.clock = clock_open();
	t.http = http_open(t.loop, "test", &e);
	t.server = server_open(
		t.loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = routes, .route_count = 2 }, &e);
	if (!t.http || !t.server || !choose_port(&t, &e)) {
		printf("FAILED: %s\n", e.message);
		return 3;
	}
	for (int i = 0; i < PODS; i++)
		t.pods[i] = (struct pod){ .running = 1, .done = 1000 };
	t.begun = clock_mono(&t.clock);
	open_sources(&t);
	enter(&t, BEFORE);
	t.timer.user = &t;
	timer_start(t.loop, &t.timer, 0, on_step);
	loop_run(t.loop);
	close_all(&t);
	return t.failed;
}
