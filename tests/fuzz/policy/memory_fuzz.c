/*
 * A checkpoint as anybody could have altered it: refused, or one that can be
 * decided from. The input is a list of changes to the bytes of a real one,
 * which is too large to be made up.
 */
#include "tests/fuzz/policy/fleet_made.h"

#include <string.h>

enum { LEARNT_TICKS = 300, DECIDED_TICKS = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decide(struct memory *m, int64_t from, int64_t ticks)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct made made;

	for (int64_t tick = from; tick < from + ticks; tick++) {
		made_tick(&made, tick);
		policy_decide(&made.snapshot, m, &a);
		arena_clear(&a);
	}
}

static const struct buf *real_checkpoint(void)
{
	static struct buf bytes;

	if (!bytes.len) {
		struct memory *m = memory_new(&made_fleet);
		decide(m, 0, LEARNT_TICKS);
		memory_encode(m, &bytes);
		memory_free(m);
	}
	return &bytes;
}

/* One change: where (3 bytes), how many bytes (1), and they. */
static void alter(struct buf *bytes, const uint8_t *data, size_t size)
{
	while (size > 4) {
		size_t at = (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % bytes->len;
		size_t len = data[3] % 9;

		len = len < size - 4 ? len : size - 4;
		len = len < bytes->len - at ? len : bytes->len - at;
		memcpy(bytes->text + at, data + 4, len);
		data += 4 + len;
		size -= 4 + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	const struct buf *real = real_checkpoint();
	struct error e;

	buf_append(&bytes, real->text, real->len);
	alter(&bytes, data, size);
	struct memory *m = memory_decode(bytes.text, bytes.len, &made_fleet, &e);
	if (!m)
		return 0;
	decide(m, LEARNT_TICKS, DECIDED_TICKS);
	memory_free(m);
	return 0;
}
