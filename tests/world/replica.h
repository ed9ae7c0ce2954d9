/*
 * Replicas of the controller as the verb `run` opens them, in a process and on a disk of their own: each life goes on
 * with the files of the one before as they lay when it ended.
 */
#pragma once
#include "controller/loop/retention.h"
#include "tests/world/wire.h"

struct published;

enum { WORLD_REPLICAS = 2 };

struct replica_settings {
	const char *manifest; /* as text; NULL: none, WarmPools in the API server alone */
	bool elects, is_dry_run, watches_objects;
	const char *lease; /* NULL: "preheat" */
	struct retention retention;
};
/* A process begins, goes on where one of that number was, or begins anew; is killed; is asked to stop. */
void replica_start(int who, const struct replica_settings *s);
void replica_kill(int who);
void replica_stop(int who);
bool replica_is_up(int who);
void replica_pause(int who, bool is_paused);	    /* as with SIGSTOP and SIGCONT */
void replica_suspend(int who);			    /* its machine sleeps, until replica_pause(who, false) */
const struct published *replica_published(int who); /* NULL: it is not up */
const char *replica_history(int who);		    /* its file */
int replica_life(int who);			    /* how often a process of that number began */
int replica_leader(void);			    /* by the lease; -1: nobody */
const char *replica_lease(int who);		    /* its name */
/* By its own lease; false: another does, or nobody. */
bool replica_leads(int who);
/* It dies now, inside whatever it does, with its disk as it is: at the latest when the next thing happens. */
void replica_die(int who);
void replica_bury(int who); /* if it died */
/* Whoever gives up ends, as the verb `run` does, and breaks no law: its disk is broken. */
void replicas_may_fail(bool may);

/* What follows is the world's own (world.c). */
void replicas_begin(uint64_t seed);
void replicas_end(void);
/* The next thing happens, unless that is later than until (false); those that died before it are buried first. */
bool replicas_step(millis until);
