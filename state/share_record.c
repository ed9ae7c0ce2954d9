#include "state/share_record.h"

#include "state/history_file.h"

#include <errno.h>
#include <stdlib.h>

/* --- views as texts --- */

/* One walk writes and reads: `out`, or `in`. */
struct walk {
	struct buf *out;
	const char *in;
	bool is_writing, is_damaged;
};

static void number(struct walk *w, int64_t *n)
{
	char *end;

	if (w->is_writing) {
		buf_printf(w->out, "%s%lld", w->out->len ? " " : "", (long long)*n);
		return;
	}
	errno = 0;
	*n = strtoll(w->in, &end, 10);
	w->is_damaged |= end == w->in || errno;
	w->in = end;
}

/* SHARE_NONE is -1. */
static void position(struct walk *w, size_t *n, size_t below)
{
	int64_t value = *n == SHARE_NONE ? -1 : (int64_t)*n;

	number(w, &value);
	w->is_damaged |= value < -1 || (value >= 0 && (size_t)value >= below);
	*n = value < 0 || w->is_damaged ? SHARE_NONE : (size_t)value;
}

static size_t count(struct walk *w, size_t n, size_t most)
{
	int64_t value = (int64_t)n;

	number(w, &value);
	w->is_damaged |= value < 0 || value > (int64_t)most;
	return w->is_damaged ? 0 : (size_t)value;
}

static bool flag(struct walk *w, bool is)
{
	return count(w, is, 1) == 1;
}

static struct share_member member(struct walk *w, struct share_member m)
{
	int64_t *const all[] = { &m.need,	   &m.need_held,      &m.waiting,	  &m.late, &m.allowed_milli,
				 &m.gpu_awake_mib, &m.gpu_asleep_mib, &m.host_asleep_mib, &m.peak };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		number(w, all[i]);
	w->is_damaged |= m.allowed_milli < 0; /* share_decide() divides by what is allowed and one */
	return m;
}

static struct share_engine engine(struct walk *w, struct share_engine e, size_t members)
{
	position(w, &e.member, members);
	w->is_damaged |= e.member == SHARE_NONE;
	e.state = (enum engine_state)count(w, (size_t)e.state, SHARE_BROKEN);
	number(w, &e.since);
	number(w, &e.running);
	number(w, &e.idle_since);
	e.is_in_routing = flag(w, e.is_in_routing);
	return e;
}

enum { SLOTS_MOST = 10000, ENGINES_MOST = 1000, TYPES_MOST = 1000 };

static struct share_slot slot(struct walk *w, struct share_slot s, size_t members, struct arena *a)
{
	const struct share_engine *was = s.engines;

	s.type = count(w, s.type, TYPES_MOST);
	number(w, &s.gpu_mib);
	number(w, &s.host_mib);
	position(w, &s.cleared_for, members);
	s.is_leaving = flag(w, s.is_leaving);
	s.engine_count = count(w, s.engine_count, ENGINES_MOST);
	s.engines = arena_array(a, struct share_engine, s.engine_count);
	for (size_t i = 0; i < s.engine_count && !w->is_damaged; i++)
		s.engines[i] = engine(w, was ? was[i] : (struct share_engine){ 0 }, members);
	return s;
}

static void rule(struct walk *w, struct share_rule *r)
{
	number(w, &r->margin_permille);
	number(w, &r->hold);
	number(w, &r->keep_alive);
	number(w, &r->spare_permille);
	r->victim = (enum victim_rule)count(w, (size_t)r->victim, VICTIM_AFFORDS);
}

/* `v`: what is written, or zeroed. */
static struct share_view view(struct walk *w, const struct share_view *v, struct arena *a)
{
	struct share_view out = { .now = v->now };
	struct share_rule *r = arena_new(a, struct share_rule);
	size_t types = 0;

	if (v->rule)
		*r = *v->rule;
	for (size_t i = 0; i < v->slot_count; i++)
		types = v->slots[i].type >= types ? v->slots[i].type + 1 : types;
	number(w, &out.now);
	rule(w, r);
	out.member_count = count(w, v->member_count, SHARE_MEMBERS_MAX);
	types = count(w, types, TYPES_MOST);
	out.slot_count = count(w, v->slot_count, SLOTS_MOST);
	struct share_member *members = arena_array(a, struct share_member, out.member_count);
	struct share_times *times = arena_array(a, struct share_times, types * out.member_count);
	struct share_slot *slots = arena_array(a, struct share_slot, out.slot_count);
	for (size_t i = 0; i < out.member_count && !w->is_damaged; i++)
		members[i] = member(w, v->members ? v->members[i] : members[i]);
	for (size_t i = 0; i < types * out.member_count && !w->is_damaged; i++) {
		times[i] = v->times ? v->times[i] : times[i];
		number(w, &times[i].sleep);
		number(w, &times[i].wake);
	}
	for (size_t i = 0; i < out.slot_count && !w->is_damaged; i++) {
		slots[i] = slot(w, v->slots ? v->slots[i] : slots[i], out.member_count, a);
		w->is_damaged |= slots[i].type >= types;
	}
	out.rule = r;
	out.members = members;
	out.times = times;
	out.slots = slots;
	return out;
}

