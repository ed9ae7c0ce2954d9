/* preheat simulate: a policy on recorded traffic in a modelled world. */
#include "base/file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/compare.h"
#include "controller/commands/recorded_fleet.h"
#include "controller/commands/recording.h"
#include "controller/commands/runs.h"
#include "controller/commands/trace_argument.h"
#include "controller/manifest/manifest.h"
#include "controller/policy/decide.h"
#include "controller/report/report.h"
#include "controller/simulation/draws.h"
#include "controller/simulation/files/timeline.h"
#include "controller/simulation/files/world_file.h"
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"
#include "state/cost.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DRAWS = 8, DRAWS_MOST = 100 };

/* What `preheat simulate` was asked for: options, and the inputs that they name. */

struct simulate_options {
	struct option_list pools, traces;
	const char *recording, *world, *policy, *out, *output, *rivals, *autoscalers;
	double scale;
	bool jitter, compare, force;
	millis tick, start, warm_up; /* start: ABSENT when not given */
	int64_t seed, draws;
};

/* Everything lives in the arena but the traces, which simulate_inputs_release frees. */
struct simulate_inputs {
	struct arena arena;
	struct manifest manifest;
	struct trace *traces;	    /* one per pool, empty without traffic */
	const struct trace **given; /* one per pool, NULL without traffic */
	struct world_spec world;
	const struct policy_ops *policy;
	const char *setting;	      /* of the policy */
	struct team_autoscaler *team; /* --autoscalers */
	size_t team_count;
	const char *run;		 /* the call, without what does not change its results */
	const char *traffic;		 /* where it came from, for people */
	millis length;			 /* of the longest trace */
	millis start;			 /* wall clock at second 0 of the traffic */
	int64_t *initial_replicas;	 /* of a recording, one per pool, -1: not told; NULL without */
	struct calibration *measured;	 /* by the recording; NULL without */
	struct recorded_fleet *recorded; /* one per pool; NULL without, and where the traffic was scaled */
};

/*
 * Where the results of `preheat simulate` go: the folder, and the files in
 * it. Each file gets its name when it is whole.
 */

struct results;

struct compare_result;

struct report;

struct report *results_report(struct results *r);

static void results_release(struct results *r);

/* Of a place as YAML tells it: lines and characters from 1. */
static size_t offset_of(const char *text, size_t line, size_t column)
{
	const char *at = text;

	while (--line)
		at = strchr(at, '\n') + 1;
	while (--column)
		do
			at++;
		while (((unsigned char)*at & 0xC0) == 0x80);
	return (size_t)(at - text);
}

/* The manifest with `mode: act` in place of observe. */
static void write_acting(const char *text, const struct yaml_documents *pools, struct buf *out)
{
	static const char observe[] = "observe";
	size_t done = 0;

	for (size_t i = 0; i < pools->count; i++) {
		const struct yaml_node *spec = yaml_child(pools->roots[i], "spec"), *mode = yaml_child(spec, "mode");
		const struct yaml_node *first = spec->first;
		size_t at = mode ? offset_of(text, mode->line, mode->column)
				 : offset_of(text, first->key_line, first->key_column);
		if (mode && strcmp(mode->text, observe) != 0)
			continue;
		buf_append(out, text + done, at - done);
		done = at;
		if (mode) {
			buf_text(out, "act");
			done += strlen(observe) + (mode->is_plain ? 0 : strlen("\"\""));
		} else if (text[offset_of(text, spec->line, spec->column)] == '{') {
			buf_text(out, "mode: act, ");
		} else {
			buf_printf(out, "mode: act\n%*s", (int)first->key_column - 1, "");
		}
	}
	buf_text(out, text + done);
}

/* What would be if it acted is the question: a pool that is only observed acts in a simulation, and the history of
 * that has the manifest so. One that is paused stays as it is. */
