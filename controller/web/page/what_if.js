// What if: the recorded ticks once more with another objective, in the background; its result beside what really was.

import { query } from "/assets/address.js";
import { get, post, remove } from "/assets/api.js";
import { el, fill, keyed, say, scrolling, table, tell } from "/assets/dom.js";
import { rangeParameters } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { attainment, count, dollars, duration, share } from "/assets/format.js";

const pause = 1000;
const agrees = 0.1; // two ways to a price that are apart by no more of it
const isOpen = job => job.state === "queued" || job.state === "running";
const fullName = p => `${p.namespace}/${p.name}`;

function field(id, label, input, hint) {
	input.id = id;
	if (hint)
		input.setAttribute("aria-describedby", `${id}-hint`);
	return el("div", { class: "field" }, el("label", { for: id }, label), input, hint ? el("span", { class: "small faint", id: `${id}-hint` }, hint) : null);
}

function change(now, then, show, isLessBetter = true) {
	if (now === null || then === null || now === undefined || then === undefined)
		return "–";
	const d = then - now;

	if (!d)
		return "the same";
	const per = now ? ` (${d > 0 ? "+" : "−"}${Math.abs(100 * d / now).toFixed(1)} %)` : "";

	return el("span", { class: "nowrap" }, `${d > 0 ? "▲" : "▼"} ${show(Math.abs(d))}${per}`, el("span", { class: "unseen" }, d > 0 === isLessBetter ? ", worse" : ", better"));
}

const met = f => f.objective ? [el("b", { "data-kind": f.objective === "met" ? "good" : "bad" }, f.objective), ` (${share(f.lateShare)} late of ${share(f.allowedShare)} allowed)`] : "not known";

/* The other way to a price, which the card of prices has. */
function priced({ dollars: model, shadowDollars: card }) {
	if (card === null || model === null)
		return null;
	const said = `By the price of each objective the same time comes to ${dollars(card)}`;

	return el("p", { class: "small faint" }, Math.abs(card - model) <= agrees * model ? `${said}: they agree.`
		: `${said}, another figure: it is of all the record, the past counting less and less, and without floors, limits, failed starts and drains.`);
}

function result(job) {
	const { recorded, modelled, changed } = job.result;
	const rows = [["GPU hours", "gpuHours", count], ["Cost", "dollars", dollars], ["Late requests", "lateShare", share], ["Machines started", "machinesStarted", count]];
	const isMet = el("p", { class: "small goal-note" }, "The objective: recorded ", met(recorded), "; modelled ", met(modelled), "; with the change ", met(changed), ".");

	return [isMet, scrolling("Result, as a table", table([{ name: "Of this time", isHead: true, of: r => r[0] }, { name: "Recorded", isNumber: true, of: r => r[2](recorded[r[1]]) },
		{ name: "Modelled as it was", isNumber: true, of: r => r[2](modelled[r[1]]) }, { name: "With the change", isNumber: true, of: r => r[2](changed[r[1]]) },
		{ name: "The change makes", isNumber: true, of: r => change(modelled[r[1]], changed[r[1]], r[2]) }], rows, { caption: "Recorded, modelled and changed" })),
	el("p", { class: "small faint" }, "How far the model is from what was recorded says how far to believe it."), priced(changed)];
}

function titleOf(job) {
	const asked = job.request, parts = [];

	if (asked.objective)
		parts.push(asked.objective.split(",").reverse().join(" within "));
	if (asked.violationCost)
		parts.push(`${dollars(Number(asked.violationCost))} a late request`);
	if (asked.budgetDollarsPerHour)
		parts.push(`at most ${dollars(Number(asked.budgetDollarsPerHour))} an hour`);
	if (asked.max)
		parts.push(`at most ${count(Number(asked.max))} replicas`);
	return `${asked.pool}: ${parts.join(", ") || "as recorded"}`;
}

const stateWords = { queued: "waits for its turn", running: "runs", done: "done", failed: "failed", cancelled: "cancelled" };

function drawJob(node, job, again) {
	const bar = el("progress", { max: "1", value: job.progress || 0, "aria-label": `Progress of ${titleOf(job)}` });
	const cancel = el("button", { type: "button", on: { click: async () => { await remove(`/what-if/${encodeURIComponent(job.id)}`).catch(() => {}); again(); } } }, "Cancel");

	if (node.dataset.state === job.state && isOpen(job)) {
		node.querySelector("progress").value = job.progress || 0;
		say(node.querySelector(".job-state"), `${stateWords[job.state]}, ${Math.round(100 * (job.progress || 0))} %`);
		return;
	}
	if (node.dataset.state === job.state)
		return;
	if (node.dataset.state && !isOpen(job))
		tell(`What if, ${titleOf(job)}: ${stateWords[job.state]}.`);
	node.dataset.state = job.state;
	fill(node, el("div", { class: "job-head" }, el("h3", null, titleOf(job)), el("div", { class: "tools" }, el("span", { class: "faint job-state" }, stateWords[job.state] || job.state), isOpen(job) ? cancel : null)),
		isOpen(job) ? bar : null, job.state === "failed" && job.message ? el("p", { class: "failed" }, job.message) : null, job.state === "done" && job.result ? result(job) : null);
}

