/* How a verb reaches the API server: options, then the environment, as kubectl does it. */
#pragma once
#include "controller/cluster/api.h"

struct cluster_args {
	const char *kubeconfig, *context; /* as given; NULL: not */
	const char *namespace;
};

#define CLUSTER_ARGS_OPTIONS(a)                                                                         \
	{ "kubeconfig",                                                                                 \
	  0,                                                                                            \
	  OPTION_TEXT,                                                                                  \
	  "FILE",                                                                                       \
	  "how to reach the API server (default: the pod's own, or KUBECONFIG)",                        \
	  &(a)->kubeconfig,                                                                             \
	  NULL },                                                                                       \
	{                                                                                               \
		"context", 0, OPTION_TEXT, "NAME", "the context of the kubeconfig", &(a)->context, NULL \
	}

/* A connection that a verb holds: loop, HTTP and API, opened and closed together. */
struct cluster_access {
	struct loop *loop;
	struct http *http;
	struct kubeconfig config;
	struct clock wall;
	struct api *api;
	const char *namespace; /* --namespace, else that of the kubeconfig or of our pod */
	bool is_in_cluster;
};

/* `clock` may be NULL: the wall's. ERROR_NOT_FOUND says what was looked for and what to give. */
bool cluster_access_open(struct cluster_access *a, const struct cluster_args *o, const struct clock *clock,
			 struct error *e) MUST_USE;
/* Makes the call and waits for its answer, which may be long: `path`, `timeout` and `is_single` are the caller's. */
bool cluster_access_get(struct cluster_access *a, const struct api_call *call, struct buf *text,
			struct error *e) MUST_USE;
/* Every call must have completed. */
void cluster_access_close(struct cluster_access *a);
/* A variable of the environment; NULL when it is not set or empty. */
const char *cluster_args_variable(const char *name);
