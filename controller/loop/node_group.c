#include "controller/loop/node_group.h"

#include "base/alloc.h"
#include "base/log.h"
#include "controller/loop/growth.h"
#include "state/contention_record.h"

#include <stdlib.h>
#include <string.h>

int64_t pool_position(const struct fleet_spec *fleet, size_t pool, size_t group)
{
	for (size_t i = 0; i < fleet->pools[pool].group_count; i++)
		if (fleet->pools[pool].groups[i] == group)
			return (int64_t)i;
	return -1;
}

size_t first_pool(const struct fleet_spec *fleet, size_t group)
{
	return fleet->users[group].count ? fleet->users[group].items[0].pool : 0;
}

static const struct machine *find_machine(const struct group_description *d, const char *machine)
{
	for (size_t i = 0; i < d->machine_count; i++)
		if (!strcmp(d->machines[i].id, machine))
			return &d->machines[i];
	return NULL;
}

const struct machine *node_group_machine(const struct node_group *g, const char *machine)
{
	return find_machine(&g->seen, machine);
}

int64_t node_group_count(const struct node_group *g, enum machine_state state)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += g->seen.machines[i].state == state;
	return count;
}

int64_t node_group_alive(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += machine_counts(&g->seen.machines[i]);
	return count;
}

bool node_group_can(const struct node_group *g, unsigned abilities)
{
	unsigned has = g->is_known ? g->seen.abilities & g->ops->abilities : g->ops->abilities;

	return (has & abilities) == abilities;
}

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	if (value > most)
		value = most;
	return value > least ? value : least;
}

static const char *told(const char *text)
{
	return text ? text : "";
}

/* --- sizes --- */

static int64_t machines_staying(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += machine_counts(&g->seen.machines[i]) && !node_group_is_removing(g, g->seen.machines[i].id);
	return count;
}

int64_t node_group_missing(const struct node_group *g)
{
	int64_t missing = g->wanted - machines_staying(g);

	return missing > 0 ? missing : 0;
}

int64_t node_group_size(const struct node_group *g)
{
	return machines_staying(g) + node_group_missing(g);
}

/* Machines on their way to standby by a removal are counted by the size wanted already. */
int64_t node_group_standby_missing(const struct node_group *g)
{
	int64_t standing = removals_to_standby(g);

	for (size_t i = 0; i < g->seen.machine_count; i++)
		standing +=
			machine_stands_by(&g->seen.machines[i]) && !node_group_is_removing(g, g->seen.machines[i].id);
	return g->standby_wanted > standing ? g->standby_wanted - standing : 0;
}

/* The most that may be asked for. */
static int64_t most_machines(const struct node_group *g)
{
	int64_t most = group_spec_of(g)->max_nodes;

	return g->is_known && g->seen.max > 0 && g->seen.max < most ? g->seen.max : most;
}

int64_t node_group_standby_first(const struct node_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->seen.machine_count; i++)
		count += machine_stands_by(&g->seen.machines[i]) && g->seen.machines[i].never_ran;
	return count;
}

int64_t node_group_standby_most(const struct node_group *g)
{
	return node_group_can(g, PROVIDER_HAS_STANDBY) ? group_spec_of(g)->standby_max_nodes : 0;
}

/* Never above max, unless others asked for more. */
static void wish(struct node_group *g, int64_t machines)
{
	int64_t most = most_machines(g);

	g->wanted = clamp(machines, 0, most > g->seen.desired ? most : g->seen.desired);
}

/* Never above max, and never fewer than are on their way there by a removal. */
static void wish_standby(struct node_group *g, int64_t machines)
{
	int64_t most = node_group_standby_most(g);

	int64_t least = removals_to_standby(g) + (g->seen.keeps_standby ? g->seen.standby : 0);

	if (most < g->seen.standby)
		most = g->seen.standby; /* others asked for more: not ours to take away */
	g->standby_wanted = clamp(machines, least, most);
}

/* --- starts that wait for a machine --- */

/* Whether a start waits for a machine of ours that is not known yet. */
static bool waits_here(const struct node_group *g, const struct start *t, bool is_standby)
{
	bool is_for_machine = t->kind == START_REFILL || t->kind == START_COLD || t->kind == START_WAKE;

	return !t->machine[0] && is_for_machine && (t->kind == START_REFILL) == is_standby &&
	       g->context->fleet->pools[t->pool].groups[t->group] == g->index;
}

/* GPUs of a machine that one start takes, with what is left over beside it. */
static int64_t share_of(const struct node_group *g, const struct start *t)
{
	int64_t each = replicas_per_node(group_spec_of(g), &g->context->fleet->pools[t->pool]);

	return each > 0 ? group_spec_of(g)->gpus_per_node / each : group_spec_of(g)->gpus_per_node;
}

static int64_t gpus_awaited(const struct node_group *g, bool is_standby)
{
	const struct starts *s = g->context->starts;
	int64_t gpus = 0;

	for (size_t i = 0; i < s->count; i++)
		if (waits_here(g, &s->items[i], is_standby))
			gpus += share_of(g, &s->items[i]);
	return gpus;
}

int64_t node_group_unclaimed_gpus(const struct node_group *g)
{
	int64_t left = node_group_missing(g) * group_spec_of(g)->gpus_per_node - gpus_awaited(g, false);

	return left > 0 ? left : 0;
}

static int64_t machines_awaited(const struct node_group *g, bool is_standby)
{
	int64_t size = group_spec_of(g)->gpus_per_node;

	return size > 0 ? (gpus_awaited(g, is_standby) + size - 1) / size : 0;
}

static void fit(struct node_group *g, bool is_standby, int64_t missing)
{
	struct starts *s = g->context->starts;
	int64_t excess = gpus_awaited(g, is_standby) - missing * group_spec_of(g)->gpus_per_node;

	for (size_t i = s->count; i-- > 0 && excess > 0;) {
		if (!waits_here(g, &s->items[i], is_standby))
			continue;
		excess -= share_of(g, &s->items[i]);
		starts_drop(s, i);
	}
}

void node_group_fit_starts(struct node_group *g)
{
	if (g->context->is_barred || node_group_is_held(g)) { /* nothing is sent: as if it had never been wished */
		g->removal_count = 0;
		g->wanted = g->seen.desired;
		g->standby_wanted = g->seen.standby;
	}
	fit(g, false, node_group_missing(g));
	fit(g, true, node_group_standby_missing(g));
}

