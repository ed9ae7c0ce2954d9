/* Any bytes as an answer of Azure: what is believed can be, and what goes back is JSON that reads as the same pool. */
#include "providers/azure/answer.h"
#include "providers/azure/place.h"
#include "providers/azure/token.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void read_pool(const char *text, size_t len, struct arena *a)
{
	struct azure_pool before, after;
	struct error e = { 0 };
	CLEANUP(buf_release) struct buf body = { 0 };

	if (!azure_pool_read(text, len, a, &before, &e)) {
		if (e.kind != ERROR_INVALID)
			abort();
		return;
	}
	if (before.count < 0 || before.count > 1000 || strpbrk(before.etag, "\r\n"))
		abort();
	if (!azure_pool_is_ours(&before, &e) || !azure_pool_write(text, len, 7, &body, &e))
		return;
	if (!azure_pool_read(body.text, body.len, a, &after, &e) || after.count != 7 || *after.etag ||
	    strcmp(before.mode, after.mode) != 0 || after.is_autoscaled)
		abort();
}

static void read_others(const char *text, size_t len, struct arena *a)
{
	struct azure_machines list = { 0 };
	struct azure_operation operation;
	struct azure_rights rights;
	struct azure_failure failure;
	const char *next = "", *token;
	millis lives;
	struct error e = { 0 };

	for (int page = 0; page < 2; page++)
		if (azure_machines_read(text, len, a, &list, &next, &e))
			for (size_t i = 0; i < list.count; i++)
				if (!*list.items[i].name)
					abort();
	if (azure_operation_read(200, text, len, a, &operation, &e) && operation.has_failed && !operation.is_over)
		abort();
	if (azure_rights_read(text, len, a, &rights, &e))
		(void)azure_rights_allow(&rights, "Microsoft.ContainerService/managedClusters/agentPools/read");
	if (azure_failure_of(text, len, true, &failure) && failure.back_off < 0)
		abort();
	if (token_answer_read(text, len, a, &token, &lives, &e) && (!*token || lives <= 0 || strpbrk(token, "\r\n")))
		abort();
	for (long status = 400; status < 504; status += 9) {
		azure_failure_read(status, text, len, &e);
		token_refusal_read(status, text, len, &e);
		if (e.kind == ERROR_NONE)
			abort();
	}
}

static void read_text(const char *bytes, size_t len, struct arena *a)
{
	const char *text = arena_strdup(a, bytes, len);
	struct token_claims claims;

	(void)!token_claims_read(text, a, &claims);
	/* what may be shown a token has this very host in it, with nothing before it but a scheme and names below it */
	if (azure_url_is_below(text, "https://arm.example") && !strcasestr(text, "arm.example"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	read_pool((const char *)bytes, len, &a);
	read_others((const char *)bytes, len, &a);
	read_text((const char *)bytes, len, &a);
	return 0;
}
