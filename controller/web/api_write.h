/* Members of JSON objects; absent values are null, never 0. */
#pragma once
#include "base/buf.h"
#include "base/millis.h"

#include <stdint.h>

void member_key(struct buf *out, const char *name);		       /* ,"name": */
void member_text(struct buf *out, const char *name, const char *text); /* NULL: null */
void member_flag(struct buf *out, const char *name, bool value);
void member_count(struct buf *out, const char *name, int64_t value);
/* value / 10^digits, exactly: 480000 with 6 digits is 0.48. */
void member_scaled(struct buf *out, const char *name, int64_t value, int digits);
void member_time(struct buf *out, const char *name, millis at); /* RFC 3339 in UTC; 0 and ABSENT are null */
void member_object(struct buf *out, const char *name);		/* "name":{ ; closed by bracket_end(out, '}') */
void member_list(struct buf *out, const char *name);
void item_begin(struct buf *out); /* { of the next item */
void bracket_end(struct buf *out, char bracket);
/* Without a name. */
void value_number(struct buf *out, int64_t value, int digits);
void value_time(struct buf *out, millis at);
