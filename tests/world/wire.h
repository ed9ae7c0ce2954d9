/*
 * Time and the network as a world plays them, below all of the product: http_start(), the timers and the clocks are
 * linked over (CMakeLists.txt). Time only passes in wire_step(); what is sent arrives a moment later at the host of its
 * URL, and the answer a moment after that. All of it follows from the seed.
 */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/net/http.h"
#include "base/random.h"

/* What arrived. Lives until its sender has heard the end, or gave up, which `gone` tells. */
struct wire_call {
	const char *method, *path; /* path: from the root, query included */
	const char *host;	   /* "http://10.0.0.1:8000" */
	const char *body;	   /* "": none */
	const char *if_match;	   /* of the header; "": none */
	int from;		   /* as wire_from() said when the sender was opened */
	bool is_again;		   /* the network delivers it a second time; its answer goes nowhere */
	void (*gone)(struct wire_call *c);
	void *user; /* of whoever serves it */
};

void wire_begin(uint64_t seed);
void wire_machine_ahead(millis by);	      /* the wall clocks of the controllers' machines, of the true time */
void wire_dates(bool are_told, millis ahead); /* the Date of all answers; told, and true, at first */
void wire_steady(millis each); /* every byte takes so long, whatever else is under way; 0: from the seed */
void wire_end(void);
/* Milliseconds since the beginning; the wall's clock shows WIRE_EPOCH more. */
millis wire_now(void);
#define WIRE_EPOCH (INT64_C(1767571200) * 1000) /* 2026-01-05T00:00:00Z, a Monday */
struct clock *wire_clock(void);
struct random *wire_random(void);
void wire_turn_wall(millis ahead); /* of what processes take for the time of day; 0: it is right */
/* Of one machine alone, beside that: from now on it gains so much in a second of the true time. */
void wire_turn_one_wall(int machine, millis ahead, int64_t gains_permille);
/* Whose code runs until it is called with what this returns; timers of a loop run on the machine of its clients. -1:
 * the world's own. */
int wire_enter(int machine);
/* Fires the next timer up to that time; false, and it is that time, when there is none. */
bool wire_step(millis until);
void wire_count(int64_t *events, int64_t *calls);

/* Who opens HTTP clients from now on. */
void wire_from(int who);
/* Serves the URLs that begin so; the last that fits. */
void wire_host(const char *prefix, void (*serve)(struct wire_call *c));
/* Their clock, as their answers' Date and their stamps have it; the hosts whose prefix begins with the URL. */
void wire_host_ahead(const char *url, millis ahead);
millis wire_host_wall(const char *url, millis at); /* what it shows at that time */

/* What becomes of a request; zeroed: it arrives, and its answer too. */
struct wire_fate {
	bool is_refused;     /* no connection: it never arrives, and fails at once */
	bool is_swallowed;   /* it never arrives, and nothing is heard */
	bool is_answer_lost; /* it arrives; the connection breaks in place of the answer */
	bool is_answer_half; /* of an answer that is whole at once: the second half is missing */
	bool is_twice;	     /* it arrives once more up to two seconds later */
	bool is_held;	     /* it leaves only as its process goes on: SIGSTOP between the decision and the socket */
	bool is_last;	     /* it arrives though its process dies as it leaves */
	millis slow;	     /* so much later than otherwise */
};
/* Asked as a request leaves; NULL: all arrive. */
void wire_on_leave(struct wire_fate (*decide)(const struct wire_call *c));
/* Told as an answer is about to be heard; NULL: nobody. */
void wire_on_answer(void (*answered)(const struct wire_call *c));
/* Asked as what was answered would be heard; true: not yet, and it is asked again a second later. NULL: all is heard.
 */
void wire_on_hear(bool (*is_unheard)(const struct wire_call *c));
/* Whether a request that would change something, and has left and not arrived, names the text. */
bool wire_carries(const char *text);
/* Nothing leaves that process any more and nothing is heard there; wire_kill() follows. */
void wire_silence(struct http *h);

/* Ends the call. `headers` is "Name: value\n..." or NULL. */
void wire_answer(struct wire_call *c, long status, const char *headers, const char *body);
void wire_answer_bytes(struct wire_call *c, long status, const char *headers, const char *body, size_t len);
void wire_push(struct wire_call *c, const char *bytes, size_t len); /* a part of a 200 that goes on */
void wire_close(struct wire_call *c);				    /* after what was pushed */
void wire_cut(struct wire_call *c);				    /* the connection is lost */

/* A process dies: its calls on the way arrive or not, nothing is heard any more, and nothing else leaves it. */
void wire_kill(struct http *h);
/* A process stands still, as with SIGSTOP: what is due for it happens when it goes on, all at once. */
void wire_pause(struct loop *l, bool is_paused);
/* A machine sleeps until wire_pause(l, false): its timers stand still, and go on where they were; its clocks do not. */
void wire_suspend(struct loop *l);
size_t wire_forget(const struct loop *l); /* timers that still run on it, though all of it is freed; how many */
/* Runs what is left of a dead process beside the world, until `is_over`: it hears nothing but failures. */
void wire_bury(struct loop *l, bool (*is_over)(void *user), void *user);
