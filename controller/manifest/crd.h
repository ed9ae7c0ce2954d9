/* The CustomResourceDefinition of WarmPool, generated from the table of the manifest; deploy/base/crd.yaml is a copy.
 */
#pragma once
#include "base/buf.h"

void manifest_write_crd(struct buf *out);
