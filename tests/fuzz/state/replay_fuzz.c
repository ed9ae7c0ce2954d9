/*
 * Inputs as anybody could have stored them, with a right checksum, on the
 * whole way of a replay: decoded, and refused or decided from. The input is
 * a list of changes to the numbers of some ticks.
 */
#include "state/record.h"
#include "tests/fuzz/policy/fleet_made.h"

#include <stdlib.h>
#include <string.h>

enum { TICKS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct change {
	uint8_t tick, list, at, number; /* at: which one of the list */
};

static void change_number(struct made *m, const struct change *c, int64_t value)
{
	const struct {
		void *numbers;
		size_t bytes;
	} lists[] = {
		{ &m->pool.input, sizeof m->pool.input },
		{ m->scrapes, sizeof m->scrapes },
		{ m->groups, sizeof m->groups },
		{ m->starts, sizeof m->starts },
		{ m->events, sizeof m->events },
		{ m->deadlines, sizeof m->deadlines },
		{ &m->snapshot.now, sizeof m->snapshot.now },
		{ &m->snapshot.interval, sizeof m->snapshot.interval },
	};
	size_t list = c->list % (sizeof lists / sizeof *lists);
	int64_t *v = lists[list].numbers;

	v[c->at % (lists[list].bytes / sizeof *v)] = value;
}

static void change_tick(struct made *m, const uint8_t *data, size_t size)
{
	struct change c;

	for (; size >= sizeof c; data += sizeof c, size -= sizeof c) {
		memcpy(&c, data, sizeof c);
		if (c.tick % TICKS == m->snapshot.tick - MADE_LEARNT)
			change_number(m, &c, (int64_t)made_number(c.number));
	}
}

/* False when the tick is refused. */
static bool store_and_read(struct record_state *in, struct record_state *out, const struct made *m,
			   struct pool_snapshot *read)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct record_key k = { m->snapshot.tick, 0, m->snapshot.now, m->snapshot.interval,
				m->snapshot.tick == MADE_LEARNT };
	struct error e;

	record_encode_input(in, &k, &m->pool, &bytes);
	if (!record_decode(out, RECORD_INPUT, &k, bytes.text, bytes.len, &e))
		abort();
	*read = record_snapshot(out);
	return record_check_input(&k, read, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct buf *learnt = made_checkpoint();
	struct record_state in = { 0 }, out = { 0 };
	struct error e;
	struct made m;
	struct policy_state *memory = policy_state_decode(learnt->text, learnt->len, &made_fleet, &e);

	if (!memory)
		abort();
	for (int64_t tick = MADE_LEARNT; tick < MADE_LEARNT + TICKS; tick++) {
		struct pool_snapshot read;

		made_tick(&m, tick);
		change_tick(&m, data, size);
		if (!store_and_read(&in, &out, &m, &read))
			break;
		struct snapshot s = m.snapshot;
		s.pools = &read;
		policy_decide(&s, memory, &a);
		arena_clear(&a);
	}
	record_state_release(&in);
	record_state_release(&out);
	policy_state_free(memory);
	return 0;
}
