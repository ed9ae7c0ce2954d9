/* preheat replay: decides a history again. */
#include "base/gzip.h"
#include "base/terminal.h"
#include "base/json.h"
#include "base/table.h"
#include "base/workers.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/commands/recording.h"
#include "controller/explain/explain.h"
#include "controller/manifest/manifest.h"
#include "controller/manifest/variation.h"
#include "controller/policy/decide.h"
#include "controller/restore/restore.h"
#include "controller/simulation/draws.h"
#include "controller/simulation/policy_ops.h"
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"
#include "state/history.h"
#include "state/share_record.h"

#include <stdio.h>
#include <string.h>

/*
 * Deciding a recorded stretch again: from the last checkpoint before it
 * forward, each recorded snapshot through the same policy, each plan
 * compared with the stored one. Where the manifest changed, the memory is
 * carried over as it was then.
 */

struct replay_range {
	int64_t from, to; /* ticks, both included */
	int64_t pool;	  /* of history_pools(), or ANY */
};

/* A field of the first differing plan. */
struct replay_field {
	const char *of; /* "decision", the name of a group, "prices" */
	const struct field_info *field;
	int64_t stored, now;
};

enum { REPLAY_FIELDS_MAX = 24 };

struct replay_outcome {
	int64_t ticks, differing; /* replayed; with any difference */
	bool is_cut_short;	  /* an input is damaged: nothing after it can be decided */

	/* of the first difference */
	int64_t tick;
	millis at;
	size_t pool;	  /* of history_pools() */
	const char *what; /* "the stored plan is damaged: ...", "another plan" */
	struct replay_field *fields;
	size_t field_count; /* at most REPLAY_FIELDS_MAX are kept */
};

/*
 * What other settings would have come to. What was decided cannot be
 * changed after the fact, since what followed depended on it; so the
 * recorded arrivals go through a modelled cluster, once with the settings of
 * the time and once with the others, and the two models are compared.
 */

struct replay_telling {
	const char *output;    /* form of the comparison */
	bool is_progress_told; /* on standard error, as lines {"progress":0.42}; else on a terminal, for people */
};

/* Whatever decided then, as it stands now. */
struct decider {
	const struct policy_ops *ops;
	void *state;		     /* of ops */
	struct policy_state *memory; /* Preheat's own, from a checkpoint; else NULL */
};

