#include "controller/commands/recording.h"
#include "base/terminal.h"
#include "controller/commands/simulate_plan.h"

#include <stdio.h>
#include <string.h>

/* Without --pool the manifest is the one of the recording. */
static bool read_manifest(const struct simulate_options *o, struct history *h, int64_t tick, struct simulate_inputs *in,
			  struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	const char *text;

	if (o->pools.count)
		return true;
	return history_manifest(h, tick, &in->arena, &text, e) &&
	       manifest_load_text(o->recording, text, &in->arena, &in->manifest, &f, e);
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
	if (!read_manifest(o, h, span.first_tick, in, e) ||
	    !recording_read(h, span.first_tick, span.last_tick, &in->arena, &rec, e))
		return false;
	say_what_is_missing(o->recording, &rec);
	in->start = rec.start;
	in->traces = arena_array(&in->arena, struct trace, in->manifest.fleet.pool_count);
	in->given = arena_array(&in->arena, const struct trace *, in->manifest.fleet.pool_count);
	return take_traffic(o, h, &rec, in, e);
}

bool simulate_read_recording(const struct simulate_options *o, struct simulate_inputs *in, struct error *e)
{
	struct history *h = history_open(o->recording, e);

	if (!h)
		return error_wrap(e, "--recording");
	bool is_read = read_open(o, h, in, e);
	history_close(h);
	return is_read;
}
