#include "base/file.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

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

bool file_write_all(int fd, const void *bytes, size_t len)
{
	for (const char *p = bytes; len;) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno != EINTR)
			return false;
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
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

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void close_folder(DIR **d)
{
	if (*d)
		closedir(*d);
}

bool folder_list(const char *path, bool (*is_wanted)(const char *name), struct arena *a, struct folder *out,
		 struct error *e)
{
	CLEANUP(buf_release) struct buf full = { 0 };
	CLEANUP(close_folder) DIR *d = opendir(path);
	const char **paths = NULL;
	size_t n = 0, room = 0;

	if (!d && errno != ENOTDIR && errno != ENOENT)
		return system_error(e, path, "open");
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (!is_wanted(entry->d_name))
			continue;
		buf_clear(&full);
		buf_printf(&full, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", entry->d_name);
		paths = arena_grow(a, paths, n, &room, sizeof *paths);
		paths[n++] = arena_strdup(a, full.text, full.len);
	}
	if (n)
		qsort(paths, n, sizeof *paths, compare_names);
	*out = (struct folder){ d, paths, n };
	return true;
}

enum { ROOM = 128 * 1024 };

struct output {
	char *path;
	char *beside; /* name of the unfinished file, NULL while it has none */
	int fd;
	bool is_direct; /* a pipe, a device, standard output */
	bool is_packed;
	int failure; /* errno of the first failure */
	z_stream z;
	size_t len;
	unsigned char text[ROOM], packed[ROOM];
};

static bool ends_in_gz(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && !strcmp(path + n - 3, ".gz");
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static char *name_beside(const char *path)
{
	size_t room = strlen(path) + 32;
	char *name = xmalloc(room);

	snprintf(name, room, "%s.%ld.part", path, (long)getpid());
	return name;
}

/* O_TMPFILE leaves nothing behind whatever kills us; not every file system has it. */
static int open_unnamed(struct output *o)
{
	char *folder = folder_of(o->path);
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);

	free(folder);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
		return fd;
	o->beside = name_beside(o->path);
	return open(o->beside, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
}

static int open_target(struct output *o)
{
	struct stat st;

	if (!strcmp(o->path, "-")) {
		o->is_direct = true;
		return dup(STDOUT_FILENO);
	}
	if (stat(o->path, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		o->is_direct = true;
		return open(o->path, O_WRONLY | O_CLOEXEC);
	}
	return open_unnamed(o);
}

static void release(struct output *o)
{
	if (o->is_packed)
		deflateEnd(&o->z);
	if (o->fd >= 0)
		close(o->fd);
	if (o->beside)
		unlink(o->beside);
	free(o->beside);
	free(o->path);
	free(o);
}

static struct output *open_plain(const char *path, struct error *e)
{
	struct output *o = xcalloc(1, sizeof *o);

	o->path = xstrdup(path);
	o->fd = open_target(o);
	if (o->fd < 0) {
		error_set(e, file_error_kind(errno), "%s: cannot write: %s", path, strerror(errno));
		free(o->beside);
		o->beside = NULL;
		release(o);
		return NULL;
	}
	return o;
}

struct output *output_open(const char *path, struct error *e)
{
	struct output *o = open_plain(path, e);

	if (o && ends_in_gz(path))
		o->is_packed = deflateInit2(&o->z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK;
	return o;
}

static void write_out(struct output *o, const unsigned char *bytes, size_t len)
{
	if (!o->failure && !file_write_all(o->fd, bytes, len))
		o->failure = errno;
}

static void flush(struct output *o, bool is_last)
{
	if (!o->is_packed) {
		write_out(o, o->text, o->len);
		o->len = 0;
		return;
	}
	o->z.next_in = o->text;
	o->z.avail_in = (unsigned)o->len;
	do {
		o->z.next_out = o->packed;
		o->z.avail_out = sizeof o->packed;
		deflate(&o->z, is_last ? Z_FINISH : Z_NO_FLUSH);
		write_out(o, o->packed, sizeof o->packed - o->z.avail_out);
	} while (!o->z.avail_out);
	o->len = 0;
}

void output_bytes(struct output *o, const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len) {
		size_t n = sizeof o->text - o->len < len ? sizeof o->text - o->len : len;
		memcpy(o->text + o->len, p, n);
		o->len += n;
		p += n;
		len -= n;
		if (o->len == sizeof o->text)
			flush(o, false);
	}
}

void output_text(struct output *o, const char *text)
{
	output_bytes(o, text, strlen(text));
}

/* A link cannot replace a file, a rename can: the finished file gets a name beside, then the place. */
static bool put_in_place(struct output *o)
{
	char from[64];

	if (!o->beside) {
		snprintf(from, sizeof from, "/proc/self/fd/%d", o->fd);
		o->beside = name_beside(o->path);
		unlink(o->beside);
		if (linkat(AT_FDCWD, from, AT_FDCWD, o->beside, AT_SYMLINK_FOLLOW) < 0)
			return false;
	}
	if (rename(o->beside, o->path) < 0)
		return false;
	free(o->beside);
	o->beside = NULL;
	return true;
}

bool output_commit(struct output *o, struct error *e)
{
	flush(o, true);
	if (!o->failure && !o->is_direct && (fsync(o->fd) < 0 || !put_in_place(o)))
		o->failure = errno;
	bool ok = !o->failure, has_reader_left = o->is_direct && o->failure == EPIPE;
	if (!ok)
		error_set(e, has_reader_left ? ERROR_CANCELLED : file_error_kind(o->failure), "%s: cannot write: %s",
			  strcmp(o->path, "-") ? o->path : "standard output", strerror(o->failure));
	release(o);
	return ok;
}

void output_abandon(struct output *o)
{
	if (o)
		release(o);
}

bool file_write(const char *path, const void *bytes, size_t len, struct error *e)
{
	struct output *o = open_plain(path, e);

	if (!o)
		return false;
	output_bytes(o, bytes, len);
	return output_commit(o, e);
}
