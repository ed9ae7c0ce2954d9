#include "providers/simulated_answer.h"

#include "base/decode.h"
#include "base/net/http.h"
#include "base/quote.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct machine_text {
	const char *id, *provider_id, *zone, *state, *goal;
	int64_t launched_at, state_since;
};

struct failure_text {
	int64_t id, at, count;
	const char *code, *message;
};

struct group_text {
	int64_t min, max, desired, standby;
	struct decoded_list machines, failures;
};

struct refusal_text {
	const char *code, *message;
};

#define NEEDED(struct_type, member, kind, path_)                                                           \
	{                                                                                                  \
		.path = (path_), .type = (kind), .offset = offsetof(struct_type, member), .required = true \
	}
#define RECORD(path_, struct_type, rows)                                            \
	{                                                                           \
		(path_), sizeof(struct_type), (rows), sizeof(rows) / sizeof *(rows) \
	}

static const struct field machine_fields[] = {
	NEEDED(struct machine_text, id, FIELD_STRING, "id"),
	NEEDED(struct machine_text, state, FIELD_STRING, "state"),
	FIELD(struct machine_text, provider_id, FIELD_STRING, "provider_id"),
	FIELD(struct machine_text, zone, FIELD_STRING, "zone"),
	FIELD(struct machine_text, goal, FIELD_STRING, "goal"),
	FIELD(struct machine_text, launched_at, FIELD_INT, "launched_at"),
	FIELD(struct machine_text, state_since, FIELD_INT, "state_since"),
};
static const struct record_spec machine_record = RECORD("", struct machine_text, machine_fields);

static const struct field failure_fields[] = {
	NEEDED(struct failure_text, id, FIELD_INT, "id"),
	NEEDED(struct failure_text, code, FIELD_STRING, "code"),
	FIELD(struct failure_text, at, FIELD_INT, "at"),
	FIELD(struct failure_text, count, FIELD_INT, "count"),
	FIELD(struct failure_text, message, FIELD_STRING, "message"),
};
static const struct record_spec failure_record = RECORD("", struct failure_text, failure_fields);

static const struct field group_fields[] = {
	NEEDED(struct group_text, min, FIELD_INT, "min"),
	NEEDED(struct group_text, max, FIELD_INT, "max"),
	NEEDED(struct group_text, desired, FIELD_INT, "desired"),
	NEEDED(struct group_text, standby, FIELD_INT, "standby_desired"),
	{ .path = "machines",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct group_text, machines),
	  .required = true,
	  .of = &machine_record },
	{ .path = "failures",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct group_text, failures),
	  .of = &failure_record },
};
static const struct record_spec group_record = RECORD("", struct group_text, group_fields);

static const struct field refusal_fields[] = {
	FIELD(struct refusal_text, code, FIELD_STRING, "error>code"),
	FIELD(struct refusal_text, message, FIELD_STRING, "error>message"),
};
static const struct record_spec refusal_record = RECORD("", struct refusal_text, refusal_fields);

static bool decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

static bool find_state(const char *name, enum machine_state *out)
{
	for (int i = 0; i < MACHINE_STATE_COUNT; i++)
		if (strcmp(machine_state_name((enum machine_state)i), name) == 0) {
			*out = (enum machine_state)i;
			return true;
		}
	return false;
}

/* A cloud that tells no goal has no machine that starts in order to be stopped. */
static bool read_goal(const struct machine_text *t, struct machine *m, struct error *e)
{
	char shown[QUOTE_ROOM];

	if (t->goal && strcmp(t->goal, "run") != 0 && strcmp(t->goal, "standby") != 0)
		return error_set(e, ERROR_INVALID, "machines[]>goal: found %s; allowed: run, standby",
				 quote(shown, t->goal, strlen(t->goal)));
	m->is_standby =
		t->goal ? !strcmp(t->goal, "standby") : m->state == MACHINE_STOPPING || m->state == MACHINE_STOPPED;
	return true;
}

static bool read_machine(const struct machine_text *t, struct machine *m, struct error *e)
{
	char shown[QUOTE_ROOM];

	*m = (struct machine){ .id = t->id,
			       .provider_id = t->provider_id ? t->provider_id : "",
			       .zone = t->zone ? t->zone : "",
			       .instance_type = "",
			       .launched_at = t->launched_at,
			       .state_since = t->state_since };
	if (!*t->id)
		return error_set(e, ERROR_INVALID, "a machine has an empty id");
	if (!find_state(t->state, &m->state))
		return error_set(e, ERROR_INVALID,
				 "machines[]>state: found %s; allowed: pending, running, stopping, stopped, waking, "
				 "terminating",
				 quote(shown, t->state, strlen(t->state)));
	if (t->launched_at < 0 || t->state_since < 0)
		return error_set(e, ERROR_INVALID, "machine %s: a time before 1970",
				 quote(shown, t->id, strlen(t->id)));
	return read_goal(t, m, e);
}

