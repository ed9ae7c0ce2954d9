/* What the simulated cloud says, and the settings of its block, read by table. Pure. */
#pragma once
#include "providers/provider.h"

struct simulated_settings {
	const char *endpoint;
	const char *group; /* NULL: named as the node group */
};

bool simulated_read_settings(const char *json, struct arena *a, struct simulated_settings *out,
			     struct error *e) MUST_USE;
/* Of an answer with a 2xx status, into the arena. */
bool simulated_read_group(const char *text, size_t len, struct arena *a, struct group_description *out,
			  struct error *e) MUST_USE;
/* Sets *e from an answer with another status; what the cloud says wins over what the status means. */
void simulated_read_refusal(long status, const char *text, size_t len, struct error *e);
