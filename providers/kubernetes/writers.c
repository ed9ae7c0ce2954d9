#include "providers/kubernetes/writers.h"

struct writer {
	const char *name;
	millis at;
	struct decoded_text replicas; /* set, so that it wrote them */
};

static const struct field fields[] = {
	FIELD(struct writer, name, FIELD_STRING, "manager"),
	FIELD(struct writer, at, FIELD_TIME, "time"),
	FIELD(struct writer, replicas, FIELD_RAW, "fieldsV1>f:spec>f:replicas"),
};
const struct record_spec replicas_writer_record = RECORD(struct writer, fields);

const char *replicas_writer_last(const struct decoded_list *writers)
{
	const struct writer *items = writers->items, *last = NULL;

	for (size_t i = 0; i < writers->count; i++)
		if (items[i].name && items[i].replicas.text && (!last || items[i].at >= last->at))
			last = &items[i];
	return last ? last->name : NULL;
}