/* Ends as many starts without a machine as wait for so many machines; ERROR_CANCELLED without telling. */
static void refuse_starts(struct node_group *g, bool is_standby, int64_t machines, enum error_kind why)
{
	struct starts *s = g->context->starts;
	int64_t missing = is_standby ? node_group_standby_missing(g) : node_group_missing(g), waiting = 0;

	for (size_t i = 0; i < s->count; i++)
		waiting += waits_here(g, &s->items[i], is_standby);
	if (missing < machines)
		missing = machines;
	int64_t count = missing > 0 ? (waiting * machines + missing - 1) / missing : 0;
	for (size_t i = s->count; i-- > 0 && count > 0;) {
		if (!waits_here(g, &s->items[i], is_standby))
			continue;
		count--;
		struct start ended = s->items[i];
		if (why == ERROR_CANCELLED)
			starts_drop(s, i);
		else
			starts_refuse(s, i, why);
		if (why == ERROR_STOCKOUT || why == ERROR_QUOTA || why == ERROR_UNAVAILABLE || why == ERROR_NONE)
			g->context->refused(g->context->user, &ended, why);
	}
}

static void tell_pools(struct node_group *g, const struct event_input *like)
{
	const struct group_users *users = &g->context->fleet->users[g->index];

	for (size_t i = 0; i < users->count; i++) {
		struct event_input e = *like;
		e.group = (int64_t)users->items[i].position;
		starts_add_event(g->context->starts, users->items[i].pool, &e);
	}
}

/* --- machines and the starts on them --- */

static int64_t places(const struct node_group *g, size_t pool)
{
	return replicas_per_node(group_spec_of(g), &g->context->fleet->pools[pool]);
}

/* Gives a machine to the starts of a kind that wait for one, pool by pool. */
static void bind(struct node_group *g, struct start *like, enum start_kind kind, int64_t *gpus)
{
	const struct fleet_spec *fleet = g->context->fleet;
	const struct group_users *users = &fleet->users[g->index];

	for (size_t i = 0; i < users->count; i++) {
		like->pool = users->items[i].pool;
		like->group = (int64_t)users->items[i].position;
		int64_t each = fleet->pools[like->pool].gpus_per_replica;
		if (*gpus > 0 && each > 0)
			*gpus -= each * starts_bind_machine(g->context->starts, like, kind, *gpus / each);
	}
}

/* What a machine comes as: stopped ones are woken, and serve those first that were to be woken. */
static enum start_kind comes_as(const struct machine *m)
{
	if (m->is_standby)
		return START_REFILL;
	return m->state == MACHINE_WAKING || m->state == MACHINE_STOPPING ? START_WAKE : START_COLD;
}

/* Or woken; 0: the cloud does not tell, as EKS of machines in service. */
static millis launched(const struct machine *m)
{
	millis at = comes_as(m) == START_WAKE ? m->state_since : m->launched_at;

	return at > 0 ? at : 0;
}

/* Of a group that others raised, what was launched before a start of ours was asked for may have come for them. */
static bool bind_any(struct node_group *g, const struct machine *m)
{
	enum start_kind kind = comes_as(m);
	struct start like = { .kind = kind,
			      .asked_at = launched(m),
			      .is_first = m->never_ran,
			      .is_found = g->is_known && node_group_is_raised(g),
			      .bound_at = clock_now(g->context->clock) };
	int64_t gpus = group_spec_of(g)->gpus_per_node, all = gpus;

	memcpy(like.machine, m->id, strnlen(m->id, MACHINE_ID_MAX));
	bind(g, &like, kind, &gpus);
	if (kind != START_REFILL)
		bind(g, &like, kind == START_COLD ? START_WAKE : START_COLD, &gpus);
	if (gpus < all && kind == START_COLD) {
		struct node_stages stages = g->context->node_stages(g->context->user, m->id);
		starts_follow_node(g->context->starts, m->id, &stages);
	}
	return gpus < all;
}

static struct start adopted(const struct node_group *g, size_t pool, enum start_kind kind)
{
	return (struct start){ .pool = pool,
			       .group = pool_position(g->context->fleet, pool, g->index),
			       .kind = kind,
			       .asked_at = clock_now(g->context->clock),
			       .is_adopted = true,
			       .is_found = g->is_known || node_group_is_raised(g),
			       .ends_at_device =
				       kind != START_REFILL && g->context->runs_work(g->context->user, pool) };
}

/* Places on so many machines that we know only from the size asked for. */
static void adopt_places(struct node_group *g, int64_t machines, enum start_kind kind)
{
	size_t pool = first_pool(g->context->fleet, g->index);
	struct start like = adopted(g, pool, kind);

	if (like.group >= 0)
		starts_ask(g->context->starts, &like, machines * places(g, pool));
}

static bool has_just_joined(const struct node_group *g, size_t pool, const struct node_stages *node)
{
	millis lead = g->context->fleet->pools[pool].lead_time.p95;

	return clock_now(g->context->clock) - node->registered < (lead > 0 ? lead : LAG_MOST);
}

/* A machine that nobody here asked for, on its way: what it will hold counts as on its way, too. When it was launched
 * says nothing of one that was stopped since. */
static void adopt(struct node_group *g, const struct machine *m, millis kept_at, bool was_stopped)
{
	size_t pool = first_pool(g->context->fleet, g->index);
	struct start like = adopted(g, pool, comes_as(m));
	millis began = like.kind == START_WAKE ? m->state_since : m->launched_at;
	struct node_stages node = g->context->node_stages(g->context->user, m->id);
	/* By the first look a node that is not ready may have been ready before, unless it joined of late. */
	bool is_there =
		like.kind == START_REFILL
			? m->state != MACHINE_PENDING
			: node.device > 0 && (node.ready > 0 || (!g->is_known && !has_just_joined(g, pool, &node)));

	if (like.group < 0 || is_there)
		return;
	if (began > 0 && !was_stopped)
		like.asked_at = began;
	int64_t count = places(g, pool);
	struct start *asked = starts_ask(g->context->starts, &like, count);
	/* Whether it was stopped since it was launched is not known any more, but that it runs no longer than this. */
	if (!kept_at && m->state_since > 0)
		kept_at = m->state_since;
	for (int64_t i = 0; kept_at > like.asked_at && i < count; i++)
		asked[i].stage_since = kept_at;
	bind_any(g, m);
}

