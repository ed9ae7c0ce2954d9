/* One node group of some cloud, without a wire: what it holds, what asking does to it, what goes wrong on purpose. */
#pragma once
#include "providers/provider.h"

enum { CLOUD_MACHINES = 64, CLOUD_TOKENS = 64 };

enum cloud_fault {
	FAULT_NONE,
	FAULT_STOCKOUT,
	FAULT_QUOTA,
	FAULT_THROTTLED, /* again in 7 s */
	FAULT_AUTH,
	FAULT_UNAVAILABLE,
	FAULT_LOST, /* what is asked happens, and an error is answered */
};

struct modelled_machine {
	char id[32];
	enum machine_state state;
	bool is_for_standby;
};

struct modelled_cloud {
	int64_t min, max, desired, standby;
	struct modelled_machine machines[CLOUD_MACHINES];
	size_t count;
	char tokens[CLOUD_TOKENS][64];
	size_t token_count;
	int64_t bought, answered; /* machines; calls */
	enum cloud_fault fault;	  /* of the next calls */
};

/* A group with `running` machines m-1, m-2, ... */
struct modelled_cloud modelled_cloud(int64_t running);
struct modelled_machine *cloud_machine(struct modelled_cloud *c, const char *id);
/* Does what the call asks; errors as a cloud would have them. The same token again has no effect and no error. */
bool cloud_do(struct modelled_cloud *c, const struct provider_call *call, struct error *e);
void cloud_settle(struct modelled_cloud *c); /* all that is under way is done */
