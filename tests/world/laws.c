#include "tests/world/laws.h"

#include "controller/web/published.h"
#include "controller/policy/snapshot.h"
#include "controller/policy/pool.h"
#include "providers/provider.h"
#include "tests/world/autoscaler.h"
#include "tests/world/lines.h"
#include "tests/world/services.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* UNDONE: two numbers of another writer's, one when we try again, and one that is under way when it is found out. */
enum { LINES = 400, LINE = 220, ACCEPTED = 512, SIZED = 16, UNDONE = 4, PROTECTS = 16 };

/* What others write within it is one contest. */
static const millis CONTEST = 30 * MINUTE;
/* Pods that went may have had their machines ordered before. */
static const millis ASKED_FOR = 30 * MINUTE;

/* 10 s after the renewal was sent; what is sent within it arrives a moment later. */
static const millis RENEW_DEADLINE = 10 * SECOND + 30;

/* What the controller may write, and nothing else. */
static const struct {
	const char *verb, *resource, *sub;
} allowed[] = {
	{ "patch", "nodes", "" },
	{ "create", "pods", "eviction" },
	{ "update", "deployments", "scale" },
	{ "create", "events", "" },
	{ "patch", "events", "" },
	{ "create", "leases", "" },
	{ "update", "leases", "" },
	{ "patch", "warmpools", "status" },
	{ "create", "deployments", "" },
	{ "patch", "deployments", "" },
	{ "patch", "pods", "" },
	{ "create", "endpointslices", "" },
	{ "patch", "endpointslices", "" },
	{ "delete", "endpointslices", "" },
	{ "create", "pods", "" }, /* to have images pulled: look_at_prefetches() */
	{ "delete", "pods", "" },
};

