#include "controller/web/gate.h"

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

/*
 * What the API server said lately, by the hash of what it was asked. Bounded:
 * when it is full, what would be forgotten first goes. Holds no token.
 */

struct gate_cache;

struct gate_fact {
	struct sha256 key;
	millis until;	  /* monotonic */
	const char *text; /* belongs to the cache; NULL: none */
};

/* What the files of the gate share. */

enum { GATE_PATH_LONGEST = 2048, GATE_VERB_LONGEST = 16 };

/* A request that waits for an answer of the API server. */
struct gate_asker {
	struct server_wait *wait;
	char verb[GATE_VERB_LONGEST];
	char *path;
	struct gate_asker *next;
};

/* What the API server is being asked, and who waits for it: each question once at a time. */
struct gate_question {
	struct gate *gate; /* NULL: closed in the meantime */
	struct sha256 key;
	struct gate_review review;
	struct gate_asker *askers;
	struct gate_question *next;
};

struct gate {
	struct gate_settings settings;
	unsigned char secret[32]; /* of the hashes: what is kept tells nobody a token */
	/* Apart, so that a flood of bad ones does not drive out the good. */
	struct gate_cache *known, *unknown, *allowed, *denied;
	struct gate_question *questions;
	size_t question_count;
	bool is_failing;
};

enum gate_finding { GATE_LETS, GATE_BARS, GATE_MUST_ASK };

static struct gate_cache *gate_cache_new(size_t most);
static enum gate_finding gate_look_up_token(struct gate *g, const struct sha256 *key, const char **who);
static struct sha256 gate_access_key(const struct gate *g, const char *who, const struct gate_asker *asker);
static enum gate_finding gate_look_up_access(struct gate *g, const struct sha256 *key);
static void gate_asker_free(struct gate_asker *a);
static void gate_refuse(int status, const struct gate_asker *asker, struct server_answer *a);
static void answer(struct gate *g, struct gate_asker *a, const struct gate_review *r);
static bool gate_put(struct gate *g, const struct sha256 *key, const struct gate_review *r, struct gate_asker *asker);

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

struct gate_cache {
	size_t count, most;
	struct gate_fact facts[];
};

static struct gate_cache *gate_cache_new(size_t most)
{
	struct gate_cache *c = calloc(1, sizeof *c + most * sizeof *c->facts);

	if (!c)
		abort();
	c->most = most;
	return c;
}

/* takes NULL */
static void gate_cache_free(struct gate_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		free((char *)(uintptr_t)c->facts[i].text);
	free(c);
}

static struct gate_fact *place_of(struct gate_cache *c, const struct sha256 *key)
{
	for (size_t i = 0; i < c->count; i++)
		if (memcmp(&c->facts[i].key, key, sizeof *key) == 0)
			return &c->facts[i];
	return NULL;
}

/* NULL when it is not known, or no longer at `now`; valid until the cache is changed. */
static const struct gate_fact *gate_cache_find(struct gate_cache *c, const struct sha256 *key, millis now)
{
	const struct gate_fact *f = place_of(c, key);

	return f && f->until > now ? f : NULL;
}

static struct gate_fact *room(struct gate_cache *c)
{
	struct gate_fact *first = &c->facts[0];

	if (c->count < c->most)
		return &c->facts[c->count++];
	for (size_t i = 1; i < c->count; i++)
		if (c->facts[i].until < first->until)
			first = &c->facts[i];
	return first;
}

/* `text` is copied; what was known under the key is replaced. */
static void gate_cache_keep(struct gate_cache *c, const struct gate_fact *fact)
{
	struct gate_fact *f = place_of(c, &fact->key);
	char *text = fact->text ? strdup(fact->text) : NULL;

	if (fact->text && !text)
		abort();
	if (!f)
		f = room(c);
	free((char *)(uintptr_t)f->text);
	*f = *fact;
	f->text = text;
}

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

bool gate_is_local_host(const char *host)
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

bool gate_is_same_site(const struct gate_origin *o)
{
	if (o->origin && !is_of_host(o->origin, o->host))
		return false;
	return !o->fetch_site || strcmp(o->fetch_site, "same-origin") == 0 || strcmp(o->fetch_site, "none") == 0 ||
	       (o->fetch_mode && strcmp(o->fetch_mode, "navigate") == 0);
}

enum { QUESTIONS_MOST = 32 };

/* What is known of a token; `who` is valid until the caches change. */
static enum gate_finding gate_look_up_token(struct gate *g, const struct sha256 *key, const char **who)
{
	millis now = clock_mono(g->settings.clock);
	const struct gate_fact *f = gate_cache_find(g->known, key, now);

