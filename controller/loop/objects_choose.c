#include "controller/loop/objects_choose.h"

#include "base/json_write.h"
#include "controller/loop/controller.h"

#include <stdlib.h>
#include <string.h>

static const char trusted[] = "the files of --pool";

enum use { USE_NOT, USE_FORMER, USE_SPEC };

/* The search for the largest part that agrees. */
struct choice {
	struct pool_object *items;
	enum use *uses;
	size_t *by_age; /* indices, oldest first */
	size_t count;
	const struct manifest *files;
};

static char *copy(const char *text)
{
	char *out = strdup(text);

	if (!out)
		abort();
	return out;
}

void pool_object_release(struct pool_object *o)
{
	free(o->namespace);
	free(o->name);
	free(o->uid);
	free(o->spec);
	free(o->former);
	free(o->refusal);
}

static const char *write_object(const struct pool_object *o, enum use use, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	buf_text(&out, "{\"apiVersion\":\"preheat.dev/v1alpha1\",\"kind\":\"WarmPool\",\"metadata\":{\"name\":");
	json_write_text(o->name, &out);
	buf_text(&out, ",\"namespace\":");
	json_write_text(o->namespace, &out);
	buf_text(&out, "},\"spec\":");
	buf_text(&out, use == USE_SPEC ? o->spec : o->former);
	buf_text(&out, "}\n");
	return arena_strdup(a, out.text, out.len);
}

static const char *name_object(const struct pool_object *o, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	buf_printf(&out, "WarmPool %s/%s", o->namespace, o->name);
	return arena_strdup(a, out.text, out.len);
}

static struct manifest_text text_of(const struct choice *c, size_t i, struct arena *a)
{
	return (struct manifest_text){ name_object(&c->items[i], a), write_object(&c->items[i], c->uses[i], a) };
}

/* Lines and columns mean nothing to whoever wrote the object. */
static void explain(struct findings *f, struct error *e)
{
	for (size_t i = 0; i < f->count; i++)
		f->items[i].line = f->items[i].column = 0;
	if (f->count)
		findings_error(f, e);
}

/* All that are used, the one on trial last, so that it is what findings are about. `trial` count: none. */
static bool load(const struct choice *c, size_t trial, struct arena *a, struct manifest *out, struct error *e)
{
	struct manifest_text *texts = arena_array(a, struct manifest_text, c->count + 1);
	size_t n = 0;
	struct findings f = { 0 };

	if (c->files->text)
		texts[n++] = (struct manifest_text){ trusted, c->files->text };
	for (size_t i = 0; i < c->count; i++)
		if (c->uses[i] != USE_NOT && i != trial)
			texts[n++] = text_of(c, i, a);
	if (trial < c->count)
		texts[n++] = text_of(c, trial, a);
	*out = (struct manifest){ 0 };
	bool ok = !n || (manifest_load_texts(texts, n, a, out, &f, e) && manifest_check_objects(out, trusted, &f, e) &&
			 controller_accepts(out, &f, e));
	if (!ok)
		explain(&f, e);
	findings_release(&f);
	return ok;
}

static bool fits(const struct choice *c, size_t trial, struct error *e)
{
	struct arena a = { 0 };
	struct manifest m;
	bool ok = load(c, trial, &a, &m, e);

	arena_release(&a);
	return ok;
}

static bool is_settled(const struct pool_object *o)
{
	return o->former && !strcmp(o->former, o->spec);
}

static int compare_age(const void *left, const void *right, void *user)
{
	const struct pool_object *items = user;
	size_t a = *(const size_t *)left, b = *(const size_t *)right;

	if (items[a].created != items[b].created)
		return items[a].created < items[b].created ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void use_all(struct choice *c, enum use use)
{
	for (size_t i = 0; i < c->count; i++)
		c->uses[i] = use;
}

static bool try_use(struct choice *c, size_t i, enum use use, struct error *e)
{
	enum use before = c->uses[i];

	c->uses[i] = use;
	if (fits(c, i, e))
		return true;
	c->uses[i] = before;
	return false;
}

static void refuse(struct pool_object *o, const char *why)
{
	if (o->refusal && !strcmp(o->refusal, why))
		return;
	free(o->refusal);
	o->refusal = copy(why);
}

/* Whether anything more is in force than before: a group may be told at one pool and named at another. */
static bool grow(struct choice *c)
{
	bool has_grown = false;

	for (size_t k = 0; k < c->count; k++) {
		size_t i = c->by_age[k];
		struct error e = { 0 }, ignored = { 0 };

		if (c->uses[i] == USE_SPEC)
			continue;
		if (try_use(c, i, USE_SPEC, &e)) {
			has_grown = true;
			continue;
		}
		refuse(&c->items[i], e.message);
		if (c->uses[i] == USE_NOT && c->items[i].former && try_use(c, i, USE_FORMER, &ignored))
			has_grown = true;
	}
	return has_grown;
}

static void search(struct choice *c)
{
	struct error e = { 0 };

	use_all(c, USE_SPEC);
	if (fits(c, c->count, &e))
		return;
	for (size_t i = 0; i < c->count; i++)
		c->uses[i] = is_settled(&c->items[i]) ? USE_SPEC : c->items[i].former ? USE_FORMER : USE_NOT;
	if (!fits(c, c->count, &e))
		use_all(c, USE_NOT);
	while (grow(c))
		;
}

static void conclude(struct pool_object *o, enum use use)
{
	o->is_former = use == USE_FORMER;
	if (use != USE_SPEC)
		return;
	free(o->refusal);
	o->refusal = NULL;
	if (is_settled(o))
		return;
	free(o->former);
	o->former = copy(o->spec);
}

bool objects_choose(struct pool_object *items, size_t count, const struct manifest *files, struct arena *a,
		    struct manifest *out)
{
	struct arena scratch = { 0 };
	struct choice c = { .items = items,
			    .uses = arena_array(&scratch, enum use, count + 1),
			    .by_age = arena_array(&scratch, size_t, count + 1),
			    .count = count,
			    .files = files };
	struct error e = { 0 };

	for (size_t i = 0; i < count; i++)
		c.by_age[i] = i;
	qsort_r(c.by_age, count, sizeof *c.by_age, compare_age, items);
	search(&c);
	bool ok = load(&c, count, a, out, &e);
	for (size_t i = 0; ok && i < count; i++)
		conclude(&items[i], c.uses[i]);
	arena_release(&scratch);
	return ok;
}
