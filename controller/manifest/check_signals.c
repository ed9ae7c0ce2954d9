#include "base/json_number.h"
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
static void check_labels(struct draft *d, const struct prometheus_text *p)
{
	const struct yaml_node *labels = p->node ? yaml_child(p->node, "labels") : NULL;

	for (size_t i = 0; i < p->labels.count; i++)
		if (!is_label_name(p->labels.items[i].key))
			schema_find_key(
				d->findings, labels, p->labels.items[i].key, p->labels.items[i].key,
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

void check_signals(struct draft *d, const struct signals_text *s)
{
	if (s->scrape.node && s->prometheus.node)
		schema_find_key(d->findings, s->node, "prometheus", "prometheus beside scrape", "one of the two",
				"delete one");
	check_auth(d, &s->prometheus.auth, &s->prometheus.tls);
	check_labels(d, &s->prometheus);
	check_queue(d, s);
}
