/* preheat provider: what clouds say of us and of node groups, beside what manifests want. */
#include "base/buf.h"
#include "base/terminal.h"
#include "base/json.h"
#include "base/text.h"
#include "base/net/retry.h"
#include "base/table.h"
#include "controller/commands/cluster_args.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/provider_prove.h"
#include "controller/loop/fleet.h"
#include "controller/manifest/manifest.h"
#include "providers/block.h"
#include "providers/provider.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * `preheat provider check`: what a node group's cloud tells of us and of the
 * group, put beside what the manifest wants of it.
 */

/* Ordered by weight: of all groups the heaviest counts. */
enum group_verdict { GROUP_FINE, GROUP_REFUSED, GROUP_UNANSWERED };

struct sentences {
	const char **items;
	size_t count, room;
};

struct group_check {
	const struct group_spec *spec;
	const char *pools;		      /* "llm/chat, llm/batch" */
	bool is_watched;		      /* none of these pools acts */
	struct error error;		      /* why nobody could be asked; then neither call was made */
	struct provider_call check, describe; /* as they ended */

	/* filled in by group_check_judge() */
	enum group_verdict verdict;
	struct sentences refused, would, notes; /* sentences in the arena given */
};

/* Machines of one kind. */
struct machine_row {
	enum machine_state state;
	const char *zone, *instance_type;
	bool is_standby;
	int64_t count;
};

/* On standard output. */

/* Asks all at once; `timeout` for each group. What cannot be asked is told in the group's error. */
struct cluster_args;

static const char *group_verdict_name(enum group_verdict verdict)
{
	static const char *const names[] = { "fine", "refused", "unanswered" };

	return names[verdict];
}

static const char *permission_state_name(enum permission_state state)
{
	static const char *const names[] = { "granted", "denied", "unknown" };

	return names[state];
}

static void PRINTF(3, 4) say(struct sentences *s, struct arena *a, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list ap;

	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 8;
		const char **items = arena_array(a, const char *, s->room);
		if (s->count)
			memcpy(items, s->items, s->count * sizeof *items);
		s->items = items;
	}
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	s->items[s->count++] = arena_strdup(a, text.text, text.len);
}

static enum group_verdict verdict_of(enum error_kind kind)
{
	switch (kind) {
	case ERROR_NONE:
		return GROUP_FINE;
	case ERROR_AUTH:
	case ERROR_NOT_FOUND:
	case ERROR_CONFLICT:
	case ERROR_INVALID:
	case ERROR_QUOTA:
	case ERROR_STOCKOUT:
		return GROUP_REFUSED;
	case ERROR_THROTTLED:
	case ERROR_TIMEOUT:
	case ERROR_UNAVAILABLE:
	case ERROR_CANCELLED:
	case ERROR_INTERNAL:
		return GROUP_UNANSWERED;
	}
	return GROUP_UNANSWERED;
}

static void take_error(struct group_check *g, const struct error *e, struct arena *a)
{
	enum group_verdict v = verdict_of(e->kind);

	if (v == GROUP_FINE)
		return;
	g->verdict = v > g->verdict ? v : g->verdict;
	say(v == GROUP_REFUSED ? &g->refused : &g->notes, a, "%s", e->message);
}

/* Whether the group can do without it: standby that is not wanted, or what only helps. */
static bool group_check_can_do_without(const struct group_check *g, const struct permission *p)
{
	switch (p->need) {
	case PERMISSION_ALWAYS:
		return false;
	case PERMISSION_FOR_STANDBY:
		return !g->spec->standby_max_nodes;
	case PERMISSION_HELPS:
		return true;
	}
	return false;
}

static void weigh_permissions(struct group_check *g, struct arena *a)
{
	for (size_t i = 0; i < g->check.permission_count; i++) {
		const struct permission *p = &g->check.permissions[i];
		if (p->state == PERMISSION_DENIED && !group_check_can_do_without(g, p))
			say(&g->refused, a, "%s is denied (%s)%s%s", p->action, p->purpose, *p->message ? ": " : "",
			    p->message);
	}
}