void share_view_write(const struct share_view *v, struct buf *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	view(&(struct walk){ .out = out, .is_writing = true }, v, &a);
}

bool share_view_read(const char *text, struct arena *a, struct share_view *out, struct error *e)
{
	struct walk w = { .in = text };
	struct share_view v = view(&w, &(struct share_view){ 0 }, a);

	if (w.is_damaged || *w.in)
		return error_set(e, ERROR_INVALID, "the view of a share is damaged");
	*out = v;
	return true;
}

void share_plan_write(const struct share_view *v, const struct share_plan *p, struct buf *out)
{
	struct walk w = { .out = out, .is_writing = true };

	for (size_t i = 0; i < v->slot_count; i++) {
		struct share_order o = p->orders[i];
		count(&w, (size_t)o.verb, SHARE_SLEEP);
		position(&w, &o.engine, v->slots[i].engine_count);
		position(&w, &o.cleared_for, v->member_count);
		number(&w, &o.lead);
		count(&w, (size_t)o.reason, SHARE_CROWDED);
		for (size_t k = 0; k < v->slots[i].engine_count; k++)
			flag(&w, p->is_in_routing[i][k]);
	}
	for (size_t i = 0; i < v->member_count; i++) {
		size_t holder = p->waits_for[i];
		position(&w, &holder, v->member_count);
	}
}

/* --- decisions --- */

bool share_decision_save(struct history *h, const struct share_decision *d, struct error *e)
{
	return history_begin(h, e) &&
	       db_run(DB_QUERY(h->db,
			       "INSERT OR REPLACE INTO share_decision (share, at, view, plan) VALUES (?, ?, ?, ?)",
			       DB_T(d->share), DB_I(d->at), DB_T(d->view), DB_T(d->plan)),
		      e) &&
	       history_commit(h, e);
}

bool share_decision_find(struct history *h, millis from, millis to, struct arena *a, struct share_decisions *found,
			 struct error *e)
{
	struct buf rows = { 0 };
	bool ok;

	*found = (struct share_decisions){ 0 };
	if (!h->has_shares)
		return true;
	struct statement *s = DB_QUERY(h->db,
				       "SELECT share, at, view, plan FROM share_decision WHERE at BETWEEN ? AND ?"
				       " ORDER BY at, share",
				       DB_I(from), DB_I(to));
	while (db_next(s, &ok, e)) {
		struct share_decision d = { .share = db_column_copy(s, 0, a),
					    .at = db_column_int(s, 1),
					    .view = db_column_copy(s, 2, a),
					    .plan = db_column_copy(s, 3, a) };
		buf_append(&rows, &d, sizeof d);
	}
	found->items = rows_array(&rows, sizeof *found->items, a, &found->count);
	return ok;
}

/* --- choices --- */

static void amount(struct walk *w, double *d)
{
	static const double MOST = 9e12; /* fits as millionths */
	int64_t millionths = (int64_t)((*d < MOST ? *d : MOST) * 1e6 + .5);

	number(w, &millionths);
	w->is_damaged |= millionths < 0;
	*d = (double)millionths / 1e6;
}

/* Milliseconds of requests: of many there are more than fit. */
static void work(struct walk *w, double *ms)
{
	double seconds = *ms / 1000;

	amount(w, &seconds);
	*ms = seconds * 1000;
}

static bool is_same_rule(const struct share_rule *a, const struct share_rule *b)
{
	return a->margin_permille == b->margin_permille && a->hold == b->hold && a->keep_alive == b->keep_alive &&
	       a->spare_permille == b->spare_permille && a->victim == b->victim;
}

/* The rules stand beside what was counted by them: another version may have others. `t`: what is written, or zeroed. */
static struct share_tally tally(struct walk *w, const struct share_tally *t, struct arena *a)
{
	struct share_tally out = *t;
	size_t rules;
	const struct share_rule *ours = share_rules(&rules);

