// page_view.mjs BASE: how soon the page is painted, and how long API requests take while somebody looks at a year and scrolls its log.
// Needs PAGE_MODULES and PAGE_BROWSER, as tests/web/page.sh sets them up. Prints rows for docs/benchmarks.md.

import { createRequire } from "node:module";
import path from "node:path";

const { chromium } = createRequire(path.join(process.env.PAGE_MODULES, "package.json"))("playwright-core");
const [base] = process.argv.slice(2);
const views = [["pools", "#/pools?from=-1y"], ["pool", null], ["decisions", "#/decisions?from=-1y"], ["cost", "#/cost?from=-1y"]];
const colds = 5, scrolls = 40;

const settled = page => page.waitForFunction(() => document.querySelector("main:not([aria-busy]) h1"));
const requests = page => page.evaluate(() => performance.getEntriesByType("resource").filter(r => r.name.includes("/api/v1") && !r.name.endsWith("/events")).map(r => ({ name: r.name, ms: r.responseEnd - r.requestStart })));
const slowest = all => all.reduce((a, b) => a.ms > b.ms ? a : b, { ms: 0, name: "" });
const row = (what, ms, more = "") => console.log(`| ${what} | ${Math.round(ms)} ms${more} |`);

const browser = await chromium.launch({ executablePath: process.env.PAGE_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
const index = await (await fetch(`${base}/api/v1/pools`)).json(), pool = `${index.items[0].namespace}/${index.items[0].name}`;

async function open(hash) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 } }), page = await context.newPage();

	await page.addInitScript(() => performance.setResourceTimingBufferSize(5000));
	await page.goto(`${base}/${hash}`);
	await settled(page);
	return { page, context };
}

console.log("| what | measured |\n|---|---|");
for (const [name, hash] of views) {
	const paints = [], whole = [], all = [];

	for (let i = 0; i < colds; i++) {
		const { page, context } = await open(hash || `#/pool/${pool}?from=-1y`);

		paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
		whole.push(await page.evaluate(() => performance.now()));
		all.push(...await requests(page));
		await context.close();
	}
	row(`${name}, a year: first paint, cold, the slowest of ${colds}`, Math.max(...paints));
	row(`${name}, a year: all there, the slowest of ${colds}`, Math.max(...whole), `; slowest request ${Math.round(slowest(all).ms)} ms`);
}

const { page } = await open("#/decisions?from=-1y");
await page.evaluate(() => performance.clearResourceTimings());
for (let i = 0; i < scrolls; i++) {
	const before = await page.locator(".log li").count();

	await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
	await page.waitForFunction(n => document.querySelectorAll(".log li").length > n, before);
}
const seen = await requests(page);
row(`the log of a year scrolled through ${await page.locator(".log li").count()} decisions: slowest of ${seen.length} requests`, slowest(seen).ms);
await page.getByLabel("Only what asked for something").check();
await page.waitForFunction(() => location.hash.includes("changed=true"));
await settled(page);
for (let i = 0; i < scrolls / 3; i++) {
	await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
	await page.waitForTimeout(50);
}
row("the same, only what asked for something: slowest request", slowest(await requests(page)).ms);
await browser.close();