static struct {
	char broken[512];
	char lines[LINES][LINE]; /* the last of the trace */
	size_t line_count;
	uint64_t hash;
	int64_t writes, scale_writes;
	bool stands_still, is_dry, errors_expected, is_verbose;
	int64_t newest_term[WORLD_REPLICAS];
	char newest_life[WORLD_REPLICAS][17]; /* of its tokens */
	millis lease_written[WORLD_REPLICAS], called_at;
	bool are_shared;
	struct accepted {
		int from;
		millis at;
		const char *row; /* the query that finds it */
		char what[80];	 /* by its token, a machine or a size */
	} accepted[ACCEPTED];	 /* since its history was last looked at */
	size_t accepted_count;
	struct planned {
		int64_t machines, before;
		millis at;
	} planned[WORLD_REPLICAS][WORLD_APPS]; /* of each Preheat, as the last plan that was seen had it */
	struct sized {
		int64_t desired;
		millis since;		   /* it is of that size */
		millis resized_at;	   /* by others, of the last one that was looked at */
		millis lowered_at;	   /* by others, from a size that had stood; 0: that is over */
		millis grown_at, asked_at; /* by a growth that launched, and by any */
		int64_t protections;	   /* calls, a minute before `protects_at` */
		millis protects_at;
	} sized[SIZED];
	struct contest {
		size_t others;	       /* that set the replicas, too */
		int64_t replicas;      /* as seen last */
		bool is_others;	       /* somebody else set that */
		int from, life;	       /* of ours that wrote last */
		millis undone[UNDONE]; /* when ours undid what others had set, by turns */
		size_t undone_count;
	} contests[WORLD_APPS];
	struct asked_for {
		int64_t pods;
		millis at;
	} asked_for[WORLD_APPS]; /* the most pods that there were within ASKED_FOR, of apps whose pods are the work */
	int64_t ordered_before, whole_before, standing_before; /* whole, standing by: of the machines that are named */
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

void laws_note(const char *fmt, ...)
{
	char text[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	trace("-- %s", text);
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

/* Of each group what there was when it broke. */
static void trace_machines(void)
{
	for (size_t i = 0; cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		trace("%s: %" PRId64 " desired, %" PRId64 " standby", g->name, g->desired, g->standby);
		for (const struct cloud_machine *m = g->machines; m; m = m->next)
			trace("    %s step %d%s%s%s %s since %.3f", m->id, (int)m->step,
			      m->is_to_run ? "" : " stands by", m->is_taken ? " taken" : "",
			      m->is_protected ? " protected" : "", m->token, (double)m->since / SECOND);
	}
}

void laws_break(const char *law, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!laws.broken[0])
		trace_machines();
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
	if (!apiserver_find(KIND_LEASE, "preheat", replica_lease(from)))
		return;
	if (!replica_leads(from))
		laws_break("one_leader", "%s by replica %d, while %s leads", what, from, leading(replica_leader()));
	else if (wire_now() - laws.lease_written[from] > RENEW_DEADLINE)
		laws_break("one_leader", "%s by replica %d, whose lease was renewed %.3f s ago", what, from,
			   (double)(wire_now() - laws.lease_written[from]) / SECOND);
}

/* By its cloud, whatever others do. Clocks that are within a minute of each other are taken for one. */
static bool will_be_taken(const struct cloud_machine *m)
{
	millis ends_at = m->group->ends_at;

	return m->is_taken || (ends_at && ends_at - wire_now() <= 51 * MINUTE);
}

static bool will_end(const struct cloud_machine *m)
{
	return will_be_taken(m) || m->step == STEP_TERMINATING;
}

/*
 * By then a look has shown it, later where reads lag: but how its node groups are EKS tells at once. EKS is asked only
 * now and then how the node group is while no size moves and no machine leaves, and before each call that changes
 * something, unless it was within 10 s.
 */
static bool is_owners(const struct cloud_group *g, int who, bool is_call)
{
	millis noticed = g->wire != CLOUD_EKS ? 75 * SECOND + g->reads.lag : is_call ? 11 * SECOND : 8 * MINUTE;
	bool shows = g->wire == CLOUD_EKS && g->moved_at && wire_now() - g->moved_at > 75 * SECOND + g->reads.lag;

	return g->busy_with && !line_down_since(who, PEER_CLOUD) && (shows || wire_now() - g->busy_since > noticed);
}

/* What is left can carry what was there all the time lately; from what the cloud ends, all must go in time. */
static void look_at_eviction(const struct apiserver_write *w)
{
	const struct object *pod = apiserver_find(KIND_POD, w->space, w->name);
	const struct pod_life *life = pod ? pod->extra : NULL;
	const struct cloud_machine *m = pod ? cloud_find(pod_node(pod)) : NULL;
	bool stays =
		m && !will_end(m) && life && !life->engine.sleeps; /* who sleeps, or does not wake, serves nobody */
	int64_t left = 0;

	if (m && !will_end(m) && is_owners(m->group, w->from, false))
		laws_break("owner_is_let", "%s was evicted in %s, which is busy with %s", w->name, m->group->name,
			   m->group->busy_with);
	for (size_t i = 0; life && life->is_ready && stays && world_app_at(i); i++) {
		const struct world_app *a = world_app_at(i);
		if (!value_is(pod->value, "metadata>labels>app", a->name))
			continue;
		left = (world_ready(a->name) - 1) * a->slots;
		if (left < engines_least_load(a))
			laws_break("serving_stays",
				   "%s was evicted; the rest can run %" PRId64 " requests of %" PRId64
				   " that there were",
				   w->name, left, engines_least_load(a));
	}
}

/* EKS is asked for what is prepared, the size included: whoever has not seen yet that others lowered it asks for more
 * to stand by. */
static bool is_resizing_unseen(const struct cloud_group *g)
{
	return g->wire == CLOUD_EKS && g->resized.at && wire_now() - g->resized.at <= 75 * SECOND + g->reads.lag;
}

/* By a schedule, for so long that a look has shown it. AKS has none, and tells of nobody's. */
static bool is_switched_off(const struct cloud_group *g)
{
	return g->wire != CLOUD_AKS && g->resized.is_schedule && !g->resized.to && !g->desired &&
	       wire_now() - g->resized.at > 5 * MINUTE;
}

static struct sized *sized(const struct cloud_group *g)
{
	for (size_t i = 0; i < SIZED && cloud_group_at(i); i++)
		if (cloud_group_at(i) == g)
			return &laws.sized[i];
	abort();
}

/* Who lowers it just after it grew, or after raising it, fights with somebody; what falls during an operation of an
 * owner falls with that. */
static void note_size(const struct cloud_group *g)
{
	struct sized *s = sized(g);

	if (g->resized.at > s->resized_at)
		s->lowered_at = g->resized.to < g->resized.from && !g->busy_with && !g->cluster_upgrades &&
						wire_now() - s->since > 3 * MINUTE &&
						wire_now() - s->grown_at > 12 * MINUTE
					? wire_now()
					: 0;
	s->resized_at = g->resized.at;
	if (g->desired != s->desired)
		s->since = wire_now();
	s->desired = g->desired;
}

/* As replica `who` has it; NULL: it has none. */
static const struct group_spec *spec_of(const struct cloud_group *g, int who)
{
	const struct published *p = replica_published(who);

	for (size_t i = 0; p && p->fleet && i < p->fleet->group_count; i++)
		if (!strcmp(p->fleet->groups[i].name, g->name))
			return &p->fleet->groups[i];
	return NULL;
}

/* Where a cloud takes spot machines and lowers the size with them, a lower size is nobody's will. */
static bool may_be_taken(const struct cloud_group *g, int who)
{
	const struct group_spec *spec = spec_of(g, who);

	return g->wire != CLOUD_EKS && (!spec || spec->capacity_type == CAPACITY_SPOT);
}

/* By others, within the ten minutes for which they are let, and a read has shown it to who had looked just before: that
 * it was more nobody knows who begins later. Where machines are launched beside what is there, a call's own read is no
 * look. */
static bool is_lowered(const struct cloud_group *g)
{
	millis lowered = sized(g)->lowered_at, shown = g->resized.shown_at;

	return lowered && shown && g->resized.unwatched < 40 * SECOND && wire_now() - shown > 10 * SECOND &&
	       wire_now() - lowered < 9 * MINUTE && (!g->launches || wire_now() - lowered - g->reads.lag > 80 * SECOND);
}

/* What an owner began is never undone. */
static void look_at_owner_of_node(const struct apiserver_write *w)
{
	const struct object *node = strcmp(w->resource, "nodes") != 0 ? NULL : apiserver_find(KIND_NODE, "", w->name);
	const struct node_life *n = node ? node->extra : NULL;

	/* What the cloud takes soon is emptied in any case. */
	if (n && !will_be_taken(n->machine) && is_owners(n->machine->group, w->from, false))
		laws_break("owner_is_let", "%s of node %s, while its group is busy with %s", w->verb, w->name,
			   n->machine->group->busy_with);
}

/* A mark is put on and taken off by one Preheat. */
static void look_at_mark(const struct apiserver_write *w)
{
	const struct object *node = strcmp(w->resource, "nodes") != 0 ? NULL : apiserver_find(KIND_NODE, "", w->name);
	struct node_life *n = node ? node->extra : NULL;
	char us[64];

	if (!n || w->status != 200)
		return;
	const char *by = value_text(node->value, "metadata>annotations>preheat.dev/draining");
	snprintf(us, sizeof us, "preheat/%s", replica_lease(w->from));
	if (*n->marked_by && strcmp(n->marked_by, by) != 0 && strcmp(n->marked_by, us) != 0)
		laws_break("own_marks", "node %s: the mark of %s became '%s' by %s", w->name, n->marked_by, by, us);
	snprintf(n->marked_by, sizeof n->marked_by, "%s", by);
}

/* --- pods that pull an image --- */

static bool is_prefetch(const struct object *pod)
{
	return value_at(pod->value, "metadata>labels>preheat.dev/prefetch");
}

/* No other pod is ever deleted: they are asked to go. */
static void look_at_deletion(const struct apiserver_write *w)
{
	bool is_pod = !strcmp(w->resource, "pods") && !strcmp(w->verb, "delete");
	const struct object *pod = is_pod ? apiserver_find(KIND_POD, w->space, w->name) : NULL;

	if (pod && !is_prefetch(pod))
		laws_break("deletes_its_own", "pod %s/%s was deleted", w->space, w->name);
}

static const char *pulls_on(const struct object *pod)
{
	const struct value *terms = value_at(pod->value, "spec>affinity>nodeAffinity>"
							 "requiredDuringSchedulingIgnoredDuringExecution>"
							 "nodeSelectorTerms");
	const struct value *fields = terms ? value_at(terms->first, "matchFields") : NULL;

	return fields ? value_text(value_at(fields->first, "values")->first, "") : "";
}

static bool is_selected(const struct object *pod)
{
	static const enum kind kinds[] = { KIND_DEPLOYMENT, KIND_BUDGET, KIND_SERVICE };

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (const struct object *o = apiserver_first(kinds[k]); o; o = o->next) {
			const struct value *s = value_at(
				o->value, kinds[k] == KIND_SERVICE ? "spec>selector" : "spec>selector>matchLabels");
			if (apiserver_selects(s, pod->value))
				return true;
		}
	return false;
}

/* Nobody takes one for a replica, none holds a GPU or a node, and there is one a pool on a node. */
static void look_at_prefetches(void)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		const char *pool = value_text(p->value, "metadata>labels>preheat.dev/prefetch");
		if (!is_prefetch(p))
			continue;
		if (is_selected(p) || !*pulls_on(p) ||
		    value_at(value_at(p->value, "spec>containers")->first, "resources>limits>nvidia.com/gpu"))
			laws_break("prefetch_is_nobody", "pod %s is selected, bound to no node, or has a GPU", p->name);
		for (const struct object *q = p->next; q; q = q->next)
			if (value_is(q->value, "metadata>labels>preheat.dev/prefetch", pool) &&
			    !strcmp(pulls_on(p), pulls_on(q)))
				laws_break("prefetch_once", "pods %s and %s pull the same", p->name, q->name);
	}
}

