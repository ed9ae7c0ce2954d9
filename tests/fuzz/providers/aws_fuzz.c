/* Any bytes as a refusal, as credentials, and as a request to be signed. */
#include "providers/aws/keyring.h"
#include "providers/aws/service.h"
#include "providers/eks_wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct aws_grant *g)
{
	if (!*g->credentials.access_key_id || !*g->credentials.secret_access_key || !g->credentials.session_token ||
	    strpbrk(g->credentials.session_token, "\r\n"))
		abort();
}

static void sign(const char *text)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	struct aws_header headers[] = { { "Host", text }, { "X-Other", text } };
	const struct aws_message m = { .method = "GET",
				       .path = text,
				       .query = text,
				       .headers = headers,
				       .header_count = 2,
				       .body = text,
				       .body_len = strlen(text) };

	if (aws_sign(&m, &(struct aws_scope){ "r", "s", 0 }, &(struct aws_credentials){ "a", text, "" }, &out) &&
	    strchr(out.text, '\n'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *text = arena_strdup(&a, (const char *)bytes, len);
	struct eks_settings settings;
	struct aws_refusal r;
	struct aws_grant g;
	struct error e = { 0 };

	aws_read_refusal(text, len, NULL, &r);
	if (aws_refusal_kind(&r, 400) == ERROR_NONE || strpbrk(r.message, "\r\n"))
		abort();
	aws_read_refusal("", 0, text, &r);
	if (aws_read_web_identity(text, len, &a, &g, &e))
		check(&g);
	if (aws_read_container(text, len, &a, &g, &e))
		check(&g);
	if (aws_read_profile(text, len, "default", &a, &g, &e))
		check(&g);
	if (eks_read_settings(text, &a, &settings, &e) && (!*settings.region || settings.tag_count > EKS_TAGS))
		abort();
	sign(text);
	return 0;
}
