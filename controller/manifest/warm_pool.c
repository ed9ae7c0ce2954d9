#include "controller/manifest/table.h"
#include "controller/manifest/warm_pool.h"

#include <string.h>

static const char *const api_versions[] = { "preheat.dev/v1alpha1", NULL };
static const char *const kinds[] = { "WarmPool", NULL };
static const char *const classes[] = { "interactive", "batch", "embedding", "experiment", "training", NULL };
static const char *const modes[] = { "act", "observe", "paused", NULL };
static const char *const warmths[] = { "replicas", "placeholders", "buffer", "metric", NULL };

_Static_assert(sizeof classes / sizeof *classes == CLASS_COUNT + 1, "a name per class");

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row metadata_rows[] = {
	{ .key = "name", .type = SCHEMA_NAME, AT(metadata_text, name), .is_required = true,
	  .help = "The pool, everywhere: in traces, history and metrics. Unique among all pools, whatever their "
		  "namespace." },
	{ .key = "namespace", .type = SCHEMA_NAME, AT(metadata_text, namespace), .fallback = "default",
	  .help = "Where the serving pods run." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(metadata_text, labels),
	  .help = "Kept for kubectl; Preheat does not look at them." },
	{ .key = "annotations", .type = SCHEMA_LABELS, AT(metadata_text, annotations),
	  .help = "Kept for kubectl; Preheat does not look at them." },
};
/* As kubectl get -o yaml shows it. */
static const char *const of_the_server[] = { "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
	"ownerReferences", "finalizers", "selfLink", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds",
	NULL };
static const struct schema_table metadata_table = { "metadata", sizeof(struct metadata_text),
	SCHEMA_ROWS(metadata_rows), .passed_over = of_the_server };

static const struct schema_row objective_rows[] = {
	{ .key = "queueWait", .type = SCHEMA_DURATION, AT(objective_text, queue_wait), .fallback = "2s", .min = 1,
	  .max = HOUR, .example = "2s",
	  .help = "A request that waits longer is late. Required beside attainment." },
	{ .key = "attainment", .type = SCHEMA_SHARE, AT(objective_text, attainment_ppm), .fallback = "99%",
	  .shown = "none: required without violationCost", .min = 500000, .max = 999990,
	  .help = "The share of requests that must not be late." },
	{ .key = "violationCost", .type = SCHEMA_DOLLARS, AT(objective_text, violation_cost), .shown = "none",
	  .min = 1, .max = DOLLARS(10000), .example = "0.01",
	  .help = "Instead of attainment: dollars that a late request costs. The pool then minimises machines plus "
		  "late requests." },
};
static const struct schema_table objective_table = { "objective", sizeof(struct objective_text),
	SCHEMA_ROWS(objective_rows) };

static const struct schema_row selector_rows[] = {
	{ .key = "matchLabels", .type = SCHEMA_LABELS, AT(selector_text, match_labels),
	  .help = "Labels of the serving pods." },
};
static const struct schema_table selector_table = { "selector", sizeof(struct selector_text),
	SCHEMA_ROWS(selector_rows) };

static const struct schema_row target_rows[] = {
	{ .key = "apiVersion", .type = SCHEMA_TEXT, AT(target_text, api_version), .fallback = "apps/v1",
	  .help = "Its API." },
	{ .key = "kind", .type = SCHEMA_TEXT, AT(target_text, kind), .fallback = "Deployment",
	  .help = "Anything with a scale subresource." },
	{ .key = "name", .type = SCHEMA_NAME, AT(target_text, name), .is_required = true,
	  .help = "Its name, in the pool's namespace." },
};
static const struct schema_table target_table = { "scaleTargetRef", sizeof(struct target_text),
	SCHEMA_ROWS(target_rows) };

