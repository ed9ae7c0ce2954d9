/*
 * Replays with another objective, in processes of their own: this program
 * runs once more, as `replay --objective ...`. One runs at a time, few wait,
 * those that ended are kept for a while. All in memory.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/net/loop.h"

#include <stdint.h>

struct what_ifs;

enum { WHAT_IF_TEXT = 64, WHAT_IF_NAME = 512 };

/* As it is told to the command; "" where nothing is changed. */
struct what_if_request {
	char pool[WHAT_IF_NAME]; /* NAMESPACE/NAME */
	char objective[2 * WHAT_IF_TEXT], violation_cost[WHAT_IF_TEXT], budget[WHAT_IF_TEXT], max[WHAT_IF_TEXT];
	millis from, to;
};

enum what_if_state { WHAT_IF_QUEUED, WHAT_IF_RUNNING, WHAT_IF_DONE, WHAT_IF_FAILED, WHAT_IF_CANCELLED };

/* In millionths; ABSENT where not told. */
struct what_if_figures {
	int64_t requests, late, gpu_hours, dollars, starts;
	int64_t allowed;    /* percent of requests that may be late */
	int64_t by_shadows; /* dollars, by the price of the objective */
};

struct what_if {
	int64_t id;
	enum what_if_state state;
	struct what_if_request request;
	int64_t percent; /* of the work */
	millis asked_at, ended_at;
	struct what_if_figures recorded, same,
		changed;   /* as it was; the model with the same settings; with the others */
	char message[512]; /* why it failed */
	struct what_if *next;
};

struct what_ifs_setup {
	struct loop *loop;
	const char *program; /* to run; must outlive it */
	const char *history;
};

struct what_ifs *what_ifs_open(const struct what_ifs_setup *setup);
/* Ends what runs, and returns when it is gone. Takes NULL. */
void what_ifs_close(struct what_ifs *w);
/* NULL: ERROR_CONFLICT when the same one waits or runs, ERROR_THROTTLED when too many wait. It starts from the loop. */
const struct what_if *what_ifs_add(struct what_ifs *w, const struct what_if_request *r, struct error *e) MUST_USE;
/* The newest first, linked by next; valid until the loop runs or one is added. */
const struct what_if *what_ifs_all(const struct what_ifs *w);
const struct what_if *what_ifs_find(const struct what_ifs *w, int64_t id); /* NULL: none, or no longer */
/* One that waits or runs ends as cancelled; nothing otherwise. */
void what_ifs_cancel(struct what_ifs *w, int64_t id);

/* What is asked, as it was sent; NULL: not there. Numbers as they stand in the text. */
struct what_if_body {
	const char *pool, *queue_wait, *attainment, *violation_cost, *budget, *max, *from, *to;
};
/* ERROR_INVALID says where, what was found, what is allowed. Texts live in the arena. */
bool what_if_body_read(const char *text, size_t len, struct arena *a, struct what_if_body *out,
		       struct error *e) MUST_USE;
