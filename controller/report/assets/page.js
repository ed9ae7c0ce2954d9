/*
 * Lays the numbers of the run out: tables, and charts through drawChart(host, spec):
 *   spec.x, xKind ("time" seconds since the epoch, "label", "log"), series [{name, values, drawn, show, shape
 *   (area, line, step, bars, none), color, texture, dash, scale, merge}], limits [{y, name}], marks [{x, y, sign, text}],
 *   xLimits [{x, name}], isFree (the y axis need not begin at 0).
 */
"use strict";

const numbers = JSON.parse(document.getElementById("numbers").textContent);
const drawn = []; /* charts on the page: {host, spec, resize} */

const fixed = (v, places) => v.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
const count = v => fixed(v, 0);
const decimal = v => fixed(v, Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 2);
const percent = v => `${fixed(v * 100, v > 0 && v < 0.001 ? 3 : 2)} %`;
const shortPercent = v => `${+(v * 100).toPrecision(6)} %`;
const dollars = v => `$${fixed(v, Math.abs(v) < 100 ? 2 : 0)}`;
const shortNumber = v => Math.abs(v) >= 1e4 ? `${+(v / 1e3).toPrecision(3)}k` : String(+v.toPrecision(3));
const when = s => new Date(s * 1000).toISOString().replace("T", " ").slice(0, 19);

function seconds(s) {
	if (s < 60)
		return `${+s.toPrecision(3)} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min${s % 60 >= 1 ? ` ${Math.floor(s % 60)} s` : ""}`;
	if (s < 172800)
		return `${Math.floor(s / 3600)} h${s % 3600 >= 60 ? ` ${Math.floor(s % 3600 / 60)} min` : ""}`;
	return `${Math.floor(s / 86400)} d${s % 86400 >= 3600 ? ` ${Math.floor(s % 86400 / 3600)} h` : ""}`;
}

function element(name, attributes, ...children) {
	const node = document.createElement(name);
	for (const key in attributes)
		node.setAttribute(key, attributes[key]);
	node.append(...children);
	return node;
}

/* columns: [title, value of a row, class]. */
function tableOf(caption, columns, rows) {
	const table = element("table", { class: "data" }, element("caption", { class: "hint" }, caption));
	table.append(element("thead", {}, element("tr", {},
		...columns.map(c => element("th", { scope: "col", class: c[2] || "" }, c[0])))));
	const body = element("tbody", {});
	for (const row of rows)
		body.append(element("tr", {}, ...columns.map(c => element("td", { class: c[2] || "" }, c[1](row)))));
	table.append(body);
	return table;
}

/* At most 200 rows: runs of points are merged as each series says. */
function numbersOf(spec) {
	const step = Math.ceil(spec.x.length / 200), rows = [];
	for (let from = 0; from < spec.x.length; from += step) {
		const to = Math.min(from + step, spec.x.length);
		rows.push({ x: spec.x[to - 1], values: spec.series.map(s => merged(s.values.slice(from, to), s.merge)) });
	}
	return tableOf(step > 1 ? `Each row covers ${step} points of the chart.` : "", [
		[spec.xLegend || "at", row => spec.showAt(row.x)],
		...spec.series.map((s, i) => [s.name, row => row.values[i] == null ? "–" : s.show(row.values[i]), "number"]),
	], rows);
}

function merged(values, how) {
	const there = values.filter(v => v != null);
	if (!there.length)
		return null;
	if (how === "last")
		return there[there.length - 1];
	if (how === "most")
		return Math.max(...there);
	const sum = there.reduce((a, b) => a + b, 0);
	return how === "sum" ? sum : sum / there.length;
}

function figure(parent, spec) {
	const host = element("div", { class: "chart", role: "img", tabindex: "0", "aria-label": `${spec.title}. ${spec.says || ""}` });
	const table = element("div", { class: "scroll tall", tabindex: "0" });
	const details = element("details", {}, element("summary", {}, `Numbers of “${spec.title}”`), table);
	details.addEventListener("toggle", () => details.open && table.replaceChildren(numbersOf(spec)));
	parent.append(element("figure", {}, element("h3", {}, spec.title), element("figcaption", {}, spec.says || ""), host, details));
	drawn.push({ host, spec });
}

/* Areas on top of each other; the topmost is painted first. */
function stacked(layers) {
	const below = [];
	return layers.map(layer => {
		layer.drawn = layer.values.map((v, i) => below[i] = (below[i] || 0) + v);
		return { shape: "area", show: decimal, ...layer };
	}).reverse();
}

function times(pool) {
	let at = numbers.start_s;
	return pool.ticks.map(n => at += n * numbers.tick_s);
}

