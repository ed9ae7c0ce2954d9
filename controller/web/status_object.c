#include "controller/web/status_object.h"

#include "base/terminal.h"
#include "base/json.h"
#include "base/record.h"
#include "controller/web/pool_figures.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

struct condition_text {
	enum condition_status status;
	const char *reason; /* CamelCase */
	struct buf *message;
};

/* --- what each condition says of a pool --- */

static const char *const status_names[] = {
	[CONDITION_UNTOLD] = "Unknown",
	[CONDITION_FALSE] = "False",
	[CONDITION_TRUE] = "True",
	[CONDITION_UNKNOWN] = "Unknown",
};

static const char *const type_names[CONDITION_PROBLEM] = {
	[CONDITION_READY] = "Ready",
	[CONDITION_SIGNALS_FRESH] = "SignalsFresh",
	[CONDITION_LIMITED] = "Limited",
	[CONDITION_OBJECTIVE_MET] = "ObjectiveMet",
	[CONDITION_CAPACITY] = "CapacityAvailable",
	[CONDITION_NODE_STUCK] = "NodeStuck",
};

const char *condition_type_name(enum condition_type type)
{
	return type < CONDITION_PROBLEM ? type_names[type]
					: problem_condition((enum pool_problem)(type - CONDITION_PROBLEM));
}

static bool write_clock(millis at, struct buf *out)
{
	time_t seconds = (time_t)(at / SECOND);
	struct tm t;
	char text[40];

	if (at <= 0 || !gmtime_r(&seconds, &t) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t))
		return false;
	buf_text(out, text);
	return true;
}

static void tell_ready(const struct published *p, size_t pool, struct condition_text *out)
{
	static const struct {
		const char *reason, *message;
	} modes[] = {
		[MODE_ACT] = { "Acting", "decided on each tick and acted upon" },
		[MODE_OBSERVE] = { "Observing", "mode observe: watched and priced, never changed" },
		[MODE_PAUSED] = { "Paused", "mode paused: left as it is" },
		[MODE_SHARE] = { "Sharing", "in a share: nodes and replicas are left as they are" },
	};
	enum pool_mode mode = p->fleet->pools[pool].mode;

	if (p->pools[pool].refusal) {
		out->status = CONDITION_FALSE;
		out->reason = "Refused";
		buf_printf(out->message, "%s; until then what it said before stays in force", p->pools[pool].refusal);
		return;
	}
	out->status = CONDITION_TRUE;
	out->reason = p->is_dry_run ? "DryRun" : modes[mode].reason;
	buf_text(out->message, p->is_dry_run ? "dry run: decided, and nothing is changed" : modes[mode].message);
}

static void tell_signals(const struct pool_decision *d, const char *trouble, struct condition_text *out)
{
	static const struct {
		const char *reason, *message;
	} states[SIGNAL_STATE_COUNT] = {
		[SIGNALS_FRESH] = { "Fresh", "all replicas were read" },
		[SIGNALS_PARTIAL] = { "Partial", "not all could be read: nothing is scaled down" },
		[SIGNALS_STALE] = { "Stale", "replicas could not be read lately: nothing is scaled down" },
		[SIGNALS_GONE] = { "Gone", "no replica could be read for long: only the API server's evidence counts" },
	};
	size_t state = d->signals >= 0 && d->signals < SIGNAL_STATE_COUNT ? (size_t)d->signals : SIGNALS_GONE;

	if (state == SIGNALS_PARTIAL && d->disputed > 0) {
		out->reason = "Disputed";
		buf_text(out->message, "what replicas tell contradicts itself: nothing is scaled down");
	} else {
		out->reason = states[state].reason;
		buf_text(out->message, states[state].message);
	}
	out->status = state == SIGNALS_FRESH ? CONDITION_TRUE : CONDITION_FALSE;
	if (trouble)
		buf_printf(out->message, "%s%s", state == SIGNALS_FRESH ? "; but " : ": ", trouble);
}

