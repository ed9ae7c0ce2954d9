/*
 * A node group of one GPU a machine, and the cloud behind it as a test plays
 * it: calls wait until they are answered.
 */
#pragma once
#include "controller/loop/group_operations.h"

enum { MACHINES = 16, SENT = 64 };

struct cloud {
	struct provider_call *look, *change;
	struct machine machines[MACHINES];
	char ids[MACHINES][16];
	size_t count;
	size_t node_count;  /* so many of them have a node with a GPU */
	bool are_not_ready; /* these nodes, yet */
	millis joined;	    /* they did */
	bool list_lags;	    /* a node joined whose machine no look shows */
	int64_t desired, standby, exposed, guarded;
	struct launch_failure failures[4];
	size_t failure_count;
	char tokens[SENT][64];
	enum provider_verb verbs[SENT];
	size_t sent;
	bool intent_was_there; /* before every call so far */
	unsigned abilities;    /* of the group */
	bool is_busy, takes_turns, ends_one_by_one, keeps_standby, replaces_lost, forgets_images, is_refused;
	millis retry_after;	/* of the next change */
	const char *emptied_by; /* a schedule; NULL: none did */
	const char *unread;	/* of what it says of new nodes; NULL: all makes sense */
	const char *busy_with;	/* somebody else's operation; NULL: none */
	const char *operation;	/* what the next change is told to go on as; NULL: nothing */
	char pending[64];	/* what the last look was told that goes on */
	struct history *history;
};

extern struct cloud cloud;
extern struct starts starts;

struct stage_of_test {
	struct loop *loop;
	struct clock clock;
	struct history *history;
	struct group_context context;
	provider_counts calls;
	struct node_group g;
	struct throttle throttle;
	int64_t refused; /* starts that others may have machines for */
	bool is_deposed; /* somebody else leads */
	char path[64];
};

int played_set_up(void **state);
int played_tear_down(void **state);
void played_add_machine(enum machine_state machine_state);
/* Answers the look under way, after starting one where none is. */
void played_look(struct stage_of_test *t);
/* The change under way. */
void played_answer(enum error_kind kind);
/* Grows, with a cold start for each machine. */
void played_ask(struct stage_of_test *t, int64_t machines);
/* After a failure the group is quiet for a while of the world's time. */
void played_wait_over(struct stage_of_test *t);
/* So many machines that serve, all known. */
void played_run(struct stage_of_test *t, size_t machines);
/* That the change under way is this one. */
void played_expect(enum provider_verb verb, int64_t desired);
void played_ask_as(struct stage_of_test *t, enum start_kind kind, int64_t count);
/* Stands by, with a start for each machine. */
void played_refill(struct stage_of_test *t, int64_t count);
int64_t played_starts(enum start_kind kind);
/* NULL when none is. */
struct start *played_start_on(const char *machine);
