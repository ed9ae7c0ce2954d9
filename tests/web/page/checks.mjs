// What the page must do, one function a promise. Each gets { page, base, grow, ... } and throws where it is not so.

import { accessible, blankCharts, crowded, go, must, overflow, patience, settle, until } from "./browser.mjs";

const views = [["pools", "#/pools"], ["pool", "#/pool/llm/chat?from=-1w"], ["incidents", "#/incidents?from=-1w"], ["decisions", "#/decisions?from=-1w"], ["cost", "#/cost?from=-1w"], ["what if", "#/what-if?from=-1w"]];
const text = (page, selector) => page.locator(selector).first().innerText();
const rows = page => page.locator(".log li");

export async function poolsAtAGlance({ page, base }) {
	await go(page, base, "#/pools");
	const names = await page.locator(".pool-name a").allInnerTexts();

	must(["chat", "embed", "nightly"].every(n => names.includes(n)), `pools shown: ${names}`);
	must(await page.locator(".tiers-bar").count() === 3, "a bar of tiers for each pool");
	must(await page.locator(".sign svg").count() >= 3, "a state with a sign of its own for each pool");
	await until("a trend for each pool", async () => await page.locator(".spark-line[d^=M]").count() === 3);
	must(/2024/.test(await text(page, ".range-text")), "the range is told");
}

const recommended = (() => {
	const saves = { namespace: "llm", pool: "chat", kind: "saves", change: "nodeGroups[g5-od].standby.max: 0", needs: null, why: null, triedDays: 29.6, incidents: 0, incidentsLate: 0, incidentsLateWith: 0, dollarsPerDay: 521.9, savesDollarsPerDay: 15.4,
		lateShare: 0.0025, lateShareWith: 0.0041, allowedShare: 0.01 };

	return [{ ...saves, kind: "restores", change: "nodeGroups[g5-od].max: 12", savesDollarsPerDay: -5.88, needs: "quota for 12 machines", incidents: 5, incidentsLate: 41200, incidentsLateWith: 0 },
		{ ...saves, kind: "secures", change: "headroom.min: 1", savesDollarsPerDay: -4, lateShare: 0.012, lateShareWith: 0.004 }, saves];
})();

/* As if they had been tried. */
const withChanges = page => page.route("**/api/v1/recommendations", route => route.fulfill({ json: { state: "tried", triedAt: "2024-01-07T02:00:00Z", message: null, items: recommended } }));

/* What the server answers while it tries, when nothing pays, when it failed, and with changes. */
export async function whatToChange({ page, base }) {
	const at = "2024-01-07T02:00:00Z", card = page.locator("section", { has: page.getByRole("heading", { name: "Change now" }) });
	let answer = { state: "trying", triedAt: null, message: null, items: [] };
	const says = async words => until(words.source, async () => words.test(await card.innerText()));

	await page.route("**/api/v1/recommendations", route => {
		if (route.request().method() === "POST")
			answer = { state: "tried", triedAt: at, message: null, items: recommended };
		return route.fulfill({ json: answer, status: route.request().method() === "POST" ? 202 : 200 });
	});
	await go(page, base, "#/pools");
	await says(/Trying changes/);
	must(await card.getByRole("button", { name: "Try again" }).isDisabled(), "one try at a time");
	answer = { state: "tried", triedAt: at, message: null, items: [] };
	await says(/nothing pays/); // by itself
	answer = { state: "failed", triedAt: null, message: "preheat advise: no traffic", items: [] };
	await go(page, base, "#/pools");
	await says(/no traffic/);
	await card.getByRole("button", { name: "Try again" }).click();
	await says(/chat: no standby machines in g5-od/);
	await says(/−\$15\.40 a day[^]*0\.25 % → 0\.41 %, of 1 %/);
	await says(/Restores an objective\s+\+\$5\.88 a day[^]*quota for 12 machines/);
	await says(/Incidents\s+41\.2k → 0 late in the last 5/);
	await says(/Each tried alone on 30 days of recorded traffic/);
	await says(/Secures an objective[^]*Met in the last 7 days; the model misses it on the 30 days tried/);
	must(await card.locator(".change").count() === 3, "three changes");
	must(/raise the maximum of g5-od to 12 nodes, for \$5\.88 a day more/.test(await text(page, ".cure")), `what restores it is said first: ${await text(page, ".cure")}`);
}

