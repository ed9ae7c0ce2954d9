/*
 * A recording out of readings alone: a history as `record` would have
 * written it, in which nothing is known of machines but how many replicas
 * served. What it decides is what it would have asked for.
 */
#pragma once
#include "controller/loop/controller.h"

/* One tick every `interval`, from the first reading to the last. No file is left when it fails; one that is there is
 * ERROR_CONFLICT. `run`: what it was made from. */
bool recording_write(const char *path, const char *run, const struct manifest *m,
		     const struct recorded_signals *signals, millis interval, struct error *e) MUST_USE;
