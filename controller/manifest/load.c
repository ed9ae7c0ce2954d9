#include "base/alloc.h"
#include "base/file.h"
#include "base/fnv1a.h"
#include "base/schema.h"
#include "controller/manifest/check.h"
#include "controller/manifest/cron.h"

#include <stdlib.h>
#include <string.h>

/* Where the group of that name stands in by_name, or would stand. */
static size_t *slot_of(const struct draft *d, const char *name)
{
	size_t i = fnv1a_text(FNV1A_START, name) & (d->group_slots - 1);

	while (d->by_name[i] != SIZE_MAX && strcmp(d->groups[d->by_name[i]].merged.name, name) != 0)
		i = (i + 1) & (d->group_slots - 1);
	return &d->by_name[i];
}

size_t draft_group_index(const struct draft *d, const char *name)
{
	size_t index = *slot_of(d, name);

	return index == SIZE_MAX ? d->group_count : index;
}

static const struct yaml_node *node_of(const void *record)
{
	return *(const struct yaml_node *const *)record;
}

static void disagree(struct draft *d, const struct yaml_node *first, const struct yaml_node *second)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	buf_printf(&allowed, "%s, as at %s:%zu:%zu", first->text ? first->text : "the same entries", first->file,
		   first->line, first->column);
	schema_find(d->findings, second, NULL, allowed.text,
		    "a node group is the same for all pools that name it: make both equal, or say it once");
}

static bool is_equal(const struct schema_row *row, const void *a, const void *b)
{
	return schema_equal(&(struct schema_table){ .rows = row, .count = 1 }, a, b);
}

/*
 * The map that a merged record says it comes from: at the place of the first
 * naming, with the values that were taken, each where it is written. So what
 * is found later about a value is told at its own place.
 */
struct merging {
	struct draft *draft;
	const void *const *records;
	size_t count;
	struct yaml_node *map;
};

static void take(struct merging *m, const struct yaml_node *value)
{
	struct yaml_node *taken = arena_new(m->draft->arena, struct yaml_node);

	*taken = *value;
	taken->next = NULL;
	if (m->map->last)
		m->map->last->next = taken;
	else
		m->map->first = taken;
	m->map->last = taken;
	m->map->count++;
}

/* What is wrong with the value itself has been found before. */
static bool is_right(const struct merging *m, const struct schema_row *row, const struct yaml_node *n)
{
	if (row->type == SCHEMA_LIST)
		return n->kind == YAML_LIST;
	CLEANUP(findings_release) struct findings known = { 0 };
	void *scratch = arena_alloc(m->draft->arena, 1, row->offset + sizeof(struct schema_labels));

	return schema_value_read(row, n, scratch, m->draft->arena, &known);
}

/* The first record that gives a right value wins; later ones must say the same. */
static void merge_value(struct merging *m, const struct schema_row *row, void *merged)
{
	CLEANUP(findings_release) struct findings known = { 0 };
	const struct yaml_node *first = NULL;

	for (size_t i = 0; i < m->count; i++) {
		const struct yaml_node *n = yaml_child(node_of(m->records[i]), row->key);
		if (!n || !is_right(m, row, n))
			continue;
		if (!first) {
			first = n;
			if (row->type == SCHEMA_LIST)
				memcpy((char *)merged + row->offset, (const char *)m->records[i] + row->offset,
				       sizeof(struct schema_list));
			else
				schema_value_read(row, n, merged, m->draft->arena, &known);
			take(m, n);
		} else if (!is_equal(row, merged, m->records[i])) {
			disagree(m->draft, first, n);
		}
	}
}

static void merge_record(struct merging *m, const struct schema_table *t, void *merged);

static void merge_block(struct merging *m, const struct schema_row *row, void *slot)
{
	const void **parts = arena_array(m->draft->arena, const void *, m->count);
	struct merging inner = { m->draft, parts, 0, NULL };

	for (size_t k = 0; k < m->count; k++) {
		const void *part = (const char *)m->records[k] + row->offset;
		if (node_of(part))
			parts[inner.count++] = part;
	}
	if (!inner.count)
		return;
	memcpy(slot, parts[0], row->table->size);
	merge_record(&inner, row->table, slot);
	take(m, inner.map);
}

