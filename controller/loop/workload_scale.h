/*
 * The number of replicas of each pool's workload, through its scale subresource. Somebody else may set it, too: who
 * changes the number now and then is a person or a deployment, and we set it again; who changes ours again within
 * minutes, or three times within half an hour, or a second time while an autoscaler of the workload is there, or once
 * more within half an hour after it was left the number, is a second writer, and the number is left to it until it is
 * gone. Pods that it asks for are then demand, as with warm:
 * metric.
 */
#pragma once
#include "controller/cluster/scale_owner.h"

struct controller;

/* What became of the number that we set. Times are of loop_now. */
struct scale_contest {
	bool holds;			 /* what we want stood after our last call */
	int64_t held;			 /* namely that */
	int64_t ours;			 /* what we wrote last, or may have */
	int undone;			 /* times that somebody else changed it since the last peace */
	millis undone_at, undone_before; /* the last time, and the one before it */
	bool is_put_back;		 /* somebody else has set one */
	bool is_left;			 /* to somebody else: nothing is written */
	bool stands;	/* an object does it, which can be seen to go; else it is tried again now and then */
	int rounds;	/* times that it was left since the last peace */
	millis look_at; /* at who it is */
	millis try_at;
	char sentence[400]; /* who it is and what to do; "": not left, or not looked at yet */
	bool is_looking;
	struct scale_owner_call look;
};

struct workload_scale {
	struct scale_call call;
	bool is_calling;
	int64_t wanted;				 /* replicas that we want; ABSENT: not decided yet */
	int64_t is;				 /* as told last; ABSENT: not known */
	int64_t was;				 /* before it was lowered last */
	millis quiet_until, told_at, lowered_at; /* loop_now */
	millis fewer_since;			 /* loop_now; fewer are wanted than stand; 0: not so */
	millis fewer_at;			 /* since when as few are wanted as now; clock_now */
	int64_t fewer_to;			 /* and how many these are */
	int failures;
	millis others_since; /* loop_now; the selector matches pods that are not the workload's; 0: not so */
	bool are_others_told;
	struct scale_contest contest;
};

/* Sets what is decided, but where somebody else scales the workload. */
extern const struct actor workload_scale_actor;
/* What we set the workload to last, a moment ago where that was more; ABSENT where we set nothing, or have not yet. */
int64_t workload_scale_set(const struct controller *c, size_t pool);
/* Who else sets the replicas, so that we do not, with the remedy; NULL: nobody does. Lives until the next call. */
const char *workload_scale_contested(const struct controller *c, size_t pool);
/* The same pool under another manifest goes on with what it knows of others; after another one of ours led, what stands
 * may be that one's. */
void workload_scale_carry_over(struct workload_scale *to, const struct workload_scale *from, bool is_same_term);
