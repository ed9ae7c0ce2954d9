#include "providers/eks_describe.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALWAYS = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS };

struct state {
	const char *name;
	enum machine_state state;
	bool is_standby, holds_place;
};

static const struct state *state_of(const char *name)
{
	static const struct state states[] = {
#define EKS_STATE(name, state, is_standby, holds_place) { name, state, is_standby, holds_place },
#include "providers/eks_lifecycle.def"
#undef EKS_STATE
	};
	static const struct state unknown = { "", MACHINE_PENDING, false, true };
	static const struct state unknown_in_pool = { "", MACHINE_PENDING, true, false };

	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		if (strcmp(states[i].name, name) == 0)
			return &states[i];
	return strncmp(name, "Warmed:", 7) == 0 ? &unknown_in_pool : &unknown;
}

static bool is_gone(const struct eks_instance *i)
{
	return strcmp(i->state, "Terminated") == 0 || strcmp(i->state, "Warmed:Terminated") == 0 ||
	       strcmp(i->state, "Detached") == 0;
}

bool eks_is_starting(const struct eks_instance *i)
{
	return strcmp(i->state, "Pending") == 0 || strncmp(i->state, "Pending:", 8) == 0;
}

bool eks_is_in_service(const struct eks_instance *i)
{
	return strcmp(i->state, "InService") == 0;
}

bool eks_is_leaving(const struct eks_instance *i)
{
	return is_gone(i) || state_of(i->state)->state == MACHINE_TERMINATING;
}

int64_t eks_alive(const struct eks_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->instance_count; i++)
		count += !is_gone(&g->instances[i]) && state_of(g->instances[i].state)->holds_place;
	return count;
}

int64_t eks_standby(const struct eks_group *g)
{
	const struct eks_pool *p = &g->pool;
	int64_t room = (p->prepared < 0 ? g->max : p->prepared) - g->desired;

	if (!p->exists || p->is_being_deleted)
		return 0;
	return room > p->least ? room : p->least;
}

bool eks_has_open_ends(const struct eks_group *g)
{
	for (size_t i = 0; i < g->instance_count && g->pool.exists; i++)
		if (eks_is_starting(&g->instances[i]))
			return true; /* perhaps out of the warm pool */
	return g->desired > eks_alive(g);
}

/* When a starting machine was asked for, and whether it comes out of the warm pool. */
static void read_start(const struct eks_seen *s, struct machine *m)
{
	for (size_t i = 0; i < s->activity_count; i++) {
		const struct eks_activity *y = &s->activities[i];
		if (strncmp(y->description, "Launching", 9) != 0 || !strstr(y->description, m->id))
			continue;
		m->launched_at = y->started_at;
		if (strcasestr(y->description, "from warm pool"))
			m->state = MACHINE_WAKING;
		return;
	}
}

/* One that is on its way out of the warm pool may be told by both lists. */
static bool is_in_group(const struct eks_seen *s, const char *id)
{
	for (size_t i = 0; i < s->group.instance_count; i++)
		if (strcmp(s->group.instances[i].id, id) == 0)
			return true;
	return false;
}

static void add_machines(const struct eks_seen *s, const struct eks_instance *items, size_t count, struct arena *a,
			 struct group_description *out)
{
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf id = { 0 };
		const struct state *state = state_of(items[i].state);
		struct machine *m = &out->machines[out->machine_count];
		if (is_gone(&items[i]) || (items == s->pool && is_in_group(s, items[i].id)))
			continue;
		buf_printf(&id, "aws:///%s/%s", items[i].zone, items[i].id);
		*m = (struct machine){ .id = items[i].id,
				       .provider_id = arena_strdup(a, id.text, id.len),
				       .zone = items[i].zone,
				       .instance_type = items[i].type,
				       .state = state->state,
				       .is_standby = state->is_standby };
		if (eks_is_starting(&items[i]))
			read_start(s, m);
		out->machine_count++;
	}
}

