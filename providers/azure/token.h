/*
 * How a token is asked for, and what the answer says: workload identity,
 * client secret, client certificate, managed identity. No network; files of
 * the environment are read anew each time, as they change under us.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/millis.h"
#include "providers/azure/place.h"

/* Which of these the environment chooses, in words: "workload identity". */
const char *token_method_name(const struct azure_environment *env);

struct token_request {
	struct buf url, body; /* body empty: a GET with the header Metadata: true, through no proxy */
};

/* `now` is the wall clock. ERROR_AUTH when a file of the environment is not to be had. */
bool token_request_write(const struct azure_environment *env, const struct azure_place *place, millis now,
			 struct token_request *out, struct error *e) MUST_USE;
void token_request_release(struct token_request *r); /* wipes what is secret */

/* Of a 200: the token, and how long it lives. */
bool token_answer_read(const char *text, size_t len, struct arena *a, const char **token, millis *lives,
		       struct error *e) MUST_USE;
/* Of any other status. */
void token_refusal_read(long status, const char *text, size_t len, struct error *e);
/* How long to wait before a managed identity is asked again: `tries` so far, the first `since` ago; -1: no more. */
millis token_imds_wait(long status, int tries, millis since);

/* What a token says of whom it is for; texts live in the arena, "" when it does not say. No secret in it. */
struct token_claims {
	const char *application, *object, *tenant;
};
bool token_claims_read(const char *token, struct arena *a, struct token_claims *out) MUST_USE;