static int by_age(const void *left, const void *right)
{
	const struct machine *a = left, *b = right;

	if (a->launched_at != b->launched_at)
		return a->launched_at < b->launched_at ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int by_id(const void *left, const void *right)
{
	const struct machine *const *a = left, *const *b = right;

	return strcmp((*a)->id, (*b)->id);
}

/* A machine told twice would be counted twice. */
static bool are_different(struct machine *machines, size_t count, struct arena *a, struct error *e)
{
	char shown[QUOTE_ROOM];
	struct machine **sorted = arena_array(a, struct machine *, count);

	for (size_t i = 0; i < count; i++)
		sorted[i] = &machines[i];
	if (count)
		qsort(sorted, count, sizeof(struct machine *), by_id);
	for (size_t i = 1; i < count; i++)
		if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0)
			return error_set(e, ERROR_INVALID, "machine %s is listed twice",
					 quote(shown, sorted[i]->id, strlen(sorted[i]->id)));
	return true;
}

static bool read_machines(const struct decoded_list *list, struct arena *a, struct group_description *out,
			  struct error *e)
{
	const struct machine_text *texts = list->items;

	out->machines = arena_array(a, struct machine, list->count);
	for (size_t i = 0; i < list->count; i++)
		if (!read_machine(&texts[i], &out->machines[i], e))
			return false;
	out->machine_count = list->count;
	if (list->count)
		qsort(out->machines, list->count, sizeof *out->machines, by_age);
	return are_different(out->machines, list->count, a, e);
}

static enum error_kind failure_kind(const char *code)
{
	if (strcmp(code, "stock-out") == 0)
		return ERROR_STOCKOUT;
	return strcmp(code, "quota") == 0 ? ERROR_QUOTA : ERROR_UNAVAILABLE;
}

static int by_number(const void *left, const void *right)
{
	const struct launch_failure *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static bool read_failures(const struct decoded_list *list, struct arena *a, struct group_description *out,
			  struct error *e)
{
	const struct failure_text *texts = list->items;

	out->failures = arena_array(a, struct launch_failure, list->count);
	for (size_t i = 0; i < list->count; i++) {
		const struct failure_text *t = &texts[i];
		if (t->id < 0 || t->at < 0 || t->count < 0)
			return error_set(e, ERROR_INVALID, "failures[]: a negative id, time or count");
		if (strcmp(t->code, "spot-loss") == 0)
			continue; /* it ran: no launch failed */
		out->failures[out->failure_count++] =
			(struct launch_failure){ .id = t->id,
						 .at = t->at,
						 .kind = failure_kind(t->code),
						 .message = t->message ? t->message : t->code,
						 .zone = "",
						 .instance_type = "",
						 .count = t->count };
	}
	if (out->failure_count)
		qsort(out->failures, out->failure_count, sizeof *out->failures, by_number);
	return true;
}

bool simulated_read_group(const char *text, size_t len, struct arena *a, struct group_description *out, struct error *e)
{
	struct group_text t;
	struct group_description d = { 0 };

	if (!decode(&group_record, text, len, a, &t, e))
		return false;
	if (t.min < 0 || t.max < t.min || t.desired < 0 || t.standby < 0)
		return error_set(e, ERROR_INVALID,
				 "min %" PRId64 ", max %" PRId64 ", desired %" PRId64 ", standby_desired %" PRId64
				 " cannot be",
				 t.min, t.max, t.desired, t.standby);
	d.min = t.min;
	d.max = t.max;
	d.desired = t.desired;
	d.standby = t.standby;
	if (!read_machines(&t.machines, a, &d, e) || !read_failures(&t.failures, a, &d, e))
		return false;
	*out = d;
	return true;
}

/* A sentence of the other side, in one line and not too long. */
static void show(const char *text, char *room, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		room[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
	room[n] = '\0';
}

void simulated_read_refusal(long status, const char *text, size_t len, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct refusal_text t = { 0 };
	struct error ignored = { 0 };
	enum error_kind kind = http_status_kind(status);
	char code[64], message[240];

	if (kind == ERROR_NONE)
		kind = ERROR_INVALID;
	if (!decode(&refusal_record, text, len, &scratch, &t, &ignored) || !t.code) {
		error_set(e, kind, "HTTP status %ld", status);
		return;
	}
	if (strcmp(t.code, "InsufficientCapacity") == 0)
		kind = ERROR_STOCKOUT;
	else if (strcmp(t.code, "QuotaExceeded") == 0)
		kind = ERROR_QUOTA;
	show(t.code, code, sizeof code);
	show(t.message ? t.message : "", message, sizeof message);
	error_set(e, kind, "%s%s%s", code, *message ? ": " : "", message);
}
