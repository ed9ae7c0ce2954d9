#include "controller/commands/provider_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *group_verdict_name(enum group_verdict verdict)
{
	static const char *const names[] = { "fine", "refused", "unanswered" };

	return names[verdict];
}

const char *permission_state_name(enum permission_state state)
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

bool group_check_can_do_without(const struct group_check *g, const struct permission *p)
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

	if (g->is_watched) {
		say(&g->would, a, "change nothing: no pool on it has mode: act");
		return;
	}
	if (d->is_refused)
		return;
	if (d->desired < s->min_nodes)
		say(&g->would, a, "raise the size from %" PRId64 " to the manifest's min of %" PRId64, d->desired,
		    s->min_nodes);
	if (d->desired > s->max_nodes)
		say(&g->would, a,
		    "lower the size from %" PRId64 " to the manifest's max of %" PRId64 ", as its machines get idle",
		    d->desired, s->max_nodes);
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

void group_check_judge(struct group_check *g, struct arena *a)
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

size_t machine_rows(const struct group_description *d, struct arena *a, struct machine_row **out)
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
