/*
 * The world file: what a manifest can't know about a modelled world, as
 * YAML by table, strict. All of it is optional.
 */
#pragma once
#include "base/buf.h"
#include "base/findings.h"
#include "controller/policy/pool.h"
#include "controller/simulation/world.h"

/* False with the first mistake as error: file, line, column, path, found, allowed. The spec lives in the arena. */
bool world_file_read(const char *path, const struct fleet_spec *fleet, struct arena *a, struct world_spec *out,
		     struct error *e) MUST_USE;
/* All mistakes instead of the first; `fleet` NULL leaves out what needs it. False when the file cannot be read. */
bool world_file_check(const char *path, const struct fleet_spec *fleet, struct arena *a, struct findings *f,
		      struct error *e) MUST_USE;
/* Whether a file says that it is a world: kind World. */
bool world_file_is(const char *path);

/* The reference of the world file, generated from its table; docs/simulator.md ends with it. */
void world_write_reference(struct buf *out);
