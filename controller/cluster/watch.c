#include "controller/cluster/watch.h"

#include "base/alloc.h"
#include "base/fnv1a.h"
#include "base/log.h"
#include "controller/cluster/protobuf_answer.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* The uids that a reader keeps, each with the number of the list that last held it. */
struct watch_entry {
	struct object_uid uid;
	uint32_t list; /* 0: empty */
};

struct watch_set {
	struct watch_entry *entries;
	size_t room, count; /* room: a power of two */
};

struct object_meta {
	const char *name_space, *name, *uid, *resource_version, *initial_end;
};

/* How the bytes of one resource are read. */
struct watch_reading {
	struct field *fields; /* the reader's, and behind its record those of struct object_meta */
	struct record_spec object;
	size_t meta_at;
	struct decode_plan *object_plan, *meta_plan, *item_plan, *event_plan, *list_plan, *status_plan;
	unsigned char *record;
	struct arena arena; /* of the object being read */
};

/* An event of a watch: {"type","object"}. */
struct watch_event {
	const char *type;
	struct decoded_text object;
};

struct watch_list {
	const char *resource_version, *next; /* next: of metadata.continue */
};

struct watch {
	struct api *api;
	struct watch_spec spec;
	struct watch_reading reading;
	struct watch_set set;
	struct watch_report report;
	struct watch_list document;
	struct decoder *decoder;
	struct protobuf_answer *protobuf; /* of the call under way, in the decoder's place; NULL: it answers in JSON */
	struct arena list_texts;	  /* of a document that came in Protobuf */
	struct api_call call;
	struct buf path;
	struct buf resource_version; /* where to go on; empty: list first */
	struct buf next;	     /* the page to read; empty: the first */
	struct buf seen_version;     /* the newest version known: no later list may be older */
	struct timer timer;
	struct retry retry;
	uint32_t list; /* the number of the present list */
	bool is_listing;
	bool is_streaming; /* the present list is a watch */
	bool cannot_stream;
	bool wants_json; /* what came in Protobuf could not be read */
	bool is_stopped, is_calling;
	bool is_accepted;      /* the call under way, or the last */
	bool is_list_unproven; /* no watch from it has lasted yet */
	bool must_list;	       /* an ERROR event said that the version has expired */
	bool must_ask_etcd; /* the server's cache does not come so far as seen_version, or that is no version of it */
	int refusals;	    /* in a row */
	millis begun, arrived; /* begun: of the call, monotonic */
};

static bool hex_value(char c, uint64_t *value)
{
	if (c >= '0' && c <= '9')
		*value = (unsigned char)c - '0';
	else if (c >= 'a' && c <= 'f')
		*value = (unsigned char)c - 'a' + 10U;
	else
		return false;
	return true;
}

/* 8-4-4-4-12 lower-case hexadecimal digits. */
static bool parse_uuid(const char *text, struct object_uid *out)
{
	uint64_t words[2] = { 0 }, digit;
	int digits = 0, i = 0;

	for (; text[i] && i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i] != '-')
				return false;
			continue;
		}
		if (!hex_value(text[i], &digit))
			return false;
		words[digits / 16] = words[digits / 16] << 4 | digit;
		digits++;
	}
	*out = (struct object_uid){ words[0], words[1] };
	return digits == 32 && !text[i];
}

struct object_uid object_uid_of(const char *text)
{
	struct object_uid uid = { 0 };

	if (text && !parse_uuid(text, &uid)) {
		/* A hash begun at two different places. */
		uid.high = fnv1a_text(FNV1A_START, text);
		uid.low = fnv1a_text(UINT64_C(0x84222325cbf29ce4), text);
		uid.high ^= uid.high >> 29;
		uid.low ^= uid.low >> 29;
	}
	return uid;
}

static bool is_same(struct object_uid a, struct object_uid b)
{
	return a.high == b.high && a.low == b.low;
}

