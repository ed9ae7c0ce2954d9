#include "controller/commands/replay_fold.h"

#include "base/deflate.h"
#include "base/terminal.h"
#include "controller/policy/decide.h"
#include "controller/simulation/rivals/rivals.h"
#include "controller/simulation/simulate.h"

#include <string.h>

/* Whatever decided then, as it stands now. */
struct decider {
	const struct policy_ops *ops;
	void *state;	       /* of ops */
	struct memory *memory; /* Preheat's own, from a checkpoint; else NULL */
};

struct fold {
	struct history *h;
	const struct manifest *m;
	const struct replay_range *range;
	struct arena *arena;
	struct replay_outcome *out;
	struct decider by;
	int64_t next_checkpoint; /* ABSENT: none */
	uint32_t checkpoint_crc;
	struct tick_record *records; /* one per pool */
	struct error *damage;	     /* one per pool */
};

static struct memory *memory_of(const struct decider *d)
{
	if (d->memory)
		return d->memory;
	return d->ops == &policy_preheat ? preheat_memory(d->state) : NULL;
}

static void decider_close(struct decider *d)
{
	memory_free(d->memory);
	if (d->state)
		d->ops->close(d->state);
}

static struct plan decide(const struct decider *d, const struct snapshot *s, struct arena *a)
{
	return d->memory ? policy_decide(s, d->memory, a) : d->ops->decide(d->state, s, a);
}

bool replay_policy(struct history *h, struct arena *a, const struct policy_ops **ops, const char **setting,
		   struct error *e)
{
	const char *text;

	if (!history_fact(h, "policy", a, &text, e))
		return false;
	const char *colon = strchr(text, ':');
	const char *name = arena_strdup(a, text, colon ? (size_t)(colon - text) : strlen(text));

	*setting = colon ? colon + 1 : "";
	*ops = !strcmp(name, policy_preheat.name) ? &policy_preheat : rival_find(name);
	if (*ops)
		return true;
	return error_set(e, ERROR_INVALID, "%s: decided by '%s', which this program does not know", history_path(h),
			 name);
}

/* Where to start so that the memory is what it was: at the last checkpoint, else at the first tick of all. */
static bool find_start(struct fold *f, int64_t *start, struct error *e)
{
	CLEANUP(buf_release) struct buf memory = { 0 };
	const char *setting;

	*start = 0;
	if (!replay_policy(f->h, f->arena, &f->by.ops, &setting, e))
		return false;
	f->by.state = f->by.ops->open(&f->m->fleet, setting, e);
	if (!f->by.state)
		return false;
	if (f->by.ops != &policy_preheat || *setting || f->range->from == 0)
		return true;
	if (!history_last_checkpoint(f->h, f->range->from, start, &memory, e))
		return e->kind == ERROR_NOT_FOUND;
	f->by.memory = memory_decode(memory.text, memory.len, &f->m->fleet, e);
	return f->by.memory || error_wrap(e, "%s: the checkpoint of tick %lld", history_path(f->h), (long long)*start);
}

/* --- differences --- */

static bool is_in_range(const struct fold *f, int64_t tick, size_t pool)
{
	return tick >= f->range->from && (f->range->pool == ANY || f->range->pool == (int64_t)pool);
}

/* True for the first difference of all, which is told in full. */
static bool note(struct fold *f, int64_t tick, size_t pool, const char *what)
{
	struct replay_outcome *o = f->out;

	if (o->what)
		return false;
	o->tick = tick;
	o->pool = pool;
	o->at = f->records[pool].now;
	o->what = arena_strdup(f->arena, what, strlen(what));
	o->fields = arena_array(f->arena, struct replay_field, REPLAY_FIELDS_MAX);
	return true;
}

static void note_fields(struct fold *f, const char *of, const struct record_info *info, const void *stored,
			const void *now)
{
	const int64_t *a = stored, *b = now;
	struct replay_outcome *o = f->out;

	for (size_t i = 0; i < info->count && o->field_count < REPLAY_FIELDS_MAX; i++)
		if (a[i] != b[i])
			o->fields[o->field_count++] = (struct replay_field){ of, &info->fields[i], a[i], b[i] };
}

static bool is_same(const struct pool_plan *a, const struct pool_plan *b)
{
	return !memcmp(&a->decision, &b->decision, sizeof a->decision) && a->group_count == b->group_count &&
	       a->price_count == b->price_count &&
	       (!a->group_count || !memcmp(a->groups, b->groups, a->group_count * sizeof *a->groups)) &&
	       !memcmp(a->prices, b->prices, a->price_count * sizeof *a->prices);
}

