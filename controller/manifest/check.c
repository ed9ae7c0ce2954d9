#include "controller/manifest/check.h"

#include "base/fnv1a.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/resource.h"
#include "controller/manifest/cron.h"
#include "controller/manifest/group_nodes.h"

#include <string.h>

enum { DOLLAR_DIGITS = 6, DOLLAR = 1000000 };

static bool group_gives(const struct group_draft *g, const char *key)
{
	for (size_t i = 0; i < g->naming_count; i++)
		if (is_given(g->namings[i]->node, key))
			return true;
	return false;
}

static void find_above(struct draft *d, const struct yaml_node *map, const char *key, const char *bound, int64_t value,
		       const char *remedy)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	buf_printf(&allowed, "at most %s, which is %lld", bound, (long long)value);
	schema_find_key(d->findings, map, key, NULL, allowed.text, remedy);
}

/* 0 < p50 <= p95 */
static void check_quantiles(struct draft *d, const struct quantiles_text *q)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	if (!q->node || !q->p95 || !is_given(q->node, "p50"))
		return;
	buf_text(&allowed, "above 0 and at most p95, which is ");
	duration_format(q->p95, &allowed);
	if (q->p50 > q->p95 || !q->p50)
		schema_find_key(d->findings, q->node, "p50", NULL, allowed.text, "swap or correct them");
}

enum { UTILIZATION_PPM = 500000 }; /* scaleDown.utilization, unless given */

static void refuse_with_any(struct draft *d, const struct yaml_node *map, const char *key)
{
	CLEANUP(buf_release) struct buf found = { 0 };

	buf_printf(&found, "%s with class any", key);
	schema_find_key(d->findings, map, key, found.text,
			"nodeGroups, scaleDown, leadTime, budget, shrinkPriority, costLabels and mode beside it",
			"delete it: what pods ask for and wait for is all that counts");
}

/* The API server fills in defaults: only what differs from them was meant. */
static void check_any(struct draft *d, const struct spec_text *s)
{
	static const char *const own[] = { "objective", "violationCost", "lend", "share" };
	static const char *const of_workload[] = { "selector",	   "scaleTargetRef",  "warm",
						   "maxSequences", "tokensPerSecond", "interTokenLatency" };
	static const char *const of_signals[] = {
		"metrics", "podSelector", "scrape", "prometheus", "queue", "devices"
	};
	enum { OWN = sizeof own / sizeof *own, OF_WORKLOAD = sizeof of_workload / sizeof *of_workload };
	enum { OF_SIGNALS = sizeof of_signals / sizeof *of_signals };
	const struct workload_text *w = &s->workload;

	for (int i = 0; i < OWN; i++)
		if (is_given(s->node, own[i]))
			refuse_with_any(d, s->node, own[i]);
	for (int i = 0; i < OF_WORKLOAD; i++)
		if (is_given(w->node, of_workload[i]))
			refuse_with_any(d, w->node, of_workload[i]);
	for (int i = 0; i < OF_SIGNALS; i++)
		if (is_given(s->signals.node, of_signals[i]))
			refuse_with_any(d, s->signals.node, of_signals[i]);
	if (w->gpus_per_replica != 1)
		refuse_with_any(d, w->node, "gpusPerReplica");
	if (strcmp(w->gpu_resource, "nvidia.com/gpu") != 0)
		refuse_with_any(d, w->node, "gpuResource");
	if (s->headroom.min || s->headroom.max || s->headroom.schedule.count)
		refuse_with_any(d, s->node, "headroom");
}

static void check_objective(struct draft *d, const struct spec_text *s)
{
	const struct objective_text *o = &s->objective;
	bool has_share = is_given(o->node, "attainment"), has_wait = is_given(o->node, "queueWait");
	bool has_cost = is_given(o->node, "violationCost"), has_outer_cost = is_given(s->node, "violationCost");
	static const char one_of[] = "{ queueWait: 2s, attainment: 99% }, or violationCost: 0.01 in its place";

	if (!is_given(s->node, "objective") && !has_outer_cost)
		schema_find_key(d->findings, s->node, "objective", NULL, one_of, "say what the pool must keep");
	if (o->node && !has_share && !has_cost && !has_outer_cost)
		schema_find_key(d->findings, o->node, "attainment", NULL, "a share, like 99%, or violationCost",
				"add it");
	if (has_share && !has_wait)
		schema_find_key(d->findings, o->node, "queueWait", NULL, "a duration, like 2s",
				"say which wait the share is about");
	if (has_share && (has_cost || has_outer_cost))
		schema_find_key(d->findings, has_cost ? o->node : s->node, "violationCost",
				"violationCost beside attainment", "one of the two", "delete one");
	if (has_cost && has_outer_cost)
		schema_find_key(d->findings, s->node, "violationCost", "violationCost at two places", "one of them",
				"delete one");
}

static void check_rates(struct draft *d, const struct workload_text *w)
{
	/* Half as much again is more than rounding and drafts of tokens explain. */
	if (!is_given(w->node, "maxSequences") || !is_given(w->node, "tokensPerSecond") ||
	    !is_given(w->node, "interTokenLatency"))
		return;
	double most = (double)w->max_sequences * 1e6 / (double)w->inter_token_latency_us;
	if ((double)w->tokens_per_second <= 1.5 * most)
		return;
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_printf(&allowed, "at most about %.0f: maxSequences / interTokenLatency", most);
	schema_find_key(d->findings, w->node, "tokensPerSecond", NULL, allowed.text,
			"correct one of the three, or leave one out");
}

static void resolve_warmth(struct draft *d, struct workload_text *w)
{
	static const char *const found[] = { [WARM_REPLICAS] = "replicas without scaleTargetRef",
					     [WARM_PLACEHOLDERS] = "placeholders without scaleTargetRef",
					     [WARM_BUFFER] = "buffer without scaleTargetRef" };
	static const char *const remedies[] = {
		[WARM_REPLICAS] = "name what is to be scaled",
		[WARM_PLACEHOLDERS] = "name what runs the serving pods: its image is kept warm",
		[WARM_BUFFER] = "name what runs the serving pods: room is kept for more of them",
	};

	if (!is_given(w->node, "warm"))
		w->warm = w->target.name ? WARM_REPLICAS : WARM_METRIC;
	else if (w->warm != WARM_METRIC && !w->target.node)
		schema_find_key(d->findings, w->node, "warm", found[w->warm], "metric, or a scaleTargetRef beside it",
				remedies[w->warm]);
}

