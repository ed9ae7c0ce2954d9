/*
 * The lines between each replica and each of its peers: one may be cut while all others work, in either direction.
 */
#pragma once
#include "tests/world/wire.h"

enum peer { PEER_API, PEER_CLOUD, PEER_METRICS, PEER_REPLICA, PEER_COUNT };

enum line {
	LINE_WORKS,
	LINE_REFUSES,	     /* no new connection; what is open goes on */
	LINE_LOSES_REQUESTS, /* they never arrive; what is on its way back does */
	LINE_LOSES_ANSWERS,  /* requests arrive, and nothing is heard; open watches are silent, and catch up */
	LINE_DEAD,	     /* both */
	LINE_COUNT
};

/* The peer that is called. */
enum peer line_peer(const struct wire_call *c);
void lines_begin(void); /* all work; what leaves and what is heard is asked of here */
void lines_mend(void);	/* all work again */
void line_set(int who, enum peer peer, enum line state);
struct wire_fate line_fate(const struct wire_call *c); /* as a request leaves */
/* Since when nothing that this replica asks of the peer is answered; 0: it is. */
millis line_down_since(int who, enum peer peer);