/* In place of a launch that ended, whose replicas are looked for elsewhere. */
static bool is_retry(const struct node_group *g, const struct machine *m)
{
	return g->retried > 0 && m->state == MACHINE_PENDING && !m->is_standby && !node_group_is_owners(g) &&
	       g->context->unwanted;
}

/* Its node may have come before the cloud told of the machine. */
static void machine_came(struct node_group *g, const struct machine *m, bool was_stopped)
{
	offerings_came(&g->offerings, told(m->zone), told(m->instance_type));
	if (!starts_know_machine(g->context->starts, m->id) && !bind_any(g, m)) {
		if (is_retry(g, m)) {
			g->retried--;
			g->context->unwanted(g->context->user, g->index, m->id);
			return;
		}
		adopt(g, m, 0, was_stopped);
	}
	struct node_stages stages = g->context->node_stages(g->context->user, m->id);
	starts_follow_node(g->context->starts, m->id, &stages);
}

/* Starts whose machine the cloud took back, or never heard of. At the same size it launches another in place of one
 * that was not in service yet. */
static void machine_went(struct node_group *g, const struct machine *was, const struct group_description *before)
{
	struct starts *s = g->context->starts;
	bool is_lowered = g->seen.desired < before->desired, has_ended = false;
	/* What is launched in place of one that others asked for is theirs, and as little to be called off. */
	bool is_ours = g->seen.desired == before->desired && !node_group_is_raised(g);

	for (size_t i = s->count; i-- > 0;) {
		if (strcmp(s->items[i].machine, was->id) != 0)
			continue;
		if (node_group_is_removing(g, was->id)) {
			starts_drop(s, i);
			continue;
		}
		starts_refuse(s, i, is_lowered ? ERROR_CONFLICT : ERROR_UNAVAILABLE);
		has_ended = is_ours && was->state == MACHINE_PENDING && !was->is_standby;
	}
	g->retried += has_ended;
	if (has_ended)
		log_warn("launch-ended", LOG_S("group", group_spec_of(g)->name), LOG_S("machine", was->id),
			 LOG_S("why", "the cloud ended it before it was in service"), LOG_END);
}

/* The machine goes where its starts do not: a refill whose machine shall serve, a replica whose machine is stopped. */
static void leave_machine(struct node_group *g, const struct machine *m)
{
	struct starts *s = g->context->starts;

	for (size_t i = s->count; i-- > 0;) {
		const struct start *t = &s->items[i];
		if (strcmp(t->machine, m->id) != 0 || (t->kind == START_REFILL) == m->is_standby)
			continue;
		if (t->kind == START_REFILL || (!t->pod[0] && (t->kind == START_COLD || t->kind == START_WAKE)))
			starts_unbind_machine(s, i, clock_now(g->context->clock));
		else
			starts_drop(s, i);
	}
}

/* What became of a machine that the size asked for counted. */
static void count_gone(struct node_group *g, const struct machine *was, const struct machine *is)
{
	if (!machine_counts(was) || (is && machine_counts(is)))
		return;
	if (!node_group_is_removing(g, was->id)) {
		/* One that never ran is not lost: its launch failed, which is told, or others lowered the size. */
		g->believed.lost += was->state != MACHINE_PENDING;
		return;
	}
	g->believed.released++;
	g->believed.desired--;
	g->believed.standby += is && is->is_standby;
}

/* Clouds do not tell it. Of those that stood by before we looked so many never ran as the history tells, whichever they
 * are; the others have, if their group takes machines back. */
static bool seems_unused(struct node_group *g, const struct machine *m)
{
	if (!m->is_standby)
		return false;
	if (g->recalled_first > 0) {
		g->recalled_first--;
		return true;
	}
	return m->state == MACHINE_PENDING || !node_group_can(g, PROVIDER_STOPS_NAMED);
}

/* Where a stop empties their disks, that is as good as never. */
static void note_never_ran(struct node_group *g, const struct group_description *before)
{
	for (size_t i = 0; i < g->seen.machine_count; i++) {
		struct machine *m = &g->seen.machines[i];
		const struct machine *was = find_machine(before, m->id);
		if (m->is_standby && g->seen.forgets_images)
			m->never_ran = true;
		else if (was)
			m->never_ran = was->never_ran && (was->is_standby || was->state != MACHINE_RUNNING);
		else
			m->never_ran = seems_unused(g, m);
	}
	g->recalled_first = 0;
}

static void machines_compare(struct node_group *g, const struct group_description *before)
{
	const struct group_description *d = &g->seen;
	struct starts *starts = g->context->starts;

	for (size_t i = 0; i < before->machine_count; i++) {
		const struct machine *was = &before->machines[i], *is = node_group_machine(g, was->id);
		count_gone(g, was, is);
		if (!is || is->state == MACHINE_TERMINATING)
			machine_went(g, was, before);
	}
	for (size_t i = 0; i < d->machine_count; i++)
		leave_machine(g, &d->machines[i]);
	for (size_t i = 0; i < d->machine_count; i++) {
		const struct machine *m = &d->machines[i], *was = find_machine(before, m->id);
		if (m->state != MACHINE_TERMINATING && (!was || (was->is_standby && !m->is_standby)))
			machine_came(g, m, was != NULL);
		else if (m->is_standby && m->state == MACHINE_PENDING && !starts_know_machine(starts, m->id))
			bind_any(g, m); /* its refill was left with the machine that serves in its stead */
		if (m->state == MACHINE_STOPPED)
			starts_machine_stopped(starts, m->id, clock_now(g->context->clock));
	}
	g->retried = clamp(g->retried, 0, d->desired > node_group_alive(g) ? d->desired - node_group_alive(g) : 0);
}

/* --- launches that failed --- */

/* How long a part of a group is out of stock when the cloud's code does not say: as the policy's first back-off. */
static const millis STOCKOUT_LASTS = 3 * MINUTE, QUOTA_LASTS = 10 * MINUTE, MOST_LASTS = DAY;
static const millis FIRST_STEP = 10 * MINUTE;
enum { STEPS = 4 };