static void check_prefetch(struct draft *d, const struct workload_text *w)
{
	bool has_template = w->target.name && !strcmp(w->target.api_version, "apps/v1") &&
			    (!strcmp(w->target.kind, "Deployment") || !strcmp(w->target.kind, "StatefulSet"));

	if (w->prefetch == PREFETCH_IMAGE && !has_template)
		schema_find_key(d->findings, w->node, "prefetch", "image without a Deployment or StatefulSet",
				"none, or a scaleTargetRef of apps/v1, kind Deployment or StatefulSet",
				"name what runs the serving pods: its images are pulled");
}

static void refuse_source(struct draft *d, const struct signals_text *s, const char *key, const char *engine)
{
	CLEANUP(buf_release) struct buf found = { 0 };

	if (!is_given(s->node, key))
		return;
	buf_printf(&found, "%s with engine %s", key, engine);
	schema_find_key(d->findings, s->node, key, found.text,
			s->engine == SOURCE_PODS ? "no source: the pods are counted"
						 : "no source: the pools of the share are asked",
			"delete it, or name the model server as engine");
}

/* Pods that are the work, and slots: one sequence each, and nothing that could be asked. */
static void resolve_unread(struct draft *d, struct spec_text *s)
{
	struct workload_text *w = &s->workload;

	if (s->class == CLASS_ANY)
		s->signals.engine = SOURCE_PODS;
	if (source_is_read(s->signals.engine))
		return;
	bool is_stock = s->signals.engine == SOURCE_SHARE;
	const char *engine = is_stock ? "share" : "pods";
	if (!is_given(w->node, "maxSequences"))
		w->max_sequences = 1;
	else if (w->max_sequences != 1)
		schema_find_key(d->findings, w->node, "maxSequences", NULL,
				is_stock ? "1 with signals.engine share" : "1 with signals.engine pods",
				is_stock ? "delete it, or name the model server as engine: a slot is one piece"
					 : "delete it, or name the model server as engine: a pod is one piece of work");
	refuse_source(d, &s->signals, "scrape", engine);
	refuse_source(d, &s->signals, "prometheus", engine);
	if (!is_stock)
		return;
	refuse_source(d, &s->signals, "podSelector", engine);
	refuse_source(d, &s->signals, "queue", engine);
	if (w->gpus_per_replica != 1)
		schema_find_key(d->findings, w->node, "gpusPerReplica", NULL, "1 with signals.engine share",
				"delete it: a slot is a node of one GPU");
	for (size_t i = 0; i < s->groups.count; i++)
		if (is_given(draft_groups(s)[i].node, "gpusPerNode") && draft_groups(s)[i].gpus_per_node != 1)
			schema_find_key(d->findings, draft_groups(s)[i].node, "gpusPerNode", NULL,
					"1 with signals.engine share", "name a node group of machines with one GPU");
	if (is_given(s->node, "lend"))
		schema_find_key(d->findings, s->node, "lend", "lend with signals.engine share",
				"none: engines of the share stay on a node that is lent", "delete it");
	if (s->class == CLASS_TRAINING)
		schema_find_key(d->findings, s->node, "class", "training with signals.engine share",
				"interactive, batch or embedding: what the pools of the share are",
				"correct the class, or the engine");
}

static void check_workload(struct draft *d, struct spec_text *s)
{
	if (!strchr(s->workload.gpu_resource, '/') || !form_label_key.fits(s->workload.gpu_resource))
		schema_find_key(d->findings, s->workload.node, "gpuResource", NULL,
				"an extended resource as nodes offer it, like nvidia.com/gpu",
				"write DOMAIN/NAME; kubectl describe node shows it under Allocatable");
	resolve_warmth(d, &s->workload);
	resolve_unread(d, s);
}

/* All that a pool may ask over the network, as it says who we are and whom we trust. */
enum { SERVERS = 4 };

struct server_text {
	const struct auth_text *auth;
	const struct tls_text *tls;
};

static void servers_of(const struct signals_text *s, struct server_text out[SERVERS])
{
	out[0] = (struct server_text){ &s->scrape.auth, &s->scrape.tls };
	out[1] = (struct server_text){ &s->prometheus.auth, &s->prometheus.tls };
	out[2] = (struct server_text){ &s->queue.auth, &s->queue.tls };
	out[3] = (struct server_text){ &s->devices.auth, &s->devices.tls };
}

static void check_auth(struct draft *d, const struct auth_text *a, const struct tls_text *t)
{
	if (a->bearer_token_file && a->basic.node)
		schema_find_key(d->findings, a->node, "basic", "basic beside bearerTokenFile", "one of the two",
				"delete one");
	if (t->node && is_given(t->node, "certFile") != is_given(t->node, "keyFile"))
		schema_find_key(d->findings, t->node, is_given(t->node, "certFile") ? "keyFile" : "certFile", NULL,
				"a path: certFile and keyFile go together", "add it, or delete the other");
}

static bool is_label_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return name[0] && strchr(letters, name[0]) &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")];
}

/* Prometheus knows a pod's labels under other names than Kubernetes. */
static void check_labels(struct draft *d, const struct yaml_node *map, const struct schema_labels *l)
{
	const struct yaml_node *labels = map ? yaml_child(map, "labels") : NULL;

	for (size_t i = 0; i < l->count; i++)
		if (!is_label_name(l->items[i].key))
			schema_find_key(
				d->findings, labels, l->items[i].key, l->items[i].key,
				"a label of Prometheus: letters, digits and _, like job or app_kubernetes_io_name",
				"look at the series in Prometheus; other characters have become _ there");
}

