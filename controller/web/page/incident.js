// One incident: how many were late and why, what was held and asked meanwhile, and the decisions that explain it.

import { here, link } from "/assets/address.js";
import { get, poolPath } from "/assets/api.js";
import { Chart, summary } from "/assets/chart.js";
import { capacitySeries } from "/assets/capacity.js";
import { el, fill, say } from "/assets/dom.js";
import { explainBox } from "/assets/decision.js";
import { decisionRow, logHead, walkable } from "/assets/decision_row.js";
import { longestWait, secondsOf } from "/assets/incidents.js";
import { sign } from "/assets/pool_status.js";
import { figure } from "/assets/pools.js";
import { emptiness, section } from "/assets/section.js";
import { settings } from "/assets/settings.js";
import { brief, clock, count, duration, phrase, plural, share, time } from "/assets/format.js";

const before = 10 * 60, after = 20 * 60, least = 86400; // seconds that are looked at around it, and searched for its end
const points = 400, mostDecisions = 100, decisionsAtOnce = 500;
const calm = 5 * 60; // an incident may still go on

const iso = at => new Date(Math.round(at) * 1000).toISOString();
const minute = at => clock(at).slice(0, 5);
const big = text => text.charAt(0).toUpperCase() + text.slice(1);

function title(i) {
	const isOneMinute = minute(i.from) === minute(i.to);

	return `${i.pool}, ${time(i.from, { seconds: false })}${isOneMinute ? "" : ` to ${minute(i.to)}`}: ${brief(i.late)} requests late`;
}

function figures(i, pools) {
	return el("dl", { class: "figures" },
		figure("Late", brief(i.late), `${share(i.late / Math.max(1, i.requests))} of what started meanwhile`), figure("Lasted", duration(secondsOf(i)), `from ${clock(i.from)}`),
		figure("Longest wait", longestWait(i, pools), "estimated from the queue"), figure("Hot at the worst", count(i.hot), i.starting ? `${count(i.starting)} more starting` : "none starting"),
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

	/* All of them: they come newest first, and what explains an incident was decided when it began. */
	async function changes(since, to) {
		const ask = { pool: `${namespace}/${name}`, from: since, to, changed: "true", count: decisionsAtOnce }, items = [];
		let page = await get("/decisions", ask), ticks = page.ticks;

		items.push(...page.items);
		while (page.next) {
			page = await get("/decisions", { ...ask, cursor: page.next });
			items.push(...page.items);
			ticks += page.ticks - 1; // the one between two pages is read for both
		}
		return { items, ticks };
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

		const all = [...page.items].reverse(), left = all.length - mostDecisions, end = Date.parse(i.to) / 1000 + after;

		decisions.note(`${left > 0 ? `The first ${mostDecisions} of ` : ""}${plural(all.length, "change")} in ${plural(page.ticks, "tick")} from ${minute(iso(start - before))} to ${minute(iso(end))}; in the others nothing changed.`);
		fill(list, all.slice(0, mostDecisions).map(decisionRow));
		fill(decisions.body, all.length ? el("div", { class: "told" }, logHead(), list) : el("div", { class: "log-end" }, emptiness("Nothing changed meanwhile.")),
			left > 0 ? el("p", { class: "log-end" }, el("a", { href: link(["decisions"], { from: iso(start - before), to: iso(end), pool: `${namespace}/${name}` }) }, `${plural(left, "later change")} in the log`)) : null);
		fill(more.body, el("ul", { class: "go-on" },
			el("li", null, "Requests waited longest under ", worst, "."),
			el("li", null, el("a", { href: link(["what-if"], { from: iso(start - 86400), to: iso(Date.parse(i.to) / 1000 + after), pool: `${namespace}/${name}` }) }, "What would have prevented it"), ": decide that day once more with other settings.")),
		explainBox({ tick: i.worstTick, pool: name }, overview));
	}

	async function load(isTick) {
		if (isTick && isDrawn)
			return; // what happened stays
		await seen.load(async () => {
			const i = await find(), to = iso(Date.parse(i.to) / 1000 + after), since = iso(start - before);
			const [series, page, known] = await Promise.all([get(poolPath(pool, "/series"), { from: since, to, points }),
				changes(since, to), get("/pools")]);

			return { i, series, page, pools: known.items };
		}, ({ i, series, page, pools }) => {
			const end = Date.parse(overview.history.to) / 1000;

			isDrawn = end > Date.parse(i.to) / 1000 + after;
			say(heading, title(i));
			document.title = `${title(i)} – Preheat`;
			fill(under, why(i, end));
			fill(numbers, figures(i, pools));
			draw(i, series);
			drawDecisions(i, page);
		});
	}

	return { title: `Incident of ${name}`, heading, under, crumbs, load, close: () => { held.close(); late.close(); } };
}
