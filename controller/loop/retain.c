#include "controller/loop/parts.h"

enum { ROWS_AT_ONCE = 500 };

/* A little at a time, so that nothing waits for it; every tick while there is more, or a large fleet would outrun it.
 */
void retain_some(struct controller *c)
{
	struct error e = { 0 };

	if (c->settings.retain <= 0 || (!c->has_more_to_drop && c->tick % 20 != 0))
		return;
	if (!history_retain_some(c->history, c->snapshot.now - c->settings.retain, ROWS_AT_ONCE, &c->has_more_to_drop,
				 &e))
		log_warn("history-not-thinned", LOG_E(&e), LOG_END);
}
