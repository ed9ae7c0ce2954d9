/* What the gate of page and API asks, put to the API server. */
#pragma once
#include "controller/cluster/api.h"
#include "controller/web/gate.h"

/* A gate_ask_fn; `user` is the struct api. */
void reviews_ask(void *api, struct gate_review *r);
