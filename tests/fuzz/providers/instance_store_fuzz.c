/* Any bytes as the user data of a launch template, plain and as base64: what is read has a name, and little memory
 * does. */
#include "base/base64.h"
#include "providers/instance_store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void read(const char *text, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct instance_store d = { 0 };
	struct error e = { 0 };

	if (instance_store_read(text, len, &a, &d, &e) ? (d.use == DISKS_KEPT) != !*d.by || strlen(d.by) >= sizeof d.by
						       : e.kind != ERROR_INVALID)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(buf_release) struct buf coded = { 0 };

	base64_write(bytes, len, &coded);
	read(coded.len ? coded.text : "", coded.len);
	read((const char *)bytes, len);
	return 0;
}
