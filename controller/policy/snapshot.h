/*
 * Everything that one decision depends on, apart from the memory
 * (memory.h): a value, built fresh for each tick and constant afterwards.
 * Replicas and nodes are counted as the cluster and the providers show
 * them; sequences as the model servers tell them.
 */
#pragma once
#include "controller/policy/fields.h"
#include "controller/policy/pool.h"

#define MEMBER(name, unit, help) int64_t name;
struct pool_input {
#include "controller/policy/pool_input.def"
};
struct scrape_input {
#include "controller/policy/scrape_input.def"
};
struct group_input {
#include "controller/policy/group_input.def"
};
struct start_input {
#include "controller/policy/start_input.def"
};
struct event_input {
#include "controller/policy/event_input.def"
};
struct deadline_input {
#include "controller/policy/deadline_input.def"
};
#undef MEMBER

extern const struct record_info pool_input_info, scrape_input_info, group_input_info, start_input_info,
	event_input_info, deadline_input_info;

/* How capacity comes to be ready. */
enum start_kind {
	START_COLD,    /* a new machine */
	START_WAKE,    /* a stopped machine */
	START_REFILL,  /* a new machine that will be stopped when it is ready */
	START_RECLAIM, /* a lent node taken back */
	START_PLACE,   /* a replica on free GPUs of a node that runs already */
	START_ROUSE,   /* an engine that slept wakes in its pod */
	START_KIND_COUNT
};

/* What happened since the last tick, in event_input.what. */
enum event_kind {
	EVENT_STAGE,	 /* a start finished a stage: value = duration in ms, stage set */
	EVENT_SERVING,	 /* a start serves: value = ms from asking to serving */
	EVENT_REFUSED,	 /* a start was refused: value = enum error_kind */
	EVENT_LOST,	 /* a ready replica was taken away (spot) */
	EVENT_STUCK,	 /* a start passed its deadline in a stage and was given up */
	EVENT_RESIZED,	 /* somebody else changed the group: value = nodes now */
	EVENT_MISSED,	 /* a start found no machine in one part of the group (zone, type); others may have some */
	EVENT_NO_STOCK,	 /* the vendor has none for the group: value = ms that this lasts */
	EVENT_NO_QUOTA,	 /* our account may not have more there: likewise */
	EVENT_STANDBY,	 /* whether the group has a standby tier: value = 1 or 0 */
	EVENT_DESCRIBED, /* the group's cloud, which told nothing before, tells of it; or others have let go of it */
	EVENT_HELD,	 /* others work on the group: nothing is asked of it for value ms, or until EVENT_DESCRIBED */
	EVENT_KIND_COUNT
};

/* The lists of one pool; groups has one element per spec->groups entry, in that order. */
struct pool_snapshot {
	struct pool_input input;
	const struct scrape_input *scrapes; /* since the last tick, oldest first */
	const struct group_input *groups;
	const struct start_input *starts; /* on their way, oldest first */
	const struct event_input *events;
	const struct deadline_input *deadlines; /* batch work by due time, earliest first */
	size_t scrape_count, group_count, start_count, event_count, deadline_count;
};

struct snapshot {
	int64_t tick;	 /* counts from 0 */
	millis now;	 /* end of the tick */
	millis interval; /* between ticks, as it is set: shadows and rings step once a tick; one that is late shows in
			    `now`. 0: decided at an event between two ticks, which stands for no time */
	const struct fleet_spec *fleet;
	const struct pool_snapshot *pools; /* one per fleet->pools entry, in that order */
};

enum { SCRAPES_MAX = 16 }; /* more in one tick are thinned by the observer */
