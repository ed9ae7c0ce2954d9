#include "controller/manifest/warm_pool.h"

#include <stddef.h>

#define AT(record, member) .offset = offsetof(struct record, member)
#define DOLLARS(n)	   (INT64_C(1000000) * (n))

/* A row reads best on two lines. */
/* clang-format off */
#define ENGINE(id, name, image, slots) name,
#define METRIC(...)
static const char *const engines[] = {
#include "signals/engines/all.def"
	"custom", "pods", "share", NULL
};
#undef ENGINE
#undef METRIC
static const char *const schemes[] = { "http", "https", NULL };
static const char *const verifications[] = { "full", "nothing", NULL };

static const struct schema_row basic_rows[] = {
	{ .key = "username", .type = SCHEMA_TEXT, AT(basic_text, username), .is_required = true, .max = 200,
	  .help = "The user." },
	{ .key = "passwordFile", .type = SCHEMA_PATH, AT(basic_text, password_file), .is_required = true,
	  .help = "File with the password, of a mounted Secret; read for every call." },
};
static const struct schema_table basic_table = { "basic", sizeof(struct basic_text), SCHEMA_ROWS(basic_rows) };

static const struct schema_row auth_rows[] = {
	{ .key = "bearerTokenFile", .type = SCHEMA_PATH, AT(auth_text, bearer_token_file), .shown = "none",
	  .help = "File with a token, of a mounted Secret or service account; read for every call, so that it may be "
		  "rotated." },
	{ .key = "basic", .type = SCHEMA_MAP, AT(auth_text, basic), .shown = "none", .table = &basic_table,
	  .help = "Instead of a token: a user and a password." },
};
static const struct schema_table auth_table = { "auth", sizeof(struct auth_text), SCHEMA_ROWS(auth_rows) };

static const struct schema_row tls_rows[] = {
	{ .key = "caFile", .type = SCHEMA_PATH, AT(tls_text, ca_file), .shown = "the system's authorities",
	  .help = "CA certificates for the server; a change takes effect within a minute." },
	{ .key = "certFile", .type = SCHEMA_PATH, AT(tls_text, cert_file), .shown = "none",
	  .help = "Client certificate; with keyFile." },
	{ .key = "keyFile", .type = SCHEMA_PATH, AT(tls_text, key_file), .shown = "none",
	  .help = "Its key." },
	{ .key = "serverName", .type = SCHEMA_TEXT, AT(tls_text, server_name), .max = 253,
	  .example = "prometheus.monitoring.svc", .shown = "the host of the URL",
	  .help = "The name that the server's certificate must carry." },
	{ .key = "verify", .type = SCHEMA_CHOICE, AT(tls_text, verify), .fallback = "full", .choices = verifications,
	  .help = "nothing: any certificate is accepted, so anybody on the path can read and change the data." },
};
static const struct schema_table tls_table = { "tls", sizeof(struct tls_text), SCHEMA_ROWS(tls_rows) };

static const struct schema_row pod_selector_rows[] = {
	{ .key = "matchLabels", .type = SCHEMA_LABELS, AT(selector_text, match_labels), .is_required = true, .is_selector = true,
	  .help = "Labels that all of these pods have." },
};
static const struct schema_table pod_selector_table = { "podSelector", sizeof(struct selector_text),
	SCHEMA_ROWS(pod_selector_rows) };

static const struct schema_row scrape_rows[] = {
	{ .key = "port", .type = SCHEMA_INTEGER, AT(scrape_text, port), .fallback = "8000", .min = 1, .max = 65535,
	  .help = "Port of the metrics in each serving pod." },
	{ .key = "path", .type = SCHEMA_PATH, AT(scrape_text, path), .fallback = "/metrics",
	  .help = "Path of the metrics." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(scrape_text, interval), .fallback = "5s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "5s",
	  .help = "How often each pod is read." },
	{ .key = "scheme", .type = SCHEMA_CHOICE, AT(scrape_text, scheme), .fallback = "http", .choices = schemes,
	  .help = "https: the pods serve metrics over TLS." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(scrape_text, auth), .shown = "none", .table = &auth_table,
	  .help = "Credentials for the pods. Over http every selected pod can read them." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(scrape_text, tls), .table = &tls_table,
	  .help = "Trust, with scheme https. Pods are reached by address, so their certificate needs serverName." },
};
static const struct schema_table scrape_table = { "scrape", sizeof(struct scrape_text), SCHEMA_ROWS(scrape_rows) };

