#include "providers/eks_group.h"

#include "providers/exchange.h"
#include "providers/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALWAYS = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS | PROVIDER_PROTECTS };

/* A look may show the group as it was so long before. */
static const millis READ_LATE = MINUTE;

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

static bool is_starting(const struct eks_instance *i)
{
	return strcmp(i->state, "Pending") == 0 || strncmp(i->state, "Pending:", 8) == 0;
}

static bool is_in_service(const struct eks_instance *i)
{
	return strcmp(i->state, "InService") == 0;
}

static bool is_leaving(const struct eks_instance *i)
{
	return is_gone(i) || state_of(i->state)->state == MACHINE_TERMINATING;
}

static int64_t alive(const struct eks_group *g)
{
	int64_t count = 0;

	for (size_t i = 0; i < g->instance_count; i++)
		count += !is_gone(&g->instances[i]) && state_of(g->instances[i].state)->holds_place;
	return count;
}

static int64_t standby_of(const struct eks_group *g)
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
		if (is_starting(&g->instances[i]))
			return true; /* perhaps out of the warm pool */
	return g->desired > alive(g);
}

bool eks_is_ending(const struct eks_instance *i)
{
	return state_of(i->state)->state == MACHINE_TERMINATING;
}

bool eks_has_endings(const struct eks_group *g)
{
	for (size_t i = 0; i < g->instance_count; i++)
		if (eks_is_ending(&g->instances[i]))
			return true;
	return false;
}

struct details_text {
	const char *zone;
};

static const struct field details_fields[] = { FIELD(struct details_text, zone, FIELD_STRING, "Availability Zone") };
static const struct record_spec details_record = RECORD(struct details_text, details_fields);

enum error_kind eks_failure_kind(const char *code, const char *message, millis *back_off)
{
	static const struct {
		const char *text;
		enum error_kind kind;
		millis back_off;
	} texts[] = {
#define EKS_FAILURE(text, kind, back_off) { text, kind, back_off },
#include "providers/eks_failure.def"
#undef EKS_FAILURE
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcasestr(code, texts[i].text) || strcasestr(message, texts[i].text)) {
			if (back_off)
				*back_off = texts[i].back_off;
			return texts[i].kind;
		}
	if (back_off)
		*back_off = 0;
	return ERROR_UNAVAILABLE;
}

static const char *zone_of(const struct eks_activity *y, struct arena *a)
{
	struct details_text t = { 0 };
	struct error ignored;

	if (!*y->details || !text_decode(&details_record, y->details, strlen(y->details), a, &t, &ignored))
		return "";
	return text_or_empty(t.zone);
}

