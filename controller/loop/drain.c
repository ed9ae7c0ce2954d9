#include "controller/loop/drain.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/listed_pods.h"
#include "controller/loop/stock.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum drain_step {
	DRAIN_MARK,   /* cordon and taint */
	DRAIN_EVICT,  /* until nothing is left that counts */
	DRAIN_REMOVE, /* the cloud was asked */
	DRAIN_LEND,   /* empty of the pool's pods: open to those that borrow */
	DRAIN_UNMARK, /* abandoned: back to work */
	DRAIN_SHOWN,  /* written; until the watch shows it */
	DRAIN_OVER
};

/* What is written on a node: that it goes, that it is lent, neither. */
enum drain_mark { MARK_ON, MARK_LENT, MARK_OFF };

enum {
	EVICTIONS_AT_ONCE = 8,
	DRAIN_IS_BLIND = -1,
	DRAIN_IS_UNSEEN = -2,
	DRAIN_IS_NOT_REPLACED = -3,
	DRAIN_HAS_QUEUE = -4,
	DRAIN_IS_NEW = -5,
	DRAIN_IS_UNSURE = -6,
	DRAIN_HAS_ENGINES = -7
};

/* What holds who serves. */
static const struct {
	const char *name, *why;
} wait_words[] = {
	[-DRAIN_IS_BLIND] = { "signals-stale", "nothing is known of the pool; what serves there is not asked to go" },
	[-DRAIN_IS_UNSURE] = { "signals-partial",
			       "too little is known of the pool; what serves there is not asked to go" },
	[-DRAIN_HAS_QUEUE] = { "queue", "requests wait; what serves there is not asked to go" },
	[-DRAIN_HAS_ENGINES] = { "engines", "engines of a share there still have requests" },
	[-DRAIN_IS_NEW] = { "unread", "what serves there since a moment ago was not decided with yet" },
};

static const millis EVICT_AGAIN = 5 * SECOND; /* Cluster Autoscaler: 10 s */
static const millis BACK_OFF = 15 * MINUTE, BACK_OFF_MOST = 4 * HOUR;
static const char BLOCKED[] = "blocked"; /* outcome of a drain that a budget or a pod held for too long */
static const millis READ_AGAIN = 5 * SECOND;
static const millis MOVE_SETTLES = 20 * SECOND;

static const char *const fate_names[] = { "remove", "stop", "lend" };
/* In the row only: one that is no good is removed, also where that leaves fewer than the least for a moment. */
static const char REPLACED[] = "replace";

struct pod_eviction {
	struct eviction call;
	struct drain *drain; /* NULL: one pod alone */
	struct controller *controller;
	struct pod_eviction *next; /* of lone ones */
	char namespace[64], pod[254], uid[37];
	bool is_busy;
	millis quiet_until; /* loop_now; the pod was told to go */
};

struct drain {
	struct controller *controller;
	struct drain *next;
	char node[254], machine[MACHINE_ID_MAX + 1]; /* machine: once the cloud has told of it */
	char why[256], owner[MARK_OWNER_MAX + 1];
	millis asked_at;      /* of its row in the history; 0: there is none of this drain */
	millis begun;	      /* clock_mono; also of one that an earlier life began */
	const char *outcome;  /* of one that was given up */
	char blocked[320];    /* what keeps it from being emptied; "": nothing */
	millis blocked_since; /* clock_mono */
	size_t pool;
	int group;
	enum drain_fate fate;
	enum drain_step step;
	millis since;		       /* clock_mono; of the step that waits */
	millis quiet_until, marked_at; /* loop_now */
	millis settled_at;	       /* loop_now; what moved has its place by then */
	millis given_up_at;	       /* clock_now; later plans count its replicas; 0: that of then does, too */
	enum drain_mark mark;	       /* the last that was sent */
	struct node_change change;
	struct node_taint taint;
	struct verb_pair annotation, labels[2];
	bool is_marking;
	struct pod_eviction evictions[EVICTIONS_AT_ONCE];
	int in_flight;
	struct api_call read; /* of the node's pods, after the mark */
	struct buf read_path;
	bool is_reading, is_read_empty;
	int last_reason; /* enum drain_reason that was told, or DRAIN_IS_... */
	bool has_complained;
	bool is_stray; /* a mark that was left over, no drain of ours */
	bool moves;    /* one pod after the other, to places that are known */
	bool is_replaced;
};

/* The drain of a node that is not over; NULL without. */
static struct drain *drain_of(const struct controller *c, const char *node)
{
	for (struct drain *d = c->drains.first; d; d = d->next)
		if (!strcmp(d->node, node) && d->step != DRAIN_OVER)
			return d;
	return NULL;
}

bool drain_is_under_way(const struct controller *c, const char *node)
{
	return drain_of(c, node) != NULL;
}

int drain_asks_for(const struct controller *c, const char *node)
{
	const struct drain *d = drain_of(c, node);
	bool asks = d && d->group >= 0 && (d->step == DRAIN_MARK || d->step == DRAIN_EVICT) && !d->last_reason;

	return asks ? (int)d->pool : -1;
}

/* A new one, after all others: where they wait for one budget, who was released first goes first. Its step is
 * DRAIN_MARK. */
static struct drain *drain_add(struct controller *c, const struct node *n)
{
	struct drain *d = xnew(struct drain), **end = &c->drains.first;

	d->controller = c;
	d->group = n->group;
	d->since = d->begun = clock_mono(c->clock);
	snprintf(d->node, sizeof d->node, "%s", n->name);
	while (*end)
		end = &(*end)->next;
	*end = d;
	return d;
}

static bool is_late(const struct drain *d)
{
	return clock_mono(d->controller->clock) - d->since > DRAIN_PATIENCE;
}

static void go_to(struct drain *d, enum drain_step step)
{
	d->step = step;
	d->since = clock_mono(d->controller->clock);
}