struct fold {
	struct history *h;
	const struct replay_range *range;
	struct arena *arena;
	struct replay_outcome *out;
	struct decider by;
	struct tick_cursor *walk;
	struct cursor_tick seen;
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

/* What decided then: the policy and its setting, "" for none. */
static bool replay_policy(struct history *h, struct arena *a, const struct policy_ops **ops, const char **setting,
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
	struct manifest *m = arena_new(f->arena, struct manifest);

	if (!history_args_manifest(f->h, start, f->arena, m, e))
		return false;
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
	const struct cursor_tick *t = &f->seen;
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

	if (!tick_cursor_next(f->walk, &f->seen, e) || !follow_manifest(f, e) || !compare_memory(f, tick, &same, e))
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

	f->walk = ok ? tick_cursor_open(f->h, start, e) : NULL;
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

/* Everything that the outcome points to lives in the arena. False when it could not be replayed. */
static bool replay_fold(struct history *h, const struct replay_range *range, struct arena *a,
			struct replay_outcome *out, struct error *e)
{
	struct fold f = { .h = h, .range = range, .arena = a, .out = out };
	int64_t start;

	*out = (struct replay_outcome){ .ticks = 0 };
	bool ok = find_start(&f, &start, e) && fold_all(&f, start, e);
	tick_cursor_close(f.walk);
	decider_close(&f.by);
	return ok;
}

enum { MODEL_DRAWS = 5 };

/* What a stretch came to for one pool, counted alike from a record and from a model. */
struct figures {
	size_t draws;			/* of a model: that these are the mean of, and each one's share of late ones */
	double late_drawn[MODEL_DRAWS]; /* in percent */
	double requests, late, gpu_hours, dollars, starts;
	double node_ticks, ticks, most_nodes, hours;
	struct objective_price prices[OBJECTIVE_PRICES]; /* at its end; of a record only */
	size_t price_count;
};

/* One tick of one pool. */
struct tick_seen {
	const struct pool_snapshot *snapshot;
	const struct pool_plan *plan;
	millis interval;
};

static void add_readings(struct figures *f, const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->scrape_count; i++) {
		const struct scrape_input *r = &s->scrapes[i];

		f->requests += (double)(r->started != ABSENT ? r->started : r->completed);
		f->late += r->late != ABSENT ? (double)r->late : 0;
	}
}

static int64_t nodes_for(int64_t replicas, int64_t per_node)
{
	return (replicas + per_node - 1) / per_node;
}

/* Machines, not replicas: what fills free GPUs of a node that runs already starts none. */
static void add_group(struct figures *f, const struct fleet_spec *fleet, const struct pool_spec *p,
		      const struct tick_seen *seen, size_t group)
{
	const struct group_spec *g = &fleet->groups[p->groups[group]];
	const struct group_input *in = &seen->snapshot->groups[group];
	const struct group_decision *d = &seen->plan->groups[group];
	int64_t fit = replicas_per_node(g, p), per_node = fit > 0 ? fit : 1;
	double gpus = (double)in->billed_gpus_milli / 1000, hours = (double)seen->interval / HOUR;
	double stopped = (double)nodes_for(in->standby, per_node) * (double)g->standby_price_ppm / 1e6;

	f->gpu_hours += gpus * hours;
	f->dollars += (gpus / (double)g->gpus_per_node + stopped) * (double)g->price_per_hour / 1e6 * hours;
	f->starts +=
		(double)(nodes_for(d->cold, per_node) + nodes_for(d->wake, per_node) + nodes_for(d->refill, per_node));
}

static void add_tick(struct figures *f, const struct fleet_spec *fleet, size_t pool, const struct tick_seen *seen)
{
	const struct pool_spec *p = &fleet->pools[pool];
	const struct pool_snapshot *s = seen->snapshot;
	double nodes = 0;

	add_readings(f, s);
	for (size_t i = 0; i < p->group_count && i < s->group_count && i < seen->plan->group_count; i++) {
		add_group(f, fleet, p, seen, i);
		nodes += (double)s->groups[i].nodes;
	}
	f->node_ticks += nodes;
	f->ticks++;
	f->hours += (double)seen->interval / HOUR;
	if (nodes > f->most_nodes)
		f->most_nodes = nodes;
}

/* How far it is: one figure over reading, adding up, and both models. */
struct telling {
	bool as_lines;
	int64_t told; /* per cent */
	struct progress shown;
};

static void tell_progress(struct telling *t, double part)
{
	int64_t percent = (int64_t)(part * 100);

	if (percent == t->told)
		return;
	t->told = percent;
	if (t->as_lines)
		fprintf(stderr, "{\"progress\":%.2f}\n", (double)percent / 100);
	else
		progress_show(&t->shown, percent);
}

/* Where each part begins. */
static const double READ_UNTIL = .2, ADDED_UNTIL = .3, MODELLED_ONCE = .65;

/* What is compared: a stretch under one manifest. */
struct replayed {
	struct history *history;
	const struct manifest *then, *other;
	const struct replay_range *range;
	const size_t *pools; /* of the history, one per pool of `then` */
	struct recording rec;
	int64_t first; /* tick of the models; what they come to counts from `begin` on */
	millis begin;
	struct telling *telling;
};

/* --- as it was --- */

/* `place`: of the manifest; `pool`: of the history. */
static bool read_figures(const struct replayed *w, size_t place, struct figures *f, struct error *e)
{
	struct tick_record r = { 0 };

	for (int64_t tick = w->range->from; tick <= w->range->to; tick++) {
		if (!history_read(w->history, tick, w->pools[place], &r, e))
			return false;
		add_tick(f, &w->then->fleet, place, &(struct tick_seen){ &r.snapshot, &r.plan, r.interval });
	}
	memcpy(f->prices, r.plan.prices, sizeof f->prices);
	f->price_count = r.plan.price_count;
	return true;
}

/* --- as a model has it --- */

static const millis LEARNING = 7 * DAY;

struct modelling {
	struct figures *seen;
	millis begin; /* of what is counted */
};

static bool on_tick(void *user, const struct tick_view *v, struct error *e)
{
	const struct snapshot *s = v->snapshot;
	const struct modelling *m = user;

	(void)e;
	for (size_t i = 0; s->now > m->begin && i < s->fleet->pool_count; i++)
		add_tick(&m->seen[i], s->fleet, i,
			 &(struct tick_seen){ &s->pools[i], &v->plan->pools[i], s->interval });
	return true;
}

static size_t pool_named(const struct fleet_spec *fleet, const struct pool_spec *as)
{
	size_t i = 0;

	while (i < fleet->pool_count &&
	       (strcmp(fleet->pools[i].name, as->name) || strcmp(fleet->pools[i].namespace, as->namespace)))
		i++;
	return i;
}

/* The draws of one model. */
struct drawing {
	const struct simulation *simulation;
	millis begin;
	struct telling *telling;
	double from, until; /* of its progress */
};

static bool draw(void *user, size_t job, void *answer, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct drawing *d = user;
	struct simulation s = *d->simulation;
	struct modelling modelling = { answer, d->begin };
	const struct observer observer = { on_tick, &modelling };
	struct run_result result = { 0 };

	s.world.seed = draw_seed(s.world.seed, job);
	s.observers = &observer;
	s.observer_count = 1;
	return simulate(&s, &a, &result, e);
}

static const char *draw_name(void *user, size_t job)
{
	static char text[32];

	(void)user;
	snprintf(text, sizeof text, "draw %zu of the model", job + 1);
	return text;
}

static void draw_done(void *user, size_t count)
{
	const struct drawing *d = user;

	tell_progress(d->telling, d->from + (d->until - d->from) * (double)count / MODEL_DRAWS);
}

static double late_share(const struct figures *f)
{
	return f->requests > 0 ? f->late / f->requests * 100 : 0;
}

/* `drawn`: of one pool, `step` of them from one draw to the next. */
static struct figures mean_figures(const struct figures *drawn, size_t step)
{
	static const size_t means[] = { offsetof(struct figures, requests),  offsetof(struct figures, late),
					offsetof(struct figures, gpu_hours), offsetof(struct figures, dollars),
					offsetof(struct figures, starts),    offsetof(struct figures, node_ticks),
					offsetof(struct figures, ticks),     offsetof(struct figures, most_nodes),
					offsetof(struct figures, hours) };
	struct figures mean = { .draws = MODEL_DRAWS };

