/*
 * A WarmPool document as it is written: what the table in warm_pool.c reads
 * into. Every record knows the map it came from (NULL: not written). Numbers
 * in the units of base/schema.h; choices in the order of the enums of
 * controller/policy/pool.h.
 */
#pragma once
#include "base/schema.h"
#include "controller/policy/pool.h"
#include "providers/block.h"

struct metadata_text {
	const struct yaml_node *node;
	const char *name, *namespace;
	struct schema_labels labels, annotations;
};

struct objective_text {
	const struct yaml_node *node;
	int64_t queue_wait, attainment_ppm, violation_cost;
};

struct selector_text {
	const struct yaml_node *node;
	struct schema_labels match_labels;
};

struct target_text {
	const struct yaml_node *node;
	const char *api_version, *kind, *name; /* name NULL: no target */
};

/* How warmth is made. */
enum warm_choice { WARM_REPLICAS, WARM_PLACEHOLDERS, WARM_BUFFER, WARM_METRIC };

/* What comes to a node before its GPUs do. */
enum prefetch_choice { PREFETCH_NONE, PREFETCH_IMAGE };

struct workload_text {
	const struct yaml_node *node;
	struct selector_text selector;
	struct target_text target;
	int64_t warm;	  /* enum warm_choice; settled when not written */
	int64_t prefetch; /* enum prefetch_choice */
	const char *gpu_resource;
	int64_t gpus_per_replica, max_sequences, tokens_per_second, prefill_tokens_per_second, inter_token_latency_us;
};

struct basic_text {
	const struct yaml_node *node;
	const char *username, *password_file; /* NULL: none */
};

/* What we show to a server; one of the two, or nothing. */
struct auth_text {
	const struct yaml_node *node;
	const char *bearer_token_file; /* NULL: none */
	struct basic_text basic;
};

struct tls_text {
	const struct yaml_node *node;
	const char *ca_file, *cert_file, *key_file, *server_name; /* NULL: not given */
	int64_t verify;						  /* enum verify_choice */
};

enum verify_choice { VERIFY_FULL, VERIFY_NOTHING };
enum scheme_choice { SCHEME_HTTP, SCHEME_HTTPS };

struct scrape_text {
	const struct yaml_node *node;
	int64_t port, interval, scheme; /* enum scheme_choice */
	const char *path;
	struct auth_text auth;
	struct tls_text tls;
};

enum { METRIC_REFUSED = 14, METRIC_NAMES };

/* Names of an engine that we have no table of; in the order of enum custom_name of signals/. */
struct metrics_text {
	const struct yaml_node *node;
	const char *names[METRIC_NAMES]; /* NULL: not given */
};

struct prometheus_text {
	const struct yaml_node *node;
	const char *url; /* NULL: engines are scraped */
	int64_t interval;
	struct schema_labels labels;
	struct auth_text auth;
	struct tls_text tls;
};

struct picker_text {
	const struct yaml_node *node;
	const char *pool, *url; /* pool NULL: no picker; url NULL: through Prometheus */
};

struct json_text {
	const struct yaml_node *node;
	const char *url, *path; /* url NULL: none */
};

/* Preheat itself holds what nobody can serve. */
struct activator_text {
	const struct yaml_node *node;
	const char *service, *port; /* service NULL: none; port NULL: its only one */
	int64_t hold;
};

/* How a queue counts what is worked on. */
enum queue_counts { QUEUE_COUNTS_WAITING, QUEUE_COUNTS_UNFINISHED };

struct queue_text {
	const struct yaml_node *node;
	const char *promql, *url; /* promql NULL: another kind; url NULL: that of signals.prometheus */
	struct picker_text picker;
	struct json_text json;
	struct activator_text activator;
	int64_t counts, interval, deadline;
	struct auth_text auth;
	struct tls_text tls;
};

struct devices_text {
	const struct yaml_node *node; /* NULL: GPUs are not read */
	const char *url;	      /* NULL: that of signals.prometheus */
	int64_t interval;
	struct schema_labels labels;
	struct auth_text auth;
	struct tls_text tls;
};

