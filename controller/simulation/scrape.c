#include "controller/simulation/parts.h"

static const struct telemetry_window *fault_at(const struct pool_world *pw, millis now)
{
	for (size_t i = 0; i < pw->telemetry_count; i++)
		if (now >= pw->telemetry[i].from && now < pw->telemetry[i].to)
			return &pw->telemetry[i];
	return NULL;
}

/* Levels, and counters since the start. */
static struct scrape_input read_queue(const struct world *w, const struct queue *q)
{
	return (struct scrape_input){ .at = w->setup.start + w->now,
				      .ready = (int64_t)q->open_seats,
				      .running = q->running,
				      .running_draining = q->running_draining,
				      .waiting = q->waiting,
				      .started = q->started,
				      .late = q->late,
				      .completed = q->completed,
				      .prompt_tokens = q->prompt_tokens,
				      .output_tokens = q->output_tokens };
}

/* What is left when only so many of the replicas answer. */
static void keep_share(struct scrape_input *s, int64_t ppm)
{
	int64_t *told[] = { &s->running, &s->running_draining, &s->waiting,	  &s->started,
			    &s->late,	 &s->completed,	       &s->prompt_tokens, &s->output_tokens };

	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		*told[i] = (int64_t)((__int128)*told[i] * ppm / 1000000);
}

static void scrape_pool(struct world *w, struct pool_state *p)
{
	const struct telemetry_window *fault = fault_at(p->world, w->now);
	struct scrape_input now = read_queue(w, &p->queue), s = now;
	int64_t ready = now.ready, fresh = ready;

	p->scrapes_expected += ready;
	if (fault && fault->fault == TELEMETRY_MISSING)
		return;
	s.started -= p->read_before.started;
	s.late -= p->read_before.late;
	s.completed -= p->read_before.completed;
	s.prompt_tokens -= p->read_before.prompt_tokens;
	s.output_tokens -= p->read_before.output_tokens;
	p->read_before = now;
	if (fault && fault->fault == TELEMETRY_STALE) {
		fresh = ready * (1000000 - fault->share_ppm) / 1000000;
		keep_share(&s, ready ? fresh * 1000000 / ready : 0);
	} else if (fault) {
		keep_share(&s, 0);
	}
	p->scrapes_fresh += fresh;
	if (p->scrape_count < SCRAPES_MAX)
		p->scrapes[p->scrape_count++] = s;
}

void world_scrape(struct world *w)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		scrape_pool(w, &w->pools[i]);
	w->next_scrape += w->scrape_period;
}
