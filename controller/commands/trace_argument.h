/* --trace [POOL=]FILE: whose traffic a file holds. */
#pragma once
#include "base/error.h"
#include "controller/policy/pool.h"

/* "POOL=FILE"; a plain FILE is for the only pool that there is. *path points into the text. */
bool trace_argument_split(const struct fleet_spec *fleet, const char *text, size_t *pool, const char **path,
			  struct error *e) MUST_USE;
