/*
 * Worlds drawn from seeds, of each cloud, and a nemesis in each: nemesis.h. The laws hold all the time; once nothing
 * goes wrong any more it comes to rest, with nothing that is nobody's. Of a world that breaks a law the faults are left
 * out one by one, as long as the same law still breaks: what is left is printed with its seed.
 *
 * world_nemesis_test [-w] [-q] [FIRST [COUNT]]: from that seed on so many. -w: what owners of node groups and workloads
 * do by themselves. -q: no traces, only a line of each broken law.
 * world_nemesis_test -o SEED FAULT,FAULT...: this one with those faults alone, and all of its trace.
 */
#include "tests/world/nemesis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAW = 40 };

static struct {
	enum nemesis_mode mode;
	bool is_quiet;
} asked;

struct world_drawn {
	struct nemesis_world w;
	struct buf spec, manifest;
	enum cloud_wire wire;
	int64_t floor;
	bool has_training, launches;
	/* Streams of their own: what else is drawn follows from the seed as it did. */
	struct random machines, reservations, standbys, spots, zones;
	bool are_large;	    /* machines hold several GPUs */
	bool deletes_named; /* AKS, where it deallocates */
	int64_t replica_gpus;
};

static int64_t among(struct world_drawn *d, int64_t least, int64_t most)
{
	return least + (int64_t)(random_next(&d->w.random) % (uint64_t)(most - least + 1));
}

static bool chance(struct world_drawn *d, int64_t percent)
{
	return among(d, 1, 100) <= percent;
}

enum { SIZES = 3 };
static const struct {
	int64_t gpus;
	const char *aws, *azure;
} sizes[SIZES] = {
	{ 1, "g5.xlarge", "Standard_NC4as_T4_v3" },
	{ 4, "g5.12xlarge", "Standard_NC64as_T4_v3" },
	{ 8, "g5.48xlarge", "Standard_ND40rs_v2" },
};

static int64_t among_machines(struct world_drawn *d, int64_t least, int64_t most)
{
	return least + (int64_t)(random_next(&d->machines) % (uint64_t)(most - least + 1));
}

static size_t draw_size(struct world_drawn *d, int64_t pod_gpus)
{
	return d->are_large ? (size_t)among_machines(d, pod_gpus > 1, SIZES - 1) : 0;
}

static int64_t draw_pod_gpus(struct world_drawn *d)
{
	return d->are_large ? 1 << among_machines(d, 0, 2) : 1;
}

static const char *type_of(const struct world_drawn *d, size_t size)
{
	return d->wire == CLOUD_AKS ? sizes[size].azure : sizes[size].aws;
}

static void write_place(const struct world_drawn *d, const char *name, size_t size, const char *warm_pool,
			struct buf *out)
{
	if (d->wire == CLOUD_EKS)
		buf_printf(out,
			   "\"provider\":\"eks\",\"eks\":{\"cluster\":\"world\",\"nodegroup\":\"%s\",\"region\":"
			   "\"eu-west-1\",\"endpoint\":\"" CLOUD_AWS "\",\"launch\":\"%s\",\"warmPool\":\"%s\"}",
			   name, d->launches ? "instances" : "capacity", warm_pool);
	else if (d->wire == CLOUD_AKS)
		buf_printf(out,
			   "\"provider\":\"aks\",\"aks\":{\"subscription\":\"00000000-0000-0000-0000-000000000000\","
			   "\"resourceGroup\":\"rg\",\"cluster\":\"world\",\"pool\":\"%s\"}",
			   name);
	else
		buf_text(out, "\"provider\":\"simulated\",\"simulated\":{\"endpoint\":\"" CLOUD "\"}");
	buf_printf(out, ",\"instanceType\":\"%s\",\"gpusPerNode\":%" PRId64, type_of(d, size), sizes[size].gpus);
}

/* On EKS up to three, of which Auto Scaling balances the machines, or does not. */
static void draw_zones(struct world_drawn *d, struct cloud_group *g)
{
	uint64_t drawn = random_next(&d->zones);

	if (g->wire != CLOUD_EKS || drawn % 100 >= 60)
		return;
	g->zone_count = 2 + drawn / 100 % 2;
	g->is_left_unbalanced = drawn / 200 % 100 < 30;
}

