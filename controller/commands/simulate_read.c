#include "controller/commands/simulate_plan.h"

#include "base/text.h"
#include "controller/commands/compare.h"
#include "controller/simulation/files/world_file.h"
#include "controller/simulation/rivals/rival.h"

#include <stdio.h>
#include <string.h>

/* Monday, 2024-01-01, 00:00 UTC: what second 0 of a trace is when nobody says. */
static const millis default_start = INT64_C(1704067200000);

static void pool_names(const struct fleet_spec *fleet, struct buf *out)
{
	for (size_t i = 0; i < fleet->pool_count; i++)
		buf_printf(out, i ? ", %s" : "%s", fleet->pools[i].name);
}

static bool read_manifest(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };

	if (!o->pools.count && o->recording)
		return true;
	if (!o->pools.count)
		return error_set(e, ERROR_INVALID, "no pool: name its manifest with --pool FILE");
	return manifest_load(o->pools.items, o->pools.count, &in->arena, &in->manifest, &f, e);
}

/* "POOL=FILE"; a plain FILE is for the only pool that there is. */
static bool split_trace(const struct fleet_spec *fleet, const char *text, size_t *pool, const char **path,
			struct error *e)
{
	CLEANUP(buf_release) struct buf names = { 0 };
	const char *equals = strchr(text, '='), *slash = strchr(text, '/');
	char room[QUOTE_ROOM];

	pool_names(fleet, &names);
	if (!equals || (slash && slash < equals)) {
		*pool = 0;
		*path = text;
		return fleet->pool_count == 1 ||
		       error_set(e, ERROR_INVALID, "--trace %s: say whose traffic it is, POOL=FILE; pools: %s",
				 quote(room, text, strlen(text)), names.text);
	}
	*path = equals + 1;
	for (*pool = 0; *pool < fleet->pool_count; ++*pool) {
		const char *name = fleet->pools[*pool].name;
		if (strlen(name) == (size_t)(equals - text) && !strncmp(name, text, strlen(name)))
			return true;
	}
	return error_set(e, ERROR_INVALID, "--trace: no pool is called %s; pools: %s",
			 quote(room, text, (size_t)(equals - text)), names.text);
}

static bool scale_trace(const struct simulate_options *o, struct trace *t, struct error *e)
{
	struct trace scaled = { 0 };

	if (o->scale == 1)
		return true;
	if (!trace_scale(t, (struct trace_scaling){ .k = o->scale, .jitter = o->jitter, .seed = (uint64_t)o->seed },
			 &scaled, e))
		return error_wrap(e, "--scale");
	trace_release(t);
	*t = scaled;
	return true;
}

static bool read_trace(const struct simulate_options *o, const char *text, struct simulate_inputs *in, struct error *e)
{
	const struct fleet_spec *fleet = &in->manifest.fleet;
	const char *path;
	size_t pool;

	if (!split_trace(fleet, text, &pool, &path, e))
		return false;
	if (in->given[pool])
		return error_set(e, ERROR_INVALID, "--trace: pool %s has its traffic already; give each pool one",
				 fleet->pools[pool].name);
	if (!trace_read(path, &in->traces[pool], e) || !scale_trace(o, &in->traces[pool], e))
		return false;
	in->given[pool] = &in->traces[pool];
	if (in->traces[pool].length > in->length)
		in->length = in->traces[pool].length;
	return true;
}

static bool scale_recording(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	for (size_t i = 0; i < in->manifest.fleet.pool_count; i++)
		if (in->given[i] && !scale_trace(o, &in->traces[i], e))
			return false;
	return true;
}

static bool read_traces(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	size_t pools = in->manifest.fleet.pool_count;

	if (o->recording && o->traces.count)
		return error_set(e, ERROR_INVALID, "--recording stands in place of --trace; give one of them");
	if (o->recording)
		return simulate_read_recording(o, in, e) && scale_recording(o, in, e);
	in->traces = arena_array(&in->arena, struct trace, pools);
	in->given = arena_array(&in->arena, const struct trace *, pools);
	if (!o->traces.count)
		return error_set(e, ERROR_INVALID,
				 "no traffic: name a trace with --trace [POOL=]FILE; "
				 "preheat generate makes one up");
	for (size_t i = 0; i < o->traces.count; i++)
		if (!read_trace(o, o->traces.items[i], in, e))
			return false;
	if (!in->length)
		return error_set(e, ERROR_INVALID, "--trace: nothing to simulate, the traffic lasts 0 s");
	return true;
}

