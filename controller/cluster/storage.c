/* What pods that wait must have first: volumes, their classes, namespaces by their labels. */
#include "base/alloc.h"
#include "base/quantity.h"
#include "controller/cluster/model_state.h"

#include <stdlib.h>
#include <string.h>

const char *const volume_zone_labels[] = { "failure-domain.beta.kubernetes.io/zone",
					   "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/zone",
					   "topology.kubernetes.io/region", NULL };

/* What all of them begin with. */
struct needed {
	struct uid_key id;
};

static const size_t sizes[CLUSTER_NEEDED_COUNT] = { sizeof(struct volume_claim), sizeof(struct volume),
						    sizeof(struct storage_class), sizeof(struct namespace_known) };

static struct store *store_of(struct cluster *c, enum cluster_kind kind)
{
	return &c->needed[kind - CLUSTER_VOLUME_CLAIMS];
}

static const char *text_or_null(struct cluster *c, const char *text)
{
	return text == NULL || text[0] == '\0' ? NULL : intern_text(&c->intern, text);
}

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

static int64_t storage_of(const struct decoded_map *amounts)
{
	int64_t milli = 0;
	const char *text = decoded_get(amounts, "storage");
	return text != NULL && amount_milli(text, &milli) ? milli : 0;
}

static void read_volume_claim(struct cluster *c, struct volume_claim *v, const struct volume_claim_record *r,
			      const struct watch_seen *seen)
{
	v->name_space = intern_text(&c->intern, seen->name_space == NULL ? "" : seen->name_space);
	v->name = intern_text(&c->intern, seen->name);
	v->volume = text_or_null(c, r->volume);
	v->storage_class = text_or_null(c, r->storage_class);
	v->chosen_node = text_or_null(c, decoded_get(&r->annotations, "volume.kubernetes.io/selected-node"));
	v->milli = storage_of(&r->requests);
	v->is_bound = decoded_get(&r->annotations, "pv.kubernetes.io/bind-completed") != NULL;
	v->is_lost = is_text(r->phase, "Lost");
	v->is_leaving = r->deleted_at != 0;
}

static void read_volume(struct cluster *c, struct volume *v, const struct volume_known_record *r,
			const struct watch_seen *seen)
{
	v->name = intern_text(&c->intern, seen->name);
	v->storage_class = text_or_null(c, r->storage_class);
	v->claim_namespace = text_or_null(c, r->claim_namespace);
	v->claim_name = text_or_null(c, r->claim_name);
	v->labels = model_labels(c, &r->labels);
	v->affinity = model_requirements(c, &r->terms, NULL);
	v->milli = storage_of(&r->capacity);
	v->is_free = is_text(r->phase, "Available");
}

/* allowedTopologies have no operators: each lists the values that are allowed. */
static const struct requirement_set *topologies_of(struct cluster *c, const struct decoded_list *terms)
{
	struct term_record *items = terms->items;
	for (size_t i = 0; i < terms->count; i++) {
		struct expression_record *expressions = items[i].expressions.items;
		for (size_t k = 0; k < items[i].expressions.count; k++)
			expressions[k].operation = "In";
	}
	return model_requirements(c, terms, NULL);
}

static void read_storage_class(struct cluster *c, struct storage_class *s, const struct storage_class_record *r,
			       const struct watch_seen *seen)
{
	s->name = intern_text(&c->intern, seen->name);
	s->topologies = topologies_of(c, &r->terms);
	s->waits = is_text(r->mode, "WaitForFirstConsumer");
	s->makes = !is_text(r->provisioner, "kubernetes.io/no-provisioner");
}

static void read_namespace(struct cluster *c, struct namespace_known *n, const struct namespace_record *r,
			   const struct watch_seen *seen)
{
	n->name = intern_text(&c->intern, seen->name);
	n->labels = model_labels(c, &r->labels);
}

