#include "controller/web/authz.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/signature.h"
#include "base/log.h"
#include "base/millis.h"
#include "controller/web/refusal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

struct fact_cache;

enum { PATH_LONGEST = 2048, VERB_LONGEST = 16 };

/* A request that waits for an answer of the API server. */
struct asker {
	struct server_wait *wait;
	char verb[VERB_LONGEST];
	char *path;
	struct asker *next;
};

/* What the API server is being asked, and who waits for it: each question once at a time. */
struct question {
	struct authz *authz; /* NULL: closed in the meantime */
	struct sha256 key;
	struct authz_review review;
	struct asker *askers;
	struct question *next;
};

struct authz {
	struct authz_settings settings;
	unsigned char secret[32]; /* of the hashes: what is kept tells nobody a token */
	/* Apart, so that a flood of bad ones does not drive out the good. */
	struct fact_cache *known, *unknown, *allowed, *denied;
	struct question *questions;
	size_t question_count;
	bool is_failing;
};

enum finding { AUTHZ_ALLOWED, AUTHZ_DENIED, AUTHZ_UNKNOWN };

/*
 * --- what the API server said lately, by the hash of what it was asked ---
 * Bounded: when it is full, what would be forgotten first goes. Holds no token.
 */

struct fact {
	struct sha256 key;
	millis until;	  /* monotonic */
	const char *text; /* belongs to the cache; NULL: none */
};

struct fact_cache {
	size_t count, most;
	struct fact facts[];
};

static struct fact_cache *new_cache(size_t most)
{
	struct fact_cache *c = xcalloc(1, sizeof *c + most * sizeof *c->facts);

	c->most = most;
	return c;
}

/* takes NULL */
static void free_cache(struct fact_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		free((char *)(uintptr_t)c->facts[i].text);
	free(c);
}

static struct fact *place_of(struct fact_cache *c, const struct sha256 *key)
{
	for (size_t i = 0; i < c->count; i++)
		if (memcmp(&c->facts[i].key, key, sizeof *key) == 0)
			return &c->facts[i];
	return NULL;
}

/* NULL when it is not known, or no longer at `now`; valid until the cache is changed. */
static const struct fact *find_fact(struct fact_cache *c, const struct sha256 *key, millis now)
{
	const struct fact *f = place_of(c, key);

	return f && f->until > now ? f : NULL;
}

static struct fact *room(struct fact_cache *c)
{
	struct fact *first = &c->facts[0];

	if (c->count < c->most)
		return &c->facts[c->count++];
	for (size_t i = 1; i < c->count; i++)
		if (c->facts[i].until < first->until)
			first = &c->facts[i];
	return first;
}

/* `text` is copied; what was known under the key is replaced. */
static void keep_fact(struct fact_cache *c, const struct fact *fact)
{
	struct fact *f = place_of(c, &fact->key);
	char *text = fact->text ? strdup(fact->text) : NULL;

	if (fact->text && !text)
		abort();
	if (!f)
		f = room(c);
	free((char *)(uintptr_t)f->text);
	*f = *fact;
	f->text = text;
}

/* --- where a request comes from --- */

/* "localhost:8081" without the port. */
static bool name_of(const char *host, char *out, size_t room)
{
	const char *end = *host == '[' ? strchr(host, ']') : NULL;
	size_t len = end ? (size_t)(end + 1 - host) : strcspn(host, ":");
	const char *rest = host + len;

	if (len >= room || (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1))))
		return false;
	snprintf(out, room, "%.*s", (int)len, host);
	return true;
}

