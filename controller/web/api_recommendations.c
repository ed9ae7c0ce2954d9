/* /api/v1/recommendations: what should be changed, and what that would come to. */
#include "controller/web/api_call.h"
#include "controller/web/recommendations.h"
#include "state/attainment.h"

#include <stdio.h>
#include <string.h>

struct change_view {
	const char *namespace, *pool, *change, *needs, *kind, *why;
	struct recommendation is;
};
enum kind { KIND_RESTORES, KIND_SECURES, KIND_SAVES, KIND_ASKS };
static const char *const kinds[] = { "restores", "secures", "saves", "asks", NULL };
static const struct record_member change_members[] = {
	{ "namespace", RECORD_TEXT(change_view, namespace), .help = "of the pool" },
	{ "pool", RECORD_TEXT(change_view, pool), .help = "its name" },
	{ "kind", RECORD_TEXT(change_view, kind), .choices = kinds,
	  .help = "restores an objective that was missed in the last 7 days; secures one that was met, and that the "
		  "model misses on the traffic it was tried on; saves at the same one; asks for another objective" },
	{ "change", RECORD_TEXT(change_view, change), .help = "path in the manifest and value" },
	{ "needs", RECORD_TEXT(change_view, needs), .may_be_null = true, .help = "what to have before" },
	{ "why", RECORD_TEXT(change_view, why), .may_be_null = true, .help = "why it saves, where that is not plain" },
	{ "triedDays", RECORD_NUMBER(change_view, is.days_milli, 3), .help = "of recorded traffic" },
	{ "incidents", RECORD_COUNT(change_view, is.incidents),
	  .help = "the newest of the pool in these days, five at most" },
	{ "incidentsLate", RECORD_COUNT(change_view, is.incidents_late),
	  .help = "late requests in them as it is, by the model" },
	{ "incidentsLateWith", RECORD_COUNT(change_view, is.incidents_late_with),
	  .help = "late requests in them with the change" },
	{ "dollarsPerDay", RECORD_NUMBER(change_view, is.dollars, 6), .may_be_null = true,
	  .help = "of the pool, as it is; null where no price is given" },
	{ "savesDollarsPerDay", RECORD_NUMBER(change_view, is.saves, 6), .may_be_null = true,
	  .help = "in all pools; negative: it costs so much; null where no price is given" },
	{ "savesGpuHoursPerDay", RECORD_NUMBER(change_view, is.saves_gpu_hours, 6), .may_be_null = true,
	  .help = "likewise, where no price is given" },
	{ "lateShare", RECORD_NUMBER(change_view, is.late_ppm, 6), .help = "as it is, by the model" },
	{ "lateShareWith", RECORD_NUMBER(change_view, is.late_with_ppm, 6), .help = "with the change, by the model" },
	{ "allowedShare", RECORD_NUMBER(change_view, is.allowed_ppm, 6),
	  .help = "that the objective allows, with the change" },
};
static const struct record_shape change_shape = RECORD_SHAPE("Recommendation", change_view, change_members);

struct list_view {
	const char *state, *message;
	millis tried_at;
	struct record_items items;
};
static const struct record_member list_members[] = {
	{ "state", RECORD_TEXT(list_view, state), .choices = daily_state_names, .help = "how far it came" },
	{ "triedAt", RECORD_TIME(list_view, tried_at), .may_be_null = true, .help = "when items were found" },
	{ "message", RECORD_TEXT(list_view, message), .may_be_null = true, .help = "why the last try failed" },
	{ "items", RECORD_LIST(list_view, items, change_shape),
	  .help = "at most three that pay, the best first; none: nothing pays, or never tried" },
};
static const struct record_shape list_shape = RECORD_SHAPE("Recommendations", list_view, list_members);

/* As the head of the page judges it: by the last 7 days that were recorded. */
static bool is_met(struct api_call *c, const struct recommendation *r, bool *met, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	struct error unknown = { 0 };
	struct attainment week;
	size_t pool, place;
	char key[160];

	*met = false;
	if (!fleet)
		return false;
	snprintf(key, sizeof key, "%s/%s", r->namespace, r->pool);
	if (!history_find_pool(c->history, key, &pool, &unknown) || !api_fleet_place(fleet, pool, &place))
		return true;
	const struct pool_spec *spec = &fleet->manifest.fleet.pools[place];
	if (!attainment_read(c->history, &(struct attainment_question){ pool, spec, c->span.to - 7 * DAY, c->span.to },
			     &week, e))
		return false;
	*met = attainment_is_met(&week);
	return true;
}

static bool find_kind(struct api_call *c, const struct recommendation *r, enum kind *kind, struct error *e)
{
	static const char objective[] = "objective.";
	bool met = false;

	*kind = !strncmp(r->change, objective, strlen(objective)) ? KIND_ASKS : KIND_SAVES;
	if (*kind == KIND_ASKS || r->late_ppm <= r->allowed_ppm || r->late_with_ppm > r->allowed_ppm)
		return true;
	if (!is_met(c, r, &met, e))
		return false;
	*kind = met ? KIND_SECURES : KIND_RESTORES;
	return true;
}

static bool write_list(struct api_call *c, struct buf *out, struct error *e)
{
	static const struct daily_shown never = { .message = "" };
	const struct daily_shown *shown = c->recommendations ? daily_look(c->recommendations) : &never;
	const struct recommendations *r = shown->answer;
	struct change_view *items = arena_array(&c->arena, struct change_view, r ? r->count : 0);
	struct list_view v = { .state = daily_state_names[shown->state],
			       .message = shown->state == DAILY_FAILED ? shown->message : NULL,
			       .tried_at = shown->tried_at,
			       .items = { items, r ? r->count : 0 } };

	for (size_t i = 0; i < v.items.count; i++) {
		const struct recommendation *is = &r->items[i];
		enum kind kind;

		if (!find_kind(c, is, &kind, e))
			return false;
		items[i] = (struct change_view){ is->namespace, is->pool, is->change, is->needs,
						 kinds[kind],	is->why,  *is };
	}
	record_write(&list_shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static bool write_asked(struct api_call *c, struct buf *out, struct error *e)
{
	if (!c->recommendations)
		return api_refuse(c, e, 503, "recommendations are not available here");
	daily_ask(c->recommendations);
	return write_list(c, out, e);
}

const struct api_route api_route_recommendations = {
	.method = "GET",
	.path = "/api/v1/recommendations",
	.name = "listRecommendations",
	.summary = "What should be changed; tried in the background at most once a day, when somebody looks",
	.needs_history = true,
	.answer = &list_shape,
	.write = write_list,
};

const struct api_route api_route_recommendations_ask = {
	.method = "POST",
	.path = "/api/v1/recommendations",
	.name = "askRecommendations",
	.summary = "Try now what should be changed, in the background",
	.needs_history = true,
	.answer = &list_shape,
	.write = write_asked,
	.status = 202,
};
