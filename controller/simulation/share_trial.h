/*
 * What sharing slots would come to: pools and their recorded requests, each
 * alone under an autoscaler and together on one stock of slots. The stock is
 * simulated first, as a pool whose sequences are slots that the members need;
 * then the slots, with the number of them that was ready at each moment. Pure.
 */
#pragma once
#include "controller/simulation/share_world.h"
#include "controller/simulation/simulate.h"

/* What an engine takes, the same for every pool of a case, and the slot. */
struct share_engine_spec {
	int64_t gpu_awake_mib, gpu_asleep_mib, host_asleep_mib;
	struct quantiles sleep, wake, mend;
	int64_t wake_failed_ppm;
	struct share_size slot;
};

/* Need of one pool on an unlimited fleet, in steps of SHARE_STEP, in thousandths of an engine: its mean work, but a
 * whole engine where anything runs. */
enum { SHARE_STEP = 5000 };
struct share_profile {
	int32_t *load, *engines;
};

struct share_case {
	const struct simulation *alone; /* the pools, each with its own node groups and trace of requests */
	const struct share_engine_spec *spec;
	struct share_model *models;	/* one per pool */
	struct share_profile *profiles; /* likewise */
	size_t steps;
	/* NULL, or called with the states of engines in share_run_best(), as it would be run (share_world.h). */
	void (*note)(void *user, const struct share_span *span);
	void *user;
};

/* Looks at the traces of `alone`; in the arena. */
struct share_case share_case_of(const struct simulation *alone, const struct share_engine_spec *spec, struct arena *a);

/* One share: some of the pools. */
struct share_group {
	size_t *pools;
	size_t count;
};

/* The fewest slots on which each of its pools has an engine; 0 when one fits on no slot. */
int64_t share_fewest_slots(const struct share_case *c, const struct share_group *g);

/*
 * Which pools belong together: pairs whose peaks fall apart are merged, those
 * first that save most slots at the 99th percentile of the record, as long as
 * all engines of a share fit into the host memory of one slot. Those that save
 * nothing stay alone. Returns how many shares; in the arena.
 */
size_t share_propose(const struct share_case *c, struct arena *a, struct share_group **out);
/* All pools in one. */
struct share_group share_of_all(const struct share_case *c, struct arena *a);

struct share_stock {
	struct stock_step *steps;
	size_t count;
	int64_t billed_ms, billed_before_ms; /* slots: after the warm-up, and before it */
	int64_t ready_ms, most;		     /* of those after it: ready */
};
struct share_stock share_stock_fixed(const struct share_case *c, int64_t slots, struct arena *a);

struct share_result {
	struct share_outcome outcome; /* members in the order of the group */
	int64_t slot_ms;	      /* billed */
	int64_t requests, late;
	size_t members_met; /* that keep their objective, without traffic, too */
};
/*
 * As it would be run: of several sizings the cheapest that kept the objectives before the scored part (on all of it
 * where there is no warm-up), and the rule of each hour that was best so far beside shadows of all. False as
 * simulate().
 */
bool share_run_best(const struct share_case *c, const struct share_group *g, struct arena *a, struct share_stock *stock,
		    struct share_result *out, struct error *e) MUST_USE;
/* By one rule. */
struct share_result share_run_rule(const struct share_case *c, const struct share_group *g,
				   const struct share_stock *stock, const struct share_rule *rule, struct arena *a);
/* Late requests within what the members' objectives allow, and nine of ten members keep theirs. */
bool share_keeps(const struct share_case *c, const struct share_group *g, const struct share_result *r);

/*
 * The strongest of those who put engines to sleep after an idle threshold and
 * take the least recently used for whoever asks (llama-swap's ttl, kvcached's
 * controller): the fewest slots, fixed, over all thresholds, chosen in hindsight.
 * slot_ms is 0 where none up to the number of engines kept the objectives.
 */
struct share_result share_rival(const struct share_case *c, const struct share_group *g, struct arena *a,
				int64_t *slots, millis *threshold);