/* Oldest first, as far as that is told; else by id, so that the order stays. */
static int by_age(const void *left, const void *right)
{
	const struct machine *a = left, *b = right;

	if (a->launched_at != b->launched_at)
		return a->launched_at < b->launched_at ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int by_number(const void *left, const void *right)
{
	const struct launch_failure *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

/*
 * Auto Scaling tries again by itself, and now and then succeeds at the very moment when somebody gives up. So a failed
 * launch counts when machines are still missing now and were before: an earlier look read it, too, or it is old enough
 * that one would have (after a restart).
 */
static bool has_settled(const struct eks_seen *s, const struct launch_failure *f)
{
	millis age = s->now - f->at;

	return f->id <= s->told_before || age >= EKS_FAILURE_SETTLES;
}

static void add_failures(const struct eks_seen *s, struct arena *a, struct group_description *out)
{
	if (s->group.desired <= eks_alive(&s->group))
		return;
	out->failures = arena_array(a, struct launch_failure, s->activity_count);
	for (size_t i = 0; i < s->activity_count; i++) {
		struct launch_failure *f = &out->failures[out->failure_count];
		if (eks_read_failure(&s->activities[i], a, f) && has_settled(s, f))
			out->failure_count++;
	}
	if (out->failure_count)
		qsort(out->failures, out->failure_count, sizeof *out->failures, by_number);
}

bool eks_pool_is_nodegroups(const struct eks_seen *s)
{
	return s->warm_pool == EKS_POOL_NODEGROUP || (s->warm_pool == EKS_POOL_EXISTING && s->nodegroup.has_pool);
}

static const char *why_no_pool(const struct eks_seen *s)
{
	const struct eks_pool *p = s->group.pool.exists ? &s->group.pool : &s->nodegroup.pool;

	if (s->was_pool_denied)
		return "no standby: autoscaling:DescribeWarmPool is denied; add it to the role's policy";
	if (p->is_being_deleted)
		return "no standby: the warm pool is being deleted";
	if (!p->exists && s->nodegroup.capacity_type && strcmp(s->nodegroup.capacity_type, "SPOT") == 0)
		return "no standby: a warm pool holds no spot machines; give standby to an on-demand group";
	if (!p->exists && s->warm_pool == EKS_POOL_EXISTING)
		return "no standby: the group has no warm pool; enable warmPoolConfig on the node group (poolState "
		       "Stopped, "
		       "reuseOnScaleIn), or set eks.warmPool to have one made";
	if (p->exists && strcmp(p->state, "Running") == 0)
		return "no standby: the warm pool keeps its machines running at full price; set its state to Stopped";
	return NULL;
}

unsigned eks_abilities(const struct eks_seen *s, const char **lacks)
{
	const struct eks_pool *p = s->group.pool.exists ? &s->group.pool : &s->nodegroup.pool;
	const char *why = why_no_pool(s);

	*lacks = !s->group.may_launch
			 ? "the process Launch of the Auto Scaling group is suspended: nothing starts until it "
			   "is resumed"
		 : why ? why
		 : p->exists && !p->reuses
			 ? "machines are not stopped after use: the warm pool does not reuse them; set ReuseOnScaleIn"
			 : "";
	if (why)
		return ALWAYS;
	return ALWAYS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY |
	       (p->exists && p->reuses ? PROVIDER_STOPS_NAMED : 0);
}

void eks_describe(const struct eks_seen *s, struct arena *a, struct group_description *out)
{
	const struct eks_group *g = &s->group;

	*out = (struct group_description){
		.min = g->min, .max = g->max, .desired = g->desired, .standby = eks_standby(g)
	};
	out->machines = arena_array(a, struct machine, g->instance_count + s->pool_count);
	add_machines(s, g->instances, g->instance_count, a, out);
	add_machines(s, s->pool, s->pool_count, a, out);
	if (out->machine_count)
		qsort(out->machines, out->machine_count, sizeof *out->machines, by_age);
	add_failures(s, a, out);
	out->abilities = eks_abilities(s, &out->lacks);
}
