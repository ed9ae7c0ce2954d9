// What a person chose for this browser: colours and time zone.

function kept(name) {
	try {
		return localStorage.getItem(`preheat-${name}`);
	} catch {
		return null; // a browser that keeps nothing
	}
}

function keep(name, value) {
	try {
		localStorage.setItem(`preheat-${name}`, value);
	} catch {
		// the choice lasts until the page is closed
	}
}

const listeners = new Set();

export const settings = { theme: kept("theme") || "system", isUtc: kept("zone") === "utc" };

function apply() {
	if (settings.theme === "system")
		delete document.documentElement.dataset.theme;
	else
		document.documentElement.dataset.theme = settings.theme;
}

apply();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach(l => l("theme")));

/** Called with "theme" or "zone" after a change. Returns a function that ends it. */
export function onSetting(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

export function chooseTheme(theme) {
	settings.theme = theme;
	keep("theme", theme);
	apply();
	listeners.forEach(l => l("theme"));
}

export function chooseZone(isUtc) {
	settings.isUtc = isUtc;
	keep("zone", isUtc ? "utc" : "local");
	listeners.forEach(l => l("zone"));
}

export function isStill() {
	return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
