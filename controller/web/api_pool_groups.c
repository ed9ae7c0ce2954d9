#include "controller/web/api_pool_groups.h"

#include <string.h>

static const char *const capacity_types[] = { "on-demand", "spot", "reserved", NULL };
static const char *const states[] = { "ok", "held", "blocked", "failing", NULL };

static const struct api_member members[] = {
	{ "name", API_TEXT, .help = "of the node group" },
	{ "provider", API_TEXT, .help = "who resizes it" },
	{ "zone", API_TEXT, .may_be_null = true, .help = "of its machines" },
	{ "instanceType", API_TEXT, .may_be_null = true, .help = "of its machines" },
	{ "capacityType", API_TEXT, .help = "how it is bought", .choices = capacity_types },
	{ "pricePerHour", API_NUMBER, .help = "dollars a node" },
	{ "ready", API_COUNT, .help = "replicas of this pool that may start requests here" },
	{ "nodes", API_COUNT, .help = "nodes of the whole group, all pools" },
	{ "desired", API_COUNT, .help = "nodes after the plan, all pools" },
	{ "standby", API_COUNT, .help = "stopped nodes, all pools" },
	{ "min", API_COUNT, .help = "nodes, by the manifest" },
	{ "max", API_COUNT, .help = "nodes, by the manifest" },
	{ "state", API_TEXT,
	  .help = "held: by a limit; blocked: after a refusal; failing: its provider cannot be asked",
	  .choices = states },
	{ "why", API_TEXT, .may_be_null = true, .help = "of a state that is not ok" },
	{ "blockedUntil", API_TIME, .may_be_null = true, .help = "no starts here before then" },
};
const struct api_shape api_pool_group_shape = API_SHAPE("PoolGroup", members);

static const struct published_group *find_live(const struct published *shown, const char *name)
{
	for (size_t i = 0; shown && shown->fleet && shown->groups && i < shown->fleet->group_count; i++)
		if (!strcmp(shown->fleet->groups[i].name, name))
			return &shown->groups[i];
	return NULL;
}

static void write_state(const struct group_decision *d, millis now, const struct published_group *live, struct buf *out)
{
	const char *state = "ok", *why = NULL;
	bool is_blocked = d->blocked_until > now;

	if (d->held_by != LIMIT_NONE) {
		state = "held";
		why = limit_name((enum limit)d->held_by);
	}
	if (is_blocked) {
		state = "blocked";
		why = d->held_by != LIMIT_NONE ? limit_name((enum limit)d->held_by) : "refused lately";
	}
	if (live && published_group_fails(live)) {
		state = "failing";
		why = live->error.message;
	}
	member_text(out, "state", state);
	member_text(out, "why", why);
	member_time(out, "blockedUntil", is_blocked ? d->blocked_until : 0);
}

static void write_spec(const struct group_spec *g, struct buf *out)
{
	member_text(out, "name", g->name);
	member_text(out, "provider", g->provider);
	member_text(out, "zone", *g->zone ? g->zone : NULL);
	member_text(out, "instanceType", *g->instance_type ? g->instance_type : NULL);
	member_text(out, "capacityType", capacity_type_name(g->capacity_type));
	member_scaled(out, "pricePerHour", g->price_per_hour, 6);
}

void api_write_pool_groups(const struct fleet_spec *fleet, size_t place, const struct tick_record *r,
			   const struct published *shown, struct buf *out)
{
	const struct pool_spec *pool = &fleet->pools[place];

	member_list(out, "groups");
	for (size_t i = 0; i < pool->group_count && i < r->plan.group_count && i < r->snapshot.group_count; i++) {
		const struct group_spec *g = &fleet->groups[pool->groups[i]];
		const struct group_decision *d = &r->plan.groups[i];
		const struct group_input *in = &r->snapshot.groups[i];

		item_begin(out);
		write_spec(g, out);
		member_count(out, "ready", in->ready);
		member_count(out, "nodes", d->nodes);
		member_count(out, "desired", d->nodes_desired);
		member_count(out, "standby", in->standby_nodes);
		member_count(out, "min", g->min_nodes);
		member_count(out, "max", g->max_nodes);
		write_state(d, r->now, find_live(shown, g->name), out);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}