/* The cloud's bounds beside the manifest's. */
static void weigh_bounds(struct group_check *g, struct arena *a)
{
	const struct group_description *d = &g->describe.description;
	const struct group_spec *s = g->spec;
	bool knows_max = d->max > 0 || !provider_find(s->provider)->asks_cluster;

	if (knows_max && s->max_nodes > d->max)
		say(&g->refused, a,
		    "sizes above %" PRId64 ", the cloud's own maximum: raise it, or lower max (%" PRId64
		    ") in the manifest",
		    d->max, s->max_nodes);
	if (s->min_nodes < d->min)
		say(&g->notes, a, "never below %" PRId64 ", the cloud's own minimum; the manifest's min is %" PRId64,
		    d->min, s->min_nodes);
}

static void weigh_abilities(struct group_check *g, struct arena *a)
{
	const struct group_description *d = &g->describe.description;
	bool has_standby = d->abilities & PROVIDER_HAS_STANDBY;

	if (d->is_refused)
		say(&g->refused, a, "%s", d->lacks);
	else if (g->spec->standby_max_nodes && !has_standby)
		say(&g->refused, a, "standby, which the manifest wants: %s", *d->lacks ? d->lacks : "it has none");
	else if (*d->lacks)
		say(&g->notes, a, "%s", d->lacks);
	if (d->ailment && *d->ailment)
		say(&g->notes, a, "its cloud says: %s", d->ailment);
	for (size_t i = 0; i < d->caution_count; i++)
		say(&g->notes, a, "%s", d->cautions[i]);
}

/* What a machine of the group is not, and the manifest says that it is. */
static void weigh_machines(struct group_check *g, struct arena *a)
{
	const struct group_description *d = &g->describe.description;
	int64_t elsewhere = 0, others = 0;

	for (size_t i = 0; i < d->machine_count; i++) {
		const struct machine *m = &d->machines[i];
		elsewhere += *g->spec->zone && *m->zone && strcmp(g->spec->zone, m->zone) != 0;
		others += *g->spec->instance_type && *m->instance_type &&
			  strcmp(g->spec->instance_type, m->instance_type) != 0;
	}
	if (elsewhere)
		say(&g->notes, a, "%" PRId64 " of its machines are not in %s, the manifest's zone", elsewhere,
		    g->spec->zone);
	if (others)
		say(&g->notes, a, "%" PRId64 " of its machines are not %s, the manifest's instance type", others,
		    g->spec->instance_type);
}

static void tell_changes(struct group_check *g, struct arena *a)
{
	const struct group_description *d = &g->describe.description;
	const struct group_spec *s = g->spec;

	const char *unprotect = provider_find(s->provider)->unprotect;

	if (g->is_watched && d->guarded)
		say(&g->notes, a,
		    "%" PRId64
		    " of its machines are protected from scale-in, and no pool acts on it: an instance refresh "
		    "waits for them, and nobody lifts it by itself where Preheat did not run as its pool went%s%s",
		    d->guarded, unprotect ? "; do: " : "", unprotect ? unprotect : "");
	if (g->is_watched) {
		say(&g->would, a, "change nothing: no pool on it has mode: act");
		return;
	}
	if (d->is_refused)
		return;
	if (d->busy_with && *d->busy_with) {
		say(&g->would, a, "change nothing until that is over");
		return;
	}
	if (d->desired < s->min_nodes && !(d->emptied_by && *d->emptied_by))
		say(&g->would, a, "raise the size from %" PRId64 " to the manifest's min of %" PRId64, d->desired,
		    s->min_nodes);
	if (d->desired > s->max_nodes)
		say(&g->would, a,
		    "lower the size from %" PRId64 " to the manifest's max of %" PRId64 ", as its machines get idle",
		    d->desired, s->max_nodes);
	if (d->exposed)
		say(&g->would, a,
		    "protect %" PRId64 " machine%s in service at once, so that none ends by the cloud's own choice",
		    d->exposed, d->exposed == 1 ? "" : "s");
	if (d->new_machines == NEW_MACHINES_EXPOSED)
		say(&g->would, a, "set the group so that it protects new machines from scale-in");
	for (size_t i = 0; i < d->beside_count; i++)
		say(&g->would, a, "%s, when it first changes the size", d->besides[i]);
}

/* What was being done stands before the cause, so that two that end alike, from some colon on, are one. */
static bool has_same_cause(const struct error *a, const struct error *b)
{
	size_t m = strlen(a->message), n = strlen(b->message), same = 0;

	if (a->kind != b->kind)
		return false;
	while (same < m && same < n && a->message[m - 1 - same] == b->message[n - 1 - same])
		same++;
	if (same == m || same == n)
		return true;
	const char *colon = strstr(a->message + m - same, ": ");
	return colon && 2 * strlen(colon) > n;
}