static bool let_act(struct simulate_inputs *in, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	struct yaml_documents pools;
	const char *was = in->manifest.text;
	bool observes = false;

	for (size_t i = 0; i < in->manifest.fleet.pool_count; i++)
		observes |= in->manifest.fleet.pools[i].mode == MODE_OBSERVE;
	if (!observes)
		return true;
	if (!yaml_parse("manifest", was, strlen(was), &in->arena, &pools, &f))
		return findings_error(&f, e);
	write_acting(was, &pools, &text);
	return manifest_load_text("manifest", text.text, &in->arena, &in->manifest, &f, e);
}

/* Without -f the manifest is the one of the recording. */
static bool read_recorded_manifest(const struct simulate_options *o, struct history *h, int64_t tick,
				   struct simulate_inputs *in, struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	const char *text;

	if (o->pools.count)
		return true;
	return history_manifest(h, tick, &in->arena, &text, e) &&
	       manifest_load_text(o->recording, text, &in->arena, &in->manifest, &f, e) && let_act(in, e);
}

static size_t find_pool(const struct fleet_spec *fleet, const char *name)
{
	size_t i = 0;

	while (i < fleet->pool_count && strcmp(fleet->pools[i].name, name) != 0)
		i++;
	return i;
}

/* The traffic of the pools that both know; the fleet begins as recorded. */
static bool take_traffic(const struct simulate_options *o, struct history *h, struct recording *rec,
			 struct simulate_inputs *in, struct error *e)
{
	const struct fleet_spec *fleet = &in->manifest.fleet;
	const struct history_pool *pools = history_pools(h, &(size_t){ 0 });
	bool is_any = false;

	in->initial_replicas = arena_array(&in->arena, int64_t, fleet->pool_count);
	for (size_t i = 0; i < fleet->pool_count; i++)
		in->initial_replicas[i] = -1;
	for (size_t i = 0; i < rec->pool_count; i++) {
		size_t pool = find_pool(fleet, pools[i].name);
		if (pool == fleet->pool_count)
			continue;
		in->traces[pool] = rec->traces[i];
		rec->traces[i] = (struct trace){ 0 };
		in->given[pool] = &in->traces[pool];
		in->length = in->traces[pool].length > in->length ? in->traces[pool].length : in->length;
		if (o->scale == 1)
			in->initial_replicas[pool] = rec->initial_replicas[i];
		is_any = true;
	}
	return is_any ||
	       error_set(e, ERROR_INVALID, "--recording %s: none of its pools is in the manifest; the first is %s",
			 o->recording, rec->pool_count ? pools[0].name : "missing");
}

/* Traffic that nobody saw is not made up. */
static void say_what_is_missing(const char *name, const struct recording *rec)
{
	if (rec->silent)
		fprintf(stderr, "%s: for %s in all nobody wrote: no traffic is simulated then\n", name,
			human_duration(rec->silent).text);
	if (rec->blind_ticks)
		fprintf(stderr, "%s: in %s ticks no replica could be read: what arrived then is missing\n", name,
			human_count(rec->blind_ticks).text);
}

static bool read_open(const struct simulate_options *o, struct history *h, struct simulate_inputs *in, struct error *e)
{
	CLEANUP(recording_release) struct recording rec = { 0 };
	struct history_span span;

	if (!history_span(h, &span, e))
		return false;
	if (span.last_tick < span.first_tick)
		return error_set(e, ERROR_INVALID, "--recording %s: there are no decisions in it", o->recording);
	if (!read_recorded_manifest(o, h, span.first_tick, in, e) ||
	    !recording_read(h, span.first_tick, span.last_tick, &in->arena, &rec, e))
		return false;
	say_what_is_missing(o->recording, &rec);
	in->start = rec.start;
	in->traces = arena_array(&in->arena, struct trace, in->manifest.fleet.pool_count);
	in->given = arena_array(&in->arena, const struct trace *, in->manifest.fleet.pool_count);
	const struct recorded_ticks ticks = { span.first_tick, span.last_tick, in->start };
	return take_traffic(o, h, &rec, in, e) &&
	       recording_measure(h, &ticks, &in->manifest.fleet, &in->arena, &in->measured, e);
}