static const struct schema_row workload_rows[] = {
	{ .key = "selector", .type = SCHEMA_MAP, AT(workload_text, selector), .table = &selector_table,
	  .help = "Which pods serve this pool." },
	{ .key = "scaleTargetRef", .type = SCHEMA_MAP, AT(workload_text, target), .table = &target_table,
	  .help = "What runs the serving pods. Left out: nothing is scaled, the number wanted is only published." },
	{ .key = "warm", .type = SCHEMA_CHOICE, AT(workload_text, warm), .fallback = "metric", .choices = warmths,
	  .shown = "replicas with scaleTargetRef, else metric",
	  .help = "How capacity is made warm. replicas: Preheat sets the number of replicas of scaleTargetRef, so that "
		  "headroom is loaded models. placeholders: low-priority pods with the serving image hold GPUs until "
		  "replicas, which another autoscaler sets, push them out. buffer: the same room as a CapacityBuffer, for "
		  "the autoscaler that brings the nodes. metric: the number of replicas wanted is "
		  "published for the HPA or KEDA at work already." },
	{ .key = "gpuResource", .type = SCHEMA_TEXT, AT(workload_text, gpu_resource), .fallback = "nvidia.com/gpu",
	  .max = 317, .example = "nvidia.com/mig-1g.10gb",
	  .help = "What the serving pods ask for, as nodes offer it: nvidia.com/gpu, a slice like "
		  "nvidia.com/mig-1g.10gb, amd.com/gpu. gpusPerReplica and gpusPerNode count these." },
	{ .key = "gpusPerReplica", .type = SCHEMA_INTEGER, AT(workload_text, gpus_per_replica), .fallback = "1",
	  .min = 1, .max = 1024,
	  .help = "GPUs that one serving pod asks for." },
	{ .key = "maxSequences", .type = SCHEMA_QUANTITY, AT(workload_text, max_sequences), .fallback = "105",
	  .shown = "105; 1 with signals.engine pods", .min = 1, .max = 1000000, .example = "105",
	  .help = "Requests that a replica runs at once. A prior: what is measured replaces it." },
	{ .key = "tokensPerSecond", .type = SCHEMA_QUANTITY, AT(workload_text, tokens_per_second),
	  .shown = "maxSequences / interTokenLatency", .min = 1, .max = 1000000000,
	  .help = "Output of a full replica. A prior." },
	{ .key = "prefillTokensPerSecond", .type = SCHEMA_QUANTITY, AT(workload_text, prefill_tokens_per_second),
	  .fallback = "25k", .min = 1, .max = 1000000000,
	  .help = "Prompt tokens that a replica reads in a second. A prior." },
	{ .key = "interTokenLatency", .type = SCHEMA_FINE, AT(workload_text, inter_token_latency_us),
	  .fallback = "30ms", .shown = "maxSequences / tokensPerSecond where that is given, else 30ms", .min = 10,
	  .max = 10000000, .example = "30ms",
	  .help = "Time between output tokens on a full replica. A prior." },
};
static const struct schema_table workload_table = { "workload", sizeof(struct workload_text),
	SCHEMA_ROWS(workload_rows) };

static const struct schema_row lead_time_rows[] = {
	{ .key = "total", .type = SCHEMA_MAP, AT(lead_time_text, total), .shown = "p50 380s, p95 650s",
	  .table = &quantiles_table,
	  .help = "From asking for a machine to serving. A prior: measured starts replace it." },
	{ .key = "provision", .type = SCHEMA_MAP, AT(lead_time_text, stage[STAGE_PROVISION]),
	  .table = &quantiles_table,
	  .help = "Instead of total, by stage: until the machine runs." },
	{ .key = "register", .type = SCHEMA_MAP, AT(lead_time_text, stage[STAGE_REGISTER]), .table = &quantiles_table,
	  .help = "Until it is a node of the cluster." },
	{ .key = "device", .type = SCHEMA_MAP, AT(lead_time_text, stage[STAGE_DEVICE]), .table = &quantiles_table,
	  .help = "Until its GPUs are allocatable." },
	{ .key = "image", .type = SCHEMA_MAP, AT(lead_time_text, stage[STAGE_IMAGE]), .table = &quantiles_table,
	  .help = "Until the image is pulled." },
	{ .key = "load", .type = SCHEMA_MAP, AT(lead_time_text, stage[STAGE_LOAD]), .table = &quantiles_table,
	  .help = "Until the model is loaded and serves." },
};
static const struct schema_table lead_time_table = { "leadTime", sizeof(struct lead_time_text),
	SCHEMA_ROWS(lead_time_rows) };

