/* Devices by claim (dynamic resource allocation): what drivers publish of nodes, and what claims ask for and hold. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fnv1a.h"
#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <stdlib.h>
#include <string.h>

enum { WHOLE = 1000, COUNT_MOST = 1000, SLICES_OF_A_GPU = 7 };

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

static bool is_uid(struct object_uid a, struct object_uid b)
{
	return a.high == b.high && a.low == b.low;
}

static bool is_nobody(struct object_uid uid)
{
	return uid.high == 0 && uid.low == 0;
}

/* To a row of that driver; those that find no place are lost, as no node has so many drivers of GPUs. */
static void add_to(struct resource *rows, size_t *count, const char *driver, int64_t milli)
{
	size_t i = 0;
	while (i < *count && rows[i].name != driver)
		i++;
	if (i == DEVICE_DRIVERS_MOST || milli <= 0)
		return;
	if (i == *count)
		rows[(*count)++] = (struct resource){ driver, 0 };
	rows[i].milli += milli;
}

/* The compute slices of a MIG device, "1g.10gb" has one, in thousandths of a whole GPU. */
static int64_t mig_milli(const char *profile)
{
	int64_t slices = profile == NULL ? 1 : strtoll(profile, NULL, 10);
	return (slices < 1 ? 1 : slices > SLICES_OF_A_GPU ? SLICES_OF_A_GPU : slices) * WHOLE / SLICES_OF_A_GPU;
}

/* --- what is published --- */

/* A tainted device is given to nobody who does not ask for just that. */
static bool is_barred(const struct device_record *d)
{
	const struct taint_record *taints = d->taints.items;
	for (size_t i = 0; i < d->taints.count; i++)
		if (is_text(taints[i].effect, "NoSchedule") || is_text(taints[i].effect, "NoExecute"))
			return true;
	return false;
}

/* Names of NVIDIA's: "gpu-0", and "gpu-0-mig-1g.10gb-..." of a part of it. */
static const char part_mark[] = "-mig-";

static bool is_whole(const struct device_record *d)
{
	return !is_text(d->type, "mig") && !is_text(d->type, "vfio"); /* vfio: the same GPU, for virtual machines */
}

/* Whether the GPU that it is a part of is published, too: any, where names do not say which. */
static bool is_part_of_published(const struct device_record *part, const struct decoded_list *list)
{
	const struct device_record *devices = list->items;
	const char *mark = part->name == NULL ? NULL : strstr(part->name, part_mark);
	size_t len = mark == NULL ? 0 : (size_t)(mark - part->name);
	for (size_t i = 0; i < list->count; i++) {
		const char *name = devices[i].name;
		if (is_whole(&devices[i]) &&
		    (mark == NULL || (name != NULL && strlen(name) == len && memcmp(name, part->name, len) == 0)))
			return true;
	}
	return false;
}

/* A driver that cuts GPUs up as asked publishes them whole and in all their parts: the whole ones count then, and as
 * many parts as of the smallest. */
static void read_devices(struct device_slice *s, const struct decoded_list *list)
{
	const struct device_record *devices = list->items;
	int64_t whole = 0;
	bool is_cut_up = false;
	for (size_t i = 0; i < list->count; i++) {
		bool is_part = is_text(devices[i].type, "mig");
		if (is_barred(&devices[i])) {
			s->has_barred = true;
		} else if (is_part && is_part_of_published(&devices[i], list)) {
			is_cut_up = true;
		} else if (is_part) {
			s->milli += mig_milli(devices[i].profile);
			s->parts++;
		} else {
			whole += is_whole(&devices[i]);
		}
	}
	s->milli += whole * WHOLE;
	s->parts += is_cut_up ? whole * SLICES_OF_A_GPU : 0;
}

static void slice_release(struct cluster *c, struct device_slice *s)
{
	intern_drop(&c->intern, s->driver);
	intern_drop(&c->intern, s->pool);
	free(s);
}

