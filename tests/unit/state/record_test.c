/* The codec of records: every value comes back, no altered byte goes unnoticed, and a quiet tick is small. */
#include "base/random.h"
#include "state/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LIST_MOST = 12, GROUPS = 3 };
static const millis TICK = 15000;

/* One pool's tick with room for its lists. */
struct sample {
	struct pool_snapshot snapshot;
	struct pool_plan plan;
	struct scrape_input scrapes[LIST_MOST];
	struct group_input groups[LIST_MOST];
	struct start_input starts[LIST_MOST];
	struct event_input events[LIST_MOST];
	struct deadline_input deadlines[LIST_MOST];
	struct group_decision decisions[LIST_MOST];
};

static int64_t any_value(struct random *r)
{
	static const int64_t edges[] = {
		0, 1, -1, ABSENT, INT64_MAX, ABSENT + 1, -(INT64_C(1) << 62), INT64_C(1) << 62
	};
	uint64_t pick = random_next(r) % 10;

	if (pick == 0)
		return edges[random_next(r) % (sizeof edges / sizeof *edges)];
	return pick < 8 ? (int64_t)(random_next(r) % 2000) : (int64_t)random_next(r);
}

static void scatter(struct random *r, void *values, size_t count, unsigned one_in)
{
	int64_t *v = values;

	for (size_t i = 0; i < count; i++)
		if (random_next(r) % one_in == 0)
			v[i] = any_value(r);
}

enum { VALUE = 8 };
#define FIELDS(array) (sizeof(array) / VALUE)

/* The tick after: some values and lengths change; the front of the starts leaves. */
static void advance(struct random *r, struct sample *s)
{
	scatter(r, &s->snapshot.input, sizeof s->snapshot.input / 8, 3);
	scatter(r, s->scrapes, FIELDS(s->scrapes), 3);
	scatter(r, s->groups, FIELDS(s->groups), 9);
	scatter(r, s->events, FIELDS(s->events), 2);
	scatter(r, s->deadlines, FIELDS(s->deadlines), 4);
	scatter(r, &s->plan.decision, sizeof s->plan.decision / 8, 3);
	scatter(r, s->decisions, FIELDS(s->decisions), 9);
	scatter(r, s->plan.prices, FIELDS(s->plan.prices), 9);
	size_t gone = random_next(r) % 3;
	memmove(s->starts, s->starts + gone, sizeof s->starts - gone * sizeof *s->starts);
	scatter(r, s->starts + LIST_MOST - 2, 2 * sizeof *s->starts / 8, 2);
	scatter(r, s->starts, FIELDS(s->starts), 40);

	s->snapshot.scrapes = s->scrapes;
	s->snapshot.groups = s->groups;
	s->snapshot.starts = s->starts;
	s->snapshot.events = s->events;
	s->snapshot.deadlines = s->deadlines;
	s->snapshot.scrape_count = random_next(r) % LIST_MOST;
	s->snapshot.group_count = GROUPS;
	s->snapshot.start_count = random_next(r) % LIST_MOST;
	s->snapshot.event_count = random_next(r) % 3;
	s->snapshot.deadline_count = random_next(r) % LIST_MOST;
	s->plan.groups = s->decisions;
	s->plan.group_count = GROUPS;
	s->plan.price_count = random_next(r) % (OBJECTIVE_PRICES + 1);
}

#define SAME_LIST(a, b, list, length)              \
	(assert_int_equal((a).length, (b).length), \
	 (a).length ? assert_memory_equal((a).list, (b).list, (a).length * sizeof *(a).list) : (void)0)

static void assert_same_snapshot(const struct pool_snapshot *a, const struct pool_snapshot *b)
{
	assert_memory_equal(&a->input, &b->input, sizeof a->input);
	SAME_LIST(*a, *b, scrapes, scrape_count);
	SAME_LIST(*a, *b, groups, group_count);
	SAME_LIST(*a, *b, starts, start_count);
	SAME_LIST(*a, *b, events, event_count);
	SAME_LIST(*a, *b, deadlines, deadline_count);
}

static void assert_same_plan(const struct pool_plan *a, const struct pool_plan *b)
{
	assert_memory_equal(&a->decision, &b->decision, sizeof a->decision);
	SAME_LIST(*a, *b, groups, group_count);
	SAME_LIST(*a, *b, prices, price_count);
}

