/* Any bytes as a world file: what is read is checked without a mistake, and what is not says why. */
#include "controller/simulation/files/world_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct group_spec groups[] = { { .name = "spot" }, { .name = "od" } };
static const size_t both[] = { 0, 1 };
static const struct pool_spec pools[] = { { .name = "chat", .namespace = "llm", .groups = both, .group_count = 2 } };
static const struct fleet_spec fleet = { groups, 2, pools, 1, NULL };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int file = memfd_create("world", 0);
	char path[40];
	struct arena a = { 0 };
	struct findings findings = { 0 };
	struct world_spec world;
	struct error e = { 0 }, ignored = { 0 };

	if (file < 0 || write(file, bytes, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	(void)world_file_is(path);
	bool ok = world_file_read(path, &fleet, &a, &world, &e);
	if (!ok && !*e.message)
		abort();
	(void)!world_file_check(path, &fleet, &a, &findings, &ignored);
	findings_release(&findings);
	arena_release(&a);
	close(file);
	return 0;
}