static void check_one_kind(struct draft *d, const struct queue_text *q)
{
	static const char *const kinds[] = { "promql", "endpointPicker", "json", "activator" };
	const char *last = NULL;
	int count = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (is_given(q->node, kinds[i])) {
			last = kinds[i];
			count++;
		}
	if (!count)
		schema_find_key(d->findings, q->node, "promql", NULL, "promql, endpointPicker, json or activator",
				"say where the queue's length is told");
	if (count > 1)
		schema_find_key(d->findings, q->node, last,
				"more than one of promql, endpointPicker, json and activator", "one of them",
				"delete the others; promql can add several queues up");
}

static void check_queue(struct draft *d, const struct signals_text *s)
{
	const struct queue_text *q = &s->queue;
	bool asks_prometheus = is_given(q->node, "promql") ||
			       (is_given(q->node, "endpointPicker") && !is_given(q->picker.node, "url"));

	if (!q->node)
		return;
	check_one_kind(d, q);
	if (asks_prometheus && !is_given(q->node, "url") && !s->prometheus.url)
		schema_find_key(d->findings, q->node, "url", NULL, "the URL of a Prometheus server",
				is_given(q->node, "promql") ? "add it, or signals.prometheus"
							    : "add it, or the picker's own url");
	if (!asks_prometheus && is_given(q->node, "url"))
		schema_find_key(d->findings, q->node, "url", "url beside another one",
				"the url within json or "
				"endpointPicker",
				"delete it");
	if (q->activator.service && q->counts != QUEUE_COUNTS_WAITING)
		schema_find_key(d->findings, q->node, "counts", "counts: unfinished beside activator", "waiting",
				"delete it: only what waits is held there");
	struct error e;
	if (q->json.path && !json_number_check(q->json.path, &e))
		schema_find_key(d->findings, q->json.node, "path", NULL,
				"dotted keys, like queues[0].messages or queues[].messages, or a JSON pointer, like "
				"/queues/0/messages",
				e.message);
}

static void check_devices(struct draft *d, const struct signals_text *s)
{
	const struct devices_text *v = &s->devices;

	if (!v->node)
		return;
	if (!is_given(v->node, "url") && !s->prometheus.url)
		schema_find_key(d->findings, v->node, "url", NULL, "the URL of a Prometheus server",
				"add it, or signals.prometheus");
	check_labels(d, v->node, &v->labels);
}

static void check_signals(struct draft *d, const struct signals_text *s)
{
	struct server_text servers[SERVERS];

	servers_of(s, servers);
	if (s->scrape.node && s->prometheus.node)
		schema_find_key(d->findings, s->node, "prometheus", "prometheus beside scrape", "one of the two",
				"delete one");
	if ((s->engine == SOURCE_CUSTOM) != (s->metrics.node != NULL))
		schema_find_key(d->findings, s->node, "metrics",
				s->metrics.node ? "metrics with an engine that has a table of its own" : NULL,
				s->metrics.node ? "metrics with engine: custom"
						: "a map of the engine's names, with engine custom",
				s->metrics.node ? "delete it, or write engine: custom"
						: "add metrics: { running: NAME, waiting: NAME }, or name the engine");
	if (s->scrape.node && s->scrape.tls.node && s->scrape.scheme != SCHEME_HTTPS)
		schema_find_key(d->findings, s->scrape.node, "tls", "tls with scheme http", "tls with scheme https",
				"write scheme: https, or delete tls");
	for (int i = 0; i < SERVERS; i++)
		check_auth(d, servers[i].auth, servers[i].tls);
	check_labels(d, s->prometheus.node, &s->prometheus.labels);
	check_devices(d, s);
	check_queue(d, s);
}

static void check_costs(struct draft *d, const struct cost_labels_text *c)
{
	for (size_t i = 0; i < cost_labels_table.count; i++) {
		const struct schema_row *row = &cost_labels_table.rows[i];
		const char *key = *(const char *const *)(const void *)((const char *)c + row->offset);

		if (!form_label_key.fits(key))
			schema_find_key(d->findings, c->node, row->key, NULL,
					"the key of a label, like product or example.com/cost-center",
					"write the key as it stands under metadata.labels of the pods");
	}
}

static void check_lead_time(struct draft *d, const struct lead_time_text *l)
{
	bool has_stage = false;

	check_quantiles(d, &l->total);
	for (int i = 0; i < STAGE_COUNT; i++) {
		check_quantiles(d, &l->stage[i]);
		has_stage = has_stage || l->stage[i].node;
	}
	if (l->total.node && has_stage)
		schema_find_key(d->findings, l->node, "total", "total beside stages", "total, or stages",
				"delete total, or all stages");
	if (l->total.node && is_given(l->total.node, "p95") && !l->total.p95)
		schema_find_key(d->findings, l->total.node, "p95", "a lead time of 0", "more than 0",
				"give what was measured, or leave leadTime out");
}

static void check_window(struct draft *d, const struct window_text *w)
{
	struct cron cron;
	bool has_cron = is_given(w->node, "cron"), has_for = is_given(w->node, "for");
	static const char *const clock[] = { "days", "from", "to" };

	if (w->from == DAY / MINUTE)
		schema_find_key(d->findings, w->node, "from", NULL, "a time of day before \"24:00\"",
				"write \"00:00\" and the next day");
	if (!has_cron) {
		for (int i = 1; i < 3; i++)
			if (w->node && !is_given(w->node, clock[i]))
				schema_find_key(d->findings, w->node, clock[i], NULL,
						"a time of day like \"08:00\", or cron and for", "add it");
		if (has_for)
			schema_find_key(d->findings, w->node, "for", "for without cron", "for beside cron",
					"write to: and the time, or add cron");
		return;
	}
	for (int i = 0; i < 3; i++)
		if (is_given(w->node, clock[i]))
			schema_find_key(d->findings, w->node, clock[i], "days, from or to beside cron",
					"one of the two forms", "delete it, or cron");
	if (!has_for)
		schema_find_key(d->findings, w->node, "for", NULL, "a duration from 1m to 1d, like 11h",
				"say how long the window stays open");
	if (w->cron && !cron_parse(w->cron, &cron))
		schema_find_key(d->findings, w->node, "cron", NULL,
				"\"MINUTE HOUR * * WEEKDAYS\" with at most 48 openings a day, like \"0 8 * * mon-fri\"",
				"day of month and month must be *; write steps as lists: 0,30");
	if (w->duration % MINUTE)
		schema_find_key(d->findings, w->node, "for", NULL, "whole minutes",
				"round it: a window opens and closes on the minute");
}

