/*
 * A provider's call on its way: steps in the order of the verb's plan, each
 * sent while it is due. What a step estimates is in `seen`; decisions stand
 * between the steps and send nothing.
 */
#pragma once
#include "providers/aws/call.h"
#include "providers/eks_describe.h"
#include "providers/eks_lookup.h"
#include "providers/eks_together.h"

struct provider {
	struct loop *loop;
	struct aws *aws;
	struct eks_lookup *lookup;
	struct eks_together *together;
	size_t active;
};

struct exchange;

struct step {
	const char *name; /* of the operation, as messages and policies call it */
	/* Whether it is to be sent, or sent again; NULL: a decision. */
	bool (*is_due)(const struct exchange *x);
	void (*write)(struct exchange *x);
	bool (*read)(struct exchange *x, struct error *e); /* of the answer; NULL: nothing in it matters */
	bool (*forgives)(struct exchange *x,
			 const struct error *e); /* a refusal that is as good as done; may be NULL */
	bool (*decide)(struct exchange *x, struct error *e);
};

struct exchange {
	struct provider *provider;
	struct provider_call *call;
	struct eks_settings settings;
	struct timer soon, deadline;
	struct aws_call request;
	struct buf path, body;
	const struct step *const *plan; /* ends with NULL */
	bool is_sent, is_late, is_over;

	const char *group; /* name of the Auto Scaling group; NULL until it is known */
	struct eks_seen seen;
	bool is_group_read, is_pool_read, are_activities_read, is_update_read, has_read_again;
	uint64_t era; /* in which its group was asked for, with so many: */
	size_t asked_for;
	const char *page; /* of the warm pool; NULL: the first, or none follows */
	bool is_update_running, has_update_failed;
	struct launch_failure update_failure;

	/* decided */
	const char **victims;
	size_t victim_count, victim_at;
	const char **to_protect;
	size_t protect_count, protect_at;
	const char **to_release; /* from protection */
	size_t release_count, release_at;
	bool must_size, is_sized;
	int64_t target;
	bool must_size_pool, is_pool_sized, must_wait_for_pool;
	struct eks_pool_size pool_size;

	/* LaunchInstances */
	size_t zone_at;
	int64_t to_launch;
	struct error launch_error;

	size_t probe_at; /* of a check */
};

extern const struct step *const *const eks_plans[PROVIDER_VERB_COUNT];

/* Used by the plans of eks_steps.c; what each verb does with what was read. Pure but for `x`. */
bool eks_decide_grow(struct exchange *x, struct error *e);
bool eks_decide_remove(struct exchange *x, struct error *e);
bool eks_decide_stop(struct exchange *x, struct error *e);
bool eks_decide_standby(struct exchange *x, struct error *e);
bool eks_decide_cancel(struct exchange *x, struct error *e);
bool eks_decide_rest(struct exchange *x, struct error *e); /* of a cancel, after the group was read again */

/* For a step's write: forgets the request before. `service` of Auto Scaling is a POST to "/". */
void eks_ask(struct exchange *x, enum aws_service service, const char *method);
void eks_ask_scaling(struct exchange *x);

/* The steps that change something. */
extern const struct step eks_step_protect, eks_step_release, eks_step_put_pool, eks_step_config,
	eks_step_config_if_free, eks_step_terminate, eks_step_size, eks_step_launch, eks_step_launched,
	eks_step_wait_for_pool;

/* What a change does beside what it is asked for, into the call's description. */
void eks_tell_besides(struct exchange *x);

/* The steps of a check: one probe after the other. */
extern const struct step eks_step_identity, eks_step_probe;
