/* Writing ticks: inputs and plans of all pools, told against the tick before. */
#include "state/history_file.h"

/* Everything before `nodes` in the table of a group's decision is something asked for. */
static bool asks(const struct group_decision *g)
{
	const int64_t *v = (const int64_t *)g;
	int64_t any = 0;

	for (size_t i = 0; i < offsetof(struct group_decision, nodes) / sizeof *v; i++)
		any |= v[i];
	return any != 0;
}

bool plan_asks(const struct pool_plan *p)
{
	for (size_t i = 0; i < p->group_count; i++)
		if (asks(&p->groups[i]))
			return true;
	return false;
}

struct plan_marks plan_marks(const struct pool_plan *p, const struct group_places *g)
{
	const struct pool_decision *d = &p->decision;
	struct plan_marks m = { .held_by = d->held_by, .has_asked = plan_asks(p) };
	uint64_t concerns = 0;

	for (size_t i = 0; i < p->group_count; i++)
		if (asks(&p->groups[i]) || p->groups[i].held_by != LIMIT_NONE)
			concerns |= UINT64_C(1) << (g->position[i] < CONCERNS_MOST ? g->position[i] : CONCERNS_MOST);
	m.concerns = (int64_t)concerns;
	if (m.has_asked)
		m.asked = (int64_t)((uint64_t)d->decided - (uint64_t)d->ready - (uint64_t)d->on_the_way);
	return m;
}

static bool save_tick(struct history *h, const struct snapshot *s, struct error *e)
{
	struct statement *q = db_prepare(h->db, "INSERT INTO tick (id, at, interval) VALUES (?, ?, ?)");

	db_bind_int(q, s->tick);
	db_bind_int(q, s->now);
	db_bind_int(q, s->interval);
	return db_run(q, e);
}

static bool save_decision(struct history *h, const struct record_key *k, const struct pool_plan *p,
			  const struct group_places *groups, struct error *e)
{
	struct plan_marks m = plan_marks(p, groups);
	struct statement *q =
		db_prepare(h->db, "INSERT INTO decision (tick, pool, is_keyframe, held_by, asked, concerns,"
				  " input, plan) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

	db_bind_int(q, k->tick);
	db_bind_int(q, k->pool);
	db_bind_int(q, k->is_keyframe);
	db_bind_int(q, m.held_by);
	if (m.has_asked)
		db_bind_int(q, m.asked);
	else
		db_bind_null(q);
	db_bind_int(q, m.concerns);
	db_bind_bytes(q, h->input.text, h->input.len);
	db_bind_bytes(q, h->plan.text, h->plan.len);
	return db_run(q, e);
}

static bool save_pool(struct history *h, const struct snapshot *s, const struct plan *p, size_t place, struct error *e)
{
	const struct fleet_place *to = &h->places[place];
	struct pool_position *at = &h->positions[to->pool];
	struct record_key k = { s->tick, (int64_t)to->pool, s->now, s->interval, h->is_keyframe_due || at->tick < 0 };

	if (p->pools[place].group_count != to->groups.count)
		return error_set(e, ERROR_INTERNAL, "%s: pool %s: a plan for %zu node groups, the manifest has %zu",
				 db_path(h->db), h->pools[to->pool].name, p->pools[place].group_count,
				 to->groups.count);
	buf_clear(&h->input);
	buf_clear(&h->plan);
	record_encode_input(&at->part[RECORD_INPUT], &k, &s->pools[place], &h->input);
	record_encode_plan(&at->part[RECORD_PLAN], &k, &p->pools[place], &h->plan);
	at->tick = s->tick;
	history_note_level(h, s, p, place);
	history_note_lead_times(h, s, place);
	return save_decision(h, &k, &p->pools[place], &to->groups, e);
}

static bool check_follows(const struct history *h, const struct snapshot *s, const struct plan *p, struct error *e)
{
	if (s->tick != h->next_tick || (s->tick && s->now < h->last_at))
		return error_set(e, ERROR_INTERNAL, "%s: tick %lld does not follow tick %lld", db_path(h->db),
				 (long long)s->tick, (long long)h->next_tick - 1);
	if (p->pool_count != h->place_count)
		return error_set(e, ERROR_INTERNAL, "%s: a plan for %zu pools, the manifest in force has %zu",
				 db_path(h->db), p->pool_count, h->place_count);
	return true;
}

static bool save_all(struct history *h, const struct snapshot *s, const struct plan *p, struct error *e)
{
	if (!history_begin(h, e) || !save_tick(h, s, e))
		return false;
	for (size_t i = 0; i < h->place_count; i++)
		if (!save_pool(h, s, p, i, e))
			return false;
	return true;
}

bool history_append(struct history *h, const struct snapshot *s, const struct plan *p, struct error *e)
{
	if (!check_follows(h, s, p, e))
		return false;
	h->is_keyframe_due |= s->tick % KEYFRAME_EVERY == 0;
	if (!save_all(h, s, p, e)) {
		history_undo(h);
		return false;
	}
	if (!s->tick)
		h->last_checkpoint_at = s->now;
	h->is_keyframe_due = false;
	h->next_tick = s->tick + 1;
	h->last_at = s->now;
	return ++h->uncommitted < h->ticks_per_commit || history_commit(h, e);
}
