#include "controller/simulation/files/world_text.h"

#define AT(record, member) .offset = offsetof(struct record, member)

static const char *const faults[] = { "missing", "stale", "zero", NULL };
static const char *const refusals[] = { "stock-out", "quota", NULL };
static const char *const scopes[] = { "start", "hour", NULL };

enum { MILLION = 1000000 };

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row quantiles_rows[] = {
	{ .key = "p50", .type = SCHEMA_DURATION, AT(quantiles_text, p50), .is_required = true, .min = 1, .max = DAY,
	  .example = "45s", .help = "Median." },
	{ .key = "p95", .type = SCHEMA_DURATION, AT(quantiles_text, p95), .is_required = true, .min = 1, .max = DAY,
	  .example = "75s", .help = "95th percentile." },
};
static const struct schema_table quantiles_table = { "quantiles", sizeof(struct quantiles_text),
	SCHEMA_ROWS(quantiles_rows) };

#define STAGE_ROW(key_, stage_)                                                                              \
	{ .key = key_, .type = SCHEMA_MAP, .offset = offsetof(struct lead_text, stage[stage_]),              \
	  .table = &quantiles_table, .help = "True duration of this stage." }
static const struct schema_row lead_rows[] = {
	{ .key = "total", .type = SCHEMA_MAP, AT(lead_text, total), .table = &quantiles_table,
	  .help = "From asking for a machine to serving, drawn as one." },
	STAGE_ROW("provision", STAGE_PROVISION),
	STAGE_ROW("register", STAGE_REGISTER),
	STAGE_ROW("device", STAGE_DEVICE),
	STAGE_ROW("image", STAGE_IMAGE),
	STAGE_ROW("load", STAGE_LOAD),
};
static const struct schema_table lead_table = { "leadTime", sizeof(struct lead_text), SCHEMA_ROWS(lead_rows) };

static const struct schema_row telemetry_rows[] = {
	{ .key = "from", .type = SCHEMA_DURATION, AT(telemetry_text, from), .is_required = true, .max = 3660 * DAY,
	  .example = "2h", .help = "Since the start of the traffic." },
	{ .key = "to", .type = SCHEMA_DURATION, AT(telemetry_text, to), .is_required = true, .max = 3660 * DAY,
	  .example = "3h", .help = "Since the start of the traffic." },
	{ .key = "fault", .type = SCHEMA_CHOICE, AT(telemetry_text, fault), .is_required = true, .choices = faults,
	  .help = "missing: no readings. stale: a share of the replicas does not answer. zero: every reading is 0." },
	{ .key = "share", .type = SCHEMA_SHARE, AT(telemetry_text, share), .fallback = "50%", .min = 1, .max = MILLION,
	  .help = "Of the replicas, for stale." },
};
static const struct schema_table telemetry_table = { "window", sizeof(struct telemetry_text),
	SCHEMA_ROWS(telemetry_rows) };

