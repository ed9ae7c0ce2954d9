// How a pool stands, in one word with a sign of its own shape, and why in a sentence.

import { el, svg } from "/assets/dom.js";
import { attainment, count, duration, phrase, share } from "/assets/format.js";

const signs = {
	good: "M5 0a5 5 0 1 0 0 10A5 5 0 0 0 5 0z", // a disc
	warn: "M5 0l5 9.5H0z", // a triangle
	bad: "M0 0h10v10H0z", // a square
	plain: "M5 0l5 5-5 5-5-5z", // a diamond
};

/** `fine` says whether the objective's share of late requests was kept. */
function lateness(p) {
	const allowed = p.objective && p.objective.attainment !== null ? 1 - p.objective.attainment : null;
	const day = p.late && p.late.day ? p.late.day.share : null;

	if (allowed === null || day === null || day === undefined)
		return null;
	return { allowed, day, isOver: day > allowed };
}

const lowBudget = 0.25;

/** { kind, word, why } */
export function standing(p) {
	const late = lateness(p), left = p.late ? p.late.budgetLeft : null;
	const problems = p.problems || [];

	if (problems.length)
		return { kind: "bad", word: "Needs a look", why: problems[0].message };
	if (p.signals && ["stale", "gone"].includes(p.signals.state))
		return { kind: "warn", word: `Signals ${phrase(p.signals.state)}`,
			why: `The model servers have told nothing whole${p.signals.ageSeconds ? ` for ${duration(p.signals.ageSeconds)}` : ""}: the pool is not shrunk on that.` };
	if (late && late.isOver)
		return { kind: "bad", word: "Misses the objective",
			why: `${share(late.day)} of a day's requests were late; ${share(late.allowed)} may be, for ${attainment(p.objective.attainment)}.` };
	if (left !== null && left !== undefined && left < lowBudget)
		return { kind: "warn", word: "Budget low", why: `${share(Math.max(0, left))} of the error budget is left.` };
	if (p.mode === "paused" || p.mode === "observe")
		return { kind: "plain", word: p.mode === "paused" ? "Paused" : "Observed only", why: "What is decided is recorded, not acted on." };
	if (p.heldBy && p.heldBy !== "none")
		return { kind: "warn", word: `Held by ${phrase(p.heldBy)}`, why: `${count(p.wished)} hot replicas were wished, ${count(p.decided)} decided.` };
	if (p.asleep > 0 && !p.hot)
		return { kind: "plain", word: "Asleep", why: `${count(p.asleep)} replicas sleep; none serves.` };
	if (p.starting > 0)
		return { kind: "good", word: "Growing", why: "" };
	if (p.draining > 0)
		return { kind: "good", word: "Shrinking", why: "" };
	return { kind: "good", word: "As wished", why: "" };
}

export const signPath = kind => signs[kind];

export function sign(kind, word) {
	return el("span", { class: "sign", "data-kind": kind }, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("path", { d: signs[kind] })), word);
}

/** Rank of attention: what needs a look comes first. */
export function urgency(p) {
	return { bad: 0, warn: 1, plain: 3, good: 2 }[standing(p).kind];
}
