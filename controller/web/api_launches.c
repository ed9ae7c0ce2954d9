/* GET /api/v1/launches: what was asked of clouds, and what came of it. */
#include "base/json.h"
#include "base/quantity.h"
#include "controller/web/api_parts.h"
#include "state/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SAME_TIME_MOST = 1000, MACHINES_SHOWN = 50 };

static const struct api_member item_members[] = {
	{ "token", API_TEXT, .help = "unique; what the provider is told" },
	{ "group", API_TEXT, .help = "the node group" },
	{ "verb", API_TEXT, .help = "what was asked" },
	{ "target", API_COUNT, .may_be_null = true, .help = "size asked for, absolute; null where machines are named" },
	{ "machines", API_TEXTS, .help = "that were named; the first 50" },
	{ "machineCount", API_COUNT, .help = "how many were named" },
	{ "tick", API_COUNT, .may_be_null = true, .help = "the last one decided before" },
	{ "askedAt", API_TIME, .help = "on disk before the first byte went out" },
	{ "endedAt", API_TIME, .may_be_null = true, .help = "null: open" },
	{ "outcome", API_TEXT, .may_be_null = true, .help = "done, or the kind of failure; null: open" },
	{ "operation", API_TEXT, .may_be_null = true, .help = "what the provider calls what goes on after its answer" },
};
static const struct api_shape item_shape = API_SHAPE("Launch", item_members);

static const struct api_member members[] = {
	{ "items", API_LIST, .help = "newest first; a simulation has none", .of = &item_shape },
	{ "next", API_TEXT, .may_be_null = true, .help = "cursor of the next page; null at the end" },
};
static const struct api_shape shape = API_SHAPE("Launches", members);

static void write_item(const struct api_call *c, const struct launch *l, struct buf *out)
{
	item_begin(out);
	member_text(out, "token", l->token);
	member_text(out, "group", l->group);
	member_text(out, "verb", api_setup(c)->verb_name(l->verb));
	member_count(out, "target", l->machine_count ? ABSENT : l->target);
	member_list(out, "machines");
	for (size_t i = 0; i < l->machine_count && i < MACHINES_SHOWN; i++) {
		json_write_comma(out);
		json_write_text(l->machines[i], out);
	}
	bracket_end(out, ']');
	member_count(out, "machineCount", (int64_t)l->machine_count);
	member_count(out, "tick", l->tick < 0 ? ABSENT : l->tick);
	member_time(out, "askedAt", l->asked_at);
	member_time(out, "endedAt", l->outcome ? l->ended_at : 0);
	member_text(out, "outcome", l->outcome);
	member_text(out, "operation", *l->operation ? l->operation : NULL);
	bracket_end(out, '}');
}

/* "MILLIS.N": asked at that time or before, without the first N of exactly that time. */
static bool take_cursor(struct api_call *c, struct launch_filter *f, int64_t *skip, struct error *e)
{
	const char *text = api_value(c, "cursor")->text, *point = text ? strchr(text, '.') : NULL;
	int64_t to;

	*skip = 0;
	if (!text)
		return true;
	if (!point || !fixed_parse(text, (size_t)(point - text), 0, &to) ||
	    !fixed_parse(point + 1, strlen(point + 1), 0, skip) || *skip > SAME_TIME_MOST)
		return api_refuse(c, e, 400, "cursor: found '%.40s'; allowed: what next said, with the same filters",
				  text);
	f->to = to < f->to ? to : f->to;
	return true;
}

static void write_next(const struct launch *all, size_t first, size_t count, bool has_more, struct buf *out)
{
	char cursor[64] = "";
	size_t same = 0;

	/* The oldest told stands at `first`; those of its time behind it. */
	while (first + same < count && all[first + same].asked_at == all[first].asked_at)
		same++;
	if (has_more)
		snprintf(cursor, sizeof cursor, "%" PRId64 ".%zu", all[first].asked_at, same);
	member_text(out, "next", *cursor ? cursor : NULL);
}

static bool write_launches(struct api_call *c, struct buf *out, struct error *e)
{
	struct launch_filter f = { .group = api_value(c, "group")->text };
	int64_t number = api_value(c, "count")->number, skip;
	struct launch *all;
	size_t count;

	if (!api_time_of(c, "from", 0, &f.from, e) || !api_time_of(c, "to", INT64_MAX, &f.to, e) ||
	    !take_cursor(c, &f, &skip, e))
		return false;
	f.most = number + skip + 1;
	if (!launch_find(c->history, &f, &c->arena, &all, &count, e))
		return false;
	/* The oldest first: those that were told stand last. */
	size_t told = 0;
	while (told < (size_t)skip && told < count && all[count - 1 - told].asked_at == f.to)
		told++;
	size_t end = count - told, begin = end > (size_t)number ? end - (size_t)number : 0;
	buf_text(out, "{");
	member_list(out, "items");
	for (size_t i = end; i-- > begin;)
		write_item(c, &all[i], out);
	bracket_end(out, ']');
	write_next(all, begin, count, begin > 0, out);
	buf_text(out, "}\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "from", PARAMETER_TIME, .help = "asked from this time on" },
	{ "to", PARAMETER_TIME, .help = "asked up to this time" },
	{ "group", PARAMETER_TEXT, .max = 253, .help = "only of this node group" },
	{ "count", PARAMETER_COUNT, .min = 1, .max = 500, .fallback = 50, .help = "at most so many" },
	{ "cursor", PARAMETER_TEXT, .max = 64, .help = "what next of the page before said" },
};

const struct api_route api_route_launches = {
	.method = "GET",
	.path = "/api/v1/launches",
	.name = "listLaunches",
	.summary = "What was asked of clouds, and what came of it, newest first",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &shape,
	.write = write_launches,
};
