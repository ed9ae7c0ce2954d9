// What should be changed: at most three settings that would pay, each with its price and its late share.

import { get, post } from "/assets/api.js";
import { copyBox, el, fill } from "/assets/dom.js";
import { sign } from "/assets/pool_status.js";
import { emptiness, section } from "/assets/section.js";
import { brief, count, dollars, plural, share, time } from "/assets/format.js";

const pause = 3000;
const kinds = { restores: ["bad", "Restores an objective"], secures: ["warn", "Secures an objective"], saves: ["good", "Saves"], asks: ["warn", "Your call"] };

/* The manifest's own words stand below; these are for a glance. */
const sentences = [
	[/^headroom\.min: 0$/, () => "keep no replica ahead of demand"], [/^headroom\.min: 1$/, () => "keep 1 replica ahead of demand"],
	[/^headroom\.min: (\d+)$/, n => `keep ${n} replicas ahead of demand`],
	[/^nodeGroups\[(.+)\]\.standby\.max: 0$/, g => `no standby machines in ${g}`], [/^nodeGroups\[(.+)\]\.standby\.max: (\d+)$/, (g, n) => `up to ${n} standby machines in ${g}`],
	[/^nodeGroups\[(.+)\]\.max: (\d+)$/, (g, n) => `raise the maximum of ${g} to ${n} nodes`], [/^nodeGroups: (.+) first$/, g => `use ${g} first`],
	[/^budget\.dollarsPerHour: ([\d.]+)$/, n => `raise the budget to $${n} an hour`], [/^objective\.attainment: ([\d.]+)%$/, n => `promise ${n} %`],
];

function phraseOf(change) {
	for (const [form, words] of sentences) {
		const found = form.exec(change);

		if (found)
			return words(...found.slice(1));
	}
	return change;
}

/* Dollars, or GPU hours where no price is given. */
const savesOf = r => r.savesDollarsPerDay === null ? r.savesGpuHoursPerDay : r.savesDollarsPerDay;
const amount = r => r.savesDollarsPerDay === null ? `${count(Math.abs(r.savesGpuHoursPerDay))} GPU hours` : dollars(Math.abs(r.savesDollarsPerDay));

const fact = (name, ...value) => el("div", null, el("dt", null, name), el("dd", null, ...value));

function card(r) {
	const [kind, words] = kinds[r.kind], saves = savesOf(r);

	return el("li", { class: "change" }, el("div", { class: "change-head" }, sign(kind, words), el("b", null, `${saves > 0 ? "−" : "+"}${amount(r)} a day`)),
		el("h3", null, `${r.pool}: ${phraseOf(r.change)}`),
		el("dl", { class: "change-facts" }, fact("Late", `${share(r.lateShare)} → `, el("b", null, `${share(r.lateShareWith)}`), `, of ${share(r.allowedShare)}`),
			r.dollarsPerDay === null ? null : fact("Of", `${dollars(r.dollarsPerDay)} a day`), fact("Needs", r.needs || "nothing"),
			r.incidents ? fact("Incidents", `${brief(r.incidentsLate)} → `, el("b", null, brief(r.incidentsLateWith)), r.incidents === 1 ? " late in the last one" : ` late in the last ${count(r.incidents)}`) : null),
		r.kind === "secures" ? el("p", { class: "small faint" }, `Met in the last 7 days; the model misses it on the ${plural(Math.round(r.triedDays), "day")} tried.`) : null,
		r.why ? el("p", { class: "small faint" }, `It saves, as ${r.why}.`) : null,
		copyBox(r.change, "The setting is copied."));
}

const daysOf = items => items.length ? `${plural(Math.round(items[0].triedDays), "day")} of ` : "the ";

function noteOf(r) {
	const when = r.triedAt ? ` Tried ${time(r.triedAt, { seconds: false })}.` : "";

	return r.state === "trying" ? `Trying changes on the recorded traffic, in the background; this takes some minutes.${when}`
		: r.state === "never" ? "Nothing was tried here." : `Each tried alone on ${daysOf(r.items)}recorded traffic, by the model that simulate uses.${when}`;
}

/** What would restore an objective, in a sentence; "" where nothing does. */
function remedy(items) {
	const r = items.find(i => i.kind === "restores");

	return r ? `${r.pool}: ${phraseOf(r.change)}, for ${amount(r)} a day ${savesOf(r) > 0 ? "less" : "more"}, and ${share(r.lateShareWith)} would be late.` : "";
}

/** `onRemedy(words)`: what the head of the view may say. */
export function changesPart(onRemedy) {
	const part = section("Change now"), again = el("button", { type: "button", class: "quiet" }, "Try again"), list = el("ul", { class: "changes" });
	let timer = 0, isClosed = false, drawn = "";

	function draw(r) {
		const now = JSON.stringify(r);

		onRemedy(remedy(r.items));
		part.note(noteOf(r));
		again.disabled = r.state === "trying";
		again.hidden = r.state === "never";
		if (now !== drawn) {
			fill(list, r.items.map(card));
			fill(part.body, r.state === "failed" ? el("p", { class: "failed" }, `The last try failed: ${r.message}`) : null,
				r.items.length ? list : r.state === "tried" ? emptiness("Nothing to change: of all that was tried nothing pays.") : null);
		}
		drawn = now;
		if (r.state === "trying" && !isClosed)
			timer = setTimeout(load, pause);
	}

	async function load() {
		clearTimeout(timer);
		if (!isClosed)
			await part.load(() => get("/recommendations"), draw);
	}

	again.addEventListener("click", () => part.load(() => post("/recommendations", {}), draw));
	part.tools.append(again);
	return { node: part.node, load, close: () => { isClosed = true; clearTimeout(timer); } };
}
