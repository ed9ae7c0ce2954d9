/*
 * What the process' environment says of AWS, by the names that the official
 * SDKs know. Read once, when a provider is opened.
 */
#pragma once
#include "base/arena.h"

/* Every text is NULL when the variable is absent or empty. */
struct aws_environment {
	const char *region;					       /* AWS_REGION, AWS_DEFAULT_REGION */
	const char *access_key_id, *secret_access_key, *session_token; /* AWS_ACCESS_KEY_ID ... */
	const char *role_arn, *role_session_name, *web_identity_token_file;
	const char *container_full_uri, *container_relative_uri, *container_token, *container_token_file;
	const char *profile, *credentials_file, *home;
	const char *metadata_endpoint, *metadata_disabled;
	const char *endpoint, *endpoint_eks, *endpoint_autoscaling, *endpoint_sts;
	const char *ca_bundle;
};

void aws_environment_read(struct arena *a, struct aws_environment *out);
