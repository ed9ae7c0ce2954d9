/*
 * Blobs of records as anybody could have written them, with a right
 * checksum: decoding must end, in a state whose every value can be read, and
 * what was decoded must survive its own way out and back.
 */
#include "state/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct record_state *s, const struct record_key *k)
{
	struct record_key key = { k->tick, k->pool, k->now, k->interval, true };
	struct record_state in = { 0 }, out = { 0 };
	struct buf bytes = { 0 };
	struct error e;
	struct pool_snapshot a = record_snapshot(s);

	record_encode_input(&in, &key, &a, &bytes);
	if (!record_decode(&out, RECORD_INPUT, &key, bytes.text, bytes.len, &e))
		abort();
	struct pool_snapshot b = record_snapshot(&out);
	if (memcmp(&a.input, &b.input, sizeof a.input) || a.start_count != b.start_count ||
	    (a.start_count && memcmp(a.starts, b.starts, a.start_count * sizeof *a.starts)))
		abort();
	record_state_release(&in);
	record_state_release(&out);
	buf_release(&bytes);
}

/* A record: part and kind in one byte, its length in the next, its bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_state states[RECORD_PART_COUNT] = { 0 };
	struct buf bytes = { 0 };
	struct error e;

	for (int64_t tick = 0; size >= 2; tick++) {
		enum record_part part = data[0] & 1 ? RECORD_PLAN : RECORD_INPUT;
		struct record_key k = { tick, 0, tick * 15000, 15000, tick == 0 || data[0] & 2 };
		size_t len = data[1] < size - 2 ? data[1] : size - 2;

		buf_clear(&bytes);
		buf_append(&bytes, data + 2, len);
		record_seal(part, &k, &bytes, 0);
		data += 2 + len;
		size -= 2 + len;
		if (!record_decode(&states[part], part, &k, bytes.text, bytes.len, &e))
			break;
		record_plan(&states[RECORD_PLAN]);
		if (part == RECORD_INPUT)
			check_round_trip(&states[part], &k);
	}
	for (int i = 0; i < RECORD_PART_COUNT; i++)
		record_state_release(&states[i]);
	buf_release(&bytes);
	return 0;
}
