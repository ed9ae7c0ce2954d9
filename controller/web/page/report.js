// The first questions of a day: is each objective met, what was spent, what happened.

import { here } from "/assets/address.js";
import { get } from "/assets/api.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { sign } from "/assets/pool_status.js";
import { emptiness, section } from "/assets/section.js";
import { settings } from "/assets/settings.js";
import { brief, count, dollars, duration, objective, plural, share, time } from "/assets/format.js";

/* Days move slowly; ticks do not. */
const leastPause = 60000;

const windows = [["today", "Today"], ["week", "7 days"], ["month", "30 days"]];

/* When the day began in which the history ends, on the clock that is shown; the API's own is that of UTC. */
function midnight(end) {
	const day = new Date(end);

	if (settings.isUtc || !end)
		return undefined;
	day.setHours(0, 0, 0, 0);
	return day.toISOString();
}

const lateShare = w => w.share === null ? el("span", { class: "faint" }, "–") : sign(w.budgetLeftRequests === null ? "plain" : w.isMet ? "good" : "bad", share(w.share));

function budget(w) {
	if (w.budgetLeftRequests === null)
		return "–";
	return w.budgetLeftRequests < 0 ? `${brief(-w.budgetLeftRequests)} too many` : `${brief(w.budgetLeftRequests)} may be late`;
}

function money(w) {
	const isKnown = w.dollarsBefore !== null && w.dollarsBefore > 0, more = isKnown ? Math.round(100 * (w.dollars / w.dollarsBefore - 1)) : 0;

	return isKnown ? `${dollars(w.dollars)} ${more > 0 ? "▲" : more < 0 ? "▼" : "="} ${count(Math.abs(more))} %` : dollars(w.dollars);
}

function poolsTable(pools) {
	return table([{ name: "Pool", isHead: true, of: p => p.name }, { name: "Objective", of: p => objective(p.objective) },
		...windows.map(([key, name]) => ({ name: `Late, ${name.toLowerCase()}`, isNumber: true, of: p => lateShare(p[key]) })),
		{ name: "Budget, 30 days", isNumber: true, of: p => budget(p.month) },
		...windows.map(([key, name]) => ({ name: `Spent, ${name.toLowerCase()}`, isNumber: true, of: p => money(p[key]) }))],
	pools, { caption: "Objectives and cost" });
}

function incidentsTable(incidents) {
	return table([{ name: "When", isHead: true, of: i => el("a", { href: here({ open: `${i.worstTick}/${i.namespace}/${i.pool}` }) }, time(i.from, { seconds: false })) },
		{ name: "Lasted", isNumber: true, of: i => duration((Date.parse(i.to) - Date.parse(i.from)) / 1000) }, { name: "Pool", of: i => i.pool },
		{ name: "Late", isNumber: true, of: i => brief(i.late) }, { name: "Longest wait", isNumber: true, of: i => duration(i.waitSecondsMax) }, { name: "Cause", of: i => i.words }],
	incidents, { caption: "Incidents" });
}

function summary(pools) {
	const judged = pools.filter(p => p.week.budgetLeftRequests !== null), missed = judged.filter(p => !p.week.isMet);

	if (!judged.length)
		return "No objective could be judged in the last 7 days.";
	if (!missed.length)
		return judged.length === 1 ? "The objective is met over 7 days." : `All ${judged.length} objectives are met over 7 days.`;
	return missed.map(p => `${p.name} misses its objective over 7 days: ${share(p.week.share)} late, ${share(1 - p.objective.attainment)} may be.`).join(" ");
}

/** Two cards; `end()` says when the history ends. */
export function reportParts(end) {
	const answers = section("Objectives and cost"), happened = section("What happened");
	let lastAsked = 0;

	return { node: el("div", { class: "grid" }, answers.node, happened.node),
		async load(isAgain) {
			if (isAgain && Date.now() - lastAsked < leastPause)
				return;
			lastAsked = Date.now();
			const asked = get("/report", { midnight: midnight(end()) });

			await Promise.all([answers.load(() => asked, r => {
				const isShort = r.pools.some(p => p.month.isShort);

				answers.note(summary(r.pools) + (isShort ? " The record is shorter than 30 days." : ""));
				fill(answers.body, r.pools.length ? scrolling("Objectives and cost, as a table", poolsTable(r.pools)) : emptiness("No pool yet."));
			}), happened.load(() => asked, r => {
				happened.note(r.incidentCount ? `${plural(r.incidentCount, "incident")} in 7 days${r.incidentCount > r.incidents.length ? `, the newest ${r.incidents.length} here; preheat incidents has all` : ""}.` : "");
				fill(happened.body, r.incidents.length ? scrolling("Incidents, as a table", incidentsTable(r.incidents)) : emptiness("No incident in 7 days: wherever requests were late, fewer were than the objective allows."));
			})]);
		} };
}
