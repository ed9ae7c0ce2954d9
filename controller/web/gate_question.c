#include "controller/web/gate_parts.h"

#include "base/arena.h"
#include "base/log.h"
#include "controller/web/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUESTIONS_MOST = 32 };

enum gate_finding gate_look_up_token(struct gate *g, const struct sha256 *key, const char **who)
{
	millis now = clock_mono(g->settings.clock);
	const struct gate_fact *f = gate_cache_find(g->known, key, now);

	if (f) {
		*who = f->text;
		return GATE_LETS;
	}
	return gate_cache_find(g->unknown, key, now) ? GATE_BARS : GATE_MUST_ASK;
}

struct sha256 gate_access_key(const struct gate *g, const char *who, const struct gate_asker *asker)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	/* Neither of the first two holds a line break. */
	buf_printf(&text, "%s\n%s\n%s", asker->verb, asker->path, who);
	return sha256_keyed(g->secret, sizeof g->secret, text.text, text.len);
}

enum gate_finding gate_look_up_access(struct gate *g, const struct sha256 *key)
{
	millis now = clock_mono(g->settings.clock);

	if (gate_cache_find(g->allowed, key, now))
		return GATE_LETS;
	return gate_cache_find(g->denied, key, now) ? GATE_BARS : GATE_MUST_ASK;
}

void gate_learn(struct gate *g, const struct gate_question *q)
{
	const struct gate_review *r = &q->review;
	struct gate_cache *cache =
		r->is_access ? (r->is_allowed ? g->allowed : g->denied) : (r->is_allowed ? g->known : g->unknown);
	millis kept = !r->is_access ? GATE_TOKEN_KEPT : r->is_allowed ? GATE_ALLOW_KEPT : GATE_DENIAL_KEPT;

	gate_cache_keep(cache, &(struct gate_fact){ .key = q->key,
						    .until = clock_mono(g->settings.clock) + kept,
						    .text = r->is_access ? NULL : r->told_who });
}

void gate_asker_free(struct gate_asker *a)
{
	free(a->path);
	free(a);
}

void gate_refuse(int status, const struct gate_asker *asker, struct server_answer *a)
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

static void refuse(struct gate_asker *a, int status)
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
		refuse(a, 403);
		return;
	case GATE_MUST_ASK:
		break;
	}
	struct gate_review r = { .is_access = true, .who = who, .verb = a->verb, .path = a->path };
	if (!gate_put(g, &key, &r, a))
		refuse(a, 503);
}

static void answer(struct gate *g, struct gate_asker *a, const struct gate_review *r)
{
	if (r->error.kind != ERROR_NONE)
		refuse(a, 503);
	else if (!r->is_allowed)
		refuse(a, r->is_access ? 403 : 401);
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

bool gate_put(struct gate *g, const struct sha256 *key, const struct gate_review *r, struct gate_asker *asker)
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
