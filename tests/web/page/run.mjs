// run.mjs PREHEAT HISTORY_GROW HISTORY FOLDER [SHOTS]: all checks; with SHOTS pictures for the docs go there.

import path from "node:path";

import * as checks from "./checks.mjs";
import { openBrowser, openPage } from "./browser.mjs";
import { end, endAll, growing, view } from "./server.mjs";
import { takePictures } from "./pictures.mjs";

const [preheat, growProgram, history, folder, shots] = process.argv.slice(2);
const held = 400;

const plan = [
	["pools at a glance", checks.poolsAtAGlance], ["the first answers", checks.theFirstAnswers], ["an incident", checks.anIncident], ["an incident, narrow and dark", checks.anIncident, { width: 360, height: 740, colors: "dark" }], ["what to change", checks.whatToChange], ["a finished file", checks.aFinishedFile], ["a finished file, narrow", checks.aFinishedFile, { width: 360, height: 740 }], ["a record to midnight", checks.recordToMidnight], ["axes hold their numbers", checks.axesHoldTheirNumbers], ["other fleets", checks.otherFleets], ["charts of a pool", checks.chartsOfAPool], ["a table in place of a chart", checks.tableInPlaceOfAChart],
	["drag on a chart zooms", checks.dragZooms], ["a range of one's own, zones", checks.ownRange], ["filters of the log", checks.filtersOfTheLog],
	["the log scrolls", checks.theLogScrolls], ["a decision explained", checks.aDecisionExplained, { mayFail: /404/ }], ["what if", checks.whatIf, { mayFail: /400/ }],
	["live without reload", checks.liveWithoutReload, { isGrown: true }], ["by keyboard alone", checks.byKeyboardAlone], ["colours are kept", checks.colours],
	["accessible, light", checks.everyViewIsAccessible], ["accessible, dark", checks.everyViewIsAccessible, { colors: "dark" }],
	["accessible, narrow", checks.everyViewIsAccessible, { width: 360, height: 740 }],
	["nothing is too wide at 360", checks.nothingIsTooWide, { width: 360, height: 740 }], ["nothing is too wide at 800", checks.nothingIsTooWide, { width: 800 }],
	["nothing is too wide at 1024", checks.nothingIsTooWide, { width: 1024 }], ["nothing is too wide at 1440", checks.nothingIsTooWide, { width: 1440 }],
	["what is not there", checks.firstStart, { mayFail: /404/ }], ["stale, and back", checks.staleAndBack, { isGrown: true }],
];

async function main() {
	const grown = path.join(folder, "grown.db");
	const grow = await growing(growProgram, history, grown, held);
	// A week that lies there whole, and one that grows.
	const whole = await view(preheat, history);
	let seen = await view(preheat, grown), failures = 0;
	const browser = await openBrowser(process.env.PAGE_BROWSER);
	const server = {
		stop: () => end(seen.child),
		again: async () => { seen = await view(preheat, grown, `127.0.0.1:${seen.port}`); },
	};

	if (shots)
		await takePictures(browser, whole.base, shots);
	for (const [name, check, { mayFail, isGrown, ...look } = {}] of process.env.PAGE_ONLY ? plan.filter(([n]) => n.includes(process.env.PAGE_ONLY)) : plan) {
		const { base } = isGrown ? seen : whole;
		const { page, complaints, context } = await openPage(browser, { base, ...look });
		let wrong = null;

		try {
			await check({ page, base, complaints, grow, server });
		} catch (e) {
			wrong = e.name === "Error" && e.constructor.name === "Fault" ? e.message : e.stack;
			await page.screenshot({ path: path.join(folder, `${name.replace(/\W+/g, "-")}.png`) }).catch(() => {});
		}
		const heard = complaints.filter(c => !mayFail || !mayFail.test(c));
		if (wrong || heard.length)
			failures++;
		console.log(`${wrong || heard.length ? "FAILED" : "ok"}: ${name}${wrong ? `\n  ${wrong}` : ""}${heard.map(c => `\n  ${c}`).join("")}`);
		await context.close();
	}
	await browser.close();
	for (const { child } of [whole, seen]) {
		const code = await end(child);

		if (code !== 0) {
			failures++;
			console.log(`FAILED: preheat view ended with ${code}: ${child.errors}`);
		}
	}
	grow.child.stdin.end();
	endAll();
	console.log(failures ? `${failures} of ${plan.length} failed` : `${plan.length} checks of the page passed`);
	return failures ? 1 : 0;
}

main().then(code => process.exit(code), e => {
	console.error(e);
	endAll();
	process.exit(1);
});
