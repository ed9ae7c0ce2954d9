/* Any bytes as an answer of the simulated cloud: what is believed can be. */
#include "providers/simulated.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct group_description d = { 0 };
	struct error e = { 0 };

	if (simulated_read_group((const char *)bytes, len, &a, &d, &e)) {
		if (d.min < 0 || d.max < d.min || d.desired < 0 || d.standby < 0)
			abort();
		for (size_t i = 0; i < d.machine_count; i++)
			if (!*d.machines[i].id || d.machines[i].state >= MACHINE_STATE_COUNT)
				abort();
		for (size_t i = 1; i < d.failure_count; i++)
			if (d.failures[i].id < d.failures[i - 1].id)
				abort();
	} else if (e.kind != ERROR_INVALID || d.machine_count) {
		abort();
	}
	e = (struct error){ 0 };
	simulated_read_refusal(500, (const char *)bytes, len, &e);
	if (e.kind == ERROR_NONE)
		abort();
	return 0;
}