static void slice_unlink(struct cluster *c, struct device_slice *s)
{
	*s->link = s->next;
	if (s->next != NULL)
		s->next->link = s->link;
	store_remove(&c->device_slices, s);
}

void cluster_slice_gone(struct cluster *c, struct object_uid uid, millis at)
{
	struct device_slice *s = model_find_uid(&c->device_slices, uid);
	if (s == NULL)
		return;
	struct node *n = s->node;
	slice_unlink(c, s);
	slice_release(c, s);
	node_reweigh(c, n, at, false);
	node_forget_unknown(c, n);
	arena_clear(&c->scratch);
}

/* The node that it is of: its Node owns it, and another under that name has slices of its own. */
static struct object_uid owner_of(const struct decoded_list *owners, const char *kind)
{
	const struct owner_record *items = owners->items;
	for (size_t i = 0; i < owners->count; i++)
		if (is_text(items[i].kind, kind) && items[i].uid != NULL)
			return object_uid_of(items[i].uid);
	return (struct object_uid){ 0, 0 };
}

bool cluster_slice_seen(struct cluster *c, const struct resource_slice_record *r, const struct watch_seen *seen)
{
	bool is_kept = r->driver != NULL && device_is_driver(r->driver) && r->node != NULL && r->node[0] != '\0';
	struct device_slice *old = model_find_uid(&c->device_slices, seen->uid);
	if (old != NULL && (!is_kept || strcmp(old->node->name, r->node) != 0))
		cluster_slice_gone(c, seen->uid, seen->arrived);
	else if (old != NULL) {
		slice_unlink(c, old);
		slice_release(c, old);
	}
	if (!is_kept)
		return false;
	struct device_slice *s = xcalloc(1, sizeof *s);
	struct node *n = node_expect(c, r->node);
	*s = (struct device_slice){
		.id = model_uid_key(seen->uid),
		.next = n->slices,
		.link = &n->slices,
		.node = n,
		.owner = owner_of(&r->owners, "Node"),
		.driver = intern_text(&c->intern, r->driver),
		.pool = intern_text(&c->intern, r->pool == NULL ? "" : r->pool),
		.generation = r->generation,
		.slice_count = r->slice_count,
	};
	read_devices(s, &r->devices);
	if (n->slices != NULL)
		n->slices->link = &s->next;
	n->slices = s;
	store_add(&c->device_slices, s);
	node_reweigh(c, n, seen->arrived, seen->is_from_list);
	arena_clear(&c->scratch);
	return true;
}

static bool is_of_node(const struct device_slice *s, const struct node *n)
{
	return is_nobody(s->owner) || is_uid(s->owner, (struct object_uid){ n->uid[0], n->uid[1] });
}

/* Whether it is of the newest generation of its pool, and all of that is there: the scheduler takes none before. */
static bool is_valid(const struct device_slice *s, const struct node *n)
{
	int64_t count = 0;
	for (const struct device_slice *t = n->slices; t != NULL; t = t->next) {
		if (t->driver != s->driver || t->pool != s->pool || !is_of_node(t, n))
			continue;
		if (t->generation > s->generation)
			return false;
		count += t->generation == s->generation;
	}
	return is_of_node(s, n) && count >= s->slice_count;
}

/* Under another name, unless a plugin offers that there, or another class has it. */
static void offer_as(const struct node *n, const char *name, int64_t milli, struct resource *rows, size_t *count)
{
	bool is_there = name == NULL || resources_get(n->own_allocatable, name) > 0;
	for (size_t i = 0; i < *count; i++)
		is_there = is_there || rows[i].name == name;
	if (!is_there && *count < DEVICE_ROWS_MOST)
		rows[(*count)++] = (struct resource){ name, milli };
}

static int64_t parts_of(const struct node *n, const char *driver)
{
	int64_t parts = 0;
	for (const struct device_slice *s = n->slices; s != NULL; s = s->next)
		parts += s->driver == driver && is_valid(s, n) ? s->parts : 0;
	return parts;
}

