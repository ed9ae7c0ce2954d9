#include "providers/eks_together.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static const millis TOLD_LASTS = 3 * SECOND, LATELY = 3 * MINUTE;
enum { GROUPS_MOST = 256 };

struct known {
	char *place, *name; /* region and endpoint; Auto Scaling group */
	millis seen_at;	    /* it asked for itself, or was served, last */
	bool is_told;	    /* in the answer that is kept, and not served by it yet */
};

struct eks_together {
	struct known groups[GROUPS_MOST];
	size_t count;
	struct buf text;
	struct eks_told told;
	char *place; /* of the answer; NULL: none is kept */
	millis told_at;
	uint64_t era;
};

struct eks_together *eks_together_open(void)
{
	struct eks_together *t = xcalloc(1, sizeof *t);

	return t;
}

void eks_together_close(struct eks_together *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++) {
		free(t->groups[i].place);
		free(t->groups[i].name);
	}
	buf_release(&t->text);
	free(t->place);
	free(t);
}

static char *place_of(const struct eks_settings *s)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s %s", s->region ? s->region : "", s->endpoint ? s->endpoint : "");
	return text.text;
}

static struct known *find(struct eks_together *t, const char *place, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->groups[i].name, name) && !strcmp(t->groups[i].place, place))
			return &t->groups[i];
	return NULL;
}

static struct known *note(struct eks_together *t, const char *place, const char *name, millis now)
{
	struct known *k = find(t, place, name);

	if (!k && t->count < GROUPS_MOST) {
		k = &t->groups[t->count++];
		*k = (struct known){ .place = xstrdup(place), .name = xstrdup(name) };
	}
	if (k)
		k->seen_at = now;
	return k;
}

size_t eks_together_names(struct eks_together *t, const struct eks_settings *s, const char *group, millis now,
			  const char *names[EKS_TOGETHER])
{
	char *place = place_of(s);
	const struct known *self = find(t, place, group);
	size_t first = self ? (size_t)(self - t->groups) : 0, count = 0;

	names[count++] = group;
	for (size_t i = 0; self && i < t->count && count < EKS_TOGETHER; i++) {
		const struct known *k = &t->groups[(first + i) % t->count];
		if (k != self && now - k->seen_at < LATELY && !strcmp(k->place, place))
			names[count++] = k->name;
	}
	free(place);
	return count;
}

uint64_t eks_together_era(const struct eks_together *t)
{
	return t->era;
}

/* Known is only who was found, so that a name that AWS refuses holds up nobody else. */
void eks_together_keep(struct eks_together *t, const struct eks_settings *s, const char *group, millis now,
		       const struct eks_told *told)
{
	const char *names[EKS_TOGETHER];
	size_t count = eks_together_names(t, s, group, now, names);
	char *place = place_of(s);

	for (size_t i = 0; i < t->count; i++)
		t->groups[i].is_told = false;
	for (size_t i = 1; i < count; i++)
		find(t, place, names[i])->is_told = true;
	note(t, place, group, now);
	buf_clear(&t->text);
	buf_append(&t->text, told->text, told->len);
	free(t->place);
	t->place = place;
	t->told_at = now;
	t->told = *told;
	t->told.text = t->text.text;
}

const struct eks_told *eks_together_take(struct eks_together *t, const struct eks_settings *s, const char *group,
					 millis now)
{
	char *place = place_of(s);
	struct known *k = find(t, place, group);
	bool is_there = k && k->is_told && t->place && !strcmp(t->place, place) && t->told.era == t->era &&
			now - t->told_at <= TOLD_LASTS;

	free(place);
	if (!is_there)
		return NULL;
	k->is_told = false;
	k->seen_at = now;
	return &t->told;
}

void eks_together_changed(struct eks_together *t)
{
	t->era++;
}
