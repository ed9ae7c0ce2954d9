/* A world file as written: what world_file.c makes a world_spec of. */
#pragma once
#include "base/schema.h"
#include "controller/policy/pool.h"

struct quantiles_text {
	const struct yaml_node *node;
	int64_t p50, p95;
};

struct lead_text {
	const struct yaml_node *node;
	struct quantiles_text total, stage[STAGE_COUNT];
};

struct telemetry_text {
	const struct yaml_node *node;
	int64_t from, to, fault, share;
};

struct pool_text {
	const struct yaml_node *node;
	const char *name;
	int64_t capacity, max_sequences, prefill, latency, spread, patience, deadline, replicas, place_share;
	struct lead_text lead;
	struct quantiles_text reclaim;
	struct schema_list telemetry;
};

struct window_text {
	const struct yaml_node *node;
	int64_t from, to, error, share;
};

struct slow_text {
	const struct yaml_node *node;
	int64_t share, factor;
};

struct refused_text {
	const struct yaml_node *node;
	int64_t share, by;
};

struct group_text {
	const struct yaml_node *node;
	const char *name;
	struct schema_list stockouts, losses;
	int64_t loss_per_hour, failed;
	struct slow_text slow;
	struct refused_text refused;
	struct quantiles_text wake;
};

struct lendable_text {
	const struct yaml_node *node;
	const char *pool, *group;
	int64_t replicas, restart_loss;
	struct quantiles_text reclaim;
};

struct world_text {
	const struct yaml_node *node;
	const char *api_version, *kind;
	struct schema_list pools, groups;
	struct lendable_text lendable;
};

extern const struct schema_table world_text_table;
