#include "controller/cluster/lease.h"

#include "base/alloc.h"
#include "base/json.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A Lease as the server holds it, and as it is written. */

struct lease_record {
	const char *resource_version, *holder, *address, *acquired; /* NULL: not told */
	int64_t duration_seconds, transitions;
	struct decoded_map annotations;
	struct decoded_text labels, owners; /* as they stand, to be written back */
};

struct lease_wish {
	const char *name_space, *name;
	const char *holder, *address; /* "" and NULL: given back */
	int64_t duration_seconds, transitions;
	const char *acquired; /* NULL: now */
	millis now;	      /* of the wall */
};

static bool lease_record_read(const char *text, size_t len, struct arena *a, struct lease_record *out, struct error *e);
static void lease_record_write(const struct lease_wish *w, const struct lease_record *old, struct buf *out);

enum step { STEP_NONE, STEP_READ, STEP_CREATE, STEP_UPDATE, STEP_LAST_READ, STEP_RELEASE };

struct lease {
	struct lease_setup setup;
	struct arena texts; /* of the setup */
	struct clock wall;
	struct random random;
	const char *path; /* of the lease */
	const char *all;  /* where one is created */

	struct arena arena;
	struct lease_record record; /* as last seen; resource_version NULL: there is none */
	char holder[256], address[256];
	millis changed_at; /* when the record was first seen as it is */
	bool is_held;
	millis renewed_at; /* when the last renewal that went well was sent */
	struct error trouble;

	enum step step;
	struct api_call call;
	struct buf body;
	millis sent_at;
	struct timer next, deadline;
	void (*closed)(void *user);
	void *closed_user;
};

static void start(struct lease *l, enum step step);

static millis now_of(const struct lease *l)
{
	return loop_now(api_loop(l->setup.api));
}

bool lease_is_held(const struct lease *l)
{
	return l->is_held && now_of(l) - l->renewed_at < l->setup.renew_deadline;
}

const char *lease_holder(const struct lease *l)
{
	return l->holder;
}

const char *lease_holder_address(const struct lease *l)
{
	return l->address;
}

millis lease_changed_at(const struct lease *l)
{
	return l->changed_at;
}

int64_t lease_transitions(const struct lease *l)
{
	return l->record.transitions;
}

const struct error *lease_trouble(const struct lease *l)
{
	return &l->trouble;
}

static void free_lease(struct lease *l)
{
	struct arena texts = l->texts;
	void (*closed)(void *user) = l->closed;
	void *user = l->closed_user;

	assert(closed);
	timer_stop(&l->next);
	timer_stop(&l->deadline);
	arena_release(&l->arena);
	buf_release(&l->body);
	free(l);
	arena_release(&texts);
	closed(user);
}

static void lose(struct lease *l, const char *why)
{
	if (!l->is_held)
		return;
	l->is_held = false;
	timer_stop(&l->deadline);
	l->setup.on_lost(l->setup.user, why);
}

static void deadline_passed(struct timer *t)
{
	struct lease *l = t->user;
	char why[700];

	snprintf(why, sizeof why, "the lease was not renewed in time%s%s", l->trouble.kind != ERROR_NONE ? ": " : "",
		 l->trouble.message);
	lose(l, why);
}

/* Timers stand still while the machine sleeps: the deadline may be over before its timer fires. */
static void look_at_deadline(struct lease *l)
{
	if (l->is_held && !lease_is_held(l))
		deadline_passed(&l->deadline);
}

static void next_try(struct timer *t)
{
	struct lease *l = t->user;

	look_at_deadline(l);
	if (l->closed)
		start(l, STEP_LAST_READ);
	else
		start(l, l->is_held ? STEP_UPDATE : STEP_READ);
}

static void try_after(struct lease *l, millis wait)
{
	l->next.user = l;
	timer_start(api_loop(l->setup.api), &l->next, wait, next_try);
}

/* Candidates come a little apart; the leader keeps time. */
static void try_later(struct lease *l)
{
	double apart = l->is_held ? 0 : 0.2 * random_uniform(&l->random);

	try_after(l, l->setup.retry + (millis)((double)l->setup.retry * apart));
}