static void merge_record(struct merging *m, const struct schema_table *t, void *merged)
{
	m->map = arena_new(m->draft->arena, struct yaml_node);
	*m->map = *node_of(m->records[0]);
	m->map->first = m->map->last = m->map->next = NULL;
	m->map->count = 0;
	*(const struct yaml_node **)merged = m->map;
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		void *slot = (char *)merged + row->offset;

		if (row->type == SCHEMA_MAP)
			merge_block(m, row, slot);
		else
			merge_value(m, row, merged);
	}
}

static void add_naming(struct draft *d, const struct group_text *g)
{
	size_t index = draft_group_index(d, g->name);

	if (index == GROUPS_MAX) {
		schema_find_key(d->findings, g->node, "name", "more than 10,000 node groups", "at most 10,000",
				"run a controller per part");
		return;
	}
	struct group_draft *draft = &d->groups[index];
	if (index == d->group_count) {
		*slot_of(d, g->name) = d->group_count++;
		draft->merged = *g;
	}
	if (draft->naming_count == draft->room) {
		size_t room = draft->room ? draft->room * 2 : 4;
		const struct group_text **grown = arena_array(d->scratch, const struct group_text *, room);
		for (size_t i = 0; i < draft->naming_count; i++)
			grown[i] = draft->namings[i];
		draft->namings = grown;
		draft->room = room;
	}
	draft->namings[draft->naming_count++] = g;
}

static void make_room_for_groups(struct draft *d)
{
	size_t named = 0;

	for (size_t p = 0; p < d->pool_count; p++)
		named += draft_spec(d, p)->groups.count;
	d->groups = arena_array(d->scratch, struct group_draft, (named < GROUPS_MAX ? named : GROUPS_MAX) + 1);
	for (d->group_slots = 2; d->group_slots < 2 * named;)
		d->group_slots *= 2;
	d->by_name = arena_array(d->scratch, size_t, d->group_slots);
	memset(d->by_name, 0xff, d->group_slots * sizeof *d->by_name);
}

static void merge_groups(struct draft *d)
{
	make_room_for_groups(d);
	for (size_t p = 0; p < d->pool_count; p++) {
		const struct spec_text *s = draft_spec(d, p);
		for (size_t i = 0; i < s->groups.count; i++)
			if (draft_groups(s)[i].name)
				add_naming(d, &draft_groups(s)[i]);
	}
	for (size_t i = 0; i < d->group_count; i++) {
		struct group_draft *g = &d->groups[i];
		struct merging m = { d, (const void *const *)g->namings, g->naming_count, NULL };

		if (g->naming_count == 1 && !d->findings->count)
			continue; /* it is what its pool says */
		g->merged.settled = NULL;
		merge_record(&m, &group_table, &g->merged);
	}
}

enum { PPM = 1000000 };

static struct quantiles quantiles_of(const struct quantiles_text *q)
{
	return (struct quantiles){ q->p50, q->p95 };
}

static struct group_spec build_group(const struct draft *d, const struct group_text *g)
{
	const struct standby_text *s = &g->standby;
	struct quantiles wake = { 90 * SECOND, 150 * SECOND };

	if (s->lead_time.node)
		wake = quantiles_of(&s->lead_time);
	return (struct group_spec){
		.name = g->name,
		.provider = provider_name((enum provider_choice)g->provider),
		.settings = g->settled ? g->settled->settings
				       : provider_settings((enum provider_choice)g->provider, &g->blocks[g->provider],
							   d->arena),
		.zone = g->zone,
		.instance_type = g->instance_type,
		.capacity_type = (enum capacity_type)g->capacity_type,
		.gpus_per_node = g->gpus_per_node,
		.price_per_hour = g->price_per_hour,
		.min_nodes = g->min,
		.max_nodes = g->max,
		.ends_at = g->reserved_until,
		.standby_max_nodes = s->max,
		.standby_price_ppm = s->price_share_ppm,
		.standby_lead_time = wake,
		.standby_first_lead_time = s->first_lead_time.node ? quantiles_of(&s->first_lead_time) : wake,
	};
}

