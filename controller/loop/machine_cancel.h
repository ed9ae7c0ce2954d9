/*
 * Machines on their way that nobody waits for any more. The watch shows no
 * node of theirs; before one is ended the API server is asked afresh, for a
 * watch may stand and be silent. One whose node has come is kept: it is a
 * drain's to end.
 */
#pragma once
#include "base/buf.h"
#include "controller/cluster/api.h"
#include "providers/provider.h"

struct controller;

struct machine_cancels {
	struct machine_cancel *first;
	struct api_call read; /* of the nodes of one group */
	struct buf path;
	size_t group;
	bool is_reading, has_complained;
	millis quiet_until; /* loop_now */
};

/* Ends the machine of the group (PROVIDER_CANCEL, PROVIDER_STOP) if it has no node yet. */
void machine_cancel(struct controller *c, size_t group, const char *machine, enum provider_verb how);
extern const struct actor machine_cancels_actor;
