#include "controller/loop/parts.h"

enum { ROWS_AT_ONCE = 500 };

/* A little with every tick, so that nothing waits for it. */
void retain_some(struct controller *c)
{
	struct error e = { 0 };
	bool more = false;

	if (c->settings.retain <= 0 || c->tick % 20 != 0)
		return;
	if (!history_retain_some(c->history, c->snapshot.now - c->settings.retain, ROWS_AT_ONCE, &more, &e))
		log_warn("history-not-thinned", LOG_E(&e), LOG_END);
}
