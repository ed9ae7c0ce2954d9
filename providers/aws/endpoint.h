/* Where a service of a region is, and which URLs may be told credentials. Pure. */
#pragma once
#include "base/buf.h"
#include "providers/aws/environment.h"

enum aws_service { AWS_EKS, AWS_AUTOSCALING, AWS_STS, AWS_SERVICE_COUNT };

const char *aws_service_name(enum aws_service s); /* as in a signature's scope */
/*
 * The URL without a slash at its end: `told` (may be NULL or ""), else what the environment says, else the public one.
 * ERROR_INVALID where it is no URL or would send credentials unencrypted to another machine.
 */
bool aws_endpoint(const struct aws_environment *env, const char *told, enum aws_service s, const char *region,
		  struct buf *out, struct error *e) MUST_USE;
/* Of AWS itself, or of this machine: what somebody may name who is not to be told credentials. */
bool aws_is_own_url(const char *url);
/* "eu-west-1" */
bool aws_is_region(const char *text);
/* http:// to this machine or to an address that only the machine's own link reaches, or https:// to any. */
bool aws_is_credential_url(const char *url);
