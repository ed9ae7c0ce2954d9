/* Any bytes as the header of a request that is held: what is passed on is one request, that asks for one answer. */
#include "base/net/relay.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t header_of(const struct buf *request)
{
	const char *end = request->len ? memmem(request->text, request->len, "\r\n\r\n", 4) : NULL;

	return end ? (size_t)(end - request->text) + 4 : 0;
}

static size_t count_named(const struct buf *request, const char *name)
{
	size_t count = 0, n = strlen(name), header = header_of(request);

	for (size_t i = 2; i + n < header; i++)
		count += !memcmp(request->text + i - 2, "\r\n", 2) && !strncasecmp(request->text + i, name, n);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct buf request = { 0 }, again = { 0 };
	bool is_upgrade, is_upgrade_again;

	buf_append(&request, bytes, len);
	size_t header = header_of(&request), rest = len - header;
	if (header && relay_rewrite(&request, header, &is_upgrade)) {
		if (request.len < rest || memcmp(request.text + request.len - rest, bytes + header, rest) != 0)
			abort(); /* of what follows the header nothing is touched */
		buf_append(&again, request.text, request.len);
		if (!relay_rewrite(&again, header_of(&again), &is_upgrade_again) || is_upgrade_again != is_upgrade ||
		    again.len != request.len || memcmp(again.text, request.text, request.len) != 0)
			abort();
		if (!is_upgrade && (count_named(&request, "Connection:") != 1 || count_named(&request, "Upgrade:")))
			abort();
	}
	buf_release(&request);
	buf_release(&again);
	return 0;
}
