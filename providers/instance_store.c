#include "providers/instance_store.h"

#include "base/base64.h"
#include "base/gzip.h"
#include "base/yaml.h"
#include "providers/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { UNPACKED_MOST = 1 << 20 };

struct piece {
	const char *at;
	size_t len;
};

struct reading {
	struct arena *arena;
	struct instance_store found;
	/* What NodeConfigs say together: the later one wins, member by member. */
	const char *strategy; /* NULL: none */
	bool keeps_images;    /* disabledMounts: [Containerd] */
};

static bool begins(struct piece p, const char *word)
{
	return p.len >= strlen(word) && strncasecmp(p.at, word, strlen(word)) == 0;
}

static bool is_word(struct piece p, const char *word)
{
	return p.len == strlen(word) && begins(p, word);
}

/* The next line off the text, without its end; false: there is none. */
static bool take_line(struct piece *text, struct piece *line)
{
	const char *end = text->len ? memchr(text->at, '\n', text->len) : NULL;
	size_t all = end ? (size_t)(end - text->at) + 1 : text->len;

	*line = (struct piece){ text->at, all - (end != NULL) };
	if (line->len && line->at[line->len - 1] == '\r')
		line->len--;
	text->at += all;
	text->len -= all;
	return all > 0;
}

/* The next word off a line of a shell, without quotes; false: the command is over. */
static bool take_word(struct piece *line, struct piece *word)
{
	static const char between[] = " \t\"'=\\", ends[] = ";&|#";
	size_t len = 0;

	while (line->len && strchr(between, *line->at)) {
		line->at++;
		line->len--;
	}
	while (len < line->len && !strchr(between, line->at[len]) && !strchr(ends, line->at[len]))
		len++;
	*word = (struct piece){ line->at, len };
	line->at += len;
	line->len -= len;
	return len > 0;
}

static void find(struct reading *r, enum disk_use use, const char *by, const char *way)
{
	if (use <= r->found.use)
		return;
	r->found.use = use;
	snprintf(r->found.by, sizeof r->found.by, "%s %s", by, way);
}

/* What follows `setup-local-disks` in a command, which `bootstrap.sh --local-disks` of Amazon Linux 2 calls. */
static void read_disk_setup(struct reading *r, struct piece *line, const char *by)
{
	static const char *const ways[] = { "raid0", "raid10", "mount" };
	const char *way = NULL;
	bool binds = true;
	struct piece word;

	while (take_word(line, &word)) {
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
			way = is_word(word, ways[i]) ? ways[i] : way;
		binds &= !is_word(word, "--no-bind-containerd") && !is_word(word, "--no-bind-mounts");
	}
	if (way)
		find(r, *way == 'r' && binds ? DISKS_IMAGES : DISKS_BESIDE, by, way);
}

static void read_script(struct reading *r, struct piece text)
{
	static const char option[] = "--local-disks", program[] = "setup-local-disks";
	struct piece line, word;

	while (take_line(&text, &line))
		while (take_word(&line, &word) || (line.len && *line.at != '#')) {
			if (!word.len) {
				line.at++; /* of the sign between two commands */
				line.len--;
			} else if (is_word(word, option)) {
				read_disk_setup(r, &line, option);
			} else if (word.len >= sizeof program - 1 &&
				   is_word((struct piece){ word.at + word.len - (sizeof program - 1),
							   sizeof program - 1 },
					   program)) {
				read_disk_setup(r, &line, program);
			}
		}
}

/* https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/: LocalStorageOptions. */
static bool read_node_config(struct reading *r, struct piece text, struct error *e)
{
	const struct yaml_source source = { .file = "NodeConfig",
					    .text = text.at,
					    .len = text.len,
					    .limits = { UNPACKED_MOST, 10000, YAML_DEPTH_MAX, 100, true } };
	struct yaml_documents all;
	struct findings f = { 0 };
	bool ok = yaml_parse_source(&source, r->arena, &all, &f);

	for (size_t i = 0; ok && i < all.count; i++) {
		const char *kind = all.roots[i] ? yaml_text(all.roots[i], "kind") : NULL;
		if (!kind || strcmp(kind, "NodeConfig") != 0)
			continue;
		const struct yaml_node *storage = YAML_AT(all.roots[i], "spec", "instance", "localStorage");
		const struct yaml_node *disabled = yaml_child(storage, "disabledMounts");
		const char *strategy = yaml_text(storage, "strategy");
		if (strategy && *strategy)
			r->strategy = strategy;
		if (disabled)
			r->keeps_images = false;
		for (const struct yaml_node *n = disabled ? disabled->first : NULL; n; n = n->next)
			r->keeps_images |= n->text && strcmp(n->text, "Containerd") == 0;
	}
	if (!ok)
		error_set(e, ERROR_INVALID, "its NodeConfig is no YAML");
	findings_release(&f);
	return ok;
}

static struct piece keep(struct reading *r, const struct buf *b)
{
	return (struct piece){ arena_strdup(r->arena, b->len ? b->text : "", b->len), b->len };
}

