/* Why AWS said no: the bodies of its query services (XML) and of its REST services (JSON and a header). Pure. */
#pragma once
#include "base/error.h"

#include <stddef.h>

struct aws_refusal {
	char code[64]; /* "Throttling", "AccessDenied"; "" when not told */
	char message[320];
};

/* `type` is the header x-amzn-errortype, NULL without. Whatever is sent, something is read. */
void aws_read_refusal(const char *text, size_t len, const char *type, struct aws_refusal *out);
/* By the code where it says more than the status, else by the status. */
enum error_kind aws_refusal_kind(const struct aws_refusal *r, long status);
bool aws_refusal_is_expiry(const struct aws_refusal *r); /* the credentials are over */
bool aws_refusal_is_skew(const struct aws_refusal *r);	 /* perhaps our clock is wrong */
