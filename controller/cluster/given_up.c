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

enum { DOUBLED_MOST = 4, KEPT_MOST = 200 };
/* Once a machine can come for it; a trial that takes longer lets others have theirs. */
static const millis TRIAL_MOST = HOUR, REFUSED_AGAIN = 10 * MINUTE;

/* --- one is tried for all that ask for the same --- */

/* Pods with claims of their own are each a kind of its own: what counts here is what they hold, and of gangs that they
 * are gangs. */
struct trial {
	int pool;
	const char *name_space;
	const struct resources *requests; /* NULL: gangs */
	const void *unit;		  /* the pod, or the gang, that is tried; NULL without */
	millis due;			  /* since when it is, the longest of those that might */
	uint32_t hash;
};

struct trials {
	struct store items;
	struct arena arena;
};

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

static struct trial trial_key(const struct cluster *c, const struct pod *p, const struct pod_shape *asked)
{
	return (struct trial){ .pool = p->pool,
			       .name_space = p->namespace,
			       .requests = gang_of(c, p).kind == GANG_NONE ? asked->requests : NULL };
}

static struct trial *trial_of(const struct cluster *c, struct trials *t, const struct pod *p)
{
	struct trial key = trial_key(c, p, p->shape);
	uintptr_t words[] = { (uintptr_t)key.pool, (uintptr_t)key.name_space, (uintptr_t)key.requests };
	key.hash = hash_bytes(0, words, sizeof words);
	struct trial *found = store_find(&t->items, key.hash, is_trial, &key);
	if (found == NULL) {
		found = arena_new(&t->arena, struct trial);
		*found = key;
		store_add(&t->items, found);
	}
	return found;
}

static const void *unit_of(const struct placed *w)
{
	return w->gang != NULL ? (const void *)w->gang : w->pod;
}

static bool is_on_trial(const struct pod *p)
{
	return p->given_up_count > 0 && p->given_up_until == 0;
}

/* Who is tried already stays so; else it is the turn of who waits longest for it. */
static void choose_units(const struct cluster *c, const struct placement *p, struct trials *t, millis now)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct placed *w = &p->items[i];
		bool is_due = w->pod->given_up_until != 0 && now >= w->pod->given_up_until;
		if (!is_on_trial(w->pod) && !is_due)
			continue;
		struct trial *of = trial_of(c, t, w->pod);
		if (of->unit == NULL || w->pod->given_up_until < of->due) {
			of->unit = unit_of(w);
			of->due = w->pod->given_up_until; /* on trial: 0, before all others */
		}
	}
}

static void try_again(struct pod *p, millis now)
{
	p->given_up_until = p->offered_at = 0;
	p->tried_at = now;
}

/* Its scheduler may have been away, and is there again: it has bound somebody since. */
static bool is_tried_again(const struct cluster *c, const struct placed *w, struct trials *t, millis now)
{
	const struct pod *p = w->pod;
	if (p->was_silent && c->bound_at > p->offered_at)
		return true;
	return now >= p->given_up_until && trial_of(c, t, p)->unit == unit_of(w);
}

