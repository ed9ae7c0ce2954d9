/* The readings of a pool from its replicas themselves (signals/scrape.h), as a source. */
#pragma once
#include "signals/scrape.h"
#include "signals/source.h"

struct scrape_source_settings {
	struct source_settings source;
	struct reach_settings reach; /* copied */
};

/* `clock` must outlive it. The first round begins at once. */
struct source *scrape_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				  const struct scrape_source_settings *settings);