static const struct schema_row pool_rows[] = {
	{ .key = "name", .type = SCHEMA_NAME, AT(pool_text, name), .is_required = true,
	  .help = "A pool of the manifest." },
	{ .key = "capacity", .type = SCHEMA_SHARE, AT(pool_text, capacity), .fallback = "100%", .min = 10000,
	  .max = 10 * MILLION, .example = "60%",
	  .help = "What a replica really does, of what the manifest says: sequences and prefill alike." },
	{ .key = "maxSequences", .type = SCHEMA_QUANTITY, AT(pool_text, max_sequences), .shown = "as the manifest",
	  .min = 1, .max = MILLION, .example = "80", .help = "The truth behind the prior." },
	{ .key = "prefillTokensPerSecond", .type = SCHEMA_QUANTITY, AT(pool_text, prefill),
	  .shown = "as the manifest", .min = 1, .max = 1000 * MILLION, .example = "20k",
	  .help = "The truth behind the prior." },
	{ .key = "interTokenLatency", .type = SCHEMA_FINE, AT(pool_text, latency), .shown = "as the manifest",
	  .min = 1, .max = 10 * MILLION, .example = "40ms", .help = "The truth behind the prior." },
	{ .key = "leadTime", .type = SCHEMA_MAP, AT(pool_text, lead), .table = &lead_table,
	  .help = "True lead times, in place of the manifest's." },
	{ .key = "placeShare", .type = SCHEMA_SHARE, AT(pool_text, place_share), .fallback = "30%", .min = 10000,
	  .max = MILLION, .help = "Of a whole start, for a replica on a running node; only without stages." },
	{ .key = "reclaim", .type = SCHEMA_MAP, AT(pool_text, reclaim), .table = &quantiles_table,
	  .shown = "what yieldWithin and the load take",
	  .help = "From taking a node back from another pool to serving." },
	{ .key = "lengthSpread", .type = SCHEMA_NUMBER, AT(pool_text, spread), .fallback = "1", .max = 10 * MILLION,
	  .help = "Deviation over mean of the service times within a bin; binned traffic only." },
	{ .key = "patience", .type = SCHEMA_DURATION, AT(pool_text, patience), .shown = "for ever", .min = 1,
	  .max = 30 * DAY, .example = "60s", .help = "A request that waited so long gives up." },
	{ .key = "deadline", .type = SCHEMA_DURATION, AT(pool_text, deadline), .shown = "none", .min = 1,
	  .max = 365 * DAY, .example = "4h",
	  .help = "From arrival to completion, for batch. Late is then what finishes later." },
	{ .key = "replicas", .type = SCHEMA_INTEGER, AT(pool_text, replicas), .fallback = "-1",
	  .shown = "what the first ten minutes need", .min = -1, .max = 100000, .example = "4",
	  .help = "The fleet at the start." },
	{ .key = "telemetry", .type = SCHEMA_LIST, AT(pool_text, telemetry), .table = &telemetry_table,
	  .help = "When readings fail." },
};
static const struct schema_table pool_table = { "pool", sizeof(struct pool_text), SCHEMA_ROWS(pool_rows) };

#define WINDOW_ROWS                                                                                           \
	{ .key = "from", .type = SCHEMA_DURATION, AT(window_text, from), .is_required = true,                 \
	  .max = 3660 * DAY, .example = "2h", .help = "Since the start of the traffic." },                    \
	{ .key = "to", .type = SCHEMA_DURATION, AT(window_text, to), .is_required = true, .max = 3660 * DAY,  \
	  .example = "4h", .help = "Since the start of the traffic." }
static const struct schema_row stockout_rows[] = {
	WINDOW_ROWS,
	{ .key = "error", .type = SCHEMA_CHOICE, AT(window_text, error), .fallback = "stock-out",
	  .choices = refusals, .help = "What the cloud answers." },
};
static const struct schema_table stockout_table = { "window", sizeof(struct window_text),
	SCHEMA_ROWS(stockout_rows) };

static const struct schema_row loss_rows[] = {
	WINDOW_ROWS,
	{ .key = "share", .type = SCHEMA_SHARE, AT(window_text, share), .is_required = true, .min = 1, .max = MILLION,
	  .example = "30%", .help = "Of the machines running at its begin; taken at any time within." },
};
static const struct schema_table loss_table = { "window", sizeof(struct window_text), SCHEMA_ROWS(loss_rows) };

static const struct schema_row slow_rows[] = {
	{ .key = "share", .type = SCHEMA_SHARE, AT(slow_text, share), .fallback = "0%", .max = MILLION,
	  .help = "Of the starts on new machines." },
	{ .key = "factor", .type = SCHEMA_NUMBER, AT(slow_text, factor), .fallback = "3", .min = MILLION,
	  .max = 100 * MILLION, .example = "3", .help = "They take so many times as long." },
};
static const struct schema_table slow_table = { "slowStarts", sizeof(struct slow_text), SCHEMA_ROWS(slow_rows) };

static const struct schema_row refused_rows[] = {
	{ .key = "share", .type = SCHEMA_SHARE, AT(refused_text, share), .fallback = "0%", .max = MILLION,
	  .help = "Of the wakes, or of the hours." },
	{ .key = "by", .type = SCHEMA_CHOICE, AT(refused_text, by), .fallback = "start", .choices = scopes,
	  .help = "start: each wake for itself. hour: all wakes of an hour alike." },
};
static const struct schema_table refused_table = { "wakesRefused", sizeof(struct refused_text),
	SCHEMA_ROWS(refused_rows) };

