// A decision in one line of a list. Opens the whole one.

import { here } from "/assets/address.js";
import { el } from "/assets/dom.js";
import { count, phrase, time } from "/assets/format.js";

export function nameOf(d) {
	return `${d.tick}/${d.namespace}/${d.pool}`;
}

function size(d) {
	if (d.from === null || d.from === undefined || d.from === d.decided)
		return `${count(d.decided)} hot`;
	return `${count(d.from)} → ${count(d.decided)} ${d.decided > d.from ? "▲" : "▼"}`;
}

/* What stands in the columns before; it would push what is asked for out of a narrow row. */
const usualStart = /^[\d,]+ hot replicas?, including those on the way: as wished\. (?=.)/;

export function decisionRow(d) {
	const isHeld = d.heldBy && d.heldBy !== "none";

	return el("li", null, el("a", { href: here({ open: nameOf(d) }), "data-decision": nameOf(d) },
		el("span", { class: "nowrap" }, time(d.at)),
		el("span", { class: "cell-pool", title: `${d.namespace}/${d.pool}` }, d.pool),
		el("span", { class: "cell-size" }, size(d)),
		el("span", null, isHeld ? `■ ${phrase(d.heldBy)}` : el("span", { class: "faint" }, "–")),
		el("span", { class: "cell-why", title: d.reason }, d.reason.replace(usualStart, ""))));
}

/** Up and down walk the list, Home and End go to its ends. */
export function walkable(list) {
	list.addEventListener("keydown", event => {
		const links = Array.from(list.querySelectorAll("a[data-decision]")), at = links.indexOf(document.activeElement);
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];

		if (at < 0 || to === undefined || !links[to])
			return;
		event.preventDefault();
		links[to].focus();
	});
}

export function logHead() {
	return el("div", { class: "log-head", "aria-hidden": "true" },
		["Time", "Pool", "Hot replicas", "Held by", "Why"].map(name => el("span", null, name)));
}
