/* The keys of where a pool's signals come from. */
#include "controller/manifest/table.h"
#include "controller/manifest/warm_pool.h"

static const char *const engines[] = {
	"vllm", "sglang", "tgi", "triton", "llamacpp", "dynamo", "custom", "pods", NULL
};
static const char *const schemes[] = { "http", "https", NULL };
static const char *const verifications[] = { "full", "nothing", NULL };

_Static_assert(sizeof engines / sizeof *engines == SOURCE_COUNT + 1, "a name per engine");

/* A row reads best on two lines. */
/* clang-format off */
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
	  .help = "Authorities that the server's certificate must be of; a change is seen within a minute." },
	{ .key = "certFile", .type = SCHEMA_PATH, AT(tls_text, cert_file), .shown = "none",
	  .help = "Certificate that we show; with keyFile." },
	{ .key = "keyFile", .type = SCHEMA_PATH, AT(tls_text, key_file), .shown = "none",
	  .help = "Its key." },
	{ .key = "serverName", .type = SCHEMA_TEXT, AT(tls_text, server_name), .max = 253,
	  .example = "prometheus.monitoring.svc", .shown = "the host of the URL",
	  .help = "The name that the server's certificate must carry." },
	{ .key = "verify", .type = SCHEMA_CHOICE, AT(tls_text, verify), .fallback = "full", .choices = verifications,
	  .help = "nothing: any certificate will do, so anybody in between can read and change what is told." },
};
static const struct schema_table tls_table = { "tls", sizeof(struct tls_text), SCHEMA_ROWS(tls_rows) };

static const struct schema_row scrape_rows[] = {
	{ .key = "port", .type = SCHEMA_INTEGER, AT(scrape_text, port), .fallback = "8000", .min = 1, .max = 65535,
	  .help = "Port of the metrics in each serving pod." },
	{ .key = "path", .type = SCHEMA_PATH, AT(scrape_text, path), .fallback = "/metrics",
	  .help = "Path of the metrics." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(scrape_text, interval), .fallback = "5s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "5s",
	  .help = "How often each pod is read." },
	{ .key = "scheme", .type = SCHEMA_CHOICE, AT(scrape_text, scheme), .fallback = "http", .choices = schemes,
	  .help = "https where the pods' metrics are told over TLS." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(scrape_text, auth), .shown = "none", .table = &auth_table,
	  .help = "What we show to the pods. With http every pod that the selector finds can read it." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(scrape_text, tls), .table = &tls_table,
	  .help = "Whom we trust, with scheme https. Pods are asked by address: their certificate needs serverName." },
};
static const struct schema_table scrape_table = { "scrape", sizeof(struct scrape_text), SCHEMA_ROWS(scrape_rows) };