static bool is_of_type(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* "p5.48xlarge" in "We currently do not have sufficient p5.48xlarge capacity". */
static const char *type_of(const char *text, struct arena *a)
{
	for (const char *p = text; *p;) {
		size_t all = 0;
		while (is_of_type(p[all]))
			all++;
		size_t len = all && p[all - 1] == '.' ? all - 1 : all;
		const char *dot = memchr(p, '.', len);
		if (dot && dot > p + 1 && *p >= 'a' && *p <= 'z' && dot + 3 < p + len &&
		    (strncmp(p + len - 5, "large", 5) == 0 || strncmp(dot + 1, "metal", 5) == 0))
			return arena_strdup(a, p, len);
		p += all + (p[all] != '\0');
	}
	return "";
}

/* Activities have names, not numbers; two that end in the same millisecond are told apart as well as can be. */
static int64_t number_of(const struct eks_activity *y, millis at)
{
	uint64_t hash = 14695981039346656037U;

	for (const char *p = y->id; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211U;
	return at * 1024 + (int64_t)(hash % 1024);
}

static millis time_of(const struct eks_activity *y)
{
	return y->ended_at > 0 ? y->ended_at : y->started_at;
}

/* One that a lifecycle hook abandoned is no call of ours that cancelled it. */
static bool is_failed_launch(const struct eks_activity *y)
{
	bool has_failed = strcmp(y->status, "Failed") == 0 ||
			  (strcmp(y->status, "Cancelled") == 0 && strcasestr(y->message, "Lifecycle Action"));

	return has_failed && strncasecmp(y->description, "Launching", 9) == 0 && time_of(y) > 0 &&
	       time_of(y) <= INT64_MAX / 2048;
}

int64_t eks_newest_failure(const struct eks_activity *items, size_t count)
{
	int64_t newest = 0;

	for (size_t i = 0; i < count; i++)
		if (is_failed_launch(&items[i]) && number_of(&items[i], time_of(&items[i])) > newest)
			newest = number_of(&items[i], time_of(&items[i]));
	return newest;
}

/* Of the last that an activity's cause tells: who made it, up to what it was about, and the size. */
struct resize {
	const char *by, *about;
	int64_t size;
};

/* "At 2026-02-12T16:01:25Z a scheduled action update of AutoScalingGroup constraints to min: 0, max: 3, desired: 0
 * changing the desired capacity from 2 to 0.", in whose place "a user request" or "a monitor alarm A in state ALARM
 * triggered policy P" stands (https://repost.aws/knowledge-center/auto-scaling-scale-down). Of a machine that ended
 * there may be several. */
static bool read_resize(const char *cause, struct resize *out)
{
	static const char resize[] = "changing the desired capacity from ";
	const char *at = "", *last = NULL;

	for (const char *p = cause; (p = strstr(p, resize)) != NULL; p += strlen(resize))
		last = p;
	for (const char *p = cause; last && (p = strstr(p, "At ")) != NULL && p < last; p++)
		at = p;
	if (!last)
		return false;
	const char *to = strstr(last, " to "), *by = *at ? strchr(at + strlen("At "), ' ') : NULL;
	*out = (struct resize){ by ? by + 1 : "", last, to ? strtoll(to + strlen(" to "), NULL, 10) : -1 };
	return true;
}

static bool begins(const char *text, const char *with)
{
	return strncasecmp(text, with, strlen(with)) == 0;
}

bool eks_emptied_by_schedule(const struct eks_activity *items, size_t count)
{
	struct resize r = { .by = "" };

	for (size_t i = 0; i < count && !read_resize(items[i].cause, &r); i++)
		;
	return r.size == 0 && begins(r.by, "a scheduled action");
}

/* "At 2026-02-12T16:01:25Z instance i-0a was taken out of service in response to a user request, shrinking the capacity
 * from 3 to 2.": TerminateInstanceInAutoScalingGroup. */
static bool is_ended_by_request(const char *cause, int64_t size)
{
	static const char request[] = "in response to a user request, shrinking the capacity from ";
	const char *shrinks = strstr(cause, request), *to = shrinks ? strstr(shrinks + strlen(request), " to ") : NULL;

	return to && strtoll(to + strlen(" to "), NULL, 10) == size;
}

static const char *resizer_of(const struct resize *r, struct arena *a)
{
	static const char policy[] = " in state ALARM triggered policy ", alarm[] = "a monitor alarm ";
	const char *triggers = strstr(r->by, policy);

	if (begins(r->by, "a scheduled action"))
		return "a scheduled action of Auto Scaling";
	if (begins(r->by, "a user request"))
		return "a user request";
	if (!begins(r->by, alarm) || !triggers || triggers + strlen(policy) >= r->about)
		return "";
	const char *name = r->by + strlen(alarm), *policy_name = triggers + strlen(policy);
	return text_printf(a, "scaling policy %.*s through its alarm %.*s",
			   (int)(r->about - policy_name - 1) /* a space */, policy_name, (int)(triggers - name), name);
}

const char *eks_resized_by(const struct eks_activity *items, size_t count, int64_t size, millis after, struct arena *a)
{
	for (size_t i = 0; i < count; i++) {
		struct resize r;
		if (items[i].started_at < after - READ_LATE)
			break;
		if (read_resize(items[i].cause, &r))
			return r.size == size ? resizer_of(&r, a) : "";
		if (is_ended_by_request(items[i].cause, size))
			return "a user request";
	}
	return "";
}

const char *eks_emptied_by(const struct eks_group *g, struct arena *a)
{
	return text_printf(
		a,
		"a scheduled action set the size of Auto Scaling group %s to 0, and nobody has raised it since (aws "
		"autoscaling describe-scheduled-actions --auto-scaling-group-name %s)",
		g->name, g->name);
}

/* Of a launch that failed; false: it says nothing of one. */
static bool failure_of(const struct eks_activity *y, struct arena *a, struct launch_failure *out)
{
	millis at = time_of(y), back_off;
	const char *text = *y->message ? y->message : y->description;

	if (!is_failed_launch(y))
		return false;
	enum error_kind kind = eks_failure_kind(y->description, y->message, &back_off);
	*out = (struct launch_failure){ .id = number_of(y, at),
					.at = at,
					.kind = kind,
					.message = text,
					.count = 1,
					.zone = zone_of(y, a),
					.instance_type = type_of(text, a),
					.back_off = back_off };
	return true;
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
		const struct state *state = state_of(items[i].state);
		struct machine *m = &out->machines[out->machine_count];
		if (is_gone(&items[i]) || (items == s->pool && is_in_group(s, items[i].id)))
			continue;
		*m = (struct machine){ .id = items[i].id,
				       .provider_id = text_printf(a, "aws:///%s/%s", items[i].zone, items[i].id),
				       .zone = items[i].zone,
				       .instance_type = items[i].type,
				       .state = state->state,
				       .is_guarded = is_in_service(&items[i]) && items[i].is_protected,
				       .is_standby = state->is_standby };
		if (is_starting(&items[i]))
			read_start(s, m);
		out->machine_count++;
	}
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
	if (s->group.desired <= alive(&s->group))
		return;
	out->failures = arena_array(a, struct launch_failure, s->activity_count);
	for (size_t i = 0; i < s->activity_count; i++) {
		struct launch_failure *f = &out->failures[out->failure_count];
		if (failure_of(&s->activities[i], a, f) && has_settled(s, f))
			out->failure_count++;
	}
}

static bool pool_is_nodegroups(const struct eks_seen *s)
{
	return s->warm_pool == EKS_POOL_NODEGROUP || (s->warm_pool == EKS_POOL_EXISTING && s->nodegroup.has_pool);
}

/* EKS, "warm pools with managed node groups": Bottlerocket neither hibernates nor goes back to the pool after use, and
 * EKS makes no pool for images of the account's own. */
static bool is_bottlerocket(const struct eks_seen *s)
{
	return s->nodegroup.image && strncmp(s->nodegroup.image, "BOTTLEROCKET", strlen("BOTTLEROCKET")) == 0;
}

static bool has_own_image(const struct eks_seen *s)
{
	return s->nodegroup.image && strcmp(s->nodegroup.image, "CUSTOM") == 0;
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
	if (!p->exists && s->warm_pool == EKS_POOL_NODEGROUP && has_own_image(s))
		return "no standby: EKS makes no warm pool for a node group whose image is the account's own (amiType "
		       "CUSTOM); use an image of EKS, or set eks.warmPool: autoScalingGroup";
	if (p->exists && strcmp(p->state, "Hibernated") == 0 && is_bottlerocket(s))
		return "no standby: Bottlerocket does not hibernate; set the state of the warm pool to Stopped";
	if (!p->exists && s->warm_pool == EKS_POOL_EXISTING)
		return "no standby: the group has no warm pool; enable warmPoolConfig on the node group (poolState "
		       "Stopped, "
		       "reuseOnScaleIn), or set eks.warmPool to have one made";
	if (p->exists && strcmp(p->state, "Running") == 0)
		return "no standby: the warm pool keeps its machines running at full price; set its state to Stopped";
	return NULL;
}

/* https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-store-lifetime.html */
static bool is_emptied_by_a_stop(const struct eks_seen *s)
{
	return s->instance_store && s->instance_store->use == DISKS_IMAGES;
}

/* A sentence on what wakes slowly there: "" where nothing does. */
static const char *why_no_images(const struct eks_seen *s, struct arena *a)
{
	if (!is_emptied_by_a_stop(s))
		return "";
	return text_printf(
		a,
		"machines that stand by pull their image when they wake, like ones that never ran: images lie on "
		"the instance store (%s in the user data of launch template %s, version %s), which a stop "
		"empties; keep /var/lib/containerd on EBS",
		s->instance_store->by, s->group.template_id, s->group.template_version);
}

static unsigned abilities_of(const struct eks_seen *s, struct arena *a, const char **lacks)
{
	const struct eks_pool *p = s->group.pool.exists ? &s->group.pool : &s->nodegroup.pool;
	const char *why = why_no_pool(s);

	*lacks = !s->group.may_launch
			 ? "the process Launch of the Auto Scaling group is suspended: nothing starts until it "
			   "is resumed"
		 : why ? why
		 : is_bottlerocket(s)
			 ? "machines are not stopped after use, as Bottlerocket does not go back to a warm pool: what "
			   "stands by was bought for it, has never run, and pulls its image when it wakes"
		 : p->exists && !p->reuses
			 ? "machines are not stopped after use: the warm pool does not reuse them; set ReuseOnScaleIn"
			 : why_no_images(s, a);
	if (why)
		return ALWAYS;
	return ALWAYS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY |
	       (p->exists && p->reuses && !is_bottlerocket(s) ? PROVIDER_STOPS_NAMED : 0);
}

const char *eks_busy_with(const struct eks_settings *settings, const struct eks_nodegroup *n, struct arena *a)
{
	static const struct {
		const char *status, *does;
	} busy[] = {
		{ "CREATING", "creates" },
		{ "UPDATING", "updates" },
		{ "DELETING", "deletes" },
	};

	for (size_t i = 0; n->status && i < sizeof busy / sizeof *busy; i++)
		if (!strcmp(n->status, busy[i].status))
			return text_printf(a,
					   "EKS %s node group %s (status %s); which update that is tells aws eks "
					   "list-updates --name %s --nodegroup-name %s",
					   busy[i].does, settings->nodegroup, n->status, settings->cluster,
					   settings->nodegroup);
	return "";
}

/* https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Operator.html. EKS tags the groups that it makes, and
 * only EKS tells of its updates there. */
const char *eks_why_untouched(const struct eks_group *g, const struct eks_settings *settings, struct arena *a)
{
	if (*g->operated_by)
		return text_printf(
			a,
			"Auto Scaling group %s has an operator, %s, which alone may change it, so nothing is "
			"changed; use a node group without one",
			g->name, g->operated_by);
	if (g->twin)
		return text_printf(a,
				   "Auto Scaling group %s is node group %s's, too, and both would set its size, so "
				   "nothing is changed; name it %s here, too: pools may share a node group",
				   g->name, g->twin, g->twin);
	if (g->is_managed && (settings->auto_scaling_group || settings->tag_count))
		return text_printf(
			a,
			"Auto Scaling group %s is of a managed node group, the value of its tag "
			"eks:nodegroup-name, and only EKS tells when it updates that, so nothing is changed; "
			"name it in eks.nodegroup, and delete eks.%s",
			g->name, settings->auto_scaling_group ? "autoScalingGroup" : "tags");
	if (g->is_tagged && !settings->takes_tagged)
		return text_printf(
			a,
			"Auto Scaling group %s has tags k8s.io/cluster-autoscaler/..., so Cluster Autoscaler "
			"may size it, and nothing is changed (EKS puts these tags on every node group); where "
			"no Cluster Autoscaler uses it, set eks.clusterAutoscalerTags: ignore",
			g->name);
	return NULL;
}

static void count_protected(const struct eks_seen *s, struct group_description *out)
{
	const struct eks_group *g = &s->group;

	for (size_t i = 0; i < g->instance_count; i++) {
		out->exposed += is_in_service(&g->instances[i]) && !g->instances[i].is_protected;
		out->guarded += is_in_service(&g->instances[i]) && g->instances[i].is_protected;
	}
	if (s->sets_new)
		out->new_machines = g->protects_new ? NEW_MACHINES_GUARDED : NEW_MACHINES_EXPOSED;
	else if (g->protects_new)
		out->guarded = 0; /* the group's own setting, and not ours to lift */
}

static void tell_rebalancing(const struct eks_group *g, struct arena *a, struct group_description *out)
{
	if (g->rebalances)
		group_description_caution(
			out, a,
			text_printf(a,
				    "Auto Scaling balances its %zu zones (AZRebalance): it ends machines that are "
				    "not protected, without regard to disruption budgets; have a node group for "
				    "each zone, or suspend the process: aws autoscaling suspend-processes "
				    "--auto-scaling-group-name %s --scaling-processes AZRebalance (EKS needs it "
				    "for its updates: resume it before one)",
				    g->zone_count, g->name));
}

/* What others launch beyond the size is theirs to end, by a lower size, which spares what is protected. */
static void tell_own_protection(const struct eks_seen *s, struct arena *a, struct group_description *out)
{
	const struct eks_group *g = &s->group;

	if (g->protects_new && !s->sets_new)
		group_description_caution(
			out, a,
			text_printf(a,
				    "the group itself protects new machines from scale-in, also those that an "
				    "update of the node group launches beyond its size: they may stay after it; "
				    "Preheat protects its own without that: aws autoscaling "
				    "update-auto-scaling-group --auto-scaling-group-name %s "
				    "--no-new-instances-protected-from-scale-in",
				    g->name));
}

void eks_tell_hooks(const struct eks_hooks *h, struct arena *a, struct group_description *d)
{
	d->end_hold = h->end_hold ? h->end_hold : END_UNHELD;
	if (!h->end_hold)
		group_description_caution(
			d, a,
			"no lifecycle hook holds machines that others end there: what serves on one ends with it, "
			"before it is replaced");
	else
		group_description_caution(
			d, a,
			text_printf(a,
				    "a lifecycle hook holds machines that others end there for %" PRId64
				    " s: until 5 minutes before, what serves on one waits to be replaced",
				    h->end_hold / SECOND));
	if (h->abandons_starts)
		group_description_caution(
			d, a,
			text_printf(a,
				    "a lifecycle hook ends machines that start, unless its owner completes it "
				    "within %" PRId64 " s",
				    h->start_hold / SECOND));
	else if (h->start_hold)
		group_description_caution(
			d, a,
			text_printf(
				a,
				"a lifecycle hook holds machines that start until its owner completes it, for %" PRId64
				" s at most: their lead time is as much longer",
				h->start_hold / SECOND));
}

void eks_tell_refresh(const struct eks_refresh *r, struct arena *a, struct group_description *d)
{
	if (r->status)
		group_description_caution(
			d, a,
			text_printf(a, "an instance refresh is in progress (%s, %" PRId64 "%%)%s", r->status,
				    r->percent,
				    r->waits_for_protected
					    ? ": it waits an hour for machines that are protected from scale-in, and "
					      "then fails; pause the pool until it is over (spec.mode: paused), which "
					      "lifts the protection"
					    : ""));
}

void eks_tell_end_unknown(const struct error *why, struct arena *a, struct group_description *d)
{
	const char *cause = why->kind == ERROR_NONE ? "its launch template names no reservation" : why->message;

	group_description_caution(
		d, a,
		text_printf(a,
			    "it is a Capacity Block, and when it ends is not known, so that nothing is replaced "
			    "before it does (%s): set reservedUntil, or grant ec2:DescribeLaunchTemplateVersions "
			    "and ec2:DescribeCapacityReservations",
			    cause));
}

void eks_tell_disks_unknown(const struct error *why, struct arena *a, struct group_description *d)
{
	group_description_caution(
		d, a,
		text_printf(a,
			    "whether images lie on an instance store, which a stop empties, is not known, and they are "
			    "taken to be kept (%s)",
			    why->message));
}

/* What EKS itself gives nodes goes before tags, which only tell of it. */
static struct node_promise promise_of(const struct eks_seen *s, struct arena *a)
{
	struct node_promise p = { 0 };

	promise_add(&p, a, &s->nodegroup.promise);
	promise_add(&p, a, &s->group.promise);
	return p;
}

void eks_describe(const struct eks_seen *s, struct arena *a, struct group_description *out)
{
	const struct eks_group *g = &s->group;
	const struct node_promise promise = promise_of(s, a);

	*out = (struct group_description){
		.min = g->min, .max = g->max, .desired = g->desired, .standby = standby_of(g), .ends_one_by_one = true
	};
	out->machines = arena_array(a, struct machine, g->instance_count + s->pool_count);
	add_machines(s, g->instances, g->instance_count, a, out);
	add_machines(s, s->pool, s->pool_count, a, out);
	add_failures(s, a, out);
	count_protected(s, out);
	tell_rebalancing(g, a, out);
	tell_own_protection(s, a, out);
	group_description_promise(out, a, &promise);
	out->ailment = text_or_empty(s->nodegroup.ailment);
	group_description_sort(out);
	out->abilities = abilities_of(s, a, &out->lacks);
	out->forgets_images = is_emptied_by_a_stop(s) && (out->abilities & PROVIDER_HAS_STANDBY);
	if (s->instance_store && s->instance_store->use == DISKS_BESIDE && (out->abilities & PROVIDER_HAS_STANDBY))
		group_description_caution(
			out, a,
			text_printf(a,
				    "what pods keep on the instance store (%s in the user data of its launch template) "
				    "is gone after a stop; images are kept",
				    s->instance_store->by));
}

enum { BESIDES_MOST = 3 };

void eks_tell_besides(const struct eks_seen *s, const struct eks_settings *settings, struct arena *a,
		      struct group_description *d)
{
	const struct eks_group *g = &s->group;
	const struct eks_pool *p = &g->pool;
	const char **list = arena_array(a, const char *, BESIDES_MOST);

	d->besides = list;
	if (p->exists && p->least > 0 && p->prepared >= 0 && !pool_is_nodegroups(s))
		list[d->beside_count++] =
			"set MinSize of the warm pool to 0, so that growing takes its machines and buys none";
	if (p->exists && settings->launch == EKS_LAUNCH_INSTANCES)
		list[d->beside_count++] = "grow by SetDesiredCapacity, not by LaunchInstances, as there is a warm pool";
	if (g->is_tagged)
		list[d->beside_count++] = "size the group though it is tagged for Cluster Autoscaler, as "
					  "clusterAutoscalerTags: ignore says";
}

/* What the decisions of all verbs have in common. */
struct deciding {
	const struct eks_seen *seen;
	const struct eks_group *group;
	const struct provider_call *call;
	struct arena *arena;
	struct eks_change *change;
};

static const struct eks_instance *instance_named(const struct eks_instance *items, size_t count, const char *id)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(items[i].id, id) == 0)
			return &items[i];
	return NULL;
}

