// Demand against capacity by tier, and what was asked of the cloud.

import { get } from "/assets/api.js";
import { Chart, summary } from "/assets/chart.js";
import { el, scrolling, table } from "/assets/dom.js";
import { look, range, rangeParameters } from "/assets/range.js";
import { section } from "/assets/section.js";
import { tiers } from "/assets/tiers.js";
import { count, duration, phrase, plural, time } from "/assets/format.js";

const mostLaunches = 200;

export function xRange() {
	const r = range();

	return [r.from, r.to];
}

export function capacitySeries(c) {
	return [
		...tiers.map(t => ({ name: t.name, kind: "area", color: t.color, line: t.line, isHatched: t.isHatched, values: c[t.key] })),
		...(c.draining && c.draining.some(v => v) ? [{ name: "Draining", kind: "line", color: "--draining-line", width: 1, values: c.draining }] : []),
		{ name: "Decided", kind: "steps", color: "--asked", isDashed: true, width: 1.5, values: c.decided },
		{ name: "Demand", kind: "line", color: "--demand", width: 2, values: c.demand },
	];
}

const isGrowth = l => !/shrink|release|delete|stop|remove|cancel/i.test(l.verb || "");
const isBad = l => l.outcome && l.outcome !== "done";

function sentence(l) {
	const end = l.outcome ? `${phrase(l.outcome)}${l.endedAt ? ` after ${duration((Date.parse(l.endedAt) - Date.parse(l.askedAt)) / 1000)}` : ""}` : "under way";

	return `${time(l.askedAt)}\n${l.group}: ${phrase(l.verb)}${l.target === null ? "" : ` to ${count(l.target)}`}${l.machineCount ? ` (${plural(l.machineCount, "machine")})` : ""}\n${end}`;
}

function markOf(l) {
	return { x: Date.parse(l.askedAt) / 1000, shape: isBad(l) ? "cross" : isGrowth(l) ? "up" : "down", color: isBad(l) ? "--late" : "--asked", text: sentence(l) };
}

function launchTable(launches) {
	const text = l => sentence(l).split("\n");

	return table([{ name: "Asked at", isHead: true, of: l => time(l.askedAt) }, { name: "Node group", of: l => l.group },
		{ name: "What", of: l => text(l)[1].slice(l.group.length + 2) }, { name: "Became", of: l => text(l)[2] }], launches, { caption: "What was asked of the cloud" });
}

export function words(series) {
	const names = { tick: "every tick", "5m": "means of 5 minutes or more", hour: "means of hours", day: "means of days" };

	return names[series.resolution] || "";
}

/** { node, load(series, launches), close } */
export function capacityPart() {
	const part = section("Demand and capacity", { note: "Replicas by tier, stacked, with demand over them. Drag to zoom in." });
	const chart = new Chart(), asked = new Chart(), title = el("div", { class: "card-head spaced" }, el("h3", null, "Asked of the cloud"), el("div", { class: "tools" }, asked.toggle)), asks = el("details", { hidden: true }, el("summary"), el("div"));

	part.tools.append(chart.toggle);

	function draw(series, launches) {
		const c = series.columns;

		if (!chart.node.parentNode)
			part.body.append(chart.node, title, asked.node, asks);
		chart.show({
			name: "Demand and capacity", x: c.at, series: capacitySeries(c), isTime: true, xRange: xRange(), show: count, height: 320, marks: launches.map(markOf),
			onRange: look, summary: summary([{ name: "Demand", values: c.demand }, { name: "Hot", values: c.hot }], count),
		});
		asked.show({
			name: "Asked of the cloud", x: c.at, isTime: true, xRange: xRange(), show: count, height: 110, yFrom: "signed", onRange: look,
			series: [{ name: "Started", kind: "bars", color: "--asked", line: "--asked", values: c.asked }, { name: "Let go", kind: "bars", color: "--draining-line", line: "--draining-line", values: c.released.map(v => v ? -v : v), show: v => count(v ? -v : v) }],
			summary: summary([{ name: "Started", values: c.asked }, { name: "Let go", values: c.released }], count),
		});
		asks.hidden = !launches.length;
		asks.firstChild.textContent = `What was asked of the cloud (${count(launches.length)}${launches.length === mostLaunches ? " newest" : ""})`;
		if (asks.open || !asks.dataset.ready) {
			asks.lastChild.replaceChildren(scrolling("What was asked of the cloud", launchTable(launches), true));
			asks.dataset.ready = "true";
		}
	}

	return { node: part.node, part, draw, close: () => { chart.close(); asked.close(); } };
}

export async function launchesOf(pool) {
	const { from, to } = rangeParameters();
	const answer = await get("/launches", { from, to, count: mostLaunches }).catch(() => ({ items: [] }));
	const groups = new Set((pool.groups || []).map(g => g.name));

	return answer.items.filter(l => !groups.size || groups.has(l.group)).reverse();
}