/* As nodeadm takes a text off its wrappings: base64 or not, gzip or not. */
static bool unwrap(struct reading *r, struct piece *text, struct error *e)
{
	CLEANUP(buf_release) struct buf bytes = { 0 }, unpacked = { 0 };

	if (base64_read(text->at, text->len, &bytes) && bytes.len)
		*text = keep(r, &bytes);
	if (text->len < 2 || memcmp(text->at, "\x1f\x8b", 2) != 0)
		return true;
	if (!gunzip_bytes(text->at, text->len, UNPACKED_MOST, &unpacked, e))
		return false;
	*text = keep(r, &unpacked);
	return true;
}

static bool read_part(struct reading *r, struct piece text, bool is_node_config, struct error *e)
{
	static const char kind[] = "NodeConfig";

	if (!unwrap(r, &text, e))
		return false;
	if (!is_node_config)
		read_script(r, text);
	is_node_config |= !begins(text, "#") && text.len && memmem(text.at, text.len, kind, sizeof kind - 1);
	return !is_node_config || read_node_config(r, text, e);
}

/* Headers off a text up to their empty line: its type, and the boundary of a multipart; the value may go on in lines
 * that begin with a space. */
static void take_headers(struct reading *r, struct piece *text, const char **type, const char **boundary)
{
	static const char name[] = "Content-Type:", mark[] = "boundary=";
	CLEANUP(buf_release) struct buf value = { 0 };
	struct piece line;
	bool is_type = false;

	while (take_line(text, &line) && line.len) {
		bool goes_on = *line.at == ' ' || *line.at == '\t';
		is_type = goes_on ? is_type : begins(line, name);
		if (is_type)
			buf_append(&value, line.at + (goes_on ? 0 : sizeof name - 1),
				   line.len - (goes_on ? 0 : sizeof name - 1));
	}
	buf_text(&value, "");
	const char *from = strcasestr(value.text, mark);
	struct piece b = { from ? from + sizeof mark - 1 : "", 0 };
	bool is_quoted = *b.at == '"';
	b.at += is_quoted;
	b.len = strcspn(b.at, is_quoted ? "\"" : "; \t");
	*type = arena_strdup(r->arena, value.text + strspn(value.text, " \t"), value.len - strspn(value.text, " \t"));
	*boundary = arena_strdup(r->arena, b.at, b.len);
}

static bool is_delimiter(struct piece line, const char *boundary)
{
	return line.len >= strlen(boundary) + 2 && !memcmp(line.at, "--", 2) &&
	       !memcmp(line.at + 2, boundary, strlen(boundary));
}

static bool is_node_config(const char *type)
{
	static const char name[] = "application/node.eks.aws";

	return strncasecmp(type, name, sizeof name - 1) == 0;
}

/* One that ends at `end`, without the line end before it, which is the delimiter's. */
static bool read_mime_part(struct reading *r, const char *at, const char *end, struct error *e)
{
	struct piece part = { at, (size_t)(end - at) };
	const char *type, *none;

	part.len -= part.len && part.at[part.len - 1] == '\n';
	part.len -= part.len && part.at[part.len - 1] == '\r';
	take_headers(r, &part, &type, &none);
	return read_part(r, part, is_node_config(type), e);
}

static bool read_multipart(struct reading *r, struct piece text, const char *boundary, struct error *e)
{
	const char *part = NULL;
	struct piece line;
	bool ok = true;

	while (ok && take_line(&text, &line)) {
		if (!is_delimiter(line, boundary))
			continue;
		if (part)
			ok = read_mime_part(r, part, line.at, e);
		part = text.at;
	}
	return ok && (!part || read_mime_part(r, part, text.at, e));
}

static bool read_text(struct reading *r, struct piece text, struct error *e)
{
	struct piece body = text;
	const char *type, *boundary;

	if (!begins(text, "MIME-Version:") && !begins(text, "Content-Type:"))
		return read_part(r, text, false, e);
	take_headers(r, &body, &type, &boundary);
	if (strncasecmp(type, "multipart/", 10) != 0)
		return read_part(r, body, is_node_config(type), e);
	return *boundary ? read_multipart(r, body, boundary, e)
			 : error_set(e, ERROR_INVALID, "it is multipart, without a boundary");
}

static void weigh_node_configs(struct reading *r)
{
	static const char *const strategies[] = { "RAID0", "RAID10", "Mount" };

	for (size_t i = 0; r->strategy && i < sizeof strategies / sizeof *strategies; i++)
		if (!strcasecmp(r->strategy, strategies[i]))
			find(r, i < 2 && !r->keeps_images ? DISKS_IMAGES : DISKS_BESIDE, "localStorage.strategy",
			     strategies[i]);
}

bool instance_store_read(const char *text, size_t len, struct arena *a, struct instance_store *out, struct error *e)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct reading r = { .arena = a };

	if (!base64_read(text, len, &bytes))
		return error_set(e, ERROR_INVALID, "the user data is no base64");
	if (bytes.len > USER_DATA_MOST)
		return error_set(e, ERROR_INVALID, "the user data has %zu bytes; EC2 takes %d", bytes.len,
				 USER_DATA_MOST);
	struct piece all = keep(&r, &bytes);
	if (!unwrap(&r, &all, e) || !read_text(&r, all, e))
		return error_wrap(e, "user data");
	weigh_node_configs(&r);
	*out = r.found;
	return true;
}
