// Pools at a glance: who needs a look first, what each holds against its demand, late requests, cost, and the trend.

import { link } from "/assets/address.js";
import { get, poolPath } from "/assets/api.js";
import { el, fill, keyed, say, svg } from "/assets/dom.js";
import { rangeParameters } from "/assets/range.js";
import { reportParts } from "/assets/report.js";
import { emptiness, section } from "/assets/section.js";
import { sign, standing, urgency } from "/assets/pool_status.js";
import { tierBar, tiers } from "/assets/tiers.js";
import { count, dollars, duration, objective, share } from "/assets/format.js";

const trendPoints = 96;

export function figure(name, value, note) {
	return el("div", { class: "figure" }, el("dt", null, name), el("dd", { class: "value" }, value), el("dd", { class: "note" }, note || ""));
}

function trend(columns) {
	const n = columns.at.length, top = Math.max(1, ...columns.hot.map(v => v || 0), ...columns.demand.map(v => v || 0));
	const x = i => (100 * i / Math.max(1, n - 1)).toFixed(2), y = v => (32 - 30 * v / top).toFixed(2);
	let area = "", line = "", isOn = false;

	columns.hot.forEach((v, i) => {
		if (v === null)
			return;
		area += `${area ? "H" + x(i) + "V" : "M0 32V"}${y(v)}`;
	});
	columns.demand.forEach((v, i) => {
		if (v !== null)
			line += `${isOn ? "L" : "M"}${x(i)} ${y(v)}`;
		isOn = v !== null;
	});
	return svg("svg", { class: "spark", viewBox: "0 0 100 33", preserveAspectRatio: "none", "aria-hidden": "true" },
		svg("path", { class: "spark-area", d: area ? `${area}H100V32Z` : "" }), svg("path", { class: "spark-line", d: line }));
}

/** What a pool costs an hour; a pool without prices has none. */
export const hourly = p => p.dollarsPerHour === null ? "no price" : `${dollars(p.dollarsPerHour)}/h`;

function fact(name, value, note) {
	return el("div", null, el("dt", null, name), el("dd", null, value, el("small", null, note || "")));
}

function facts(p) {
	const day = (p.late && p.late.day) || {};
	const allowed = p.objective && p.objective.attainment !== null ? `of ${share(1 - p.objective.attainment)}` : "";

	return [fact("Waiting", count(p.waiting), p.waitSeconds ? duration(p.waitSeconds) : ""), fact("Late in a day", share(day.share), allowed),
		fact("Cost", hourly(p))];
}

function rowOf() {
	const anchor = el("a"), state = el("span"), goal = el("span", { class: "small faint" }), space = el("span", { class: "tag" });
	const bar = el("div"), spark = el("div"), list = el("dl", { class: "pool-facts" }), why = el("p", { class: "pool-why" });
	const node = el("li", { class: "pool-row" },
		el("div", { class: "pool-name" }, anchor, el("span", { class: "tools" }, state, space), goal), bar, spark, list, why);

	node.parts = { anchor, state, goal, space, bar, spark, list, why };
	return node;
}

function drawRow(node, p, largest) {
	const { parts } = node, s = standing(p);

	say(parts.anchor, p.name);
	parts.anchor.setAttribute("href", link(["pool", p.namespace, p.name]));
	if (parts.said !== s.kind + s.word) {
		fill(parts.state, sign(s.kind, s.word));
		parts.said = s.kind + s.word;
	}
	say(parts.space, `${p.namespace} · ${p.class || "no class"}`);
	say(parts.goal, objective(p.objective));
	fill(parts.bar, tierBar(p, largest));
	fill(parts.list, facts(p));
	say(parts.why, s.why);
	parts.why.hidden = !s.why;
}

function key() {
	return el("ul", { class: "legend" }, tiers.map(t => el("li", null, el("span", { class: `key tier-${t.key}` }), t.name)),
		el("li", null, el("span", { class: "key", "data-shape": "line", style: { background: "var(--demand)" } }), "Demand"));
}

export function open(host, parts, overview) {
	const list = el("ul", { class: "pool-list" });
	const part = section("Now", { kind: "bare", note: "What is held against what requests keep busy, in replicas. What needs a look comes first." });

	const rangePlace = el("div", { class: "now-range" });

	part.node.classList.add("now");
	part.node.firstChild.append(el("div", { class: "now-tools" }, key(), rangePlace));
	const report = reportParts(() => overview.history && overview.history.to);

	host.append(report.above, part.node, report.below);

	async function trends(pools) {
		const { from, to } = rangeParameters();

		await Promise.all(pools.map(async (p, i) => {
			try {
				const series = await get(poolPath(p, "/series"), { from, to, points: trendPoints });
				fill(list.children[i].parts.spark, trend(series.columns));
			} catch {
				// the pool's own page tells what is wrong; a trend is not worth a message here
			}
		}));
	}

	async function load(isAgain) {
		await Promise.all([report.load(isAgain), loadPools()]);
	}

	async function loadPools() {
		await part.load(() => get("/pools"), answer => {
			const pools = [...answer.items].sort((a, b) => urgency(a) - urgency(b));

			if (!pools.length) {
				fill(part.body, emptiness("No pool yet. Apply a WarmPool, or start with preheat simulate -f FILE; it shows here with its first tick."));
				return;
			}
			if (list.parentNode !== part.body)
				fill(part.body, list);
			const largest = Math.max(...pools.map(p => Math.max(p.demand || 0, tiers.reduce((sum, t) => sum + (p[t.key] || 0), 0))));
			const draw = (node, p) => drawRow(node, p, largest);
			keyed(list, pools, p => `${p.namespace}/${p.name}`, p => { const n = rowOf(p); draw(n, p); return n; }, draw);
			trends(pools);
		});
	}

	return { title: "Overview", heading: report.heading, under: report.under, load, close: report.close, isRanged: true, rangePlace };
}

