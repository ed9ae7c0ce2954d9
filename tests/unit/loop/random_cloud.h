/*
 * One node group of a cloud that goes its own way: it lists what was bought
 * late, launches fail, zones run out, machines are taken, others resize it,
 * operations go on after the answer and may get stuck. Whether it lowers its
 * size by what failed or was lost, or tries again, and what it can do at all,
 * is drawn.
 */
#pragma once
#include "base/random.h"
#include "providers/provider.h"

enum {
	CLOUD_ABILITIES = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
			  PROVIDER_CANCELS
};
enum { CLOUD_MACHINES = 400, CLOUD_FAILURES = 200, CLOUD_TOKENS = 400, CLOUD_ZONES = 3 };

struct random_machine {
	char id[16];
	enum machine_state state;
	bool is_standby, is_listed, has_node;
	bool is_seen; /* by whom it is described to, as one that runs */
	int64_t zone;
};

struct random_cloud {
	int64_t max, standby_max, desired, standby;
	struct random_machine machines[CLOUD_MACHINES]; /* that exist */
	size_t count;
	int64_t serial;
	int64_t grown;	 /* machines that our calls raised the size by */
	int64_t lowered; /* machines that it fell by without us; sizes are absolute, so that we may ask for them again
			  */
	struct launch_failure failures[CLOUD_FAILURES];
	size_t failure_count;
	char tokens[CLOUD_TOKENS][64];
	size_t token_count;
	int64_t fails; /* one launch in so many, 0: none */
	bool keeps_failed, keeps_lost, is_late, has_tokens, has_others;
	bool others_acted; /* or what cannot be told from it */
	unsigned abilities;
	int64_t zones; /* 0: not told */
	bool is_out[CLOUD_ZONES];
	bool has_operations, gets_stuck;
	int64_t busy;	    /* moves until the operation is over */
	char operation[32]; /* the last one */
	int64_t operations;
};

struct random_cloud random_cloud(struct random *chance, int64_t max, int64_t standby_max);
struct random_machine *random_cloud_machine(struct random_cloud *c, const char *id);
/* What it says of itself now. */
struct group_description random_cloud_describe(const struct random_cloud *c, struct arena *a);
/* Does what the call asks; what it may not, it leaves. */
void random_cloud_change(struct random_cloud *c, const struct provider_call *call);
/* An operation is in flight: it takes a cancel only. */
bool random_cloud_refuses(const struct random_cloud *c, const struct provider_call *call);
/* What goes on after the answer; NULL: nothing. */
const char *random_cloud_operation(struct random_cloud *c, struct random *chance);
/* Time passes: machines get on, launches fail, some are taken. */
void random_cloud_move(struct random_cloud *c, struct random *chance);
/* Others do something to the group. */
void random_cloud_meddle(struct random_cloud *c, struct random *chance);