static struct cloud_group *add_group(struct world_drawn *d, const char *name, const char *pool, size_t size,
				     int64_t max, int64_t initial)
{
	struct cloud_group g = { .name = name,
				 .pool = pool,
				 .zone = "z1",
				 .instance_type = type_of(d, size),
				 .max = max,
				 .gpus = (int)sizes[size].gpus,
				 .wire = d->wire,
				 .launches = d->launches };

	draw_zones(d, &g);
	return cloud_add(&g, initial);
}

/* A Capacity Block that ends in one to four hours, before a group that goes on. 0: none. */
static millis draw_reservation(struct world_drawn *d, size_t group)
{
	uint64_t drawn = random_next(&d->reservations);

	if (asked.mode != NEMESIS_OWNERS || d->wire != CLOUD_SIMULATED || group || d->w.group_count < 2 ||
	    drawn % 100 >= 75)
		return 0;
	return HOUR + (millis)(drawn / 100 % 181) * MINUTE;
}

static int64_t among_standbys(struct world_drawn *d, int64_t least, int64_t most)
{
	return least + (int64_t)(random_next(&d->standbys) % (uint64_t)(most - least + 1));
}

/* AKS: a pool that deallocates. What deleteMachines does there documents and Cluster Autoscaler tell differently. */
static int64_t draw_deallocation(struct world_drawn *d, struct cloud_group *g)
{
	g->deallocates = g->keeps_node = true;
	g->deletes_named = d->deletes_named;
	g->has_zones = among_standbys(d, 1, 100) > 70;
	return among_standbys(d, 1, 3);
}

/* EKS: a warm pool of the owner's, in any state of its settings, or one that Preheat makes. */
static int64_t draw_warm_pool(struct world_drawn *d, struct cloud_group *g)
{
	g->warm.exists = among_standbys(d, 1, 100) <= 70;
	g->warm.reuses = among_standbys(d, 1, 100) <= 60;
	g->warm.least = among_standbys(d, 1, 100) <= 60 ? 0 : among_standbys(d, 1, 2);
	g->warm.prepared = among_standbys(d, 1, 100) <= 20 ? -1 : g->desired + g->warm.least + among_standbys(d, 0, 2);
	if (!g->warm.exists)
		g->warm = (struct cloud_warm_pool){ 0 };
	return among_standbys(d, 1, 3);
}

/* The most that the manifest lets stand by. */
static int64_t draw_standby(struct world_drawn *d, struct cloud_group *g)
{
	if (asked.mode != NEMESIS_OWNERS || d->wire == CLOUD_SIMULATED || among_standbys(d, 1, 100) > 70)
		return 0;
	if (g->is_spot) /* EKS keeps none of those; AKS ends them, or its count is nobody's wish */
		return 0;
	return d->wire == CLOUD_AKS ? draw_deallocation(d, g) : draw_warm_pool(d, g);
}

static void draw_groups(struct world_drawn *d)
{
	static const char *const names[NEMESIS_GROUPS] = { "gspot", "god", "gfar" };

	d->w.group_count = (size_t)among(d, 1, NEMESIS_GROUPS);
	buf_text(&d->spec, ",\"nodeGroups\":[");
	for (size_t i = 0; i < d->w.group_count; i++) {
		int64_t min = i ? 0 : among(d, 0, 1), max = among(d, 3, 12), initial = among(d, min, 2);
		millis ends_at = draw_reservation(d, i);
		int64_t standby = d->wire == CLOUD_SIMULATED && chance(d, 40) ? among(d, 1, 3) : 0;
		buf_printf(&d->spec, "%s{\"name\":\"%s\",", i ? "," : "", names[i]);
		size_t size = draw_size(d, d->replica_gpus);
		struct cloud_group *g = d->w.groups[i] = add_group(d, names[i], "chat", size, max, initial);
		g->keeps_node = chance(d, 50);
		g->ends_at = ends_at;
		g->is_spot = random_next(&d->spots) % 100 < 50 && !i && !ends_at && asked.mode == NEMESIS_OWNERS;
		standby = standby ? standby : draw_standby(d, g);
		g->standby_max = standby;
		write_place(d, names[i], size, standby && !g->warm.exists ? "autoScalingGroup" : "existing", &d->spec);
		buf_printf(&d->spec,
			   "%s,\"capacityType\":\"%s\",\"pricePerHour\":%d.5,\"min\":%" PRId64 ",\"max\":%" PRId64,
			   g->zone_count > 1 ? "" : ",\"zone\":\"z1\"",
			   ends_at	? "reserved"
			   : g->is_spot ? "spot"
					: "on-demand",
			   ((int)i + 1) * (int)sizes[size].gpus, min, max);
		if (standby)
			buf_printf(&d->spec,
				   ",\"standby\":{\"max\":%" PRId64
				   ",\"priceShare\":\"2%%\",\"leadTime\":{\"p50\":\"120s\",\"p95\":\"200s\"}}",
				   standby);
		buf_text(&d->spec, "}");
		d->floor = d->floor > min ? d->floor : min;
	}
	buf_text(&d->spec, "]");
}

