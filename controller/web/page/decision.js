// One decision in full, in a drawer over whatever was looked at: sentences first, then every number, then what went in.

import { here } from "/assets/address.js";
import { get } from "/assets/api.js";
import { byId, copyBox, el, fill, scrolling, table } from "/assets/dom.js";
import { valueOf } from "/assets/field_value.js";
import { count, phrase, time } from "/assets/format.js";

let opener = null, shown = null;

function split(name) {
	const [tick, namespace, ...rest] = name.split("/");

	return { tick, namespace, pool: rest.join("/") };
}

function sentences(d) {
	return el("dl", { class: "sentences" }, d.explanation.map(p => [el("dt", null, p.title), el("dd", null, p.text)]));
}

/** What a shell takes as one word. */
const quoted = text => /^[A-Za-z0-9_./:=-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;

/** The command that tells the same in a terminal. */
export function explainBox(d, overview) {
	const db = overview.source && overview.source.kind === "file" && overview.source.path ? ` --db ${quoted(overview.source.path)}` : "";
	const text = `preheat explain${db} --tick ${d.tick} --pool ${quoted(d.pool)}`;

	return copyBox(text, "The command is copied.");
}

function fieldsOf(record, units = {}) {
	const rows = Object.entries(record).filter(([, v]) => v === null || typeof v !== "object");

	return table([{ name: "Field", isHead: true, of: ([name]) => phrase(name).replace(/ (milli|ppm|permille|ms|us)$/, "") },
		{ name: "Value", isNumber: true, of: ([name, v]) => valueOf(name, v, units[name]) }], rows);
}

function listOf(name, rows, units = {}) {
	const columns = [...new Set(rows.flatMap(r => Object.keys(r).filter(k => r[k] === null || typeof r[k] !== "object")))];

	return scrolling(name, table(columns.map((c, i) => ({ name: phrase(c).replace(/ (milli|ppm|permille|ms|us)$/, ""), isHead: i === 0, isNumber: i > 0,
		of: r => valueOf(c, r[c], units[c]) })), rows, { caption: name }));
}

function folded(name, ...content) {
	return el("details", null, el("summary", null, name), content);
}

function inputs(input, units) {
	const lists = Object.entries(input).filter(([, v]) => Array.isArray(v) && v.length && typeof v[0] === "object");
	const unitsOf = { scrapes: "scrape_input", groups: "group_input", starts: "start_input", events: "event_input", deadlines: "deadline_input" };

	return [folded("What was seen of the pool", fieldsOf(input, units.pool_input)),
		...lists.map(([name, rows]) => folded(`Input: ${phrase(name)} (${count(rows.length)})`, listOf(phrase(name), rows, units[unitsOf[name]])))];
}

function neighbours(d) {
	const to = (tick, words) => tick === null || tick === undefined ? null : el("a", { class: "button", href: here({ open: `${tick}/${d.namespace}/${d.pool}` }) }, words);

	return el("div", { class: "tools" }, to(d.previous, "← Tick before"), to(d.next, "Tick after →"));
}

function body(d, overview) {
	const { units, input } = d;

	return [
		el("p", { class: "faint" }, `${time(d.at, { year: true })} · tick ${d.tick} · ${d.namespace}${d.policy === "preheat" ? "" : ` · decided by ${d.policy}`}`),
		sentences(d),
		neighbours(d),
		el("div", null, el("h3", null, "The same in a shell"), explainBox(d, overview)),
		el("div", null,
			d.decision ? folded("Every number of the decision", fieldsOf(d.decision, units.pool_decision)) : null,
			d.groups && d.groups.length ? folded(`Node groups (${count(d.groups.length)})`, listOf("Node groups", d.groups, units.group_decision)) : null,
			d.prices && d.prices.length ? folded("Price of each objective", listOf("Price of each objective", d.prices, units.objective_price)) : null,
			input ? inputs(input, units) : null),
	];
}

function frame(title, close, ...content) {
	return [el("div", { class: "drawer-head" }, el("h2", { id: "drawer-title", tabindex: "-1" }, title),
		el("button", { type: "button", on: { click: close } }, "Close")), el("div", { class: "drawer-body" }, content)];
}

export async function showDecision(name, overview, onClose) {
	const drawer = byId("drawer"), d = split(name);
	const title = `Why ${d.pool} had this size`;
	const close = () => drawer.close();

	if (!drawer.open) {
		opener = document.activeElement;
		fill(drawer, frame(title, close, el("p", { class: "loading" }, "Reading.")));
		drawer.showModal();
		drawer.onclose = () => { if (shown) onClose(); };
		// Beside the drawer; what a handler returns must not hold up links and folds inside.
		drawer.onclick = event => { if (event.target === drawer) close(); };
	}
	shown = name;
	try {
		const answer = await get(`/decisions/${encodeURIComponent(d.tick)}/${encodeURIComponent(d.namespace)}/${encodeURIComponent(d.pool)}`);

		if (shown !== name)
			return;
		fill(drawer, frame(title, close, body({ ...answer, ...d, at: answer.at }, overview)));
	} catch (e) {
		if (shown !== name)
			return;
		fill(drawer, frame(title, close, el("p", { class: "failed", role: "alert" }, e.message)));
	}
	drawer.scrollTop = 0;
	byId("drawer-title").focus();
}

export function closeDecision() {
	shown = null;
	byId("drawer").close();
	if (opener && opener.isConnected)
		opener.focus();
	opener = null;
}
