// Incidents: when more requests were late than the objective allows. The list, and what the first screen shows of it.

import { link } from "/assets/address.js";
import { get } from "/assets/api.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { range } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { brief, duration, phrase, plural, time, unknown } from "/assets/format.js";

const mostDays = 31;

export const secondsOf = i => (Date.parse(i.to) - Date.parse(i.from)) / 1000;
export const incidentLink = i => link(["incident", i.namespace, i.pool, i.from]);

/** What held the pool, or the group that had nothing to give. */
function heldBy(i) {
	if (i.refusedGroup)
		return `${i.refusedBy} in ${i.refusedGroup}`;
	return i.limit ? phrase(i.limit) : "–";
}

/** Estimated from queues seen at ticks: where requests were late and no such queue was, the objective bounds it. */
export function longestWait(i, pools) {
	const pool = pools.find(p => p.namespace === i.namespace && p.name === i.pool), bound = pool && pool.objective ? pool.objective.queueWaitSeconds : null;

	if (bound && i.waitSecondsMax <= bound)
		return `> ${duration(bound)}`;
	return i.waitSecondsMax ? duration(i.waitSecondsMax) : unknown;
}

/** `pools` have the objectives; `isBrief` where there is little room. */
export function incidentsTable(incidents, pools, { isBrief = false } = {}) {
	return scrolling("Incidents, as a table", table([
		{ name: "When", isHead: true, of: i => el("a", { href: incidentLink(i) }, time(i.from, { seconds: false })) }, { name: "Pool", of: i => i.pool },
		{ name: "Late", isNumber: true, of: i => brief(i.late) }, { name: "Lasted", isNumber: true, of: i => duration(secondsOf(i)) },
		{ name: "Longest wait", isNumber: true, of: i => el("span", { class: "nowrap" }, longestWait(i, pools)) }, { name: "Cause", of: i => el("span", { class: "cause" }, i.words) },
		...(isBrief ? [] : [{ name: "Held by", of: i => el("span", { class: "nowrap" }, heldBy(i)) }])],
	incidents, { caption: "Incidents" }));
}

export function open(host) {
	const part = section("When and why", { note: "Late requests less than five minutes apart are one incident." });

	host.append(el("div", { class: "grid" }, part.node));

	async function load() {
		const r = range(), from = Math.max(r.from, r.to - mostDays * 86400), iso = at => new Date(Math.round(at) * 1000).toISOString();

		await part.load(() => Promise.all([get("/incidents", { from: iso(from), to: r.isFollowing ? undefined : iso(r.to) }), get("/pools")]), ([answer, known]) => {
			const found = answer.count ? `${plural(answer.count, "incident")}${answer.count > answer.items.length ? `, the newest ${answer.items.length} here` : ""}. ` : "";

			part.note(`${found}Late requests less than five minutes apart are one incident.${from > r.from ? ` At most ${mostDays} days are read at a time.` : ""}`);
			fill(part.body, answer.items.length ? incidentsTable(answer.items, known.items) : emptiness("No incident in this range: wherever requests were late, fewer were than the objective allows."));
		});
	}

	return { title: "Incidents", load, close() {}, isRanged: true };
}