	for (size_t k = 0; k < MODEL_DRAWS; k++) {
		const struct figures *f = &drawn[k * step];

		mean.late_drawn[k] = late_share(f);
		for (size_t i = 0; i < sizeof means / sizeof *means; i++)
			*(double *)(void *)((char *)&mean + means[i]) +=
				*(const double *)(const void *)((const char *)f + means[i]) / MODEL_DRAWS;
	}
	return mean;
}

/* `place` says which pool of the fleet each one of the recorded manifest is. */
static bool model(struct replayed *w, const struct fleet_spec *fleet, const size_t *place, struct figures *out,
		  struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct world_spec spec;
	const struct trace **traces = arena_array(&a, const struct trace *, fleet->pool_count);
	size_t *recorded = arena_array(&a, size_t, fleet->pool_count);
	struct figures *drawn = arena_array(&a, struct figures, MODEL_DRAWS * fleet->pool_count);
	bool is_done[MODEL_DRAWS] = { false };
	bool is_first = fleet == &w->then->fleet;
	const struct recording_question q = {
		w->history, { w->first, w->range->to, w->rec.start }, &w->rec, fleet, recorded
	};
	struct simulation s = { .world = { fleet, &spec, traces, w->rec.start, w->rec.interval, 1, schedule_at } };
	struct drawing drawing = { &s, w->begin, w->telling, is_first ? ADDED_UNTIL : MODELLED_ONCE,
				   is_first ? MODELLED_ONCE : 1 };
	const struct workers workers = { .jobs = MODEL_DRAWS,
					 .answer_size = fleet->pool_count * sizeof *drawn,
					 .work = draw,
					 .name = draw_name,
					 .done = draw_done,
					 .user = &drawing };

	for (size_t i = 0; i < fleet->pool_count; i++)
		recorded[i] = RECORDING_NONE;
	for (size_t i = 0; i < w->then->fleet.pool_count; i++)
		recorded[place[i]] = w->pools[i];
	if (!recording_world(&q, traces, &a, &spec, e) || !replay_policy(w->history, &a, &s.policy, &s.setting, e) ||
	    !workers_run(&workers, drawn, is_done, e))
		return false;
	for (size_t i = 0; i < w->then->fleet.pool_count; i++)
		out[i] = mean_figures(&drawn[place[i]], fleet->pool_count);
	return true;
}

/* --- the comparison --- */

static double mean_nodes(const struct figures *f)
{
	return f->ticks > 0 ? f->node_ticks / f->ticks : 0;
}

#define MEMBER(member)                                      \
	static double get_##member(const struct figures *f) \
	{                                                   \
		return f->member;                           \
	}
MEMBER(requests)
MEMBER(late)
MEMBER(gpu_hours)
MEMBER(dollars)
MEMBER(starts)
MEMBER(most_nodes)
#undef MEMBER

static const struct figure_row {
	const char *name;
	double (*get)(const struct figures *f);
	int places;
} figure_rows[] = {
	{ "requests", get_requests, 0 },  { "late requests", get_late, 0 },	 { "late, %", late_share, 2 },
	{ "nodes, mean", mean_nodes, 2 }, { "nodes, most", get_most_nodes, 0 },	 { "GPU hours", get_gpu_hours, 1 },
	{ "dollars", get_dollars, 2 },	  { "machines started", get_starts, 0 },
};

/* Two ways to a price that are apart by no more of it agree. */
#define AGREES 0.1

/* A pool with its settings of then and with the others, and what each came to. */
struct compared {
	const struct pool_spec *then, *other;
	const struct figures *recorded, *same, *changed;
};

/* Percent of requests that may be late; below 0: the pool has no objective to meet. */
static double allowed(const struct pool_spec *p)
{
	return p->violation_cost || p->objective_late_ppm <= 0 ? -1 : (double)p->objective_late_ppm / 1e4;
}

/* What the shadows' price of an objective comes to over as many hours; below 0: they have none of it. */
static double by_shadows(const struct compared *c, const struct pool_spec *p)
{
	const struct figures *f = c->recorded;

	for (size_t i = 0; i < f->price_count; i++)
		if (f->prices[i].rule != ABSENT && f->prices[i].late_ppm == p->objective_late_ppm &&
		    !p->violation_cost && p->objective_wait == c->then->objective_wait && !p->is_unpriced)
			return (double)f->prices[i].dollars_per_hour / 1e6 * f->hours;
	return -1;
}

/* A figure of the settings, not of what came of them; what is below 0 is not there. */
static void add_of_settings(struct table *t, const struct compared *c, const char *name, int places, const double of[3])
{
	table_text(t, c->then->name);
	table_text(t, name);
	for (size_t i = 0; i < 3; i++)
		of[i] < 0 ? table_absent(t) : table_decimal(t, of[i], places);
	of[1] < 0 || of[2] < 0 ? table_absent(t) : table_decimal(t, of[2] - of[1], places);
}

/* Late in the draw where least was, or most; below 0: of no model. */
static double drawn_late(const struct figures *f, bool is_most)
{
	double best = f->draws ? f->late_drawn[0] : -1;

	for (size_t i = 1; i < f->draws; i++)
		if (is_most ? f->late_drawn[i] > best : f->late_drawn[i] < best)
			best = f->late_drawn[i];
	return best;
}

static void add_rows(struct table *t, const struct compared *c)
{
	for (size_t i = 0; i < sizeof figure_rows / sizeof *figure_rows; i++) {
		const struct figure_row *r = &figure_rows[i];

		if (c->then->is_unpriced && r->get == get_dollars)
			continue;
		table_text(t, c->then->name);
		table_text(t, r->name);
		table_decimal(t, r->get(c->recorded), r->places);
		table_decimal(t, r->get(c->same), r->places);
		table_decimal(t, r->get(c->changed), r->places);
		table_decimal(t, r->get(c->changed) - r->get(c->same), r->places);
	}
	add_of_settings(t, c, "late, %, least", 2,
			(const double[]){ -1, drawn_late(c->same, false), drawn_late(c->changed, false) });
	add_of_settings(t, c, "late, %, most", 2,
			(const double[]){ -1, drawn_late(c->same, true), drawn_late(c->changed, true) });
	add_of_settings(t, c, "late allowed, %", 3,
			(const double[]){ allowed(c->then), allowed(c->then), allowed(c->other) });
	add_of_settings(t, c, "dollars by shadows", 2,
			(const double[]){ -1, by_shadows(c, c->then), by_shadows(c, c->other) });
}

/* "met", or "met, 4/5" where the draws of a model do not all say so. */
static void add_met_word(struct table *t, const struct pool_spec *p, const struct figures *f)
{
	double most = allowed(p);
	size_t met = 0;
	char text[64];

	if (most < 0 || f->requests <= 0) {
		table_absent(t);
		return;
	}
	for (size_t i = 0; i < f->draws; i++)
		met += f->late_drawn[i] <= most;
	int len = snprintf(text, sizeof text, "%s", late_share(f) <= most ? "met" : "missed");
	if (met > 0 && met < f->draws)
		snprintf(text + len, sizeof text - (size_t)len, ", %zu/%zu", met, f->draws);
	table_text(t, text);
}

/* Was the objective met, and would it have been? For people; programs have the shares. */
static void add_met(struct table *t, const struct compared *c)
{
	table_text(t, c->then->name);
	table_text(t, "objective");
	add_met_word(t, c->then, c->recorded);
	add_met_word(t, c->then, c->same);
	add_met_word(t, c->other, c->changed);
	table_absent(t);
}

/* explain --full prices every objective too, by other means. */
static void print_price(const struct compared *c)
{
	double shadows = by_shadows(c, c->other), model = c->changed->dollars, apart = shadows - model;

	if (shadows < 0)
		return;
	printf("%s: explain --full prices this objective at %s,\n", c->then->name, human_dollars(shadows).text);
	if ((apart < 0 ? -apart : apart) <= AGREES * model)
		puts("which agrees with the model of this time.");
	else
		puts("which is not what the model has for this time: it is of all the record, the\n"
		     "past counting less and less, and without floors, limits, failed starts and\n"
		     "drains.");
}

static bool place_pools(const struct manifest *then, const struct manifest *other, size_t *same, size_t *place,
			struct error *e)
{
	for (size_t i = 0; i < then->fleet.pool_count; i++) {
		same[i] = i;
		place[i] = pool_named(&other->fleet, &then->fleet.pools[i]);
		if (place[i] == other->fleet.pool_count)
			return error_set(e, ERROR_INVALID,
					 "--with: it has no pool %s/%s, which the history has; give settings for the "
					 "same pools",
					 then->fleet.pools[i].namespace, then->fleet.pools[i].name);
	}
	return true;
}

struct comparison {
	struct compared *pools;
	size_t count;
};

/* What was asked for of the three figures of each pool; `place`: of the pool in the other manifest. */
static struct comparison compare_figures(const struct replayed *w, struct figures *const f[3], const size_t *place,
					 struct arena *a)
{
	const struct fleet_spec *then = &w->then->fleet, *other = &w->other->fleet;
	struct comparison c = { arena_array(a, struct compared, then->pool_count), 0 };

