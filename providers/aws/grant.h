/* Credentials as the places that give them write them down. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"
#include "providers/aws/sign.h"

struct aws_grant {
	struct aws_credentials credentials; /* texts in the arena */
	millis expires_at;		    /* 0: never */
};

/* Messages never contain what was read. */
bool aws_read_web_identity(const char *text, size_t len, struct arena *a, struct aws_grant *out,
			   struct error *e) MUST_USE; /* of AssumeRoleWithWebIdentity */
/* Of EKS Pod Identity and of the instance metadata service. */
bool aws_read_container(const char *text, size_t len, struct arena *a, struct aws_grant *out, struct error *e) MUST_USE;
/* A shared credentials file. ERROR_NOT_FOUND: there is no such profile. */
bool aws_read_profile(const char *text, size_t len, const char *profile, struct arena *a, struct aws_grant *out,
		      struct error *e) MUST_USE;
