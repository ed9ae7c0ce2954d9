/* Lists of equal records as differences to the list before; what record.c is made of. */
#pragma once
#include "state/record.h"

enum { FIELDS_MAX = 128, NO_FIELD = -1 };

/* How one list of a part is told. */
struct list_layout {
	const struct record_info *info;
	size_t key_fields; /* the first ones say which element it is; 0: its position does */
	int relative;	   /* this field is a time near now, or NO_FIELD */
};

struct reader {
	const unsigned char *at, *end;
	bool failed;
};

/* Makes room for so many values, and keeps those that are there. */
void list_reserve(struct record_list *list, size_t values);

void list_put(struct buf *out, const struct list_layout *l, const struct record_list *before,
	      const struct record_list *now);
/* False when the bytes make no sense as the successor of `before`. */
bool list_get(struct reader *r, size_t fields, const struct record_list *before, struct record_list *now);
