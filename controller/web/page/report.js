// The first questions of a day: is each objective met, what was spent, what should be changed, what happened.

import { link } from "/assets/address.js";
import { alternativesPoll } from "/assets/alternatives.js";
import { get } from "/assets/api.js";
import { changesPart } from "/assets/changes.js";
import { el, fill, say } from "/assets/dom.js";
import { heldList } from "/assets/held.js";
import { incidentLink, incidentsTable, secondsOf } from "/assets/incidents.js";
import { allowed, objectiveRow } from "/assets/objectives.js";
import { emptiness, section } from "/assets/section.js";
import { recordedWords } from "/assets/range.js";
import { settings } from "/assets/settings.js";
import { spentParts } from "/assets/spent.js";
import { brief, duration, plural, share, time } from "/assets/format.js";

/* Days move slowly; ticks do not. */
const leastPause = 60000;
const recent = 86400000, weekLength = 7 * recent;

/* When the day began in which the history ends, on the clock that is shown; the API's own is that of UTC. */
function midnight(end) {
	const day = new Date(Date.parse(end) - 1); // a tick ends what it tells of: that of midnight belongs to the day before

	if (!end)
		return undefined;
	if (settings.isUtc)
		day.setUTCHours(0, 0, 0, 0);
	else
		day.setHours(0, 0, 0, 0);
	return day.toISOString();
}

/* The report has the newest few. */
async function allIncidents(r) {
	if (r.incidentCount <= r.incidents.length)
		return r.incidents;
	return (await get("/incidents", { from: new Date(Date.parse(r.at) - weekLength).toISOString(), to: r.at, count: 500 })).items;
}

const numbers = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];
const number = n => numbers[n] || String(n);
const listed = names => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

const weekWords = r => r.pools.some(p => p.week.isShort) ? recordedWords() : "7 days";

function verdict(r) {
	const pools = r.pools, when = pools.some(p => p.week.isShort) ? `in the ${recordedWords()} recorded` : "this week";
	const judged = pools.filter(p => p.week.budgetLeftRequests !== null), missed = judged.filter(p => !p.week.isMet);

	if (!judged.length)
		return `No objective could be judged ${when}`;
	if (!missed.length)
		return judged.length === 1 ? `The objective is met ${when}` : `All ${number(judged.length).toLowerCase()} objectives are met ${when}`;
	if (judged.length === 1)
		return `${missed[0].name} misses its objective ${when}`;
	return `${number(judged.length - missed.length)} of ${number(judged.length).toLowerCase()} objectives ${judged.length - missed.length === 1 ? "is" : "are"} met ${when}; ${missed.length > 3
		? `${missed.length} are missed` : `${listed(missed.map(p => p.name))} ${missed.length === 1 ? "misses its own" : "miss theirs"}`}`;
}

/* The largest one first, whenever it was: the newest may be a trifle beside it. */
function incidentWords(r, incidents) {
	const largest = incidents.reduce((a, b) => b.late > a.late ? b : a), sum = incidents.reduce((n, i) => n + i.late, 0), isOne = incidents.length === 1;

	return [isOne ? "" : `${plural(incidents.length, "incident")} in ${weekWords(r)} with ${brief(sum)} late requests in all. The largest: `,
		`${largest.pool} had `, el("a", { href: incidentLink(largest) }, `${brief(largest.late)} late requests`), ` in ${duration(secondsOf(largest))} from ${time(largest.from, { seconds: false })} on. `];
}

function details(r, incidents) {
	const missed = r.pools.filter(p => p.week.budgetLeftRequests !== null && !p.week.isMet).slice(0, 3);
	const words = missed.map(p => `${share(p.week.share)} of ${p.name}’s requests were late in ${weekWords(r)}; ${share(allowed(p))} may be. `);

	if (incidents.length)
		words.push(...incidentWords(r, incidents));
	if (r.pools.length && !incidents.some(i => Date.parse(r.at) - Date.parse(i.from) < recent))
		words.push("No incident in the last day. ");
	if (r.pools.some(p => p.month.isShort))
		words.push("The record is shorter than 30 days.");
	return words;
}

/** `heading` and `under` head the view; `above` and `below` are its cards; `end()` says when the history ends. */
export function reportParts(end) {
	const heading = el("h1", { tabindex: "-1" }, "Overview"), lead = el("p", { class: "lead" }), cure = el("p", { class: "lead cure" }), under = el("div", null, lead, cure);
	const answers = section("Objectives", { note: "Share of requests that started late. The tick on each bar is what may be." }), spent = section("Spent and saved", { note: "Dollars, all pools." });
	const changes = changesPart(words => say(cure, words)), happened = section("What happened"), held = section("Held back by", { note: "The longest first." });
	const all = el("a", { hidden: true }, "All incidents");
	const others = alternativesPoll(a => {
		against = a;
		drawSpent();
	});
	let lastAsked = 0, pools = null, against = null;

	function drawSpent() {
		if (pools)
			fill(spent.body, pools.length ? spentParts(pools, against) : emptiness("No pool yet."));
	}

	happened.tools.append(all);
	answers.node.classList.add("wide");
	spent.node.classList.add("narrow");
	happened.node.classList.add("two-thirds");
	held.node.classList.add("third");
	return { heading, under, close: () => { changes.close(); others.close(); },
		above: el("div", { class: "grid" }, answers.node, spent.node, changes.node),
		below: el("div", { class: "grid" }, happened.node, held.node),
		async load(isAgain) {
			if (isAgain && Date.now() - lastAsked < leastPause)
				return;
			lastAsked = Date.now();
			const asked = get("/report", { midnight: midnight(end()) }), incidents = asked.then(allIncidents);

			await Promise.all([answers.load(async () => [await asked, await incidents], ([r, found]) => {
				say(heading, r.pools.length ? verdict(r) : "Overview");
				fill(lead, details(r, found));
				fill(answers.body, r.pools.length ? el("ul", { class: "goals" }, r.pools.map(objectiveRow)) : emptiness("No pool yet."));
			}), spent.load(() => asked, r => {
				pools = r.pools;
				drawSpent();
			}),
			held.load(() => asked, r => {
				held.note(`${weekWords(r).replace(/^./, c => c.toUpperCase())}, the longest first.`);
				fill(held.body, heldList(r.held));
			}), happened.load(() => asked, r => {
				happened.note(r.incidentCount ? `${plural(r.incidentCount, "incident")} in ${weekWords(r)}${r.incidentCount > r.incidents.length ? `, the newest ${r.incidents.length} here` : ""}.` : "");
				all.hidden = r.incidentCount <= r.incidents.length;
				all.setAttribute("href", link(["incidents"], { from: "-1w" }));
				fill(happened.body, r.incidents.length ? incidentsTable(r.incidents, r.pools, { isBrief: true }) : emptiness(`No incident in ${weekWords(r)}: wherever requests were late, fewer were than the objective allows.`));
			}), changes.load(), others.load()]);
		} };
}
