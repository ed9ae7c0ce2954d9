// A card that loads by itself: says that it waits, what failed and what to do, and keeps what it had while it asks again.

import { el, fill, say } from "/assets/dom.js";

let ids = 0;

export function emptiness(words) {
	return el("p", { class: "empty" }, words);
}

/** { node, body, tools, note(words), load(ask, draw) }: draw(answer) fills the body. */
export function section(title, { note = "", kind = "", lone = false } = {}) {
	const id = `section-${++ids}`;
	const told = el("span", null, note), words = el("p", { hidden: !note }, told);
	const tools = el("div", { class: "tools" });
	const body = el("div");
	const trouble = el("div", { class: "failed", hidden: true, role: "alert" });
	const heading = el("h2", { id, tabindex: "-1" }, title);
	const node = el("section", { class: `card ${kind}${lone ? " lone" : ""}`, "aria-labelledby": id },
		el("div", { class: "card-head" }, heading, tools, words), trouble, body);
	let turn = 0, isDrawn = false;

	async function load(ask, draw) {
		const mine = ++turn;

		if (!isDrawn && !body.firstChild)
			fill(body, el("p", { class: "loading" }, "Reading."));
		try {
			const answer = await ask();

			if (mine !== turn)
				return; // asked again since
			if (!isDrawn)
				fill(body);
			isDrawn = true;
			trouble.hidden = true;
			draw(answer);
		} catch (e) {
			if (e.name === "AbortError" || mine !== turn)
				return;
			if (!isDrawn)
				fill(body);
			fill(trouble, el("span", null, e.message),
				el("button", { type: "button", on: { click: () => load(ask, draw) } }, "Try again"));
			trouble.hidden = false;
		}
	}

	return { node, body, tools, heading, load, note: text => { say(told, text); words.hidden = !text; } };
}
