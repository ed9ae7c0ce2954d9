/* Resources as Kubernetes counts them: which are GPUs, and amounts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", ... */
bool device_is_gpu(const char *resource);
/* A quantity of Kubernetes in thousandths: "191690m" is 191690, "2Ki" 2048000. False, out untouched, when it is none.
 */
bool amount_milli(const char *text, int64_t *out);
