/* The history that the API reads: opened once, and again when it became another. */
#include "controller/web/api_parts.h"

#include <stdlib.h>

enum { FLEETS = 4 };

struct api_source {
	const char *path;
	struct history *history;
	struct api_fleet *fleets[FLEETS]; /* the one used last stands first */
};

struct api_source *api_source_open(const char *path)
{
	struct api_source *s = calloc(1, sizeof *s);

	if (!s)
		abort();
	s->path = path;
	return s;
}

static void free_fleet(struct api_fleet *f)
{
	if (!f)
		return;
	arena_release(&f->arena);
	free(f);
}

static void forget(struct api_source *s)
{
	for (size_t i = 0; i < FLEETS; i++) {
		free_fleet(s->fleets[i]);
		s->fleets[i] = NULL;
	}
	history_close(s->history);
	s->history = NULL;
}

void api_source_close(struct api_source *s)
{
	if (!s)
		return;
	forget(s);
	free(s);
}

struct history *api_source_history(struct api_source *s, struct error *e)
{
	if (s->history && history_is_current(s->history))
		return s->history;
	forget(s);
	s->history = history_open(s->path, e);
	return s->history;
}

static void put_first(struct api_source *s, size_t index, struct api_fleet *f)
{
	for (; index > 0; index--)
		s->fleets[index] = s->fleets[index - 1];
	s->fleets[0] = f;
}

static bool load(struct api_source *s, int64_t tick, struct api_fleet *f, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	const char *text;

	if (!history_stretch_at(s->history, tick, &f->arena, &f->stretch, e) ||
	    !history_manifest(s->history, tick, &f->arena, &text, e))
		return false;
	if (!manifest_load_text("manifest", text, &f->arena, &f->manifest, &findings, e))
		return error_wrap(e, "%s: its manifest", s->path);
	return f->stretch.pool_count == f->manifest.fleet.pool_count ||
	       error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions", s->path);
}

const struct api_fleet *api_source_fleet(struct api_source *s, int64_t tick, struct error *e)
{
	for (size_t i = 0; i < FLEETS && s->fleets[i]; i++)
		if (tick >= s->fleets[i]->stretch.from && tick <= s->fleets[i]->stretch.until) {
			put_first(s, i, s->fleets[i]);
			return s->fleets[0];
		}
	struct api_fleet *f = calloc(1, sizeof *f);
	if (!f)
		abort();
	if (!load(s, tick, f, e)) {
		free_fleet(f);
		return NULL;
	}
	free_fleet(s->fleets[FLEETS - 1]);
	put_first(s, FLEETS - 1, f);
	return f;
}