static void draw_chat(struct world_drawn *d)
{
	static const char *const budgets[] = { "", "25%", "1", "50%" };
	static const char *const after[] = { "1m", "5m", "10m" };
	int64_t wait = among(d, 1, 10), after_at = among(d, 0, 2), replicas = among(d, 0, 3), budget = among(d, 0, 3);

	d->floor = among(d, 0, 2);
	buf_printf(&d->spec,
		   "{\"mode\":\"act\",\"class\":\"interactive\",\"objective\":{\"queueWait\":\"%" PRId64
		   "s\",\"attainment\":\"99%%\"},\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"chat\"}},"
		   "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"chat\"},"
		   "\"gpusPerReplica\":%" PRId64
		   ",\"maxSequences\":8,\"prefillTokensPerSecond\":\"25k\",\"interTokenLatency\":"
		   "\"30ms\"},\"signals\":{\"engine\":\"vllm\",\"scrape\":{\"port\":8000,\"path\":\"/metrics\","
		   "\"interval\":\"15s\"}},\"leadTime\":{\"provision\":{\"p50\":\"45s\",\"p95\":\"70s\"},\"register\":"
		   "{\"p50\":\"20s\",\"p95\":\"30s\"},\"device\":{\"p50\":\"15s\",\"p95\":\"30s\"},\"image\":{\"p50\":"
		   "\"60s\",\"p95\":\"90s\"},\"load\":{\"p50\":\"60s\",\"p95\":\"90s\"}},\"headroom\":{\"min\":%" PRId64
		   "},\"scaleDown\":{\"after\":\"%s\"}",
		   wait, d->replica_gpus, d->floor, after[after_at]);
	draw_groups(d);
	buf_text(&d->spec, "}");
	d->w.chat = world_app("chat", replicas, (int)d->replica_gpus, budgets[budget]);
}

static void add_training(struct world_drawn *d)
{
	size_t size = draw_size(d, d->w.job_gpus);

	buf_printf(&d->manifest,
		   "---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: train, namespace: "
		   "llm }\nspec: "
		   "{\"mode\":\"act\",\"class\":\"training\",\"objective\":{\"queueWait\":\"30m\",\"attainment\":"
		   "\"95%%\"},\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"train\"}},"
		   "\"gpusPerReplica\":%d},\"signals\":{\"engine\":\"pods\"},\"nodeGroups\":[{\"name\":"
		   "\"gtrain\",",
		   d->w.job_gpus);
	write_place(d, "gtrain", size, "existing", &d->manifest);
	const struct cloud_group *g = add_group(d, "gtrain", "train", size, 8, 0);
	buf_printf(&d->manifest, "%s,\"pricePerHour\":9,\"min\":0,\"max\":8}],\"scaleDown\":{\"after\":\"5m\"}}\n",
		   g->zone_count > 1 ? "" : ",\"zone\":\"z1\"");
	world_app("train", 0, d->w.job_gpus, "")->is_idle = true;
}

