/* A cloud that somebody models, for tests and demonstrations: JSON over HTTP, docs/providers.md. */
#include "providers/simulated.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/net/http.h"
#include "base/net/retry.h"
#include "base/text.h"
#include "providers/exchange.h"
#include "providers/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct machine_text {
	struct machine machine;
	const char *state, *goal;
};

struct failure_text {
	struct launch_failure failure;
	const char *code;
};

struct group_text {
	struct group_description group;
	bool protects;
	struct decoded_list machines, failures;
};

struct refusal_text {
	const char *code, *message;
};

static const struct field machine_fields[] = {
	FIELD_NEEDED(struct machine_text, machine.id, FIELD_STRING, "id"),
	FIELD_NEEDED(struct machine_text, state, FIELD_STRING, "state"),
	FIELD(struct machine_text, machine.provider_id, FIELD_STRING, "provider_id"),
	FIELD(struct machine_text, machine.zone, FIELD_STRING, "zone"),
	FIELD(struct machine_text, goal, FIELD_STRING, "goal"),
	FIELD(struct machine_text, machine.is_guarded, FIELD_BOOL, "protected"),
	FIELD(struct machine_text, machine.launched_at, FIELD_INT, "launched_at"),
	FIELD(struct machine_text, machine.state_since, FIELD_INT, "state_since"),
};
static const struct record_spec machine_record = RECORD(struct machine_text, machine_fields);

static const struct field failure_fields[] = {
	FIELD_NEEDED(struct failure_text, failure.id, FIELD_INT, "id"),
	FIELD_NEEDED(struct failure_text, code, FIELD_STRING, "code"),
	FIELD(struct failure_text, failure.at, FIELD_INT, "at"),
	FIELD(struct failure_text, failure.count, FIELD_INT, "count"),
	FIELD(struct failure_text, failure.message, FIELD_STRING, "message"),
};
static const struct record_spec failure_record = RECORD(struct failure_text, failure_fields);

static const struct field group_fields[] = {
	FIELD_NEEDED(struct group_text, group.min, FIELD_INT, "min"),
	FIELD_NEEDED(struct group_text, group.max, FIELD_INT, "max"),
	FIELD_NEEDED(struct group_text, group.desired, FIELD_INT, "desired"),
	FIELD_NEEDED(struct group_text, group.standby, FIELD_INT, "standby_desired"),
	FIELD(struct group_text, protects, FIELD_BOOL, "protects"),
	FIELD(struct group_text, group.exposed, FIELD_INT, "exposed"),
	FIELD(struct group_text, group.guarded, FIELD_INT, "guarded"),
	FIELD(struct group_text, group.busy_with, FIELD_STRING, "busy_with"),
	FIELD(struct group_text, group.emptied_by, FIELD_STRING, "emptied_by"),
	FIELD(struct group_text, group.resized_by, FIELD_STRING, "resized_by"),
	FIELD(struct group_text, group.only_grows, FIELD_BOOL, "only_grows"),
	FIELD(struct group_text, group.ailment, FIELD_STRING, "ailment"),
	FIELD(struct group_text, group.ends_at, FIELD_INT, "ends_at"),
	FIELD_LIST_NEEDED(struct group_text, machines, "machines", machine_record),
	FIELD_LIST_OF(struct group_text, failures, "failures", failure_record),
};
static const struct record_spec group_record = RECORD(struct group_text, group_fields);

static const struct field refusal_fields[] = {
	FIELD(struct refusal_text, code, FIELD_STRING, "error>code"),
	FIELD(struct refusal_text, message, FIELD_STRING, "error>message"),
};
static const struct record_spec refusal_record = RECORD(struct refusal_text, refusal_fields);

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
static bool read_machine(const struct machine_text *t, struct machine *m, struct error *e)
{
	char shown[QUOTE_ROOM];

	*m = t->machine;
	m->provider_id = text_or_empty(m->provider_id);
	m->zone = text_or_empty(m->zone);
	m->instance_type = "";
	if (!*m->id)
		return error_set(e, ERROR_INVALID, "a machine has an empty id");
	if (!find_state(t->state, &m->state))
		return error_set(e, ERROR_INVALID,
				 "machines[]>state: found %s; allowed: pending, running, stopping, stopped, waking, "
				 "terminating",
				 quote(shown, t->state, strlen(t->state)));
	if (m->launched_at < 0 || m->state_since < 0)
		return error_set(e, ERROR_INVALID, "machine %s: a time before 1970",
				 quote(shown, m->id, strlen(m->id)));
	m->is_standby = m->state == MACHINE_STOPPING || m->state == MACHINE_STOPPED;
	if (!t->goal)
		return true;
	m->is_standby = strcmp(t->goal, "standby") == 0;
	return m->is_standby || strcmp(t->goal, "run") == 0 ||
	       error_set(e, ERROR_INVALID, "machines[]>goal: found %s; allowed: run, standby",
			 quote(shown, t->goal, strlen(t->goal)));
}

