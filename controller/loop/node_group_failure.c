#include "base/log.h"
#include "controller/loop/node_group_parts.h"

/* How long a part of a group is out of stock when the cloud's code does not say: as the policy's first back-off. */
static const millis STOCKOUT_LASTS = 3 * MINUTE, QUOTA_LASTS = 10 * MINUTE, MOST_LASTS = DAY;

static const char *told(const char *text)
{
	return text ? text : "";
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void tell_pools(struct node_group *g, const struct event_input *like)
{
	const struct fleet_spec *fleet = g->context->fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		struct event_input e = *like;
		e.group = pool_position(fleet, i, g->index);
		if (e.group >= 0)
			starts_add_event(g->context->starts, i, &e);
	}
}

/* Whether others of the group may have machines still; else the pools hear how long none of it has. */
static bool note_offering(struct node_group *g, const struct launch_failure *f)
{
	millis now = clock_mono(g->context->clock), lasts = f->back_off > 0 ? at_most(f->back_off, MOST_LASTS) : 0;
	bool is_part = *told(f->zone) || *told(f->instance_type);
	bool is_quota = f->kind == ERROR_QUOTA;

	if (f->kind != ERROR_STOCKOUT && !is_quota)
		return false;
	if (!is_part && !lasts)
		return false; /* the policy's own back-off */
	if (!lasts)
		lasts = is_quota ? QUOTA_LASTS : STOCKOUT_LASTS;
	offerings_failed(&g->offerings, told(f->zone), told(f->instance_type), now, lasts);
	millis wait = is_part ? offerings_wait(&g->offerings, now) : lasts;
	if (wait > 0)
		tell_pools(g, &(struct event_input){ .what = is_quota ? EVENT_NO_QUOTA : EVENT_NO_STOCK,
						     .value = wait,
						     .count = f->count });
	return wait == 0;
}

/* Launches for standby are told by what is missing there and not where machines run: standby falls where they are
 * woken, too. The others were to run. */
static int64_t refills_of(const struct node_group *g, const struct launch_failure *f)
{
	const struct believed_size *b = &g->believed;
	int64_t missing = b->standby - g->seen.standby, fell = b->desired - g->seen.desired - b->failed - b->lost;
	int64_t others = f->count - at_most(fell > 0 ? fell : 0, f->count);

	return missing > 0 ? at_most(missing, others) : 0;
}

static void launch_failed(struct node_group *g, const struct launch_failure *f)
{
	int64_t refills = refills_of(g, f);
	int64_t runs = at_most(f->count - refills, node_group_missing(g));
	bool is_missed = note_offering(g, f);

	sizes_refuse(g, true, refills, is_missed ? ERROR_NONE : f->kind);
	sizes_refuse(g, false, runs, is_missed ? ERROR_NONE : f->kind);
	g->believed.standby -= refills;
	sizes_wish_standby(g, g->standby_wanted - refills);
	g->believed.failed += f->count - refills;
	g->wanted -= runs;
	log_warn("launch-failed", LOG_S("group", group_spec_of(g)->name), LOG_I("machines", f->count),
		 LOG_S("kind", error_kind_name(f->kind)), LOG_S("zone", told(f->zone)),
		 LOG_S("instance_type", told(f->instance_type)), LOG_S("message", f->message), LOG_END);
}

/* Of before we led: what of it still holds is remembered, nothing is refused for it. */
static void recall_failure(struct node_group *g, const struct launch_failure *f)
{
	millis passed = clock_now(g->context->clock) - clock_of_wall(g->context->clock, f->at);

	if (f->at > 0 && passed >= 0 && f->back_off > passed)
		offerings_failed(&g->offerings, told(f->zone), told(f->instance_type), clock_mono(g->context->clock),
				 at_most(f->back_off, MOST_LASTS) - passed);
}

void failures_read(struct node_group *g)
{
	for (size_t i = 0; i < g->seen.failure_count; i++) {
		const struct launch_failure *f = &g->seen.failures[i];
		if (f->id <= g->last_failure)
			continue;
		g->last_failure = f->id;
		if (g->ongoing.name && (g->is_known || f->at >= g->ongoing.began))
			g->ongoing.failed = f->kind;
		if (g->is_known)
			launch_failed(g, f);
		else
			recall_failure(g, f);
	}
}

void refusal_tell(struct node_group *g)
{
	if (g->seen.is_refused == g->is_refused)
		return;
	g->is_refused = g->seen.is_refused;
	if (g->is_refused)
		log_warn("group-not-ours-to-change", LOG_S("group", group_spec_of(g)->name),
			 LOG_S("why", told(g->seen.lacks)), LOG_END);
}

static const char *why_no_standby(const struct node_group *g)
{
	if (g->seen.lacks && *g->seen.lacks)
		return g->seen.lacks;
	return g->ops->abilities & PROVIDER_HAS_STANDBY
		       ? "its cloud does not tell"
		       : "machines that nobody is asked about are taken as they are seen: none is known to stand by";
}

void standby_tell(struct node_group *g)
{
	bool has = node_group_can(g, PROVIDER_HAS_STANDBY);

	if (!group_spec_of(g)->standby_max_nodes || has != g->lacks_standby)
		return;
	g->lacks_standby = !has;
	tell_pools(g, &(struct event_input){ .what = EVENT_STANDBY, .value = has, .count = 1 });
	if (!has)
		log_warn("group-lacks-standby", LOG_S("group", group_spec_of(g)->name), LOG_S("why", why_no_standby(g)),
			 LOG_END);
}