static const struct schema_row metrics_rows[] = {
	{ .key = "running", .type = SCHEMA_METRIC, AT(metrics_text, names[0]), .is_required = true,
	  .example = "requests{state=\"running\"}",
	  .help = "Gauge: sequences running." },
	{ .key = "waiting", .type = SCHEMA_METRIC, AT(metrics_text, names[1]), .is_required = true,
	  .example = "requests{state=\"waiting\"}",
	  .help = "Gauge: requests that wait for a slot." },
	{ .key = "kvCache", .type = SCHEMA_METRIC, AT(metrics_text, names[2]), .shown = "unset",
	  .help = "Gauge: share of the KV cache in use, 0 to 1; of several series the largest." },
	{ .key = "started", .type = SCHEMA_METRIC, AT(metrics_text, names[3]), .shown = "unset",
	  .help = "Counter: requests that took a slot. Left out: the count of firstToken, or of queueWait." },
	{ .key = "completed", .type = SCHEMA_METRIC, AT(metrics_text, names[4]), .shown = "unset",
	  .help = "Counter: requests finished." },
	{ .key = "promptTokens", .type = SCHEMA_METRIC, AT(metrics_text, names[5]), .shown = "unset",
	  .help = "Counter: prompt tokens." },
	{ .key = "outputTokens", .type = SCHEMA_METRIC, AT(metrics_text, names[6]), .shown = "unset",
	  .help = "Counter: output tokens." },
	{ .key = "queueWait", .type = SCHEMA_METRIC, AT(metrics_text, names[7]), .shown = "unset",
	  .help = "Histogram in seconds, its name without _bucket: how long requests waited. Without it no request counts as late." },
	{ .key = "firstToken", .type = SCHEMA_METRIC, AT(metrics_text, names[8]), .shown = "unset",
	  .help = "Histogram in seconds: time to the first token." },
	{ .key = "interTokenLatency", .type = SCHEMA_METRIC, AT(metrics_text, names[9]), .shown = "unset",
	  .help = "Histogram or summary in seconds, of which _sum and _count are read: time between output tokens." },
	{ .key = "prefixQueries", .type = SCHEMA_METRIC, AT(metrics_text, names[10]), .shown = "unset",
	  .help = "Counter: prompt tokens looked for in the prefix cache." },
	{ .key = "prefixHits", .type = SCHEMA_METRIC, AT(metrics_text, names[11]), .shown = "unset",
	  .help = "Counter: of these found." },
	{ .key = "loadTime", .type = SCHEMA_METRIC, AT(metrics_text, names[12]), .shown = "unset",
	  .help = "Gauge: seconds that loading the weights took." },
	{ .key = "startupTime", .type = SCHEMA_METRIC, AT(metrics_text, names[13]), .shown = "unset",
	  .help = "Gauge: seconds from the start of the server until it could serve." },
	{ .key = "refused", .type = SCHEMA_METRIC, AT(metrics_text, names[METRIC_REFUSED]), .shown = "unset",
	  .help = "Counter: requests turned away because the server is full. They count as arrived and late." },
};
static const struct schema_table metrics_table = { "metrics", sizeof(struct metrics_text), SCHEMA_ROWS(metrics_rows) };

static const struct schema_row prometheus_rows[] = {
	{ .key = "url", .type = SCHEMA_URL, AT(prometheus_text, url), .is_required = true,
	  .help = "A server with Prometheus's HTTP API; /api/v1/query is added." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(prometheus_text, interval), .fallback = "15s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "15s",
	  .help = "How often it is queried. At least its own scrape interval: samples older than three of these are stale." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(prometheus_text, labels),
	  .help = "Labels that select this pool's series. Their labels pod and namespace, else instance, name the replica." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(prometheus_text, auth), .shown = "none", .table = &auth_table,
	  .help = "Credentials for the server." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(prometheus_text, tls), .table = &tls_table,
	  .help = "Trust, for https." },
};
static const struct schema_table prometheus_table = { "prometheus", sizeof(struct prometheus_text),
	SCHEMA_ROWS(prometheus_rows) };

static const char *const queue_counts[] = { "waiting", "unfinished", NULL };

static const struct schema_row picker_rows[] = {
	{ .key = "pool", .type = SCHEMA_NAME, AT(picker_text, pool), .is_required = true,
	  .help = "Name of the InferencePool." },
	{ .key = "url", .type = SCHEMA_URL, AT(picker_text, url), .shown = "none: through Prometheus",
	  .help = "Metrics page of the endpoint picker, like http://chat-epp.llm:9090/metrics. With several pickers leave "
		  "it out: Prometheus reads them all." },
};
static const struct schema_table picker_table = { "endpointPicker", sizeof(struct picker_text),
	SCHEMA_ROWS(picker_rows) };

