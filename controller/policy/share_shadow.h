/*
 * Which rule a share follows. A shadow runs by each of share_rules(): the slots and engines that are there, asked for
 * what the share is asked for, moved by share_decide() as often as the share itself. Each counts requests that would
 * have waited too long; once an hour the share goes over to the rule of the least strained one
 * (share_rule_choose()). What the share does moves no engine of a shadow. A function of its arguments; no clock.
 *
 * Requests are a fluid in them: they come as they were counted, run on the engines in routing, and end at the rate
 * that the pool's own requests ended.
 */
#pragma once
#include "base/buf.h"
#include "controller/policy/share.h"

enum { SHARE_RULES_MAX = 32 };

/* What a member is asked for, whoever serves it. */
struct share_load {
	uint64_t key; /* its record is kept under it */
	int64_t sequences;
	int64_t running, waiting; /* requests, now */
	int64_t arrived;	  /* a counter from anywhere; one that fell has started anew */
	millis wait;		  /* objective: late after so long from now, if it has just come ... */
	int64_t late_ppm;	  /* ... which so many may be */
};

struct share_seen {
	const struct share_view *view;
	const struct share_load *loads; /* one per member */
	const struct share_times *slow; /* as the view's times, which are medians: the 95th percentiles */
	const uint64_t *slot_keys;
};

struct share_tally_member {
	uint64_t key;
	double asked, worked, ended; /* requests; milliseconds of them, and how many ended in that time */
};

/* What outlasts a process. It fades, to half in five days. */
struct share_tally {
	int64_t hour;	  /* of the last choice, the first of the epoch is 1; 0: none yet */
	size_t rule, was; /* followed now, and before the last change */
	double asked;	  /* requests of all members */
	double late[SHARE_RULES_MAX], strain[SHARE_RULES_MAX]; /* by each rule */
	struct share_tally_member *members;
	size_t member_count;
};

/* Zeroed at first. */
struct share_shadows {
	struct share_tally tally;
	struct arena arena, pass; /* all that follows; what one decision needs */
	millis now;
	struct share_asked *asked;    /* per member of the tally */
	struct shadow_share *shadows; /* per rule; NULL: nothing was seen yet */
	uint64_t *slot_keys;
	size_t slot_count;
};

/* Goes on from what an earlier process counted. */
void share_shadows_recall(struct share_shadows *s, const struct share_tally *t);
void share_shadows_release(struct share_shadows *s);
/* As the share is, after every decision. True: from now on another rule is followed. */
bool share_shadows_advance(struct share_shadows *s, const struct share_seen *seen);
const struct share_rule *share_shadows_rule(const struct share_shadows *s);

/* What the rule followed is, and what was late by it and by the one before. */
void share_choice_write(const struct share_tally *t, struct buf *out);