	for (size_t i = 0; i < then->pool_count; i++)
		if (w->range->pool == ANY || w->range->pool == (int64_t)w->pools[i])
			c.pools[c.count++] = (struct compared){ &then->pools[i], &other->pools[place[i]], &f[0][i],
								&f[1][i], &f[2][i] };
	return c;
}

static void print(const struct comparison *c, const char *output)
{
	static const struct table_column columns[] = {
		{ .name = "pool" },
		{ .name = "figure" },
		{ .name = "recorded", .is_right = true },
		{ .name = "model_same", .title = "SAME SETTINGS", .is_right = true },
		{ .name = "model_with", .title = "OTHER SETTINGS", .is_right = true },
		{ .name = "difference", .title = "CHANGE", .is_right = true },
	};
	bool is_for_programs = table_is_for_programs(table_format_of(output));
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < c->count; i++) {
		add_rows(t, &c->pools[i]);
		if (!is_for_programs)
			add_met(t, &c->pools[i]);
	}
	table_print(t, table_format_of(output), stdout);
	table_free(t);
	if (is_for_programs)
		return;
	puts("");
	for (size_t i = 0; i < c->count; i++)
		print_price(&c->pools[i]);
	puts("This is a model: the recorded arrivals, binned by tick, went through a model of\n"
	     "the recorded cluster with each manifest, both under the same five draws of\n"
	     "chance: figures are means of them, least and most their range, and \"met, 4/5\"\n"
	     "is met on the mean and in four of the five. Lengths of requests are means.\n"
	     "Judge the model by how close RECORDED and SAME SETTINGS are; CHANGE is between\n"
	     "the two models. Nodes are those of the pool's groups, all pools; GPU hours and\n"
	     "dollars are the pool's own, as billed tick by tick; machines started are those\n"
	     "that the plans requested.");
}