/* The part of it that --recording stands for: traffic, its wall clock, and the manifest unless -f gave one. */
static bool simulate_read_recording(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	struct history *h = history_open(o->recording, e);

	if (!h)
		return error_wrap(e, "--recording");
	bool is_read = read_open(o, h, in, e);
	history_close(h);
	return is_read;
}

/* Monday, 2024-01-01, 00:00 UTC: what second 0 of a trace is when nobody says. */
static const millis default_start = INT64_C(1704067200000);

static bool read_manifest(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };

	if (!o->pools.count && !o->recording)
		return error_set(e, ERROR_INVALID, "no pool: name its manifest with -f FILE");
	return !o->pools.count ||
	       (manifest_load(o->pools.items, o->pools.count, &in->arena, &in->manifest, &f, e) && let_act(in, e));
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

	if (!trace_argument_split(fleet, text, &pool, &path, e))
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

static bool check_draws(const struct simulate_options *o, struct error *e)
{
	return (o->draws > 0 && o->draws <= DRAWS_MOST) ||
	       error_set(e, ERROR_INVALID, "--draws: found %lld; allowed: 1 to %d", (long long)o->draws, DRAWS_MOST);
}

static bool check_times(const struct simulate_options *o, const struct simulate_inputs *in, struct error *e)
{
	if (o->tick < SECOND || o->tick > 10 * MINUTE || o->tick % SECOND)
		return error_set(e, ERROR_INVALID, "--interval: found %.3f s; allowed: whole seconds from 1s to 10m",
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
	buf_printf(&text, " --policy %s --interval %gs --warm-up %gs --seed %lld", o->policy, (double)o->tick / 1000,
		   (double)o->warm_up / 1000, (long long)o->seed);
	in->run = arena_strdup(&in->arena, text.text, text.len);
	in->traffic = arena_strdup(&in->arena, traffic.text, traffic.len);
}

/* The world file tells more than a recording, which tells more than the manifest. */
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

static void calibrate(const struct simulate_options *o, struct simulate_inputs *in)
{
	size_t count = in->manifest.fleet.pool_count;
	struct trace **traces = arena_array(&in->arena, struct trace *, count);

	for (size_t i = 0; i < count; i++)
		traces[i] = in->given[i] ? &in->traces[i] : NULL;
	calibration_world(in->measured, traces, &in->world);
	if (o->scale != 1)
		return;
	in->recorded = arena_array(&in->arena, struct recorded_fleet, count);
	for (size_t i = 0; i < count; i++)
		if (traces[i])
			in->recorded[i] = calibration_replay(in->measured, i, traces[i], &in->world);
}

static bool read_world(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	const struct fleet_spec *fleet = &in->manifest.fleet;

	in->world = world_spec_default(fleet, &in->arena);
	if (o->world && !world_file_read(o->world, fleet, &in->arena, &in->world, e))
		return false;
	start_as_recorded(in);
	if (in->measured)
		calibrate(o, in);
	return true;
}

/* An option that would do nothing is a misunderstanding. */
static bool check_options(const struct simulate_options *o, struct error *e)
{
	if (o->rivals && !o->compare)
		return error_set(e, ERROR_INVALID, "--rivals says whom to compare with; add --compare");
	if (o->autoscalers && !o->compare)
		return error_set(e, ERROR_INVALID, "--autoscalers are what to compare with; add --compare");
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

static bool simulate_read(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	if (!check_options(o, e) || !check_draws(o, e))
		return false;
	if (!find_policy(o, in, e) || !compare_check(o->rivals, e) || !read_manifest(o, in, e))
		return false;
	in->start = default_start;
	if (!read_traces(o, in, e) || !read_world(o, in, e) || !check_times(o, in, e))
		return false;
	if (o->autoscalers &&
	    !team_autoscalers_read(o->autoscalers, &in->manifest, &in->arena, &in->team, &in->team_count, e))
		return false;
	if (o->start != ABSENT)
		in->start = o->start;
	describe(o, in);
	return true;
}

static void simulate_inputs_release(struct simulate_inputs *in)
{
	for (size_t i = 0; in->traces && i < in->manifest.fleet.pool_count; i++)
		trace_release(&in->traces[i]);
	arena_release(&in->arena);
}

enum { TICKS_PER_COMMIT = 4000 };

struct results {
	struct arena arena;
	const struct simulate_options *options;
	const struct simulate_inputs *in;
	const char *folder; /* NULL: none */
	bool is_folder_ours;
	const char *partial; /* of the history */
	struct history *history;
	int64_t *busy_ppm; /* one per pool: see cost_add_tick() */
	struct timeline *timeline;
	struct report *report;
	struct progress progress;
};

static const char *join(struct arena *a, const char *folder, const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s/%s", folder, name);
	return arena_strdup(a, path.text, path.len);
}

static bool any_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool cannot_make(const char *path, struct error *e)
{
	return error_set(e, file_error_kind(errno),
			 "--out %s: cannot make this folder: %s; name one where you may write", path, strerror(errno));
}

/* Makes the folder, and those above it, as needed. */
static bool make_folder(const char *path, struct arena *a, bool *is_made, struct error *e)
{
	char *part = arena_strdup(a, path, strlen(path));

	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return cannot_make(part, e);
		*slash = '/';
	}
	*is_made = mkdir(path, 0777) == 0;
	if (!*is_made && errno != EEXIST)
		return cannot_make(path, e);
	return true;
}

static bool check_folder(struct results *r, struct error *e)
{
	struct folder folder;

	if (!make_folder(r->folder, &r->arena, &r->is_folder_ours, e))
		return false;
	if (!folder_list(r->folder, any_name, &r->arena, &folder, e))
		return error_wrap(e, "--out");
	if (!folder.is_folder)
		return error_set(e, ERROR_INVALID, "--out %s: this is not a folder; name another", r->folder);
	if (folder.count && !r->options->force)
		return error_set(e, ERROR_CONFLICT,
				 "--out %s: the folder is not empty; name another, or add --force to replace the "
				 "results in it and leave other files alone",
				 r->folder);
	return true;
}

static void remove_with_logs(const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
	CLEANUP(buf_release) struct buf name = { 0 };

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		buf_clear(&name);
		buf_printf(&name, "%s%s", path, ends[i]);
		unlink(name.text);
	}
}

