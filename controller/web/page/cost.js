// What GPUs did and what that cost, by pool, class or label.

import { get } from "/assets/api.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { figure } from "/assets/pools.js";
import { rangeParameters } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { count, dollars, phrase, share } from "/assets/words.js";

const uses = [
	{ name: "Used", keys: ["usedHours", "used"], color: "--hot" }, { name: "Lent", keys: ["lentHours", "lent"], color: "--lent" },
	{ name: "Starting", keys: ["startingHours", "starting"], color: "--starting" }, { name: "Idle", keys: ["idleHours", "idle"], color: "--draining" },
	{ name: "Standby", keys: ["standbyHours", "standby"], color: "--standby" },
];
const of = (row, keys) => keys.map(k => row[k]).find(v => v !== undefined && v !== null) ?? null;
const hours = row => of(row, ["gpuHours", "gpu_hours", "hours"]);
const nameOf = row => row.name ?? row.key ?? row.pool ?? row.class ?? row.label ?? "–";

function bar(row, most) {
	return el("div", { class: "bars", "aria-hidden": "true" },
		uses.map(u => of(row, u.keys) ? el("span", { title: u.name, style: { width: `${(100 * of(row, u.keys) / most).toFixed(2)}%`, background: `var(${u.color})` } }) : null));
}

function rowsTable(rows, what) {
	const present = uses.filter(u => rows.some(r => of(r, u.keys) !== null));
	const all = r => present.reduce((sum, u) => sum + (of(r, u.keys) || 0), 0), most = Math.max(1e-9, ...rows.map(all));

	return table([{ name: what, isHead: true, of: nameOf }, { name: "Cost", isNumber: true, of: r => dollars(r.dollars) }, { name: "GPU hours", isNumber: true, of: r => count(hours(r)) },
		...present.map(u => ({ name: u.name, isNumber: true, of: r => count(of(r, u.keys)) })),
		{ name: el("span", { class: "unseen" }, "What GPUs did, as a bar"), of: r => bar(r, most) }], rows, { caption: `Cost by ${what.toLowerCase()}` });
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
			const rows = (answer.rows || answer.items || []).filter(r => !only || only(r));

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
			const rows = answer.rows || answer.items || [], sum = keys => rows.reduce((s, r) => s + (of(r, keys) || 0), 0);
			const all = rows.reduce((s, r) => s + (hours(r) || 0), 0);

			fill(figures, figure("Cost", dollars(sum(["dollars"])), "in this range"), figure("GPU hours", count(all), "billed or held"),
				...uses.map(u => figure(u.name, share(all ? sum(u.keys) / all : null), "of GPU hours")));
		}, () => {})]);
	}

	return { title: "Cost", load, close() {}, isRanged: true, under: el("p", { class: "faint" }, "GPU hours and dollars, from the books of each tick. By labels of pods: ", el("code", null, "preheat cost --by label=NAME"), ".") };
}

export const poolCost = pool => costPart("pool", "Cost", { kind: "half", only: r => [pool.name, `${pool.namespace}/${pool.name}`].includes(nameOf(r)) });
