#include "controller/traces/trace.h"
#include "controller/traces/import_rows.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

enum role { ROLE_TIME, ROLE_PROMPT, ROLE_OUTPUT, ROLES };
static const char *const role_names[] = { "a start time", "prompt tokens", "output tokens" };

/* Where a value stands: once per document, or once per request in a list. */
struct key {
	const char *path;
	enum role role;
	bool is_list;
};

struct json_form {
	const struct key *keys;
	size_t key_count;
	int time_places;     /* 6: seconds, 3: milliseconds, kept as microseconds */
	bool is_zero_failed; /* no output tokens: the request failed */
	const char *remedy;
};

static const struct key mooncake_keys[] = {
	{ "timestamp", ROLE_TIME, false },
	{ "input_length", ROLE_PROMPT, false },
	{ "output_length", ROLE_OUTPUT, false },
};

static const struct key vllm_keys[] = {
	{ "start_times[]", ROLE_TIME, true },	 { "input_lens[]", ROLE_PROMPT, true },
	{ "output_lens[]", ROLE_OUTPUT, true },	 { "start", ROLE_TIME, false },
	{ "start_time", ROLE_TIME, false },	 { "arrival", ROLE_TIME, false },
	{ "arrival_time", ROLE_TIME, false },	 { "timestamp", ROLE_TIME, false },
	{ "prompt_len", ROLE_PROMPT, false },	 { "input_len", ROLE_PROMPT, false },
	{ "prompt_tokens", ROLE_PROMPT, false }, { "output_len", ROLE_OUTPUT, false },
	{ "output_tokens", ROLE_OUTPUT, false }, { "completion_tokens", ROLE_OUTPUT, false },
};

static const struct json_form mooncake = { mooncake_keys, 3, 3, false,
					   "each line needs timestamp, input_length, output_length" };
static const struct json_form vllm = { vllm_keys, sizeof vllm_keys / sizeof *vllm_keys, 6, true,
				       "record with: vllm bench serve --save-result --save-detailed" };

struct list {
	int64_t *values;
	size_t count, room;
};

/* The document at hand. */
struct document {
	struct import_rows *in;
	const struct json_form *form;
	struct list lists[ROLES];
	int64_t values[ROLES];
	bool is_seen[ROLES];
};

static bool parse(const struct json_form *f, const struct key *k, const struct json_event *ev, int64_t *out,
		  struct error *e)
{
	char room[QUOTE_ROOM];
	bool is_time = k->role == ROLE_TIME;
	int64_t most = is_time ? INT64_C(10000000000000000) : TRACE_MAX_TOKENS;

	if (ev->type == JSON_NUMBER &&
	    decimal_parse(ev->text, ev->len, is_time ? f->time_places : 0, out) == DECIMAL_OK && *out <= most)
		return true;
	return error_set(e, ERROR_INVALID, "%s: found %s; allowed: %s", ev->path,
			 ev->text ? quote(room, ev->text, ev->len) : "a list or an object",
			 is_time ? "a number, not negative" : "a whole number from 0 to 10000000");
}

static void list_add(struct list *l, int64_t value)
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 1024;
		l->values = realloc(l->values, l->room * sizeof *l->values);
		if (!l->values)
			abort();
	}
	l->values[l->count++] = value;
}

static bool take_value(struct document *d, const struct json_event *ev, struct error *e)
{
	int64_t value;

	for (size_t i = 0; i < d->form->key_count; i++) {
		const struct key *k = &d->form->keys[i];
		if (strcmp(k->path, ev->path))
			continue;
		if (!parse(d->form, k, ev, &value, e))
			return false;
		if (k->is_list && d->lists[k->role].count == TRACE_MAX_REQUESTS)
			return error_set(e, ERROR_INVALID, "%s: more than %d requests", ev->path, TRACE_MAX_REQUESTS);
		if (k->is_list)
			list_add(&d->lists[k->role], value);
		else
			d->values[k->role] = value;
		d->is_seen[k->role] = true;
	}
	return true;
}

