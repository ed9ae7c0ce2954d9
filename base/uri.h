/* Pieces of URIs (RFC 3986). */
#pragma once
#include "base/buf.h"

/* Everything but letters, digits, "-._~" and what `kept` names becomes %XX, in upper case. */
void uri_escape(const char *text, size_t len, const char *kept, struct buf *out);
/* A segment of a path; "." and "..", which would climb, have their points escaped, too. */
void uri_segment(const char *text, struct buf *out);
/* As it may be shown: without a user and a password, and without what follows the path, which may be secrets. */
void uri_show(const char *url, struct buf *out);