static size_t home_of(const struct watch_set *s, struct object_uid uid)
{
	return (size_t)((uid.high ^ uid.low * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (s->room - 1);
}

/* Where it is, or the empty place where it would be. */
static struct watch_entry *place_of(const struct watch_set *s, struct object_uid uid)
{
	size_t i = home_of(s, uid);

	while (s->entries[i].list && !is_same(s->entries[i].uid, uid))
		i = (i + 1) & (s->room - 1);
	return &s->entries[i];
}

static struct watch_entry *make_room(struct watch_set *s, size_t room)
{
	struct watch_entry *old = s->entries;

	s->entries = xcalloc(room, sizeof *s->entries);
	s->room = room;
	return old;
}

static void grow(struct watch_set *s)
{
	size_t room = s->room;
	struct watch_entry *old = make_room(s, room ? room * 2 : 64);

	for (size_t i = 0; i < room; i++)
		if (old[i].list)
			*place_of(s, old[i].uid) = old[i];
	free(old);
}

static void set_put(struct watch_set *s, struct object_uid uid, uint32_t list)
{
	if ((s->count + 1) * 8 > s->room * 7)
		grow(s);
	struct watch_entry *e = place_of(s, uid);
	s->count += !e->list;
	*e = (struct watch_entry){ uid, list };
}

static bool set_has(const struct watch_set *s, struct object_uid uid)
{
	return s->room && place_of(s, uid)->list;
}

/* What stands behind moves up, so that no search ends too early. */
static bool set_remove(struct watch_set *s, struct object_uid uid)
{
	if (!set_has(s, uid))
		return false;
	size_t hole = (size_t)(place_of(s, uid) - s->entries), mask = s->room - 1;
	for (size_t i = (hole + 1) & mask; s->entries[i].list; i = (i + 1) & mask) {
		size_t home = home_of(s, s->entries[i].uid);
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			s->entries[hole] = s->entries[i];
			hole = i;
		}
	}
	s->entries[hole].list = 0;
	s->count--;
	return true;
}

/* Leaves only what the list held, and hands out the rest: `count` entries that the caller frees. */
static struct watch_entry *set_sweep(struct watch_set *s, uint32_t list, size_t *count)
{
	size_t room = s->room;
	struct watch_entry *old;

	*count = 0;
	for (size_t i = 0; i < room; i++)
		*count += s->entries[i].list && s->entries[i].list != list;
	if (!*count)
		return NULL;
	old = make_room(s, room);
	size_t gone = 0;
	for (size_t i = 0; i < room; i++) {
		if (old[i].list == list)
			*place_of(s, old[i].uid) = old[i];
		else if (old[i].list)
			old[gone++] = old[i];
	}
	s->count -= gone;
	return old;
}

static void set_release(struct watch_set *s)
{
	free(s->entries);
	*s = (struct watch_set){ 0 };
}

static const struct field meta_fields[] = {
	FIELD(struct object_meta, name_space, FIELD_STRING, "metadata>namespace"),
	{ .path = "metadata>name",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct object_meta, name),
	  .required = true },
	{ .path = "metadata>uid", .type = FIELD_STRING, .offset = offsetof(struct object_meta, uid), .required = true },
	FIELD(struct object_meta, resource_version, FIELD_STRING, "metadata>resourceVersion"),
};
enum { META_FIELDS = sizeof meta_fields / sizeof *meta_fields };

/* What a bookmark has, which names no object. */
static const struct field bookmark_fields[] = {
	FIELD(struct object_meta, name_space, FIELD_STRING, "metadata>namespace"),
	FIELD(struct object_meta, name, FIELD_STRING, "metadata>name"),
	FIELD(struct object_meta, uid, FIELD_STRING, "metadata>uid"),
	FIELD(struct object_meta, resource_version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct object_meta, initial_end, FIELD_STRING, "metadata>annotations>k8s.io/initial-events-end"),
};
static const struct record_spec bookmark_record = { "", sizeof(struct object_meta), bookmark_fields, 5 };

static const struct field item_fields[] = { { .path = "", .type = FIELD_RAW, .offset = 0 } };
static const struct record_spec item_record = { "items[]", sizeof(struct decoded_text), item_fields, 1 };

static const struct field event_fields[] = {
	{ .path = "type", .type = FIELD_STRING, .offset = offsetof(struct watch_event, type), .required = true },
	{ .path = "object", .type = FIELD_RAW, .offset = offsetof(struct watch_event, object), .required = true },
};
static const struct record_spec event_record = { "", sizeof(struct watch_event), event_fields, 2 };

static const struct field list_fields[] = {
	FIELD(struct watch_list, resource_version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct watch_list, next, FIELD_STRING, "metadata>continue"),
};
static const struct record_spec list_record = { "", sizeof(struct watch_list), list_fields, 2 };

