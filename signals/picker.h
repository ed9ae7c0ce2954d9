/*
 * The queue of an endpoint picker (Gateway API inference extension, llm-d):
 * requests that its flow control holds back, in no model server's numbers
 * yet. Off by default there; a picker that shows the pool's saturation and no
 * queue has an empty one, one that shows neither tells nothing.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct picker_page;
/* `pool` is the name of the InferencePool, borrowed. */
struct picker_page *picker_page_open(const char *pool);
void picker_page_close(struct picker_page *p); /* takes NULL */
bool picker_page_feed(struct picker_page *p, const char *bytes, size_t len, struct error *e) MUST_USE;
bool picker_page_finish(struct picker_page *p, int64_t *waiting, struct error *e) MUST_USE;

/* The same as PromQL. */
void picker_query(const char *pool, struct buf *out);