static const struct schema_row window_rows[] = {
	{ .key = "days", .type = SCHEMA_DAYS, AT(window_text, days), .fallback = "mon-sun",
	  .help = "Days on which the window opens." },
	{ .key = "from", .type = SCHEMA_TIME, AT(window_text, from), .fallback = "00:00",
	  .shown = "none: required without cron",
	  .help = "When it opens, on the wall clock of timeZone." },
	{ .key = "to", .type = SCHEMA_TIME, AT(window_text, to), .fallback = "24:00",
	  .shown = "none: required without cron",
	  .help = "When it closes; not after from means the next day." },
	{ .key = "cron", .type = SCHEMA_CRON, AT(window_text, cron), .shown = "none",
	  .help = "Instead of days, from and to: when it opens." },
	{ .key = "for", .type = SCHEMA_DURATION, AT(window_text, duration), .shown = "none: required with cron",
	  .min = MINUTE, .max = DAY, .example = "11h",
	  .help = "With cron: how long it stays open, in whole minutes." },
	{ .key = "timeZone", .type = SCHEMA_ZONE, AT(window_text, time_zone), .fallback = "UTC",
	  .help = "IANA zone; summer time is followed." },
	{ .key = "min", .type = SCHEMA_INTEGER, AT(window_text, min), .is_required = true, .min = 1, .max = 100000,
	  .help = "Hot replicas kept beyond present demand while the window is open, as headroom.min. The "
		  "largest of headroom.min and the open windows counts." },
};
static const struct schema_table window_table = { "schedule window", sizeof(struct window_text),
	SCHEMA_ROWS(window_rows) };

static const struct schema_row headroom_rows[] = {
	{ .key = "min", .type = SCHEMA_INTEGER, AT(headroom_text, min), .fallback = "0", .max = 100000,
	  .help = "Hot replicas kept beyond present demand, at least. Not the size of the pool: demand is added." },
	{ .key = "max", .type = SCHEMA_INTEGER, AT(headroom_text, max), .fallback = "none", .min = 1, .max = 100000,
	  .word = "none",
	  .help = "Hot replicas kept beyond present demand, at most." },
	{ .key = "schedule", .type = SCHEMA_LIST, AT(headroom_text, schedule), .max = 50, .table = &window_table,
	  .help = "Another min by the clock, also beyond present demand." },
};
static const struct schema_table headroom_table = { "headroom", sizeof(struct headroom_text),
	SCHEMA_ROWS(headroom_rows) };

static const struct schema_row scale_down_rows[] = {
	{ .key = "after", .type = SCHEMA_DURATION, AT(scale_down_text, after), .fallback = "auto", .min = SECOND,
	  .max = 7 * DAY, .word = "auto", .example = "10m",
	  .help = "How long capacity must be idle before it goes. auto: the rule in force decides." },
};
static const struct schema_table scale_down_table = { "scaleDown", sizeof(struct scale_down_text),
	SCHEMA_ROWS(scale_down_rows) };

static const struct schema_row lend_rows[] = {
	{ .key = "to", .type = SCHEMA_CHOICES, AT(lend_text, to), .shown = "nobody", .choices = classes,
	  .help = "Classes of work that may use idle nodes until they are needed back." },
	{ .key = "yieldWithin", .type = SCHEMA_DURATION, AT(lend_text, yield_within), .fallback = "30s",
	  .min = SECOND, .max = HOUR, .example = "30s",
	  .help = "A borrower gives a node back within this." },
};
static const struct schema_table lend_table = { "lend", sizeof(struct lend_text), SCHEMA_ROWS(lend_rows) };

static const struct schema_row budget_rows[] = {
	{ .key = "dollarsPerHour", .type = SCHEMA_DOLLARS, AT(budget_text, dollars_per_hour), .is_required = true,
	  .min = 10000, .max = DOLLARS(1000000), .example = "200",
	  .help = "Never ask for more than this costs." },
	{ .key = "name", .type = SCHEMA_NAME, AT(budget_text, name), .fallback = "", .shown = "the pool's own",
	  .help = "Pools whose budgets have the same name share one; the amounts must be equal." },
};
static const struct schema_table budget_table = { "budget", sizeof(struct budget_text), SCHEMA_ROWS(budget_rows) };

static const struct schema_row cost_labels_rows[] = {
	{ .key = "costCenter", .type = SCHEMA_TEXT, AT(cost_labels_text, cost_center), .fallback = "cost-center",
	  .max = 317,
	  .help = "Key of the label whose value is the cost center." },
	{ .key = "product", .type = SCHEMA_TEXT, AT(cost_labels_text, product), .fallback = "product", .max = 317,
	  .help = "Key of the label whose value is the product." },
	{ .key = "environment", .type = SCHEMA_TEXT, AT(cost_labels_text, environment), .fallback = "environment",
	  .max = 317,
	  .help = "Key of the label whose value is the environment." },
	{ .key = "workloadType", .type = SCHEMA_TEXT, AT(cost_labels_text, workload_type), .fallback = "workload-type",
	  .max = 317, .example = "example.com/workload-type",
	  .help = "Key of the label whose value is the kind of workload." },
};
static const struct schema_table cost_labels_table = { "costLabels", sizeof(struct cost_labels_text),
	SCHEMA_ROWS(cost_labels_rows) };

