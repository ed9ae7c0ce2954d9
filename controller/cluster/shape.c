/* What a pod asks of a node: requests as the scheduler adds them up, where it may run, and beside whom. */
#include "base/quantity.h"
#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIM_NAME_SIZE = 520 };

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static bool is_text(const char *text, const char *wanted)
{
	return text != NULL && strcmp(text, wanted) == 0;
}

struct sum {
	struct resource rows[64];
	size_t count;
};

static int64_t *row_of(struct sum *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->rows[i].name, name) == 0)
			return &s->rows[i].milli;
	if (s->count == sizeof s->rows / sizeof s->rows[0])
		return NULL;
	s->rows[s->count] = (struct resource){ name, 0 };
	return &s->rows[s->count++].milli;
}

static void add(struct sum *s, const struct sum *more)
{
	for (size_t i = 0; i < more->count; i++) {
		int64_t *row = row_of(s, more->rows[i].name);
		if (row != NULL)
			*row = plus(*row, more->rows[i].milli);
	}
}

static void raise_to(struct sum *s, const struct sum *least)
{
	for (size_t i = 0; i < least->count; i++) {
		int64_t *row = row_of(s, least->rows[i].name);
		if (row != NULL && *row < least->rows[i].milli)
			*row = least->rows[i].milli;
	}
}

/* Requests, and limits where nothing is requested. */
static struct sum asked(struct cluster *c, const struct decoded_map *requests, const struct decoded_map *limits)
{
	struct sum s = { .count = 0 };
	size_t count = 0;
	const struct resource *rows = model_amounts(c, requests, &count);
	for (size_t i = 0; i < count; i++) {
		int64_t *row = row_of(&s, rows[i].name);
		if (row != NULL)
			*row = rows[i].milli;
	}
	rows = model_amounts(c, limits, &count);
	for (size_t i = 0; i < count; i++) {
		if (decoded_get(requests, rows[i].name) != NULL)
			continue;
		int64_t *row = row_of(&s, rows[i].name);
		if (row != NULL)
			*row = rows[i].milli;
	}
	return s;
}

/* An init container that keeps running beside the others. */
static bool stays(const struct container_record *init)
{
	return is_text(init->restart_policy, "Always");
}

/*
 * All containers run at once. Init containers run one after the other before them, each beside those that came before
 * it and keep running (restartPolicy Always).
 */
static struct sum requests_of(struct cluster *c, const struct pod_record *r)
{
	struct sum all = { .count = 0 }, staying = { .count = 0 }, most = { .count = 0 };
	const struct container_record *containers = r->containers.items;
	for (size_t i = 0; i < r->containers.count; i++) {
		struct sum one = asked(c, &containers[i].requests, &containers[i].limits);
		add(&all, &one);
	}
	const struct container_record *inits = r->init_containers.items;
	for (size_t i = 0; i < r->init_containers.count; i++) {
		struct sum one = asked(c, &inits[i].requests, &inits[i].limits);
		if (stays(&inits[i])) {
			add(&staying, &one);
			add(&all, &one);
			one = staying;
		} else {
			add(&one, &staying);
		}
		raise_to(&most, &one);
	}
	raise_to(&all, &most);
	/* What is asked for the pod as a whole takes the place of the sum. */
	struct sum whole = asked(c, &r->requests, &r->limits);
	for (size_t i = 0; i < whole.count; i++) {
		int64_t *row = row_of(&all, whole.rows[i].name);
		if (row != NULL)
			*row = whole.rows[i].milli;
	}
	struct decoded_map none = { NULL, 0 };
	struct sum overhead = asked(c, &r->overhead, &none);
	add(&all, &overhead);
	return all;
}

/* --- host ports --- */