/* The parts of an explanation, one a line; all of them unless `titles` says which. */
function reasonOf(d, titles) {
	const lines = [];
	for (let i = 0; i + 1 < d.reasons.length; i += 2)
		if (!titles || titles.includes(d.reasons[i]))
			lines.push(`${d.reasons[i]}: ${d.reasons[i + 1]}`);
	if (lines.length)
		return lines.join("\n");
	return `Wished ${count(d.wished)}, decided ${count(d.decided)}${d.held_by ? `; held by ${d.held_by}` : ""}.`;
}

function reasonCell(d) {
	const lines = reasonOf(d).split("\n");
	return lines.length < 2 ? lines[0] : element("details", {}, element("summary", {}, lines[0]), lines.slice(1).join("\n"));
}

function decisionMarks(pool) {
	/* Equal changes take turns by their index with its bits reversed, so that marks spread over the time. */
	const spread = i => parseInt(i.toString(2).padStart(10, "0").split("").reverse().join(""), 2);
	return pool.decisions.map((d, i) => ({
		x: numbers.start_s + d.end_s, y: d.decided, sign: d.decided > d.before ? "▲" : "▼", color: "--mark", size: 9,
		weight: Math.abs(d.decided - d.before), turn: spread(i),
		text: `${when(numbers.start_s + d.end_s)}: ${count(d.before)} → ${count(d.decided)} replicas\n${reasonOf(d, ["Decided", "Seen", "Wished", "Held by"])}`,
	})).sort((a, b) => b.weight - a.weight || a.turn - b.turn);
}

const timeChart = (pool, x) => ({
	x, xKind: "time", showAt: when, showX: when, xLegend: "UTC", group: pool.name, shadeUntil: numbers.start_s + numbers.warm_up_s,
});

function capacityChart(pool, x) {
	const t = pool.timeline, some = name => t[name].some(v => v > 0);
	const layers = [
		{ name: "ready", values: t.ready, color: "--hot" },
		{ name: "starting", values: t.starting, color: "--starting", texture: "stripes" },
		{ name: "draining", values: t.draining, color: "--draining", texture: "lines" },
		{ name: "lent", values: t.lent, color: "--lent", texture: "cross" },
		{ name: "standby", values: t.standby, color: "--standby", texture: "lines" },
	].filter(layer => layer.name === "ready" || some(layer.name));
	return {
		...timeChart(pool, x), title: "Demand against capacity by tier", yName: "replicas", showY: shortNumber, height: 340,
		says: "Areas are capacity, stacked; the line is demand. ▲ and ▼ are the largest decisions: point at one for its reason. " +
			"Drag to zoom, double-click to see all.",
		series: [...stacked(layers),
			{ name: "demand", values: t.demand, color: "--demand", shape: "line", width: 1.8, show: decimal },
			{ name: "largest demand", values: t.demand_most, color: "--demand", shape: "none", show: decimal, merge: "most" }],
		marks: decisionMarks(pool), mostMarks: 40,
	};
}

function waitChart(pool, x) {
	const t = pool.timeline;
	const wait = t.waiting.map((w, i) => t.started[i] ? w * pool.ticks[i] * numbers.tick_s / t.started[i] : w > 0 ? null : 0);
	return {
		...timeChart(pool, x), title: "Queue wait", yName: "seconds", showY: shortNumber,
		says: "Mean wait of the requests that started, by Little's law, and the longest queue.", y2Name: "waiting", showY2: shortNumber,
		series: [{ name: "mean wait", values: wait, color: "--wait", shape: "step", show: v => seconds(v) },
			{ name: "longest queue", values: t.waiting_most, color: "--draining", shape: "step", dash: [3, 3], scale: "y2",
				show: count, merge: "most" }],
		limits: [{ y: pool.objective_wait_s, name: `objective ${seconds(pool.objective_wait_s)}` }],
	};
}

function lateChart(pool, x) {
	const t = pool.timeline, from = numbers.start_s + numbers.warm_up_s;
	let late = 0, arrived = 0;
	const share = x.map((at, i) => {
		if (at <= from)
			return null;
		late += t.late[i];
		arrived += t.arrived[i];
		return arrived ? late / arrived : null;
	});
	const allowed = pool.objective_late_ppm / 1e6;
	return {
		...timeChart(pool, x), title: "Late requests", yName: "share so far", showY: shortPercent, y2Name: "late", showY2: shortNumber,
		says: "The line is the share of late requests since the warm-up; bars are late requests.",
		series: [{ name: "late requests", values: t.late, color: "--late", shape: "bars", scale: "y2", show: count, merge: "sum" },
			{ name: "share so far", values: share, color: "--demand", shape: "line", width: 1.8, show: percent, merge: "last" }],
		limits: allowed > 0 ? [{ y: allowed, name: `objective ${shortPercent(allowed)}` }] : [], leastTop: allowed * 1.5,
	};
}