/* Both models see what came before, as far as it was under the same manifest: a policy that knows nothing yet would be
 * judged otherwise. */
static bool find_beginning(struct replayed *w, int64_t since, struct error *e)
{
	millis first_end;

	if (!history_tick_end(w->history, w->range->from, &first_end, e) ||
	    !history_tick_at(w->history, first_end - LEARNING, &w->first, e))
		return false;
	w->first = w->first > since ? w->first : since;
	w->begin = 0;
	return w->first == w->range->from || history_tick_end(w->history, w->range->from - 1, &w->begin, e);
}

/* One manifest for all of it, or there is no "same settings" to compare with. */
static bool find_pools(struct replayed *w, struct arena *a, struct error *e)
{
	struct history_stretch s;

	if (!history_stretch_at(w->history, w->range->from, a, &s, e))
		return false;
	if (s.until < w->range->to)
		return error_set(e, ERROR_INVALID,
				 "%s: its manifest changes at tick %lld; choose a stretch before or after it with "
				 "--from and --to",
				 history_path(w->history), (long long)s.until + 1);
	w->pools = s.pools;
	if (!find_beginning(w, s.from, e))
		return false;
	return s.pool_count == w->then->fleet.pool_count ||
	       error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions",
			 history_path(w->history));
}

static bool read_all_figures(const struct replayed *w, struct figures *f, struct error *e)
{
	size_t pools = w->then->fleet.pool_count;

	for (size_t i = 0; i < pools; i++) {
		tell_progress(w->telling, READ_UNTIL + (ADDED_UNTIL - READ_UNTIL) * (double)i / (double)pools);
		if (!read_figures(w, i, &f[i], e))
			return false;
	}
	return true;
}