static void give_up(struct drain *d, const char *outcome)
{
	d->step = DRAIN_UNMARK;
	d->outcome = outcome;
	d->quiet_until = 0;
	d->given_up_at = clock_now(d->controller->clock);
}

/* The cloud's names for machines may have nothing to do with those on nodes: a machine is known by the cloud alone. */
static void find_machine(struct drain *d, const struct node *n)
{
	const struct node_group *g = d->group >= 0 ? d->controller->groups[d->group] : NULL;

	if (g && n && n->is_known && !node_group_machine(g, d->machine))
		snprintf(d->machine, sizeof d->machine, "%s", machine_of_node(d->controller, n));
}

/* --- its row in the history --- */

static struct history *history_of(const struct controller *c)
{
	return c->history ? c->history : c->marks.history;
}

static void row_failed(const struct drain *d, const struct error *e)
{
	log_error("drain-not-recorded", LOG_S("node", d->node), LOG_E(e), LOG_END);
}

/* On disk before the first mark is written. */
static bool row_save(struct drain *d)
{
	struct controller *c = d->controller;
	const struct drain_record row = { .node = d->node,
					  .machine = d->machine,
					  .pool = c->pools[d->pool]->key,
					  .group = fleet_of(c)->groups[d->group].name,
					  .fate = d->is_replaced ? REPLACED : fate_names[d->fate],
					  .why = d->why,
					  .term = c->leader.term,
					  .asked_at = clock_now(c->clock) };
	struct error e = { 0 };

	if (d->asked_at || !history_of(c))
		return true;
	if (!drain_record_save(history_of(c), &row, &e)) {
		row_failed(d, &e);
		return false;
	}
	d->asked_at = row.asked_at;
	return true;
}

static void row_release(const struct drain *d)
{
	struct controller *c = d->controller;
	struct error e = { 0 };

	if (d->asked_at && history_of(c) &&
	    !drain_record_release(history_of(c), d->node, d->asked_at, clock_now(c->clock), &e))
		row_failed(d, &e);
}

/* The drain is over, and its mark stays. */
static void row_end(const struct drain *d, const char *outcome)
{
	struct controller *c = d->controller;
	struct error e = { 0 };

	if (d->asked_at && history_of(c) &&
	    !drain_record_end(history_of(c), d->node, d->asked_at, outcome, clock_now(c->clock), &e))
		row_failed(d, &e);
}

/* Nothing of ours is there any more. */
static void row_unmark(const struct drain *d, const char *outcome)
{
	struct controller *c = d->controller;
	struct error e = { 0 };

	if (history_of(c) && !drain_record_unmark(history_of(c), d->node, outcome, clock_now(c->clock), &e))
		row_failed(d, &e);
}

/* --- what holds it --- */

/* Of a node that could not be emptied: it is not tried again for a while. */
struct drain_back_off {
	char node[254];
	int times;
	millis until; /* clock_mono */
};

static struct drain_back_off *back_off_of(const struct controller *c, const char *node)
{
	for (size_t i = 0; i < c->drains.back_off_count; i++)
		if (!strcmp(c->drains.back_offs[i].node, node))
			return &c->drains.back_offs[i];
	return NULL;
}

bool drain_is_backed_off(const struct controller *c, const char *node)
{
	const struct drain_back_off *b = back_off_of(c, node);

	return b && clock_mono(c->clock) < b->until;
}

/* at: clock_mono. */
static void back_off(struct controller *c, const char *node, millis at)
{
	struct drains *s = &c->drains;
	struct drain_back_off *b = back_off_of(c, node);

	for (size_t i = 0; !b && i < s->back_off_count; i++)
		if (s->back_offs[i].until + BACK_OFF_MOST < at)
			b = memset(&s->back_offs[i], 0, sizeof *b); /* it was long ago */
	if (!b) {
		s->back_offs = xgrow(s->back_offs, s->back_off_count, &s->back_off_room, sizeof *s->back_offs);
		b = memset(&s->back_offs[s->back_off_count++], 0, sizeof *b);
	}
	snprintf(b->node, sizeof b->node, "%s", node);
	millis wait = BACK_OFF << (b->times < 4 ? b->times : 4);
	b->times++;
	b->until = at + (wait < BACK_OFF_MOST ? wait : BACK_OFF_MOST);
}