static bool keeps_min(const struct eks_group *g, int64_t desired, struct error *e)
{
	return desired >= g->min || error_set(e, ERROR_INVALID,
					      "size %" PRId64 " would be below MinSize %" PRId64
					      " of Auto Scaling group %s; lower its minimum",
					      desired, g->min, g->name);
}

/* Those that the termination policy could choose once the size falls: all in service that shall stay. */
static void protect_others(const struct deciding *d)
{
	const struct eks_group *g = d->group;
	struct eks_change *x = d->change;

	x->to_protect = arena_array(d->arena, const char *, g->instance_count);
	x->protect_count = 0;
	for (size_t i = 0; i < g->instance_count; i++)
		if (is_in_service(&g->instances[i]) && !g->instances[i].is_protected &&
		    !text_is_among(g->instances[i].id, x->victims, x->victim_count) &&
		    !text_is_among(g->instances[i].id, d->seen->ended, d->seen->ended_count))
			x->to_protect[x->protect_count++] = g->instances[i].id;
}

static void size_pool(const struct deciding *d, int64_t least, int64_t prepared)
{
	const struct eks_pool *now = d->group->pool.exists ? &d->group->pool : &d->seen->nodegroup.pool;

	d->change->pool_size =
		(struct eks_pool_size){ .least = least,
					.prepared = prepared,
					.state = now->exists ? now->state : "Stopped",
					.reuses = now->exists ? now->reuses : !is_bottlerocket(d->seen) };
	d->change->must_configure_pool = pool_is_nodegroups(d->seen);
	d->change->must_put_pool = !d->change->must_configure_pool;
}

