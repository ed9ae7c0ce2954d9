/* The process itself, under the names that every Prometheus client uses. */
#include "controller/web/metric.h"

#include "base/quantity.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t seconds_us(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void write_cpu(struct metric_sink *s)
{
	struct rusage use;

	if (!getrusage(RUSAGE_SELF, &use))
		metric_sample(s, NULL, seconds_us(use.ru_utime) + seconds_us(use.ru_stime), 6);
}

/* The number at a position (from 0) of /proc/self/statm, in pages; false when it cannot be read. */
static bool read_pages(int position, int64_t *pages)
{
	char text[256];
	FILE *f = fopen("/proc/self/statm", "re");
	const char *at = f ? fgets(text, sizeof text, f) : NULL;

	if (f)
		fclose(f);
	for (; at && position > 0; position--) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && fixed_parse(at, strspn(at, "0123456789"), 0, pages);
}

static void write_pages(struct metric_sink *s)
{
	int64_t pages;

	if (read_pages((int)s->metric->offset, &pages))
		metric_sample(s, NULL, pages * sysconf(_SC_PAGESIZE), 0);
}

static void write_open(struct metric_sink *s)
{
	DIR *folder = opendir("/proc/self/fd");
	int64_t count = 0;

	if (!folder)
		return;
	while (readdir(folder))
		count++;
	closedir(folder);
	metric_sample(s, NULL, count - 3, 0); /* ".", ".." and the folder itself */
}

static void write_most(struct metric_sink *s)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		metric_sample(s, NULL, (int64_t)limit.rlim_cur, 0);
}

static void write_start(struct metric_sink *s)
{
	if (s->shown->started_at)
		metric_seconds(s, NULL, s->shown->started_at);
}

/* clang-format off */
static const struct metric rows[] = {
	{ .name = "process_cpu_seconds_total", .type = METRIC_COUNTER, .labels = "", .write = write_cpu, .help = "Processor time used." },
	{ .name = "process_resident_memory_bytes", .labels = "", .write = write_pages, .offset = 1, .help = "Resident memory." },
	{ .name = "process_virtual_memory_bytes", .labels = "", .write = write_pages, .offset = 0, .help = "Virtual memory." },
	{ .name = "process_open_fds", .labels = "", .write = write_open, .help = "Open file descriptors." },
	{ .name = "process_max_fds", .labels = "", .write = write_most, .help = "Most file descriptors that may be open." },
	{ .name = "process_start_time_seconds", .labels = "", .write = write_start, .help = "When the process started." },
};
/* clang-format on */

const struct metric_list process_metrics = METRIC_LIST("Process", rows);