void drains_recall(struct controller *c)
{
	enum { MOST = 2000 };
	CLEANUP(arena_release) struct arena a = { 0 };
	millis now = clock_now(c->clock), mono = clock_mono(c->clock);
	struct drain_record *rows;
	struct error e = { 0 };
	size_t count;

	c->drains.back_off_count = 0;
	if (!drain_record_find(c->history, &(struct drain_filter){ .from = now - DAY, .to = now + HOUR, .most = MOST },
			       &a, &rows, &count, &e)) {
		log_error("drains-not-read", LOG_E(&e), LOG_END);
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (rows[i].outcome && !strcmp(rows[i].outcome, BLOCKED))
			back_off(c, rows[i].node, mono - (now > rows[i].ended_at ? now - rows[i].ended_at : 0));
}

static void block(struct drain *d, const char *text)
{
	if (!d->blocked_since)
		d->blocked_since = clock_mono(d->controller->clock);
	snprintf(d->blocked, sizeof d->blocked, "%s", text);
}

static void unblock(struct drain *d)
{
	d->blocked_since = 0;
	d->blocked[0] = '\0';
}

static bool is_blocked_for_long(const struct drain *d)
{
	return d->step == DRAIN_EVICT && d->blocked_since &&
	       clock_mono(d->controller->clock) - d->blocked_since > DRAIN_BLOCKED_PATIENCE;
}

const char *drain_blocked(const struct controller *c, size_t pool, struct arena *a)
{
	for (const struct drain *d = c->drains.first; d; d = d->next) {
		CLEANUP(buf_release) struct buf text = { 0 };
		if (d->pool != pool || d->step != DRAIN_EVICT || !d->blocked_since)
			continue;
		buf_printf(&text,
			   "node %s has been cordoned to go and cannot be emptied for %lld s: %s; after %lld s it is "
			   "opened again and another is tried",
			   d->node, (long long)((clock_mono(c->clock) - d->blocked_since) / SECOND), d->blocked,
			   (long long)(DRAIN_BLOCKED_PATIENCE / SECOND));
		return arena_strdup(a, text.text, text.len);
	}
	return NULL;
}

/* Whatever anybody does; only when is not told. */
static bool is_ending(const struct node *n)
{
	return n->interruption == NODE_TERMINATING;
}

static bool will_be_taken(const struct controller *c, const struct node *n)
{
	return n->interruption == NODE_SPOT_INTERRUPTED || n->interruption == NODE_MAINTAINED ||
	       reservation_is_due(c, n->group);
}

static bool will_go(const struct controller *c, const struct node *n)
{
	return is_ending(n) || will_be_taken(c, n);
}

/* --- asking pods to go --- */

/* Once a drain: a budget that holds, or an API server that is away, is asked again and again. */
static void tell_failure(const struct pod_eviction *e, const struct eviction *call)
{
	if (call->error.kind == ERROR_NONE || call->error.kind == ERROR_CANCELLED || call->result == EVICTION_CHANGED ||
	    (e->drain && e->drain->has_complained))
		return;
	if (e->drain)
		e->drain->has_complained = true;
	log_warn("eviction-held", LOG_S("pod", e->pod), LOG_S("result", eviction_result_name(call->result)),
		 LOG_E(&call->error), LOG_END);
}

static void note_answer(struct pod_eviction *e, const struct eviction *call)
{
	struct drain *d = e->drain;
	millis now = loop_now(d->controller->loop);
	CLEANUP(buf_release) struct buf text = { 0 };

	if (call->error.kind == ERROR_CANCELLED) {
		d->step = DRAIN_OVER; /* its row stays open */
		return;
	}
	if (call->result == EVICTION_DONE || call->result == EVICTION_GONE) {
		unblock(d);
		e->quiet_until = now + EVICT_AGAIN;
		return;
	}
	d->quiet_until = now + (call->retry_after > 0 ? call->retry_after : EVICT_AGAIN);
	if (call->result == EVICTION_THROTTLED || call->result == EVICTION_FAILED || call->result == EVICTION_CHANGED)
		return; /* no trouble of the pod's */
	buf_printf(&text, "pod %s/%s may not be evicted: %s", e->namespace, e->pod, call->error.message);
	block(d, text.text);
}

static void evicted(struct eviction *call)
{
	struct pod_eviction *e = call->user;
	struct controller *c = e->controller;
	struct drain *d = e->drain;

	e->is_busy = false;
	c->drains.evictions[call->result]++;
	tell_failure(e, call);
	if (d) {
		d->in_flight--;
		note_answer(e, call);
	} else {
		for (struct pod_eviction **at = &c->drains.lone; *at; at = &(*at)->next)
			if (*at == e) {
				*at = e->next;
				break;
			}
		free(e);
	}
	act_soon(c);
}

/* Who does not serve, as far as is known, may serve by the time the call arrives: then the server refuses it. */
static void start(struct pod_eviction *e, const struct pod *p, bool in_any_case)
{
	snprintf(e->namespace, sizeof e->namespace, "%s", p->namespace);
	snprintf(e->pod, sizeof e->pod, "%s", p->name);
	pod_uid_text(p, e->uid);
	e->is_busy = true;
	e->call = (struct eviction){ .name_space = e->namespace,
				     .pod = e->pod,
				     .uid = e->uid,
				     .version = in_any_case || p->state == POD_READY ? 0 : p->version,
				     .grace_seconds = -1,
				     .done = evicted,
				     .user = e };
	eviction_start(e->controller->api, &e->call);
}

void drain_evict_pod(struct controller *c, const struct pod *p)
{
	struct pod_eviction *e = xnew(struct pod_eviction);

	e->controller = c;
	e->next = c->drains.lone;
	c->drains.lone = e;
	start(e, p, false);
}

/* A place for a call about the pod; NULL while one is under way, or answered a moment ago, or none is free. */
static struct pod_eviction *slot_for(struct drain *d, const char *uid)
{
	struct pod_eviction *slot = NULL;

	for (size_t i = 0; i < EVICTIONS_AT_ONCE; i++) {
		struct pod_eviction *e = &d->evictions[i];
		if (!e->is_busy && e->quiet_until <= loop_now(d->controller->loop))
			slot = e;
		else if (!strcmp(e->uid, uid))
			return NULL;
	}
	return slot;
}

/* What it takes out of routing finds others, or is held. */
static bool are_covered(struct controller *c, const struct pod *p)
{
	bool are = true;

	for (; p; p = p->beside)
		are &= p->pool < 0 || activator_covers(c, (size_t)p->pool, p);
	return are;
}

static void ask(struct drain *d, const struct pod *p)
{
	char uid[37];

	pod_uid_text(p, uid);
	struct pod_eviction *e = p->state == POD_TERMINATING ? NULL : slot_for(d, uid);
	if (!e || !are_covered(d->controller, p))
		return;
	e->drain = d;
	e->controller = d->controller;
	d->in_flight++;
	start(e, p, will_go(d->controller, p->node));
}

static void tell_blocked(struct drain *d, const struct drain_verdict *v)
{
	block(d, v->text);
	if (d->last_reason == (int)v->reason)
		return;
	d->last_reason = (int)v->reason;
	log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", drain_reason_name(v->reason)),
		 LOG_S("why", v->text), LOG_END);
}

/* Of a node that is lent only the lender's own pods must go. */
static bool keeps_node(const struct drain *d, const struct pod *p)
{
	return p->kind != POD_DAEMON && p->kind != POD_STATIC && p->state != POD_FINISHED &&
	       (d->fate != FATE_LEND || p->pool == (int)d->pool);
}

