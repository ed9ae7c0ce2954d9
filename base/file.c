#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024 };

enum error_kind file_error_kind(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return ERROR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERROR_AUTH;
	case EISDIR:
	case ENAMETOOLONG:
	case ELOOP:
	case EINVAL:
		return ERROR_INVALID;
	default:
		return ERROR_UNAVAILABLE;
	}
}

static bool system_error(struct error *e, const char *path, const char *what)
{
	int number = errno;

	return error_set(e, file_error_kind(number), "%s: cannot %s: %s", path, what, strerror(number));
}

static void close_descriptor(int *fd)
{
	if (*fd > STDERR_FILENO)
		close(*fd);
}

static bool read_all(int fd, const char *name, size_t cap, struct buf *out, struct error *e)
{
	char chunk[CHUNK];
	size_t total = 0;

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return system_error(e, name, "read");
		if (n == 0)
			break;
		total += (size_t)n;
		if (total > cap)
			return error_set(e, ERROR_INVALID,
					 "%s: larger than the %zu KiB allowed here; is it the right file?", name,
					 cap / 1024);
		buf_append(out, chunk, (size_t)n);
	}
	if (!total)
		buf_append(out, "", 0);
	return buf_ok(out) || error_set(e, ERROR_INVALID, "%s: too large", name);
}

bool file_read(const char *path, size_t cap, struct buf *out, struct error *e)
{
	if (!strcmp(path, "-"))
		return read_all(STDIN_FILENO, "standard input", cap, out, e);
	CLEANUP(close_descriptor) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(e, path, "open");
	struct stat st;
	if (fstat(fd, &st))
		return system_error(e, path, "read");
	if (S_ISDIR(st.st_mode))
		return error_set(e, ERROR_INVALID, "%s: is a folder; name a file", path);
	return read_all(fd, path, cap, out, e);
}

static bool write_all(int fd, const char *path, const char *bytes, size_t len, struct error *e)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return system_error(e, path, "write");
		bytes += n;
		len -= (size_t)n;
	}
	return !fsync(fd) || errno == EINVAL || system_error(e, path, "write");
}

bool file_write(const char *path, const void *bytes, size_t len, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	buf_printf(&name, "%s.XXXXXX", path);
	CLEANUP(close_descriptor) int fd = mkostemp(name.text, O_CLOEXEC);
	if (fd < 0)
		return system_error(e, path, "write");
	mode_t mask = umask(0);
	umask(mask);
	bool ok = write_all(fd, path, bytes, len, e) && (!fchmod(fd, 0666 & ~mask) || system_error(e, path, "write")) &&
		  (!rename(name.text, path) || system_error(e, path, "write"));
	if (!ok)
		unlink(name.text);
	return ok;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void close_folder(DIR **d)
{
	if (*d)
		closedir(*d);
}

static void add_path(struct arena *a, const char ***paths, size_t *count, const char *path)
{
	/* Doubles at powers of two. */
	if (!(*count & (*count - 1))) {
		const char **grown = arena_array(a, const char *, *count ? *count * 2 : 1);
		if (*count)
			memcpy(grown, *paths, *count * sizeof *grown);
		*paths = grown;
	}
	(*paths)[(*count)++] = arena_strdup(a, path, strlen(path));
}

bool folder_list(const char *path, bool (*is_wanted)(const char *name), struct arena *a, struct folder *out,
		 struct error *e)
{
	CLEANUP(buf_release) struct buf full = { 0 };
	CLEANUP(close_folder) DIR *d = opendir(path);
	const char **paths = NULL;
	size_t n = 0;

	if (!d && errno != ENOTDIR && errno != ENOENT)
		return system_error(e, path, "open");
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (!is_wanted(entry->d_name))
			continue;
		buf_clear(&full);
		buf_printf(&full, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", entry->d_name);
		add_path(a, &paths, &n, full.text);
	}
	if (n)
		qsort(paths, n, sizeof *paths, compare_names);
	*out = (struct folder){ d, paths, n };
	return true;
}
