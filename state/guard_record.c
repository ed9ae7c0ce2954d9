#include "state/guard_record.h"

#include <stdio.h>
#include <string.h>

/* A fact of that name, which state/replica.c hands to followers at once: FIRST, and ids, which have no blanks. */
static const char FIRST[] = "but";
enum { NAME_MOST = 320 };

static void name_of(const char *group, char name[NAME_MOST])
{
	snprintf(name, NAME_MOST, "guarded %s", group);
}

static bool put(struct history *h, const char *group, const char *text, struct error *e)
{
	char name[NAME_MOST];

	name_of(group, name);
	return history_keep_fact(h, name, text, e);
}

bool guard_record_save(struct history *h, const char *group, const char *const *machines, size_t count, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_text(&text, FIRST);
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, " %s", machines[i]);
	return put(h, group, text.text, e);
}

/* What is forgotten is a line as well: rows that are deleted here would stay at followers. */
bool guard_record_forget(struct history *h, const char *group, struct error *e)
{
	return put(h, group, "", e);
}

bool guard_record_find(struct history *h, const char *group, struct arena *a, const char ***machines, size_t *count,
		       struct error *e)
{
	char name[NAME_MOST];
	const char *text;

	name_of(group, name);
	if (!history_fact(h, name, a, &text, e))
		return false;
	*machines = NULL;
	*count = 0;
	if (strncmp(text, FIRST, strlen(FIRST)) != 0)
		return true;
	char *next = arena_strdup(a, text + strlen(FIRST), strlen(text) - strlen(FIRST));
	*machines = arena_array(a, const char *, strlen(text) / 2 + 1);
	for (char *id; (id = strsep(&next, " "));)
		if (*id)
			(*machines)[(*count)++] = id;
	return true;
}
