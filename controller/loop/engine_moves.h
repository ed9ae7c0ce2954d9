/*
 * Engines of shares on their way to sleep, or to wake. Each has a row of the history before its first label and after
 * its last (state/share_record.h), so that whoever goes on after a crash does what was begun once more: the call looks
 * first, and does nothing where all is done.
 *
 *   sleep: label falling-asleep, nothing runs there twice, the call, label asleep
 *   wake:  label waking, the call, which ends with a token, label awake
 *
 * The label preheat.dev/engine-state is what routes go by, or, where engines of several pools are in one pod and each
 * has a label of its own, the slice that the activator writes. An engine that does not get there in time is broken: its
 * pod is evicted, once no other engine in it serves, and holds its GPU until it is gone.
 */
#pragma once
#include "base/arena.h"
#include "controller/cluster/pod.h"
#include "controller/cluster/verbs.h"
#include "controller/policy/share.h"
#include "signals/engine_call.h"

struct actor;
struct controller;

enum move_phase { PHASE_NONE, PHASE_LABEL, PHASE_EMPTY, PHASE_CALL, PHASE_LABEL_AFTER, PHASE_MEND };

/* An engine of a share: of each pool and each of its pods. */
struct shared_engine {
	struct shared_engine *next;
	struct controller *controller;
	char uid[37], namespace[64], pod[254], pool[130], share[260], slot[254];
	millis idle_since;     /* nothing runs there; 0: something does, or nobody knows */
	char cleared_for[130]; /* pool for which its slot is emptied; "": none */
	millis settled;	       /* clock_mono, when a label or a call of ours changed it last */
	enum engine_told told; /* what our last move made of it; watches and readings tell it later */
	millis moved_at;       /* when */
	millis started;	       /* its container, as that move or label was begun: of another they say nothing */
	millis quiet_until;    /* clock_mono: a move was refused; it is left alone */

	enum move_phase phase;
	bool is_wake;
	millis asked_at;
	char why[256], outcome[256]; /* outcome: of one whose slot is being mended */
	millis took;
	millis empty_since, zero_at; /* clock_mono */
	int zeroes;
	int failures;	 /* of calls to the API server, one after the other */
	millis retry_at; /* clock_mono */

	bool is_labelling, is_calling, is_evicting;
	bool is_resumed; /* begun by whoever led before */
	char label[16];	 /* written last */
	char path[512];	 /* of its metrics */
	struct buf body;
	struct object_call patch;
	struct eviction eviction;
	struct engine_call call;
	struct http_auth *server;
};

struct engine_moves {
	struct shared_engine *first;
	struct timer timer;
};

/* What the history tells of moves that have not ended; nothing is under way. */
void engine_moves_adopt(struct controller *c);
/* That of the pod, made where there is none. */
struct shared_engine *engine_moves_of(struct controller *c, size_t pool, const struct pod *p);
/* False: it is not on disk, and not begun. */
bool engine_move_begin(struct controller *c, struct shared_engine *m, bool is_wake, const char *why);
/* The label of an engine that is not moved; written where it is another. */
void engine_moves_label(struct controller *c, struct shared_engine *m, const struct pod *p, const char *label);
/* The engine of its pool in the pod is on its way to sleep. */
bool engine_moves_to_sleep(const struct controller *c, const struct pod *p);
/* Forgets all; none has anything under way. */
void engine_moves_close(struct controller *c);
/* Those whose pods have gone, or are in no share any more, and that have nothing under way are forgotten. */
void engine_moves_forget(struct controller *c);
/* A pool whose engines may be moved now. */
bool engine_moves_may(const struct controller *c, size_t pool);

extern const struct actor engine_moves_actor;
