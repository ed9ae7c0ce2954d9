/* The node groups of a pool as they stand. */
#pragma once
#include "controller/web/api_parts.h"

extern const struct api_shape api_pool_group_shape;
/* "groups": `shown` may be NULL. */
void api_write_pool_groups(const struct fleet_spec *fleet, size_t place, const struct tick_record *r,
			   const struct published *shown, struct buf *out);
