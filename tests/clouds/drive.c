/*
 * Providers driven from outside: a JSON object a line on stdin is a call, a JSON object a line on stdout its outcome.
 *
 *	{"provider": "eks", "verb": "grow", "group": "g5", "settings": {...}, "token": "t1", "desired": 3}
 *
 * ids, unready, pending (an operation's name), in_full and timeout_ms are the call's others. One provider of a name
 * serves all lines, so that credentials are kept as in the controller. Exit code 2 for a line that is no call.
 */
#include "base/buf.h"
#include "base/decode.h"
#include "base/json.h"
#include "base/net/http.h"
#include "providers/provider.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct id_text {
	const char *id;
};

struct line {
	const char *provider, *verb, *group, *token, *pending;
	struct decoded_text settings;
	int64_t desired, size, timeout_ms;
	bool in_full;
	struct decoded_list ids, unready;
};

static const struct field id_fields[] = { FIELD(struct id_text, id, FIELD_STRING, "") };
static const struct record_spec id_record = { "", sizeof(struct id_text), id_fields, 1 };
static const struct field line_fields[] = {
	{ .path = "provider", .type = FIELD_STRING, .offset = offsetof(struct line, provider), .required = true },
	{ .path = "verb", .type = FIELD_STRING, .offset = offsetof(struct line, verb), .required = true },
	{ .path = "group", .type = FIELD_STRING, .offset = offsetof(struct line, group), .required = true },
	FIELD(struct line, token, FIELD_STRING, "token"),
	FIELD(struct line, pending, FIELD_STRING, "pending"),
	FIELD(struct line, settings, FIELD_RAW, "settings"),
	FIELD(struct line, desired, FIELD_INT, "desired"),
	FIELD(struct line, size, FIELD_INT, "size"),
	FIELD(struct line, timeout_ms, FIELD_INT, "timeout_ms"),
	FIELD(struct line, in_full, FIELD_BOOL, "in_full"),
	{ .path = "ids", .type = FIELD_LIST, .offset = offsetof(struct line, ids), .of = &id_record },
	{ .path = "unready", .type = FIELD_LIST, .offset = offsetof(struct line, unready), .of = &id_record },
};
static const struct record_spec line_record = { "", sizeof(struct line), line_fields,
						sizeof line_fields / sizeof *line_fields };

enum { PROVIDERS_MOST = 8 };
static struct loop *loop;
static struct http *http;
static struct {
	const struct provider_ops *ops;
	struct provider *provider;
} opened[PROVIDERS_MOST];

static void stop(int code, const char *message)
{
	fprintf(stderr, "drive: %s\n", message);
	exit(code);
}

static size_t open_provider(const char *name)
{
	const struct provider_ops *ops = provider_find(name);
	struct error e = { 0 };
	size_t i = 0;

	if (!ops)
		stop(2, "there is no such provider");
	while (i < PROVIDERS_MOST && opened[i].ops && opened[i].ops != ops)
		i++;
	if (i == PROVIDERS_MOST)
		stop(2, "more providers than there is room for");
	if (!opened[i].ops) {
		opened[i].ops = ops;
		opened[i].provider = ops->open(&(struct provider_setup){ loop, http, NULL }, &e);
		if (!opened[i].provider)
			stop(3, e.message);
	}
	return i;
}

static enum provider_verb verb_of(const char *name)
{
	for (enum provider_verb v = 0; v < PROVIDER_VERB_COUNT; v++)
		if (!strcmp(provider_verb_name(v), name))
			return v;
	stop(2, "there is no such verb");
	return PROVIDER_VERB_COUNT;
}

static void on_done(struct provider_call *c)
{
	*(bool *)c->user = true;
}

static void write_member(struct buf *out, const char *name, const char *text)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":", name);
	json_write_text(text ? text : "", out);
}

static void write_number(struct buf *out, const char *name, int64_t value)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":%" PRId64, name, value);
}

static void write_machine(const struct machine *m, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
	write_member(out, "id", m->id);
	write_member(out, "provider_id", m->provider_id);
	write_member(out, "zone", m->zone);
	write_member(out, "instance_type", m->instance_type);
	write_member(out, "state", machine_state_name(m->state));
	buf_printf(out, ",\"is_standby\":%s", m->is_standby ? "true" : "false");
	write_number(out, "launched_at", m->launched_at);
	buf_text(out, "}");
}

static void write_failure(const struct launch_failure *f, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
	write_number(out, "id", f->id);
	write_number(out, "at", f->at);
	write_member(out, "kind", error_kind_name(f->kind));
	write_member(out, "message", f->message);
	write_number(out, "count", f->count);
	write_member(out, "zone", f->zone);
	write_member(out, "instance_type", f->instance_type);
	write_number(out, "back_off", f->back_off);
	buf_text(out, "}");
}