static bool find_policy(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	const char *colon = strchr(o->policy, ':');
	size_t len = colon ? (size_t)(colon - o->policy) : strlen(o->policy);
	const char *name = arena_strdup(&in->arena, o->policy, len);
	CLEANUP(buf_release) struct buf names = { 0 };
	char room[QUOTE_ROOM];

	in->setting = colon ? colon + 1 : "";
	in->policy = strcmp(name, policy_preheat.name) ? rival_find(name) : &policy_preheat;
	if (in->policy)
		return true;
	if (!strcmp(name, "oracle"))
		return error_set(
			e, ERROR_INVALID,
			"--policy oracle: it knows the future, so it is a bound and not a policy; --compare shows it");
	buf_text(&names, policy_preheat.name);
	for (size_t i = 0; i < rival_count(); i++)
		buf_printf(&names, ", %s", rival_at(i)->name);
	return error_set(e, ERROR_INVALID, "--policy: no policy is called %s; there are: %s", quote(room, name, len),
			 names.text);
}

static bool check_times(const struct simulate_options *o, const struct simulate_inputs *in, struct error *e)
{
	if (o->tick < SECOND || o->tick > 10 * MINUTE || o->tick % SECOND)
		return error_set(e, ERROR_INVALID, "--tick: found %.3f s; allowed: whole seconds from 1s to 10m",
				 (double)o->tick / 1000);
	if (o->warm_up < in->length)
		return true;
	return error_set(e, ERROR_INVALID,
			 "--warm-up: %.0f s leave nothing to score, the traffic lasts %.0f s; make it shorter",
			 (double)o->warm_up / 1000, (double)in->length / 1000);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The same for equal results: without the folder that they go to. */
static void describe(const struct simulate_options *o, struct simulate_inputs *in)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(buf_release) struct buf traffic = { 0 };

	if (o->recording) {
		buf_printf(&text, "simulate --recording %s", base_name(o->recording));
		buf_printf(&traffic, "recorded in %s", base_name(o->recording));
	}
	for (size_t i = 0; i < o->traces.count; i++) {
		buf_printf(&text, i ? " --trace %s" : "simulate --trace %s", base_name(o->traces.items[i]));
		buf_printf(&traffic, i ? ", %s" : "%s", base_name(o->traces.items[i]));
	}
	if (o->scale != 1) {
		buf_printf(&text, " --scale %g%s", o->scale, o->jitter ? " --jitter" : "");
		buf_printf(&traffic, " times %g%s", o->scale, o->jitter ? ", jittered" : "");
	}
	if (o->world)
		buf_printf(&text, " --world %s", base_name(o->world));
	buf_printf(&text, " --policy %s --tick %gs --warm-up %gs --seed %lld", o->policy, (double)o->tick / 1000,
		   (double)o->warm_up / 1000, (long long)o->seed);
	in->run = arena_strdup(&in->arena, text.text, text.len);
	in->traffic = arena_strdup(&in->arena, traffic.text, traffic.len);
}

/* The world file tells more than a recording, which tells more than the defaults. */
static void start_as_recorded(struct simulate_inputs *in)
{
	size_t count = in->manifest.fleet.pool_count;
	struct pool_world *pools = arena_array(&in->arena, struct pool_world, count);

	for (size_t i = 0; i < count; i++) {
		pools[i] = in->world.pools[i];
		if (in->initial_replicas && pools[i].initial_replicas < 0)
			pools[i].initial_replicas = in->initial_replicas[i];
	}
	in->world.pools = pools;
}

static bool read_world(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	const struct fleet_spec *fleet = &in->manifest.fleet;

	in->world = world_spec_default(fleet, &in->arena);
	if (o->world && !world_file_read(o->world, fleet, &in->arena, &in->world, e))
		return false;
	start_as_recorded(in);
	return true;
}

/* An option that would do nothing is a misunderstanding. */
static bool check_options(const struct simulate_options *o, struct error *e)
{
	if (o->rivals && !o->compare)
		return error_set(e, ERROR_INVALID, "--rivals says whom to compare with; add --compare");
	if (o->force && !o->out)
		return error_set(e, ERROR_INVALID,
				 "--force replaces results in a folder; add --out DIR, or leave it out");
	if (o->jitter && o->scale <= 6)
		return error_set(
			e, ERROR_INVALID,
			"--jitter has no effect up to --scale 6, and the scale is %g; scale further, or leave it out",
			o->scale);
	return true;
}

bool simulate_read(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	if (!check_options(o, e))
		return false;
	if (!find_policy(o, in, e) || !compare_check(o->rivals, e) || !read_manifest(o, in, e))
		return false;
	in->start = default_start;
	if (!read_traces(o, in, e) || !read_world(o, in, e) || !check_times(o, in, e))
		return false;
	if (o->start != ABSENT)
		in->start = o->start;
	describe(o, in);
	return true;
}

void simulate_inputs_release(struct simulate_inputs *in)
{
	for (size_t i = 0; in->traces && i < in->manifest.fleet.pool_count; i++)
		trace_release(&in->traces[i]);
	arena_release(&in->arena);
}
