/*
 * What shares decided, with all that it depended on, so that anybody can decide it again; and the engines that were
 * put to sleep and woken: each is on disk before its first label is written, and what became of it afterwards. A row
 * that has not ended is what a next process and a next leader go by.
 */
#pragma once
#include "controller/policy/share_shadow.h"
#include "state/history.h"

/* Views and plans as texts: whole numbers between blanks. */
void share_view_write(const struct share_view *v, struct buf *out);
void share_plan_write(const struct share_view *v, const struct share_plan *p, struct buf *out);
/* Into the arena; ERROR_INVALID for a text that share_view_write() did not make. */
bool share_view_read(const char *text, struct arena *a, struct share_view *out, struct error *e) MUST_USE;

struct share_decision {
	const char *share; /* NAMESPACE/NAME */
	millis at;
	const char *view, *plan;
};

bool share_decision_save(struct history *h, const struct share_decision *d, struct error *e) MUST_USE;
struct share_decisions {
	struct share_decision *items;
	size_t count;
};
/* Oldest first, in the arena. */
bool share_decision_find(struct history *h, millis from, millis to, struct arena *a, struct share_decisions *found,
			 struct error *e) MUST_USE;

/* What shadows have counted, as text; doubles in millionths. */
void share_tally_write(const struct share_tally *t, struct buf *out);
/* Into the arena; ERROR_INVALID for a text that is damaged or counts by other rules than ours. */
bool share_tally_read(const char *text, struct arena *a, struct share_tally *out, struct error *e) MUST_USE;

/* The rule that a share follows. */
struct share_choice_record {
	const char *share;
	millis since, saved_at;
	const char *why; /* share_choice_write(); "" of the first, which is followed before anything is known */
	const char *tally;
};
/* In place of the one of that share since then. */
bool share_choice_save(struct history *h, const struct share_choice_record *r, struct error *e) MUST_USE;
struct share_choices {
	struct share_choice_record *items;
	size_t count;
};
struct share_choice_filter {
	millis from, to;   /* since, both included */
	const char *share; /* NULL: any */
	int64_t most;
};
/* The newest that the filter lets through, oldest first, in the arena. */
bool share_choice_find(struct history *h, const struct share_choice_filter *f, struct arena *a,
		       struct share_choices *found, struct error *e) MUST_USE;

/* On disk when each returns true. */
bool engine_move_save(struct history *h, const struct engine_move_record *m, struct error *e) MUST_USE;
/* ended_at 0: it failed, and its slot is being mended. The first outcome stays. */
bool engine_move_end(struct history *h, const struct engine_move_record *m, struct error *e) MUST_USE;
/* Those that have not ended, in the arena. */
bool engine_move_open(struct history *h, struct arena *a, struct engine_move_record **moves, size_t *count,
		      struct error *e) MUST_USE;

struct engine_move_filter {
	millis from, to;  /* asked at, both included */
	const char *pool; /* NULL: any */
	int64_t most;
};
/* The newest that the filter lets through, oldest first, in the arena. */
bool engine_move_find(struct history *h, const struct engine_move_filter *f, struct arena *a,
		      struct engine_move_record **moves, size_t *count, struct error *e) MUST_USE;
/* The last of the pool around a decision, which they explain: ENGINE_MOVES_TOLD at most. */
enum { ENGINE_MOVES_TOLD = 3 };
struct engine_moves_told {
	struct engine_move_record *items;
	size_t count;
	struct share_choice_record choice; /* of its share then; all zero: none */
	const char *waits_for;		   /* name of a pool: struct share_plan; NULL: none */
};
struct pool_then {
	const struct fleet_spec *fleet; /* of the decision */
	size_t pool;
	millis at;
};
bool engine_move_around(struct history *h, const struct pool_then *of, struct arena *a, struct engine_moves_told *out,
			struct error *e) MUST_USE;
