/*
 * What owners of node groups do by themselves, each step in the time that the vendor documents (docs/providers.md):
 * another version or image for all machines, a schedule, zones that are balanced, an instance refresh, machines that
 * fail their health checks, spot machines that are replaced before they are taken.
 */
#pragma once
#include "tests/world/world.h"

enum owner_act {
	OWNER_UPDATES,
	OWNER_SCHEDULES,    /* a smaller size, half an hour later the old one */
	OWNER_SWITCHES_OFF, /* nothing, four hours later the old one */
	OWNER_BALANCES_ZONES,
	OWNER_REFRESHES,
	OWNER_REPLACES_THE_UNHEALTHY,
	OWNER_REBALANCES_SPOT,
	OWNER_ACTS
};

/* Machines more while an EKS node group is updated: twice its two zones; fewer may be unavailable there. */
enum { OWNER_SURGE = 4 };

void owners_begin(void); /* after world_begin(), and again after each */
void owners_end(void);
/* False: the owner of that group is at something already, or finds no machine there. */
bool owner_begins(struct cloud_group *g, enum owner_act act);
bool owner_is_at_work(const struct cloud_group *g);
