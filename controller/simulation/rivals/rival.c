#include "controller/simulation/rivals/rival.h"

#include "base/buf.h"
#include "base/quantity.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

/*
 * From the number of replicas that a rival wants to what happens in its node
 * groups: first what is fast (lent nodes where it uses them, stopped
 * machines, refills under way, free places), then new machines in order of
 * preference; away go the youngest starts first, then ready replicas of the
 * least preferred group. A group that refused is left alone for 5 minutes,
 * doubling to 30 (Cluster Autoscaler, initial and max node group backoff).
 */

/* What is remembered of one of the pool's groups. */
struct fleet_group {
	millis blocked_until, refused_at;
	int64_t refusals;
	int64_t refused_wakes; /* to be replaced by new machines */
	int64_t stopping;      /* of the draining replicas: their machine will be stopped */
	int64_t reclaimed;     /* lent nodes that serve now */
};

struct fleet_memory {
	struct fleet_group *groups; /* one per group of the pool */
};

struct fleet_order {
	const struct settings *settings;
	const struct fleet_spec *fleet;
	int64_t *nodes_free; /* per fleet group: nodes that may still be bought; what is asked for is taken off */
	const struct snapshot *snapshot;
	size_t pool;
};

static int64_t fleet_starting(const struct pool_snapshot *p);
static int64_t fleet_most(const struct fleet_spec *fleet, const struct pool_spec *pool);
static struct pool_plan fleet_plan(const struct fleet_order *o, struct fleet_memory *m, int64_t wanted,
				   struct arena *a);

static bool settings_parse(const char *who, const char *text, const struct setting_row *rows, size_t count,
			   struct settings *out, struct error *e);
static size_t sweep_settings(const struct family *family, const struct rival_scale *scale, struct arena *a,
			     const struct rival_setting **out);

struct rival {
	struct arena arena; /* holds the rival itself, too */
	const struct family *family;
	const struct fleet_spec *fleet;
	struct settings settings;
	void **memories;	     /* the family's, one per pool */
	struct fleet_memory *fleets; /* one per pool */
};

/* One rival at work on a fleet. */
static struct rival *rival_open(const struct family *family, const struct fleet_spec *fleet, const char *setting,
				struct error *e)
{
	struct arena arena = { 0 };
	struct settings settings;

	if (family->has_no_default && !*setting)
		return error_set(e, ERROR_INVALID, "%s has no default; write %s:%s=N (%s)", family->name, family->name,
				 family->rows[0].key, family->rows[0].help),
		       NULL;
	if (!settings_parse(family->name, setting, family->rows, family->row_count, &settings, e))
		return NULL;
	struct rival *r = arena_new(&arena, struct rival);
	*r = (struct rival){ .family = family, .fleet = fleet, .settings = settings };
	r->memories = arena_array(&arena, void *, fleet->pool_count);
	r->fleets = arena_array(&arena, struct fleet_memory, fleet->pool_count);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		r->memories[i] = arena_alloc(&arena, 1, family->memory_size);
		r->fleets[i].groups = arena_array(&arena, struct fleet_group, fleet->pools[i].group_count);
	}
	r->arena = arena;
	return r;
}

/* takes NULL */
static void rival_close(struct rival *r)
{
	if (!r)
		return;
	struct arena arena = r->arena;
	arena_release(&arena);
}

static int64_t wanted(struct rival *r, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *p = &s->pools[pool];

	if (!p->scrape_count)
		return -1;
	const struct scrape_input *last = &p->scrapes[p->scrape_count - 1];
	struct sight v = { .spec = &r->fleet->pools[pool],
			   .now = s->now,
			   .interval = s->interval,
			   .scrapes = p->scrapes,
			   .scrape_count = p->scrape_count,
			   .slots = (double)r->fleet->pools[pool].max_sequences,
			   .running = last->running,
			   .waiting = last->waiting,
			   .ready = p->input.ready,
			   .starting = fleet_starting(p),
			   .most = fleet_most(r->fleet, &r->fleet->pools[pool]) };
	return r->family->want(r->memories[pool], &r->settings, &v);
}

