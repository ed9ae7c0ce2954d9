/*
 * The page and the API, on an address of their own: who is let in (gate.h),
 * the headers that keep a browser from harm, limits, TLS from files that are
 * read again when they change.
 */
#pragma once
#include "controller/web/gate.h"

struct site;

struct site_settings {
	const char *listen;
	const char *cert_file, *key_file;  /* PEM; both or neither; must outlive it */
	const struct server_route *routes; /* must outlive it */
	size_t route_count;
	gate_ask_fn *ask; /* the API server; NULL: only a loopback address is taken */
	void *ask_user;
};

/* Whether such a site may be opened, before anything is. ERROR_INVALID says what to do. */
bool site_check(const struct site_settings *s, struct error *e) MUST_USE;
/* NULL with the error of site_check(), server_open(), or of reading the files. */
struct site *site_open(struct loop *loop, const struct site_settings *s, struct error *e) MUST_USE;
uint16_t site_port(const struct site *s);
bool site_asks_for_tokens(const struct site *s);
void site_close(struct site *s); /* takes NULL */
