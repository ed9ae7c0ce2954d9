/* Pieces of JSON text into a buffer. */
#pragma once
#include "base/buf.h"

/* A text in quotes, escaped. What is no UTF-8, as where a text was cut, becomes U+FFFD. */
void json_write_text(const char *text, struct buf *out);
/* A comma unless the text so far ends where a value may follow: after an opening bracket, a comma or a colon. */
void json_write_comma(struct buf *out);
