// What the same traffic would have cost under other fleets: a table, and a line over the bars of the days.

import { get } from "/assets/api.js";
import { el, table } from "/assets/dom.js";
import { count, dollars, share, time } from "/assets/format.js";

const pause = 5000, dayLength = 86400000;
const kinds = ["recorded", "autoscaler", "static", "hot-only", "preheat"];

/* Pools that are not known under a fleet count as they were. */
function total(fleets, kind) {
	const recorded = fleets.filter(f => f.fleet === "recorded"), own = fleets.filter(f => f.fleet === kind);

	if (!own.length)
		return null;
	const each = recorded.map(r => own.find(f => f.namespace === r.namespace && f.pool === r.pool) || r);
	const late = each.every(f => f.month.late !== null) ? each.reduce((n, f) => n + f.month.late, 0) : null;

	return { kind, own, dollars: each.reduce((n, f) => n + f.month.dollars, 0), was: recorded.reduce((n, f) => n + f.month.dollars, 0),
		late: late === null ? null : late / Math.max(1, each.reduce((n, f) => n + f.month.requests, 0)) };
}

/* "target=0.65,window=300" */
const numberOf = (setting, key) => Number((new RegExp(`(?:^|,)${key}=([0-9.]+)`).exec(setting || "") || [])[1]);

function nameOf(row) {
	const targets = row.own.map(f => numberOf(f.setting, "target"));

	if (row.kind === "static")
		return `Static peak, ${count(row.own.reduce((n, f) => n + numberOf(f.setting, "replicas"), 0))} replicas`;
	if (row.kind === "hot-only")
		return "Without standby";
	if (row.kind === "preheat")
		return "Preheat, if it acted";
	if (row.kind === "recorded")
		return "As it was";
	if (targets.some(t => Number.isNaN(t)))
		return "The team’s autoscaler";
	const low = Math.min(...targets), high = Math.max(...targets);

	return low === high ? `HPA at ${share(low)}` : `HPAs at ${count(100 * low)} to ${share(high)}`;
}

function savedOf(row) {
	const saved = row.dollars - row.was;

	return row.kind === "recorded" ? "–" : [el("b", null, dollars(saved)), row.dollars > 0 ? el("span", { class: "faint of-it" }, `, ${count(100 * saved / row.dollars)} %`) : null];
}

function words(a) {
	const unfit = a.fleets.filter(f => f.fleet === "recorded" && !f.modelFits).map(f => f.pool);

	return [unfit.length ? `The model does not give what was recorded of ${unfit.join(", ")}, which counts as it was. ` : "",
		`Days of UTC, by the model that simulate uses; worked out ${time(a.triedAt, { seconds: false })}.`, a.state === "trying" ? " Working it out again." : ""].join("");
}

/** What the team would run: { saved, cost } of 30 days; null where it is not known. */
export function againstAutoscaler(a) {
	const row = a && total(a.fleets, "autoscaler");

	return row && { saved: row.dollars - row.was, cost: row.dollars };
}

/** Of 24 hours that need not begin at a midnight of UTC: what the line shows; null where a part is not known. */
export function autoscalerOn(a, from) {
	const begin = Date.parse(from);
	let sum = 0, known = 0;

	for (const d of a ? a.days : []) {
		const part = Math.min(begin, Date.parse(d.from)) + dayLength - Math.max(begin, Date.parse(d.from));

		if (d.fleet === "autoscaler" && part > 0) {
			sum += d.dollars * part / dayLength;
			known += part;
		}
	}
	return known >= dayLength ? sum : null;
}

/** `span`: the time it is worked out over, in words. */
export function alternativesTable(a, span) {
	const rows = a ? kinds.map(kind => total(a.fleets, kind)).filter(r => r) : [];

	if (!a || a.state === "never")
		return null;
	if (rows.length < 2)
		return el("p", { class: "small faint" }, a.state === "trying" ? "What other fleets would have cost is worked out in the background; this takes some minutes."
			: a.state === "failed" ? `What other fleets would have cost is not known: ${a.message}` : "No other fleet could be modelled on this record.");
	return el("div", { class: "alternatives" }, table([{ name: `Same traffic, ${span}`, isHead: true, of: r => [r.kind === "autoscaler" ? el("span", { class: "line-key", "aria-hidden": "true" }) : null, nameOf(r)] },
		{ name: "Cost", isNumber: true, of: r => dollars(r.dollars) }, { name: "Saved", isNumber: true, of: savedOf }, { name: "Late", isNumber: true, of: r => share(r.late) }], rows,
	{ caption: "The same traffic under other fleets" }), el("p", { class: "small faint" }, words(a)));
}

/** Asks, and again while it is worked out: `draw(answer)`. */
export function alternativesPoll(draw) {
	let timer = 0, isClosed = false;

	async function load() {
		clearTimeout(timer);
		const a = await get("/alternatives").catch(() => null);

		if (isClosed || !a)
			return;
		draw(a);
		if (a.state === "trying")
			timer = setTimeout(load, pause);
	}

	return { load, close: () => { isClosed = true; clearTimeout(timer); } };
}