/* Must end by itself, where the pods are the work; what only runs beside it is evicted as anywhere. */
static bool is_work(const struct drain *d, const struct pod *p)
{
	return runs_work(d->controller, d->pool) && (p->has_gpus || p->pool == (int)d->pool) && keeps_node(d, p) &&
	       !pod_is_expendable(p);
}

static void evict_all(struct drain *d, const struct node *n, struct arena *a)
{
	struct controller *c = d->controller;
	struct drain_verdict v = cluster_drain(c->cluster, n, (int)d->pool, clock_now(c->clock), a);

	if (v.reason != DRAIN_POSSIBLE)
		tell_blocked(d, &v);
	else if (!v.evict_count)
		unblock(d); /* what is left is going */
	else
		for (size_t i = 0; i < v.evict_count; i++)
			ask(d, v.evict[i]);
}

/* One pod at a time, after those before it have settled: its controller makes it anew a moment later. */
static void move_next(struct drain *d, const struct node *n, struct arena *a)
{
	struct controller *c = d->controller;
	const char *why = NULL;
	millis now = loop_now(c->loop);
	struct drain_verdict v = cluster_drain(c->cluster, n, -1, clock_now(c->clock), a);
	enum move_step next = d->in_flight ? MOVE_WAIT : consolidation_step(c, d->pool, n, a, &why);

	if (next == MOVE_WAIT) {
		d->settled_at = now + clock_real(c->clock, MOVE_SETTLES);
	} else if (v.reason != DRAIN_POSSIBLE) {
		tell_blocked(d, &v);
	} else if (next == MOVE_NEVER) {
		log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", "no-place"), LOG_S("why", why), LOG_END);
		back_off(c, d->node, clock_mono(c->clock));
		give_up(d, "no-place");
	} else if (v.evict_count > 0 && now >= d->settled_at) {
		unblock(d);
		d->settled_at = now + clock_real(c->clock, MOVE_SETTLES);
		ask(d, v.evict[0]);
	}
}

/* Asks what may go to go. True when the node is empty of all that counts. */
static bool evict(struct drain *d, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	millis now = clock_now(d->controller->clock);
	const struct pod **pods = cluster_node_pods(d->controller->cluster, n, &a, &count);
	int64_t left = 0, work = 0;

	for (size_t i = 0; i < count; i++) {
		left += keeps_node(d, pods[i]);
		work += is_work(d, pods[i]);
	}
	if (left > 0 && d->moves)
		move_next(d, n, &a);
	else if (work > 0 && !will_go(d->controller, n))
		give_up(d, "work-came");
	else if (left > 0 && d->fate != FATE_LEND)
		evict_all(d, n, &a);
	else /* the server holds what a PodDisruptionBudget keeps */
		for (size_t i = 0; i < count; i++)
			if (keeps_node(d, pods[i]) && pods[i]->evict != POD_EVICT_NEVER &&
			    pods[i]->undisturbed_until <= now)
				ask(d, pods[i]);
	return left == 0;
}

/* --- what the server itself holds --- */

static void pods_read(struct api_call *call)
{
	struct drain *d = call->user;
	struct error e = call->error;
	int64_t left = 0;

	d->is_reading = false;
	if (e.kind == ERROR_CANCELLED) {
		d->step = DRAIN_OVER;
	} else if (e.kind == ERROR_NONE && listed_pods_count(d->node, call->response, call->response_len, &left, &e)) {
		d->is_read_empty = left == 0;
		if (left > 0 && d->last_reason != DRAIN_IS_UNSEEN)
			log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", "pods-unseen"),
				 LOG_I("pods", left),
				 LOG_S("why", "the server has pods there that no watch showed yet"), LOG_END);
		if (left > 0)
			d->last_reason = DRAIN_IS_UNSEEN;
	} else {
		if (!d->has_complained)
			log_warn("node-pods-not-read", LOG_S("node", d->node), LOG_E(&e), LOG_END);
		d->has_complained = true;
	}
	d->quiet_until = d->is_read_empty ? 0 : loop_now(d->controller->loop) + READ_AGAIN;
	act_soon(d->controller);
}

/*
 * Watches may stand and tell nothing: nothing that they show proves that a node is empty. A read without a version is
 * as new as the server's store, and after our mark the scheduler binds nothing more there.
 */
static void read_pods(struct drain *d)
{
	char selector[300];

	snprintf(selector, sizeof selector, "spec.nodeName=%s", d->node);
	buf_clear(&d->read_path);
	api_object_path(&(struct api_object){ .api_version = "v1", .plural = "pods" }, &d->read_path);
	api_query(&d->read_path, "fieldSelector", selector);
	d->is_reading = true;
	d->read = (struct api_call){
		.path = d->read_path.text, .effect = API_READ, .cap = (size_t)64 << 20, .done = pods_read, .user = d
	};
	api_start(d->controller->api, &d->read);
}

/* --- marks on nodes --- */

/* As the mark on the node says. */
static enum drain_fate fate_of(const struct node *n)
{
	const char *said = node_taint_value(n, DRAIN_MARK_KEY);

	for (size_t i = 0; said && i < sizeof fate_names / sizeof *fate_names; i++)
		if (!strcmp(said, fate_names[i]))
			return (enum drain_fate)i;
	return FATE_REMOVE;
}

static void refused(struct drain *d, const struct error *why)
{
	bool is_others = d->change.is_others;
	bool is_final = why->kind == ERROR_CANCELLED || why->kind == ERROR_NOT_FOUND || is_others;

	if (why->kind == ERROR_NOT_FOUND || is_others)
		row_unmark(d, is_others ? "of-others" : "node-gone");
	if (why->kind != ERROR_CANCELLED && !d->has_complained)
		log_warn("node-mark-failed", LOG_S("node", d->node), LOG_E(why), LOG_END);
	d->has_complained = why->kind != ERROR_CANCELLED;
	d->step = is_final ? DRAIN_OVER : d->step;
	d->quiet_until = loop_now(d->controller->loop) + 5 * SECOND;
}

