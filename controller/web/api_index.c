/* GET /api/v1: what there is. */
#include "base/json.h"
#include "controller/web/api_parts.h"

#include <string.h>

static const char *const kinds[] = { "controller", "file", NULL };
static const char *const roles[] = { "follower", "leader", "alone", NULL };

static const struct api_member source_members[] = {
	{ "kind", API_TEXT, .help = "a running controller, or a file alone", .choices = kinds },
	{ "path", API_TEXT, .help = "the history" },
	{ "identity", API_TEXT, .may_be_null = true, .help = "of this replica in the Lease" },
	{ "role", API_TEXT, .may_be_null = true, .help = "of this replica", .choices = roles },
	{ "leader", API_TEXT, .may_be_null = true, .help = "who leads" },
	{ "isDryRun", API_FLAG, .help = "decides and records, and changes nothing" },
	{ "isReady", API_FLAG, .help = "has decisions that can be asked" },
	{ "obstacle", API_TEXT, .may_be_null = true,
	  .help = "what keeps the controller from its work, and the remedy" },
};
static const struct api_shape source_shape = API_SHAPE("Source", source_members);

static const struct api_member history_members[] = {
	{ "from", API_TIME, .help = "end of the first tick" },
	{ "to", API_TIME, .help = "end of the last tick" },
	{ "firstTick", API_COUNT, .help = "its number" },
	{ "lastTick", API_COUNT, .help = "its number" },
	{ "intervalSeconds", API_NUMBER, .help = "length of the last tick" },
	{ "run", API_TEXT, .help = "what it is a history of: run, record, simulate ..." },
	{ "policy", API_TEXT, .help = "what decided: preheat, or the name of a rival" },
};
static const struct api_shape history_shape = API_SHAPE("History", history_members);

static const struct api_member name_members[] = {
	{ "namespace", API_TEXT, .help = "of the WarmPool" },
	{ "name", API_TEXT, .help = "of the WarmPool" },
	{ "isInForce", API_FLAG, .help = "is in the manifest of the last tick" },
};
static const struct api_shape name_shape = API_SHAPE("PoolName", name_members);

static const struct api_member members[] = {
	{ "version", API_TEXT, .help = "of the API: v1" },
	{ "program", API_TEXT, .help = "version of preheat" },
	{ "source", API_OBJECT, .help = "what is asked", .of = &source_shape },
	{ "history", API_OBJECT, .may_be_null = true, .help = "null before the first tick", .of = &history_shape },
	{ "pools", API_LIST, .help = "all that ever were", .of = &name_shape },
	{ "groups", API_TEXTS, .help = "names of all node groups that ever were" },
	{ "links", API_TEXTS, .help = "where to go on" },
};
static const struct api_shape shape = API_SHAPE("Index", members);

static void write_source(const struct api_call *c, struct buf *out)
{
	const struct published *p = api_shown(c);

	member_object(out, "source");
	member_text(out, "kind", api_setup(c)->is_controller ? "controller" : "file");
	CLEANUP(buf_release) struct buf path = { 0 };
	history_show(api_setup(c)->history, &path);
	member_text(out, "path", path.text);
	member_text(out, "identity", p ? p->identity : NULL);
	member_text(out, "role", p ? roles[p->role] : NULL);
	member_text(out, "leader", p && p->leader && *p->leader ? p->leader : NULL);
	member_flag(out, "isDryRun", p && p->is_dry_run);
	member_flag(out, "isReady", c->history != NULL);
	member_text(out, "obstacle", p ? p->obstacle : NULL);
	bracket_end(out, '}');
}

static bool write_history(struct api_call *c, struct buf *out, struct error *e)
{
	const char *run, *policy;
	millis interval;

	if (!c->history) {
		member_text(out, "history", NULL);
		return true;
	}
	if (!history_fact(c->history, "run", &c->arena, &run, e) ||
	    !history_fact(c->history, "policy", &c->arena, &policy, e) ||
	    !history_interval(c->history, c->span.last_tick, &interval, e))
		return false;
	member_object(out, "history");
	member_time(out, "from", c->span.from);
	member_time(out, "to", c->span.to);
	member_count(out, "firstTick", c->span.first_tick);
	member_count(out, "lastTick", c->span.last_tick);
	member_scaled(out, "intervalSeconds", interval, 3);
	member_text(out, "run", run);
	member_text(out, "policy", policy);
	bracket_end(out, '}');
	return true;
}

static bool is_first_of_name(const struct history_pool *pools, size_t pool, size_t group)
{
	for (size_t p = 0; p <= pool; p++)
		for (size_t g = 0; g < (p < pool ? pools[p].group_count : group); g++)
			if (!strcmp(pools[p].groups[g], pools[pool].groups[group]))
				return false;
	return true;
}

static void write_groups(const struct history_pool *pools, size_t count, struct buf *out)
{
	member_list(out, "groups");
	for (size_t p = 0; p < count; p++)
		for (size_t g = 0; g < pools[p].group_count; g++)
			if (is_first_of_name(pools, p, g)) {
				json_write_comma(out);
				json_write_text(pools[p].groups[g], out);
			}
	bracket_end(out, ']');
}

static bool write_pools(struct api_call *c, struct buf *out, struct error *e)
{
	size_t count = 0, place;
	const struct history_pool *pools = c->history ? history_pools(c->history, &count) : NULL;
	const struct api_fleet *fleet = c->history ? api_fleet_at(c, c->span.last_tick, e) : NULL;

	if (c->history && !fleet)
		return false;
	member_list(out, "pools");
	for (size_t i = 0; i < count; i++) {
		item_begin(out);
		member_text(out, "namespace", pools[i].namespace);
		member_text(out, "name", pools[i].name);
		member_flag(out, "isInForce", api_fleet_place(fleet, i, &place));
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
	write_groups(pools, count, out);
	return true;
}

static bool write_index(struct api_call *c, struct buf *out, struct error *e)
{
	struct error nothing_yet;

	if (!api_try_history(c, &nothing_yet))
		c->history = NULL;
	c->status = 0;
	buf_text(out, "{");
	member_text(out, "version", "v1");
	member_text(out, "program", api_setup(c)->version);
	write_source(c, out);
	if (!write_history(c, out, e) || !write_pools(c, out, e))
		return false;
	member_list(out, "links");
	for (size_t i = 0; api_routes[i]; i++)
		if (!strcmp(api_routes[i]->method, "GET")) {
			json_write_comma(out);
			json_write_text(api_routes[i]->path, out);
		}
	buf_text(out, "]}\n");
	return true;
}

const struct api_route api_route_index = {
	.method = "GET",
	.path = "/api/v1",
	.name = "getIndex",
	.summary = "What is asked, how far it reaches, and which pools and node groups there are",
	.answer = &shape,
	.write = write_index,
};