static bool compare(struct replayed *w, struct arena *a, const char *output, struct error *e)
{
	size_t pools = w->then->fleet.pool_count;
	size_t *same = arena_array(a, size_t, pools), *place = arena_array(a, size_t, pools);
	struct figures *f[3];

	for (size_t i = 0; i < 3; i++)
		f[i] = arena_array(a, struct figures, pools);
	if (!find_pools(w, a, e) || !place_pools(w->then, w->other, same, place, e) ||
	    !recording_read(w->history, w->first, w->range->to, a, &w->rec, e))
		return false;
	if (!read_all_figures(w, f[0], e) || !model(w, &w->then->fleet, same, f[1], e) ||
	    !model(w, &w->other->fleet, place, f[2], e))
		return false;
	progress_end(&w->telling->shown);
	const struct comparison c = compare_figures(w, f, place, a);
	print(&c, output);
	return true;
}

/* Prints the comparison. */
static bool replay_with(struct history *h, const struct manifest *then, const struct manifest *other,
			const struct replay_range *range, const struct replay_telling *told, struct error *e)
{
	struct telling telling = { .as_lines = told->is_progress_told, .shown = progress_start("modelling", "%", 100) };
	struct replayed w = { .history = h, .then = then, .other = other, .range = range, .telling = &telling };
	struct arena a = { 0 };
	bool ok = compare(&w, &a, told->output, e);

	progress_end(&telling.shown);
	recording_release(&w.rec);
	arena_release(&a); /* the recording lies in it */
	return ok;
}

struct asked {
	struct history_args args;
	const char *from, *to, *with, *output;
	struct variation change;
	bool is_progress_told;
};

static bool fill_range(const struct asked *a, struct replay_range *range, struct error *e)
{
	const struct history_args *q = &a->args;

	*range = (struct replay_range){ q->span.first_tick, q->span.last_tick, q->pool_index };
	if (!history_args_ticks(q, a->from, a->to, &range->from, &range->to, e))
		return false;
	if (range->from > range->to)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to; %s has ticks %lld to %lld",
				 history_path(q->history), (long long)q->span.first_tick, (long long)q->span.last_tick);
	return true;
}