static void set_holder(struct lease *l, const char *holder, const char *address)
{
	bool is_news = strcmp(l->holder, holder) || strcmp(l->address, address);

	snprintf(l->holder, sizeof l->holder, "%s", holder);
	snprintf(l->address, sizeof l->address, "%s", address);
	if (is_news && l->setup.on_holder)
		l->setup.on_holder(l->setup.user);
}

/* What an answer holds becomes what is known; false when it cannot be read. */
static bool learn(struct lease *l)
{
	struct arena fresh = { 0 };
	struct lease_record got;
	struct error e;

	if (!lease_record_read(l->call.response, l->call.response_len, &fresh, &got, &e)) {
		l->trouble = e;
		arena_release(&fresh);
		return false;
	}
	if (!l->record.resource_version || strcmp(l->record.resource_version, got.resource_version))
		l->changed_at = now_of(l);
	arena_release(&l->arena);
	l->arena = fresh;
	l->record = got;
	set_holder(l, got.holder ? got.holder : "", got.address ? got.address : "");
	return true;
}

static bool is_ours(const struct lease *l)
{
	return !strcmp(l->holder, l->setup.identity);
}

static bool is_free(const struct lease *l)
{
	int64_t told = l->record.duration_seconds;
	/* By someone who writes leases without it, or with one that would overflow. */
	millis duration = told > 0 && told < INT32_MAX ? told * SECOND : l->setup.duration;

	return !l->holder[0] || now_of(l) - l->changed_at >= duration;
}

static void renewed(struct lease *l)
{
	bool is_new = !l->is_held;
	millis left = l->sent_at + l->setup.renew_deadline - now_of(l);

	l->is_held = true;
	l->renewed_at = l->sent_at;
	l->deadline.user = l;
	l->deadline.is_urgent = true; /* woken late, we must not act before we know that we lost */
	api_set_until(l->setup.api, l->renewed_at + l->setup.renew_deadline);
	timer_start(api_loop(l->setup.api), &l->deadline, left > 0 ? left : 0, deadline_passed);
	if (is_new)
		l->setup.on_won(l->setup.user);
}

static bool may_take(const struct lease *l)
{
	return !l->setup.may_take || l->setup.may_take(l->setup.user);
}

static void after_read(struct lease *l)
{
	if (l->call.status == 404) {
		l->trouble = (struct error){ 0 }; /* nobody has led here yet, or it was deleted */
		lose(l, "the lease was deleted");
		if (may_take(l))
			start(l, STEP_CREATE);
		else
			try_later(l);
	} else if (l->call.error.kind != ERROR_NONE || !learn(l)) {
		try_later(l);
	} else if (is_ours(l) || (is_free(l) && may_take(l))) {
		start(l, STEP_UPDATE);
	} else {
		lose(l, "another replica holds the lease");
		try_later(l);
	}
}

static void after_write(struct lease *l)
{
	bool was_late = now_of(l) - l->sent_at >= l->setup.renew_deadline;

	if (l->call.error.kind == ERROR_NONE && !was_late && learn(l)) {
		renewed(l);
		try_later(l);
	} else if (l->is_held && (l->call.status == 409 || l->call.status == 404)) {
		start(l, STEP_READ); /* is it still ours? */
	} else {
		try_later(l);
	}
}

static void answered(struct api_call *c)
{
	struct lease *l = c->user;
	enum step step = l->step;

	look_at_deadline(l);
	l->step = STEP_NONE;
	l->trouble = c->error;
	if (l->closed && step != STEP_LAST_READ && step != STEP_RELEASE) {
		try_after(l, 0);
	} else if (step == STEP_LAST_READ) {
		if (c->error.kind == ERROR_NONE && learn(l) && is_ours(l))
			start(l, STEP_RELEASE);
		else
			free_lease(l);
	} else if (step == STEP_RELEASE) {
		free_lease(l);
	} else if (step == STEP_READ) {
		after_read(l);
	} else {
		after_write(l);
	}
}