/* The engines in the order of signals/engines/all.def, as in enum engine of signals/; then what has no table. */
#define ENGINE(id, name, image, slots) SOURCE_##id,
#define METRIC(...)
enum source_choice {
#include "signals/engines/all.def"
	SOURCE_CUSTOM, /* of metrics_text */
	SOURCE_PODS,
	SOURCE_SHARE, /* what the pools of the share of its name need together */
	SOURCE_COUNT
};
#undef ENGINE
#undef METRIC

/* Model servers are asked. */
static inline bool source_is_read(int64_t engine)
{
	return engine < SOURCE_PODS;
}

struct signals_text {
	const struct yaml_node *node;
	int64_t engine; /* enum source_choice */
	struct metrics_text metrics;
	struct selector_text pod_selector; /* of the workload's pods, those that tell */
	struct scrape_text scrape;
	struct prometheus_text prometheus;
	struct queue_text queue;
	struct devices_text devices;
};

struct quantiles_text {
	const struct yaml_node *node;
	int64_t p50, p95;
};

struct standby_text {
	const struct yaml_node *node;
	int64_t max, price_share_ppm;
	struct quantiles_text lead_time, first_lead_time;
};

/* What follows from a group's text; nothing is wrong with it. */
struct settled_group {
	int64_t provider;
	const char *settings;
	bool is_priced;
};

extern const char *const taint_effects[]; /* as Kubernetes has them; ends in NULL */

struct taint_text {
	const struct yaml_node *node;
	const char *key, *value; /* value "": none */
	int64_t effect;		 /* index into taint_effects */
};

struct group_text {
	const struct yaml_node *node;
	const char *name, *zone, *instance_type;
	int64_t provider; /* enum provider_choice */
	struct block_record blocks[PROVIDER_COUNT];
	int64_t capacity_type, gpus_per_node, price_per_hour, min, max;
	int64_t reserved_until; /* 0: not given */
	struct schema_labels resources, labels;
	struct schema_list taints, startup_taints; /* of struct taint_text */
	struct standby_text standby;
	const struct settled_group *settled; /* NULL: not known, or another pool names it, too */
};

struct lead_time_text {
	const struct yaml_node *node;
	struct quantiles_text total, stage[STAGE_COUNT];
};

struct window_text {
	const struct yaml_node *node;
	int64_t days, from, to, min, duration;
	const char *cron, *time_zone; /* cron NULL: days, from, to */
};

struct headroom_text {
	const struct yaml_node *node;
	int64_t min, max;
	struct schema_list schedule; /* of struct window_text */
};

struct scale_down_text {
	const struct yaml_node *node;
	int64_t after, utilization_ppm;
};

struct lend_text {
	const struct yaml_node *node;
	int64_t to, yield_within;
};

struct budget_text {
	const struct yaml_node *node;
	int64_t dollars_per_hour;
	const char *name;
};

struct share_text {
	const struct yaml_node *node;
	const char *name; /* NULL: in no share */
	int64_t level, engine_gib, asleep_gib, wake_within;
};

/* Keys of the labels of pods that say for whom GPUs are paid. */
struct cost_labels_text {
	const struct yaml_node *node;
	const char *cost_center, *product, *environment, *workload_type;
};

struct spec_text {
	const struct yaml_node *node;
	int64_t class, mode, violation_cost, shrink_priority;
	const char *former_autoscaler;
	struct objective_text objective;
	struct workload_text workload;
	struct signals_text signals;
	struct schema_list groups; /* of struct group_text */
	struct lead_time_text lead_time;
	struct headroom_text headroom;
	struct scale_down_text scale_down;
	struct lend_text lend;
	struct budget_text budget;
	struct cost_labels_text cost_labels;
	struct share_text share;
};

struct warm_pool {
	const struct yaml_node *node;
	int64_t api_version, kind;
	struct metadata_text metadata;
	struct spec_text spec;
	bool is_sound;			 /* nothing is wrong with it, as far as it can be told of it alone */
	const struct pool_spec *settled; /* what follows from it then, but for its groups; NULL: not known */
};

extern const struct schema_table warm_pool_table, group_table, workload_table, signals_table, cost_labels_table;
