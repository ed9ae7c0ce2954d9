/* The form of a batch: what replica.c writes and replica_import.c reads. */
#pragma once
#include "state/history_file.h"
#include "state/replica.h"

/*
 * Rows are told as they are, table by table. Questions see x: the first and the last tick of the batch, the first tick
 * whose manifest belongs to it, the end of the tick before it, whether the follower has nothing, and whether nothing is
 * kept before it.
 */
struct section {
	const char *select, *insert;
	bool is_names;	   /* rows of it mean that pools or groups may be new */
	const char *table; /* NULL, or one that files of before lack */
};

extern const struct section replica_sections[];
extern const size_t replica_section_count;

#define REPLICA_RAW_MOST ((size_t)256 << 20) /* rows before packing */
#define REPLICA_MAGIC	 "PrHtcop2"

enum replica_place { BATCH_FOLLOWS, BATCH_BEGINS, BATCH_PRECEDES }; /* what the follower has */

/* What stands before the packed rows. Leader and follower are of one image, so numbers are as the machine has them. */
struct replica_head {
	char magic[8];
	uint32_t crc; /* of the rest of this head and the packed rows */
	uint32_t tables, layout;
	uint32_t place;
	int64_t first, last;
	uint64_t size; /* of the rows before packing */
};

uint32_t replica_head_crc(const struct replica_head *head, const void *packed, size_t len);