static void write_description(const struct group_description *d, struct buf *out)
{
	buf_text(out, ",\"description\":{");
	write_number(out, "min", d->min);
	write_number(out, "max", d->max);
	write_number(out, "desired", d->desired);
	write_number(out, "standby", d->standby);
	buf_printf(out, ",\"is_busy\":%s", d->is_busy ? "true" : "false");
	write_number(out, "ends_at", d->ends_at);
	write_number(out, "exposed", d->exposed);
	write_number(out, "guarded", d->guarded);
	write_number(out, "new_machines", d->new_machines);
	write_number(out, "abilities", d->abilities);
	write_member(out, "lacks", d->lacks);
	buf_text(out, ",\"cautions\":[");
	for (size_t i = 0; i < d->caution_count; i++) {
		json_write_comma(out);
		json_write_text(d->cautions[i], out);
	}
	buf_text(out, "],\"machines\":[");
	for (size_t i = 0; i < d->machine_count; i++)
		write_machine(&d->machines[i], out);
	buf_text(out, "],\"failures\":[");
	for (size_t i = 0; i < d->failure_count; i++)
		write_failure(&d->failures[i], out);
	buf_text(out, "]}");
}

static void write_permissions(const struct provider_call *c, struct buf *out)
{
	static const char *const states[] = {
		[PERMISSION_GRANTED] = "granted", [PERMISSION_DENIED] = "denied", [PERMISSION_UNKNOWN] = "unknown"
	};

	write_member(out, "identity", c->identity);
	buf_text(out, ",\"permissions\":[");
	for (size_t i = 0; i < c->permission_count; i++) {
		json_write_comma(out);
		buf_text(out, "{");
		write_member(out, "action", c->permissions[i].action);
		write_member(out, "state", states[c->permissions[i].state]);
		write_member(out, "message", c->permissions[i].message);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void tell(const struct provider_call *c)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	buf_text(&out, "{");
	write_member(&out, "verb", provider_verb_name(c->verb));
	write_member(&out, "group", c->group);
	write_member(&out, "kind", c->error.kind == ERROR_NONE ? "ok" : error_kind_name(c->error.kind));
	write_member(&out, "message", c->error.kind == ERROR_NONE ? "" : c->error.message);
	write_number(&out, "retry_after", c->retry_after);
	if (c->error.kind == ERROR_NONE) {
		write_member(&out, "operation", c->operation);
		if (c->verb == PROVIDER_DESCRIBE)
			write_description(&c->description, &out);
		if (c->verb == PROVIDER_CHECK)
			write_permissions(c, &out);
	}
	buf_text(&out, "}\n");
	fputs(out.text, stdout);
	fflush(stdout);
}

/* The list's texts; the caller frees it. */
static const char **names_of(const struct decoded_list *list)
{
	const struct id_text *ids = list->items;
	const char **names = calloc(list->count + 1, sizeof *names);

	if (!names)
		stop(3, "out of memory");
	for (size_t i = 0; i < list->count; i++)
		names[i] = ids[i].id;
	return names;
}

static void drive(const struct line *l, const char *settings)
{
	const char **ids = names_of(&l->ids), **unready = names_of(&l->unready);
	size_t at = open_provider(l->provider);
	bool is_done = false;
	struct provider_call c = { .verb = verb_of(l->verb),
				   .group = l->group,
				   .settings = settings,
				   .token = l->token,
				   .desired = l->desired,
				   .size = l->size,
				   .ids = ids,
				   .id_count = l->ids.count,
				   .unready = unready,
				   .unready_count = l->unready.count,
				   .pending = l->pending,
				   .in_full = l->in_full,
				   .timeout = l->timeout_ms,
				   .done = on_done,
				   .user = &is_done };

	opened[at].ops->start(opened[at].provider, &c);
	while (!is_done && loop_once(loop))
		;
	if (!is_done)
		stop(3, "the call never ends");
	tell(&c);
	provider_call_release(&c);
	free(ids);
	free(unready);
}

static void serve(const struct decode_plan *plan, const char *text)
{
	struct line l;
	struct arena a = { 0 };
	struct error e = { 0 };

	if (!decode_record(plan, text, strlen(text), &a, &l, &e))
		stop(2, e.message);
	char *settings = strndup(l.settings.text ? l.settings.text : "{}", l.settings.text ? l.settings.len : 2);
	drive(&l, settings);
	free(settings);
	arena_release(&a);
}

int main(void)
{
	struct decode_plan *plan = decode_plan_new(&line_record);
	struct error e = { 0 };
	char *text = NULL;
	size_t room = 0;

	loop = loop_open();
	http = http_open(loop, "preheat/0", &e);
	if (!http)
		stop(3, e.message);
	while (getline(&text, &room, stdin) > 0)
		serve(plan, text);
	free(text);
	for (size_t i = 0; i < PROVIDERS_MOST; i++)
		if (opened[i].ops)
			opened[i].ops->close(opened[i].provider);
	http_close(http);
	loop_close(loop);
	decode_plan_free(plan);
	return 0;
}