bool authz_is_local_host(const char *host)
{
	struct in_addr v4;
	char name[64];

	if (!host || !name_of(host, name, sizeof name))
		return false;
	if (inet_pton(AF_INET, name, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0;
}

static bool is_of_host(const char *origin, const char *host)
{
	size_t scheme = strncasecmp(origin, "http://", 7) == 0 ? 7 : strncasecmp(origin, "https://", 8) == 0 ? 8 : 0;

	return scheme && host && strcasecmp(origin + scheme, host) == 0;
}

bool authz_is_same_site(const struct authz_origin *o)
{
	if (o->origin && !is_of_host(o->origin, o->host))
		return false;
	return !o->fetch_site || strcmp(o->fetch_site, "same-origin") == 0 || strcmp(o->fetch_site, "none") == 0 ||
	       (o->fetch_mode && strcmp(o->fetch_mode, "navigate") == 0);
}

/* --- questions to the API server --- */

static bool put_question(struct authz *g, const struct sha256 *key, const struct authz_review *r, struct asker *asker);

static enum server_verdict refuse(struct server_answer *a, int status, const char *message)
{
	a->status = status;
	a->content_type = "application/json";
	refusal_write(status, message, &a->body);
	return SERVER_REFUSES;
}

enum { QUESTIONS_MOST = 32 };

/* What is known of a token; `who` is valid until the caches change. */
static enum finding look_up_token(struct authz *g, const struct sha256 *key, const char **who)
{
	millis now = clock_mono(g->settings.clock);
	const struct fact *f = find_fact(g->known, key, now);

	if (f) {
		*who = f->text;
		return AUTHZ_ALLOWED;
	}
	return find_fact(g->unknown, key, now) ? AUTHZ_DENIED : AUTHZ_UNKNOWN;
}

static struct sha256 access_key(const struct authz *g, const char *who, const struct asker *asker)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	/* Neither of the first two holds a line break. */
	buf_printf(&text, "%s\n%s\n%s", asker->verb, asker->path, who);
	return sha256_keyed(g->secret, sizeof g->secret, text.text, text.len);
}

static enum finding look_up_access(struct authz *g, const struct sha256 *key)
{
	millis now = clock_mono(g->settings.clock);

	if (find_fact(g->allowed, key, now))
		return AUTHZ_ALLOWED;
	return find_fact(g->denied, key, now) ? AUTHZ_DENIED : AUTHZ_UNKNOWN;
}

static void learn(struct authz *g, const struct question *q)
{
	const struct authz_review *r = &q->review;
	struct fact_cache *cache =
		r->is_access ? (r->is_allowed ? g->allowed : g->denied) : (r->is_allowed ? g->known : g->unknown);
	millis kept = !r->is_access ? AUTHZ_TOKEN_KEPT : r->is_allowed ? AUTHZ_ALLOW_KEPT : AUTHZ_DENIAL_KEPT;

	keep_fact(cache, &(struct fact){ .key = q->key,
					 .until = clock_mono(g->settings.clock) + kept,
					 .text = r->is_access ? NULL : r->told_who });
}

static void free_asker(struct asker *a)
{
	free(a->path);
	free(a);
}

/* Why not, for people: 401 the token is not known, 403 the access is not allowed, 503 nobody can be asked. */
static void refuse_asker(int status, const struct asker *asker, struct server_answer *a)
{
	char message[PATH_LONGEST + 256];

	if (status == 403)
		snprintf(message, sizeof message,
			 "whoever this token belongs to may not %s %s; do: bind the ClusterRole preheat-viewer, or one "
			 "that allows this verb on this path",
			 asker->verb, asker->path);
	else
		snprintf(message, sizeof message, "%s",
			 status == 401 ? "the API server does not know this token: it is wrong, has expired or was "
					 "revoked; do: get another, such as from kubectl create token"
				       : "the API server cannot be asked who this is and what they may; do: try again, "
					 "or look for review-failed in the log");
	(void)refuse(a, status, message);
	a->headers[0] = status == 401	? "WWW-Authenticate: Bearer realm=\"preheat\""
			: status == 503 ? "Retry-After: 5"
					: NULL;
}

static void question_refuse(struct asker *a, int status)
{
	struct server_answer answer = { .fd = -1 };

	refuse_asker(status, a, &answer);
	server_decide(a->wait, &answer);
	free_asker(a);
}

static void let_in(struct asker *a)
{
	server_decide(a->wait, NULL);
	free_asker(a);
}

/* Who it is, is known. */
static void go_on(struct authz *g, struct asker *a, const char *who)
{
	struct sha256 key = access_key(g, who, a);

	switch (look_up_access(g, &key)) {
	case AUTHZ_ALLOWED:
		let_in(a);
		return;
	case AUTHZ_DENIED:
		question_refuse(a, 403);
		return;
	case AUTHZ_UNKNOWN:
		break;
	}
	struct authz_review r = { .is_access = true, .who = who, .verb = a->verb, .path = a->path };
	if (!put_question(g, &key, &r, a))
		question_refuse(a, 503);
}

static void answer(struct authz *g, struct asker *a, const struct authz_review *r)
{
	if (r->error.kind != ERROR_NONE)
		question_refuse(a, 503);
	else if (!r->is_allowed)
		question_refuse(a, r->is_access ? 403 : 401);
	else if (r->is_access)
		let_in(a);
	else
		go_on(g, a, r->told_who);
}

/* Said when it begins, and when it is over: not for each request. */
static void tell(struct authz *g, const struct authz_review *r)
{
	bool fails = r->error.kind != ERROR_NONE;

	if (fails && !g->is_failing)
		log_warn("review-failed", LOG_S("of", r->is_access ? "access" : "token"), LOG_E(&r->error),
			 LOG_S("remedy", r->error.kind == ERROR_AUTH
						 ? "kubectl apply -f deploy/components/web/rbac.yaml"
						 : "is the API server there?"),
			 LOG_END);
	if (!fails && g->is_failing)
		log_info("review-works-again", LOG_END);
	g->is_failing = fails;
}

static void take_out(struct authz *g, struct question *q)
{
	struct question **at = &g->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	g->question_count--;
}

static void reviewed(struct authz_review *r)
{
	struct question *q = r->user;
	struct authz *g = q->authz;

	if (g) {
		take_out(g, q);
		tell(g, r);
		if (r->error.kind == ERROR_NONE)
			learn(g, q);
		for (struct asker *a = q->askers, *next; a; a = next) {
			next = a->next;
			answer(g, a, r);
		}
	}
	free(q);
}

/*
 * Joins a question that is under way, or asks it. False: too many are. `r` says what is asked; the asker is the
 * question's from then on.
 */
static bool put_question(struct authz *g, const struct sha256 *key, const struct authz_review *r, struct asker *asker)
{
	struct question *q = g->questions;

	while (q && (q->review.is_access != r->is_access || memcmp(&q->key, key, sizeof *key) != 0))
		q = q->next;
	if (!q) {
		if (g->question_count == QUESTIONS_MOST)
			return false;
		q = xcalloc(1, sizeof *q);
		q->authz = g;
		q->key = *key;
		q->review = *r;
		q->review.done = reviewed;
		q->review.user = q;
		q->next = g->questions;
		g->questions = q;
		g->question_count++;
		g->settings.ask(g->settings.ask_user, &q->review);
	}
	asker->next = q->askers;
	q->askers = asker;
	return true;
}

static void forget_askers(struct question *q)
{
	for (struct asker *a = q->askers, *next; a; a = next) {
		next = a->next;
		free_asker(a);
	}
	q->askers = NULL;
}

void authz_close(struct authz *g)
{
	if (!g)
		return;
	for (struct question *q = g->questions; q; q = q->next) {
		q->authz = NULL;
		forget_askers(q);
	}
	free_cache(g->known);
	free_cache(g->unknown);
	free_cache(g->allowed);
	free_cache(g->denied);
	explicit_bzero(g, sizeof *g);
	free(g);
}

/* --- who is let in --- */

enum { TOKENS_KEPT = 256, ACCESS_KEPT = 1024, TOKEN_LONGEST = 16 * 1024 };

struct authz *authz_open(const struct authz_settings *s)
{
	struct authz *g = calloc(1, sizeof *g);

	if (!g || getrandom(g->secret, sizeof g->secret, 0) != sizeof g->secret)
		abort();
	g->settings = *s;
	g->known = new_cache(TOKENS_KEPT);
	g->unknown = new_cache(TOKENS_KEPT);
	g->allowed = new_cache(ACCESS_KEPT);
	g->denied = new_cache(ACCESS_KEPT);
	return g;
}

/* What is allowed and what is answered must be the same text; nothing that is served has another in its path. */
static bool is_plain(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++)
		if (path[i] <= ' ' || path[i] > '~')
			return false;
	return len < PATH_LONGEST;
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

static struct asker *asker_of(const struct server_request *q, struct server_wait *w)
{
	struct asker *a = calloc(1, sizeof *a);

	if (!a || !(a->path = strdup(q->path)))
		abort();
	a->wait = w;
	for (size_t i = 0; q->method[i] && i < sizeof a->verb - 1; i++)
		a->verb[i] = (char)tolower((unsigned char)q->method[i]);
	return a;
}

/* Asks what is not known; the asker is used up. */
static enum server_verdict ask(struct authz *g, const struct sha256 *key, const struct authz_review *r,
			       struct asker *asker, struct server_answer *a)
{
	if (put_question(g, key, r, asker))
		return SERVER_WAITS;
	refuse_asker(503, asker, a);
	free_asker(asker);
	return SERVER_REFUSES;
}

static enum server_verdict check_access(struct authz *g, const char *who, struct asker *asker, struct server_answer *a)
{
	struct sha256 key = access_key(g, who, asker);
	enum finding found = look_up_access(g, &key);
	struct authz_review r = { .is_access = true, .who = who, .verb = asker->verb, .path = asker->path };

	if (found == AUTHZ_UNKNOWN)
		return ask(g, &key, &r, asker, a);
	if (found == AUTHZ_DENIED)
		refuse_asker(403, asker, a);
	free_asker(asker);
	return found == AUTHZ_DENIED ? SERVER_REFUSES : SERVER_ADMITS;
}

static enum server_verdict check_token(struct authz *g, const struct server_request *q, struct server_wait *w,
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
	enum finding found = look_up_token(g, &key, &who);
	if (found == AUTHZ_DENIED) {
		refuse_asker(401, NULL, a);
		return SERVER_REFUSES;
	}
	struct asker *asker = asker_of(q, w);
	return found == AUTHZ_ALLOWED ? check_access(g, who, asker, a)
				      : ask(g, &key, &(struct authz_review){ .token = token }, asker, a);
}

enum server_verdict authz_admit(void *user, const struct server_request *q, struct server_wait *w,
				struct server_answer *a)
{
	struct authz *g = user;
	struct authz_origin origin = { .host = server_header(q, "Host"),
				       .origin = server_header(q, "Origin"),
				       .fetch_site = server_header(q, "Sec-Fetch-Site"),
				       .fetch_mode = server_header(q, "Sec-Fetch-Mode") };

	if (!is_plain(q->path) || !is_plain(q->method))
		return refuse(a, 400,
			      "the path: found bytes that no path here has; allowed: printable ASCII without spaces");
	if (!g->settings.ask && !authz_is_local_host(origin.host))
		return refuse(a, 403,
			      "Host: found the name of another machine; allowed: localhost, 127.0.0.1, [::1]; do: open "
			      "the page under one of these");
	if (!authz_is_same_site(&origin))
		return refuse(a, 403, "Origin: found the page of another site; allowed: Preheat's own page");
	return g->settings.ask ? check_token(g, q, w, a) : SERVER_ADMITS;
}
