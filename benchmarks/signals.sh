#!/usr/bin/env bash
# What reading model servers costs: the parser alone, and a pool of 1,000 pods every 5 s over real connections.
set -euo pipefail
cd "$(dirname "$0")/.."

printf '\n| what | measured | to hold |\n|---|---|---|\n'
printf '| parser | %s | 300 MB/s |\n' "$(build/release/exposition_speed)"
printf '| scraping | %s | 10 %%, 32 MiB |\n' "$(build/release/scrape_speed 1000 60)"
printf '| scraping, packed | %s | 10 %%, 32 MiB |\n' "$(build/release/scrape_speed 1000 60 packed)"
printf '| a request through the relay | %s | 1 ms added |\n' "$(build/release/relay_speed)"
