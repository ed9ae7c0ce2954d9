#include "controller/loop/objects.h"

#include "base/alloc.h"
#include "base/json.h"
#include "controller/cluster/watch.h"
#include "controller/loop/controller_state.h"

#include <stdlib.h>
#include <string.h>

static const millis SETTLE = 300; /* of the world: several objects are often applied together */

struct seen_object {
	int64_t generation;
	millis created;
	struct decoded_text spec;
};

static const struct field object_fields[] = {
	FIELD(struct seen_object, generation, FIELD_INT, "metadata>generation"),
	FIELD(struct seen_object, created, FIELD_TIME, "metadata>creationTimestamp"),
	FIELD(struct seen_object, spec, FIELD_RAW, "spec"),
};

static const struct record_spec object_record = { "", sizeof(struct seen_object), object_fields, 3 };

struct objects {
	struct controller *controller;
	struct watch *watch;
	struct manifest_part *files; /* NULL: there are none */
	struct pool_object *items;   /* by namespace and name */
	size_t count, room;
	struct timer timer;
	bool is_synced;
	void (*on_chosen)(struct controller *c, const struct manifest *m, struct arena *held);
};

static int order(const struct pool_object *o, const char *namespace, const char *name)
{
	int by = strcmp(o->namespace, namespace);

	return by ? by : strcmp(o->name, name);
}

/* Where it stands, or would. */
static size_t index_of(const struct objects *s, const char *namespace, const char *name)
{
	size_t from = 0, to = s->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (order(&s->items[middle], namespace, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct pool_object *find(const struct objects *s, const char *namespace, const char *name)
{
	size_t i = index_of(s, namespace, name);

	return i < s->count && !order(&s->items[i], namespace, name) ? &s->items[i] : NULL;
}

static struct pool_object *place(struct objects *s, const char *namespace, const char *name)
{
	struct pool_object *found = find(s, namespace, name);
	size_t i = index_of(s, namespace, name);

	if (found)
		return found;
	s->items = xgrow(s->items, s->count, &s->room, sizeof *s->items);
	memmove(&s->items[i + 1], &s->items[i], (s->count - i) * sizeof *s->items);
	s->count++;
	s->items[i] = (struct pool_object){ .namespace = xstrdup(namespace), .name = xstrdup(name) };
	return &s->items[i];
}

/* Each refusal is told once. `before` and `after` may be NULL. */
static void tell(const struct pool_object *o, const char *before)
{
	if (o->refusal && (!before || strcmp(before, o->refusal) != 0))
		log_warn("warmpool-refused", LOG_S("namespace", o->namespace), LOG_S("name", o->name),
			 LOG_S("why", o->refusal), LOG_B("former_stays", o->is_former), LOG_END);
	else if (!o->refusal && before)
		log_info("warmpool-taken", LOG_S("namespace", o->namespace), LOG_S("name", o->name), LOG_END);
}

static bool read_files(struct objects *s)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	const char *text = s->controller->settings.manifest->text;
	struct error e;

	if (text && !s->files)
		s->files = manifest_part_read(OBJECTS_TRUSTED, text, &f, &e);
	return !text || s->files;
}

static bool choose(struct objects *s, struct arena *a, struct manifest *out)
{
	CLEANUP(arena_release) struct arena kept = { 0 };
	char **before = arena_array(&kept, char *, s->count + 1);

	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].refusal)
			before[i] = arena_strdup(&kept, s->items[i].refusal, strlen(s->items[i].refusal));
	bool ok = read_files(s) &&
		  objects_choose(s->items, s->count, s->files,
				 (struct choice_terms){ .is_part = s->controller->settings.pool_selector != NULL,
							.only_records = s->controller->settings.only_records },
				 a, out);
	for (size_t i = 0; i < s->count; i++)
		tell(&s->items[i], before[i]);
	return ok;
}

static void use(struct timer *t)
{
	struct objects *s = t->user;
	struct controller *c = s->controller;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct manifest m = { 0 };

	bool ok = choose(s, &a, &m);
	const char *text = leader_manifest(c)->text;
	bool is_same = ok && m.text && text && !strcmp(m.text, text);
	bool is_change = ok && !is_same && (m.text || text);
	if (is_change)
		log_info("manifest-changed", LOG_I("pools", (int64_t)m.fleet.pool_count), LOG_END);
	s->on_chosen(c, is_change ? &m : NULL, &a);
}