/*
 * A warm pool holds max(MinSize, MaxGroupPreparedCapacity - DesiredCapacity). It rests at MinSize 0, so that a size
 * that grows takes its machines out of the pool and nothing is refilled. A size that falls would fill it: where it
 * shall not, both are set so that the number holds before and after. The pool's default, up to the group's max, is left
 * alone.
 */
static void hold_pool(const struct deciding *d, int64_t desired)
{
	const struct eks_group *g = d->group;
	int64_t standby = standby_of(g);

	if (!g->pool.exists || g->pool.is_being_deleted || g->pool.prepared < 0 || desired >= g->desired)
		return;
	if (g->pool.prepared - desired > standby)
		size_pool(d, pool_is_nodegroups(d->seen) ? 0 : standby, standby ? desired + standby : 0);
}

static bool decide_grow(const struct deciding *d, bool launches, struct error *e)
{
	const struct eks_group *g = d->group;
	int64_t desired = d->call->desired;

	if (desired > g->max)
		return error_set(e, ERROR_INVALID,
				 "size %" PRId64 " is above MaxSize %" PRId64
				 " of Auto Scaling group %s; raise its maximum, or lower max in the manifest",
				 desired, g->max, g->name);
	if (desired <= g->desired)
		return true;
	if (!g->may_launch)
		return error_set(e, ERROR_INVALID,
				 "the process Launch of Auto Scaling group %s is suspended; resume it", g->name);
	if (g->pool.exists && g->pool.least > 0 && g->pool.prepared >= 0 && !pool_is_nodegroups(d->seen))
		size_pool(d, 0, g->desired + standby_of(g));
	d->change->must_size = g->pool.exists || !launches || d->call->is_absolute;
	d->change->is_outdated = (d->change->must_size || !g->desired) && provider_is_outdated(d->call, g->desired, e);
	if (d->change->is_outdated)
		return false;
	d->change->target = desired;
	d->change->to_launch = d->change->must_size ? 0 : desired - g->desired;
	/* This read may be older than the one that the caller decided on. */
	if (d->call->change > 0 && d->change->to_launch > d->call->change)
		d->change->to_launch = d->call->change;
	protect_others(d);
	return true;
}

