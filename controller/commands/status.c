/* preheat status: pools as rows. */
#include "base/arena.h"
#include "base/quantity.h"
#include "base/decode.h"
#include "base/error.h"
#include "base/terminal.h"
#include "base/millis.h"
#include "base/schedule.h"
#include "controller/commands/cluster_args.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/commands/status_report.h"
#include "controller/explain/explain.h"
#include "controller/manifest/manifest.h"
#include "controller/policy/fields.h"
#include "controller/web/pool_figures.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line per pool, wherever it comes from, as `preheat status` prints it. */

/* Texts live in the arena of whoever filled it in; NULL and ABSENT: not known. */
struct status_row {
	const char *cluster; /* NULL: of the one that was asked */
	const char *namespace, *name, *class, *mode;
	int64_t hot, standby, starting, asleep, draining, wished, decided;
	const char *headroom, *demand;	     /* replicas: "3.2" */
	millis lead_time_p50, lead_time_p95; /* ABSENT: not known */
	const char *wait, *limit;	     /* wait: "2.5s", or "none hot" */
	millis changed_at;		     /* 0: not known */
	millis decided_at;		     /* 0: not known */
	const char *conditions;		     /* those that want attention: "NodeStuck, SignalsFresh=False" */
	const char *refusal;		     /* why it is not used; NULL: it is */
	const char *reason;		     /* of the last decision, a sentence */
};

struct status_rows {
	struct status_row *items;
	size_t count;
	bool is_fleet; /* of several clusters */
	millis now;    /* ages count to it */
};

/* Which ones; NULL: any. */
struct status_filter {
	const char *namespace, *pool;
	bool is_everywhere; /* else, without a namespace: in that of the kubeconfig */
};

struct cluster_args;

static const millis PATIENCE = 10 * SECOND;

struct told_condition {
	const char *type, *status, *message;
};

static const struct field condition_fields[] = {
	FIELD(struct told_condition, type, FIELD_STRING, "type"),
	FIELD(struct told_condition, status, FIELD_STRING, "status"),
	FIELD(struct told_condition, message, FIELD_STRING, "message"),
};
static const struct record_spec condition_record = { "", sizeof(struct told_condition), condition_fields, 3 };

struct told_pool {
	const char *namespace, *name, *class, *mode, *headroom, *demand, *lead_time, *wait, *limit, *reason;
	int64_t hot, standby, starting, asleep, draining, wished, decided;
	millis changed_at, decided_at;
	struct decoded_list conditions;
};

static const struct field pool_fields[] = {
	FIELD(struct told_pool, namespace, FIELD_STRING, "metadata>namespace"),
	{ .path = "metadata>name", .type = FIELD_STRING, .offset = offsetof(struct told_pool, name), .required = true },
	FIELD(struct told_pool, class, FIELD_STRING, "spec>class"),
	FIELD(struct told_pool, mode, FIELD_STRING, "spec>mode"),
	FIELD(struct told_pool, headroom, FIELD_STRING, "status>headroom"),
	FIELD(struct told_pool, demand, FIELD_STRING, "status>demand"),
	FIELD(struct told_pool, lead_time, FIELD_STRING, "status>leadTime"),
	FIELD(struct told_pool, wait, FIELD_STRING, "status>wait"),
	FIELD(struct told_pool, limit, FIELD_STRING, "status>lastDecision>heldBy"),
	FIELD(struct told_pool, reason, FIELD_STRING, "status>lastDecision>reason"),
	FIELD(struct told_pool, hot, FIELD_INT, "status>hot"),
	FIELD(struct told_pool, standby, FIELD_INT, "status>standby"),
	FIELD(struct told_pool, starting, FIELD_INT, "status>starting"),
	FIELD(struct told_pool, asleep, FIELD_INT, "status>asleep"),
	FIELD(struct told_pool, draining, FIELD_INT, "status>draining"),
	FIELD(struct told_pool, wished, FIELD_INT, "status>lastDecision>wished"),
	FIELD(struct told_pool, decided, FIELD_INT, "status>lastDecision>decided"),
	FIELD(struct told_pool, changed_at, FIELD_TIME, "status>lastChange"),
	FIELD(struct told_pool, decided_at, FIELD_TIME, "status>lastDecision>time"),
	{ .path = "status>conditions",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct told_pool, conditions),
	  .of = &condition_record },
};
static const struct record_spec pool_record = { "items[]", sizeof(struct told_pool), pool_fields,
						sizeof pool_fields / sizeof *pool_fields };