static const struct schema_row metrics_rows[] = {
	{ .key = "running", .type = SCHEMA_METRIC, AT(metrics_text, names[0]), .is_required = true,
	  .example = "requests{state=\"running\"}",
	  .help = "Gauge: sequences running." },
	{ .key = "waiting", .type = SCHEMA_METRIC, AT(metrics_text, names[1]), .is_required = true,
	  .example = "requests{state=\"waiting\"}",
	  .help = "Gauge: requests that wait for a slot." },
	{ .key = "kvCache", .type = SCHEMA_METRIC, AT(metrics_text, names[2]), .shown = "not told",
	  .help = "Gauge: share of the KV cache in use, 0 to 1; of several series the largest." },
	{ .key = "started", .type = SCHEMA_METRIC, AT(metrics_text, names[3]), .shown = "not told",
	  .help = "Counter: requests that took a slot. Left out: the count of firstToken, or of queueWait." },
	{ .key = "completed", .type = SCHEMA_METRIC, AT(metrics_text, names[4]), .shown = "not told",
	  .help = "Counter: requests finished." },
	{ .key = "promptTokens", .type = SCHEMA_METRIC, AT(metrics_text, names[5]), .shown = "not told",
	  .help = "Counter: prompt tokens." },
	{ .key = "outputTokens", .type = SCHEMA_METRIC, AT(metrics_text, names[6]), .shown = "not told",
	  .help = "Counter: output tokens." },
	{ .key = "queueWait", .type = SCHEMA_METRIC, AT(metrics_text, names[7]), .shown = "not told",
	  .help = "Histogram in seconds, its name without _bucket: how long requests waited. Without it nothing is known to be late." },
	{ .key = "firstToken", .type = SCHEMA_METRIC, AT(metrics_text, names[8]), .shown = "not told",
	  .help = "Histogram in seconds: time to the first token." },
	{ .key = "interTokenLatency", .type = SCHEMA_METRIC, AT(metrics_text, names[9]), .shown = "not told",
	  .help = "Histogram or summary in seconds, of which _sum and _count are read: time between output tokens." },
	{ .key = "prefixQueries", .type = SCHEMA_METRIC, AT(metrics_text, names[10]), .shown = "not told",
	  .help = "Counter: prompt tokens looked for in the prefix cache." },
	{ .key = "prefixHits", .type = SCHEMA_METRIC, AT(metrics_text, names[11]), .shown = "not told",
	  .help = "Counter: of these found." },
	{ .key = "loadTime", .type = SCHEMA_METRIC, AT(metrics_text, names[12]), .shown = "not told",
	  .help = "Gauge: seconds that loading the weights took." },
	{ .key = "startupTime", .type = SCHEMA_METRIC, AT(metrics_text, names[13]), .shown = "not told",
	  .help = "Gauge: seconds from the start of the server until it could serve." },
};
static const struct schema_table metrics_table = { "metrics", sizeof(struct metrics_text), SCHEMA_ROWS(metrics_rows) };