/* Weighs one group's answers. */
static void group_check_judge(struct group_check *g, struct arena *a)
{
	g->verdict = GROUP_FINE;
	take_error(g, &g->error, a);
	take_error(g, &g->check.error, a);
	if (!has_same_cause(&g->check.error, &g->describe.error))
		take_error(g, &g->describe.error, a);
	weigh_permissions(g, a);
	if (g->error.kind == ERROR_NONE && g->describe.error.kind == ERROR_NONE) {
		weigh_bounds(g, a);
		weigh_abilities(g, a);
		weigh_machines(g, a);
		tell_changes(g, a);
	}
	if (g->refused.count && g->verdict == GROUP_FINE)
		g->verdict = GROUP_REFUSED;
}

static int by_kind(const void *left, const void *right)
{
	const struct machine_row *a = left, *b = right;
	int zone = strcmp(a->zone, b->zone), type = strcmp(a->instance_type, b->instance_type);

	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return zone ? zone : type ? type : (int)a->is_standby - (int)b->is_standby;
}

/* By state, zone and type; in the arena. */
static size_t machine_rows(const struct group_description *d, struct arena *a, struct machine_row **out)
{
	struct machine_row *rows = arena_array(a, struct machine_row, d->machine_count + 1);
	size_t count = 0;

	for (size_t i = 0; i < d->machine_count; i++) {
		const struct machine *m = &d->machines[i];
		rows[i] = (struct machine_row){ m->state, m->zone, m->instance_type, m->is_standby, 1 };
	}
	if (d->machine_count)
		qsort(rows, d->machine_count, sizeof *rows, by_kind);
	for (size_t i = 0; i < d->machine_count; i++)
		if (count && by_kind(&rows[count - 1], &rows[i]) == 0)
			rows[count - 1].count++;
		else
			rows[count++] = rows[i];
	*out = rows;
	return count;
}

enum { PROVIDERS_MOST = 16 };

/* What all calls share. */
struct asking {
	struct loop *loop;
	struct http *http;
	struct cluster_access access;
	bool has_access;
	struct error no_access;
	struct cluster_door door;
	struct provider *opened[PROVIDERS_MOST]; /* as provider_at() counts */
	struct progress progress;
	size_t under_way, answered;
};

/* A call that is made again while the cloud says that there are too many. */
struct asked {
	struct asking *all;
	const struct provider_ops *ops;
	struct provider *provider;
	struct provider_call *call;
	struct retry retry;
	struct timer later;
	millis until;
};

static void start(struct asked *a)
{
	a->call->timeout = a->until - loop_now(a->all->loop);
	a->ops->start(a->provider, a->call);
}

static void on_time(struct timer *t)
{
	start(t->user);
}

static void on_done(struct provider_call *c)
{
	struct asked *a = c->user;
	millis left = a->until - loop_now(a->all->loop);
	millis wait = retry_next(&a->retry, c->retry_after);

	if (c->error.kind == ERROR_THROTTLED && wait < left) {
		timer_start(a->all->loop, &a->later, wait, on_time);
		return;
	}
	a->all->under_way--;
	progress_show(&a->all->progress, (int64_t)++a->all->answered);
}

static bool open_loop(struct asking *all, bool needs_cluster, const struct cluster_args *o, struct error *e)
{
	static char agent[64];

	all->has_access = needs_cluster && cluster_access_open(&all->access, o, NULL, &all->no_access);
	if (all->has_access) {
		all->loop = all->access.loop;
		all->http = all->access.http;
		all->door = cluster_client_open(all->access.api);
		return true;
	}
	snprintf(agent, sizeof agent, "preheat/%s", command_version_text() + strlen("preheat "));
	all->loop = loop_open();
	all->http = http_open(all->loop, agent, e);
	if (!all->http)
		loop_close(all->loop);
	return all->http;
}

static void close_loop(struct asking *all)
{
	for (size_t i = 0; i < PROVIDERS_MOST; i++)
		if (all->opened[i])
			provider_at(i)->close(all->opened[i]);
	if (all->has_access) {
		cluster_access_close(&all->access);
		return;
	}
	while (http_active(all->http) && loop_once(all->loop))
		;
	http_close(all->http);
	loop_close(all->loop);
}

