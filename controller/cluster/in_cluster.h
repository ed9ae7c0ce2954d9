/* The identity that a pod is given: its ServiceAccount's token, re-read as it rotates. */
#pragma once
#include "controller/cluster/kubeconfig.h"

#define IN_CLUSTER_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

struct in_cluster_wish {
	const char *host, *port; /* KUBERNETES_SERVICE_HOST and _PORT; NULL or "": not in a cluster */
	const char *folder;	 /* NULL: IN_CLUSTER_FOLDER */
};

bool in_cluster_is_present(const struct in_cluster_wish *w);
/* ERROR_NOT_FOUND when we are in no cluster or the files are not there. */
bool in_cluster_read(const struct in_cluster_wish *w, struct kubeconfig *out, struct error *e) MUST_USE;