static void tell_limited(const struct pool_decision *d, struct condition_text *out)
{
	static const char *const reasons[LIMIT_COUNT] = {
		[LIMIT_NONE] = "AsWished",
		[LIMIT_MIN] = "Min",
		[LIMIT_MAX] = "Max",
		[LIMIT_BUDGET] = "Budget",
		[LIMIT_RATE] = "RateOfGrowth",
		[LIMIT_COOLDOWN] = "Cooldown",
		[LIMIT_STALE] = "SignalsStale",
		[LIMIT_QUEUE] = "Queue",
		[LIMIT_STOCKOUT] = "StockOut",
		[LIMIT_QUOTA] = "Quota",
		[LIMIT_WHOLE_NODE] = "WholeNode",
		[LIMIT_GANG] = "Gang",
		[LIMIT_OBSERVE] = "Observe",
		[LIMIT_PAUSED] = "Paused",
		[LIMIT_GROWTH] = "Growth",
		[LIMIT_PODS] = "WaitingPods",
		[LIMIT_ASLEEP] = "SleepersFirst",
		[LIMIT_RESERVATION] = "ReservationEnds",
		[LIMIT_SHARE] = "Share",
		[LIMIT_UNAVAILABLE] = "NodeGroupUnavailable",
	};
	size_t limit = d->held_by >= 0 && d->held_by < LIMIT_COUNT ? (size_t)d->held_by : LIMIT_NONE;

	out->status = limit == LIMIT_NONE ? CONDITION_FALSE : CONDITION_TRUE;
	out->reason = reasons[limit];
	buf_printf(out->message, "wished %lld hot replicas, decided %lld", (long long)d->wished, (long long)d->decided);
	if (limit != LIMIT_NONE)
		buf_printf(out->message, ", held by %s", limit_name((enum limit)limit));
}

static void tell_objective(const struct pool_spec *spec, const struct pool_decision *d, struct condition_text *out)
{
	if (spec->class == CLASS_ANY) {
		out->status = CONDITION_UNKNOWN;
		out->reason = "NoObjective";
		buf_text(out->message, "the default pool serves pods, not requests");
		return;
	}
	if (d->own_share_ppm == ABSENT || spec->violation_cost) {
		out->status = CONDITION_UNKNOWN;
		out->reason = spec->violation_cost ? "PriceDecides" : "Learning";
		buf_text(out->message, spec->violation_cost ? "a late request has a price, and none is promised"
							    : "too few requests seen");
		return;
	}
	bool is_met = d->own_share_ppm <= d->objective_ppm;
	out->status = is_met ? CONDITION_TRUE : CONDITION_FALSE;
	out->reason = !is_met ? "Missed" : d->objective_state == OBJECTIVE_AT_RISK ? "AtRisk" : "Kept";
	buf_printf(out->message, "%s late (half-life three days), allowed %s",
		   human_share((double)d->own_share_ppm / 1e6).text, human_share((double)d->objective_ppm / 1e6).text);
}

static const char *refusal(const struct published *p, size_t group, const struct group_decision *g)
{
	if (p->groups && p->groups[group].error.kind == ERROR_QUOTA)
		return "Quota";
	return g->held_by == LIMIT_QUOTA ? "Quota" : "StockOut";
}

/* Why nothing can be started in the group, as one clause and as a reason; NULL when something can. */
static const char *tell_group(const struct published *p, size_t group, const struct group_decision *g,
			      struct buf *message)
{
	const char *between = message->len ? "; " : "";

	if (g->blocked_until > p->snapshot->now) {
		buf_printf(message, "%s%s refused %s, tried again at ", between, p->fleet->groups[group].name,
			   g->refusals > 1 ? "repeatedly" : "a start");
		write_clock(g->blocked_until, message);
		return refusal(p, group, g);
	}
	if (p->groups && published_group_fails(&p->groups[group])) {
		buf_printf(message, "%s%s", between, p->groups[group].error.message);
		return "ProviderFails";
	}
	return NULL;
}

static void tell_capacity(const struct published *p, size_t pool, struct condition_text *out)
{
	const struct pool_plan *plan = &p->plan->pools[pool];
	const char *why = "StockOut";
	size_t without = 0;

	for (size_t i = 0; i < plan->group_count; i++) {
		const char *reason = tell_group(p, p->fleet->pools[pool].groups[i], &plan->groups[i], out->message);
		why = reason ? reason : why;
		without += reason != NULL;
	}
	bool is_there = without < plan->group_count;
	out->status = is_there ? CONDITION_TRUE : CONDITION_FALSE;
	out->reason = !is_there ? why : without ? "Fallback" : "Available";
	if (!without)
		buf_text(out->message, "no node group is blocked");
}