size_t device_slices_rows(const struct cluster *c, const struct node *n, struct resource rows[DEVICE_ROWS_MOST])
{
	size_t drivers = 0;
	for (const struct device_slice *s = n->slices; s != NULL; s = s->next)
		if (is_valid(s, n))
			add_to(rows, &drivers, s->driver, s->milli);
	size_t count = drivers;
	const struct device_class *k = NULL;
	for (size_t i = 0; drivers > 0 && (k = store_next(&c->device_classes, &i)) != NULL;)
		for (size_t d = 0; d < drivers; d++) {
			int64_t milli = k->counts ? rows[d].milli : parts_of(n, rows[d].name) * WHOLE;
			if (rows[d].name != k->driver || milli == 0)
				continue;
			offer_as(n, k->extended, milli, rows, &count);
			offer_as(n, k->implicit, milli, rows, &count);
		}
	return count;
}

bool device_slices_are_whole(const struct node *n)
{
	for (const struct device_slice *s = n->slices; s != NULL; s = s->next)
		if (s->has_barred)
			return false;
	return true;
}

/* --- classes --- */

/* The driver that an expression asks for, as the scratch arena keeps it: device.driver == "gpu.nvidia.com". */
static const char *driver_in(struct arena *a, const char *compact)
{
	static const char key[] = "device.driver=='";
	const char *from = strstr(compact, key);
	const char *end = from == NULL ? NULL : strchr(from + sizeof key - 1, '\'');
	return end == NULL ? NULL : arena_strdup(a, from + sizeof key - 1, (size_t)(end - from) - (sizeof key - 1));
}

/* Without blanks, and with quotes of one kind. */
static const char *compacted(struct arena *a, const char *expression)
{
	char *out = arena_alloc(a, strlen(expression) + 1, 1), *to = out;
	for (const char *at = expression; *at != '\0'; at++)
		if (strchr(" \t\r\n", *at) == NULL)
			*to++ = *at == '"' ? '\'' : *at;
	*to = '\0';
	return out;
}

/* Any of the driver's, or what NVIDIA's and AMD's own classes say of whole GPUs. */
static bool asks_for_whole(const char *compact, const char *driver)
{
	static const char *const types[] = { "gpu", "amdgpu" };
	CLEANUP(buf_release) struct buf text = { 0 };
	buf_printf(&text, "device.driver=='%s'", driver);
	bool is_whole = strcmp(compact, text.text) == 0;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		buf_clear(&text);
		buf_printf(&text, "device.driver=='%s'&&device.attributes['%s'].type=='%s'", driver, driver, types[i]);
		is_whole = is_whole || strcmp(compact, text.text) == 0;
	}
	return is_whole;
}

static const struct device_class *device_class_find(const struct cluster *c, const char *name)
{
	const struct device_class *k = NULL;
	for (size_t i = 0; (k = store_next(&c->device_classes, &i)) != NULL;)
		if (k->name == name)
			return k;
	return NULL;
}

/* The driver of a class, and whether its devices are GPUs one by one; a class that nobody shows us is taken to have its
 * driver's name. NULL without. */
static const char *driver_of(const struct cluster *c, const char *class, bool *counts)
{
	const struct device_class *k = device_class_find(c, class);
	*counts = k == NULL || k->counts;
	return k == NULL ? class : k->driver;
}

static void reweigh_users(struct cluster *c, const struct device_claim *k, millis at, bool is_listed);

static void class_release(struct cluster *c, struct device_class *k)
{
	intern_drop(&c->intern, k->name);
	intern_drop(&c->intern, k->driver);
	intern_drop(&c->intern, k->extended);
	intern_drop(&c->intern, k->implicit);
	free(k);
}

/* Requests, and does not claim, what a class offers or offered. */
static bool requests_devices(const struct pod *p)
{
	for (size_t i = 0; i < intern_count(p->shape->requests); i++) {
		const char *name = p->shape->requests->items[i].name;
		if (strchr(name, '/') != NULL ? !device_is_gpu(name) : device_is_driver(name))
			return true;
	}
	return false;
}

