#include "controller/simulation/files/world_file.h"

#include "base/file.h"
#include "base/schema.h"
#include "base/schema_describe.h"

#include <string.h>

/* A world file as it is written. */

struct quantiles_text {
	const struct yaml_node *node;
	int64_t p50, p95;
};

struct lead_text {
	const struct yaml_node *node;
	struct quantiles_text total, stage[STAGE_COUNT];
};

struct telemetry_text {
	const struct yaml_node *node;
	int64_t from, to, fault, share;
};

struct pool_text {
	const struct yaml_node *node;
	const char *name;
	int64_t capacity, max_sequences, prefill, latency, spread, patience, deadline, replicas, place_share;
	struct lead_text lead;
	struct quantiles_text reclaim;
	struct schema_list telemetry;
};

struct window_text {
	const struct yaml_node *node;
	int64_t from, to, error, share;
};

struct slow_text {
	const struct yaml_node *node;
	int64_t share, factor;
};

struct refused_text {
	const struct yaml_node *node;
	int64_t share, by;
};

struct group_text {
	const struct yaml_node *node;
	const char *name;
	struct schema_list stockouts, losses;
	int64_t loss_per_hour, failed;
	struct slow_text slow;
	struct refused_text refused;
	struct quantiles_text wake, first_wake;
};

struct lendable_text {
	const struct yaml_node *node;
	const char *pool, *group;
	int64_t replicas, restart_loss;
	struct quantiles_text reclaim;
};

struct world_text {
	const struct yaml_node *node;
	const char *api_version, *kind;
	struct schema_list pools, groups;
	struct lendable_text lendable;
};

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
	{ .key = "firstWake", .type = SCHEMA_MAP, AT(group_text, first_wake), .table = &quantiles_table,
	  .help = "The same of machines bought for standby that have never run; without it as wake." },
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
static const struct schema_table world_text_table = { "world", sizeof(struct world_text), SCHEMA_ROWS(world_rows) };
/* clang-format on */

static struct quantiles read_quantiles(const struct quantiles_text *t, struct quantiles otherwise, struct findings *f)
{
	if (!t->node)
		return otherwise;
	if (t->p95 < t->p50)
		schema_find_key(f, t->node, "p95", NULL, "at least p50", "swap or correct them");
	return (struct quantiles){ t->p50, t->p95 };
}

static void check_window(const struct yaml_node *node, int64_t from, int64_t to, struct findings *f)
{
	if (to <= from)
		schema_find_key(f, node, "to", NULL, "a time after from", "swap or correct them");
}

/* Index of the name among `count`, or `count` with a finding that tells all. */
static size_t find_name(const struct yaml_node *node, const char *key, const char *name, const char *const *names,
			size_t count, struct findings *f)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (name && !strcmp(names[i], name))
			return i;
		buf_printf(&allowed, i ? ", %s" : "%s", names[i]);
	}
	if (name)
		schema_find_key(f, node, key, NULL, allowed.text, "write it as in the manifest");
	return count;
}

static void read_telemetry(const struct pool_text *t, struct pool_world *out, struct arena *a, struct findings *f)
{
	const struct telemetry_text *from = t->telemetry.items;
	struct telemetry_window *windows = arena_array(a, struct telemetry_window, t->telemetry.count);

	for (size_t i = 0; i < t->telemetry.count; i++) {
		check_window(from[i].node, from[i].from, from[i].to, f);
		windows[i] = (struct telemetry_window){ from[i].from, from[i].to, (enum telemetry_fault)from[i].fault,
							from[i].share };
	}
	out->telemetry = windows;
	out->telemetry_count = t->telemetry.count;
}

static void read_pool(const struct pool_text *t, struct pool_world *out, struct arena *a, struct findings *f)
{
	out->capacity_permille = t->capacity / 1000;
	out->max_sequences = t->max_sequences;
	out->prefill_tokens_per_second = t->prefill;
	out->inter_token_latency_us = t->latency;
	out->lead_time = read_quantiles(&t->lead.total, (struct quantiles){ 0 }, f);
	for (size_t i = 0; i < STAGE_COUNT; i++)
		out->stage[i] = read_quantiles(&t->lead.stage[i], (struct quantiles){ 0 }, f);
	out->reclaim = read_quantiles(&t->reclaim, out->reclaim, f);
	out->place_share_permille = t->place_share / 1000;
	out->length_spread_permille = t->spread / 1000;
	out->patience = t->patience;
	out->deadline = t->deadline;
	out->initial_replicas = t->replicas;
	read_telemetry(t, out, a, f);
}

