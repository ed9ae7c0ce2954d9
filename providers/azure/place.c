#include "providers/azure/place.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *names[3];
	struct azure_place place;
} clouds[] = {
	{ { "AzurePublicCloud", "AzureCloud", "AzurePublic" },
	  { "https://management.azure.com", "https://management.azure.com/", "https://login.microsoftonline.com" } },
	{ { "AzureUSGovernmentCloud", "AzureUSGovernment", "AzureGovernment" },
	  { "https://management.usgovcloudapi.net", "https://management.usgovcloudapi.net/",
	    "https://login.microsoftonline.us" } },
	{ { "AzureChinaCloud", "AzureChina", "AzureChinaCloud" },
	  { "https://management.chinacloudapi.cn", "https://management.chinacloudapi.cn/",
	    "https://login.chinacloudapi.cn" } },
};
enum { CLOUDS = sizeof clouds / sizeof *clouds };

struct address {
	const char *host, *port; /* not NUL-terminated */
	size_t host_len, port_len;
	bool is_secure;
};

static bool parse(const char *url, struct address *out)
{
	static const char secure[] = "https://", plain[] = "http://";
	struct address at = { 0 };

	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f || *c == '\\')
			return false;
	at.is_secure = strncasecmp(url, secure, sizeof secure - 1) == 0;
	if (!at.is_secure && strncasecmp(url, plain, sizeof plain - 1) != 0)
		return false;
	at.host = url + (at.is_secure ? sizeof secure : sizeof plain) - 1;
	size_t len = strcspn(at.host, "/?#");
	if (memchr(at.host, '@', len))
		return false;
	at.host_len = *at.host == '[' ? strcspn(at.host, "]") + 1 : strcspn(at.host, ":/?#");
	if (!at.host_len || at.host_len > len)
		return false;
	if (at.host_len < len && at.host[at.host_len] != ':')
		return false;
	at.port = at.host_len < len ? at.host + at.host_len + 1 : at.is_secure ? "443" : "80";
	at.port_len = at.host_len < len ? len - at.host_len - 1 : strlen(at.port);
	if (!at.port_len || strspn(at.port, "0123456789") < at.port_len)
		return false;
	*out = at;
	return true;
}

static bool is_text(const char *part, size_t len, const char *text)
{
	return strlen(text) == len && strncasecmp(part, text, len) == 0;
}

static bool is_this_machine(const struct address *at)
{
	return is_text(at->host, at->host_len, "localhost") || is_text(at->host, at->host_len, "[::1]") ||
	       (at->host_len > 4 && strncmp(at->host, "127.", 4) == 0 &&
		strspn(at->host, "0123456789.") >= at->host_len);
}

bool azure_url_is_safe(const char *url)
{
	struct address at;

	return parse(url, &at) && (at.is_secure || is_this_machine(&at));
}

bool azure_url_is_below(const char *url, const char *endpoint)
{
	struct address at, home;

	if (!parse(url, &at) || !parse(endpoint, &home) || at.is_secure != home.is_secure ||
	    at.port_len != home.port_len || strncmp(at.port, home.port, at.port_len) != 0 ||
	    at.host_len < home.host_len)
		return false;
	size_t more = at.host_len - home.host_len;
	return strncasecmp(at.host + more, home.host, home.host_len) == 0 && (!more || at.host[more - 1] == '.');
}

static const char *without_slash(const char *url, struct arena *a)
{
	size_t len = strlen(url);

	while (len && url[len - 1] == '/')
		len--;
	return arena_strdup(a, url, len);
}

static const char *with_slash(const char *url, struct arena *a)
{
	size_t len = strlen(without_slash(url, a));
	char *text = arena_strdup(a, url, len + 1);

	text[len] = '/';
	return text;
}

static bool find_cloud(const char *name, struct azure_place *out, struct error *e)
{
	char shown[QUOTE_ROOM];

	for (int i = 0; i < CLOUDS; i++)
		for (int n = 0; n < 3; n++)
			if (strcasecmp(clouds[i].names[n], name) == 0) {
				*out = clouds[i].place;
				return true;
			}
	return error_set(
		e, ERROR_INVALID,
		"AZURE_ENVIRONMENT: found %s; allowed: AzurePublicCloud, AzureUSGovernment, AzureChinaCloud; for "
		"another cloud set AZURE_RESOURCE_MANAGER_ENDPOINT and AZURE_AUTHORITY_HOST",
		quote(shown, name, strlen(name)));
}

/* Which known cloud an endpoint is the Resource Manager of; -1: none. */
static int cloud_of(const char *endpoint)
{
	for (int i = 0; i < CLOUDS; i++)
		if (strcasecmp(clouds[i].place.endpoint, endpoint) == 0)
			return i;
	return -1;
}

static bool take_endpoint(const char *url, const char *from, struct arena *a, struct azure_place *out, struct error *e)
{
	char shown[QUOTE_ROOM];
	const char *endpoint = without_slash(url, a);
	int known = cloud_of(endpoint);

	if (!azure_url_is_safe(endpoint))
		return error_set(e, ERROR_INVALID, "%s: found %s; allowed: an https:// address", from,
				 quote(shown, url, strlen(url)));
	if (known >= 0) {
		*out = clouds[known].place;
	} else {
		out->endpoint = endpoint;
		out->audience = with_slash(endpoint, a);
	}
	return true;
}

static bool may_be_shown_a_token(const struct azure_environment *env, const char *url, struct arena *a)
{
	struct address at;
	const char *endpoint = without_slash(url, a);

	return cloud_of(endpoint) >= 0 || (parse(endpoint, &at) && is_this_machine(&at)) ||
	       (env->endpoint && strcasecmp(without_slash(env->endpoint, a), endpoint) == 0);
}

bool azure_place_find(const struct azure_environment *env, const char *wanted, struct arena *a, struct azure_place *out,
		      struct error *e)
{
	struct azure_place place = clouds[0].place;
	char shown[QUOTE_ROOM];

	if (env->cloud && !find_cloud(env->cloud, &place, e))
		return false;
	if (env->endpoint && !take_endpoint(env->endpoint, "AZURE_RESOURCE_MANAGER_ENDPOINT", a, &place, e))
		return false;
	if (wanted && !may_be_shown_a_token(env, wanted, a))
		return error_set(e, ERROR_INVALID,
				 "resourceManager: found %s; allowed: that of a known cloud, or what "
				 "AZURE_RESOURCE_MANAGER_ENDPOINT of preheat itself names, as our token is shown to it",
				 quote(shown, wanted, strlen(wanted)));
	if (wanted && !take_endpoint(wanted, "resourceManager", a, &place, e))
		return false;
	if (env->audience)
		place.audience = with_slash(env->audience, a);
	if (env->authority)
		place.authority = without_slash(env->authority, a);
	if (!azure_url_is_safe(place.authority))
		return error_set(e, ERROR_INVALID, "AZURE_AUTHORITY_HOST: found %s; allowed: an https:// address",
				 quote(shown, place.authority, strlen(place.authority)));
	*out = place;
	return true;
}

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
