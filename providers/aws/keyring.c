#include "providers/aws/keyring_parts.h"

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const millis EARLY = 5 * MINUTE, EARLY_JITTER = MINUTE;
static const millis FIRST_PAUSE = SECOND, LONGEST_PAUSE = MINUTE;
/* Signatures are refused from five minutes on. */
static const millis SKEW_MOST = 4 * MINUTE;

static void serve(struct timer *t);

struct aws_keyring *aws_keyring_open(struct loop *loop, struct http *http, const struct aws_environment *env,
				     const struct http_tls *tls)
{
	struct aws_keyring *k = calloc(1, sizeof *k);
	struct clock now = clock_open();

	if (!k)
		abort();
	k->loop = loop;
	k->http = http;
	k->env = env;
	k->tls = tls;
	k->serve.user = k;
	k->retry = retry_make(FIRST_PAUSE, LONGEST_PAUSE, random_stream((uint64_t)clock_now(&now), "aws-credentials"));
	return k;
}

/* Nothing of a key stays in memory that is given back. */
static void wipe(struct arena *a, struct aws_grant *g)
{
	const char *const texts[] = { g->credentials.secret_access_key, g->credentials.session_token };

	for (size_t i = 0; i < 2; i++)
		if (texts[i])
			explicit_bzero((void *)(uintptr_t)texts[i], strlen(texts[i]));
	arena_release(a);
	*g = (struct aws_grant){ 0 };
}

void aws_keyring_close(struct aws_keyring *k)
{
	if (!k)
		return;
	assert(!k->waiting && !k->is_fetching);
	timer_stop(&k->serve);
	wipe(&k->held, &k->grant);
	arena_release(&k->fetched);
	buf_release(&k->url);
	buf_release(&k->body);
	buf_release(&k->line);
	free(k);
}

millis aws_keyring_now(const struct aws_keyring *k)
{
	struct clock now = clock_open();

	return clock_now(&now) + k->clock_offset;
}

bool aws_keyring_set_clock(struct aws_keyring *k, const char *date)
{
	const millis reach = 12 * HOUR;
	millis ahead = retry_after(date, aws_keyring_now(k) - reach);

	if (ahead <= 0 || ahead >= 2 * reach)
		return false;
	ahead -= reach;
	if (ahead > -SKEW_MOST && ahead < SKEW_MOST)
		return false;
	k->clock_offset += ahead;
	return true;
}

static void end(struct aws_wait *w, const struct aws_keyring *k, const struct error *e)
{
	if (w->is_cancelled)
		error_set(&w->error, ERROR_CANCELLED, "cancelled");
	else if (e)
		w->error = *e;
	else
		w->credentials = &k->grant.credentials;
	w->granted(w); /* may ask again, and may free it */
}

static void end_all(struct aws_keyring *k, const struct error *e)
{
	struct aws_wait *w = k->waiting;

	k->waiting = NULL;
	while (w) {
		struct aws_wait *next = w->next;
		end(w, k, e);
		w = next;
	}
}

static void end_cancelled(struct aws_keyring *k)
{
	struct aws_wait *all = k->waiting, **kept = &k->waiting;

	k->waiting = NULL;
	while (all) {
		struct aws_wait *w = all;
		all = w->next;
		w->next = NULL;
		if (w->is_cancelled) {
			end(w, k, NULL);
			while (*kept) /* what it asked anew stands there */
				kept = &(*kept)->next;
		} else {
			*kept = w;
			kept = &w->next;
		}
	}
}

static bool all_cancelled(const struct aws_keyring *k)
{
	for (const struct aws_wait *w = k->waiting; w; w = w->next)
		if (!w->is_cancelled)
			return false;
	return true;
}

/* Credentials that still hold, even if it is time to fetch others. */
static bool still_holds(const struct aws_keyring *k)
{
	return k->has_grant && (!k->grant.expires_at || k->grant.expires_at > aws_keyring_now(k));
}

static void serve(struct timer *t)
{
	struct aws_keyring *k = t->user;

	if (k->is_fetching) { /* goes on for the others */
		if (!all_cancelled(k))
			end_cancelled(k);
		return;
	}
	end_cancelled(k);
	if (!k->waiting || k->is_fetching)
		return;
	if (k->has_grant && (!k->refresh_at || aws_keyring_now(k) < k->refresh_at)) {
		end_all(k, NULL);
	} else if (k->failure.kind != ERROR_NONE && loop_now(k->loop) < k->failed_until) {
		end_all(k, still_holds(k) ? NULL : &k->failure);
	} else {
		k->is_fetching = true;
		arena_release(&k->fetched);
		aws_fetch_start(k, k->waiting->region);
	}
}

void aws_fetch_done(struct aws_keyring *k, const struct aws_grant *grant, const struct error *e)
{
	k->is_fetching = false;
	if (grant) {
		wipe(&k->held, &k->grant);
		k->held = k->fetched;
		k->fetched = (struct arena){ 0 };
		k->grant = *grant;
		k->has_grant = true;
		k->refresh_at = 0;
		if (grant->expires_at) {
			millis jitter = (millis)(random_next(&k->retry.random) % (uint64_t)EARLY_JITTER);
			k->refresh_at = grant->expires_at - EARLY - jitter;
		}
		k->failure.kind = ERROR_NONE;
		retry_reset(&k->retry);
		end_all(k, NULL);
	} else if (e->kind == ERROR_CANCELLED) {
		timer_start(k->loop, &k->serve, 0, serve); /* somebody else may have come meanwhile */
	} else {
		k->failure = *e;
		k->failed_until = loop_now(k->loop) + retry_next(&k->retry, 0);
		end_all(k, still_holds(k) ? NULL : &k->failure);
	}
}

void aws_keyring_ask(struct aws_keyring *k, const char *region, struct aws_wait *w)
{
	struct aws_wait **at = &k->waiting;

	while (*at)
		at = &(*at)->next;
	*at = w;
	w->next = NULL;
	w->is_cancelled = false;
	w->region = region;
	w->credentials = NULL;
	w->error = (struct error){ 0 };
	timer_start(k->loop, &k->serve, 0, serve);
}

void aws_keyring_cancel(struct aws_keyring *k, struct aws_wait *w)
{
	w->is_cancelled = true;
	if (k->is_fetching && all_cancelled(k))
		http_cancel(&k->request);
	else
		timer_start(k->loop, &k->serve, 0, serve);
}

void aws_keyring_refused(struct aws_keyring *k, const char *access_key_id)
{
	if (!k->has_grant || strcmp(k->grant.credentials.access_key_id, access_key_id) != 0)
		return; /* fetched anew meanwhile */
	k->has_grant = false;
	k->failure.kind = ERROR_NONE;
}