static void every_value_comes_back(void **state)
{
	(void)state;
	struct random r = random_stream(7, "record");
	struct record_state in[2] = { 0 }, out[2] = { 0 };
	struct buf bytes = { 0 };
	struct sample *s = calloc(1, sizeof *s);
	struct error e;

	for (int64_t tick = 0; tick < 3000; tick++) {
		struct record_key k = { tick, 2, INT64_C(1700000000000) + tick * TICK, TICK, tick % 240 == 0 };

		advance(&r, s);
		buf_clear(&bytes);
		record_encode_input(&in[0], &k, &s->snapshot, &bytes);
		assert_true(record_decode(&out[0], RECORD_INPUT, &k, bytes.text, bytes.len, &e));
		struct pool_snapshot snapshot = record_snapshot(&out[0]);
		assert_same_snapshot(&s->snapshot, &snapshot);
		buf_clear(&bytes);
		record_encode_plan(&in[1], &k, &s->plan, &bytes);
		assert_true(record_decode(&out[1], RECORD_PLAN, &k, bytes.text, bytes.len, &e));
		struct pool_plan plan = record_plan(&out[1]);
		assert_same_plan(&s->plan, &plan);
	}
	for (int i = 0; i < 2; i++) {
		record_state_release(&in[i]);
		record_state_release(&out[i]);
	}
	buf_release(&bytes);
	free(s);
}

static void an_altered_byte_is_noticed(void **state)
{
	(void)state;
	struct random r = random_stream(8, "record");
	struct record_state in = { 0 };
	struct buf bytes = { 0 };
	struct sample *s = calloc(1, sizeof *s);
	struct record_key k = { 240, 0, INT64_C(1700000000000), TICK, true };
	struct error e;

	advance(&r, s);
	record_encode_plan(&in, &k, &s->plan, &bytes);
	for (size_t i = 0; i < bytes.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			struct record_state out = { 0 };

			bytes.text[i] ^= (char)(1 << bit);
			assert_false(record_decode(&out, RECORD_PLAN, &k, bytes.text, bytes.len, &e));
			assert_int_equal(e.kind, ERROR_INVALID);
			bytes.text[i] ^= (char)(1 << bit);
			record_state_release(&out);
		}
	for (size_t len = 0; len < bytes.len; len++) {
		struct record_state out = { 0 };

		assert_false(record_decode(&out, RECORD_PLAN, &k, bytes.text, len, &e));
		record_state_release(&out);
	}
	record_state_release(&in);
	buf_release(&bytes);
	free(s);
}

static void another_ticks_bytes_are_refused(void **state)
{
	(void)state;
	static const struct record_key other[] = { { 241, 0, 0, 0, true },
						   { 240, 1, 0, 0, true },
						   { 240, 0, 1, 0, true },
						   { 240, 0, 0, 1, true },
						   { 240, 0, 0, 0, false } };
	struct record_key k = { 240, 0, 0, 0, true };
	struct record_state in = { 0 }, out = { 0 };
	struct buf bytes = { 0 };
	struct pool_plan plan = { .price_count = 0 };
	struct error e;

	record_encode_plan(&in, &k, &plan, &bytes);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		assert_false(record_decode(&out, RECORD_PLAN, &other[i], bytes.text, bytes.len, &e));
	record_state_release(&in);
	record_state_release(&out);
	buf_release(&bytes);
}

static void a_quiet_tick_costs_a_few_bytes(void **state)
{
	(void)state;
	struct record_state in = { 0 };
	struct buf bytes = { 0 };
	struct scrape_input scrapes[3] = { 0 };
	struct pool_snapshot snapshot = { .scrapes = scrapes, .scrape_count = 3 };

	for (int64_t tick = 0; tick < 10; tick++) {
		struct record_key k = { tick, 0, INT64_C(1700000000000) + tick * TICK, TICK, tick == 0 };

		for (int i = 0; i < 3; i++)
			scrapes[i].at = k.now - 10000 + i * INT64_C(5000);
		buf_clear(&bytes);
		record_encode_input(&in, &k, &snapshot, &bytes);
		if (tick)
			assert_int_equal(bytes.len, 5);
	}
	record_state_release(&in);
	buf_release(&bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_comes_back),
		cmocka_unit_test(an_altered_byte_is_noticed),
		cmocka_unit_test(another_ticks_bytes_are_refused),
		cmocka_unit_test(a_quiet_tick_costs_a_few_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