static size_t add_windows(const struct window_text *w, struct schedule_window *out)
{
	struct cron cron;
	const char *zone = w->time_zone;

	if (!w->cron || !cron_parse(w->cron, &cron)) {
		/* 24:00 is the next day's 00:00, which `to` says by not being after `from`. */
		*out = (struct schedule_window){ (unsigned)w->days, (int)w->from, (int)(w->to % (DAY / MINUTE)), zone,
						 w->min };
		return 1;
	}
	for (size_t i = 0; i < cron.count; i++) {
		int64_t to = (cron.minutes[i] + w->duration / MINUTE) % (DAY / MINUTE);
		out[i] = (struct schedule_window){ (unsigned)cron.days, cron.minutes[i], (int)to, zone, w->min };
	}
	return cron.count;
}

static void build_schedule(const struct draft *d, const struct headroom_text *h, struct pool_spec *p)
{
	const struct window_text *windows = h->schedule.items;
	struct schedule_window *out =
		arena_array(d->arena, struct schedule_window, h->schedule.count * CRON_OPENINGS_MAX);

	for (size_t i = 0; i < h->schedule.count; i++)
		p->schedule_count += add_windows(&windows[i], out + p->schedule_count);
	p->schedule = out;
}

/* Two of slots, rate and latency give the third. */
static void build_workload(const struct workload_text *w, struct pool_spec *p)
{
	p->gpus_per_replica = w->gpus_per_replica;
	p->max_sequences = w->max_sequences;
	p->prefill_tokens_per_second = w->prefill_tokens_per_second;
	p->tokens_per_second = w->tokens_per_second;
	p->inter_token_latency_us = w->inter_token_latency_us;
	if (!is_given(w->node, "interTokenLatency") && w->tokens_per_second)
		p->inter_token_latency_us = w->max_sequences * PPM / w->tokens_per_second;
	if (!p->inter_token_latency_us)
		p->inter_token_latency_us = 1;
	if (!p->tokens_per_second)
		p->tokens_per_second = w->max_sequences * PPM / p->inter_token_latency_us;
	if (!p->tokens_per_second)
		p->tokens_per_second = 1;
}

static void build_lead_time(const struct lead_time_text *l, struct pool_spec *p)
{
	bool has_stage = false;

	for (int i = 0; i < STAGE_COUNT; i++) {
		p->stage[i] = quantiles_of(&l->stage[i]);
		has_stage = has_stage || l->stage[i].node;
	}
	if (l->total.node)
		p->lead_time = quantiles_of(&l->total);
	else if (!has_stage)
		p->lead_time = (struct quantiles){ 380 * SECOND, 650 * SECOND };
}

/* Of its groups the number alone. */
static struct pool_spec settle_pool(const struct draft *d, const struct warm_pool *w)
{
	const struct spec_text *s = &w->spec;
	struct pool_spec p = {
		.name = w->metadata.name,
		.namespace = w->metadata.namespace,
		.class = (enum pool_class)s->class,
		.mode = s->share.name && s->mode == MODE_ACT ? MODE_SHARE : (enum pool_mode)s->mode,
		.objective_wait = s->objective.queue_wait,
		.objective_late_ppm = PPM - s->objective.attainment_ppm,
		.violation_cost = s->violation_cost ? s->violation_cost : s->objective.violation_cost,
		.group_count = s->groups.count,
		.headroom_min = s->headroom.min,
		.headroom_max = s->headroom.max,
		.scale_down_after = s->scale_down.after,
		.lend_to = (unsigned)s->lend.to,
		.yield_within = s->lend.yield_within,
		.shrink_priority = s->shrink_priority,
		.budget_per_hour = s->budget.dollars_per_hour,
		.budget_name = s->budget.name,
		.share = s->share.name ? s->share.name : "",
		.share_level = s->share.level,
		.awake_gib = s->share.engine_gib,
		.asleep_gib = s->share.asleep_gib,
		.share_wake_within = s->share.wake_within,
		.is_stock = s->signals.engine == SOURCE_SHARE,
	};

