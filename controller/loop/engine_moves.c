#include "controller/loop/engine_moves.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/stock.h"
#include "state/share_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the world's time. An engine that is taken out of routing is given EMPTY_MOST at least to run empty. */
static const millis DRIVE_EVERY = SECOND / 2, EMPTY_MOST = 2 * MINUTE, REFUSED_QUIET = MINUTE, RETRY_MOST = 30 * SECOND,
		    EVICTED_SEEN = MINUTE;

/* Of struct live_pool; SIZE_MAX: none of that key. */
static size_t pool_of(const struct controller *c, const char *key)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (!strcmp(c->pools[i]->key, key))
			return i;
	return SIZE_MAX;
}

/* As the pool of the engine sees it; NULL: it is gone. */
static const struct pod *pod_of(const struct shared_engine *m)
{
	const struct pod *p = cluster_pod(m->controller->cluster, m->uid);
	size_t pool = pool_of(m->controller, m->pool);

	for (const struct pod *e = p; e; e = e->beside)
		if (e->pool == (int)pool)
			return e;
	return p && pod_has_engines(p) ? NULL : p;
}

bool engine_moves_may(const struct controller *c, size_t pool)
{
	return pool != SIZE_MAX && fleet_of(c)->pools[pool].mode == MODE_SHARE && !c->pools[pool]->is_leaving &&
	       !c->context.is_barred && leader_may_act(c);
}

static bool is_busy(const struct shared_engine *m)
{
	return m->is_labelling || m->is_calling || m->is_evicting;
}

/* Some time until what failed is tried again: 1 s, then longer. */
static void note_failure(struct shared_engine *m)
{
	millis wait = SECOND << (m->failures < 5 ? m->failures : 5);

	m->failures++;
	m->retry_at = clock_mono(m->controller->clock) + (wait < RETRY_MOST ? wait : RETRY_MOST);
}

static void note_success(struct shared_engine *m)
{
	m->failures = 0;
	m->retry_at = 0;
	m->settled = clock_mono(m->controller->clock);
}

/* --- its row --- */

static struct engine_move_record record_of(const struct shared_engine *m)
{
	return (struct engine_move_record){ .uid = m->uid,
					    .asked_at = m->asked_at,
					    .pool = m->pool,
					    .share = m->share,
					    .slot = m->slot,
					    .is_wake = m->is_wake,
					    .why = m->why,
					    .term = m->controller->leader.term,
					    .took = m->took };
}

static void end_row(struct shared_engine *m, const char *outcome, millis at)
{
	struct engine_move_record row = record_of(m);
	struct error e = { 0 };

	row.outcome = outcome;
	row.ended_at = at;
	if (m->controller->history && !engine_move_end(m->controller->history, &row, &e))
		log_error("engine-move-not-recorded", LOG_S("pod", m->pod), LOG_E(&e), LOG_END);
}

static void end_move(struct shared_engine *m, const char *outcome)
{
	struct controller *c = m->controller;
	size_t pool = pool_of(c, m->pool);

	log_info(m->is_wake ? "engine-woken" : "engine-put-to-sleep", LOG_S("pool", m->pool), LOG_S("pod", m->pod),
		 LOG_S("slot", m->slot), LOG_S("outcome", outcome), LOG_I("took_ms", m->took), LOG_END);
	end_row(m, outcome, clock_now(c->clock));
	if (pool != SIZE_MAX && !strcmp(outcome, "done") && m->took > 0)
		stage_times_add(m->is_wake ? &c->pools[pool]->wake_times : &c->pools[pool]->sleep_times, m->took);
	if (!strcmp(outcome, "done")) {
		const struct pod *p = m->is_wake ? pod_of(m) : NULL;
		if (p) /* its last page is of before */
			cluster_engine_told(c->cluster, p, POD_SLEEP_NONE, clock_now(c->clock));
		m->told = m->is_wake ? TOLD_AWAKE : TOLD_ASLEEP;
		m->moved_at = m->idle_since = clock_now(c->clock);
	}
	m->phase = PHASE_NONE;
	m->is_resumed = false;
	m->settled = clock_mono(c->clock);
	slots_read(c);
}

/* Nothing was changed by it, or what was is as before. */
static void refuse_move(struct shared_engine *m, const char *outcome)
{
	m->quiet_until = clock_mono(m->controller->clock) + REFUSED_QUIET;
	end_move(m, outcome);
}