static bool open_history(struct results *r, struct error *e)
{
	const struct simulate_inputs *in = r->in;

	r->partial = join(&r->arena, r->folder, "history.db.partial");
	remove_with_logs(r->partial);
	r->history = history_create(&(struct history_setup){ .path = r->partial,
							     .manifest = in->manifest.text,
							     .fleet = &in->manifest.fleet,
							     .program = command_version_text(),
							     .policy = r->options->policy,
							     .run = in->run,
							     .ticks_per_commit = TICKS_PER_COMMIT,
							     .checkpoint_every = HOUR },
				    e);
	return r->history;
}

static struct report *open_report(const struct simulate_options *o, const struct simulate_inputs *in)
{
	return report_new(&(struct report_run){ .fleet = &in->manifest.fleet,
						.policy = in->policy->name,
						.setting = in->setting,
						.traffic = in->traffic,
						.program = command_version_text(),
						.seed = (uint64_t)o->seed,
						.start = in->start,
						.interval = o->tick,
						.warm_up = o->warm_up });
}

/* `folder` NULL: results only go to the terminal. `in` outlives the results. NULL with an error. */
static struct results *results_open(const struct simulate_options *o, const struct simulate_inputs *in, struct error *e)
{
	struct arena arena = { 0 };
	struct results *r = arena_new(&arena, struct results);

