// What was spent: today, 7 and 30 days, all pools together, each of the last 30 days as a bar, and against other fleets.

import { againstAutoscaler, alternativesTable, autoscalerOn } from "/assets/alternatives.js";
import { el, scrolling, table } from "/assets/dom.js";
import { dayBars } from "/assets/objectives.js";
import { recordedWords } from "/assets/range.js";
import { count, day, dollars, unknown } from "/assets/format.js";

const windows = [["today", "Today"], ["week", "7 days"], ["month", "30 days"]];

function sum(pools, of) {
	const known = pools.map(of).filter(v => v !== null);

	return known.length ? known.reduce((a, b) => a + b, 0) : null;
}

/* Against as long a time before; only where all of it is on record for every pool. */
function trend(pools, key) {
	const before = pools.every(p => p[key].dollarsBefore !== null) ? sum(pools, p => p[key].dollarsBefore) : null, now = sum(pools, p => p[key].dollars);
	const more = before ? Math.round(100 * (now / before - 1)) : null;

	return more === null ? "" : `${more > 0 ? "▲" : more < 0 ? "▼" : "="} ${count(Math.abs(more))} % on the ${key === "week" ? "week" : "month"} before`;
}

/* Where no pool has a price: GPU hours, and how to give one. */
const isPriced = pools => pools.some(p => p.isPriced);
const spentOf = (pools, of) => isPriced(pools) ? dollars(sum(pools, p => of(p).dollars)) : hours(sum(pools, p => of(p).gpuHours));
const hours = v => v === null ? unknown : `${count(v)} GPU h`;

function saved(others) {
	const against = againstAutoscaler(others);

	return against && against.saved > 0 ? el("b", { "data-kind": "good" }, `${dollars(against.saved)} saved`) : null;
}

function figures(pools, others) {
	return el("dl", { class: "spent-figures" }, windows.map(([key, name]) => el("div", null, el("dt", null, name, key !== "today" && pools.some(p => p[key].isShort) ? `, ${recordedWords()} recorded` : null), el("dd", { class: "spent-value" }, spentOf(pools, p => p[key])),
		el("dd", { class: "goal-note" }, trend(pools, key)), key === "month" ? el("dd", { class: "goal-note" }, saved(others)) : null)));
}

function bars(pools, others) {
	const days = pools[0].days.map((d, i) => ({ from: d.from, spent: sum(pools, p => isPriced(pools) ? p.days[i].dollars : p.days[i].gpuHours), other: isPriced(pools) ? autoscalerOn(others, d.from) : null })), most = Math.max(...days.map(d => d.spent || 0));
	const dearest = days.find(d => d.spent === most), shown = isPriced(pools) ? dollars : hours, top = Math.max(most, ...days.map(d => d.other || 0)) || 1;

	return el("figure", { class: "spent-days" }, el("p", { class: "small faint" }, most ? `Each day; the most ${shown(most)} on ${day(dearest.from)}` : "Nothing spent"),
		dayBars(days, { of: d => d.spent, line: d => d.other, top, label: `${isPriced(pools) ? "Dollars" : "GPU hours"} a day; the most ${shown(most)}` }),
		el("figcaption", null, el("span", null, day(days[0].from)), el("span", null, "today")));
}

function perPool(pools) {
	return scrolling("Spent by pool, as a table", table([{ name: "Pool", isHead: true, of: p => p.name },
		...windows.map(([key, name]) => ({ name, isNumber: true, of: p => spentOf([p], x => x[key]) }))], pools, { caption: "Spent by pool" }));
}

/** `others`: what /alternatives says; null: not yet. */
export function spentParts(pools, others) {
	const unpriced = pools.filter(p => !p.isPriced).map(p => p.name);

	return [figures(pools, others), bars(pools, others), unpriced.length ? el("p", { class: "small faint" }, `No price is given for ${unpriced.join(", ")}, so ${unpriced.length === 1 ? "it has" : "they have"} GPU hours and no dollars; give `, el("code", null, "pricePerHour"), " to the node groups in the manifest.") : null,
		!isPriced(pools) ? null : alternativesTable(others, pools.some(p => p.month.isShort) ? `${recordedWords()} recorded` : "30 days"), pools.length > 1 ? perPool(pools) : null];
}