static void open_reading(struct watch_reading *r, const struct record_spec *object)
{
	size_t align = alignof(max_align_t), count = object->field_count + META_FIELDS;

	assert(count <= 64);
	r->meta_at = (object->size + align - 1) / align * align;
	r->fields = calloc(count, sizeof *r->fields);
	r->record = calloc(1, r->meta_at + sizeof(struct object_meta));
	if (!r->fields || !r->record)
		abort();
	for (size_t i = 0; i < object->field_count; i++)
		r->fields[i] = object->fields[i];
	for (size_t i = 0; i < META_FIELDS; i++) {
		r->fields[object->field_count + i] = meta_fields[i];
		r->fields[object->field_count + i].offset += r->meta_at;
	}
	r->object = (struct record_spec){ "", r->meta_at + sizeof(struct object_meta), r->fields, count };
	r->object_plan = decode_plan_new(&r->object);
	r->meta_plan = decode_plan_new(&bookmark_record);
	r->item_plan = decode_plan_new(&item_record);
	r->event_plan = decode_plan_new(&event_record);
	r->list_plan = decode_plan_new(&list_record);
	r->status_plan = decode_plan_new(&status_record);
}

static void close_reading(struct watch_reading *r)
{
	decode_plan_free(r->object_plan);
	decode_plan_free(r->meta_plan);
	decode_plan_free(r->item_plan);
	decode_plan_free(r->event_plan);
	decode_plan_free(r->list_plan);
	decode_plan_free(r->status_plan);
	free(r->fields);
	free(r->record);
	arena_release(&r->arena);
}

/* The object into r->record; its meta is r->record + r->meta_at. */
static bool read_object(struct watch_reading *r, struct decoded_text object, struct error *e)
{
	return decode_record(r->object_plan, object.text, object.len, &r->arena, r->record, e);
}

static bool read_meta(struct watch_reading *r, struct decoded_text object, struct object_meta *out, struct error *e)
{
	return decode_record(r->meta_plan, object.text, object.len, &r->arena, out, e);
}

static void remember_version(struct watch *w, const char *version)
{
	if (!version || !*version)
		return;
	buf_clear(&w->resource_version);
	buf_text(&w->resource_version, version);
}

/* Left out, but not taken for gone; told once until the next list. */
static void leave_out(struct watch *w, struct decoded_text object, const struct error *why)
{
	struct object_meta meta;
	struct error e;

	if (!w->report.unreadable++)
		log_warn("object-unreadable", LOG_S("resource", w->spec.name), LOG_E(why), LOG_END);
	if (!read_meta(&w->reading, object, &meta, &e) || !meta.uid)
		return;
	struct object_uid uid = object_uid_of(meta.uid);
	if (set_has(&w->set, uid))
		set_put(&w->set, uid, w->list);
	if (!w->is_listing)
		remember_version(w, meta.resource_version);
}

static void take_object(struct watch *w, struct decoded_text object)
{
	struct error e;

	if (!read_object(&w->reading, object, &e)) {
		leave_out(w, object, &e);
		return;
	}
	const struct object_meta *meta = (const void *)(w->reading.record + w->reading.meta_at);
	struct watch_seen seen = { .uid = object_uid_of(meta->uid),
				   .name_space = meta->name_space,
				   .name = meta->name,
				   .uid_text = meta->uid,
				   .resource_version = meta->resource_version ? meta->resource_version : "",
				   .arrived = w->arrived,
				   .is_from_list = w->is_listing };
	w->report.events++;
	if (w->spec.on_object(w->spec.user, w->reading.record, &seen))
		set_put(&w->set, seen.uid, w->list);
	else
		set_remove(&w->set, seen.uid);
	w->report.objects = (int64_t)w->set.count;
	if (!w->is_listing)
		remember_version(w, meta->resource_version);
}

static void take_deleted(struct watch *w, struct decoded_text object)
{
	struct object_meta meta;
	struct error e;

	if (!read_meta(&w->reading, object, &meta, &e) || !meta.uid)
		return;
	struct object_uid uid = object_uid_of(meta.uid);
	w->report.events++;
	if (!w->is_listing)
		remember_version(w, meta.resource_version);
	if (set_remove(&w->set, uid)) {
		w->report.objects = (int64_t)w->set.count;
		w->spec.on_gone(w->spec.user, uid, w->arrived);
	}
}

