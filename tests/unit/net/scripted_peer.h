/*
 * A peer on a loopback socket that does what a script says, right or wrong:
 * one thread, blocking, no time in it. For tests of whatever speaks HTTP.
 */
#pragma once
#include <stddef.h>

enum peer_verb {
	PEER_END,     /* the last step: closes, and accepts nothing more */
	PEER_ACCEPT,  /* closes the connection before, waits for the next */
	PEER_READ,    /* one request: its header and as much body as Content-Length says */
	PEER_SEND,    /* the text */
	PEER_ENDLESS, /* the text again and again, until the other side goes */
	PEER_HOLD,    /* nothing, until the other side goes */
	PEER_WAIT,    /* for peer_go() */
	PEER_RESET,   /* ends the connection with RST */
};

struct peer_step {
	enum peer_verb verb;
	const char *text;
};

struct scripted_peer;

/* The script ends with PEER_END and must outlive the peer. Never fails: a test that gets no socket aborts. */
struct scripted_peer *peer_open(const struct peer_step *script);
const char *peer_url(const struct scripted_peer *p); /* "http://127.0.0.1:PORT" */
int peer_port(const struct scripted_peer *p);
void peer_go(struct scripted_peer *p); /* lets one PEER_WAIT pass, also one still to come */
/* Ends the script where it stands, waits for the thread; then all that PEER_READ read, for the caller to free. */
char *peer_close(struct scripted_peer *p);
