/*
 * A leader that is stopped (stop.h), and what it talks to: an API server with
 * a lease, and the cloud of the worlds behind real sockets, in a process of
 * their own; a replica made of what the controller acts with. They share what
 * is counted.
 */
#pragma once
#include "tests/nemesis/stop.h"
#include "tests/world/cloud.h"

/* What it does, each thing once: from FEWEST machines to MOST, and LEAST_AFTER in the end. */
enum { FEWEST = 1, MOST = 3, LEFT = 2 };
enum stops_step { TO_GROW, TO_CORDON, TO_EVICT, TO_SCALE, TO_UNCORDON, TO_REMOVE, STEPS };
enum { CLUSTER_WRITES = 4 }; /* of those steps */

struct stops_shared {
	struct stop_seen seen;
	volatile int port, tls_port;
	/* of the runs */
	volatile long run; /* another: all begins anew */
	enum cloud_wire wire;
	bool launches; /* on EKS: by LaunchInstances */
	char history[64];
	/* of the server */
	volatile long version, writes;
	volatile int64_t bought, ended, alive, most;
	char holder[16];
	/* of the replica */
	volatile int won, lost, done[STEPS];
};
extern struct stops_shared *all;

void stops_fail(const char *what);
/* Serves until it is killed. pair: a key and its certificate. */
void stops_serve(const char *pair);
/* Does all steps and ends the process. ca: the API server's, over TLS; NULL: without. */
void stops_replica(const struct stop *s, const char *ca);