	r->arena = arena;
	r->options = o;
	r->in = in;
	r->folder = o->out;
	r->report = open_report(o, in);
	r->busy_ppm = arena_array(&r->arena, int64_t, in->manifest.fleet.pool_count);
	for (size_t i = 0; i < in->manifest.fleet.pool_count; i++)
		r->busy_ppm[i] = ABSENT;
	if (!r->folder)
		return r;
	if (check_folder(r, e) && open_history(r, e)) {
		r->timeline = timeline_open(join(&r->arena, r->folder, "timeline.csv"), e);
		if (r->timeline)
			return r;
	}
	results_release(r);
	return NULL;
}

static bool keep_memory(struct results *r, const struct tick_view *v, struct error *e)
{
	CLEANUP(buf_release) struct buf memory = { 0 };

	if (r->in->policy != &policy_preheat || !history_wants_checkpoint(r->history))
		return true;
	policy_state_encode(preheat_memory(v->policy), &memory);
	return history_checkpoint(r->history, &memory, e);
}

/* The world meters what it bills, within ticks. */
static void keep_costs(struct results *r, const struct tick_view *v)
{
	const struct fleet_spec *fleet = v->snapshot->fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct tick_result *was = &v->results[i];
		struct cost_sums sums = { 0 };

		cost_add_tick(&sums,
			      &(struct cost_tick){ v->snapshot, i, &v->plan->pools[i], v->snapshot->interval,
						   &(struct cost_requests){ was->arrived, was->started, was->late } },
			      &r->busy_ppm[i]);
		cost_meter(&sums, was->gpu_ms, was->micro_dollars);
		history_cost(r->history, v->snapshot->now, i, fleet->pools[i].class, &sums);
	}
}

static bool on_tick(void *user, const struct tick_view *v, struct error *e)
{
	struct results *r = user;

	if (!r->progress.what)
		r->progress = progress_start("simulating", "ticks", v->ticks);
	progress_show(&r->progress, v->snapshot->tick + 1);
	if (!report_tick(r->report, v, e))
		return false;
	if (!r->folder)
		return true;
	keep_costs(r, v);
	return timeline_tick(r->timeline, v, e) && history_append(r->history, v->snapshot, v->plan, e) &&
	       keep_memory(r, v, e);
}

/* One observer that feeds everything. */
static struct observer results_observer(struct results *r)
{
	return (struct observer){ on_tick, r };
}

static bool finish_history(struct results *r, struct error *e)
{
	const char *path = join(&r->arena, r->folder, "history.db");
	struct history *h = r->history;

	r->history = NULL;
	if (!history_finish(h, e))
		return false;
	remove_with_logs(path);
	if (rename(r->partial, path) < 0)
		return error_set(e, file_error_kind(errno), "%s: %s", path, strerror(errno));
	return true;
}

static bool finish_files(struct results *r, const struct buf *summary, const struct compare_result *compared,
			 struct error *e)
{
	struct timeline *t = r->timeline;
	CLEANUP(buf_release) struct buf runs = { 0 };
	const char *path = join(&r->arena, r->folder, "compare.json");

	r->timeline = NULL;
	unlink(path); /* of an earlier run */
	if (compared)
		compare_json(compared, &runs);
	return finish_history(r, e) && timeline_commit(t, e) &&
	       (!compared || file_write(path, runs.text, runs.len, e)) &&
	       file_write(join(&r->arena, r->folder, "summary.json"), summary->text, summary->len, e) &&
	       report_write(r->report, join(&r->arena, r->folder, "report.html"), e);
}

static struct recorded_fleets recorded_of(const struct simulate_inputs *in)
{
	return (struct recorded_fleets){ &in->manifest.fleet, in->measured, in->recorded };
}

