// The rule in force among its shadows, and the price of each objective.

import { Chart } from "/assets/chart.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { section } from "/assets/section.js";
import { attainment, count, dollars, share, time } from "/assets/format.js";

const leastShare = 1e-5; // the left end of a logarithmic axis; "none late" stands there
const decades = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1];

const at = r => Math.max(leastShare, r.lateShare);

function text(r, force) {
	return `Rule ${r.number}${r.number === force ? ", in force" : ""}\n${r.name}\n${count(r.gpus)} GPUs, ${share(r.lateShare)} late`;
}

function scatter(chart, answer, pool) {
	const rules = answer.rules.filter(r => r.gpus !== null).sort((a, b) => at(a) - at(b)), force = answer.inForce;
	const allowed = answer.objectiveLateShare, inForce = rules.find(r => r.number === force);
	const of = test => rules.map(r => test(r) ? r.gpus : null), most = Math.max(0.1, ...rules.map(at));

	chart.show({
		name: "Rules by late requests and GPUs", x: rules.map(at), isLog: true, xRange: [leastShare * 0.7, Math.min(1.4, most * 1.6)], height: 300, yFrom: "data", noWhen: true,
		show: count, showX: v => decades.some(d => Math.abs(v / d - 1) < 0.01) ? v <= leastShare * 1.01 ? "none" : share(v) : "",
		showAt: v => v <= leastShare ? "none late" : `${share(v)} late`, columnX: "Late share",
		series: [{ name: "would have kept the objective", kind: "points", color: "--lent", line: "--lent-line", size: 6, values: of(r => r.meets && r !== inForce), noValue: true },
			{ name: "would not", kind: "points", color: "--paper", line: "--draining-line", size: 6, values: of(r => !r.meets && r !== inForce), noValue: true },
			{ name: "in force", kind: "points", color: "--hot", line: "--hot-line", size: 13, values: of(r => r === inForce), noValue: true }],
		limits: allowed ? [{ x: allowed, name: `objective ${attainment(pool.objective.attainment)}` }] : [],
		marks: rules.map(r => ({ x: at(r), y: r.gpus, isUnseen: true, text: text(r, force) })),
		summary: `${count(rules.length)} rules, ${count(rules.filter(r => r.meets).length)} would have kept the objective.${inForce ? ` In force: ${text(inForce, force).replace(/\n/g, "; ")}.` : ""}`,
		emptyWords: answer.weighedAt ? "No rule has been tried long enough to be compared." : "The shadows are kept once an hour, by who decides: a copy of a history, or its first hour, has none to show.",
	});
}

function all(answer) {
	const isIn = r => r.number === answer.inForce, rows = [...answer.rules].sort((a, b) => a.gpus - b.gpus);

	return scrolling("All rules", table([{ name: "Rule", isHead: true, of: r => isIn(r) ? `${r.number}, in force` : r.number }, { name: "What it does", of: r => r.name },
		{ name: "GPUs", isNumber: true, of: r => count(r.gpus) }, { name: "A day", isNumber: true, of: r => dollars(r.dollarsPerDay) },
		{ name: "Late", isNumber: true, of: r => share(r.lateShare) }, { name: "Keeps it", of: r => r.meets ? "yes" : "no" }], rows, { caption: "All rules, cheapest first", chosen: isIn }), true);
}

export function rulesPart() {
	const part = section("The rule in force among its shadows", { kind: "two-thirds" });
	const chart = new Chart(), list = el("details", null, el("summary", null, "All rules"), el("div")), words = el("p", { class: "small spaced" });

	part.tools.append(chart.toggle);

	function draw(answer, pool) {
		if (!chart.node.parentNode)
			part.body.append(chart.node, words, list);
		part.note("Each point is a simple rule, tried on the demand really seen. The cheapest that keeps the objective with some care is followed.");
		words.textContent = answer.reason || "";
		scatter(chart, answer, pool);
		list.hidden = !answer.rules.length;
		fill(list.lastChild, all(answer));
	}

	return { node: part.node, part, draw, close: () => chart.close() };
}

function supportWords(record) {
	const words = [];

	if (record.hours !== null)
		words.push(`Judged by ${count(record.hours)} hours on record.`);
	if (record.supportsLateShare !== null)
		words.push(`They say nothing certain about late shares below ${share(record.supportsLateShare)}.`);
	if (record.tierSaving)
		words.push(`Standby and lending save ${share(record.tierSaving)}.`);
	return words.join(" ");
}

export function pricePart() {
	const part = section("The price of each objective", { kind: "third", note: "What keeping another objective would have cost on the same record." });

	function draw(answer, pool) {
		const own = pool.objective ? pool.objective.attainment : null;
		const rows = answer.prices, dearest = Math.max(1e-9, ...rows.map(r => r.dollarsPerDay || 0));
		const isOwn = r => own !== null && Math.abs(r.attainment - own) < 1e-9;

		fill(part.body, rows.length ? scrolling("Prices, as a table", table([{ name: "Kept", isHead: true, of: r => isOwn(r) ? `${attainment(r.attainment)}, yours` : attainment(r.attainment) },
			{ name: "A day", isNumber: true, of: r => r.rule === null ? "none could" : dollars(r.dollarsPerDay) }, { name: "GPU hours", isNumber: true, of: r => count(r.gpuHoursPerDay) },
			{ name: el("span", { class: "unseen" }, "Cost as a bar"), of: r => el("span", { class: "meter", "aria-hidden": "true" }, el("span", { style: { width: `${100 * (r.dollarsPerDay || 0) / dearest}%`, background: "var(--hot)" } })) }],
		rows, { caption: "Price of each objective", chosen: isOwn })) : el("p", { class: "empty" }, "Known once the shadows have seen a few hours."),
		el("p", { class: "small faint spaced" }, supportWords(answer.record), answer.weighedAt ? ` Weighed ${time(answer.weighedAt)}.` : ""));
	}

	return { node: part.node, part, draw, close() {} };
}