/* A long wait is an average of many customers': it is taken in steps, so that pods that have no other group do not wait
 * for all of it after one failure. */
static millis stepped(const struct offerings *o, millis wait)
{
	int steps = o->misses < STEPS ? STEPS - o->misses : 0;
	millis least = wait < FIRST_STEP ? wait : FIRST_STEP;

	return wait >> steps > least ? wait >> steps : least;
}

/* Whether others of the group may have machines still; else the pools hear how long none of it has. */
static bool note_offering(struct node_group *g, const struct launch_failure *f)
{
	millis now = clock_mono(g->context->clock), lasts = f->back_off > 0 ? least_of(f->back_off, MOST_LASTS) : 0;
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
						     .value = stepped(&g->offerings, wait),
						     .count = f->count });
	return wait == 0;
}

/* Launches for standby are told by what is missing there and not where machines run: standby falls where they are
 * woken, too. The others were to run. */
static int64_t refills_of(const struct node_group *g, const struct launch_failure *f)
{
	const struct believed_size *b = &g->believed;
	int64_t missing = b->standby - g->seen.standby, fell = b->desired - g->seen.desired - b->failed - b->lost;
	int64_t others = f->count - least_of(fell > 0 ? fell : 0, f->count);

	return missing > 0 ? least_of(missing, others) : 0;
}

static void launch_failed(struct node_group *g, const struct launch_failure *f)
{
	int64_t refills = refills_of(g, f);
	int64_t runs = least_of(f->count - refills, node_group_missing(g));
	bool is_missed = note_offering(g, f);

	refuse_starts(g, true, refills, is_missed ? ERROR_NONE : f->kind);
	refuse_starts(g, false, runs, is_missed ? ERROR_NONE : f->kind);
	g->believed.standby -= refills;
	wish_standby(g, g->standby_wanted - refills);
	g->believed.failed += f->count - refills;
	g->wanted -= runs;
	log_warn("launch-failed", LOG_S("group", group_spec_of(g)->name), LOG_I("machines", f->count),
		 LOG_S("kind", error_kind_name(f->kind)), LOG_S("zone", told(f->zone)),
		 LOG_S("instance_type", told(f->instance_type)), LOG_S("message", f->message), LOG_END);
}

/* Of before we led: what of it still holds is remembered, nothing is refused for it. Clocks are some seconds apart, and
 * not every cloud tells when it was. */
static void remember_failure(struct node_group *g, const struct launch_failure *f)
{
	millis since = clock_now(g->context->clock) - f->at;
	millis passed = f->at > 0 && since > 0 ? since : 0;

	if (f->back_off > passed)
		offerings_failed(&g->offerings, told(f->zone), told(f->instance_type), clock_mono(g->context->clock),
				 least_of(f->back_off, MOST_LASTS) - passed);
}

/* What a look tells of launches that failed: the starts that waited are refused, and what is out of stock is noted. */
static void failures_read(struct node_group *g)
{
	for (size_t i = 0; i < g->seen.failure_count; i++) {
		const struct launch_failure *f = &g->seen.failures[i];
		if (f->id <= g->last_failure)
			continue;
		g->last_failure = f->id;
		if (g->ongoing.name && (g->is_known || f->at <= 0 || f->at >= g->ongoing.began))
			g->ongoing.failed = f->kind;
		if (g->is_known)
			launch_failed(g, f);
		else
			remember_failure(g, f);
	}
}

static const char *why_no_standby(const struct node_group *g)
{
	if (g->seen.lacks && *g->seen.lacks)
		return g->seen.lacks;
	return g->ops->abilities & PROVIDER_HAS_STANDBY
		       ? "its cloud does not tell"
		       : "machines that nobody is asked about are taken as they are seen: none is known to stand by";
}

void node_group_become_known(struct node_group *g)
{
	g->is_known = true;
	bool has_standby = node_group_can(g, PROVIDER_HAS_STANDBY);

	if (g->seen.is_refused && !g->is_refused)
		log_warn("group-not-ours-to-change", LOG_S("group", group_spec_of(g)->name),
			 LOG_S("why", told(g->seen.lacks)), LOG_END);
	g->is_refused = g->seen.is_refused;
	if (node_group_is_owners(g) != g->was_owners)
		log_warn(g->was_owners ? "group-free-again" : "group-busy", LOG_S("group", group_spec_of(g)->name),
			 LOG_S("with", told(node_group_busy_with(g))), LOG_END);
	g->was_owners = node_group_is_owners(g);
	g->was_missed |= g->was_owners;
	if (!group_spec_of(g)->standby_max_nodes || has_standby != g->lacks_standby)
		return;
	g->lacks_standby = !has_standby;
	tell_pools(g, &(struct event_input){ .what = EVENT_STANDBY, .value = has_standby, .count = 1 });
	if (!has_standby)
		log_warn("group-lacks-standby", LOG_S("group", group_spec_of(g)->name), LOG_S("why", why_no_standby(g)),
			 LOG_END);
}

/* --- what a look shows, and what others made of the sizes --- */

/* Who takes machines away, and not at once after we bought some, has a reason (a schedule before a reservation ends, a
 * person): they are not bought back for so long; nor are those of who adds some called off. */
static const millis YIELDS = 10 * MINUTE;

static void record_contention(const struct node_group *g)
{
	millis now = clock_now(g->context->clock);
	const struct contention_record r = { .is_held = g->contention.is_held,
					     .quiet = g->contention.quiet,
					     .machines = g->contention.machines,
					     .at = now,
					     .yields_until = now + g->yields_until - clock_mono(g->context->clock),
					     .raised_until = now + g->raised_until - clock_mono(g->context->clock) };
	struct error e = { 0 };

	if (g->context->history && !contention_record_save(g->context->history, group_spec_of(g)->name, &r, &e))
		log_error("contention-not-recorded", LOG_S("group", group_spec_of(g)->name), LOG_E(&e), LOG_END);
}