/* While it is worked out, with figures, where the model does not fit, and when it failed. */
export async function otherFleets({ page, base }) {
	const card = page.locator("section", { has: page.getByRole("heading", { name: "Spent and saved" }) });
	const sum = (dollars, late) => ({ dollars, recordedDollars: 100, requests: 1000, late });
	const fleet = (pool, name, dollars, setting = null, modelFits = true) => ({ namespace: "llm", pool, fleet: name, setting, modelFits, week: sum(dollars / 4, 1), month: sum(dollars, name === "hot-only" ? null : 5) });
	const fleets = [fleet("chat", "recorded", 100), fleet("chat", "autoscaler", 125, "target=0.65,window=300"), fleet("chat", "static", 400, "replicas=9"), fleet("chat", "hot-only", 110, "shadows"),
		fleet("odd", "recorded", 50, null, false)];
	const report = await (await fetch(`${base}/api/v1/report`)).json();
	const days = report.pools[0].days.map(d => ({ fleet: "autoscaler", from: d.from, dollars: 900 }));
	let answer = { state: "trying", triedAt: null, message: null, fleets: [], days: [] };
	const says = async words => until(words.source, async () => words.test((await card.innerText()).replace(/\s+/g, " ")));

	await page.route("**/api/v1/alternatives", route => route.fulfill({ json: answer }));
	await go(page, base, "#/pools");
	await says(/worked out in the background/);
	answer = { state: "tried", triedAt: "2024-01-07T02:00:00Z", message: null, fleets, days };
	await says(/As it was \$150 – 0\.50 %/); // by itself
	await says(/HPA at 65 % \$175 \$25\.00, 14\.3 % 0\.50 %/);
	await says(/Static peak, 9 replicas \$450 \$300, 67 %/);
	await says(/Without standby \$160 \$10\.00, 6\.[23] % –/);
	await says(/\$25\.00 saved/);
	await says(/does not give what was recorded of odd/);
	must(/^M/.test(await card.locator(".days-line").getAttribute("d")), "a line over the days");
	answer = { state: "failed", triedAt: null, message: "preheat cost: no ticks", fleets: [], days: [] };
	await go(page, base, "#/pools");
	await says(/not known: preheat cost: no ticks/);
}

export async function chartsOfAPool({ page, base }) {
	await go(page, base, "#/pools?from=-1w");
	await page.locator(".pool-name").getByRole("link", { name: "chat", exact: true }).click();
	await until("the pool", async () => await text(page, "h1") === "chat");
	await settle(page);
	const titles = await page.locator("section h2").allInnerTexts();

	for (const title of ["Demand and capacity", "Queue wait against the objective", "Error budget", "The rule in force among its shadows",
		"The price of each objective", "Lead time by stage", "Standby and lending", "Node groups", "Cost", "Newest decisions", "What if"])
		must(titles.includes(title), `'${title}' is not among ${titles}`);
	must(!await page.locator(".failed:visible").count(), `failed: ${await page.locator(".failed:visible").allInnerTexts()}`);
	await until("charts", async () => await page.locator(".chart-area canvas:visible").count() >= 6);
	const blank = await blankCharts(page);
	must(!blank.length, `blank: ${blank}`);
	const label = await page.locator(".chart-area").first().getAttribute("aria-label");
	must(/Demand from [\d.,]+ to [\d.,]+/.test(label), `a chart in words: ${label}`);
}

export async function tableInPlaceOfAChart({ page, base }) {
	await go(page, base, "#/pool/llm/chat?from=-1d");
	const section = page.locator("section", { has: page.getByRole("heading", { name: "Demand and capacity" }) });

	await section.getByRole("button", { name: "Table: Demand and capacity" }).click();
	must(await section.locator("tbody tr").count() > 50, "rows of the chart");
	must((await section.locator("thead th").allInnerTexts()).includes("Demand"), "its columns");
	await section.getByRole("button", { name: "Table: Demand and capacity" }).click();
	must(await section.locator("canvas").first().isVisible(), "the chart again");
}

