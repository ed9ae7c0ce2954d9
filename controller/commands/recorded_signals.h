/* The readings that a history holds, for telling them again (signals/recorded_source.h). */
#pragma once
#include "controller/loop/controller.h"

/*
 * Of all pools of the manifest that read model servers; texts and readings live in the arena. ERROR_INVALID where one
 * of them is not in the file, or has no readings there.
 */
bool recorded_signals_read(const char *path, const struct manifest *m, struct arena *a, struct recorded_signals *out,
			   struct error *e) MUST_USE;
