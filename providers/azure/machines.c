#include "providers/azure/machines.h"

#include "providers/azure/text.h"

#include <string.h>
#include <strings.h>

enum { MOST = 5000 };

struct address_text {
	const char *ip;
};

struct machine_text {
	const char *name, *resource, *state, *vm_state, *vm_size;
	millis created_at;
	struct decoded_list zones, addresses;
};

struct page_text {
	const char *next;
	struct decoded_list value;
};

static const struct field zone_fields[] = { { .path = "", .type = FIELD_STRING } };
static const struct record_spec zone_record = { "", sizeof(const char *), zone_fields, 1 };
static const struct field address_fields[] = { FIELD(struct address_text, ip, FIELD_STRING, "ip") };
static const struct record_spec address_record = { "", sizeof(struct address_text), address_fields, 1 };
static const struct field machine_fields[] = {
	{ .path = "name", .type = FIELD_STRING, .offset = offsetof(struct machine_text, name), .required = true },
	FIELD(struct machine_text, resource, FIELD_STRING, "properties>resourceId"),
	FIELD(struct machine_text, state, FIELD_STRING, "properties>provisioningState"),
	FIELD(struct machine_text, vm_state, FIELD_STRING, "properties>status>vmState"),
	FIELD(struct machine_text, created_at, FIELD_TIME, "properties>status>creationTimestamp"),
	FIELD(struct machine_text, vm_size, FIELD_STRING, "properties>hardware>vmSize"),
	{ .path = "properties>network>ipAddresses",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct machine_text, addresses),
	  .of = &address_record },
	{ .path = "zones", .type = FIELD_LIST, .offset = offsetof(struct machine_text, zones), .of = &zone_record },
};
static const struct record_spec machine_record = { "", sizeof(struct machine_text), machine_fields, 8 };
static const struct field page_fields[] = {
	FIELD(struct page_text, next, FIELD_STRING, "nextLink"),
	{ .path = "value",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct page_text, value),
	  .required = true,
	  .of = &machine_record },
};
static const struct record_spec page_record = { "", sizeof(struct page_text), page_fields, 2 };

static const char *or_none(const char *text)
{
	return text ? text : "";
}

static bool make_room(struct azure_machines *list, size_t more, struct arena *a, struct error *e)
{
	if (list->count + more > MOST)
		return error_set(e, ERROR_INVALID, "machines: found more than %d", MOST);
	if (list->count + more <= list->room)
		return true;
	list->room = 2 * (list->count + more);
	struct azure_machine *items = arena_array(a, struct azure_machine, list->room);
	if (list->count)
		memcpy(items, list->items, list->count * sizeof *items);
	list->items = items;
	return true;
}

bool azure_machines_read(const char *text, size_t len, struct arena *a, struct azure_machines *list, const char **next,
			 struct error *e)
{
	struct page_text page;

	if (!azure_decode(&page_record, text, len, a, &page, e))
		return error_wrap(e, "machines");
	const struct machine_text *texts = page.value.items;
	if (!make_room(list, page.value.count, a, e))
		return false;
	for (size_t i = 0; i < page.value.count; i++) {
		const struct machine_text *t = &texts[i];
		if (!*t->name)
			return error_set(e, ERROR_INVALID, "machines: found one without a name");
		list->items[list->count++] = (struct azure_machine){
			.name = t->name,
			.resource = or_none(t->resource),
			.zone = t->zones.count ? or_none(((const char *const *)t->zones.items)[0]) : "",
			.vm_size = or_none(t->vm_size),
			.state = or_none(t->state),
			.vm_state = or_none(t->vm_state),
			.has_address = t->addresses.count > 0,
			.created_at = t->created_at,
		};
	}
	*next = or_none(page.next);
	return true;
}

struct operation_text {
	const char *status;
	millis ended_at;
	struct decoded_text problem;
};
static const struct field operation_fields[] = {
	FIELD(struct operation_text, status, FIELD_STRING, "status"),
	FIELD(struct operation_text, ended_at, FIELD_TIME, "endTime"),
	FIELD(struct operation_text, problem, FIELD_RAW, "error"),
};
static const struct record_spec operation_record = { "", sizeof(struct operation_text), operation_fields, 3 };

bool azure_operation_read(long status, const char *text, size_t len, struct arena *a, struct azure_operation *out,
			  struct error *e)
{
	struct operation_text t = { 0 };

	*out = (struct azure_operation){ .is_over = status != 202 };
	if (!len || status == 204)
		return true;
	if (!azure_decode(&operation_record, text, len, a, &t, e))
		return error_wrap(e, "operation");
	if (!t.status) /* the result itself, where a Location was followed */
		return true;
	out->has_failed = strcasecmp(t.status, "Failed") == 0;
	out->is_over = out->has_failed || strcasecmp(t.status, "Succeeded") == 0 ||
		       strcasecmp(t.status, "Canceled") == 0 || strcasecmp(t.status, "Cancelled") == 0;
	out->ended_at = t.ended_at;
	if (t.problem.text && strncmp(t.problem.text, "null", 4) != 0) {
		out->problem = t.problem.text;
		out->problem_len = t.problem.len;
	}
	return true;
}
