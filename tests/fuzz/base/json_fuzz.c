/* Any bytes as JSON, cut anywhere: depth and path stay in their bounds. */
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool check(void *user, const struct json_event *ev, struct error *e)
{
	(void)user, (void)e;
	if (ev->depth < 0 || ev->depth > JSON_MAX_DEPTH || strlen(ev->path) >= JSON_MAX_PATH)
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct json *j = json_open("fuzz", check, NULL);
	size_t cut = len ? bytes[0] % len : 0;
	struct error e;

	if (json_feed(j, (const char *)bytes, cut, &e) && json_feed(j, (const char *)bytes + cut, len - cut, &e))
		(void)!json_finish(j, &e);
	json_close(j);
	return 0;
}
