#include "base/json.h"
#include "controller/manifest/draft.h"

#include <string.h>

static void check_auth(struct draft *d, const struct auth_text *a, const struct tls_text *t)
{
	if (a->bearer_token_file && a->basic.node)
		schema_find_key(d->findings, a->node, "basic", "basic beside bearerTokenFile", "one of the two",
				"delete one");
	if (t->node && is_given(t->node, "certFile") != is_given(t->node, "keyFile"))
		schema_find_key(d->findings, t->node, is_given(t->node, "certFile") ? "keyFile" : "certFile", NULL,
				"a path: certFile and keyFile go together", "add it, or delete the other");
}

static bool is_label_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return name[0] && strchr(letters, name[0]) &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")];
}

/* Prometheus knows a pod's labels under other names than Kubernetes. */
static void check_labels(struct draft *d, const struct yaml_node *map, const struct schema_labels *l)
{
	const struct yaml_node *labels = map ? yaml_child(map, "labels") : NULL;

	for (size_t i = 0; i < l->count; i++)
		if (!is_label_name(l->items[i].key))
			schema_find_key(
				d->findings, labels, l->items[i].key, l->items[i].key,
				"a label of Prometheus: letters, digits and _, like job or app_kubernetes_io_name",
				"look at the series in Prometheus; other characters have become _ there");
}

static void check_one_kind(struct draft *d, const struct queue_text *q)
{
	static const char *const kinds[] = { "promql", "endpointPicker", "json" };
	const char *last = NULL;
	int count = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (is_given(q->node, kinds[i])) {
			last = kinds[i];
			count++;
		}
	if (!count)
		schema_find_key(d->findings, q->node, "promql", NULL, "promql, endpointPicker or json",
				"say where the queue's length is told");
	if (count > 1)
		schema_find_key(d->findings, q->node, last, "more than one of promql, endpointPicker and json",
				"one of them", "delete the others; promql can add several queues up");
}

static void check_queue(struct draft *d, const struct signals_text *s)
{
	const struct queue_text *q = &s->queue;
	bool asks_prometheus = is_given(q->node, "promql") ||
			       (is_given(q->node, "endpointPicker") && !is_given(q->picker.node, "url"));

	if (!q->node)
		return;
	check_one_kind(d, q);
	if (asks_prometheus && !is_given(q->node, "url") && !s->prometheus.url)
		schema_find_key(d->findings, q->node, "url", NULL, "the URL of a Prometheus server",
				is_given(q->node, "promql") ? "add it, or signals.prometheus"
							    : "add it, or the picker's own url");
	if (!asks_prometheus && is_given(q->node, "url"))
		schema_find_key(d->findings, q->node, "url", "url beside another one",
				"the url within json or "
				"endpointPicker",
				"delete it");
	struct error e;
	if (q->json.path && !json_number_check(q->json.path, &e))
		schema_find_key(d->findings, q->json.node, "path", NULL,
				"dotted keys, like queues[0].messages or queues[].messages, or a JSON pointer, like "
				"/queues/0/messages",
				e.message);
	check_auth(d, &q->auth, &q->tls);
}

static void check_devices(struct draft *d, const struct signals_text *s)
{
	const struct devices_text *v = &s->devices;

	if (!v->node)
		return;
	if (!is_given(v->node, "url") && !s->prometheus.url)
		schema_find_key(d->findings, v->node, "url", NULL, "the URL of a Prometheus server",
				"add it, or signals.prometheus");
	check_labels(d, v->node, &v->labels);
	check_auth(d, &v->auth, &v->tls);
}

void check_signals(struct draft *d, const struct signals_text *s)
{
	if (s->scrape.node && s->prometheus.node)
		schema_find_key(d->findings, s->node, "prometheus", "prometheus beside scrape", "one of the two",
				"delete one");
	if ((s->engine == SOURCE_CUSTOM) != (s->metrics.node != NULL))
		schema_find_key(d->findings, s->node, "metrics",
				s->metrics.node ? "metrics with an engine that has a table of its own" : NULL,
				s->metrics.node ? "metrics with engine: custom"
						: "a map of the engine's names, with engine custom",
				s->metrics.node ? "delete it, or write engine: custom"
						: "add metrics: { running: NAME, waiting: NAME }, or name the engine");
	if (s->scrape.node && s->scrape.tls.node && s->scrape.scheme != SCHEME_HTTPS)
		schema_find_key(d->findings, s->scrape.node, "tls", "tls with scheme http", "tls with scheme https",
				"write scheme: https, or delete tls");
	check_auth(d, &s->scrape.auth, &s->scrape.tls);
	check_auth(d, &s->prometheus.auth, &s->prometheus.tls);
	check_labels(d, s->prometheus.node, &s->prometheus.labels);
	check_devices(d, s);
	check_queue(d, s);
}