static void break_move(struct shared_engine *m, const char *outcome)
{
	struct controller *c = m->controller;
	size_t pool = pool_of(c, m->pool);
	const struct pod *p = pod_of(m);

	snprintf(m->outcome, sizeof m->outcome, "%s", outcome);
	log_warn("engine-broken", LOG_S("pool", m->pool), LOG_S("pod", m->pod), LOG_S("slot", m->slot),
		 LOG_S("why", outcome), LOG_END);
	if (pool != SIZE_MAX)
		events_tell_pool(c, pool, (struct pool_event){ "EngineBroken", m->is_wake ? "Wake" : "Sleep", true },
				 "an engine in pod %s on node %s did not %s, and the pod is evicted%s: %s", m->pod,
				 m->slot, m->is_wake ? "wake" : "fall asleep",
				 p && pod_has_engines(p) ? " once no other engine in it serves" : "", outcome);
	end_row(m, outcome, 0);
	m->phase = PHASE_MEND;
	note_success(m);
}

/* --- the steps --- */

static void drive_soon(struct shared_engine *m)
{
	act_soon(m->controller);
}

static void tell_not_labelled(struct shared_engine *m, const struct error *e)
{
	size_t pool = pool_of(m->controller, m->pool);

	log_warn("engine-not-labelled", LOG_S("pod", m->pod), LOG_E(e), LOG_END);
	if (pool != SIZE_MAX)
		events_tell_pool(m->controller, pool, (struct pool_event){ "EngineNotLabelled", "Label", true },
				 "no engine of pod %s is moved: %s", m->pod, e->message);
}

static void labelled(struct object_call *call)
{
	struct shared_engine *m = call->user;

	m->is_labelling = false;
	if (call->error.kind != ERROR_NONE) {
		if (call->error.kind != ERROR_CANCELLED && !m->failures)
			tell_not_labelled(m, &call->error);
		note_failure(m);
		drive_soon(m);
		return;
	}
	note_success(m);
	m->empty_since = m->settled;
	m->zeroes = 0;
	m->zero_at = m->settled;
	if (m->phase == PHASE_LABEL)
		m->phase = m->is_wake ? PHASE_CALL : PHASE_EMPTY;
	else if (m->phase == PHASE_LABEL_AFTER)
		end_move(m, "done");
	drive_soon(m);
}

/* Of the pod; where several engines are in it, of its own. */
static void write_patch(struct shared_engine *m, const struct pod *p, const char *label)
{
	const char *pool = fleet_of(m->controller)->pools[pool_of(m->controller, m->pool)].name;
	bool is_apart = pod_is_labelled_apart(p);

	buf_clear(&m->body);
	/* Of that very pod: another of its name has another UID, which cannot be changed. */
	buf_printf(&m->body, "{\"metadata\":{\"uid\":\"%s\",\"labels\":{\"%s%s\":\"%s\"},", m->uid,
		   is_apart ? ENGINE_STATE_PREFIX : ENGINE_STATE_LABEL, is_apart ? pool : "", label);
	buf_printf(&m->body, "\"annotations\":{\"%s%s\":\"%lld\"}}}",
		   is_apart ? ENGINE_STARTED_PREFIX : ENGINE_STARTED_ANNOTATION, is_apart ? pool : "",
		   (long long)(m->started / SECOND));
}

static void write_label(struct shared_engine *m, const struct pod *p, const char *label)
{
	if (is_busy(m) || clock_mono(m->controller->clock) < m->retry_at)
		return;
	m->is_labelling = true;
	snprintf(m->label, sizeof m->label, "%s", label);
	write_patch(m, p, label);
	m->patch = (struct object_call){
		.verb = OBJECT_PATCH,
		.object = { .api_version = "v1", .plural = "pods", .name_space = m->namespace, .name = m->pod },
		.body = m->body.text,
		.done = labelled,
		.user = m
	};
	object_start(m->controller->api, &m->patch);
}

static bool is_labelled(const struct pod *p, const char *label)
{
	const char *now = pod_engine_label(p);

	return now && !strcmp(now, label);
}

/* What was made of an engine is over once its container starts anew. */
static void look_at_start(struct shared_engine *m, const struct pod *p)
{
	if (m->started != p->engine_started)
		m->told = TOLD_NOTHING;
	m->started = p->engine_started;
}

void engine_moves_label(struct controller *c, struct shared_engine *m, const struct pod *p, const char *label)
{
	/* What was written may not have been seen yet. */
	bool is_told = m->label[0] && !m->failures && clock_mono(c->clock) - m->settled < 5 * SECOND;

	if (m->phase != PHASE_NONE || is_busy(m) || (is_told && !strcmp(m->label, label)) || is_labelled(p, label))
		return;
	if (!strcmp(label, "falling-asleep") && !activator_covers(c, pool_of(c, m->pool), p))
		return;
	look_at_start(m, p);
	write_label(m, p, label);
}

