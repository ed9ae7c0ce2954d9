/* Who listens for new ticks. */
#pragma once
#include "controller/web/api_parts.h"

struct api_events;
struct api_events *api_events_open(struct loop *loop, struct api_source *source);
void api_events_close(struct api_events *v); /* after the server; takes NULL */
/* NULL with ERROR_THROTTLED when too many listen. What is sent at once is appended to `first`. */
struct server_stream *api_events_listen(struct api_events *v, struct buf *first, struct error *e) MUST_USE;
