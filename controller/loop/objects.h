/*
 * WarmPools in the API server, beside those of files: what they ask for
 * becomes the manifest in force a moment after it changes. One that makes no
 * sense, alone or beside the others, is left out and told; the rest go on.
 */
#pragma once
#include "controller/loop/objects_choose.h"
#include "controller/web/published.h"

struct controller;
struct watch;

void objects_open(struct controller *c); /* nothing unless settings.watches_objects */
/* All that there are have been read and weighed; without the kind in the API server there are none. */
bool objects_are_synced(const struct controller *c);
bool objects_are_absent(const struct controller *c);	       /* the server knows no WarmPools */
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
