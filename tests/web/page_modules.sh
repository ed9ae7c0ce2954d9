# shellcheck shell=bash
# Chromium, Node.js and what npm brings (tests/web/page/package-lock.json), for whoever drives the page. Sourced.

page_skip() {
	echo "SKIPPED: $*"
	[ "${CI:-}" = true ] && return 1
	return 77
}

# page_modules: sets PAGE_BROWSER and PAGE_MODULES; otherwise says what is absent: 77, with CI=true 1.
page_modules() {
	local here key new
	here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
	PAGE_BROWSER=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
		page_skip "no chromium (apt-get install chromium)"
		return
	}
	if ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 18 ]; then
		page_skip "no npm with Node.js 18 or later (apt-get install npm)"
		return
	fi
	# Installed once per lock file, whole or not at all.
	key=$(sha256sum "$here/page/package-lock.json" | cut -c1-16)
	PAGE_MODULES=${XDG_CACHE_HOME:-$HOME/.cache}/preheat/page-$key
	export PAGE_BROWSER PAGE_MODULES
	[ ! -d "$PAGE_MODULES/node_modules" ] || return 0
	mkdir -p "$(dirname "$PAGE_MODULES")"
	new=$(mktemp -d "$PAGE_MODULES.XXXXXX")
	cp "$here/page/package.json" "$here/page/package-lock.json" "$new"
	if ! (cd "$new" && npm ci --no-audit --no-fund --ignore-scripts >npm.log 2>&1); then
		cat "$new/npm.log"
		rm -rf "$new"
		page_skip "npm ci failed"
		return
	fi
	mv -T "$new" "$PAGE_MODULES" 2>/dev/null || rm -rf "$new"
}
