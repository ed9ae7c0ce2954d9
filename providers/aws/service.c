#include "providers/aws/service.h"

#include "base/net/http.h"
#include "base/text.h"
#include "base/xml.h"
#include "providers/text.h"

#include <string.h>

const char *aws_service_name(enum aws_service s)
{
	static const char *const names[] = { "eks", "autoscaling", "ec2", "sts" };

	_Static_assert(sizeof names / sizeof *names == AWS_SERVICE_COUNT, "a name per service");
	return names[s];
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
		return error_set(e, ERROR_INVALID, "endpoint %s is not a URL such as https://host",
				 quote(shown, url, strlen(url)));
	if (is_plain && !is_this_machine(a))
		return error_set(e, ERROR_INVALID, "endpoint %s would be told credentials unencrypted; use https://",
				 quote(shown, url, strlen(url)));
	return true;
}

static const char *of_environment(const struct aws_environment *env, enum aws_service s)
{
	const char *own = s == AWS_EKS	 ? env->endpoint_eks
			  : s == AWS_EC2 ? env->endpoint_ec2
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

void aws_form_begin(const char *action, const char *version, struct buf *out)
{
	buf_printf(out, "Action=%s&Version=%s", action, version);
}

void aws_form_text(const char *name, const char *value, struct buf *out)
{
	buf_printf(out, "&%s=", name);
	uri_escape(value, strlen(value), "", out);
}

struct refusal_text {
	const char *code, *type, *message, *message_upper;
};

static const struct field json_fields[] = {
	FIELD(struct refusal_text, code, FIELD_STRING, "code"),
	FIELD(struct refusal_text, type, FIELD_STRING, "__type"),
	FIELD(struct refusal_text, message, FIELD_STRING, "message"),
	FIELD(struct refusal_text, message_upper, FIELD_STRING, "Message"),
};
static const struct record_spec json_record = RECORD(struct refusal_text, json_fields);

/* <ErrorResponse><Error><Code>; EC2 has <Response><Errors><Error><Code>. */
static void read_xml(const char *text, size_t len, struct arena *a, struct refusal_text *out)
{
	const struct xml_node *root, *error, *found;
	struct error ignored;

	if (!xml_read(text, len, a, &root, &ignored))
		return;
	error = xml_find(root, "Error");
	if (!error)
		error = xml_find(root, "Errors>Error");
	found = xml_find(error, "Code");
	out->code = found ? found->text : NULL;
	found = xml_find(error, "Message");
	out->message = found ? found->text : NULL;
}

/* "com.amazonaws.eks#ResourceInUseException:http://..." */
static void keep_code(const char *text, char room[64])
{
	const char *name = text ? strchr(text, '#') : NULL;

	name = name ? name + 1 : text;
	text_show(name, name ? strcspn(name, ":") : 0, room, 64);
}

void aws_read_refusal(const char *text, size_t len, const char *type, struct aws_refusal *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct refusal_text t = { 0 };
	size_t blank = strspn(text, " \t\r\n");
	struct error ignored;

	if (blank < len && text[blank] == '<')
		read_xml(text, len, &scratch, &t);
	else if (blank < len && text[blank] == '{')
		(void)!text_decode(&json_record, text, len, &scratch, &t, &ignored);
	keep_code(type && *type ? type : t.type ? t.type : t.code, out->code);
	text_show(t.message ? t.message : t.message_upper, SIZE_MAX, out->message, sizeof out->message);
}

enum error_kind aws_refusal_kind(const struct aws_refusal *r, long status)
{
	static const struct {
		const char *code;
		enum error_kind kind;
	} codes[] = {
#define AWS_CODE(code, kind) { code, kind },
#include "providers/aws/error_code.def"
#undef AWS_CODE
	};
	enum error_kind kind = http_status_kind(status);

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (strcmp(codes[i].code, r->code) == 0)
			return codes[i].kind;
	return kind == ERROR_NONE ? ERROR_INVALID : kind;
}

struct grant_text {
	const char *id, *secret, *token, *code;
	millis expires_at;
};

static const struct xml_field identity_fields[] = {
	XML_NEEDED(struct grant_text, id, XML_STRING, "AccessKeyId"),
	XML_NEEDED(struct grant_text, secret, XML_STRING, "SecretAccessKey"),
	XML_NEEDED(struct grant_text, token, XML_STRING, "SessionToken"),
	XML_NEEDED(struct grant_text, expires_at, XML_TIME, "Expiration"),
};
static const struct xml_table identity_table = XML_TABLE(struct grant_text, identity_fields);

static const struct field container_fields[] = {
	FIELD(struct grant_text, id, FIELD_STRING, "AccessKeyId"),
	FIELD(struct grant_text, secret, FIELD_STRING, "SecretAccessKey"),
	FIELD(struct grant_text, token, FIELD_STRING, "Token"),
	FIELD(struct grant_text, expires_at, FIELD_TIME, "Expiration"),
	FIELD(struct grant_text, code, FIELD_STRING, "Code"),
};
static const struct record_spec container_record = RECORD(struct grant_text, container_fields);

/* They become a line of a header each. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= 0x20 || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

static bool accept(const struct grant_text *t, struct aws_grant *out, struct error *e)
{
	const char *token = text_or_empty(t->token);

	if (!t->id || !*t->id || !t->secret || !*t->secret)
		return error_set(e, ERROR_INVALID, "a key without its id or its secret");
	if (!is_plain(t->id) || !is_plain(t->secret) || !is_plain(token))
		return error_set(e, ERROR_INVALID, "a key with characters that no key has");
	out->credentials = (struct aws_credentials){ t->id, t->secret, token };
	out->expires_at = t->expires_at;
	return true;
}

bool aws_read_web_identity(const char *text, size_t len, struct arena *a, struct aws_grant *out, struct error *e)
{
	const struct xml_node *root, *found;
	struct grant_text t;

	if (!xml_read(text, len, a, &root, e))
		return false;
	found = xml_find(root, "AssumeRoleWithWebIdentityResult>Credentials");
	if (!found)
		return error_set(e, ERROR_INVALID, "no Credentials in the answer");
	if (!xml_decode(&identity_table, found, a, &t, e)) {
		error_set(e, ERROR_INVALID, "the Credentials in the answer are not whole");
		return false;
	}
	return accept(&t, out, e);
}

bool aws_read_container(const char *text, size_t len, struct arena *a, struct aws_grant *out, struct error *e)
{
	struct grant_text t;

	if (!text_decode(&container_record, text, len, a, &t, e))
		return error_set(e, ERROR_INVALID, "the answer is not JSON with AccessKeyId, SecretAccessKey, Token");
	if (t.code && strcmp(t.code, "Success") != 0)
		return error_set(e, ERROR_AUTH, "the instance has no credentials for its role");
	return accept(&t, out, e);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static char *trimmed(char *from, char *to)
{
	while (from < to && is_blank(*from))
		from++;
	while (to > from && is_blank(to[-1]))
		to--;
	*to = '\0';
	return from;
}

static void take_setting(char *line, char *end, struct grant_text *out)
{
	static const struct {
		const char *name;
		size_t offset;
	} names[] = {
		{ "aws_access_key_id", offsetof(struct grant_text, id) },
		{ "aws_secret_access_key", offsetof(struct grant_text, secret) },
		{ "aws_session_token", offsetof(struct grant_text, token) },
	};
	char *equals = memchr(line, '=', (size_t)(end - line));

	if (!equals)
		return;
	const char *value = trimmed(equals + 1, end), *name = trimmed(line, equals);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i].name, name) == 0)
			*(const char **)(void *)((char *)out + names[i].offset) = value;
}

bool aws_read_profile(const char *text, size_t len, const char *profile, struct arena *a, struct aws_grant *out,
		      struct error *e)
{
	char *copy = arena_strdup(a, text, len), *end = copy + len, *next;
	bool is_in = false, is_found = false;
	struct grant_text t = { 0 };

	for (char *line = copy; line < end; line = next) {
		char *stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		next = stop + 1;
		if (*line == '[') {
			char *close = memchr(line, ']', (size_t)(stop - line));
			is_in = close && strcmp(trimmed(line + 1, close), profile) == 0;
			is_found |= is_in;
		} else if (is_in && *line != '#' && *line != ';') {
			take_setting(line, stop, &t);
		}
	}
	if (!is_found)
		return error_set(
			e, ERROR_NOT_FOUND,
			"there is no profile [%s]; those of the config file (SSO, role_arn) are not read: 'aws "
			"configure export-credentials --profile %s --format env' makes keys of one",
			profile, profile);
	return accept(&t, out, e) ||
	       error_set(e, ERROR_AUTH, "profile [%s] has no aws_access_key_id and aws_secret_access_key", profile);
}