static void add_ports(struct cluster *c, struct host_port *rows, size_t *count, const struct container_record *of)
{
	const struct port_record *from = of->ports.items;
	for (size_t i = 0; i < of->ports.count; i++) {
		if (from[i].port <= 0)
			continue;
		bool is_any = from[i].ip == NULL || from[i].ip[0] == '\0' || strcmp(from[i].ip, "0.0.0.0") == 0;
		rows[(*count)++] = (struct host_port){
			.ip = is_any ? NULL : intern_text(&c->intern, from[i].ip),
			.protocol = intern_text(&c->intern, from[i].protocol == NULL ? "TCP" : from[i].protocol),
			.port = from[i].port,
		};
	}
}

static const struct host_port_set *ports_of(struct cluster *c, const struct pod_record *r)
{
	const struct container_record *containers = r->containers.items, *inits = r->init_containers.items;
	size_t room = 0, count = 0;
	for (size_t i = 0; i < r->containers.count; i++)
		room += containers[i].ports.count;
	for (size_t i = 0; i < r->init_containers.count; i++)
		room += inits[i].ports.count;
	struct host_port *rows = arena_array(&c->scratch, struct host_port, room);
	for (size_t i = 0; i < r->containers.count; i++)
		add_ports(c, rows, &count, &containers[i]);
	for (size_t i = 0; i < r->init_containers.count; i++)
		if (stays(&inits[i]))
			add_ports(c, rows, &count, &inits[i]);
	const void *set = intern_rows(&c->intern, INTERN_PORTS, rows, count);
	for (size_t i = 0; i < count; i++) {
		intern_drop(&c->intern, rows[i].ip);
		intern_drop(&c->intern, rows[i].protocol);
	}
	return set;
}

/* --- beside whom, and how evenly --- */

/* False: there is none, which selects nothing; an empty one selects all. */
static bool read_selector(struct cluster *c, const struct decoded_text *text, struct selector_record *out)
{
	struct error e = { 0 };
	*out = (struct selector_record){ 0 };
	if (text->text == NULL || (text->len == 4 && memcmp(text->text, "null", 4) == 0))
		return false;
	return decode_record(c->selector_plan, text->text, text->len, &c->scratch, out, &e);
}

static const struct name_set *names_of(struct cluster *c, const struct decoded_list *texts)
{
	const struct text_record *from = texts->items;
	struct name *rows = arena_array(&c->scratch, struct name, texts->count);
	for (size_t i = 0; i < texts->count; i++)
		rows[i].text = intern_text(&c->intern, from[i].text == NULL ? "" : from[i].text);
	const void *set = intern_rows(&c->intern, INTERN_NAMES, rows, texts->count);
	for (size_t i = 0; i < texts->count; i++)
		intern_drop(&c->intern, rows[i].text);
	return set;
}

static const struct pod_term_set *terms_of(struct cluster *c, const struct decoded_list *terms)
{
	const struct pod_term_record *from = terms->items;
	struct pod_term *rows = arena_array(&c->scratch, struct pod_term, terms->count);
	for (size_t i = 0; i < terms->count; i++) {
		struct selector_record pods, spaces;
		bool selects = read_selector(c, &from[i].selector, &pods);
		bool by_labels = read_selector(c, &from[i].of_namespaces, &spaces);
		rows[i] = (struct pod_term){
			.topology = intern_text(&c->intern, from[i].topology == NULL ? "" : from[i].topology),
			.selector = model_selector(c, &pods.labels, &pods.expressions),
			.namespaces = names_of(c, &from[i].namespaces),
			.of_namespaces = model_selector(c, &spaces.labels, &spaces.expressions),
			.flags = (selects ? 0 : TERM_SELECTS_NOTHING) | (by_labels ? TERM_SELECTS_NAMESPACES : 0) |
				 (!by_labels && from[i].namespaces.count == 0 ? TERM_IN_OWN_NAMESPACE : 0),
		};
	}
	const void *set = intern_rows(&c->intern, INTERN_POD_TERMS, rows, terms->count);
	for (size_t i = 0; i < terms->count; i++) {
		intern_drop(&c->intern, rows[i].topology);
		intern_drop(&c->intern, rows[i].selector);
		intern_drop(&c->intern, rows[i].namespaces);
		intern_drop(&c->intern, rows[i].of_namespaces);
	}
	return set;
}