static void read_windows(const struct group_text *t, struct group_world *out, struct arena *a, struct findings *f)
{
	const struct window_text *stockouts = t->stockouts.items, *losses = t->losses.items;
	struct stockout_window *refuse = arena_array(a, struct stockout_window, t->stockouts.count);
	struct loss_window *take = arena_array(a, struct loss_window, t->losses.count);

	for (size_t i = 0; i < t->stockouts.count; i++) {
		check_window(stockouts[i].node, stockouts[i].from, stockouts[i].to, f);
		refuse[i] = (struct stockout_window){ stockouts[i].from, stockouts[i].to,
						      stockouts[i].error ? ERROR_QUOTA : ERROR_STOCKOUT };
	}
	for (size_t i = 0; i < t->losses.count; i++) {
		check_window(losses[i].node, losses[i].from, losses[i].to, f);
		take[i] = (struct loss_window){ losses[i].from, losses[i].to, losses[i].share };
	}
	out->stockouts = refuse;
	out->stockout_count = t->stockouts.count;
	out->losses = take;
	out->loss_count = t->losses.count;
}

static void read_group(const struct group_text *t, struct group_world *out, struct arena *a, struct findings *f)
{
	read_windows(t, out, a, f);
	out->loss_per_hour_ppm = t->loss_per_hour;
	out->failed_start_ppm = t->failed;
	out->slow_start_ppm = t->slow.share;
	out->slow_factor_permille = t->slow.factor / 1000;
	out->wake_refused_ppm = t->refused.share;
	out->wake_refused_by_hour = t->refused.by == 1;
	out->wake = read_quantiles(&t->wake, (struct quantiles){ 0 }, f);
	out->first_wake = read_quantiles(&t->first_wake, (struct quantiles){ 0 }, f);
}

