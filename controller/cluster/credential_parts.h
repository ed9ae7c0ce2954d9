/* What an exec plug-in is asked, and what it answers. */
#pragma once
#include "base/buf.h"
#include "base/millis.h"
#include "controller/cluster/kubeconfig.h"

/* What goes to it in KUBERNETES_EXEC_INFO: "KUBERNETES_EXEC_INFO={...}". */
void exec_question(const struct kubeconfig *k, struct buf *out);

struct exec_answer {
	const char *token, *cert, *key; /* in the arena, NULL when not told */
	millis expires;			/* 0: never told */
};

/* An ExecCredential of the version asked for. Errors never hold any of it. */
bool exec_answer_read(const struct kubeconfig *k, const char *text, size_t len, struct arena *a,
		      struct exec_answer *out, struct error *e) MUST_USE;