static void print(const struct results *r, const struct buf *summary, const struct compare_result *compared)
{
	CLEANUP(print_tree_release) struct printed_tree answer = { .rows = compared ? "" : "pools", .key = "pool" };

	if (!print_is_for_programs(r->options->output)) {
		if (r->in->measured)
			recorded_fleet_print(recorded_of(r->in), stdout);
		report_print(r->report, !strcmp(r->options->output, "wide"), stdout);
		if (compared && recorded_fleet_fits(recorded_of(r->in)))
			compare_print(compared, stdout);
		report_print_next(r->report, r->folder, stdout);
		return;
	}
	if (compared)
		compare_json(compared, &answer.json);
	else
		buf_append(&answer.json, summary->text, summary->len);
	print_tree(&answer, r->options->output);
}

/* Writes what was simulated, and the comparison unless NULL, and prints the summary. `first`: the draw that was seen.
 */
static bool results_finish(struct results *r, const struct run_result *result, const struct pool_score *first,
			   const struct compare_result *compared, struct error *e)
{
	CLEANUP(buf_release) struct buf summary = { 0 };
	CLEANUP(buf_release) struct buf recorded = { 0 };

	if (r->in->measured)
		recorded_fleet_json(recorded_of(r->in), &recorded);
	summary_json(&(struct summary_run){ .fleet = &r->in->manifest.fleet,
					    .program = command_version_text(),
					    .policy = r->in->policy->name,
					    .setting = r->in->setting,
					    .seed = (uint64_t)r->options->seed,
					    .interval = r->options->tick,
					    .warm_up = r->options->warm_up,
					    .first = first,
					    .recorded = r->in->measured ? recorded.text : NULL },
		     result, &summary);
	report_result(r->report, result, first);
	if (compared)
		compare_report(compared, r->report);
	if (r->folder && !finish_files(r, &summary, compared, e))
		return false;
	print(r, &summary, compared);
	return true;
}

/* leaves no part of a file behind; takes NULL */
static void results_release(struct results *r)
{
	if (!r)
		return;
	if (r->progress.what)
		progress_end(&r->progress);
	report_free(r->report);
	timeline_abandon(r->timeline);
	history_close(r->history);
	if (r->partial)
		remove_with_logs(r->partial);
	if (r->is_folder_ours)
		rmdir(r->folder);      /* stays when there is something in it */
	struct arena arena = r->arena; /* the results lie in it */
	arena_release(&arena);
}

static volatile int is_interrupted;

static void interrupt(int signal)
{
	(void)signal;
	is_interrupted = 1;
}

/* While inputs are read nothing has been written that could be kept. */
static void interrupt_reading(int signal)
{
	static const char text[] = " simulate: interrupted while the inputs were read; nothing was simulated\n";
	bool told = write(STDERR_FILENO, command_program(), strlen(command_program())) > 0 &&
		    write(STDERR_FILENO, text, sizeof text - 1) > 0;

	(void)signal;
	(void)told;
	_exit(EXIT_ENVIRONMENT);
}

/* An interrupt ends what runs in good order, the second one at once. A closed terminal is an interrupt, unless whoever
 * started us (nohup) has it ignored. */
static void catch_interrupts(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND }, before;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

/* The other draws of what ran, and the mean of all in place of the first. False in `is_done`: an interrupt left some
 * out. */
static bool draw_more(const struct simulation *s, int64_t draws, struct arena *a, struct run_result *result,
		      bool *is_done, struct error *e)
{
	size_t count = (size_t)draws, pools = s->world.fleet->pool_count, made = 1;
	struct run_job *jobs = arena_array(a, struct run_job, count);
	struct pool_score *scores = arena_array(a, struct pool_score, count * pools);
	bool *is_made = arena_array(a, bool, count);
	const struct runs more = { s, jobs, count - 1, "simulating", "more draws" };

	for (size_t i = 0; i + 1 < count; i++)
		jobs[i] = (struct run_job){ s->policy, s->setting, i + 1 };
	memcpy(scores, result->pools, pools * sizeof *scores);
	if (count > 1 && !runs_make(&more, scores + pools, is_made, e))
		return error_wrap(e, "--draws");
	for (size_t i = 0; i + 1 < count; i++)
		if (is_made[i])
			memmove(scores + made++ * pools, scores + (i + 1) * pools, pools * sizeof *scores);
	*is_done = made == count;
	struct pool_score *means = arena_array(a, struct pool_score, pools);
	draws_mean(scores, made, pools, means);
	for (size_t i = 0; i < pools; i++) {
		means[i].classes = result->pools[i].classes;
		means[i].class_count = result->pools[i].class_count;
	}
	result->pools = means;
	return true;
}