export async function dragZooms({ page, base }) {
	await go(page, base, "#/pool/llm/chat?from=-1w");
	const plot = await page.locator(".u-over").first().boundingBox();

	await page.mouse.move(plot.x + plot.width * 0.3, plot.y + 50);
	await page.mouse.down();
	await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 60, { steps: 5 });
	await page.mouse.up();
	await page.waitForURL(/from=2024-01-0\dT.*to=2024-01-0\dT/);
	await settle(page);
	const hash = new URL(page.url()).hash;
	await page.goBack();
	await until("the range of before", async () => await page.getByRole("button", { name: /^1w/ }).getAttribute("aria-pressed") === "true");
	// The link alone shows the same.
	await go(page, base, hash);
	must(await page.getByRole("button", { name: "Custom range" }).getAttribute("aria-pressed") === "true", "the range of the link");
}

export async function theFirstAnswers({ page, base }) {
	const answered = page.waitForResponse(r => r.url().includes("/api/v1/report"));

	await go(page, base, "#/pools");
	const report = await (await answered).json();
	const pools = page.locator(".goals > li");
	const incidents = page.getByRole("region", { name: "Incidents, as a table" }).locator("tbody tr");

	must(await pools.count() === report.pools.length && report.pools.length > 0, "a row for each pool");
	must(/(is|are) met in the 6 days recorded|misses its/.test(await text(page, "h1")), `the verdict first: ${await text(page, "h1")}`);
	must(/^7 days, 6 days recorded$/.test(await text(page, ".goal-cell:nth-child(2) dt")), `how much of 7 days is recorded: ${await text(page, ".goal-cell:nth-child(2) dt")}`);
	for (const [i, p] of report.pools.entries()) {
		const days = p.days.filter(d => d.share !== null), over = days.filter(d => d.isOver).length;

		must(p.days.length === 30 && await pools.nth(i).locator(".day").count() === days.length, `${p.name}: a bar for each day of ${days.length}`);
		must(await pools.nth(i).locator(".day.over").count() === over, `${p.name}: ${over} over what is allowed`);
		must(/may be late|too many/.test(await pools.nth(i).innerText()), `${p.name}: the budget as a count`);
	}
	must(await page.getByRole("region", { name: "Spent by pool, as a table" }).locator("tbody tr").count() === report.pools.length, "what each pool cost");
	must(/The record is shorter than 30 days/.test(await text(page, "main")), "a window longer than the record says so");
	const all = await (await fetch(`${base}/api/v1/incidents?from=-7d&count=500`)).json(), largest = all.items.reduce((a, b) => b.late > a.late ? b : a);
	must((await page.locator(".lead a").first().getAttribute("href")).includes(encodeURIComponent(largest.from)), `the largest incident is named, of ${largest.from}: ${await text(page, ".lead")}`);
	must(new RegExp(`${all.count} incidents in 6 days with .* late requests in all`).test(await text(page, ".lead")), `and the sum: ${await text(page, ".lead")}`);
	must(!(await incidents.allInnerTexts()).some(row => /\t0s\t/.test(row)), "no late request waited 0s");
	must(report.incidents.length > 0 && await incidents.count() === report.incidents.length, "a row for each incident");
	must(await page.getByRole("link", { name: "All incidents" }).isVisible() === report.incidentCount > report.incidents.length, "the way to all of them");
}