static void follow(const struct cluster *c, const struct placed *w, struct trials *t, millis now)
{
	struct pod *p = (struct pod *)(uintptr_t)w->pod;
	bool is_unseen = w->placing == PLACING_NOT_YET && !p->is_looked_at;
	if (p->given_up_until != 0) {
		if (is_tried_again(c, w, t, now))
			try_again(p, now);
		return;
	}
	if (w->placing != PLACING_THERE)
		p->offered_at = 0;
	else if (p->offered_at == 0)
		p->offered_at = now;
	if (is_on_trial(p) && w->placing != PLACING_THERE && w->placing != PLACING_COMING &&
	    now - p->tried_at >= TRIAL_MOST)
		p->given_up_until = now; /* nothing came for it: its turn again after the others' */
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
	return r->group == group_mark(c, group) && (c->followed_at < r->until || r->is_others_turn);
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
	millis until = now + (WAITING_AGAIN << (r->count - 1));
	if (until - r->until >= REFUSED_AGAIN) /* each move of it is written down */
		r->until = until;
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

static bool has_refusals(const struct pod *p)
{
	for (size_t i = 0; p->refusals != NULL && i < REFUSALS_MOST; i++)
		if (p->refusals->items[i].count > 0)
			return true;
	return false;
}

/* --- what one of them learned, all that ask for the same know --- */

struct alike {
	uint64_t asks;
	struct pod_refusals known;
	const void *tried[REFUSALS_MOST]; /* the pod, or the gang, whose turn it is; NULL: nobody's yet */
	uint32_t hash;
};

static bool is_alike(const void *item, const void *key)
{
	return ((const struct alike *)item)->asks == *(const uint64_t *)key;
}

static uint64_t asks_of(const struct cluster *c, const struct pod *p)
{
	uint64_t mark = device_claims_mark(c, p);

	mark = fnv1a_bytes(mark, &p->namespace, sizeof p->namespace);
	mark = fnv1a_bytes(mark, &p->pool, sizeof p->pool);
	return p->is_placeholder ? ~mark : mark;
}

static struct alike *alike_of(const struct store *alikes, uint64_t asks)
{
	return store_find(alikes, hash_bytes(0, &asks, sizeof asks), is_alike, &asks);
}

static void learn(struct pod_refusals *known, const struct refusal *told)
{
	struct refusal *r = refusal_of(known, told->group);
	if (told->count == 0 || (r->group != told->group && told->until < r->until))
		return;
	if (r->group != told->group)
		*r = (struct refusal){ .group = told->group };
	r->until = told->until > r->until ? told->until : r->until;
	r->count = told->count > r->count ? told->count : r->count;
}

static void learn_from(const struct cluster *c, const struct pod *p, struct store *alikes, struct arena *a)
{
	uint64_t asks = asks_of(c, p);
	struct alike *of = alike_of(alikes, asks);
	if (of == NULL) {
		of = arena_new(a, struct alike);
		*of = (struct alike){ .asks = asks, .hash = hash_bytes(0, &asks, sizeof asks) };
		store_add(alikes, of);
	}
	for (size_t i = 0; i < REFUSALS_MOST; i++)
		learn(&of->known, &p->refusals->items[i]);
}

/* Whose turn it is has to be one that a machine of the group may be bought for. */
static bool may_be_tried(const struct cluster *c, const struct placed *w, uint64_t group)
{
	bool has_place = w->placing == PLACING_THERE ||
			 (w->placing == PLACING_COMING && w->group >= 0 && group_mark(c, w->group) != group);
	return w->pod->trouble == POD_UNSCHEDULABLE && w->pod->given_up_until == 0 &&
	       w->placing != PLACING_INCOMPLETE && !has_place;
}

/* In the order of the scheduler. */
static void teach(const struct cluster *c, const struct placed *w, struct alike *of, millis now)
{
	struct pod *p = (struct pod *)(uintptr_t)w->pod;
	if (p->refusals == NULL)
		p->refusals = xcalloc(1, sizeof *p->refusals);
	p->refusals->asks = of->asks;
	for (size_t i = 0; i < REFUSALS_MOST; i++) {
		const struct refusal *known = &of->known.items[i];
		struct refusal *own = refusal_of(p->refusals, known->group);
		bool is_learning = own->since != 0 && own->count == 0; /* of another: it is told only once it knows */
		if (known->group == 0 || (own->group != known->group && is_learning))
			continue;
		if (own->group != known->group)
			*own = (struct refusal){ .group = known->group };
		own->until = known->until;
		own->count = known->count;
		if (now >= own->until && of->tried[i] == NULL && may_be_tried(c, w, known->group))
			of->tried[i] = unit_of(w);
		own->is_others_turn = now >= own->until && of->tried[i] != unit_of(w);
	}
}

static void share_refusals(const struct cluster *c, const struct placement *p, millis now)
{
	struct store alikes = { .hash_offset = offsetof(struct alike, hash) };
	CLEANUP(arena_release) struct arena a = { 0 };
	for (size_t i = 0; i < p->count; i++)
		if (has_refusals(p->items[i].pod))
			learn_from(c, p->items[i].pod, &alikes, &a);
	for (size_t i = 0; alikes.count > 0 && i < p->count; i++) {
		struct alike *of = alike_of(&alikes, asks_of(c, p->items[i].pod));
		if (of != NULL)
			teach(c, &p->items[i], of, now);
	}
	store_release(&alikes);
}

/* A machine of the group helped it: it may help all that ask for the same. */
static void forget_refusal(struct cluster *c, const struct pod *helped)
{
	uint64_t asks = helped->refusals == NULL ? 0 : helped->refusals->asks;
	if (asks == 0 || helped->node->group < 0)
		return;
	uint64_t group = group_mark(c, helped->node->group);
	for (struct pod *p = c->waiting; p != NULL; p = p->next) {
		struct refusal *r = p->refusals == NULL ? NULL : refusal_of(p->refusals, group);
		if (r != NULL && p->refusals->asks == asks && r->group == group)
			*r = (struct refusal){ 0 };
	}
}

void given_up_one_helped(struct cluster *c, const struct pod *helped, const struct pod_shape *asked, millis now)
{
	const struct trial key = trial_key(c, helped, asked);
	for (struct pod *p = is_on_trial(helped) ? c->waiting : NULL; p != NULL; p = p->next) {
		const struct trial own = trial_key(c, p, p->shape);
		if (p->given_up_until != 0 && now >= p->given_up_until && is_trial(&own, &key))
			try_again(p, now);
	}
	forget_refusal(c, helped);
}

void cluster_follow_waiting(struct cluster *c, millis now)
{
	c->heeds_schedulers = true;
	c->followed_at = now;
	template_follow(c);
	const struct placement *p = cluster_placement(c);
	struct trials trials = { .items = { .hash_offset = offsetof(struct trial, hash) } };
	choose_units(c, p, &trials, now);
	for (size_t i = 0; i < p->count; i++) {
		follow(c, &p->items[i], &trials, now);
		note_refusals(c, (struct pod *)(uintptr_t)p->items[i].pod, p->items[i].kind, now);
	}
	share_refusals(c, p, now);
	trials_release(&trials);
	c->generation++;
}

/* --- what a later life has to know of them --- */

/* UID UNTIL TRIED OFFERED COUNT SILENT, and GROUP UNTIL COUNT of each refusal. */
static void put_line(struct buf *out, const struct pod *p)
{
	char uid[37];
	pod_uid_text(p, uid);
	buf_printf(out, "%s %" PRId64 " %" PRId64 " %" PRId64 " %d %d", uid, p->given_up_until, p->tried_at,
		   p->given_up_count > 0 ? p->offered_at : 0, p->given_up_count, p->was_silent);
	for (size_t i = 0; p->refusals != NULL && i < REFUSALS_MOST; i++) {
		const struct refusal *r = &p->refusals->items[i];
		if (r->count > 0)
			buf_printf(out, " %" PRIu64 " %" PRId64 " %d", r->group, r->until, r->count);
	}
	buf_text(out, "\n");
}

/* Those on trial come last: whom they help is known by then. */
const char *cluster_given_up(const struct cluster *c, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	const struct placement *p = cluster_placement(c);
	for (int on_trial = 0; on_trial < 2; on_trial++) {
		size_t kept = 0;
		for (size_t i = 0; i < p->count && kept < KEPT_MOST; i++) {
			const struct pod *pod = p->items[i].pod;
			if (is_on_trial(pod) != on_trial || (pod->given_up_count == 0 && !has_refusals(pod)))
				continue;
			put_line(&out, pod);
			kept++;
		}
	}
	return out.len == 0 ? "" : arena_strdup(a, out.text, out.len);
}

/* A clock that was ahead binds nobody for longer than this one would. */
static millis until_of(millis told, int64_t doubled, millis now)
{
	millis most = now + (WAITING_AGAIN << doubled);
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

static void recall_refusals(const struct cluster *c, struct pod *p, char *line, millis now)
{
	uint64_t group;
	int64_t until, count;
	for (size_t i = 0; i < REFUSALS_MOST && take_group(&line, &group); i++) {
		if (!take_number(&line, 0, INT64_MAX, &until) || !take_number(&line, 1, DOUBLED_MOST + 1, &count))
			return;
		if (p->refusals == NULL)
			p->refusals = xcalloc(1, sizeof *p->refusals);
		p->refusals->asks = asks_of(c, p);
		p->refusals->items[i] = (struct refusal){ .group = group,
							  .until = until_of(until, count - 1, now),
							  .count = (int)count };
	}
}

/* One that got its node while nobody led helps those before it. */
static void recall_line(struct cluster *c, char *line, millis now)
{
	int64_t until, tried_at, offered_at, count, was_silent;
	struct pod *p = pod_find(c, object_uid_of(strsep(&line, " ")));
	if (p == NULL || !take_number(&line, 0, INT64_MAX, &until) || !take_number(&line, 0, INT64_MAX, &tried_at) ||
	    !take_number(&line, 0, INT64_MAX, &offered_at) || !take_number(&line, 0, DOUBLED_MOST, &count) ||
	    !take_number(&line, 0, 1, &was_silent))
		return;
	p->given_up_count = (int)count;
	p->given_up_until = count > 0 ? until_of(until, count < DOUBLED_MOST ? count - 1 : count, now) : 0;
	p->tried_at = tried_at < now ? tried_at : now;
	p->offered_at = offered_at <= now && now - offered_at < WAITING_GIVES_UP ? offered_at : 0;
	p->was_silent = was_silent != 0;
	recall_refusals(c, p, line, now);
	if (p->node != NULL)
		given_up_one_helped(c, p, p->shape, now);
}

static void forget(struct pod *p)
{
	p->given_up_until = p->tried_at = p->offered_at = 0;
	p->given_up_count = 0;
	p->is_slow = p->was_silent = false;
	free(p->refusals);
	p->refusals = NULL;
}

void cluster_recall_given_up(struct cluster *c, char *text, millis now)
{
	for (struct pod *p = c->waiting; p != NULL; p = p->next)
		forget(p);
	for (char *line; (line = strsep(&text, "\n")) != NULL;)
		recall_line(c, line, now);
	c->generation++;
}