static void check_headroom(struct draft *d, const struct headroom_text *h)
{
	const struct window_text *windows = h->schedule.items;

	if (h->max && h->min > h->max)
		find_above(d, h->node, "min", "headroom.max", h->max, "raise max or lower min");
	for (size_t i = 0; i < h->schedule.count; i++) {
		check_window(d, &windows[i]);
		if (h->max && windows[i].min > h->max)
			find_above(d, windows[i].node, "min", "headroom.max", h->max,
				   "raise headroom.max or lower min");
	}
}

static void check_lending(struct draft *d, const struct spec_text *s)
{
	if (s->lend.to >> s->class & 1)
		schema_find_key(d->findings, s->lend.node, "to", "the pool's own class", "other classes",
				"delete it from the list; pools of one class share node groups already");
}

/* The engines, each followed by the levels of its calls. */
#define ENGINE(id, name, image, slots) { SOURCE_##id, 0 },
#define METRIC(...)
#define SLEEP_STEP(move, level, path, body) { -1, level },
static const struct {
	int engine, level;
} sleeps[] = {
#include "signals/engines/all.def"
};
#undef ENGINE
#undef METRIC

static bool engine_sleeps(int64_t engine, int64_t level)
{
	bool is_here = false;

	for (size_t i = 0; i < sizeof sleeps / sizeof *sleeps; i++) {
		if (sleeps[i].engine >= 0)
			is_here = sleeps[i].engine == engine;
		else if (is_here && sleeps[i].level == level)
			return true;
	}
	return false;
}

static void check_share(struct draft *d, const struct spec_text *s)
{
	const struct share_text *h = &s->share;

	if (!h->node)
		return;
	if (s->signals.engine == SOURCE_SHARE)
		schema_find_key(d->findings, s->node, "share", "share with signals.engine share",
				"one of the two: the stock of a share is in none itself", "delete one");
	else if (!engine_sleeps(s->signals.engine, h->level))
		schema_find_key(d->findings, h->node, "level", "a level on which the engine does not sleep",
				"an engine that sleeps on that level; docs/signals.md lists them",
				"correct signals.engine or the level, or take the pool out of the share");
	if (s->workload.target.node)
		schema_find_key(d->findings, s->workload.node, "scaleTargetRef", "scaleTargetRef of a pool in a share",
				"none: the engines of a share stay as they were deployed",
				"delete it, or take the pool out of the share");
	if (h->engine_gib && h->asleep_gib > h->engine_gib)
		find_above(d, h->node, "sleepingMemoryGiB", "engineMemoryGiB", h->engine_gib,
			   "raise the one or lower the other");
}

static void check_pool(struct draft *d, const struct spec_text *s)
{
	if (!s->node)
		return;
	if (s->class == CLASS_ANY)
		check_any(d, s);
	else
		check_objective(d, s);
	if (s->class != CLASS_ANY && s->scale_down.utilization_ppm != UTILIZATION_PPM)
		schema_find_key(d->findings, s->scale_down.node, "utilization", "utilization without class any",
				"after alone: demand decides how many nodes there are", "delete it");
	check_rates(d, &s->workload);
	check_prefetch(d, &s->workload);
	check_signals(d, &s->signals);
	check_costs(d, &s->cost_labels);
	check_lead_time(d, &s->lead_time);
	check_headroom(d, &s->headroom);
	check_lending(d, s);
	check_share(d, s);
}

/* Pools that say the same, in their order: an open hash by what they say. */
struct alike {
	const char **texts; /* slots of them, a power of two; NULL: free */
	size_t *firsts, *lasts, slots;
	size_t *next; /* of each pool; SIZE_MAX: none */
};

static struct alike alike_make(const struct draft *d, struct arena *a)
{
	struct alike x = { .slots = 2 };

	while (x.slots < 2 * d->pool_count)
		x.slots *= 2;
	x.texts = arena_array(a, const char *, x.slots);
	x.firsts = arena_array(a, size_t, x.slots);
	x.lasts = arena_array(a, size_t, x.slots);
	x.next = arena_array(a, size_t, d->pool_count + 1);
	return x;
}

/* The first pool that says so: this one, where none did before. The text must stay. */
static size_t first_alike(struct alike *x, size_t pool, const char *text)
{
	size_t i = fnv1a_text(FNV1A_START, text) & (x->slots - 1);

	while (x->texts[i] && strcmp(x->texts[i], text) != 0)
		i = (i + 1) & (x->slots - 1);
	if (x->texts[i])
		x->next[x->lasts[i]] = pool;
	else
		x->firsts[i] = pool;
	x->texts[i] = text;
	x->lasts[i] = pool;
	x->next[pool] = SIZE_MAX;
	return x->firsts[i];
}

/* What must be one pool's alone. */
struct claims {
	struct arena *arena;
	struct alike names, targets, services, engines;
};

static void check_name(struct draft *d, size_t pool, struct claims *c)
{
	const struct metadata_text *m = &d->pools[pool].metadata;
	size_t first = m->name ? first_alike(&c->names, pool, m->name) : pool;

	if (first == pool)
		return;
	const struct yaml_node *at = yaml_child(d->pools[first].metadata.node, "name");
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_printf(&allowed, "a name of its own; another pool has this one at %s:%zu:%zu", at->file, at->line,
		   at->column);
	schema_find_key(d->findings, m->node, "name", NULL, allowed.text,
			"rename one; traces and history tell pools apart by name alone");
}

/* The pool's own of that kind: none of the three may hold a slash. */
static const char *in_space(const struct draft *d, size_t pool, const char *kind, const char *name, struct arena *a)
{
	const char *space = d->pools[pool].metadata.namespace;
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%s/%s/%s", space ? space : "", kind, name);
	return arena_strdup(a, text.text, text.len);
}

static bool sets_replicas(const struct spec_text *p)
{
	return p->mode == MODE_ACT && p->workload.warm == WARM_REPLICAS && p->workload.target.kind &&
	       p->workload.target.name;
}

