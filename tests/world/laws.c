#include "tests/world/laws.h"

#include "controller/web/published.h"
#include "controller/policy/snapshot.h"
#include "controller/policy/pool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 400, LINE = 220 };

/* 10 s after the renewal was sent; what is sent within it arrives a moment later. */
static const millis RENEW_DEADLINE = 10 * SECOND + 30;

/* What the controller may write, and nothing else. */
static const struct {
	const char *verb, *resource, *sub;
} allowed[] = {
	{ "patch", "nodes", "" },	{ "create", "pods", "eviction" },   { "update", "deployments", "scale" },
	{ "create", "events", "" },	{ "patch", "events", "" },	    { "create", "leases", "" },
	{ "update", "leases", "" },	{ "patch", "warmpools", "status" }, { "create", "deployments", "" },
	{ "patch", "deployments", "" },
};

static struct {
	char broken[512];
	char lines[LINES][LINE]; /* the last of the trace */
	size_t line_count;
	uint64_t hash;
	int64_t writes, scale_writes;
	bool stands_still, is_dry, errors_expected, is_verbose;
	int64_t newest_term;
	char newest_life[17]; /* of its tokens */
	millis lease_written, called_at;
	int64_t planned[WORLD_APPS]; /* as the last plan that was seen had it */
	int64_t planned_before[WORLD_APPS];
	millis planned_at[WORLD_APPS];
	int64_t desired_before;
} laws;

static void trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void trace(const char *fmt, ...)
{
	va_list ap;

	if (laws.broken[0] && !laws.is_verbose)
		return; /* its end is what broke */
	char *line = laws.lines[laws.line_count++ % LINES];
	int len = snprintf(line, LINE, "%9.3f  ", (double)wire_now() / SECOND);

	va_start(ap, fmt);
	vsnprintf(line + len, LINE - (size_t)len, fmt, ap);
	va_end(ap);
	if (laws.is_verbose)
		fprintf(stderr, "%s\n", line);
}

/* What counts for two runs of one seed to be the same. */
static void trace_write(const char *line)
{
	trace("%s", line);
	laws.hash = (laws.hash ^ (uint64_t)wire_now()) * UINT64_C(0x100000001b3);
	for (const char *c = line; *c; c++)
		laws.hash = (laws.hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	laws.writes++;
}

void laws_break(const char *law, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!laws.broken[0])
		trace("BROKEN %s: %s", law, text);
	if (!laws.broken[0])
		snprintf(laws.broken, sizeof laws.broken, "%s at %.3f s: %s", law, (double)wire_now() / SECOND, text);
}

const char *laws_broken(void)
{
	return laws.broken;
}

int64_t laws_writes(void)
{
	return laws.writes;
}

int64_t laws_scale_writes(void)
{
	return laws.scale_writes;
}

millis laws_quiet_for(void)
{
	return wire_now() - laws.called_at;
}

uint64_t laws_trace_hash(void)
{
	return laws.hash;
}

void laws_print_trace(size_t last)
{
	size_t from = laws.line_count > LINES ? laws.line_count - LINES : 0;

	if (laws.line_count - from > last)
		from = laws.line_count - last;
	for (size_t i = from; i < laws.line_count; i++)
		fprintf(stderr, "%s\n", laws.lines[i % LINES]);
}

void laws_stand_still(bool is_still)
{
	laws.stands_still = is_still;
}

void laws_dry_run(void)
{
	laws.is_dry = true;
}

bool laws_expect_errors(bool expected)
{
	bool before = laws.errors_expected;

	laws.errors_expected = expected;
	return before;
}

void laws_log(void *user, enum log_level level, const char *line)
{
	(void)user;
	if (level == LEVEL_ERROR && !laws.errors_expected)
		laws_break("clean_logs", "%s", line);
	else if (level >= LEVEL_INFO)
		trace("%s", line);
}

/* --- the cluster --- */

static const char *leading(int who)
{
	static char name[16];

	snprintf(name, sizeof name, who < 0 ? "nobody" : "replica-%d", who);
	return name;
}

