/*
 * Who else sets the replicas of a workload: an autoscaler that targets it, or whoever wrote spec.replicas last as the
 * object's managedFields tell (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management).
 * Two reads, nothing is written.
 */
#pragma once
#include "controller/cluster/verbs.h"

enum scale_owner {
	SCALE_OWNER_NONE,	       /* nobody but us */
	SCALE_OWNER_AUTOSCALER,	       /* a HorizontalPodAutoscaler targets it */
	SCALE_OWNER_SCALED_OBJECT,     /* one that KEDA made for a ScaledObject */
	SCALE_OWNER_INFERENCE_SERVICE, /* one that KServe made, or KServe itself */
	SCALE_OWNER_LLM_SERVICE,       /* of an LLMInferenceService: KServe, or the autoscaler that it makes */
	SCALE_OWNER_FIELD_MANAGER,     /* wrote spec.replicas last, and is none of these */
	SCALE_OWNER_PREHEAT,	       /* one that is not us: what was written under its name is not what we set */
	SCALE_OWNER_UNKNOWN,	       /* it could not be read */
};

/* Under this name our own writes stand in managedFields: the User-Agent up to its slash. */
#define OWN_FIELD_MANAGER "preheat"

struct scale_owner_call {
	const char *api_version, *kind, *name_space, *name; /* of the workload */
	int64_t ours;					    /* the replicas that we set last; may change meanwhile */
	void (*done)(struct scale_owner_call *c);
	void *user;

	/* Valid inside done(). */
	enum scale_owner owner;
	const char *llm_service; /* that the workload was made for; NULL: none */
	const char *owner_name;	 /* of the object or field manager; "" where unknown */
	bool stands;		 /* an object that scales it is there now; else it only wrote once */
	struct error error;	 /* what could not be read, though the rest may be known; ERROR_CANCELLED: stopped */

	struct api_call call; /* private from here; zeroed at first */
	struct plural_call lookup;
	struct api *api;
	struct buf path;
	struct arena arena;
};
void scale_owner_start(struct api *a, struct scale_owner_call *c);
void scale_owner_cancel(struct scale_owner_call *c);
