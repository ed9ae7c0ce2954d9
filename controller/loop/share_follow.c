#include "controller/loop/share_follow.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "state/share_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis SAVE_EVERY = 5 * MINUTE;

struct share_follow {
	struct share_follow *next;
	char share[260];
	struct share_shadows shadows;
	millis since, saved_at; /* 0: never */
	struct buf why;
	bool is_unread; /* what the history has of it */
};

static void recall(struct controller *c, struct share_follow *f)
{
	const struct share_choice_filter last = { INT64_MIN, INT64_MAX, f->share, 1 };
	CLEANUP(arena_release) struct arena a = { 0 };
	struct share_choices found;
	struct share_tally tally;
	struct error e = { 0 };

	bool is_found = share_choice_find(c->history, &last, &a, &found, &e);
	if (!is_found || (found.count && !share_tally_read(found.items[0].tally, &a, &tally, &e))) {
		log_warn("share-tally-not-read", LOG_S("share", f->share), LOG_E(&e), LOG_END);
		f->is_unread = !is_found;
		return;
	}
	f->is_unread = false;
	if (!found.count)
		return;
	f->since = found.items[0].since;
	buf_text(&f->why, found.items[0].why);
	share_shadows_recall(&f->shadows, &tally);
}

static struct share_follow *follow_of(struct controller *c, const char *share)
{
	struct share_follow *f = c->slots.follows;

	while (f && strcmp(f->share, share) != 0)
		f = f->next;
	if (f && f->is_unread)
		recall(c, f);
	if (f)
		return f;
	f = xcalloc(1, sizeof *f);
	snprintf(f->share, sizeof f->share, "%s", share);
	f->next = c->slots.follows;
	c->slots.follows = f;
	recall(c, f);
	return f;
}

const struct share_rule *share_follow_rule(struct controller *c, const char *share)
{
	return share_shadows_rule(&follow_of(c, share)->shadows);
}

static void save(struct controller *c, struct share_follow *f, millis now)
{
	CLEANUP(buf_release) struct buf tally = { 0 };
	struct error e = { 0 };

	f->saved_at = now;
	share_tally_write(&f->shadows.tally, &tally);
	const struct share_choice_record r = { f->share, f->since, now, f->why.text ? f->why.text : "", tally.text };
	if (!share_choice_save(c->history, &r, &e))
		log_error("share-not-recorded", LOG_S("share", f->share), LOG_E(&e), LOG_END);
}

void share_follow_seen(struct controller *c, const char *share, const struct share_seen *seen)
{
	struct share_follow *f = follow_of(c, share);
	millis now = seen->view->now;

	if (f->is_unread) /* what would be saved now would stand in the way of it */
		return;
	bool is_new = share_shadows_advance(&f->shadows, seen);

	if (is_new) {
		buf_clear(&f->why);
		share_choice_write(&f->shadows.tally, &f->why);
		log_info("share-rule-chosen", LOG_S("share", share), LOG_S("why", f->why.text), LOG_END);
	}
	if (is_new || !f->since)
		f->since = now;
	if (is_new || now - f->saved_at >= SAVE_EVERY)
		save(c, f, now);
}

void share_follow_forget(struct controller *c)
{
	for (struct share_follow *f = c->slots.follows, *next; f; f = next) {
		next = f->next;
		share_shadows_release(&f->shadows);
		buf_release(&f->why);
		free(f);
	}
	c->slots.follows = NULL;
}
