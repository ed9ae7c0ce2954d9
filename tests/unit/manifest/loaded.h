/* A manifest from a text, with all that came of it. */
#pragma once
#include "controller/manifest/manifest.h"

#include <string.h>

struct loaded {
	struct arena arena;
	struct findings findings;
	struct manifest manifest;
	struct error error;
	bool ok;
};

static inline void loaded_release(struct loaded *l)
{
	findings_release(&l->findings);
	arena_release(&l->arena);
}

static inline void load(struct loaded *l, const char *text)
{
	*l = (struct loaded){ 0 };
	l->ok = manifest_load_text("pool.yaml", text, &l->arena, &l->manifest, &l->findings, &l->error);
}