struct reading {
	const struct status_filter *filter;
	struct arena *arena;
	struct status_rows *rows;
	size_t room;
};

static const char *keep(struct arena *a, const char *text)
{
	return text && *text ? arena_strdup(a, text, strlen(text)) : NULL;
}

/* Conditions that are good when true; all others say what is wrong, or only what is. */
static bool is_good_when_true(const char *type)
{
	static const char *const types[] = { "Ready", "SignalsFresh", "ObjectiveMet", "CapacityAvailable" };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

static const char *attention(const struct decoded_list *list, struct arena *a)
{
	const struct told_condition *items = list->items;
	CLEANUP(buf_release) struct buf text = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		const struct told_condition *c = &items[i];
		if (!c->type || !c->status || !strcmp(c->type, "Limited")) /* has a column of its own */
			continue;
		bool is_good = is_good_when_true(c->type);
		if (!strcmp(c->status, is_good ? "False" : "True"))
			buf_printf(&text, "%s%s%s", text.len ? ", " : "", c->type, is_good ? "=False" : "");
	}
	return keep(a, text.text);
}

static const char *refusal(const struct decoded_list *list, struct arena *a)
{
	const struct told_condition *items = list->items;

	for (size_t i = 0; i < list->count; i++)
		if (items[i].type && !strcmp(items[i].type, "Ready") && items[i].status &&
		    !strcmp(items[i].status, "False"))
			return items[i].message ? keep(a, items[i].message) : "not used";
	return NULL;
}

static struct status_row *new_row(struct reading *r)
{
	struct status_rows *rows = r->rows;

	if (rows->count == r->room) {
		r->room = r->room ? 2 * r->room : 16;
		struct status_row *items = arena_array(r->arena, struct status_row, r->room);
		if (rows->count)
			memcpy(items, rows->items, rows->count * sizeof *items);
		rows->items = items;
	}
	return &rows->items[rows->count++];
}

/* "6m20s/10m50s" */
static void take_lead_time(const char *text, struct status_row *row)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	millis p50, p95;

	if (slash && duration_parse(text, (size_t)(slash - text), &p50) &&
	    duration_parse(slash + 1, strlen(slash + 1), &p95)) {
		row->lead_time_p50 = p50;
		row->lead_time_p95 = p95;
	}
}

static bool take(void *user, void *record, struct error *e)
{
	struct reading *r = user;
	const struct told_pool *p = record;
	struct arena *a = r->arena;
	bool is_told = p->decided_at > 0;
	const char *why = refusal(&p->conditions, a);

	(void)e;
	if (r->filter->pool && strcmp(r->filter->pool, p->name) != 0)
		return true;
	*new_row(r) = (struct status_row){ .namespace = p->namespace ? keep(a, p->namespace) : "",
					   .name = keep(a, p->name),
					   .class = p->class ? keep(a, p->class) : "interactive",
					   .mode = p->mode ? keep(a, p->mode) : "act",
					   .hot = is_told ? p->hot : ABSENT,
					   .standby = is_told ? p->standby : ABSENT,
					   .starting = is_told ? p->starting : ABSENT,
					   .asleep = is_told ? p->asleep : ABSENT,
					   .draining = is_told ? p->draining : ABSENT,
					   .wished = is_told ? p->wished : ABSENT,
					   .decided = is_told ? p->decided : ABSENT,
					   .headroom = keep(a, p->headroom),
					   .demand = keep(a, p->demand),
					   .lead_time_p50 = ABSENT,
					   .lead_time_p95 = ABSENT,
					   .wait = keep(a, p->wait),
					   .limit = why ? "refused" : keep(a, p->limit),
					   .changed_at = p->changed_at,
					   .decided_at = p->decided_at,
					   .conditions = attention(&p->conditions, a),
					   .refusal = why,
					   .reason = keep(a, p->reason) };
	take_lead_time(p->lead_time, &r->rows->items[r->rows->count - 1]);
	return true;
}

