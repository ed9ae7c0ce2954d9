/*
 * A group of the modelled cloud as objects of an API server, and the way there: for conformance_run. The name of a
 * group's owner tells where it is served, as such settings hold no URL.
 */
#pragma once
#include "tests/unit/providers/conformance.h"

extern const struct cluster_way objects_way;

struct wire_server *objects_open(struct loop *loop, struct modelled_cloud *cloud);
void objects_close(struct wire_server *s);
const char *objects_url(const struct wire_server *s);
/* "at-8080", for a name in settings. */
void objects_name(const char *url, struct buf *out);