static void use_soon(struct objects *s)
{
	if (s->is_synced)
		timer_start(s->controller->loop, &s->timer, SETTLE, use);
}

static bool seen(void *user, const void *record, const struct watch_seen *w)
{
	struct objects *s = user;
	const struct seen_object *r = record;
	struct pool_object *o = place(s, w->name_space, w->name);
	bool is_same = o->spec && strlen(o->spec) == r->spec.len && !memcmp(o->spec, r->spec.text, r->spec.len);

	/* Made anew under its name, it is another object, even when it says the same. */
	free(o->uid);
	o->uid = xstrdup(w->uid_text);
	o->uid_high = w->uid.high;
	o->uid_low = w->uid.low;
	o->generation = r->generation;
	o->created = r->created;
	if (is_same)
		return true;
	if (r->spec.text)
		pool_object_say(o, r->spec.text, r->spec.len);
	else
		pool_object_say(o, "{}", 2);
	use_soon(s);
	return true;
}

static void gone(void *user, struct object_uid uid, millis arrived)
{
	struct objects *s = user;

	(void)arrived;
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].uid_high == uid.high && s->items[i].uid_low == uid.low) {
			pool_object_release(&s->items[i]);
			memmove(&s->items[i], &s->items[i + 1], (s->count - i - 1) * sizeof *s->items);
			s->count--;
			break;
		}
	use_soon(s);
}

static void listed(void *user)
{
	struct objects *s = user;

	if (s->is_synced)
		return;
	s->is_synced = true;
	s->timer.user = s;
	use(&s->timer);
}

void objects_open(struct controller *c,
		  void (*on_chosen)(struct controller *c, const struct manifest *m, struct arena *held))
{
	struct objects *s = xnew(struct objects);
	const struct watch_spec spec = { .name = "warmpools",
					 .path = "/apis/preheat.dev/v1alpha1/warmpools",
					 .label_selector = c->settings.pool_selector,
					 .object = &object_record,
					 .way = WATCH_PAGED,
					 .on_object = seen,
					 .on_gone = gone,
					 .on_synced = listed,
					 .user = s };

	s->controller = c;
	s->on_chosen = on_chosen;
	s->timer.user = s;
	c->objects = s;
	if (c->settings.watches_objects)
		s->watch = watch_start(c->api, &spec);
}

bool objects_are_synced(const struct controller *c)
{
	return !c->objects->watch || (c->objects->is_synced && !timer_is_running(&c->objects->timer)) ||
	       watch_report(c->objects->watch)->state == WATCH_ABSENT;
}

const struct watch *objects_watch(const struct controller *c)
{
	return c->objects ? c->objects->watch : NULL;
}

void objects_close(struct controller *c)
{
	struct objects *s = c->objects;

	timer_stop(&s->timer);
	watch_stop(s->watch);
	for (size_t i = 0; i < s->count; i++)
		pool_object_release(&s->items[i]);
	manifest_part_let_go(s->files);
	free(s->items);
	free(s);
	c->objects = NULL;
}

const struct pool_object *objects_named(const struct controller *c, const char *namespace, const char *name)
{
	return c->objects ? find(c->objects, namespace, name) : NULL;
}

const struct pool_object *objects_find(const struct controller *c, const char *namespace, const char *name)
{
	const struct pool_object *o = objects_named(c, namespace, name);

	return o && (!o->refusal || o->is_former) ? o : NULL;
}

struct published_counts objects_refused(const struct controller *c, struct arena *a)
{
	size_t count = c->objects ? c->objects->count : 0, n = 0;
	struct published_count *items = arena_array(a, struct published_count, count);

	for (size_t i = 0; i < count; i++) {
		const struct pool_object *o = &c->objects->items[i];
		CLEANUP(buf_release) struct buf why = { 0 };
		if (!o->refusal)
			continue;
		buf_text(&why, o->refusal);
		if (o->is_former)
			buf_text(&why, "; until then what it said before stays in force");
		items[n++] = (struct published_count){ .labels = { arena_strdup(a, o->namespace, strlen(o->namespace)),
								   arena_strdup(a, o->name, strlen(o->name)),
								   arena_strdup(a, why.text, why.len) },
						       .count = o->generation };
	}
	return (struct published_counts){ items, n };
}