static int64_t *nodes_free(const struct rival *r, const struct snapshot *s, struct arena *a)
{
	int64_t *free = arena_array(a, int64_t, r->fleet->group_count);

	for (size_t p = 0; p < r->fleet->pool_count; p++) {
		const struct pool_spec *spec = &r->fleet->pools[p];

		for (size_t g = 0; g < spec->group_count; g++) {
			int64_t left = r->fleet->groups[spec->groups[g]].max_nodes - s->pools[p].groups[g].nodes;

			free[spec->groups[g]] = left > 0 ? left : 0;
		}
	}
	return free;
}

static struct plan rival_decide(struct rival *r, const struct snapshot *s, struct arena *a)
{
	struct plan plan = { .pools = arena_array(a, struct pool_plan, r->fleet->pool_count),
			     .pool_count = r->fleet->pool_count };
	struct fleet_order order = {
		.settings = &r->settings, .fleet = r->fleet, .nodes_free = nodes_free(r, s, a), .snapshot = s
	};

	for (order.pool = 0; order.pool < plan.pool_count; order.pool++)
		plan.pools[order.pool] = fleet_plan(&order, &r->fleets[order.pool], wanted(r, s, order.pool), a);
	return plan;
}

/* One set of functions a family: a row in list.def makes it. */
#define RIVAL(name, help)                                                                              \
	static void *open_##name(const struct fleet_spec *fleet, const char *setting, struct error *e) \
	{                                                                                              \
		return rival_open(&family_##name, fleet, setting, e);                                  \
	}
#include "controller/simulation/rivals/list.def"
#undef RIVAL

static void close_rival(void *state)
{
	rival_close(state);
}

static struct plan decide(void *state, const struct snapshot *s, struct arena *a)
{
	return rival_decide(state, s, a);
}

#define RIVAL(name, help) { #name, help, open_##name, close_rival, decide },
static const struct policy_ops policies[] = {
#include "controller/simulation/rivals/list.def"
};
#undef RIVAL

#define RIVAL(name, help) &family_##name,
static const struct family *const families[] = {
#include "controller/simulation/rivals/list.def"
};
#undef RIVAL

size_t rival_count(void)
{
	return sizeof policies / sizeof *policies;
}

const struct policy_ops *rival_at(size_t index)
{
	return &policies[index];
}

const struct policy_ops *rival_find(const char *name)
{
	for (size_t i = 0; i < rival_count(); i++)
		if (!strcmp(policies[i].name, name))
			return &policies[i];
	return NULL;
}

size_t rival_settings(const struct policy_ops *rival, const struct rival_scale *scale, struct arena *a,
		      const struct rival_setting **out)
{
	for (size_t i = 0; i < rival_count(); i++)
		if (rival == &policies[i])
			return sweep_settings(families[i], scale, a, out);
	return 0;
}

enum { KEY_LENGTH = 32 };

static const struct setting_row common[] = {
	{ "pool", 0, 0, 100000, "static:N or total:N; stopped machines kept, or running and stopped together" },
	{ "lent", 0, 0, 1, "1 takes lent nodes first and gives them back first" },
};
enum { COMMON_COUNT = sizeof common / sizeof *common };

static bool parse_number(const char *text, size_t len, double *out)
{
	int64_t millionths;

	if (decimal_parse(text, len, 6, &millionths) != DECIMAL_OK)
		return false;
	*out = (double)millionths / 1e6;
	return true;
}

static bool unknown_key(const char *who, const char *key, const struct setting_row *rows, size_t count, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { 0 };
	const char *names[SETTINGS_MAX + COMMON_COUNT];

	for (size_t i = 0; i < count + COMMON_COUNT; i++) {
		names[i] = i < count ? rows[i].key : common[i - count].key;
		buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	}
	const char *near = nearest_name(key, names, count + COMMON_COUNT);
	return error_set(e, ERROR_INVALID, "%s has no setting \"%s\"%s%s%s; it has %s", who, key,
			 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", known.text);
}

static bool parse_stock(const char *who, const char *text, size_t len, struct settings *out, struct error *e)
{
	static const struct {
		const char *prefix;
		enum stock_kind kind;
	} kinds[] = { { "static:", STOCK_STATIC }, { "total:", STOCK_TOTAL } };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		size_t skip = strlen(kinds[i].prefix);

		if (len > skip && !strncmp(text, kinds[i].prefix, skip) &&
		    parse_number(text + skip, len - skip, &out->stock_size) && out->stock_size <= common[0].most) {
			out->stock = kinds[i].kind;
			return true;
		}
	}
	return error_set(e, ERROR_INVALID, "%s: pool=%.*s is not allowed; pool is static:N or total:N, N replicas", who,
			 (int)(len < 40 ? len : 40), text);
}

/* The row's number, counted through the rival's own rows and then the common ones. */
static bool find_row(const char *key, const struct setting_row *rows, size_t count, size_t *index)
{
	for (size_t i = 0; i < count + COMMON_COUNT; i++) {
		if (!strcmp(i < count ? rows[i].key : common[i - count].key, key)) {
			*index = i;
			return true;
		}
	}
	return false;
}

static bool store(const char *who, const struct setting_row *row, const char *text, size_t len, double *out,
		  struct error *e)
{
	double value;

	if (!parse_number(text, len, &value) || value < row->least || value > row->most)
		return error_set(e, ERROR_INVALID, "%s: %s=%.*s is not allowed; %s is a number from %g to %g (%s)", who,
				 row->key, (int)(len < 40 ? len : 40), text, row->key, row->least, row->most,
				 row->help);
	*out = value;
	return true;
}

struct pair {
	char key[KEY_LENGTH];
	const char *value;
	size_t value_len;
};

static bool split_pair(const char *who, const char *text, size_t len, struct pair *out, struct error *e)
{
	const char *equals = memchr(text, '=', len);
	size_t key_len = equals ? (size_t)(equals - text) : 0;

	if (!key_len || key_len >= sizeof out->key)
		return error_set(e, ERROR_INVALID, "%s: \"%.*s\" is not a setting; write KEY=NUMBER,KEY=NUMBER", who,
				 (int)(len < 40 ? len : 40), text);
	memcpy(out->key, text, key_len);
	out->key[key_len] = '\0';
	out->value = equals + 1;
	out->value_len = len - key_len - 1;
	return true;
}

/* Unknown keys, keys given twice and values out of range are errors that say what is allowed.
 * `who` names the rival in them. */
static bool settings_parse(const char *who, const char *text, const struct setting_row *rows, size_t count,
			   struct settings *out, struct error *e)
{
	struct settings read = { 0 };
	unsigned seen = 0;
	double lent = 0;

	for (size_t i = 0; i < count; i++)
		read.values[i] = rows[i].fallback;
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, ","), index;
		struct pair p;

		if (!split_pair(who, at, len, &p, e))
			return false;
		if (!find_row(p.key, rows, count, &index))
			return unknown_key(who, p.key, rows, count, e);
		if (seen & 1U << index)
			return error_set(e, ERROR_INVALID, "%s: %s is given twice; give it once", who, p.key);
		seen |= 1U << index;
		bool ok = index < count	   ? store(who, &rows[index], p.value, p.value_len, &read.values[index], e)
			  : index == count ? parse_stock(who, p.value, p.value_len, &read, e)
					   : store(who, &common[1], p.value, p.value_len, &lent, e);
		if (!ok)
			return false;
		at += len + (at[len] == ',');
	}
	read.uses_lent = lent >= 1;
	*out = read;
	return true;
}