/** The form for one pool, or for any of `pools`. */
export function whatIfForm(pools, started) {
	const pool = el("select", null, pools.map(p => el("option", { value: fullName(p) }, fullName(p))));
	const wait = el("input", { type: "text", inputmode: "text", autocomplete: "off", spellcheck: "false" });
	const kept = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false" });
	const most = el("input", { type: "number", min: "0", step: "1", placeholder: "as it is" }), budget = el("input", { type: "number", min: "0", step: "any", placeholder: "as it is" });
	const wrong = el("p", { class: "failed", role: "alert", hidden: true }), start = el("button", { type: "submit", class: "first" }, "Start");
	const refill = () => {
		const o = (pools.find(p => fullName(p) === pool.value) || {}).objective || {};

		wait.value = o.queueWaitSeconds ? duration(o.queueWaitSeconds) : "";
		kept.value = o.attainment !== null && o.attainment !== undefined ? attainment(o.attainment).replace(" ", "") : "";
	};
	const submit = async event => {
		event.preventDefault();
		start.disabled = true;
		wrong.hidden = true;
		const { from, to } = rangeParameters();
		const body = { pool: pool.value, from, to };

		if (wait.value.trim())
			body.objective = { queueWait: wait.value.trim() };
		if (kept.value.trim())
			body.objective = { ...body.objective, attainment: /%$/.test(kept.value.trim()) ? kept.value.replace(/\s/g, "") : `${kept.value.trim()}%` };
		if (most.value)
			body.max = Number(most.value);
		if (budget.value)
			body.budgetDollarsPerHour = Number(budget.value);
		try {
			await post("/what-if", body);
			started();
		} catch (e) {
			say(wrong, e.message);
			wrong.hidden = false;
		}
		start.disabled = false;
	};

	if (query("pool"))
		pool.value = query("pool");
	pool.addEventListener("change", refill);
	refill();
	return el("form", { "aria-label": "What if", on: { submit } }, el("div", { class: "what-if-form" },
		pools.length > 1 ? field("what-if-pool", "Pool", pool) : null, field("what-if-wait", "Queue wait", wait), field("what-if-kept", "Attainment", kept),
		field("what-if-most", "Most replicas", most), field("what-if-budget", "Dollars an hour", budget), el("div", null, start)), wrong);
}

/** The jobs, watched while one is open; `only(job)` picks. */
export function jobList(only = () => true) {
	const list = el("div", { class: "jobs" }), node = el("div", null, list);
	let timer = 0, isClosed = false;

	async function load() {
		clearTimeout(timer);
		const answer = await get("/what-if").catch(() => null);

		if (isClosed || !answer)
			return;
		const jobs = answer.items.filter(only);

		if (!jobs.length)
			fill(node, emptiness("Nothing asked yet. A result stands here until Preheat ends."));
		else if (!list.parentNode)
			fill(node, list);
		keyed(list, jobs, j => j.id, j => { const n = el("article", { class: "job" }); drawJob(n, j, load); return n; }, (n, j) => drawJob(n, j, load));
		if (jobs.some(isOpen))
			timer = setTimeout(load, pause);
	}

	return { node, load, close: () => { isClosed = true; clearTimeout(timer); } };
}

const note = "The recorded ticks of the range are decided once more with another objective or limit. It runs in the background and changes nothing.";

export function open(host) {
	const ask = section("Ask", { note }), seen = section("Results"), jobs = jobList();

	seen.body.append(jobs.node);
	host.append(el("div", { class: "grid" }, ask.node, seen.node));

	async function load(isTick) {
		if (isTick)
			return;
		if (!ask.body.firstChild)
			await ask.load(() => get("/pools"), answer => ask.body.append(answer.items.length ? whatIfForm(answer.items, jobs.load) : emptiness("There is no pool to ask about yet.")));
		await jobs.load();
	}

	return { title: "What if", load, close: jobs.close, isRanged: true };
}

export function whatIfPart(name) {
	const part = section("What if", { note }), jobs = jobList(j => j.pool === fullName(name));

	/* The form begins with the pool's own objective. */
	function begin(pool) {
		if (!part.body.firstChild)
			part.body.append(whatIfForm([pool], jobs.load), el("div", { class: "spaced" }, jobs.node));
	}

	return { node: part.node, part, begin, load: jobs.load, close: jobs.close };
}