static void answered(struct node_change *call)
{
	static const enum drain_step leads_from[] = {
		[MARK_ON] = DRAIN_MARK, [MARK_LENT] = DRAIN_LEND, [MARK_OFF] = DRAIN_UNMARK
	};
	struct drain *d = call->user;
	struct controller *c = d->controller;

	d->is_marking = false;
	if (call->error.kind != ERROR_NONE) {
		refused(d, &call->error);
	} else {
		c->drains.abandoned += d->mark == MARK_OFF && !d->is_stray && d->fate != FATE_LEND;
		if (d->mark == MARK_OFF)
			row_unmark(d, d->outcome ? d->outcome : "swept");
		else if (d->mark == MARK_LENT)
			row_end(d, "lent");
		/* If it is still what is wished: the drain may have been given up meanwhile. */
		if (d->step == leads_from[d->mark])
			d->step = d->mark == MARK_ON ? DRAIN_EVICT : DRAIN_SHOWN;
		d->has_complained = d->is_read_empty = false;
		d->marked_at = loop_now(c->loop);
	}
	act_soon(c);
}

/* One write: a node is never cordoned without saying by whom and what for, and never lent while it is. */
static void write_mark(struct drain *d, enum drain_mark mark)
{
	bool on = mark == MARK_ON;

	if (on && !row_save(d)) {
		d->step = DRAIN_OVER;
		return;
	}
	d->mark = mark;
	marks_owner(d->controller, d->owner);
	d->taint = (struct node_taint){ DRAIN_MARK_KEY, fate_names[d->fate], "NoSchedule" };
	d->annotation = (struct verb_pair){ DRAIN_MARK_KEY, on ? d->owner : NULL };
	d->labels[0] =
		(struct verb_pair){ "node.kubernetes.io/exclude-from-external-load-balancers", on ? "true" : NULL };
	d->labels[1] = (struct verb_pair){ "preheat.dev/lent-by",
					   mark == MARK_LENT ? fleet_of(d->controller)->pools[d->pool].name : NULL };
	d->change = (struct node_change){ .node = d->node,
					  .cordon = on ? CORDON_ON : CORDON_OFF,
					  .annotations = &d->annotation,
					  .annotation_count = 1,
					  .owner = d->owner,
					  .labels = d->labels,
					  .label_count = 2,
					  .add = &d->taint,
					  .add_count = on,
					  .remove = &d->taint,
					  .remove_count = !on,
					  .done = answered,
					  .user = d };
	d->is_marking = true;
	node_change_start(d->controller->api, &d->change);
}

/* --- one drain, step by step --- */

/* A pod that was bound just before the cordon shows a moment later, on another watch (Cluster Autoscaler waits 5 s
 * after its taint). */
static bool has_settled(const struct drain *d)
{
	const struct controller *c = d->controller;
	millis wait = clock_real(c->clock, 5 * SECOND);

	return cluster_is_fresh(c) && loop_now(c->loop) - d->marked_at >= (wait > SECOND ? wait : SECOND);
}

/* Who rebalances launches another beyond the size first, which may take as long as a launch may. It ends before
 * DRAIN_PATIENCE does. */
static const millis OWNER_ENDS = 25 * MINUTE;

/* Another was launched beyond the size in the place of one: to end this one here, too, would lower the size, and the
 * cloud would end the other one for that. The size never falls below the manifest's least for it. */
static bool ends_by_its_owner(const struct drain *d)
{
	const struct controller *c = d->controller;
	const struct node_group *g = c->groups[d->group];
	const struct group_spec *spec = &fleet_of(c)->groups[d->group];
	bool is_least = spec->ends_at <= 0 && g->seen.desired <= spec->min_nodes;

	return node_group_alive(g) > g->seen.desired && (is_least || clock_mono(c->clock) - d->since < OWNER_ENDS);
}

/* The machine has nothing left that we may not end. */
static void emptied(struct drain *d)
{
	struct controller *c = d->controller;
	struct node_group *g = c->groups[d->group];

	if (d->fate == FATE_LEND) {
		go_to(d, DRAIN_LEND);
		return;
	}
	if (ends_by_its_owner(d))
		return;
	row_release(d);
	go_to(d, DRAIN_REMOVE);
	if (node_group_remove(g, d->machine, d->fate == FATE_STOP ? PROVIDER_STOP : PROVIDER_REMOVE))
		node_group_drive(g);
}

/* Until the node's object is gone, too: its going is ours, and no loss. */
static bool is_gone(const struct drain *d)
{
	const struct node_group *g = d->controller->groups[d->group];
	const struct machine *m = node_group_machine(g, d->machine);
	const struct node *n = cluster_node(d->controller->cluster, d->node);

	if (!m || m->state == MACHINE_TERMINATING)
		return !n || !n->is_known;
	return m->state == MACHINE_STOPPED || m->state == MACHINE_STOPPING;
}

/* Nobody asks for its end any more: the cloud refused, or never knew it. */
static bool machine_is_left(const struct drain *d)
{
	const struct node_group *g = d->controller->groups[d->group];
	const struct machine *m = node_group_machine(g, d->machine);

	if (!g->is_known || node_group_is_removing(g, d->machine))
		return false;
	return m ? m->state == MACHINE_PENDING || marks_machine_is_wanted(m) : is_late(d);
}

static void removing(struct drain *d)
{
	struct controller *c = d->controller;

	if (is_gone(d)) {
		c->drains.removed += d->fate == FATE_REMOVE;
		c->drains.stopped += d->fate == FATE_STOP;
		log_info("node-gone", LOG_S("node", d->node), LOG_S("fate", fate_names[d->fate]), LOG_END);
		const struct node *n = cluster_node(c->cluster, d->node);
		if (n && n->is_known)
			row_end(d, "stopped"); /* its node stays, marked */
		else
			row_unmark(d, d->fate == FATE_STOP ? "stopped" : "removed");
		d->step = DRAIN_OVER;
	} else if (machine_is_left(d) && !reservation_leaves(c, d->group)) {
		give_up(d, "refused");
	}
}

