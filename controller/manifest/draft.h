/* What has been read, on its way to a fleet. Private to this folder. */
#pragma once
#include "controller/manifest/manifest.h"

enum { POOLS_MAX = 500, GROUPS_MAX = 1000 };

/* A node group with all places that name it; the records agree, or there is a finding. */
struct group_draft {
	struct group_text merged; /* node: the place of the first naming, each value where it was given */
	const struct group_text **namings;
	size_t naming_count, room;
};

struct draft {
	struct arena *arena;
	struct findings *findings;
	struct warm_pool *pools;
	size_t pool_count;
	struct group_draft *groups; /* in the order of their first naming */
	size_t group_count;
};

/* Whether the key is written in this map. */
static inline bool is_given(const struct yaml_node *map, const char *key)
{
	return yaml_child(map, key);
}

const struct spec_text *draft_spec(const struct draft *d, size_t pool);
const struct group_text *draft_groups(const struct spec_text *s); /* s->groups.count of them */
bool group_gives(const struct group_draft *g, const char *key);
size_t draft_group_index(const struct draft *d, const char *name); /* group_count when there is none */

/* A finding at `key` of `map`, which must not be above another key's value: "at most max, which is 2". */
void find_above(struct draft *d, const struct yaml_node *map, const char *key, const char *bound, int64_t value,
		const char *remedy);

/* Begins and ends with one of `ends`; between them also what is in `inner`. */
bool is_made_of(const char *text, size_t len, const char *ends, const char *inner);
bool is_label_key(const char *key);				       /* as Kubernetes has it: NAME, or DOMAIN/NAME */
void check_clouds(struct draft *d, const struct group_text *g);	       /* names that its provider's cloud cannot have */
void check_quantiles(struct draft *d, const struct quantiles_text *q); /* 0 < p50 <= p95 */

void check_signals(struct draft *d, const struct signals_text *s); /* contradictions among a pool's sources */
void merge_groups(struct draft *d);				   /* makes d->groups; disagreement is a finding */
void check_pools(struct draft *d);				   /* contradictions within one pool and among pools */
void check_costs(struct draft *d, const struct cost_labels_text *c);
void check_workload(struct draft *d, size_t pool);    /* settles what depends on the rest of the pool, too */
void check_groups(struct draft *d);		      /* contradictions within a group and with the pools on it */
void check_budgets(struct draft *d);		      /* shared budgets agree and can be kept */
struct fleet_spec build_fleet(const struct draft *d); /* of a draft without findings */
const struct group_text *build_group_texts(const struct draft *d);

/* Windows that one row of a schedule makes: several with cron. */
enum { CRON_OPENINGS_MAX = 48 };
struct cron {
	int64_t days;
	int minutes[CRON_OPENINGS_MAX]; /* after midnight */
	size_t count;
};
bool cron_parse(const char *text, struct cron *out) MUST_USE;
