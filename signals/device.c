#include "signals/device.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"
#include "signals/pool_reading.h"

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
	struct device_list *l = xcalloc(1, sizeof *l);

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
	l->entries = xgrow(l->entries, l->count, &l->room, sizeof *l->entries);
	l->entries[l->count] = (struct entry){ 0 };
	for (int q = 0; q < DEVICE_QUANTITY_COUNT; q++)
		l->entries[l->count].device.value[q] = DEVICE_UNKNOWN;
	return &l->entries[l->count++];
}

bool device_list_take(struct device_list *l, const char *name, struct exposition_slice value, device_label_fn *label,
		      const void *of, struct error *e)
{
	const struct device_metric *m = metrics;
	char shown[QUOTE_ROOM];
	int64_t thousandths;

	while (m < metrics + METRICS && strcmp(m->name, name) != 0)
		m++;
	if (m == metrics + METRICS)
		return true;
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
		bool is_better = to->value[q] == DEVICE_UNKNOWN || from->rank[q] < rank[q];
		if (from->device.value[q] == DEVICE_UNKNOWN || !is_better)
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
	l->shown = xcalloc(l->count + 1, sizeof *l->shown);
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

static int64_t or_zero(int64_t value)
{
	return value == DEVICE_UNKNOWN ? 0 : value;
}

/* What a further replica of the pool could take of one node: free GPUs that are large enough, in whole replicas. */
struct room {
	int64_t fitting, memory_mib;
};

static int64_t end_node(struct room *r, int64_t gpus_per_replica)
{
	int64_t taken = r->fitting - r->fitting % gpus_per_replica;
	int64_t usable = r->fitting ? r->memory_mib * taken / r->fitting : 0;

	*r = (struct room){ 0 };
	return usable;
}

static int64_t largest_replica(struct devices d, const struct device_question *q)
{
	int64_t largest = DEVICE_UNKNOWN;

	for (size_t i = 0; i < d.count; i++)
		if (*d.items[i].pod && q->is_replica(q->user, d.items[i].namespace, d.items[i].pod) &&
		    d.items[i].value[DEVICE_MEMORY_USED] > largest)
			largest = d.items[i].value[DEVICE_MEMORY_USED];
	return largest;
}

static void add(struct device_sums *s, const struct device *g, int64_t *use, int64_t *told)
{
	int64_t xid = or_zero(g->value[DEVICE_XID]);

	s->devices++;
	s->held += *g->pod != '\0';
	s->memory_used_mib += or_zero(g->value[DEVICE_MEMORY_USED]);
	s->memory_free_mib += or_zero(g->value[DEVICE_MEMORY_FREE]);
	s->power_mw += or_zero(g->value[DEVICE_POWER]);
	s->failing += xid != 0;
	s->last_xid = xid ? xid : s->last_xid;
	if (*g->pod && g->value[DEVICE_USE] != DEVICE_UNKNOWN) {
		*use += g->value[DEVICE_USE];
		++*told;
	}
}

struct device_sums device_sum(struct devices d, const struct device_question *q)
{
	struct device_sums s = { .use_permille = DEVICE_UNKNOWN,
				 .replica_mib = largest_replica(d, q),
				 .stranded_permille = DEVICE_UNKNOWN };
	struct room room = { 0 };
	int64_t use = 0, told = 0, usable = 0;
	const char *node = "";

	for (size_t i = 0; i < d.count; i++) {
		const struct device *g = &d.items[i];
		if (strcmp(node, g->node) != 0)
			usable += end_node(&room, q->gpus_per_replica);
		node = g->node;
		if (!q->is_pools_node(q->user, g->node))
			continue;
		add(&s, g, &use, &told);
		if (!*g->pod && s.replica_mib != DEVICE_UNKNOWN &&
		    or_zero(g->value[DEVICE_MEMORY_FREE]) >= s.replica_mib) {
			room.fitting++;
			room.memory_mib += g->value[DEVICE_MEMORY_FREE];
		}
	}
	usable += end_node(&room, q->gpus_per_replica);
	if (told)
		s.use_permille = use / told;
	if (s.replica_mib != DEVICE_UNKNOWN && s.memory_free_mib > 0)
		s.stranded_permille = (s.memory_free_mib - usable) * 1000 / s.memory_free_mib;
	return s;
}

static const size_t MOST_BYTES = (size_t)128 << 20;

struct device_source {
	struct loop *loop;
	const struct clock *clock;
	struct prometheus *prometheus;
	struct prometheus_call call;
	struct buf query;
	millis interval, requested_at, read_at; /* clock_mono() */
	bool is_requested, is_closed;
	struct timer timer;
	struct device_list *list, *next;
	struct devices shown;
	struct error trouble, refusal;
};

static void free_source(struct device_source *s)
{
	timer_stop(&s->timer);
	prometheus_close(s->prometheus);
	device_list_free(s->list);
	device_list_free(s->next);
	buf_release(&s->query);
	free(s);
}

static void on_timer(struct timer *t);

static const char *series_label(const void *of, const char *name)
{
	return prometheus_label(of, name);
}

/* A GPU that lies does not hide the others. */
static bool on_series(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct device_source *s = user;
	const char *name = sample->series ? prometheus_label(sample->series, "__name__") : NULL;
	struct error refusal;

	(void)e;
	if (name && !device_list_take(s->next, name, sample->value, series_label, sample->series, &refusal))
		s->refusal = refusal;
	return true;
}

static void on_done(struct prometheus_call *c)
{
	struct device_source *s = c->user;

	s->is_requested = false;
	if (s->is_closed) {
		free_source(s);
		return;
	}
	s->trouble = c->error.kind != ERROR_NONE ? c->error : s->refusal;
	if (c->error.kind == ERROR_NONE) {
		device_list_free(s->list);
		s->list = s->next;
		s->next = NULL;
		s->shown = device_list_show(s->list);
		s->read_at = clock_mono(s->clock);
		if (!s->shown.count)
			error_set(&s->trouble, ERROR_NOT_FOUND,
				  "%s: no series of DCGM_FI_DEV_GPU_UTIL; does it read DCGM "
				  "exporters, and are the labels right?",
				  prometheus_url(s->prometheus));
	}
	millis next = s->requested_at + s->interval, now = clock_mono(s->clock);
	timer_start(s->loop, &s->timer, clock_real(s->clock, next > now ? next - now : 0), on_timer);
}

static void on_timer(struct timer *t)
{
	struct device_source *s = t->user;
	millis timeout = clock_real(s->clock, s->interval) / 2;

	s->is_requested = true;
	s->requested_at = clock_mono(s->clock);
	device_list_free(s->next);
	s->next = device_list_new();
	s->refusal = (struct error){ 0 };
	s->call.timeout = timeout > SECOND ? timeout : SECOND;
	prometheus_start(s->prometheus, &s->call);
}

static void write_query(const struct device_source_settings *settings, struct buf *out)
{
	buf_text(out, "{__name__=~\"");
	for (size_t i = 0; i < METRICS; i++)
		buf_printf(out, "%s%s", i ? "|" : "", metrics[i].name);
	buf_text(out, "\"");
	for (size_t i = 0; i < settings->label_count; i++) {
		buf_printf(out, ",%s=", settings->labels[i].name);
		promql_text(settings->labels[i].value, out);
	}
	buf_text(out, "}");
}

struct device_source *device_source_open(struct loop *loop, struct http *http, const struct clock *clock,
					 const struct device_source_settings *settings)
{
	struct device_source *s = xcalloc(1, sizeof *s);

	s->loop = loop;
	s->clock = clock;
	s->interval = settings->interval;
	s->prometheus = prometheus_open(loop, http, settings->url, &settings->reach);
	write_query(settings, &s->query);
	s->call = (struct prometheus_call){ .query = s->query.text,
					    .most_samples = (size_t)DEVICES_MOST * METRICS,
					    .most_bytes = MOST_BYTES,
					    .on_sample = on_series,
					    .done = on_done,
					    .user = s };
	s->timer.user = s;
	timer_start(loop, &s->timer, 0, on_timer);
	return s;
}

void device_source_close(struct device_source *s)
{
	if (!s)
		return;
	s->is_closed = true;
	timer_stop(&s->timer);
	if (s->is_requested)
		prometheus_cancel(&s->call);
	else
		free_source(s);
}

struct devices device_source_show(const struct device_source *s)
{
	bool is_recent = s->list && clock_mono(s->clock) - s->read_at <= READING_GAP * s->interval;

	return is_recent ? s->shown : (struct devices){ 0 };
}

const struct error *device_source_trouble(const struct device_source *s)
{
	return &s->trouble;
}