	if (p.class == CLASS_ANY && p.scale_down_after == 0)
		p.scale_down_after = 10 * MINUTE; /* as Cluster Autoscaler's --scale-down-unneeded-time */
	build_workload(&s->workload, &p);
	build_lead_time(&s->lead_time, &p);
	build_schedule(d, &s->headroom, &p);
	return p;
}

static struct pool_spec build_pool(const struct draft *d, const struct warm_pool *w)
{
	struct pool_spec p = w->settled ? *w->settled : settle_pool(d, w);
	size_t *groups = arena_array(d->arena, size_t, p.group_count);

	for (size_t i = 0; i < p.group_count; i++)
		groups[i] = draft_group_index(d, draft_groups(&w->spec)[i].name);
	p.groups = groups;
	return p;
}

/* Decisions compare prices, also where nobody gave one. A price of 0 counts as none, unless another group of a pool
 * that has the group has one. */
static void settle_prices(struct group_spec *groups, bool *is_in_priced, struct pool_spec *pools, size_t pool_count)
{
	for (size_t i = 0; i < pool_count; i++) {
		struct pool_spec *p = &pools[i];

		p->is_unpriced = true;
		for (size_t k = 0; k < p->group_count; k++)
			p->is_unpriced = p->is_unpriced && !groups[p->groups[k]].price_per_hour;
		for (size_t k = 0; k < p->group_count; k++)
			is_in_priced[p->groups[k]] |= !p->is_unpriced;
	}
	for (size_t i = 0; i < pool_count; i++)
		for (size_t k = 0; pools[i].is_unpriced && k < pools[i].group_count; k++) {
			struct group_spec *g = &groups[pools[i].groups[k]];
			if (!is_in_priced[pools[i].groups[k]])
				g->price_per_hour = g->gpus_per_node * PPM;
		}
}

static struct fleet_spec build_fleet(const struct draft *d)
{
	struct group_spec *groups = arena_array(d->arena, struct group_spec, d->group_count);
	struct pool_spec *pools = arena_array(d->arena, struct pool_spec, d->pool_count);

	for (size_t i = 0; i < d->group_count; i++)
		groups[i] = build_group(d, &d->groups[i].merged);
	for (size_t i = 0; i < d->pool_count; i++)
		pools[i] = build_pool(d, &d->pools[i]);
	settle_prices(groups, arena_array(d->arena, bool, d->group_count), pools, d->pool_count);
	struct fleet_spec fleet = { groups, d->group_count, pools, d->pool_count, NULL };
	fleet.users = fleet_users(&fleet, d->arena);
	return fleet;
}

/* All files of a manifest, one after the other. */
struct reading {
	struct draft draft;
	struct arena scratch;
	struct buf text; /* as one stream of documents */
	size_t nodes, documents;
};

/* One finding for what was never meant to be a manifest, instead of one for each of its keys. */
static bool is_warm_pool(struct findings *f, const struct yaml_node *root)
{
	const struct yaml_node *kind = yaml_child(root, "kind");

	if (root->kind == YAML_MAP && !kind && !yaml_child(root, "apiVersion")) {
		schema_find(f, root, "a map without apiVersion and kind", "WarmPool documents",
			    "begin with apiVersion: preheat.dev/v1alpha1 and kind: WarmPool, or name another file");
		return false;
	}
	if (!kind || kind->kind != YAML_SCALAR || !strcmp(kind->text, "WarmPool"))
		return true;
	schema_find(f, kind, NULL, "WarmPool",
		    !strcmp(kind->text, "World")
			    ? "name the world file itself (simulate: --world FILE), and keep it out of the "
			      "folder of manifests"
			    : "keep other objects in other files, or correct the kind");
	return false;
}

static bool has_room(struct draft *d, const struct yaml_node *root)
{
	if (d->pool_count < POOLS_MAX)
		return true;
	schema_find(d->findings, root, "more than 5,000 pools", "at most 5,000", "run a controller per part");
	return false;
}

