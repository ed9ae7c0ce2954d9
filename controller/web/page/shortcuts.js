// Keys for the whole page, and the sheet that lists them.

import { link } from "/assets/address.js";
import { byId, el, fill } from "/assets/dom.js";

const sheet = [
	["?", "this list"], ["g then p", "overview"], ["g then i", "incidents"], ["g then d", "decisions"], ["g then c", "cost"], ["g then w", "what if"],
	["↑ ↓", "in the log: from decision to decision"], ["← →", "in a chart: from point to point"], ["Esc", "close what is open"],
];
const places = { p: "pools", i: "incidents", d: "decisions", c: "cost", w: "what-if" };

function showSheet() {
	const dialog = byId("keys");

	fill(dialog, el("h2", { id: "keys-title" }, "Keys"),
		el("dl", null, sheet.map(([key, words]) => [el("dt", null, key.split(" ").map(k => k === "then" ? " then " : el("kbd", null, k))), el("dd", null, words)])),
		el("button", { type: "button", on: { click: () => dialog.close() } }, "Close"));
	dialog.showModal();
}

export function listenToKeys() {
	let isGoing = false;

	document.addEventListener("keydown", event => {
		const typed = event.target.closest("input, select, textarea, dialog[open]");

		if (typed || event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (isGoing && places[event.key]) {
			location.hash = link([places[event.key]]);
			event.preventDefault();
		} else if (event.key === "?") {
			showSheet();
		}
		isGoing = event.key === "g";
	});
}