/* The group's provider, opened once; NULL with the group's error. */
static struct provider *provider_of(struct asking *all, struct group_check *g, const struct provider_ops *ops)
{
	size_t at = 0;

	while (provider_at(at) != ops)
		at++;
	if (ops->asks_cluster && !all->has_access) {
		error_set(&g->error, ERROR_UNAVAILABLE, "%s", all->no_access.message);
		return NULL;
	}
	if (!all->opened[at])
		all->opened[at] =
			ops->open(&(struct provider_setup){ all->loop, all->http, all->has_access ? &all->door : NULL },
				  &g->error);
	return all->opened[at];
}

static void ask(struct asked *a, const struct group_check *g, enum provider_verb verb, struct provider_call *call)
{
	*call = (struct provider_call){
		.verb = verb,
		.group = g->spec->name,
		.settings = g->spec->settings,
		.in_full = true,
		.done = on_done,
		.user = a,
	};
	a->call = call;
	a->later.user = a;
	a->all->under_way++;
	start(a);
}

static bool is_only_simulated(const struct group_spec *s)
{
	return !strcmp(s->provider, "simulated") && !strstr(s->settings, "\"endpoint\"");
}

static void begin(struct asking *all, struct group_check *g, millis timeout, struct asked calls[2])
{
	const struct provider_ops *ops = provider_find(g->spec->provider);
	struct clock wall = clock_open();

	if (is_only_simulated(g->spec)) {
		CLEANUP(buf_release) struct buf blocks = { 0 };
		provider_list_blocks(true, &blocks);
		error_set(&g->error, ERROR_INVALID, "no cloud is named: add %s to the node group", blocks.text);
		return;
	}
	struct provider *p = provider_of(all, g, ops);
	if (!p)
		return;
	for (int i = 0; i < 2; i++)
		calls[i] = (struct asked){
			.all = all,
			.ops = ops,
			.provider = p,
			.until = loop_now(all->loop) + timeout,
			.retry = retry_make(SECOND, 10 * SECOND,
					    random_stream((uint64_t)(clock_now(&wall) + i), g->spec->name)),
		};
	ask(&calls[0], g, PROVIDER_CHECK, &g->check);
	ask(&calls[1], g, PROVIDER_DESCRIBE, &g->describe);
}

static bool provider_check_ask(struct group_check *groups, size_t count, const struct cluster_args *o, millis timeout,
			       struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct asked *calls = arena_array(&a, struct asked, 2 * count);
	struct asking all = { 0 };
	bool needs_cluster = false;

	for (size_t i = 0; i < count; i++)
		needs_cluster |= provider_find(groups[i].spec->provider)->asks_cluster;
	if (!open_loop(&all, needs_cluster, o, e))
		return false;
	all.progress = progress_start("asking", "calls", (int64_t)(2 * count));
	for (size_t i = 0; i < count; i++)
		begin(&all, &groups[i], timeout, &calls[2 * i]);
	while (all.under_way && loop_once(all.loop))
		;
	progress_end(&all.progress);
	close_loop(&all);
	return true;
}

static void write_sentences(const char *key, const struct sentences *s, struct buf *out)
{
	print_json_name(key, out);
	buf_text(out, "[");
	for (size_t i = 0; i < s->count; i++) {
		json_write_comma(out);
		json_write_text(s->items[i], out);
	}
	buf_text(out, "]");
}

