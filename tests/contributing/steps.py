"""Adds one provider, engine, verb, manifest key and metric to a copy of the sources, by the recipes of CONTRIBUTING.md.
Usage: steps.py COPY. What a recipe does not name is not touched; what it names and is not needed is a mistake, too."""

import glob
import os
import re
import sys

PROVIDER = """/* Nodes with a label of their own, that somebody else brings. */
#include "providers/kubernetes/group.h"
#include "providers/text.h"

static bool find(struct provider_call *c, const char *version, struct object_group *out, struct error *e)
{
	(void)version;
	(void)e;
	out->name = out->name_space = "";
	out->owner_plural = "nodes";
	out->list = "/api/v1/nodes";
	out->selector = text_printf(&c->arena, "paddock.example/group=%s", c->group);
	return true;
}

static const struct object_right rights[] = { { "", "nodes", "", "list", "sees the machines", false } };
static const struct object_provider kind = {
	.kind = OBJECT_NODE,
	.abilities = PROVIDER_CANCELS,
	.find = find,
	.rights = rights,
	.right_count = sizeof rights / sizeof *rights,
};

static struct provider *open(const struct provider_setup *s, struct error *e)
{
	return object_provider_open(&kind, s, e);
}

const struct provider_ops provider_paddock = {
	.name = "paddock",
	.abilities = PROVIDER_CANCELS,
	.asks_cluster = true,
	.open = open,
	.close = object_provider_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
};
"""

PROVIDER_BLOCK = """/* What a node group of paddock says in the manifest. */
#include "providers/block.h"

struct paddock_block {
	const struct yaml_node *node;
	const char *group;
};
BLOCK_FITS(struct paddock_block);

static const struct schema_row rows[] = {
	{ .key = "group", .type = SCHEMA_TEXT, BLOCK_AT(paddock_block, group), .is_required = true, .max = 40,
	  .help = "What the paddock calls the group." },
};
static const struct block_key keys[] = { { "group", &form_dns_label, "small letters, digits and inner dashes" } };

const struct provider_block provider_block_paddock = {
	.table = { "paddock", sizeof(struct paddock_block), SCHEMA_ROWS(rows) },
	BLOCK_KEYS(keys),
	.label = { "paddock.example/group", 0, offsetof(struct paddock_block, group) },
};
"""

ENGINE = """/* A model server that tells its two levels. */
ENGINE(TROT, "trot", "trot-server", NULL)
METRIC(RUNNING, 0, "trot_running", NULL, NULL, false)
METRIC(WAITING, 0, "trot_waiting", NULL, NULL, false)
"""

VERB = """/* preheat neigh: says that it is there. */
#include "controller/commands/command.h"

#include <stdio.h>

static int run(int argc, char **argv)
{
	int rest, code;

	if (!command_options(&command_neigh, argc, argv, NULL, 0, &rest, &code))
		return code;
	puts("neighs");
	return EXIT_DONE;
}

const struct command command_neigh = {
	.name = "neigh",
	.usage = "neigh",
	.summary = "Say that it is there",
	.examples = "  preheat neigh\\n",
	.run = run,
};
"""

ROW = """	{ .key = "grazeFor", .type = SCHEMA_DURATION, AT(scale_down_text, graze_for), .fallback = "3m", .min = SECOND,
	  .max = HOUR, .example = "3m",
	  .help = "How long a node grazes before it goes." },
"""

METRIC = """	{ .name = "preheat_pool_graze_seconds", .of = OF_SPEC, .digits = 3, .labels = "namespace, pool",
	  .offset = offsetof(struct pool_spec, graze_for), .help = "How long a node grazes before it goes." },
"""

# recipe -> its NAME, and file -> (the line behind which the text goes, the text); no line: a new file, or its end.
STEPS = {
    "A provider": ("paddock", {
        "providers/paddock.c": (None, PROVIDER),
        "providers/paddock_block.c": (None, PROVIDER_BLOCK),
        "providers/list.def": (None, 'PROVIDER(paddock, "paddock", "Settings of provider paddock.")\n')}),
    "An engine": ("trot", {
        "signals/engines/trot.def": (None, ENGINE),
        "signals/engines/all.def": (None, '#include "signals/engines/trot.def"\n')}),
    "A verb": ("neigh", {
        "controller/commands/neigh.c": (None, VERB),
        "controller/commands/list.def": (None, "COMMAND(neigh)\n")}),
    "A manifest key": ("grazeFor", {
        "controller/manifest/warm_pool.h": ("struct scale_down_text {", "\tint64_t graze_for;\n"),
        "controller/manifest/warm_pool.c": ("static const struct schema_row scale_down_rows[] = {", ROW),
        "controller/policy/pool.h": ("struct pool_spec {", "\tmillis graze_for;\n"),
        "controller/manifest/load.c": ("		.scale_down_after = s->scale_down.after,",
                                       "		.graze_for = s->scale_down.graze_for,\n")}),
    "A metric": ("graze", {
        "controller/web/metrics.c": ("static const struct metric pool_metrics[] = {", METRIC)}),
}


def recipes(text):
    """title -> (files that stand behind "Files:", all paths in backticks) of the chapter "Adding something"."""
    found = {}
    for paragraph in text.split("## Adding something", 1)[1].split("\n\n"):
        title = re.match(r"\s*\*\*(.+?)\.\*\*", paragraph)
        if title:
            files = re.search(r"Files: (.*?)\.(\s|$)", paragraph, re.S)
            assert files, f"CONTRIBUTING.md: {title[1]}: no sentence that begins with \"Files:\""
            found[title[1]] = re.findall(r"`([^`]+)`", files[1]), re.findall(r"`([\w.*-]+/[\w./*-]+)`", paragraph)
    return found


def write(path, behind, text):
    if behind is None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
        return
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    assert lines.count(behind) == 1, f"{path}: {lines.count(behind)} lines are: {behind}"
    at = lines.index(behind) + 1
    lines[at:at] = text.rstrip("\n").split("\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def main():
    os.chdir(sys.argv[1])
    with open("CONTRIBUTING.md", encoding="utf-8") as file:
        told = recipes(file.read())
    wrong = [f"{title}: there is no {path}" for title, (_, paths) in told.items() for path in paths
             if not glob.glob(re.sub(r"NAME|LIBRARY", "*", path))]
    for title, (name, files) in STEPS.items():
        named = {path.replace("NAME", name) for path in told.get(title, ([], []))[0]}
        wrong += [f"{title}: needs {path}, which is not named" for path in sorted(files.keys() - named)]
        wrong += [f"{title}: names {path}, which need not be touched" for path in sorted(named - files.keys())]
    if wrong:
        sys.exit("\n".join("CONTRIBUTING.md: " + line for line in wrong))
    for title, (_, files) in STEPS.items():
        for path, (behind, text) in files.items():
            write(path, behind, text)
            print(f"{title}: {path}")


main()
