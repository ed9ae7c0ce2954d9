// A recorded number with its unit, as explain writes it.

import { attainment, count, dollars, duration, phrase, share, time, unknown } from "/assets/format.js";

const shown = {
	milli: v => count(v / 1000),
	count: v => count(v),
	ppm: v => share(v / 1e6),
	ms: v => duration(v / 1000),
	us: v => `${count(v / 1000)}ms`,
	"micro$": v => dollars(v / 1e6),
	time: v => v ? time(typeof v === "number" ? v / 1000 : v, { year: true }) : unknown,
};

export function valueOf(name, v, unit) {
	if (v === null || v === undefined)
		return unknown;
	if (typeof v === "boolean")
		return v ? "yes" : "no";
	if (typeof v === "string")
		return unit === "time" ? shown.time(v) : unit ? phrase(v) : v;
	if (name.endsWith("_permille"))
		return attainment(v / 1000);
	if (name === "price_per_hour")
		return dollars(v / 1e6);
	return shown[unit] ? shown[unit](v) : String(v);
}
