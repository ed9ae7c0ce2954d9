/*
 * A follower's copy of the leader's history, kept up through the leader's
 * API, so that whoever leads next goes on from the same memory. The leader's
 * address stands in the Lease; whoever may read that may read the history.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct controller;

void follow_open(struct controller *c); /* nothing without an election */
void follow_close(struct controller *c);
/* The copy is closed and left alone: we lead, and write it ourselves. */
void follow_pause(struct controller *c);
void follow_go_on(struct controller *c);
bool follow_is_idle(const struct controller *c);
/* Ticks that the leader has decided and the copy does not hold yet; 0 when not known. */
int64_t follow_lag(const struct controller *c);
