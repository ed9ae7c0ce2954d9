#include "controller/loop/starts.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void copy_name(char *to, const char *from, size_t room)
{
	size_t len = strnlen(from, room - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

void starts_release(struct starts *s)
{
	free(s->items);
	free(s->events);
	*s = (struct starts){ 0 };
}

void starts_shift(struct starts *s, millis by)
{
	for (size_t i = 0; i < s->count; i++) {
		struct start *t = &s->items[i];
		t->asked_at += by;
		t->stage_since += by;
		t->bound_at += by;
	}
}

static enum stage first_stage(enum start_kind kind)
{
	if (kind == START_ROUSE)
		return STAGE_LOAD;
	return kind == START_PLACE || kind == START_RECLAIM ? STAGE_IMAGE : STAGE_PROVISION;
}

struct start *starts_ask(struct starts *s, const struct start *like, int64_t count)
{
	size_t first = s->count;

	for (int64_t i = 0; i < count; i++) {
		s->items = xgrow(s->items, s->count, &s->room, sizeof *s->items);
		struct start *added = &s->items[s->count++];
		*added = *like;
		added->stage = first_stage(like->kind);
		added->stage_since = like->asked_at;
	}
	return s->items ? &s->items[first] : NULL;
}

int64_t starts_bind_machine(struct starts *s, const struct start *like, enum start_kind kind, int64_t places)
{
	int64_t bound = 0;

	for (size_t i = 0; i < s->count && bound < places; i++) {
		struct start *t = &s->items[i];
		if (t->pool != like->pool || t->group != like->group || t->kind != kind || t->machine[0])
			continue;
		copy_name(t->machine, like->machine, sizeof t->machine);
		t->bound_at = like->bound_at;
		t->kind = like->kind;
		t->is_first = like->is_first;
		t->is_found |= like->is_found && like->asked_at <= t->asked_at;
		bound++;
	}
	return bound;
}

void starts_unbind_machine(struct starts *s, size_t index, millis now)
{
	struct start *t = &s->items[index];

	t->machine[0] = '\0';
	t->stage = first_stage(t->kind);
	t->stage_since = now;
	t->is_adopted = true; /* what it showed before was another machine's */
}

bool starts_know_machine(const struct starts *s, const char *machine)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->items[i].machine, machine))
			return true;
	return false;
}

static bool waits_for_pod(const struct start *t, size_t pool, int64_t group)
{
	return t->pool == pool && t->group == group && !t->pod[0] && !t->ends_at_device && t->kind != START_REFILL;
}

struct start *starts_bind_pod(struct starts *s, size_t pool, int64_t group, const char *machine, const char *uid)
{
	struct start *found = NULL;

	for (size_t i = 0; i < s->count; i++) {
		struct start *t = &s->items[i];
		if (!waits_for_pod(t, pool, group))
			continue;
		if (!strcmp(t->machine, machine)) {
			found = t;
			break;
		}
		if (!found && !t->machine[0] && first_stage(t->kind) == STAGE_IMAGE)
			found = t;
	}
	if (!found)
		return NULL;
	copy_name(found->pod, uid, sizeof found->pod);
	copy_name(found->machine, machine, sizeof found->machine);
	return found;
}

struct start *starts_of_pod(struct starts *s, const char *uid)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->items[i].pod, uid))
			return &s->items[i];
	return NULL;
}

void starts_add_event(struct starts *s, size_t pool, const struct event_input *event)
{
	s->events = xgrow(s->events, s->event_count, &s->event_room, sizeof *s->events);
	s->events[s->event_count++] = (struct start_event){ .pool = pool, .event = *event };
}

void starts_events_taken(struct starts *s)
{
	s->event_count = 0;
}

static void tell(struct starts *s, const struct start *t, enum event_kind what, int64_t value, millis at)
{
	struct event_input event = { .group = t->group,
				     .what = (int64_t)what,
				     .kind = (int64_t)t->kind,
				     .stage = (int64_t)(t->stage < STAGE_COUNT ? t->stage : STAGE_LOAD),
				     .value = value,
				     .count = 1,
				     .first = t->kind == START_WAKE && t->is_first };

	starts_add_event(s, t->pool, &event);
	if (s->heard)
		s->heard(s->user, t, &event, at);
}

/* Times of different clocks may overlap by the whole second that objects are stamped with. */
static millis not_before(millis at, millis least)
{
	return at > least ? at : least;
}

static void stage_ends(struct starts *s, struct start *t, millis at)
{
	at = not_before(at, t->stage_since);
	if (!t->is_adopted)
		tell(s, t, EVENT_STAGE, at - t->stage_since, at);
	t->is_adopted = false;
	t->stage++;
	t->stage_since = at;
}