/* --- who else sets the replicas --- */

static size_t app_number(const char *pool)
{
	size_t i = 0;

	while (world_app_at(i) && strcmp(world_app_at(i)->name, pool) != 0)
		i++;
	return i;
}

static void note_contests(void)
{
	for (size_t i = 0; world_app_at(i); i++) {
		struct contest *t = &laws.contests[i];
		int64_t is = world_replicas(world_app_at(i)->name);
		size_t others = others_scaling(world_app_at(i)->name);
		t->undone_count = others == t->others ? t->undone_count : 0;
		t->others = others;
		t->is_others |= is != t->replicas;
		t->replicas = is;
	}
}

/* Each life of ours finds out by numbers of its own. */
static void look_at_contest(const struct apiserver_write *w)
{
	struct contest *t = &laws.contests[app_number(w->name)];
	int life = replica_life(w->from);
	int64_t is = world_replicas(w->name);
	bool undoes = t->others && t->is_others && is != t->replicas;

	if (t->from != w->from || t->life != life)
		t->undone_count = 0;
	t->from = w->from;
	t->life = life;
	t->is_others = false;
	t->replicas = is;
	if (!undoes)
		return;
	millis *earlier = &t->undone[t->undone_count++ % UNDONE];
	if (t->undone_count > UNDONE && wire_now() - *earlier < CONTEST)
		laws_break("owner_is_let", "%s: set to %" PRId64 ", and somebody else's number was undone %d times",
			   w->name, is, UNDONE);
	*earlier = wire_now();
}

