#include "providers/azure/environment.h"

#include <stdlib.h>
#undef getenv /* who we are to Azure, its webhook and its users tell by the environment */

static const char *told(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : (const char *)0;
}

struct azure_environment azure_environment_read(void)
{
	return (struct azure_environment){
		.tenant = told("AZURE_TENANT_ID"),
		.client = told("AZURE_CLIENT_ID"),
		.secret = told("AZURE_CLIENT_SECRET"),
		.certificate = told("AZURE_CLIENT_CERTIFICATE_PATH"),
		.token_file = told("AZURE_FEDERATED_TOKEN_FILE"),
		.authority = told("AZURE_AUTHORITY_HOST"),
		.imds = told("AZURE_POD_IDENTITY_AUTHORITY_HOST"),
		.cloud = told("AZURE_ENVIRONMENT"),
		.endpoint = told("AZURE_RESOURCE_MANAGER_ENDPOINT"),
		.audience = told("AZURE_RESOURCE_MANAGER_AUDIENCE"),
		.ca_file = told("SSL_CERT_FILE"),
	};
}
