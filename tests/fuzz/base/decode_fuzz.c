/* Any bytes through every type of field, cut anywhere; a record that was read holds only texts without NUL. */
#include "base/decode.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct item {
	const char *text;
};
struct any {
	const char *text;
	int64_t integer, count, time;
	bool flag;
	struct decoded_list list;
	struct decoded_map map;
	struct decoded_text raw;
};

static const struct field item_fields[] = { FIELD(struct item, text, FIELD_STRING, "") };
static const struct record_spec item = { "", sizeof(struct item), item_fields, 1 };
static const struct field any_fields[] = {
	FIELD(struct any, text, FIELD_STRING, "a"),
	FIELD(struct any, integer, FIELD_INT, "b"),
	FIELD(struct any, count, FIELD_COUNT, "c>d"),
	FIELD(struct any, time, FIELD_TIME, "c>e"),
	FIELD(struct any, flag, FIELD_BOOL, "f"),
	{ .path = "g", .type = FIELD_LIST, .offset = offsetof(struct any, list), .of = &item },
	FIELD(struct any, map, FIELD_MAP, "c"),
	FIELD(struct any, raw, FIELD_RAW, "c"),
};
static const struct record_spec in_items = { "items[]", sizeof(struct any), any_fields, 8 };
static const struct record_spec alone = { "", sizeof(struct any), any_fields, 8 };

static bool check(void *user, void *record, struct error *e)
{
	const struct any *a = record;
	size_t sum = a->text ? strlen(a->text) : 0;

	(void)user, (void)e;
	for (size_t i = 0; i < a->list.count; i++)
		sum += ((const struct item *)a->list.items)[i].text ? 1 : 0;
	for (size_t i = 0; i < a->map.count; i++)
		sum += strlen(a->map.pairs[i].key) + strlen(a->map.pairs[i].value);
	if (a->raw.len && !memchr("{[\"-0123456789tf", a->raw.text[0], 16))
		abort();
	return sum != SIZE_MAX;
}

static void feed(const struct record_spec *spec, const char *bytes, size_t len, size_t cut)
{
	struct decode_plan *plan = decode_plan_new(spec);
	struct any document;
	struct decoder *d = decoder_open(&(struct decoder_setup){ .name = "fuzz",
								  .records = plan,
								  .emit = check,
								  .document = plan,
								  .document_record = &document,
								  .record_cap = 4096 });
	struct error e;

	if (decoder_feed(d, bytes, cut, &e) && decoder_feed(d, bytes + cut, len - cut, &e))
		(void)!decoder_finish(d, &e);
	decoder_close(d);
	decode_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	size_t cut = len ? bytes[len - 1] % len : 0;

	feed(&in_items, (const char *)bytes, len, cut);
	feed(&alone, (const char *)bytes, len, cut);
	return 0;
}
