// A browser that minds: whatever a page complains about, and every request to elsewhere, is kept and told.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const modules = createRequire(path.join(process.env.PAGE_MODULES, "package.json"));
const { chromium } = modules("playwright-core");
const axeSource = fs.readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

// Generous: a busy machine is slow, not wrong.
export const patience = 60000;

export class Fault extends Error {}

export function must(isSo, words) {
	if (!isSo)
		throw new Fault(words);
}

/** Waits until `ask()` gives something true, and returns it. */
export async function until(words, ask) {
	const end = Date.now() + patience;

	for (;;) {
		const answer = await ask();

		if (answer)
			return answer;
		must(Date.now() < end, `waited for: ${words}`);
		await new Promise(resolve => setTimeout(resolve, 100));
	}
}

export async function openBrowser(executablePath) {
	return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
}

/** A page of its own with `complaints`, a list that must stay empty. */
export async function openPage(browser, { base, width = 1280, height = 900, colors = "light", zone = "Europe/Berlin" }) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme: colors, timezoneId: zone, locale: "en-GB", reducedMotion: "reduce" });
	const page = await context.newPage(), complaints = [];

	await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: base });
	page.setDefaultTimeout(patience);
	page.on("console", m => ["error", "warning"].includes(m.type()) && complaints.push(`console: ${m.text()} (${m.location().url})`));
	page.on("pageerror", e => complaints.push(`error: ${e.stack || e.message}`));
	page.on("request", r => !r.url().startsWith(base) && !r.url().startsWith("data:") && complaints.push(`request to elsewhere: ${r.url()}`));
	return { page, complaints, context };
}

/** The page is there and has loaded all that it wanted. */
export async function settle(page) {
	await page.waitForFunction(() => document.querySelector("main:not([aria-busy]) h1"));
	await page.waitForFunction(() => document.fonts.status === "loaded");
}

export async function go(page, base, hash) {
	await page.goto("about:blank"); // the same page with another # would not be loaded anew
	await page.goto(`${base}/${hash}`);
	await settle(page);
}

/** Every canvas that shows must have been painted with more than one colour. */
export async function blankCharts(page) {
	return page.evaluate(() => [...document.querySelectorAll(".chart-area canvas")].filter(c => c.clientWidth).filter(c => {
		const pixels = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer), seen = new Set();

		for (let i = 0; i < pixels.length && seen.size < 4; i += 7)
			seen.add(pixels[i]);
		return seen.size < 4;
	}).map(c => c.closest(".chart-area").getAttribute("aria-label")));
}

export async function accessible(page, where) {
	await page.evaluate(axeSource);
	const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));

	must(found.passes === undefined || found.violations.length >= 0, "axe did not run");
	must(!found.violations.length, `${where}: ${found.violations.map(v => `${v.id} (${v.help}): ${v.nodes.slice(0, 3).map(n => `${n.target.join(" ")}: ${n.failureSummary}`).join("; ")}`).join("\n")}`);
}

/* Text that its box cuts or lets run into the next one, and columns of text too narrow to read; dots and folds say that there is more. */
export async function crowded(page) {
	return page.evaluate(() => [...document.querySelectorAll("main *")].filter(e => e.checkVisibility() && e.clientWidth).filter(e => {
		const s = getComputedStyle(e);

		if (e.matches(".cell-why") && e.clientWidth < 120)
			return true;
		if (e.matches(".unseen, svg *") || e.closest("[class^=u-], .uplot, .meter") || s.textOverflow === "ellipsis" || /auto|scroll/.test(s.overflowX) || !e.textContent.trim())
			return false;
		return e.scrollWidth > e.clientWidth + 1 && (s.overflowX === "hidden" || e.matches(".goal-cell, .goal-cell > *"));
	}).slice(0, 5).map(e => `${e.tagName}.${e.className} ${e.scrollWidth} in ${e.clientWidth}: ${e.textContent.slice(0, 40)}`));
}

export async function overflow(page) {
	return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}
