/*
 * An AKS agent pool: what the Resource Manager tells of it, and the text
 * that asks for another size. All else in the text goes back as it came,
 * what we do not know too. Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

#include <stdint.h>

/* Texts live in the arena, "" when not told; `problem` in the text that was read. */
struct azure_pool {
	const char *name, *etag, *state, *type, *mode, *scale_down_mode, *priority, *eviction, *os, *vm_size, *power;
	const char *zone;		    /* of a pool in one zone, "" else */
	const char *subnet;		    /* whose join a change is checked for */
	bool is_autoscaled, is_of_machines; /* is_of_machines: of type VirtualMachines */
	int64_t count;
	size_t zone_count;
	size_t size_count;   /* of a pool of VirtualMachines: how many machine sizes it mixes */
	const char *problem; /* JSON of why it failed; NULL */
	size_t problem_len;
};

bool azure_pool_read(const char *text, size_t len, struct arena *a, struct azure_pool *out, struct error *e) MUST_USE;
/* An operation works on it, and another would be refused. */
bool azure_pool_is_busy(const struct azure_pool *p);
bool azure_pool_has_failed(const struct azure_pool *p);
bool azure_pool_keeps_stopped(const struct azure_pool *p); /* scaleDownMode Deallocate */
/* ERROR_INVALID with the remedy when it is none that we can drive: its own autoscaler, Windows, several sizes, ... */
bool azure_pool_is_ours(const struct azure_pool *p, struct error *e) MUST_USE;
/* The body of the PUT that asks for `count` machines, from the text of the pool as it was read. */
bool azure_pool_write(const char *text, size_t len, int64_t count, struct buf *out, struct error *e) MUST_USE;
