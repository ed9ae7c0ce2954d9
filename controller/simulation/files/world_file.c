#include "controller/simulation/files/world_file.h"

#include "base/file.h"
#include "controller/simulation/files/world_text.h"

#include <string.h>

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
		schema_find_key(f, t->node, "kind", NULL, "World", "manifests go to --pool");
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
