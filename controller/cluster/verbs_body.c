#include "controller/cluster/verbs_body.h"

#include "base/json.h"

void verbs_member(const char *key, const char *value, struct buf *out)
{
	if (!value)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	json_write_text(value, out);
}

void verbs_pairs(const char *key, const struct verb_pair *pairs, size_t count, struct buf *out)
{
	if (!count)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":{");
	for (size_t i = 0; i < count; i++) {
		if (pairs[i].value) {
			verbs_member(pairs[i].key, pairs[i].value, out);
			continue;
		}
		json_write_comma(out);
		json_write_text(pairs[i].key, out);
		buf_text(out, ":null");
	}
	buf_text(out, "}");
}