function costChart(pool, x) {
	const t = pool.timeline;
	let sum = 0;
	const total = t.micro_dollars.map(v => (sum += v) / 1e6);
	const hourly = t.micro_dollars.map((v, i) => v / 1e6 / (pool.ticks[i] * numbers.tick_s / 3600));
	return {
		...timeChart(pool, x), title: "Cost", yName: "dollars per hour", showY: shortNumber, y2Name: "dollars so far", showY2: shortNumber,
		says: "What the machines cost, stopped ones included, and the sum so far.",
		series: [{ name: "per hour", values: hourly, color: "--cost-fill", shape: "area", show: dollars },
			{ name: "so far", values: total, color: "--cost", shape: "line", width: 1.8, scale: "y2", show: dollars, merge: "last" }],
	};
}

function ruleChart(pool, x) {
	const t = pool.timeline;
	return {
		...timeChart(pool, x), title: "The rule in force", yName: "margin over demand", showY: v => `${shortNumber(v)} %`,
		y2Name: "hold, minutes", showY2: shortNumber,
		says: "Margin kept over demand (line) and how long a peak is remembered (dashes).",
		series: [{ name: "margin", values: t.margin_permille.map(v => v / 10), color: "--hot", shape: "step", width: 2,
				show: v => `${+v.toPrecision(4)} %`, merge: "last" },
			{ name: "hold", values: t.hold_ms.map(v => v / 60000), color: "--late", shape: "step", dash: [6, 4], scale: "y2",
				show: v => seconds(v * 60), merge: "last" }],
	};
}

function priceChart(pool) {
	const prices = pool.prices.filter(p => p.dollars_per_hour !== null);
	const label = i => prices[i] ? shortPercent(1 - prices[i].late_ppm / 1e6) : "";
	const now = prices.findIndex(p => p.late_ppm === pool.objective_late_ppm);
	return {
		x: prices.map((p, i) => i), xKind: "label", showX: label, showAt: label, xLegend: "attainment",
		title: "The price of the objective", yName: "dollars per hour", showY: shortNumber,
		says: "The cheapest rule that would have kept each objective on the record of this run.",
		series: [{ name: "dollars per hour", values: prices.map(p => p.dollars_per_hour), color: "--cost", shape: "line", points: true,
			width: 2, show: dollars },
			{ name: "GPUs", values: prices.map(p => p.gpus), color: "--cost", shape: "none", show: decimal, scale: "gpus" }],
		marks: now < 0 ? [] : [{ x: now, y: prices[now].dollars_per_hour, sign: "◆", size: 18, color: "--limit",
			text: `Your objective, ${label(now)}: ${dollars(prices[now].dollars_per_hour)} per hour` }],
	};
}

function decisionTable(parent, pool) {
	if (!pool.decisions.length)
		return;
	const rows = pool.decisions;
	parent.append(element("h3", {}, "Decisions"), element("div", { class: "scroll tall", tabindex: "0" },
		tableOf("The largest change of each stretch of time.", [
			["UTC", d => when(numbers.start_s + d.end_s), "time"],
			["From", d => count(d.before), "number"], ["To", d => count(d.decided), "number"],
			["Wished", d => count(d.wished), "number"], ["Held by", d => d.held_by || "–"],
			["Changes", d => count(d.changes), "number"], ["Reason", reasonCell, "reason"],
		], rows)));
}

function ruleTable(parent, pool) {
	if (!pool.rules.length)
		return;
	const end = pool.ticks.reduce((a, b) => a + b, 0) * numbers.tick_s;
	const rows = pool.rules.map((r, i) => ({ ...r, length: (i + 1 < pool.rules.length ? pool.rules[i + 1].from_s : end) - r.from_s }));
	const left = pool.rules_left_out ? ` ${pool.rules_left_out} earlier ones are left out.` : "";
	parent.append(element("h3", {}, "Rules that were in force"), element("div", { class: "scroll tall", tabindex: "0" },
		tableOf(`Late share: on the record, when the rule was adopted.${left}`, [
			["From, UTC", r => when(numbers.start_s + r.from_s), "time"], ["For", r => seconds(Math.max(0, r.length)), "number"],
			["Rule", r => r.text], ["Late share", r => percent(r.share_ppm / 1e6), "number"],
			["Allowed then", r => percent(r.target_ppm / 1e6), "number"],
		], rows)));
}