static bool is_allowed(const struct apiserver_write *w)
{
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		if (!strcmp(allowed[i].verb, w->verb) && !strcmp(allowed[i].resource, w->resource) &&
		    !strcmp(allowed[i].sub, w->sub))
			return true;
	return false;
}

/* Replicas that were ready for more than a second on nodes that stay. */
static int64_t served(const char *app)
{
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		const struct pod_life *life = p->extra;
		const struct object *node = world_node_of(pod_node(p));
		const struct node_life *n = node ? node->extra : NULL;
		count += value_is(p->value, "metadata>labels>app", app) && life->is_ready && !pod_is_going(p) && n &&
			 wire_now() - life->ready_since > SECOND &&
			 !value_is(node->value, "spec>unschedulable", "true");
	}
	return count;
}

/* Whoever acts must lead, and must have said so within the renew deadline. */
static void look_at_leader(int from, const char *what)
{
	int leader = replica_leader();

	if (!apiserver_find(KIND_LEASE, "preheat", "preheat"))
		return;
	if (leader != from)
		laws_break("one_leader", "%s by replica %d, while %s leads", what, from, leading(leader));
	else if (wire_now() - laws.lease_written > RENEW_DEADLINE)
		laws_break("one_leader", "%s by replica %d, whose lease was renewed %.3f s ago", what, from,
			   (double)(wire_now() - laws.lease_written) / SECOND);
}

/* By then a look has shown it. */
static const millis NOTICED = 75 * SECOND;

static bool is_owners(const struct cloud_group *g)
{
	return g->busy_with && wire_now() - g->busy_since > NOTICED;
}

/* What an owner began is never undone. */
static void look_at_owner_of_node(const struct apiserver_write *w)
{
	const struct object *node = strcmp(w->resource, "nodes") != 0 ? NULL : apiserver_find(KIND_NODE, "", w->name);
	const struct node_life *n = node ? node->extra : NULL;

	if (n && is_owners(n->machine->group))
		laws_break("owner_is_let", "%s of node %s, while its group is busy with %s", w->verb, w->name,
			   n->machine->group->busy_with);
}

static void written(const struct apiserver_write *w)
{
	bool is_lease = !strcmp(w->resource, "leases"), is_own = is_lease || !strcmp(w->resource, "events");
	char line[LINE];

	snprintf(line, sizeof line, "%d %s %s%s%s %s/%s %ld", w->from, w->verb, w->resource, *w->sub ? "/" : "", w->sub,
		 w->space, w->name, w->status);
	if (!is_lease)
		trace_write(line);
	if (laws.is_dry)
		laws_break("never_writes", "%s", line);
	if (!is_allowed(w))
		laws_break("only_allowed_writes", "%s", line);
	if (is_lease && w->status < 300)
		laws.lease_written = wire_now();
	if (!is_lease)
		look_at_leader(w->from, line);
	look_at_owner_of_node(w);
	if (laws.stands_still && !is_own && strcmp(w->sub, "status") != 0)
		laws_break("settled", "%s, while the world stood still", line);
	laws.scale_writes += !strcmp(w->sub, "scale") && w->status == 200;
	if (!strcmp(w->sub, "scale") && w->status == 200 && world_replicas(w->name) < served(w->name))
		laws_break("never_fewer_than_run", "%s: %" PRId64 " replicas, where %" PRId64 " serve", w->name,
			   world_replicas(w->name), served(w->name));
}

/* --- the cloud --- */

static bool is_shrinking(const struct cloud_call *c)
{
	return !strcmp(c->verb, "remove") || !strcmp(c->verb, "stop");
}

static size_t app_number(const char *pool)
{
	size_t i = 0;

	while (world_app_at(i) && strcmp(world_app_at(i)->name, pool) != 0)
		i++;
	return i;
}

static void note_plan(size_t app, int64_t machines)
{
	if (laws.planned[app] == machines)
		return;
	laws.planned_before[app] = laws.planned[app];
	laws.planned[app] = machines;
	laws.planned_at[app] = wire_now();
}

