/*
 * Amazon EKS: node groups through the Auto Scaling groups under them; docs/providers.md. A call is a plan of steps,
 * each a request that is sent if it is due then; decisions stand between them and send nothing.
 */
#include "base/clock.h"
#include "base/random.h"
#include "providers/aws/call.h"
#include "providers/eks_group.h"
#include "providers/eks_known.h"
#include "providers/eks_probe.h"
#include "providers/eks_together.h"
#include "providers/exchange.h"
#include "providers/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const millis READ_DEADLINE = 30 * SECOND;
static const size_t MOST_ANSWER = (size_t)8 << 20;
enum { ACTIVITIES_MOST = 100, LAUNCHED_MOST = 100, TOKEN_KEPT = 48 /* of the 64 that AWS takes */ };

/* A change asks anew: EKS may have begun an update since. */
static const millis FRESH = 10 * SECOND;
static const millis LEAST_JITTER = 5 * SECOND, MOST_JITTER = 60 * SECOND;
static const millis EC2_PATIENCE = 5 * SECOND;

struct eks {
	struct provider base;
	struct aws *aws;
	struct eks_known *known;
	struct random random;
	struct eks_together *together;
};

struct step;

struct eks_call {
	struct exchange base;
	struct eks_settings settings;
	struct timer deadline;
	struct aws_call request;
	struct buf path, body;
	const struct step *const *plan; /* ends with NULL */
	bool is_sent, is_late;

	const char *group; /* name of the Auto Scaling group; NULL until it is known */
	struct eks_seen seen;
	struct eks_refresh refresh;
	bool is_located; /* by this call, not by an earlier one */
	bool is_group_read, is_pool_read;
	uint64_t era; /* in which its group was asked for, with so many: */
	size_t asked_for;
	const char *reservation; /* that its launch template names */
	const char *page;	 /* of the warm pool; NULL: the first, or none follows */
	bool is_update_running, has_update_failed;
	struct launch_failure update_failure;

	struct eks_change change;
	size_t victim_at, protect_at, release_at;
	size_t zone_at, zones_short; /* of LaunchInstances; short: how many in a row had too few */
	struct error launch_error;
	size_t probe_at; /* of a check */
};

struct step {
	const char *name; /* of the operation, as messages and policies call it; NULL: a decision */
	/* NULL: always. Of one that repeats: whether it is sent again. */
	bool (*is_due)(const struct eks_call *x);
	bool repeats;
	void (*write)(struct eks_call *x);
	bool (*read)(struct eks_call *x, struct error *e); /* of the answer; NULL: nothing in it matters */
	/* A refusal that is as good as done; NULL: none is. */
	bool (*forgives)(struct eks_call *x, const struct error *e);
	bool (*decide)(struct eks_call *x, struct error *e);
};

static struct eks *eks_of(const struct eks_call *x)
{
	return (struct eks *)x->base.provider;
}

static struct arena *arena_of(const struct eks_call *x)
{
	return &x->base.call->arena;
}

static struct eks_known *known_of(const struct eks_call *x)
{
	return eks_known_of(&eks_of(x)->known, x->base.call->settings, x->base.call->group);
}

static millis now_of(const struct eks_call *x)
{
	return loop_now(x->base.provider->loop);
}

static void remember(const struct eks_call *x, const struct eks_nodegroup *found)
{
	uint64_t jitter = random_next(&eks_of(x)->random) % (uint64_t)(MOST_JITTER - LEAST_JITTER);

	eks_known_found(known_of(x), found, now_of(x), LEAST_JITTER + (millis)jitter);
}

static bool recall(struct eks_call *x)
{
	struct provider_call *c = x->base.call;

	x->group = x->settings.auto_scaling_group;
	if (x->group || c->verb == PROVIDER_CHECK)
		return true;
	const struct eks_known *n = known_of(x);
	millis now = now_of(x);
	if (now >= n->until || (provider_verb_changes(c->verb) && !x->settings.tag_count &&
				n->refusal.kind == ERROR_NONE && now - n->read_at >= FRESH))
		return true;
	if (n->refusal.kind != ERROR_NONE) {
		c->error = n->refusal;
		return false;
	}
	x->seen.nodegroup = eks_nodegroup_copy(&c->arena, &n->nodegroup);
	x->group = x->seen.nodegroup.group;
	return true;
}

/* Requests of Auto Scaling are a POST to "/", and so is what a step gets to write. */
static void ask(struct eks_call *x, enum aws_service service, const char *method, const char *path)
{
	x->request.service = service;
	x->request.method = method;
	buf_clear(&x->path);
	buf_text(&x->path, path);
	buf_clear(&x->body);
}

/* Which Auto Scaling group: of the node group, or the one that has the tags. */

static bool locate_is_due(const struct eks_call *x)
{
	return !x->group;
}

static void locate_write(struct eks_call *x)
{
	if (x->settings.tag_count) {
		eks_find_group(x->settings.tags, x->settings.tag_count, &x->body);
	} else {
		ask(x, AWS_EKS, "GET", "");
		eks_nodegroup_path(&x->settings, &x->path);
	}
}

