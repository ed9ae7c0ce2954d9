#include "providers/kubernetes/exchange.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *items, size_t count, size_t size)
{
	items = realloc(items, (count + 1) * size);
	if (!items)
		abort();
	return items;
}

static char *copy(const char *text)
{
	char *copied = strdup(text);

	if (!copied)
		abort();
	return copied;
}

struct recommendation *wish_of(struct provider *p, const char *group)
{
	for (size_t i = 0; i < p->wish_count; i++)
		if (!strcmp(p->wishes[i].group, group))
			return &p->wishes[i];
	p->wishes = grown(p->wishes, p->wish_count, sizeof *p->wishes);
	p->wishes[p->wish_count] = (struct recommendation){ .group = copy(group) };
	return &p->wishes[p->wish_count++];
}

static bool is_leaving(const struct recommendation *w, const char *id)
{
	for (size_t i = 0; i < w->leaving_count; i++)
		if (!strcmp(w->leaving[i], id))
			return true;
	return false;
}

void wish_change(struct recommendation *w, const struct provider_call *c)
{
	if (c->verb == PROVIDER_GROW) {
		w->size = c->desired > w->size ? c->desired : w->size;
		return;
	}
	if (c->verb == PROVIDER_CANCEL) {
		w->size = c->desired;
		return;
	}
	for (size_t i = 0; i < c->id_count; i++) {
		if (is_leaving(w, c->ids[i]))
			continue;
		w->leaving = grown(w->leaving, w->leaving_count, sizeof *w->leaving);
		w->leaving[w->leaving_count++] = copy(c->ids[i]);
		w->size -= w->size > 0;
	}
}

static bool is_listed(const struct machine_list *list, const char *id)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->machines[i].id, id))
			return true;
	return false;
}

int64_t wish_settle(struct recommendation *w, struct machine_list *list)
{
	size_t kept = 0;
	int64_t there = 0;

	for (size_t i = 0; i < w->leaving_count; i++)
		if (is_listed(list, w->leaving[i]))
			w->leaving[kept++] = w->leaving[i];
		else
			free(w->leaving[i]);
	w->leaving_count = kept;
	for (size_t i = 0; i < list->count; i++) {
		struct machine *m = &list->machines[i];
		if (is_leaving(w, m->id))
			m->state = MACHINE_TERMINATING;
		there += m->state != MACHINE_TERMINATING;
	}
	if (there >= w->size)
		w->size = 0; /* they came; fewer later is the other autoscaler's doing */
	return there > w->size ? there : w->size;
}

void wishes_free(struct provider *p)
{
	for (size_t i = 0; i < p->wish_count; i++) {
		for (size_t k = 0; k < p->wishes[i].leaving_count; k++)
			free(p->wishes[i].leaving[k]);
		free(p->wishes[i].leaving);
		free(p->wishes[i].group);
	}
	free(p->wishes);
}
