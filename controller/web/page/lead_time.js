// From asking to serving: how long each stage took, as a distribution.

import { Chart } from "/assets/chart.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { section } from "/assets/section.js";
import { histogramSpec } from "/assets/waiting.js";
import { count, duration, phrase } from "/assets/words.js";

const names = { provision: "Machine provisioned", register: "Node registered", device: "GPU allocatable", image: "Image pulled", load: "Model loaded", total: "From asking to serving" };
const nameOf = s => names[s.stage] || phrase(s.stage);

/* From nothing to p99 as a line, p50 to p95 as a box, the median as a bar. */
function spread(s, longest) {
	const per = v => `${(100 * (v || 0) / longest).toFixed(2)}%`, end = s.p99 || s.p95;

	if (s.p50 === null || s.p50 === undefined)
		return "–";
	return el("div", { class: "spread", "aria-hidden": "true" }, el("span", { class: "spread-line", style: { left: "0", width: per(end) } }),
		el("span", { class: "spread-box", style: { left: per(s.p50), width: per(s.p95 - s.p50) } }), el("span", { class: "spread-mid", style: { left: per(s.p50) } }));
}

export function leadTimePart() {
	const part = section("Lead time by stage", { kind: "", note: "From asking the cloud to serving. Bar: the median; box: to nineteen of twenty; line: to 99 of a hundred." });
	const chart = new Chart(), stages = el("div"), title = el("h3");
	let chosen = "total", latest = null;

	part.tools.append(chart.toggle);

	function histogram() {
		const s = latest.find(x => x.stage === chosen) || latest[0];

		chosen = s.stage;
		title.textContent = `${nameOf(s)}: ${count(s.samples)} measured`;
		chart.show({ ...histogramSpec(`Lead time: ${nameOf(s)}`, s.histogram || [], { color: "--starting", line: "--starting-line" }),
			emptyWords: "No start has been measured yet; until then the manifest's lead times are used." });
	}

	function pick(s) {
		return el("button", { type: "button", class: "quiet", "aria-pressed": String(s.stage === chosen), "data-stage": s.stage, on: { click: () => {
			chosen = s.stage;
			stages.querySelectorAll("button").forEach(b => b.setAttribute("aria-pressed", String(b.dataset.stage === chosen)));
			histogram();
		} } }, nameOf(s));
	}

	function draw(answer) {
		latest = [...(answer.stages || []), ...(answer.total ? [{ stage: "total", ...answer.total }] : [])].map(s => ({ ...s, stage: s.stage || "total" }));
		if (!chart.node.parentNode)
			part.body.append(el("div", { class: "grid" }, el("div", { class: "half" }, stages), el("div", { class: "half" }, title, chart.node)));
		const longest = Math.max(1, ...latest.map(s => s.p99 || s.p95 || 0)), held = stages.contains(document.activeElement) && document.activeElement.dataset.stage;

		fill(stages, scrolling("Stages, as a table", table([{ name: "Stage", isHead: true, of: pick }, { name: "p50", isNumber: true, of: s => duration(s.p50) }, { name: "p95", isNumber: true, of: s => duration(s.p95) },
			{ name: "Starts", isNumber: true, of: s => count(s.samples) }, { name: el("span", { class: "unseen" }, "Spread"), of: s => spread(s, longest) }], latest, { caption: "Lead time by stage" })));
		if (held)
			stages.querySelector(`button[data-stage="${CSS.escape(held)}"]`)?.focus();
		if (latest.length)
			histogram();
	}

	return { node: part.node, part, draw, close: () => chart.close() };
}