	w->is_damaged |= count(w, rules, SHARE_RULES_MAX) != rules;
	number(w, &out.hour);
	position(w, &out.rule, rules);
	position(w, &out.was, rules);
	amount(w, &out.asked);
	for (size_t i = 0; i < rules && !w->is_damaged; i++) {
		struct share_rule r = w->is_writing ? ours[i] : (struct share_rule){ 0 };
		rule(w, &r);
		w->is_damaged |= !is_same_rule(&r, &ours[i]);
		amount(w, &out.late[i]);
		amount(w, &out.strain[i]);
	}
	out.member_count = count(w, t->member_count, SHARE_MEMBERS_MAX);
	out.members = arena_array(a, struct share_tally_member, out.member_count);
	for (size_t i = 0; i < out.member_count && !w->is_damaged; i++) {
		struct share_tally_member *m = &out.members[i];
		if (w->is_writing)
			*m = t->members[i];
		int64_t key = (int64_t)m->key;
		number(w, &key);
		m->key = (uint64_t)key;
		amount(w, &m->asked);
		work(w, &m->worked);
		amount(w, &m->ended);
	}
	w->is_damaged |= out.rule == SHARE_NONE || out.was == SHARE_NONE;
	return out;
}

void share_tally_write(const struct share_tally *t, struct buf *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	tally(&(struct walk){ .out = out, .is_writing = true }, t, &a);
}

bool share_tally_read(const char *text, struct arena *a, struct share_tally *out, struct error *e)
{
	struct walk w = { .in = text };
	struct share_tally t = tally(&w, &(struct share_tally){ 0 }, a);

	if (w.is_damaged || *w.in)
		return error_set(e, ERROR_INVALID,
				 "what the shadows of a share counted is damaged, or of another version");
	*out = t;
	return true;
}

bool share_choice_save(struct history *h, const struct share_choice_record *r, struct error *e)
{
	return history_begin(h, e) &&
	       db_run(DB_QUERY(h->db,
			       "INSERT OR REPLACE INTO share_choice (share, since, saved_at, why, tally)"
			       " VALUES (?, ?, ?, ?, ?)",
			       DB_T(r->share), DB_I(r->since), DB_I(r->saved_at), DB_T(r->why), DB_T(r->tally)),
		      e) &&
	       history_commit(h, e);
}

bool share_choice_find(struct history *h, const struct share_choice_filter *f, struct arena *a,
		       struct share_choices *found, struct error *e)
{
	struct buf rows = { 0 };
	bool ok;

	*found = (struct share_choices){ 0 };
	if (!h->has_choices)
		return true;
	struct statement *s = DB_QUERY(h->db,
				       "SELECT * FROM (SELECT share, since, saved_at, why, tally FROM share_choice"
				       " WHERE since BETWEEN ?1 AND ?2 AND (CAST(?3 AS TEXT) IS NULL OR share = ?3)"
				       " ORDER BY since DESC, share DESC LIMIT ?4) newest ORDER BY since, share",
				       DB_I(f->from), DB_I(f->to), DB_T(f->share), DB_I(f->most));
	while (db_next(s, &ok, e)) {
		struct share_choice_record r = { .share = db_column_copy(s, 0, a),
						 .since = db_column_int(s, 1),
						 .saved_at = db_column_int(s, 2),
						 .why = db_column_copy(s, 3, a),
						 .tally = db_column_copy(s, 4, a) };
		buf_append(&rows, &r, sizeof r);
	}
	found->items = rows_array(&rows, sizeof *found->items, a, &found->count);
	return ok;
}

/* --- moves --- */

bool engine_move_save(struct history *h, const struct engine_move_record *m, struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s =
		DB_QUERY(h->db,
			 "INSERT OR REPLACE INTO engine_move (uid, asked_at, pod, pool, share, slot,"
			 " is_wake, why, tick, term, outcome, took, ended_at)"
			 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
			 DB_T(m->uid), DB_I(m->asked_at), DB_T(m->pod), DB_T(m->pool), DB_T(m->share), DB_T(m->slot),
			 DB_I(m->is_wake), DB_T(m->why), DB_I(h->next_tick - 1), DB_I(m->term));
	return history_run_durable(h, s, e);
}

bool engine_move_end(struct history *h, const struct engine_move_record *m, struct error *e)
{
	if (!history_begin_durable(h, e))
		return false;
	struct statement *s =
		DB_QUERY(h->db,
			 "UPDATE engine_move SET outcome = COALESCE(outcome, ?), took = COALESCE(took, ?),"
			 " ended_at = NULLIF(?, 0) WHERE uid = ? AND asked_at = ?",
			 DB_T(m->outcome), DB_I(m->took), DB_I(m->ended_at), DB_T(m->uid), DB_I(m->asked_at));
	return history_run_durable(h, s, e);
}

#define ALL                                                                                                     \
	"SELECT uid, asked_at, pod, pool, share, slot, is_wake, why, tick, term, outcome, took, ended_at FROM " \
	"engine_move "

static bool collect(struct statement *s, struct arena *a, struct engine_move_record **moves, size_t *found,
		    struct error *e)
{
	struct buf rows = { 0 };
	bool ok;

