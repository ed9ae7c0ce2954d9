// What GPUs did and what that cost, by pool, class or label.

import { get } from "/assets/api.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { figure } from "/assets/pools.js";
import { rangeParameters } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { brief, count, dollars, phrase, share, time } from "/assets/format.js";

const uses = [
	{ name: "Serving", state: "serving", color: "--hot" }, { name: "Lent", state: "lent", color: "--lent" }, { name: "Starting", state: "starting", color: "--starting" },
	{ name: "Idle", state: "idle", color: "--draining" }, { name: "Standby", state: "standby", color: "--standby" },
];

/* Shares and bars are of GPU hours where no price is given. */
function spent(row, use, what = row.dollars === null ? "gpuHours" : "dollars") {
	const found = row.states.find(s => s.state === use.state);

	return found ? found[what] : null;
}

const nameOf = row => row.pool ? `${row.namespace}/${row.pool}` : row.class;

function bar(row, most) {
	return el("div", { class: "bars", "aria-hidden": "true" },
		uses.map(u => spent(row, u) ? el("span", { title: u.name, style: { width: `${(100 * spent(row, u) / most).toFixed(2)}%`, background: `var(${u.color})` } }) : null));
}

function rowsTable(rows, what) {
	const most = Math.max(1e-9, ...rows.map(r => uses.reduce((sum, u) => sum + (spent(r, u) || 0), 0)));

	return table([{ name: what, isHead: true, of: nameOf }, { name: "Cost", isNumber: true, of: r => dollars(r.dollars) }, { name: "GPU hours", isNumber: true, of: r => count(r.gpuHours) },
		...uses.map(u => ({ name: u.name, isNumber: true, of: r => count(spent(r, u, "gpuHours")) })), { name: "Requests", isNumber: true, of: r => brief(r.requests) },
		{ name: "1M tokens", isNumber: true, of: r => dollars(r.dollarsPer1000Tokens === null ? null : 1000 * r.dollarsPer1000Tokens) }, { name: el("span", { class: "unseen" }, "Dollars by what GPUs did, as a bar"), of: r => bar(r, most) }],
	rows, { caption: `Cost by ${what.toLowerCase()}` });
}

function key() {
	return el("ul", { class: "legend" }, uses.map(u => el("li", null, el("span", { class: "key", style: { background: `var(${u.color})` } }), u.name)));
}

/** A card with the cost by one thing; `only(row)` picks rows. */
export function costPart(by, title, { kind = "", only = null, note = "" } = {}) {
	const part = section(title, { kind, note });

	part.tools.append(key());
	return { node: part.node, part, close() {},
		load: () => part.load(() => get("/cost", { by, ...rangeParameters() }), answer => {
			const rows = answer.rows.filter(r => r.watchedHours !== 0 && (!only || only(r)));

			fill(part.body, rows.length ? scrolling(`${title}, as a table`, rowsTable([...rows].sort((a, b) => b.dollars - a.dollars), phrase(by).replace(/^./, c => c.toUpperCase())))
				: emptiness("No GPU hour is on the books in this range."));
			return rows;
		}) };
}

export function open(host) {
	const figures = el("dl", { class: "figures", "aria-label": "Together" });
	const pools = costPart("pool", "By pool"), classes = costPart("class", "By class");

	host.append(figures, el("div", { class: "grid" }, pools.node, classes.node));

	async function load() {
		await Promise.all([pools.load(), classes.load(), get("/cost", { by: "pool", ...rangeParameters() }).then(answer => {
			const sum = of => answer.rows.reduce((total, r) => total + (of(r) || 0), 0), all = answer.dollars === null ? sum(r => r.gpuHours) : answer.dollars;

			fill(figures, figure("Cost", dollars(answer.dollars), answer.dollars === null && answer.rows.length ? "no price is given: pricePerHour of its node groups" : answer.knownFrom ? `from ${time(answer.from > answer.knownFrom ? answer.from : answer.knownFrom, { seconds: false })}` : "nothing on the books"), figure("GPU hours", count(sum(r => r.gpuHours)), "billed"),
				...uses.map(u => figure(u.name, share(all ? sum(r => spent(r, u)) / all : null), answer.dollars === null ? "of the GPU hours" : "of the dollars")));
		}, () => {})]);
	}

	return { title: "Cost", load, close() {}, isRanged: true, under: el("p", { class: "faint" }, "GPU hours and dollars, from the books of each tick. By labels of pods: ", el("code", null, "preheat cost --by label=NAME"), ".") };
}

export const poolCost = pool => costPart("pool", "Cost", { kind: "half", only: r => nameOf(r) === `${pool.namespace}/${pool.name}` });