static bool locate_read(struct eks_call *x, struct error *e)
{
	const struct aws_call *r = &x->request;
	struct eks_nodegroup found = { .status = "", .capacity_type = "", .image = "" };
	bool ok = x->settings.tag_count ? eks_read_found(r->response, r->response_len, arena_of(x), &found.group, e)
					: eks_read_nodegroup(r->response, r->response_len, arena_of(x), &found, e);

	if (!ok)
		return false;
	if (!found.group)
		return error_set(e, ERROR_CONFLICT, "node group %s has no Auto Scaling group yet (status %s)",
				 x->settings.nodegroup, found.status);
	x->seen.nodegroup = found;
	x->group = found.group;
	x->is_located = true;
	remember(x, &found);
	return true;
}

/* It may be an update's doing, of which the node group tells; what was told of it before is too old then. */
static bool has_moved(const struct eks_call *x)
{
	return !x->is_located && !x->settings.auto_scaling_group && !x->settings.tag_count &&
	       eks_known_has_moved(known_of(x), &x->seen.group);
}

/* What machines are started from: the launch template of the Auto Scaling group, which EKS makes out of the node
 * group's own (https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html). It names the reservation of a
 * Capacity Block, and its user data say whether images outlive a stop. A network may have no way to EC2, and a role no
 * permission: then it goes on as it is known. */

/* The call goes on without its answer, whatever failed, and waits for it for EC2_PATIENCE only. */
static bool is_of_ec2(const struct eks_call *x)
{
	return x->request.service == AWS_EC2;
}

/* As EKS tells of a node group; of another Auto Scaling group its template does. */
static bool is_block(const struct eks_call *x)
{
	const char *type = x->seen.nodegroup.capacity_type;

	return known_of(x)->is_block || (type && !strcmp(type, "CAPACITY_BLOCK"));
}

static bool may_stand_by(const struct eks_call *x)
{
	return x->seen.group.pool.exists || x->settings.warm_pool != EKS_POOL_EXISTING;
}

static bool tells_by_template(const struct eks_call *x)
{
	bool is_ones_own = x->settings.auto_scaling_group || x->settings.tag_count;

	return (is_block(x) || may_stand_by(x) || is_ones_own) && x->seen.group.template_id &&
	       *x->seen.group.template_id;
}

static bool template_is_due(const struct eks_call *x)
{
	const struct eks_known *n = known_of(x);

	return tells_by_template(x) && (!n->template_asked_at || now_of(x) - n->template_asked_at >= EKS_KNOWN_FOR);
}

static void template_write(struct eks_call *x)
{
	struct eks_known *n = known_of(x);

	n->template_asked_at = now_of(x);
	n->end_trouble = n->instance_store_trouble = (struct error){ 0 };
	ask(x, AWS_EC2, "POST", "/");
	eks_describe_template(&x->seen.group, &x->body);
}

static bool template_read(struct eks_call *x, struct error *e)
{
	struct eks_known *n = known_of(x);
	struct eks_template t;

	if (!eks_read_template(x->request.response, x->request.response_len, arena_of(x), &t, e))
		return false;
	n->is_block = !strcmp(t.market, "capacity-block");
	if (is_block(x) && *t.reservation)
		x->reservation = t.reservation;
	n->instance_store = (struct instance_store){ 0 };
	if (may_stand_by(x) && !instance_store_read(t.user_data, strlen(t.user_data), arena_of(x), &n->instance_store,
						    &n->instance_store_trouble))
		n->instance_store = (struct instance_store){ 0 };
	return true;
}

static bool reservation_is_due(const struct eks_call *x)
{
	return x->reservation != NULL;
}

static void reservation_write(struct eks_call *x)
{
	ask(x, AWS_EC2, "POST", "/");
	eks_describe_reservation(x->reservation, &x->body);
}

static bool reservation_read(struct eks_call *x, struct error *e)
{
	return eks_read_reservation(x->request.response, x->request.response_len, arena_of(x), &known_of(x)->ends_at,
				    e);
}

/* How hooks hold machines: asked once one ends, and kept. Who cannot ask is not asked at every look, and an answer that
 * makes no sense is as good as none. */

static bool hooks_are_due(const struct eks_call *x)
{
	const struct eks_known *n = known_of(x);

	return (x->base.call->in_full || eks_has_endings(&x->seen.group)) &&
	       (!n->hooks_asked_at || now_of(x) - n->hooks_asked_at >= EKS_KNOWN_FOR);
}

static void hooks_write(struct eks_call *x)
{
	eks_describe_hooks(x->group, &x->body);
}

static bool hooks_read(struct eks_call *x, struct error *e)
{
	struct eks_known *n = known_of(x);

	n->are_hooks_known = eks_read_hooks(x->request.response, x->request.response_len, arena_of(x), &n->hooks, e);
	n->hooks_asked_at = now_of(x);
	return true;
}

static bool hooks_forgive(struct eks_call *x, const struct error *e)
{
	struct eks_known *n = known_of(x);

	n->are_hooks_known = false;
	n->hooks_asked_at = now_of(x);
	return e->kind == ERROR_AUTH;
}

/* An instance refresh: only a person who looks is told. */

static bool refresh_is_due(const struct eks_call *x)
{
	return x->base.call->in_full;
}

static void refresh_write(struct eks_call *x)
{
	eks_describe_refreshes(x->group, &x->body);
}

static bool refresh_read(struct eks_call *x, struct error *e)
{
	const struct aws_call *r = &x->request;

	if (!eks_read_refresh(r->response, r->response_len, arena_of(x), &x->refresh, e))
		x->refresh = (struct eks_refresh){ 0 };
	return true;
}

static bool refresh_forgives(struct eks_call *x, const struct error *e)
{
	(void)x;
	return e->kind == ERROR_AUTH;
}

