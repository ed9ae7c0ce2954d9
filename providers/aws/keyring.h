/*
 * Credentials of the process, from the first of the places that the SDKs
 * look at, and in their order: the environment, a web identity (IRSA), the
 * shared credentials file, EKS Pod Identity, the instance metadata service.
 * Fetched when first asked for and again some minutes before they end, once
 * for all who wait; never told to a log or in a message.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"
#include "base/net/http.h"
#include "providers/aws/service.h"
#include "providers/aws/sign.h"

struct aws_keyring;

/* Somebody who needs credentials. The caller's memory until `granted`, which comes once and from the loop. */
struct aws_wait {
	void (*granted)(struct aws_wait *w);
	void *user;
	struct error error;			   /* ERROR_NONE: */
	const struct aws_credentials *credentials; /* valid inside granted() */
	bool is_cancelled;			   /* private */
	const char *region;			   /* private */
	struct aws_wait *next;			   /* private */
};

/* `env` and `tls` must outlive it; tls may be NULL. */
struct aws_keyring *aws_keyring_open(struct loop *loop, struct http *http, const struct aws_environment *env,
				     const struct http_tls *tls);
void aws_keyring_close(struct aws_keyring *k); /* nobody may wait any more; takes NULL */
/* `region`: whose token service to ask where the environment names none; lives until granted(). */
void aws_keyring_ask(struct aws_keyring *k, const char *region, struct aws_wait *w);
void aws_keyring_cancel(struct aws_keyring *k, struct aws_wait *w); /* granted() comes soon, as ERROR_CANCELLED */
void aws_keyring_refused(struct aws_keyring *k, const char *access_key_id); /* as expired: to be fetched anew */

/* What AWS's clock shows; the machine's own may be wrong by up to half a day. */
millis aws_keyring_now(const struct aws_keyring *k);
/* Reads the Date of an answer; true when ours was wrong by so much that signatures fail, and is right from now on. */
bool aws_keyring_set_clock(struct aws_keyring *k, const char *date);