	if (f) {
		*who = f->text;
		return GATE_LETS;
	}
	return gate_cache_find(g->unknown, key, now) ? GATE_BARS : GATE_MUST_ASK;
}

static struct sha256 gate_access_key(const struct gate *g, const char *who, const struct gate_asker *asker)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	/* Neither of the first two holds a line break. */
	buf_printf(&text, "%s\n%s\n%s", asker->verb, asker->path, who);
	return sha256_keyed(g->secret, sizeof g->secret, text.text, text.len);
}

static enum gate_finding gate_look_up_access(struct gate *g, const struct sha256 *key)
{
	millis now = clock_mono(g->settings.clock);

	if (gate_cache_find(g->allowed, key, now))
		return GATE_LETS;
	return gate_cache_find(g->denied, key, now) ? GATE_BARS : GATE_MUST_ASK;
}

static void gate_learn(struct gate *g, const struct gate_question *q)
{
	const struct gate_review *r = &q->review;
	struct gate_cache *cache =
		r->is_access ? (r->is_allowed ? g->allowed : g->denied) : (r->is_allowed ? g->known : g->unknown);
	millis kept = !r->is_access ? GATE_TOKEN_KEPT : r->is_allowed ? GATE_ALLOW_KEPT : GATE_DENIAL_KEPT;

	gate_cache_keep(cache, &(struct gate_fact){ .key = q->key,
						    .until = clock_mono(g->settings.clock) + kept,
						    .text = r->is_access ? NULL : r->told_who });
}

static void gate_asker_free(struct gate_asker *a)
{
	free(a->path);
	free(a);
}

/* Why not, for people: 401 the token is not known, 403 the access is not allowed, 503 nobody can be asked. */
static void gate_refuse(int status, const struct gate_asker *asker, struct server_answer *a)
{
	char message[GATE_PATH_LONGEST + 256];

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
	refusal_write(a, status, message);
	a->headers[0] = status == 401	? "WWW-Authenticate: Bearer realm=\"preheat\""
			: status == 503 ? "Retry-After: 5"
					: NULL;
}

static void question_refuse(struct gate_asker *a, int status)
{
	struct server_answer answer = { .fd = -1 };

	gate_refuse(status, a, &answer);
	server_decide(a->wait, &answer);
	gate_asker_free(a);
}

static void let_in(struct gate_asker *a)
{
	server_decide(a->wait, NULL);
	gate_asker_free(a);
}

/* Who it is, is known. */
static void go_on(struct gate *g, struct gate_asker *a, const char *who)
{
	struct sha256 key = gate_access_key(g, who, a);

	switch (gate_look_up_access(g, &key)) {
	case GATE_LETS:
		let_in(a);
		return;
	case GATE_BARS:
		question_refuse(a, 403);
		return;
	case GATE_MUST_ASK:
		break;
	}
	struct gate_review r = { .is_access = true, .who = who, .verb = a->verb, .path = a->path };
	if (!gate_put(g, &key, &r, a))
		question_refuse(a, 503);
}

static void answer(struct gate *g, struct gate_asker *a, const struct gate_review *r)
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
static void tell(struct gate *g, const struct gate_review *r)
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

static void take_out(struct gate *g, struct gate_question *q)
{
	struct gate_question **at = &g->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	g->question_count--;
}

static void reviewed(struct gate_review *r)
{
	struct gate_question *q = r->user;
	struct gate *g = q->gate;

	if (g) {
		take_out(g, q);
		tell(g, r);
		if (r->error.kind == ERROR_NONE)
			gate_learn(g, q);
		for (struct gate_asker *a = q->askers, *next; a; a = next) {
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
static bool gate_put(struct gate *g, const struct sha256 *key, const struct gate_review *r, struct gate_asker *asker)
{
	struct gate_question *q = g->questions;

	while (q && (q->review.is_access != r->is_access || memcmp(&q->key, key, sizeof *key) != 0))
		q = q->next;
	if (!q) {
		if (g->question_count == QUESTIONS_MOST)
			return false;
		q = calloc(1, sizeof *q);
		if (!q)
			abort();
		q->gate = g;
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

static void forget_askers(struct gate_question *q)
{
	for (struct gate_asker *a = q->askers, *next; a; a = next) {
		next = a->next;
		gate_asker_free(a);
	}
	q->askers = NULL;
}

void gate_close(struct gate *g)
{
	if (!g)
		return;
	for (struct gate_question *q = g->questions; q; q = q->next) {
		q->gate = NULL;
		forget_askers(q);
	}
	gate_cache_free(g->known);
	gate_cache_free(g->unknown);
	gate_cache_free(g->allowed);
	gate_cache_free(g->denied);
	explicit_bzero(g, sizeof *g);
	free(g);
}