/* matchLabelKeys: the pod's own values of these labels are selected by, too. */
static void add_own_labels(struct cluster *c, const struct pod_record *r, const struct spread_record *from,
			   struct selector_record *selector)
{
	const struct text_record *keys = from->keys.items;
	struct decoded_pair *pairs =
		arena_array(&c->scratch, struct decoded_pair, selector->labels.count + from->keys.count);
	size_t count = 0;
	for (; count < selector->labels.count; count++)
		pairs[count] = selector->labels.pairs[count];
	for (size_t i = 0; i < from->keys.count; i++) {
		const char *value = keys[i].text == NULL ? NULL : decoded_get(&r->labels, keys[i].text);
		if (value != NULL)
			pairs[count++] = (struct decoded_pair){ keys[i].text, value };
	}
	selector->labels = (struct decoded_map){ pairs, count };
}

static const struct spread_set *spreads_of(struct cluster *c, const struct pod_record *r)
{
	const struct spread_record *from = r->spreads.items;
	struct spread *rows = arena_array(&c->scratch, struct spread, r->spreads.count);
	size_t count = 0;
	for (size_t i = 0; i < r->spreads.count; i++) {
		struct selector_record pods;
		if (!is_text(from[i].otherwise, "DoNotSchedule"))
			continue;
		bool selects = read_selector(c, &from[i].selector, &pods);
		add_own_labels(c, r, &from[i], &pods);
		rows[count++] = (struct spread){
			.topology = intern_text(&c->intern, from[i].topology == NULL ? "" : from[i].topology),
			.selector = model_selector(c, &pods.labels, &pods.expressions),
			.max_skew = from[i].max_skew,
			.min_domains = from[i].min_domains < 1 ? 1 : from[i].min_domains,
			.flags = (selects ? 0 : SPREAD_SELECTS_NOTHING) |
				 (is_text(from[i].node_affinity, "Ignore") ? SPREAD_OVER_ALL_NODES : 0) |
				 (is_text(from[i].node_taints, "Honor") ? SPREAD_HONORS_TAINTS : 0),
		};
	}
	const void *set = intern_rows(&c->intern, INTERN_SPREADS, rows, count);
	for (size_t i = 0; i < count; i++) {
		intern_drop(&c->intern, rows[i].topology);
		intern_drop(&c->intern, rows[i].selector);
	}
	return set;
}

/* --- what must be there first --- */

static const char *made_claim(const struct pod_record *r, const char *name)
{
	const struct device_claim_record *made = r->made_claims.items;
	for (size_t i = 0; i < r->made_claims.count; i++)
		if (name != NULL && is_text(made[i].name, name))
			return made[i].claim == NULL ? "" : made[i].claim; /* "": none is needed */
	return NULL;
}

/* Volumes matter while it waits only; devices are held. */
static const struct claim_set *claims_of(struct cluster *c, const struct pod_record *r, const char *pod, bool waits)
{
	const struct volume_record *volumes = r->volumes.items;
	const struct device_claim_record *devices = r->claims.items;
	struct claim *rows = arena_array(&c->scratch, struct claim, r->volumes.count + r->claims.count);
	size_t count = 0;
	for (size_t i = 0; waits && i < r->volumes.count; i++) {
		char own[CLAIM_NAME_SIZE];
		const char *name = volumes[i].claim;
		if (name == NULL && volumes[i].ephemeral.text == NULL)
			continue;
		snprintf(own, sizeof own, "%.250s-%.250s", pod, volumes[i].name == NULL ? "" : volumes[i].name);
		rows[count++] = (struct claim){ intern_text(&c->intern, name == NULL ? own : name), CLAIM_VOLUME };
	}
	for (size_t i = 0; i < r->claims.count; i++) {
		const char *made = made_claim(r, devices[i].name);
		const char *name = made != NULL ? made : devices[i].claim;
		if (made != NULL && made[0] == '\0')
			continue;
		const char *told = name != NULL ? name : devices[i].name == NULL ? "" : devices[i].name;
		rows[count++] = (struct claim){ intern_text(&c->intern, told),
						name == NULL ? CLAIM_DEVICE_TO_COME : CLAIM_DEVICE };
	}
	const void *set = intern_rows(&c->intern, INTERN_CLAIMS, rows, count);
	for (size_t i = 0; i < count; i++)
		intern_drop(&c->intern, rows[i].name);
	return set;
}

