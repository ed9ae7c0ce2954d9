/*
 * A relay on loopback that stands for a network, or a process, that dies in the middle of a request: it hands on so
 * many bytes of what clients send, to the byte, and ends that connection. One thread, no time in it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct cutting_relay;

/* Never fails: a test that gets no socket aborts. `goes_on`: later connections are handed on whole. */
struct cutting_relay *cutting_relay_open(int port, size_t bytes, bool goes_on);
const char *relay_url(const struct cutting_relay *r); /* "http://127.0.0.1:PORT" */
/* Ends all connections, waits for the thread; returns the bytes that it handed on before it cut. */
size_t cutting_relay_close(struct cutting_relay *r);
