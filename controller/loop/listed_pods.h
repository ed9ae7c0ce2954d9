/* A list of pods that was read from the API server when watches may stand and tell nothing. */
#pragma once
#include "base/error.h"

#include <stdint.h>

/*
 * Those that keep a node from being removed: there, not done, and made neither by a DaemonSet nor by the kubelet
 * itself. Errors are ERROR_INVALID: the text is no list of pods.
 */
bool listed_pods_count(const char *node, const char *text, size_t len, int64_t *count, struct error *e) MUST_USE;
