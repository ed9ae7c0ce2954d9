#include "base/net/server_parts.h"

#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_MOST	  (sizeof((struct tls_pair *)NULL)->chain / sizeof *((struct tls_pair *)NULL)->chain)
#define HANDSHAKE_LONGEST (5 * MINUTE)

/* libmicrohttpd hands no pointer of ours to this call-back; but only server_run() brings it about. */
static const struct server *shaking;

void server_tls_is_of(struct server *s)
{
	shaking = s;
}

// NOLINTNEXTLINE(readability-function-size): its parameters are GnuTLS's
int server_tls_pick(gnutls_session_t session, const struct gnutls_cert_retr_st *asked, gnutls_pcert_st **chain,
		    unsigned *chain_count, gnutls_ocsp_data_st **staples, unsigned *staple_count, gnutls_privkey_t *key,
		    unsigned *flags)
{
	struct tls_pair *pair = shaking ? shaking->pairs : NULL;

	(void)session;
	(void)asked;
	if (!pair)
		return -1;
	*chain = pair->chain;
	*chain_count = pair->chain_count;
	*staples = NULL;
	*staple_count = 0;
	*key = pair->key;
	*flags = 0;
	return 0;
}

static void free_pair(struct tls_pair *p)
{
	for (unsigned i = 0; i < p->chain_count; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	if (p->key)
		gnutls_privkey_deinit(p->key);
	free(p);
}

void server_tls_release(struct server *s)
{
	for (struct tls_pair *p = s->pairs, *next; p; p = next) {
		next = p->next;
		free_pair(p);
	}
	s->pairs = NULL;
}

/* Whether the key is the first certificate's. */
static int compare(struct tls_pair *p)
{
	unsigned char ids[2][64];
	size_t lens[2] = { sizeof ids[0], sizeof ids[1] };
	gnutls_pubkey_t of_key;
	int code = gnutls_pubkey_init(&of_key);

	if (code < 0)
		return code;
	code = gnutls_pubkey_import_privkey(of_key, p->key, 0, 0);
	if (code >= 0)
		code = gnutls_pubkey_get_key_id(of_key, GNUTLS_KEYID_USE_SHA256, ids[0], &lens[0]);
	if (code >= 0)
		code = gnutls_pubkey_get_key_id(p->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, ids[1], &lens[1]);
	gnutls_pubkey_deinit(of_key);
	if (code >= 0 && (lens[0] != lens[1] || memcmp(ids[0], ids[1], lens[0]) != 0))
		code = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
	return code < 0 ? code : 0;
}

static int fill_pair(struct tls_pair *p, const gnutls_datum_t *cert, const gnutls_datum_t *key)
{
	unsigned count = CHAIN_MOST;
	int code = gnutls_pcert_list_import_x509_raw(p->chain, &count, cert, GNUTLS_X509_FMT_PEM, 0);

	if (code < 0)
		return code;
	p->chain_count = count;
	code = gnutls_privkey_init(&p->key);
	if (code >= 0)
		code = gnutls_privkey_import_x509_raw(p->key, key, GNUTLS_X509_FMT_PEM, NULL, 0);
	return code < 0 ? code : compare(p);
}

/* Handshakes under way may hold a pair that was replaced; none lasts that long. */
static void drop_old(struct server *s)
{
	struct tls_pair **at = s->pairs ? &s->pairs->next : &s->pairs;

	while (*at) {
		struct tls_pair *p = *at;
		if (loop_now(s->loop) - p->retired < HANDSHAKE_LONGEST) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free_pair(p);
	}
}

bool server_tls_load(struct server *s, const char *cert, const char *key, struct error *e)
{
	const gnutls_datum_t cert_text = { (unsigned char *)(uintptr_t)cert, (unsigned)strlen(cert) };
	const gnutls_datum_t key_text = { (unsigned char *)(uintptr_t)(key ? key : ""),
					  (unsigned)strlen(key ? key : "") };
	struct tls_pair *p = calloc(1, sizeof *p);

	if (!p)
		abort();
	int code = fill_pair(p, &cert_text, &key_text);
	if (code < 0) {
		free_pair(p);
		return error_set(e, ERROR_INVALID, "the TLS certificate and its key: %s", gnutls_strerror(code));
	}
	if (s->pairs)
		s->pairs->retired = loop_now(s->loop);
	p->next = s->pairs;
	s->pairs = p;
	drop_old(s);
	return true;
}

bool server_renew_tls(struct server *s, const char *cert, const char *key, struct error *e)
{
	return server_tls_load(s, cert, key, e);
}