/* The machines named that are in the group and `is_meant`, each once. */
static void choose_victims(const struct deciding *d, bool (*is_meant)(const struct eks_instance *))
{
	const struct eks_group *g = d->group;
	struct eks_change *x = d->change;

	x->victims = arena_array(d->arena, const char *, d->call->id_count);
	x->to_release = arena_array(d->arena, const char *, d->call->id_count);
	for (size_t i = 0; i < d->call->id_count; i++) {
		const struct eks_instance *found = instance_named(g->instances, g->instance_count, d->call->ids[i]);
		if (!found || !is_meant(found) || text_is_among(found->id, x->victims, x->victim_count) ||
		    text_is_among(found->id, d->seen->ended, d->seen->ended_count))
			continue;
		x->victims[x->victim_count++] = found->id;
		if (found->is_protected)
			x->to_release[x->release_count++] = found->id;
	}
}

/* Auto Scaling ends some for who lowered the size, and would lower it once more for each that we name. */
static bool was_lowered(const struct deciding *d, struct error *e)
{
	int64_t gone = (int64_t)(d->call->id_count - d->change->victim_count);

	d->change->is_outdated = provider_was_lowered(d->call, d->group->desired, gone, e);
	return d->change->is_outdated;
}

static bool is_staying(const struct eks_instance *i)
{
	return !is_leaving(i);
}

