/* The rivals of a pool: a chart of every run, and the choice of each family. Called by page.js. */
"use strict";

/* A family has a sign and a colour; its variants ("hpa + standby") have the hollow sign. */
const signs = ["▲△", "■□", "◆◇", "▼▽", "✚✛", "✖✕", "●○"];
const signColors = ["--late", "--lent", "--cost", "--standby", "--draining", "--wait", "--hot"];

function lookOf(family, families) {
	if (family === numbers.policy)
		return { sign: "★", color: "--mark", size: 24 };
	const base = name => name.split(" + ")[0], names = [...new Set(families.map(base))].filter(name => name !== numbers.policy);
	const at = names.indexOf(base(family)) % signs.length;
	return { sign: signs[at][family === base(family) ? 0 : 1], color: signColors[at], size: 11 };
}

/* Runs that no other run beats both in what they spend and in late share, cheapest first. */
function frontierOf(runs, spent) {
	let least = Infinity;
	return [...runs].sort((a, b) => spent(a) - spent(b) || a.late_share - b.late_share)
		.filter(run => run.late_share < least && ((least = run.late_share), true));
}

/* A pool without prices has GPU hours. */
const spentOf = pool => pool.is_priced ? r => r.dollars : r => r.gpu_hours;
const moneyOf = pool => pool.is_priced ? dollars : v => `${decimal(v)} GPU hours`;

function rivalChart(pool, families, best) {
	const spent = spentOf(pool), money = moneyOf(pool), unit = pool.is_priced ? "dollars" : "GPU hours";
	const floor = Math.min(1, ...pool.rivals.map(r => r.late_share).filter(v => v > 0)) / 2;
	const place = r => Math.max(r.late_share, floor);
	const runs = [...pool.rivals].sort((a, b) => place(a) - place(b)), frontier = new Set(frontierOf(runs, spent));
	const sizeOf = (r, look) => best.has(r) ? Math.max(look.size, 20) : look.size, allowed = pool.objective_late_ppm / 1e6;
	const mark = r => {
		const look = lookOf(r.family, families);
		return { ...look, x: place(r), y: spent(r), size: sizeOf(r, look),
			text: `${look.sign} ${r.family} ${r.setting}\n${percent(r.late_share)} late, ${pool.is_priced ? `${dollars(r.dollars)}, ` : ""}` +
				`${decimal(r.gpu_hours)} GPU hours${best.has(r) ? "\ncheapest of its family that meets the objective" : ""}` };
	};
	return {
		x: runs.map(place), xKind: "log", xName: "late share", showX: shortPercent, showAt: percent, xLegend: "late share",
		title: `Rivals: ${unit} over lateness`, yName: unit, showY: shortNumber, height: 380, isFree: true,
		says: "Each sign is one run on the same traffic; large ones are the cheapest of their family that meet the objective. " +
			"The line joins the runs that none beats in both. Further left and lower is better.",
		series: [{ name: "all runs", values: runs.map(spent), color: "--faint", shape: "none", show: money },
			{ name: "frontier", values: runs.map(r => frontier.has(r) ? spent(r) : null), color: "--faint", shape: "line", joined: true,
				show: money }],
		marks: runs.map(mark).sort((a, b) => b.size - a.size),
		xLimits: allowed > 0 ? [{ x: allowed, name: `objective ${shortPercent(allowed)}` }] : [],
	};
}

const meets = (pool, run) => run.late_share * 1e6 <= pool.objective_late_ppm;

/* The cheapest run of a family that meets the objective, else the one that comes nearest. */
function choiceOf(pool, family) {
	const runs = pool.rivals.filter(r => r.family === family), met = runs.filter(r => meets(pool, r));
	const least = (list, key) => list.reduce((a, b) => a && key(a) <= key(b) ? a : b, undefined);
	return met.length ? least(met, spentOf(pool)) : least(runs, r => r.late_share);
}

function rivalPart(section, pool) {
	if (!pool.rivals.length)
		return;
	const families = [...new Set(pool.rivals.map(r => r.family))], choices = families.map(family => choiceOf(pool, family));
	const best = new Set(choices.filter(r => meets(pool, r)));
	figure(section, rivalChart(pool, families, best));
	section.append(element("ul", { class: "key", "aria-label": "Signs" }, ...families.map(family => {
		const look = lookOf(family, families), sign = element("span", {}, `${look.sign} `);
		sign.style.color = `var(${look.color})`;
		return element("li", {}, sign, family);
	})));
	choices.sort((a, b) => best.has(b) - best.has(a) || spentOf(pool)(a) - spentOf(pool)(b));
	section.append(element("div", { class: "scroll", tabindex: "0" }, tableOf(
		"The cheapest setting of each that meets the objective (✓), or the one that comes nearest (✗).", [
			["Family", r => r.family], ["Setting", r => r.setting || "defaults"],
			["Late share", r => element("span", { class: best.has(r) ? "good" : "bad" }, `${best.has(r) ? "✓" : "✗"} ${percent(r.late_share)}`),
				"number"],
			["Draws", r => count(r.draws), "number"], ["GPU hours", r => decimal(r.gpu_hours), "number"], ["Cost", r => pool.is_priced ? dollars(r.dollars) : "–", "number"],
		], choices)));
}