/* Two would undo each other's number. */
static void check_target(struct draft *d, size_t pool, struct claims *c)
{
	const struct spec_text *p = draft_spec(d, pool);
	const struct target_text *t = &p->workload.target;

	if (!sets_replicas(p))
		return;
	size_t first = first_alike(&c->targets, pool, in_space(d, pool, t->kind, t->name, c->arena));
	if (first == pool)
		return;
	const struct yaml_node *at = yaml_child(draft_spec(d, first)->workload.target.node, "name");
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_printf(&allowed, "a workload of its own; another pool sets the replicas of this one at %s:%zu:%zu",
		   at->file, at->line, at->column);
	schema_find_key(d->findings, t->node, "name", NULL, allowed.text,
			"let one pool scale it: delete the other, or set its mode: observe or workload.warm: metric");
}

/* Its Service can lead to one pool's requests only. */
static void check_activator(struct draft *d, size_t pool, struct claims *c)
{
	const struct activator_text *own = &draft_spec(d, pool)->signals.queue.activator;

	if (!own->service)
		return;
	size_t first = first_alike(&c->services, pool, in_space(d, pool, "Service", own->service, c->arena));
	if (first == pool)
		return;
	const struct yaml_node *at = yaml_child(draft_spec(d, first)->signals.queue.activator.node, "service");
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_printf(&allowed, "a Service of its own; another pool has this one at %s:%zu:%zu", at->file, at->line,
		   at->column);
	schema_find_key(d->findings, own->node, "service", NULL, allowed.text,
			"give each pool a Service: requests that are held are one pool's");
}

static int by_label_key(const void *left, const void *right)
{
	const struct schema_label *a = left, *b = right;

	return strcmp(a->key, b->key);
}

/* The pods that it selects, and the port in them. */
static void write_engines(const struct spec_text *s, struct arena *a, struct buf *out)
{
	const struct schema_labels *from = &s->workload.selector.match_labels;
	struct schema_label *labels = arena_array(a, struct schema_label, from->count);

	memcpy(labels, from->items, from->count * sizeof *labels);
	qsort(labels, from->count, sizeof *labels, by_label_key);
	buf_printf(out, "%s:%lld", s->share.name, (long long)s->signals.scrape.port);
	for (size_t i = 0; i < from->count; i++)
		buf_printf(out, ",%s=%s", labels[i].key, labels[i].value);
}

/* Pools of a share may have an engine each in the same pods: on one port there is one engine. */
static void check_engine(struct draft *d, size_t pool, struct claims *c)
{
	const struct spec_text *s = draft_spec(d, pool);
	CLEANUP(buf_release) struct buf engines = { 0 };

	if (!s->share.name || !s->workload.selector.match_labels.count)
		return;
	write_engines(s, c->arena, &engines);
	size_t first = first_alike(&c->engines, pool, in_space(d, pool, "engines", engines.text, c->arena));
	if (first == pool)
		return;
	bool has_port = yaml_child(s->signals.scrape.node, "port");
	const struct yaml_node *at = draft_spec(d, first)->share.node;
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_printf(&allowed,
		   "signals.scrape.port of its own; a pool of the share selects the same pods and has this one at "
		   "%s:%zu:%zu",
		   at->file, at->line, at->column);
	schema_find_key(d->findings, has_port ? s->signals.scrape.node : s->share.node, has_port ? "port" : "name",
			NULL, allowed.text, "give each pool the port of its engine, or select pods of its own");
}

/* A pod of no pool must be one pool's: whose it were is not to be guessed. */
static void check_only_any(struct draft *d, size_t pool)
{
	for (size_t i = 0; draft_spec(d, pool)->class == CLASS_ANY && i < pool; i++) {
		const struct yaml_node *at = draft_spec(d, i)->node;
		if (draft_spec(d, i)->class != CLASS_ANY || !at)
			continue;
		CLEANUP(buf_release) struct buf allowed = { 0 };
		buf_printf(&allowed, "one pool of class any; there is another at %s:%zu:%zu", at->file, at->line,
			   at->column);
		schema_find_key(d->findings, draft_spec(d, pool)->node, "class", NULL, allowed.text,
				"name the node groups of both in one: each pod gets the cheapest machine that fits it");
		return;
	}
}

static void check_pools(struct draft *d, struct arena *a)
{
	struct claims c = { a, alike_make(d, a), alike_make(d, a), alike_make(d, a), alike_make(d, a) };

	for (size_t i = 0; i < d->pool_count; i++) {
		if (!d->pools[i].is_sound) {
			check_workload(d, &d->pools[i].spec);
			check_pool(d, draft_spec(d, i));
		}
		check_name(d, i, &c);
		check_only_any(d, i);
		check_target(d, i, &c);
		check_activator(d, i, &c);
		check_engine(d, i, &c);
	}
}

static void require_block(struct draft *d, const struct group_draft *g, enum provider_choice p)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	if (provider_block(p)->is_trial || g->merged.blocks[p].node)
		return;
	schema_allowed(&(struct schema_row){ .type = SCHEMA_MAP, .table = &provider_block(p)->table }, &allowed);
	schema_find_key(d->findings, g->merged.node, provider_name(p), NULL, allowed.text,
			"add the block; check --print-reference shows its keys");
}

/* The provider is the one that is named, else that of the first block. */
static void resolve_provider(struct draft *d, struct group_draft *g)
{
	enum provider_choice own =
		group_gives(g, "provider") ? (enum provider_choice)g->merged.provider : PROVIDER_COUNT;

	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
		const struct yaml_node *block = g->merged.blocks[p].node;
		if (!block || own == p)
			continue;
		if (own == PROVIDER_COUNT) {
			own = p;
			continue;
		}
		CLEANUP(buf_release) struct buf allowed = { 0 };
		buf_printf(&allowed, "the block of provider %s only", provider_name(own));
		schema_find(d->findings, block, "settings of another provider", allowed.text,
			    "delete them, or change provider");
	}
	g->merged.provider = own == PROVIDER_COUNT ? PROVIDER_simulated : own;
	require_block(d, g, (enum provider_choice)g->merged.provider);
}

