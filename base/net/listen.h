/* A listening socket from a text such as "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses). */
#pragma once
#include "base/error.h"

#include <stdint.h>

/* The socket, not blocking, for the caller to close, and the port it got; -1 with an error. */
int listen_open(const char *where, uint16_t *port, struct error *e) MUST_USE;
/* Whether only this machine reaches it: "127.0.0.1:80", "[::1]:80", "localhost:80". False for what is no address. */
bool listen_check(const char *where, bool *is_loopback, struct error *e) MUST_USE;