static bool decode(struct reading *r, const struct buf *text, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&pool_record);
	struct decoder *d = decoder_open(
		&(struct decoder_setup){ .name = "the API server's answer", .records = plan, .emit = take, .user = r });
	bool ok = decoder_feed(d, text->text ? text->text : "", text->len, e) && decoder_finish(d, e);

	decoder_close(d);
	decode_plan_free(plan);
	return ok;
}

static bool explain_failure(const struct cluster_access *x, const struct error *cause, struct error *e)
{
	if (cause->kind == ERROR_NOT_FOUND)
		return error_set(e, ERROR_UNAVAILABLE,
				 "%s knows no WarmPools: install them with 'preheat crd | kubectl apply --server-side "
				 "-f -', or read a history with --db FILE",
				 api_server(x->api));
	*e = *cause;
	return error_wrap(e, "reading WarmPools from %s (a history can be read with --db FILE)", api_server(x->api));
}

/* A server that cannot be reached is told at once; one that is busy is asked again, as it wants it. */
static bool ask(struct cluster_access *x, const char *namespace, struct buf *text, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	struct error why;
	const struct api_object all = { .api_version = "preheat.dev/v1alpha1",
					.plural = "warmpools",
					.name_space = namespace };

	api_object_path(&all, &path);
	return cluster_access_get(x, &(struct api_call){ .path = path.text, .timeout = PATIENCE, .needs_server = true },
				  text, &why) ||
	       explain_failure(x, &why, e);
}

/* NAMESPACE/NAME names both. */
static void choose_namespace(struct status_filter *f, const char *usual, struct arena *a)
{
	const char *slash = f->pool ? strchr(f->pool, '/') : NULL;

	if (slash) {
		f->namespace = arena_strdup(a, f->pool, (size_t)(slash - f->pool));
		f->pool = slash + 1;
	} else if (!f->is_everywhere && !f->namespace) {
		f->namespace = arena_strdup(a, usual, strlen(usual));
	}
}

/* From WarmPools in the API server; f->namespace becomes the one that was asked for. */
static bool status_from_cluster(const struct cluster_args *o, struct status_filter *f, struct arena *a,
				struct status_rows *rows, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct reading r = { .filter = f, .arena = a, .rows = rows };
	struct cluster_access x;

	*rows = (struct status_rows){ 0 };
	if (!cluster_access_open(&x, o, NULL, e))
		return error_wrap(e, "without --db FILE the API server is asked");
	rows->now = clock_now(&x.wall);
	choose_namespace(f, x.namespace, a);
	bool ok = ask(&x, f->namespace, &text, e) && decode(&r, &text, e);
	cluster_access_close(&x);
	if (ok && f->pool && !rows->count)
		return error_set(e, ERROR_NOT_FOUND, "there is no WarmPool '%.120s' in %s%s", f->pool,
				 f->namespace ? "namespace " : "any namespace", f->namespace ? f->namespace : "");
	return ok;
}

