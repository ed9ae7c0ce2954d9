// The rule in force among its shadows, and the price of each objective.

import { Chart } from "/assets/chart.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { section } from "/assets/section.js";
import { attainment, count, dollars, duration, share, time } from "/assets/words.js";

const leastShare = 1e-5; // the left end of a logarithmic axis; "none late" stands there

function settings(r) {
	const parts = [];

	if (r.margin !== null && r.margin !== undefined)
		parts.push(`${r.margin >= 0 ? "+" : "−"}${attainment(Math.abs(r.margin))} over demand`);
	if (r.hold !== null && r.hold !== undefined)
		parts.push(`hold ${duration(r.hold)}`);
	if (r.chase)
		parts.push(`chase ×${count(r.chase)}`);
	if (r.standby)
		parts.push(`${share(r.standby)} standing by`);
	return parts.join(", ");
}

function scatter(chart, answer, pool) {
	const shown = answer.rules.filter(r => r.lateShare !== null && r.gpuHours !== null);
	const at = r => Math.max(leastShare, r.lateShare);
	const rules = [...shown].sort((a, b) => at(a) - at(b));
	const allowed = pool.objective && pool.objective.attainment !== null ? 1 - pool.objective.attainment : null;
	const force = answer.inForce && rules.find(r => r.name === answer.inForce.name);
	const of = test => rules.map(r => test(r) ? r.gpuHours : null);
	const most = Math.max(0.1, ...rules.map(at)), decades = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1];

	chart.show({
		name: "Rules by late requests and GPU hours", x: rules.map(at), isLog: true, xRange: [leastShare * 0.7, Math.min(1.4, most * 1.6)], height: 300, yFrom: "data",
		show: count, showX: v => decades.some(d => Math.abs(v / d - 1) < 0.01) ? v <= leastShare * 1.01 ? "none" : share(v) : "", showAt: v => v <= leastShare ? "none late" : `${share(v)} late`,
		columnX: "Late share", noWhen: true,
		series: [{ name: "meets the objective", kind: "points", color: "--lent", line: "--lent-line", size: 6, values: of(r => r.meets && r !== force), noValue: true },
			{ name: "does not", kind: "points", color: "--paper", line: "--draining-line", size: 6, values: of(r => !r.meets && r !== force), noValue: true },
			{ name: "in force", kind: "points", color: "--hot", line: "--hot-line", size: 13, values: of(r => r === force), noValue: true }],
		limits: allowed ? [{ x: allowed, name: `objective ${attainment(1 - allowed)}` }] : [],
		marks: rules.map(r => ({ x: at(r), y: r.gpuHours, shape: "ring", size: 0.01, color: "--paper", text: `Rule ${r.name}${r === force ? ", in force" : ""}\n${settings(r)}\n${count(r.gpuHours)} GPU hours, ${share(r.lateShare)} late` })),
		summary: `${count(rules.length)} rules; ${count(rules.filter(r => r.meets).length)} would have met the objective.` + (force ? ` In force: rule ${force.name}, ${count(force.gpuHours)} GPU hours, ${share(force.lateShare)} late.` : ""),
		emptyWords: "No rule has been tried long enough to be compared. This fills within the first hours.",
	});
}

export function rulesPart() {
	const part = section("The rule in force among its shadows", { kind: "two-thirds" });
	const chart = new Chart(), list = el("details", null, el("summary", null, "All rules"), el("div"));

	part.tools.append(chart.toggle);

	function draw(answer, pool) {
		const f = answer.inForce;

		if (!chart.node.parentNode)
			part.body.append(chart.node, list);
		part.note(f ? `Rule ${f.name}: ${settings(f)}. It is the cheapest that would have met the objective on what was really seen.`
			: "Each point is a simple rule, tried on the demand really seen. The cheapest that meets the objective is followed.");
		scatter(chart, answer, pool);
		const rows = [...answer.rules].sort((a, b) => a.gpuHours - b.gpuHours);
		const isIn = r => Boolean(f) && r.name === f.name;
		fill(list.lastChild, scrolling("All rules", table([{ name: "Rule", isHead: true, of: r => isIn(r) ? `${r.name}, in force` : r.name }, { name: "Settings", of: settings },
			{ name: "GPU hours", isNumber: true, of: r => count(r.gpuHours) }, { name: "Cost", isNumber: true, of: r => dollars(r.dollars) },
			{ name: "Late", isNumber: true, of: r => share(r.lateShare) }, { name: "Meets", of: r => r.meets ? "yes" : "no" }], rows, { caption: "All rules, cheapest first", chosen: isIn }), true));
	}

	return { node: part.node, part, draw, close: () => chart.close() };
}

export function pricePart() {
	const part = section("The price of each objective", { kind: "third", note: "What keeping another objective would have cost on the same record." });

	function draw(answer, pool) {
		const own = pool.objective ? pool.objective.attainment : null;
		const rows = answer.prices || [], dearest = Math.max(1e-9, ...rows.map(r => r.dollarsPerDay || 0));
		const isOwn = r => own !== null && Math.abs(r.attainment - own) < 1e-9;
		const supports = answer.record && answer.record.supports;

		fill(part.body, rows.length ? scrolling("Prices, as a table", table([{ name: "Kept", isHead: true, of: r => isOwn(r) ? `${attainment(r.attainment)}, yours` : attainment(r.attainment) },
			{ name: "A day", isNumber: true, of: r => dollars(r.dollarsPerDay) }, { name: "GPU hours", isNumber: true, of: r => count(r.gpuHours) },
			{ name: el("span", { class: "unseen" }, "Cost as a bar"), of: r => el("span", { class: "meter", "aria-hidden": "true" }, el("span", { style: { width: `${100 * (r.dollarsPerDay || 0) / dearest}%`, background: "var(--hot)" } })) }],
		rows, { caption: "Price of each objective", chosen: isOwn })) : el("p", { class: "empty" }, "Known once the shadows have seen a few hours."),
		supports !== null && supports !== undefined ? el("p", { class: "small faint spaced" }, supportWords(answer.record)) : null);
	}

	return { node: part.node, part, draw, close() {} };
}

function supportWords(record) {
	const what = typeof record.supports === "number" ? `The record says nothing certain about late shares below ${share(record.supports)}.` : record.supports;

	return record.since ? `${what} It begins ${time(record.since, { seconds: false, year: true })}.` : what;
}