function poolSection(pool, index) {
	const section = element("section", { id: `pool-${index}` }, element("h2", {}, `Pool ${pool.name}`));
	const pair = () => section.appendChild(element("div", { class: "pair" }));
	const x = times(pool);
	document.getElementById("pools").append(section);
	if (!x.length) {
		section.append("Nothing was simulated.");
		return;
	}
	figure(section, capacityChart(pool, x));
	const first = pair(), second = pair();
	figure(first, waitChart(pool, x));
	figure(first, lateChart(pool, x));
	if (pool.is_priced)
		figure(second, costChart(pool, x));
	if (pool.is_priced && pool.prices.some(p => p.dollars_per_hour !== null))
		figure(second, priceChart(pool));
	if (pool.rules.length)
		figure(section, ruleChart(pool, x));
	rivalPart(section, pool);
	ruleTable(section, pool);
	decisionTable(section, pool);
}

function verdict(pool, score) {
	const late = score.late_share;
	if (pool.violation_cost > 0)
		return [percent(late), ""];
	return late * 1e6 <= pool.objective_late_ppm ? [`✓ ${percent(late)}`, "good"] : [`✗ ${percent(late)}`, "bad"];
}

/* Late in the best and in the worst draw, and how many kept the objective. */
function drawsOf(r) {
	if (r.draws < 2)
		return "–";
	const range = `${percent(r.late_share_least)} to ${percent(r.late_share_most)}`;
	return r.pool.violation_cost > 0 ? range : `${range}, met in ${r.draws_met} of ${r.draws}`;
}

function summaryTable() {
	const rows = [];
	for (const pool of numbers.pools.filter(p => p.scored))
		for (const part of ["scored", "whole"])
			rows.push({ pool, part, ...pool[part] });
	const column = (title, show) => [title, show, "number"];
	document.getElementById("summary-table").append(tableOf("", [
		["Pool", r => r.pool.name], ["Part", r => r.part],
		["Objective", r => r.pool.violation_cost > 0 ? `$${r.pool.violation_cost} a late request`
			: `${shortPercent(1 - r.pool.objective_late_ppm / 1e6)} within ${seconds(r.pool.objective_wait_s)}`],
		column("Late share", r => element("span", { class: verdict(r.pool, r)[1] }, verdict(r.pool, r)[0])),
		column("Draws", r => drawsOf(r)),
		column("Requests", r => count(r.requests)), column("Wait p50", r => r.wait_p50_s === null ? "–" : seconds(r.wait_p50_s)),
		column("Wait p99", r => r.wait_p99_s === null ? "–" : seconds(r.wait_p99_s)), column("GPU hours", r => decimal(r.gpu_hours)),
		column("Cost", r => r.pool.is_priced ? dollars(r.dollars) : "–"), column("Starts", r => count(r.starts)),
		column("Removals", r => count(r.removals)),
	], rows));
}

function header() {
	const length = numbers.pools[0] ? numbers.pools[0].ticks.reduce((a, b) => a + b, 0) * numbers.tick_s : 0;
	const setting = numbers.setting ? ` (${numbers.setting})` : "", notes = [];
	document.getElementById("run").textContent = `${numbers.policy}${setting} on ${numbers.traffic}: ${seconds(length)} from ` +
		`${when(numbers.start_s)} UTC, a decision every ${seconds(numbers.tick_s)}, seed ${numbers.seed}.`;
	document.getElementById("program").textContent = `Made by ${numbers.program}. Times are UTC.`;
	if (numbers.stopped)
		notes.push(`The run was stopped early: ${count(numbers.ticks)} of ${count(numbers.ticks_planned)} ticks are shown.`);
	const draws = numbers.pools[0]?.scored ? numbers.pools[0].scored.draws : 1;
	if (draws > 1)
		notes.push(`Figures of tables are means of ${draws} draws of chance; timelines and decisions are of the first draw.`);
	document.getElementById("notes").hidden = !notes.length;
	document.getElementById("notes").textContent = notes.join(" ");
	if (numbers.pools.length > 1)
		numbers.pools.forEach((pool, i) => document.getElementById("pages").append(element("a", { href: `#pool-${i}` }, pool.name)));
}

function drawAll() {
	for (const chart of drawn)
		chart.resize = drawChart(chart.host, chart.spec);
	document.documentElement.dataset.charts = drawn.length;
}

header();
summaryTable();
numbers.pools.forEach(poolSection);
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let width = document.body.clientWidth;
addEventListener("resize", () => {
	if (document.body.clientWidth === width)
		return;
	width = document.body.clientWidth;
	for (const chart of drawn)
		chart.resize(chart.host.clientWidth);
});