/* Of a class: what nodes offer by it, and what claims of it are. */
static void reweigh_all(struct cluster *c, millis at, bool is_listed)
{
	const struct device_slice *s = NULL;
	const struct device_claim *k = NULL;
	struct pod *p = NULL;
	c->generation++;
	for (size_t i = 0; (s = store_next(&c->device_slices, &i)) != NULL;)
		node_reweigh(c, s->node, at, is_listed);
	for (size_t i = 0; (k = store_next(&c->device_claims, &i)) != NULL;)
		reweigh_users(c, k, at, is_listed);
	for (size_t i = 0; (p = store_next(&c->pods, &i)) != NULL;)
		if (requests_devices(p))
			pod_reweigh(c, p, at, is_listed);
}

/* Whether it was of GPUs. */
static bool class_forget(struct cluster *c, struct object_uid uid)
{
	struct device_class *k = model_find_uid(&c->device_classes, uid);
	if (k == NULL)
		return false;
	bool is_of_gpus = k->driver != NULL && device_is_driver(k->driver);
	store_remove(&c->device_classes, k);
	class_release(c, k);
	return is_of_gpus;
}

void cluster_device_class_gone(struct cluster *c, struct object_uid uid, millis at)
{
	if (class_forget(c, uid))
		reweigh_all(c, at, false);
	arena_clear(&c->scratch);
}

bool cluster_device_class_seen(struct cluster *c, const struct device_class_record *r, const struct watch_seen *seen)
{
	const struct text_record *selectors = r->selectors.items;
	struct device_class *k = xcalloc(1, sizeof *k);
	bool was_of_gpus = class_forget(c, seen->uid);
	k->id = model_uid_key(seen->uid);
	k->name = intern_text(&c->intern, seen->name);
	k->is_whole = k->counts = r->selectors.count > 0;
	for (size_t i = 0; i < r->selectors.count; i++) {
		const char *compact = compacted(&c->scratch, selectors[i].text == NULL ? "" : selectors[i].text);
		const char *driver = driver_in(&c->scratch, compact);
		if (k->driver == NULL && driver != NULL)
			k->driver = intern_text(&c->intern, driver);
		k->is_whole = k->is_whole && driver != NULL && asks_for_whole(compact, driver);
		k->counts = k->counts && strstr(compact, "mig") == NULL; /* parts: how large, it does not say */
	}
	if (r->extended != NULL && r->extended[0] != '\0')
		k->extended = intern_text(&c->intern, r->extended);
	CLEANUP(buf_release) struct buf implicit = { 0 };
	buf_printf(&implicit, "deviceclass.resource.kubernetes.io/%s", seen->name);
	k->implicit = intern_text(&c->intern, implicit.text);
	store_add(&c->device_classes, k);
	if (was_of_gpus || (k->driver != NULL && device_is_driver(k->driver)))
		reweigh_all(c, seen->arrived, seen->is_from_list);
	arena_clear(&c->scratch);
	return true;
}

/* --- claims --- */

struct claim_name {
	const char *name_space, *name;
};

static bool is_named(const void *item, const void *key)
{
	const struct device_claim *k = item;
	const struct claim_name *n = key;
	return k->name == n->name && k->name_space == n->name_space;
}

static uint32_t name_hash(const struct claim_name *n)
{
	uintptr_t words[] = { (uintptr_t)n->name_space, (uintptr_t)n->name };
	return hash_bytes(0, words, sizeof words);
}

const struct device_claim *device_claim_find(const struct cluster *c, const char *name_space, const char *name)
{
	const struct claim_name key = { name_space, name };
	return store_find(&c->device_claim_names, name_hash(&key), is_named, &key);
}

