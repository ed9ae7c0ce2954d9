/* Any bytes as a kubeconfig: read, or refused with one message; nothing is left behind. */
#include "controller/cluster/kubeconfig.h"
#include "tests/unit/text_file.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct text_file f = text_file(bytes, len);
	struct kubeconfig k = { 0 };
	struct error e = { 0 };

	if (kubeconfig_read(&(struct kubeconfig_wish){ .path = f.path }, &k, &e)) {
		if (!k.server || !k.name_space || !k.context)
			abort();
		kubeconfig_release(&k);
	} else if (e.kind == ERROR_NONE || !e.message[0]) {
		abort();
	}
	text_file_close(&f);
	return 0;
}
