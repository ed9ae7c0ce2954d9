/* GET /api/v1/incidents: when more requests were late than the objective allows, and why. */
#include "controller/web/api_incidents.h"

#include "controller/explain/explain.h"

#include <string.h>

static const millis LONGEST = 31 * DAY, USUAL = 7 * DAY;

struct incident_view {
	const char *namespace, *pool, *cause, *words, *limit, *refused_by;
	const char *start_kind;
	struct incident is;
	struct incident_tick worst;
};
static const struct record_member incident_members[] = {
	{ "namespace", RECORD_TEXT(incident_view, namespace), .help = "of the pool" },
	{ "pool", RECORD_TEXT(incident_view, pool), .help = "its name" },
	{ "from", RECORD_TIME(incident_view, is.from), .help = "begin of the first tick with late requests" },
	{ "to", RECORD_TIME(incident_view, is.to), .help = "end of the last" },
	{ "late", RECORD_COUNT(incident_view, is.late), .help = "requests" },
	{ "requests", RECORD_COUNT(incident_view, is.started), .help = "that started in ticks with late ones" },
	{ "waitSecondsMax", RECORD_NUMBER(incident_view, is.longest_wait, 3),
	  .help = "longest wait that the queue came to" },
	{ "cause", RECORD_TEXT(incident_view, cause), .help = "of most of them" },
	{ "words", RECORD_TEXT(incident_view, words), .help = "the same for people" },
	{ "limit", RECORD_TEXT(incident_view, limit), .may_be_null = true, .help = "that held the pool then" },
	{ "group", RECORD_CHARS(incident_view, is.group), .empty_is_null = true,
	  .help = "node group of the longest start that came meanwhile, else of the one that was longest on its way" },
	{ "startKind", RECORD_TEXT(incident_view, start_kind), .may_be_null = true,
	  .help = "what it was: cold, wake, reclaim, place or rouse" },
	{ "startSeconds", RECORD_NUMBER(incident_view, is.start_age, 3), .empty_is_null = true,
	  .help = "how long that took, or was on its way" },
	{ "refusedGroup", RECORD_CHARS(incident_view, is.refused_group), .empty_is_null = true,
	  .help = "the first node group that had no machines to give" },
	{ "refusedBy", RECORD_TEXT(incident_view, refused_by), .may_be_null = true,
	  .help = "why it had none: stock-out or quota" },
	{ "startsGivenUp", RECORD_COUNT(incident_view, is.given_up),
	  .help = "replicas whose start passed its deadline meanwhile" },
	{ "givenUpGroup", RECORD_CHARS(incident_view, is.given_up_group), .empty_is_null = true,
	  .help = "node group of the last of them" },
	{ "worstTick", RECORD_COUNT(incident_view, worst.tick),
	  .help = "the decision while requests waited longest for that cause" },
	{ "worstAt", RECORD_TIME(incident_view, worst.at), .help = "its end" },
	{ "hot", RECORD_COUNT(incident_view, worst.ready), .help = "replicas then" },
	{ "starting", RECORD_COUNT(incident_view, worst.on_its_way), .help = "replicas on their way then" },
};
const struct record_shape api_incident_shape = RECORD_SHAPE("Incident", incident_view, incident_members);

static const char *name_or_null(enum limit limit)
{
	return limit == LIMIT_NONE ? NULL : limit_name(limit);
}

static struct incident_view view(struct api_call *c, const struct incident_found *f)
{
	CLEANUP(buf_release) struct buf words = { 0 };
	const struct history_pool *pool = &history_pools(c->history, &(size_t){ 0 })[f->pool];

	explain_incident(&f->what, &words);
	return (struct incident_view){ .namespace = pool->namespace,
				       .pool = pool->name,
				       .cause = late_cause_name(incident_cause(&f->what)),
				       .words = arena_strdup(&c->arena, words.text, words.len),
				       .limit = name_or_null(incident_limit(&f->what)),
				       .refused_by = name_or_null(f->what.refused_by),
				       .start_kind = f->what.group[0]
							     ? field_enum_name("start_kind", f->what.start_kind)
							     : NULL,
				       .is = f->what,
				       .worst = *incident_worst(&f->what) };
}

bool api_incidents(struct api_call *c, const struct incident_question *q, size_t most, struct record_items *items,
		   int64_t *all, struct error *e)
{
	struct incident_found *found;
	size_t count;

	if (!incident_search(c->history, q, &c->arena, &found, &count, e))
		return false;
	size_t shown = count < most ? count : most;
	struct incident_view *views = arena_array(&c->arena, struct incident_view, shown);
	for (size_t i = 0; i < shown; i++)
		views[i] = view(c, &found[count - 1 - i]);
	*items = (struct record_items){ views, shown };
	*all = (int64_t)count;
	return true;
}

/* --- the route --- */

struct list_view {
	millis from, to;
	struct record_items items;
	int64_t count;
};
static const struct record_member list_members[] = {
	{ "from", RECORD_TIME(list_view, from), .help = "ticks that end after it" },
	{ "to", RECORD_TIME(list_view, to), .help = "and not after it" },
	{ "items", RECORD_LIST(list_view, items, api_incident_shape), .help = "the newest, newest first" },
	{ "count", RECORD_COUNT(list_view, count), .help = "all of that time" },
};
static const struct record_shape list_shape = RECORD_SHAPE("Incidents", list_view, list_members);

static bool take_pool(struct api_call *c, struct incident_question *q, struct error *e)
{
	const char *text = api_value(c, "pool")->text;
	size_t pool;

	q->pool = ANY;
	if (!text)
		return true;
	if (!history_find_pool(c->history, text, &pool, e))
		return api_refuse(c, e, 404,
				  "pool: no '%.60s' in this history; GET /api/v1/pools tells those that there are",
				  text);
	q->pool = (int64_t)pool;
	return true;
}

/* At most so many days are read at a time; what lies outside of the history is not there to be read. */
static bool take_time(struct api_call *c, struct list_view *v, struct incident_question *q, struct error *e)
{
	if (!api_period(c, USUAL, &v->from, &v->to, e))
		return false;
	if (v->to - v->from > LONGEST)
		return api_refuse(c, e, 400, "from: found more than 31 days before to; ask for less");
	if (!history_tick_at(c->history, v->from, &q->first, e) || !history_tick_at(c->history, v->to, &q->last, e))
		return false;
	q->first += v->from >= c->span.from;
	q->last -= v->to < c->span.from;
	return true;
}

static bool write_list(struct api_call *c, struct buf *out, struct error *e)
{
	struct list_view v = { 0 };
	struct incident_question q = { 0 };

	if (!take_pool(c, &q, e) || !take_time(c, &v, &q, e))
		return false;
	if (q.first <= q.last && !api_incidents(c, &q, (size_t)api_value(c, "count")->number, &v.items, &v.count, e))
		return false;
	record_write(&list_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "pool", PARAMETER_TEXT, .max = 512, .help = "only of this pool: NAME or NAMESPACE/NAME" },
	{ "from", PARAMETER_TIME, .help = "from this time on (default: 7 days before to; 31 at most)" },
	{ "to", PARAMETER_TIME, .help = "up to this time" },
	{ "count", PARAMETER_COUNT, .min = 1, .max = 500, .fallback = 100, .help = "at most so many" },
};

const struct api_route api_route_incidents = {
	.method = "GET",
	.path = "/api/v1/incidents",
	.name = "listIncidents",
	.summary = "When more requests were late than the objective allows, and why",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &list_shape,
	.write = write_list,
};
