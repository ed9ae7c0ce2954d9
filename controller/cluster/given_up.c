/* Pods that stay where they are although machines came for them, and for how long nothing more is bought for them. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fnv1a.h"
#include "controller/cluster/fit.h"
#include "controller/cluster/model_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLED_MOST = 4, KEPT_MOST = 500 };

/* --- one is tried for all that ask for the same --- */

/* Pods with claims of their own are each a kind of its own: what counts here is what they hold. */
struct trial {
	int pool;
	const char *name_space;
	const struct resources *requests; /* NULL: gangs */
	const void *unit;		  /* the pod, or the gang, that is tried; NULL without */
	uint32_t hash;
};

struct trials {
	struct store items;
	struct arena arena;
};

static struct trials trials_new(void)
{
	return (struct trials){ .items = { .hash_offset = offsetof(struct trial, hash) } };
}

static void trials_release(struct trials *t)
{
	store_release(&t->items);
	arena_release(&t->arena);
}

static bool is_trial(const void *item, const void *key)
{
	const struct trial *a = item, *b = key;
	return a->pool == b->pool && a->name_space == b->name_space && a->requests == b->requests;
}

static const void **tried_unit(struct trials *t, const struct placed *w)
{
	struct trial key = { .pool = w->pod->pool,
			     .name_space = w->pod->namespace,
			     .requests = w->gang != NULL ? NULL : w->pod->shape->requests };
	uintptr_t words[] = { (uintptr_t)key.pool, (uintptr_t)key.name_space, (uintptr_t)key.requests };
	key.hash = hash_bytes(0, words, sizeof words);
	struct trial *found = store_find(&t->items, key.hash, is_trial, &key);
	if (found == NULL) {
		found = arena_new(&t->arena, struct trial);
		*found = key;
		store_add(&t->items, found);
	}
	return &found->unit;
}

static const void *unit_of(const struct placed *w)
{
	return w->gang != NULL ? (const void *)w->gang : w->pod;
}

/* Is tried again, and may hold a machine. */
static bool is_under_way(const struct placed *w)
{
	bool has_place = w->placing == PLACING_THERE || w->placing == PLACING_COMING || w->placing == PLACING_NEW;
	return w->pod->given_up_count > 0 && w->pod->given_up_until == 0 && has_place;
}

/* Its scheduler may have been away, and is there again: it has bound somebody since. */
static bool is_tried_again(const struct cluster *c, const struct placed *w, struct trials *t, millis now)
{
	const struct pod *p = w->pod;
	if (p->was_silent && c->bound_at > p->offered_at)
		return true;
	if (now < p->given_up_until)
		return false;
	const void **unit = tried_unit(t, w);
	if (*unit == NULL)
		*unit = unit_of(w);
	return *unit == unit_of(w);
}