void objects_write_owner(const struct controller *c, const struct pool_spec *spec, struct buf *out)
{
	const struct pool_object *o = objects_find(c, spec->namespace, spec->name);

	if (o)
		buf_printf(out,
			   ",\"ownerReferences\":[{\"apiVersion\":\"preheat.dev/v1alpha1\",\"kind\":\"WarmPool\","
			   "\"name\":\"%s\",\"uid\":\"%s\"}]",
			   o->name, o->uid);
}

enum use { USE_NOT, USE_FORMER, USE_SPEC };

/* The search for the largest part that agrees. */
struct choice {
	struct pool_object *items;
	enum use *uses;
	size_t *by_age; /* indices, oldest first */
	size_t count;
	struct choice_terms terms;
	struct manifest_part *files;
};

void pool_object_say(struct pool_object *o, const char *spec, size_t len)
{
	char *said = xstrndup(spec, len);

	free(o->spec);
	o->spec = said;
	o->is_read = false;
}

void pool_object_release(struct pool_object *o)
{
	manifest_part_let_go(o->read);
	manifest_part_let_go(o->former);
	free(o->namespace);
	free(o->name);
	free(o->uid);
	free(o->spec);
	free(o->refusal);
}

static struct manifest_part *read_spec(const struct pool_object *o, struct findings *f, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 }, out = { 0 };

	buf_printf(&name, "WarmPool %s/%s", o->namespace, o->name);
	buf_text(&out, "{\"apiVersion\":\"preheat.dev/v1alpha1\",\"kind\":\"WarmPool\",\"metadata\":{\"name\":");
	json_write_text(o->name, &out);
	buf_text(&out, ",\"namespace\":");
	json_write_text(o->namespace, &out);
	buf_text(&out, "},\"spec\":");
	buf_text(&out, o->spec);
	buf_text(&out, "}\n");
	return manifest_part_read(name.text, out.text, f, e);
}

static struct manifest_part *part_of(const struct choice *c, size_t i)
{
	return c->uses[i] == USE_SPEC ? c->items[i].read : c->items[i].former;
}

/* Pods that are selected by a pool of another controller are not seen to be. */
static bool is_whole(const struct choice *c, const struct manifest *m, struct error *e)
{
	for (size_t i = 0; c->terms.is_part && i < m->fleet.pool_count; i++)
		if (m->fleet.pools[i].class == CLASS_ANY)
			return error_set(
				e, ERROR_INVALID,
				"spec.class: found 'any', under --pool-selector; allowed: every other class; do: "
				"have one controller for all pools, as pods of the others' pools "
				"would be taken for pods of none");
	return true;
}

/* Lines and columns mean nothing to whoever wrote the object. */
static void tell_findings(struct findings *f, struct error *e)
{
	for (size_t i = 0; i < f->count; i++)
		f->items[i].line = f->items[i].column = 0;
	if (f->count)
		findings_error(f, e);
}

/* All that are used, the one on trial last, so that it is what findings are about. `trial` count: none. */
static bool load(const struct choice *c, size_t trial, struct arena *a, struct manifest *out, struct error *e)
{
	struct manifest_part **parts = arena_array(a, struct manifest_part *, c->count + 1);
	size_t n = 0;
	struct findings f = { 0 };

	if (c->files)
		parts[n++] = c->files;
	for (size_t i = 0; i < c->count; i++)
		if (c->uses[i] != USE_NOT && i != trial)
			parts[n++] = part_of(c, i);
	if (trial < c->count)
		parts[n++] = part_of(c, trial);
	*out = (struct manifest){ 0 };
	bool ok = !n || (manifest_load_parts(parts, n, a, out, &f, e) &&
			 manifest_check_objects(out, OBJECTS_TRUSTED, &f, e) &&
			 controller_accepts(out, c->terms.only_records, &f, e) && is_whole(c, out, e));
	if (!ok)
		tell_findings(&f, e);
	findings_release(&f);
	return ok;
}

static bool fits(const struct choice *c, size_t trial, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct manifest m;
	bool ok = load(c, trial, &a, &m, e);

	return ok;
}

static bool is_settled(const struct pool_object *o)
{
	return o->former && o->former == o->read;
}

