/*
 * Writes a history as a controller does, tick by tick, for tests of those who read it meanwhile:
 *   history_grow FROM TO HELD   copies FROM but for the last HELD ticks to TO, says "ready", and then appends one tick
 *                               and says its number for each line that it reads.
 */
#include "state/replica.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes at a time, and how many ticks before the end it goes on singly. */
enum { BATCH = 1 << 17, SINGLY = 500 };

/* Takes what follows the copy's end: about `most` bytes, at least one tick. */
static bool take(struct history *from, struct history *to, size_t most, struct replica_tail *tail, struct error *e)
{
	CLEANUP(buf_release) struct buf batch = { 0 };

	return replica_tail(to, tail, e) && replica_export(from, tail, most, &batch, e) &&
	       replica_import(to, batch.text, batch.len, e) && replica_tail(to, tail, e);
}

static bool grow(struct history *from, struct history *to, int64_t held, struct error *e)
{
	struct replica_tail tail = { 0 };
	struct history_span span;
	char line[16];

	if (!history_span(from, &span, e) || !replica_tail(to, &tail, e))
		return false;
	while (tail.tick < span.last_tick - held)
		if (!take(from, to, tail.tick < span.last_tick - held - SINGLY ? BATCH : 1, &tail, e))
			return false;
	puts("ready");
	fflush(stdout);
	while (tail.tick < span.last_tick && fgets(line, sizeof line, stdin)) {
		if (!take(from, to, 1, &tail, e))
			return false;
		printf("%lld\n", (long long)tail.tick);
		fflush(stdout);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct error e = { 0 };

	if (argc != 4) {
		fputs("usage: history_grow FROM TO HELD\n", stderr);
		return 2;
	}
	struct history *from = history_open(argv[1], &e);
	struct history *to = from ? replica_open(argv[2], &e) : NULL;
	bool is_done = to && grow(from, to, strtol(argv[3], NULL, 10), &e);

	if (!is_done)
		fprintf(stderr, "history_grow: %s\n", e.message);
	if (to && !history_finish(to, &e))
		is_done = false;
	history_close(from);
	return is_done ? 0 : 1;
}
