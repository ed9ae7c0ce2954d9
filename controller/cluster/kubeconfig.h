/*
 * Where the API server is, how it is trusted, and as whom we speak: read
 * from kubeconfig files as kubectl reads them. Errors name the file and what
 * to do, and never hold a secret. The environment comes in as texts.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/net/http.h"

#define EXEC_ENV_MOST  64
#define EXEC_ARGS_MOST 64

/* A program that hands out credentials (client.authentication.k8s.io). */
struct exec_plugin {
	const char *command; /* NULL: none. Relative ones with a '/' count from the kubeconfig's folder */
	const char *api_version;
	const char *const *args; /* NULL-terminated */
	const char *const *env;	 /* "NAME=value", NULL-terminated */
	const char *install_hint;
	bool provides_cluster; /* cluster goes to it in KUBERNETES_EXEC_INFO */
};

struct kubeconfig {
	struct arena arena; /* holds all of it */
	const char *source; /* the file, or "in-cluster" */
	const char *context;
	const char *server; /* "https://10.0.0.1:6443", no slash at the end */
	const char *name_space;
	const char *proxy; /* NULL: as the environment of libcurl says */
	struct http_tls tls;
	const char *token;	/* at most one of token, token_file, exec.command */
	const char *token_file; /* read again at least each minute */
	struct exec_plugin exec;
};

struct kubeconfig_wish {
	const char *path;	 /* --kubeconfig; NULL: what follows */
	const char *environment; /* of KUBECONFIG: files joined by ':', merged, the first to say something wins; may be
				    NULL */
	const char *home;	 /* for HOME/.kube/config; may be NULL */
	const char *context;	 /* --context; NULL: the current one */
};

/* ERROR_NOT_FOUND when there is no file, ERROR_INVALID for a bad one, ERROR_AUTH for what a controller cannot use. */
bool kubeconfig_read(const struct kubeconfig_wish *w, struct kubeconfig *out, struct error *e) MUST_USE;
void kubeconfig_release(struct kubeconfig *k); /* zeroed: nothing */

/* The identity that a pod is given: its ServiceAccount's token, re-read as it rotates. */

#define IN_CLUSTER_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

struct in_cluster_wish {
	const char *host, *port; /* KUBERNETES_SERVICE_HOST and _PORT; NULL or "": not in a cluster */
	const char *folder;	 /* NULL: IN_CLUSTER_FOLDER */
};

bool in_cluster_is_present(const struct in_cluster_wish *w);
/* ERROR_NOT_FOUND when we are in no cluster or the files are not there. */
bool in_cluster_read(const struct in_cluster_wish *w, struct kubeconfig *out, struct error *e) MUST_USE;
