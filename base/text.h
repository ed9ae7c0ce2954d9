/* Small texts in messages and addresses: quoted, guessed, escaped, and names of metrics. Pure. */
#pragma once
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define QUOTE_ROOM 176

/* Text from outside, safe to show: cut to 40 bytes, control and high bytes as \xNN, in quotes. Returns `room`. */
const char *quote(char room[QUOTE_ROOM], const char *text, size_t len);

/* "Did you mean": one of `names`, or NULL when none is near: it begins with the word, or at most a third of the letters
 * are wrong; swapped neighbours count once. */
const char *nearest_name(const char *word, const char *const *names, size_t count);

/* RFC 3986: everything but letters, digits, "-._~" and what `kept` names becomes %XX, in upper case. */
void uri_escape(const char *text, size_t len, const char *kept, struct buf *out);
/* A segment of a path; "." and "..", which would climb, have their points escaped, too. */
void uri_segment(const char *text, struct buf *out);
/* As it may be shown: without a user and a password, and without what follows the path, which may be secrets. */
void uri_show(const char *url, struct buf *out);

enum { METRIC_NAME_LONGEST = 300 };

/* As a person writes it: NAME, or NAME{label="value"} for the series with that label alone. Places in the text;
 * label_len 0: none. */
struct metric_name {
	size_t name_len;
	const char *label, *value;
	size_t label_len, value_len;
};

/* Letters, digits, _ and : in names; in a value also - . / and spaces. False, with nothing in *out, for anything else.
 */
bool metric_name_parse(const char *text, struct metric_name *out);

/* Bytes of the character of UTF-8 that stands at `p`; 0: none does, or not before `end`. Neither overlong, nor a
 * surrogate, nor beyond. */
size_t utf8_length(const char *p, const char *end);
