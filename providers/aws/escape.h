/* Form parameters of the query protocol. Pure. */
#pragma once
#include "base/buf.h"

#include <stdint.h>

/* "Action=NAME&Version=VERSION" and what follows it. */
void aws_form_begin(const char *action, const char *version, struct buf *out);
void aws_form_text(const char *name, const char *value, struct buf *out);
void aws_form_int(const char *name, int64_t value, struct buf *out);
void aws_form_bool(const char *name, bool value, struct buf *out);
void aws_form_member(const char *list, size_t index, const char *value, struct buf *out); /* index from 0 */