/* From the first screen to one incident, and to the decision that explains it. */
export async function anIncident({ page, base }) {
	await go(page, base, "#/incidents?from=-1w");
	const all = await page.evaluate(async () => (await fetch("/api/v1/incidents?from=-7d")).json());
	const rows = page.getByRole("region", { name: "Incidents, as a table" }).locator("tbody tr"), worst = all.items.reduce((a, b) => b.late > a.late ? b : a);

	must(all.count > 0 && await rows.count() === all.count, `a row for each of ${all.count}`);
	await rows.nth(all.items.indexOf(worst)).getByRole("link").click();
	await until("the incident", async () => /requests late$/.test(await text(page, "h1")));
	await settle(page);
	must((await text(page, "h1")).startsWith(`${worst.pool}, `), `whose it was: ${await text(page, "h1")}`);
	must((await text(page, ".lead")).toLowerCase().includes(worst.words.toLowerCase()), `why: ${await text(page, ".lead")}`);
	await until("charts", async () => await page.locator(".chart-area canvas:visible").count() === 2);
	must(!(await blankCharts(page)).length, "charts of it");
	const around = ms => new Date(ms).toISOString(), from = Date.parse(worst.from) - 600000, to = Date.parse(worst.to) + 1200000;
	const log = await (await fetch(`${base}/api/v1/decisions?pool=${worst.namespace}/${worst.pool}&from=${around(from)}&to=${around(to)}&changed=true&count=500`)).json();
	const first = log.items.at(-1);
	must(log.items.length > 40 && log.next === null, "an incident with many changes");
	must(new RegExp(`\\b${log.items.length} changes in ${log.ticks} ticks`).test(await text(page, "main")), "what is folded is counted");
	must(await page.locator(".log a").first().getAttribute("data-decision") === `${first.tick}/${first.namespace}/${first.pool}`, "decisions from the onset on");
	must(await page.locator(".log a").count() === Math.min(100, log.items.length), "what was decided meanwhile");
	must(!(await crowded(page)).length, `an incident, text cut: ${await crowded(page)}`);
	await accessible(page, "an incident");
	must(await overflow(page) <= 0, "an incident is too wide");
	await page.getByRole("link", { name: /^the decision of/ }).click();
	await page.getByRole("dialog").getByText("Decided", { exact: true }).waitFor();
	must(page.url().includes(`open=${worst.worstTick}`), `the decision behind it: ${page.url()}`);
	await go(page, base, "#/incident/llm/chat/2001-01-01T00:00:00Z");
	await until("what is not there", async () => /No incident of chat began/.test(await page.locator(".failed:visible").first().innerText().catch(() => "")));
}

export async function ownRange({ page, base }) {
	await go(page, base, "#/decisions?all=true");
	await page.getByRole("button", { name: "Custom range" }).click();
	await page.getByLabel(/^From/).fill("2024-01-03T08:00");
	await page.getByLabel(/^To/).fill("2024-01-03T07:00");
	await page.getByRole("button", { name: "Show" }).click();
	must(/later than the start/.test(await text(page, ".range-form [role=alert]")), "an end before its start is refused");
	await page.getByLabel(/^To/).fill("2024-01-03T09:00");
	await page.getByRole("button", { name: "Show" }).click();
	await page.waitForURL(/from=2024-01-03T07%3A00%3A00Z&to=2024-01-03T08%3A00%3A00Z/); // Berlin is an hour ahead
	await until("rows of that hour", async () => /^3 Jan, 0[89]:/.test(await rows(page).first().innerText().catch(() => "")));
	await page.getByRole("button", { name: /times in local time/ }).click();
	await until("the same in UTC", async () => /^3 Jan, 0[78]:/.test(await rows(page).first().innerText().catch(() => "")));
}

export async function filtersOfTheLog({ page, base }) {
	await go(page, base, "#/decisions?from=-1w");
	must(await rows(page).count() >= 50, "a page of decisions");
	await page.getByLabel("Pool", { exact: true }).selectOption("llm/embed");
	await until("only embed", async () => (await page.locator(".cell-pool").allTextContents()).every(t => t === "embed") && await rows(page).count() > 0);
	await page.getByLabel("Also without a change").check();
	await until("every tick", async () => page.url().includes("all=true") && await rows(page).count() >= 50);
	await page.getByLabel("Pool", { exact: true }).selectOption("llm/chat");
	await page.getByLabel("Also without a change").uncheck();
	await page.getByLabel("Held by").selectOption("stale");
	await until("held by stale signals", async () => { const t = await page.locator(".log a > :nth-child(4)").allTextContents(); return t.length && t.every(x => /stale/.test(x)); });
	must(/limit=stale/.test(page.url()) && /pool=llm%2Fchat/.test(page.url()), `filters stand in the address: ${page.url()}`);
	await page.reload();
	await settle(page);
	must(await page.getByLabel("Held by").inputValue() === "stale", "and come back with it");
	await page.getByLabel("Held by").selectOption("paused");
	await until("what to do where nothing fits", async () => /Take a filter away/.test(await text(page, ".empty").catch(() => "")));
	const known = await page.evaluate(async () => (await (await fetch("/api/v1/openapi.json")).json()).paths["/api/v1/decisions"].get.parameters.find(p => p.name === "limit").schema.enum);
	const offered = await page.getByLabel("Held by").locator("option").evaluateAll(all => all.map(o => o.value).filter(Boolean));
	must(known.join() === offered.join(), `limits of the API: ${known}; offered: ${offered}`);
}

