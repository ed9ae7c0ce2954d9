#include "controller/manifest/reference.h"

#include "base/schema_describe.h"
#include "controller/manifest/warm_pool.h"

static const char head[] =
	"# The WarmPool manifest\n"
	"\n"
	"Written by `preheat check --print-reference` from the table that reads manifests\n"
	"(controller/manifest/warm_pool.c): change the table, not this page.\n"
	"\n"
	"One text everywhere: a file given to `simulate`, a mounted ConfigMap, a custom resource. A file may hold\n"
	"several documents, a folder several files. `preheat check FILE...` reports everything that is wrong at\n"
	"once; `preheat check --print-schema` prints the JSON Schema (docs/manifest.schema.json) for editors.\n"
	"\n"
	"Only a name, an objective (or a violation cost) and one node group are required:\n"
	"\n"
	"```yaml\n"
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat }\n"
	"spec:\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  nodeGroups: [ { name: g5 } ]\n"
	"```\n"
	"\n"
	"## How values are written\n"
	"\n"
	"- durations: `250ms`, `2s`, `1h30m`, `7d`; a unit always, units us, ms, s, m, h, d, w, largest first\n"
	"- shares: `99%`, `99.9%`; always with the sign\n"
	"- quantities: `3500`, `25k`, `1.5M`, `2Ki`\n"
	"- dollars: plain numbers, `0.48`\n"
	"- weekdays: `mon-fri`, `sat,sun`; times of day: `\"08:00\"`; zones by their IANA names, summer time "
	"followed.\n"
	"  A time that the clocks skip counts from before the jump; of a time that comes twice the first one counts\n"
	"- texts that YAML would read as something else (`on`, `1.30`) in quotes\n"
	"\n"
	"Unknown keys, repeated keys, anchors, aliases and tags are mistakes. At most 1 MiB, 50,000 values,\n"
	"1,000 documents and 500 pools in all files of one call.\n"
	"\n"
	"## Contradictions\n"
	"\n"
	"These are mistakes too: a min above its max, a p50 above its p95, attainment beside violationCost, total\n"
	"lead time beside stages, scrape beside prometheus, headroom or standby above what the node groups can hold,\n"
	"replicas with more GPUs than a node, standby of a group without a price, prices for some groups of a pool\n"
	"only, a budget below what min costs, shared budgets of different amounts, a pool that lends to its own\n"
	"class, two pools of one name, tokensPerSecond far above maxSequences / interTokenLatency, and a node group\n"
	"that two pools describe differently; warm: replicas or placeholders without a scaleTargetRef; with engine\n"
	"pods: a source to read, or maxSequences other than 1.\n"
	"\n"
	"## The document\n"
	"\n";

void manifest_write_reference(struct buf *out)
{
	buf_text(out, head);
	schema_write_markdown(&warm_pool_table, "", out);
}

void manifest_write_json_schema(struct buf *out)
{
	schema_write_json(&warm_pool_table, "https://preheat.dev/v1alpha1/warmpool.schema.json", "WarmPool", out);
}
