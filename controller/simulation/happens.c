#include "controller/simulation/parts.h"

static bool sooner(const struct happens *a, const struct happens *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void happens_add(struct world *w, millis at, enum happening what, size_t subject, uint64_t serial)
{
	struct happens added = { at, w->orders++, what, subject, serial };

	LIST_ROOM(&w->arena, &w->heap);
	struct happens *heap = w->heap.items;
	size_t i = w->heap.count++;
	for (; i > 0 && sooner(&added, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = added;
}

millis happens_next(const struct world *w)
{
	return w->heap.count ? w->heap.items[0].at : INT64_MAX;
}

struct happens happens_take(struct world *w)
{
	struct happens *heap = w->heap.items, first = heap[0], last = heap[--w->heap.count];
	size_t i = 0, count = w->heap.count;

	for (size_t child = 1; child < count; child = 2 * i + 1) {
		if (child + 1 < count && sooner(&heap[child + 1], &heap[child]))
			child++;
		if (!sooner(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}
