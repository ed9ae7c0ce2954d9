/* What the files of the decoder share; base/decode.h is what others see. */
#pragma once
#include "base/decode.h"

/* A node of the tree of wanted keys. */
struct decode_node {
	const char *key;
	size_t len;
	struct decode_target *targets; /* fields that end here */
	struct decode_node *children, *next;
};

struct decode_target {
	const struct field *field;
	uint64_t bit;			 /* its place among the required ones; 0: not required */
	const struct decode_plan *items; /* of a list */
	struct decode_target *next;
};

struct decode_plan {
	const struct record_spec *spec;
	struct decode_node root;
	uint64_t required;
	struct arena arena; /* of the outermost plan */
};

const struct decode_node *decode_child(const struct decode_node *n, const char *key, size_t len);

/* One member of the object that the plan describes, into its record. */
bool decode_member(const struct decode_plan *p, struct decoded_text key, struct decoded_text value, struct arena *a,
		   void *record, struct error *e) MUST_USE;

/* Finding the end of a container without looking into it. */
struct scan {
	int depth;
	bool is_in_string, is_escaped;
	uint64_t arrays[DECODE_DEPTH / 64]; /* a bit for each open container */
};

enum scan_result { SCAN_MORE, SCAN_DONE, SCAN_UNBALANCED, SCAN_TOO_DEEP };

/* From *p on, to behind the bracket that closes what the first one opened, or to `end`. */
enum scan_result scan_container(struct scan *s, const char **p, const char *end);
/* *p stands behind the opening quote; goes behind the closing one, or to `end`. */
bool scan_string(struct scan *s, const char **p, const char *end);

/* Texts that say what was wrong, or NULL. Each takes a value as it stands in the JSON text. */
const char *decode_text(const char *text, size_t len, struct arena *a,
			const char **out);		 /* what is between the quotes */
const char *decode_number(const char *text, size_t len); /* whether it is one */
bool decode_integer(const char *text, size_t len, int64_t *out);
bool decode_count(const char *text, size_t len, int64_t *out);
