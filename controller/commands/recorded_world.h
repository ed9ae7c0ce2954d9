/*
 * The world that a history was recorded in, to send its traffic through once
 * more: the last of the time asked about,
 * under the last manifest, with pools that only observe acting.
 */
#pragma once
#include "base/terminal.h"
#include "controller/commands/history_args.h"
#include "controller/commands/recording.h"
#include "controller/simulation/simulate.h"

struct recorded_world {
	struct recorded_ticks ticks;
	struct recording rec;
	struct manifest manifest;
	size_t *recorded; /* which pool of the history each one of the manifest is, or RECORDING_NONE */
	const struct trace **traces;
	struct world_spec spec;
	struct simulation simulation; /* of Preheat; shows the progress of its runs on a terminal */

	struct observer observer;
	struct progress progress;
	int64_t done;
};

/* Of the ticks from `first` to `last`, and of these of the last `most`: two days are enough for a model. `out` must not
 * move, and is to be released also when it could not be read. */
bool recorded_world_read(struct history_args *q, int64_t first, int64_t last, millis most, struct recorded_world *out,
			 struct error *e) MUST_USE;
/* Before and after so many runs. */
void recorded_world_begin(struct recorded_world *w, int64_t runs);
void recorded_world_end(struct recorded_world *w);
void recorded_world_release(struct recorded_world *w);
