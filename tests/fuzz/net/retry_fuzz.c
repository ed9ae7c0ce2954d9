/* Any text as a Retry-After header: a wait between nothing and a day. */
#include "base/net/retry.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *text = calloc(1, len + 1);

	memcpy(text, bytes, len);
	millis wait = retry_after(text, 784111770000);
	if (wait < 0 || wait > DAY)
		abort();
	free(text);
	return 0;
}