static const struct schema_row group_rows[] = {
	{ .key = "name", .type = SCHEMA_NAME, AT(group_text, name), .is_required = true,
	  .help = "A node group of the manifest." },
	{ .key = "stockOuts", .type = SCHEMA_LIST, AT(group_text, stockouts), .table = &stockout_table,
	  .help = "While they last, new machines are refused." },
	{ .key = "losses", .type = SCHEMA_LIST, AT(group_text, losses), .table = &loss_table,
	  .help = "Machines that the cloud takes back in these windows." },
	{ .key = "lossPerHour", .type = SCHEMA_SHARE, AT(group_text, loss_per_hour), .fallback = "0%",
	  .max = MILLION, .help = "Chance of a running machine to be taken back, per hour." },
	{ .key = "failedStarts", .type = SCHEMA_SHARE, AT(group_text, failed), .fallback = "0%", .max = MILLION,
	  .help = "Of the starts on new machines: they never get ready and are given up after three times the p95." },
	{ .key = "slowStarts", .type = SCHEMA_MAP, AT(group_text, slow), .table = &slow_table,
	  .help = "Starts that take longer." },
	{ .key = "wakesRefused", .type = SCHEMA_MAP, AT(group_text, refused), .table = &refused_table,
	  .help = "Stopped machines that the cloud does not start; seen after 30 s." },
	{ .key = "wake", .type = SCHEMA_MAP, AT(group_text, wake), .table = &quantiles_table,
	  .help = "True lead time of stopped machines, in place of the manifest's." },
};
static const struct schema_table group_table = { "node group", sizeof(struct group_text), SCHEMA_ROWS(group_rows) };

static const struct schema_row lendable_rows[] = {
	{ .key = "pool", .type = SCHEMA_NAME, AT(lendable_text, pool), .is_required = true,
	  .help = "The pool that may reclaim them; its manifest must lend (lend.to)." },
	{ .key = "nodeGroup", .type = SCHEMA_NAME, AT(lendable_text, group), .shown = "the pool's first",
	  .help = "The node group whose machines and price they have." },
	{ .key = "replicas", .type = SCHEMA_INTEGER, AT(lendable_text, replicas), .is_required = true, .min = 1,
	  .max = 100000, .example = "20", .help = "How many replicas fit on them." },
	{ .key = "reclaim", .type = SCHEMA_MAP, AT(lendable_text, reclaim), .table = &quantiles_table,
	  .shown = "45s and 75s", .help = "From reclaiming to serving." },
	{ .key = "restartLoss", .type = SCHEMA_DURATION, AT(lendable_text, restart_loss), .fallback = "1m",
	  .max = DAY, .help = "Batch work lost by one reclaim, per replica; counted, not priced." },
};
static const struct schema_table lendable_table = { "lendable", sizeof(struct lendable_text),
	SCHEMA_ROWS(lendable_rows) };

static const struct schema_row world_rows[] = {
	{ .key = "apiVersion", .type = SCHEMA_TEXT, AT(world_text, api_version), .fallback = "preheat.dev/v1alpha1",
	  .max = 100, .help = "As in manifests." },
	{ .key = "kind", .type = SCHEMA_TEXT, AT(world_text, kind), .fallback = "World", .max = 100,
	  .help = "World." },
	{ .key = "pools", .type = SCHEMA_LIST, AT(world_text, pools), .table = &pool_table,
	  .help = "What is true of pools." },
	{ .key = "nodeGroups", .type = SCHEMA_LIST, AT(world_text, groups), .table = &group_table,
	  .help = "What happens to node groups." },
	{ .key = "lendable", .type = SCHEMA_MAP, AT(world_text, lendable), .table = &lendable_table,
	  .help = "Nodes outside the manifest that run batch work and can be reclaimed for one pool; they cost the "
		  "pool from the reclaim until they are given back." },
};
const struct schema_table world_text_table = { "world", sizeof(struct world_text), SCHEMA_ROWS(world_rows) };
/* clang-format on */
