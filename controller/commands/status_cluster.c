#include "base/decode.h"
#include "controller/commands/access.h"
#include "controller/commands/status_rows.h"
#include "controller/policy/fields.h"

#include <stdlib.h>
#include <string.h>

static const millis PATIENCE = 10 * SECOND;
static const size_t LONGEST = (size_t)64 << 20;

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
	int64_t hot, standby, starting, draining, wished, decided;
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
					   .draining = is_told ? p->draining : ABSENT,
					   .wished = is_told ? p->wished : ABSENT,
					   .decided = is_told ? p->decided : ABSENT,
					   .headroom = keep(a, p->headroom),
					   .demand = keep(a, p->demand),
					   .lead_time = keep(a, p->lead_time),
					   .wait = keep(a, p->wait),
					   .limit = why ? "refused" : keep(a, p->limit),
					   .changed_at = p->changed_at,
					   .decided_at = p->decided_at,
					   .conditions = attention(&p->conditions, a),
					   .refusal = why,
					   .reason = keep(a, p->reason) };
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

struct answer {
	struct error error;
	struct buf text;
	bool is_there;
};

static void answered(struct api_call *c)
{
	struct answer *a = c->user;

	a->error = c->error;
	buf_append(&a->text, c->response, c->response_len);
	a->is_there = true;
}

static bool explain_failure(const struct access *x, const struct error *cause, struct error *e)
{
	if (cause->kind == ERROR_NOT_FOUND)
		return error_set(e, ERROR_UNAVAILABLE,
				 "%s knows no WarmPools: install them with 'preheat crd | kubectl apply --server-side "
				 "-f -', or read a history with --db FILE",
				 api_server(x->api));
	*e = *cause;
	return error_wrap(e, "reading WarmPools from %s (a history can be read with --db FILE)", api_server(x->api));
}

static struct answer ask_once(struct access *x, const char *path, bool is_single)
{
	struct answer answer = { 0 };
	struct api_call call = { .path = path,
				 .is_single = is_single,
				 .timeout = PATIENCE,
				 .cap = LONGEST,
				 .done = answered,
				 .user = &answer };

	api_start(x->api, &call);
	while (!answer.is_there && loop_once(x->loop))
		;
	return answer;
}

/* A server that cannot be reached is told at once; one that is busy is asked again, as it wants it. */
static bool ask(struct access *x, const char *namespace, struct buf *text, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	const struct api_object all = { .api_version = "preheat.dev/v1alpha1",
					.plural = "warmpools",
					.name_space = namespace };

	api_object_path(&all, &path);
	struct answer answer = ask_once(x, path.text, true);
	if (answer.error.kind == ERROR_THROTTLED) {
		buf_release(&answer.text);
		answer = ask_once(x, path.text, false);
	}
	*text = answer.text;
	return answer.error.kind == ERROR_NONE || explain_failure(x, &answer.error, e);
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

bool status_from_cluster(const struct access_options *o, struct status_filter *f, struct arena *a,
			 struct status_rows *rows, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct reading r = { .filter = f, .arena = a, .rows = rows };
	struct access x;

	*rows = (struct status_rows){ 0 };
	if (!access_open(&x, o, NULL, e))
		return error_wrap(e, "without --db FILE the API server is asked");
	rows->now = clock_now(&x.wall);
	choose_namespace(f, x.namespace, a);
	bool ok = ask(&x, f->namespace, &text, e) && decode(&r, &text, e);
	access_close(&x);
	if (ok && f->pool && !rows->count)
		return error_set(e, ERROR_NOT_FOUND, "there is no WarmPool '%.120s' in %s%s", f->pool,
				 f->namespace ? "namespace " : "any namespace", f->namespace ? f->namespace : "");
	return ok;
}
