/* What a pod asks of a node: requests as the scheduler adds them up, and where it may run. */
#include "controller/cluster/model_inside.h"

#include <string.h>

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

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
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
		if (inits[i].restart_policy != NULL && strcmp(inits[i].restart_policy, "Always") == 0) {
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

const struct pod_shape *pod_shape_of(struct cluster *c, const struct pod_record *r)
{
	struct sum sum = requests_of(c, r);
	struct pod_shape shape = {
		.selector = model_labels(c, &r->selector),
		.requests = model_resources(c, sum.rows, sum.count),
		.tolerations = model_tolerations(c, &r->tolerations),
		.affinity = model_requirements(c, &r->terms),
	};
	const struct pod_shape *shared = intern_rows(&c->intern, INTERN_SHAPE, &shape, 1);
	intern_drop(&c->intern, shape.selector);
	intern_drop(&c->intern, shape.requests);
	intern_drop(&c->intern, shape.tolerations);
	intern_drop(&c->intern, shape.affinity);
	return shared;
}
