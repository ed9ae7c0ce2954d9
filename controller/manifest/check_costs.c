#include "controller/manifest/draft.h"

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
