#include "tests/unit/providers/contract.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool on_event(void *user, const struct json_event *event, struct error *e)
{
	struct contract *c = user;
	CLEANUP(buf_release) struct buf path = { 0 };
	size_t len = c->counted ? strlen(c->counted) : 0;

	(void)e;
	if (len && event->type == JSON_OPEN && strcmp(event->path, c->counted) == 0)
		c->items++;
	if (event->type == JSON_OPEN || event->type == JSON_CLOSE)
		return true;
	if (len && strncmp(event->path, c->counted, len) == 0)
		buf_printf(&path, "%.*s[%zu]%s", (int)len - 2, event->path, c->items, event->path + len);
	else
		buf_text(&path, event->path);
	if (c->count == c->room) {
		c->room = c->room ? 2 * c->room : 4096;
		c->values = realloc(c->values, c->room * sizeof *c->values);
	}
	c->values[c->count++] = (struct contract_value){ arena_strdup(&c->arena, path.text, path.len),
							 arena_strdup(&c->arena, event->text, event->len) };
	return true;
}

bool contract_read(struct contract *c, const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };
	const char *shared = getenv("PREHEAT_SHARED");
	struct error e;

	buf_printf(&path, "%s/contracts/%s", shared ? shared : "../shared", name);
	if (!file_read(path.text, (size_t)4 << 20, &text, &e)) {
		print_message("skipped: %s (set PREHEAT_SHARED)\n", e.message);
		return false;
	}
	struct json *j = json_open(name, on_event, c);
	bool ok = json_feed(j, text.text, text.len, &e) && json_finish(j, &e);
	json_close(j);
	if (!ok)
		fail_msg("%s", e.message);
	return true;
}

void contract_release(struct contract *c)
{
	arena_release(&c->arena);
	free(c->values);
}

const char *contract_text(const struct contract *c, const char *path)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->values[i].path, path) == 0)
			return c->values[i].text;
	return NULL;
}
