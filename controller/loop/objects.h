/*
 * WarmPools in the API server, beside those of files: what they ask for
 * becomes the manifest in force a moment after it changes. One that makes no
 * sense, alone or beside the others, is left out and told; the rest go on.
 */
#pragma once
#include "controller/manifest/manifest.h"
#include "controller/web/published.h"

struct controller;
struct watch;

/* Nothing unless settings.watches_objects. `on_chosen` comes after each choice: with the manifest that they make in an
 * arena to take over, NULL when it is the one in force. */
void objects_open(struct controller *c,
		  void (*on_chosen)(struct controller *c, const struct manifest *m, struct arena *held));
/* All that there are have been read and weighed; without the kind in the API server there are none. */
bool objects_are_synced(const struct controller *c);
const struct watch *objects_watch(const struct controller *c); /* NULL: they are not watched */
void objects_close(struct controller *c);
/* Those that are left out, for whoever shows them, in the arena. */
struct published_counts objects_refused(const struct controller *c, struct arena *a);
/* The object behind a pool, also where only what it said before is in force; NULL when the pool comes from a file. */
const struct pool_object *objects_find(const struct controller *c, const char *namespace, const char *name);
/* ,"ownerReferences":[...] of a pool that is an object, so that what we made is deleted with it. */
void objects_write_owner(const struct controller *c, const struct pool_spec *spec, struct buf *out);
/* The object of that name, in force or not; NULL when there is none. */
const struct pool_object *objects_named(const struct controller *c, const char *namespace, const char *name);

/*
 * Which of the WarmPools in the API server make the manifest in force. One
 * that makes no sense, alone or beside the others, is refused with the
 * reason, and what it said before stays in force where that still fits. Who
 * is in force already comes before who changed, and older objects before
 * newer ones: nobody is pushed out by a newcomer. Nothing here is asked or
 * told.
 */

struct pool_object {
	char *namespace, *name, *uid;
	char *spec;		      /* JSON */
	struct manifest_part *read;   /* `spec`, once `is_read`; NULL: it makes no sense whatever the others say */
	struct manifest_part *former; /* what was in force last; NULL: nothing was */
	char *refusal;		      /* why `spec` is left out; NULL: it is in force */
	bool is_former;		      /* it is left out, and `former` is in force in its place */
	bool is_read;
	int64_t generation;
	millis created;
	uint64_t uid_high, uid_low;
};

/* From now on it says this. */
void pool_object_say(struct pool_object *o, const char *spec, size_t len);

/* Files are always in force. A text of the name OBJECTS_TRUSTED. */
#define OBJECTS_TRUSTED "the files of -f"
struct choice_terms {
	bool is_part;	   /* other controllers have pools, too, so that none here takes the pods of no pool */
	bool only_records; /* nothing is bought for them */
};

/*
 * `items` by namespace and name. Reads what has not been read; sets refusal, former and is_former of all; `out` without
 * a pool is possible. `files` NULL: there are none. False when the files alone make no sense. Nothing else may be in
 * the arena.
 */
bool objects_choose(struct pool_object *items, size_t count, struct manifest_part *files, struct choice_terms terms,
		    struct arena *a, struct manifest *out) MUST_USE;
void pool_object_release(struct pool_object *o);