static const struct schema_row json_rows[] = {
	{ .key = "url", .type = SCHEMA_URL, AT(json_text, url), .is_required = true,
	  .help = "A JSON document with the number in it." },
	{ .key = "path", .type = SCHEMA_TEXT, AT(json_text, path), .is_required = true, .max = 299,
	  .example = "queues[].messages_ready",
	  .help = "Where it stands: dotted keys, [0] for an item, [] to sum over all; or a JSON pointer, /queues/0/ready." },
};
static const struct schema_table json_table = { "json", sizeof(struct json_text), SCHEMA_ROWS(json_rows) };

static const struct schema_row activator_rows[] = {
	{ .key = "service", .type = SCHEMA_NAME, AT(activator_text, service), .is_required = true,
	  .help = "Name of the Service that clients use, in the pool's namespace, with a cluster IP." },
	{ .key = "port", .type = SCHEMA_NAME, AT(activator_text, port), .shown = "its only one",
	  .help = "Name of the Service's port." },
	{ .key = "hold", .type = SCHEMA_DURATION, AT(activator_text, hold), .fallback = "2m", .min = SECOND,
	  .max = 15 * MINUTE, .example = "2m",
	  .help = "How long a request waits at most; then it is answered 503 with Retry-After." },
};
static const struct schema_table activator_table = { "activator", sizeof(struct activator_text),
	SCHEMA_ROWS(activator_rows) };

static const struct schema_row queue_rows[] = {
	{ .key = "promql", .type = SCHEMA_TEXT, AT(queue_text, promql), .shown = "none", .max = 2000,
	  .example = "sum(rabbitmq_queue_messages_ready{queue=\"prompts\"})",
	  .help = "An expression with one series: the number of waiting requests. An empty result is unknown, not zero: add \"or vector(0)\" where it "
		  "should be." },
	{ .key = "endpointPicker", .type = SCHEMA_MAP, AT(queue_text, picker), .shown = "none", .table = &picker_table,
	  .help = "Requests that flow control of the Gateway API inference extension, or of llm-d, holds back." },
	{ .key = "json", .type = SCHEMA_MAP, AT(queue_text, json), .shown = "none", .table = &json_table,
	  .help = "A number in a JSON document." },
	{ .key = "activator", .type = SCHEMA_MAP, AT(queue_text, activator), .shown = "none", .table = &activator_table,
	  .help = "Preheat itself holds HTTP/1.1 requests to a Service while no replica of the pool serves, and passes them on once one does." },
	{ .key = "url", .type = SCHEMA_URL, AT(queue_text, url), .shown = "signals.prometheus.url",
	  .help = "The Prometheus server that promql, or endpointPicker without a url, asks." },
	{ .key = "counts", .type = SCHEMA_CHOICE, AT(queue_text, counts), .fallback = "waiting",
	  .choices = queue_counts,
	  .help = "waiting: requests not yet taken (SQS visible, RabbitMQ ready). unfinished: the number includes work in progress (Kafka lag), which is subtracted." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(queue_text, interval), .fallback = "15s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "15s",
	  .help = "How often it is read. A value older than three of these is unknown, and nothing is scaled down." },
	{ .key = "deadline", .type = SCHEMA_DURATION, AT(queue_text, deadline), .fallback = "5s", .min = 100,
	  .max = MINUTE, .example = "5s",
	  .help = "How long an answer may take." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(queue_text, auth),
	  .shown = "that of signals.prometheus where its url is asked, else none", .table = &auth_table,
	  .help = "Credentials for the server." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(queue_text, tls),
	  .shown = "that of signals.prometheus where its url is asked", .table = &tls_table,
	  .help = "Trust, for https." },
};
static const struct schema_table queue_table = { "queue", sizeof(struct queue_text), SCHEMA_ROWS(queue_rows) };

static const struct schema_row devices_rows[] = {
	{ .key = "url", .type = SCHEMA_URL, AT(devices_text, url), .shown = "signals.prometheus.url",
	  .help = "The Prometheus server that reads the DCGM exporters." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(devices_text, labels),
	  .help = "Labels that select the exporters' series. Pools with the same url and labels share the queries." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(devices_text, interval), .fallback = "30s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "30s",
	  .help = "How often it is asked." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(devices_text, auth),
	  .shown = "that of signals.prometheus where its url is asked, else none", .table = &auth_table,
	  .help = "Credentials for the server." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(devices_text, tls),
	  .shown = "that of signals.prometheus where its url is asked", .table = &tls_table,
	  .help = "Trust, for https." },
};
static const struct schema_table devices_table = { "devices", sizeof(struct devices_text),
	SCHEMA_ROWS(devices_rows) };

