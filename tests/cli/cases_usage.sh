# shellcheck shell=bash disable=SC2016
# Wrong use of the command line.

refused 'unknown verb' 2 'simulat' '' 'preheat simulat'
refused 'unknown option' 2 'verion' '' 'preheat version --verion'
refused 'standard output is full' 3 'standard output' '' 'preheat version >/dev/full'
found 'no verb helps' 0 'simulate' '' 'preheat --help'
found 'help of a verb' 0 'Usage|usage' '' 'preheat version --help'
found 'as a kubectl plugin' 0 'kubectl|preheat' 'ln -s "$preheat_path" kubectl-preheat' './kubectl-preheat --help'
