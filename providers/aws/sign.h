/*
 * AWS Signature Version 4 in the Authorization header. Pure: time and
 * credentials are arguments, nothing of the request is changed.
 *
 * Not libcurl's CURLOPT_AWS_SIGV4: that passes 21 of AWS's 38 published vectors, ours all (version 7.88, which we run
 * with, neither sorts a query nor encodes a path as AWS does); it signs by the machine's clock, which we correct by
 * what AWS answers; and it shows nothing of what it signs to hold against the vectors and our golden requests.
 */
#pragma once
#include "base/buf.h"
#include "base/millis.h"

#include <stdbool.h>

struct aws_credentials {
	const char *access_key_id, *secret_access_key;
	const char *session_token; /* "" or NULL: of a user, not of a role */
};

struct aws_header {
	const char *name, *value;
};

/* What is signed. Host and X-Amz-Date belong to the headers; what is not listed is not signed. */
struct aws_message {
	const char *method;
	const char *path;  /* as it will be sent; "" is "/" */
	const char *query; /* as it will be sent, without the question mark; may be "" */
	const struct aws_header *headers;
	size_t header_count; /* at most AWS_HEADERS */
	const char *body;
	size_t body_len;
	bool keeps_path; /* dots and double slashes stay */
};

struct aws_scope {
	const char *region, *service;
	millis at;
};

#define AWS_HEADERS   32
#define AWS_QUERY     64 /* parameters of a query */
#define AWS_DATE_TEXT 17 /* room for 20150830T123600Z */

const char *aws_date_text(millis at, char room[AWS_DATE_TEXT]); /* returns room; the value of X-Amz-Date */
/* False: more headers or parameters than there may be. Appended, as the other. Its last line is the hash of the
 * canonical request. */
bool aws_string_to_sign(const struct aws_message *m, const struct aws_scope *s, struct buf *out) MUST_USE;
/* The value of Authorization. */
bool aws_sign(const struct aws_message *m, const struct aws_scope *s, const struct aws_credentials *c,
	      struct buf *out) MUST_USE;