/* It has to pull the image, too. */
static void check_first_lead_time(struct draft *d, const struct standby_text *s)
{
	static const char *const keys[] = { "p50", "p95" };
	const millis first[] = { s->first_lead_time.p50, s->first_lead_time.p95 },
		     later[] = { s->lead_time.p50, s->lead_time.p95 };

	for (size_t i = 0; i < 2 && s->lead_time.node && s->first_lead_time.node; i++) {
		CLEANUP(buf_release) struct buf allowed = { 0 };
		if (first[i] >= later[i])
			continue;
		buf_printf(&allowed, "at least that of standby.leadTime, ");
		duration_format(later[i], &allowed);
		schema_find_key(d->findings, s->first_lead_time.node, keys[i], NULL, allowed.text,
				"a machine that never ran has to pull its image, too: swap or correct them");
	}
}

static void check_standby(struct draft *d, const struct group_draft *g)
{
	const struct standby_text *s = &g->merged.standby;

	if (!s->node)
		return;
	if (s->max > g->merged.max)
		find_above(d, s->node, "max", "max of the group", g->merged.max,
			   "raise the group's max or lower standby.max");
	if (s->max && group_gives(g, "pricePerHour") && !g->merged.price_per_hour)
		schema_find_key(d->findings, g->merged.node, "pricePerHour", "standby of a group without a price",
				"more than 0", "give the price: whether standby pays is a question of price");
	check_quantiles(d, &s->lead_time);
	check_quantiles(d, &s->first_lead_time);
	check_first_lead_time(d, s);
}

/* Extended resources or drivers of GPUs, and whole numbers of them. */
static void check_resources(struct draft *d, const struct group_text *g)
{
	const struct yaml_node *map = g->resources.count ? yaml_child(g->node, "resources") : NULL;

	for (size_t i = 0; map && i < g->resources.count; i++) {
		const struct schema_label *r = &g->resources.items[i];
		int64_t count = 0;
		if (!strchr(r->key, '/') && !device_is_driver(r->key))
			schema_find_key(
				d->findings, map, r->key, r->key,
				"an extended resource as nodes offer it, like nvidia.com/mig-1g.10gb, or a driver "
				"of GPUs by claim, like gpu.nvidia.com",
				"processors and memory are those of the instance type");
		else if (!whole_parse(r->value, strlen(r->value), &count) || count < 1 || count > 100000)
			schema_find_key(d->findings, map, r->key, NULL, "a whole number from 1 to 100000 in quotes",
					"say how many one node has");
	}
}

static void check_label(struct draft *d, const struct group_text *g, const struct schema_label *l,
			const struct schema_labels *implied)
{
	const struct yaml_node *map = yaml_child(g->node, "labels");

	if (!strcmp(l->key, "kubernetes.io/hostname"))
		schema_find_key(d->findings, map, l->key, l->key, "labels that all nodes of the group have",
				"delete it: each node has a name of its own");
	for (size_t i = 0; i < implied->count; i++) {
		CLEANUP(buf_release) struct buf allowed = { 0 };
		if (strcmp(implied->items[i].key, l->key) != 0 || !strcmp(implied->items[i].value, l->value))
			continue;
		buf_printf(&allowed, "%s, as the other keys of the group say", implied->items[i].value);
		schema_find_key(d->findings, map, l->key, NULL, allowed.text,
				"delete it, or correct zone, instanceType, capacityType or the provider's block");
	}
}

/* A taint that stays and goes is a contradiction. */
static void check_startup_taint(struct draft *d, const struct group_text *g, const struct taint_text *t)
{
	const struct taint_text *kept = g->taints.items;

	for (size_t i = 0; t->key && i < g->taints.count; i++) {
		CLEANUP(buf_release) struct buf found = { 0 };
		if (!kept[i].key || strcmp(kept[i].key, t->key) != 0 || kept[i].effect != t->effect)
			continue;
		buf_printf(&found, "%s:%s, which nodes keep by taints", t->key, taint_effects[t->effect]);
		schema_find(d->findings, t->node, found.text, "taints that go when the start is over",
			    "delete it in one of the two");
	}
}

/* What its nodes are like. */
static void check_nodes(struct draft *d, const struct group_text *g)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct schema_labels implied =
		g->labels.count ? group_implied_labels(g, &a) : (struct schema_labels){ 0 };
	const struct taint_text *startup = g->startup_taints.items;

	for (size_t i = 0; i < g->labels.count; i++)
		check_label(d, g, &g->labels.items[i], &implied);
	for (size_t i = 0; i < g->startup_taints.count; i++)
		check_startup_taint(d, g, &startup[i]);
}

static void check_group(struct draft *d, struct group_draft *g)
{
	check_resources(d, &g->merged);
	if (g->merged.min > g->merged.max)
		find_above(d, g->merged.node, "min", "max", g->merged.max,
			   group_gives(g, "max") ? "raise max or lower min" : "add max; it is 10 by default");
	if (g->merged.reserved_until && g->merged.capacity_type != CAPACITY_RESERVED)
		schema_find_key(d->findings, g->merged.node, "reservedUntil", "an end without a reservation",
				"beside capacityType: reserved", "set capacityType: reserved, or delete it");
	resolve_provider(d, g);
	check_nodes(d, &g->merged);
	check_standby(d, g);
	provider_block_check((enum provider_choice)g->merged.provider, &g->merged.blocks[g->merged.provider],
			     &(struct block_group){ g->merged.standby.node, g->merged.standby.max > 0,
						    (enum block_capacity)g->merged.capacity_type },
			     d->findings);
}