/* Which settings are compared: a family's own, and some of them with stocks of stopped machines. */

enum { SWEEP_MOST = 4096 };

struct sweep {
	struct arena *arena;
	struct rival_setting *rows;
	size_t count;
	const char *suffix; /* appended to each setting */
	bool only_stocked, uses_standby, uses_lent, has_no_default;
};

void sweep_add(struct sweep *s, bool is_stocked, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list ap;

	if (s->only_stocked && !is_stocked)
		return;
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	buf_text(&text, s->suffix);
	assert(s->count < SWEEP_MOST);
	s->rows[s->count] = (struct rival_setting){ .text = arena_strdup(s->arena, text.text, text.len),
						    .is_default = s->count == 0 && !s->has_no_default,
						    .uses_standby = s->uses_standby,
						    .uses_lent = s->uses_lent };
	s->count++;
}

/* One stock size with every stocked setting; the size of the one before is not repeated. */
static int64_t sweep_stock(struct sweep *s, const struct family *family, const struct rival_scale *scale,
			   const char *kind, double size)
{
	CLEANUP(buf_release) struct buf suffix = { 0 };

	buf_printf(&suffix, ",pool=%s:%lld%s", kind, (long long)whole_above(size), scale->has_lent ? ",lent=1" : "");
	s->suffix = suffix.text;
	family->sweep(s, scale);
	s->suffix = "";
	return whole_above(size);
}