static void empty(struct drain *d, const struct node *n)
{
	const struct node_group *g = d->controller->groups[d->group];

	if (!g->is_known)
		return; /* adopted before the cloud told of it */
	if (!node_group_machine(g, d->machine))
		go_to(d, DRAIN_REMOVE); /* it goes by itself */
	else if (!evict(d, n))
		d->is_read_empty = false;
	else if (has_settled(d) && (d->fate == FATE_LEND || d->is_read_empty))
		emptied(d);
	else if (has_settled(d))
		read_pods(d);
}

/* What pods there are given to end, five minutes at least. */
static millis takes_to_end(const struct drain *d, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	millis longest = 5 * MINUTE;
	size_t count;
	const struct pod **pods = cluster_node_pods(d->controller->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (pod_counts(pods[i]) && pods[i]->kind != POD_DAEMON && pods[i]->kind != POD_STATIC &&
		    pods[i]->grace_seconds * SECOND > longest)
			longest = pods[i]->grace_seconds * SECOND;
	return longest;
}

/* Who does not tell when a machine ends is taken to hold it for so long. */
static const millis HELD = 30 * MINUTE;

/* Its machine ends some time: what runs there has until then, as far as that is known, and what is work has all of it.
 * One that is only recommended to go may run on. */
static bool waits_for_end(const struct drain *d, const struct node *n)
{
	const struct controller *c = d->controller;
	millis passed = clock_mono(c->clock) - d->begun, since = clock_now(c->clock) - passed;

	if (d->group < 0)
		return false;
	if (n->interruption == NODE_REBALANCED)
		return interruption_waits(c, n, since);
	if (!is_ending(n))
		return false;
	millis told = c->groups[d->group]->seen.end_hold, hold = told ? told : HELD;
	return passed < hold - takes_to_end(d, n) && (runs_work(c, d->pool) || interruption_waits(c, n, since));
}

/* What serves on a machine that ends serves on until it is replaced; patience begins then. */
static bool is_not_replaced(struct drain *d, const struct node *n)
{
	struct controller *c = d->controller;

	if (d->step != DRAIN_EVICT) /* later the node may be gone before its machine */
		return false;
	bool leaves = reservation_waits(c, d->group) && replicas_serving(c, n, d->pool);
	if (!leaves && !waits_for_end(d, n))
		return false;
	if (d->last_reason != DRAIN_IS_NOT_REPLACED)
		log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", "not-replaced"),
			 LOG_S("why", "its machine will end, and what is to serve instead does not yet"), LOG_END);
	d->last_reason = DRAIN_IS_NOT_REPLACED;
	d->since = clock_mono(c->clock);
	return true;
}

/* A replica that serves there came to do so after the last decision, or too shortly before it to have been read. */
static bool is_unread(const struct drain *d, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct controller *c = d->controller;
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	bool is_new = false;

	millis read = c->pools[d->pool]->seen_at;
	for (size_t i = 0; read > 0 && i < count; i++)
		is_new |= pods[i]->pool == (int)d->pool && !pods[i]->is_placeholder && pods[i]->state == POD_READY &&
			  pods[i]->ready_at > read - c->settings.interval &&
			  pods[i]->ready_at <= clock_now(c->clock); /* a clock that was ahead said the others */
	return is_new;
}

/* Who serves stays where he is while nothing is known of the pool or of himself, or too much waits there, unless the
 * cloud will end it in any case. */
static bool must_wait(struct drain *d, const struct node *n)
{
	struct controller *c = d->controller;

	if (d->step > DRAIN_EVICT || will_go(c, n))
		return false;
	bool has_engines = d->step == DRAIN_EVICT && stock_serves(c, n);
	if (!has_engines && !replicas_serving(c, n, d->pool))
		return false;
	const struct live_pool *p = c->pools[d->pool];
	int reason = has_engines			      ? DRAIN_HAS_ENGINES
		     : p->is_blind			      ? DRAIN_IS_BLIND
		     : clock_mono(c->clock) < p->unsure_until ? DRAIN_IS_UNSURE
		     : p->has_queue			      ? DRAIN_HAS_QUEUE
		     : is_unread(d, n)			      ? DRAIN_IS_NEW
							      : 0;
	if (!reason)
		return false;
	if (d->last_reason != reason)
		log_info("drain-held", LOG_S("node", d->node), LOG_S("reason", wait_words[-reason].name),
			 LOG_S("why", wait_words[-reason].why), LOG_END);
	d->last_reason = reason;
	return true;
}

/* Machines of its group went since it began: with this one fewer than the least would be left. Who is replaced, or may
 * be taken by the cloud, goes all the same. */
static bool breaks_least(const struct drain *d, const struct node *n)
{
	const struct controller *c = d->controller;
	bool is_surplus = c->has_decided && !d->is_replaced && n && n->interruption == NODE_STAYS &&
			  !reservation_leaves(c, d->group);

	return is_surplus && d->step <= DRAIN_EVICT && d->fate != FATE_LEND && d->group >= 0 &&
	       scale_down_room(c, (size_t)d->group) < 0;
}

/* What an owner's operation does to its nodes, cordons too, is its own: the drain goes on once that is over. */
static bool is_at_rest(const struct drain *d, const struct node *n)
{
	return d->group >= 0 && node_group_is_owners(d->controller->groups[d->group]) &&
	       !will_be_taken(d->controller, n);
}