static void look_at_scale(const struct apiserver_write *w)
{
	int64_t is = world_replicas(w->name);

	laws.scale_writes++;
	look_at_contest(w);
	if (is < served(w->name))
		laws_break("never_fewer_than_run", "%s: %" PRId64 " replicas, where %" PRId64 " serve", w->name, is,
			   served(w->name));
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
	for (int i = 0; is_lease && w->status < 300 && i < WORLD_REPLICAS; i++)
		if (!strcmp(replica_lease(i), w->name))
			laws.lease_written[i] = wire_now();
	if (!is_lease && !w->is_again)
		look_at_leader(w->from, line);
	if (!strcmp(w->sub, "eviction") && w->status == 201)
		look_at_eviction(w);
	look_at_owner_of_node(w);
	look_at_mark(w);
	look_at_deletion(w);
	services_written();
	if (laws.stands_still && !is_own && strcmp(w->sub, "status") != 0)
		laws_break("settled", "%s, while the world stood still", line);
	if (!strcmp(w->sub, "scale") && w->status == 200)
		look_at_scale(w);
}

/* --- the cloud --- */

static bool is_shrinking(const struct cloud_call *c)
{
	return !strcmp(c->verb, "remove") || !strcmp(c->verb, "stop");
}

/* Replicas of one Preheat have one lease. */
static int preheat_of(int who)
{
	return strcmp(replica_lease(0), replica_lease(who)) ? who : 0;
}

static void note_plan(int who, size_t app, int64_t machines)
{
	struct planned *p = &laws.planned[preheat_of(who)][app];

	if (p->machines != machines)
		*p = (struct planned){ machines, p->machines, wire_now() };
}

/* What was sent just before a plan arrives just after it. On groups that others use, too, each may buy what it planned,
 * and no more. */
static int64_t planned(size_t app)
{
	int64_t sum = 0;

	for (int i = 0; i < WORLD_REPLICAS; i++)
		for (size_t k = 0; k < WORLD_APPS; k++) {
			const struct planned *p = &laws.planned[i][k];
			bool is_new = wire_now() - p->at < SECOND / 10;
			if (k == app || laws.are_shared)
				sum += is_new && p->before > p->machines ? p->before : p->machines;
		}
	return sum;
}

/* That so many replicas may need: each group has machines of its own size. */
static int64_t machines_for(const struct fleet_spec *fleet, size_t pool, int64_t replicas)
{
	const struct pool_spec *spec = &fleet->pools[pool];
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < spec->group_count; i++) {
		int64_t places = fleet->groups[spec->groups[i]].gpus_per_node / spec->gpus_per_replica;
		least = places > 0 && places < least ? places : least;
	}
	return least == INT64_MAX ? replicas : (replicas + least - 1) / least;
}

/* Of each pool: the machines that the last plan of whoever led wants, all groups together. */
static void look_at_plans(void)
{
	for (int who = 0; who < WORLD_REPLICAS; who++) {
		const struct published *p = replica_published(who);
		if (apiserver_find(KIND_LEASE, "preheat", replica_lease(who)) && !replica_leads(who))
			continue; /* it stands still, and does not know yet */
		for (size_t i = 0; p && p->plan && p->role != ROLE_FOLLOWER && i < p->plan->pool_count; i++) {
			int64_t sum = 0;
			for (size_t k = 0; k < p->plan->pools[i].group_count; k++)
				sum += p->plan->pools[i].groups[k].nodes_desired;
			/* Refills that shall serve count there alone. */
			int64_t decided = machines_for(p->fleet, i, p->plan->pools[i].decision.decided);
			sum = sum < decided ? decided : sum;
			note_plan(who, app_number(p->fleet->pools[i].name), sum);
		}
	}
}

/* What a plan has in mind is Preheat's own word; pods are not. */
static void note_pods(void)
{
	for (size_t i = 0; world_app_at(i); i++) {
		struct asked_for *a = &laws.asked_for[i];
		int64_t count = 0;
		for (const struct object *p = apiserver_first(KIND_POD); p && world_app_at(i)->is_idle; p = p->next)
			count += value_is(p->value, "metadata>labels>app", world_app_at(i)->name) &&
				 !value_is(p->value, "status>phase", "Succeeded");
		if (count >= a->pods || wire_now() - a->at > ASKED_FOR)
			*a = (struct asked_for){ count, wire_now() };
	}
}

/* Without a node for longer than three times what one launch in twenty takes in these worlds: it is replaced, and ended
 * once the removals of its group are gathered and the group takes them. Or a call that ends it is on its way. */
static bool is_given_up(const struct cloud_machine *m)
{
	bool is_held = m->step == STEP_PENDING || (m->step == STEP_RUNNING && !m->was_stopped && !world_node_of(m->id));

	return (is_held && wire_now() - (m->woken ? m->woken : m->launched) > 3 * 70 * SECOND) || wire_carries(m->id);
}

/* What takes the place of a reservation's machines comes before they must be empty. */
static bool is_replaced_early(const struct cloud_group *g)
{
	return g->ends_at && g->ends_at - wire_now() <= 50 * MINUTE + 30 * MINUTE;
}

/* Machines that were marked to go, that were given up, or that are broken, are no part of the plan any more;
 * one whose waking was given up runs on. */
