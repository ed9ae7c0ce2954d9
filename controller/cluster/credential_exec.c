#include "base/decode.h"
#include "base/json_write.h"
#include "controller/cluster/credential_parts.h"

#include <string.h>

struct exec_credential {
	const char *api_version, *kind;
	struct exec_answer status;
};

static const struct field credential_fields[] = {
	FIELD(struct exec_credential, api_version, FIELD_STRING, "apiVersion"),
	FIELD(struct exec_credential, kind, FIELD_STRING, "kind"),
	FIELD(struct exec_credential, status.token, FIELD_STRING, "status>token"),
	FIELD(struct exec_credential, status.cert, FIELD_STRING, "status>clientCertificateData"),
	FIELD(struct exec_credential, status.key, FIELD_STRING, "status>clientKeyData"),
	FIELD(struct exec_credential, status.expires, FIELD_TIME, "status>expirationTimestamp"),
};
static const struct record_spec credential_record = { "", sizeof(struct exec_credential), credential_fields,
						      sizeof credential_fields / sizeof *credential_fields };

static void write_member(const char *key, const char *value, struct buf *out)
{
	if (!value)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	json_write_text(value, out);
}

static void write_base64(const char *text, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned bits = (unsigned)(unsigned char)text[i] << 16;
		if (n > 1)
			bits |= (unsigned)(unsigned char)text[i + 1] << 8;
		if (n > 2)
			bits |= (unsigned char)text[i + 2];
		buf_printf(out, "%c%c%c%c", digits[bits >> 18], digits[bits >> 12 & 63],
			   n > 1 ? digits[bits >> 6 & 63] : '=', n > 2 ? digits[bits & 63] : '=');
	}
}

void exec_question(const struct kubeconfig *k, struct buf *out)
{
	CLEANUP(buf_release) struct buf ca = { 0 };

	buf_text(out, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\"");
	write_member("apiVersion", k->exec.api_version, out);
	buf_text(out, ",\"spec\":{\"interactive\":false");
	if (k->exec.provides_cluster) {
		if (k->tls.ca)
			write_base64(k->tls.ca, &ca);
		buf_text(out, ",\"cluster\":{");
		write_member("server", k->server, out);
		write_member("tls-server-name", k->tls.server_name, out);
		write_member("certificate-authority-data", k->tls.ca ? ca.text : NULL, out);
		write_member("proxy-url", k->proxy, out);
		if (k->tls.is_insecure)
			buf_text(out, ",\"insecure-skip-tls-verify\":true");
		buf_text(out, "}");
	}
	buf_text(out, "}}");
}

bool exec_answer_read(const struct kubeconfig *k, const char *text, size_t len, struct arena *a,
		      struct exec_answer *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&credential_record);
	struct exec_credential c;
	struct error hidden;
	bool ok = decode_record(plan, text, len, a, &c, &hidden);

	decode_plan_free(plan);
	if (!ok || !c.kind || strcmp(c.kind, "ExecCredential"))
		return error_set(e, ERROR_AUTH,
				 "%s: the credential plug-in %s printed no ExecCredential: run it by hand", k->source,
				 k->exec.command);
	if (!c.api_version || strcmp(c.api_version, k->exec.api_version))
		return error_set(e, ERROR_AUTH,
				 "%s: the credential plug-in %s answers in another apiVersion than the kubeconfig's "
				 "(%s): update one of them",
				 k->source, k->exec.command, k->exec.api_version);
	if ((!c.status.token && !c.status.cert) || !c.status.cert != !c.status.key)
		return error_set(e, ERROR_AUTH,
				 "%s: the credential plug-in %s gave neither a token nor a certificate with its key",
				 k->source, k->exec.command);
	*out = c.status;
	return true;
}
