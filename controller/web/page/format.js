// Numbers, money, times and states as people read them. Not known is "–", never 0.

import { settings } from "/assets/settings.js";

export const unknown = "–";

const isKnown = v => v !== null && v !== undefined && !Number.isNaN(v);
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const minus = text => text.replace("-", "−");

/** 6.2, 14, 1,283: two or three digits that matter. */
export function count(v) {
	if (!isKnown(v))
		return unknown;
	if (Math.abs(v) >= 20 || Number.isInteger(v))
		return minus(plain.format(v));
	return minus(v.toFixed(Math.abs(v) >= 1 ? 1 : 2).replace(/\.0+$/, ""));
}

export function brief(v) {
	if (!isKnown(v))
		return unknown;
	for (const [least, sign] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
		if (Math.abs(v) >= least)
			return `${(v / (sign === "k" ? 1e3 : least)).toFixed(1).replace(/\.0$/, "")}${sign}`;
	return count(v);
}

export function dollars(v) {
	if (!isKnown(v))
		return unknown;
	const digits = Math.abs(v) >= 100 || v === 0 ? 0 : Math.abs(v) >= 0.1 ? 2 : 4;

	return (v < 0 ? "−$" : "$") + Math.abs(v).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A share of 0..1 as per cent. */
export function share(v) {
	if (!isKnown(v))
		return unknown;
	const p = v * 100;
	const digits = p === 0 || Math.abs(p) >= 10 ? 1 : Math.abs(p) >= 0.01 ? 2 : 4;

	return `${minus(p.toFixed(digits).replace(digits > 2 ? /\.?0+$/ : /\.0+$/, ""))} %`;
}

/** An objective's attainment: all the nines it has. */
export function attainment(v) {
	return isKnown(v) ? `${Number((v * 100).toFixed(5))} %` : unknown;
}

/** Seconds as "2s", "6m20s", "3h", "250ms". */
export function duration(s) {
	if (!isKnown(s))
		return unknown;
	if (s < 0)
		return `−${duration(-s)}`;
	if (s < 1)
		return s === 0 ? "0s" : `${Math.max(1, Math.round(s * 1000))}ms`;
	if (s < 10)
		return `${Number(s.toFixed(1))}s`;
	const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
	let rest = Math.round(s), words = "", told = 0;

	for (const [size, sign] of parts) {
		const n = Math.floor(rest / size);

		rest -= n * size;
		if (n && told < 2)
			words += `${n}${sign}`;
		told += told || n ? 1 : 0;
	}
	return words;
}

const formats = new Map();

function format(options) {
	const zone = settings.isUtc ? "UTC" : undefined, key = JSON.stringify([options, zone]);

	if (!formats.has(key))
		formats.set(key, new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone, hourCycle: "h23" }));
	return formats.get(key);
}

const dateOf = at => at instanceof Date ? at : new Date(typeof at === "number" ? at * 1000 : at);

/** RFC 3339 or Unix seconds: "21 Nov, 14:32:15"; the year where it is not that of the history's end. */
export function time(at, { seconds = true, year } = {}) {
	if (!isKnown(at))
		return unknown;
	const options = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };

	if (seconds)
		options.second = "2-digit";
	if (year)
		options.year = "numeric";
	return format(options).format(dateOf(at)).replace(" at ", ", ");
}

/** "21 Nov" */
export function day(at) {
	return isKnown(at) ? format({ day: "numeric", month: "short" }).format(dateOf(at)) : unknown;
}

export function clock(at) {
	return isKnown(at) ? format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(dateOf(at)) : unknown;
}

export function zoneName() {
	if (settings.isUtc)
		return "UTC";
	const part = format({ timeZoneName: "short" }).formatToParts(new Date()).find(p => p.type === "timeZoneName");

	return part ? part.value : "local";
}

/** "g5-spot" of group names and the like stay as they are; "lead_time" and "leadTime" become words. */
export function phrase(name) {
	return String(name).replace(/[_-]+/g, " ").replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
}

export function plural(n, one, many = `${one}s`) {
	return `${count(n)} ${n === 1 ? one : many}`;
}

export function objective(o) {
	if (!o)
		return unknown;
	if (isKnown(o.violationCost) && o.violationCost !== 0)
		return `${dollars(o.violationCost)} a request later than ${duration(o.queueWaitSeconds)}`;
	return `${attainment(o.attainment)} within ${duration(o.queueWaitSeconds)}`;
}