static void tell_stuck(const struct published_pool *pool, struct condition_text *out)
{
	out->status = pool->stuck_now > 0 ? CONDITION_TRUE : CONDITION_FALSE;
	out->reason = pool->stuck_now > 0 ? "StageOverdue" : "AllGoOn";
	buf_text(out->message, pool->stuck_now > 0 ? "given up and replaced" : "no start was given up lately");
	if (pool->stuck_now > 0 && pool->stuck_reason)
		buf_printf(out->message, ": %s", pool->stuck_reason);
}

static void tell_problem(const char *problem, struct condition_text *out)
{
	out->status = problem ? CONDITION_TRUE : CONDITION_FALSE;
	out->reason = problem ? "Found" : "NotFound";
	buf_text(out->message, problem ? problem : "");
}

/* Fills `out` in, whose message is empty. */
static void condition_tell(enum condition_type type, const struct published *p, size_t pool, struct condition_text *out)
{
	const struct pool_decision *d = &p->plan->pools[pool].decision;

	if (type == CONDITION_READY)
		tell_ready(p, pool, out);
	else if (type == CONDITION_SIGNALS_FRESH)
		tell_signals(d, p->pools ? p->pools[pool].signals_trouble : NULL, out);
	else if (type == CONDITION_LIMITED)
		tell_limited(d, out);
	else if (type == CONDITION_OBJECTIVE_MET)
		tell_objective(&p->fleet->pools[pool], d, out);
	else if (type == CONDITION_CAPACITY)
		tell_capacity(p, pool, out);
	else if (type == CONDITION_NODE_STUCK)
		tell_stuck(&p->pools[pool], out);
	else
		tell_problem(p->pools[pool].problem[type - CONDITION_PROBLEM], out);
}

void condition_adopt(struct conditions *kept, const char *type, const char *status, millis since)
{
	for (int i = 0; i < CONDITION_COUNT; i++)
		for (int s = CONDITION_FALSE; s <= CONDITION_UNKNOWN; s++)
			if (!strcmp(type, condition_type_name((enum condition_type)i)) &&
			    !strcmp(status, status_names[s]))
				kept->items[i] = (struct condition){ (enum condition_status)s, since };
}

/* --- the object --- */

enum { MESSAGE_LONGEST = 1024, REASON_LONGEST = 1024 };

