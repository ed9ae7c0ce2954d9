/*
 * How a server with measurements is reached: what we show it and whom we
 * trust. Secrets are read from their files for every call, so that a token
 * that is rotated is noticed at once; they never appear in a message.
 */
#pragma once
#include "base/buf.h"
#include "base/net/http.h"

/* Everything may be NULL. A token, or a name and a password. */
struct reach_settings {
	const char *bearer_token_file;
	const char *username, *password_file;
	const char *ca_file, *cert_file, *key_file, *server_name;
	bool is_insecure; /* any certificate will do */
};

struct reach;
struct reach *reach_open(const char *url, const struct reach_settings *s); /* copies */
void reach_close(struct reach *a);					   /* takes NULL */
const char *reach_url(const struct reach *a);				   /* without a user in it; for messages */

/* What one call shows; lives as long as the call. Zeroed at first. */
struct reach_shown {
	struct buf authorization;
	const char *headers[3];
};

/* Sets tls and headers of `r`; `accept` is a whole header, a literal. A file that cannot be read is ERROR_AUTH. */
bool reach_show(const struct reach *a, const char *accept, struct http_request *r, struct reach_shown *s,
		struct error *e) MUST_USE;
void reach_shown_release(struct reach_shown *s);
