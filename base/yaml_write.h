/* JSON text as YAML, value by value, in the layout that kubectl uses: lists stand below their key without indent. */
#pragma once
#include "base/buf.h"

/* Appends one document that ends in a line end. Texts that another reader could take for something else are quoted.
 * ERROR_INVALID for what is no JSON; `out` may hold a part of it then. */
bool yaml_write_json(const char *json, size_t len, struct buf *out, struct error *e) MUST_USE;