static bool is_usual(const struct pod_record *r)
{
	return r->scheduler == NULL || r->scheduler[0] == '\0' || is_text(r->scheduler, "default-scheduler");
}

bool model_is_choosy(const struct pod_record *r)
{
	const struct volume_record *volumes = r->volumes.items;
	const struct spread_record *spreads = r->spreads.items;
	bool is_choosy = r->claims.count > 0 || r->near.count > 0 || !is_usual(r);
	for (size_t i = 0; i < r->volumes.count; i++)
		is_choosy = is_choosy || volumes[i].claim != NULL || volumes[i].ephemeral.text != NULL;
	for (size_t i = 0; i < r->spreads.count; i++)
		is_choosy = is_choosy || is_text(spreads[i].otherwise, "DoNotSchedule");
	return is_choosy;
}

const struct resources *model_with_devices(struct cluster *c, const struct resources *set, const struct resource *rows,
					   size_t count)
{
	size_t all = intern_count(set), kept = 0;
	struct resource *merged = arena_array(&c->scratch, struct resource, all + count);
	for (size_t i = 0; i < all; i++)
		if (!device_is_driver(set->items[i].name))
			merged[kept++] = set->items[i];
	for (size_t i = 0; i < count; i++)
		merged[kept++] = rows[i];
	return intern_rows(&c->intern, INTERN_RESOURCES, merged, kept);
}

const struct pod_shape *model_shape_with(struct cluster *c, const struct pod_shape *shape, const struct resource *rows,
					 size_t count)
{
	struct pod_shape changed = *shape;
	changed.requests = model_with_devices(c, shape->requests, rows, count);
	const struct pod_shape *shared = intern_rows(&c->intern, INTERN_SHAPE, &changed, 1);
	intern_drop(&c->intern, changed.requests);
	intern_drop(&c->intern, shape);
	return shared;
}

const struct pod_shape *model_shape(struct cluster *c, const struct pod_record *r, const char *pod)
{
	struct sum sum = requests_of(c, r);
	bool waits = r->node_name == NULL || r->node_name[0] == '\0';
	struct pod_shape shape = {
		.selector = model_labels(c, &r->selector),
		.requests = model_resources(c, sum.rows, sum.count),
		.tolerations = model_tolerations(c, &r->tolerations),
		.affinity = model_requirements(c, &r->terms, NULL),
		.ports = ports_of(c, r),
		.apart = terms_of(c, &r->apart),
		.near = waits ? terms_of(c, &r->near) : NULL,
		.spreads = waits ? spreads_of(c, r) : NULL,
		.claims = claims_of(c, r, pod, waits),
		.scheduler = waits && !is_usual(r) ? intern_text(&c->intern, r->scheduler) : NULL,
	};
	const struct pod_shape *shared = intern_rows(&c->intern, INTERN_SHAPE, &shape, 1);
	const void *const parts[] = {
		shape.selector, shape.requests, shape.tolerations, shape.affinity, shape.ports,
		shape.apart,	shape.near,	shape.spreads,	   shape.claims,   shape.scheduler
	};
	enum { PARTS = sizeof parts / sizeof *parts };
	for (size_t i = 0; i < PARTS; i++)
		intern_drop(&c->intern, parts[i]);
	return shared;
}