static int64_t marked_in(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next) {
		const struct object *node = world_node_of(m->id);
		count += m->is_to_run && (m->is_taken || is_replaced_early(g) || m->is_recommended || is_given_up(m) ||
					  m->step == STEP_WAKING || m->never_registers || m->has_no_device ||
					  (node && value_is(node->value, "spec>unschedulable", "true")));
	}
	return count;
}

static int64_t marked(const char *pool)
{
	int64_t count = 0;

	for (size_t i = 0; cloud_group_at(i); i++)
		count += strcmp(cloud_group_at(i)->pool, pool) ? 0 : marked_in(cloud_group_at(i));
	return count;
}

/* The manifest's least of the group is bought there, whatever a cheaper or dearer one has too many of. */
static int64_t least_of_group(const struct cloud_group *g, int who)
{
	const struct group_spec *spec = spec_of(g, who);

	return spec && !spec->ends_at ? spec->min_nodes : 0;
}

/* It came, and nobody takes it. */
static bool is_whole(const struct cloud_machine *m)
{
	const struct object *node = m ? world_node_of(m->id) : NULL;

	return m && m->step == STEP_RUNNING && !m->is_taken && !m->never_registers && !m->has_no_device && node;
}

/* What goes by itself, or never came, may go; machines that others added are not counted among what must stay. A
 * reservation's are all gone at its end. */
static void look_at_least(const struct cloud_call *c)
{
	int64_t of_manifest = least_of_group(c->group, c->from);
	int64_t least = of_manifest > c->group->min ? of_manifest : c->group->min;

	if (is_shrinking(c) && c->ended && laws.whole_before && !laws.are_shared && !c->group->ends_at &&
	    c->group->desired < least)
		laws_break("never_below_min", "%s: %" PRId64 " desired, min is %" PRId64, c->group->name,
			   c->group->desired, least);
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

/* Launched by the cloud itself a moment ago: no look can have shown it yet. */
static int64_t retried(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += !strcmp(m->token, CLOUD_RETRY) && m->step == STEP_PENDING &&
			 wire_now() - m->launched < 20 * SECOND;
	return count;
}

/* Machines that somebody else asked for, that nobody has seen, and that we gave up too late. */
static int64_t not_ours(const char *pool)
{
	int64_t count = 0;

	for (size_t i = 0; cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		count += strcmp(g->pool, pool) ? 0 : cloud_owned(g) + cloud_balancing(g) + spared(g) + retried(g);
	}
	return count;
}

/* Else nothing can have served there. */
static bool has_gpus(const struct object *node)
{
	return value_int(node->value, "status>allocatable>nvidia.com/gpu") > 0;
}

static bool is_of_daemon_set(const struct object *pod)
{
	const struct value *owners = value_at(pod->value, "metadata>ownerReferences");

	return owners && owners->first && value_is(owners->first, "kind", "DaemonSet");
}

/* A pod that is at work there; NULL: none is. */
static const struct object *pod_at_work_on(const char *machine)
{
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), machine) && *value_text(p->value, "metadata>labels>app") &&
		    !value_is(p->value, "status>phase", "Succeeded") && !is_of_daemon_set(p))
			return p;
	return NULL;
}

/* From when on whoever acts knows nothing of who serves there. */
static millis unknown_since(const struct world_app *a, int who)
{
	millis cut = world_ready(a->name) ? line_down_since(who, PEER_METRICS) : 0;
	millis since = a->mute_since && (!cut || a->mute_since < cut) ? a->mute_since : cut;

	return since ? since + MINUTE : INT64_MAX;
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
		if (m && m->step == STEP_TERMINATING && m->was_named && m->group->wire == CLOUD_EKS)
			laws_break("ended_once", "%s of %s, which was named and ends already", c->verb, m->id);
		if (!m || m->step == STEP_TERMINATING || (!is_shrinking(c) && m->step == STEP_RUNNING))
			continue; /* it is left alone */
		if (pod_at_work_on(c->ids[i]))
			laws_break("never_removes_busy", "%s of %s, where %s lives", c->verb, c->ids[i],
				   pod_at_work_on(c->ids[i])->name);
		millis known = a ? unknown_since(a, c->from) : INT64_MAX;
		if (is_shrinking(c) && wire_now() > known && n && !n->machine->is_taken &&
		    !is_replaced_early(n->machine->group) && has_gpus(node) &&
		    (!n->cordoned_since || n->cordoned_since > known))
			laws_break("held_on_missing", "%s of %s, and nothing is known of %s", c->verb, c->ids[i],
				   c->group->pool);
	}
}

/* Whom the cloud chose, where only a size was set. */
static void look_at_chosen(const struct cloud_call *c)
{
	for (const struct cloud_machine *m = c->group->machines; c->ended && m; m = m->next) {
		bool is_named = false;
		for (size_t i = 0; i < c->id_count; i++)
			is_named |= !strcmp(c->ids[i], m->id);
		if (!is_named && m->step == STEP_TERMINATING && m->since == wire_now() && pod_at_work_on(m->id))
			laws_break("never_removes_busy", "%s of %s to %" PRId64 " ends %s, where pods live", c->verb,
				   c->group->name, c->asked, m->id);
	}
}