/* A complete list: tells what is gone. */
static void list_is_complete(struct watch *w)
{
	size_t count;
	struct watch_entry *gone = set_sweep(&w->set, w->list, &count);

	w->is_listing = w->must_ask_etcd = false;
	w->refusals = 0;
	w->is_list_unproven = true;
	w->report.objects = (int64_t)w->set.count;
	for (size_t i = 0; i < count && !w->is_stopped; i++)
		w->spec.on_gone(w->spec.user, gone[i].uid, w->arrived);
	free(gone);
	w->report.state = WATCH_SYNCED;
	w->report.trouble = (struct error){ 0 };
	w->report.synced_at = w->arrived;
	w->report.lists++;
	if (w->spec.on_synced && !w->is_stopped)
		w->spec.on_synced(w->spec.user);
}

static void take_bookmark(struct watch *w, struct decoded_text object)
{
	struct object_meta meta;
	struct error e;

	if (!read_meta(&w->reading, object, &meta, &e))
		return;
	if (w->is_listing && !(meta.initial_end && !strcmp(meta.initial_end, "true")))
		return;
	remember_version(w, meta.resource_version);
	if (w->is_listing)
		list_is_complete(w);
}

/* An ERROR event ends the watch; what follows depends on its Status. */
static bool take_error(struct watch *w, struct decoded_text object, struct error *e)
{
	struct api_status status = { 0 };
	struct error unreadable;

	if (!decode_record(w->reading.status_plan, object.text, object.len, &w->reading.arena, &status, &unreadable) ||
	    !status.code)
		return error_set(e, ERROR_INVALID, "an ERROR event without a Status");
	w->must_list = status.code == 410;
	return status_error(&status, (long)status.code, "watch", e);
}

static bool take_event(void *user, void *record, struct error *e)
{
	const struct watch_event *event = record;
	struct watch *w = user;
	bool ok = true;

	w->report.last_event = w->arrived;
	if (!strcmp(event->type, "ADDED") || !strcmp(event->type, "MODIFIED"))
		take_object(w, event->object);
	else if (!strcmp(event->type, "DELETED"))
		take_deleted(w, event->object);
	else if (!strcmp(event->type, "BOOKMARK"))
		take_bookmark(w, event->object);
	else if (!strcmp(event->type, "ERROR"))
		ok = take_error(w, event->object, e);
	arena_clear(&w->reading.arena);
	return ok && (!w->is_stopped || error_set(e, ERROR_CANCELLED, "stopped"));
}

static bool take_item(void *user, void *record, struct error *e)
{
	struct watch *w = user;

	w->report.last_event = w->arrived;
	take_object(w, *(const struct decoded_text *)record);
	arena_clear(&w->reading.arena);
	return !w->is_stopped || error_set(e, ERROR_CANCELLED, "stopped");
}

static bool take_list_meta(void *user, struct decoded_text list, struct error *e)
{
	struct watch *w = user;

	return decode_record(w->reading.list_plan, list.text, list.len, &w->list_texts, &w->document, e);
}

static bool take_protobuf(void *user, const char *type, struct decoded_text object, struct error *e)
{
	struct watch_event event = { type, object };

	return type ? take_event(user, &event, e) : take_item(user, &object, e);
}

/* The call under way answers in Protobuf. */
static void open_protobuf(struct watch *w)
{
	w->document = (struct watch_list){ 0 };
	w->protobuf = protobuf_answer_open(&(struct protobuf_reader){
		.name = w->spec.name,
		.object = protobuf_message_of(w->spec.path),
		.is_watch = w->is_streaming || !w->is_listing,
		.on_object = take_protobuf,
		.on_list = take_list_meta,
		.user = w,
	});
}

static void close_decoders(struct watch *w)
{
	decoder_close(w->decoder);
	protobuf_answer_close(w->protobuf);
	w->decoder = NULL;
	w->protobuf = NULL;
	arena_clear(&w->list_texts);
}

/* The decoder for the call that is about to start. */
static void open_decoder(struct watch *w, bool is_list_document)
{
	close_decoders(w);
	w->decoder = decoder_open(&(struct decoder_setup){
		.name = w->spec.name,
		.records = is_list_document ? w->reading.item_plan : w->reading.event_plan,
		.emit = is_list_document ? take_item : take_event,
		.user = w,
		.document = is_list_document ? w->reading.list_plan : NULL,
		.document_record = &w->document,
	});
}