static void fill_figures(const struct pool_decision *d, struct arena *a, struct status_row *row)
{
	CLEANUP(buf_release) struct buf demand = { 0 }, headroom = { 0 }, wait = { 0 };

	if (d->demand_milli != ABSENT) {
		figure_replicas(d->demand_milli, &demand);
		figure_replicas(figure_headroom_milli(d), &headroom);
	}
	row->demand = keep(a, demand.text);
	row->headroom = keep(a, headroom.text);
	row->lead_time_p50 = d->lead_cold_p95 > 0 ? d->lead_cold_p50 : ABSENT;
	row->lead_time_p95 = d->lead_cold_p95 > 0 ? d->lead_cold_p95 : ABSENT;
	figure_wait_text(d, &wait);
	row->wait = keep(a, wait.text);
	row->hot = d->ready;
	row->standby = d->standby;
	row->starting = d->on_the_way;
	row->asleep = d->asleep;
	row->draining = d->draining;
	row->wished = d->wished;
	row->decided = d->decided;
	row->limit = limit_name((enum limit)d->held_by);
}

static bool load_fleet(struct history_args *q, struct manifest *m, struct error *e)
{
	struct findings findings = { 0 };
	const char *text;
	bool ok = history_manifest(q->history, q->span.last_tick, &q->arena, &text, e) &&
		  manifest_load_text("manifest", text, &q->arena, m, &findings, e);

	findings_release(&findings);
	return ok || error_wrap(e, "%s: its manifest", history_path(q->history));
}

/* When another size was asked for last; 0 when never. */
static bool find_change(struct history_args *q, size_t pool, millis *at, struct error *e)
{
	const struct history_filter f = { .pool = (int64_t)pool,
					  .from = q->span.first_tick,
					  .to = q->span.last_tick,
					  .limit = ANY,
					  .changed_only = true,
					  .most = 1 };
	struct history_hit *hits;
	struct tick_record r;
	size_t count;

	*at = 0;
	if (!history_find(q->history, &f, &q->arena, &hits, &count, e))
		return false;
	if (!count)
		return true;
	if (!history_read(q->history, hits[0].tick, pool, &r, e))
		return false;
	*at = r.now;
	return true;
}

struct source {
	const char *cluster;
	struct history_args args;
	struct manifest manifest;
	struct arena *arena;
};

static bool fill_row(struct source *s, size_t index, size_t pool, struct status_row *row, struct error *e)
{
	const struct pool_spec *spec = &s->manifest.fleet.pools[index];
	struct history_args *q = &s->args;
	struct tick_record r;

	if (!history_read(q->history, q->span.last_tick, pool, &r, e))
		return false;
	const struct explained x = {
		.fleet = &s->manifest.fleet, .pool = index, .tick = r.tick, .now = r.now, .plan = &r.plan
	};
	*row = (struct status_row){ .cluster = s->cluster,
				    .namespace = arena_strdup(s->arena, spec->namespace, strlen(spec->namespace)),
				    .name = arena_strdup(s->arena, spec->name, strlen(spec->name)),
				    .class = pool_class_name(spec->class),
				    .mode = pool_mode_name(spec->mode),
				    .decided_at = r.now,
				    .reason = explain_headline(&x, s->arena) };
	fill_figures(&r.plan.decision, s->arena, row);
	return find_change(q, pool, &row->changed_at, e);
}

static bool read_rows(struct source *s, const struct status_filter *f, struct status_rows *rows, struct error *e)
{
	struct history_args *q = &s->args;
	struct history_stretch stretch;

	if (!history_args_open(q, e) || !load_fleet(q, &s->manifest, e) ||
	    !history_stretch_at(q->history, q->span.last_tick, &q->arena, &stretch, e))
		return false;
	struct status_row *before = rows->items;
	rows->now = q->span.to > rows->now ? q->span.to : rows->now;
	rows->items = arena_array(s->arena, struct status_row, rows->count + stretch.pool_count);
	if (rows->count)
		memcpy(rows->items, before, rows->count * sizeof *before);
	for (size_t i = 0; i < stretch.pool_count; i++) {
		const char *namespace = s->manifest.fleet.pools[i].namespace;
		if ((f->namespace && strcmp(f->namespace, namespace) != 0) ||
		    (q->pool_index != ANY && q->pool_index != (int64_t)stretch.pools[i]))
			continue;
		if (!fill_row(s, i, stretch.pools[i], &rows->items[rows->count], e))
			return false;
		rows->count++;
	}
	return true;
}