static const struct schema_row spec_rows[] = {
	{ .key = "class", .type = SCHEMA_CHOICE, AT(spec_text, class), .fallback = "interactive", .choices = classes,
	  .help = "What kind of work it is; others lend to classes." },
	{ .key = "objective", .type = SCHEMA_MAP, AT(spec_text, objective),
	  .shown = "none: required without violationCost", .table = &objective_table,
	  .help = "The one thing to think about: how long requests may wait, and how many of them longer." },
	{ .key = "violationCost", .type = SCHEMA_DOLLARS, AT(spec_text, violation_cost), .shown = "none", .min = 1,
	  .max = DOLLARS(10000), .example = "0.01",
	  .help = "The same as objective.violationCost." },
	{ .key = "workload", .type = SCHEMA_MAP, AT(spec_text, workload), .table = &workload_table,
	  .help = "The serving pods and what one of them can do." },
	{ .key = "signals", .type = SCHEMA_MAP, AT(spec_text, signals), .table = &signals_table,
	  .help = "Where load is read from." },
	{ .key = "nodeGroups", .type = SCHEMA_LIST, AT(spec_text, groups), .is_required = true, .min = 1, .max = 64,
	  .table = &group_table,
	  .help = "The groups that may serve the pool, preferred ones first." },
	{ .key = "leadTime", .type = SCHEMA_MAP, AT(spec_text, lead_time), .table = &lead_time_table,
	  .help = "How long a new replica takes until it serves, until that is measured." },
	{ .key = "headroom", .type = SCHEMA_MAP, AT(spec_text, headroom), .table = &headroom_table,
	  .help = "Bounds on the hot capacity kept beyond demand." },
	{ .key = "scaleDown", .type = SCHEMA_MAP, AT(spec_text, scale_down), .table = &scale_down_table,
	  .help = "When capacity goes." },
	{ .key = "lend", .type = SCHEMA_MAP, AT(spec_text, lend), .table = &lend_table,
	  .help = "Idle nodes for others." },
	{ .key = "shrinkPriority", .type = SCHEMA_INTEGER, AT(spec_text, shrink_priority), .fallback = "10",
	  .max = 1000000,
	  .help = "Which pool gives nodes back first when a shared budget binds: the largest." },
	{ .key = "budget", .type = SCHEMA_MAP, AT(spec_text, budget), .table = &budget_table,
	  .help = "What the pool may cost." },
	{ .key = "costLabels", .type = SCHEMA_MAP, AT(spec_text, cost_labels), .table = &cost_labels_table,
	  .help = "Labels of pods by which preheat cost divides the bill; of pods of no pool, those that the first "
		  "pool of the node group names." },
	{ .key = "mode", .type = SCHEMA_CHOICE, AT(spec_text, mode), .fallback = "act", .choices = modes,
	  .help = "act; observe: watch, price and report, never change; paused: leave as it is." },
};
static const struct schema_table spec_table = { "spec", sizeof(struct spec_text), SCHEMA_ROWS(spec_rows) };

static const struct schema_row warm_pool_rows[] = {
	{ .key = "apiVersion", .type = SCHEMA_CHOICE, AT(warm_pool, api_version), .is_required = true,
	  .choices = api_versions,
	  .help = "The form of this text." },
	{ .key = "kind", .type = SCHEMA_CHOICE, AT(warm_pool, kind), .is_required = true, .choices = kinds,
	  .help = "The kind of object." },
	{ .key = "metadata", .type = SCHEMA_MAP, AT(warm_pool, metadata), .is_required = true,
	  .table = &metadata_table,
	  .help = "Its name." },
	{ .key = "spec", .type = SCHEMA_MAP, AT(warm_pool, spec), .is_required = true, .table = &spec_table,
	  .help = "What is wanted." },
};
static const char *const of_the_controller[] = { "status", NULL };
const struct schema_table warm_pool_table = { "WarmPool", sizeof(struct warm_pool), SCHEMA_ROWS(warm_pool_rows),
	.passed_over = of_the_controller };
/* clang-format on */
