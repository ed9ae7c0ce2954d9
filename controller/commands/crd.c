/* preheat crd: the CustomResourceDefinition of WarmPool. */
#include "controller/commands/command.h"

#include "base/arena.h"
#include "controller/manifest/reference.h"

#include <stdio.h>

static int run(int argc, char **argv)
{
	struct error e;
	int rest, code;

	if (!command_options(&command_crd, argc, argv, NULL, 0, &rest, &code))
		return code;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.100s'; allowed: no arguments", argv[rest]);
		return command_failed(&command_crd, &e);
	}
	return command_print(manifest_write_crd);
}

const struct command command_crd = {
	.name = "crd",
	.usage = "crd",
	.summary = "Print the CustomResourceDefinition of WarmPool (deploy/base/crd.yaml)",
	.examples = "  preheat crd | kubectl apply --server-side -f -\n"
		    "  kubectl explain warmpool.spec\n",
	.run = run,
};
