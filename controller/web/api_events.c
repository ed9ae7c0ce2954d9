/* GET /api/v1/events: each new tick as it is written, whoever writes it. */
#include "controller/web/api_events.h"

#include "base/net/server.h"

#include <stdlib.h>

#define LOOK_EVERY SECOND
#define BEAT_EVERY (15 * SECOND)

enum { LISTENERS_MOST = 32 };

struct listener {
	struct server_stream stream;
	struct api_events *events;
	struct listener *next, *previous;
};

struct api_events {
	struct loop *loop;
	struct api_source *source;
	struct timer look, beat;
	struct listener *listeners;
	int count;
	int64_t tick; /* the last one told; -1: none */
};

struct api_events *api_events_open(struct loop *loop, struct api_source *source)
{
	struct api_events *v = calloc(1, sizeof *v);

	if (!v)
		abort();
	v->loop = loop;
	v->source = source;
	v->tick = -1;
	v->look.user = v->beat.user = v;
	return v;
}

void api_events_close(struct api_events *v)
{
	if (!v)
		return;
	timer_stop(&v->look);
	timer_stop(&v->beat);
	free(v);
}

static void tell(struct api_events *v, const struct buf *text)
{
	for (struct listener *l = v->listeners; l; l = l->next)
		server_stream_send(&l->stream, text->text, text->len);
}

/* False while there is no tick. */
static bool find_tick(struct api_events *v, struct history_span *span)
{
	struct error nothing_yet;
	struct history *h = api_source_history(v->source, &nothing_yet);

	return h && history_span(h, span, &nothing_yet) && span->last_tick >= span->first_tick;
}

static void write_tick(const struct history_span *span, struct buf *out)
{
	buf_printf(out, "id: %lld\nevent: tick\ndata: {\"tick\":%lld,\"at\":", (long long)span->last_tick,
		   (long long)span->last_tick);
	value_time(out, span->to);
	buf_text(out, "}\n\n");
}

static void look(struct timer *t)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct api_events *v = t->user;
	struct history_span span;

	if (find_tick(v, &span) && span.last_tick != v->tick) {
		v->tick = span.last_tick;
		write_tick(&span, &text);
		tell(v, &text);
	}
	if (v->listeners)
		timer_start(v->loop, t, LOOK_EVERY, look);
}

/* So that both sides notice when the other is gone. */
static void beat(struct timer *t)
{
	static const struct buf nothing = { .text = (char *)(uintptr_t) ":\n\n", .len = 3 };
	struct api_events *v = t->user;

	tell(v, &nothing);
	if (v->listeners)
		timer_start(v->loop, t, BEAT_EVERY, beat);
}

static void on_ended(struct server_stream *s)
{
	struct listener *l = s->user;

	if (l->previous)
		l->previous->next = l->next;
	else
		l->events->listeners = l->next;
	if (l->next)
		l->next->previous = l->previous;
	l->events->count--;
	free(l);
}

static struct listener *add_listener(struct api_events *v)
{
	struct listener *l = calloc(1, sizeof *l);

	if (!l)
		abort();
	l->events = v;
	l->stream.ended = on_ended;
	l->stream.user = l;
	l->next = v->listeners;
	if (l->next)
		l->next->previous = l;
	v->listeners = l;
	v->count++;
	return l;
}

struct server_stream *api_events_listen(struct api_events *v, struct buf *first, struct error *e)
{
	struct history_span span;

	if (v->count >= LISTENERS_MOST) {
		error_set(e, ERROR_THROTTLED, "%d listen already, which is the most; ask for /api/v1 now and then",
			  LISTENERS_MOST);
		return NULL;
	}
	struct listener *l = add_listener(v);
	buf_text(first, "retry: 2000\n\n");
	if (find_tick(v, &span)) {
		v->tick = v->listeners->next ? v->tick : span.last_tick;
		write_tick(&span, first);
	}
	if (!timer_is_running(&v->look))
		timer_start(v->loop, &v->look, LOOK_EVERY, look);
	if (!timer_is_running(&v->beat))
		timer_start(v->loop, &v->beat, BEAT_EVERY, beat);
	return &l->stream;
}

static bool write_events(struct api_call *c, struct buf *out, struct error *e)
{
	c->stream = api_events_listen(api_events_of(c), out, e);
	return c->stream;
}

const struct api_route api_route_events = {
	.method = "GET",
	.path = "/api/v1/events",
	.name = "listen",
	.summary = "Server-sent events: tick {tick, at} at first and after each new tick; a comment every 15 s",
	.content_type = "text/event-stream",
	.write = write_events,
};
