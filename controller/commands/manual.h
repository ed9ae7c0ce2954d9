/* The manual out of the tables of verbs and options: pages for man, and docs/cli.md. */
#pragma once
#include "base/arena.h"
#include "controller/commands/command.h"

/* What stands in the overview beside the verbs: variables and exit codes, a line each. */
struct manual_line {
	const char *name, *text;
};
extern const struct manual_line manual_variables[], manual_exit_codes[]; /* end in a NULL name */

/* "preheat-provider-check"; NULL: "preheat". */
void manual_page_name(const struct command *c, struct buf *out);
/* One page in roff; NULL: the overview. */
void manual_write_page(const struct command *c, struct buf *out);
/* All of it in Markdown. */
void manual_write_reference(struct buf *out);
/* Calls `each` for every verb, and for those below one after it. */
void manual_each(bool (*each)(void *user, const struct command *c, struct error *e), void *user, bool *ok,
		 struct error *e);