bool device_claim_is_plain(const struct cluster *c, const struct device_claim *k)
{
	bool is_plain = k->is_plain;
	for (size_t i = 0; is_plain && i < intern_count(k->asked); i++) {
		const struct device_class *class = device_class_find(c, k->asked->items[i].name);
		const char *driver = class == NULL ? k->asked->items[i].name : class->driver;
		is_plain = (class == NULL || class->is_whole) && driver != NULL && device_is_driver(driver);
	}
	return is_plain;
}

/* The driver of a row, and whether its amount counts. */
static const char *row_driver(const struct cluster *c, const struct device_claim *k, size_t row, bool *counts)
{
	*counts = true;
	return k->is_allocated ? k->asked->items[row].name : driver_of(c, k->asked->items[row].name, counts);
}

bool device_claim_is_counted(const struct cluster *c, const struct device_claim *k)
{
	bool counts = k->is_counted;
	for (size_t i = 0; counts && i < intern_count(k->asked); i++)
		row_driver(c, k, i, &counts);
	return counts;
}

bool device_claim_has_drivers(const struct cluster *c, const struct device_claim *k, const struct resources *there)
{
	for (size_t i = 0; i < intern_count(k->asked); i++) {
		bool unused = false;
		const char *driver = row_driver(c, k, i, &unused);
		if (driver != NULL && device_is_driver(driver) && resources_get(there, driver) == 0)
			return false;
	}
	return true;
}

static const struct device_claim *claim_at(const struct cluster *c, const struct pod *p, size_t i)
{
	const struct claim *k = &p->shape->claims->items[i];
	return k->kind == CLAIM_DEVICE ? device_claim_find(c, p->namespace, k->name) : NULL;
}

bool device_claims_gpus(const struct cluster *c, const struct pod *p)
{
	for (size_t i = 0; i < intern_count(p->shape->claims); i++) {
		const struct device_claim *k = claim_at(c, p, i);
		for (size_t r = 0; k != NULL && r < intern_count(k->asked); r++) {
			bool unused = false;
			const char *driver = row_driver(c, k, r, &unused);
			if (driver != NULL && device_is_driver(driver))
				return true;
		}
	}
	return false;
}

const char *cluster_shared_gpu(const struct cluster *c, const struct pod *p)
{
	const struct device_claim *found = NULL;
	for (size_t i = 0; i < intern_count(p->shape->claims); i++) {
		const struct device_claim *k = claim_at(c, p, i);
		if (k == NULL || intern_count(k->asked) == 0)
			continue;
		if (found != NULL || !is_nobody(k->owner) || !k->is_allocated || intern_count(k->asked) > 1 ||
		    k->asked->items[0].milli != WHOLE)
			return NULL;
		found = k;
	}
	return found == NULL ? NULL : found->name;
}

static bool names(const struct pod *p, const struct device_claim *k)
{
	if (p->namespace != k->name_space)
		return false;
	for (size_t i = 0; i < intern_count(p->shape->claims); i++)
		if (p->shape->claims->items[i].kind == CLAIM_DEVICE && p->shape->claims->items[i].name == k->name)
			return true;
	return false;
}

uint64_t device_claims_mark(const struct cluster *c, const struct pod *p)
{
	struct pod_shape rest = *p->shape;
	rest.claims = NULL;
	uint64_t mark = fnv1a_bytes(FNV1A_START, &rest, sizeof rest);
	for (size_t i = 0; i < intern_count(p->shape->claims); i++) {
		const struct device_claim *k = claim_at(c, p, i);
		if (k != NULL && !is_nobody(k->owner))
			mark = fnv1a_bytes(mark, &k->spec, sizeof k->spec);
		else
			mark = fnv1a_bytes(mark, &p->shape->claims->items[i], sizeof p->shape->claims->items[i]);
	}
	return mark;
}

