#include "controller/simulation/rivals/rival.h"

#include "base/buf.h"
#include "base/decimal.h"
#include "base/nearest.h"
#include "controller/simulation/rivals/fleet.h"

#include <assert.h>
#include <string.h>

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

	family->sweep(&s, scale);
	if (scale->has_lent) {
		s.only_stocked = s.uses_lent = true;
		s.suffix = ",lent=1";
		family->sweep(&s, scale);
		s.suffix = "";
	}
	if (scale->has_standby)
		sweep_stocks(&s, family, scale);
	*out = s.rows;
	return s.count;
}
