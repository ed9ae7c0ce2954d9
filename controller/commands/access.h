/* How a verb reaches the API server: options, then the environment, as kubectl does it. */
#pragma once
#include "controller/cluster/api.h"

struct access_options {
	const char *kubeconfig, *context; /* as given; NULL: not */
	const char *namespace;
};

/* A connection that a verb holds: loop, HTTP and API, opened and closed together. */
struct access {
	struct loop *loop;
	struct http *http;
	struct kubeconfig config;
	struct clock wall;
	struct api *api;
	const char *namespace; /* --namespace, else that of the kubeconfig or of our pod */
	bool is_in_cluster;
};

/* `clock` may be NULL: the wall's. ERROR_NOT_FOUND says what was looked for and what to give. */
bool access_open(struct access *a, const struct access_options *o, const struct clock *clock, struct error *e) MUST_USE;
/* Every call must have completed. */
void access_close(struct access *a);
/* A variable of the environment; NULL when it is not set or empty. */
const char *access_variable(const char *name);
