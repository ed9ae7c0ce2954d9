#include "controller/loop/serving.h"

#include <stdio.h>
#include <string.h>

/* Twice and a minute: a probe's period and a cold cache explain less. */
static const int64_t TIMES_APART = 2;
static const millis BEYOND = MINUTE;
enum { MEASURED_LEAST = 3 };

static void note_prefix(struct serving *s, const struct pool_reading *r)
{
	int64_t minute = r->at / MINUTE;
	struct serving_prefix *p = &s->prefix[minute % HISTOGRAM_MINUTES];

	if (r->more->prefix_queries == READING_UNKNOWN)
		return;
	if (p->minute != minute)
		*p = (struct serving_prefix){ .minute = minute };
	p->queries += r->more->prefix_queries;
	p->hits += r->more->prefix_hits;
}

void serving_note(struct serving *s, const struct pool_reading *r)
{
	if (!r->more)
		return;
	histogram_window_add(&s->wait, r->at, &r->more->wait);
	histogram_window_add(&s->first_token, r->at, &r->more->first_token);
	note_prefix(s, r);
	s->more_at = r->at;
	s->prefix_permille = r->more->prefix_permille;
	s->load_ms = r->more->load_ms;
	s->startup_ms = r->more->startup_ms;
}

static struct published_bounds bounds(const struct histogram *s, int percent)
{
	struct published_bounds b = { 0 };

	b.is_told = histogram_quantile(s, percent, &b.lower_us, &b.upper_us);
	return b;
}

static int64_t prefix_permille(const struct serving *s, millis now)
{
	int64_t queries = 0, hits = 0;

	for (int i = 0; i < HISTOGRAM_MINUTES; i++)
		if (now / MINUTE - s->prefix[i].minute < HISTOGRAM_MINUTES) {
			queries += s->prefix[i].queries;
			hits += s->prefix[i].hits;
		}
	if (!queries || hits > queries)
		return s->prefix_permille;
	return (int64_t)(((__int128)hits * 1000 + queries / 2) / queries);
}

static int64_t or_absent(int64_t value)
{
	return value == READING_UNKNOWN ? ABSENT : value;
}

static bool is_far_beyond(millis more, millis less)
{
	return more > TIMES_APART * less + BEYOND;
}

/* Loading the weights is a part of a start: it can be too long for it, never too short. */
const char *serving_load_differs(const struct serving *s, const struct stage_times *measured, struct arena *a)
{
	struct published_stage stage = stage_times_show(measured);
	bool has_startup = s->startup_ms != READING_UNKNOWN;
	int64_t told = has_startup ? s->startup_ms : s->load_ms;
	char text[400];

	if (!s->more_at || told == READING_UNKNOWN || stage.samples < MEASURED_LEAST)
		return NULL;
	if (is_far_beyond(told, stage.p50))
		snprintf(text, sizeof text,
			 "the servers tell that they need %lld s to start, but pods became ready after %lld s: is the "
			 "readiness "
			 "probe right, so that no request comes before the model is loaded?",
			 (long long)(told / SECOND), (long long)(stage.p50 / SECOND));
	else if (has_startup && is_far_beyond(stage.p50, told))
		snprintf(text, sizeof text,
			 "the servers tell that they need %lld s to start, but pods became ready after %lld s: what "
			 "else does the "
			 "pod wait for (init containers, a sidecar, the period of its probe)?",
			 (long long)(told / SECOND), (long long)(stage.p50 / SECOND));
	else
		return NULL;
	return arena_strdup(a, text, strlen(text));
}

void serving_publish(const struct serving *s, millis now, struct published_serving *out)
{
	static const int percents[] = { 50, 99 };
	struct histogram wait = histogram_window_sum(&s->wait, now);
	struct histogram first_token = histogram_window_sum(&s->first_token, now);

	*out = (struct published_serving){ .prefix_permille = ABSENT, .load_ms = ABSENT, .startup_ms = ABSENT };
	if (!s->more_at || now - s->more_at > HISTOGRAM_MINUTES * MINUTE)
		return;
	for (int i = 0; i < 2; i++) {
		out->wait[i] = bounds(&wait, percents[i]);
		out->first_token[i] = bounds(&first_token, percents[i]);
	}
	out->prefix_permille = or_absent(prefix_permille(s, now));
	out->load_ms = or_absent(s->load_ms);
	out->startup_ms = or_absent(s->startup_ms);
}
