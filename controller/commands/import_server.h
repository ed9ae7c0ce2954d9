/* `preheat import --prometheus`: a range that a Prometheus server kept, as a recording or as traffic. */
#pragma once
#include "base/options.h"

struct server_options {
	const char *url; /* NULL: as signals.prometheus of each pool says */
	struct option_list pools;
	const char *output; /* NAME.db: a recording; else the traffic of one pool, in bins */
	const char *pool;   /* which, where the manifest has several */
	millis last, step;
	bool prints_queries;
};

/* Returns the exit code; what failed was said. */
struct command;
int import_from_server(const struct command *c, const struct server_options *o);
