#include "controller/commands/replay_fold.h"

#include "base/gzip.h"
#include "base/terminal.h"
#include "controller/policy/decide.h"
#include "controller/recall/walk.h"
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/simulate.h"

#include <string.h>

/* Whatever decided then, as it stands now. */
struct decider {
	const struct policy_ops *ops;
	void *state;	       /* of ops */
	struct policy_state *memory; /* Preheat's own, from a checkpoint; else NULL */
};

struct fold {
	struct history *h;
	const struct replay_range *range;
	struct arena *arena;
	struct replay_outcome *out;
	struct decider by;
	struct walk *walk;
	struct walk_tick seen;
	int64_t next_checkpoint; /* ABSENT: none */
	uint32_t checkpoint_crc;
};

static struct policy_state *memory_of(const struct decider *d)
{
	if (d->memory)
		return d->memory;
	return d->ops == &policy_preheat ? preheat_memory(d->state) : NULL;
}

static void decider_close(struct decider *d)
{
	policy_state_free(d->memory);
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

/* A memory that was kept or began there: at the last checkpoint, else where it was a new one. */
static bool find_known(const struct fold *f, int64_t *start, struct buf *memory, struct error *e)
{
	int64_t fresh, kept = -1;

	if (!history_last_fresh(f->h, f->range->from, &fresh, e))
		return false;
	if (!history_last_checkpoint(f->h, f->range->from, &kept, memory, e) && e->kind != ERROR_NOT_FOUND)
		return false;
	*start = kept > fresh ? kept : fresh;
	if (kept < fresh)
		buf_clear(memory);
	return true;
}

/* The manifest of the first tick lives in the arena: what decides keeps its fleet. */
static bool open_decider(struct fold *f, int64_t start, const char *setting, const struct buf *memory, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest *m = arena_new(f->arena, struct manifest);
	const char *text;

	if (!history_manifest(f->h, start, f->arena, &text, e))
		return false;
	if (!manifest_load_text("manifest", text, f->arena, m, &findings, e))
		return error_wrap(e, "%s: its manifest", history_path(f->h));
	f->by.state = f->by.ops->open(&m->fleet, setting, e);
	if (!f->by.state)
		return false;
	if (!memory->len)
		return true;
	f->by.memory = policy_state_decode(memory->text, memory->len, &m->fleet, e);
	return f->by.memory || error_wrap(e, "%s: the checkpoint of tick %lld", history_path(f->h), (long long)start);
}

/* Where to start so that the memory is what it was. */
static bool find_start(struct fold *f, int64_t *start, struct error *e)
{
	CLEANUP(buf_release) struct buf memory = { 0 };
	const char *setting;

	*start = 0;
	if (!replay_policy(f->h, f->arena, &f->by.ops, &setting, e))
		return false;
	if (f->by.ops == &policy_preheat && !*setting &&
	    (!find_known(f, start, &memory, e) || !history_check_policy(f->h, *start, f->range->to, e)))
		return false;
	return open_decider(f, *start, setting, &memory, e);
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
	o->at = f->seen.snapshot.now;
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

/* Names of groups outlive the walk. */
static const char *group_name(const struct fold *f, size_t place, size_t group)
{
	const struct fleet_spec *fleet = f->seen.snapshot.fleet;
	const char *name = fleet->groups[fleet->pools[place].groups[group]].name;

	return arena_strdup(f->arena, name, strlen(name));
}

static void note_plan(struct fold *f, size_t place, const struct pool_plan *now)
{
	const struct pool_plan *stored = f->seen.plans[place];

	if (!note(f, f->seen.snapshot.tick, f->seen.pools[place], "another plan"))
		return;
	note_fields(f, "decision", &pool_decision_info, &stored->decision, &now->decision);
	for (size_t i = 0; i < stored->group_count && i < now->group_count; i++)
		note_fields(f, group_name(f, place, i), &group_decision_info, &stored->groups[i], &now->groups[i]);
	for (size_t i = 0; i < stored->price_count && i < now->price_count; i++)
		note_fields(f, "prices", &objective_price_info, &stored->prices[i], &now->prices[i]);
}

/* True when the stored plan is what is decided now. `place`: in the manifest of the tick. */
static bool compare_pool(struct fold *f, size_t place, const struct pool_plan *now)
{
	int64_t tick = f->seen.snapshot.tick;
	size_t pool = f->seen.pools[place];
	bool is_damaged = f->seen.damage[place].kind != ERROR_NONE;

	if (is_damaged)
		history_trust_plan(f->h, pool, now);
	if (!is_in_range(f, tick, pool))
		return true;
	if (is_damaged)
		note(f, tick, pool, f->seen.damage[place].message);
	else if (is_same(f->seen.plans[place], now))
		return true;
	else
		note_plan(f, place, now);
	return false;
}

/* --- the fold --- */

/* The memory must have come to what it was then. */
static bool compare_memory(struct fold *f, int64_t tick, bool *is_same_memory, struct error *e)
{
	CLEANUP(buf_release) struct buf memory = { 0 };
	bool there;

	*is_same_memory = true;
	if (f->next_checkpoint != tick || !memory_of(&f->by))
		return true;
	policy_state_encode(memory_of(&f->by), &memory);
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

/* The memory goes on under the new manifest, or begins anew, as it did then. */
static bool follow_manifest(struct fold *f, struct error *e)
{
	const struct walk_tick *t = &f->seen;
	struct policy_state *present = memory_of(&f->by), *next;

	if ((!t->was && !t->is_fresh) || t->snapshot.tick == 0)
		return true;
	if (!present)
		return error_set(e, ERROR_CONFLICT, "%s: the manifest changes at tick %lld, which only preheat follows",
				 history_path(f->h), (long long)t->snapshot.tick);
	if (t->is_fresh)
		next = policy_state_new(t->snapshot.fleet);
	else
		next = policy_state_migrate(present, t->was, t->snapshot.fleet);
	policy_state_free(f->by.memory);
	f->by.memory = next;
	return true;
}

static bool fold_tick(struct fold *f, int64_t tick, struct error *e)
{
	CLEANUP(arena_release) struct arena arena = { 0 };
	bool same;

	if (!walk_next(f->walk, &f->seen, e) || !follow_manifest(f, e) || !compare_memory(f, tick, &same, e))
		return false;
	struct plan now = decide(&f->by, &f->seen.snapshot, &arena);
	for (size_t i = 0; i < now.pool_count; i++)
		same &= compare_pool(f, i, &now.pools[i]);
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

	f->walk = ok ? walk_open(f->h, start, e) : NULL;
	ok = f->walk != NULL;
	if (ok && !there)
		f->next_checkpoint = ABSENT;
	for (int64_t tick = start; tick <= f->range->to && ok && !f->out->is_cut_short; tick++) {
		progress_show(&progress, tick - start);
		ok = fold_tick(f, tick, e) || (e->kind == ERROR_INVALID && cut_short(f, tick, e));
	}
	progress_end(&progress);
	return ok;
}

bool replay_fold(struct history *h, const struct replay_range *range, struct arena *a, struct replay_outcome *out,
		 struct error *e)
{
	struct fold f = { .h = h, .range = range, .arena = a, .out = out };
	int64_t start;

	*out = (struct replay_outcome){ .ticks = 0 };
	bool ok = find_start(&f, &start, e) && fold_all(&f, start, e);
	walk_close(f.walk);
	decider_close(&f.by);
	return ok;
}
