/* The reference of the manifest, generated from its table; copies stand in docs/. */
#pragma once
#include "base/buf.h"

void manifest_write_reference(struct buf *out);	  /* docs/manifest.md */
void manifest_write_json_schema(struct buf *out); /* docs/manifest.schema.json */

/* The CustomResourceDefinition of WarmPool, generated from the table of the manifest; deploy/base/crd.yaml is a copy.
 */

void manifest_write_crd(struct buf *out);
