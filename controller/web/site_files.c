#include "controller/web/site_parts.h"

#include "base/file.h"
#include "base/log.h"

#include <string.h>

enum { FILE_LONGEST = 256 * 1024 };

#define LOOK_EVERY (10 * SECOND) /* a kubelet takes a minute to bring a Secret's change; this adds little */

void tls_texts_wipe(struct tls_texts *t)
{
	struct buf *both[] = { &t->cert, &t->key };

	for (size_t i = 0; i < 2; i++) {
		if (both[i]->text)
			explicit_bzero(both[i]->text, both[i]->room);
		buf_release(both[i]);
	}
}

bool tls_texts_read(const struct site *s, struct tls_texts *out, struct error *e)
{
	struct tls_texts t = { 0 };

	if (!file_read(s->settings.cert_file, FILE_LONGEST, &t.cert, e) ||
	    !file_read(s->settings.key_file, FILE_LONGEST, &t.key, e)) {
		tls_texts_wipe(&t);
		return false;
	}
	buf_text(&t.cert, ""); /* never NULL */
	buf_text(&t.key, "");
	*out = t;
	return true;
}

struct sha256 tls_texts_digest(const struct tls_texts *t)
{
	struct sha256 cert = sha256_of(t->cert.text, t->cert.len);

	return sha256_keyed(cert.bytes, sizeof cert.bytes, t->key.text, t->key.len);
}

/* A pair is written file by file, and a folder may be swapped between our two reads: what makes no pair is looked at
 * again, and told once. */
static void failed(struct site *s, const struct error *e)
{
	if (!s->is_broken)
		log_warn("tls-not-renewed", LOG_S("cert", s->settings.cert_file), LOG_S("key", s->settings.key_file),
			 LOG_E(e), LOG_S("kept", "the pair before"), LOG_END);
	s->is_broken = true;
}

static void look(struct timer *t)
{
	struct site *s = t->user;
	struct tls_texts texts = { 0 };
	struct error e = { 0 };

	timer_start(s->loop, &s->look, LOOK_EVERY, look);
	if (!tls_texts_read(s, &texts, &e)) {
		failed(s, &e);
		return;
	}
	struct sha256 now = tls_texts_digest(&texts);
	if (memcmp(&now, &s->seen, sizeof now) == 0) {
		s->is_broken = false;
	} else if (server_renew_tls(s->server, texts.cert.text, texts.key.text, &e)) {
		s->seen = now;
		s->is_broken = false;
		log_info("tls-renewed", LOG_S("cert", s->settings.cert_file), LOG_END);
	} else {
		failed(s, &e);
	}
	tls_texts_wipe(&texts);
}

void site_watch_files(struct site *s)
{
	s->look.user = s;
	timer_start(s->loop, &s->look, LOOK_EVERY, look);
}
