#include "signals/scrape_source.h"

#include <stdlib.h>

struct scrape_source {
	struct source base; /* first */
	const struct clock *clock;
	struct scraper *scraper;
	void (*on_reading)(void *user, const struct pool_reading *r);
	void *user;
	struct source_report report;
};

static struct scrape_source *of(const struct source *base)
{
	return (struct scrape_source *)base;
}

static void on_reading(struct scraper *scraper, const struct pool_reading *r)
{
	struct scrape_source *s = scraper_user(scraper);

	s->report.trouble = (struct error){ 0 };
	if (r->fresh < r->expected)
		scraper_trouble(scraper, &s->report.trouble);
	s->report.rounds++;
	s->report.blind += r->expected > 0 && !r->fresh;
	if (r->fresh)
		s->report.read_at = clock_mono(s->clock);
	s->on_reading(s->user, r);
}

/* The scraper's own memory may outlive it, this does not: no reading comes any more. */
static void close_source(struct source *base)
{
	scraper_close(of(base)->scraper);
	free(of(base));
}

static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	struct scrape_target *made = calloc(count + 1, sizeof *made);

	if (!made)
		abort();
	for (size_t i = 0; i < count; i++)
		made[i] = (struct scrape_target){ targets[i].key, targets[i].url, targets[i].is_ready };
	scraper_set_targets(of(base)->scraper, made, count);
	free(made);
}

static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	return scrape_in_flight(of(base)->scraper, key, count, age);
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static void advance(struct source *base)
{
	scraper_advance(of(base)->scraper);
}

static const struct source_ops ops = { close_source, set_targets, in_flight, report, advance };

struct source *scrape_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				  const struct scrape_source_settings *settings)
{
	struct scrape_source *s = calloc(1, sizeof *s);

	if (!s)
		abort();
	s->base.ops = &ops;
	s->clock = clock;
	s->on_reading = settings->source.on_reading;
	s->user = settings->source.user;
	s->scraper = scraper_open(loop, http, clock,
				  &(struct scrape_settings){ .pool = settings->source.pool,
							     .engine = settings->source.engine,
							     .interval = settings->source.interval,
							     .objective_us = settings->source.objective_us,
							     .custom = settings->source.custom,
							     .reach = settings->reach,
							     .on_reading = on_reading,
							     .user = s });
	return &s->base;
}
