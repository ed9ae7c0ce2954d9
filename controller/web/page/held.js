// What held pools back in the last week, for how long, and who can lift it.

import { link } from "/assets/address.js";
import { el } from "/assets/dom.js";
import { emptiness } from "/assets/section.js";
import { duration, phrase } from "/assets/format.js";

/* Others only keep a pool from shrinking, or are as somebody wants it. */
const holding = ["max", "budget", "rate", "growth", "stock-out", "quota", "stale", "gang", "waiting-pods", "reservation", "unavailable"];
const owners = {
	manifest: "Set in the manifest; raise it there.", cloud: "The cloud has no more; add a node group, a reservation or quota.", cluster: "Pods are pending that no node fits; look at their events.",
	signals: "Metrics of the model servers are missing or incomplete; check that they can be scraped.", policy: "Preheat waits until a whole gang of nodes fits.",
};
const names = { "stock-out": "Stock-out", stale: "Stale signals", rate: "Rate of growth", growth: "Growth in five minutes", reservation: "Reservation that ends", unavailable: "Node group that cannot be asked" };
const mostShown = 5;

export function heldList(held) {
	const found = held.filter(h => holding.includes(h.limit));

	if (!found.length)
		return emptiness("Nothing held a pool back: no maximum, budget, quota, rate or stock-out bound.");
	return el("ul", { class: "held" }, found.slice(0, mostShown).map(h => el("li", null,
		el("div", { class: "change-head" }, el("b", null, names[h.limit] || phrase(h.limit).replace(/^./, c => c.toUpperCase())),
			el("a", { href: link(["decisions"], { from: "-1w", pool: `${h.namespace}/${h.pool}`, limit: h.limit }) }, `${h.pool}, ${duration(h.seconds)}`)),
		el("p", { class: "small faint" }, owners[h.owner]))));
}