/* Takes bytes of what is being read; false ends the call, with call.error set unless it was stopped. */
static bool take_chunk(struct api_call *c, const char *bytes, size_t len)
{
	struct watch *w = c->user;

	w->arrived = clock_now(api_clock(w->api));
	return w->protobuf ? protobuf_answer_feed(w->protobuf, bytes, len, &c->error)
			   : decoder_feed(w->decoder, bytes, len, &c->error);
}

/* A page of many objects takes its time, but never stands still for so long. */
#define LIST_SILENCE MINUTE
/* A watch that ended sooner than that is not begun again at once. */
#define WATCH_SHORT (5 * SECOND)

const char *watch_state_name(enum watch_state s)
{
	switch (s) {
	case WATCH_STARTING:
		return "starting";
	case WATCH_SYNCED:
		return "synced";
	case WATCH_BEHIND:
		return "behind";
	case WATCH_ABSENT:
		return "absent";
	case WATCH_REFUSED:
		return "refused";
	case WATCH_STOPPED:
		return "stopped";
	}
	return "";
}

const char *watch_name(const struct watch *w)
{
	return w->spec.name;
}

bool watch_is_synced(const struct watch *w)
{
	return w->report.lists && w->report.state != WATCH_REFUSED;
}

const struct watch_report *watch_report(const struct watch *w)
{
	return &w->report;
}

static void free_watch(struct watch *w)
{
	void (*on_stopped)(void *user) = w->spec.on_stopped;
	void *user = w->spec.user;

	close_decoders(w);
	arena_release(&w->list_texts);
	close_reading(&w->reading);
	set_release(&w->set);
	buf_release(&w->path);
	buf_release(&w->resource_version);
	buf_release(&w->next);
	buf_release(&w->seen_version);
	timer_stop(&w->timer);
	free(w);
	if (on_stopped)
		on_stopped(user);
}

static void begin(struct watch *w);
static void ended(struct api_call *c);

static void timer_fired(struct timer *t)
{
	struct watch *w = t->user;

	if (w->is_stopped)
		free_watch(w);
	else
		begin(w);
}

static void begin_after(struct watch *w, millis wait)
{
	w->timer.user = w;
	timer_start(api_loop(w->api), &w->timer, wait, timer_fired);
}

/* One watch of five minutes and up to one more, so that many do not end together. */
static void add_timeout(struct watch *w)
{
	double spread = random_uniform(&w->retry.random) * WATCH_TIMEOUT / 5;

	buf_printf(&w->path, "&timeoutSeconds=%d", WATCH_TIMEOUT + (int)spread);
}

static void write_path(struct watch *w)
{
	bool is_watch = w->is_streaming || !w->is_listing;

	buf_clear(&w->path);
	buf_text(&w->path, w->spec.path);
	api_query(&w->path, "labelSelector", w->spec.label_selector);
	api_query(&w->path, "fieldSelector", w->spec.field_selector);
	if (is_watch) {
		api_query(&w->path, "watch", "true");
		api_query(&w->path, "allowWatchBookmarks", "true");
		add_timeout(w);
	}
	if (!w->is_listing) {
		api_query(&w->path, "resourceVersion", w->resource_version.text);
	} else if (w->is_streaming) {
		api_query(&w->path, "sendInitialEvents", "true");
		api_query(&w->path, "resourceVersionMatch", "NotOlderThan");
	} else if (w->spec.way == WATCH_WHOLE && !w->next.len && !w->must_ask_etcd) {
		api_query(&w->path, "resourceVersion", w->seen_version.len ? w->seen_version.text : "0");
	} else {
		buf_printf(&w->path, "%climit=%d", strchr(w->path.text, '?') ? '&' : '?',
			   w->spec.page ? w->spec.page : WATCH_PAGE);
		api_query(&w->path, "continue", w->next.len ? w->next.text : NULL);
	}
}

static void not_accepted(struct timer *t)
{
	struct watch *w = t->user;

	if (!w->is_stopped)
		api_cancel(&w->call);
}

/* The server streams from here on what we lack, at once. */
static void accepted(struct api_call *c)
{
	struct watch *w = c->user;

	timer_stop(&w->timer);
	w->refusals = 0;
	w->is_accepted = true;
	if (c->is_protobuf)
		open_protobuf(w);
	if (w->is_listing || w->is_stopped)
		return;
	w->report.state = WATCH_SYNCED;
	w->report.trouble = (struct error){ 0 };
}