static void sweep_stocks(struct sweep *s, const struct family *family, const struct rival_scale *scale)
{
	static const double of_mean[] = { 0.1, 0.2, 0.4, 0.8, 1.5 }, of_peak[] = { 0.7, 0.9, 1.1, 1.4 };
	int64_t last = 0;

	s->only_stocked = s->uses_standby = true;
	s->uses_lent = scale->has_lent;
	for (size_t i = 0; i < sizeof of_mean / sizeof *of_mean; i++)
		if (whole_above(of_mean[i] * scale->mean) != last)
			last = sweep_stock(s, family, scale, "static", of_mean[i] * scale->mean);
	last = 0;
	for (size_t i = 0; i < sizeof of_peak / sizeof *of_peak; i++)
		if (whole_above(of_peak[i] * scale->peak) != last)
			last = sweep_stock(s, family, scale, "total", of_peak[i] * scale->peak);
}

static size_t sweep_settings(const struct family *family, const struct rival_scale *scale, struct arena *a,
			     const struct rival_setting **out)
{
	struct sweep s = { .arena = a,
			   .rows = arena_array(a, struct rival_setting, SWEEP_MOST),
			   .suffix = "",
			   .has_no_default = family->has_no_default };

	*out = s.rows;
	if (!family->sweep)
		return 0;
	family->sweep(&s, scale);
	if (scale->has_lent) {
		s.only_stocked = s.uses_lent = true;
		s.suffix = ",lent=1";
		family->sweep(&s, scale);
		s.suffix = "";
	}
	if (scale->has_standby)
		sweep_stocks(&s, family, scale);
	return s.count;
}

static const millis BACKOFF_FIRST = 5 * MINUTE, BACKOFF_MOST = 30 * MINUTE, BACKOFF_RESET = 3 * HOUR;
/* Everyone's fleet fills up first: nobody judges a pool whose first requests have not finished yet. */
static const millis SETTLE = 5 * MINUTE;

