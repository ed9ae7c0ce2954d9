/* Private to the scraper: a pool's round (scrape.c) and one replica in it (scrape_target.c). */
#pragma once
#include "signals/round.h"
#include "signals/scrape.h"

struct target {
	char *key, *url;
	bool is_ready, was_ready; /* now; when it was asked last */
	bool is_gone;		  /* no target any more, and only waits for its call to complete */
	struct scraper *scraper;
	struct http_request request;
	struct reach_shown shown;
	struct page *page;	 /* while it is asked */
	int64_t asked, answered; /* rounds in which it last was; 0: never */
	bool has_content;	 /* counters to subtract from */
	struct page_content content;
	millis content_at; /* clock_mono() */
	millis stamp_at;   /* clock_mono() at which its content's time stamp was new */
	struct scrape_state state;
};

struct scraper {
	struct loop *loop;
	struct http *http;
	const struct clock *clock;
	struct scrape_settings settings;
	char *pool;
	struct arena arena; /* of the table */
	struct page_table table;
	struct reach *reach;
	struct timer timer;
	struct target **targets; /* by key */
	size_t target_count;
	size_t in_flight;
	bool is_closed;
	int64_t round;	 /* counts from 1 */
	millis round_at; /* clock_mono() of its beginning */
	bool is_told;	 /* its reading was handed over */
	struct round_sums sums;
	int64_t below_us, above_us;
	bool has_edges;
	struct scrape_counts counts;
	millis complained_at; /* clock_mono() of the first of these: */
	int complaints;	      /* lines of the log within a minute */
};

struct target *target_new(struct scraper *s, const struct scrape_target *t);
void target_free(struct target *t);
/* No target any more: frees it now, or when its call completes. */
void target_drop(struct target *t);
/* Its answer counts in this round: one that was asked before it was ready could not give one. */
bool target_is_expected(const struct target *t);
/* It may have been refused when this returns: what we are to show cannot be read. */
void target_ask(struct target *t);
int target_name_len(const struct target *t);  /* of its key: "namespace/name" */
bool target_is_asked(const struct target *t); /* and has not answered yet */

/* From target_ask() on, exactly once, from the loop: its page was believed or refused. */
void scraper_heard(struct scraper *s);
void scraper_free(struct scraper *s);