/* What others did while nobody led is not known: they must be quiet from now on. */
void node_group_recall_contention(struct node_group *g)
{
	millis now = clock_now(g->context->clock), mono = clock_mono(g->context->clock);
	struct contention_record r;

	if (!contention_record_find(g->context->history, group_spec_of(g)->name, &r))
		return;
	g->yields_until = mono + clamp(r.yields_until - now, 0, YIELDS);
	g->is_yielding = g->yields_until > mono;
	g->raised_until = mono + clamp(r.raised_until - now, 0, YIELDS);
	if (r.quiet)
		contention_resume(&g->contention, r.is_held,
				  r.quiet < CONTENTION_QUIET_MOST ? r.quiet : CONTENTION_QUIET_MOST, r.machines,
				  r.is_held || r.at > now ? mono : mono - (now - r.at));
}

/* The look that shows a size raised by others showed its machines, too, and starts of ours took some. */
static void share_what_came(struct node_group *g)
{
	struct starts *s = g->context->starts;
	millis looked_at = clock_now(g->context->clock) - (clock_mono(g->context->clock) - g->described_at);

	for (size_t i = 0; i < s->count; i++) {
		struct start *t = &s->items[i];
		const struct machine *m = t->machine[0] ? node_group_machine(g, t->machine) : NULL;
		if (m)
			t->is_found |= launched(m) ? launched(m) <= t->asked_at : t->bound_at >= looked_at;
	}
}

/* Each of their changes counts; against one that follows another nothing more is done. */
static void tell_resized(struct node_group *g, int64_t change)
{
	millis now = clock_mono(g->context->clock);

	g->resized++;
	bool yields = change < 0 && !contention_undoes(&g->contention, change, YIELDS, now);
	/* What an operation of theirs does on its way undoes nothing of ours. */
	bool is_fight = !node_group_is_owners(g) && contention_theirs(&g->contention, change, now);

	if (yields)
		g->yields_until = now + YIELDS;
	if (change > 0) {
		g->raised_until = now + YIELDS;
		share_what_came(g);
	}
	if (is_fight)
		log_warn("group-contended", LOG_S("group", group_spec_of(g)->name),
			 LOG_I("machines", g->contention.machines), LOG_I("times", g->contention.undone), LOG_END);
	if (yields || is_fight || change > 0)
		record_contention(g);
	log_warn("group-resized-by-others", LOG_S("group", group_spec_of(g)->name), LOG_I("from", g->believed.desired),
		 LOG_I("to", g->seen.desired), LOG_S("by", node_group_resized_by(g)), LOG_END);
	tell_pools(g, &(struct event_input){ .what = EVENT_RESIZED, .value = g->seen.desired, .count = 1 });
}

/* It falls where machines are woken, too: what we wished fewer of is fulfilled by that. */
static void take_over_standby(struct node_group *g)
{
	int64_t rose = g->seen.standby - g->believed.standby;

	if (rose < 0)
		rose += clamp(g->believed.standby - g->standby_wanted, 0, -rose);
	wish_standby(g, g->standby_wanted + rose);
}

/* Machines that went, and the size with them, as clouds take spot machines that they do not replace, or at the end of
 * an owner's operation. Elsewhere, and where the cloud keeps the size, somebody wants fewer. */
static int64_t machines_taken(const struct node_group *g, int64_t fell)
{
	bool may_be = !g->seen.replaces_lost && group_spec_of(g)->capacity_type == CAPACITY_SPOT;

	if (!may_be && !node_group_is_owners(g))
		return 0;
	return clamp(fell - g->believed.failed, 0, g->believed.lost);
}

/* Whoever led before us may have raised it last, with a call that no copy of the history here knows: what comes takes
 * the place of what is still to be bought. */
static bool may_be_of_before(const struct node_group *g)
{
	return clock_mono(g->context->clock) - g->opened_at < LAG_MOST;
}

/* Of their call, which is taken for ours: an older read is not believed. It may be somebody's all the same, so that
 * nothing of it is called off. */
static void note_raised(struct node_group *g)
{
	g->raised_until = clock_mono(g->context->clock) + YIELDS;
	accepted_note(&g->accepted, &(struct accepted_call){ .verb = PROVIDER_GROW,
							     .desired = g->seen.desired - g->held_size,
							     .at = clock_now(g->context->clock),
							     .mono = clock_mono(g->context->clock) });
}

/* Only the difference is theirs: what we wished meanwhile stays wished. Returns the machines that went by our
 * operation, which goes on, and that the size counts yet: it falls later. */
static int64_t take_over_size(struct node_group *g)
{
	const struct believed_size *b = &g->believed;
	int64_t fell = b->desired - g->seen.desired;
	int64_t taken = machines_taken(g, fell);
	int64_t others = clamp(fell, 0, b->failed + taken) - fell;
	int64_t staying = machines_staying(g);
	bool goes_on = g->seen.is_busy && g->ongoing.name;
	int64_t owed = goes_on && others <= b->released ? clamp(others, 0, b->released) : 0;

	others -= owed;
	/* One that went by itself before we could end it was replaced: that takes the place of one still to be bought.
	 */
	bool is_replaced = others > 0 && others <= b->released;
	int64_t to_buy = g->wanted + removals_counted(g) - b->desired;
	int64_t used = is_replaced || (others > 0 && may_be_of_before(g)) ? clamp(to_buy, 0, others) : 0;
	g->wanted += others - taken - used;
	if (used && !is_replaced)
		note_raised(g);
	if (others != used && !is_replaced)
		tell_resized(g, others - used);
	/* Never less than stays and the size has room for beside what goes: those end by being named only. An owner
	 * that replaces machines launches some beyond the size, which are no reason to raise it. */
	int64_t least = least_of(staying, g->seen.desired - removals_counted(g) - owed);
	wish(g, g->wanted > least ? g->wanted : least);
	take_over_standby(g);
	return owed;
}

/* Runs without a node, and nobody waits for it any more: its start was given up when it could not be cancelled any
 * more. As a start it is replaced when it takes too long, or released once it is there. */
static void adopt_forgotten(struct node_group *g)
{
	for (size_t i = 0; i < g->seen.machine_count; i++) {
		const struct machine *m = &g->seen.machines[i];
		if (m->state == MACHINE_RUNNING && !m->is_standby && !node_group_is_removing(g, m->id) &&
		    !starts_know_machine(g->context->starts, m->id) &&
		    !g->context->node_stages(g->context->user, m->id).registered)
			adopt(g, m, clock_now(g->context->clock), false);
	}
}

