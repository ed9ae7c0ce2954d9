// From asking to serving: how long each stage took, as a distribution.

import { Chart } from "/assets/chart.js";
import { el, fill, scrolling, table } from "/assets/dom.js";
import { section } from "/assets/section.js";
import { histogramSpec } from "/assets/slo.js";
import { count, duration, phrase } from "/assets/format.js";

const names = { provision: "Machine provisioned", register: "Node registered", device: "GPU allocatable", image: "Image pulled", load: "Model loaded", total: "From asking to serving" };
const kindNames = { cold: "new machines", wake: "standby woken", refill: "standby refilled", reclaim: "lent, taken back", place: "on machines that are there", rouse: "engines woken" };
const nameOf = s => names[s.stage] || phrase(s.stage);

/* From nothing to p99 as a line, p50 to p95 as a box, the median as a bar. */
function spread(s, longest) {
	const per = v => `${(100 * (v || 0) / longest).toFixed(2)}%`, end = s.p99Seconds || s.p95Seconds;

	if (s.p50Seconds === null)
		return "–";
	return el("div", { class: "spread", "aria-hidden": "true" }, el("span", { class: "spread-line", style: { left: "0", width: per(end) } }),
		el("span", { class: "spread-box", style: { left: per(s.p50Seconds), width: per(s.p95Seconds - s.p50Seconds) } }), el("span", { class: "spread-mid", style: { left: per(s.p50Seconds) } }));
}

export function leadTimePart(again) {
	const part = section("Lead time by stage", { kind: "", note: "From asking the cloud to serving. Bar: the median; box: to nineteen of twenty; line: to 99 of a hundred." });
	const chart = new Chart(), stages = el("div"), title = el("h3");
	let chosen = "total", latest = null;

	const kinds = el("select", { id: "lead-kind", on: { change: () => again(kinds.value) } }), offerings = el("div", { class: "spaced" });

	part.tools.append(el("label", { for: "lead-kind" }, "Starts"), kinds, chart.toggle);

	function choice(answer) {
		if (kinds.childElementCount !== answer.kinds.length || !answer.kinds.length)
			fill(kinds, answer.kinds.map(k => el("option", { value: k.kind }, `${kindNames[k.kind] || phrase(k.kind)}, ${duration(k.p50Seconds)}`)));
		kinds.value = answer.kind;
		kinds.disabled = answer.kinds.length < 2;
	}

	function histogram() {
		const s = latest.find(x => x.stage === chosen) || latest[0];

		chosen = s.stage;
		title.textContent = `${nameOf(s)}: ${count(s.samples)} measured`;
		fill(offerings, s.byOffering.length > 1 ? scrolling("By node group, as a table", table([{ name: "Node group", isHead: true, of: o => o.group }, { name: "Machine", of: o => [o.instanceType, o.zone, o.capacityType].filter(Boolean).join(", ") || "–" },
			{ name: "p50", isNumber: true, of: o => duration(o.p50Seconds) }, { name: "p95", isNumber: true, of: o => duration(o.p95Seconds) }, { name: "Starts", isNumber: true, of: o => count(o.samples) }], s.byOffering, { caption: "By node group" })) : null);
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
		latest = [...answer.stages, answer.total];
		choice(answer);
		if (!chart.node.parentNode)
			part.body.append(el("div", { class: "grid" }, el("div", { class: "half" }, stages), el("div", { class: "half" }, title, chart.node, offerings)));
		const longest = Math.max(1, ...latest.map(s => s.p99Seconds || s.p95Seconds || 0)), held = stages.contains(document.activeElement) && document.activeElement.dataset.stage;

		fill(stages, scrolling("Stages, as a table", table([{ name: "Stage", isHead: true, of: pick }, { name: "p50", isNumber: true, of: s => duration(s.p50Seconds) }, { name: "p95", isNumber: true, of: s => duration(s.p95Seconds) },
			{ name: "Starts", isNumber: true, of: s => count(s.samples) }, { name: el("span", { class: "unseen" }, "Spread"), of: s => spread(s, longest) }], latest, { caption: "Lead time by stage" })));
		if (held)
			stages.querySelector(`button[data-stage="${CSS.escape(held)}"]`)?.focus();
		if (latest.length)
			histogram();
	}

	return { node: part.node, part, draw, close: () => chart.close() };
}