/* What was sent just before a plan arrives just after it. */
static int64_t planned(size_t app)
{
	bool is_new = wire_now() - laws.planned_at[app] < SECOND / 10;

	return is_new && laws.planned_before[app] > laws.planned[app] ? laws.planned_before[app] : laws.planned[app];
}

/* Of each pool: the machines that the last plan of whoever led wants, all groups together. */
static void look_at_plans(void)
{
	for (int who = 0; who < WORLD_REPLICAS; who++) {
		const struct published *p = replica_published(who);
		for (size_t i = 0; p && p->plan && p->role != ROLE_FOLLOWER && i < p->plan->pool_count; i++) {
			int64_t sum = 0;
			for (size_t k = 0; k < p->plan->pools[i].group_count; k++)
				sum += p->plan->pools[i].groups[k].nodes_desired;
			if (sum <
			    p->plan->pools[i]
				    .decision.decided) /* of one GPU each; refills that shall serve count there alone */
				sum = p->plan->pools[i].decision.decided;
			note_plan(app_number(p->fleet->pools[i].name), sum);
		}
	}
}

/* Machines that were marked to go, or are broken, are no part of the plan any more; one whose waking was given up runs
 * on. */
static int64_t marked(const char *pool)
{
	int64_t count = 0;

	for (size_t i = 0; cloud_group_at(i); i++)
		for (const struct cloud_machine *m = cloud_group_at(i)->machines; m; m = m->next) {
			const struct object *node = world_node_of(m->id);
			count += !strcmp(cloud_group_at(i)->pool, pool) && m->is_to_run &&
				 (m->is_taken || m->step == STEP_WAKING || m->never_registers || m->has_no_device ||
				  (node && value_is(node->value, "spec>unschedulable", "true")));
		}
	return count;
}

static bool has_pods(const char *machine)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), machine) && *value_text(p->value, "metadata>labels>app"))
			return true;
	return false;
}

/* Given up, cancelled too late, and used by nobody since: they go when they have been idle for long enough. */
static int64_t spared(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += m->is_spared && m->is_to_run && m->step == STEP_RUNNING && !has_pods(m->id);
	return count;
}

/* Machines that somebody else asked for, that we gave up too late, and launches that the cloud will find it cannot
 * make. */
static int64_t not_ours(const char *pool)
{
	int64_t count = 0;

	for (size_t i = 0; cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		if (strcmp(g->pool, pool) != 0)
			continue;
		count += cloud_owned(g) + spared(g);
		for (size_t k = 0; k < g->refusal_count; k++)
			count += g->refusals[k].is_to_run ? g->refusals[k].count : 0;
	}
	return count;
}

/* Else nothing can have served there. */
static bool has_gpus(const struct object *node)
{
	return value_int(node->value, "status>allocatable>nvidia.com/gpu") > 0;
}

static void look_at_victims(const struct cloud_call *c)
{
	const struct world_app *a = NULL;

	for (size_t i = 0; world_app_at(i); i++)
		if (!strcmp(world_app_at(i)->name, c->group->pool))
			a = world_app_at(i);
	for (size_t i = 0; i < c->id_count; i++) {
		const struct object *node = world_node_of(c->ids[i]);
		const struct node_life *n = node ? node->extra : NULL;
		const struct cloud_machine *m = cloud_find(c->ids[i]);
		if (!m || m->step == STEP_TERMINATING || (!is_shrinking(c) && m->step == STEP_RUNNING))
			continue; /* it is left alone */
		for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
			if (!strcmp(pod_node(p), c->ids[i]) && *value_text(p->value, "metadata>labels>app") &&
			    !value_is(p->value, "status>phase", "Succeeded"))
				laws_break("never_removes_busy", "%s of %s, where %s lives", c->verb, c->ids[i],
					   p->name);
		millis known = a && a->mute_since ? a->mute_since + MINUTE : INT64_MAX;
		if (is_shrinking(c) && wire_now() > known && n && !n->machine->is_taken && has_gpus(node) &&
		    (!n->cordoned_since || n->cordoned_since > known))
			laws_break("held_on_missing", "%s of %s, and nothing is known of %s", c->verb, c->ids[i],
				   c->group->pool);
	}
}