static int compare_age(const void *left, const void *right, void *user)
{
	const struct pool_object *items = user;
	size_t a = *(const size_t *)left, b = *(const size_t *)right;

	if (items[a].created != items[b].created)
		return items[a].created < items[b].created ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* What of it may be in force at best: where its spec says nothing that can be read, what it said before. */
static enum use best_of(const struct pool_object *o)
{
	if (o->read)
		return USE_SPEC;
	return o->former ? USE_FORMER : USE_NOT;
}

static bool try_use(struct choice *c, size_t i, enum use wanted, struct error *e)
{
	enum use before = c->uses[i];

	c->uses[i] = wanted;
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
	o->refusal = xstrdup(why);
}

/* What can be told of the object alone is remembered for as long as it says the same. Back at what is in force, it is
 * that. */
static void read_alone(struct pool_object *o)
{
	CLEANUP(findings_release) struct findings f = { 0 };
	struct error e = { 0 };

	if (o->is_read)
		return;
	manifest_part_let_go(o->read);
	o->read = read_spec(o, &f, &e);
	o->is_read = true;
	if (!o->read) {
		tell_findings(&f, &e);
		refuse(o, e.message);
	} else if (o->former && !strcmp(o->former->text, o->read->text)) {
		manifest_part_let_go(o->read);
		o->read = manifest_part_hold(o->former);
	}
}

static bool grow_by(struct choice *c, size_t i)
{
	struct error e = { 0 }, ignored = { 0 };

	if (try_use(c, i, best_of(&c->items[i]), &e))
		return true;
	if (!c->items[i].read)
		return false;
	refuse(&c->items[i], e.message);
	return c->uses[i] == USE_NOT && c->items[i].former && try_use(c, i, USE_FORMER, &ignored);
}

/* All of them at once, else each half: one that is wrong among a thousand costs twenty trials. */
static bool grow_by_all(struct choice *c, const size_t *items, size_t count)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	enum use *before = arena_array(&a, enum use, count + 1);
	struct error e;

	if (count <= 1)
		return count && grow_by(c, items[0]);
	for (size_t k = 0; k < count; k++) {
		before[k] = c->uses[items[k]];
		c->uses[items[k]] = best_of(&c->items[items[k]]);
	}
	if (fits(c, c->count, &e))
		return true;
	for (size_t k = 0; k < count; k++)
		c->uses[items[k]] = before[k];
	bool older = grow_by_all(c, items, count / 2), newer = grow_by_all(c, items + count / 2, count - count / 2);
	return older || newer;
}

/* Whether anything more is in force than before: a group may be told at one pool and named at another. */
static bool grow(struct choice *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t *left = arena_array(&a, size_t, c->count + 1), count = 0;

	for (size_t k = 0; k < c->count; k++)
		if (c->uses[c->by_age[k]] != best_of(&c->items[c->by_age[k]]))
			left[count++] = c->by_age[k];
	return grow_by_all(c, left, count);
}

static void search(struct choice *c)
{
	struct error e = { 0 };

	for (size_t i = 0; i < c->count; i++)
		c->uses[i] = is_settled(&c->items[i]) ? USE_SPEC : c->items[i].former ? USE_FORMER : USE_NOT;
	bool fit = fits(c, c->count, &e);
	for (size_t i = 0; !fit && i < c->count; i++)
		c->uses[i] = USE_NOT;
	while (grow(c))
		;
}

static void conclude(struct pool_object *o, enum use wanted)
{
	o->is_former = wanted == USE_FORMER;
	if (wanted != USE_SPEC)
		return;
	free(o->refusal);
	o->refusal = NULL;
	if (is_settled(o))
		return;
	manifest_part_let_go(o->former);
	o->former = manifest_part_hold(o->read);
}

bool objects_choose(struct pool_object *items, size_t count, struct manifest_part *files, struct choice_terms terms,
		    struct arena *a, struct manifest *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct choice c = { .items = items,
			    .uses = arena_array(&scratch, enum use, count + 1),
			    .by_age = arena_array(&scratch, size_t, count + 1),
			    .count = count,
			    .terms = terms,
			    .files = files };
	struct error e = { 0 };

	for (size_t i = 0; i < count; i++)
		c.by_age[i] = i;
	qsort_r(c.by_age, count, sizeof *c.by_age, compare_age, items);
	for (size_t i = 0; i < count; i++) {
		read_alone(&items[i]);
		c.uses[i] = best_of(&items[i]);
	}
	bool ok = load(&c, count, a, out, &e);
	if (!ok) {
		arena_clear(a);
		search(&c);
		ok = load(&c, count, a, out, &e);
	}
	for (size_t i = 0; ok && i < count; i++)
		conclude(&items[i], c.uses[i]);
	return ok;
}