static const struct schema_row prometheus_rows[] = {
	{ .key = "url", .type = SCHEMA_URL, AT(prometheus_text, url), .is_required = true,
	  .help = "The Prometheus server, or what answers its HTTP API; /api/v1/query is added." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(prometheus_text, interval), .fallback = "15s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "15s",
	  .help = "How often it is asked. Not below the interval at which it reads the pods: what it read longer than "
		  "three of these ago is stale." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(prometheus_text, labels),
	  .help = "Labels that select this pool's series. Which replica a series is of, its own labels say: pod and "
		  "namespace, else instance." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(prometheus_text, auth), .shown = "none", .table = &auth_table,
	  .help = "What we show to the server." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(prometheus_text, tls), .table = &tls_table,
	  .help = "Whom we trust, for https." },
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

static const struct schema_row queue_rows[] = {
	{ .key = "promql", .type = SCHEMA_TEXT, AT(queue_text, promql), .shown = "none", .max = 2000,
	  .example = "sum(rabbitmq_queue_messages_ready{queue=\"prompts\"})",
	  .help = "An expression of one series: how many requests wait. Nothing is not zero: add \"or vector(0)\" where it "
		  "should be." },
	{ .key = "endpointPicker", .type = SCHEMA_MAP, AT(queue_text, picker), .shown = "none", .table = &picker_table,
	  .help = "Requests that flow control of the Gateway API inference extension, or of llm-d, holds back." },
	{ .key = "json", .type = SCHEMA_MAP, AT(queue_text, json), .shown = "none", .table = &json_table,
	  .help = "A number that a server tells." },
	{ .key = "url", .type = SCHEMA_URL, AT(queue_text, url), .shown = "signals.prometheus.url",
	  .help = "The Prometheus server that promql, or endpointPicker without a url, asks." },
	{ .key = "counts", .type = SCHEMA_CHOICE, AT(queue_text, counts), .fallback = "waiting",
	  .choices = queue_counts,
	  .help = "waiting: what nobody works on yet (SQS visible, RabbitMQ ready). unfinished: what is worked on is in "
		  "the number, too (Kafka lag), and is taken off it." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(queue_text, interval), .fallback = "15s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "15s",
	  .help = "How often it is asked. A value older than three of these is none, and nothing is scaled down." },
	{ .key = "deadline", .type = SCHEMA_DURATION, AT(queue_text, deadline), .fallback = "5s", .min = 100,
	  .max = MINUTE, .example = "5s",
	  .help = "How long an answer may take." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(queue_text, auth),
	  .shown = "that of signals.prometheus where its url is asked, else none", .table = &auth_table,
	  .help = "What we show to the server." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(queue_text, tls),
	  .shown = "that of signals.prometheus where its url is asked", .table = &tls_table,
	  .help = "Whom we trust, for https." },
};
static const struct schema_table queue_table = { "queue", sizeof(struct queue_text), SCHEMA_ROWS(queue_rows) };

static const struct schema_row devices_rows[] = {
	{ .key = "url", .type = SCHEMA_URL, AT(devices_text, url), .shown = "signals.prometheus.url",
	  .help = "The Prometheus server that reads the DCGM exporters." },
	{ .key = "labels", .type = SCHEMA_LABELS, AT(devices_text, labels),
	  .help = "Labels that select the exporters' series. Pools with the same url and labels ask once." },
	{ .key = "interval", .type = SCHEMA_DURATION, AT(devices_text, interval), .fallback = "30s", .min = SECOND,
	  .max = 5 * MINUTE, .example = "30s",
	  .help = "How often it is asked." },
	{ .key = "auth", .type = SCHEMA_MAP, AT(devices_text, auth),
	  .shown = "that of signals.prometheus where its url is asked, else none", .table = &auth_table,
	  .help = "What we show to the server." },
	{ .key = "tls", .type = SCHEMA_MAP, AT(devices_text, tls),
	  .shown = "that of signals.prometheus where its url is asked", .table = &tls_table,
	  .help = "Whom we trust, for https." },
};
static const struct schema_table devices_table = { "devices", sizeof(struct devices_text),
	SCHEMA_ROWS(devices_rows) };

static const struct schema_row signals_rows[] = {
	{ .key = "engine", .type = SCHEMA_CHOICE, AT(signals_text, engine), .fallback = "vllm", .choices = engines,
	  .help = "The model server; says what its metrics are called. custom: metrics says it. pods: nothing is scraped, the pods are the work "
		  "(batch, training): one that runs is a running sequence, a pending one waits." },
	{ .key = "metrics", .type = SCHEMA_MAP, AT(signals_text, metrics), .shown = "none", .table = &metrics_table,
	  .help = "Names of the metrics, with engine custom: NAME, or NAME{label=\"value\"} for these series alone; the series of a "
		  "pod are added up." },
	{ .key = "scrape", .type = SCHEMA_MAP, AT(signals_text, scrape), .table = &scrape_table,
	  .help = "Read the serving pods directly. The default." },
	{ .key = "prometheus", .type = SCHEMA_MAP, AT(signals_text, prometheus), .table = &prometheus_table,
	  .help = "Read a Prometheus server instead." },
	{ .key = "queue", .type = SCHEMA_MAP, AT(signals_text, queue), .shown = "none", .table = &queue_table,
	  .help = "Requests that wait outside of the pods; with engine pods, too. One of promql, endpointPicker and json." },
	{ .key = "devices", .type = SCHEMA_MAP, AT(signals_text, devices), .shown = "none", .table = &devices_table,
	  .help = "Use, memory, power and errors of the pool's GPUs, from DCGM exporters, for metrics and reports. Nothing "
		  "is decided by them." },
};
const struct schema_table signals_table = { "signals", sizeof(struct signals_text),
	SCHEMA_ROWS(signals_rows) };
/* clang-format on */

const char *source_name(enum source_choice source)
{
	return engines[source];
}
