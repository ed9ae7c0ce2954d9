/*
 * Which Auto Scaling group belongs to which settings, remembered for some
 * minutes so that EKS is not asked at every look; so is that there is none,
 * for less long. Nothing depends on it: without it, more is asked.
 */
#pragma once
#include "base/millis.h"
#include "providers/eks_answer.h"

struct eks_lookup;

struct eks_lookup *eks_lookup_open(void);
void eks_lookup_close(struct eks_lookup *l); /* takes NULL */

enum eks_known { EKS_UNKNOWN, EKS_FOUND, EKS_REFUSED };
/* Found: into *out (texts in the arena). Refused: the error as it was told. `now` is of a clock that never goes back.
 */
enum eks_known eks_lookup_find(const struct eks_lookup *l, const char *settings, millis now, struct arena *a,
			       struct eks_nodegroup *out, struct error *e);
void eks_lookup_keep(struct eks_lookup *l, const char *settings, millis now, const struct eks_nodegroup *n);
/* Kept only where asking again soon would not help. */
void eks_lookup_keep_refusal(struct eks_lookup *l, const char *settings, millis now, const struct error *e);
void eks_lookup_forget(struct eks_lookup *l, const char *settings);
/* Keeps the number of the newest failed launch that a look at these settings read; returns that of the look before. */
int64_t eks_lookup_see(struct eks_lookup *l, const char *settings, int64_t newest);
