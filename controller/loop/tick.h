/*
 * The beat of a controller that leads: each tick observes, decides, records
 * and acts; between ticks groups, drains and workloads are driven whenever
 * something changed.
 */
#pragma once
#include "base/arena.h"
#include "base/clock.h"
#include "base/net/loop.h"

struct controller;

/* Groups are given so long, in the world's time, to be described before the first decision. */
#define FIRST_LOOK (20 * SECOND)

struct tick_state {
	int64_t number;	 /* of the next one */
	millis due;	 /* clock_mono */
	millis next;	 /* clock_mono, when that is looked at */
	bool is_hearing; /* it stood still, and the tick that comes hears first what happened meanwhile */
	struct timer timer, drive;
	void (*drive_now)(struct timer *t);
	bool is_drive_due;
	struct arena arena;    /* of the snapshot and the plan */
	struct arena spare;    /* of the next ones: while a tick is made, the last plan is looked at */
	bool has_more_to_drop; /* of the history, by its retention */
	bool is_disk_full;     /* of the history: its oldest ticks go */
	bool is_scarce;	       /* a tick found no room, whatever the disk tells */
};

/* What acts on the cluster between ticks. Members may be NULL. */
struct actor {
	bool needs_plan;		     /* driven only once something was decided */
	void (*renew)(struct controller *c); /* another plan is there: it knows of what happened before */
	void (*want)(struct controller *c, size_t pool, int64_t replicas); /* as the plan decides */
	void (*drive)(struct controller *c);				   /* one more step wherever one is possible */
	void (*stop)(struct controller *c);				   /* cancels the calls under way */
	bool (*is_idle)(const struct controller *c);
	void (*leave)(struct controller *c, size_t pool); /* the same for one pool, which acts no more */
	bool (*has_left)(const struct controller *c, size_t pool);
};

/* The last change of a pool's size. */
struct size_change {
	millis at;
	int64_t from, to, size; /* size: as decided last */
};

/* Requests, in all ticks. */
struct request_counts {
	int64_t arrived, started, late;
};

void tick_open(struct controller *c); /* before anything else that acts */
void tick_start(struct controller *c);
/* Cancels the calls under way, too; each still ends. */
void tick_stop(struct controller *c);
/* Brings what is decided into the cluster and to the clouds. */
void tick_act(struct controller *c);
/* The growth of one pool, between ticks: nothing is released, and what was refused since the tick stays known. */
void tick_act_pool(struct controller *c, size_t pool);
/* Told in the log where it is another than before. */
void tick_note_size(struct controller *c, size_t pool);
/* Nobody looked for longer than an interval (a stopped process, a machine that slept), and no tick was since: what is
 * known is from before, and nothing is done by it. */
bool tick_stood_still(const struct controller *c);
/* None is under way. */
bool tick_is_quiet(const struct controller *c);
/* The same for a pool that acts no more, or one of whose groups does not; the rest goes on. */
void tick_stop_pool(struct controller *c, size_t pool);
bool tick_has_left(const struct controller *c, size_t pool);
