/* What AWS's services have in common: where they are, how they are asked, how they refuse, how they give keys. Pure. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "providers/aws/sign.h"

#include <stdint.h>

/*
 * What the process' environment says of AWS, by the names that the official SDKs know. Every text is NULL when the
 * variable is absent or empty.
 */
struct aws_environment {
	const char *region;					       /* AWS_REGION, AWS_DEFAULT_REGION */
	const char *access_key_id, *secret_access_key, *session_token; /* AWS_ACCESS_KEY_ID ... */
	const char *role_arn, *role_session_name, *web_identity_token_file;
	const char *container_full_uri, *container_relative_uri, *container_token, *container_token_file;
	const char *profile, *credentials_file, *home;
	const char *metadata_endpoint, *metadata_disabled;
	const char *endpoint, *endpoint_eks, *endpoint_autoscaling, *endpoint_ec2, *endpoint_sts;
	const char *ca_bundle;
};

/* Where a service of a region is, and which URLs may be told credentials. Pure. */

enum aws_service { AWS_EKS, AWS_AUTOSCALING, AWS_EC2, AWS_STS, AWS_SERVICE_COUNT };

const char *aws_service_name(enum aws_service s); /* as in a signature's scope */
/*
 * The URL without a slash at its end: `told` (may be NULL or ""), else what the environment says, else the public one.
 * ERROR_INVALID where it is no URL or would send credentials unencrypted to another machine.
 */
bool aws_endpoint(const struct aws_environment *env, const char *told, enum aws_service s, const char *region,
		  struct buf *out, struct error *e) MUST_USE;
/* Of AWS itself, or of this machine: what somebody may name who is not to be told credentials. */
bool aws_is_own_url(const char *url);
/* http:// to this machine or to an address that only the machine's own link reaches, or https:// to any. */
bool aws_is_credential_url(const char *url);

/* Form parameters of the query protocol. Pure. */

/* "Action=NAME&Version=VERSION" and what follows it. */
void aws_form_begin(const char *action, const char *version, struct buf *out);
void aws_form_text(const char *name, const char *value, struct buf *out);

/* Why AWS said no: the bodies of its query services (XML) and of its REST services (JSON and a header). Pure. */

struct aws_refusal {
	char code[64]; /* "Throttling", "AccessDenied"; "" when not told */
	char message[320];
};

/* `type` is the header x-amzn-errortype, NULL without. Whatever is sent, something is read. */
void aws_read_refusal(const char *text, size_t len, const char *type, struct aws_refusal *out);
/* By the code where it says more than the status, else by the status. */
enum error_kind aws_refusal_kind(const struct aws_refusal *r, long status);

/* Credentials as the places that give them write them down. Pure. */

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