static bool decide_remove(const struct deciding *d, struct error *e)
{
	const struct eks_group *g = d->group;

	for (size_t i = 0; i < d->call->id_count; i++) {
		const char *id = d->call->ids[i];
		const struct eks_instance *standing = instance_named(d->seen->pool, d->seen->pool_count, id);
		if (standing && is_staying(standing) && !instance_named(g->instances, g->instance_count, id))
			return error_set(e, ERROR_INVALID,
					 "machine %s is in the warm pool, where none can be named; lower the standby "
					 "size",
					 id);
	}
	choose_victims(d, is_staying);
	if (!d->change->victim_count)
		return true;
	d->change->target = g->desired - (int64_t)d->change->victim_count;
	if (was_lowered(d, e) || !keeps_min(g, d->change->target, e))
		return false;
	protect_others(d);
	hold_pool(d, d->change->target);
	return true;
}

/* Everything is in service or on its way out: lowering the size then means those that are not protected. */
static bool is_settled(const struct eks_group *g, struct error *e)
{
	bool is_still = g->desired <= alive(g);

	for (size_t i = 0; i < g->instance_count; i++)
		is_still &= is_in_service(&g->instances[i]) || is_leaving(&g->instances[i]);
	return is_still || error_set(e, ERROR_CONFLICT,
				     "machines of Auto Scaling group %s are starting; none can be sent back to the "
				     "warm pool until they run",
				     g->name);
}

