#include "providers/aws/endpoint.h"

#include "base/quote.h"

#include <string.h>

const char *aws_service_name(enum aws_service s)
{
	static const char *const names[] = { "eks", "autoscaling", "sts" };

	_Static_assert(sizeof names / sizeof *names == AWS_SERVICE_COUNT, "a name per service");
	return names[s];
}

bool aws_is_region(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len && len <= 40 && !text[len] && *text != '-' && text[len - 1] != '-';
}

struct authority {
	const char *host;
	size_t len;
};

/* Host without port; len 0 where there is none, or a user stands before it. */
static struct authority authority_of(const char *url)
{
	const char *host = strstr(url, "://");
	struct authority none = { "", 0 };

	if (!host)
		return none;
	host += 3;
	size_t all = strcspn(host, "/?#");
	if (memchr(host, '@', all))
		return none;
	if (*host == '[') {
		const char *close = memchr(host, ']', all);
		return close ? (struct authority){ host, (size_t)(close - host) + 1 } : none;
	}
	return (struct authority){ host, strcspn(host, ":/?#") };
}

static bool is_host(struct authority a, const char *name)
{
	return strlen(name) == a.len && memcmp(a.host, name, a.len) == 0;
}

static bool is_this_machine(struct authority a)
{
	if (is_host(a, "localhost") || is_host(a, "[::1]"))
		return true;
	return a.len > 4 && memcmp(a.host, "127.", 4) == 0 && strspn(a.host, "0123456789.") >= a.len;
}

bool aws_is_credential_url(const char *url)
{
	struct authority a = authority_of(url);

	if (!a.len)
		return false;
	if (strncmp(url, "https://", 8) == 0)
		return true;
	return strncmp(url, "http://", 7) == 0 && (is_this_machine(a) || is_host(a, "169.254.170.2") ||
						   is_host(a, "169.254.170.23") || is_host(a, "[fd00:ec2::23]"));
}

static bool ends_in(struct authority a, const char *end)
{
	size_t len = strlen(end);

	return a.len > len && memcmp(a.host + a.len - len, end, len) == 0;
}

bool aws_is_own_url(const char *url)
{
	struct authority a = authority_of(url);

	return is_this_machine(a) || ends_in(a, ".amazonaws.com") || ends_in(a, ".amazonaws.com.cn") ||
	       ends_in(a, ".api.aws");
}

static bool is_safe(const char *url, struct error *e)
{
	struct authority a = authority_of(url);
	char shown[QUOTE_ROOM];
	bool is_plain = strncmp(url, "http://", 7) == 0;

	for (const char *p = url; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f || strchr("?#\"\\", *p))
			a.len = 0;
	if (!a.len || (!is_plain && strncmp(url, "https://", 8) != 0))
		return error_set(e, ERROR_INVALID, "endpoint %s is no URL such as https://host",
				 quote(shown, url, strlen(url)));
	if (is_plain && !is_this_machine(a))
		return error_set(e, ERROR_INVALID, "endpoint %s would be told credentials unencrypted; use https://",
				 quote(shown, url, strlen(url)));
	return true;
}

static const char *of_environment(const struct aws_environment *env, enum aws_service s)
{
	const char *own = s == AWS_EKS	 ? env->endpoint_eks
			  : s == AWS_STS ? env->endpoint_sts
					 : env->endpoint_autoscaling;

	return own ? own : env->endpoint;
}

bool aws_endpoint(const struct aws_environment *env, const char *told, enum aws_service s, const char *region,
		  struct buf *out, struct error *e)
{
	const char *url = told && *told ? told : of_environment(env, s);

	if (!url) {
		bool is_china = strncmp(region, "cn-", 3) == 0;
		buf_printf(out, "https://%s.%s.amazonaws.com%s", aws_service_name(s), region, is_china ? ".cn" : "");
		return true;
	}
	if (!is_safe(url, e))
		return false;
	size_t len = strlen(url);
	while (len && url[len - 1] == '/')
		len--;
	buf_append(out, url, len);
	return true;
}
