/*
 * Errors as the Resource Manager and AKS write them: {"error":{...}} or the
 * bare {"code","message","details","subcode"}; what happened hides at any
 * depth of details[], or as Code="..." within a message. Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"

struct azure_failure {
	enum error_kind kind; /* ERROR_NONE: no code that we know */
	millis back_off;      /* how long it lasts; 0: not told */
	char zone[16];	      /* "2"; "": not of one zone, or not told */
	bool is_zonal;
	char code[64], message[300]; /* of the row that fits, else the outermost */
};

/* Of the JSON of an error, wrapped or bare; false when it is no such thing. A spot machine's offer comes back sooner.
 */
bool azure_failure_of(const char *json, size_t len, bool is_spot, struct azure_failure *out) MUST_USE;
/* Sets *e from an answer with a status that is no success. 409 and 412 are ERROR_CONFLICT whatever the code, unless the
 * text is about quota. */
void azure_failure_read(long status, const char *text, size_t len, struct error *e);
