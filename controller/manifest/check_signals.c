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

void check_signals(struct draft *d, const struct signals_text *s)
{
	if (s->scrape.node && s->prometheus.node)
		schema_find_key(d->findings, s->node, "prometheus", "prometheus beside scrape", "one of the two",
				"delete one");
	check_auth(d, &s->prometheus.auth, &s->prometheus.tls);
	check_labels(d, &s->prometheus);
}
