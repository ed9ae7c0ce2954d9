/*
 * What the API server answers in Protobuf ("application/vnd.kubernetes.protobuf"), turned object by object into the
 * JSON that decode.h reads: lists as they stream by, watches and a Status. The server writes Protobuf two to three
 * times faster than JSON, and most of an object is skipped here at the cost of its length.
 *
 * The tables name the fields that some record_spec of ours reads, and no others: whoever reads one more adds it here.
 * tests/live/protobuf.sh holds them against the published descriptors and against the server's own JSON.
 */
#pragma once
#include "base/decode.h"
#include "base/protobuf.h"

/* Of a resource, by the plural in its path ("/api/v1/pods"); NULL for what the server has as JSON only. */
const struct protobuf_message *protobuf_message_of(const char *path);
/* Every message that protobuf_message_of() may return, and that of a Status; the last is NULL. */
extern const struct protobuf_message *const protobuf_messages[];

/* What of a stream is told as it is complete; texts are valid during the call. False ends the reading. */
struct protobuf_reader {
	const char *name; /* of the source, for messages; borrowed */
	const struct protobuf_message *object;
	bool is_watch; /* else a list */
	/* `event`: "ADDED" and the like; NULL for an item of a list. */
	bool (*on_object)(void *user, const char *event, struct decoded_text object, struct error *e);
	/* Of a list, {"metadata":{...}}; before its items. */
	bool (*on_list)(void *user, struct decoded_text list, struct error *e);
	void *user;
};

struct protobuf_answer;
struct protobuf_answer *protobuf_answer_open(const struct protobuf_reader *r); /* copied */
void protobuf_answer_close(struct protobuf_answer *a);			       /* takes NULL */
/* The next bytes, cut anywhere; one object at a time is kept, of at most DECODE_RECORD_CAP. Errors begin with "NAME: ";
 * nothing may be fed after one. */
bool protobuf_answer_feed(struct protobuf_answer *a, const char *bytes, size_t len, struct error *e) MUST_USE;
/* After the last bytes: an open list or event is an error. */
bool protobuf_answer_finish(struct protobuf_answer *a, struct error *e) MUST_USE;

/* A refusal's Status as JSON into `out`, which is cleared; empty where the bytes are none. */
void protobuf_status(const char *bytes, size_t len, struct buf *out);
