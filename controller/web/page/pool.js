// One pool: how it stands, then each question in a card of its own.

import { link } from "/assets/address.js";
import { get, poolPath } from "/assets/api.js";
import { budgetPart, causesPart, waitPart } from "/assets/slo.js";
import { capacityPart, launchesOf, words } from "/assets/capacity.js";
import { decisionRow, logHead, walkable } from "/assets/decision_row.js";
import { el, fill, say } from "/assets/dom.js";
import { figure, hourly } from "/assets/pools.js";
import { groupsPart, warmthPart } from "/assets/standby.js";
import { leadTimePart } from "/assets/lead_time.js";
import { poolCost } from "/assets/cost.js";
import { pricePart, rulesPart } from "/assets/rules.js";
import { emptiness, section } from "/assets/section.js";
import { rangeParameters } from "/assets/range.js";
import { sign, standing } from "/assets/pool_status.js";
import { whatIfPart } from "/assets/what_if.js";
import { brief, count, duration, objective, share } from "/assets/format.js";

const lastOnes = 8;
const points = 500;

function figures(p) {
	const day = (p.late && p.late.day) || {};
	const allowed = p.objective && p.objective.attainment !== null ? `${share(1 - p.objective.attainment)} may be` : "";

	return [
		figure("Demand", count(p.demand), "replicas kept busy"),
		figure("Hot", count(p.hot), p.headroom === null || p.headroom === undefined ? "" : `${count(p.headroom)} beyond demand`),
		figure("Starting", count(p.starting), p.leadTime ? `serves in ${duration(p.leadTime.p50Seconds)}` : ""),
		figure("Standby", count(p.standby), p.lent ? `and ${count(p.lent)} lent` : "none lent"),
		figure("Running", brief(p.running), "sequences"),
		figure("Waiting", brief(p.waiting), p.waitSeconds ? `for ${duration(p.waitSeconds)}` : "requests"),
		figure("Late in a day", share(day.share), allowed),
		figure("Cost", hourly(p), p.rule ? `rule ${p.rule.number}` : ""),
	];
}

function state(node, p) {
	const s = standing(p);

	fill(node, el("div", { class: "tools" }, sign(s.kind, s.word), el("span", { class: "tag" }, p.class || "no class"), el("span", { class: "tag" }, `mode ${p.mode}`),
		el("span", { class: "faint" }, objective(p.objective))),
	...(p.problems && p.problems.length ? p.problems.map(x => el("p", { class: "spaced" }, el("strong", null, `${x.type}: `), x.message)) : [s.why ? el("p", { class: "spaced faint" }, s.why) : null]),
	p.lastChange ? el("p", { class: "faint spaced" }, p.lastChange.reason) : null);
}

function recent(pool) {
	const part = section("Newest decisions", { lone: true });
	const list = el("ol", { class: "log", "aria-label": "Newest decisions that asked for something" });
	const all = el("a", { class: "button" }, "The whole log");

	part.tools.append(all);
	walkable(list);
	return { node: part.node, close() {},
		load: () => {
			all.setAttribute("href", link(["decisions"], { pool: `${pool.namespace}/${pool.name}` }));
			return part.load(() => get("/decisions", { ...rangeParameters(), pool: `${pool.namespace}/${pool.name}`, changed: "true", count: lastOnes }), page => {
				const held = list.contains(document.activeElement) && document.activeElement.dataset.decision;

				fill(list, page.items.map(decisionRow));
				fill(part.body, ...(page.items.length ? [logHead(), list] : [el("div", { class: "log-end" }, emptiness("No decision asked for anything in this range."))]));
				if (held)
					list.querySelector(`[data-decision="${CSS.escape(held)}"]`)?.focus();
			});
		} };
}

function jumps(named) {
	return el("nav", { class: "jump", "aria-label": "On this page" }, named.map(([name, node]) =>
		el("button", { type: "button", class: "quiet", on: { click: () => { node.scrollIntoView({ block: "start" }); node.querySelector("h2").focus({ preventScroll: true }); } } }, name)));
}

export function open(host, parts) {
	const pool = { namespace: parts[1] || "", name: parts[2] || "" };
	const under = el("div", { class: "under" }), tiles = el("dl", { class: "figures", "aria-label": "Now" }), trouble = el("p", { class: "failed", role: "alert", hidden: true });
	const capacity = capacityPart(), wait = waitPart(), budget = budgetPart(), causes = causesPart(), rules = rulesPart(), price = pricePart();
	const lead = leadTimePart(kind => leadTimes(kind)), warmth = warmthPart(), groups = groupsPart(), cost = poolCost(pool), log = recent(pool), resolution = el("span", { class: "faint small" });
	const whatIf = whatIfPart(pool), all = [capacity, wait, budget, warmth, causes, rules, price, lead, groups, cost, log, whatIf];
	let latest = null;

	capacity.part.tools.prepend(resolution);
	cost.node.classList.remove("half");
	const cards = [tiles, jumps([["Capacity", capacity.node], ["Waiting", wait.node], ["Rules and price", rules.node], ["Lead time", lead.node], ["Standby", warmth.node],
		["Node groups", groups.node], ["Cost", cost.node], ["Decisions", log.node], ["What if", whatIf.node]]), el("div", { class: "grid" }, all.map(p => p.node))];

	host.append(trouble, ...cards);

	async function now() {
		try {
			latest = await get(poolPath(pool));
			trouble.hidden = true;
			cards.forEach(node => { node.hidden = false; });
		} catch (e) {
			const isAbsent = e.status === 404;

			say(trouble, isAbsent ? `There is no pool ${pool.namespace}/${pool.name} in this history.` : e.message);
			trouble.hidden = false;
			cards.forEach(node => { node.hidden = isAbsent; });
			throw e;
		}
		state(under, latest);
		fill(tiles, figures(latest));
		groups.part.load(async () => latest, groups.draw);
		whatIf.begin(latest);
	}

	async function series() {
		const answer = get(poolPath(pool, "/series"), { ...rangeParameters(), points });
		const launches = launchesOf(latest);

		await Promise.all([
			capacity.part.load(() => Promise.all([answer, launches]), ([s, l]) => { say(resolution, words(s)); capacity.draw(s, l); }),
			wait.part.load(() => answer, s => wait.draw(s, latest)),
			warmth.part.load(() => answer, warmth.draw),
		]);
	}

	let kind = "cold";

	function leadTimes(wanted) {
		kind = wanted || kind;
		return lead.part.load(() => get(poolPath(pool, "/lead-time"), { kind }), lead.draw);
	}

	/* The slow movers are asked again with another range, or now and then. */
	let ticks = 0;

	async function load(isTick) {
		await now().catch(() => {});
		if (!latest)
			return;
		const isSlow = !isTick || ++ticks % 8 === 0;
		const shared = path => get(poolPath(pool, path));
		const goal = isSlow ? shared("/objective") : null, standings = isSlow ? shared("/rules") : null;

		await Promise.all([series(), log.load(),
			...(isSlow ? [budget.part.load(() => goal, budget.draw), causes.part.load(() => goal, causes.draw),
				rules.part.load(() => standings, a => rules.draw(a, latest)), price.part.load(() => standings, a => price.draw(a, latest)),
				leadTimes(), cost.load(), whatIf.load()] : [])]);
	}

	return { title: pool.name, load, under, isRanged: true, crumbs: [el("a", { href: link(["pools"]) }, "Pools"), ` / ${pool.namespace}`],
		close: () => all.forEach(p => p.close()) };
}