static void step(struct drain *d)
{
	struct controller *c = d->controller;
	const struct node *n = cluster_node(c->cluster, d->node);

	if (d->is_marking || d->is_reading || loop_now(c->loop) < d->quiet_until)
		return;
	if ((!n || !n->is_known) && d->step != DRAIN_REMOVE) {
		row_unmark(d, "node-gone");
		d->step = DRAIN_OVER;
		return;
	}
	if (d->step != DRAIN_OVER && d->step != DRAIN_REMOVE && is_at_rest(d, n))
		return;
	find_machine(d, n);
	bool goes = n && n->is_known && will_go(c, n);
	bool may_stay = d->step == DRAIN_LEND || (d->step < DRAIN_REMOVE && !goes);
	d->moves = d->moves && !goes; /* with a place elsewhere or without */
	if (may_stay && is_blocked_for_long(d)) {
		log_warn("drain-blocked", LOG_S("node", d->node), LOG_S("why", d->blocked), LOG_END);
		c->drains.blocked++;
		back_off(c, d->node, clock_mono(c->clock));
		give_up(d, BLOCKED);
	} else if (may_stay && is_late(d)) {
		give_up(d, "timed-out");
	} else if (may_stay && breaks_least(d, n)) {
		log_info("node-kept", LOG_S("node", d->node), LOG_S("pool", fleet_of(c)->pools[d->pool].name),
			 LOG_S("why", "fewer machines than its group's least would be left"), LOG_END);
		give_up(d, "least");
	}
	if (must_wait(d, n) || is_not_replaced(d, n))
		return;
	switch (d->step) {
	case DRAIN_MARK:
		write_mark(d, MARK_ON);
		break;
	case DRAIN_EVICT:
		empty(d, n);
		break;
	case DRAIN_REMOVE:
		removing(d);
		break;
	case DRAIN_LEND:
		write_mark(d, MARK_LENT);
		break;
	case DRAIN_UNMARK:
		write_mark(d, MARK_OFF);
		break;
	case DRAIN_SHOWN:
		/* What was written is told by the watch, a moment later or, while it is broken, much. */
		if (!n->is_draining || loop_now(c->loop) - d->marked_at > 5 * SECOND)
			d->step = DRAIN_OVER;
		break;
	case DRAIN_OVER:
		break;
	}
}

static void forget_finished(struct controller *c)
{
	for (struct drain **at = &c->drains.first; *at;) {
		struct drain *d = *at;
		if (d->step == DRAIN_OVER && !d->is_marking && !d->is_reading && !d->in_flight) {
			*at = d->next;
			buf_release(&d->read_path);
			free(d);
		} else {
			at = &d->next;
		}
	}
}

/* --- all of them --- */

bool drain_begin(struct controller *c, const struct node *n, size_t pool, enum drain_fate fate, const char *why)
{
	if (drain_of(c, n->name) || n->group < 0 || n->owner != NODE_UNCLAIMED || n->is_protected ||
	    !c->groups[n->group]->is_known || c->groups[n->group]->is_stopped || c->pools[pool]->is_leaving ||
	    !node_group_machine(c->groups[n->group], machine_of_node(c, n)) ||
	    ((drain_is_backed_off(c, n->name) || node_group_is_held(c->groups[n->group]) ||
	      c->groups[n->group]->seen.only_grows) &&
	     !will_go(c, n)))
		return false;
	struct drain *d = drain_add(c, n);
	d->pool = pool;
	d->fate = fate;
	snprintf(d->why, sizeof d->why, "%s", why);
	find_machine(d, n);
	log_info("node-released", LOG_S("node", n->name), LOG_S("pool", fleet_of(c)->pools[pool].name),
		 LOG_S("fate", fate_names[fate]), LOG_S("why", why), LOG_END);
	return true;
}

bool drain_begin_move(struct controller *c, const struct node *n, size_t pool, const char *why)
{
	bool has_begun = drain_begin(c, n, pool, FATE_REMOVE, why);

	if (has_begun)
		drain_of(c, n->name)->moves = true;
	return has_begun;
}

bool drain_begin_replacing(struct controller *c, const struct node *n, size_t pool, const char *why)
{
	bool has_begun = drain_begin(c, n, pool, FATE_REMOVE, why);

	if (has_begun)
		drain_of(c, n->name)->is_replaced = true;
	return has_begun;
}

void drain_take_back(struct controller *c, const struct node *n)
{
	struct drain *d = drain_of(c, n->name);

	if (!d)
		d = drain_add(c, n);
	d->fate = FATE_LEND;
	give_up(d, "taken-back");
}

void drain_give_back(struct controller *c, const struct node *n, size_t pool)
{
	struct drain *d = drain_of(c, n->name);

	if (!d) {
		drain_begin(c, n, pool, FATE_LEND, "not needed back any more");
	} else if (d->fate == FATE_LEND) {
		d->pool = pool;
		go_to(d, DRAIN_MARK);
	}
}

int64_t drains_in_group(const struct controller *c, int group)
{
	int64_t count = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		count += d->group == group && (d->step == DRAIN_MARK || d->step == DRAIN_EVICT) &&
			 d->fate != FATE_LEND && !(n && is_ending(n)); /* that is counted as gone */
	}
	return count;
}

/* Its replicas are no part of the plan: it goes, or was given up since. The mark may stay for long: for an owner's
 * operation, say. */
static bool is_off_plan(const struct drain *d, const struct node *n)
{
	bool is_given_up = d->step == DRAIN_UNMARK || d->step == DRAIN_SHOWN;

	return n && d->step != DRAIN_OVER &&
	       (!is_given_up || (n->is_draining && d->given_up_at >= d->controller->snapshot.now));
}

/* Replicas that will serve any moment: counted until they were told to go, or one that serves elsewhere would end in
 * their place. */
static int64_t replicas_coming(const struct drain *d, const struct node *n, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(d->controller->cluster, n, &a, &count);
	int64_t coming = 0;

	for (size_t i = 0; i < count; i++)
		coming += pods[i]->pool == (int)pool && !pods[i]->is_placeholder && pods[i]->state == POD_STARTED;
	return d->step <= DRAIN_EVICT && d->fate != FATE_LEND ? coming : 0;
}

