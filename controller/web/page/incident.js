// One incident: how many were late and why, what was held and asked meanwhile, and the decisions that explain it.

import { here, link } from "/assets/address.js";
import { get, poolPath } from "/assets/api.js";
import { Chart, summary } from "/assets/chart.js";
import { capacitySeries } from "/assets/capacity.js";
import { el, fill, say } from "/assets/dom.js";
import { explainBox } from "/assets/decision.js";
import { decisionRow, logHead, walkable } from "/assets/decision_row.js";
import { secondsOf } from "/assets/incidents.js";
import { sign } from "/assets/pool_status.js";
import { figure } from "/assets/pools.js";
import { emptiness, section } from "/assets/section.js";
import { settings } from "/assets/settings.js";
import { brief, clock, count, duration, phrase, plural, share, time } from "/assets/format.js";

const before = 10 * 60, after = 20 * 60, least = 86400; // seconds that are looked at around it, and searched for its end
const points = 400, mostDecisions = 40;
const calm = 5 * 60; // an incident may still go on

const iso = at => new Date(Math.round(at) * 1000).toISOString();
const minute = at => clock(at).slice(0, 5);
const big = text => text.charAt(0).toUpperCase() + text.slice(1);

function title(i) {
	const isOneMinute = minute(i.from) === minute(i.to);

	return `${i.pool}, ${time(i.from, { seconds: false })}${isOneMinute ? "" : ` to ${minute(i.to)}`}: ${brief(i.late)} requests late`;
}

function figures(i) {
	return el("dl", { class: "figures" },
		figure("Late", brief(i.late), `${share(i.late / Math.max(1, i.requests))} of what started meanwhile`), figure("Lasted", duration(secondsOf(i)), `from ${clock(i.from)}`),
		figure("Longest wait", duration(i.waitSecondsMax), "for the queue of then"), figure("Hot at the worst", count(i.hot), i.starting ? `${plural(i.starting, "more starts", "more start")}` : "none starting"),
		figure("Longest start", duration(i.startSeconds), i.group ? `in ${i.group}` : "none was on its way"), figure("Held by", big(i.refusedBy || (i.limit ? phrase(i.limit) : "–")), i.refusedGroup ? `in ${i.refusedGroup}` : i.startsGivenUp ? `${plural(i.startsGivenUp, "start")} given up` : ""));
}

function why(i, end) {
	const isOver = end - Date.parse(i.to) / 1000 > calm;

	return [sign(isOver ? "good" : "bad", isOver ? `Over since ${minute(i.to)}` : "Goes on"), ` ${big(i.words)}.`, i.limit ? ` Held by ${phrase(i.limit)}.` : ""];
}

export function open(host, parts, overview) {
	const [, namespace, name, from] = parts, pool = { namespace, name }, start = Date.parse(from) / 1000;
	const heading = el("h1", { tabindex: "-1" }, name), under = el("p", { class: "lead" });
	const crumbs = [el("a", { href: link(["pools"]) }, "Overview"), " / ", el("a", { href: link(["incidents"]) }, "Incidents"), " / ", el("a", { href: link(["pool", namespace, name]) }, name)];
	const numbers = el("div"), seen = section("What happened", { note: "Replicas by tier, with demand over them. Between the lines requests were late." });
	const decisions = section("Decisions", { lone: true }), more = section("Go on");
	const held = new Chart(), late = new Chart(), list = el("ol", { class: "log", "aria-label": "Decisions of the incident, oldest first" });
	let isDrawn = false;

	seen.tools.append(held.toggle);
	walkable(list);
	decisions.node.classList.add("two-thirds");
	more.node.classList.add("third");
	host.append(numbers, el("div", { class: "grid" }, seen.node, decisions.node, more.node));

	async function find() {
		const answer = await get("/incidents", { pool: `${namespace}/${name}`, from: iso(start - before), to: iso(start + least) });
		const found = answer.items.find(i => Math.abs(Date.parse(i.from) / 1000 - start) < 1);

		if (!found)
			throw new Error(`No incident of ${name} began at ${time(from)}. The record may no longer hold it.`);
		return found;
	}

	function draw(i, series) {
		const c = series.columns, xRange = [start - before, Date.parse(i.to) / 1000 + after], isTime = true;
		const limits = [{ x: start, name: `late from ${clock(i.from)}` }, { x: Date.parse(i.to) / 1000, name: `to ${clock(i.to)}` }];

		if (!held.node.parentNode)
			fill(seen.body, held.node, el("div", { class: "card-head spaced" }, el("h3", null, "Late and waiting"), el("div", { class: "tools" }, late.toggle)), late.node);
		held.show({ name: "Demand and capacity", x: c.at, isTime, xRange, show: count, height: 300, limits, series: capacitySeries(c),
			summary: summary([{ name: "Demand", values: c.demand }, { name: "Hot", values: c.hot }], count) });
		late.show({ name: "Late and waiting", x: c.at, isTime, xRange, show: count, height: 130,
			series: [{ name: "Late", kind: "bars", color: "--late", line: "--late", values: c.late }, { name: "Waiting", kind: "line", color: "--wait", isDashed: true, width: 1.5, values: c.waiting }],
			summary: summary([{ name: "Late", values: c.late }, { name: "Waiting", values: c.waiting }], count) });
	}

	function drawDecisions(i, page) {
		const worst = el("a", { href: here({ open: `${i.worstTick}/${namespace}/${name}` }) }, `the decision of ${clock(i.worstAt)}`);

		decisions.note(`${page.next ? "The newest " : ""}${plural(page.items.length, "change")} in ${plural(page.ticks, "tick")} up to ${minute(iso(Date.parse(i.to) / 1000 + after))}; in the others nothing changed.`);
		fill(list, [...page.items].reverse().map(decisionRow));
		fill(decisions.body, page.items.length ? el("div", { class: "told" }, logHead(), list) : el("div", { class: "log-end" }, emptiness("Nothing changed meanwhile.")));
		fill(more.body, el("ul", { class: "go-on" },
			el("li", null, "Most were late under ", worst, "."),
			el("li", null, el("a", { href: link(["what-if"], { from: iso(start - 86400), to: iso(Date.parse(i.to) / 1000 + after), pool: `${namespace}/${name}` }) }, "What would have prevented it"), ": decide that day once more with other settings.")),
		explainBox({ tick: i.worstTick, pool: name }, overview));
	}

	async function load(isTick) {
		if (isTick && isDrawn)
			return; // what happened stays
		await seen.load(async () => {
			const i = await find(), to = iso(Date.parse(i.to) / 1000 + after), since = iso(start - before);
			const [series, page] = await Promise.all([get(poolPath(pool, "/series"), { from: since, to, points }),
				get("/decisions", { pool: `${namespace}/${name}`, from: since, to, changed: "true", count: mostDecisions })]);

			return { i, series, page };
		}, ({ i, series, page }) => {
			const end = Date.parse(overview.history.to) / 1000;

			isDrawn = end > Date.parse(i.to) / 1000 + after;
			say(heading, title(i));
			document.title = `${title(i)} – Preheat`;
			fill(under, why(i, end));
			fill(numbers, figures(i));
			draw(i, series);
			drawDecisions(i, page);
		});
	}

	return { title: `Incident of ${name}`, heading, under, crumbs, load, close: () => { held.close(); late.close(); } };
}
