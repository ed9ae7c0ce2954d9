/* The API server as providers may ask it: through the same client, gate and limits as the rest of the controller. */
#pragma once
#include "providers/provider.h"

struct api;

struct cluster_door door_open(struct api *a);