static bool has_rows(sqlite3 *db, const char *sql, const char *text)
{
	sqlite3_stmt *s = NULL;
	bool has = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
		   (!text || sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC) == SQLITE_OK) &&
		   sqlite3_step(s) == SQLITE_ROW;

	sqlite3_finalize(s);
	return has;
}

/* Nodes that whoever calls began to drain, and that an API server that is away cannot mark: who is released is no part
 * of the plan. The row of a drain is there before its mark. */
static int64_t released_unmarked(const struct cloud_call *c)
{
	sqlite3 *db = NULL;
	int64_t count = 0;

	if (sqlite3_open_v2(replica_history(c->from), &db, SQLITE_OPEN_READWRITE, "unix") == SQLITE_OK)
		sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	for (size_t i = 0; db && cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		for (const struct cloud_machine *m = g->machines; m && !strcmp(g->pool, c->group->pool); m = m->next) {
			const struct object *node = world_node_of(m->id);
			count += m->is_to_run && node && !value_is(node->value, "spec>unschedulable", "true") &&
				 has_rows(db, "SELECT 1 FROM drain WHERE node = ? AND ended_at IS NULL", node->name);
		}
	}
	sqlite3_close(db);
	return count;
}

/* Machines that run or will; what the cloud will find that it cannot make is none. */
static int64_t ordered(const char *pool)
{
	int64_t count = 0;

	for (size_t i = 0; cloud_group_at(i); i++)
		count += strcmp(cloud_group_at(i)->pool, pool) ? 0 : cloud_awake(cloud_group_at(i));
	return count;
}

/* AWS and Azure are told no term, or only the end of it. */
static void look_at_term(const struct cloud_call *c)
{
	int at = preheat_of(c->from);
	int64_t *newest = &laws.newest_term[at];
	char life[17] = "";

	if (strncmp(c->token, "preheat-", 8) != 0)
		laws_break("terms_in_order", "a call with the token '%s', which says no term", c->token);
	int64_t term = strtoll(c->token + 8, NULL, 10);
	sscanf(c->token, "preheat-%*d-%16[0-9a-f]-", life);
	if (strlen(life) != 16 || strlen(c->token) > 64 || (term != *newest && !strcmp(life, laws.newest_life[at])))
		laws_break("own_tokens", "the token '%s' is not of one life of one term, or longer than 64", c->token);
	for (int other = 0; other < WORLD_REPLICAS; other++)
		if (other != at && !strcmp(life, laws.newest_life[other]))
			laws_break("own_tokens", "the life in token '%s' is that of another Preheat, too", c->token);
	memcpy(laws.newest_life[at], life, sizeof life);
	if (term < *newest)
		laws_break("terms_in_order", "term %" PRId64 " called the cloud after term %" PRId64, term, *newest);
	*newest = term;
}

static void note_row(const struct cloud_call *c, const char *row, const char *what)
{
	if (laws.accepted_count == ACCEPTED)
		return;
	struct accepted *a = &laws.accepted[laws.accepted_count++];
	a->from = c->from;
	a->at = wire_now();
	a->row = row;
	snprintf(a->what, sizeof a->what, "%s", what);
}

/* What is done is written down first: to be found in what a process leaves behind, by its token where the cloud is told
 * that, else by whom it ends or what size it raises the group to; machines that stand by and end are a smaller stock. A
 * node group may have been renamed since. */
static void note_accepted(const struct cloud_call *c)
{
	static const char ended[] =
		"SELECT 1 FROM launch WHERE instr(char(10) || machines || char(10), char(10) || ? || "
		"char(10))";
	static char ended_or_fewer[200];
	bool stood_by = laws.standing_before == (int64_t)c->id_count;
	char size[24];

	/* Protection buys and ends nothing: what is to be protected is found by looking. */
	if (c->status != 202 || c->is_again || !strcmp(c->verb, "protect"))
		return;
	snprintf(size, sizeof size, "%" PRId64, c->asked);
	snprintf(ended_or_fewer, sizeof ended_or_fewer, "%s OR verb = %d", ended, PROVIDER_STANDBY);
	if (*c->token)
		note_row(c, "SELECT 1 FROM launch WHERE instr(?, token) = 1", c->token);
	else if (!strcmp(c->verb, "remove"))
		for (size_t i = 0; i < c->id_count; i++)
			note_row(c, stood_by ? ended_or_fewer : ended, c->ids[i]);
	else if (!strcmp(c->verb, "grow"))
		note_row(c, "SELECT 1 FROM launch WHERE target = CAST(? AS INTEGER)", size);
}

/* Where a history was thinned the calls of before its first tick went with the ticks. Clocks may differ. */
static bool went_with_ticks(sqlite3 *db, const struct accepted *a)
{
	char at[24];

	snprintf(at, sizeof at, "%" PRId64, WIRE_EPOCH + a->at - HOUR);
	return has_rows(
		db,
		"SELECT 1 FROM rollup WHERE (SELECT min(at) FROM tick WHERE id >= coalesce((SELECT CAST(value AS "
		"INTEGER) FROM fact WHERE name = 'kept_from'), 0)) > CAST(? AS INTEGER)",
		at);
}