void node_group_keep(struct node_group *g, const char *machine)
{
	const struct machine *m = node_group_machine(g, machine);

	if (m && machine_counts(m) && !starts_know_machine(g->context->starts, machine))
		adopt(g, m, clock_now(g->context->clock), false);
}

static void adopt_unlisted(struct node_group *g, int64_t standby_before)
{
	int64_t run = node_group_missing(g) - machines_awaited(g, false) - g->retried;
	int64_t standby = g->seen.standby - standby_before;
	int64_t unclaimed = node_group_standby_missing(g) - machines_awaited(g, true);

	if (run > 0)
		adopt_places(g, run, START_COLD);
	if (standby > unclaimed)
		standby = unclaimed;
	if (standby > 0)
		adopt_places(g, standby, START_REFILL);
}

/* Twice what one cold start in twenty takes: what takes longer will not come, and nobody waits for it. */
static void end_old_refills(struct node_group *g)
{
	struct starts *s = g->context->starts;
	millis now = clock_now(g->context->clock);

	for (size_t i = s->count; i-- > 0;) {
		const struct start *t = &s->items[i];
		const struct pool_spec *pool = &g->context->fleet->pools[t->pool];
		millis limit = pool->lead_time.p95 > 0 ? 2 * pool->lead_time.p95 : HOUR;
		if (t->kind == START_REFILL && pool->groups[t->group] == g->index && now - t->asked_at > limit)
			starts_drop(s, i);
	}
}

/* Nothing more is done there until others are quiet: what waits for machines goes elsewhere. */
static void hold_still(struct node_group *g)
{
	if (contention_ends(&g->contention, clock_mono(g->context->clock))) {
		log_info("group-quiet-again", LOG_S("group", group_spec_of(g)->name), LOG_END);
		record_contention(g);
	}
	g->is_yielding = clock_mono(g->context->clock) < g->yields_until;
	g->is_put_off = clock_mono(g->context->clock) < g->put_off_until;
	if (!node_group_is_held(g))
		return;
	g->was_missed = true;
	refuse_starts(g, false, node_group_missing(g) - (g->seen.desired - node_group_alive(g)), ERROR_UNAVAILABLE);
	node_group_fit_starts(g);
}

void node_group_put_off(struct node_group *g, const struct error *why)
{
	const char *said = strstr(why->message, ": ");

	said = said ? strstr(said + 2, ": ") : NULL; /* without group and verb */
	snprintf(g->put_off, sizeof g->put_off, "%.*s", (int)sizeof g->put_off - 1, said ? said + 2 : why->message);
	g->put_off_until = clock_mono(g->context->clock) + YIELDS;
	g->is_put_off = true;
}

void node_group_take_over(struct node_group *g)
{
	int64_t standby_before = g->is_known ? g->believed.standby : 0, owed = 0;

	failures_read(g);
	if (g->is_known) {
		owed = take_over_size(g);
		hold_still(g);
	} else {
		g->wanted = g->seen.desired;
		g->standby_wanted = g->seen.standby;
	}
	g->believed = (struct believed_size){ .desired = g->seen.desired - owed,
					      .standby = g->seen.standby,
					      .released = owed };
	removals_settle(g);
	wish(g, g->wanted); /* machines that stay after all */
	adopt_forgotten(g);
	adopt_unlisted(g, standby_before);
	node_group_fit_starts(g);
	end_old_refills(g);
}

void node_group_note_accepted(struct node_group *g, const struct accepted_call *c)
{
	accepted_note(&g->accepted, c);
}

bool node_group_believes(const struct node_group *g, const struct group_description *d, millis began)
{
	return accepted_shows(&g->accepted, d, began, g->last_failure) &&
	       (!g->is_known || !accepted_forgets(&g->accepted, &g->seen, d, began, g->last_failure));
}

/* Machines of the size on their way, as far as they are listed. */
static bool has_coming(const struct node_group *g)
{
	for (size_t i = 0; i < g->seen.machine_count; i++) {
		const struct machine *m = &g->seen.machines[i];
		if (machine_counts(m) && (m->state == MACHINE_PENDING || m->state == MACHINE_WAKING))
			return true;
	}
	return false;
}

/* What comes is beyond the size; or, by the first look, more than an earlier life asked for: others asked for it. */
static bool has_others_coming(const struct node_group *g)
{
	int64_t alive = node_group_alive(g);

	if (has_coming(g) && alive > g->seen.desired)
		return true;
	return !g->is_known && (has_coming(g) || alive < g->seen.desired) && g->seen.desired > g->recalled_size;
}

void node_group_see(struct node_group *g, struct provider_call *c)
{
	struct group_description before = g->seen;

	accepted_seen(&g->accepted, &c->description, g->look_since);
	struct arena held = g->arena;

	g->seen = c->description;
	g->arena = c->arena;
	c->arena = (struct arena){ 0 };
	g->described_at = clock_mono(g->context->clock);
	removals_hold_size(g);
	if (has_others_coming(g))
		g->raised_until = g->described_at + YIELDS;
	note_never_ran(g, &before);
	machines_compare(g, &before);
	arena_release(&held);
	if (g->context->seen)
		g->context->seen(g->context->user, g);
}

/* --- what is wanted --- */

int64_t node_group_grow(struct node_group *g, int64_t machines)
{
	int64_t room = node_group_is_held(g) ? 0 : most_machines(g) - g->wanted;

	if (machines > room)
		machines = room;
	if (machines <= 0)
		return 0;
	machines = growth_allow(g, machines);
	g->wanted += machines;
	return machines;
}

/* The cloud took nothing of it, as it was busy with another or asked too often: it is asked for again, or for less. */
static bool is_untaken(const struct node_group *g)
{
	return g->operation.is_sent && !g->operation.may_be_taken && !g->is_changing;
}

int64_t node_group_unasked(const struct node_group *g)
{
	bool is_asking = g->operation.token[0] && g->operation.verb == PROVIDER_GROW && !is_untaken(g);
	int64_t asked = is_asking ? g->operation.desired : g->seen.desired;

	if (asked < g->believed.desired)
		asked = g->believed.desired;
	return g->wanted + removals_counted(g) - asked;
}

