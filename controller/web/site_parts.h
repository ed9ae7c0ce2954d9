/* What the files of the site share. */
#pragma once
#include "base/digest.h"
#include "controller/web/site.h"

struct site {
	struct site_settings settings;
	struct loop *loop;
	bool is_near; /* on a loopback address */
	struct server *server;
	const char *headers[16];
	struct clock clock;
	struct gate *gate;
	struct timer look;  /* at the files */
	struct sha256 seen; /* what stood in them last */
	bool is_broken;	    /* and made no pair */
};

/* What stands in the two files; wiped by the caller. */
struct tls_texts {
	struct buf cert, key;
};
bool tls_texts_read(const struct site *s, struct tls_texts *out, struct error *e) MUST_USE;
void tls_texts_wipe(struct tls_texts *t);
struct sha256 tls_texts_digest(const struct tls_texts *t);
/* Looks at the files from then on. */
void site_watch_files(struct site *s);
