#include "controller/simulation/draws.h"

#include "base/random.h"

#include <stddef.h>

uint64_t draw_seed(uint64_t seed, size_t draw)
{
	struct random r = random_stream(seed, "draws");

	for (size_t i = 0; i < draw; i++)
		seed = random_next(&r);
	return seed;
}

#define FIELD(name) offsetof(struct score, name)
static const size_t means[] = { FIELD(requests),      FIELD(late),	     FIELD(gave_up),
				FIELD(started),	      FIELD(waiting),	     FIELD(gpu_ms),
				FIELD(micro_dollars), FIELD(standby_gpu_ms), FIELD(lent_replica_ms),
				FIELD(starts),	      FIELD(removals),	     FIELD(lost),
				FIELD(refused),	      FIELD(batch_lost_ms) },
		    waits[] = { FIELD(wait_p50), FIELD(wait_p99) };
#undef FIELD

static int64_t *field(struct score *s, size_t offset)
{
	return (int64_t *)(void *)((char *)s + offset);
}

/* Rounded; a draw's share of it is added up first, so that no sum of large figures overflows. */
static int64_t mean(int64_t whole, int64_t rest, int64_t count)
{
	return whole + (rest + count / 2) / count;
}

static int64_t mean_of(const struct score *const *draws, size_t count, size_t offset, bool only_started)
{
	int64_t whole = 0, rest = 0, of = 0;

	for (size_t i = 0; i < count; i++)
		of += !only_started || draws[i]->started;
	for (size_t i = 0; of && i < count; i++) {
		struct score s = *draws[i];

		if (only_started && !s.started)
			continue;
		whole += *field(&s, offset) / of;
		rest += *field(&s, offset) % of;
	}
	return of ? mean(whole, rest, of) : 0;
}

static struct score mean_score(const struct score *const *draws, size_t count)
{
	struct score s = *draws[0];

	for (size_t i = 0; i < sizeof means / sizeof *means; i++)
		*field(&s, means[i]) = mean_of(draws, count, means[i], false);
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		*field(&s, waits[i]) = mean_of(draws, count, waits[i], true);
	for (size_t i = 1; i < count; i++) {
		s.draws += draws[i]->draws;
		s.draws_met += draws[i]->draws_met;
		s.late_least = draws[i]->late_least < s.late_least ? draws[i]->late_least : s.late_least;
		s.late_most = draws[i]->late_most > s.late_most ? draws[i]->late_most : s.late_most;
	}
	return s;
}

void draws_mean(const struct pool_score *draws, size_t count, size_t pools, struct pool_score *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct score **whole = arena_array(&a, const struct score *, count),
			   **scored = arena_array(&a, const struct score *, count);

	for (size_t pool = 0; pool < pools; pool++) {
		for (size_t i = 0; i < count; i++) {
			whole[i] = &draws[i * pools + pool].whole;
			scored[i] = &draws[i * pools + pool].scored;
		}
		out[pool] =
			(struct pool_score){ .whole = mean_score(whole, count), .scored = mean_score(scored, count) };
	}
}
