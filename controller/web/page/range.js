// The stretch of time that is looked at: a span that ends with the newest tick, or fixed ends. Stands in the address.

import { change, query } from "/assets/address.js";
import { el, fill, say } from "/assets/dom.js";
import { settings } from "/assets/settings.js";
import { duration, plural, time, zoneName } from "/assets/format.js";

const hour = 3600, day = 24 * hour;
const spans = [
	["1h", hour, "Last hour"], ["6h", 6 * hour, "Last 6 hours"], ["1d", day, "Last day"], ["1w", 7 * day, "Last week"],
	["1mo", 30 * day, "Last month"], ["1y", 365 * day, "Last year"],
];
const usual = "1d";
const least = 60; // seconds that are worth a look

let ends = { from: 0, to: 0 }; // of the history, Unix seconds

export function knowHistory(history) {
	ends = { from: Date.parse(history.from) / 1000 || 0, to: Date.parse(history.to) / 1000 || Date.now() / 1000 };
}

/** How much is on record: "6 days", "20h". */
export function recordedWords() {
	const seconds = ends.to - ends.from, days = Math.round(seconds / day);

	return seconds > 0.95 * day ? plural(days, "day") : duration(seconds < hour ? seconds : Math.round(seconds / hour) * hour);
}

function chosenSpan() {
	const from = query("from");

	return query("to") ? null : spans.find(([name]) => name === (from ? from.replace(/^-/, "") : usual)) || null;
}

/** Unix seconds; `isFollowing`: it ends where the history does. */
export function range() {
	const span = chosenSpan();

	if (span)
		return { from: Math.min(Math.max(ends.to - span[1], ends.from), ends.to - least), to: ends.to, isFollowing: true };
	const from = Date.parse(query("from") || "") / 1000, to = Date.parse(query("to") || "") / 1000;

	return { from: Number.isFinite(from) ? from : ends.to - day, to: Number.isFinite(to) ? to : ends.to, isFollowing: !Number.isFinite(to) };
}

const iso = at => new Date(Math.round(at) * 1000).toISOString().replace(".000Z", "Z");

/** The same for a call of the API. */
export function rangeParameters() {
	const r = range();

	return { from: iso(r.from), to: r.isFollowing ? undefined : iso(r.to) };
}

/** Chosen by drag on a chart, or typed. */
export function look(from, to) {
	change({ from: iso(from), to: iso(to) });
}

export function lookUsual() {
	change({ from: null, to: null });
}

const two = n => String(n).padStart(2, "0");

/** For an <input type="datetime-local">, in the zone of the page. */
function typed(at) {
	const d = new Date(at * 1000), u = settings.isUtc ? "UTC" : "";

	return `${d[`get${u}FullYear`]()}-${two(d[`get${u}Month`]() + 1)}-${two(d[`get${u}Date`]())}T` +
		`${two(d[`get${u}Hours`]())}:${two(d[`get${u}Minutes`]())}`;
}

const untyped = text => Date.parse(settings.isUtc ? `${text}Z` : text) / 1000;

function form(close) {
	const r = range();
	const from = el("input", { type: "datetime-local", id: "range-from", value: typed(r.from), required: true });
	const to = el("input", { type: "datetime-local", id: "range-to", value: typed(r.to), required: true });
	const wrong = el("p", { class: "small", role: "alert" });
	const submit = event => {
		event.preventDefault();
		const a = untyped(from.value), b = untyped(to.value);

		if (!(a < b)) {
			say(wrong, "The end must be later than the start.");
			to.setAttribute("aria-invalid", "true");
			return;
		}
		close();
		look(a, b);
	};

	return el("form", { class: "range-form", "aria-label": "Custom range", on: { submit } },
		el("div", { class: "field" }, el("label", { for: "range-from" }, `From (${zoneName()})`), from),
		el("div", { class: "field" }, el("label", { for: "range-to" }, `To (${zoneName()})`), to),
		wrong,
		el("div", { class: "tools" }, el("button", { type: "submit", class: "first" }, "Show"),
			el("button", { type: "button", on: { click: close } }, "Cancel")));
}

/** The row of buttons; update() after the address or the history has changed. */
export function rangePicker() {
	const text = el("span", { class: "range-text" });
	const buttons = spans.map(([name, , words]) =>
		el("button", { type: "button", "aria-label": `${name}, ${words.toLowerCase()}`, title: words,
			on: { click: () => change({ from: name === usual ? null : `-${name}`, to: null }) } }, name));
	const own = el("button", { type: "button", "aria-expanded": "false" }, "Custom range");
	const place = el("div");
	const node = el("div", { class: "range", role: "group", "aria-label": "Range of time" }, text,
		el("div", { class: "segments" }, buttons), own, place);
	const close = () => {
		fill(place);
		own.setAttribute("aria-expanded", "false");
		own.focus();
	};

	own.addEventListener("click", () => {
		if (place.firstChild)
			return close();
		own.setAttribute("aria-expanded", "true");
		fill(place, form(close));
		place.querySelector("input").focus();
	});
	node.addEventListener("keydown", event => event.key === "Escape" && place.firstChild && close());
	const update = () => {
		const span = chosenSpan(), r = range();

		buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(spans[i] === span)));
		own.setAttribute("aria-pressed", String(!span));
		say(text, `${time(r.from, { seconds: false, year: true })} – ` +
			`${time(r.to, { seconds: false, year: true })} ${zoneName()}`);
	};

	update();
	return { node, update };
}
