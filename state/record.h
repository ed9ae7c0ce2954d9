/*
 * What one pool saw and decided in one tick, as few bytes: every field as
 * its difference to the tick before, fields and lists that did not change
 * left out. A keyframe stands on its own. Driven by the field tables, so a
 * new field needs no code here.
 *
 * A part's bytes end in a CRC-32 over whose part it is and all before, so one
 * altered byte anywhere is noticed and named.
 */
#pragma once
#include "base/buf.h"
#include "controller/policy/plan.h"

enum { RECORD_LISTS_MAX = 6, RECORD_ELEMENTS_MAX = 1 << 16 };

/* The two parts of a record, stored apart: what was told, and what was answered. */
enum record_part { RECORD_INPUT, RECORD_PLAN, RECORD_PART_COUNT };

/* One list of equal records, all int64_t. Zero is empty. */
struct record_list {
	int64_t *values;
	size_t count, room; /* elements; values */
};

/* One part of the tick before, which the next one is told against. Zero is valid: nothing known yet. */
struct record_state {
	struct record_list lists[RECORD_LISTS_MAX];
	struct record_list spare; /* where the next list is built */
	millis now;
};

/* Whose record it is, as far as its bytes depend on it. */
struct record_key {
	int64_t tick;
	int64_t pool;
	millis now, interval;
	bool is_keyframe;
};

/* Changes whenever a field does; bytes of another layout cannot be read. */
uint32_t record_layout(void);

void record_state_release(struct record_state *s);

/* Append one part; the state becomes this tick's. */
void record_encode_input(struct record_state *s, const struct record_key *k, const struct pool_snapshot *in,
			 struct buf *out);
void record_encode_plan(struct record_state *s, const struct record_key *k, const struct pool_plan *in,
			struct buf *out);

/*
 * Read one part into the state. Damaged bytes are ERROR_INVALID, which says
 * "checksum" or where they stop making sense; the state is then only fit
 * for release or a keyframe.
 */
bool record_decode(struct record_state *s, enum record_part part, const struct record_key *k, const void *bytes,
		   size_t len, struct error *e) MUST_USE;

/* Ends the bytes from `start` on with their checksum; the encoders do it themselves. */
void record_seal(enum record_part part, const struct record_key *k, struct buf *bytes, size_t start);

/* The state as values; lists point into it and last until it changes. */
struct pool_snapshot record_snapshot(const struct record_state *s);
struct pool_plan record_plan(const struct record_state *s);
/* Makes the state that of this plan, as if its bytes had been read. */
void record_set_plan(struct record_state *s, const struct pool_plan *plan);

/*
 * Whether a stored input can be one: a right checksum says only that nobody
 * altered it by accident. What decides, sums or draws needs no bounds of its own.
 */

/* ERROR_INVALID names the field, what was found and what is allowed. */
bool record_check_input(const struct record_key *k, const struct pool_snapshot *s, struct error *e) MUST_USE;
