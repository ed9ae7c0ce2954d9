/*
 * How fast a page of pods as served is read, on one core: found the end of, and read with the fields that the model of
 * the cluster keeps. usage: decode_speed FILE.json[.gz] [PASSES]
 */
#include "base/buf.h"
#include "base/decode.h"
#include "base/gzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct container {
	const char *image;
	int64_t gpus;
};
static const struct field container_fields[] = {
	FIELD(struct container, image, FIELD_STRING, "image"),
	FIELD(struct container, gpus, FIELD_COUNT, "resources>limits>nvidia.com/gpu"),
};
static const struct record_spec container = { "", sizeof(struct container), container_fields, 2 };

struct pod {
	const char *name, *name_space, *uid, *node, *phase;
	struct decoded_map labels;
	struct decoded_list containers;
	int64_t created;
};
static const struct field pod_fields[] = {
	FIELD(struct pod, name, FIELD_STRING, "metadata>name"),
	FIELD(struct pod, name_space, FIELD_STRING, "metadata>namespace"),
	FIELD(struct pod, uid, FIELD_STRING, "metadata>uid"),
	FIELD(struct pod, labels, FIELD_MAP, "metadata>labels"),
	FIELD(struct pod, created, FIELD_TIME, "metadata>creationTimestamp"),
	FIELD(struct pod, node, FIELD_STRING, "spec>nodeName"),
	FIELD(struct pod, phase, FIELD_STRING, "status>phase"),
	{ .path = "spec>containers", .type = FIELD_LIST, .offset = offsetof(struct pod, containers), .of = &container },
};
static const struct record_spec pods = { "items[]", sizeof(struct pod), pod_fields, 8 };
static const struct record_spec nothing = { "nowhere[]", 1, NULL, 0 };

static bool count_record(void *user, void *record, struct error *e)
{
	(void)record, (void)e;
	++*(size_t *)user;
	return true;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In the pieces that libcurl hands out. */
static void measure(const char *what, const struct record_spec *spec, const struct buf *text, int passes)
{
	enum { PIECE = 16 * 1024 };
	struct decode_plan *plan = decode_plan_new(spec);
	double start = seconds();
	size_t records = 0;
	struct error e;

	for (int pass = 0; pass < passes; pass++) {
		struct decoder *d = decoder_open(&(struct decoder_setup){
			.name = "page", .records = plan, .emit = count_record, .user = &records });
		for (size_t i = 0; i < text->len; i += PIECE)
			if (!decoder_feed(d, text->text + i, text->len - i < PIECE ? text->len - i : PIECE, &e))
				exit(fprintf(stderr, "%s\n", e.message));
		if (!decoder_finish(d, &e))
			exit(fprintf(stderr, "%s\n", e.message));
		decoder_close(d);
	}
	double took = seconds() - start;
	printf("%-12s %8.0f MB/s  %zu records in a pass of %.1f MB\n", what, (double)text->len * passes / took / 1e6,
	       records / (size_t)passes, (double)text->len / 1e6);
	decode_plan_free(plan);
}

int main(int argc, char **argv)
{
	struct buf text = { 0 };
	char bytes[65536];
	size_t got = 1;
	struct error e;
	struct gzip *g = argc > 1 ? gzip_open(argv[1], &e) : NULL;

	if (!g)
		return fprintf(stderr, "usage: decode_speed FILE.json[.gz] [PASSES]\n") > 0 ? 2 : 3;
	while (got) {
		if (!gzip_read(g, bytes, sizeof bytes, &got, &e))
			return fprintf(stderr, "%s\n", e.message) > 0 ? 3 : 3;
		buf_append(&text, bytes, got);
	}
	gzip_close(g);
	int passes = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 50;
	measure("skipped", &nothing, &text, passes);
	measure("pods", &pods, &text, passes);
	buf_release(&text);
	return 0;
}