/* An update of the node group that goes on after its call. */

static bool update_is_due(const struct eks_call *x)
{
	return x->base.call->pending && *x->base.call->pending && x->settings.nodegroup && x->settings.cluster;
}

static void update_write(struct eks_call *x)
{
	ask(x, AWS_EKS, "GET", "");
	eks_update_path(&x->settings, x->base.call->pending, &x->path);
}

static bool update_read(struct eks_call *x, struct error *e)
{
	struct eks_update u;

	if (!eks_read_update(x->request.response, x->request.response_len, arena_of(x), &u, e))
		return false;
	x->is_update_running = u.progress == EKS_IN_PROGRESS;
	x->has_update_failed = u.progress == EKS_FAILED;
	x->update_failure = (struct launch_failure){ .id = u.created_at * 1024,
						     .at = u.created_at,
						     .kind = ERROR_INVALID,
						     .message = u.message,
						     .zone = "",
						     .instance_type = "" };
	if (!x->is_update_running)
		eks_known_forget(known_of(x));
	return true;
}

static bool update_forgives(struct eks_call *x, const struct error *e)
{
	(void)x;
	return e->kind == ERROR_NOT_FOUND || e->kind == ERROR_AUTH || e->kind == ERROR_INVALID;
}

/* The group: alone where something is changed. For a look others are asked for with it, and what was told with others
 * serves. */

static millis time_of(const struct eks_call *x, millis answered_at)
{
	return answered_at ? answered_at : aws_now(eks_of(x)->aws);
}

static void group_write(struct eks_call *x)
{
	x->asked_for = 1;
	eks_describe_groups(&x->group, 1, &x->body);
}

static void group_came(struct eks_call *x, millis answered_at)
{
	x->seen.now = time_of(x, answered_at);
	x->seen.sets_new = x->settings.protects_new;
}

static bool group_read(struct eks_call *x, struct error *e)
{
	const struct aws_call *r = &x->request;

	bool ok = x->asked_for == 1
			  ? eks_read_sole_group(r->response, r->response_len, x->group, arena_of(x), &x->seen.group, e)
			  : eks_read_group(r->response, r->response_len, x->group, arena_of(x), &x->seen.group, e);

	if (!ok) {
		if (e->kind == ERROR_NOT_FOUND)
			eks_known_forget(known_of(x));
		return false;
	}
	group_came(x, r->answered_at);
	return true;
}

static bool recall_group(struct eks_call *x, struct error *e)
{
	const struct eks_told *told =
		x->group ? eks_together_take(eks_of(x)->together, &x->settings, x->group, now_of(x)) : NULL;
	struct error ignored;

	(void)e;
	x->is_group_read =
		told && eks_read_group(told->text, told->len, x->group, arena_of(x), &x->seen.group, &ignored);
	if (x->is_group_read)
		group_came(x, told->answered_at);
	return true;
}

static bool groups_are_due(const struct eks_call *x)
{
	return !x->is_group_read;
}

static void groups_write(struct eks_call *x)
{
	struct eks_together *t = eks_of(x)->together;
	const char *names[EKS_TOGETHER];

	x->asked_for = eks_together_names(t, &x->settings, x->group, now_of(x), names);
	eks_describe_groups(names, x->asked_for, &x->body);
	x->era = eks_together_era(t);
}

static bool groups_read(struct eks_call *x, struct error *e)
{
	const struct aws_call *r = &x->request;

	if (!group_read(x, e))
		return false;
	eks_together_keep(eks_of(x)->together, &x->settings, x->group, now_of(x),
			  &(struct eks_told){ r->response, r->response_len, x->era, r->answered_at });
	return true;
}

/* The warm pool, page by page. */

static bool pool_is_due(const struct eks_call *x)
{
	return x->seen.group.pool.exists && !x->is_pool_read;
}

/* Whether a machine that is named and not in the group may be in the pool. */
static bool named_pool_is_due(const struct eks_call *x)
{
	const struct provider_call *c = x->base.call;
	bool all_found = true;

	for (size_t i = 0; i < c->id_count && all_found; i++) {
		all_found = false;
		for (size_t k = 0; k < x->seen.group.instance_count && !all_found; k++)
			all_found = strcmp(x->seen.group.instances[k].id, c->ids[i]) == 0;
	}
	return pool_is_due(x) && !all_found;
}

static void pool_write(struct eks_call *x)
{
	eks_describe_pool(x->group, x->page, &x->body);
}

static bool pool_read(struct eks_call *x, struct error *e)
{
	struct eks_list list;

	if (!eks_read_pool(x->request.response, x->request.response_len, arena_of(x), &list, e))
		return false;
	if (x->seen.pool_count + list.count > EKS_MACHINES || (list.next && !list.count))
		return error_set(e, ERROR_INVALID, "a warm pool without end");
	struct eks_instance *all = arena_array(arena_of(x), struct eks_instance, x->seen.pool_count + list.count);
	if (x->seen.pool_count)
		memcpy(all, x->seen.pool, x->seen.pool_count * sizeof *all);
	if (list.count)
		memcpy(all + x->seen.pool_count, list.items, list.count * sizeof *all);
	x->seen.pool = all;
	x->seen.pool_count += list.count;
	x->page = list.next;
	x->is_pool_read = !list.next;
	return true;
}

static bool pool_forgives(struct eks_call *x, const struct error *e)
{
	x->is_pool_read = x->seen.was_pool_denied = e->kind == ERROR_AUTH;
	return x->is_pool_read;
}