void starts_drop(struct starts *s, size_t index)
{
	memmove(&s->items[index], &s->items[index + 1], (s->count - index - 1) * sizeof *s->items);
	s->count--;
}

static void serves(struct starts *s, size_t index, millis at)
{
	struct start *t = &s->items[index];

	tell(s, t, EVENT_SERVING, not_before(at, t->asked_at) - t->asked_at, not_before(at, t->asked_at));
	starts_drop(s, index);
}

static void follow_node(struct starts *s, struct start *t, const struct node_stages *n)
{
	const millis ends[STAGE_IMAGE] = {
		[STAGE_PROVISION] = n->registered, [STAGE_REGISTER] = n->ready, [STAGE_DEVICE] = n->device
	};

	while (t->stage < STAGE_IMAGE && ends[t->stage] > 0)
		stage_ends(s, t, ends[t->stage]);
}

void starts_follow_node(struct starts *s, const char *machine, const struct node_stages *n)
{
	for (size_t i = s->count; i-- > 0;) {
		struct start *t = &s->items[i];
		if (strcmp(t->machine, machine) != 0 || t->kind == START_REFILL)
			continue;
		follow_node(s, t, n);
		if (t->ends_at_device && t->stage >= STAGE_IMAGE)
			serves(s, i, t->stage_since);
	}
}

void starts_follow_pod(struct starts *s, const struct pod_stages *p)
{
	struct start *t = starts_of_pod(s, p->uid);

	if (!t)
		return;
	while (t->stage < STAGE_IMAGE && p->scheduled > 0)
		stage_ends(s, t, p->scheduled);
	if (t->stage == STAGE_IMAGE && p->started > 0)
		stage_ends(s, t, p->started);
	if (p->ready <= 0)
		return;
	if (t->stage == STAGE_LOAD)
		stage_ends(s, t, p->ready);
	serves(s, (size_t)(t - s->items), p->ready);
}

void starts_machine_stopped(struct starts *s, const char *machine, millis at)
{
	for (size_t i = s->count; i-- > 0;)
		if (s->items[i].kind == START_REFILL && !strcmp(s->items[i].machine, machine))
			serves(s, i, at);
}

void starts_refuse(struct starts *s, size_t index, enum error_kind why)
{
	tell(s, &s->items[index], why == ERROR_NONE ? EVENT_MISSED : EVENT_REFUSED, (int64_t)why, 0);
	starts_drop(s, index);
}

void starts_stuck(struct starts *s, size_t index, millis at)
{
	struct start *t = &s->items[index];

	tell(s, t, EVENT_STUCK, not_before(at, t->asked_at) - t->asked_at, not_before(at, t->asked_at));
	starts_drop(s, index);
}

size_t starts_youngest(const struct starts *s, size_t below, const struct start *like, millis found_before)
{
	for (size_t i = below; i-- > 0;) {
		const struct start *t = &s->items[i];
		if (t->pool == like->pool && t->group == like->group && t->kind == like->kind &&
		    (!t->is_found || t->asked_at <= found_before))
			return i;
	}
	return s->count;
}

static struct start_input shown(const struct start *t)
{
	return (struct start_input){ .group = t->group,
				     .kind = (int64_t)t->kind,
				     .asked_at = t->asked_at,
				     .stage = (int64_t)(t->stage < STAGE_COUNT ? t->stage : STAGE_LOAD),
				     .count = 1 };
}

static bool are_alike(const struct start_input *a, const struct start_input *b)
{
	return a->group == b->group && a->kind == b->kind && a->asked_at == b->asked_at && a->stage == b->stage;
}

/* By the time of asking, then as they came: what was adopted may be older than what was asked for. */
static void insert(struct start_input *rows, size_t *count, const struct start_input *row)
{
	size_t i = *count;

	while (i > 0 && rows[i - 1].asked_at > row->asked_at)
		i--;
	for (size_t same = i; same > 0 && rows[same - 1].asked_at == row->asked_at; same--)
		if (are_alike(&rows[same - 1], row)) {
			rows[same - 1].count++;
			return;
		}
	memmove(&rows[i + 1], &rows[i], (*count - i) * sizeof *rows);
	rows[i] = *row;
	(*count)++;
}

struct start_input *starts_show(const struct starts *s, size_t pool, bool without_fallen, struct arena *a,
				size_t *count)
{
	struct start_input *rows = arena_array(a, struct start_input, s->count);

	*count = 0;
	for (size_t i = 0; i < s->count; i++) {
		struct start_input row = shown(&s->items[i]);
		if (s->items[i].pool == pool && !(without_fallen && s->items[i].has_served))
			insert(rows, count, &row);
	}
	return rows;
}
