// The log of decisions: filters that stand in the address, pages that come as one scrolls, new ones on top without moving what is read.

import { change, query } from "/assets/address.js";
import { get } from "/assets/api.js";
import { byId, el, fill, say, tell } from "/assets/dom.js";
import { decisionRow, logHead, nameOf, walkable } from "/assets/decision_row.js";
import { rangeParameters } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { phrase, plural, time } from "/assets/format.js";

const perPage = 60;
const limits = ["none", "min", "max", "budget", "rate", "cooldown", "stale", "queue", "stock-out", "quota", "whole-node", "gang", "observe", "paused", "growth", "waiting-pods", "asleep", "reservation", "share", "unavailable"];

function choice(name, label, options) {
	const select = el("select", { id: `filter-${name}`, on: { change: () => change({ [name]: select.value }) } });

	fill(select, [["", "All"], ...options].map(([value, text]) => el("option", { value }, text)));
	select.value = query(name) || "";
	// A value out of a link that is not among them is shown, not dropped.
	if (query(name) && !select.value) {
		select.append(el("option", { value: query(name) }, query(name)));
		select.value = query(name);
	}
	return el("div", { class: "field" }, el("label", { for: `filter-${name}` }, label), select);
}

function filters(known) {
	const all = el("input", { type: "checkbox", id: "filter-all", checked: query("all") === "true",
		on: { change: () => change({ all: all.checked ? "true" : "" }) } });

	return [
		choice("pool", "Pool", known.pools.map(p => [`${p.namespace}/${p.name}`, known.isOneSpace ? p.name : `${p.namespace}/${p.name}`])),
		choice("group", "Node group", known.groups.map(g => [g, g])),
		choice("limit", "Held by", known.limits.map(l => [l, l === "none" ? "nothing" : phrase(l)])),
		el("div", { class: "field" }, el("label", { class: "check", for: "filter-all" }, all, "Also without a change")),
	];
}

/** Changes only, unless everything is asked for, or a node group or limit, which hold without a change. */
export function asked(cursor) {
	return { ...rangeParameters(), pool: query("pool"), group: query("group"), limit: query("limit"),
		changed: query("all") || query("group") || query("limit") ? undefined : "true", count: perPage, cursor };
}

export function open(host, parts, overview) {
	const part = section("Decisions", { lone: true, note: "Newest first. Each row opens with all of its reasons and inputs." });
	const bar = el("form", { class: "filters", "aria-label": "Filters", on: { submit: event => event.preventDefault() } });
	const list = el("ol", { class: "log long", "aria-label": "Decisions, newest first" });
	const end = el("div", { class: "log-end" }), more = el("button", { type: "button" }, "Older ones");
	const fresh = el("button", { type: "button", hidden: true, on: { click: () => { scrollTo(0, 0); restart(); } } });
	const near = new IntersectionObserver(entries => entries.some(e => e.isIntersecting) && older(), { rootMargin: "800px" });
	let next = null, isBusy = false, newest = null, ticks = 0;

	part.tools.append(fresh);
	part.node.insertBefore(bar, part.body);
	host.append(part.node);
	more.addEventListener("click", () => older());
	walkable(list);

	/* A search goes only so far at a time: a page may have found nothing and yet not be the last. */
	function ending(searchedTo) {
		if (next)
			fill(end, searchedTo ? `Searched back to ${time(searchedTo)}. ` : "", more);
		else
			fill(end, list.childElementCount > perPage ? "That was the oldest in this range." : "");
	}

	/* What is left out is counted. */
	function fold() {
		part.note(`Newest first. Each row opens with all of its reasons and inputs.${query("all") ? "" : ` So far ${plural(list.childElementCount, "decision")} of ${plural(ticks, "tick")}; the others are folded.`}`);
	}

	async function older() {
		if (!next || isBusy)
			return;
		isBusy = true;
		const cursor = next;

		try {
			const page = await get("/decisions", asked(cursor));

			if (next === cursor) {
				list.append(...page.items.map(decisionRow));
				next = page.next;
				ticks += page.ticks;
				fold();
				ending(page.searchedTo);
			}
		} catch (e) {
			fill(end, e.message, " ", more);
		}
		isBusy = false;
		// What was added may not reach below the window yet: the observer tells only changes.
		near.unobserve(end);
		near.observe(end);
	}

	async function restart() {
		fresh.hidden = true;
		await part.load(() => get("/decisions", asked()), page => {
			next = page.next;
			newest = page.items.length ? page.items[0] : null;
			ticks = page.ticks;
			if (!page.items.length && !next) {
				fill(part.body, el("div", { class: "log-end" }, emptiness("No decision fits. Take a filter away, or choose a longer range.")));
				return;
			}
			fill(list, page.items.map(decisionRow));
			fill(part.body, logHead(), list, end);
			fold();
			ending(page.searchedTo);
			near.observe(end);
		});
		tell(newest ? "" : "No decision fits the filters.");
	}

	/* Read at the top the log follows; further down it says that there are new ones. */
	async function news() {
		const page = await get("/decisions", asked()).catch(() => null);
		const first = page && page.items[0];

		if (!first || (newest && nameOf(first) === nameOf(newest)))
			return;
		const known = newest ? page.items.findIndex(d => nameOf(d) === nameOf(newest)) : -1;
		if (scrollY < 200 && known > 0 && !list.contains(document.activeElement)) {
			list.prepend(...page.items.slice(0, known).map(decisionRow));
			newest = first;
		} else if (known < 0 && scrollY < 200 && !list.contains(document.activeElement)) {
			await restart();
		} else {
			say(fresh, known > 0 ? plural(known, "new decision") : "New decisions");
			fresh.hidden = false;
		}
	}

	async function load(isTick) {
		if (isTick)
			return news();
		const pools = overview.pools;
		const groups = [...(overview.groups || [])].sort();

		fill(bar, filters({ pools, groups, limits, isOneSpace: new Set(pools.map(p => p.namespace)).size < 2 }));
		return restart();
	}

	return { title: "Decisions", load, close: () => near.disconnect(), isRanged: true,
		addressKeys: ["from", "to", "pool", "group", "limit", "all"], focus: () => byId("main") };
}
