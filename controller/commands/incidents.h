/* Incidents as rows, for `preheat incidents` and `preheat status`. */
#pragma once
#include "controller/commands/history_args.h"
#include "controller/restore/incident_search.h"

/* On standard output, in a form of --output; nothing but a line for people where there are none. */
void incidents_print(const struct history_args *q, const struct incident_found *found, size_t count,
		     const char *output);