/* It sets the size: from a read of before others went, or after others came, it would launch what nobody asked for. */
static bool would_leave_more(const struct deciding *d, struct error *e)
{
	int64_t left = d->change->target;

	d->change->is_outdated = d->call->size > 0 && left > d->call->desired;
	return d->change->is_outdated && !error_set(e, ERROR_CONFLICT,
						    "it would have %" PRId64 " machines left, and %" PRId64
						    " were decided; it is looked at again first",
						    left, d->call->desired);
}

/*
 * A machine that is named ends; one that the termination policy chooses goes back to a warm pool that reuses. So all
 * others are protected, these are not, and the size is lowered by as many.
 */
static bool decide_stop(const struct deciding *d, struct error *e)
{
	const struct eks_group *g = d->group;
	const char *lacks;

	if (!(abilities_of(d->seen, d->arena, &lacks) & PROVIDER_STOPS_NAMED))
		return error_set(e, ERROR_INVALID, "%s", lacks);
	choose_victims(d, is_in_service);
	if (!d->change->victim_count)
		return true;
	d->change->target = g->desired - (int64_t)d->change->victim_count;
	if (was_lowered(d, e) || !keeps_min(g, d->change->target, e) || !is_settled(g, e) || would_leave_more(d, e))
		return false;
	protect_others(d);
	if (g->pool.prepared >= 0 && g->pool.prepared < g->desired + standby_of(g)) {
		size_pool(d, 0, g->desired + standby_of(g));
		d->change->must_wait_for_pool = d->change->must_configure_pool;
	}
	d->change->must_size = true;
	return true;
}

/* The pool's size is counted from the group's: by a read of another size it would be filled with others than wanted. */
static bool was_resized(const struct deciding *d, struct error *e)
{
	int64_t size = d->group->desired, decided_on = d->call->size;

	d->change->is_outdated = size != decided_on;
	return d->change->is_outdated && !error_set(e, ERROR_CONFLICT,
						    "it has %" PRId64 " machines by now, and had %" PRId64
						    " when its standby was decided; it is looked at again first",
						    size, decided_on);
}

static bool decide_standby(const struct deciding *d, struct error *e)
{
	const struct eks_group *g = d->group;
	const char *lacks;
	int64_t size = d->call->desired;

	if (!(abilities_of(d->seen, d->arena, &lacks) & PROVIDER_HAS_STANDBY))
		return error_set(e, ERROR_INVALID, "%s", lacks);
	if (was_resized(d, e))
		return false;
	if (size == standby_of(g) && (g->pool.exists ? g->pool.prepared >= 0 : !size))
		return true;
	size_pool(d, 0, size ? g->desired + size : 0);
	protect_others(d);
	return true;
}