static const char *const *pool_names(const struct fleet_spec *fleet, struct arena *a)
{
	const char **names = arena_array(a, const char *, fleet->pool_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		names[i] = fleet->pools[i].name;
	return names;
}

/* Of a pool, or of the whole fleet when it is NULL. */
static const char *const *group_names(const struct fleet_spec *fleet, const struct pool_spec *p, struct arena *a)
{
	size_t count = p ? p->group_count : fleet->group_count;
	const char **names = arena_array(a, const char *, count);

	for (size_t i = 0; i < count; i++)
		names[i] = fleet->groups[p ? p->groups[i] : i].name;
	return names;
}

static void read_lendable(const struct lendable_text *t, const struct fleet_spec *fleet, struct pool_world *pools,
			  struct arena *a, struct findings *f)
{
	if (!t->node)
		return;
	size_t pool = find_name(t->node, "pool", t->pool, pool_names(fleet, a), fleet->pool_count, f), group = 0;
	if (pool == fleet->pool_count)
		return;
	const struct pool_spec *p = &fleet->pools[pool];
	if (!p->lend_to)
		schema_find_key(f, t->node, "pool", NULL, "a pool that lends",
				"add lend: { to: [ batch ] } to its manifest");
	if (t->group)
		group = find_name(t->node, "nodeGroup", t->group, group_names(fleet, p, a), p->group_count, f);
	struct lendable *out = &pools[pool].lendable;
	*out = (struct lendable){ t->replicas, group, read_quantiles(&t->reclaim, out->reclaim, f), t->restart_loss };
	if (group < p->group_count && t->replicas < replicas_per_node(&fleet->groups[p->groups[group]], p))
		schema_find_key(f, t->node, "replicas", NULL, "at least as many as fit on one node",
				"lent nodes are whole");
}

/* A second entry would undo the first. */
static bool is_first(const struct yaml_node *entry, const char *name, struct findings *f)
{
	for (const struct yaml_node *n = entry->parent->first; name && n != entry; n = n->next) {
		const struct yaml_node *other = yaml_child(n, "name");

		if (!other || other->kind != YAML_SCALAR || strcmp(other->text, name) != 0)
			continue;
		schema_find_key(f, entry, "name", "the same name a second time", "every name once",
				"put all of it into one entry");
		return false;
	}
	return true;
}

static void check_replicas(const struct pool_text *t, const struct fleet_spec *fleet, size_t pool, struct findings *f)
{
	const struct pool_spec *p = &fleet->pools[pool];
	CLEANUP(buf_release) struct buf allowed = { 0 };
	int64_t room = 0;

	for (size_t i = 0; i < p->group_count; i++) {
		const struct group_spec *g = &fleet->groups[p->groups[i]];
		room += g->max_nodes * replicas_per_node(g, p);
	}
	buf_printf(&allowed, "at most the %lld replicas that max of the pool's node groups lets be", (long long)room);
	if (t->replicas > room)
		schema_find_key(f, t->node, "replicas", NULL, allowed.text, "lower it, or raise max in the manifest");
}

static void read_world(const struct world_text *t, const struct fleet_spec *fleet, struct arena *a,
		       struct world_spec *out, struct findings *f)
{
	struct world_spec spec = world_spec_default(fleet, a);
	struct pool_world *pools = arena_array(a, struct pool_world, fleet->pool_count);
	struct group_world *groups = arena_array(a, struct group_world, fleet->group_count);
	const struct pool_text *pool_texts = t->pools.items;
	const struct group_text *group_texts = t->groups.items;

	memcpy(pools, spec.pools, fleet->pool_count * sizeof *pools);
	memcpy(groups, spec.groups, fleet->group_count * sizeof *groups);
	if (t->node && strcmp(t->kind, "World") != 0)
		schema_find_key(f, t->node, "kind", NULL, "World", "manifests go to -f");
	for (size_t i = 0; i < t->pools.count; i++) {
		const struct pool_text *p = &pool_texts[i];
		size_t at = find_name(p->node, "name", p->name, pool_names(fleet, a), fleet->pool_count, f);
		if (at == fleet->pool_count || !is_first(p->node, p->name, f))
			continue;
		check_replicas(p, fleet, at, f);
		read_pool(p, &pools[at], a, f);
	}
	for (size_t i = 0; i < t->groups.count; i++) {
		const struct group_text *g = &group_texts[i];
		size_t at = find_name(g->node, "name", g->name, group_names(fleet, NULL, a), fleet->group_count, f);
		if (at < fleet->group_count && is_first(g->node, g->name, f))
			read_group(g, &groups[at], a, f);
	}
	read_lendable(&t->lendable, fleet, pools, a, f);
	*out = (struct world_spec){ pools, groups };
}

bool world_file_check(const char *path, const struct fleet_spec *fleet, struct arena *a, struct findings *f,
		      struct error *e)
{
	struct world_text text = { .kind = "World" };
	struct world_spec spec;

	if (!schema_load(path, &world_text_table, &text, a, f, e))
		return false;
	if (fleet)
		read_world(&text, fleet, a, &spec, f);
	return true;
}

bool world_file_read(const char *path, const struct fleet_spec *fleet, struct arena *a, struct world_spec *out,
		     struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	struct world_text text = { .kind = "World" };
	struct world_spec spec;

	if (!schema_load(path, &world_text_table, &text, a, &f, e))
		return false;
	read_world(&text, fleet, a, &spec, &f);
	if (f.count) {
		findings_sort(&f);
		return findings_error(&f, e);
	}
	*out = spec;
	return true;
}

bool world_file_is(const char *path)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct yaml_documents docs;
	struct error e;

	if (!strcmp(path, "-") || !file_read(path, YAML_BYTES_MAX, &text, &e) ||
	    !yaml_parse(path, text.text, text.len, &a, &docs, &f) || !docs.count)
		return false;
	const struct yaml_node *kind = yaml_child(docs.roots[0], "kind");
	return kind && kind->kind == YAML_SCALAR && !strcmp(kind->text, "World");
}

void world_write_reference(struct buf *out)
{
	buf_text(out, "## The world file\n"
		      "\n"
		      "Written by `preheat simulate --print-world` from the table that reads world files\n"
		      "(controller/simulation/files/world_file.c): change the table, not this part.\n"
		      "\n");
	schema_write_markdown(&world_text_table, out);
}
