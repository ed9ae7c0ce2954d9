/* What a cloud's reads show while they lag behind: the group as it was. */
#include "tests/world/cloud.h"

#include <stdlib.h>

enum { MOMENTS = 160 };

struct cloud_past {
	struct moment {
		millis at;
		struct cloud_group group; /* with machines of its own */
	} moments[MOMENTS];
	size_t count; /* since the beginning; the last are kept */
};

static void drop(struct moment *m)
{
	while (m->group.machines) {
		struct cloud_machine *next = m->group.machines->next;
		free(m->group.machines);
		m->group.machines = next;
	}
}

void cloud_forget_past(struct cloud_group *g)
{
	for (size_t i = 0; g->past && i < MOMENTS; i++)
		drop(&g->past->moments[i]);
	free(g->past);
	g->past = NULL;
}

static struct cloud_machine *copy(const struct cloud_machine *from)
{
	struct cloud_machine *first = NULL, **end = &first;

	for (; from; from = from->next, end = &(*end)->next) {
		*end = malloc(sizeof **end);
		if (!*end)
			abort();
		**end = *from;
		(*end)->next = NULL;
	}
	return first;
}

void cloud_note_past(struct cloud_group *g)
{
	if (!g->reads.lag) {
		cloud_forget_past(g);
		return;
	}
	if (!g->past && !(g->past = calloc(1, sizeof *g->past)))
		abort();
	struct moment *m = &g->past->moments[g->past->count++ % MOMENTS];
	drop(m);
	*m = (struct moment){ wire_now(), *g };
	m->group.machines = copy(g->machines);
}

/* The newest that is old enough, else the oldest. */
static const struct cloud_group *as_of(const struct cloud_past *p, millis at)
{
	size_t from = p->count > MOMENTS ? p->count - MOMENTS : 0, best = from;

	for (size_t i = from; i < p->count; i++)
		if (p->moments[i % MOMENTS].at <= at)
			best = i;
	return &p->moments[best % MOMENTS].group;
}

static const struct cloud_group *moment_shown(const struct cloud_group *g)
{
	millis lag = g->reads.lag;

	if (!lag || !g->past)
		return g;
	if (g->reads.is_any_order)
		lag = (millis)(random_next(wire_random()) % (uint64_t)lag);
	return as_of(g->past, wire_now() - lag);
}

const struct cloud_group *cloud_shown(struct cloud_group *g)
{
	const struct cloud_group *shown = moment_shown(g);

	if (g->read_at <= g->resized.at)
		g->resized.unwatched = wire_now() - g->read_at;
	g->read_at = wire_now();
	if (!g->resized.shown_at && shown->resized.at == g->resized.at)
		g->resized.shown_at = wire_now();
	return shown;
}
