#include "controller/web/api_what_if.h"

#include "base/json.h"

#include <string.h>

static const struct key {
	const char *path;
	enum json_type type;
	size_t offset;
} keys[] = {
	{ "pool", JSON_STRING, offsetof(struct what_if_body, pool) },
	{ "objective>queueWait", JSON_STRING, offsetof(struct what_if_body, queue_wait) },
	{ "objective>attainment", JSON_STRING, offsetof(struct what_if_body, attainment) },
	{ "objective>violationCost", JSON_NUMBER, offsetof(struct what_if_body, violation_cost) },
	{ "budgetDollarsPerHour", JSON_NUMBER, offsetof(struct what_if_body, budget) },
	{ "max", JSON_NUMBER, offsetof(struct what_if_body, max) },
	{ "from", JSON_STRING, offsetof(struct what_if_body, from) },
	{ "to", JSON_STRING, offsetof(struct what_if_body, to) },
};

struct reading {
	struct arena *arena;
	struct what_if_body *body;
	bool was_object;
};

static const struct key *find_key(const char *path)
{
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(keys[i].path, path))
			return &keys[i];
	return NULL;
}

static bool take_container(struct reading *r, const struct json_event *v, struct error *e)
{
	bool is_body = !v->depth && !v->is_array,
	     is_objective = v->depth == 1 && !v->is_array && !strcmp(v->path, "objective");

	if (v->type == JSON_CLOSE || is_objective || (is_body && !r->was_object)) {
		r->was_object |= is_body && v->type == JSON_OPEN;
		return true;
	}
	return error_set(e, ERROR_INVALID,
			 "found %s at '%.60s'; allowed: an object with pool, objective, budgetDollarsPerHour, "
			 "max, from, to",
			 v->is_array ? "a list" : "an object", v->path);
}

static bool take(void *user, const struct json_event *v, struct error *e)
{
	struct reading *r = user;

	if (v->type == JSON_OPEN || v->type == JSON_CLOSE)
		return take_container(r, v, e);
	const struct key *k = v->depth ? find_key(v->path) : NULL;
	if (!k)
		return error_set(e, ERROR_INVALID,
				 "found the key '%.60s'; allowed: pool, objective with queueWait, attainment or "
				 "violationCost, budgetDollarsPerHour, max, from, to",
				 v->path);
	const char **value = (const char **)((char *)r->body + k->offset);
	if (v->type == JSON_NULL)
		return true;
	if (v->type != k->type || v->len >= WHAT_IF_NAME || memchr(v->text, '\0', v->len))
		return error_set(e, ERROR_INVALID, "%s: found %.*s; allowed: %s", k->path,
				 (int)(v->len < 60 ? v->len : 60), v->text,
				 k->type == JSON_STRING ? "a text" : "a number");
	if (*value)
		return error_set(e, ERROR_INVALID, "%s: found twice; give it once", k->path);
	*value = arena_strdup(r->arena, v->text, v->len);
	return true;
}

bool what_if_body_read(const char *text, size_t len, struct arena *a, struct what_if_body *out, struct error *e)
{
	struct reading r = { .arena = a, .body = out };

	*out = (struct what_if_body){ 0 };
	struct json *j = json_open("body", take, &r);
	bool ok = json_feed(j, text, len, e) && json_finish(j, e);
	json_close(j);
	if (ok && !r.was_object)
		return error_set(e, ERROR_INVALID,
				 "body: found nothing; allowed: an object with pool and what shall be other");
	return ok;
}