/* A follower's own history is set aside for a leader's that is another one: FILE.1, FILE.2 and on. */
static bool is_set_aside(const char *path, const struct accepted *a)
{
	char aside[200];
	bool is_there = false;

	for (int i = 1; !is_there && i < 100; i++) {
		sqlite3 *db = NULL;
		snprintf(aside, sizeof aside, "%s.%d", path, i);
		if (access(aside, F_OK))
			continue; /* of several the oldest go */
		is_there = sqlite3_open_v2(aside, &db, SQLITE_OPEN_READWRITE, "unix") == SQLITE_OK &&
			   has_rows(db, a->row, a->what);
		if (db)
			sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		sqlite3_close(db);
	}
	return is_there;
}

void laws_history(int who, const char *path)
{
	sqlite3 *db = NULL;
	size_t kept = 0;

	if (access(path, F_OK))
		return;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "unix") != SQLITE_OK ||
	    !has_rows(db, "SELECT 1 FROM pragma_quick_check WHERE quick_check = 'ok'", NULL))
		laws_break("no_lost_history", "what replica %d left is damaged: %s", who, sqlite3_errmsg(db));
	if (db) /* its log is the next process's to recover */
		sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	for (size_t i = 0; i < laws.accepted_count; i++) {
		const struct accepted *a = &laws.accepted[i];
		if (a->from != who)
			laws.accepted[kept++] = *a;
		else if (!has_rows(db, a->row, a->what) && !went_with_ticks(db, a) && !is_set_aside(path, a))
			laws_break("no_lost_history", "replica %d did what is of %s, and its history does not know",
				   who, a->what);
	}
	laws.accepted_count = kept;
	sqlite3_close(db);
}

void laws_share_groups(void)
{
	laws.are_shared = true;
}

/* Who raised the size a moment ago has a reason, and a machine that is not there yet cannot have been of no use. Of a
 * launch of ours that the cloud ended and repeats nothing is asked: it is called off, and had elsewhere. Nor of what
 * takes the place of a machine later, in the size that was raised, nor of what never comes, nor where both asked for
 * machines at the same time: whose a machine is then nobody tells. */
static void look_at_raised(const struct cloud_call *c)
{
	const struct cloud_group *g = c->group;
	millis since = wire_now() - g->resized.at; /* a look has shown it by then */
	bool is_raised = g->resized.to > g->resized.from && since > 30 * SECOND + g->reads.lag && since < 10 * MINUTE &&
			 sized(g)->asked_at < g->resized.at;

	for (size_t i = 0; is_raised && i < c->id_count; i++) {
		const struct cloud_machine *m = cloud_find(c->ids[i]);
		if (m && !strcmp(m->token, CLOUD_OWNER) && m->step == STEP_PENDING && !m->is_taken &&
		    m->launched - g->resized.at < 2 * MINUTE && wire_now() - m->launched < 4 * MINUTE)
			laws_break("owner_is_let", "%s of %s names %s, which comes as somebody raised it to %" PRId64,
				   c->verb, g->name, m->id, g->resized.to);
	}
}

/* Whoever replaces launches one beyond the size first and ends the other within minutes: who ends the one leaves the
 * owner with neither. Near the end of a reservation all of its machines go. */
static void look_at_replacement(const struct cloud_call *c)
{
	for (size_t i = 0; i < c->id_count; i++) {
		const struct cloud_machine *m = cloud_find(c->ids[i]);
		const struct cloud_machine *old = m && *m->replaces ? cloud_find(m->replaces) : NULL;
		millis since = m ? wire_now() - m->launched : 0;
		if (old && old->is_to_run && old->step != STEP_TERMINATING && !m->is_taken &&
		    !is_replaced_early(c->group) && m->step != STEP_TERMINATING && !is_given_up(m) &&
		    cloud_awake(c->group) > c->group->desired && since > 75 * SECOND + c->group->reads.lag &&
		    since < 15 * MINUTE)
			laws_break("owner_is_let",
				   "%s of %s names %s, and %s, in whose place it was launched, is there", c->verb,
				   c->group->name, m->id, old->id);
	}
}

/* Whose pods have all its label: a pool that takes any has others, too. */
static bool is_training(const struct cloud_call *c)
{
	const struct published *p = replica_published(c->from);

	for (size_t i = 0; p && p->fleet && i < p->fleet->pool_count; i++)
		if (!strcmp(p->fleet->pools[i].name, c->group->pool))
			return p->fleet->pools[i].class == CLASS_TRAINING;
	return false;
}

/* Where pods are the work each needs one machine at the most, whatever anybody plans. */
static void look_at_pods(const struct cloud_call *c, int64_t machines)
{
	size_t app = app_number(c->group->pool);
	int64_t least = 0;

	if (!world_app_at(app) || !is_training(c) || !c->launched || strcmp(c->verb, "grow") != 0)
		return;
	for (size_t i = 0; cloud_group_at(i); i++)
		if (!strcmp(cloud_group_at(i)->pool, c->group->pool))
			least += least_of_group(cloud_group_at(i), c->from);
	int64_t most = laws.asked_for[app].pods * (laws.are_shared ? WORLD_REPLICAS : 1) + least;
	if (machines > most)
		laws_break("never_bought_twice",
			   "%s: %" PRId64 " machines are asked for, and %" PRId64 " pods were there", c->group->pool,
			   machines, laws.asked_for[app].pods);
}

