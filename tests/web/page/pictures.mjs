// Pictures for the docs: what a reader of docs/operate.md sees is what the checks saw.

import path from "node:path";

import { go, openPage } from "./browser.mjs";

const pictures = [
	{ name: "page-pools", hash: "#/pools" },
	{ name: "page-pool", hash: "#/pool/llm/chat?from=-1w", height: 1000 },
	{ name: "page-rules", hash: "#/pool/llm/chat?from=-1w", card: "The rule in force among its shadows", colors: "dark", width: 1100, height: 720 },
	{ name: "page-log", hash: "#/decisions?from=-1w&pool=llm%2Fchat", width: 1100, height: 680 },
	{ name: "page-decision", hash: "#/decisions?from=-1w&pool=llm%2Fchat", isOpened: true, colors: "dark", width: 900, height: 560 },
	{ name: "page-narrow", hash: "#/pools", width: 360, height: 740 },
];

export async function takePictures(browser, base, folder) {
	for (const p of pictures) {
		const { page, context } = await openPage(browser, { base, zone: "UTC", ...p });

		await go(page, base, p.hash);
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
