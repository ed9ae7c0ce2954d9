/* Any bytes as XML: a tree within its caps, or one message. */
#include "base/xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t count(const struct xml_node *n, int depth)
{
	size_t all = 0;

	if (depth > XML_DEPTH)
		abort();
	for (; n; n = n->next)
		all += 1 + strlen(n->name) / SIZE_MAX + strlen(n->text) / SIZE_MAX + count(n->first, depth + 1);
	return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct xml_node *root = NULL;
	struct error e = { 0 };

	if (xml_read((const char *)bytes, len, &a, &root, &e)) {
		if (!root || count(root, 1) > XML_ELEMENTS)
			abort();
	} else if (e.kind != ERROR_INVALID || root) {
		abort();
	}
	return 0;
}