export async function theLogScrolls({ page, base }) {
	await go(page, base, "#/decisions?from=-1w");
	const first = await rows(page).count();

	await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
	await until("older decisions", async () => await rows(page).count() > first);
	const ticks = await page.locator(".log a").evaluateAll(all => all.map(a => a.dataset.decision));
	must(new Set(ticks).size === ticks.length, "no decision twice");
}

export async function aDecisionExplained({ page, base }) {
	await go(page, base, "#/decisions?from=-1w&pool=llm%2Fchat");
	await rows(page).first().getByRole("link").click();
	const drawer = page.getByRole("dialog");
	await drawer.getByText("Decided", { exact: true }).waitFor();
	const words = await drawer.innerText();

	for (const part of ["Decided", "Seen", "Expected", "Rule", "Why", "Held by", "It costs"])
		must(words.includes(part), `'${part}' is not told`);
	must(/hot replicas?, including those/.test(words), "whole sentences");
	await drawer.getByText("Every number of the decision").click();
	await until("every number", async () => await drawer.locator("details[open] tbody tr").count() > 30);
	await drawer.getByRole("button", { name: "Copy" }).click();
	await drawer.getByRole("button", { name: "Copied" }).waitFor();
	must(/^preheat explain --db .* --tick \d+ --pool chat$/.test(await page.evaluate(() => navigator.clipboard.readText())), "the command is copied");
	const before = page.url();
	await drawer.getByRole("link", { name: /Tick before/ }).click();
	await until("the tick before", async () => page.url() !== before);
	await drawer.getByText("Decided", { exact: true }).waitFor();
	await page.keyboard.press("Escape");
	await until("the drawer is closed", async () => !page.url().includes("open="));
	await go(page, base, "#/decisions?open=99999999%2Fllm%2Fchat");
	await until("a decision that is not there", async () => /tick/i.test(await page.getByRole("dialog").getByRole("alert").innerText().catch(() => "")));
}

export async function liveWithoutReload({ page, base, grow }) {
	await go(page, base, "#/decisions?all=true");
	await until("recorded", async () => await page.locator("#live").getAttribute("data-state") === "recorded");
	must(/^recorded, ended .*2024, .* ago$/.test(await text(page, "#live-text")), `since when nothing came: ${await text(page, "#live-text")}`);
	await page.evaluate(() => { window.isTheSame = true; });
	const newest = () => page.locator(".log a").first().getAttribute("data-decision"), before = Number((await newest()).split("/")[0]);
	grow.append(1);
	await until("live", async () => await page.locator("#live").getAttribute("data-state") === "live");
	await until("a newer decision on top", async () => Number((await newest()).split("/")[0]) > before);
	// Where somebody reads, nothing moves: it is said.
	await rows(page).nth(3).getByRole("link").focus();
	const held = await page.evaluate(() => document.activeElement.dataset.decision);
	grow.append(2);
	await page.getByRole("button", { name: /new decision/i }).waitFor();
	must(await page.evaluate(() => document.activeElement.dataset.decision) === held, "focus stays");
	await go(page, base, "#/pools");
	const said = await text(page, "#live-more");
	await page.locator(".pool-name").getByRole("link", { name: "embed", exact: true }).focus();
	grow.append(3);
	await until("the tick of now", async () => await text(page, "#live-more") !== said);
	must(await page.evaluate(() => document.activeElement.textContent) === "embed", "focus stays at a glance, too");
}

export async function everyViewIsAccessible({ page, base }) {
	await withChanges(page);
	for (const [name, hash] of views) {
		await go(page, base, hash);
		await accessible(page, name);
	}
	await go(page, base, "#/decisions?from=-1w");
	await rows(page).first().getByRole("link").click();
	await page.getByRole("dialog").getByText("Decided", { exact: true }).waitFor();
	for (const fold of await page.getByRole("dialog").locator("summary").all())
		await fold.click();
	await accessible(page, "a decision");
	await page.keyboard.press("Escape");
	await page.keyboard.press("?");
	await page.getByRole("dialog").getByText("this list").waitFor();
	await accessible(page, "the list of keys");
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "Custom range" }).click();
	await accessible(page, "the form of a range");
}