int64_t drain_replicas_left(const struct controller *c, size_t pool)
{
	int64_t left = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		if (is_off_plan(d, n))
			left += replicas_serving(c, n, pool) + replicas_coming(d, n, pool);
	}
	return left;
}

static void stop_one(struct drain *d)
{
	d->step = DRAIN_OVER;
	if (d->is_marking)
		api_cancel(&d->change.call);
	if (d->is_reading)
		api_cancel(&d->read);
	for (size_t i = 0; i < EVICTIONS_AT_ONCE; i++)
		if (d->evictions[i].is_busy)
			api_cancel(&d->evictions[i].call.call);
}

/* Of a pool that acts no more, or in a group that ends with the next manifest. */
static bool must_leave(const struct drain *d)
{
	const struct controller *c = d->controller;

	if (d->is_stray) /* a mark is taken off whoever goes */
		return false;
	return c->pools[d->pool]->is_leaving || (d->group >= 0 && c->groups[d->group]->is_stopped);
}

static void leave(struct controller *c, size_t pool)
{
	for (struct drain *d = c->drains.first; d; d = d->next)
		if (d->pool == pool && must_leave(d))
			stop_one(d);
	forget_finished(c);
}

static bool has_left(const struct controller *c, size_t pool)
{
	for (const struct drain *d = c->drains.first; d; d = d->next)
		if (d->pool == pool && must_leave(d))
			return false;
	return true;
}

void drains_renumber(struct controller *c, const size_t *pools, const size_t *groups)
{
	for (struct drain *d = c->drains.first; d; d = d->next) {
		d->pool = pools[d->pool] == SIZE_MAX ? 0 : pools[d->pool];
		if (d->group >= 0)
			d->group = groups[d->group] == SIZE_MAX ? -1 : (int)groups[d->group];
	}
}

static void stop(struct controller *c)
{
	for (struct drain *d = c->drains.first; d; d = d->next)
		stop_one(d);
	for (struct pod_eviction *e = c->drains.lone; e; e = e->next)
		api_cancel(&e->call.call);
	forget_finished(c);
}

static void drive(struct controller *c)
{
	if (c->context.is_barred) {
		stop(c);
		return;
	}
	marks_sweep(c);
	for (struct drain *d = c->drains.first; d; d = d->next)
		step(d);
	forget_finished(c);
}

static bool is_idle(const struct controller *c)
{
	return !c->drains.first && !c->drains.lone;
}

void drain_resume(struct controller *c, const struct node *n, size_t pool, const struct drain_record *row)
{
	struct drain *d = drain_add(c, n);

	d->pool = pool;
	d->fate = fate_of(n);
	d->step = DRAIN_EVICT;
	d->marked_at = loop_now(c->loop);
	d->asked_at = row ? row->asked_at : 0;
	if (row && row->asked_at < clock_now(c->clock)) /* later is of a clock that was wrong */
		d->begun -= clock_now(c->clock) - row->asked_at;
	d->is_replaced = row && !strcmp(row->fate, REPLACED);
	snprintf(d->why, sizeof d->why, "found marked");
	if (!row_save(d))
		d->step = DRAIN_OVER;
}

void drain_sweep(struct controller *c, const struct node *n, millis after)
{
	struct drain *d = drain_add(c, n);

	d->is_stray = true;
	give_up(d, "swept");
	d->quiet_until = after > 0 ? loop_now(c->loop) + clock_real(c->clock, after) : 0;
}

/* Replicas serve there; or nobody has seen the mark, and nothing is there, as if it had never been released. */
static bool is_worth_keeping(const struct drain *d, const struct node *n, size_t pool)
{
	return replicas_awake(d->controller, n, pool) > 0 ||
	       (d->step == DRAIN_MARK && node_is_usable(n) && n->gpus_milli > 0 && n->gpus_used_milli == 0);
}

const struct node *drains_call_off(struct controller *c, size_t pool)
{
	for (struct drain *d = c->drains.first; d && !runs_work(c, pool); d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		if (d->pool != pool || d->fate == FATE_LEND || d->step > DRAIN_EVICT || !n || !n->is_known ||
		    n->interruption != NODE_STAYS || !is_worth_keeping(d, n, pool) || reservation_leaves(c, d->group))
			continue;
		log_info("node-kept", LOG_S("node", d->node), LOG_S("pool", fleet_of(c)->pools[pool].name),
			 LOG_I("replicas", replicas_awake(c, n, pool)),
			 LOG_S("why", "needed again before it was empty"), LOG_END);
		give_up(d, "needed-again");
		d->given_up_at = 0;
		return n;
	}
	return NULL;
}

/* What the drain makes of the replicas that serve on the node, while the watch shows it as it was: 1 where they are
 * back at work, -1 where they go. */
static int unshown(const struct drain *d, const struct node *n, size_t pool)
{
	bool is_pools = d->pool == pool,
	     is_shown_going = n->is_draining || n->is_leaving || n->interruption != NODE_STAYS;

	if (d->step == DRAIN_UNMARK || d->step == DRAIN_SHOWN)
		return n->is_draining && is_pools && d->fate != FATE_LEND;
	return d->step == DRAIN_OVER || is_shown_going || (!is_pools && d->fate == FATE_LEND) ? 0 : -1;
}

int64_t drains_unshown(const struct controller *c, size_t pool, size_t group)
{
	int64_t count = 0;

	for (const struct drain *d = c->drains.first; d; d = d->next) {
		const struct node *n = cluster_node(c->cluster, d->node);
		if (d->group == (int)group && n && n->is_known)
			count += unshown(d, n, pool) * replicas_awake(c, n, pool);
	}
	return count;
}

const struct actor drains_actor = {
	.drive = drive, .stop = stop, .is_idle = is_idle, .leave = leave, .has_left = has_left
};
