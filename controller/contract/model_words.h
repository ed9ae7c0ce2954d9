/* What the command of a container tells of the model that it serves. */
#pragma once
#include "base/buf.h"
#include "controller/contract/objects.h"

/* The words after the command, and within a shell's script, each with a blank behind it. */
void container_words(const struct container *k, struct buf *out);
/* GiB of the weights: 2 bytes a parameter, 1 or a half where the words say so. 0: the model's name does not say. */
int64_t container_weights_gib(const struct container *k);