/* A server that does not know the call, or does not let us in, is none that a restart mends. */
static bool is_broken(const struct shared_engine *m, const struct engine_call *call)
{
	enum error_kind kind = call->error.kind;

	return call->was_sent || (m->is_wake && (kind == ERROR_TIMEOUT || kind == ERROR_UNAVAILABLE));
}

static void called(struct engine_call *call)
{
	struct shared_engine *m = call->user;
	char why[256];

	m->is_calling = false;
	m->took = call->took;
	http_auth_close(m->server);
	m->server = NULL;
	snprintf(why, sizeof why, "%.250s", call->error.message);
	if (call->error.kind == ERROR_NONE) {
		note_success(m);
		m->phase = PHASE_LABEL_AFTER;
	} else if (call->error.kind == ERROR_CANCELLED) {
		m->took = 0; /* whoever goes on looks first */
	} else if (is_broken(m, call)) {
		break_move(m, why);
	} else {
		refuse_move(m, why);
	}
	drive_soon(m);
}

static void start_call(struct shared_engine *m, size_t pool, const struct pod *p)
{
	struct controller *c = m->controller;
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct signals_text *s = &c->manifest.pools[pool].spec.signals;

	m->server = pool_signals_server(c, pool, p);
	snprintf(m->path, sizeof m->path, "%s", s->scrape.path);
	m->is_calling = true;
	m->call = (struct engine_call){ .move = m->is_wake ? MOVE_WAKE : MOVE_SLEEP,
					.engine = (enum engine)s->engine,
					.level = (int)spec->share_level,
					.server = m->server,
					.metrics_path = m->path,
					.deadline = spec->share_wake_within,
					.done = called,
					.user = m };
	engine_call_start(c->loop, c->settings.http, c->clock, &m->call);
}

/* Two readings after it was taken out of routing that find nothing there. */
static void wait_until_empty(struct shared_engine *m, size_t pool, const struct pod *p)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct controller *c = m->controller;
	millis now = clock_mono(c->clock), age;
	int64_t count;

	millis most = 4 * pool_signals_interval(c, pool); /* two pages of after the label, each read when it is due */
	if (now - m->empty_since > (most > EMPTY_MOST ? most : EMPTY_MOST)) {
		refuse_move(m, activator_leaves_out(c, pool, p) ? "requests went on there"
								: "its Service still leads there");
		return;
	}
	if (!activator_leaves_out(c, pool, p)) {
		m->zero_at = now;
		m->zeroes = 0;
		return;
	}
	if (!pool_signals_in_flight(c, pool, p, &a, &count, &age) || now - age <= m->zero_at + 100)
		return;
	m->zero_at = now - age;
	m->zeroes = count ? 0 : m->zeroes + 1;
	if (m->zeroes >= 2)
		m->phase = PHASE_CALL;
}

static void evicted(struct eviction *v)
{
	struct shared_engine *m = v->user;

	m->is_evicting = false;
	if (v->result == EVICTION_DONE || v->result == EVICTION_GONE) {
		/* It holds its GPU until it is seen to go. */
		m->retry_at = clock_mono(m->controller->clock) + EVICTED_SEEN;
	} else if (v->error.kind != ERROR_CANCELLED) {
		if (!m->failures)
			log_warn("engine-not-mended", LOG_S("pod", m->pod),
				 LOG_S("why", eviction_result_name(v->result)), LOG_E(&v->error), LOG_END);
		note_failure(m);
	}
	drive_soon(m);
}

static void evict(struct shared_engine *m)
{
	m->is_evicting = true;
	m->eviction = (struct eviction){ .name_space = m->namespace,
					 .pod = m->pod,
					 .uid = m->uid,
					 .grace_seconds = -1,
					 .done = evicted,
					 .user = m };
	eviction_start(m->controller->api, &m->eviction);
}

/* Another engine in the pod, which ends with it. */
static bool others_serve(const struct controller *c, const struct pod *p)
{
	char uid[37];

	pod_uid_text(p, uid);
	for (const struct pod *e = cluster_pod(c->cluster, uid); e; e = e->beside)
		if (e->pool != p->pool && stock_engine_serves(c, e))
			return true;
	return false;
}

static bool has_left_share(const struct controller *c, size_t pool)
{
	return pool == SIZE_MAX || (!c->pools[pool]->is_leaving && !pool_is_in_share(&fleet_of(c)->pools[pool]));
}