static bool read_failure(const struct failure_text *t, struct launch_failure *f, struct error *e)
{
	*f = t->failure;
	f->kind = strcmp(t->code, "stock-out") == 0 ? ERROR_STOCKOUT
		  : strcmp(t->code, "quota") == 0   ? ERROR_QUOTA
						    : ERROR_UNAVAILABLE;
	f->message = f->message ? f->message : t->code;
	f->zone = f->instance_type = "";
	return (f->id >= 0 && f->at >= 0 && f->count >= 0) ||
	       error_set(e, ERROR_INVALID, "failures[]: a negative id, time or count");
}

bool simulated_read_group(const char *text, size_t len, struct arena *a, struct group_description *out, struct error *e)
{
	struct group_text t;

	if (!text_decode(&group_record, text, len, a, &t, e))
		return false;
	struct group_description *d = &t.group;
	if (d->ends_at < 0)
		return error_set(e, ERROR_INVALID, "ends_at: a time before 1970");
	if (d->min < 0 || d->max < d->min || d->desired < 0 || d->standby < 0)
		return error_set(e, ERROR_INVALID,
				 "min %" PRId64 ", max %" PRId64 ", desired %" PRId64 ", standby_desired %" PRId64
				 " cannot be",
				 d->min, d->max, d->desired, d->standby);
	const struct machine_text *machines = t.machines.items;
	d->machines = arena_array(a, struct machine, t.machines.count);
	for (; d->machine_count < t.machines.count; d->machine_count++)
		if (!read_machine(&machines[d->machine_count], &d->machines[d->machine_count], e))
			return false;
	const struct failure_text *failures = t.failures.items;
	d->failures = arena_array(a, struct launch_failure, t.failures.count);
	for (size_t i = 0; i < t.failures.count; i++) {
		if (!read_failure(&failures[i], &d->failures[d->failure_count], e))
			return false;
		d->failure_count += strcmp(failures[i].code, "spot-loss") != 0; /* that ran: no launch failed */
	}
	if (!group_description_check(d, a, e))
		return false;
	d->busy_with = text_or_empty(d->busy_with);
	d->is_busy = *d->busy_with != '\0';
	d->abilities = t.protects ? PROVIDER_PROTECTS : 0;
	*out = *d;
	return true;
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
	if (!text_decode(&refusal_record, text, len, &scratch, &t, &ignored) || !t.code) {
		error_set(e, kind, "HTTP status %ld", status);
		return;
	}
	if (strcmp(t.code, "InsufficientCapacity") == 0)
		kind = ERROR_STOCKOUT;
	else if (strcmp(t.code, "QuotaExceeded") == 0)
		kind = ERROR_QUOTA;
	text_show(t.code, SIZE_MAX, code, sizeof code);
	text_show(t.message, SIZE_MAX, message, sizeof message);
	error_set(e, kind, "%s%s%s", code, *message ? ": " : "", message);
}

static const size_t MOST_ANSWER = (size_t)4 << 20;
enum {
	ABILITIES = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
		    PROVIDER_CANCELS
};

struct simulated {
	struct provider base;
	struct http *http;
};

struct simulated_call {
	struct exchange base;
	struct simulated_settings settings;
	struct http_request request;
	struct buf url, body;
};

static const struct field setting_fields[] = {
	FIELD_NEEDED(struct simulated_settings, endpoint, FIELD_STRING, "endpoint"),
	FIELD(struct simulated_settings, group, FIELD_STRING, "group"),
};
static const struct record_spec setting_record = RECORD(struct simulated_settings, setting_fields);

bool simulated_read_settings(const char *json, struct arena *a, struct simulated_settings *out, struct error *e)
{
	char shown[QUOTE_ROOM];

	*out = (struct simulated_settings){ 0 };
	if (!text_decode(&setting_record, json, strlen(json), a, out, e))
		return error_wrap(e, "settings of simulated");
	if (strncmp(out->endpoint, "http://", 7) != 0 && strncmp(out->endpoint, "https://", 8) != 0)
		return error_set(e, ERROR_INVALID,
				 "settings of simulated: endpoint: found %s; allowed: a URL like http://127.0.0.1:9000",
				 quote(shown, out->endpoint, strlen(out->endpoint)));
	if (out->group && !*out->group)
		out->group = NULL;
	return true;
}

static bool accepts(struct exchange *base)
{
	struct simulated_settings *s = &((struct simulated_call *)base)->settings;
	struct provider_call *c = base->call;

	if (!simulated_read_settings(c->settings ? c->settings : "{}", &c->arena, s, &c->error))
		return false;
	if (!s->group)
		s->group = c->group;
	return true;
}