/* Of one pool: named twice, too small for a replica, priced and unpriced mixed. Returns the replicas that fit. */
static int64_t check_membership(struct draft *d, const struct spec_text *s)
{
	const struct group_text *groups = draft_groups(s);
	const struct group_draft *priced = NULL, *unpriced = NULL;
	int64_t room = 0;

	for (size_t i = 0; i < s->groups.count; i++) {
		if (!groups[i].name)
			continue;
		for (size_t k = 0; k < i; k++)
			if (groups[k].name && !strcmp(groups[k].name, groups[i].name))
				schema_find_key(d->findings, groups[i].node, "name", "the same group twice in one pool",
						"every group once", "delete one");
		const struct group_draft *g = &d->groups[draft_group_index(d, groups[i].name)];
		if (g->merged.gpus_per_node < s->workload.gpus_per_replica) {
			CLEANUP(buf_release) struct buf found = { 0 };
			buf_printf(&found, "nodes of %lld GPUs for replicas of %lld",
				   (long long)g->merged.gpus_per_node, (long long)s->workload.gpus_per_replica);
			schema_find_key(d->findings, groups[i].node, "gpusPerNode", found.text,
					"at least spec.workload.gpusPerReplica",
					"take larger machines, or correct one");
		}
		room += g->merged.max * (g->merged.gpus_per_node / s->workload.gpus_per_replica);
		bool is_priced = g->merged.settled ? g->merged.settled->is_priced : group_gives(g, "pricePerHour");
		*(is_priced ? &priced : &unpriced) = g;
	}
	if (priced && unpriced)
		schema_find_key(d->findings, unpriced->merged.node, "pricePerHour", NULL,
				"a price for all groups of a pool or for none", "add it; prices are compared");
	return room;
}

static void find_beyond(struct draft *d, const struct yaml_node *node, int64_t room)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	buf_printf(&allowed, "at most the %lld replicas that the pool's node groups can hold", (long long)room);
	schema_find_key(d->findings, node, "min", NULL, allowed.text, "raise max of its node groups, or lower this");
}

static void check_room(struct draft *d, const struct spec_text *s, int64_t room)
{
	const struct headroom_text *h = &s->headroom;
	const struct window_text *windows = h->schedule.items;

	if (h->node && h->min > room)
		find_beyond(d, h->node, room);
	for (size_t i = 0; i < h->schedule.count; i++)
		if (windows[i].node && windows[i].min > room)
			find_beyond(d, windows[i].node, room);
}

static void check_groups(struct draft *d)
{
	for (size_t i = 0; i < d->group_count; i++)
		if (d->groups[i].merged.settled)
			d->groups[i].merged.provider = d->groups[i].merged.settled->provider;
		else
			check_group(d, &d->groups[i]);
	for (size_t i = 0; i < d->pool_count; i++) {
		const struct spec_text *s = draft_spec(d, i);
		if (!s->groups.count)
			continue;
		check_room(d, s, check_membership(d, s));
	}
}

static bool has_budget(const struct spec_text *s)
{
	return s->budget.node && s->budget.dollars_per_hour;
}

/* Pools before this one that share its budget must name the same amount. */
static void check_agreement(struct draft *d, size_t first, const struct alike *budgets, size_t pool)
{
	const struct spec_text *s = draft_spec(d, pool);

	for (size_t i = first; i != pool; i = budgets->next[i]) {
		const struct spec_text *other = draft_spec(d, i);
		if (other->budget.dollars_per_hour == s->budget.dollars_per_hour)
			continue;
		const struct yaml_node *at = other->budget.node;
		CLEANUP(buf_release) struct buf allowed = { 0 };
		fixed_format(other->budget.dollars_per_hour, DOLLAR_DIGITS, &allowed);
		buf_printf(&allowed, ", as at %s:%zu:%zu under the same name", at->file, at->line, at->column);
		schema_find_key(d->findings, s->budget.node, "dollarsPerHour", NULL, allowed.text,
				"make both equal, or name another budget");
		return;
	}
}

/* What a budget pays in any case, and the cheapest node it could buy; without prices in GPU hours, as decisions do. */
struct bill {
	int64_t least, cheapest;
};

static bool has_price(const struct draft *d, const struct spec_text *s)
{
	bool has = false;

	for (size_t k = 0; k < s->groups.count; k++) {
		size_t index = draft_groups(s)[k].name ? draft_group_index(d, draft_groups(s)[k].name) : d->group_count;
		has |= index < d->group_count && d->groups[index].merged.price_per_hour;
	}
	return has;
}

/* Of each group once, of however many of the pools. */
static struct bill bill_of(const struct draft *d, size_t first, const struct alike *budgets, bool *is_counted)
{
	struct bill b = { 0, INT64_MAX };

	memset(is_counted, 0, d->group_count);
	for (size_t i = first; i != SIZE_MAX; i = budgets->next[i]) {
		const struct spec_text *s = draft_spec(d, i);
		bool is_priced = has_price(d, s);
		for (size_t k = 0; k < s->groups.count; k++) {
			size_t index = draft_groups(s)[k].name ? draft_group_index(d, draft_groups(s)[k].name)
							       : d->group_count;
			if (index == d->group_count || is_counted[index])
				continue;
			const struct group_text *g = &d->groups[index].merged;
			const int64_t price = is_priced ? g->price_per_hour : g->gpus_per_node * DOLLAR;
			is_counted[index] = true;
			b.least += g->min * price;
			if (g->max && price < b.cheapest)
				b.cheapest = price;
		}
	}
	return b;
}

static void check_amount(struct draft *d, const struct spec_text *s, const struct bill *b)
{
	bool is_too_small = b->cheapest != INT64_MAX && b->cheapest > s->budget.dollars_per_hour;

	if (b->least <= s->budget.dollars_per_hour && !is_too_small)
		return;
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_text(&allowed, "at least ");
	fixed_format(is_too_small && b->cheapest > b->least ? b->cheapest : b->least, DOLLAR_DIGITS, &allowed);
	buf_text(&allowed, is_too_small && b->cheapest > b->least ? ", the price of one node"
								  : ", what min of the node groups costs");
	schema_find_key(d->findings, s->budget.node, "dollarsPerHour", NULL, allowed.text,
			"raise the budget or lower min");
}