static void follow(const struct cluster *c, const struct placed *w, struct trials *t, millis now)
{
	struct pod *p = (struct pod *)(uintptr_t)w->pod;
	bool is_unseen = w->placing == PLACING_NOT_YET && !p->is_looked_at;
	if (p->given_up_until != 0) {
		if (is_tried_again(c, w, t, now))
			p->given_up_until = p->offered_at = 0;
		return;
	}
	if (w->placing != PLACING_THERE)
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

void given_up_one_helped(struct cluster *c, const struct pod *helped, const struct pod_shape *asked)
{
	for (struct pod *p = helped->given_up_count > 0 ? c->waiting : NULL; p != NULL; p = p->next)
		if (p->given_up_count > 0 && p->pool == helped->pool && p->namespace == helped->namespace &&
		    p->shape->requests == asked->requests) {
			p->given_up_until = p->offered_at = 0;
			p->given_up_count = 0;
		}
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
	struct trials trials = trials_new();
	for (size_t i = 0; i < p->count; i++)
		if (is_under_way(&p->items[i]))
			*tried_unit(&trials, &p->items[i]) = unit_of(&p->items[i]);
	for (size_t i = 0; i < p->count; i++) {
		follow(c, &p->items[i], &trials, now);
		note_refusals(c, (struct pod *)(uintptr_t)p->items[i].pod, p->items[i].kind, now);
	}
	trials_release(&trials);
	c->generation++;
}

/* --- what a later life has to know of them --- */

static bool has_refusals(const struct pod *p)
{
	for (size_t i = 0; p->refusals != NULL && i < REFUSALS_MOST; i++)
		if (p->refusals->items[i].count > 0)
			return true;
	return false;
}

/* UID UNTIL OFFERED COUNT SILENT, and GROUP UNTIL COUNT of each refusal. */
static void put_line(struct buf *out, const struct pod *p)
{
	char uid[37];
	pod_uid_text(p, uid);
	buf_printf(out, "%s %" PRId64 " %" PRId64 " %d %d", uid, p->given_up_until,
		   p->given_up_count > 0 ? p->offered_at : 0, p->given_up_count, p->was_silent);
	for (size_t i = 0; p->refusals != NULL && i < REFUSALS_MOST; i++) {
		const struct refusal *r = &p->refusals->items[i];
		if (r->count > 0)
			buf_printf(out, " %" PRIu64 " %" PRId64 " %d", r->group, r->until, r->count);
	}
	buf_text(out, "\n");
}

const char *cluster_given_up(const struct cluster *c, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	const struct placement *p = cluster_placement(c);
	size_t kept = 0;
	for (size_t i = 0; i < p->count && kept < KEPT_MOST; i++) {
		const struct pod *pod = p->items[i].pod;
		if (pod->given_up_count == 0 && !has_refusals(pod))
			continue;
		put_line(&out, pod);
		kept++;
	}
	return out.len == 0 ? "" : arena_strdup(a, out.text, out.len);
}

/* A clock that was ahead binds nobody for longer than this one would. */
static millis until_of(millis told, int count, millis now)
{
	millis most = now + (WAITING_AGAIN << count);
	return told < most ? told : most;
}

static bool take_number(char **line, int64_t least, int64_t most, int64_t *out)
{
	const char *word = strsep(line, " ");
	char *end = NULL;
	if (word == NULL)
		return false;
	errno = 0;
	*out = strtoll(word, &end, 10);
	return end != word && *end == '\0' && errno == 0 && *out >= least && *out <= most;
}

static bool take_group(char **line, uint64_t *out)
{
	const char *word = strsep(line, " ");
	*out = word == NULL ? 0 : strtoull(word, NULL, 10);
	return *out != 0;
}

static void recall_refusals(struct pod *p, char *line, millis now)
{
	uint64_t group;
	int64_t until, count;
	for (size_t i = 0; i < REFUSALS_MOST && take_group(&line, &group); i++) {
		if (!take_number(&line, 0, INT64_MAX, &until) || !take_number(&line, 1, DOUBLED_MOST + 1, &count))
			return;
		if (p->refusals == NULL)
			p->refusals = xcalloc(1, sizeof *p->refusals);
		p->refusals->items[i] = (struct refusal){ .group = group,
							  .until = until_of(until, (int)count - 1, now),
							  .count = (int)count };
	}
}

static void recall_line(struct cluster *c, char *line, millis now)
{
	int64_t until, offered_at, count, was_silent;
	struct pod *p = pod_find(c, object_uid_of(strsep(&line, " ")));
	if (p == NULL || !take_number(&line, 0, INT64_MAX, &until) || !take_number(&line, 0, INT64_MAX, &offered_at) ||
	    !take_number(&line, 0, DOUBLED_MOST, &count) || !take_number(&line, 0, 1, &was_silent))
		return;
	p->given_up_count = (int)count;
	p->given_up_until = until_of(until, (int)count, now);
	p->offered_at = offered_at < now ? offered_at : now;
	p->was_silent = was_silent != 0;
	recall_refusals(p, line, now);
}

void cluster_recall_given_up(struct cluster *c, char *text, millis now)
{
	for (char *line; (line = strsep(&text, "\n")) != NULL;)
		recall_line(c, line, now);
	c->generation++;
}
