/*
 * A checkpoint as anybody could have altered it: refused, or one that can be
 * decided from. The input is a list of changes to a real one, which is too
 * large to be made up.
 */
#include "tests/fuzz/policy/fleet_made.h"

#include <string.h>

enum { DECIDED_TICKS = 3, CHANGE = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Most of a checkpoint is shadows; half of the changes are for what stands before them and behind them. */
static size_t place_of(const uint8_t *change, size_t len)
{
	size_t at = (change[0] | (size_t)change[1] << 8) * 4, near = 32 * 1024;

	if (change[2] & 1)
		return at % len;
	return at % (2 * near) < near ? at % near % len : (len - 1 - at % near) / 4 * 4;
}

/* One change: where (2 bytes), near and wide (1), and which number (1). */
static void alter(struct buf *bytes, const uint8_t *data, size_t size)
{
	for (; size >= CHANGE; data += CHANGE, size -= CHANGE) {
		size_t at = place_of(data, bytes->len), len = data[2] & 2 ? 8 : 4;
		uint64_t number = made_number(data[3]);

		len = len < bytes->len - at ? len : bytes->len - at;
		memcpy(bytes->text + at, &number, len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	const struct buf *real = made_checkpoint();
	struct error e;

	buf_append(&bytes, real->text, real->len);
	alter(&bytes, data, size);
	struct policy_state *m = policy_state_decode(bytes.text, bytes.len, &made_fleet, &e);
	if (!m)
		return 0;
	made_decide(m, MADE_LEARNT, DECIDED_TICKS);
	policy_state_free(m);
	return 0;
}