static void drop_all(struct cluster *c, enum cluster_kind kind, const void *item)
{
	const void *held[8] = { NULL };
	size_t count = 0;
	if (kind == CLUSTER_VOLUME_CLAIMS) {
		const struct volume_claim *v = item;
		const void *const own[] = { v->name_space, v->name, v->volume, v->storage_class, v->chosen_node };
		memcpy(held, own, sizeof own);
		count = sizeof own / sizeof *own;
	} else if (kind == CLUSTER_VOLUMES) {
		const struct volume *v = item;
		const void *const own[] = { v->name,	   v->storage_class, v->claim_namespace,
					    v->claim_name, v->labels,	     v->affinity };
		memcpy(held, own, sizeof own);
		count = sizeof own / sizeof *own;
	} else if (kind == CLUSTER_STORAGE_CLASSES) {
		const struct storage_class *s = item;
		held[count++] = s->name;
		held[count++] = s->topologies;
	} else {
		const struct namespace_known *n = item;
		held[count++] = n->name;
		held[count++] = n->labels;
	}
	for (size_t i = 0; i < count; i++)
		intern_drop(&c->intern, held[i]);
}

bool cluster_needed_seen(struct cluster *c, enum cluster_kind kind, const void *record, const struct watch_seen *seen)
{
	cluster_needed_gone(c, kind, seen->uid);
	struct needed *item = xcalloc(1, sizes[kind - CLUSTER_VOLUME_CLAIMS]);
	item->id = model_uid_key(seen->uid);
	if (kind == CLUSTER_VOLUME_CLAIMS)
		read_volume_claim(c, (struct volume_claim *)item, record, seen);
	else if (kind == CLUSTER_VOLUMES)
		read_volume(c, (struct volume *)item, record, seen);
	else if (kind == CLUSTER_STORAGE_CLASSES)
		read_storage_class(c, (struct storage_class *)item, record, seen);
	else
		read_namespace(c, (struct namespace_known *)item, record, seen);
	store_add(store_of(c, kind), item);
	arena_clear(&c->scratch);
	c->generation++;
	return true;
}

void cluster_needed_gone(struct cluster *c, enum cluster_kind kind, struct object_uid uid)
{
	struct needed *item = model_find_uid(store_of(c, kind), uid);
	if (item == NULL)
		return;
	store_remove(store_of(c, kind), item);
	drop_all(c, kind, item);
	free(item);
	c->generation++;
}

void cluster_needed_forget(struct cluster *c, enum cluster_kind kind)
{
	const struct needed *item = NULL;
	for (size_t i = 0; (item = store_next(store_of(c, kind), &i)) != NULL; i = 0)
		cluster_needed_gone(c, kind, item->id.uid);
	store_release(store_of(c, kind));
}

void cluster_storage_release(struct cluster *c)
{
	for (int kind = CLUSTER_VOLUME_CLAIMS; kind < CLUSTER_KIND_COUNT; kind++)
		cluster_needed_forget(c, (enum cluster_kind)kind);
}

/* Few are looked for, and only for pods that wait: no table by name is kept. */

const struct volume_claim *volume_claim_find(const struct cluster *c, const char *name_space, const char *name)
{
	const struct volume_claim *v = NULL;
	const struct store *s = &c->needed[0];
	for (size_t i = 0; (v = store_next(s, &i)) != NULL;)
		if (v->name == name && v->name_space == name_space)
			return v;
	return NULL;
}

const struct volume *volume_find(const struct cluster *c, const char *name)
{
	const struct volume *v = NULL;
	for (size_t i = 0; (v = store_next(&c->needed[CLUSTER_VOLUMES - CLUSTER_VOLUME_CLAIMS], &i)) != NULL;)
		if (v->name == name)
			return v;
	return NULL;
}

const struct storage_class *storage_class_find(const struct cluster *c, const char *name)
{
	const struct storage_class *s = NULL;
	for (size_t i = 0; (s = store_next(&c->needed[CLUSTER_STORAGE_CLASSES - CLUSTER_VOLUME_CLAIMS], &i)) != NULL;)
		if (s->name == name)
			return s;
	return NULL;
}

const struct namespace_known *namespace_find(const struct cluster *c, const char *name)
{
	const struct namespace_known *n = NULL;
	for (size_t i = 0; (n = store_next(&c->needed[CLUSTER_NAMESPACES - CLUSTER_VOLUME_CLAIMS], &i)) != NULL;)
		if (n->name == name)
			return n;
	return NULL;
}