static bool add_history(const char *db, const char *cluster, const struct status_filter *f, struct arena *a,
			struct status_rows *rows, struct error *e)
{
	struct source s = { .cluster = cluster, .args = { .db = db, .pool = f->pool }, .arena = a };
	bool ok = read_rows(&s, f, rows, e);

	history_args_close(&s.args);
	return ok;
}

/* A cluster that has no such pool, or nothing yet, is no reason to say nothing of the others. */
static bool add_fleet(const char *address, const struct status_filter *f, struct arena *a, struct status_rows *rows,
		      struct error *e)
{
	const char *const *clusters;
	size_t count;

	if (!history_clusters(address, a, &clusters, &count, e))
		return false;
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf db = { 0 };

		buf_printf(&db, "%s#%s", address, clusters[i]);
		if (!add_history(arena_strdup(a, db.text, db.len), clusters[i], f, a, rows, e) &&
		    e->kind != ERROR_NOT_FOUND)
			return false;
	}
	return true;
}

/* The newest decisions of a history, or of those of a whole fleet. */
static bool status_from_history(const char *db, const struct status_filter *f, struct arena *a,
				struct status_rows *rows, struct error *e)
{
	*rows = (struct status_rows){ .is_fleet = history_is_fleet(db) };
	return rows->is_fleet ? add_fleet(db, f, a, rows, e) : add_history(db, NULL, f, a, rows, e);
}

static struct {
	struct cluster_args access;
	bool is_everywhere, is_utc;
	const char *db, *pool, *output;
} options = { .output = "table" };

static const struct option_row option_rows[] = {
	{ "db", 0, OPTION_TEXT, "FILE", "read a history instead of the API server", &options.db, NULL },
	{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "only pools of this namespace (default: the kubeconfig's)",
	  &options.access.namespace, NULL },
	{ "all-namespaces", 'A', OPTION_FLAG, NULL, "pools of all namespaces", &options.is_everywhere, NULL },
	{ "pool", 'p', OPTION_TEXT, "POOL", "only this pool: NAME or NAMESPACE/NAME", &options.pool, NULL },
	PRINT_OPTION(&options.output),
	{ "utc", 0, OPTION_FLAG, NULL, "times in UTC instead of this machine's zone", &options.is_utc, NULL },
	CLUSTER_ARGS_OPTIONS(&options.access),
};

static const struct table_column columns[] = {
	{ .name = "cluster" }, /* of a fleet only */
	{ .name = "namespace" },
	{ .name = "name" },
	{ .name = "class", .is_wide = true },
	{ .name = "mode" },
	{ .name = "hot", .is_right = true },
	{ .name = "starting", .is_right = true, .is_wide = true },
	{ .name = "asleep", .is_right = true, .is_wide = true },
	{ .name = "draining", .is_right = true, .is_wide = true },
	{ .name = "standby", .is_right = true },
	{ .name = "headroom", .is_right = true, .is_wide = true },
	{ .name = "demand", .is_right = true },
	{ .name = "wished", .is_right = true, .is_wide = true },
	{ .name = "decided", .is_right = true, .is_wide = true },
	{ .name = "lead_time_p50_s", .title = "LEAD-TIME", .is_right = true, .is_wide = true },
	{ .name = "lead_time_p95_s", .title = "P95", .is_right = true, .is_wide = true },
	{ .name = "wait_s", .title = "WAIT", .is_right = true },
	{ .name = "limit" },
	{ .name = "last_change", .title = "CHANGED", .is_right = true },
	{ .name = "conditions", .is_wide = true },
	{ .name = "reason", .is_wide = true },
};

