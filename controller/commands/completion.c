/* preheat completion: what makes a shell complete our verbs, options and values. */
#include "controller/commands/command.h"
#include "controller/report/assets.h"

#include <stdio.h>
#include <string.h>

extern const struct asset asset_completion_bash, asset_completion_zsh, asset_completion_fish;

static const struct shell {
	const char *name;
	const struct asset *script;
} shells[] = {
	{ "bash", &asset_completion_bash },
	{ "zsh", &asset_completion_zsh },
	{ "fish", &asset_completion_fish },
};

static bool print_script(const char *name, struct error *e)
{
	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
		if (!strcmp(shells[i].name, name)) {
			fwrite(shells[i].script->bytes, 1, shells[i].script->size, stdout);
			return true;
		}
	return error_set(e, ERROR_INVALID, "found '%.60s'; allowed: bash, zsh, fish", name);
}

static int run(int argc, char **argv)
{
	struct error e;
	int rest, code;

	if (!command_options(&command_completion, argc, argv, NULL, 0, &rest, &code))
		return code;
	if (argc - rest == 1 && print_script(argv[rest], &e))
		return EXIT_DONE;
	if (argc - rest != 1)
		error_set(&e, ERROR_INVALID, "%s; name one shell: bash, zsh or fish",
			  rest < argc ? "more than one shell" : "no shell");
	return command_failed(&command_completion, &e);
}

const struct command command_completion = {
	.name = "completion",
	.usage = "completion bash|zsh|fish",
	.summary = "Print what makes a shell complete verbs, options, files and pools",
	.examples = "  source <(preheat completion bash)                                  now, in this shell\n"
		    "  preheat completion bash > ~/.local/share/bash-completion/completions/preheat\n"
		    "  preheat completion zsh > ~/.zsh/_preheat                           a folder of $fpath\n"
		    "  preheat completion fish > ~/.config/fish/completions/preheat.fish\n",
	.notes = "The Debian package installs all three. 'kubectl preheat' completes as well: kubectl asks\n"
		 "kubectl_complete-preheat, which is another name of this program.\n",
	.arguments = "bash|zsh|fish",
	.run = run,
};
