/*
 * As whom we speak: a token that stands, one in a file that is read again,
 * or one that an exec plug-in hands out until it expires. Nobody but the API
 * client asks; no secret leaves through an error or a log line.
 */
#pragma once
#include "controller/cluster/kubeconfig.h"

struct clock;
struct credential;

/* What to show the server. Counted: stays as it is until everyone who holds it let go. */
struct credential_shown {
	const char *token; /* NULL: none */
	struct http_tls tls;
	unsigned holders; /* private */
	struct arena arena;
};

struct credential_wait {
	void (*done)(struct credential_wait *w); /* exactly once, from the loop */
	void *user;
	struct error error;		/* valid inside done() */
	struct credential_shown *shown; /* valid inside done() when there is no error; held for the caller */
	struct credential_wait *next;	/* private */
};

/* `k` must outlive it; `clock` is the machine's, in which credentials expire. */
struct credential *credential_open(struct loop *loop, const struct clock *clock, const struct kubeconfig *k);
void credential_close(struct credential *c);	     /* nobody may be waiting, nor a plug-in run; takes NULL */
bool credential_is_busy(const struct credential *c); /* a plug-in runs */
/* Held for the caller, or NULL: not at hand, ask. */
struct credential_shown *credential_at_hand(struct credential *c);
void credential_ask(struct credential *c, struct credential_wait *w);
/* It waits no longer: done() does not come. */
void credential_cancel(struct credential *c, struct credential_wait *w);
void credential_let_go(struct credential_shown *s); /* takes NULL */
/* The server answered 401 to it. True: asking again gives another one. */
bool credential_refused(struct credential *c, const struct credential_shown *s);