static const millis SILENT = 5 * MINUTE;

static bool is_for_programs(void)
{
	return table_is_for_programs(table_format_of(options.output));
}

static void add_text(struct table *t, const char *text)
{
	if (text)
		table_text(t, text);
	else
		table_absent(t);
}

static void add_count(struct table *t, int64_t n)
{
	if (n == ABSENT)
		table_absent(t);
	else
		table_count(t, n);
}

/* "3.2" is a number for programs, too. */
static void add_replicas(struct table *t, const char *text)
{
	int64_t tenths;

	if (text && decimal_parse(text + (*text == '-'), strlen(text + (*text == '-')), 1, &tenths) == DECIMAL_OK)
		table_value(t, text, text);
	else
		add_text(t, text);
}

static void add_duration(struct table *t, millis d)
{
	d == ABSENT ? table_absent(t) : table_duration(t, d);
}

/* Seconds for programs; no number says how long what waits before nobody takes. */
static void add_wait(struct table *t, const char *text)
{
	CLEANUP(buf_release) struct buf seconds = { 0 };
	bool is_number = is_for_programs();
	millis wait;

	if (!text || (is_number && !duration_parse(text, strlen(text), &wait))) {
		table_absent(t);
	} else if (!is_number) {
		table_text(t, text);
	} else {
		fixed_format(wait, 3, &seconds);
		table_value(t, text, seconds.text);
	}
}

/* An age for people, a time for programs. */
static void add_time(struct table *t, millis at, millis now)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!at) {
		table_absent(t);
		return;
	}
	if (!is_for_programs()) {
		millis age = now > at ? (now - at) / SECOND * SECOND : 0;
		table_text(t, age ? human_duration(age).text : "0s");
		return;
	}
	explain_time_rfc3339(at, &text);
	table_text(t, text.text);
}

static void add_row(struct table *t, const struct status_row *r, millis now)
{
	if (r->cluster)
		table_text(t, r->cluster);
	table_text(t, r->namespace);
	table_text(t, r->name);
	add_text(t, r->class);
	add_text(t, r->mode);
	add_count(t, r->hot);
	add_count(t, r->starting);
	add_count(t, r->asleep);
	add_count(t, r->draining);
	add_count(t, r->standby);
	add_replicas(t, r->headroom);
	add_replicas(t, r->demand);
	add_count(t, r->wished);
	add_count(t, r->decided);
	add_duration(t, r->lead_time_p50);
	add_duration(t, r->lead_time_p95);
	add_wait(t, r->wait);
	add_text(t, r->limit);
	if (r->limit && strcmp(r->limit, "none") != 0)
		table_style(t, r->refusal ? STYLE_BAD : STYLE_WARN);
	add_time(t, r->changed_at, now);
	add_text(t, r->conditions);
	if (r->conditions)
		table_style(t, STYLE_WARN);
	add_text(t, r->refusal ? r->refusal : r->reason);
}

/* What a table does not say, on standard error. */
static void print_remarks(const struct status_rows *s, const char *namespace)
{
	millis newest = 0;

	if (!s->count && namespace)
		fprintf(stderr, "No WarmPools found in namespace %s; -A looks in all.\n", namespace);
	else if (!s->count)
		fputs("No WarmPools found.\n", stderr);
	for (size_t i = 0; i < s->count; i++) {
		const struct status_row *r = &s->items[i];
		newest = r->decided_at > newest ? r->decided_at : newest;
		if (s->is_fleet && s->now - r->decided_at > SILENT)
			fprintf(stderr, "%s: the last decision on %s/%s is %s older than the newest here\n", r->cluster,
				r->namespace, r->name, human_duration((s->now - r->decided_at) / SECOND * SECOND).text);
		if (r->refusal && !is_for_programs())
			fprintf(stderr, "%s/%s is refused: %s\n", r->namespace, r->name, r->refusal);
	}
	if (s->count && !newest && !options.db)
		fputs("Nothing has been decided yet: is the controller running?\n", stderr);
	else if (newest && s->now - newest > SILENT)
		fprintf(stderr, "The last decision is %s old: is the controller running?\n",
			human_duration((s->now - newest) / SECOND * SECOND).text);
	if (options.db && newest) {
		CLEANUP(buf_release) struct buf time = { 0 };
		explain_time(newest, options.is_utc ? 0 : zone_offset(newest), &time);
		fprintf(stderr, "As decided at %s%s.\n", time.text, options.is_utc ? " UTC" : "");
	}
}