/* What a cancel leaves: never less than is asked for, is there, or must be. */
static int64_t least_left(const struct deciding *d, int64_t there)
{
	int64_t least = d->call->desired > there ? d->call->desired : there;

	return least > d->group->min ? least : d->group->min;
}

static bool decide_cancel(const struct deciding *d, struct error *e)
{
	const struct eks_group *g = d->group;

	choose_victims(d, is_starting);
	int64_t gone = (int64_t)d->change->victim_count, least = least_left(d, alive(g) - gone);
	if (was_lowered(d, e) || (gone && !keeps_min(g, g->desired - gone, e)))
		return false;
	d->change->target = least < g->desired - gone ? least : g->desired - gone;
	if (!gone && d->change->target == g->desired)
		return true;
	d->change->must_size = true; /* eks_decide_rest() decides anew */
	protect_others(d);
	hold_pool(d, d->change->target);
	return true;
}

/*
 * The machines that run are protected as long as the size has room for all. Of more than are asked for Auto Scaling is
 * about to end some: that others lowered the size, or launched before they end. What is not protected is left to its
 * choice then, and where too many are, as many as are too many are given free, the newest.
 */
static bool decide_protect(const struct deciding *d)
{
	const struct eks_group *g = d->group;
	struct eks_change *x = d->change;
	bool on = d->call->desired, has_room = alive(g) <= g->desired;
	bool is_theirs = g->protects_new && !d->seen->sets_new;
	int64_t guarded = 0;

	x->protects_new = on;
	x->must_set_new = d->seen->sets_new && g->protects_new != on && (has_room || !on);
	x->to_release = arena_array(d->arena, const char *, g->instance_count);
	for (size_t i = 0; i < g->instance_count; i++)
		guarded += is_in_service(&g->instances[i]) && g->instances[i].is_protected;
	int64_t surplus = on ? guarded - g->desired : guarded;
	if (on && has_room)
		protect_others(d);
	for (size_t i = g->instance_count; i-- > 0 && surplus > 0 && !is_theirs;)
		if (is_in_service(&g->instances[i]) && g->instances[i].is_protected &&
		    !text_is_among(g->instances[i].id, d->call->ids, d->call->id_count)) {
			x->to_release[x->release_count++] = g->instances[i].id;
			surplus--;
		}
	return true;
}

/* Nothing is changed while EKS is at work there, but for what ends with us. */
static bool is_free(const struct deciding *d, const struct eks_settings *settings, struct error *e)
{
	const struct provider_call *c = d->call;
	const char *busy = eks_busy_with(settings, &d->seen->nodegroup, d->arena);
	bool is_ours = c->pending && *c->pending, gives_back = c->verb == PROVIDER_PROTECT && !c->desired;

	return !*busy || is_ours || gives_back ||
	       error_set(e, ERROR_CONFLICT, "%s; nothing is changed until then", busy);
}

bool eks_decide(const struct eks_seen *s, const struct eks_settings *settings, const struct provider_call *c,
		struct arena *a, struct eks_change *out, struct error *e)
{
	const struct deciding d = { s, &s->group, c, a, out };

	*out = (struct eks_change){ 0 };
	const char *why = eks_why_untouched(&s->group, settings, a);
	if (why)
		return error_set(e, ERROR_INVALID, "%s", why);
	if (!is_free(&d, settings, e))
		return false;
	switch (c->verb) {
	case PROVIDER_GROW:
		return decide_grow(&d, settings->launch == EKS_LAUNCH_INSTANCES, e);
	case PROVIDER_REMOVE:
		return decide_remove(&d, e);
	case PROVIDER_STOP:
		return decide_stop(&d, e);
	case PROVIDER_STANDBY:
		return decide_standby(&d, e);
	case PROVIDER_CANCEL:
		return decide_cancel(&d, e);
	case PROVIDER_PROTECT:
		return decide_protect(&d);
	case PROVIDER_DESCRIBE:
	case PROVIDER_CHECK:
	case PROVIDER_VERB_COUNT:
		break;
	}
	return error_set(e, ERROR_INTERNAL, "nothing to decide");
}

void eks_decide_rest(const struct eks_seen *s, const struct provider_call *c, struct arena *a, struct eks_change *x)
{
	const struct deciding d = { s, &s->group, c, a, x };

	x->protect_count = 0;
	x->target = least_left(&d, alive(&s->group));
	x->must_size = x->target < s->group.desired;
	if (x->must_size)
		protect_others(&d);
}