/* Cut at a character. */
static void text_member(const char *key, const char *text, size_t longest, struct buf *out)
{
	CLEANUP(buf_release) struct buf cut = { 0 };
	size_t len = strlen(text);

	if (len > longest)
		for (len = longest; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	buf_append(&cut, text, len);
	json_member(key, out);
	json_write_text(cut.text ? cut.text : "", out);
}

static void number_member(const char *key, int64_t value, struct buf *out)
{
	json_member(key, out);
	if (value == ABSENT)
		buf_text(out, "null");
	else
		buf_printf(out, "%" PRId64, value);
}

/* "2026-01-02T15:04:05Z"; null for 0. */
static void time_member(const char *key, millis at, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	json_member(key, out);
	if (write_clock(at, &text))
		buf_printf(out, "\"%s\"", text.text);
	else
		buf_text(out, "null");
}

static void write_condition(enum condition_type type, const struct condition_text *now, millis at,
			    struct conditions *kept, struct buf *out)
{
	struct condition *c = &kept->items[type];

	if (c->status != now->status)
		*c = (struct condition){ now->status, at };
	json_write_comma(out);
	buf_text(out, "{");
	text_member("type", condition_type_name(type), MESSAGE_LONGEST, out);
	text_member("status", status_names[now->status], MESSAGE_LONGEST, out);
	text_member("reason", now->reason, MESSAGE_LONGEST, out);
	text_member("message", now->message->text ? now->message->text : "", MESSAGE_LONGEST, out);
	time_member("lastTransitionTime", c->since, out);
	buf_text(out, "}");
}

static void write_conditions(const struct published *p, size_t pool, struct conditions *kept, struct buf *out)
{
	buf_text(out, ",\"conditions\":[");
	for (int i = 0; i < CONDITION_COUNT; i++) {
		CLEANUP(buf_release) struct buf message = { 0 };
		struct condition_text now = { .message = &message };

		condition_tell((enum condition_type)i, p, pool, &now);
		write_condition((enum condition_type)i, &now, p->snapshot->now, kept, out);
	}
	buf_text(out, "]");
}

/* Texts, as columns of kubectl show them. */
static void write_figures(const struct pool_decision *d, struct buf *out)
{
	CLEANUP(buf_release) struct buf demand = { 0 }, headroom = { 0 }, lead = { 0 }, wait = { 0 };

	number_member("hot", d->ready, out);
	number_member("standby", d->standby, out);
	number_member("starting", d->on_the_way, out);
	number_member("asleep", d->asleep, out);
	number_member("waking", d->waking, out);
	number_member("draining", d->draining, out);
	figure_replicas(d->demand_milli == ABSENT ? 0 : d->demand_milli, &demand);
	text_member("demand", demand.text, MESSAGE_LONGEST, out);
	figure_replicas(figure_headroom_milli(d), &headroom);
	text_member("headroom", headroom.text, MESSAGE_LONGEST, out);
	figure_lead_time(d, &lead);
	text_member("leadTime", lead.text ? lead.text : "", MESSAGE_LONGEST, out);
	figure_wait_text(d, &wait);
	text_member("wait", wait.text, MESSAGE_LONGEST, out);
}

static void write_decision(const struct published *p, size_t pool, struct buf *out)
{
	const struct pool_decision *d = &p->plan->pools[pool].decision;
	const char *reason = p->pools[pool].reason;

	buf_text(out, ",\"lastDecision\":{");
	number_member("tick", p->snapshot->tick, out);
	time_member("time", p->snapshot->now, out);
	number_member("wished", d->wished, out);
	number_member("decided", d->decided, out);
	text_member("heldBy", limit_name((enum limit)d->held_by), MESSAGE_LONGEST, out);
	text_member("reason", reason ? reason : "", REASON_LONGEST, out);
	buf_text(out, "}");
}

static void write_groups(const struct published *p, size_t pool, struct buf *out)
{
	const struct pool_plan *plan = &p->plan->pools[pool];

	buf_text(out, ",\"nodeGroups\":[");
	for (size_t i = 0; i < plan->group_count; i++) {
		const struct group_decision *g = &plan->groups[i];
		bool is_blocked = g->blocked_until > p->snapshot->now;

		json_write_comma(out);
		buf_text(out, "{");
		text_member("name", p->fleet->groups[p->fleet->pools[pool].groups[i]].name, MESSAGE_LONGEST, out);
		number_member("nodes", g->nodes, out);
		number_member("desired", g->nodes_desired, out);
		if (is_blocked)
			time_member("blockedUntil", g->blocked_until, out);
		text_member("heldBy", limit_name((enum limit)g->held_by), MESSAGE_LONGEST, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void status_object_write(const struct published *p, size_t pool, struct conditions *kept, struct buf *out)
{
	const struct published_pool *shown = &p->pools[pool];

	buf_text(out, "{\"status\":{");
	number_member("observedGeneration", shown->generation, out);
	write_figures(&p->plan->pools[pool].decision, out);
	time_member("lastChange", shown->changed_at, out);
	write_decision(p, pool, out);
	write_groups(p, pool, out);
	write_conditions(p, pool, kept, out);
	buf_text(out, "}}");
}

void status_refused_write(const char *why, int64_t generation, millis now, struct conditions *kept, struct buf *out)
{
	CLEANUP(buf_release) struct buf message = { 0 };
	struct condition_text text = { .status = CONDITION_FALSE, .reason = "Refused", .message = &message };

	buf_text(&message, why);
	/* What was shown before it was refused is not true any more. */
	buf_text(out, "{\"status\":{\"hot\":null,\"standby\":null,\"starting\":null,\"asleep\":null,\"waking\":null,"
		      "\"draining\":null,\"demand\":null,"
		      "\"headroom\":null,\"leadTime\":null,\"wait\":null,\"lastDecision\":null,\"nodeGroups\":null");
	number_member("observedGeneration", generation, out);
	buf_text(out, ",\"conditions\":[");
	write_condition(CONDITION_READY, &text, now, kept, out);
	buf_text(out, "]}}");
}