export async function nothingIsTooWide({ page, base }) {
	await withChanges(page);
	const incident = (await (await fetch(`${base}/api/v1/incidents?from=-7d&count=1`)).json()).items[0];

	for (const [name, hash] of [...views, ["incident", `#/incident/${incident.namespace}/${incident.pool}/${encodeURIComponent(incident.from)}`]]) {
		await go(page, base, hash);
		must(await overflow(page) <= 0, `${name}: ${await overflow(page)} px too wide`);
		must(!(await crowded(page)).length, `${name}, text cut: ${await crowded(page)}`);
	}
	await go(page, base, "#/decisions?from=-1w");
	await rows(page).first().getByRole("link").click();
	await page.getByRole("dialog").getByText("Decided", { exact: true }).waitFor();
	must(await page.getByRole("dialog").evaluate(d => d.scrollWidth <= d.clientWidth), "the decision is too wide");
}

/* Without a mouse: to the content, to a pool, to a card, to a decision, and back to where it was opened. */
export async function byKeyboardAlone({ page, base }) {
	const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
	const tabTo = async words => {
		for (let i = 0; i < 80; i++) {
			await page.keyboard.press("Tab");
			if ((await focused()).startsWith(words))
				return;
		}
		must(false, `Tab never came to '${words}'`);
	};

	await go(page, base, "#/pools");
	await page.keyboard.press("Tab");
	must(await focused() === "Skip to content", `first is the skip link, not '${await focused()}'`);
	await page.keyboard.press("Enter");
	must(await page.evaluate(() => document.activeElement.id) === "main", "it leads to the content");
	await tabTo("chat");
	must(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle) === "solid", "focus is seen");
	await page.keyboard.press("Enter");
	await until("the pool", async () => await page.locator("h1").innerText() === "chat");
	await settle(page);
	must(await page.evaluate(() => document.activeElement.tagName) === "H1", "focus is at the heading of the new view");
	await tabTo("Rules and price");
	await page.keyboard.press("Enter");
	must(/rule in force/.test(await focused()), "a jump leads to its card");
	await page.keyboard.press("g");
	await page.keyboard.press("d");
	await until("the log", async () => await page.locator("h1").innerText() === "Decisions");
	await settle(page);
	await rows(page).first().getByRole("link").focus();
	await page.keyboard.press("ArrowDown");
	const opened = await page.evaluate(() => document.activeElement.dataset.decision);
	await page.keyboard.press("Enter");
	await page.getByRole("dialog").getByText("Decided", { exact: true }).waitFor();
	await page.keyboard.press("Escape");
	await until("focus is back", async () => await page.evaluate(() => document.activeElement.dataset.decision) === opened);
	await go(page, base, "#/pool/llm/chat?from=-1d");
	await page.locator(".chart-area").first().focus();
	const at = await text(page, ".legend .when");
	await page.keyboard.press("Shift+ArrowLeft");
	must(await text(page, ".legend .when") !== at, "arrows walk a chart");
}

export async function colours({ page, base }) {
	await go(page, base, "#/pools");
	const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor), light = await ground();

	await page.getByRole("button", { name: /Colours/ }).click();
	await page.getByRole("button", { name: /Colours: light/ }).click();
	must(await ground() !== light, "dark is not light");
	await page.reload();
	await settle(page);
	must(await ground() !== light, "the choice is kept");
}

export async function whatIf({ page, base }) {
	await go(page, base, "#/pool/llm/embed?from=-1d");
	const card = page.locator("section", { has: page.getByRole("heading", { name: "What if" }) });

	await card.getByLabel("Attainment").fill("minus one");
	await card.getByRole("button", { name: "Start" }).click();
	await until("what is wrong is said", async () => /minus one/.test(await card.getByRole("alert").last().innerText().catch(() => "")));
	await card.getByLabel("Attainment").fill("95%");
	await card.getByRole("button", { name: "Start" }).click();
	await card.getByText(/^done$/).waitFor({ timeout: 10 * patience }); // advice and other fleets are worked out beside it
	const words = await card.innerText();
	must(/Recorded/.test(words) && /GPU hours/.test(words) && /Late requests/.test(words), `a result beside the recorded: ${words}`);
	must(/The objective: recorded (met|missed) .*; with the change (met|missed) \([0-9.]+ % late of 5 % allowed\)/.test(words), `met or missed: ${words}`);
	must(/the price of each objective the same time comes to \$/.test(words), `beside the other price: ${words}`);
}