static void say_interrupted(const struct simulate_options *o, const struct simulate_inputs *in,
			    const struct run_result *result)
{
	if (result->stopped)
		fprintf(stderr, "%s simulate: interrupted after %.0f of %.0f s of traffic; %s%s\n", command_program(),
			(double)result->simulated / 1000, (double)in->length / 1000,
			o->out ? "what was simulated so far is kept in " : "this is what was simulated so far",
			o->out ? o->out : "");
	else
		fprintf(stderr,
			"%s simulate: interrupted after %lld of %lld draws; the figures are the mean of those\n",
			command_program(), (long long)result->pools[0].whole.draws, (long long)o->draws);
}

static bool run_one(const struct simulate_options *o, const struct simulate_inputs *in, struct results *results,
		    bool *is_stopped, struct error *e)
{
	CLEANUP(arena_release) struct arena arena = { 0 };
	const struct observer observer = results_observer(results);
	struct run_result result = { 0 };
	struct simulation s = { .world = { .fleet = &in->manifest.fleet,
					   .spec = &in->world,
					   .traces = in->given,
					   .start = in->start,
					   .interval = o->tick,
					   .seed = (uint64_t)o->seed,
					   .schedule = schedule_at },
				.policy = in->policy,
				.setting = in->setting,
				.warm_up = o->warm_up,
				.observers = &observer,
				.observer_count = 1,
				.stop = &is_interrupted };

	const struct compare_setup setup = { .simulation = &s,
					     .ours = &result,
					     .draws = (size_t)o->draws,
					     .rivals = o->rivals,
					     .team = in->team,
					     .team_count = in->team_count };
	struct compare_result compared = { 0 };

	bool has_all_draws = false;

	if (!simulate(&s, &arena, &result, e))
		return false;
	progress_end(&results->progress);
	const struct pool_score *first = result.pools;
	if (!result.stopped && !draw_more(&s, o->draws, &arena, &result, &has_all_draws, e))
		return false;
	bool compares = o->compare && !result.stopped;
	if ((compares && !compare_run(&setup, &arena, &compared, e)) ||
	    !results_finish(results, &result, first, compares ? &compared : NULL, e))
		return false;
	*is_stopped = !has_all_draws || compared.comparison.is_stopped;
	if (compared.comparison.is_stopped)
		fprintf(stderr, "%s simulate: the comparison was interrupted; the runs done so far are kept\n",
			command_program());
	if (!has_all_draws)
		say_interrupted(o, in, &result);
	return true;
}

static bool simulate_all(const struct simulate_options *o, bool *is_stopped, struct error *e)
{
	CLEANUP(simulate_inputs_release) struct simulate_inputs in = { 0 };

	catch_interrupts(interrupt_reading);
	if (!simulate_read(o, &in, e))
		return false;
	catch_interrupts(interrupt);
	struct results *results = results_open(o, &in, e);
	if (!results)
		return false;
	bool is_done = run_one(o, &in, results, is_stopped, e);
	results_release(results);
	return is_done;
}

