#include "state/contention_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Who recorded the first five only told no raises. */
enum { NUMBERS_LEAST = 5 };
/* A fact of that name, which state/replica.c hands to followers at once. */
enum { NAME_MOST = 320, TEXT_MOST = 136 };

static void name_of(const char *group, char name[NAME_MOST])
{
	snprintf(name, NAME_MOST, "contended %s", group);
}

bool contention_record_save(struct history *h, const char *group, const struct contention_record *r, struct error *e)
{
	char name[NAME_MOST], text[TEXT_MOST];

	name_of(group, name);
	snprintf(text, sizeof text, "%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, r->is_held, r->quiet,
		 r->machines, r->at, r->yields_until, r->raised_until);
	return history_keep_fact(h, name, text, e);
}

bool contention_record_find(struct history *h, const char *group, struct contention_record *r)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	char name[NAME_MOST];
	int64_t numbers[6] = { 0 };
	const char *text;
	char *end;

	name_of(group, name);
	if (!history_fact(h, name, &a, &text, &e))
		return false;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, text = end) {
		numbers[i] = strtoll(text, &end, 10);
		if (end == text && i < NUMBERS_LEAST)
			return false;
	}
	*r = (struct contention_record){ numbers[0] != 0, numbers[1], numbers[2], numbers[3], numbers[4], numbers[5] };
	return r->quiet >= 0 && r->machines >= 0;
}
