#include "signals/device.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct device_metric {
	const char *name;
	enum device_quantity quantity;
	int rank;
	int64_t divisor;
};

#define DEVICE(quantity_, rank_, name_, divisor_) { name_, DEVICE_##quantity_, rank_, divisor_ },
static const struct device_metric metrics[] = {
#include "signals/devices/dcgm.def"
};
#undef DEVICE
enum { METRICS = sizeof metrics / sizeof *metrics };

#define DEVICE(quantity_, rank_, name_, divisor_) name_,
static const char *const names[METRICS] = {
#include "signals/devices/dcgm.def"
};
#undef DEVICE

/* Beyond any machine. */
static const int64_t most[DEVICE_QUANTITY_COUNT] = { 1000, 1 << 24, 1 << 24, 100000000, 1000000 };

/* One sample; show() makes one of those of one device. */
struct entry {
	struct device device; /* first; only one value of it is told */
	int rank[DEVICE_QUANTITY_COUNT];
};

struct device_list {
	struct arena arena;
	struct entry *entries;
	size_t count, room;
	struct device *shown;
};

struct device_list *device_list_new(void)
{
	struct device_list *l = calloc(1, sizeof *l);

	if (!l)
		abort();
	return l;
}

void device_list_free(struct device_list *l)
{
	if (!l)
		return;
	arena_release(&l->arena);
	free(l->entries);
	free(l->shown);
	free(l);
}

struct exposition_names device_names(void)
{
	return (struct exposition_names){ names, METRICS };
}

static const char *first_label(const char *const *of_names, device_label_fn *label, const void *of)
{
	for (; *of_names; of_names++) {
		const char *value = label(of, *of_names);
		if (value && *value)
			return value;
	}
	return "";
}

static const char *keep(struct device_list *l, const char *text)
{
	return arena_strdup(&l->arena, text, strlen(text));
}

/* Where Prometheus put the exporter's own pod in place of the holder's, the holder's is the exported one. */
static void take_holder(struct device_list *l, struct device *d, device_label_fn *label, const void *of)
{
	static const char *const pods[] = { "exported_pod", "pod", NULL };
	const char *pod = first_label(pods, label, of), *exported = label(of, "exported_pod");
	const char *namespace = label(of, exported && *exported ? "exported_namespace" : "namespace");
	bool is_exporter = !(exported && *exported) && strstr(pod, "dcgm");

	d->pod = is_exporter ? "" : keep(l, pod);
	d->namespace = *d->pod && namespace ? keep(l, namespace) : "";
}

/* The exporter renamed its host. */
static void take_place(struct device_list *l, struct device *d, device_label_fn *label, const void *of)
{
	static const char *const nodes[] = { "Hostname", "hostname", "node", "kubernetes_node", "instance", NULL };
	static const char *const ids[] = { "UUID", "uuid", "gpu", "device", NULL };
	static const char *const slices[] = { "GPU_I_ID", NULL };
	CLEANUP(buf_release) struct buf id = { 0 };
	const char *slice = first_label(slices, label, of);

	d->node = keep(l, first_label(nodes, label, of));
	buf_printf(&id, "%s%s%s", first_label(ids, label, of), *slice ? "/" : "", slice);
	d->id = keep(l, id.text);
}

static struct entry *push(struct device_list *l)
{
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->entries = realloc(l->entries, l->room * sizeof *l->entries);
		if (!l->entries)
			abort();
	}
	l->entries[l->count] = (struct entry){ 0 };
	for (int q = 0; q < DEVICE_QUANTITY_COUNT; q++)
		l->entries[l->count].device.value[q] = DEVICE_NOT_TOLD;
	return &l->entries[l->count++];
}

bool device_list_take(struct device_list *l, size_t name, struct exposition_slice value, device_label_fn *label,
		      const void *of, struct error *e)
{
	const struct device_metric *m = &metrics[name];
	char shown[QUOTE_ROOM];
	int64_t thousandths;

	if (l->count >= (size_t)DEVICES_MOST * METRICS)
		return error_set(e, ERROR_INVALID, "more than %d GPUs", DEVICES_MOST);
	if (exposition_value(value, 3, &thousandths) != EXPOSITION_NUMBER ||
	    thousandths / m->divisor > most[m->quantity])
		return error_set(e, ERROR_INVALID, "%s: the value %s cannot be", m->name,
				 quote(shown, value.text, value.len));
	struct entry *entry = push(l);
	take_place(l, &entry->device, label, of);
	take_holder(l, &entry->device, label, of);
	entry->device.value[m->quantity] = thousandths / m->divisor;
	entry->rank[m->quantity] = m->rank;
	return true;
}

static int by_place(const void *left, const void *right)
{
	const struct device *a = left, *b = right;
	int order = strcmp(a->node, b->node);

	return order ? order : strcmp(a->id, b->id);
}

static void merge(struct device *to, int rank[DEVICE_QUANTITY_COUNT], const struct entry *from)
{
	for (int q = 0; q < DEVICE_QUANTITY_COUNT; q++) {
		bool is_better = to->value[q] == DEVICE_NOT_TOLD || from->rank[q] < rank[q];
		if (from->device.value[q] == DEVICE_NOT_TOLD || !is_better)
			continue;
		to->value[q] = from->device.value[q];
		rank[q] = from->rank[q];
	}
	if (!*to->pod) {
		to->pod = from->device.pod;
		to->namespace = from->device.namespace;
	}
}

struct devices device_list_show(struct device_list *l)
{
	size_t n = 0;
	int rank[DEVICE_QUANTITY_COUNT] = { 0 };

	free(l->shown);
	l->shown = calloc(l->count + 1, sizeof *l->shown);
	if (!l->shown)
		abort();
	if (l->count)
		qsort(l->entries, l->count, sizeof *l->entries, by_place);
	for (size_t i = 0; i < l->count; i++) {
		if (i == 0 || by_place(&l->entries[i - 1], &l->entries[i])) {
			l->shown[n++] = l->entries[i].device;
			memcpy(rank, l->entries[i].rank, sizeof rank);
		}
		merge(&l->shown[n - 1], rank, &l->entries[i]);
	}
	return (struct devices){ l->shown, n };
}

struct page_read {
	struct device_list *list;
	char room[8][256];
	size_t used;
	const struct exposition_sample *sample;
};

/* Labels as written: what is escaped in a name of a pod or node is none. */
static const char *label_of(const void *of, const char *name)
{
	struct page_read *p = (struct page_read *)(uintptr_t)of;
	struct exposition_slice value;
	char *room = p->room[p->used++ % 8];

	if (!exposition_label(p->sample, name, &value) || value.len >= sizeof p->room[0])
		return NULL;
	memcpy(room, value.text, value.len);
	room[value.len] = '\0';
	return room;
}

static bool on_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	struct page_read *p = user;

	p->sample = s;
	return device_list_take(p->list, s->name, s->value, label_of, p, e);
}

bool device_page_read(const char *text, size_t len, struct device_list *l, struct error *e)
{
	struct page_read p = { .list = l };
	struct exposition *x = exposition_open(device_names(), (size_t)DEVICES_MOST * METRICS, on_sample, &p);
	bool ok = exposition_feed(x, text, len, e) && exposition_finish(x, e);

	exposition_close(x);
	return ok;
}
