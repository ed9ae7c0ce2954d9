// How long requests waited against the objective, what is left of its error budget, and how fast it burns.

import { Chart, summary } from "/assets/chart.js";
import { xRange } from "/assets/capacity.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { look } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { brief, count, duration, objective, phrase, share } from "/assets/format.js";

export function waitPart() {
	const part = section("Queue wait against the objective", { kind: "two-thirds" });
	const chart = new Chart();

	part.tools.append(chart.toggle);

	function draw(series, pool) {
		const c = series.columns, limit = pool.objective ? pool.objective.queueWaitSeconds : null;

		if (!chart.node.parentNode)
			part.body.append(chart.node);
		part.note(`Objective: ${objective(pool.objective)}. Late is what waited longer.`);
		chart.show({
			name: "Queue wait and late requests", x: c.at, isTime: true, xRange: xRange(), height: 240, show: duration, showRight: brief, leastTop: limit || 1, leastTopRight: 4,
			series: [{ name: "Late requests", kind: "bars", scale: "y2", color: "--late-fill", line: "--late", values: c.late, show: count },
				{ name: "Wait", kind: "line", color: "--wait", values: c.waitSeconds }],
			limits: limit ? [{ y: limit, name: `objective ${duration(limit)}` }] : [], onRange: look,
			summary: summary([{ name: "Wait", values: c.waitSeconds }], duration),
		});
	}

	return { node: part.node, part, draw, close: () => chart.close() };
}

function burn(w) {
	const kind = w.burnRate === null ? "plain" : w.burnRate > 1 ? "bad" : w.burnRate > 0.75 ? "warn" : "good";

	return el("span", { class: "meter", "data-kind": kind, "aria-hidden": "true" },
		el("span", { style: { width: `${Math.min(100, 50 * (w.burnRate || 0))}%` } }), el("span", { class: "meter-mark", style: { left: "50%" } }));
}

const rate = v => v === null || v === undefined ? "–" : `${v.toFixed(v < 10 ? 2 : 0)}×`;

export function budgetPart() {
	const part = section("Error budget", { kind: "third" });

	function draw(o) {
		const left = o.budgetLeft, isKnown = left !== null && left !== undefined;
		const kind = !isKnown ? "plain" : left < 0 ? "bad" : left < 0.25 ? "warn" : "good";

		fill(part.body,
			el("p", { class: "figure" }, el("span", { class: "budget-value" }, isKnown ? share(left) : "not known yet"), el("span", { class: "faint" }, isKnown && left < 0 ? " spent beyond it" : " left")),
			el("span", { class: "meter", "data-kind": kind, "aria-hidden": "true" }, el("span", { style: { width: `${100 * Math.max(0, Math.min(1, left || 0))}%` } })),
			el("p", { class: "small faint" }, "Burn rate: how fast the budget is spent; at 1× (the mark) it lasts just as long as the objective's window."),
			scrolling("Burn rates, as a table", table([{ name: "Last", isHead: true, of: w => w.name }, { name: "Late", isNumber: true, of: w => `${share(w.share)}` }, { name: "Of", isNumber: true, of: w => brief(w.requests) },
				{ name: "Longest", isNumber: true, of: w => duration(w.waitSecondsMax) }, { name: "Burn", isNumber: true, of: w => rate(w.burnRate) }, { name: el("span", { class: "unseen" }, "Burn rate as a bar"), of: burn }], o.windows || [], { caption: "Burn rate by window" })));
	}

	return { node: part.node, part, draw, close() {} };
}

const labelWidth = 84;

export function histogramSpec(name, buckets, { show = duration, color = "--wait-fill", line = "--wait", limits = [] } = {}) {
	const whole = buckets.reduce((sum, b) => sum + b.count, 0) || 1;
	const label = i => buckets[i] ? buckets[i].upToSeconds === null ? "more" : `≤ ${show(buckets[i].upToSeconds)}` : "";

	return {
		name, x: buckets.map((b, i) => i), xRange: [-0.2, buckets.length], height: 200, noLegend: true, columnX: "Up to", showAt: label, limits,
		showX: (i, u) => i % Math.max(1, Math.ceil(buckets.length * labelWidth / u.width)) === 0 ? label(i) : "", show: v => share(v), splitsX: () => buckets.map((b, i) => i),
		series: [{ name: "Share", kind: "bars", color, line, values: buckets.map(b => b.count / whole), show: share }],
		summary: `${count(whole)} in all.`,
	};
}

function bounds(b) {
	return b.upperSeconds === null ? `more than ${duration(b.lowerSeconds)}` : `at most ${duration(b.upperSeconds)}`;
}

/** What held the pool when requests were late, and what model servers say of waits. */
export function causesPart() {
	const part = section("Why requests were late", { kind: "half", note: "The last seven days, by what held the pool in the tick in which they were late." });

	function draw(o) {
		const rows = o.causes.filter(c => c.late).sort((a, b) => b.late - a.late), most = Math.max(1, ...rows.map(c => c.late)), wait = o.wait;

		fill(part.body, rows.length ? scrolling("Causes, as a table", table([{ name: "Cause", isHead: true, of: c => phrase(c.cause) }, { name: "Late", isNumber: true, of: c => brief(c.late) },
			{ name: el("span", { class: "unseen" }, "Late requests as a bar"), of: c => el("span", { class: "meter", "aria-hidden": "true" }, el("span", { style: { width: `${100 * c.late / most}%`, background: "var(--late-fill)" } })) }], rows, { caption: "Late requests by cause" }))
			: emptiness("No request was late."),
		wait && (wait.p50 || wait.p99) ? el("p", { class: "small spaced" }, "Model servers say of the last minutes: ", [wait.p50 && `half waited ${bounds(wait.p50)}`, wait.p99 && `99 of a hundred ${bounds(wait.p99)}`].filter(Boolean).join(", "), ".") : null);
	}

	return { node: part.node, part, draw, close() {} };
}