static void write_url(const struct simulated_settings *s, enum provider_verb verb, struct buf *out)
{
	size_t len = strlen(s->endpoint);

	while (len && s->endpoint[len - 1] == '/')
		len--;
	buf_append(out, s->endpoint, len);
	buf_text(out, "/v1/groups/");
	uri_segment(s->group, out);
	if (provider_verb_changes(verb))
		buf_printf(out, "/%s", provider_verb_name(verb));
}

static void write_body(const struct provider_call *c, struct buf *out)
{
	buf_text(out, "{\"token\":");
	json_write_text(c->token, out);
	if (c->verb == PROVIDER_GROW || c->verb == PROVIDER_CANCEL || c->verb == PROVIDER_PROTECT)
		buf_printf(out, ",\"desired\":%" PRId64, c->desired);
	if (c->verb == PROVIDER_STANDBY)
		buf_printf(out, ",\"size\":%" PRId64, c->desired);
	if (c->verb == PROVIDER_REMOVE || c->verb == PROVIDER_STOP || c->verb == PROVIDER_CANCEL || c->id_count) {
		buf_text(out, ",\"machines\":[");
		for (size_t i = 0; i < c->id_count; i++) {
			json_write_comma(out);
			json_write_text(c->ids[i], out);
		}
		buf_text(out, "]");
	}
	buf_text(out, "}");
}

/* It asks nobody who they are: whoever sees a group may change it. */
static void tell_rights(struct provider_call *c)
{
	static const struct permission rights[] = {
		{ "describe", "sees the group", PERMISSION_GRANTED, PERMISSION_ALWAYS, "" },
		{ "grow, remove, stop, standby, cancel", "changes it", PERMISSION_UNKNOWN, PERMISSION_ALWAYS,
		  "a modelled cloud does not tell what it will let us do" },
	};

	c->identity = "nobody: a modelled cloud asks for no credentials";
	c->permissions = arena_array(&c->arena, struct permission, 2);
	memcpy(c->permissions, rights, sizeof rights);
	c->permission_count = 2;
}

static void on_answer(struct http_request *r)
{
	struct simulated_call *x = r->user;
	struct provider_call *c = x->base.call;

	if (r->error.kind != ERROR_NONE) {
		c->error = r->error;
	} else if (http_status_kind(r->status) != ERROR_NONE) {
		struct clock now = clock_open();
		simulated_read_refusal(r->status, r->response, r->response_len, &c->error);
		c->retry_after = retry_after(http_header(r, "Retry-After"), clock_now(&now));
	} else if (c->verb == PROVIDER_CHECK) {
		tell_rights(c);
	} else if (c->verb == PROVIDER_DESCRIBE &&
		   !simulated_read_group(r->response, r->response_len, &c->arena, &c->description, &c->error)) {
		error_wrap(&c->error, "answer");
	}
	c->description.abilities |= ABILITIES;
	c->description.lacks = "";
	if (!http_date(http_header(r, "Date"), &c->description.present))
		c->description.present = 0;
	exchange_finish(&x->base);
}

static void begin(struct exchange *base)
{
	static const char *const headers[] = { "Content-Type: application/json", "Accept: application/json", NULL };
	struct simulated_call *x = (struct simulated_call *)base;
	bool changes = provider_verb_changes(base->call->verb);

	write_url(&x->settings, base->call->verb, &x->url);
	if (changes)
		write_body(base->call, &x->body);
	x->request = (struct http_request){ .method = changes ? "POST" : "GET",
					    .url = x->url.text,
					    .headers = changes ? headers : headers + 1,
					    .body = x->body.text,
					    .body_len = x->body.len,
					    .is_write = changes,
					    .timeout = base->deadline,
					    .max_response = MOST_ANSWER,
					    .done = on_answer,
					    .user = x };
	http_start(((struct simulated *)base->provider)->http, &x->request);
}

static bool cancel(struct exchange *base)
{
	struct simulated_call *x = (struct simulated_call *)base;
	bool is_sent = x->request.transfer != NULL;

	http_cancel(&x->request);
	return is_sent;
}

static void end(struct exchange *base)
{
	struct simulated_call *x = (struct simulated_call *)base;

	buf_release(&x->url);
	buf_release(&x->body);
}

static const struct exchange_kind calls = {
	.size = sizeof(struct simulated_call),
	.read_deadline = 10 * SECOND,
	.change_deadline = 30 * SECOND,
	.protects = true,
	.accepts = accepts,
	.begin = begin,
	.cancel = cancel,
	.end = end,
};

static struct provider *simulated_open(const struct provider_setup *s, struct error *e)
{
	struct simulated *p = calloc(1, sizeof *p);

	(void)e;
	if (!p)
		abort();
	p->base = (struct provider){ .kind = &calls, .loop = s->loop };
	p->http = s->http;
	return &p->base;
}

static void simulated_close(struct provider *p)
{
	assert(!p || !p->active);
	free(p);
}

const struct provider_ops provider_simulated = {
	.name = "simulated",
	.abilities = ABILITIES | PROVIDER_PROTECTS,
	.open = simulated_open,
	.close = simulated_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
};
