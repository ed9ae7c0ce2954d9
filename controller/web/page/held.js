// What held pools back in the last week, for how long, and who can lift it.

import { link } from "/assets/address.js";
import { el } from "/assets/dom.js";
import { emptiness } from "/assets/section.js";
import { duration, phrase } from "/assets/format.js";

/* Others only keep a pool from shrinking, or are as somebody wants it. */
const holding = ["max", "budget", "rate", "growth", "stock-out", "quota", "stale", "gang", "waiting-pods", "reservation", "unavailable"];
const owners = {
	manifest: "whoever owns the manifest", cloud: "the cloud: another group, a reservation, or more quota", cluster: "the cluster: pods wait that nothing can place",
	signals: "the model servers: they tell nothing whole", policy: "Preheat: it waits for a whole gang",
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
		el("p", { class: "small faint" }, `To lift by ${owners[h.owner]}.`))));
}
