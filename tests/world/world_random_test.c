/*
 * Worlds drawn from seeds: pools, groups, budgets, traffic, and what goes wrong, in any order. The laws hold all the
 * time; once nothing goes wrong any more it comes to rest, and leaves a still world alone.
 *
 * world_random_test [SEED [COUNT [SECONDS]]]: from that seed on so many; a failure tells its seed, and the end of its
 * trace. SECONDS: how late watches may be.
 */
#include "tests/world/laws.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MOST = 3 };

static int64_t late_most = 140; /* seconds; a watch that is silent for 150 is begun anew */

static int64_t floor_size; /* machines that there are without traffic */

struct drawn {
	struct random random;
	struct buf manifest;
	struct world_app *app;
	struct cloud_group *groups[GROUPS_MOST];
	size_t group_count;
	bool is_pair;
	struct replica_settings settings;
	struct buf happened;
};

static int64_t among(struct drawn *d, int64_t least, int64_t most)
{
	return least + (int64_t)(random_next(&d->random) % (uint64_t)(most - least + 1));
}

static bool chance(struct drawn *d, int64_t percent)
{
	return among(d, 1, 100) <= percent;
}

static void draw_groups(struct drawn *d)
{
	static const char *const names[GROUPS_MOST] = { "g-spot", "g-od", "g-far" };

	d->group_count = (size_t)among(d, 1, GROUPS_MOST);
	buf_text(&d->manifest, "  nodeGroups:\n");
	for (size_t i = 0; i < d->group_count; i++) {
		int64_t min = i ? 0 : among(d, 0, 1), max = among(d, 3, 12),
			standby = chance(d, 40) ? among(d, 1, 3) : 0;
		buf_printf(&d->manifest,
			   "    - { name: %s, provider: simulated, simulated: { endpoint: \"http://cloud.world\" }, "
			   "zone: z1,\n"
			   "        instanceType: g5.xlarge, capacityType: %s, gpusPerNode: 1, pricePerHour: %d.5, "
			   "min: %" PRId64 ", max: %" PRId64,
			   names[i], i ? "on-demand" : "spot", (int)i + 1, min, max);
		if (standby)
			buf_printf(&d->manifest,
				   ",\n        standby: { max: %" PRId64
				   ", priceShare: 2%%, leadTime: { p50: 120s, p95: 200s } }",
				   standby);
		buf_text(&d->manifest, " }\n");
		d->groups[i] = world_group(names[i], "chat", 1, 0, max, among(d, min, 2));
		floor_size = floor_size > min ? floor_size : min;
		d->groups[i]->standby_max = standby;
		d->groups[i]->keeps_node = chance(d, 50);
	}
}

static void draw_world(struct drawn *d)
{
	static const char *const budgets[] = { "", "25%", "1", "50%" };
	static const char *const after[] = { "1m", "5m", "10m" };
	/* one after the other: the order of arguments is the compiler's */
	int64_t wait = among(d, 1, 10), after_at = among(d, 0, 2), replicas, budget;

	floor_size = among(d, 0, 2);
	buf_printf(&d->manifest,
		   "apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: chat, namespace: llm }\nspec:\n"
		   "  mode: act\n"
		   "  class: interactive\n  objective: { queueWait: %" PRId64 "s, attainment: 99%% }\n"
		   "  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { apiVersion: apps/v1,\n"
		   "      kind: Deployment, name: chat }, gpusPerReplica: 1, maxSequences: 8, prefillTokensPerSecond: "
		   "25k,\n"
		   "      interTokenLatency: 30ms }\n"
		   "  signals: { engine: vllm, scrape: { port: 8000, path: /metrics, interval: 15s } }\n"
		   "  leadTime: { provision: { p50: 45s, p95: 70s }, register: { p50: 20s, p95: 30s }, device: { p50: "
		   "15s,\n"
		   "      p95: 30s }, image: { p50: 60s, p95: 90s }, load: { p50: 60s, p95: 90s } }\n"
		   "  headroom: { min: %" PRId64 " }\n  scaleDown: { after: %s }\n",
		   wait, floor_size, after[after_at]);
	draw_groups(d);
	replicas = among(d, 0, 3);
	budget = among(d, 0, 3);
	d->app = world_app("chat", replicas, 1, budgets[budget]);
	d->is_pair = chance(d, 40);
	d->settings = (struct replica_settings){ .manifest = d->manifest.text, .elects = d->is_pair || chance(d, 50) };
	replica_start(0, &d->settings);
	if (d->is_pair) {
		world_run(SECOND);
		replica_start(1, &d->settings);
	}
}

static void kill_one(struct drawn *d)
{
	int who = d->is_pair ? (int)among(d, 0, 1) : 0;

	world_events(among(d, 0, 40));
	replica_kill(who);
	world_run(among(d, 0, 60) * SECOND);
	replica_start(who, &d->settings);
}

static void pause_one(struct drawn *d)
{
	int who = d->is_pair ? (int)among(d, 0, 1) : 0;

	replica_pause(who, true);
	world_run(among(d, 1, 40) * SECOND);
	replica_pause(who, false);
}

static void server_away(struct drawn *d)
{
	apiserver_faults()->is_away = true;
	apiserver_cut_watches();
	world_run(among(d, 1, 90) * SECOND);
	if (chance(d, 50))
		apiserver_forget_versions();
	apiserver_faults()->is_away = false;
}