static void before_call(const struct cloud_call *c)
{
	int64_t term = 0;
	char life[17] = "";

	laws.desired_before = world_desired(c->group->pool);
	if (laws.is_dry)
		laws_break("never_writes", "%s of %s in a dry run", c->verb, c->group->name);
	if (strncmp(c->token, "preheat-", 8) != 0)
		laws_break("terms_in_order", "a call with the token '%s', which says no term", c->token);
	term = strtoll(c->token + 8, NULL, 10);
	sscanf(c->token, "preheat-%*d-%16[0-9a-f]-", life);
	if (strlen(life) != 16 || strlen(c->token) > 64 ||
	    (term != laws.newest_term && !strcmp(life, laws.newest_life)))
		laws_break("own_tokens", "the token '%s' is not of one life of one term, or longer than 64", c->token);
	memcpy(laws.newest_life, life, sizeof life);
	if (term < laws.newest_term)
		laws_break("terms_in_order", "term %" PRId64 " called the cloud after term %" PRId64, term,
			   laws.newest_term);
	laws.newest_term = term;
	if (!strcmp(c->verb, "grow") && c->asked > c->group->max)
		laws_break("never_above_max", "%s: asked for %" PRId64 " machines, max is %" PRId64, c->group->name,
			   c->asked, c->group->max);
	look_at_leader(c->from, c->verb);
	if (is_owners(c->group))
		laws_break("owner_is_let", "%s of %s, which is busy with %s", c->verb, c->group->name,
			   c->group->busy_with);
	look_at_plans();
	if (laws.stands_still && strcmp(c->verb, "standby") != 0) /* of which the policy learns that it pays, or not */
		laws_break("settled", "%s of %s while the world stood still", c->verb, c->group->name);
	look_at_victims(c);
}

static void called(const struct cloud_call *c)
{
	char line[LINE];

	if (!c->status) {
		before_call(c);
		return;
	}
	snprintf(line, sizeof line,
		 "%d %s %s %" PRId64 " (%zu named) %ld%s%s: launched %" PRId64 ", woke %" PRId64 ", ended %" PRId64
		 ", desired %" PRId64 " token %s",
		 c->from, c->verb, c->group->name, c->asked, c->id_count, c->status, c->is_repeat ? " again" : "",
		 c->is_lost ? " lost" : "", c->launched, c->woken, c->ended, c->group->desired, c->token);
	trace_write(line);
	laws.called_at = wire_now();
	for (size_t i = 0; i < c->id_count; i++)
		trace("    %s", c->ids[i]);
	if (c->is_repeat && c->status == 400)
		laws_break("never_bought_twice", "token %s was used for another call", c->token);
	int64_t now = world_desired(c->group->pool) - marked(c->group->pool) - not_ours(c->group->pool),
		plan = planned(app_number(c->group->pool));
	if (c->launched && strcmp(c->verb, "grow") == 0 && world_desired(c->group->pool) > laws.desired_before &&
	    now > plan)
		laws_break("never_bought_twice", "%s: %" PRId64 " machines are asked for, %" PRId64 " were decided",
			   c->group->pool, now, plan);
	if (is_shrinking(c) && c->group->desired < c->group->min && c->ended)
		laws_break("never_below_min", "%s: %" PRId64 " desired, min is %" PRId64, c->group->name,
			   c->group->desired, c->group->min);
}

void laws_look(void)
{
	look_at_plans();
	for (size_t i = 0; cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		if (g->desired > g->max || cloud_awake(g) > g->max)
			laws_break("never_above_max", "%s: %" PRId64 " desired, %" PRId64 " machines, max is %" PRId64,
				   g->name, g->desired, cloud_awake(g), g->max);
		if (g->standby > g->standby_max)
			laws_break("never_above_max", "%s: %" PRId64 " machines on standby, %" PRId64 " are allowed",
				   g->name, g->standby, g->standby_max);
	}
}

void laws_begin(void)
{
	memset(&laws, 0, sizeof laws);
	laws.is_verbose = getenv("WORLD_VERBOSE") != NULL;
	apiserver_on_write(written);
	cloud_on_call(called);
}