/* How many hold the claim with the pod, itself included; 0: the others hold it, and it needs nothing more. */
static int64_t sharers(const struct cluster *c, const struct device_claim *k, const struct pod *p)
{
	const struct object_uid own = { p->uid[0], p->uid[1] };
	int64_t others = 0;
	for (size_t i = 0; k->is_allocated && i < k->consumer_count; i++)
		if (is_uid(k->consumers[i], own))
			return (int64_t)k->consumer_count;
	if (k->is_allocated && k->consumer_count > 0)
		return 0;
	if (!is_nobody(k->owner))
		return 1;
	for (const struct pod *o = c->waiting; o != NULL; o = o->next)
		others += o != p && o->state == POD_UNSCHEDULED && names(o, k);
	return 1 + others;
}

/* What it requests of a class by a name that is no GPU's: the scheduler makes the claim itself. */
static void add_requested(const struct cluster *c, const struct resource *asked, struct resource *rows, size_t *count)
{
	const struct device_class *k = NULL;
	if (device_is_gpu(asked->name) || strchr(asked->name, '/') == NULL)
		return;
	for (size_t i = 0; (k = store_next(&c->device_classes, &i)) != NULL;)
		if ((asked->name == k->extended || asked->name == k->implicit) && k->driver != NULL &&
		    device_is_driver(k->driver)) {
			/* How large a part is, the class does not say: no smaller than one slice. */
			add_to(rows, count, k->driver, k->counts ? asked->milli : asked->milli / SLICES_OF_A_GPU);
			return;
		}
}

bool device_claims_unread(const struct cluster *c, const struct pod *p)
{
	for (size_t i = 0; i < intern_count(p->shape->claims); i++)
		if (p->shape->claims->items[i].kind != CLAIM_VOLUME && claim_at(c, p, i) == NULL)
			return true;
	return false;
}

size_t device_claims_rows(const struct cluster *c, const struct pod *p, struct resource rows[DEVICE_DRIVERS_MOST])
{
	size_t count = 0;
	for (size_t i = 0; i < intern_count(p->shape->requests); i++)
		add_requested(c, &p->shape->requests->items[i], rows, &count);
	for (size_t i = 0; i < intern_count(p->shape->claims); i++) {
		const struct device_claim *k = claim_at(c, p, i);
		int64_t by = k == NULL ? 0 : sharers(c, k, p);
		for (size_t r = 0; by > 0 && r < intern_count(k->asked); r++) {
			bool counts = false;
			const char *driver = row_driver(c, k, r, &counts);
			if (counts && driver != NULL && device_is_driver(driver))
				add_to(rows, &count, driver, k->asked->items[r].milli / by);
		}
	}
	return count;
}

/* Those that wait and name the claim, in the scratch arena. */
static struct pod **waiting_for(struct cluster *c, const struct device_claim *k, size_t *count)
{
	size_t room = 0;
	for (const struct pod *p = c->waiting; p != NULL; p = p->next)
		room += names(p, k);
	struct pod **pods = arena_array(&c->scratch, struct pod *, room + 1);
	*count = 0;
	for (struct pod *p = c->waiting; p != NULL; p = p->next)
		if (names(p, k))
			pods[(*count)++] = p;
	return pods;
}

static void reweigh_waiting(struct cluster *c, const struct device_claim *k, millis at, bool is_listed)
{
	size_t count = 0;
	struct pod **pods = waiting_for(c, k, &count);
	for (size_t i = 0; i < count; i++)
		pod_reweigh(c, pods[i], at, is_listed);
}

static void reweigh_users(struct cluster *c, const struct device_claim *k, millis at, bool is_listed)
{
	struct pod *owner = is_nobody(k->owner) ? NULL : pod_find(c, k->owner);
	if (owner != NULL)
		pod_reweigh(c, owner, at, is_listed);
	for (size_t i = 0; i < k->consumer_count; i++) {
		struct pod *p = pod_find(c, k->consumers[i]);
		if (p != NULL && p != owner)
			pod_reweigh(c, p, at, is_listed);
	}
	if (is_nobody(k->owner))
		reweigh_waiting(c, k, at, is_listed);
}