static void write_body(struct lease *l, enum step step)
{
	bool is_release = step == STEP_RELEASE, is_kept = step == STEP_UPDATE && is_ours(l);
	struct lease_wish w = {
		.name_space = l->setup.name_space,
		.name = l->setup.name,
		.holder = is_release ? "" : l->setup.identity,
		.address = is_release ? NULL : l->setup.address,
		.duration_seconds = is_release ? 1 : (l->setup.duration + SECOND - 1) / SECOND,
		.transitions = l->record.transitions + (step == STEP_UPDATE && !is_kept),
		.acquired = is_kept ? l->record.acquired : NULL,
		.now = clock_now(&l->wall),
	};

	buf_clear(&l->body);
	lease_record_write(&w, step == STEP_CREATE ? NULL : &l->record, &l->body);
}

static void start(struct lease *l, enum step step)
{
	bool is_write = step == STEP_CREATE || step == STEP_UPDATE || step == STEP_RELEASE;

	if (is_write)
		write_body(l, step);
	timer_stop(&l->next);
	l->step = step;
	l->sent_at = now_of(l);
	l->call = (struct api_call){
		.method = !is_write		? "GET"
			  : step == STEP_CREATE ? "POST"
						: "PUT",
		.path = step == STEP_CREATE ? l->all : l->path,
		.body = is_write ? l->body.text : NULL,
		.effect = is_write ? API_LEASE : API_READ,
		.is_single = true,
		.timeout = l->setup.renew_deadline / 2,
		.done = answered,
		.user = l,
	};
	api_start(l->setup.api, &l->call);
}

static const char *kept(struct lease *l, const char *text)
{
	return text ? arena_strdup(&l->texts, text, strlen(text)) : NULL;
}

static const char *path_for(struct lease *l, const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	api_object_path(&(struct api_object){ .api_version = "coordination.k8s.io/v1",
					      .plural = "leases",
					      .name_space = l->setup.name_space,
					      .name = name },
			&path);
	return kept(l, path.text);
}

static bool check_times(const struct lease_setup *s, struct error *e)
{
	if (s->duration >= SECOND && s->retry > 0 && s->retry < s->renew_deadline && s->renew_deadline < s->duration)
		return true;
	return error_set(e, ERROR_INVALID,
			 "lease: duration %lld ms, renew deadline %lld ms, retry %lld ms; allowed: duration > renew "
			 "deadline > retry > 0, and a duration of at least 1 s",
			 (long long)s->duration, (long long)s->renew_deadline, (long long)s->retry);
}

struct lease *lease_open(const struct lease_setup *s, struct error *e)
{
	struct lease_setup setup = *s;

	setup.duration = setup.duration ? setup.duration : 15 * SECOND;
	setup.renew_deadline = setup.renew_deadline ? setup.renew_deadline : 10 * SECOND;
	setup.retry = setup.retry ? setup.retry : 2 * SECOND;
	if (!check_times(&setup, e))
		return NULL;
	struct lease *l = xcalloc(1, sizeof *l);
	l->setup = setup;
	l->setup.name = kept(l, s->name);
	l->setup.name_space = kept(l, s->name_space);
	l->setup.identity = kept(l, s->identity);
	l->setup.address = kept(l, s->address);
	l->path = path_for(l, l->setup.name);
	l->all = path_for(l, NULL);
	l->wall = clock_open();
	l->random = api_random(s->api, "lease");
	start(l, STEP_READ);
	return l;
}

void lease_close(struct lease *l, void (*closed)(void *user), void *user)
{
	l->closed = closed;
	l->closed_user = user;
	lose(l, "shutting down");
	timer_stop(&l->next);
	if (l->step != STEP_NONE)
		api_cancel(&l->call);
	else
		try_after(l, 0);
}

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

/* Texts live in the arena, which holds a copy of the text too. */
static bool lease_record_read(const char *text, size_t len, struct arena *a, struct lease_record *out, struct error *e)
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
		if (strcmp(p->key, LEASE_ADDRESS) != 0)
			api_member(p->key, p->value, out);
	}
	api_member(LEASE_ADDRESS, w->address, out);
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

/* The body of a create (`old` NULL) or of an update that holds only for old's version. */
static void lease_record_write(const struct lease_wish *w, const struct lease_record *old, struct buf *out)
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