void node_group_give_up(struct node_group *g, int64_t machines)
{
	int64_t unclaimed = node_group_missing(g) - machines_awaited(g, false);

	/* What is asked for this instant stays: the next plan sees what came of it. */
	if (g->operation.token[0] && g->operation.verb == PROVIDER_GROW && !is_untaken(g))
		unclaimed = least_of(unclaimed, g->wanted + removals_counted(g) - g->operation.desired);
	g->wanted -= clamp(machines, 0, unclaimed > 0 ? unclaimed : 0);
}

bool node_group_claim(struct node_group *g)
{
	const struct operation *o = &g->operation;
	bool is_asking = o->token[0] && o->verb == PROVIDER_GROW, is_ending = o->token[0] && o->verb == PROVIDER_CANCEL;
	int64_t asked = is_asking && o->desired > g->believed.desired ? o->desired : g->believed.desired;
	int64_t unclaimed = asked - node_group_alive(g) - machines_awaited(g, false);
	bool is_shown = g->accepted.least < 0 || g->accepted.least_until <= clock_mono(g->context->clock);
	bool is_open = is_asking && (g->is_changing || o->is_uncertain); /* its answer is still to come, or was lost */

	if (!g->is_known || is_ending || is_untaken(g) || (is_shown && !is_open) || unclaimed <= 0)
		return false;
	g->wanted += g->wanted + removals_counted(g) < asked;
	return true;
}

void node_group_set_standby(struct node_group *g, int64_t machines)
{
	if (!node_group_is_held(g) && (machines <= g->standby_wanted || node_group_can(g, PROVIDER_BUYS_STANDBY)))
		wish_standby(g, machines);
}

bool group_is_acted_on(const struct fleet_spec *fleet, size_t group)
{
	const struct group_users *users = &fleet->users[group];

	for (size_t i = 0; i < users->count; i++)
		if (fleet->pools[users->items[i].pool].mode != MODE_ACT)
			return false;
	return users->count > 0;
}

bool node_group_is_ours(const struct node_group *g)
{
	return group_is_acted_on(g->context->fleet, g->index);
}

bool node_group_is_settled(const struct node_group *g)
{
	return g->is_known && !g->seen.is_busy && !g->removal_count && g->wanted == node_group_alive(g) &&
	       node_group_count(g, MACHINE_RUNNING) == g->wanted &&
	       node_group_count(g, MACHINE_STOPPED) == g->standby_wanted;
}

/* --- the next operation, and what came of it --- */

/* An operation that goes on; the slowest cloud takes 2 to 10 minutes, and Cluster Autoscaler waits for 30. */
static const millis STUCK_AFTER = 20 * MINUTE, END_AGAIN_AFTER = 5 * MINUTE;

static bool plan_size(struct node_group *g, enum provider_verb verb, int64_t desired)
{
	bool is_standby = verb == PROVIDER_STANDBY;
	int64_t present = is_standby ? g->believed.standby : g->believed.desired;
	int64_t most = is_standby ? node_group_standby_most(g) : most_machines(g);
	int64_t allowed = growth_clamp(g, verb, desired, most), over = desired - allowed;

	if (over > 0) {
		refuse_starts(g, is_standby, over, ERROR_QUOTA);
		*(is_standby ? &g->standby_wanted : &g->wanted) -= over;
		node_group_fit_starts(g);
		if (allowed <= (is_standby ? g->seen.standby : g->seen.desired))
			return false;
	}
	g->operation.verb = verb;
	g->operation.desired = allowed;
	g->operation.change = allowed - present;
	return true;
}

/* A size that is set by an older list than the nodes that are there would end those that it lacks. */
static bool list_lags(const struct node_group *g)
{
	const struct group_context *context = g->context;

	return context->list_lags && context->list_lags(context->user, g->index);
}

/* What is asked for and never came is not wished any more. Which machines a lower size ends the cloud may choose, so
 * whoever came and is not listed yet is waited for. */
static bool plan_cancel(struct node_group *g)
{
	int64_t alive = node_group_alive(g), desired = g->wanted + removals_counted(g);

	return desired < g->believed.desired && alive < g->believed.desired && node_group_can(g, PROVIDER_CANCELS) &&
	       !list_lags(g) && plan_size(g, PROVIDER_CANCEL, desired > alive ? desired : alive);
}

/* What it was to bring is looked for elsewhere. */
static void refuse_stuck(struct node_group *g)
{
	int64_t missing = least_of(node_group_missing(g), g->seen.desired - node_group_alive(g));

	if (missing <= 0)
		return;
	refuse_starts(g, false, missing, ERROR_UNAVAILABLE);
	g->wanted -= missing;
}

/* What goes on takes nothing but its end: at once when less is wished, and when it is stuck in the way of any wish. */
static bool plan_end(struct node_group *g)
{
	millis now = clock_mono(g->context->clock);
	bool is_stuck = now - g->ongoing.since > STUCK_AFTER;
	bool is_in_the_way = g->removal_count || g->wanted != g->seen.desired || g->standby_wanted != g->seen.standby ||
			     node_group_alive(g) < g->seen.desired;

	if (g->ongoing.ends && now - g->ongoing.end_asked < END_AGAIN_AFTER)
		return false;
	if (is_stuck && !g->ongoing.ends)
		refuse_stuck(g);
	return plan_cancel(g) || (is_stuck && is_in_the_way && node_group_can(g, PROVIDER_CANCELS) &&
				  plan_size(g, PROVIDER_CANCEL, g->seen.desired));
}

bool node_group_waits_for_list(const struct node_group *g)
{
	return g->wanted + removals_counted(g) > g->seen.desired && list_lags(g);
}