static void read_document(struct draft *d, const struct yaml_node *root)
{
	if (!is_warm_pool(d->findings, root))
		return;
	if (!has_room(d, root))
		return;
	d->pools = arena_grow(d->arena, d->pools, d->pool_count, &d->pool_room, sizeof *d->pools);
	schema_read(&warm_pool_table, root, &d->pools[d->pool_count++], d->arena, d->findings);
}

/* What kubectl get -o yaml makes of several; NULL for one object. */
static const struct yaml_node *items_of(const struct yaml_node *root)
{
	const struct yaml_node *kind = yaml_child(root, "kind"), *items = yaml_child(root, "items");
	bool is_list = kind && kind->kind == YAML_SCALAR &&
		       (!strcmp(kind->text, "List") || !strcmp(kind->text, "WarmPoolList"));

	return is_list && items && items->kind == YAML_LIST ? items : NULL;
}

static void read_objects(struct draft *d, const struct yaml_node *root)
{
	const struct yaml_node *items = items_of(root);

	if (!items)
		read_document(d, root);
	for (const struct yaml_node *n = items ? items->first : NULL; n; n = n->next)
		read_document(d, n);
}

static void find_in_file(struct reading *r, const char *name, const char *found, const char *allowed,
			 const char *remedy)
{
	findings_add(r->draft.findings,
		     &(struct finding){ .file = name, .found = found, .allowed = allowed, .remedy = remedy });
}

/* The stored text must be readable again in one piece. */
static void check_size(struct reading *r, const char *name)
{
	if (r->nodes > YAML_NODES_MAX || r->documents > YAML_DOCUMENTS_MAX || r->text.len > YAML_BYTES_MAX)
		find_in_file(r, name, "too much in all files together", "16 MiB, 500000 values, 10000 documents",
			     "run a controller per part");
}

static void read_documents(struct reading *r, const char *name, const struct yaml_documents *docs)
{
	size_t filled = 0;

	for (size_t i = 0; i < docs->count; i++) {
		const struct yaml_node *items = docs->roots[i] ? items_of(docs->roots[i]) : NULL;
		if (!docs->roots[i] || (items && !items->count))
			continue;
		filled++;
		read_objects(&r->draft, docs->roots[i]);
	}
	if (!filled)
		find_in_file(r, name, "nothing in it", "at least one WarmPool",
			     "see docs/manifest.md, or examples/first-try/pool.yaml");
	r->nodes += docs->nodes;
	r->documents += docs->count;
	check_size(r, name);
}

static void append_text(struct reading *r, const char *text, size_t len)
{
	if (r->text.len)
		buf_text(&r->text, r->text.text[r->text.len - 1] == '\n' ? "---\n" : "\n---\n");
	buf_append(&r->text, text, len);
}

static void read_text(struct reading *r, const char *name, const char *text, size_t len)
{
	struct yaml_documents docs;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* a byte order mark */
		text += 3;
		len -= 3;
	}
	append_text(r, text, len);
	if (yaml_parse(name, text, len, r->draft.arena, &docs, r->draft.findings))
		read_documents(r, name, &docs);
}

static bool read_file(struct reading *r, const char *path, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!file_read(path, YAML_BYTES_MAX, &text, e))
		return false;
	read_text(r, strcmp(path, "-") ? path : "standard input", text.text, text.len);
	return true;
}

static bool is_yaml(const char *name)
{
	size_t len = strlen(name);

	return *name != '.' &&
	       ((len > 5 && !strcmp(name + len - 5, ".yaml")) || (len > 4 && !strcmp(name + len - 4, ".yml")));
}

static bool read_path(struct reading *r, const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct folder folder;

	if (!folder_list(path, is_yaml, &a, &folder, e))
		return false;
	if (!folder.is_folder)
		return read_file(r, path, e);
	if (!folder.count)
		return error_set(e, ERROR_INVALID, "%s: no *.yaml or *.yml file in this folder", path);
	for (size_t i = 0; i < folder.count; i++)
		if (!read_file(r, folder.paths[i], e))
			return false;
	return true;
}