/* Why machines are missing, or none is asked for. */

/* Who set the size to 0: what still runs there may only end, and so be told, later. */
static bool asks_who_emptied(const struct eks_call *x)
{
	const struct eks_known *n = known_of(x);

	return !x->seen.group.desired && (x->seen.group.instance_count || n->desired || !n->emptied_asked_at ||
					  now_of(x) - n->emptied_asked_at >= EKS_KNOWN_FOR);
}

static bool note_size(struct eks_call *x, struct error *e)
{
	(void)e;
	eks_known_sized(known_of(x), x->seen.group.desired);
	return true;
}

static bool activities_are_due(const struct eks_call *x)
{
	return eks_has_open_ends(&x->seen.group) || asks_who_emptied(x) || known_of(x)->resizer_asks;
}

static void activities_write(struct eks_call *x)
{
	eks_describe_activities(x->group, ACTIVITIES_MOST, &x->body);
}

static bool activities_read(struct eks_call *x, struct error *e)
{
	struct eks_known *n = known_of(x);
	struct eks_list list;

	if (!eks_read_activities(x->request.response, x->request.response_len, arena_of(x), &list, e))
		return false;
	x->seen.activities = list.items;
	x->seen.activity_count = list.count;
	x->seen.told_before = n->newest_failure;
	n->newest_failure = eks_newest_failure(list.items, list.count);
	n->is_emptied = eks_emptied_by_schedule(list.items, list.count);
	n->emptied_asked_at = now_of(x);
	if (n->resizer_asks)
		eks_known_resizer(n, eks_resized_by(list.items, list.count, x->seen.group.desired, n->resized_after,
						    arena_of(x)));
	return true;
}

/* The steps that change something, and what decides them. */

static void leave_at(struct eks_call *x, int64_t size)
{
	x->seen.group.desired = known_of(x)->asked = size;
}

static void note_twin(struct eks_call *x)
{
	struct eks_group *g = &x->seen.group;

	g->twin = eks_known_twin(known_of(x), g->name, x->settings.region, x->seen.now);
}

static bool decide(struct eks_call *x, struct error *e)
{
	note_twin(x);
	x->seen.ended = eks_known_endings(known_of(x), now_of(x), arena_of(x), &x->seen.ended_count);
	bool is_decided = eks_decide(&x->seen, &x->settings, x->base.call, arena_of(x), &x->change, e);

	x->base.call->is_outdated = x->change.is_outdated;
	return is_decided;
}

static size_t portion(size_t at, size_t count)
{
	return count - at < EKS_IDS_AT_ONCE ? count - at : EKS_IDS_AT_ONCE;
}

static bool protect_is_due(const struct eks_call *x)
{
	return x->protect_at < x->change.protect_count;
}

static void protect_write(struct eks_call *x)
{
	size_t count = portion(x->protect_at, x->change.protect_count);

	eks_protect(x->group, x->change.to_protect + x->protect_at, count, true, &x->body);
	x->protect_at += count;
}

static bool new_are_due(const struct eks_call *x)
{
	return x->change.must_set_new;
}

static void new_write(struct eks_call *x)
{
	eks_protect_new(x->group, x->change.protects_new, &x->body);
}

static bool release_is_due(const struct eks_call *x)
{
	return x->release_at < x->change.release_count;
}

static void release_write(struct eks_call *x)
{
	size_t count = portion(x->release_at, x->change.release_count);

	eks_protect(x->group, x->change.to_release + x->release_at, count, false, &x->body);
	x->release_at += count;
}

static bool put_pool_is_due(const struct eks_call *x)
{
	return x->change.must_put_pool;
}

static void put_pool_write(struct eks_call *x)
{
	eks_put_pool(x->group, &x->change.pool_size, &x->body);
}

static bool config_is_due(const struct eks_call *x)
{
	return x->change.must_configure_pool;
}

static void config_write(struct eks_call *x)
{
	ask(x, AWS_EKS, "POST", "");
	eks_config_path(&x->settings, &x->path);
	eks_config_body(&x->change.pool_size, x->base.call->token, &x->body);
}

static bool config_read(struct eks_call *x, struct error *e)
{
	struct eks_update u;

	if (!eks_read_update(x->request.response, x->request.response_len, arena_of(x), &u, e))
		return false;
	x->base.call->operation = u.id;
	eks_known_forget(known_of(x));
	return true;
}

/* The machines are gone already; what the pool takes for that it is asked again for its size. */
static bool config_forgives(struct eks_call *x, const struct error *e)
{
	(void)x;
	return e->kind == ERROR_CONFLICT;
}

static bool decide_wait(struct eks_call *x, struct error *e)
{
	return !x->change.must_wait_for_pool ||
	       error_set(e, ERROR_CONFLICT,
			 "the warm pool is being enlarged; once that is over machines can be stopped");
}

static bool terminate_is_due(const struct eks_call *x)
{
	return x->victim_at < x->change.victim_count;
}

static void terminate_write(struct eks_call *x)
{
	eks_known_ended(known_of(x), x->change.victims[x->victim_at], now_of(x));
	eks_terminate(x->change.victims[x->victim_at++], &x->body);
}

static bool terminate_read(struct eks_call *x, struct error *e)
{
	(void)e;
	leave_at(x, x->seen.group.desired - 1);
	return true;
}

static bool terminate_forgives(struct eks_call *x, const struct error *e)
{
	return e->kind == ERROR_INVALID && strcasestr(x->request.refusal.message, "not found");
}

