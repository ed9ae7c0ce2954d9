/* What the account's files share; nobody else includes this. */
#pragma once
#include "controller/loop/account.h"
#include "controller/loop/parts.h"
#include "controller/web/published.h"

enum { LABEL_SETS_SHOWN = 100 }; /* of a pool; the rest is told as one */

/* A part of a pool's bill. */
struct label_part {
	struct cost_labels labels;
	uint32_t hash;		     /* of the labels */
	const struct label_set *set; /* of the pods it came from first: equal pointers, equal labels */
	int64_t gpus_milli;
	__int128 price; /* of these GPUs, micro-dollars per hour times 1000 */
	int64_t gpu_ms, dollars;
};

struct label_parts {
	struct label_part *items;
	size_t count, room;
};

/* One pool since the process started. */
struct pool_account {
	char key[130]; /* NAMESPACE/NAME */
	int64_t busy_ppm;
	struct cost_sums sums, tick; /* tick: of the one under way */
	struct label_parts tick_labels;
	struct published_label_cost *labels;
	size_t label_count;
};

/* A pod that holds GPUs for nothing, as far as is known. */
struct held {
	uint64_t uid[2];
	enum holding_kind kind;
	bool is_seen;		  /* in the look under way */
	millis since, seen, told; /* told 0: not yet */
	int64_t used_most;	  /* thousandths of GPUs in use at once; ABSENT when nobody tells */
};

struct account {
	struct arena texts; /* of labels; never cleared, as few as are shown */
	struct pool_account *pools;
	size_t count;
	struct held *held; /* the first held_known by uid */
	size_t held_count, held_known;
	millis looked_at;
};

/* GPUs of one pod whose use is told. */
struct device_use {
	const char *namespace, *pod;
	int64_t told, in_use;
};
struct device_uses {
	struct device_use *items; /* by pod and namespace */
	size_t count;
};

/* The pool's own, made when it is new. */
struct pool_account *account_of(struct account *a, const char *key);

/* account_labels.c: shares the tick's bill of each pool over the labels of pods */
void account_share(struct account *a, struct controller *c, struct arena *scratch);
/* account_devices.c; texts live until the loop runs */
struct device_uses device_uses_read(const struct controller *c, struct arena *a);
const struct device_use *device_uses_find(const struct device_uses *u, const char *namespace, const char *pod);
/* account_held.c */
void account_look(struct account *a, struct controller *c);