/* Expects the messages of a browser whose server is gone; `server` can end and come back. */
export async function staleAndBack({ page, base, complaints, server }) {
	await go(page, base, "#/pools");
	await until("connected", async () => await page.locator("#live").getAttribute("data-state") === "recorded");
	await server.stop();
	await until("stale", async () => /^stale since \d\d:\d\d:\d\d$/.test(await text(page, "#live-text")));
	await server.again();
	await until("connected again", async () => await page.locator("#live").getAttribute("data-state") === "recorded");
	complaints.splice(0, complaints.length, ...complaints.filter(c => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(c)));
}

export async function firstStart({ page, base }) {
	await go(page, base, "#/no-such-view");
	must(await text(page, "h1") === "No such page" && /no-such-view/.test(await text(page, ".lead")), "an unknown view is named");
	must(await page.locator(".tabs [aria-current]").count() === 0, "and is none of the views");
	await page.goto(`${base}/#/pool/llm/nobody`);
	await until("what is wrong", async () => /There is no pool llm\/nobody/.test(await page.locator("main .failed:visible").first().innerText().catch(() => "")));
	must(!await page.locator("main section:visible").count(), "no empty cards of a pool that is not there");
}

/* The times of a file that nobody adds to may lie anywhere: it is recorded. */
export async function aFinishedFile({ page, base }) {
	const end = Date.parse((await (await fetch(`${base}/api/v1`)).json()).history.to);

	for (const [name, age, words] of [["an hour old", 3700000, /^recorded, ended \d\d:\d\d, 1h ago$/], ["of the future", -500000000000, /^recorded, ended 7 Jan 2024, \d\d:\d\d$/]]) {
		await page.addInitScript(shift => {
			const now = globalThis.clockNow || Date.now;

			globalThis.clockNow = now;
			Date.now = () => now() + shift;
		}, end + age - Date.now());
		await go(page, base, "#/decisions?from=-1h");
		await until(`a file ${name}`, async () => words.test(await text(page, "#live-text")));
		must(await page.locator("#live").getAttribute("data-state") === "recorded" && await page.locator("#live-text").isVisible(), `${name}: no sign of life`);
		must(await overflow(page) <= 0, `${name}: ${await overflow(page)} px too wide`);
	}
}

/* What ends at midnight ends the day before; "today" is a day with ticks. */
export async function recordToMidnight({ page, base }) {
	let asked = null;
	const about = await (await fetch(`${base}/api/v1`)).json();

	await page.route(/\/api\/v1$/, route => route.fulfill({ json: { ...about, history: { ...about.history, to: "2024-01-06T23:00:00Z" } } })); // in Berlin
	page.on("request", r => { asked = new URL(r.url()).searchParams.get("midnight") || asked; });
	await go(page, base, "#/pools");
	must(asked === "2024-01-05T23:00:00.000Z", `today begins ${asked}`);
}

/* Every number of an axis is painted inside it. */
export async function axesHoldTheirNumbers({ page, base }) {
	await page.addInitScript(() => {
		const paint = CanvasRenderingContext2D.prototype.fillText;

		window.cut = [];
		CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
			const left = this.getTransform().e + x - (this.textAlign === "right" ? this.measureText(words).width : 0);

			if (/^[\d,]+$/.test(words) && this.textAlign === "right" && left < 0)
				window.cut.push(`${words} from ${Math.round(left)}`);
			return paint.apply(this, arguments);
		};
	});
	const all = await (await fetch(`${base}/api/v1/incidents?from=-7d`)).json(), worst = all.items.reduce((a, b) => b.late > a.late ? b : a);

	await page.route("**/series?*", async route => {
		const answer = await (await route.fetch()).json();

		answer.columns.late = answer.columns.late.map(v => v === null ? null : 1000 * v);
		await route.fulfill({ json: answer });
	});
	await go(page, base, `#/incident/${worst.namespace}/${worst.pool}/${encodeURIComponent(worst.from)}`);
	await until("charts", async () => await page.locator(".chart-area canvas:visible").count() === 2);
	must(!(await page.evaluate(() => window.cut)).length, `cut: ${await page.evaluate(() => window.cut)}`);
}
