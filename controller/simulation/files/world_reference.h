/* The reference of the world file, generated from its table; docs/simulator.md ends with it. */
#pragma once
#include "base/buf.h"

void world_write_reference(struct buf *out);
