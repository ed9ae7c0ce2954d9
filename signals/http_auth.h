/*
 * Authentication and TLS towards a server with measurements. Secrets are read
 * from their files for every call, so that a rotated token is used at once;
 * they never appear in a message.
 */
#pragma once
#include "base/buf.h"
#include "base/net/http.h"

/* Everything may be NULL. A token, or a name and a password. */
struct http_auth_settings {
	const char *bearer_token_file;
	const char *username, *password_file;
	const char *ca_file, *cert_file, *key_file, *server_name;
	bool is_insecure; /* any certificate will do */
};

struct http_auth;
struct http_auth *http_auth_open(const char *url, const struct http_auth_settings *s); /* copies */
void http_auth_close(struct http_auth *a);					       /* takes NULL */
const char *http_auth_url(const struct http_auth *a); /* without a user in it; for messages */

/* What one call shows; lives as long as the call. Zeroed at first. */
struct http_auth_shown {
	struct buf authorization;
	const char *headers[3];
};

/* Sets tls and headers of `r`; `accept` is a whole header, a literal. A file that cannot be read is ERROR_AUTH. */
bool http_auth_show(const struct http_auth *a, const char *accept, struct http_request *r, struct http_auth_shown *s,
		    struct error *e) MUST_USE;
void http_auth_shown_release(struct http_auth_shown *s);