static void check_budgets(struct draft *d, struct arena *a)
{
	struct alike budgets = alike_make(d, a);
	size_t *firsts = arena_array(a, size_t, d->pool_count + 1);
	struct bill *bills = arena_array(a, struct bill, d->pool_count + 1);
	bool *is_counted = arena_array(a, bool, d->group_count + 1);

	for (size_t i = 0; i < d->pool_count; i++) {
		const char *name = draft_spec(d, i)->budget.name;
		if (!has_budget(draft_spec(d, i)))
			continue;
		budgets.next[i] = SIZE_MAX;
		firsts[i] = *name ? first_alike(&budgets, i, name) : i;
	}
	for (size_t i = 0; i < d->pool_count; i++) {
		if (!has_budget(draft_spec(d, i)))
			continue;
		if (firsts[i] == i)
			bills[i] = bill_of(d, i, &budgets, is_counted);
		check_agreement(d, firsts[i], &budgets, i);
		check_amount(d, draft_spec(d, i), &bills[firsts[i]]);
	}
}

struct marked_group {
	uint64_t hash; /* of the label's value */
	struct schema_label label;
	const char *name;
	const struct group_text *text;
	size_t index;
};

/* Equal ones side by side, in the order of their groups. */
static int by_label(const void *x, const void *y)
{
	const struct marked_group *a = x, *b = y;

	int order = strcmp(a->label.key, b->label.key);
	order = order ? order : (a->hash > b->hash) - (a->hash < b->hash);
	order = order ? order : strcmp(a->label.value, b->label.value);
	return order ? order : (a->index > b->index) - (a->index < b->index);
}

static void mark_group(struct marked_group *marked, size_t *count, struct schema_label label,
		       const struct group_text *g, size_t index)
{
	if (label.key && *label.key && label.value && *label.value)
		marked[(*count)++] =
			(struct marked_group){ fnv1a_text(FNV1A_START, label.value), label, g->name, g, index };
}

/* One group of the cloud under two names: its nodes would count for the first, and both would set its size. */
static void check_one_name(struct draft *d, struct arena *a)
{
	struct marked_group *marked = arena_array(a, struct marked_group, (1 + BLOCK_OWN_NAMES) * d->group_count + 1);
	size_t count = 0;

	for (size_t i = 0; i < d->group_count; i++) {
		const struct group_text *g = &d->groups[i].merged;
		enum provider_choice p = (enum provider_choice)g->provider;
		if (!g->name || !g->blocks[p].node)
			continue;
		mark_group(marked, &count, provider_node_label(p, &g->blocks[p], g->name), g, i);
		for (size_t k = 0; k < BLOCK_OWN_NAMES; k++)
			mark_group(marked, &count, provider_own_name(p, &g->blocks[p], k), g, i);
	}
	qsort(marked, count, sizeof *marked, by_label);
	for (size_t i = 1; i < count; i++) {
		const struct marked_group *m = &marked[i], *first = &marked[i - 1];
		CLEANUP(buf_release) struct buf found = { 0 };
		CLEANUP(buf_release) struct buf remedy = { 0 };
		if (strcmp(m->label.key, first->label.key) != 0 || strcmp(m->label.value, first->label.value) != 0)
			continue;
		buf_printf(&found, "the cloud's group of node group %s, too: %s=%s", first->name, m->label.key,
			   m->label.value);
		buf_printf(&remedy, "name it %s here, too: pools may share a node group", first->name);
		schema_find(d->findings, m->text->blocks[m->text->provider].node, found.text,
			    "each node group of the cloud under one name", remedy.text);
	}
}

void draft_check(struct draft *d)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	check_pools(d, &a);
	check_groups(d);
	check_one_name(d, &a);
	check_budgets(d, &a);
}

static void check_groups_live(const struct manifest *m, size_t pool, struct findings *f)
{
	const struct spec_text *s = &m->pools[pool].spec;

	for (size_t i = 0; i < s->groups.count; i++) {
		enum provider_choice p = (enum provider_choice)m->groups[m->fleet.pools[pool].groups[i]].provider;
		if (m->groups[m->fleet.pools[pool].groups[i]].blocks[p].node)
			continue;
		CLEANUP(buf_release) struct buf remedy = { 0 };
		buf_text(&remedy, "add ");
		provider_list_blocks(false, &remedy);
		buf_text(&remedy, ", or simulated: { endpoint: http://... } for a trial");
		schema_find_key(f, draft_groups(s)[i].node, provider_name(p), NULL,
				"a block of a provider where nodes are to be bought", remedy.text);
	}
}

bool manifest_check_live(const struct manifest *m, bool buys, struct findings *f, struct error *e)
{
	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		const struct workload_text *w = &m->pools[i].spec.workload;
		if (!w->selector.match_labels.count && m->fleet.pools[i].class != CLASS_ANY)
			schema_find_key(f, w->node ? w->node : m->pools[i].spec.node, w->node ? "selector" : "workload",
					NULL, "workload.selector.matchLabels: which pods serve the pool",
					"add the labels of its pods: selector: { matchLabels: { app: NAME } }");
		if (buys)
			check_groups_live(m, i, f);
	}
	findings_sort(f);
	return !f->count || findings_error(f, e);
}

static void check_file(const struct yaml_node *map, const char *key, const char *path, struct findings *f)
{
	if (path && (strncmp(path, MANIFEST_CREDENTIALS, strlen(MANIFEST_CREDENTIALS)) != 0 || strstr(path, "/..")))
		schema_find_key(f, map, key, NULL, "a file below " MANIFEST_CREDENTIALS " in a WarmPool of the cluster",
				"mount the Secret there (docs/signals.md), or give the pool to run as a file");
}

bool manifest_check_objects(const struct manifest *m, const char *trusted, struct findings *f, struct error *e)
{
	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		const struct signals_text *s = &m->pools[i].spec.signals;
		struct server_text servers[SERVERS];
		if (!s->node || !strcmp(s->node->file, trusted))
			continue;
		servers_of(s, servers);
		for (int k = 0; k < SERVERS; k++) {
			const struct auth_text *a = servers[k].auth;
			const struct tls_text *t = servers[k].tls;
			check_file(a->node, "bearerTokenFile", a->bearer_token_file, f);
			check_file(a->basic.node, "passwordFile", a->basic.password_file, f);
			check_file(t->node, "caFile", t->ca_file, f);
			check_file(t->node, "certFile", t->cert_file, f);
			check_file(t->node, "keyFile", t->key_file, f);
		}
	}
	findings_sort(f);
	return !f->count || findings_error(f, e);
}
