/*
 * What must hold in every world, whatever happens: the laws of tests/scenario/laws.py, looked at as it happens.
 * With WORLD_VERBOSE in the environment all of the trace is printed, with WORLD_KEEP the histories of the replicas
 * stay.
 */
#pragma once
#include "base/log.h"
#include "tests/world/world.h"

void laws_begin(void);
void laws_look(void); /* each second */
void laws_log(void *user, enum log_level level, const char *line);
/* From now on nobody may change anything (false: may again). */
void laws_stand_still(bool is_still);
void laws_dry_run(void);		/* from now on every write breaks the law */
bool laws_expect_errors(bool expected); /* lines of level error are no breach; returns whether they were */
/* From now on others buy, too, on the same groups: all together what was planned, and what is ended twice is nobody's
 * breach. */
void laws_share_groups(void);
/* A process died, and left this file. */
void laws_history(int who, const char *path);
/* What broke first; "": nothing did. */
const char *laws_broken(void);
int64_t laws_writes(void);	 /* calls that changed the cluster or the cloud */
int64_t laws_scale_writes(void); /* numbers of replicas that were set */
millis laws_quiet_for(void);	 /* since the cloud was last asked to change something */
uint64_t laws_trace_hash(void);	 /* of all that was written, when, by whom: two runs of one seed are one */
void laws_break(const char *law, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void laws_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* into the trace */
void laws_print_trace(size_t last);					    /* on standard error */
