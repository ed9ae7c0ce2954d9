/* Lists and events of pods as the API server writes them in Protobuf. Whoever gets a buffer releases it. */
#pragma once
#include "tests/unit/base/protobuf_bytes.h"

static inline struct buf pod(const char *name, const char *node)
{
	struct buf b = { 0 }, meta = { 0 }, spec = { 0 };

	pb_text(&meta, 1, name);
	pb_text(&meta, 5, "uid");
	pb_message(&b, 1, &meta);
	pb_text(&spec, 10, node);
	pb_message(&b, 2, &spec);
	return b;
}

static inline struct buf enveloped(struct buf *object)
{
	struct buf b = { 0 }, type = { 0 };

	buf_append(&b, "k8s", 4);
	pb_text(&type, 1, "v1");
	pb_message(&b, 1, &type);
	pb_message(&b, 2, object);
	pb_text(&b, 3, "");
	pb_text(&b, 4, "");
	return b;
}

static inline struct buf list_of_two(void)
{
	struct buf list = { 0 }, meta = { 0 }, item;

	pb_text(&meta, 2, "42");
	pb_text(&meta, 3, "more");
	pb_message(&list, 1, &meta);
	item = pod("a", "n1"), pb_message(&list, 2, &item);
	item = pod("b", ""), pb_message(&list, 2, &item);
	return enveloped(&list);
}

static inline void add_event(struct buf *out, const char *type, struct buf object)
{
	struct buf event = { 0 }, extension = { 0 }, envelope = enveloped(&object);

	pb_text(&event, 1, type);
	pb_message(&extension, 1, &envelope);
	pb_message(&event, 2, &extension);
	const char length[] = { (char)(event.len >> 24), (char)(event.len >> 16), (char)(event.len >> 8),
				(char)event.len };
	buf_append(out, length, 4);
	buf_append(out, event.text, event.len);
	buf_release(&event);
}