bool node_group_plan(struct node_group *g)
{
	enum provider_verb verb = PROVIDER_REMOVE;

	if (node_group_is_held(g))
		return false;
	if (g->seen.is_busy)
		return plan_end(g);
	int64_t desired = g->wanted + removals_counted(g);
	int64_t standby = g->standby_wanted - removals_to_standby(g);
	/* Where one waits for the other, growth goes first: somebody waits for it. At the most, what goes makes room.
	 */
	bool may_wait = desired <= most_machines(g) &&
			((g->seen.takes_turns && desired > g->seen.desired) || removals_gather(g));
	if (removals_due(g, &verb) && (verb == PROVIDER_CANCEL || !may_wait))
		return (verb != PROVIDER_STOP || !list_lags(g)) && removals_plan(g, verb);
	if (plan_cancel(g))
		return true;
	if (desired > g->seen.desired)
		return !node_group_waits_for_list(g) && plan_size(g, PROVIDER_GROW, desired);
	/* Where a pool's size is counted from the group's, a size of before would fill it with what was cancelled. */
	return standby != g->seen.standby && standby >= 0 && node_group_can(g, PROVIDER_HAS_STANDBY) &&
	       !accepted_leaves_doubt(&g->accepted, &g->seen, g->look_since) && plan_size(g, PROVIDER_STANDBY, standby);
}

/* The operation shows in what the cloud told last. */
static bool is_reached(const struct node_group *g)
{
	const struct operation *o = &g->operation;

	if (o->verb == PROVIDER_GROW)
		return g->seen.desired >= o->desired;
	if (o->verb == PROVIDER_STANDBY)
		return g->seen.standby == o->desired;
	for (size_t i = 0; i < o->id_count; i++)
		if (!removal_is_over(g, &o->removals[i]))
			return false;
	return true;
}

/* Machines that a cancel named, that it left alone, and that count: in their place the cloud may have given up others.
 */
static int64_t spared(const struct node_group *g)
{
	const struct operation *o = &g->operation;
	int64_t count = 0;

	for (size_t i = 0; o->verb == PROVIDER_CANCEL && i < o->id_count; i++) {
		const struct machine *m = node_group_machine(g, o->ids[i]);
		count += o->removals[i].was_counted && m && machine_counts(m);
	}
	return count;
}

/* Of an accepted growth: machines that no failure and no loss since accounts for, and that do not show though they
 * should. */
static int64_t count_unseen(const struct node_group *g)
{
	const struct operation *o = &g->operation;
	int64_t rose = clamp(g->seen.desired - g->believed.desired, 0, o->change), failed = 0;

	for (size_t i = 0; i < g->seen.failure_count; i++)
		failed += g->seen.failures[i].id > g->last_failure ? g->seen.failures[i].count : 0;
	return g->seen.is_busy ? 0 : clamp(o->change - rose - failed - g->believed.lost, 0, o->change);
}

/* The cloud said yes, and nothing came of it: a refusal. */
static void refuse_unseen(struct node_group *g, int64_t machines)
{
	struct unseen_launch *u = &g->unseen;

	if (machines <= 0)
		return;
	memcpy(u->token, g->operation.token, sizeof u->token);
	u->machines = machines;
	u->total += machines;
	u->told_until = clock_mono(g->context->clock) + UNSEEN_TOLD;
	log_warn("size-unseen", LOG_S("group", group_spec_of(g)->name), LOG_I("asked", g->operation.desired),
		 LOG_I("shown", g->seen.desired), LOG_I("machines", machines), LOG_S("operation", u->token), LOG_END);
	growth_give_back(g, machines);
	refuse_starts(g, false, machines, ERROR_UNAVAILABLE);
	wish(g, g->wanted - machines);
}

/* What the cloud does not give up takes the place of what was wished since. */
static void come_after_all(struct node_group *g, int64_t machines)
{
	g->wanted += clamp(g->seen.desired - g->wanted - removals_counted(g), 0, machines);
}

bool node_group_take_effect(struct node_group *g, bool *is_seen)
{
	const struct operation *o = &g->operation;
	struct believed_size *b = &g->believed;

	*is_seen = is_reached(g);
	if (o->is_uncertain && !*is_seen)
		return false;
	if (o->verb == PROVIDER_GROW) {
		int64_t unseen = count_unseen(g);
		refuse_unseen(g, unseen);
		b->desired += o->change - unseen;
		contention_ours(&g->contention, o->change - unseen, clock_mono(g->context->clock));
	} else if (o->verb == PROVIDER_STANDBY) {
		b->standby += o->change;
	} else {
		int64_t did = clamp(g->seen.desired - b->desired, o->change - spared(g), 0);
		b->desired += did;
		contention_ours(&g->contention, did - (int64_t)o->id_count, clock_mono(g->context->clock));
		come_after_all(g, did - o->change);
		removals_left_alone(g, false);
	}
	return true;
}

bool node_group_is_unwished(const struct node_group *g)
{
	const struct operation *o = &g->operation;

	return o->verb == PROVIDER_GROW && o->is_uncertain &&
	       node_group_missing(g) - machines_awaited(g, false) >= o->change;
}

bool node_group_asks_less(struct node_group *g)
{
	int64_t less = g->operation.desired - g->wanted - removals_counted(g);

	if (g->operation.verb != PROVIDER_GROW || !is_untaken(g) || less <= 0)
		return false;
	growth_give_back(g, less < g->operation.change ? less : g->operation.change);
	return true;
}

void node_group_call_back(struct node_group *g)
{
	int64_t change = g->operation.change, did = clamp(g->seen.desired - g->believed.desired, 0, change);

	g->believed.desired += did;
	growth_give_back(g, change - did);
	wish(g, g->wanted - (change - did));
}

void node_group_unwish(struct node_group *g, enum error_kind why, int64_t did)
{
	const struct operation *o = &g->operation;
	bool is_standby = o->verb == PROVIDER_STANDBY;
	int64_t *believed = is_standby ? &g->believed.standby : &g->believed.desired;
	int64_t rose = (is_standby ? g->seen.standby : g->seen.desired) - *believed;

	if (!did)
		did = o->change < 0 ? clamp(rose, o->change, 0) : clamp(rose, 0, o->change);
	if (o->change > 0)
		refuse_starts(g, is_standby, o->change - did, why);
	if (o->verb == PROVIDER_GROW && why != ERROR_TIMEOUT && why != ERROR_CANCELLED)
		growth_give_back(g, o->change - did);
	*believed += did;
	if (is_standby)
		wish_standby(g, g->standby_wanted - (o->change - did));
	else if (o->change < 0)
		come_after_all(g, did - o->change);
	else
		wish(g, g->wanted - (o->change - did));
	removals_left_alone(g, true);
	wish(g, g->wanted); /* what stays after all may be more than there is room for beside later wishes */
}