static void begin_replicas(struct world_drawn *d)
{
	struct nemesis_world *w = &d->w;
	int64_t among_these = among(d, 1, 100);

	w->is_pair = among_these <= 40;
	w->is_twin = asked.mode != NEMESIS_OWNERS && among_these > 90;
	for (int i = 0; i < WORLD_REPLICAS; i++)
		w->settings[i] = (struct replica_settings){ .manifest = w->watches_objects ? NULL : d->manifest.text,
							    .watches_objects = w->watches_objects,
							    .elects = w->is_pair || w->is_twin || among_these > 75,
							    .lease = w->is_twin && i ? "other" : NULL };
	if (w->is_twin)
		laws_share_groups();
	replica_start(0, &w->settings[0]);
	if (!w->is_pair && !w->is_twin)
		return;
	world_run(SECOND);
	replica_start(1, &w->settings[1]);
}

static void draw_world(struct world_drawn *d, uint64_t seed)
{
	static const enum cloud_wire wires[] = { CLOUD_SIMULATED, CLOUD_SIMULATED, CLOUD_EKS, CLOUD_EKS, CLOUD_AKS };

	d->w.random = random_stream(seed, "nemesis world");
	d->machines = random_stream(seed, "machines");
	d->reservations = random_stream(seed, "reservations");
	d->standbys = random_stream(seed, "standbys");
	d->spots = random_stream(seed, "spots");
	d->zones = random_stream(seed, "zones");
	d->deletes_named = among_standbys(d, 0, 1);
	d->are_large = among_machines(d, 1, 100) > 40;
	d->w.traffic = d->are_large ? 4 : 1;
	d->replica_gpus = draw_pod_gpus(d);
	d->w.job_gpus = (int)draw_pod_gpus(d);
	d->wire = wires[among(d, 0, 4)];
	d->launches = d->wire == CLOUD_EKS && chance(d, 40);
	d->w.watches_objects = chance(d, 30);
	d->has_training = !d->w.watches_objects && chance(d, 35);
	draw_chat(d);
	d->w.spec = d->spec.text;
	buf_printf(&d->manifest,
		   "apiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: chat, namespace: llm }\nspec: "
		   "%s\n",
		   d->spec.text);
	if (d->has_training)
		add_training(d);
	if (d->w.watches_objects)
		nemesis_make_pool(&d->w);
	begin_replicas(d);
}

static int64_t floor_size;

/* One more may be kept for long after traffic. */
static bool is_calm(void)
{
	return world_is_at_rest() && world_desired("chat") <= floor_size + 1 && !world_desired("train") &&
	       laws_quiet_for() > 30 * MINUTE;
}

struct event {
	millis at;
	size_t fault;
	bool is_end;
};

static int by_time(const void *a, const void *b)
{
	const struct event *one = a, *other = b;

	if (one->at != other->at)
		return one->at < other->at ? -1 : 1;
	return (int)one->is_end - (int)other->is_end;
}

static void suffer(struct world_drawn *d, const struct fault *faults, size_t count, uint32_t left_out)
{
	struct event events[2 * NEMESIS_FAULTS];
	size_t events_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (left_out >> i & 1)
			continue;
		events[events_count++] = (struct event){ faults[i].at, i, false };
		events[events_count++] = (struct event){ faults[i].at + faults[i].lasts, i, true };
	}
	qsort(events, events_count, sizeof *events, by_time);
	for (size_t i = 0; i < events_count && !*laws_broken(); i++) {
		const struct fault *f = &faults[events[i].fault];
		if (events[i].at > wire_now())
			world_run(events[i].at - wire_now());
		laws_note("%s %s", nemesis_name(f), events[i].is_end ? "ends" : "begins");
		(events[i].is_end ? nemesis_fault_ends : nemesis_fault_begins)(&d->w, f);
	}
}

static void come_to_rest(struct world_drawn *d)
{
	nemesis_all_well(&d->w);
	floor_size = d->floor;
	world_run(15 * MINUTE); /* it hears again, and sees what was done meanwhile */
	if (!world_until(is_calm, 24 * HOUR) && !*laws_broken()) {
		const char *unrest = world_unrest();
		laws_break(unrest ? "no_orphans" : "settled", "%s, 24 hours after the last of it",
			   unrest ? unrest : "no rest");
	}
	world_run(10 * MINUTE);
	for (int i = 0; i < WORLD_REPLICAS; i++)
		replica_stop(i);
}