/* Throttling is of the account: whoever asks again and again for what reads do not show yet stops all groups. */
static void look_at_protects(const struct cloud_group *g)
{
	struct sized *s = sized(g);

	if (wire_now() - s->protects_at >= MINUTE) {
		s->protections = g->protections;
		s->protects_at = wire_now();
	}
	if (g->protections - s->protections > PROTECTS)
		laws_break("asks_seldom", "%" PRId64 " calls within a minute that protect machines of %s",
			   g->protections - s->protections, g->name);
}

static void before_call(const struct cloud_call *c)
{
	laws.ordered_before = ordered(c->group->pool);
	laws.whole_before = laws.standing_before = 0;
	for (size_t i = 0; i < c->id_count; i++) {
		const struct cloud_machine *m = cloud_find(c->ids[i]);
		laws.whole_before += is_whole(m);
		laws.standing_before += m && (m->step == STEP_STOPPED || m->step == STEP_STOPPING);
	}
	if (laws.is_dry)
		laws_break("never_writes", "%s of %s in a dry run", c->verb, c->group->name);
	if (c->group->wire == CLOUD_SIMULATED && !c->is_again)
		look_at_term(c);
	if (!strcmp(c->verb, "grow") && c->asked > c->group->max)
		laws_break("never_above_max", "%s: asked for %" PRId64 " machines, max is %" PRId64, c->group->name,
			   c->asked, c->group->max);
	if (!c->is_again)
		look_at_leader(c->from, c->verb);
	if (is_owners(c->group, c->from, true))
		laws_break("owner_is_let", "%s of %s, which is busy with %s", c->verb, c->group->name,
			   c->group->busy_with);
	if (is_switched_off(c->group) && strcmp(c->verb, "grow") == 0)
		laws_break("owner_is_let", "%s of %s, which a schedule switched off", c->verb, c->group->name);
	int64_t stand_by = c->group->wire == CLOUD_EKS ? cloud_warm_size(c->group) : c->group->standby;
	if (!strcmp(c->verb, "standby") && c->asked > c->group->standby_max && c->asked > stand_by &&
	    !is_resizing_unseen(c->group))
		laws_break("never_above_max", "%s: asked for %" PRId64 " machines on standby, %" PRId64 " are allowed",
			   c->group->name, c->asked, c->group->standby_max);
	note_size(c->group);
	if (is_lowered(c->group) && strcmp(c->verb, "grow") == 0 && !may_be_taken(c->group, c->from))
		laws_break("owner_is_let", "%s of %s to %" PRId64 ", which somebody lowered to %" PRId64, c->verb,
			   c->group->name, c->asked, c->group->resized.to);
	look_at_plans();
	if (laws.stands_still && strcmp(c->verb, "standby") != 0) /* of which the policy learns that it pays, or not */
		laws_break("settled", "%s of %s while the world stood still", c->verb, c->group->name);
	look_at_victims(c);
	look_at_raised(c);
	look_at_replacement(c);
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
	note_accepted(c);
	if (c->launched || c->woken)
		*sized(c->group) = (struct sized){ .desired = c->group->desired,
						   .since = wire_now(),
						   .resized_at = c->group->resized.at,
						   .grown_at = wire_now(),
						   .asked_at = sized(c->group)->asked_at };
	if (!strcmp(c->verb, "grow") && c->status == 202)
		sized(c->group)->asked_at = wire_now();
	for (size_t i = 0; i < c->id_count; i++)
		trace("    %s", c->ids[i]);
	if (c->is_repeat && c->status == 400)
		laws_break("never_bought_twice", "token %s was used for another call", c->token);
	int64_t now = ordered(c->group->pool) - marked(c->group->pool) - not_ours(c->group->pool),
		plan = planned(app_number(c->group->pool));
	if (c->launched && strcmp(c->verb, "grow") == 0 && ordered(c->group->pool) > laws.ordered_before &&
	    now > plan && c->group->desired - marked_in(c->group) > least_of_group(c->group, c->from) &&
	    now - released_unmarked(c) > plan)
		laws_break("never_bought_twice", "%s: %" PRId64 " machines are asked for, %" PRId64 " were decided",
			   c->group->pool, now, plan);
	look_at_pods(c, now);
	look_at_least(c);
	look_at_chosen(c);
}

void laws_look(void)
{
	look_at_plans();
	look_at_prefetches();
	note_pods();
	note_contests();
	for (size_t i = 0; cloud_group_at(i); i++) {
		const struct cloud_group *g = cloud_group_at(i);
		note_size(g);
		look_at_protects(g);
		/* An owner may go beyond it for a while: zones and spot are rebalanced so. */
		if (g->desired > g->max || cloud_awake(g) - cloud_owned(g) - cloud_balancing(g) > g->max)
			laws_break("never_above_max", "%s: %" PRId64 " desired, %" PRId64 " machines, max is %" PRId64,
				   g->name, g->desired, cloud_awake(g), g->max);
		/* Where each that is named is stopped, and where others make the group smaller, it is nobody's wish. */
		if (g->standby > g->standby_max && g->wire == CLOUD_SIMULATED)
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
