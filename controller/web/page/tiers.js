// A pool's capacity of now as one bar: hot, lent, starting, standby, with a mark where demand is.

import { el } from "/assets/dom.js";
import { count } from "/assets/format.js";

export const tiers = [
	{ key: "hot", name: "Hot", color: "--hot", line: "--hot-line" },
	{ key: "lent", name: "Lent", color: "--lent", line: "--lent-line" },
	{ key: "starting", name: "Starting", color: "--starting", line: "--starting-line", isHatched: true },
	{ key: "standby", name: "Standby", color: "--standby", line: "--standby-line" },
];

export function tierBar(p, largest) {
	const most = Math.max(largest || 0, p.demand || 0, tiers.reduce((sum, t) => sum + (p[t.key] || 0), 0), 1);
	const per = v => `${(100 * v / most).toFixed(2)}%`;
	const words = tiers.filter(t => p[t.key]).map(t => `${count(p[t.key])} ${t.name.toLowerCase()}`).join(", ") || "nothing held";

	return el("div", { class: "tiers" },
		el("div", { class: "tiers-words" }, el("span", null, `Demand ${count(p.demand)}`), el("span", { class: "faint" }, words)),
		el("div", { class: "tiers-bar", role: "img", "aria-label": `Demand ${count(p.demand)} replicas; ${words}` },
			tiers.map(t => p[t.key] ? el("span", { class: `tier-${t.key}`, style: { width: per(p[t.key]) } }) : null),
			p.demand === null || p.demand === undefined ? null : el("span", { class: "tiers-mark", style: { left: per(p.demand) } })));
}
