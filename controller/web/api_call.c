#include "controller/web/api_call.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/quantity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool api_refuse(struct api_call *c, struct error *e, int status, const char *fmt, ...)
{
	char message[sizeof e->message];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	c->status = status;
	return error_set(e, ERROR_INVALID, "%s", message);
}

/* --- the history --- */

static void free_fleet(struct api_fleet *f)
{
	if (!f)
		return;
	arena_release(&f->arena);
	free(f);
}

void api_source_close(struct api_source *s)
{
	for (size_t i = 0; i < API_FLEETS; i++) {
		free_fleet(s->fleets[i]);
		s->fleets[i] = NULL;
	}
	history_close(s->history);
	s->history = NULL;
}

static void put_first(struct api_source *s, size_t index, struct api_fleet *f)
{
	for (; index > 0; index--)
		s->fleets[index] = s->fleets[index - 1];
	s->fleets[0] = f;
}

static bool load_fleet(struct api_source *s, int64_t tick, struct api_fleet *f, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	const char *text;

	if (!history_stretch_at(s->history, tick, &f->arena, &f->stretch, e) ||
	    !history_manifest(s->history, tick, &f->arena, &text, e))
		return false;
	if (!manifest_load_text("manifest", text, &f->arena, &f->manifest, &findings, e))
		return error_wrap(e, "%s: its manifest", s->path);
	return f->stretch.pool_count == f->manifest.fleet.pool_count ||
	       error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions", s->path);
}

const struct api_fleet *api_fleet_at(struct api_call *c, int64_t tick, struct error *e)
{
	struct api_source *s = c->source;

	for (size_t i = 0; i < API_FLEETS && s->fleets[i]; i++)
		if (tick >= s->fleets[i]->stretch.from && tick <= s->fleets[i]->stretch.until) {
			put_first(s, i, s->fleets[i]);
			return s->fleets[0];
		}
	struct api_fleet *f = xcalloc(1, sizeof *f);
	if (!load_fleet(s, tick, f, e)) {
		free_fleet(f);
		return NULL;
	}
	free_fleet(s->fleets[API_FLEETS - 1]);
	put_first(s, API_FLEETS - 1, f);
	return f;
}

/* --- the query --- */

const struct api_value *api_value(const struct api_call *c, const char *parameter)
{
	static const struct api_value none;

	for (size_t i = 0; i < c->route->parameter_count; i++)
		if (!strcmp(c->route->parameters[i].name, parameter))
			return &c->value[i];
	return &none;
}

/* --- times --- */

#define TIME_MOST INT64_C(253402300799999) /* the year 9999 */

bool api_parse_time(const struct history_span *span, const char *text, millis *at)
{
	millis after;

	/* A plus that was not escaped arrives as a space. */
	if ((*text == '+' || *text == ' ') && duration_parse(text + 1, strlen(text + 1), &after)) {
		*at = span->from + after;
		return after <= TIME_MOST;
	}
	return options_time(text, span->to, at) && *at >= 0 && *at <= TIME_MOST;
}

bool api_time_of(struct api_call *c, const char *parameter, millis otherwise, millis *at, struct error *e)
{
	const char *text = api_value(c, parameter)->text;

	*at = otherwise;
	return !text || api_parse_time(&c->span, text, at) ||
	       api_refuse(c, e, 400,
			  "%s: found '%.60s'; allowed: a time such as 2026-05-10T08:00:00Z, now, -2h before the end "
			  "of the history, +2h after its first tick",
			  parameter, text);
}

bool api_period(struct api_call *c, millis otherwise, millis *from, millis *to, struct error *e)
{
	if (!api_time_of(c, "to", c->span.to, to, e) || !api_time_of(c, "from", *to - otherwise, from, e))
		return false;
	return *from < *to || api_refuse(c, e, 400, "from: found a time that is not before to; swap them");
}

/* --- pools --- */

bool api_pool(struct api_call *c, size_t *pool, struct error *e)
{
	size_t count;
	const struct history_pool *pools = history_pools(c->history, &count);

	for (*pool = 0; *pool < count; ++*pool)
		if (!strcmp(pools[*pool].namespace, c->place[0]) && !strcmp(pools[*pool].name, c->place[1]))
			return true;
	return api_refuse(c, e, 404,
			  "no pool %.100s/%.100s in this history; GET /api/v1/pools tells those that there are",
			  c->place[0], c->place[1]);
}

bool api_fleet_place(const struct api_fleet *f, size_t pool, size_t *place)
{
	for (*place = 0; *place < f->stretch.pool_count; ++*place)
		if (f->stretch.pools[*place] == pool)
			return true;
	return false;
}

/* --- the objective --- */

enum { PPM = 1000000 };

static const struct record_member objective_members[] = {
	{ "queueWaitSeconds", RECORD_NUMBER(api_objective, wait, 3), .help = "a request that waits longer is late" },
	{ "attainment", RECORD_NUMBER(api_objective, attainment_ppm, 6), .may_be_null = true,
	  .help = "share that must not be late; null with a violation cost" },
	{ "violationCost", RECORD_NUMBER(api_objective, violation_cost, 6), .may_be_null = true,
	  .help = "dollars that a late request is worth, in place of it" },
};
const struct record_shape api_objective_shape = RECORD_SHAPE("Objective", api_objective, objective_members);

struct api_objective api_objective(const struct pool_spec *spec)
{
	bool has_cost = spec->violation_cost > 0;

	return (struct api_objective){ spec->objective_wait, has_cost ? ABSENT : PPM - spec->objective_late_ppm,
				       has_cost ? spec->violation_cost : ABSENT };
}
