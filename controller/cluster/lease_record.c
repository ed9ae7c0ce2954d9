#include "controller/cluster/lease_record.h"

#include "base/json_write.h"
#include "controller/cluster/lease.h"

#include <string.h>

static const struct field record_fields[] = {
	{ .path = "metadata>resourceVersion",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct lease_record, resource_version),
	  .required = true },
	FIELD(struct lease_record, holder, FIELD_STRING, "spec>holderIdentity"),
	FIELD(struct lease_record, address, FIELD_STRING, "metadata>annotations>" LEASE_ADDRESS),
	FIELD(struct lease_record, acquired, FIELD_STRING, "spec>acquireTime"),
	FIELD(struct lease_record, duration_seconds, FIELD_INT, "spec>leaseDurationSeconds"),
	FIELD(struct lease_record, transitions, FIELD_INT, "spec>leaseTransitions"),
	FIELD(struct lease_record, annotations, FIELD_MAP, "metadata>annotations"),
	FIELD(struct lease_record, labels, FIELD_RAW, "metadata>labels"),
	FIELD(struct lease_record, owners, FIELD_RAW, "metadata>ownerReferences"),
};
static const struct record_spec record_spec = { "", sizeof(struct lease_record), record_fields,
						sizeof record_fields / sizeof *record_fields };

bool lease_record_read(const char *text, size_t len, struct arena *a, struct lease_record *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&record_spec);
	struct lease_record got;
	bool ok = decode_record(plan, arena_strdup(a, text, len), len, a, &got, e);

	decode_plan_free(plan);
	if (!ok)
		return error_wrap(e, "lease");
	*out = got;
	return true;
}

static void write_annotations(const struct lease_wish *w, const struct lease_record *old, struct buf *out)
{
	buf_text(out, ",\"annotations\":{");
	for (size_t i = 0; old && i < old->annotations.count; i++) {
		const struct decoded_pair *p = &old->annotations.pairs[i];
		if (!strcmp(p->key, LEASE_ADDRESS))
			continue;
		json_write_comma(out);
		json_write_text(p->key, out);
		buf_text(out, ":");
		json_write_text(p->value, out);
	}
	if (w->address) {
		json_write_comma(out);
		buf_text(out, "\"" LEASE_ADDRESS "\":");
		json_write_text(w->address, out);
	}
	buf_text(out, "}");
}

static void write_time(const char *key, const char *text, millis now, struct buf *out)
{
	buf_printf(out, ",\"%s\":", key);
	if (text) {
		json_write_text(text, out);
		return;
	}
	buf_text(out, "\"");
	api_time(now, out);
	buf_text(out, "\"");
}

void lease_record_write(const struct lease_wish *w, const struct lease_record *old, struct buf *out)
{
	buf_text(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":");
	json_write_text(w->name, out);
	buf_text(out, ",\"namespace\":");
	json_write_text(w->name_space, out);
	if (old) {
		buf_text(out, ",\"resourceVersion\":");
		json_write_text(old->resource_version, out);
		if (old->labels.text)
			buf_printf(out, ",\"labels\":%.*s", (int)old->labels.len, old->labels.text);
		if (old->owners.text)
			buf_printf(out, ",\"ownerReferences\":%.*s", (int)old->owners.len, old->owners.text);
	}
	write_annotations(w, old, out);
	buf_text(out, "},\"spec\":{\"holderIdentity\":");
	json_write_text(w->holder, out);
	buf_printf(out, ",\"leaseDurationSeconds\":%lld,\"leaseTransitions\":%lld", (long long)w->duration_seconds,
		   (long long)w->transitions);
	write_time("acquireTime", w->acquired, w->now, out);
	write_time("renewTime", NULL, w->now, out);
	buf_text(out, "}}");
}
