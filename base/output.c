#include "base/output.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

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

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static bool ends_in_gz(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && !strcmp(path + n - 3, ".gz");
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return must(strdup("."));
	return must(slash == path ? strdup("/") : strndup(path, (size_t)(slash - path)));
}

static char *name_beside(const char *path)
{
	size_t room = strlen(path) + 32;
	char *name = must(malloc(room));

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

struct output *output_open(const char *path, struct error *e)
{
	struct output *o = must(calloc(1, sizeof *o));

	o->path = must(strdup(path));
	o->fd = open_target(o);
	if (o->fd < 0) {
		error_set(e, file_error_kind(errno), "%s: cannot write: %s", path, strerror(errno));
		free(o->beside);
		o->beside = NULL;
		release(o);
		return NULL;
	}
	o->is_packed = ends_in_gz(path) && deflateInit2(&o->z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK;
	return o;
}

static void write_out(struct output *o, const unsigned char *bytes, size_t len)
{
	while (len && !o->failure) {
		ssize_t n = write(o->fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			o->failure = errno;
			return;
		}
		bytes += n;
		len -= (size_t)n;
	}
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