static bool compare_with(struct history_args *q, const struct asked *a, const struct replay_range *range,
			 struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest then, other;

	if (!history_args_manifest(q->history, range->from, &q->arena, &then, e))
		return false;
	other = then;
	if (a->with ? !manifest_load(&a->with, 1, &q->arena, &other, &findings, e)
		    : !variation_apply(&a->change, q->pool, &other, &q->arena, e))
		return false;
	return replay_with(q->history, &then, &other, range, &(struct replay_telling){ a->output, a->is_progress_told },
			   e);
}

static void print_values(const struct replay_field *f, millis offset, struct table *t)
{
	CLEANUP(buf_release) struct buf stored = { 0 }, now = { 0 };

	explain_value(f->field, f->stored, offset, &stored);
	explain_value(f->field, f->now, offset, &now);
	/* Two values that look alike to people are told in full. */
	if (!strcmp(stored.text, now.text)) {
		buf_printf(&stored, " (%lld)", (long long)f->stored);
		buf_printf(&now, " (%lld)", (long long)f->now);
	}
	table_text(t, f->of);
	table_text(t, f->field->name);
	table_text(t, stored.text);
	table_text(t, now.text);
}

static void print_difference(const struct history_args *q, const struct replay_outcome *o)
{
	static const struct table_column columns[] = {
		{ .name = "of" },
		{ .name = "field" },
		{ .name = "stored", .is_right = true },
		{ .name = "now", .is_right = true },
	};
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);

	explain_time(o->at, history_args_offset(q, o->at), &time);
	if (o->is_cut_short && !o->at)
		printf("First difference: tick %lld: %s\n", (long long)o->tick, o->what);
	else
		printf("First difference: tick %lld, pool %s, %s: %s\n", (long long)o->tick, pools[o->pool].name,
		       time.text, o->what);
	if (o->is_cut_short)
		printf("What the policy saw cannot be read from there on, so nothing after it was replayed.\n");
	if (!o->field_count)
		return;
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < o->field_count; i++)
		print_values(&o->fields[i], history_args_offset(q, o->at), t);
	table_print(t, TABLE_PLAIN, stdout);
	table_free(t);
	if (o->field_count == REPLAY_FIELDS_MAX)
		puts("... and perhaps more fields.");
}

static void put_first(const struct history_args *q, const struct replay_outcome *o, struct buf *out)
{
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);

	print_json_name("first", out);
	buf_printf(out, "{\"tick\":%lld,\"at\":", (long long)o->tick);
	if (o->at) {
		buf_text(out, "\"");
		explain_time_rfc3339(o->at, out);
		buf_text(out, "\"");
	} else {
		buf_text(out, "null");
	}
	print_json_text("pool", pools[o->pool].name, out);
	print_json_text("what", o->what, out);
	buf_text(out, ",\"fields\":[");
	for (size_t i = 0; i < o->field_count; i++) {
		buf_text(out, i ? ",{\"of\":" : "{\"of\":");
		json_write_text(o->fields[i].of, out);
		buf_printf(out, ",\"field\":\"%s\"", o->fields[i].field->name);
		print_json_number("stored", o->fields[i].stored, out);
		print_json_number("now", o->fields[i].now, out);
		buf_text(out, "}");
	}
	buf_text(out, "]}");
}

static void print_outcome(const struct asked *a, const struct replay_outcome *o)
{
	CLEANUP(print_tree_release) struct printed_tree answer = { 0 };
	struct buf *out = &answer.json;

	buf_printf(out, "{\"ticks\":%lld,\"differ\":%lld,\"cut_short\":%s", (long long)o->ticks,
		   (long long)o->differing, o->is_cut_short ? "true" : "false");
	if (o->what)
		put_first(&a->args, o, out);
	buf_text(out, "}\n");
	print_tree(&answer, a->output);
}