static void write_error(const char *key, const struct error *e, struct buf *out)
{
	print_json_name(key, out);
	if (e->kind == ERROR_NONE) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{");
	print_json_text("kind", error_kind_name(e->kind), out);
	print_json_text("message", e->message, out);
	buf_text(out, "}");
}

static void write_permissions(const struct group_check *g, struct buf *out)
{
	print_json_name("permissions", out);
	buf_text(out, "[");
	for (size_t i = 0; i < g->check.permission_count; i++) {
		const struct permission *p = &g->check.permissions[i];
		json_write_comma(out);
		buf_text(out, "\n      {");
		print_json_text("action", p->action, out);
		print_json_text("state", permission_state_name(p->state), out);
		print_json_bool("needed", !group_check_can_do_without(g, p), out);
		print_json_text("purpose", p->purpose, out);
		print_json_text("message", p->message, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_machines(const struct group_description *d, struct arena *a, struct buf *out)
{
	struct machine_row *rows;
	size_t count = machine_rows(d, a, &rows);

	print_json_name("machines", out);
	buf_text(out, "[");
	for (size_t i = 0; i < count; i++) {
		json_write_comma(out);
		buf_text(out, "{");
		print_json_text("state", machine_state_name(rows[i].state), out);
		print_json_text("zone", rows[i].zone, out);
		print_json_text("instanceType", rows[i].instance_type, out);
		print_json_bool("standby", rows[i].is_standby, out);
		print_json_number("count", rows[i].count, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_failures(const struct group_description *d, struct buf *out)
{
	print_json_name("failures", out);
	buf_text(out, "[");
	for (size_t i = 0; i < d->failure_count; i++) {
		const struct launch_failure *f = &d->failures[i];
		json_write_comma(out);
		buf_text(out, "{");
		print_json_text("kind", error_kind_name(f->kind), out);
		print_json_text("zone", f->zone, out);
		print_json_text("instanceType", f->instance_type, out);
		print_json_number("count", f->count, out);
		print_json_text("message", f->message, out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_sight(const struct group_check *g, struct arena *a, struct buf *out)
{
	const struct group_description *d = &g->describe.description;

	print_json_name("sees", out);
	if (g->error.kind != ERROR_NONE || g->describe.error.kind != ERROR_NONE) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{");
	print_json_number("min", d->min, out);
	print_json_number("max", d->max, out);
	print_json_number("desired", d->desired, out);
	print_json_number("standby", d->standby, out);
	print_json_bool("hasStandby", d->abilities & PROVIDER_HAS_STANDBY, out);
	print_json_bool("busy", d->is_busy, out);
	write_machines(d, a, out);
	write_failures(d, out);
	buf_text(out, "}");
}

static void provider_check_write_json(const struct group_check *groups, size_t count, struct arena *a, struct buf *out)
{
	buf_text(out, "{\"nodeGroups\":[");
	for (size_t i = 0; i < count; i++) {
		const struct group_check *g = &groups[i];
		json_write_comma(out);
		buf_text(out, "\n  {");
		print_json_text("name", g->spec->name, out);
		print_json_text("pools", g->pools, out);
		print_json_text("provider", g->spec->provider, out);
		print_json_text("verdict", group_verdict_name(g->verdict), out);
		print_json_text("identity", g->check.identity, out);
		write_error("error", &g->error, out);
		write_error("checkError", &g->check.error, out);
		write_error("describeError", &g->describe.error, out);
		write_sight(g, a, out);
		write_sentences("refused", &g->refused, out);
		write_sentences("would", &g->would, out);
		write_sentences("notes", &g->notes, out);
		write_permissions(g, out);
		buf_text(out, "}");
	}
	buf_text(out, "\n]}\n");
}

static const enum style verdict_styles[] = { STYLE_GOOD, STYLE_BAD, STYLE_WARN };
static const enum style state_styles[] = { STYLE_GOOD, STYLE_BAD, STYLE_WARN };

static void print_line(const char *title, const char *text)
{
	printf("  %-10s %s\n", title, text);
}

static void print_all(const char *title, const struct sentences *s)
{
	for (size_t i = 0; i < s->count; i++)
		print_line(i ? "" : title, s->items[i]);
}

static void print_machines(const struct group_description *d, struct arena *a)
{
	struct machine_row *rows;
	size_t count = machine_rows(d, a, &rows);

	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		const struct machine_row *r = &rows[i];
		buf_printf(&text, "%" PRId64 " %s%s%s%s%s%s", r->count, machine_state_name(r->state),
			   *r->instance_type ? " " : "", r->instance_type, *r->zone ? " in " : "", r->zone,
			   r->is_standby && r->state != MACHINE_STOPPED ? ", for standby" : "");
		print_line(i ? "" : "machines", text.text);
	}
	if (!count)
		print_line("machines", "none");
}

static void print_failures(const struct group_description *d)
{
	for (size_t i = 0; i < d->failure_count; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		const struct launch_failure *f = &d->failures[i];
		buf_printf(&text, "%" PRId64 " %s%s%s%s%s: %s", f->count, error_kind_name(f->kind),
			   *f->instance_type ? " " : "", f->instance_type, *f->zone ? " in " : "", f->zone, f->message);
		print_line(i ? "" : "failures", text.text);
	}
	if (!d->failure_count)
		print_line("failures", "none that leave machines missing");
}

static void print_sight(const struct group_check *g, struct arena *a)
{
	const struct group_description *d = &g->describe.description;
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%" PRId64 " asked for; cloud %" PRId64, d->desired, d->min);
	if (d->max)
		buf_printf(&text, " to %" PRId64, d->max);
	else
		buf_text(&text, " and up");
	buf_printf(&text, ", manifest %" PRId64 " to %" PRId64, g->spec->min_nodes, g->spec->max_nodes);
	if (d->abilities & PROVIDER_HAS_STANDBY)
		buf_printf(&text, "; standby %" PRId64 ", manifest up to %" PRId64, d->standby,
			   g->spec->standby_max_nodes);
	print_line("size", text.text);
	print_machines(d, a);
	print_failures(d);
	if (d->is_busy)
		print_line("busy", d->busy_with && *d->busy_with ? d->busy_with : "an operation is under way there");
	if (d->emptied_by && *d->emptied_by)
		print_line("off", d->emptied_by);
}

static void print_permissions(const struct group_check *g, bool is_wide)
{
	static const struct table_column columns[] = {
		{ .name = "permission" }, { .name = "state" }, { .name = "for" }, { .name = "answer", .is_wide = true }
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < g->check.permission_count; i++) {
		CLEANUP(buf_release) struct buf purpose = { 0 };
		const struct permission *p = &g->check.permissions[i];
		bool is_spare = p->state == PERMISSION_DENIED && group_check_can_do_without(g, p);
		buf_printf(&purpose, "%s%s", p->purpose, is_spare ? " (not needed here)" : "");
		if (p->state == PERMISSION_UNKNOWN && *p->message)
			buf_printf(&purpose, ": %s", p->message);
		table_text(t, p->action);
		table_text(t, permission_state_name(p->state));
		table_style(t, is_spare ? STYLE_FAINT : state_styles[p->state]);
		table_text(t, purpose.text);
		table_text(t, p->message);
	}
	if (table_rows(t)) {
		puts("");
		table_print(t, is_wide ? TABLE_WIDE : TABLE_PLAIN, stdout);
	}
	table_free(t);
}

static void print_group(const struct group_check *g, const struct terminal *t, bool is_wide, struct arena *a)
{
	bool was_asked = g->error.kind == ERROR_NONE;

	printf("%s%s%s: %s%s%s\n", terminal_style(t, STYLE_STRONG), g->spec->name, terminal_style(t, STYLE_PLAIN),
	       terminal_style(t, verdict_styles[g->verdict]), group_verdict_name(g->verdict),
	       terminal_style(t, STYLE_PLAIN));
	print_line("pools", g->pools);
	print_line("provider", g->spec->provider);
	if (was_asked && g->check.identity)
		print_line("identity", g->check.identity);
	if (was_asked && g->describe.error.kind == ERROR_NONE)
		print_sight(g, a);
	print_all("refused", &g->refused);
	print_all("would", &g->would);
	print_all("note", &g->notes);
	if (was_asked)
		print_permissions(g, is_wide);
	puts("");
}

/* For people; wide with what each permission's answer said. */
static void provider_check_print(const struct group_check *groups, size_t count, bool is_wide, struct arena *a)
{
	struct terminal t = terminal_of(stdout);
	size_t counts[GROUP_UNANSWERED + 1] = { 0 };

	for (size_t i = 0; i < count; i++) {
		print_group(&groups[i], &t, is_wide, a);
		counts[groups[i].verdict]++;
	}
	printf("%zu node group%s: %zu fine, %zu refused, %zu unanswered. Nothing was changed.\n", count,
	       count == 1 ? "" : "s", counts[GROUP_FINE], counts[GROUP_REFUSED], counts[GROUP_UNANSWERED]);
}

static const millis USUAL_TIMEOUT = MINUTE;

struct options {
	struct option_list pools, groups;
	const char *output, *out;
	struct cluster_args access;
	millis timeout;
	bool proves;
};

static bool is_asked_for(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->groups.count; i++)
		if (!strcmp(o->groups.items[i], name))
			return true;
	return !o->groups.count;
}

static bool check_names(const struct options *o, const struct fleet_spec *fleet, struct arena *a, struct error *e)
{
	const char **names = arena_array(a, const char *, fleet->group_count);
	CLEANUP(buf_release) struct buf all = { 0 };
	char shown[QUOTE_ROOM];

	for (size_t i = 0; i < fleet->group_count; i++) {
		names[i] = fleet->groups[i].name;
		buf_printf(&all, i ? ", %s" : "%s", names[i]);
	}
	for (size_t i = 0; i < o->groups.count; i++) {
		const char *wanted = o->groups.items[i];
		size_t k = 0;
		while (k < fleet->group_count && strcmp(names[k], wanted) != 0)
			k++;
		if (k < fleet->group_count)
			continue;
		const char *near = nearest_name(wanted, names, fleet->group_count);
		return error_set(e, ERROR_INVALID, "--group: no node group is called %s; %s%s%s",
				 quote(shown, wanted, strlen(wanted)),
				 near ? "did you mean '" : "there are: ", near ? near : all.text, near ? "'?" : "");
	}
	return true;
}

/* Which pools are on the group, and whether any of them acts. */
static void add_pools(const struct fleet_spec *fleet, size_t group, struct arena *a, struct group_check *g)
{
	CLEANUP(buf_release) struct buf names = { 0 };

	g->is_watched = true;
	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];
		for (size_t k = 0; k < p->group_count; k++) {
			if (p->groups[k] != group)
				continue;
			buf_printf(&names, "%s%s/%s", names.len ? ", " : "", p->namespace, p->name);
			g->is_watched &= p->mode != MODE_ACT;
		}
	}
	g->pools = arena_strdup(a, names.text ? names.text : "", names.len);
}

static size_t choose(const struct options *o, const struct fleet_spec *fleet, struct arena *a, struct group_check *out)
{
	size_t count = 0;

	for (size_t i = 0; i < fleet->group_count; i++) {
		if (!is_asked_for(o, fleet->groups[i].name))
			continue;
		out[count].spec = &fleet->groups[i];
		add_pools(fleet, i, a, &out[count++]);
	}
	return count;
}

static int print(const struct options *o, struct group_check *groups, size_t count, struct arena *a)
{
	static const int codes[] = { EXIT_DONE, EXIT_FOUND, EXIT_ENVIRONMENT };
	enum group_verdict worst = GROUP_FINE;

	for (size_t i = 0; i < count; i++) {
		group_check_judge(&groups[i], a);
		worst = groups[i].verdict > worst ? groups[i].verdict : worst;
	}
	if (print_is_for_programs(o->output)) {
		CLEANUP(print_tree_release) struct printed_tree answer = { .rows = "nodeGroups" };
		provider_check_write_json(groups, count, a, &answer.json);
		print_tree(&answer, o->output);
	} else {
		provider_check_print(groups, count, !strcmp(o->output, "wide"), a);
	}
	return codes[worst];
}

static bool load(const struct options *o, struct arena *a, struct manifest *m, struct error *e)
{
	CLEANUP(findings_release) struct findings f = { 0 };

	if (!o->pools.count)
		return error_set(e, ERROR_INVALID, "no pool: name its manifest with -f FILE");
	return manifest_load(o->pools.items, o->pools.count, a, m, &f, e) && check_names(o, &m->fleet, a, e);
}

static bool may_prove(const struct options *o, struct error *e)
{
	for (size_t i = 0; i < o->pools.count; i++)
		if (!strcmp(o->pools.items[i], "-"))
			return error_set(
				e, ERROR_INVALID,
				"--prove: -f - is standard input, where the answers come from; do: name a file");
	if (o->groups.count > 1)
		return error_set(e, ERROR_INVALID, "--prove: found %zu times --group; allowed: one", o->groups.count);
	if (strcmp(o->output, "table") != 0)
		return error_set(
			e, ERROR_INVALID,
			"--prove: found -o %s; allowed: none, as it asks a person; the answers go to --out FILE",
			o->output);
	return true;
}

/* One group: the first of those asked for that leaves a question open. */
static bool prove(const struct options *o, const struct group_check *groups, size_t count, struct error *e)
{
	size_t at = 0;

	while (at + 1 < count && !provider_find(groups[at].spec->provider)->questions)
		at++;
	return count ? provider_prove(groups[at].spec, o->out, e)
		     : error_set(e, ERROR_INVALID, "--prove: the manifest has no node group");
}

static const struct command provider_command_check;

static int check(const struct options *o)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct manifest m;
	struct error e = { 0 };

	if ((o->proves && !may_prove(o, &e)) || !load(o, &a, &m, &e))
		return command_failed(&provider_command_check, &e);
	struct group_check *groups = arena_array(&a, struct group_check, m.fleet.group_count);
	size_t count = choose(o, &m.fleet, &a, groups);
	if (o->proves)
		return prove(o, groups, count, &e) ? EXIT_DONE : command_failed(&provider_command_check, &e);
	if (!provider_check_ask(groups, count, &o->access, o->timeout, &e))
		return command_failed(&provider_command_check, &e);
	int code = print(o, groups, count, &a);
	for (size_t i = 0; i < count; i++) {
		provider_call_release(&groups[i].check);
		provider_call_release(&groups[i].describe);
	}
	return code;
}

static int run_check(int argc, char **argv)
{
	struct options o = { .output = "table", .timeout = USUAL_TIMEOUT };
	const struct option_row rows[] = {
		{ "filename", 'f', OPTION_LIST, "FILE",
		  "a manifest of WarmPools, or a folder of them; may be given again", &o.pools, NULL },
		{ "group", 'g', OPTION_LIST, "GROUP", "only this node group; may be given again (default: all)",
		  &o.groups, NULL },
		PRINT_OPTION(&o.output),
		{ "prove", 0, OPTION_FLAG, NULL,
		  "ask a person with an account what only a real cloud can answer, with the commands", &o.proves,
		  NULL },
		{ "out", 0, OPTION_TEXT, "FILE", "where the answers to --prove go (default: GROUP.proof.json)", &o.out,
		  NULL },
		{ "timeout", 0, OPTION_PERIOD, "DURATION",
		  "for each node group; all are checked in parallel (default: 1m)", &o.timeout, NULL },
		{ "kubeconfig", 0, OPTION_TEXT, "FILE",
		  "for node groups that are objects of the cluster (default: the pod's own, or KUBECONFIG)",
		  &o.access.kubeconfig, NULL },
		{ "context", 0, OPTION_TEXT, "NAME", "the context of the kubeconfig", &o.access.context, NULL },
	};
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&provider_command_check, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		char shown[QUOTE_ROOM];
		error_set(&e, ERROR_INVALID, "found %s; allowed: options only; do: name a manifest with -f FILE",
			  quote(shown, argv[rest], strlen(argv[rest])));
		return command_failed(&provider_command_check, &e);
	}
	return check(&o);
}

static const struct option_rule rules[] = {
	{ "out", OPTION_NEEDS, "prove" },
	{ "timeout", OPTION_EXCLUDES, "prove" },
	{ 0 },
};

static const struct command provider_command_check = {
	.name = "provider check",
	.usage = "provider check -f FILE... [OPTION...]",
	.summary = "Show caller identity, permissions, discovered state and planned changes of each node group",
	.examples = "  preheat provider check -f pools.yaml\n"
		    "  preheat provider check -f pools.yaml --group g5-od --output json\n"
		    "  preheat provider check -f pools.yaml --group g5-od --prove\n"
		    "  kubectl -n preheat exec -i sts/preheat -- preheat provider check -f - <pools.yaml\n",
	.notes = "Nothing is changed: what cannot be known without acting is reported as unknown.\n"
		 "--prove asks the cloud nothing: it is for a person with another terminal and ten minutes. Some of "
		 "its\n"
		 "commands buy or end one machine, and say so.\n"
		 "Exit code 1: something that is needed is denied, or a change would be refused.\n"
		 "3: no answer, or none in time.\n",
	.rules = rules,
	.run = run_check,
};

static const struct command *const verbs[] = { &provider_command_check, NULL };

static int run(int argc, char **argv)
{
	char help[] = "--help";
	char *help_argv[] = { argv[0], help, NULL };
	int rest, code;

	if (argc < 2 || argv[1][0] == '-') {
		command_options(&command_provider, argc < 2 ? 2 : argc, argc < 2 ? help_argv : argv, NULL, 0, &rest,
				&code);
		return code;
	}
	const struct command *c = command_find(&command_provider, argv[1]);
	return c ? c->run(argc - 1, argv + 1) : command_unknown(&command_provider, argv[1]);
}

const struct command command_provider = {
	.name = "provider",
	.usage = "provider VERB [OPTION...]",
	.summary = "Ask clouds about node groups, with the credentials that the controller has",
	.examples = "  preheat provider check -f pools.yaml\n",
	.verbs = verbs,
	.run = run,
};
