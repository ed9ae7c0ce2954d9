/* preheat man: the manual. */
#include "base/file.h"
#include "controller/commands/manual.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_file(const char *folder, const char *name, const struct buf *text, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s/%s.1", folder, name);
	return file_write(path.text, text->text, text->len, e);
}

static bool write_page(void *user, const struct command *c, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 }, page = { 0 };

	manual_page_name(c, &name);
	manual_write_page(c, &page);
	return write_file(user, name.text, &page, e);
}

/* Other names of the program have the overview for their page. */
static bool write_aliases(const char *folder, struct error *e)
{
	static const char *const names[] = { "kubectl-preheat", "kubectl_complete-preheat" };
	CLEANUP(buf_release) struct buf path = { 0 };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s.1", folder, names[i]);
		unlink(path.text);
		if (symlink("preheat.1", path.text) < 0)
			return error_set(e, file_error_kind(errno), "%s: %s", path.text, strerror(errno));
	}
	return true;
}

static bool write_all(char *folder, struct error *e)
{
	bool ok;

	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return error_set(e, file_error_kind(errno), "--out %s: cannot make this folder: %s", folder,
				 strerror(errno));
	if (!write_page(folder, NULL, e) || !write_aliases(folder, e))
		return false;
	manual_each(write_page, folder, &ok, e);
	return ok;
}

static int print(void (*write)(struct buf *))
{
	CLEANUP(buf_release) struct buf text = { 0 };

	write(&text);
	fwrite(text.text, 1, text.len, stdout);
	return EXIT_DONE;
}

/* Of the verb that the words name: "history export". */
static int print_page(char **words, int count)
{
	CLEANUP(buf_release) struct buf page = { 0 };
	const struct command *c = NULL;

	for (int i = 0; i < count; i++) {
		const struct command *below = command_find(c, words[i]);
		if (!below)
			return command_unknown(c, words[i]);
		c = below;
	}
	manual_write_page(c, &page);
	fwrite(page.text, 1, page.len, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	char *out = NULL;
	bool prints_reference = false;
	const struct option_row rows[] = {
		{ "out", 0, OPTION_TEXT, "DIR", "write the pages of all verbs as files into this folder", &out, NULL },
		{ "print-reference", 0, OPTION_FLAG, NULL, "print all of it as Markdown (docs/cli.md)",
		  &prints_reference, NULL },
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_man, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (prints_reference)
		return print(manual_write_reference);
	if (!out)
		return print_page(argv + rest, argc - rest);
	return write_all(out, &e) ? EXIT_DONE : command_failed(&command_man, &e);
}

const struct command command_man = {
	.name = "man",
	.usage = "man [VERB...] [--out DIR]",
	.summary = "Print the manual page of a verb, in the form that man reads",
	.examples = "  preheat man history | man -l -\n"
		    "  preheat man --out /usr/local/share/man/man1\n",
	.arguments = "VERB",
	.run = run,
};