static bool add(struct document *d, const int64_t values[ROLES], struct error *e)
{
	struct import_row row = { values[ROLE_TIME], values[ROLE_PROMPT], values[ROLE_OUTPUT], -1 };

	if (d->form->is_zero_failed && !row.output_tokens) {
		import_drop_failed(d->in);
		return true;
	}
	return import_add(d->in, &row, e);
}

static bool add_lists(struct document *d, struct error *e)
{
	const struct list *l = d->lists;

	if (l[ROLE_TIME].count != l[ROLE_PROMPT].count || l[ROLE_TIME].count != l[ROLE_OUTPUT].count)
		return error_set(e, ERROR_INVALID,
				 "found %zu start_times, %zu input_lens and %zu output_lens; allowed: as many of each",
				 l[ROLE_TIME].count, l[ROLE_PROMPT].count, l[ROLE_OUTPUT].count);
	for (size_t i = 0; i < l[ROLE_TIME].count; i++) {
		int64_t values[] = { l[ROLE_TIME].values[i], l[ROLE_PROMPT].values[i], l[ROLE_OUTPUT].values[i] };
		if (!add(d, values, e))
			return false;
	}
	return true;
}

static bool end_document(struct document *d, struct error *e)
{
	bool is_listed = false, ok;

	for (int r = 0; r < ROLES; r++) {
		if (!d->is_seen[r])
			return error_set(e, ERROR_INVALID, "%s is missing; %s", role_names[r], d->form->remedy);
		is_listed |= d->lists[r].count > 0;
	}
	ok = is_listed ? add_lists(d, e) : add(d, d->values, e);
	for (int r = 0; r < ROLES; r++) {
		d->is_seen[r] = false;
		d->lists[r].count = 0;
	}
	return ok;
}

static bool on_event(void *user, const struct json_event *ev, struct error *e)
{
	struct document *d = user;

	if (!ev->depth && (ev->type != JSON_OPEN && ev->type != JSON_CLOSE))
		return error_set(e, ERROR_INVALID, "a value that is no object; %s", d->form->remedy);
	if (!ev->depth && ev->is_array)
		return error_set(e, ERROR_INVALID, "a list at the top; allowed: one object, or one per line");
	if (!ev->depth && ev->type == JSON_CLOSE)
		return end_document(d, e);
	return ev->type == JSON_CLOSE || take_value(d, ev, e);
}

static bool import_json(struct import_rows *in, const struct json_form *form, struct gzip *source, struct error *e)
{
	struct document d = { .in = in, .form = form };
	bool ok = json_read(source, on_event, &d, e);

	for (int r = 0; r < ROLES; r++)
		free(d.lists[r].values);
	return ok;
}

bool import_mooncake(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_json(in, &mooncake, source, e);
}

bool import_vllm(struct import_rows *in, struct gzip *source, struct error *e)
{
	return import_json(in, &vllm, source, e);
}

static bool has(const char *bytes, size_t len, const char *text)
{
	return memmem(bytes, len, text, strlen(text)) != NULL;
}

static bool is_object(const char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len && strchr(" \t\r\n", bytes[i]) && bytes[i])
		i++;
	return i < len && bytes[i] == '{';
}

bool looks_mooncake(const char *bytes, size_t len)
{
	return is_object(bytes, len) && has(bytes, len, "\"input_length\"");
}

/* The last to be asked: any other object; a summary without details then gets its remedy. */
bool looks_vllm(const char *bytes, size_t len)
{
	return is_object(bytes, len);
}

bool looks_prometheus(const char *bytes, size_t len)
{
	return is_object(bytes, len) && has(bytes, len, "\"status\"") &&
	       (has(bytes, len, "\"resultType\"") || has(bytes, len, "\"errorType\""));
}