static void reading_start(struct reading *r, struct arena *a, struct findings *f)
{
	*r = (struct reading){ .draft = { .arena = a, .scratch = &r->scratch, .findings = f } };
}

static void reading_release(struct reading *r)
{
	buf_release(&r->text);
	arena_release(&r->scratch);
}

static bool reading_finish(struct reading *r, struct manifest *out, struct error *e)
{
	struct draft *d = &r->draft;

	merge_groups(d);
	draft_check(d);
	findings_sort(d->findings);
	if (d->findings->count)
		return findings_error(d->findings, e);
	struct group_text *groups = arena_array(d->arena, struct group_text, d->group_count);
	for (size_t i = 0; i < d->group_count; i++)
		groups[i] = d->groups[i].merged;
	*out = (struct manifest){ .fleet = build_fleet(d),
				  .pools = d->pools,
				  .groups = groups,
				  .text = arena_strdup(d->arena, r->text.text, r->text.len),
				  .text_len = r->text.len };
	return true;
}

/* What cannot be read is told beside what is wrong with the rest; the error keeps the first. */
static void find_unreadable(struct reading *r, const char *path, const struct error *why, struct error *first)
{
	struct findings *f = r->draft.findings;
	size_t len = strlen(path);
	bool names_path = !strncmp(why->message, path, len) && !strncmp(why->message + len, ": ", 2);

	find_in_file(r, path, names_path ? why->message + len + 2 : why->message, "a manifest that can be read",
		     "correct the name, or give the file to this user");
	if (!f->is_incomplete)
		*first = *why;
	f->is_incomplete = true;
}

bool manifest_load(const char *const *paths, size_t count, struct arena *a, struct manifest *out, struct findings *f,
		   struct error *e)
{
	CLEANUP(reading_release) struct reading r;
	struct error unreadable = { 0 };

	reading_start(&r, a, f);
	if (!count)
		return error_set(e, ERROR_INVALID, "no manifest named; name a file, a folder or - for standard input");
	for (size_t i = 0; i < count; i++) {
		struct error why = { 0 };

		if (!read_path(&r, paths[i], &why))
			find_unreadable(&r, paths[i], &why, &unreadable);
	}
	if (reading_finish(&r, out, e))
		return true;
	if (f->is_incomplete)
		*e = unreadable;
	return false;
}

bool manifest_load_text(const char *name, const char *text, struct arena *a, struct manifest *out, struct findings *f,
			struct error *e)
{
	CLEANUP(reading_release) struct reading r;

	reading_start(&r, a, f);
	read_text(&r, name, text, strlen(text));
	return reading_finish(&r, out, e);
}

struct manifest_part *manifest_part_read(const char *name, const char *text, struct findings *f, struct error *e)
{
	struct manifest_part *p = xnew(struct manifest_part);
	CLEANUP(reading_release) struct reading r;
	struct draft *d = &r.draft;

	*p = (struct manifest_part){ .holders = 1 };
	reading_start(&r, &p->arena, f);
	d->pools = arena_new(&p->arena, struct warm_pool);
	d->pool_room = 1; /* mostly */
	p->name = arena_strdup(&p->arena, name, strlen(name));
	read_text(&r, p->name, text, strlen(text));
	findings_sort(f);
	if (f->count) {
		manifest_part_let_go(p);
		findings_error(f, e);
		return NULL;
	}
	p->text = arena_strdup(&p->arena, r.text.text, r.text.len);
	p->text_len = r.text.len;
	p->pools = d->pools;
	p->pool_count = d->pool_count;
	p->nodes = r.nodes;
	p->documents = r.documents;
	return p;
}

struct manifest_part *manifest_part_hold(struct manifest_part *p)
{
	p->holders++;
	return p;
}

void manifest_part_let_go(struct manifest_part *p)
{
	if (!p || --p->holders)
		return;
	arena_release(&p->arena);
	free(p);
}

static void let_go_of_part(void *part)
{
	manifest_part_let_go(part);
}

