/*
 * Whether a stored input can be one: a right checksum says only that nobody
 * altered it by accident. What decides, sums or draws needs no bounds of its own.
 */
#pragma once
#include "state/record.h"

/* ERROR_INVALID names the field, what was found and what is allowed. */
bool record_check_input(const struct record_key *k, const struct pool_snapshot *s, struct error *e) MUST_USE;
