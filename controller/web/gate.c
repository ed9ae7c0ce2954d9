#include "controller/web/gate.h"

#include "controller/web/gate_local.h"
#include "controller/web/gate_parts.h"
#include "controller/web/refusal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

enum { TOKENS_KEPT = 256, ACCESS_KEPT = 1024, TOKEN_LONGEST = 16 * 1024 };

struct gate *gate_open(const struct gate_settings *s)
{
	struct gate *g = calloc(1, sizeof *g);

	if (!g || getrandom(g->secret, sizeof g->secret, 0) != sizeof g->secret)
		abort();
	g->settings = *s;
	g->known = gate_cache_new(TOKENS_KEPT);
	g->unknown = gate_cache_new(TOKENS_KEPT);
	g->allowed = gate_cache_new(ACCESS_KEPT);
	g->denied = gate_cache_new(ACCESS_KEPT);
	return g;
}

static enum server_verdict refuse(struct server_answer *a, int status, const char *message)
{
	refusal_write(a, status, message);
	return SERVER_REFUSES;
}

/* What is allowed and what is answered must be the same text; nothing that is served has another in its path. */
static bool is_plain(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++)
		if (path[i] <= ' ' || path[i] > '~')
			return false;
	return len < GATE_PATH_LONGEST;
}

/* The token behind "Bearer ", of the letters that one may have; NULL for anything else. */
static const char *bearer(const struct server_request *q)
{
	const char *header = server_header(q, "Authorization");

	if (!header || strncasecmp(header, "Bearer ", 7) != 0)
		return NULL;
	header += 7 + strspn(header + 7, " ");
	size_t len = strlen(header);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)header[i]) && !strchr("-._~+/=", header[i]))
			return NULL;
	return len && len <= TOKEN_LONGEST ? header : NULL;
}

static struct gate_asker *asker_of(const struct server_request *q, struct server_wait *w)
{
	struct gate_asker *a = calloc(1, sizeof *a);

	if (!a || !(a->path = strdup(q->path)))
		abort();
	a->wait = w;
	for (size_t i = 0; q->method[i] && i < sizeof a->verb - 1; i++)
		a->verb[i] = (char)tolower((unsigned char)q->method[i]);
	return a;
}

/* Asks what is not known; the asker is used up. */
static enum server_verdict ask(struct gate *g, const struct sha256 *key, const struct gate_review *r,
			       struct gate_asker *asker, struct server_answer *a)
{
	if (gate_put(g, key, r, asker))
		return SERVER_WAITS;
	gate_refuse(503, asker, a);
	gate_asker_free(asker);
	return SERVER_REFUSES;
}

static enum server_verdict check_access(struct gate *g, const char *who, struct gate_asker *asker,
					struct server_answer *a)
{
	struct sha256 key = gate_access_key(g, who, asker);
	enum gate_finding found = gate_look_up_access(g, &key);
	struct gate_review r = { .is_access = true, .who = who, .verb = asker->verb, .path = asker->path };

	if (found == GATE_MUST_ASK)
		return ask(g, &key, &r, asker, a);
	if (found == GATE_BARS)
		gate_refuse(403, asker, a);
	gate_asker_free(asker);
	return found == GATE_BARS ? SERVER_REFUSES : SERVER_ADMITS;
}

static enum server_verdict check_token(struct gate *g, const struct server_request *q, struct server_wait *w,
				       struct server_answer *a)
{
	const char *token = bearer(q), *who = NULL;

	if (!token) {
		a->headers[0] = "WWW-Authenticate: Bearer realm=\"preheat\"";
		return refuse(a, 401,
			      "who asks? do: send Authorization: Bearer TOKEN with a token of this cluster, such as "
			      "kubectl create token gives; or reach the loopback address by kubectl port-forward");
	}
	struct sha256 key = sha256_keyed(g->secret, sizeof g->secret, token, strlen(token));
	enum gate_finding found = gate_look_up_token(g, &key, &who);
	if (found == GATE_BARS) {
		gate_refuse(401, NULL, a);
		return SERVER_REFUSES;
	}
	struct gate_asker *asker = asker_of(q, w);
	return found == GATE_LETS ? check_access(g, who, asker, a)
				  : ask(g, &key, &(struct gate_review){ .token = token }, asker, a);
}

enum server_verdict gate_admit(void *user, const struct server_request *q, struct server_wait *w,
			       struct server_answer *a)
{
	struct gate *g = user;
	struct gate_origin origin = { .host = server_header(q, "Host"),
				      .origin = server_header(q, "Origin"),
				      .fetch_site = server_header(q, "Sec-Fetch-Site"),
				      .fetch_mode = server_header(q, "Sec-Fetch-Mode") };

	if (!is_plain(q->path) || !is_plain(q->method))
		return refuse(a, 400,
			      "the path: found bytes that no path here has; allowed: printable ASCII without spaces");
	if (!g->settings.ask && !gate_is_local_host(origin.host))
		return refuse(a, 403,
			      "Host: found the name of another machine; allowed: localhost, 127.0.0.1, [::1]; do: open "
			      "the page under one of these");
	if (!gate_is_same_site(&origin))
		return refuse(a, 403, "Origin: found the page of another site; allowed: Preheat's own page");
	return g->settings.ask ? check_token(g, q, w, a) : SERVER_ADMITS;
}