static void begin(struct watch *w)
{
	bool is_new_list = !w->resource_version.len && !w->next.len;

	if (is_new_list)
		w->list++;
	w->is_listing = !w->resource_version.len;
	w->is_streaming = w->is_listing && w->spec.way == WATCH_STREAMED && !w->cannot_stream;
	w->must_list = w->is_accepted = false;
	w->report.reconnects += !w->is_listing && w->report.lists != 0;
	w->begun = loop_now(api_loop(w->api));
	write_path(w);
	open_decoder(w, w->is_listing && !w->is_streaming);
	bool is_watch = w->is_streaming || !w->is_listing;
	w->call = (struct api_call){
		.path = w->path.text,
		.is_single = true,
		.takes_protobuf = !w->wants_json && protobuf_message_of(w->spec.path),
		.silence = !is_watch	     ? LIST_SILENCE
			   : w->spec.silence ? w->spec.silence
					     : WATCH_SILENCE,
		.on_chunk = take_chunk,
		.on_accepted = accepted,
		.done = ended,
		.user = w,
	};
	w->is_calling = true;
	api_start(w->api, &w->call);
	w->timer.user = w;
	if (!w->is_listing)
		timer_start(api_loop(w->api), &w->timer, WATCH_ACCEPT, not_accepted);
}

static void set_trouble(struct watch *w, enum watch_state state, const struct error *e)
{
	bool is_new = w->report.trouble.kind != e->kind || w->report.state != state;

	w->report.failures++;
	w->report.trouble = *e;
	w->report.state = state;
	if (is_new)
		log_warn("watch-trouble", LOG_S("resource", w->spec.name), LOG_S("state", watch_state_name(state)),
			 LOG_E(e), LOG_END);
}

static enum watch_state state_in_trouble(const struct watch *w)
{
	if (w->report.state == WATCH_ABSENT)
		return WATCH_ABSENT;
	return w->report.lists ? WATCH_BEHIND : WATCH_STARTING;
}

/* How long until it is asked again, after one more refusal. */
static millis after_refusal(struct watch *w)
{
	static const millis waits[WATCH_REFUSALS] = { SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND };
	millis wait = w->refusals < WATCH_REFUSALS ? waits[w->refusals] : WATCH_SLOW;

	w->refusals += w->refusals < WATCH_REFUSALS;
	return wait + (millis)(random_uniform(&w->retry.random) * (double)wait / 5);
}

/* A server that has just started may say so of what it will serve in a moment. */
static bool may_be_passing(const struct watch *w)
{
	return w->report.lists && w->report.state != WATCH_ABSENT && w->refusals < WATCH_REFUSALS;
}

static void list_anew(struct watch *w)
{
	if (w->resource_version.len) {
		buf_clear(&w->seen_version);
		buf_text(&w->seen_version, w->resource_version.text);
	}
	buf_clear(&w->resource_version);
	buf_clear(&w->next);
}

/* The resource does not exist (any more): that is an answer, and a complete list of nothing. */
static millis on_absent(struct watch *w)
{
	bool is_news = w->report.state != WATCH_ABSENT;

	list_anew(w);
	w->arrived = clock_now(api_clock(w->api));
	if (is_news) {
		log_info("resource-absent", LOG_S("resource", w->spec.name), LOG_END);
		w->list++;
		list_is_complete(w);
	}
	if (!w->is_stopped)
		w->report.state = WATCH_ABSENT;
	w->report.trouble = (struct error){ 0 };
	return after_refusal(w);
}

/* Of a later version than this server has come to: one that lags, or one restored from a copy. */
static bool is_version_unknown(const struct api_call *c)
{
	return status_has_cause(&c->answer, "ResourceVersionTooLarge") ||
	       (c->status == 504 && c->answer.message && strstr(c->answer.message, "Too large resource version"));
}

static millis on_old_version(struct watch *w)
{
	w->report.relists += !w->is_listing;
	if (!w->is_list_unproven) /* the server is there again, only the version is not */
		retry_reset(&w->retry);
	w->must_ask_etcd |= w->is_listing || is_version_unknown(&w->call);
	list_anew(w);
	w->report.state = state_in_trouble(w);
	w->report.trouble = w->call.error;
	log_info("watch-expired", LOG_S("resource", w->spec.name), LOG_END);
	return retry_next(&w->retry, 0);
}

