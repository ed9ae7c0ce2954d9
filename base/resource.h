/* Resources as Kubernetes counts them: which are GPUs, and amounts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", ...; and drivers of devices by claim: "gpu.nvidia.com". */
bool device_is_gpu(const char *resource);
/* Of these, a driver: its devices are claimed by ResourceClaims, not requested by containers. */
bool device_is_driver(const char *resource);
enum { DEVICE_NAME_SIZE = 320 };
/* The driver by which the same GPUs are claimed: "gpu.nvidia.com" of "nvidia.com/gpu", "gpu.intel.com" of
 * "gpu.intel.com/xe". False where there is none. */
bool device_driver_of(const char *resource, char driver[DEVICE_NAME_SIZE]);
/* The same, or the resource of a driver. */
bool device_other_name(const char *name, char other[DEVICE_NAME_SIZE]);
/* A quantity of Kubernetes in thousandths: "191690m" is 191690, "2Ki" 2048000. False, out untouched, when it is none.
 */
bool amount_milli(const char *text, int64_t *out);
