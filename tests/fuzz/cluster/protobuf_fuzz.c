/*
 * Any bytes as a list or a watch in Protobuf, and as a refusal: what is told is JSON that base/decode reads, of no more
 * than the bytes could say.
 */
#include "base/json.h"
#include "controller/cluster/protobuf_answer.h"

#include <stdint.h>
#include <stdlib.h>

static bool see(void *user, const struct json_event *event, struct error *e)
{
	(void)user, (void)event, (void)e;
	return true;
}

static bool check_object(void *user, const char *event, struct decoded_text object, struct error *e)
{
	struct json *j = json_open("object", see, NULL);

	(void)user, (void)event;
	if (!json_feed(j, object.text, object.len, e) || !json_finish(j, e))
		abort();
	json_close(j);
	return true;
}

static bool check_list(void *user, struct decoded_text list, struct error *e)
{
	return check_object(user, "list", list, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const size_t resources = 11; /* the last of the messages is a Status */
	const char *text = (const char *)bytes + 2;
	struct buf json = { 0 };
	struct error e;

	if (len < 2)
		return 0;
	len -= 2;
	struct protobuf_answer *a = protobuf_answer_open(&(struct protobuf_reader){
		"fuzz", protobuf_messages[bytes[0] % resources], bytes[0] >= 128, check_object, check_list, NULL });
	size_t cut = len ? bytes[1] % (len + 1) : 0;
	if (protobuf_answer_feed(a, text, cut, &e) && protobuf_answer_feed(a, text + cut, len - cut, &e))
		(void)!protobuf_answer_finish(a, &e);
	protobuf_answer_close(a);
	protobuf_status(text, len, &json);
	if (json.len)
		check_object(NULL, "refusal", (struct decoded_text){ json.text, json.len }, &e);
	buf_release(&json);
	return 0;
}
