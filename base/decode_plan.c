#include "base/decode_parts.h"

#include <assert.h>
#include <string.h>

const struct decode_node *decode_child(const struct decode_node *n, const char *key, size_t len)
{
	for (const struct decode_node *c = n->children; c; c = c->next)
		if (c->len == len && !memcmp(c->key, key, len))
			return c;
	return NULL;
}

static struct decode_node *node_for(struct decode_plan *p, const char *path, struct arena *a)
{
	struct decode_node *n = &p->root;

	while (*path) {
		size_t len = strcspn(path, ">");
		struct decode_node *child = (struct decode_node *)decode_child(n, path, len);
		if (!child) {
			child = arena_new(a, struct decode_node);
			*child = (struct decode_node){ .key = path, .len = len, .next = n->children };
			n->children = child;
		}
		n = child;
		path += len + (path[len] == '>');
	}
	return n;
}

static struct decode_plan *plan_in(const struct record_spec *spec, struct arena *a)
{
	struct decode_plan *p = arena_new(a, struct decode_plan);

	assert(spec->field_count <= 64);
	p->spec = spec;
	for (size_t i = 0; i < spec->field_count; i++) {
		const struct field *f = &spec->fields[i];
		struct decode_node *n = node_for(p, f->path, a);
		struct decode_target *t = arena_new(a, struct decode_target);
		assert((f->type == FIELD_LIST) == (f->of != NULL));
		t->field = f;
		t->bit = f->required ? UINT64_C(1) << i : 0;
		t->items = f->of ? plan_in(f->of, a) : NULL;
		t->next = n->targets;
		n->targets = t;
		p->required |= t->bit;
	}
	return p;
}

struct decode_plan *decode_plan_new(const struct record_spec *spec)
{
	struct arena a = { 0 };
	struct decode_plan *p = plan_in(spec, &a);

	p->arena = a;
	return p;
}

void decode_plan_free(struct decode_plan *p)
{
	struct arena a;

	if (!p)
		return;
	a = p->arena; /* holds the plan itself */
	arena_release(&a);
}