	while (db_next(s, &ok, e)) {
		struct engine_move_record m = { .uid = db_column_copy(s, 0, a),
						.asked_at = db_column_int(s, 1),
						.pod = db_column_copy(s, 2, a),
						.pool = db_column_copy(s, 3, a),
						.share = db_column_copy(s, 4, a),
						.slot = db_column_copy(s, 5, a),
						.is_wake = db_column_int(s, 6) != 0,
						.why = db_column_copy(s, 7, a),
						.tick = db_column_int(s, 8),
						.term = db_column_int(s, 9),
						.outcome = db_column_is_null(s, 10) ? NULL : db_column_copy(s, 10, a),
						.took = db_column_int(s, 11),
						.ended_at = db_column_int(s, 12) };
		buf_append(&rows, &m, sizeof m);
	}
	*moves = rows_array(&rows, sizeof **moves, a, found);
	return ok;
}

bool engine_move_open(struct history *h, struct arena *a, struct engine_move_record **moves, size_t *found,
		      struct error *e)
{
	return collect(db_prepare(h->db, ALL "WHERE ended_at IS NULL ORDER BY asked_at, uid"), a, moves, found, e);
}

bool engine_move_find(struct history *h, const struct engine_move_filter *f, struct arena *a,
		      struct engine_move_record **moves, size_t *found, struct error *e)
{
	*found = 0;
	if (!h->has_shares)
		return true;
	struct statement *s =
		DB_QUERY(h->db,
			 "SELECT * FROM (" ALL "WHERE asked_at BETWEEN ?1 AND ?2 AND (CAST(?3 AS TEXT) IS NULL"
			 " OR pool = ?3) ORDER BY asked_at DESC, uid DESC LIMIT ?4) newest ORDER BY asked_at, uid",
			 DB_I(f->from), DB_I(f->to), DB_T(f->pool), DB_I(f->most));

	return collect(s, a, moves, found, e);
}

/* Which of the pools of its share; SHARE_NONE: there are others than the view has. */
static size_t member_at(const struct fleet_spec *fleet, size_t pool, const struct share_view *v, size_t *pools)
{
	size_t count = 0, member = SHARE_NONE;

	for (size_t i = 0; i < fleet->pool_count && count <= v->member_count; i++) {
		if (!pools_share(&fleet->pools[i], &fleet->pools[pool]))
			continue;
		if (i == pool)
			member = count;
		if (count < v->member_count)
			pools[count] = i;
		count++;
	}
	return count == v->member_count ? member : SHARE_NONE;
}

/* Decided again from what was seen: a decision is recorded where it differs from the one before. */
static bool find_holder(struct history *h, const struct pool_then *of, const char *share, struct arena *a,
			const char **holder, struct error *e)
{
	struct share_view v;
	bool ok;
	const char *seen = NULL;
	struct statement *s =
		DB_QUERY(h->db, "SELECT view FROM share_decision WHERE share = ? AND at <= ? ORDER BY at DESC LIMIT 1",
			 DB_T(share), DB_I(of->at));

	while (db_next(s, &ok, e))
		seen = db_column_copy(s, 0, a);
	if (!ok || !seen)
		return ok;
	struct error unreadable = { 0 };
	if (!share_view_read(seen, a, &v, &unreadable))
		return true; /* who replays it is told so; here it is one sentence less */
	size_t *pools = arena_array(a, size_t, v.member_count), member = member_at(of->fleet, of->pool, &v, pools);
	size_t other = member == SHARE_NONE ? SHARE_NONE : share_decide(&v, a).waits_for[member];
	if (other != SHARE_NONE)
		*holder = of->fleet->pools[pools[other]].name;
	return true;
}

bool engine_move_around(struct history *h, const struct pool_then *of, struct arena *a, struct engine_moves_told *out,
			struct error *e)
{
	const struct pool_spec *pool = &of->fleet->pools[of->pool];
	static const millis BEFORE = 15 * MINUTE, AFTER = 15 * SECOND;
	char key[300], share[600];
	struct share_choices choices;
	const struct engine_move_filter f = {
		.from = of->at - BEFORE, .to = of->at + AFTER, .pool = key, .most = ENGINE_MOVES_TOLD
	};

	*out = (struct engine_moves_told){ 0 };
	if (!pool_is_in_share(pool))
		return true;
	snprintf(key, sizeof key, "%s/%s", pool->namespace, pool->name);
	snprintf(share, sizeof share, "%s/%s", pool->namespace, pool->share);
	if (!engine_move_find(h, &f, a, &out->items, &out->count, e) ||
	    !share_choice_find(h, &(struct share_choice_filter){ INT64_MIN, of->at, share, 1 }, a, &choices, e))
		return false;
	if (choices.count)
		out->choice = choices.items[0];
	return !h->has_shares || find_holder(h, of, share, a, &out->waits_for, e);
}