static bool check(int argc, char **argv, int rest, struct error *e)
{
	if (rest < argc)
		return error_set(e, ERROR_INVALID,
				 "found '%.100s'; allowed: no arguments; one pool is given with --pool NAME",
				 argv[rest]);
	if (options.is_everywhere && options.access.namespace)
		return error_set(e, ERROR_INVALID, "--all-namespaces and --namespace contradict each other; give one");
	if (options.db && (options.access.kubeconfig || options.access.context))
		return error_set(
			e, ERROR_INVALID,
			"--db reads a history and asks no API server; give it without --kubeconfig and --context");
	return true;
}

static bool find_rows(struct arena *a, struct status_filter *f, struct status_rows *s, struct error *e)
{
	*f = (struct status_filter){ .namespace = options.access.namespace,
				     .pool = options.pool,
				     .is_everywhere = options.is_everywhere };
	if (options.db)
		return status_from_history(options.db, f, a, s, e);
	return status_from_cluster(&options.access, f, a, s, e);
}

/* Only a history of one cluster tells of the days before. */
static bool print_report(const struct status_filter *f, const struct status_rows *rows, struct error *e)
{
	struct history_args q = { .db = options.db, .pool = options.pool, .is_utc = options.is_utc };

	if (!options.db || rows->is_fleet || !rows->count || is_for_programs())
		return true;
	bool ok = status_report_print(&q, f->namespace, e);
	history_args_close(&q);
	return ok;
}

static int run(int argc, char **argv)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct status_filter filter;
	struct status_rows found;
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_status, argc, argv, option_rows, sizeof option_rows / sizeof *option_rows, &rest,
			     &code))
		return code;
	if (!check(argc, argv, rest, &e) || !find_rows(&a, &filter, &found, &e))
		return command_failed(&command_status, &e);
	const size_t left_out = found.is_fleet ? 0 : 1;
	struct table *t = table_new(columns + left_out, sizeof columns / sizeof *columns - left_out);
	for (size_t i = 0; i < found.count; i++)
		add_row(t, &found.items[i], found.now);
	if (found.count || is_for_programs())
		table_print(t, table_format_of(options.output), stdout);
	table_free(t);
	bool ok = print_report(&filter, &found, &e);
	print_remarks(&found, filter.namespace);
	return ok ? EXIT_DONE : command_failed(&command_status, &e);
}

const struct command command_status = {
	.name = "status",
	.usage = "status [OPTION...]",
	.summary = "Show what every pool has, wants and waits for; of a history also objectives, cost and incidents",
	.examples = "  preheat status -A\n"
		    "  preheat status -n llm --pool chat -o wide\n"
		    "  preheat status --db /var/lib/preheat/history.db\n"
		    "  preheat status --db postgresql://db.internal/fleet      all clusters\n",
	.notes = "With --db of one cluster: late shares of today, 7 and 30 days against the objective, the requests "
		 "that "
		 "may still\n"
		 "be late, what was spent and how that compares with as long a time before, both by day, and the last\n"
		 "five incidents. csv, json and yaml have the pools alone; GET /api/v1/report has the rest.\n",
	.run = run,
};