/* A world and what came of it. */
struct outcome {
	char law[LAW], text[512]; /* "": none broke */
	struct fault faults[NEMESIS_FAULTS];
	size_t count;
};

/* Prints so much of the trace where a law broke. */
static void run_world(uint64_t seed, uint32_t left_out, size_t trace, struct outcome *out)
{
	struct world_drawn d = { 0 };

	world_begin(seed);
	nemesis_begin();
	laws_expect_errors(true); /* a history that cannot be closed by a dead process, an API server that is away */
	draw_world(&d, seed);
	out->count = nemesis_draw(seed, &d.w, asked.mode, out->faults);
	suffer(&d, out->faults, out->count, left_out);
	if (!*laws_broken())
		come_to_rest(&d);
	snprintf(out->text, sizeof out->text, "%s", laws_broken());
	snprintf(out->law, sizeof out->law, "%.*s", (int)strcspn(out->text, " "), out->text);
	if (*out->law && trace)
		laws_print_trace(trace);
	nemesis_end();
	world_end();
	buf_release(&d.spec);
	buf_release(&d.manifest);
}

static void print_faults(const struct outcome *o, uint32_t left_out)
{
	for (size_t i = 0; i < o->count; i++)
		if (!(left_out >> i & 1))
			fprintf(stderr, "    %zu: %s at %.3f s for %.0f s\n", i, nemesis_name(&o->faults[i]),
				(double)o->faults[i].at / SECOND, (double)o->faults[i].lasts / SECOND);
}

/* Faults without which the same law breaks are left out, one by one. */
static void shrink(uint64_t seed, const struct outcome *whole)
{
	struct outcome now = *whole;
	uint32_t left_out = 0;

	for (size_t i = whole->count; i-- > 0;) {
		run_world(seed, left_out | 1U << i, 0, &now);
		left_out |= strcmp(now.law, whole->law) ? 0 : 1U << i;
	}
	run_world(seed, left_out, 30, &now);
	fprintf(stderr, "seed %" PRIu64 ": %s\n    again: world_nemesis_test %s-o %" PRIu64 " ", seed, now.text,
		asked.mode == NEMESIS_OWNERS ? "-w " : "", seed);
	for (size_t i = 0, shown = 0; i < now.count; i++)
		if (!(left_out >> i & 1))
			fprintf(stderr, "%s%zu", shown++ ? "," : "", i);
	fprintf(stderr, "\n");
	print_faults(&now, left_out);
}

static int run_seeds(uint64_t first, uint64_t count)
{
	struct outcome o;
	int broken = 0;

	for (uint64_t seed = first; seed < first + count; seed++) {
		run_world(seed, 0, 0, &o);
		if (!*o.law)
			continue;
		broken++;
		printf("broken %s seed %" PRIu64 "\n", o.law, seed);
		fflush(stdout);
		if (!asked.is_quiet)
			shrink(seed, &o);
	}
	printf("%d of %" PRIu64 " worlds broke a law\n", broken, count);
	return broken > 0;
}

static int run_one(uint64_t seed, const char *kept)
{
	struct outcome o;
	uint32_t left_out = UINT32_MAX;

	for (const char *at = kept; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		left_out &= ~(1U << (strtoul(at, NULL, 10) % 32));
	run_world(seed, kept ? left_out : 0, 60, &o);
	print_faults(&o, kept ? left_out : 0);
	fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, *o.law ? o.text : "the laws hold");
	return *o.law != '\0';
}

int main(int argc, char **argv)
{
	bool is_one = false;
	int option;

	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	while ((option = getopt(argc, argv, "wqo")) != -1) {
		asked.mode = option == 'w' ? NEMESIS_OWNERS : asked.mode;
		asked.is_quiet |= option == 'q';
		is_one |= option == 'o';
		if (option == '?')
			return 2;
	}
	const char *first = argc > optind ? argv[optind] : "1", *second = argc > optind + 1 ? argv[optind + 1] : NULL;
	if (is_one)
		return run_one(strtoull(first, NULL, 10), second);
	return run_seeds(strtoull(first, NULL, 10), second ? strtoull(second, NULL, 10) : 50);
}