static void note_plan(struct fold *f, int64_t tick, size_t pool, const struct pool_plan *now)
{
	const struct pool_plan *stored = &f->records[pool].plan;
	const struct pool_spec *spec = &f->m->fleet.pools[pool];

	if (!note(f, tick, pool, "another plan"))
		return;
	note_fields(f, "decision", &pool_decision_info, &stored->decision, &now->decision);
	for (size_t i = 0; i < stored->group_count && i < now->group_count; i++)
		note_fields(f, f->m->fleet.groups[spec->groups[i]].name, &group_decision_info, &stored->groups[i],
			    &now->groups[i]);
	for (size_t i = 0; i < stored->price_count && i < now->price_count; i++)
		note_fields(f, "prices", &objective_price_info, &stored->prices[i], &now->prices[i]);
}

/* True when the stored plan is what is decided now. */
static bool compare_pool(struct fold *f, int64_t tick, size_t pool, const struct pool_plan *now)
{
	const struct tick_record *r = &f->records[pool];

	if (r->is_plan_damaged)
		history_trust_plan(f->h, pool, now);
	if (!is_in_range(f, tick, pool))
		return true;
	if (r->is_plan_damaged)
		note(f, tick, pool, f->damage[pool].message);
	else if (is_same(&r->plan, now))
		return true;
	else
		note_plan(f, tick, pool, now);
	return false;
}

/* --- the fold --- */

static bool read_tick(struct fold *f, int64_t tick, struct snapshot *s, struct pool_snapshot *pools, struct error *e)
{
	for (size_t i = 0; i < f->m->fleet.pool_count; i++) {
		if (!history_read_lenient(f->h, tick, i, &f->records[i], &f->damage[i], e))
			return false;
		pools[i] = f->records[i].snapshot;
		if (pools[i].group_count != f->m->fleet.pools[i].group_count)
			return error_set(e, ERROR_INVALID, "%s: damaged: tick %lld is not of its manifest",
					 history_path(f->h), (long long)tick);
	}
	*s = (struct snapshot){ tick, f->records[0].now, f->records[0].interval, &f->m->fleet, pools };
	return true;
}

/* The memory must have come to what it was then. */
static bool compare_memory(struct fold *f, int64_t tick, bool *is_same_memory, struct error *e)
{
	CLEANUP(buf_release) struct buf memory = { 0 };
	bool there;

	*is_same_memory = true;
	if (f->next_checkpoint != tick || !memory_of(&f->by))
		return true;
	memory_encode(memory_of(&f->by), &memory);
	if (crc32_bytes(0, memory.text, memory.len) != f->checkpoint_crc && tick >= f->range->from) {
		note(f, tick, 0, "the memory before this tick is not what was kept as its checkpoint");
		*is_same_memory = false;
	}
	if (!history_next_checkpoint(f->h, tick + 1, &there, &f->next_checkpoint, &f->checkpoint_crc, e))
		return false;
	if (!there)
		f->next_checkpoint = ABSENT;
	return true;
}

static bool fold_tick(struct fold *f, int64_t tick, struct error *e)
{
	CLEANUP(arena_release) struct arena arena = { 0 };
	struct pool_snapshot *pools = arena_array(&arena, struct pool_snapshot, f->m->fleet.pool_count);
	struct snapshot s;
	bool same;

	if (!read_tick(f, tick, &s, pools, e) || !compare_memory(f, tick, &same, e))
		return false;
	struct plan now = decide(&f->by, &s, &arena);
	for (size_t i = 0; i < f->m->fleet.pool_count; i++)
		same &= compare_pool(f, tick, i, &now.pools[i]);
	if (tick >= f->range->from) {
		f->out->ticks++;
		f->out->differing += !same;
	}
	return true;
}

/* A damaged input ends it: what the policy saw from there on is not known. */
static bool cut_short(struct fold *f, int64_t tick, const struct error *e)
{
	f->out->differing++;
	f->out->is_cut_short = true;
	if (note(f, tick, 0, e->message))
		f->out->at = 0;
	return true;
}

static bool fold_all(struct fold *f, int64_t start, struct error *e)
{
	struct progress progress = progress_start("replaying", "ticks", f->range->to - start + 1);
	bool there, ok = history_next_checkpoint(f->h, start + 1, &there, &f->next_checkpoint, &f->checkpoint_crc, e);

	if (ok && !there)
		f->next_checkpoint = ABSENT;
	for (int64_t tick = start; tick <= f->range->to && ok && !f->out->is_cut_short; tick++) {
		progress_show(&progress, tick - start);
		ok = fold_tick(f, tick, e) || (e->kind == ERROR_INVALID && cut_short(f, tick, e));
	}
	progress_end(&progress);
	return ok;
}

bool replay_fold(struct history *h, const struct manifest *m, const struct replay_range *range, struct arena *a,
		 struct replay_outcome *out, struct error *e)
{
	struct fold f = { .h = h, .m = m, .range = range, .arena = a, .out = out };
	int64_t start;

	*out = (struct replay_outcome){ .ticks = 0 };
	f.records = arena_array(a, struct tick_record, m->fleet.pool_count);
	f.damage = arena_array(a, struct error, m->fleet.pool_count);
	bool ok = find_start(&f, &start, e) && fold_all(&f, start, e);
	decider_close(&f.by);
	return ok;
}
