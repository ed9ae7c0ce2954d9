/* Any bytes as YAML: parsed or refused, and every value's path can be told. */
#include "base/yaml.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void visit(const struct yaml_node *n, struct buf *path)
{
	buf_clear(path);
	yaml_path(n, path);
	if (n->kind == YAML_SCALAR)
		(void)yaml_plain_meaning(n);
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		if (c->parent != n || !c->line || !c->column)
			abort();
		visit(c, path);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	CLEANUP(buf_release) struct buf path = { 0 };
	struct yaml_documents docs;

	if (!yaml_parse("fuzz", (const char *)bytes, len, &a, &docs, &f)) {
		if (!f.count)
			abort();
		return 0;
	}
	for (size_t i = 0; i < docs.count; i++)
		if (docs.roots[i])
			visit(docs.roots[i], &path);
	return 0;
}
