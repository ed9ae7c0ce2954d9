/* The model servers in pods: the traffic of each app, their pages, the lies on them, and engines that sleep and wake.
 */
#pragma once
#include "tests/world/apiserver.h"

enum { LOAD_SECONDS = 120, SERVER_SLOTS = 16, SERVER_WAITING = 4096, WAIT_EDGES = 12 };

struct world_app;

/* A model server in a pod. */
struct model_server {
	int running;
	millis ends[SERVER_SLOTS];
	int waiting;
	millis arrived[SERVER_WAITING];
	int64_t started, completed, waits[WAIT_EDGES + 1];
	double waited_s;
	double worked_s; /* all sequences together; counted as tokens come */
	millis worked_at;
	int sleeps; /* on that level; 0: it is awake */
	int moves_to;
	millis moved;		    /* when it gets there; 0: it does not move */
	bool has_room, has_weights; /* of a sleep on level 2: for its weights; them in it */
};

void engines_begin(void);
void engines_second(struct world_app *a); /* its traffic, and what its engines do with it */
/* So many engines of the app that are awake fall asleep on a level (0: that sleep wake up), as vLLM does by default:
 * what runs there is aborted, and comes again. The pod stays ready, and the gateway asks no sleeper. */
void engines_sleep(const char *app, int64_t count, int level);
/* So many engines of the app that sleep crash: their containers start anew, and are awake once they are ready. */
void engines_crash(const char *app, int64_t count);
/* The label of engines on that level; "": none. */
void engines_label(const char *app, int level, const char *state);
int64_t engines_count(const char *app, int level); /* ready ones on it */
/* Asked as a call that moves an engine arrives, before it does anything; NULL: nobody. */
void engines_on_call(void (*called)(const char *path));
int64_t engines_least_load(const struct world_app *a); /* requests in it at every moment of the last LOAD_SECONDS */
