// Is each objective met: today, 7 and 30 days, what is left of the error budget, and each of the last 30 days as a bar.

import { link } from "/assets/address.js";
import { el, svg } from "/assets/dom.js";
import { signPath } from "/assets/pool_status.js";
import { recordedWords } from "/assets/range.js";
import { brief, count, day, objective, share } from "/assets/format.js";

const windows = [["today", "Today"], ["week", "7 days"], ["month", "30 days"]];
const close = 0.9; // of what may be late
const words = { good: "met", warn: "close", bad: "missed", plain: "" };

/** What may be late: null for a pool that pays by the request. */
export const allowed = p => p.objective.attainment === null || p.month.budgetLeftRequests === null ? null : 1 - p.objective.attainment;

function kindOf(w) {
	if (w.share === null || w.budgetLeftRequests === null)
		return "plain";
	return !w.isMet ? "bad" : w.burnRate > close ? "warn" : "good";
}

const shape = kind => svg("svg", { class: "shape", viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("path", { d: signPath(kind) }));

/* The tick stands where all that may be late was. */
function meter(part, kind) {
	return el("span", { class: "meter goal-meter", "data-kind": kind, "aria-hidden": "true" },
		el("span", { style: { width: `${Math.min(100, 50 * part).toFixed(1)}%` } }), el("span", { class: "meter-mark", style: { left: "50%" } }));
}

function windowCell(p, [key, name]) {
	const w = p[key], kind = kindOf(w), may = allowed(p);

	return el("div", { class: "goal-cell" }, el("dt", null, name, w.isShort && key !== "today" ? `, ${recordedWords()} recorded` : null),
		el("dd", { class: "goal-value", "data-kind": kind }, kind === "plain" ? null : shape(kind), share(w.share)),
		el("dd", { class: "goal-note" }, may === null || w.share === null ? null : meter(w.share / may, kind),
			w.share === null ? "no requests" : may === null ? `${brief(w.late)} late` : [el("b", { "data-kind": kind }, words[kind]), ", ", el("span", { class: "nowrap" }, `of ${share(may)}`)]));
}

function budgetCell(p) {
	const w = p.month, left = w.budgetLeftRequests;

	if (left === null)
		return el("div", { class: "goal-cell" }, el("dt", null, "Budget left"), el("dd", { class: "goal-value" }, "–"));
	const may = left + w.late, part = may > 0 ? left / may : 0, kind = part < 0 ? "bad" : part < 0.25 ? "warn" : "good";

	return el("div", { class: "goal-cell" }, el("dt", null, "Budget left, 30 d"), el("dd", { class: "goal-value", "data-kind": kind }, left < 0 ? "none" : share(part)),
		el("dd", { class: "goal-note" }, el("span", { class: "meter goal-meter", "data-kind": kind, "aria-hidden": "true" }, el("span", { style: { width: `${(100 * Math.max(0, part)).toFixed(1)}%` } })),
			left < 0 ? `${brief(-left)} requests too many` : `${brief(left)} may be late`));
}

function burnCell(p) {
	const rate = p.week.burnRate;

	return el("div", { class: "goal-cell goal-burn" }, el("dt", null, "Burn"),
		el("dd", { class: "goal-value", "data-kind": rate === null ? "plain" : rate > 1 ? "bad" : rate > close ? "warn" : "good" }, rate === null ? "–" : `${count(rate)}×`),
		el("dd", { class: "goal-note" }, `over ${p.week.isShort ? recordedWords() : "7 days"}`));
}

/* A step for each day that is known. */
function steps(days, of, top) {
	const wide = 100 / days.length, known = days.map((d, i) => of(d) === null ? "" : `${i && of(days[i - 1]) !== null ? "L" : "M"}${(i * wide).toFixed(2)} ${(20 - 20 * of(d) / top).toFixed(2)}h${wide.toFixed(2)}`);

	return svg("path", { class: "days-line", d: known.join("") });
}

/** Bars of days: `of(d)` is null where nothing is known; `top` the value that fills the height; `line(d)` steps over them. */
export function dayBars(days, { of, isOver, line, top, limit, label }) {
	const wide = 100 / days.length, bars = days.map((d, i) => {
		const v = of(d), height = v === null ? 0 : Math.max(0.8, Math.min(20, 20 * v / top));

		return v === null ? null : svg("rect", { class: isOver && isOver(d) ? "day over" : "day", x: (i * wide + wide * 0.08).toFixed(2), width: (wide * 0.84).toFixed(2), y: (20 - height).toFixed(2), height: height.toFixed(2) });
	});

	return svg("svg", { class: "days", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": label }, bars,
		line ? steps(days, line, top) : null, limit === undefined ? null : svg("path", { class: "days-limit", d: `M0 ${(20 - 20 * limit / top).toFixed(2)}H100` }));
}

const known = days => days.filter(d => d.requests !== null);

function daysOf(p) {
	const may = allowed(p), over = p.days.filter(d => d.isOver).length, told = known(p.days).length;
	const most = Math.max(0, ...p.days.map(d => d.share || 0)), top = may === null ? most || 1 : Math.max(2.5 * may, Math.min(most, 5 * may));
	const middle = may === null ? "late share by day" : `${over} of ${told === 1 ? "1 day" : `${told} days`} over ${share(may)} (dotted)`;

	return el("figure", { class: "goal-days" },
		dayBars(p.days, { of: d => d.share, isOver: d => d.isOver, top, limit: may === null ? undefined : may, label: `Late share by day: ${middle.replace(" (dotted)", "")}; the most ${share(most)}` }),
		el("figcaption", null, el("span", null, day(p.days[0].from)), el("span", null, middle), el("span", null, "today")));
}

export function objectiveRow(p) {
	return el("li", { class: "goal" },
		el("div", { class: "goal-name" }, el("a", { href: link(["pool", p.namespace, p.name]) }, p.name), el("span", { class: "small faint" }, objective(p.objective))),
		el("dl", { class: "goal-cells" }, windows.map(w => windowCell(p, w)), budgetCell(p), burnCell(p)), daysOf(p));
}
