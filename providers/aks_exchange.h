/* One call of provider aks: several requests, one after another, each begun by the answer to the one before. */
#pragma once
#include "providers/azure/arm.h"
#include "providers/azure/bucket.h"
#include "providers/azure/failure.h"
#include "providers/azure/machines.h"
#include "providers/azure/pool.h"
#include "providers/provider.h"

struct aks_settings {
	const char *subscription, *resource_group, *cluster, *pool;
	const char *resource_manager; /* NULL: the environment's cloud */
};

/* What is kept of a pool from call to call, so that the same is told by the same name. */
struct aks_memory {
	struct aks_memory *next;
	char *key; /* of the pool's URL */
	char *failed_write;
	int64_t failure; /* the id that this failure was told by */
	millis failed_at;
};

/* The budget of changes of a subscription. */
struct aks_budget {
	struct aks_budget *next;
	char *subscription;
	struct put_bucket bucket;
};

struct provider {
	struct arm arm;
	struct aks_memory *memories;
	struct aks_budget *budgets;
	int64_t last_failure;
	size_t active;
};

struct exchange {
	struct provider *provider;
	struct provider_call *call;
	struct aks_settings settings;
	struct azure_place place;
	const char *pool_url, *machines_url; /* in the call's arena, like all texts here */
	struct arm_request request;
	struct buf body;
	struct timer timer; /* what is wrong at once; the next look at a pool that is worked on */
	void (*next)(struct exchange *x);
	millis ends_at, pause; /* pause: as the other side told, between two looks */
	bool was_cancelled, has_aborted, has_deleted;

	struct azure_pool pool;
	const char *pool_text;
	struct azure_failure pool_failure, operation_failure; /* kind ERROR_NONE: none */
	bool pool_failed, operation_failed, operation_open;
	millis operation_ended_at;
	struct azure_machines machines;
	int pages;
};

#define AKS_API "2026-04-01"

/* Ends the call with what stands in call->error. */
void aks_finish(struct exchange *x);
/* Asks; `answered` is called with the call's error set and the call not ended when the answer is no success. */
void aks_ask(struct exchange *x, const char *method, const char *url, void (*answered)(struct arm_request *));
/* Goes on after x->pause; ERROR_TIMEOUT ends the call when there is no time left for it. */
void aks_wait(struct exchange *x, void (*next)(struct exchange *x));
/* Takes the pause from an answer; without one it is five seconds. */
void aks_pace(struct exchange *x, const struct arm_request *r);
void aks_fail(struct exchange *x, const struct arm_request *r);

/* Reads the pool, into x->pool; then x->next. */
void aks_read_pool(struct exchange *x, void (*next)(struct exchange *x));
/* Reads all machines; then x->next. */
void aks_read_machines(struct exchange *x, void (*next)(struct exchange *x));
/* How the operation call->pending went; then x->next. */
void aks_read_pending(struct exchange *x, void (*next)(struct exchange *x));

/* Out of what was read, the description; false with the call's error set. Nothing is sent. */
bool aks_describe(struct exchange *x) MUST_USE;
/* The machine of this id that is not on its way out; NULL: gone. After aks_describe(). */
const struct machine *aks_machine(const struct exchange *x, const char *id);

void aks_begin_describe(struct exchange *x);
void aks_begin_change(struct exchange *x);
void aks_begin_check(struct exchange *x);
