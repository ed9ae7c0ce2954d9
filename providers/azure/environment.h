/* What the environment says of Azure, by the names that Azure's own libraries read. NULL: not there, or empty. */
#pragma once

struct azure_environment {
	const char *tenant, *client, *secret, *certificate, *token_file; /* AZURE_TENANT_ID, ... */
	const char *authority;						 /* AZURE_AUTHORITY_HOST */
	const char *imds;						 /* AZURE_POD_IDENTITY_AUTHORITY_HOST */
	const char *cloud;						 /* AZURE_ENVIRONMENT */
	const char *endpoint, *audience; /* AZURE_RESOURCE_MANAGER_ENDPOINT, ..._AUDIENCE: of no known cloud */
	const char *ca_file;		 /* SSL_CERT_FILE, as OpenSSL has it */
};

struct azure_environment azure_environment_read(void);
