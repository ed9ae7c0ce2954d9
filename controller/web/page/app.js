// The page: which view the address names, when it loads again, and what all views share.

import { change, link, onAddress, path, query } from "/assets/address.js";
import { get } from "/assets/api.js";
import { byId, el, fill, say } from "/assets/dom.js";
import { closeDecision, showDecision } from "/assets/decision.js";
import { listenToKeys } from "/assets/shortcuts.js";
import { follow, onTick } from "/assets/live.js";
import { knowHistory, rangePicker } from "/assets/range.js";
import { chooseTheme, chooseZone, onSetting, settings } from "/assets/settings.js";
import { zoneName } from "/assets/format.js";

const views = {
	pools: () => import("/assets/pools.js"),
	pool: () => import("/assets/pool.js"),
	incidents: () => import("/assets/incidents.js"),
	incident: () => import("/assets/incident.js"),
	decisions: () => import("/assets/decisions.js"),
	cost: () => import("/assets/cost.js"),
	"what-if": () => import("/assets/what_if.js"),
};
const leastPause = 2000;

/* What an address names that is no view. */
const missing = { open: (host, parts) => ({ title: "No such page", async load() {}, close() {},
	under: el("p", { class: "lead" }, "There is no page at ", el("code", null, `#/${parts.join("/")}`), ". ", el("a", { href: link(["pools"]) }, "Overview")) }) };

const overview = { pools: [], source: {}, history: {} };
let view = null, picker = null, turn = 0, loading = false, isWanted = false, lastLoad = 0;

async function learn() {
	const about = await get("");

	Object.assign(overview, about);
	knowHistory(about.history || { from: null, to: null });
	return about;
}

function header(title) {
	const heading = view.heading || el("h1", { tabindex: "-1" }, title);

	picker = view.isRanged ? rangePicker() : null;
	if (picker && view.rangePlace)
		view.rangePlace.append(picker.node);
	return el("div", { class: "head" }, el("div", { class: "head-text" }, view.crumbs ? el("p", { class: "crumbs" }, view.crumbs) : null, heading, view.under || null),
		picker && !view.rangePlace ? picker.node : null);
}

function markTabs(name) {
	const tab = { pool: "pools", incident: "incidents" }[name] || name;

	for (const a of document.querySelectorAll(".tabs a")) {
		a.setAttribute("href", link([a.dataset.view]));
		if (a.dataset.view === tab)
			a.setAttribute("aria-current", "page");
		else
			a.removeAttribute("aria-current");
	}
}

async function show(isFirst) {
	const mine = ++turn, parts = path(), name = Object.hasOwn(views, parts[0]) ? parts[0] : null;
	const module = name ? await views[name]() : missing;
	const host = el("div", { class: "fades" });

	if (mine !== turn)
		return;
	byId("main").setAttribute("aria-busy", "true");
	if (view)
		view.close();
	view = module.open(host, parts, overview);
	document.title = `${view.title} – Preheat`;
	fill(byId("main"), header(view.title), host);
	markTabs(name);
	if (!isFirst) {
		scrollTo(0, 0);
		byId("main").querySelector("h1").focus({ preventScroll: true });
	}
	await loadWhole();
}

/* Busy until all that the view asked for is there. */
async function loadWhole() {
	const mine = view;

	byId("main").setAttribute("aria-busy", "true");
	await mine.load(false);
	if (mine === view)
		byId("main").removeAttribute("aria-busy");
}

/* New ticks come often; one load at a time, with a pause, and none while nobody looks. */
async function reload() {
	if (loading || document.hidden || Date.now() - lastLoad < leastPause) {
		if (!isWanted && !document.hidden)
			setTimeout(() => { if (isWanted) { isWanted = false; reload(); } }, leastPause);
		isWanted = true;
		return;
	}
	loading = true;
	lastLoad = Date.now();
	try {
		await learn();
		if (picker)
			picker.update();
		if (view)
			await view.load(true);
	} catch {
		// the line at the top says that the connection is lost
	}
	loading = false;
}

function moved(now, before) {
	const keys = (view && view.addressKeys) || ["from", "to"];
	const isElsewhere = now.path.join("/") !== before.path.join("/");

	if (now.query.get("open") !== before.query.get("open") || isElsewhere)
		openDecision();
	if (isElsewhere) {
		show(false);
		return;
	}
	if (keys.some(k => now.query.get(k) !== before.query.get(k))) {
		if (picker)
			picker.update();
		markTabs(now.path[0]);
		loadWhole();
	}
}

function openDecision() {
	if (query("open"))
		showDecision(query("open"), overview, () => change({ open: null }));
	else
		closeDecision();
}

function showSource(about) {
	const s = about.source;
	const words = s.kind === "controller" ? [s.identity, s.role && (s.role === "leader" ? "leads" : `follows ${s.leader || ""}`), s.isDryRun && "dry run: changes nothing"]
		: [s.path];

	say(byId("source"), [`Preheat ${about.program}`, ...words].filter(Boolean).join(" · "));
}

function switches() {
	const zone = byId("zone"), theme = byId("theme"), order = ["system", "light", "dark"];
	const update = () => {
		say(zone, settings.isUtc ? "UTC" : zoneName() === "UTC" ? "Local (UTC)" : zoneName());
		zone.setAttribute("aria-label", `${zone.textContent}: times in ${settings.isUtc ? "UTC" : "local time"}, change`);
		say(byId("theme-text"), `Colours: ${settings.theme === "system" ? "as the system" : settings.theme}`);
		theme.setAttribute("title", byId("theme-text").textContent);
	};

	zone.addEventListener("click", () => chooseZone(!settings.isUtc));
	theme.addEventListener("click", () => chooseTheme(order[(order.indexOf(settings.theme) + 1) % order.length]));
	onSetting(what => {
		update();
		if (what === "zone" && view) {
			if (picker)
				picker.update();
			loadWhole();
		}
	});
	update();
}

async function start() {
	byId("skip").addEventListener("click", event => { event.preventDefault(); byId("main").focus(); });
	switches();
	listenToKeys();
	try {
		const about = await learn();

		showSource(about);
		follow(about.source, about.history);
	} catch (e) {
		fill(byId("main"), el("div", { class: "failed", role: "alert" }, el("span", null, e.message),
			el("button", { type: "button", on: { click: () => { fill(byId("main")); start.again(); } } }, "Try again")));
		return;
	}
	onAddress(moved);
	onTick(reload);
	document.addEventListener("visibilitychange", () => !document.hidden && isWanted && reload());
	await show(true);
	if (query("open"))
		openDecision();
}

start.again = () => location.reload();
start();
