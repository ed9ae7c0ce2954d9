/*
 * Batches as a false leader could send them, with a right checksum: taken or
 * refused, and what was taken can be asked.
 */
#include "base/gzip.h"
#include "state/launch.h"
#include "state/replica_form.h"
#include "state/history_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct history *h)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct launch_filter all = { INT64_MIN, INT64_MAX, NULL, 100 };
	struct history_filter any = { ANY, 0, 100, NULL, ANY, false, false, 10 };
	struct history_stretch stretch;
	struct history_span span;
	struct replica_tail tail;
	struct tick_record record;
	struct history_hit *hits;
	struct launch *launches;
	struct error e;
	size_t count, pools;

	if (!replica_tail(h, &tail, &e) || !history_span(h, &span, &e) ||
	    !launch_find(h, &all, &a, &launches, &count, &e) || !history_find(h, &any, &a, &hits, &count, &e) ||
	    !history_stretch_at(h, span.last_tick, &a, &stretch, &e))
		return;
	history_pools(h, &pools);
	for (size_t pool = 0; pool < pools && pool < 4; pool++)
		for (int64_t tick = span.first_tick; tick <= span.last_tick && tick < span.first_tick + 4; tick++)
			if (!history_read(h, tick, pool, &record, &e))
				break;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf_release) struct buf packed = { 0 };
	CLEANUP(buf_release) struct buf batch = { 0 };
	struct replica_head head = { .magic = REPLICA_MAGIC,
				     .tables = (uint32_t)history_schema.count,
				     .layout = record_layout(),
				     .place = BATCH_BEGINS,
				     .last = 3,
				     .size = size };
	struct error e;
	struct history *h = replica_open(":memory:", &e);

	if (!h)
		abort();
	deflate_bytes(data, size, &packed);
	head.crc = replica_head_crc(&head, packed.text, packed.len);
	buf_append(&batch, &head, sizeof head);
	buf_append(&batch, packed.text, packed.len);
	if (replica_import(h, batch.text, batch.len, &e))
		ask(h);
	else if (replica_import(h, data, size, &e))
		abort();
	history_close(h);
	return 0;
}