static bool size_is_due(const struct eks_call *x)
{
	return x->change.must_size;
}

static void size_write(struct eks_call *x)
{
	eks_set_size(x->group, x->change.target, &x->body);
}

static bool size_read(struct eks_call *x, struct error *e)
{
	(void)e;
	x->base.call->was_taken = x->base.call->verb == PROVIDER_GROW;
	leave_at(x, x->change.target);
	return true;
}

static bool decide_rest(struct eks_call *x, struct error *e)
{
	(void)e;
	if (x->change.must_size)
		eks_decide_rest(&x->seen, x->base.call, arena_of(x), &x->change);
	x->protect_at = 0;
	return true;
}

/*
 * LaunchInstances: from zone to zone, to each its share, as Auto Scaling spreads what it launches (AZRebalance would
 * move it); what a zone lacks is the others', until all are there or every zone has refused. Which zone takes what
 * follows from the call alone, not from what a read shows there: a repeat must be the same request.
 */

static size_t zones_of(const struct eks_call *x)
{
	return x->seen.group.zone_count ? x->seen.group.zone_count : 1;
}

static bool launch_is_due(const struct eks_call *x)
{
	return x->change.to_launch > 0 && x->zones_short < zones_of(x);
}

/* The k-th machine of a group stands in its k-th zone, by turns: from the last of this growth down. */
static size_t zone_to_launch(const struct eks_call *x)
{
	size_t zones = zones_of(x);

	return ((size_t)x->base.call->desired + zones - 1 - x->zone_at % zones) % zones;
}

static int64_t launched_at_once(const struct eks_call *x)
{
	int64_t left = (int64_t)zones_of(x) - (int64_t)x->zone_at, share = left > 1 ? left : 1;

	share = (x->change.to_launch + share - 1) / share;
	return share < LAUNCHED_MOST ? share : LAUNCHED_MOST;
}