static void add_part(struct reading *r, struct manifest_part *p)
{
	struct draft *d = &r->draft;

	arena_on_release(d->arena, let_go_of_part, manifest_part_hold(p));
	append_text(r, p->text, p->text_len);
	for (size_t i = 0; i < p->pool_count && has_room(d, p->pools[i].node); i++)
		d->pools[d->pool_count++] = p->pools[i];
	r->nodes += p->nodes;
	r->documents += p->documents;
	check_size(r, p->name);
}

static void settle_group(struct group_text *own, size_t index, const struct draft *d, const struct fleet_spec *fleet,
			 struct arena *a)
{
	struct settled_group *settled = arena_new(a, struct settled_group);
	const char *settings = fleet->groups[index].settings;

	*settled =
		(struct settled_group){ d->groups[index].merged.provider, arena_strdup(a, settings, strlen(settings)),
					is_given(own->node, "pricePerHour") };
	own->settled = settled;
}

/* Its texts are the part's already. */
static const struct pool_spec *keep_pool(const struct pool_spec *p, struct arena *a)
{
	struct pool_spec *kept = arena_new(a, struct pool_spec);
	struct schedule_window *windows = arena_array(a, struct schedule_window, p->schedule_count);

	*kept = *p;
	kept->groups = NULL;
	if (p->schedule_count)
		memcpy(windows, p->schedule, p->schedule_count * sizeof *windows);
	kept->schedule = windows;
	return kept;
}

/* What was found to be right is not asked again. The part's pools are those from `first` on. */
static void remember(const struct draft *d, struct manifest_part *p, size_t first, const struct fleet_spec *fleet)
{
	const struct warm_pool *resolved = &d->pools[first];

	for (size_t i = 0; i < p->pool_count; i++) {
		if (!p->pools[i].is_sound) {
			p->pools[i] = resolved[i];
			p->pools[i].settled = keep_pool(&fleet->pools[first + i], &p->arena);
		}
		p->pools[i].is_sound = true;
		for (size_t k = 0; k < resolved[i].spec.groups.count; k++) {
			struct group_text *own = (struct group_text *)(uintptr_t)&draft_groups(&resolved[i].spec)[k];
			size_t index = own->settled ? d->group_count : draft_group_index(d, own->name);
			if (index < d->group_count && d->groups[index].naming_count == 1)
				settle_group(own, index, d, fleet, &p->arena);
		}
	}
}

bool manifest_load_parts(struct manifest_part *const *parts, size_t count, struct arena *a, struct manifest *out,
			 struct findings *f, struct error *e)
{
	CLEANUP(reading_release) struct reading r;
	size_t pools = 0;

	reading_start(&r, a, f);
	for (size_t i = 0; i < count; i++)
		pools += parts[i]->pool_count;
	r.draft.pools = arena_array(a, struct warm_pool, pools + 1);
	for (size_t i = 0; i < count; i++)
		add_part(&r, parts[i]);
	if (!reading_finish(&r, out, e))
		return false;
	for (size_t i = 0, pool = 0; i < count; pool += parts[i++]->pool_count)
		remember(&r.draft, parts[i], pool, &out->fleet);
	return true;
}

bool manifest_load_roots(const struct yaml_node *const *roots, size_t count, struct arena *a, struct manifest *out,
			 struct findings *f, struct error *e)
{
	CLEANUP(reading_release) struct reading r;

	reading_start(&r, a, f);
	buf_text(&r.text, "");
	for (size_t i = 0; i < count; i++)
		read_document(&r.draft, roots[i]);
	return reading_finish(&r, out, e);
}

bool manifest_group_gives(const struct manifest *m, size_t group, const char *key)
{
	for (size_t p = 0; p < m->fleet.pool_count; p++) {
		const struct group_text *named = draft_groups(&m->pools[p].spec);
		for (size_t i = 0; i < m->fleet.pools[p].group_count; i++)
			if (m->fleet.pools[p].groups[i] == group && is_given(named[i].node, key))
				return true;
	}
	return false;
}

struct schema_label manifest_group_label(const struct manifest *m, size_t group)
{
	const struct group_text *g = &m->groups[group];

	return provider_node_label((enum provider_choice)g->provider, &g->blocks[g->provider],
				   m->fleet.groups[group].name);
}
