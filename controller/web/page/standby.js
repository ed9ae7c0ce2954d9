// Standby and lending: what is kept cheaply, what is lent out, and the node groups that carry all of it.

import { Chart, summary } from "/assets/chart.js";
import { xRange } from "/assets/capacity.js";
import { fill, scrolling, table } from "/assets/dom.js";
import { look } from "/assets/range.js";
import { emptiness, section } from "/assets/section.js";
import { sign } from "/assets/pool_status.js";
import { count, phrase } from "/assets/format.js";

export function warmthPart() {
	const part = section("Standby and lending", { kind: "half", note: "Standby: stopped machines with the image on disk, at a few percent of the price. Lent: hot replicas' machines that do batch work until they are wanted back." });
	const chart = new Chart();

	part.tools.append(chart.toggle);

	function draw(series) {
		const c = series.columns, isUsed = [...c.standby, ...c.lent].some(v => v);

		if (!chart.node.parentNode)
			part.body.append(chart.node);
		chart.show({
			name: "Standby and lending", x: isUsed ? c.at : [], isTime: true, xRange: xRange(), height: 200, show: count, onRange: look,
			series: [{ name: "Lent", kind: "area", color: "--lent", line: "--lent-line", values: c.lent }, { name: "Standby", kind: "area", color: "--standby", line: "--standby-line", values: c.standby }],
			summary: summary([{ name: "Standby", values: c.standby }, { name: "Lent", values: c.lent }], count),
			emptyWords: "Nothing stood by or was lent in this range. A node group with standby:, or lend: on the pool, allows it.",
		});
	}

	return { node: part.node, part, draw, close: () => chart.close() };
}

const good = /^(ready|ok)$/i;

export function groupsPart() {
	const part = section("Node groups", { note: "In order of preference." });

	function draw(pool) {
		const rows = pool.groups || [];

		fill(part.body, rows.length ? scrolling("Node groups, as a table", table([
			{ name: "Group", isHead: true, of: g => g.name }, { name: "Provider", of: g => g.provider || "–" }, { name: "Capacity", of: g => g.capacityType ? phrase(g.capacityType) : "–" },
			{ name: "State", of: g => g.state ? sign(good.test(g.state) ? "good" : "warn", phrase(g.state)) : "–" },
			{ name: "Desired", isNumber: true, of: g => count(g.desired) }, { name: "Ready", isNumber: true, of: g => count(g.ready) }, { name: "Standby", isNumber: true, of: g => count(g.standby) },
			{ name: "Least", isNumber: true, of: g => count(g.min) }, { name: "Most", isNumber: true, of: g => count(g.max) }, { name: "Why", of: g => g.why || "" }], rows, { caption: "Node groups" }))
			: emptiness("The manifest of this pool names no node group."));
	}

	return { node: part.node, part, draw, close() {} };
}