/* One decision while it is made. */
struct draft {
	const struct fleet_order *order;
	const struct pool_spec *spec;
	const struct pool_snapshot *pool;
	struct fleet_group *memory;
	struct group_decision *groups;
	int64_t *starting, *refilling; /* per group, as the snapshot shows them */
	enum limit held_by;
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t not_below_zero(int64_t n)
{
	return n > 0 ? n : 0;
}

static const struct group_spec *group_of(const struct draft *d, size_t g)
{
	return &d->order->fleet->groups[d->spec->groups[g]];
}

static int64_t per_node(const struct draft *d, size_t g)
{
	return replicas_per_node(group_of(d, g), d->spec);
}

/* Replicas on their way to serve: all starts but refills. */
static int64_t fleet_starting(const struct pool_snapshot *p)
{
	int64_t starting = 0;

	for (size_t i = 0; i < p->start_count; i++)
		if (p->starts[i].kind != START_REFILL)
			starting += p->starts[i].count;
	return starting;
}

/* Replicas that the pool's node groups can hold. */
static int64_t fleet_most(const struct fleet_spec *fleet, const struct pool_spec *pool)
{
	int64_t most = 0;

	for (size_t g = 0; g < pool->group_count; g++) {
		const struct group_spec *group = &fleet->groups[pool->groups[g]];

		most += group->max_nodes * replicas_per_node(group, pool);
	}
	return most;
}

static void note_refusal(struct fleet_group *m, millis now, int64_t kind, int64_t count)
{
	if (kind == START_WAKE) {
		m->refused_wakes += count;
		return;
	}
	if (m->refusals && now - m->refused_at > BACKOFF_RESET)
		m->refusals = 0;
	m->refused_at = now;
	if (m->blocked_until > now)
		return;
	millis wait = BACKOFF_FIRST << (m->refusals < 3 ? m->refusals : 3);
	m->blocked_until = now + (wait < BACKOFF_MOST ? wait : BACKOFF_MOST);
	m->refusals++;
}

static void take_notice(struct draft *d)
{
	for (size_t i = 0; i < d->pool->event_count; i++) {
		const struct event_input *e = &d->pool->events[i];

		if (e->what == EVENT_REFUSED)
			note_refusal(&d->memory[e->group], d->order->snapshot->now, e->kind, e->count);
	}
	for (size_t i = 0; i < d->pool->start_count; i++) {
		const struct start_input *s = &d->pool->starts[i];

		*(s->kind == START_REFILL ? &d->refilling[s->group] : &d->starting[s->group]) += s->count;
	}
	for (size_t g = 0; g < d->spec->group_count; g++) {
		d->memory[g].stopping = smaller(d->memory[g].stopping, d->pool->groups[g].draining);
		d->groups[g].nodes = d->pool->groups[g].nodes;
	}
}

static bool is_blocked(const struct draft *d, size_t g)
{
	return d->memory[g].blocked_until > d->order->snapshot->now;
}

/* New machines for up to `replicas`; what was asked for. */
static int64_t buy(struct draft *d, size_t g, int64_t replicas, int64_t *ask)
{
	int64_t *free = &d->order->nodes_free[d->spec->groups[g]], each = per_node(d, g);

	if (replicas <= 0 || !each)
		return 0;
	if (is_blocked(d, g)) {
		d->held_by = LIMIT_STOCKOUT;
		return 0;
	}
	int64_t bought = smaller(replicas, *free * each);
	*free -= (bought + each - 1) / each;
	*ask += bought;
	return bought;
}

/* Nodes that the manifest's min asks for are bought whatever the rival wants. */
static int64_t buy_least(struct draft *d)
{
	int64_t bought = 0;

	for (size_t g = 0; g < d->spec->group_count; g++) {
		int64_t missing = group_of(d, g)->min_nodes - d->pool->groups[g].nodes;

		bought += buy(d, g, missing * per_node(d, g), &d->groups[g].cold);
	}
	return bought;
}

static int64_t take(int64_t *missing, int64_t available, int64_t *ask)
{
	int64_t taken = not_below_zero(smaller(*missing, available));

	*missing -= taken;
	*ask += taken;
	return taken;
}

/* A woken machine counts among the running ones again, so it needs a place below the manifest's max. */
static void wake(struct draft *d, size_t g, int64_t *missing)
{
	int64_t *free = &d->order->nodes_free[d->spec->groups[g]], each = per_node(d, g);
	int64_t woken = take(missing, smaller(d->pool->groups[g].standby, *free * each), &d->groups[g].wake);

	*free -= each ? (woken + each - 1) / each : 0;
}

static void grow_fast(struct draft *d, int64_t *missing)
{
	size_t count = d->spec->group_count;

	for (size_t g = 0; g < count && d->order->settings->uses_lent; g++)
		d->memory[g].reclaimed += take(missing, d->pool->groups[g].lent, &d->groups[g].reclaim);
	for (size_t g = 0; g < count; g++) {
		int64_t held_back = smaller(d->memory[g].refused_wakes, *missing);

		/* As many as were refused are bought instead; the next ones are tried again. */
		d->memory[g].refused_wakes = 0;
		*missing -= held_back;
		wake(d, g, missing);
		*missing += held_back;
	}
	for (size_t g = 0; g < count; g++)
		take(missing, d->refilling[g], &d->groups[g].adopt_refill);
	for (size_t g = 0; g < count; g++)
		take(missing, d->pool->groups[g].free_places, &d->groups[g].place);
}

static void grow(struct draft *d, int64_t missing)
{
	grow_fast(d, &missing);
	for (size_t g = 0; g < d->spec->group_count && missing; g++)
		missing -= buy(d, g, missing, &d->groups[g].cold);
	if (missing && d->held_by == LIMIT_NONE)
		d->held_by = LIMIT_MAX;
	else if (!missing)
		d->held_by = LIMIT_NONE;
}

/* Replicas that may go from a group without passing the manifest's min. */
static int64_t may_go(const struct draft *d, size_t g)
{
	const struct group_decision *a = &d->groups[g];
	int64_t gone = a->cancel_cold + a->cancel_wake + a->cancel_reclaim + a->release;

	return not_below_zero((a->nodes - group_of(d, g)->min_nodes) * per_node(d, g) - gone);
}

static int64_t cancel(struct draft *d, int64_t excess)
{
	static const size_t offsets[START_KIND_COUNT] = {
		[START_COLD] = offsetof(struct group_decision, cancel_cold),
		[START_WAKE] = offsetof(struct group_decision, cancel_wake),
		[START_RECLAIM] = offsetof(struct group_decision, cancel_reclaim),
	};

	for (size_t i = d->pool->start_count; i-- > 0 && excess;) {
		const struct start_input *s = &d->pool->starts[i];
		struct group_decision *a = &d->groups[s->group];

		/* No order cancels a replica that only waits for its place on a running node. */
		if (s->kind == START_REFILL || s->kind == START_PLACE)
			continue;
		int64_t gone = smaller(excess, smaller(s->count, may_go(d, (size_t)s->group)));
		*(int64_t *)((char *)a + offsets[s->kind]) += gone;
		if (s->kind == START_RECLAIM)
			d->memory[s->group].reclaimed -= smaller(gone, d->memory[s->group].reclaimed);
		excess -= gone;
	}
	return excess;
}

static int64_t release(struct draft *d, int64_t excess)
{
	for (size_t g = d->spec->group_count; g-- > 0 && excess;) {
		struct group_decision *a = &d->groups[g];
		int64_t gone = smaller(excess, smaller(d->pool->groups[g].ready, may_go(d, g)));

		a->release = gone;
		a->give_back = smaller(gone, d->memory[g].reclaimed);
		d->memory[g].reclaimed -= a->give_back;
		excess -= gone;
	}
	return excess;
}

static void shrink(struct draft *d, int64_t excess)
{
	if (d->order->snapshot->tick * d->order->snapshot->interval < SETTLE)
		d->held_by = LIMIT_COOLDOWN;
	else if (release(d, cancel(d, excess)))
		d->held_by = LIMIT_MIN;
}

static int64_t stock_wanted(const struct settings *s, int64_t hot)
{
	switch (s->stock) {
	case STOCK_NONE:
		return 0;
	case STOCK_STATIC:
		return whole_above(s->stock_size);
	case STOCK_TOTAL:
		return not_below_zero(whole_above(s->stock_size) - hot);
	}
	return 0;
}

/* Stopped machines that a group will have when everything asked for has come. */
static int64_t stocked(const struct draft *d, size_t g)
{
	const struct group_decision *a = &d->groups[g];

	return d->pool->groups[g].standby - a->wake + a->cancel_wake + d->refilling[g] - a->adopt_refill + a->refill -
	       a->cancel_refill - a->delete_standby + d->memory[g].stopping;
}

static void discard(struct draft *d, int64_t excess)
{
	for (size_t g = d->spec->group_count; g-- > 0 && excess > 0;) {
		struct group_decision *a = &d->groups[g];

		take(&excess, d->refilling[g] - a->adopt_refill, &a->cancel_refill);
		take(&excess, d->pool->groups[g].standby - a->wake, &a->delete_standby);
	}
}

/* Released machines fill the stock; then the excess is deleted, or what misses is bought at once. */
static void keep_stock(struct draft *d, int64_t hot)
{
	int64_t missing = stock_wanted(d->order->settings, hot);

	for (size_t g = 0; g < d->spec->group_count; g++)
		missing -= stocked(d, g);
	for (size_t g = 0; g < d->spec->group_count && missing > 0; g++) {
		struct group_decision *a = &d->groups[g];
		int64_t room = group_of(d, g)->standby_max_nodes * per_node(d, g) - stocked(d, g);
		int64_t kept = take(&missing, smaller(room, a->release - a->give_back), &a->stop);

		d->memory[g].stopping += kept;
		missing -= buy(d, g, not_below_zero(smaller(missing, room - kept)), &a->refill);
	}
	discard(d, -missing);
}

static void sum_up(struct draft *d, struct pool_decision *out)
{
	const struct scrape_input *last = d->pool->scrapes + d->pool->scrape_count - 1;

	for (size_t i = 0; i < d->pool->scrape_count; i++) {
		const struct scrape_input *s = &d->pool->scrapes[i];

		out->running_milli += (s->running + s->running_draining) * 1000 / (int64_t)d->pool->scrape_count;
		out->waiting_milli += s->waiting * 1000 / (int64_t)d->pool->scrape_count;
		out->started += s->started != ABSENT ? s->started : 0;
		out->late += s->late != ABSENT ? s->late : 0;
	}
	if (d->pool->scrape_count)
		out->waiting_now = last->waiting;
	out->signals = d->pool->scrape_count ? SIGNALS_FRESH : SIGNALS_GONE;
	out->slots_milli = d->spec->max_sequences * 1000;
	out->objective_ppm = d->spec->objective_late_ppm;
	out->rule = ABSENT;
	out->ready = d->pool->input.ready;
	out->draining = d->pool->input.draining;
	out->lent = d->pool->input.lent;
	for (size_t g = 0; g < d->spec->group_count; g++) {
		out->on_the_way += d->starting[g];
		out->standby += d->pool->groups[g].standby;
		out->refilling += d->refilling[g];
	}
}

/* Nodes after the plan, what they cost, and the reason at each group. */
static void price(struct draft *d, struct pool_decision *out)
{
	for (size_t g = 0; g < d->spec->group_count; g++) {
		const struct group_spec *group = group_of(d, g);
		struct group_decision *a = &d->groups[g];
		int64_t each = per_node(d, g) ? per_node(d, g) : 1;
		int64_t more = a->cold + a->wake + a->refill + a->reclaim;
		int64_t fewer = a->cancel_cold + a->cancel_wake + a->cancel_refill + a->cancel_reclaim + a->release;
		int64_t replicas = d->pool->groups[g].ready + d->pool->groups[g].draining + d->starting[g] +
				   d->refilling[g] + more + a->place - (fewer - a->release);

		a->nodes_desired = a->nodes + (more + each - 1) / each - fewer / each;
		a->blocked_until = is_blocked(d, g) ? d->memory[g].blocked_until : 0;
		a->refusals = d->memory[g].refusals;
		a->held_by = is_blocked(d, g) ? LIMIT_STOCKOUT : LIMIT_NONE;
		out->dollars_per_hour += group->price_per_hour * replicas / each +
					 group->price_per_hour / 1000 * group->standby_price_ppm / 1000 *
						 d->pool->groups[g].standby / each;
	}
}

static void fleet_decide(struct draft *d, int64_t have, int64_t wanted)
{
	int64_t least = buy_least(d);

	d->held_by = LIMIT_NONE;
	if (wanted > have + least)
		grow(d, wanted - have - least);
	else if (wanted < have)
		shrink(d, have - wanted);
	keep_stock(d, wanted);
}

/* `wanted` < 0: no reading came, all stays. */
static struct pool_plan fleet_plan(const struct fleet_order *o, struct fleet_memory *m, int64_t wanted, struct arena *a)
{
	const struct pool_spec *spec = &o->fleet->pools[o->pool];
	size_t count = spec->group_count;
	struct draft d = { .order = o,
			   .spec = spec,
			   .pool = &o->snapshot->pools[o->pool],
			   .memory = m->groups,
			   .groups = arena_array(a, struct group_decision, count),
			   .starting = arena_array(a, int64_t, count),
			   .refilling = arena_array(a, int64_t, count) };
	struct pool_plan out = { .groups = d.groups, .group_count = count };
	struct pool_decision *decision = &out.decision;

	take_notice(&d);
	sum_up(&d, decision);
	int64_t have = decision->ready + decision->on_the_way;
	decision->wished = wanted < 0 ? have : wanted;
	if (spec->mode != MODE_ACT)
		d.held_by = spec->mode == MODE_OBSERVE ? LIMIT_OBSERVE : LIMIT_PAUSED;
	else if (wanted < 0)
		d.held_by = LIMIT_STALE;
	else
		fleet_decide(&d, have, wanted);
	decision->held_by = d.held_by;
	decision->decided = have;
	for (size_t g = 0; g < count; g++) {
		const struct group_decision *x = &d.groups[g];

		decision->decided += x->cold + x->wake + x->reclaim + x->place + x->adopt_refill - x->cancel_cold -
				     x->cancel_wake - x->cancel_reclaim - x->release;
	}
	price(&d, decision);
	return out;
}
