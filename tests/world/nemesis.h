/*
 * What goes wrong in a world, as a table of faults with weights. A world draws a few, each from a stream of its own, so
 * that any of them can be left out and the others stay as they are.
 */
#pragma once
#include "tests/world/laws.h"

enum { NEMESIS_GROUPS = 3, NEMESIS_FAULTS = 30 };

/* The world that it works on. */
struct nemesis_world {
	struct random random;
	struct world_app *chat;
	struct cloud_group *groups[NEMESIS_GROUPS];
	size_t group_count;
	bool is_pair, is_twin; /* two replicas; each with a lease of its own */
	bool watches_objects;
	int job_gpus; /* of each pod of a training job */
	int traffic;  /* so many times that of a small fleet */
	struct replica_settings settings[WORLD_REPLICAS];
	const char *spec; /* of the WarmPool chat, as JSON */
};

/* Which faults are drawn: what goes wrong, or what owners do by themselves beside a few of these. */
enum nemesis_mode { NEMESIS_FAULTS_ALONE, NEMESIS_OWNERS };

struct fault {
	size_t kind;
	millis at, lasts;
	uint64_t draw; /* what its details follow from */
};

/* Of this world the faults, by time; returns how many. */
size_t nemesis_draw(uint64_t seed, const struct nemesis_world *w, enum nemesis_mode mode,
		    struct fault faults[NEMESIS_FAULTS]);
const char *nemesis_name(const struct fault *f);
void nemesis_begin(void);
void nemesis_end(void);
void nemesis_make_pool(const struct nemesis_world *w); /* its WarmPool, unless it is there */
void nemesis_all_well(struct nemesis_world *w);	       /* nothing goes wrong any more, and there is no traffic */
void nemesis_fault_begins(struct nemesis_world *w, const struct fault *f);
void nemesis_fault_ends(struct nemesis_world *w, const struct fault *f);
