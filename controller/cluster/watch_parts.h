/* What the files of a watch share. */
#pragma once
#include "controller/cluster/watch.h"

/* The uids that a reader keeps, each with the number of the list that last held it. */
struct watch_entry {
	struct object_uid uid;
	uint32_t list; /* 0: empty */
};

struct watch_set {
	struct watch_entry *entries;
	size_t room, count; /* room: a power of two */
};

void watch_set_put(struct watch_set *s, struct object_uid uid, uint32_t list);
bool watch_set_has(const struct watch_set *s, struct object_uid uid);
bool watch_set_remove(struct watch_set *s, struct object_uid uid);
/* Leaves only what the list held, and hands out the rest: `count` entries that the caller frees. */
struct watch_entry *watch_set_sweep(struct watch_set *s, uint32_t list, size_t *count);
void watch_set_release(struct watch_set *s);

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

void watch_reading_open(struct watch_reading *r, const struct record_spec *object);
void watch_reading_close(struct watch_reading *r);
/* The object into r->record; its meta is r->record + r->meta_at. */
bool watch_read_object(struct watch_reading *r, struct decoded_text object, struct error *e) MUST_USE;
bool watch_read_meta(struct watch_reading *r, struct decoded_text object, struct object_meta *out,
		     struct error *e) MUST_USE;

struct watch {
	struct api *api;
	struct watch_spec spec;
	struct watch_reading reading;
	struct watch_set set;
	struct watch_report report;
	struct watch_list document;
	struct decoder *decoder;
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
	bool is_stopped, is_calling;
	bool is_accepted;      /* the call under way, or the last */
	bool is_list_unproven; /* no watch from it has lasted yet */
	bool must_list;	       /* an ERROR event said that the version has expired */
	bool must_ask_etcd; /* the server's cache does not come so far as seen_version, or that is no version of it */
	int refusals;	    /* in a row */
	millis begun, arrived; /* begun: of the call, monotonic */
};

/* Takes bytes of what is being read; false ends the call, with call.error set unless it was stopped. */
bool watch_take_chunk(struct api_call *c, const char *bytes, size_t len);
/* The decoder for the call that is about to start. */
void watch_expect(struct watch *w, bool is_list_document);
/* A complete list: tells what is gone. */
void watch_list_is_complete(struct watch *w);
