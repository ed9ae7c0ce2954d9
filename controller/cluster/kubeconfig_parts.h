/* What the files that read kubeconfigs share. */
#pragma once
#include "base/buf.h"
#include "base/yaml.h"
#include "controller/cluster/kubeconfig.h"

enum { KUBECONFIG_FILES = 16, KUBECONFIG_BYTES = 1 << 20 };

struct kubeconfig_file {
	const char *path, *folder;
	const struct yaml_node *root; /* NULL: empty */
};

/* Where a value stands, and in which file: its relative paths count from there. */
struct kubeconfig_place {
	const struct kubeconfig_file *file;
	const struct yaml_node *node;
};

/* Appends the bytes; false when the text is no base64. */
bool base64_decode(const char *text, struct buf *out);

/* "FILE:LINE: PATH: WHAT"; the value itself is never shown. */
bool kubeconfig_wrong(const struct kubeconfig_file *f, const struct yaml_node *at, const char *what, struct error *e);
/* A member's text, copied; NULL when it is absent or empty. False when it is no text. */
bool kubeconfig_text(struct arena *a, const struct kubeconfig_place *p, const char *key, const char **out,
		     struct error *e) MUST_USE;
bool kubeconfig_bool(const struct kubeconfig_place *p, const char *key, bool *out, struct error *e) MUST_USE;
/* A path, from the folder of its file. */
const char *kubeconfig_path(struct arena *a, const struct kubeconfig_file *f, const char *path);

bool kubeconfig_take_cluster(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e) MUST_USE;
bool kubeconfig_take_user(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e) MUST_USE;
bool kubeconfig_take_exec(const struct kubeconfig_place *p, struct exec_plugin *x, struct arena *a,
			  struct error *e) MUST_USE;