static const struct schema_row signals_rows[] = {
	{ .key = "engine", .type = SCHEMA_CHOICE, AT(signals_text, engine), .fallback = "vllm", .choices = engines,
	  .help = "The model server, which fixes the metric names. custom: metrics names them. pods: nothing is scraped; the pods are the work (batch, training): a running pod is a running sequence, a pending one waits. share: the pool is the stock of slots of the share that has its name; a replica is a slot, and what the pools of the share need together is its demand." },
	{ .key = "metrics", .type = SCHEMA_MAP, AT(signals_text, metrics), .shown = "none", .table = &metrics_table,
	  .help = "Names of the metrics, with engine custom: NAME, or NAME{label=\"value\"} for these series alone; the series of a "
		  "pod are added up." },
	{ .key = "podSelector", .type = SCHEMA_MAP, AT(signals_text, pod_selector), .shown = "all", .table = &pod_selector_table,
	  .help = "Which of the workload's pods serve metrics: leaders of replicas of several pods, ranks with an API server. The others are not scraped and not missed." },
	{ .key = "scrape", .type = SCHEMA_MAP, AT(signals_text, scrape), .table = &scrape_table,
	  .help = "Read the serving pods directly. The default." },
	{ .key = "prometheus", .type = SCHEMA_MAP, AT(signals_text, prometheus), .table = &prometheus_table,
	  .help = "Read a Prometheus server instead." },
	{ .key = "queue", .type = SCHEMA_MAP, AT(signals_text, queue), .shown = "none", .table = &queue_table,
	  .help = "Requests that wait outside the pods, also with engine pods. One of promql, endpointPicker and json." },
	{ .key = "devices", .type = SCHEMA_MAP, AT(signals_text, devices), .shown = "none", .table = &devices_table,
	  .help = "Use, memory, power and errors of the pool's GPUs, from DCGM exporters, for metrics and reports; no decision uses them." },
};
const struct schema_table signals_table = { "signals", sizeof(struct signals_text),
	SCHEMA_ROWS(signals_rows) };

static const char *const capacity_types[] = { "on-demand", "spot", "reserved", NULL };
static const char *const providers[] = {
#define PROVIDER(name, key, help) key,
#include "providers/list.def"
#undef PROVIDER
	NULL
};

static const struct schema_row quantiles_rows[] = {
	{ .key = "p50", .type = SCHEMA_DURATION, AT(quantiles_text, p50), .is_required = true, .max = 7 * DAY,
	  .example = "380s",
	  .help = "Half of the starts take no longer." },
	{ .key = "p95", .type = SCHEMA_DURATION, AT(quantiles_text, p95), .is_required = true, .max = 7 * DAY,
	  .example = "650s",
	  .help = "19 of 20 starts take no longer; not below p50." },
};
static const struct schema_table quantiles_table = { "p50 and p95", sizeof(struct quantiles_text),
	SCHEMA_ROWS(quantiles_rows) };

static const struct schema_row standby_rows[] = {
	{ .key = "max", .type = SCHEMA_INTEGER, AT(standby_text, max), .fallback = "0", .max = 100000,
	  .help = "Most stopped machines, within the group's max. 0: no standby." },
	{ .key = "priceShare", .type = SCHEMA_SHARE, AT(standby_text, price_share_ppm), .fallback = "2%", .min = 100,
	  .max = 990000, .example = "2%",
	  .help = "What a stopped machine costs, as a share of pricePerHour: disks mostly." },
	{ .key = "leadTime", .type = SCHEMA_MAP, AT(standby_text, lead_time), .shown = "p50 90s, p95 150s",
	  .table = &quantiles_table,
	  .help = "From waking a stopped machine to serving. A prior." },
	{ .key = "firstLeadTime", .type = SCHEMA_MAP, AT(standby_text, first_lead_time), .shown = "leadTime",
	  .table = &quantiles_table,
	  .help = "The same for a machine that was bought for standby and never ran: its disk has no image. At least leadTime. A prior." },
};
static const struct schema_table standby_table = { "standby", sizeof(struct standby_text),
	SCHEMA_ROWS(standby_rows) };

const char *const taint_effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute", NULL };

