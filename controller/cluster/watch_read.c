#include "controller/cluster/watch_parts.h"

#include "base/log.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

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

void watch_reading_open(struct watch_reading *r, const struct record_spec *object)
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

void watch_reading_close(struct watch_reading *r)
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

bool watch_read_object(struct watch_reading *r, struct decoded_text object, struct error *e)
{
	return decode_record(r->object_plan, object.text, object.len, &r->arena, r->record, e);
}

bool watch_read_meta(struct watch_reading *r, struct decoded_text object, struct object_meta *out, struct error *e)
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
	if (!watch_read_meta(&w->reading, object, &meta, &e) || !meta.uid)
		return;
	struct object_uid uid = object_uid_of(meta.uid);
	if (watch_set_has(&w->set, uid))
		watch_set_put(&w->set, uid, w->list);
	if (!w->is_listing)
		remember_version(w, meta.resource_version);
}

static void take_object(struct watch *w, struct decoded_text object)
{
	struct error e;

	if (!watch_read_object(&w->reading, object, &e)) {
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
		watch_set_put(&w->set, seen.uid, w->list);
	else
		watch_set_remove(&w->set, seen.uid);
	w->report.objects = (int64_t)w->set.count;
	if (!w->is_listing)
		remember_version(w, meta->resource_version);
}

static void take_deleted(struct watch *w, struct decoded_text object)
{
	struct object_meta meta;
	struct error e;

	if (!watch_read_meta(&w->reading, object, &meta, &e) || !meta.uid)
		return;
	struct object_uid uid = object_uid_of(meta.uid);
	w->report.events++;
	if (!w->is_listing)
		remember_version(w, meta.resource_version);
	if (watch_set_remove(&w->set, uid)) {
		w->report.objects = (int64_t)w->set.count;
		w->spec.on_gone(w->spec.user, uid, w->arrived);
	}
}

static void take_bookmark(struct watch *w, struct decoded_text object)
{
	struct object_meta meta;
	struct error e;

	if (!watch_read_meta(&w->reading, object, &meta, &e))
		return;
	if (w->is_listing && !(meta.initial_end && !strcmp(meta.initial_end, "true")))
		return;
	remember_version(w, meta.resource_version);
	if (w->is_listing)
		watch_list_is_complete(w);
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

void watch_expect(struct watch *w, bool is_list_document)
{
	decoder_close(w->decoder);
	w->decoder = decoder_open(&(struct decoder_setup){
		.name = w->spec.name,
		.records = is_list_document ? w->reading.item_plan : w->reading.event_plan,
		.emit = is_list_document ? take_item : take_event,
		.user = w,
		.document = is_list_document ? w->reading.list_plan : NULL,
		.document_record = &w->document,
	});
}

bool watch_take_chunk(struct api_call *c, const char *bytes, size_t len)
{
	struct watch *w = c->user;

	w->arrived = clock_now(api_clock(w->api));
	return decoder_feed(w->decoder, bytes, len, &c->error);
}

void watch_list_is_complete(struct watch *w)
{
	size_t count;
	struct watch_entry *gone = watch_set_sweep(&w->set, w->list, &count);

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