static millis on_refusal(struct watch *w)
{
	bool is_absent = w->call.status == 404;

	if (may_be_passing(w)) {
		set_trouble(w, WATCH_BEHIND, &w->call.error);
		return after_refusal(w);
	}
	if (is_absent)
		return on_absent(w);
	set_trouble(w, WATCH_REFUSED, &w->call.error);
	return after_refusal(w);
}

static bool wants_no_streams(const struct watch *w)
{
	return w->is_streaming && (w->call.status == 422 || w->call.status == 400);
}

static millis on_failure(struct watch *w)
{
	const struct api_call *c = &w->call;

	if (wants_no_streams(w)) {
		w->cannot_stream = true;
		return 0;
	}
	if (c->is_expired || w->must_list || is_version_unknown(c))
		return on_old_version(w);
	if (c->status == 404 || c->error.kind == ERROR_AUTH)
		return on_refusal(w);
	if (c->error.kind == ERROR_INVALID) { /* the same bytes would come again */
		w->wants_json |= w->protobuf != NULL;
		list_anew(w);
	}
	set_trouble(w, state_in_trouble(w), &c->error);
	return retry_next(&w->retry, c->retry_after);
}

/* A page came whole: the next one, or all of the list is there. */
static bool page_is_over(struct watch *w)
{
	struct error e = { 0 };

	bool is_whole = w->protobuf ? protobuf_answer_finish(w->protobuf, &e) : decoder_finish(w->decoder, &e);
	if (!is_whole) {
		set_trouble(w, state_in_trouble(w), &e);
		return false;
	}
	buf_clear(&w->next);
	if (w->document.next && *w->document.next) {
		buf_text(&w->next, w->document.next);
		return true;
	}
	if (!w->document.resource_version || !*w->document.resource_version) {
		error_set(&e, ERROR_INVALID, "%s: a list without a resourceVersion", w->spec.name);
		set_trouble(w, state_in_trouble(w), &e);
		return false;
	}
	buf_text(&w->resource_version, w->document.resource_version);
	list_is_complete(w);
	return true;
}

/* How long until the next call. */
static millis after_success(struct watch *w)
{
	bool was_long = loop_now(api_loop(w->api)) - w->begun >= WATCH_SHORT;

	if (w->is_listing && !w->is_streaming) {
		if (!page_is_over(w))
			return retry_next(&w->retry, 0);
		return 0;
	}
	if (w->is_listing) {
		w->report.state = state_in_trouble(w);
		return retry_next(&w->retry, 0);
	}
	w->report.state = WATCH_BEHIND; /* until the next one is accepted */
	return was_long ? 0 : retry_next(&w->retry, 0);
}

static void ended(struct api_call *c)
{
	struct watch *w = c->user;

	w->is_calling = false;
	if (w->is_stopped) {
		free_watch(w);
		return;
	}
	if (w->is_accepted && !w->is_listing && loop_now(api_loop(w->api)) - w->begun >= WATCH_SHORT) {
		retry_reset(&w->retry);
		w->is_list_unproven = false;
	}
	if (c->error.kind == ERROR_CANCELLED && c->is_cancelled)
		error_set(&c->error, ERROR_TIMEOUT, "%s: the watch was not accepted within %d s", w->spec.name,
			  (int)(WATCH_ACCEPT / SECOND));
	millis wait = c->error.kind == ERROR_NONE ? after_success(w) : on_failure(w);
	if (w->is_stopped) /* by a callback */
		wait = 0;
	begin_after(w, wait);
}

struct watch *watch_start(struct api *api, const struct watch_spec *spec)
{
	struct watch *w = xcalloc(1, sizeof *w);

	w->api = api;
	w->spec = *spec;
	w->retry = retry_make(WATCH_FIRST, WATCH_LONGEST, api_random(api, spec->name));
	open_reading(&w->reading, spec->object);
	begin(w);
	return w;
}

void watch_stop(struct watch *w)
{
	if (!w || w->is_stopped)
		return;
	w->is_stopped = true;
	w->report.state = WATCH_STOPPED;
	if (w->is_calling)
		api_cancel(&w->call);
	else
		begin_after(w, 0);
}