static const struct schema_row taint_rows[] = {
	{ .key = "key", .type = SCHEMA_KEY, AT(taint_text, key), .is_required = true,
	  .help = "Its key." },
	{ .key = "value", .type = SCHEMA_VALUE, AT(taint_text, value), .fallback = "", .shown = "none",
	  .help = "Its value. None in startupTaints: any." },
	{ .key = "effect", .type = SCHEMA_CHOICE, AT(taint_text, effect), .is_required = true, .choices = taint_effects,
	  .help = "Its effect." },
};
static const struct schema_table taint_table = { "taint", sizeof(struct taint_text), SCHEMA_ROWS(taint_rows) };

static const struct schema_row group_rows[] = {
	{ .key = "name", .type = SCHEMA_VALUE, AT(group_text, name), .is_required = true,
	  .help = "Name of the group. Pools that name the same group share its machines; its other keys may stand at any of them, and must agree where repeated." },
	{ .key = "provider", .type = SCHEMA_CHOICE, AT(group_text, provider),
	  .shown = "that of the block given, else simulated", .choices = providers,
	  .help = "What resizes it." },
#define PROVIDER(name_, key_, help_) \
	{ .key = key_, .type = SCHEMA_MAP, AT(group_text, blocks[PROVIDER_##name_]), \
	  .table = &provider_block_##name_.table, .help = help_ },
#include "providers/list.def"
#undef PROVIDER
	{ .key = "zone", .type = SCHEMA_VALUE, AT(group_text, zone), .fallback = "", .shown = "unknown",
	  .example = "eu-west-1a",
	  .help = "Availability zone. Starts are spread over zones, back-off is by zone. Of a group in several zones leave it out: pods of other zones would buy nothing before a node was seen." },
	{ .key = "instanceType", .type = SCHEMA_VALUE, AT(group_text, instance_type), .fallback = "",
	  .shown = "unknown", .example = "g5.xlarge",
	  .help = "Machine type, for back-off, reports, and pods that select by it." },
	{ .key = "capacityType", .type = SCHEMA_CHOICE, AT(group_text, capacity_type), .fallback = "on-demand",
	  .choices = capacity_types,
	  .help = "How it is bought." },
	{ .key = "reservedUntil", .type = SCHEMA_MOMENT, AT(group_text, reserved_until),
	  .shown = "the end that the cloud reports, if any", .example = "\"2027-01-31T11:30:00Z\"",
	  .help = "With capacityType reserved: when the reservation and its machines end. What serves there is replaced in other node groups and drained until 50 minutes before; nothing starts there that would not serve for scaleDown.after (10m where that is auto). simulate ignores it." },
	{ .key = "gpusPerNode", .type = SCHEMA_INTEGER, AT(group_text, gpus_per_node), .fallback = "1", .min = 1,
	  .max = 1024,
	  .help = "GPUs of one machine." },
	{ .key = "resources", .type = SCHEMA_LABELS, AT(group_text, resources),
	  .help = "Devices of a new node other than gpusPerNode of nvidia.com/gpu: MIG slices, time-sliced shares, other vendors, like { nvidia.com/mig-1g.10gb: \"7\" }. They count until a node of the group was seen, and must match it. Unwritten: what the cloud tells." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(group_text, labels), .is_selector = true,
	  .help = "Labels of every node of the group, like { nvidia.com/gpu.product: NVIDIA-A10G }, beside those that zone, instanceType, capacityType and the provider's block tell. They count until a node of the group was seen, and go before what the cloud tells: a pod that selects another value buys nothing here. Of a label that nobody tells it is guessed that it fits; with class any, groups where nothing is guessed go first." },
	{ .key = "taints", .type = SCHEMA_LIST, AT(group_text, taints), .max = 16, .table = &taint_table,
	  .help = "Taints that the nodes of the group keep, beside those that the cloud tells. They count until a node of the group was seen." },
	{ .key = "startupTaints", .type = SCHEMA_LIST, AT(group_text, startup_taints), .max = 16, .table = &taint_table,
	  .help = "Taints that a new node has until its start is over: until they are gone it is not ready. Those of Kubernetes, Cluster API, Cluster Autoscaler (startup-taint...), Cilium, Istio, Gardener and CSI drivers (agent-not-ready) are known." },
	{ .key = "pricePerHour", .type = SCHEMA_DOLLARS, AT(group_text, price_per_hour), .fallback = "0",
	  .shown = "no price: GPU hours in place of dollars", .max = DOLLARS(10000),
	  .help = "Dollars for one machine and hour." },
	{ .key = "min", .type = SCHEMA_INTEGER, AT(group_text, min), .fallback = "0", .max = 100000,
	  .help = "Never ask for fewer nodes." },
	{ .key = "max", .type = SCHEMA_INTEGER, AT(group_text, max), .fallback = "10", .max = 100000,
	  .help = "Never ask for more nodes. 0 keeps the group unused." },
	{ .key = "standby", .type = SCHEMA_MAP, AT(group_text, standby), .table = &standby_table,
	  .help = "Stopped machines with the image on disk, woken faster than new ones start." },
};
const struct schema_table group_table = { "node group", sizeof(struct group_text), SCHEMA_ROWS(group_rows) };

static const char *const api_versions[] = { "preheat.dev/v1alpha1", NULL };
static const char *const kinds[] = { "WarmPool", NULL };

static const char *const classes[] = { "interactive", "batch", "embedding", "experiment", "training", "any", NULL };
static const char *const borrowers[] = { "interactive", "batch", "embedding", "experiment", "training", NULL };
static const char *const modes[] = { "act", "observe", "paused", NULL };
static const char *const prefetches[] = { "none", "image", NULL };
static const char *const warmths[] = { "replicas", "placeholders", "buffer", "metric", NULL };

static const struct schema_row metadata_rows[] = {
	{ .key = "name", .type = SCHEMA_NAME, AT(metadata_text, name), .is_required = true,
	  .help = "The pool, everywhere: in traces, history and metrics. Unique among all pools, whatever their "
		  "namespace." },
	{ .key = "namespace", .type = SCHEMA_NAME, AT(metadata_text, namespace), .fallback = "default",
	  .help = "Where the serving pods run." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(metadata_text, labels), .is_selector = true,
	  .help = "Ignored by Preheat." },
	{ .key = "annotations", .type = SCHEMA_LABELS, AT(metadata_text, annotations),
	  .help = "Ignored by Preheat." },
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
	{ .key = "matchLabels", .type = SCHEMA_LABELS, AT(selector_text, match_labels), .is_selector = true,
	  .help = "Labels of the serving pods." },
};
static const struct schema_table selector_table = { "selector", sizeof(struct selector_text),
	SCHEMA_ROWS(selector_rows) };

static const struct schema_row target_rows[] = {
	{ .key = "apiVersion", .type = SCHEMA_API, AT(target_text, api_version), .fallback = "apps/v1",
	  .help = "Its API." },
	{ .key = "kind", .type = SCHEMA_KIND, AT(target_text, kind), .fallback = "Deployment",
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
	  .help = "The workload that runs the serving pods. Without it nothing is scaled; the desired number is only published." },
	{ .key = "warm", .type = SCHEMA_CHOICE, AT(workload_text, warm), .fallback = "metric", .choices = warmths,
	  .shown = "replicas with scaleTargetRef, else metric",
	  .help = "How capacity is kept warm. replicas: Preheat sets the replicas of scaleTargetRef, so headroom is loaded models. placeholders: low-priority pods with the serving image hold GPUs until replicas, set by another autoscaler, preempt them. buffer: the headroom is a CapacityBuffer, for the autoscaler that adds the nodes. metric: the desired replicas are published for an HPA or KEDA." },
	{ .key = "prefetch", .type = SCHEMA_CHOICE, AT(workload_text, prefetch), .fallback = "none", .choices = prefetches,
	  .help = "image: as soon as a new or woken node registers, a pod without a GPU pulls the images of scaleTargetRef there, while drivers and devices still come up. Needs role preheat-prefetch in the pool's namespace." },
	{ .key = "gpuResource", .type = SCHEMA_KEY, AT(workload_text, gpu_resource), .fallback = "nvidia.com/gpu",
	  .example = "nvidia.com/mig-1g.10gb",
	  .help = "The resource that the serving pods request: nvidia.com/gpu, a slice like nvidia.com/mig-1g.10gb, amd.com/gpu. gpusPerReplica and gpusPerNode count it." },
	{ .key = "gpusPerReplica", .type = SCHEMA_INTEGER, AT(workload_text, gpus_per_replica), .fallback = "1",
	  .min = 1, .max = 1024,
	  .help = "GPUs that one serving pod asks for." },
	{ .key = "maxSequences", .type = SCHEMA_QUANTITY, AT(workload_text, max_sequences), .fallback = "105",
	  .shown = "105; 1 with signals.engine pods or share", .min = 1, .max = 1000000, .example = "105",
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
const struct schema_table workload_table = { "workload", sizeof(struct workload_text),
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
	  .help = "Hot replicas beyond current demand while the window is open, as headroom.min. The largest of headroom.min and the open windows counts." },
};
static const struct schema_table window_table = { "schedule window", sizeof(struct window_text),
	SCHEMA_ROWS(window_rows) };

static const struct schema_row headroom_rows[] = {
	{ .key = "min", .type = SCHEMA_INTEGER, AT(headroom_text, min), .fallback = "0", .max = 100000,
	  .help = "Least hot replicas beyond current demand. Not the size of the pool: demand is added." },
	{ .key = "max", .type = SCHEMA_INTEGER, AT(headroom_text, max), .fallback = "none", .min = 1, .max = 100000,
	  .word = "none",
	  .help = "Most hot replicas beyond current demand." },
	{ .key = "schedule", .type = SCHEMA_LIST, AT(headroom_text, schedule), .max = 50, .table = &window_table,
	  .help = "Another min by the clock, also beyond current demand." },
};
static const struct schema_table headroom_table = { "headroom", sizeof(struct headroom_text),
	SCHEMA_ROWS(headroom_rows) };

static const struct schema_row scale_down_rows[] = {
	{ .key = "after", .type = SCHEMA_DURATION, AT(scale_down_text, after), .fallback = "auto", .min = SECOND,
	  .max = 7 * DAY, .word = "auto", .example = "10m",
	  .help = "How long capacity must be idle before it goes. auto: the rule in force decides; 10m with class any." },
	{ .key = "utilization", .type = SCHEMA_SHARE, AT(scale_down_text, utilization_ppm), .fallback = "50%",
	  .max = 1000000, .example = "50%",
	  .help = "With class any: a node with at most this share of its GPUs requested is emptied, if its pods have had a place elsewhere for as long as after says. 0%: pods never move." },
};
static const struct schema_table scale_down_table = { "scaleDown", sizeof(struct scale_down_text),
	SCHEMA_ROWS(scale_down_rows) };

static const struct schema_row lend_rows[] = {
	{ .key = "to", .type = SCHEMA_CHOICES, AT(lend_text, to), .shown = "nobody", .choices = borrowers,
	  .help = "Classes of work that may use idle nodes until they are needed back." },
	{ .key = "yieldWithin", .type = SCHEMA_DURATION, AT(lend_text, yield_within), .fallback = "30s",
	  .min = SECOND, .max = HOUR, .example = "30s",
	  .help = "A borrower gives a node back within this." },
};
static const struct schema_table lend_table = { "lend", sizeof(struct lend_text), SCHEMA_ROWS(lend_rows) };

static const struct schema_row budget_rows[] = {
	{ .key = "dollarsPerHour", .type = SCHEMA_DOLLARS, AT(budget_text, dollars_per_hour), .is_required = true,
	  .min = 10000, .max = DOLLARS(1000000), .example = "200",
	  .help = "Most that the pool may cost an hour." },
	{ .key = "name", .type = SCHEMA_NAME, AT(budget_text, name), .fallback = "", .shown = "the pool's own",
	  .help = "Pools whose budgets have the same name share one; the amounts must be equal." },
};
static const struct schema_table budget_table = { "budget", sizeof(struct budget_text), SCHEMA_ROWS(budget_rows) };

static const struct schema_row share_rows[] = {
	{ .key = "name", .type = SCHEMA_NAME, AT(share_text, name), .is_required = true,
	  .help = "Pools of one namespace with the same name share their GPUs: their engines stand on the same nodes, and "
		  "sleep or wake as requests come." },
	{ .key = "level", .type = SCHEMA_INTEGER, AT(share_text, level), .fallback = "1", .min = 1, .max = 2,
	  .help = "How deep an engine sleeps. 1: its weights move to host memory; 2: they are dropped, and loaded again." },
	{ .key = "engineMemoryGiB", .type = SCHEMA_INTEGER, AT(share_text, engine_gib), .fallback = "0",
	  .shown = "0: all of it", .max = 100000, .example = "20",
	  .help = "GPU memory of an engine that is awake. Where all pools of the share say it, as many are awake beside "
		  "each other as fit; else one." },
	{ .key = "sleepingMemoryGiB", .type = SCHEMA_INTEGER, AT(share_text, asleep_gib), .fallback = "2", .max = 100000,
	  .help = "GPU memory that stays with an engine that sleeps." },
	{ .key = "wakeWithin", .type = SCHEMA_DURATION, AT(share_text, wake_within), .fallback = "2m", .min = SECOND,
	  .max = HOUR, .example = "2m",
	  .help = "A sleep or a wake that takes longer has failed: its pod is evicted, and another engine takes over." },
};
static const struct schema_table share_table = { "share", sizeof(struct share_text), SCHEMA_ROWS(share_rows) };

static const struct schema_row cost_labels_rows[] = {
	{ .key = "costCenter", .type = SCHEMA_KEY, AT(cost_labels_text, cost_center), .fallback = "cost-center",
	  .help = "Key of the label whose value is the cost center." },
	{ .key = "product", .type = SCHEMA_KEY, AT(cost_labels_text, product), .fallback = "product",
	  .help = "Key of the label whose value is the product." },
	{ .key = "environment", .type = SCHEMA_KEY, AT(cost_labels_text, environment), .fallback = "environment",
	  .help = "Key of the label whose value is the environment." },
	{ .key = "workloadType", .type = SCHEMA_KEY, AT(cost_labels_text, workload_type), .fallback = "workload-type",
	  .example = "example.com/workload-type",
	  .help = "Key of the label whose value is the kind of workload." },
};
const struct schema_table cost_labels_table = { "costLabels", sizeof(struct cost_labels_text),
	SCHEMA_ROWS(cost_labels_rows) };

static const struct schema_row spec_rows[] = {
	{ .key = "class", .type = SCHEMA_CHOICE, AT(spec_text, class), .fallback = "interactive", .choices = classes,
	  .help = "Kind of work; lend.to names classes. any: the default pool, at most one per controller. It serves pending GPU pods of all namespaces that no other pool selects, and takes only nodeGroups, scaleDown, leadTime, shrinkPriority, costLabels and mode." },
	{ .key = "objective", .type = SCHEMA_MAP, AT(spec_text, objective),
	  .shown = "none: required without violationCost", .table = &objective_table,
	  .help = "The SLO: how long requests may wait, and how many may wait longer." },
	{ .key = "violationCost", .type = SCHEMA_DOLLARS, AT(spec_text, violation_cost), .shown = "none", .min = 1,
	  .max = DOLLARS(10000), .example = "0.01",
	  .help = "The same as objective.violationCost." },
	{ .key = "workload", .type = SCHEMA_MAP, AT(spec_text, workload), .table = &workload_table,
	  .help = "The serving pods and their capacity." },
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
	{ .key = "formerAutoscaler", .type = SCHEMA_TEXT, AT(spec_text, former_autoscaler), .max = 500,
	  .example = "total=40,min=2,max=20,down_window=300", .shown = "an HPA of the highest target that keeps the objective",
	  .help = "What scaled the workload before, for preheat cost --alternatives and the first screen: settings of the rival "
		  "configured (docs/simulator.md), as preheat init writes them of an HPA or ScaledObject." },
	{ .key = "costLabels", .type = SCHEMA_MAP, AT(spec_text, cost_labels), .table = &cost_labels_table,
	  .help = "Pod labels by which preheat cost splits the bill. For pods outside pools those of the node group's first pool count." },
	{ .key = "share", .type = SCHEMA_MAP, AT(spec_text, share), .shown = "none", .table = &share_table,
	  .help = "GPUs that the pool shares with others: a few engines awake, the rest asleep on the same nodes. Their "
		  "number stays as it was deployed." },
	{ .key = "mode", .type = SCHEMA_CHOICE, AT(spec_text, mode), .fallback = "observe", .choices = modes,
	  .help = "observe: decide, record, price and report, never change; act: also buy, release and scale; paused: leave as it is." },
};
static const struct schema_table spec_table = { "spec", sizeof(struct spec_text), SCHEMA_ROWS(spec_rows) };

static const struct schema_row warm_pool_rows[] = {
	{ .key = "apiVersion", .type = SCHEMA_CHOICE, AT(warm_pool, api_version), .is_required = true,
	  .choices = api_versions,
	  .help = "Version of this format." },
	{ .key = "kind", .type = SCHEMA_CHOICE, AT(warm_pool, kind), .is_required = true, .choices = kinds,
	  .help = "The kind of object." },
	{ .key = "metadata", .type = SCHEMA_MAP, AT(warm_pool, metadata), .is_required = true,
	  .table = &metadata_table,
	  .help = "Its name." },
	{ .key = "spec", .type = SCHEMA_MAP, AT(warm_pool, spec), .is_required = true, .table = &spec_table,
	  .help = "The desired state." },
};
static const char *const of_the_controller[] = { "status", NULL };
const struct schema_table warm_pool_table = { "WarmPool", sizeof(struct warm_pool), SCHEMA_ROWS(warm_pool_rows),
	.passed_over = of_the_controller };
/* clang-format on */

_Static_assert(sizeof engines / sizeof *engines == SOURCE_COUNT + 1, "a name per engine");
_Static_assert(sizeof classes / sizeof *classes == CLASS_COUNT + 1, "a name per class");
_Static_assert((int)BLOCK_SPOT == (int)CAPACITY_SPOT && (int)BLOCK_RESERVED == (int)CAPACITY_RESERVED, "one order");