/* What the shares of these ticks decided, with what they saw, decided again. */
static bool replay_shares(struct history *h, const struct replay_range *range, struct arena *a, size_t *count,
			  size_t *differing, struct error *e)
{
	struct share_decisions rows;
	millis from, to;

	*count = *differing = 0;
	if (range->pool != ANY)
		return true;
	if (!history_tick_end(h, range->from, &from, e) || !history_tick_end(h, range->to, &to, e) ||
	    !share_decision_find(h, from, to, a, &rows, e))
		return false;
	*count = rows.count;
	for (size_t i = 0; i < rows.count; i++) {
		const struct share_decision *d = &rows.items[i];
		CLEANUP(buf_release) struct buf text = { 0 };
		struct share_view v;
		if (!share_view_read(d->view, a, &v, e))
			return error_wrap(e, "%s: share %s", history_path(h), d->share);
		const struct share_plan plan = share_decide(&v, a);
		share_plan_write(&v, &plan, &text);
		*differing += strcmp(text.text ? text.text : "", d->plan) != 0;
	}
	return true;
}

static bool replay(struct asked *a, bool *differs, struct error *e)
{
	struct history_args *q = &a->args;
	struct replay_range range;
	struct replay_outcome outcome;
	size_t shares, shares_differing;

	bool has_change = variation_is_any(&a->change);

	if (a->with && has_change)
		return error_set(
			e, ERROR_INVALID,
			"--with brings a whole manifest; give it without --objective, --violation-cost, --budget "
			"and --max");
	if (!history_args_open(q, e) || !fill_range(a, &range, e))
		return false;
	if (a->with || has_change)
		return compare_with(q, a, &range, e);
	if (!replay_fold(q->history, &range, &q->arena, &outcome, e) ||
	    !replay_shares(q->history, &range, &q->arena, &shares, &shares_differing, e))
		return false;
	*differs = outcome.differing > 0 || shares_differing > 0;
	if (print_is_for_programs(a->output)) {
		print_outcome(a, &outcome);
		return true;
	}
	printf("%lld ticks replayed, %lld %s\n", (long long)outcome.ticks, (long long)outcome.differing,
	       outcome.differing == 1 ? "differs" : "differ");
	if (shares)
		printf("%zu decisions of shares replayed, %zu %s\n", shares, shares_differing,
		       shares_differing == 1 ? "differs" : "differ");
	if (outcome.differing)
		print_difference(q, &outcome);
	return true;
}

static int run(int argc, char **argv)
{
	static const struct variation_names names = { "--objective", "--violation-cost", "--budget", "--max" };
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .output = "table", .change = { .names = &names } };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&a.args),
		{ "from", 0, OPTION_TEXT, "TIME", "compare from this time on; -2h counts from the end", &a.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "compare up to this time", &a.to, NULL },
		{ "with", 0, OPTION_TEXT, "FILE", "instead: model what this manifest would have done", &a.with, NULL },
		{ "objective", 0, OPTION_TEXT, "[POOL=]WAIT,SHARE", "instead: model another objective",
		  &a.change.objective, NULL },
		{ "violation-cost", 0, OPTION_TEXT, "[POOL=]DOLLARS", "likewise: dollars per late request",
		  &a.change.violation_cost, NULL },
		{ "budget", 0, OPTION_TEXT, "[POOL=]DOLLARS", "likewise: cost budget per hour", &a.change.budget,
		  NULL },
		{ "max", 0, OPTION_TEXT, "[POOL=]REPLICAS", "likewise: largest size, in replicas", &a.change.max,
		  NULL },
		{ "progress", 0, OPTION_FLAG, NULL,
		  "for programs: how far a model is, on standard error: {\"progress\":0.42}", &a.is_progress_told,
		  NULL },
		PRINT_OPTION(&a.output),
	};
	struct error e;
	int rest, code;
	bool differs = false;

	if (!command_options(&command_replay, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && replay(&a, &differs, &e);
	code = history_args_finish(&a.args, &command_replay, ok, &e);
	return ok && differs ? EXIT_FOUND : code;
}

const struct command command_replay = {
	.name = "replay",
	.usage = "replay [--db FILE] [--from TIME] [--to TIME] [--pool POOL] [--with FILE | --objective "
		 "[POOL=]WAIT,SHARE]",
	.summary = "Decide recorded ticks again and compare; or try other settings",
	.examples = "  preheat replay --db out/history.db\n"
		    "  preheat replay --from -2h --pool chat\n"
		    "  preheat replay --db out/history.db --with cheaper.yaml\n"
		    "  preheat replay --from -7d --objective llm/chat=2s,99.5%\n",
	.run = run,
};
