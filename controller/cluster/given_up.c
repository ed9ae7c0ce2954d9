/* Pods that stay where they are although machines came for them, and for how long nothing more is bought for them. */
#include "base/alloc.h"
#include "base/fnv1a.h"
#include "controller/cluster/fit.h"
#include "controller/cluster/model_state.h"

#include <stdlib.h>

enum { DOUBLED_MOST = 4 };

/* --- those that stay although there is a place for them --- */

/* Its scheduler may have been away, and is there again: it has bound somebody since. */
static bool is_tried_again(const struct cluster *c, const struct pod *p, millis now)
{
	return now >= p->given_up_until || (p->was_silent && c->bound_at > p->offered_at);
}

static void follow(const struct cluster *c, struct pod *p, enum placing placing, millis now)
{
	bool is_unseen = placing == PLACING_NOT_YET && !p->is_looked_at;
	if (p->given_up_until != 0) {
		if (is_tried_again(c, p, now))
			p->given_up_until = p->offered_at = 0;
		return;
	}
	if (placing != PLACING_THERE)
		p->offered_at = 0;
	else if (p->offered_at == 0)
		p->offered_at = now;
	millis since = is_unseen ? p->created_at : p->offered_at;
	p->is_slow = since != 0 && now - since >= WAITING_IS_SLOW;
	if (is_unseen || p->offered_at == 0 || now - p->offered_at < WAITING_GIVES_UP)
		return;
	p->was_silent = c->bound_at <= p->offered_at;
	p->given_up_until = now + (WAITING_AGAIN << p->given_up_count);
	p->given_up_count += p->given_up_count < DOUBLED_MOST;
}

/* --- and those whom machines of a group did not help --- */

/* That of the group; else, to be taken for it, the one that ends first. */
static struct refusal *refusal_of(struct pod_refusals *r, uint64_t group)
{
	struct refusal *found = &r->items[0];
	for (size_t i = 0; i < REFUSALS_MOST; i++) {
		if (r->items[i].group == group)
			return &r->items[i];
		if (r->items[i].until < found->until)
			found = &r->items[i];
	}
	return found;
}

static uint64_t group_mark(const struct cluster *c, int group)
{
	return fnv1a_text(FNV1A_START, c->groups[group].name);
}

bool pod_is_refused_by(const struct cluster *c, const struct pod *p, int group)
{
	if (p->refusals == NULL)
		return false;
	const struct refusal *r = refusal_of(p->refusals, group_mark(c, group));
	return r->group == group_mark(c, group) && c->followed_at < r->until;
}

/* Room that was just made may not have been looked at: only what lasts is a refusal. */
static void note_refusal(struct refusal *r, bool is_refused, millis now)
{
	if (!is_refused || r->since == 0)
		r->since = is_refused ? now : 0;
	if (r->since == 0 || now - r->since < WAITING_IS_SLOW)
		return;
	if (now >= r->until)
		r->count += r->count <= DOUBLED_MOST;
	r->until = now + (WAITING_AGAIN << (r->count - 1));
}

static void note_refusals(const struct cluster *c, struct pod *p, const struct kind *k, millis now)
{
	for (size_t i = 0; i < k->group_count; i++) {
		bool is_refused = fit_was_refused(c, p, k->groups[i]);
		if (p->refusals == NULL && !is_refused)
			continue;
		if (p->refusals == NULL)
			p->refusals = xcalloc(1, sizeof *p->refusals);
		uint64_t group = group_mark(c, k->groups[i]);
		struct refusal *r = refusal_of(p->refusals, group);
		if (r->group != group && is_refused)
			*r = (struct refusal){ .group = group };
		if (r->group == group)
			note_refusal(r, is_refused, now);
	}
}

void cluster_follow_waiting(struct cluster *c, millis now)
{
	c->heeds_schedulers = true;
	c->followed_at = now;
	const struct placement *p = cluster_placement(c);
	for (size_t i = 0; i < p->count; i++) {
		struct pod *pod = (struct pod *)(uintptr_t)p->items[i].pod;
		follow(c, pod, p->items[i].placing, now);
		note_refusals(c, pod, p->items[i].kind, now);
	}
	c->generation++;
}