void device_claims_shared(struct cluster *c, const struct pod *p, millis at)
{
	for (size_t i = 0; i < intern_count(p->shape->claims); i++) {
		const struct device_claim *k = claim_at(c, p, i);
		if (k == NULL || k->is_allocated || !is_nobody(k->owner))
			continue;
		size_t count = 0;
		struct pod **pods = waiting_for(c, k, &count);
		for (size_t w = 0; w < count; w++)
			if (pods[w] != p)
				pod_reweigh(c, pods[w], at, false);
	}
}

static int64_t count_of(const struct device_request_record *q)
{
	return q->count < 1 ? 1 : q->count > COUNT_MOST ? COUNT_MOST : q->count;
}

/* Rows by class, each with what is surely asked for: 0 for all that there are. Admin access takes no device. */
static void ask_for(struct cluster *c, const struct device_request_record *q, struct resource *rows, size_t *count)
{
	bool is_all = is_text(q->mode, "All");
	const char *class = intern_text(&c->intern, q->class);
	size_t row = 0;
	while (row < *count && rows[row].name != class)
		row++;
	if (row < *count || row == DEVICE_DRIVERS_MOST)
		intern_drop(&c->intern, class); /* the row holds it */
	if (row == DEVICE_DRIVERS_MOST)
		return;
	if (row == *count)
		rows[(*count)++] = (struct resource){ class, 0 };
	rows[row].milli += is_all ? 0 : count_of(q) * WHOLE;
}

/* What the scheduler would be content with: the alternative of the fewest devices. */
static const struct device_request_record *least_of(const struct decoded_list *alternatives)
{
	const struct device_request_record *items = alternatives->items, *least = items;
	for (size_t i = 1; i < alternatives->count; i++)
		if (items[i].class != NULL && count_of(&items[i]) < count_of(least))
			least = &items[i];
	return least;
}

static size_t read_requests(struct cluster *c, struct device_claim *k, const struct resource_claim_record *r,
			    struct resource *rows)
{
	const struct device_request_record *requests = r->requests.items;
	size_t count = 0;
	k->is_plain = k->is_counted = r->constraints.count == 0;
	for (size_t i = 0; i < r->requests.count; i++) {
		const struct device_request_record *q = &requests[i];
		if (q->is_for_admin)
			continue;
		k->is_plain = k->is_plain && q->selectors.count == 0 && q->alternatives.count == 0;
		if (q->class == NULL && q->alternatives.count > 0)
			q = least_of(&q->alternatives);
		if (q->class == NULL)
			continue;
		k->is_counted = k->is_counted && !is_text(q->mode, "All");
		k->is_plain = k->is_plain && k->is_counted;
		ask_for(c, q, rows, &count);
	}
	return count;
}

/* Rows by driver. */
static size_t read_results(struct cluster *c, const struct resource_claim_record *r, struct resource *rows)
{
	const struct device_result_record *results = r->results.items;
	size_t count = 0;
	for (size_t i = 0; i < r->results.count; i++) {
		if (results[i].is_for_admin || results[i].driver == NULL || !device_is_driver(results[i].driver))
			continue;
		const char *part = results[i].device == NULL ? NULL : strstr(results[i].device, part_mark);
		const char *driver = intern_text(&c->intern, results[i].driver);
		size_t before = count;
		add_to(rows, &count, driver, part == NULL ? WHOLE : mig_milli(part + sizeof part_mark - 1));
		if (count == before)
			intern_drop(&c->intern, driver);
	}
	return count;
}