static void drive_one(struct shared_engine *m)
{
	struct controller *c = m->controller;
	size_t pool = pool_of(c, m->pool);
	const struct pod *p = pod_of(m);

	if (m->phase == PHASE_NONE || is_busy(m) || !cluster_is_synced(c->cluster))
		return;
	if (has_left_share(c, pool)) {
		end_move(m, "its pool left the share");
		return;
	}
	if (!p || p->state == POD_TERMINATING || p->state == POD_FINISHED) {
		end_move(m, m->phase == PHASE_MEND ? m->outcome : "the pod went");
		return;
	}
	if (!engine_moves_may(c, pool) || clock_mono(c->clock) < m->retry_at)
		return;
	if (m->is_resumed && m->phase == PHASE_LABEL && is_labelled(p, m->is_wake ? "awake" : "asleep")) {
		end_move(m, "done"); /* all but its row was there */
		return;
	}
	if (m->phase == PHASE_EMPTY)
		wait_until_empty(m, pool, p);
	if (!m->is_wake && m->phase == PHASE_LABEL && !activator_covers(c, pool, p))
		return; /* requests would find nobody for a moment */
	if (m->phase == PHASE_LABEL || m->phase == PHASE_CALL)
		look_at_start(m, p);
	if (m->phase == PHASE_LABEL)
		write_label(m, p, m->is_wake ? "waking" : "falling-asleep");
	else if (m->phase == PHASE_LABEL_AFTER)
		write_label(m, p, m->is_wake ? "awake" : "asleep");
	else if (m->phase == PHASE_CALL)
		start_call(m, pool, p);
	else if (m->phase == PHASE_MEND && !others_serve(c, p))
		evict(m);
}

/* --- all of them --- */

static void on_timer(struct timer *t)
{
	act_soon(t->user);
}

static void drive(struct controller *c)
{
	bool is_under_way = false;

	for (struct shared_engine *m = c->moves.first; m; m = m->next) {
		drive_one(m);
		is_under_way |= m->phase != PHASE_NONE;
	}
	c->moves.timer.user = c;
	if (is_under_way && !timer_is_running(&c->moves.timer))
		timer_start(c->loop, &c->moves.timer, clock_real(c->clock, DRIVE_EVERY), on_timer);
}

static void cancel(struct shared_engine *m)
{
	if (m->is_labelling)
		api_cancel(&m->patch.call);
	if (m->is_evicting)
		api_cancel(&m->eviction.call);
	if (m->is_calling)
		engine_call_cancel(&m->call);
}

static void stop(struct controller *c)
{
	timer_stop(&c->moves.timer);
	for (struct shared_engine *m = c->moves.first; m; m = m->next)
		cancel(m);
}

static bool is_idle(const struct controller *c)
{
	for (const struct shared_engine *m = c->moves.first; m; m = m->next)
		if (is_busy(m))
			return false;
	return true;
}

static void leave(struct controller *c, size_t pool)
{
	for (struct shared_engine *m = c->moves.first; m; m = m->next)
		if (c->pools[pool]->is_leaving && !strcmp(m->pool, c->pools[pool]->key))
			cancel(m);
}

static bool has_left(const struct controller *c, size_t pool)
{
	for (const struct shared_engine *m = c->moves.first; m; m = m->next)
		if (c->pools[pool]->is_leaving && !strcmp(m->pool, c->pools[pool]->key) && is_busy(m))
			return false;
	return true;
}

const struct actor engine_moves_actor = {
	.drive = drive, .stop = stop, .is_idle = is_idle, .leave = leave, .has_left = has_left
};

static void release(struct shared_engine *m)
{
	buf_release(&m->body);
	free(m);
}

static bool is_in_share(const struct controller *c, const struct shared_engine *m)
{
	const struct pod *p = pod_of(m);

	return p && p->pool >= 0 && p->pool == (int)pool_of(c, m->pool) &&
	       pool_is_in_share(&fleet_of(c)->pools[p->pool]);
}

