#include "controller/manifest/draft.h"

#include <string.h>

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Begins and ends with one of `ends`; between them also what is in `inner`. */
static bool is_made_of(const char *text, size_t len, const char *ends, const char *inner)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(ends, text[i]) && (i == 0 || i + 1 == len || !strchr(inner, text[i])))
			return false;
	return len > 0;
}

/* As Kubernetes has it: NAME, or DOMAIN/NAME. */
static bool is_label_key(const char *key)
{
	const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;
	size_t domain = slash ? (size_t)(slash - key) : 0, len = strlen(name);

	return (!slash || (domain <= 253 && is_made_of(key, domain, lower, ".-"))) && len <= 63 &&
	       is_made_of(name, len, letters, "-_.");
}

void check_costs(struct draft *d, const struct cost_labels_text *c)
{
	const struct {
		const char *name, *key;
	} labels[] = { { "costCenter", c->cost_center },
		       { "product", c->product },
		       { "environment", c->environment },
		       { "workloadType", c->workload_type } };

	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (!is_label_key(labels[i].key))
			schema_find_key(d->findings, c->node, labels[i].name, NULL,
					"the key of a label, like product or example.com/cost-center",
					"write the key as it stands under metadata.labels of the pods");
}