static void read_claim(struct cluster *c, struct device_claim *k, const struct resource_claim_record *r)
{
	struct resource rows[DEVICE_DRIVERS_MOST];
	const struct owner_record *consumers = r->consumers.items;
	k->owner = owner_of(&r->owners, "Pod");
	k->spec = fnv1a_bytes(FNV1A_START, r->asks.text, r->asks.len);
	k->nodes = model_requirements(c, &r->terms, NULL);
	k->is_allocated = r->results.count > 0 || r->terms.count > 0;
	size_t count = k->is_allocated ? read_results(c, r, rows) : read_requests(c, k, r, rows);
	k->asked = intern_rows(&c->intern, INTERN_RESOURCES, rows, count);
	for (size_t i = 0; i < count; i++)
		intern_drop(&c->intern, rows[i].name);
	k->consumers = xcalloc(r->consumers.count + 1, sizeof *k->consumers);
	for (size_t i = 0; i < r->consumers.count; i++)
		if (consumers[i].uid != NULL)
			k->consumers[k->consumer_count++] = object_uid_of(consumers[i].uid);
}

static void claim_release(struct cluster *c, struct device_claim *k)
{
	intern_drop(&c->intern, k->name_space);
	intern_drop(&c->intern, k->name);
	intern_drop(&c->intern, k->nodes);
	intern_drop(&c->intern, k->asked);
	free(k->consumers);
	free(k);
}

static void claim_unlink(struct cluster *c, struct device_claim *k)
{
	store_remove(&c->device_claims, k);
	store_remove(&c->device_claim_names, k);
	c->generation++;
}

void cluster_device_claim_gone(struct cluster *c, struct object_uid uid, millis at)
{
	struct device_claim *k = model_find_uid(&c->device_claims, uid);
	if (k == NULL)
		return;
	claim_unlink(c, k);
	reweigh_users(c, k, at, false);
	claim_release(c, k);
	arena_clear(&c->scratch);
}

static bool is_same_claim(const struct device_claim *a, const struct device_claim *b)
{
	return a->name == b->name && a->name_space == b->name_space && a->nodes == b->nodes && a->asked == b->asked &&
	       a->is_allocated == b->is_allocated && a->is_plain == b->is_plain && a->is_counted == b->is_counted &&
	       is_uid(a->owner, b->owner) && a->consumer_count == b->consumer_count &&
	       memcmp(a->consumers, b->consumers, a->consumer_count * sizeof *a->consumers) == 0;
}

bool cluster_device_claim_seen(struct cluster *c, const struct resource_claim_record *r, const struct watch_seen *seen)
{
	struct device_claim *old = model_find_uid(&c->device_claims, seen->uid), *k = xcalloc(1, sizeof *k);
	k->id = model_uid_key(seen->uid);
	k->name_space = intern_text(&c->intern, seen->name_space == NULL ? "" : seen->name_space);
	k->name = intern_text(&c->intern, seen->name);
	k->name_hash = name_hash(&(struct claim_name){ k->name_space, k->name });
	read_claim(c, k, r);
	bool is_same = old != NULL && is_same_claim(old, k);
	if (old != NULL)
		claim_unlink(c, old);
	store_add(&c->device_claims, k);
	store_add(&c->device_claim_names, k);
	c->generation++;
	if (is_same) {
		claim_release(c, old);
		arena_clear(&c->scratch);
		return true;
	}
	if (old != NULL) { /* for whom it is reserved no more */
		reweigh_users(c, old, seen->arrived, seen->is_from_list);
		claim_release(c, old);
	}
	reweigh_users(c, k, seen->arrived, seen->is_from_list);
	arena_clear(&c->scratch);
	return true;
}

void cluster_devices_release(struct cluster *c)
{
	struct device_slice *s = NULL;
	struct device_class *d = NULL;
	struct device_claim *k = NULL;
	for (size_t i = 0; (s = store_next(&c->device_slices, &i)) != NULL;)
		slice_release(c, s);
	for (size_t i = 0; (d = store_next(&c->device_classes, &i)) != NULL;)
		class_release(c, d);
	for (size_t i = 0; (k = store_next(&c->device_claims, &i)) != NULL;)
		claim_release(c, k);
	store_release(&c->device_slices);
	store_release(&c->device_classes);
	store_release(&c->device_claims);
	store_release(&c->device_claim_names);
}