/* A repeat of the same request has no second effect; another number or zone is another request. */
static void launch_write(struct eks_call *x)
{
	CLEANUP(buf_release) struct buf token = { 0 };
	const struct eks_group *g = &x->seen.group;
	const char *told = x->base.call->token;
	size_t len = strlen(told);

	/* Of a long one its end, where it differs from the one before. */
	buf_printf(&token, "%s-%zu-%" PRId64, told + (len > TOKEN_KEPT ? len - TOKEN_KEPT : 0), x->zone_at,
		   x->change.to_launch);
	for (size_t i = 0; i < token.len; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/", token.text[i]))
			token.text[i] = '-';
	eks_launch_instances(x->group, launched_at_once(x), g->zone_count > 1 ? g->zones[zone_to_launch(x)] : NULL,
			     token.text, &x->body);
}

static bool launch_read(struct eks_call *x, struct error *e)
{
	struct eks_launched launched;

	if (!eks_read_launched(x->request.response, x->request.response_len, arena_of(x), &launched, e))
		return false;
	x->zones_short = launched.count < launched_at_once(x) ? x->zones_short + 1 : 0;
	x->zone_at++;
	x->change.to_launch -= launched.count;
	x->base.call->launched += launched.count;
	leave_at(x, x->seen.group.desired + launched.count);
	for (size_t i = 0; i < launched.error_count; i++) {
		const struct eks_launch_error *l = &launched.errors[i];
		enum error_kind kind = eks_failure_kind(l->code, l->message, NULL);
		if (i == 0 || kind != ERROR_STOCKOUT)
			error_set(&x->launch_error, kind, "%s %s: %s: %s", l->zone, l->type, l->code, l->message);
	}
	return true;
}

static bool decide_launched(struct eks_call *x, struct error *e)
{
	if (x->change.to_launch <= 0)
		return true;
	if (x->launch_error.kind == ERROR_NONE)
		error_set(&x->launch_error, ERROR_STOCKOUT, "no zone had any");
	*e = x->launch_error;
	return error_wrap(e, "%" PRId64 " of %" PRId64 " machines were not launched", x->change.to_launch,
			  x->change.to_launch + x->base.call->launched);
}

/* --- what our credentials may do --- */

static struct eks_probed probed_of(const struct eks_call *x)
{
	return (struct eks_probed){ &x->settings, x->group, &x->seen.group, tells_by_template(x), is_block(x) };
}

static void add_permission(struct eks_call *x, enum permission_state state, const char *message)
{
	const struct eks_probe *p = eks_probe_at(x->probe_at);
	struct provider_call *c = x->base.call;

	c->permissions[c->permission_count++] =
		(struct permission){ p->action, p->purpose, state, p->need, text_keep(&c->arena, message) };
}

/* To the next probe that can be asked. */
static void skip_probes(struct eks_call *x)
{
	struct eks_probed of = probed_of(x);

	for (const struct eks_probe *p; (p = eks_probe_at(x->probe_at)); x->probe_at++) {
		if (!eks_probe_applies(p, &of))
			continue;
		if (eks_probe_is_possible(p, &of))
			return;
		add_permission(x, PERMISSION_UNKNOWN,
			       "the Auto Scaling group is not known, so this could not be asked");
	}
}

static void identity_write(struct eks_call *x)
{
	ask(x, AWS_STS, "POST", "/");
	eks_caller_identity(&x->body);
}

static bool identity_read(struct eks_call *x, struct error *e)
{
	struct provider_call *c = x->base.call;

	c->permissions = arena_array(&c->arena, struct permission, EKS_PROBES);
	skip_probes(x);
	return eks_read_identity(x->request.response, x->request.response_len, &c->arena, &c->identity, e);
}

static bool probe_is_due(const struct eks_call *x)
{
	return eks_probe_at(x->probe_at) != NULL;
}

static void probe_write(struct eks_call *x)
{
	const struct eks_probe *p = eks_probe_at(x->probe_at);
	struct eks_probed of = probed_of(x);

	ask(x, p->service, p->body ? "POST" : "GET", p->path ? "" : "/");
	if (p->path)
		p->path(&x->settings, &x->path);
	if (p->body)
		p->body(&of, &x->body);
}

static bool probe_forgives(struct eks_call *x, const struct error *e)
{
	const char *message;
	enum permission_state state = eks_probe_judge(eks_probe_at(x->probe_at), e, &message);

	add_permission(x, state, message);
	x->probe_at++;
	skip_probes(x);
	return true;
}

/* What some answers tell of the group serves the probes that follow. */
static bool probe_read(struct eks_call *x, struct error *e)
{
	const struct aws_call *r = &x->request;
	enum eks_probe_tells tells = eks_probe_at(x->probe_at)->tells;
	const char *name;
	struct error ignored;

	(void)e;
	if (tells == TELLS_NODEGROUP &&
	    eks_read_nodegroup(r->response, r->response_len, arena_of(x), &x->seen.nodegroup, &ignored))
		x->group = x->seen.nodegroup.group;
	if (tells == TELLS_GROUP && !x->group &&
	    eks_read_found(r->response, r->response_len, arena_of(x), &name, &ignored))
		x->group = name;
	if (tells == TELLS_GROUP && x->group &&
	    !eks_read_group(r->response, r->response_len, x->group, arena_of(x), &x->seen.group, &ignored))
		x->seen.group = (struct eks_group){ 0 };
	return probe_forgives(x, &(struct error){ .kind = ERROR_NONE });
}

/* clang-format off */
static const struct step
	locate = { "looking for its Auto Scaling group", locate_is_due, false, locate_write, locate_read, NULL, NULL },
	locate_anew = { "DescribeNodegroup", has_moved, false, locate_write, locate_read, NULL, NULL },
	update = { "DescribeUpdate", update_is_due, false, update_write, update_read, update_forgives, NULL },
	group = { "DescribeAutoScalingGroups", NULL, false, group_write, group_read, NULL, NULL },
	group_told = { .decide = recall_group },
	groups = { "DescribeAutoScalingGroups", groups_are_due, false, groups_write, groups_read, NULL, NULL },
	template = { "DescribeLaunchTemplateVersions", template_is_due, false, template_write, template_read, NULL, NULL },
	reservation = { "DescribeCapacityReservations", reservation_is_due, false, reservation_write, reservation_read, NULL, NULL },
	pool = { "DescribeWarmPool", pool_is_due, true, pool_write, pool_read, pool_forgives, NULL },
	named_pool = { "DescribeWarmPool", named_pool_is_due, true, pool_write, pool_read, pool_forgives, NULL },
	sized = { .decide = note_size },
	activities = { "DescribeScalingActivities", activities_are_due, false, activities_write, activities_read, NULL, NULL },
	hooks = { "DescribeLifecycleHooks", hooks_are_due, false, hooks_write, hooks_read, hooks_forgive, NULL },
	refresh = { "DescribeInstanceRefreshes", refresh_is_due, false, refresh_write, refresh_read, refresh_forgives, NULL },
	change = { .decide = decide },
	protect = { "SetInstanceProtection", protect_is_due, true, protect_write, NULL, NULL, NULL },
	release = { "SetInstanceProtection", release_is_due, true, release_write, NULL, NULL, NULL },
	protect_new = { "UpdateAutoScalingGroup", new_are_due, false, new_write, NULL, NULL, NULL },
	put_pool = { "PutWarmPool", put_pool_is_due, false, put_pool_write, NULL, NULL, NULL },
	config = { "UpdateNodegroupConfig", config_is_due, false, config_write, config_read, NULL, NULL },
	config_if_free = { "UpdateNodegroupConfig", config_is_due, false, config_write, config_read, config_forgives, NULL },
	pool_waited_for = { .decide = decide_wait },
	terminate = { "TerminateInstanceInAutoScalingGroup", terminate_is_due, true, terminate_write, terminate_read,
		      terminate_forgives, NULL },
	again = { "DescribeAutoScalingGroups", size_is_due, false, group_write, group_read, NULL, NULL },
	rest = { .decide = decide_rest },
	size = { "SetDesiredCapacity", size_is_due, false, size_write, size_read, NULL, NULL },
	launch = { "LaunchInstances", launch_is_due, true, launch_write, launch_read, NULL, NULL },
	launched = { .decide = decide_launched },
	identity = { "GetCallerIdentity", NULL, false, identity_write, identity_read, NULL, NULL },
	probe = { "a probe", probe_is_due, true, probe_write, probe_read, probe_forgives, NULL };
/* clang-format on */

#define PLAN(...) ((const struct step *const[]){ __VA_ARGS__, NULL })

static const struct step *const *const plans[PROVIDER_VERB_COUNT] = {
	[PROVIDER_DESCRIBE] = PLAN(&locate, &update, &group_told, &groups, &locate_anew, &template, &reservation, &pool,
				   &sized, &activities, &hooks, &refresh),
	[PROVIDER_GROW] = PLAN(&locate, &group, &locate_anew, &change, &put_pool, &launch, &size, &protect, &launched),
	[PROVIDER_REMOVE] = PLAN(&locate, &group, &locate_anew, &named_pool, &change, &protect, &put_pool, &terminate,
				 &config_if_free),
	[PROVIDER_STOP] = PLAN(&locate, &group, &locate_anew, &change, &config, &pool_waited_for, &protect, &put_pool,
			       &release, &size),
	[PROVIDER_STANDBY] = PLAN(&locate, &group, &locate_anew, &change, &put_pool, &config, &protect),
	[PROVIDER_CANCEL] = PLAN(&locate, &group, &locate_anew, &change, &protect, &put_pool, &terminate, &again, &rest,
				 &protect, &size, &config_if_free),
	[PROVIDER_CHECK] = PLAN(&identity, &probe),
	[PROVIDER_PROTECT] = PLAN(&locate, &group, &change, &protect_new, &protect, &release),
};

static void add_update_failure(struct eks_call *x)
{
	struct group_description *d = &x->base.call->description;
	struct launch_failure *all = arena_array(arena_of(x), struct launch_failure, d->failure_count + 1);

	if (d->failure_count)
		memcpy(all, d->failures, d->failure_count * sizeof *all);
	all[d->failure_count++] = x->update_failure;
	d->failures = all;
	group_description_sort(d);
}

static void describe(struct eks_call *x)
{
	struct group_description *d = &x->base.call->description;
	struct eks_known *n = known_of(x);
	bool is_ours = x->base.call->pending && *x->base.call->pending; /* it goes on, or was over a moment ago */

	x->seen.instance_store = &n->instance_store;
	eks_describe(&x->seen, arena_of(x), d);
	if (may_stand_by(x) && n->instance_store_trouble.kind != ERROR_NONE)
		eks_tell_disks_unknown(&n->instance_store_trouble, arena_of(x), d);
	eks_known_looked(n, &x->seen.group, x->settings.region, x->seen.now);
	d->present = x->request.answered_at > x->seen.now ? x->request.answered_at : x->seen.now;
	d->resized_by = text_keep(arena_of(x), n->resized_by);
	d->ends_at = is_block(x) ? n->ends_at : 0;
	if (is_block(x) && !d->ends_at)
		eks_tell_end_unknown(&n->end_trouble, arena_of(x), d);
	if (n->are_hooks_known)
		eks_tell_hooks(&n->hooks, arena_of(x), d);
	eks_tell_refresh(&x->refresh, arena_of(x), d);
	d->busy_with = is_ours ? "" : eks_busy_with(&x->settings, &x->seen.nodegroup, arena_of(x));
	d->is_busy |= x->is_update_running || *d->busy_with;
	d->emptied_by = n->is_emptied && !x->seen.group.desired ? eks_emptied_by(&x->seen.group, arena_of(x)) : "";
	if (x->has_update_failed)
		add_update_failure(x);
	note_twin(x);
	const char *untouched = eks_why_untouched(&x->seen.group, &x->settings, arena_of(x));
	d->is_refused = !x->seen.group.may_launch || untouched;
	if (untouched)
		d->lacks = untouched;
	d->replaces_lost = true;
	d->grows_by_count = x->settings.launch == EKS_LAUNCH_INSTANCES && !x->seen.group.pool.exists;
	if (!d->is_refused)
		eks_tell_besides(&x->seen, &x->settings, arena_of(x), d);
}

/* Nothing was done for certain: AWS says so, whatever else it fails at (ResourceContention is a 500), or was not asked.
 */
static bool was_refused(const struct eks_call *x)
{
	enum error_kind kind = x->base.call->error.kind;
	const char *code = x->request.refusal.code;

	if (*code)
		return (kind != ERROR_UNAVAILABLE && kind != ERROR_TIMEOUT) || !strcmp(code, "ResourceContention");
	return kind == ERROR_AUTH || x->request.request.is_refused;
}

/* Of a call that failed; what was refused to end stays. */
static void tell_ended(struct eks_call *x)
{
	struct provider_call *c = x->base.call;
	bool is_ending = x->victim_at && *x->plan && (*x->plan)->write == terminate_write;

	c->ended = x->change.victims;
	c->ended_count = x->victim_at - (is_ending && was_refused(x));
	if (c->ended_count < x->victim_at)
		eks_known_stays(known_of(x), x->change.victims[c->ended_count]);
}

static void finish(struct eks_call *x)
{
	struct provider_call *c = x->base.call;

	if (x->is_late)
		error_set(&c->error, ERROR_TIMEOUT, "not over within %" PRId64 " ms", x->base.deadline);
	if (c->error.kind == ERROR_NONE && c->verb == PROVIDER_DESCRIBE)
		describe(x);
	if (c->error.kind != ERROR_NONE)
		tell_ended(x);
	exchange_finish(&x->base);
}

static void on_answer(struct aws_call *r);

static void send(struct eks_call *x)
{
	ask(x, AWS_AUTOSCALING, "POST", "/");
	(*x->plan)->write(x);
	x->request.region = x->settings.region;
	x->request.endpoint = x->settings.endpoint;
	x->request.path = x->path.text;
	x->request.body = strcmp(x->request.method, "POST") == 0 ? x->body.text : NULL;
	x->request.is_write = provider_verb_changes(x->base.call->verb);
	x->request.timeout = is_of_ec2(x)	     ? EC2_PATIENCE
			     : x->base.call->timeout ? x->base.call->timeout
						     : READ_DEADLINE;
	x->request.max_response = MOST_ANSWER;
	x->request.done = on_answer;
	x->request.user = x;
	x->is_sent = true;
	aws_start(eks_of(x)->aws, &x->request);
}

/* To the next step that has something to ask; at the end of the plan the call is over. */
static void advance(struct eks_call *x)
{
	for (; *x->plan; x->plan++) {
		const struct step *s = *x->plan;
		if (s->decide && !s->decide(x, &x->base.call->error))
			break;
		if (!s->decide && (!s->is_due || s->is_due(x))) {
			send(x);
			return;
		}
	}
	finish(x);
}

static void refused(struct eks_call *x, const struct error *cause)
{
	struct provider_call *c = x->base.call;

	c->error = *cause;
	c->retry_after = x->request.retry_after;
	error_wrap(&c->error, "%s", (*x->plan)->name);
	if (!x->group && c->verb != PROVIDER_CHECK)
		eks_known_refused(known_of(x), &c->error, now_of(x));
	finish(x);
}

/* It said yes to a change, whose answer is read: what came of it a look tells, too. */
static bool changes_something(const struct step *s)
{
	return s == &launch || s == &config || s == &config_if_free;
}

static void on_answer(struct aws_call *r)
{
	struct eks_call *x = r->user;
	const struct step *s = *x->plan;
	struct error e = r->error;

	x->is_sent = false;
	if (x->is_late || e.kind == ERROR_CANCELLED) {
		x->base.call->error = e;
		finish(x);
		return;
	}
	bool is_read = e.kind == ERROR_NONE && (!s->read || s->read(x, &e));
	if (r->error.kind == ERROR_NONE && !is_read)
		error_wrap(&e, "answer");
	if (r->error.kind == ERROR_NONE && !is_read && e.kind == ERROR_INVALID && changes_something(s))
		e.kind = ERROR_UNAVAILABLE;
	if (!is_read && is_of_ec2(x) && x->base.call->verb == PROVIDER_DESCRIBE) {
		known_of(x)->end_trouble = e;
		if (!x->reservation)
			known_of(x)->instance_store_trouble = e;
		is_read = true;
	}
	if (!is_read && !(r->error.kind != ERROR_NONE && *r->refusal.code && s->forgives && s->forgives(x, &e))) {
		refused(x, &e);
		return;
	}
	x->plan += !s->repeats;
	advance(x);
}

static void on_deadline(struct timer *t)
{
	struct eks_call *x = t->user;

	x->is_late = true;
	if (x->is_sent)
		aws_cancel(&x->request);
}

static bool accepts(struct exchange *base)
{
	struct eks_call *x = (struct eks_call *)base;
	struct provider_call *c = base->call;

	if (!eks_read_settings(c->settings ? c->settings : "", &c->arena, &x->settings, &c->error))
		return false;
	x->seen.warm_pool = x->settings.warm_pool;
	x->plan = plans[c->verb];
	x->deadline.user = x;
	timer_start(base->provider->loop, &x->deadline, base->deadline, on_deadline);
	if (provider_verb_changes(c->verb))
		eks_together_changed(eks_of(x)->together);
	return true;
}

static void begin(struct exchange *base)
{
	struct eks_call *x = (struct eks_call *)base;

	if (recall(x))
		advance(x);
	else
		finish(x);
}

static bool cancel(struct exchange *base)
{
	struct eks_call *x = (struct eks_call *)base;

	if (x->is_sent)
		aws_cancel(&x->request);
	return x->is_sent;
}

static void end(struct exchange *base)
{
	struct eks_call *x = (struct eks_call *)base;

	timer_stop(&x->deadline);
	if (provider_verb_changes(base->call->verb))
		eks_together_changed(eks_of(x)->together);
	buf_release(&x->path);
	buf_release(&x->body);
}

static const struct exchange_kind calls = {
	.size = sizeof(struct eks_call),
	.read_deadline = 30 * SECOND,
	.change_deadline = 2 * MINUTE,
	.protects = true,
	.accepts = accepts,
	.begin = begin,
	.cancel = cancel,
	.end = end,
};

static struct provider *eks_open(const struct provider_setup *s, struct error *e)
{
	struct eks *p = calloc(1, sizeof *p);
	struct clock now = clock_open();

	(void)e;
	if (!p)
		abort();
	p->base = (struct provider){ .kind = &calls, .loop = s->loop };
	p->aws = aws_open(s->loop, s->http);
	p->random = random_stream((uint64_t)clock_now(&now), "eks-known");
	p->together = eks_together_open();
	return &p->base;
}

static void eks_close(struct provider *base)
{
	struct eks *p = (struct eks *)base;

	if (!p)
		return;
	assert(!base->active);
	aws_close(p->aws);
	eks_known_release(p->known);
	eks_together_close(p->together);
	free(p);
}

#define QUESTION(id, asks, why, command, answers, when) { id, asks, why, command, answers, when },
static const struct provider_question questions[] = {
#include "providers/eks_question.def"
	{ 0 }
};
#undef QUESTION

const struct provider_ops provider_eks = {
	.name = "eks",
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
		     PROVIDER_CANCELS | PROVIDER_PROTECTS,
	.open = eks_open,
	.close = eks_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
	.questions = questions,
	.unprotect = "aws autoscaling set-instance-protection --no-protected-from-scale-in",
};
