/* Between the files that serve a request; nobody else includes this. */
#pragma once
#include "controller/web/api_parts.h"

#define TIME_MOST INT64_C(253402300799999) /* the year 9999 */

/* "/api/v1/pools/{namespace}" and a path; fills the places. */
bool api_path_fits(struct api_call *c, const char *template, const char *path);
bool api_take_query(struct api_call *c, struct error *e) MUST_USE;
