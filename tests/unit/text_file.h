/* A text under a path that can be opened, without a file that must be removed. */
#pragma once
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct text_file {
	int fd;
	char path[64];
};

static inline struct text_file text_file(const void *bytes, size_t len)
{
	struct text_file f = { .fd = memfd_create("text", 0) };

	assert(f.fd >= 0);
	for (size_t done = 0; done < len;) {
		ssize_t n = write(f.fd, (const char *)bytes + done, len - done);
		assert(n > 0);
		done += (size_t)n;
	}
	snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
	return f;
}

static inline void text_file_close(struct text_file *f)
{
	close(f->fd);
}