static int run(int argc, char **argv)
{
	bool prints_world = false;
	struct simulate_options o = { .policy = "preheat",
				      .output = "table",
				      .scale = 1,
				      .tick = 15 * SECOND,
				      .start = ABSENT,
				      .seed = 1,
				      .draws = DRAWS };
	const struct option_row rows[] = {
		{ "filename", 'f', OPTION_LIST, "FILE", "manifest, or a folder of them; may be repeated", &o.pools,
		  NULL },
		{ "trace", 0, OPTION_LIST, "[POOL=]FILE", "traffic of a pool, .csv or .csv.gz, - for standard input",
		  &o.traces, NULL },
		{ "recording", 0, OPTION_TEXT, "FILE.db", "a history in place of traces, and of -f if left out",
		  &o.recording, NULL },
		{ "scale", 0, OPTION_NUMBER, "K", "the traffic of a service K times as large", &o.scale, NULL },
		{ "jitter", 0, OPTION_FLAG, NULL, "above 6: K/5 shifted copies of 5 instead of one times K", &o.jitter,
		  NULL },
		{ "world", 0, OPTION_TEXT, "FILE", "the modelled world: faults and true values (docs/simulator.md)",
		  &o.world, NULL },
		{ "interval", 0, OPTION_DURATION, "DURATION", "time between decisions", &o.tick, NULL },
		{ "start", 0, OPTION_TIME, "TIME",
		  "wall clock at second 0 of the traffic, for schedules; 2024-01-01T00:00:00Z, or as recorded",
		  &o.start, NULL },
		{ "warm-up", 0, OPTION_DURATION, "DURATION", "not scored", &o.warm_up, NULL },
		{ "policy", 0, OPTION_TEXT, "NAME[:SETTING]", "who decides: preheat, or a rival", &o.policy, NULL },
		{ "compare", 0, OPTION_FLAG, NULL,
		  "compare with other autoscalers, each swept over its settings (docs/simulator.md)", &o.compare,
		  NULL },
		{ "rivals", 0, OPTION_TEXT, "NAME,NAME", "compare with these only", &o.rivals, NULL },
		{ "autoscalers", 0, OPTION_TEXT, "FILE",
		  "also compare with your own HorizontalPodAutoscaler and ScaledObject objects (\"-\": from "
		  "kubectl)",
		  &o.autoscalers, NULL },
		{ "seed", 0, OPTION_COUNT, "N", "the same seed gives the same bytes", &o.seed, NULL },
		{ "draws", 0, OPTION_COUNT, "N", "runs, each of other chance, that the figures are the mean of",
		  &o.draws, NULL },
		{ "out", 0, OPTION_TEXT, "DIR", "folder for history.db, timeline.csv, summary.json and report.html",
		  &o.out, NULL },
		{ "force", 0, OPTION_FLAG, NULL, "replace the results in a folder that is not empty", &o.force, NULL },
		PRINT_OPTION(&o.output),
		{ "print-world", 0, OPTION_FLAG, NULL, "print the reference of the world file and stop", &prints_world,
		  NULL },
	};
	bool is_stopped = false;
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_simulate, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "unexpected '%s'; simulate takes options only", argv[rest]);
		return command_failed(&command_simulate, &e);
	}
	if (prints_world)
		return command_print(world_write_reference);
	if (!simulate_all(&o, &is_stopped, &e))
		return command_failed(&command_simulate, &e);
	return is_stopped ? EXIT_ENVIRONMENT : EXIT_DONE;
}

const struct command command_simulate = {
	.name = "simulate",
	.usage = "simulate -f FILE (--trace [POOL=]FILE | --recording FILE.db) [--world FILE] [--out DIR] [OPTIONS]",
	.summary = "Run a policy on recorded traffic in a modelled world",
	.examples = "  preheat simulate -f pool.yaml --trace day.csv.gz --out results\n"
		    "  preheat simulate -f pool.yaml --trace day.csv.gz --scale 40 --jitter --warm-up 2h\n"
		    "  preheat simulate -f pools/ --trace chat=chat.csv.gz --trace batch=jobs.csv.gz --world "
		    "world.yaml\n"
		    "  preheat simulate -f pool.yaml --trace day.csv.gz --policy hpa:target=0.8\n"
		    "  preheat simulate --recording history.db -f other.yaml\n",
	.run = run,
};
