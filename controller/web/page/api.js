// Calls of the JSON API (docs/openapi.json). All answers that are no success become an Error with the server's own words.

const root = "/api/v1";

export class ApiError extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

function address(path, parameters) {
	const search = new URLSearchParams();

	for (const [name, value] of Object.entries(parameters || {}))
		if (value !== null && value !== undefined && value !== "")
			search.set(name, value);
	const text = search.toString();

	return `${root}${path}${text ? `?${text}` : ""}`;
}

async function answerOf(response) {
	const text = await response.text();
	let body = null;

	try {
		body = text ? JSON.parse(text) : null;
	} catch {
		body = null;
	}
	if (response.ok)
		return body;
	const told = body && body.error && body.error.message;

	throw new ApiError(response.status, told || `the server answered ${response.status} ${response.statusText}`);
}

async function call(path, options) {
	try {
		return await answerOf(await fetch(path, options));
	} catch (e) {
		if (e instanceof ApiError || e.name === "AbortError")
			throw e;
		throw new ApiError(0, "no answer from Preheat; is it still running, and the port-forward open?");
	}
}

export function get(path, parameters, signal) {
	return call(address(path, parameters), { signal, headers: { accept: "application/json" } });
}

export function post(path, body) {
	return call(address(path), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

export function remove(path) {
	return call(address(path), { method: "DELETE" });
}

export const eventsAddress = `${root}/events`;

export function poolPath(pool, rest = "") {
	return `/pools/${encodeURIComponent(pool.namespace)}/${encodeURIComponent(pool.name)}${rest}`;
}
