/* A Lease as the server holds it, and as it is written. */
#pragma once
#include "controller/cluster/api.h"

struct lease_record {
	const char *resource_version, *holder, *address, *acquired; /* NULL: not told */
	int64_t duration_seconds, transitions;
	struct decoded_map annotations;
	struct decoded_text labels, owners; /* as they stand, to be written back */
};

/* Texts live in the arena, which holds a copy of the text too. */
bool lease_record_read(const char *text, size_t len, struct arena *a, struct lease_record *out,
		       struct error *e) MUST_USE;

struct lease_wish {
	const char *name_space, *name;
	const char *holder, *address; /* "" and NULL: given back */
	int64_t duration_seconds, transitions;
	const char *acquired; /* NULL: now */
	millis now;	      /* of the wall */
};

/* The body of a create (`old` NULL) or of an update that holds only for old's version. */
void lease_record_write(const struct lease_wish *w, const struct lease_record *old, struct buf *out);
