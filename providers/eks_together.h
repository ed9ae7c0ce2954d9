/*
 * One DescribeAutoScalingGroups for several groups: who asks for its own
 * group asks for others of the account's region, too, that were looked at
 * lately, and what was told serves these when their turn comes within a few
 * seconds, each once. Nothing that was told before a change began, or while
 * one was going on, serves anybody. Nothing depends on it: without it, more
 * is asked.
 */
#pragma once
#include "base/millis.h"
#include "providers/eks_wire.h"

enum { EKS_TOGETHER = 10 }; /* groups in one request */

struct eks_together;

/* An answer. */
struct eks_told {
	const char *text;
	size_t len;
	uint64_t era;	    /* in which it was asked for */
	millis answered_at; /* as AWS's clock says; 0: not told */
};

struct eks_together *eks_together_open(void);
void eks_together_close(struct eks_together *t); /* takes NULL */

/* What a request for `group` names, itself first; the texts live until the next call. Returns how many. `now` is of a
 * clock that never goes back. */
size_t eks_together_names(struct eks_together *t, const struct eks_settings *s, const char *group, millis now,
			  const char *names[EKS_TOGETHER]);
/* Of the present state; part of the answer to what is asked now. */
uint64_t eks_together_era(const struct eks_together *t);
/* The answer to the request for `group`, in which that was found; it is copied. */
void eks_together_keep(struct eks_together *t, const struct eks_settings *s, const char *group, millis now,
		       const struct eks_told *told);
/* The answer to somebody else's request, which should tell of the group, too: valid until the next call. NULL: it has
 * to be asked. */
const struct eks_told *eks_together_take(struct eks_together *t, const struct eks_settings *s, const char *group,
					 millis now);
/* A change begins, or is over. */
void eks_together_changed(struct eks_together *t);
