/*
 * A signed call of an AWS service. Credentials are fetched where they are
 * needed; a call that is refused because they ended, or because our clock
 * is wrong, is sent once more. Otherwise nothing is repeated.
 */
#pragma once
#include "base/buf.h"
#include "base/net/http.h"
#include "providers/aws/service.h"
#include "providers/aws/keyring.h"

struct aws;

struct aws *aws_open(struct loop *loop, struct http *http);
void aws_close(struct aws *a);	     /* no call may be under way; takes NULL */
millis aws_now(const struct aws *a); /* what AWS's clock shows */

struct aws_call {
	/* Filled in by the caller; must outlive the call. */
	enum aws_service service;
	const char *region, *endpoint; /* endpoint NULL or "": as the environment says, else the public one */
	const char *method;
	const char *path; /* "/clusters/c1", escaped */
	const char *body; /* a form for the query services, JSON for EKS; NULL: none */
	bool is_write;	  /* part of a change: see http_write_until() */
	millis timeout;	  /* of all of it, credentials apart */
	size_t max_response;
	void (*done)(struct aws_call *c); /* may start c anew, and may free it */
	void *user;

	/* Valid inside done(). A refusal is an error, by its code; `refusal` then says more. */
	struct error error;
	struct aws_refusal refusal;
	millis retry_after;   /* 0: not told */
	const char *response; /* NUL-terminated */
	size_t response_len;
	millis answered_at; /* as AWS's clock says; 0: not told */

	/* private */
	struct aws *aws;
	struct aws_wait wait;
	struct http_request request;
	struct buf url, host, lines[4];
	const char *headers[5];
	char key_id[160]; /* that it was signed with */
	bool is_waiting, was_repeated;
};

/* Cannot fail: failures arrive in done(), from the loop. `c` is zeroed but for what the caller fills in. */
void aws_start(struct aws *a, struct aws_call *c);
void aws_cancel(struct aws_call *c); /* done() comes soon, as ERROR_CANCELLED; nothing when it is not under way */
