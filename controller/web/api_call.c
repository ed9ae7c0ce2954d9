/* One request: which route it is for, and what its query says. */
#include "controller/web/api_call.h"

#include "base/options.h"
#include "base/quantity.h"

#include <stdarg.h>
#include <stdio.h>
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

/* --- the path --- */

static const char *piece(struct api_call *c, const char *from, size_t len)
{
	return arena_strdup(&c->arena, from, len);
}

bool api_path_fits(struct api_call *c, const char *template, const char *path)
{
	size_t places = 0;

	while (*template) {
		size_t len = strcspn(path, "/");

		if (*template != '{') {
			if (*template ++ != *path++)
				return false;
			continue;
		}
		if (!len || places == PLACES_IN_PATH)
			return false;
		c->place[places++] = piece(c, path, len);
		path += len;
		template += strcspn(template, "}") + 1;
	}
	return !*path;
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

static bool is_one_of(const char *choices, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = choices; len; at += strcspn(at, "|") + 1) {
		if (strcspn(at, "|") == len && !strncmp(at, text, len))
			return true;
		if (!at[strcspn(at, "|")])
			break;
	}
	return false;
}

static bool take_flag(struct api_call *c, const struct api_parameter *p, struct api_value *v, struct error *e)
{
	v->number = !strcmp(v->text, "true");
	return v->number || !strcmp(v->text, "false") ||
	       api_refuse(c, e, 400, "%s: found '%.60s'; allowed: true or false", p->name, v->text);
}

static bool take_value(struct api_call *c, const struct api_parameter *p, struct api_value *v, struct error *e)
{
	switch (p->kind) {
	case PARAMETER_TEXT:
		return (*v->text && strlen(v->text) <= (size_t)p->max) ||
		       api_refuse(c, e, 400, "%s: found '%.60s'; allowed: 1 to %lld bytes", p->name, v->text,
				  (long long)p->max);
	case PARAMETER_TIME:
		return true; /* what it counts from is known later */
	case PARAMETER_FLAG:
		return take_flag(c, p, v, e);
	case PARAMETER_CHOICE:
		return is_one_of(p->choices, v->text) ||
		       api_refuse(c, e, 400, "%s: found '%.60s'; allowed: %s", p->name, v->text, p->choices);
	case PARAMETER_COUNT:
		break;
	}
	if (fixed_parse(v->text, strlen(v->text), 0, &v->number) && v->number >= p->min && v->number <= p->max)
		return true;
	return api_refuse(c, e, 400, "%s: found '%.60s'; allowed: a whole number from %lld to %lld", p->name, v->text,
			  (long long)p->min, (long long)p->max);
}

static void list_parameters(const struct api_route *r, struct buf *out)
{
	for (size_t i = 0; i < r->parameter_count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", r->parameters[i].name);
	if (!r->parameter_count)
		buf_text(out, "none");
}

static bool take_pair(struct api_call *c, const struct server_pair *pair, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { 0 };

	for (size_t i = 0; i < c->route->parameter_count; i++) {
		struct api_value *v = &c->value[i];

		if (strcmp(c->route->parameters[i].name, pair->name) != 0)
			continue;
		if (v->text)
			return api_refuse(c, e, 400, "%s: found twice; give it once", pair->name);
		v->text = pair->value;
		return take_value(c, &c->route->parameters[i], v, e);
	}
	list_parameters(c->route, &known);
	return api_refuse(c, e, 400, "found the parameter '%.60s'; allowed: %s", pair->name, known.text);
}

bool api_take_query(struct api_call *c, struct error *e)
{
	for (size_t i = 0; i < c->route->parameter_count; i++)
		c->value[i].number = c->route->parameters[i].fallback;
	if (c->request->pair_count > PAIRS_MAX)
		return api_refuse(c, e, 400, "found %zu parameters; allowed: at most %d", c->request->pair_count,
				  PAIRS_MAX);
	for (size_t i = 0; i < c->request->pair_count; i++)
		if (!take_pair(c, &c->request->pairs[i], e))
			return false;
	return true;
}

/* --- times --- */

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

bool api_pool_named(struct api_call *c, const char *name, size_t *pool, struct error *e)
{
	return history_find_pool(c->history, name, pool, e);
}

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
