#include "providers/aws/refusal.h"

#include "base/decode.h"
#include "base/net/http.h"
#include "base/xml.h"

#include <string.h>

struct texts {
	const char *code, *type, *message, *message_upper;
};

static const struct field json_fields[] = {
	FIELD(struct texts, code, FIELD_STRING, "code"),
	FIELD(struct texts, type, FIELD_STRING, "__type"),
	FIELD(struct texts, message, FIELD_STRING, "message"),
	FIELD(struct texts, message_upper, FIELD_STRING, "Message"),
};
static const struct record_spec json_record = { "", sizeof(struct texts), json_fields, 4 };

static void read_json(const char *text, size_t len, struct arena *a, struct texts *out)
{
	struct decode_plan *plan = decode_plan_new(&json_record);
	struct error ignored;

	if (!decode_record(plan, text, len, a, out, &ignored))
		*out = (struct texts){ 0 };
	decode_plan_free(plan);
}

/* <ErrorResponse><Error><Code>; EC2 has <Response><Errors><Error><Code>. */
static void read_xml(const char *text, size_t len, struct arena *a, struct texts *out)
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

/* A sentence of the other side, in one line and not too long. */
static void keep(const char *text, size_t len, char *room, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; text && i < len && text[i] && n + 1 < size; i++)
		room[n++] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
	room[n] = '\0';
}

/* "com.amazonaws.eks#ResourceInUseException:http://..." */
static void keep_code(const char *text, char room[64])
{
	const char *name = text ? strchr(text, '#') : NULL;

	name = name ? name + 1 : text;
	keep(name, name ? strcspn(name, ":") : 0, room, 64);
}

void aws_read_refusal(const char *text, size_t len, const char *type, struct aws_refusal *out)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct texts t = { 0 };
	size_t blank = strspn(text, " \t\r\n");

	if (blank < len && text[blank] == '<')
		read_xml(text, len, &scratch, &t);
	else if (blank < len && text[blank] == '{')
		read_json(text, len, &scratch, &t);
	keep_code(type && *type ? type : t.type ? t.type : t.code, out->code);
	const char *message = t.message ? t.message : t.message_upper ? t.message_upper : "";
	keep(message, strlen(message), out->message, sizeof out->message);
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

static bool is_one_of(const char *code, const char *const *codes)
{
	while (*codes && strcmp(code, *codes) != 0)
		codes++;
	return *codes != NULL;
}

bool aws_refusal_is_expiry(const struct aws_refusal *r)
{
	static const char *const codes[] = { "ExpiredToken", "ExpiredTokenException", "RequestExpired", NULL };

	return is_one_of(r->code, codes);
}

bool aws_refusal_is_skew(const struct aws_refusal *r)
{
	static const char *const codes[] = { "RequestTimeTooSkewed",	  "RequestExpired",	   "AuthFailure",
					     "InvalidSignatureException", "SignatureDoesNotMatch", NULL };

	return is_one_of(r->code, codes);
}
