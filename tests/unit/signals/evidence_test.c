/* Servers that tell the truth, however they are used, agree with themselves; each lie is found, and named. */
#include "signals/evidence.h"

#include "base/random.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- by hand: one interval after the other --- */

static const millis EACH = 15 * SECOND;

struct step {
	int times;
	int64_t running, waiting; /* at its end */
	int64_t started, completed, tokens, between_ms;
	bool went_back;
};

static struct counter_delta delta_of(const struct step *s)
{
	struct counter_delta d = { .went_back = s->went_back };
	static const enum engine_quantity told[] = { ENGINE_STARTED, ENGINE_COMPLETED, ENGINE_OUTPUT_TOKENS,
						     ENGINE_LATENCY_COUNT, ENGINE_LATENCY_SUM };

	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		d.has_value[told[i]] = true;
	d.added[ENGINE_STARTED] = s->started * 1000;
	d.added[ENGINE_COMPLETED] = s->completed * 1000;
	d.added[ENGINE_OUTPUT_TOKENS] = d.added[ENGINE_LATENCY_COUNT] = s->tokens * 1000;
	d.added[ENGINE_LATENCY_SUM] = s->between_ms * 1000;
	return d;
}

static const struct {
	const char *name;
	struct step steps[5];
	enum evidence_verdict verdict;
	int64_t running; /* the estimate at the end */
	const char *says;
} cases[] = {
	{ "idle for an hour", { { 240, 0, 0, 0, 0, 0, 0, false } }, EVIDENCE_AGREES, 0, NULL },
	{ "steady", { { 240, 8, 0, 20, 20, 4000, 120000, false } }, EVIDENCE_AGREES, 8, NULL },
	/* the issue's: 4 requests and 800 tokens a second, and a gauge of 0 */
	{ "levels of nothing under load",
	  { { 4, 24, 0, 60, 60, 12000, 360000, false }, { 4, 0, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_LEVELS,
	  24,
	  "its levels show no request, and its counters tell of 24.0 in service" },
	{ "a level that stands at one under load",
	  { { 4, 24, 0, 60, 60, 12000, 360000, false },
	    { 1, 24, 0, 60, 0, 12000, 360000, false }, /* counters move as tokens come */
	    { 5, 1, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_LEVELS,
	  24,
	  "its levels show too few requests, and its counters tell of 24.0 in service" },
	{ "a level that stands at one, where counters tell only what has ended",
	  { { 4, 24, 0, 60, 60, 12000, 360000, false }, { 8, 1, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_AGREES,
	  1,
	  NULL },
	{ "half of it, for as long as chance may show that",
	  { { 1, 24, 0, 60, 0, 12000, 360000, false }, { 9, 12, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_AGREES,
	  12,
	  NULL },
	{ "half of it, and for longer",
	  { { 1, 24, 0, 60, 0, 12000, 360000, false }, { 12, 12, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_LEVELS,
	  24,
	  "its levels show too few requests, and its counters tell of 24.0 in service" },
	{ "a seventh less than counters tell of",
	  { { 1, 24, 0, 60, 0, 12000, 360000, false }, { 60, 21, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_AGREES,
	  21,
	  NULL },
	{ "one look between two bursts is chance",
	  { { 2, 0, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_AGREES,
	  0,
	  NULL },
	{ "short requests, far between", { { 400, 0, 0, 2, 2, 200, 6000, false } }, EVIDENCE_AGREES, 0, NULL },
	{ "a lie that stopped",
	  { { 8, 0, 0, 60, 60, 12000, 360000, false }, { 1, 20, 0, 60, 60, 12000, 360000, false } },
	  EVIDENCE_AGREES,
	  20,
	  NULL },
	{ "a lie, and then really nothing",
	  { { 8, 0, 0, 60, 60, 12000, 360000, false }, { 3, 0, 0, 0, 0, 0, 0, false } },
	  EVIDENCE_AGREES,
	  0,
	  NULL },
	{ "a long queue that is gone at once, and went on",
	  { { 4, 8, 350, 18, 18, 3600, 108000, false }, { 1, 0, 0, 18, 18, 3600, 108000, false } },
	  EVIDENCE_LEVELS,
	  7,
	  "of 358 requests its levels show none, and its counters tell of 18 that ended" },
	{ "the same, and it works on",
	  { { 4, 8, 350, 18, 18, 3600, 108000, false }, { 3, 0, 0, 18, 18, 3600, 108000, false } },
	  EVIDENCE_LEVELS,
	  7,
	  "its levels show no request, and its counters tell of 7.2 in service" },
	{ "clients that all went away",
	  { { 4, 8, 350, 18, 18, 3600, 108000, false }, { 2, 0, 0, 0, 0, 0, 0, false } },
	  EVIDENCE_AGREES,
	  0,
	  NULL },
	{ "a queue that was served to its end",
	  { { 4, 8, 90, 18, 18, 3600, 108000, false }, { 1, 0, 0, 98, 98, 3600, 108000, false } },
	  EVIDENCE_AGREES,
	  0,
	  NULL },
	{ "24 running and no token",
	  { { 4, 24, 0, 60, 40, 12000, 360000, false },
	    { 1, 24, 0, 0, 0, 100, 3000, false },
	    { 21, 24, 3, 0, 0, 0, 0, false } },
	  EVIDENCE_HUNG,
	  24,
	  "24 requests run and 3 wait, and no counter has moved for 315 s" },
	{ "nothing taken from the queue",
	  { { 1, 2, 0, 2, 0, 100, 3000, false }, { 1, 0, 3, 1, 2, 100, 3000, false }, { 22, 0, 9, 0, 0, 0, 0, false } },
	  EVIDENCE_HUNG,
	  0,
	  "0 requests run and 9 wait" },
	{ "a prompt of four minutes",
	  { { 4, 2, 0, 1, 0, 100, 3000, false }, { 16, 1, 0, 0, 0, 0, 0, false } },
	  EVIDENCE_AGREES,
	  1,
	  NULL },
	{ "a token every twenty seconds",
	  { { 2, 1, 0, 1, 0, 1, 20000, false }, { 1, 1, 0, 0, 0, 0, 0, false }, { 40, 1, 0, 0, 0, 1, 20000, false } },
	  EVIDENCE_AGREES,
	  1,
	  NULL },
	{ "counters that move as requests end, and one of ten minutes",
	  { { 40, 1, 0, 0, 0, 0, 0, false } },
	  EVIDENCE_AGREES,
	  1,
	  NULL },
	{ "the same for longer than that can be",
	  { { 62, 1, 0, 0, 0, 0, 0, false } },
	  EVIDENCE_HUNG,
	  1,
	  "no counter has moved" },
	{ "one restart",
	  { { 4, 8, 0, 9, 9, 900, 90000, false },
	    { 1, 1, 0, 1, 0, 9, 900, true },
	    { 4, 8, 0, 9, 9, 900, 90000, false } },
	  EVIDENCE_AGREES,
	  8,
	  NULL },
	{ "two servers at one address",
	  { { 2, 8, 0, 9, 9, 900, 90000, false }, { 4, 3, 0, 9, 9, 900, 90000, true } },
	  EVIDENCE_RESETS,
	  3,
	  "its counters went back 3 times within" },
	{ "three restarts a day",
	  { { 1, 8, 0, 9, 9, 900, 90000, true },
	    { 90, 8, 0, 9, 9, 900, 90000, false },
	    { 1, 8, 0, 9, 9, 900, 90000, true },
	    { 90, 8, 0, 9, 9, 900, 90000, false },
	    { 1, 8, 0, 9, 9, 900, 90000, true } },
	  EVIDENCE_AGREES,
	  8,
	  NULL },
};

static void each_case_is_judged_so(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct evidence e = { 0 };
		struct error why = { 0 };
		struct page_content page = { .running = cases[i].steps[0].running,
					     .waiting = cases[i].steps[0].waiting };
		evidence_look(&e, &page, NULL, 0);
		for (int s = 0; s < 5; s++)
			for (int n = 0; n < cases[i].steps[s].times; n++) {
				struct counter_delta d = delta_of(&cases[i].steps[s]);
				page.running = cases[i].steps[s].running;
				page.waiting = cases[i].steps[s].waiting;
				evidence_look(&e, &page, &d, EACH);
			}
		evidence_tell(&e, &why);
		if (e.verdict != cases[i].verdict || evidence_running(&e) != cases[i].running ||
		    (cases[i].says && !strstr(why.message, cases[i].says)))
			fail_msg("%s: verdict %d, %" PRId64 " running: %s", cases[i].name, (int)e.verdict,
				 evidence_running(&e), why.message);
		assert_int_equal(why.kind, cases[i].says ? ERROR_INVALID : ERROR_NONE);
	}
}

/* What tells no counters can neither agree nor lie. */
static void levels_alone_are_believed(void **state)
{
	struct evidence e = { 0 };
	struct page_content page = { .running = 9, .waiting = 9 };
	const struct counter_delta none = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(evidence_look(&e, &page, i ? &none : NULL, EACH), EVIDENCE_AGREES);
	assert_int_equal(evidence_running(&e), 9);
}

/* Three looks with a request waiting, and work that goes on. */
static void a_server_is_full_once_requests_have_waited_there(void **state)
{
	static const struct {
		const char *name;
		struct step steps[3];
		bool is_full;
	} looks[] = {
		{ "a queue that lasts", { { 3, 8, 1, 2, 2, 400, 12000, false } }, true },
		{ "two looks", { { 2, 8, 9, 2, 2, 400, 12000, false } }, false },
		{ "none waits", { { 9, 8, 0, 2, 2, 400, 12000, false } }, false },
		{ "a queue that was empty between",
		  { { 2, 8, 3, 2, 2, 400, 12000, false },
		    { 1, 8, 0, 2, 2, 400, 12000, false },
		    { 2, 8, 3, 2, 2, 400, 12000, false } },
		  false },
		{ "one that is stuck",
		  { { 1, 8, 1, 2, 2, 400, 12000, false }, { 3, 2, 9, 0, 0, 0, 0, false } },
		  false },
		{ "two servers at one address", { { 4, 8, 3, 9, 9, 900, 90000, true } }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		struct evidence e = { 0 };
		evidence_look(&e, &(struct page_content){ .running = 8 }, NULL, 0);
		for (int s = 0; s < 3; s++)
			for (int n = 0; n < looks[i].steps[s].times; n++) {
				struct counter_delta d = delta_of(&looks[i].steps[s]);
				const struct page_content page = { .running = looks[i].steps[s].running,
								   .waiting = looks[i].steps[s].waiting };
				evidence_look(&e, &page, &d, EACH);
			}
		if (evidence_is_full(&e) != looks[i].is_full)
			fail_msg("%s", looks[i].name);
	}
}

/* --- seeded servers, a tenth of a second at a time --- */

enum { SLOTS = 32, SEEDS = 120, TENTHS_A_SECOND = 10 };

enum lie { HONEST, ZERO_LEVELS, THIRD_LEVELS, HALF_LEVELS, HANGS, OLD_PAGES, LIES };

struct traffic {
	double rate;		    /* requests a second */
	double prefill_s, decode_s; /* medians; the 95th percentile is four times as long */
	double between_s;	    /* tokens */
	bool has_bursts;
	bool tells_at_end; /* counters move only as requests end */
	millis interval;
};

struct request {
	double prefill_s, decode_s, total_s; /* left, left, of decoding in all */
};

struct server {
	struct random random;
	struct traffic t;
	struct request slots[SLOTS];
	int64_t running, waiting;
	double started, completed, tokens, between_s; /* counters */
	double left;				      /* of a token */
};

static struct traffic draw_traffic(struct random *r)
{
	static const double decode[] = { .3, 2, 8, 60 }, prefill[] = { .05, .5, 12 }, between[] = { .01, .03, .5 };
	static const double load[] = { .02, .3, .8, 1.5 };
	static const millis intervals[] = { 5 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE };
	struct traffic t = { .decode_s = decode[random_next(r) % 4],
			     .prefill_s = prefill[random_next(r) % 3],
			     .between_s = between[random_next(r) % 3],
			     .has_bursts = random_next(r) % 2,
			     .tells_at_end = random_next(r) % 3 == 0,
			     .interval = intervals[random_next(r) % 4] };

	t.rate = load[random_next(r) % 4] * SLOTS / (t.decode_s + t.prefill_s) / 1.3;
	return t;
}

static void end_request(struct server *s, int64_t slot)
{
	const struct request *r = &s->slots[slot];

	s->completed++;
	if (s->t.tells_at_end) {
		s->started++;
		s->tokens += r->total_s / s->t.between_s;
		s->between_s += r->total_s;
	}
	s->slots[slot] = s->slots[--s->running];
}

static void run_slots(struct server *s)
{
	const double tenth = 1. / TENTHS_A_SECOND;

	for (int64_t i = 0; i < s->running; i++) {
		struct request *r = &s->slots[i];
		bool was_prefill = r->prefill_s > 0;
		double decoded = was_prefill ? 0 : r->decode_s < tenth ? r->decode_s : tenth;
		r->prefill_s -= was_prefill ? tenth : 0;
		r->decode_s -= decoded;
		if (!s->t.tells_at_end) {
			s->started += was_prefill && r->prefill_s <= 0;
			s->tokens += decoded / s->t.between_s;
			s->between_s += decoded;
		}
		if (!was_prefill && r->decode_s <= 0)
			end_request(s, i--);
	}
}

static void arrive(struct server *s, int64_t tenth)
{
	bool is_busy = !s->t.has_bursts || tenth / (120 * TENTHS_A_SECOND) % 3 == 0; /* two minutes of six */

	s->waiting += is_busy ? random_round(&s->random, s->t.rate / TENTHS_A_SECOND) : 0;
	while (s->waiting && s->running < SLOTS) {
		double decode = random_lognormal(&s->random, s->t.decode_s, 4 * s->t.decode_s);
		s->slots[s->running++] =
			(struct request){ random_lognormal(&s->random, s->t.prefill_s, 4 * s->t.prefill_s), decode,
					  decode };
		s->waiting--;
	}
	if (s->waiting > 1000)
		s->waiting = 1000;
}

struct seen {
	int64_t running, waiting;
	double started, completed, tokens, between_s;
};

static struct seen look(const struct server *s)
{
	return (struct seen){ s->running, s->waiting, s->started, s->completed, s->tokens, s->between_s };
}

static int64_t more(double now, double before, double unit, bool *went_back)
{
	*went_back |= now < before;
	return (int64_t)((now < before ? now : (double)(int64_t)now - (double)(int64_t)before) * unit);
}

static enum evidence_verdict judge(struct evidence *e, const struct seen *before, const struct seen *now,
				   millis elapsed)
{
	struct counter_delta d = { 0 };
	const struct page_content page = { .running = now->running, .waiting = now->waiting };
	static const enum engine_quantity told[] = { ENGINE_STARTED, ENGINE_COMPLETED, ENGINE_OUTPUT_TOKENS,
						     ENGINE_LATENCY_COUNT, ENGINE_LATENCY_SUM };

	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		d.has_value[told[i]] = true;
	d.added[ENGINE_STARTED] = more(now->started, before->started, 1000, &d.went_back);
	d.added[ENGINE_COMPLETED] = more(now->completed, before->completed, 1000, &d.went_back);
	d.added[ENGINE_OUTPUT_TOKENS] = more(now->tokens, before->tokens, 1000, &d.went_back);
	d.added[ENGINE_LATENCY_COUNT] = d.added[ENGINE_OUTPUT_TOKENS];
	d.added[ENGINE_LATENCY_SUM] = more(now->between_s * 1e6, before->between_s * 1e6, 1, &d.went_back);
	return evidence_look(e, &page, &d, elapsed);
}

/* An hour; the lie begins after half of it, for good. */
struct told {
	enum evidence_verdict verdict; /* the first that does not agree */
	millis after;		       /* it began; -1: never */
	double little;		       /* mean sequences that decoded while it lied */
	millis busy;		       /* how long work was at hand then */
};

static struct told live(uint64_t seed, enum lie lie, struct traffic *t)
{
	struct server s = { .random = random_stream(seed, "evidence") };
	struct evidence e = { 0 };
	struct told told = { .after = -1 };
	struct seen before = { 0 }, old = { 0 };
	const int64_t hour = 3600 * TENTHS_A_SECOND;

	*t = s.t = draw_traffic(&s.random);
	int64_t each = t->interval / (SECOND / TENTHS_A_SECOND);
	evidence_look(&e, &(struct page_content){ 0 }, NULL, 0);
	for (int64_t i = 1; i <= hour; i++) {
		bool lies = lie != HONEST && i > hour / 2;
		double was = s.between_s;
		arrive(&s, i);
		if (!lies || lie != HANGS)
			run_slots(&s);
		told.little += lies ? (s.between_s - was) / (1800.) : 0;
		told.busy += lies && s.running ? SECOND / TENTHS_A_SECOND : 0;
		if (i == hour / 3)
			old = look(&s);
		if (i % each)
			continue;
		struct seen now = look(&s);
		if (lies && lie == ZERO_LEVELS)
			now.running = now.waiting = 0;
		if (lies && (lie == THIRD_LEVELS || lie == HALF_LEVELS)) {
			now.running /= lie == HALF_LEVELS ? 2 : 3;
			now.waiting /= lie == HALF_LEVELS ? 2 : 3;
		}
		if (lies && lie == OLD_PAGES && i / each % 3 == 0)
			now = old;
		enum evidence_verdict v = judge(&e, &before, &now, t->interval);
		if (v != EVIDENCE_AGREES && told.after < 0) {
			told.verdict = v;
			told.after = (i - (lies ? hour / 2 : 0)) * (SECOND / TENTHS_A_SECOND);
			if (!lies)
				return told;
		}
		before = now;
	}
	return told;
}

static void honest_servers_agree_whatever_they_serve(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct traffic t;
		struct told told = live(seed, HONEST, &t);
		if (told.after >= 0)
			fail_msg("seed %" PRIu64 ": verdict %d after %lld s; %g requests/s, prefill %g s, decode %g s, "
				 "%g s between tokens, bursts %d, at end %d, every %lld ms",
				 seed, (int)told.verdict, (long long)(told.after / SECOND), t.rate, t.prefill_s,
				 t.decode_s, t.between_s, t.has_bursts, t.tells_at_end, (long long)t.interval);
	}
}

/* A server with real work that lies is found within the time that scaleDown.after waits by default, or so. */
static void every_lie_under_load_is_found_and_named(void **state)
{
	static const struct {
		enum lie lie;
		enum evidence_verdict verdict;
		millis within;
	} lies[] = { { ZERO_LEVELS, EVIDENCE_LEVELS, 10 * MINUTE },
		     { THIRD_LEVELS, EVIDENCE_LEVELS, 10 * MINUTE },
		     { HALF_LEVELS, EVIDENCE_LEVELS, 16 * MINUTE },
		     { HANGS, EVIDENCE_HUNG, 16 * MINUTE },
		     { OLD_PAGES, EVIDENCE_RESETS, 10 * MINUTE } };
	int counted[LIES] = { 0 };

	(void)state;
	for (size_t l = 0; l < sizeof lies / sizeof *lies; l++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct traffic t;
			struct told told = live(seed, lies[l].lie, &t);
			if (t.has_bursts || (lies[l].lie == ZERO_LEVELS && told.little < 2) || told.busy < 29 * MINUTE)
				continue; /* mostly idle: there is little to see */
			bool is_low = lies[l].lie == THIRD_LEVELS || lies[l].lie == HALF_LEVELS;
			bool is_told = !t.tells_at_end && t.decode_s > 1 && t.prefill_s < t.decode_s / 5;
			if (is_low && (!is_told || told.little < 4 || told.little > .9 * SLOTS))
				continue; /* counters tell nothing of queues and prefill */
			counted[lies[l].lie]++;
			if (told.after < 0 || told.after > lies[l].within || told.verdict != lies[l].verdict)
				fail_msg("lie %d, seed %" PRIu64
					 ": verdict %d after %lld s; %g requests/s, prefill %g s, "
					 "decode %g s, %g s between tokens, at end %d, every %lld ms, little %g",
					 (int)lies[l].lie, seed, (int)told.verdict, (long long)(told.after / SECOND),
					 t.rate, t.prefill_s, t.decode_s, t.between_s, t.tells_at_end,
					 (long long)t.interval, told.little);
		}
	for (size_t l = 0; l < sizeof lies / sizeof *lies; l++)
		assert_in_range(counted[lies[l].lie], 11, SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case_is_judged_so),
		cmocka_unit_test(a_server_is_full_once_requests_have_waited_there),
		cmocka_unit_test(levels_alone_are_believed),
		cmocka_unit_test(honest_servers_agree_whatever_they_serve),
		cmocka_unit_test(every_lie_under_load_is_found_and_named),
	};

	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
