// The part of the address after "#": view, range, filters and the decision that is open. Whoever gets the link sees the same.

const listeners = new Set();

function parse() {
	const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
	const parts = path.split("/").filter(Boolean).map(part => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	});

	return { path: parts.length ? parts : ["pools"], query: new URLSearchParams(query || "") };
}

let current = parse();

export const path = () => current.path;
export const query = name => current.query.get(name);

/** What is kept when one goes to another view. */
const everywhere = ["from", "to"];

function spell(parts, search) {
	const text = search.toString();

	return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function link(parts, changes = {}) {
	const search = new URLSearchParams();

	for (const name of everywhere)
		if (current.query.has(name))
			search.set(name, current.query.get(name));
	for (const [name, value] of Object.entries(changes))
		if (value)
			search.set(name, value);
	return spell(parts, search);
}

/** The address of here with some of the query changed; an empty value takes it out. */
export function here(changes) {
	const search = new URLSearchParams(current.query);

	for (const [name, value] of Object.entries(changes))
		if (value)
			search.set(name, value);
		else
			search.delete(name);
	return spell(current.path, search);
}

function notice() {
	const before = current;

	current = parse();
	listeners.forEach(l => l(current, before));
}

/** Changes the query of here; `replace` leaves no step for the Back button. */
export function change(changes, { replace = false } = {}) {
	const target = here(changes);

	if (target === location.hash)
		return;
	if (replace) {
		history.replaceState(null, "", target);
		notice();
	} else {
		location.hash = target;
	}
}

addEventListener("hashchange", notice);

/** Called with the new and the former address. */
export function onAddress(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}
