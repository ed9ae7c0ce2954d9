#include "providers/aws/grant.h"

#include "base/decode.h"
#include "base/xml.h"

#include <string.h>

struct texts {
	const char *id, *secret, *token, *code;
	millis expires_at;
};

static const struct xml_field identity_fields[] = {
	XML_NEEDED(struct texts, id, XML_STRING, "AccessKeyId"),
	XML_NEEDED(struct texts, secret, XML_STRING, "SecretAccessKey"),
	XML_NEEDED(struct texts, token, XML_STRING, "SessionToken"),
	XML_NEEDED(struct texts, expires_at, XML_TIME, "Expiration"),
};
static const struct xml_table identity_table = XML_TABLE(struct texts, identity_fields);

static const struct field container_fields[] = {
	FIELD(struct texts, id, FIELD_STRING, "AccessKeyId"),
	FIELD(struct texts, secret, FIELD_STRING, "SecretAccessKey"),
	FIELD(struct texts, token, FIELD_STRING, "Token"),
	FIELD(struct texts, expires_at, FIELD_TIME, "Expiration"),
	FIELD(struct texts, code, FIELD_STRING, "Code"),
};
static const struct record_spec container_record = { "", sizeof(struct texts), container_fields, 5 };

/* They become a line of a header each. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= 0x20 || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

static bool accept(const struct texts *t, struct aws_grant *out, struct error *e)
{
	const char *token = t->token ? t->token : "";

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
	struct texts t;

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
	struct decode_plan *plan = decode_plan_new(&container_record);
	struct texts t;
	bool ok = decode_record(plan, text, len, a, &t, e);

	decode_plan_free(plan);
	if (!ok)
		return error_set(e, ERROR_INVALID, "the answer is no JSON with AccessKeyId, SecretAccessKey, Token");
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

static void take_setting(char *line, char *end, struct texts *out)
{
	static const struct {
		const char *name;
		size_t offset;
	} names[] = {
		{ "aws_access_key_id", offsetof(struct texts, id) },
		{ "aws_secret_access_key", offsetof(struct texts, secret) },
		{ "aws_session_token", offsetof(struct texts, token) },
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
	struct texts t = { 0 };

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
