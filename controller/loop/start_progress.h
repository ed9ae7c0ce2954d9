/*
 * How far starts are: the cluster's events move them from stage to stage,
 * and one whose stage takes far too long ends, its machine or pod replaced.
 */
#pragma once
#include "controller/cluster/model.h"
#include "controller/loop/starts.h"

struct controller;

/* Starts of a pool that did not come in time. */
struct start_timeouts {
	int64_t count[STAGE_COUNT], in_a_row;
	millis at; /* of the last */
	char reason[256];
};

/* While the watches are broken nothing is late for all we know. */
struct watch_gap {
	millis since, seen_again; /* clock_now */
};

/* `user` is the controller in all that take one. */
void start_progress_event(void *user, const struct cluster_event *event);
struct node_stages start_progress_stages(void *user, const char *machine);
/* For group_context.unready. */
size_t start_progress_unready(void *user, size_t group, struct arena *a, const char *const **ids);
/* For group_context.list_lags: of a node that registered within LAG_MOST. */
bool start_progress_list_lags(void *user, size_t group);
/* Pods of the pool that come up on the node (NULL: anywhere) and that no start is known for: when we begin to lead, the
 * pool is new, or the node stays after all. Returns how many start since. */
int64_t start_progress_adopt(struct controller *c, const struct node *n, size_t pool);
/* It waits for a machine that no call has asked for. */
bool start_is_unasked(const struct controller *c, const struct start *s);
/* Ends the starts whose time is over. */
void start_progress_check(struct controller *c);
