#include "providers/aws/environment.h"

#include <string.h>

#undef getenv /* this file is the edge */

static const char *variable(struct arena *a, const char *name)
{
	const char *value = getenv(name);

	return value && *value ? arena_strdup(a, value, strlen(value)) : NULL;
}

void aws_environment_read(struct arena *a, struct aws_environment *out)
{
	*out = (struct aws_environment){
		.region = variable(a, "AWS_REGION"),
		.access_key_id = variable(a, "AWS_ACCESS_KEY_ID"),
		.secret_access_key = variable(a, "AWS_SECRET_ACCESS_KEY"),
		.session_token = variable(a, "AWS_SESSION_TOKEN"),
		.role_arn = variable(a, "AWS_ROLE_ARN"),
		.role_session_name = variable(a, "AWS_ROLE_SESSION_NAME"),
		.web_identity_token_file = variable(a, "AWS_WEB_IDENTITY_TOKEN_FILE"),
		.container_full_uri = variable(a, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		.container_relative_uri = variable(a, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
		.container_token = variable(a, "AWS_CONTAINER_AUTHORIZATION_TOKEN"),
		.container_token_file = variable(a, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
		.profile = variable(a, "AWS_PROFILE"),
		.credentials_file = variable(a, "AWS_SHARED_CREDENTIALS_FILE"),
		.home = variable(a, "HOME"),
		.metadata_endpoint = variable(a, "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
		.metadata_disabled = variable(a, "AWS_EC2_METADATA_DISABLED"),
		.endpoint = variable(a, "AWS_ENDPOINT_URL"),
		.endpoint_eks = variable(a, "AWS_ENDPOINT_URL_EKS"),
		.endpoint_autoscaling = variable(a, "AWS_ENDPOINT_URL_AUTO_SCALING"),
		.endpoint_sts = variable(a, "AWS_ENDPOINT_URL_STS"),
		.ca_bundle = variable(a, "AWS_CA_BUNDLE"),
	};
	if (!out->region)
		out->region = variable(a, "AWS_DEFAULT_REGION");
}