void engine_moves_forget(struct controller *c)
{
	for (struct shared_engine **at = &c->moves.first; *at;) {
		struct shared_engine *m = *at;
		if (is_in_share(c, m) || m->phase != PHASE_NONE || is_busy(m)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		release(m);
	}
}

void engine_moves_close(struct controller *c)
{
	for (struct shared_engine *m = c->moves.first, *next; m; m = next) {
		next = m->next;
		release(m);
	}
	c->moves.first = NULL;
}

static struct shared_engine *add(struct controller *c, const char *uid, const char *pool)
{
	struct shared_engine *m = xcalloc(1, sizeof *m);

	m->controller = c;
	snprintf(m->uid, sizeof m->uid, "%s", uid);
	snprintf(m->pool, sizeof m->pool, "%s", pool);
	m->next = c->moves.first;
	c->moves.first = m;
	return m;
}

static struct shared_engine *find(const struct controller *c, const char *uid, const char *pool)
{
	struct shared_engine *m = c->moves.first;

	while (m && (strcmp(m->uid, uid) != 0 || strcmp(m->pool, pool) != 0))
		m = m->next;
	return m;
}

bool engine_moves_to_sleep(const struct controller *c, const struct pod *p)
{
	char uid[37];

	pod_uid_text(p, uid);
	const struct shared_engine *m = p->pool >= 0 ? find(c, uid, c->pools[p->pool]->key) : NULL;
	return m && m->phase != PHASE_NONE && !m->is_wake;
}

struct shared_engine *engine_moves_of(struct controller *c, size_t pool, const struct pod *p)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	char uid[37];

	pod_uid_text(p, uid);
	struct shared_engine *m = find(c, uid, c->pools[pool]->key);
	if (!m)
		m = add(c, uid, c->pools[pool]->key);
	snprintf(m->namespace, sizeof m->namespace, "%s", p->namespace);
	snprintf(m->pod, sizeof m->pod, "%s", p->name);
	snprintf(m->share, sizeof m->share, "%s/%s", spec->namespace, spec->share);
	snprintf(m->slot, sizeof m->slot, "%s", p->node ? p->node->name : "");
	return m;
}

bool engine_move_begin(struct controller *c, struct shared_engine *m, bool is_wake, const char *why)
{
	char pod[320];
	struct error e = { 0 };

	m->is_wake = is_wake;
	m->asked_at = clock_now(c->clock);
	m->took = 0;
	m->outcome[0] = '\0';
	snprintf(m->why, sizeof m->why, "%s", why);
	snprintf(pod, sizeof pod, "%s/%s", m->namespace, m->pod);
	struct engine_move_record row = record_of(m);
	row.pod = pod;
	if (!engine_move_save(c->history, &row, &e)) {
		log_error("engine-move-not-recorded", LOG_S("pod", m->pod), LOG_E(&e), LOG_END);
		return false;
	}
	m->phase = PHASE_LABEL;
	log_info(is_wake ? "engine-wakes" : "engine-falls-asleep", LOG_S("pool", m->pool), LOG_S("pod", m->pod),
		 LOG_S("slot", m->slot), LOG_S("why", why), LOG_END);
	drive_soon(m);
	return true;
}

static void resume(struct controller *c, const struct engine_move_record *row)
{
	struct shared_engine *m = add(c, row->uid, row->pool);
	const char *slash = strchr(row->pod, '/');

	snprintf(m->namespace, sizeof m->namespace, "%.*s", slash ? (int)(slash - row->pod) : 0, row->pod);
	snprintf(m->pod, sizeof m->pod, "%s", slash ? slash + 1 : row->pod);
	snprintf(m->share, sizeof m->share, "%s", row->share);
	snprintf(m->slot, sizeof m->slot, "%s", row->slot);
	snprintf(m->why, sizeof m->why, "%s", row->why);
	snprintf(m->outcome, sizeof m->outcome, "%s", row->outcome ? row->outcome : "");
	m->is_wake = row->is_wake;
	m->asked_at = row->asked_at;
	m->took = row->took;
	m->phase = row->outcome ? PHASE_MEND : PHASE_LABEL;
	m->is_resumed = true;
}

/* What was measured goes on being known. */
static void recall_times(struct controller *c)
{
	enum { MOST = 1000 };
	const struct engine_move_filter all = { .from = 0, .to = INT64_MAX, .most = MOST };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct engine_move_record *rows;
	struct error e = { 0 };
	size_t count;

	if (!engine_move_find(c->history, &all, &a, &rows, &count, &e))
		count = 0;
	for (size_t i = 0; i < count; i++) {
		size_t pool = pool_of(c, rows[i].pool);
		if (pool != SIZE_MAX && rows[i].took > 0 && rows[i].outcome && !strcmp(rows[i].outcome, "done"))
			stage_times_add(rows[i].is_wake ? &c->pools[pool]->wake_times : &c->pools[pool]->sleep_times,
					rows[i].took);
	}
}

void engine_moves_adopt(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct engine_move_record *rows;
	struct error e = { 0 };
	size_t count;

	engine_moves_close(c);
	recall_times(c);
	if (!engine_move_open(c->history, &a, &rows, &count, &e)) {
		log_error("engine-moves-not-read", LOG_E(&e), LOG_END);
		return;
	}
	for (size_t i = 0; i < count; i++)
		resume(c, &rows[i]);
	if (count)
		log_info("engine-moves-go-on", LOG_I("count", (int64_t)count), LOG_END);
}
