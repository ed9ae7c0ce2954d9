/*
 * The planner of NVIDIA Dynamo (ai-dynamo/dynamo, components/planner): once
 * an interval the number and the lengths of the requests of the next one are
 * predicted and divided by what an engine can do; that is the floor. Between,
 * a fast loop adds or takes one replica by load: up when all slots are full,
 * down when one replica less would stay below 80 % of the target (its
 * sensitivity). Defaults: interval 180 s, Kalman q_level 1, q_trend 0.1, r 10.
 * `hold`: no scaling while an earlier one is under way, as its Kubernetes
 * connector does.
 */
#include "controller/simulation/rivals/kalman.h"
#include "controller/simulation/rivals/rival.h"

enum { UTILIZATION, INTERVAL, NOISE, FAST, HOLD };

static const struct setting_row rows[] = {
	[UTILIZATION] = { "utilization", 0.8, 0.05, 2, "share of an engine's throughput to plan with" },
	[INTERVAL] = { "interval", 180, 15, 3600, "s; between predictions" },
	[NOISE] = { "noise", 10, 1e-6, 1000, "variance of a reading (r)" },
	[FAST] = { "fast", 1, 0, 1, "1: the fast loop of one replica up or down" },
	[HOLD] = { "hold", 1, 0, 1, "1: nothing while a scaling is under way" },
};

struct dynamo {
	bool begun;
	int64_t replicas, floor;
	millis since;			   /* start of the interval */
	int64_t requests;		   /* arrived in it */
	int64_t completed, prompt, output; /* finished in it, and their tokens */
	int64_t last_waiting, last_running;
	struct kalman arrivals, input, generated; /* number, mean prompt and mean output tokens */
};

static void observe(struct dynamo *d, const struct sight *v)
{
	for (size_t i = 0; i < v->scrape_count; i++) {
		const struct scrape_input *r = &v->scrapes[i];
		int64_t running = r->running + r->running_draining;
		int64_t started = r->started != ABSENT ? r->started : r->completed + running - d->last_running;
		int64_t arrived = started + r->waiting - d->last_waiting;

		d->requests += arrived > 0 ? arrived : 0;
		d->completed += r->completed;
		d->prompt += r->prompt_tokens;
		d->output += r->output_tokens;
		d->last_running = running;
		d->last_waiting = r->waiting;
	}
}

static double slot_seconds(const struct pool_spec *p, double prompt, double output)
{
	return (double)p->max_sequences * prompt / (double)p->prefill_tokens_per_second +
	       output * (double)p->inter_token_latency_us / 1e6;
}

/* The slow loop: what the coming interval needs. */
static int64_t plan_floor(struct dynamo *d, const struct settings *s, const struct sight *v)
{
	struct kalman_noise noise = { 1, 0.1, s->values[NOISE] };
	double requests = kalman_step(&d->arrivals, &noise, (double)d->requests);
	double done = d->completed > 0 ? (double)d->completed : 1;
	double prompt = d->input.level, output = d->generated.level;

	if (d->completed > 0) {
		prompt = kalman_step(&d->input, &noise, (double)d->prompt / done);
		output = kalman_step(&d->generated, &noise, (double)d->output / done);
	}
	double engine = v->slots / slot_seconds(v->spec, prompt, output) * s->values[UTILIZATION];
	if (!(engine > 0 && engine < 1e12))
		return 1;
	return whole_above(requests / s->values[INTERVAL] / engine);
}

/* The fast loop: one up when everything is full, one down when the rest would have room to spare. */
static int64_t step(const struct sight *v, double utilization)
{
	double load = (double)(v->running + v->waiting), ready = (double)v->ready;

	if (load >= ready * v->slots)
		return 1;
	return v->ready > 1 && load < 0.8 * utilization * (ready - 1) * v->slots ? -1 : 0;
}

static void begin(struct dynamo *d, const struct sight *v)
{
	if (d->begun)
		return;
	d->begun = true;
	d->replicas = d->floor = v->ready + v->starting;
	d->since = v->now - v->interval;
	d->last_running = v->scrapes[0].running + v->scrapes[0].running_draining;
	d->last_waiting = v->scrapes[0].waiting;
}

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	struct dynamo *d = memory;

	begin(d, v);
	observe(d, v);
	if (v->now - d->since >= (millis)s->values[INTERVAL] * SECOND) {
		int64_t floor = plan_floor(d, s, v);

		d->floor = floor > 1 ? floor : 1;
		d->since = v->now;
		d->requests = d->completed = d->prompt = d->output = 0;
	}
	if (s->values[HOLD] >= 1 && v->starting > 0)
		return d->replicas;
	if (s->values[FAST] >= 1)
		d->replicas += step(v, s->values[UTILIZATION]);
	if (d->replicas < d->floor || s->values[FAST] < 1)
		d->replicas = d->floor;
	if (d->replicas > v->most)
		d->replicas = v->most;
	return d->replicas;
}

static void sweep(struct sweep *s, const struct rival_scale *scale)
{
	static const double utilizations[] = { 0.8, 0.5, 0.6, 0.7, 0.75, 0.85, 0.9, 0.95, 1 };
	static const int intervals[] = { 180, 60, 600 };
	static const struct {
		int noise, fast, hold;
	} loops[] = { { 10, 1, 1 }, { 10, 1, 0 }, { 10, 0, 0 }, { 1, 0, 0 } };

	(void)scale;
	for (size_t l = 0; l < sizeof loops / sizeof *loops; l++)
		for (size_t u = 0; u < sizeof utilizations / sizeof *utilizations; u++)
			for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++)
				sweep_add(s, false, "utilization=%g,interval=%d,noise=%d,fast=%d,hold=%d",
					  utilizations[u], intervals[i], loops[l].noise, loops[l].fast, loops[l].hold);
}

const struct family family_dynamo = {
	.name = "dynamo",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = sizeof(struct dynamo),
	.want = want,
	.sweep = sweep,
};