/* What watches tell comes late, and nothing says so. */
static void fall_behind(struct drawn *d)
{
	apiserver_faults()->holds_events = true;
	world_run(among(d, 1, late_most) * SECOND);
	apiserver_catch_up();
}

static void spoil_cloud(struct drawn *d)
{
	struct cloud_faults *f = &d->groups[among(d, 0, (int64_t)d->group_count - 1)]->faults;
	int count = (int)among(d, 1, 4);
	int *const all[] = { &f->stock_out,	  &f->quota,	    &f->lost_answer, &f->hang,
			     &f->throttle,	  &f->server_error, &f->auth,	     &f->no_device,
			     &f->never_registers, &f->lost_answer,  &f->no_effect,   &f->one_less,
			     &f->half_answer };

	f->at_once = chance(d, 50);
	*all[among(d, 0, 12)] = count;
}

/* Reads are old from now on, or not any more. */
static void age_reads(struct drawn *d)
{
	struct cloud_reads *r = &d->groups[among(d, 0, (int64_t)d->group_count - 1)]->reads;

	r->lag = chance(d, 30) ? 0 : among(d, 1, 119) * SECOND;
	r->is_any_order = chance(d, 50);
}

/* Somebody else sizes a group, now and then again. */
static void meddle(struct drawn *d)
{
	struct cloud_group *g = d->groups[among(d, 0, (int64_t)d->group_count - 1)];
	int64_t size = among(d, 0, g->max);

	for (int64_t left = among(d, 1, 8); left > 0; left--) {
		cloud_owner_sets(g, size);
		world_run(among(d, 5, 60) * SECOND);
	}
}

static const char *happen(struct drawn *d)
{
	static const char *const names[] = { "traffic", "traffic", "traffic", "cloud", "cloud", "kill",
					     "pause",	"away",	   "mute",    "speak", "taken", "behind",
					     "behind",	"hurt",	   "reads",   "reads", "others" };
	int64_t what = among(d, 0, 16);

	if (what <= 2)
		d->app->rate = chance(d, 30) ? 0 : 8 * random_uniform(&d->random);
	else if (what <= 4)
		spoil_cloud(d);
	else if (what == 5)
		kill_one(d);
	else if (what == 6)
		pause_one(d);
	else if (what == 7)
		server_away(d);
	else if (what == 8)
		d->app->is_mute = true;
	else if (what == 9)
		d->app->is_mute = false;
	else if (what == 10)
		cloud_take(d->groups[0], among(d, 1, 3));
	else if (what <= 12)
		fall_behind(d);
	else if (what == 13)
		apiserver_faults()->refuse_permille = chance(d, 50) ? 0 : 200;
	else if (what <= 15)
		age_reads(d);
	else
		meddle(d);
	return names[what];
}

static void all_well(struct drawn *d)
{
	for (size_t i = 0; i < d->group_count; i++)
		d->groups[i]->faults = (struct cloud_faults){ 0 };
	for (size_t i = 0; i < d->group_count; i++)
		d->groups[i]->reads = (struct cloud_reads){ 0 };
	d->app->is_mute = false;
	apiserver_faults()->refuse_permille = 0;
	apiserver_catch_up();
	d->app->rate = 0;
}

/* One more may be kept for long after traffic. */
static bool is_calm(void)
{
	return world_is_at_rest() && world_desired("chat") <= floor_size + 1 && laws_quiet_for() > 30 * MINUTE;
}

static void live(struct drawn *d)
{
	draw_world(d);
	laws_expect_errors(true); /* a history that cannot be closed by a dead process, an API server that is away */
	for (int64_t left = among(d, 8, 20); left && !*laws_broken(); left--) {
		world_run(among(d, 1, 300) * SECOND);
		buf_printf(&d->happened, "%.0f s %s, ", (double)wire_now() / SECOND, happen(d));
	}
	if (*laws_broken())
		return;
	all_well(d);
	world_run(15 * MINUTE); /* it hears again, and sees what was done meanwhile */
	if (!world_until(is_calm, 24 * HOUR) && !*laws_broken())
		laws_break("settled", "no rest within 24 hours after the last of it");
	laws_stand_still(true);
	world_run(10 * MINUTE);
}

static bool seed_holds(uint64_t seed)
{
	struct drawn d = { .random = random_stream(seed, "drawn") };
	int64_t events, calls;

	world_begin(seed);
	live(&d);
	bool ok = !*laws_broken();
	wire_count(&events, &calls);
	if (!ok) {
		laws_print_trace(40);
		fprintf(stderr, "%s\nseed %" PRIu64 ": %s\n%s\n", d.manifest.text, seed, laws_broken(),
			d.happened.text);
	} else if (getenv("WORLD_VERBOSE") != NULL) {
		printf("seed %" PRIu64 ": %.1f hours, %" PRId64 " events, %" PRId64 " calls, %" PRId64 " writes\n",
		       seed, (double)wire_now() / HOUR, events, calls, laws_writes());
	}
	world_end();
	buf_release(&d.manifest);
	buf_release(&d.happened);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
		 count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
	int broken = 0;

	late_most = argc > 3 ? strtoll(argv[3], NULL, 10) : late_most;
	for (uint64_t seed = first; seed < first + count; seed++)
		broken += !seed_holds(seed);
	printf("%d of %" PRIu64 " seeds broke a law\n", broken, count);
	return broken > 0;
}
