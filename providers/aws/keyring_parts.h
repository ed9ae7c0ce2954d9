/* What the files of the keyring share; providers/aws/keyring.h is what others see. */
#pragma once
#include "base/net/retry.h"
#include "providers/aws/grant.h"
#include "providers/aws/keyring.h"

/* A fetch of credentials: from the start to fetch_done(), which comes once, at once or from the loop. */
enum fetch_step { FETCH_WEB_IDENTITY, FETCH_CONTAINER, FETCH_SESSION, FETCH_ROLE, FETCH_INSTANCE };

struct aws_keyring {
	struct loop *loop;
	struct http *http;
	const struct aws_environment *env;
	const struct http_tls *tls;
	struct aws_wait *waiting; /* in order */
	struct timer serve;
	millis clock_offset; /* of AWS's clock to ours */

	struct arena held; /* of the grant */
	struct aws_grant grant;
	millis refresh_at;
	bool has_grant;
	struct retry retry;
	struct error failure; /* of the last fetch, until `failed_until` of the loop's clock */
	millis failed_until;

	bool is_fetching;
	enum fetch_step step;
	struct arena fetched;
	struct http_request request;
	const char *headers[4], *session;
	struct buf url, body, line;
};

void aws_fetch_start(struct aws_keyring *k, const char *region);
/* The outcome; the grant's texts live in k->fetched. */
void aws_fetch_done(struct aws_keyring *k, const struct aws_grant *grant, const struct error *e);
