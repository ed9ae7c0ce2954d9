#include "controller/simulation/rivals/window.h"

static void forget_first(struct window *w)
{
	w->sum -= w->notes[w->first].value;
	w->first = (w->first + 1) % WINDOW_SIZE;
	w->count--;
}

static void append(struct window *w, millis now, int64_t value)
{
	if (w->count == WINDOW_SIZE)
		forget_first(w);
	size_t at = (w->first + w->count) % WINDOW_SIZE;
	w->notes[at].at = now;
	w->notes[at].value = value;
	w->sum += value;
	w->count++;
}

int64_t window_max(struct window *w, millis now, millis length, int64_t value)
{
	/* A note that a younger one equals or passes can never be the largest again. */
	while (w->count && w->notes[(w->first + w->count - 1) % WINDOW_SIZE].value <= value) {
		w->count--;
		w->sum -= w->notes[(w->first + w->count) % WINDOW_SIZE].value;
	}
	append(w, now, value);
	while (w->count > 1 && w->notes[w->first].at <= now - length)
		forget_first(w);
	return w->notes[w->first].value;
}

double window_mean(struct window *w, millis now, millis length, int64_t value)
{
	append(w, now, value);
	while (w->count > 1 && w->notes[w->first].at <= now - length)
		forget_first(w);
	return (double)w->sum / (double)w->count;
}
