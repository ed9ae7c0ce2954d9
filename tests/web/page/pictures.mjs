// Pictures for the docs: what a reader of docs/operate.md sees is what the checks saw.

import path from "node:path";

import { go, openPage } from "./browser.mjs";

const pictures = [
	{ name: "page-pools", hash: "#/pools", height: 1560, changes: true },
	{ name: "page-incident", hash: "#/incidents?from=-1w", isIncident: true, height: 965, colors: "dark" },
	{ name: "page-pool", hash: "#/pool/llm/chat?from=-1w", height: 1000 },
	{ name: "page-rules", hash: "#/pool/llm/chat?from=-1w", card: "The rule in force among its shadows", colors: "dark", width: 1100, height: 720 },
	{ name: "page-log", hash: "#/decisions?from=-1w&pool=llm%2Fchat", width: 1100, height: 680 },
	{ name: "page-decision", hash: "#/decisions?from=-1w&pool=llm%2Fchat", isOpened: true, colors: "dark", width: 900, height: 560 },
	{ name: "page-narrow", hash: "#/pools", width: 360, height: 740, changes: true },
];

export async function takePictures(browser, base, folder) {
	for (const p of pictures) {
		const { page, context } = await openPage(browser, { base, zone: "UTC", ...p });

		await go(page, base, p.hash);
		if (p.changes) { // worked out in the background
			await page.locator(".change").first().waitFor({ timeout: 1800000 });
			await page.locator(".alternatives tbody tr").first().waitFor({ timeout: 1800000 });
		}
		if (p.isIncident) {
			await page.getByRole("row", { name: /stock-out/ }).getByRole("link").first().click();
			await page.waitForFunction(() => /requests late$/.test(document.querySelector("h1").textContent));
			await page.locator(".chart-area canvas").nth(1).waitFor();
		}
		if (p.isOpened) {
			await page.locator(".log a").first().click();
			await page.getByRole("dialog").getByText("Decided", { exact: true }).waitFor();
		}
		if (p.card)
			await page.getByRole("heading", { name: p.card }).evaluate(h => scrollTo(0, h.getBoundingClientRect().top + scrollY - 80));
		await page.screenshot({ path: path.join(folder, `${p.name}.png`) });
		await context.close();
	}
}
