/* drawChart(host, spec) without uPlot: still pictures, one scale for each axis. page.js says what a spec is. */
"use strict";

function drawChart(host, spec) {
	const width = Math.max(host.clientWidth, 200), height = spec.height || 220, left = 52, right = 52, bottom = 24;
	const make = (name, attributes, text) => {
		const node = document.createElementNS("http://www.w3.org/2000/svg", name);
		for (const key in attributes)
			node.setAttribute(key, attributes[key]);
		if (text !== undefined)
			node.textContent = text;
		return node;
	};
	const most = scale => Math.max(1e-9, scale === "y" ? spec.leastTop || 0 : 0,
		...(scale === "y" ? (spec.limits || []).map(l => l.y) : []),
		...spec.series.filter(s => (s.scale || "y") === scale).map(s => Math.max(...(s.drawn || s.values).map(v => v || 0))));
	const tops = { y: most("y"), y2: most("y2") };
	const warp = spec.xKind === "log" ? Math.log : v => v;
	const pad = spec.xKind === "label" ? 0.5 : 0;
	const from = warp(spec.x[0]) - pad, to = warp(spec.x[spec.x.length - 1]) + pad;
	const atX = v => left + (warp(v) - from) / (to - from || 1) * (width - left - right);
	const atY = (v, scale) => (height - bottom) - v / tops[scale || "y"] * (height - bottom - 12);
	const svg = make("svg", { width, height, role: "img", "aria-label": spec.title, "font-size": 12 });

	function trace(s) {
		const drawn = s.drawn || s.values, points = [];
		drawn.forEach((v, i) => {
			if (v == null)
				return;
			if (s.shape !== "line" && points.length)
				points.push(`${atX(spec.x[i - 1]).toFixed(1)},${atY(v, s.scale).toFixed(1)}`);
			points.push(`${atX(spec.x[i]).toFixed(1)},${atY(v, s.scale).toFixed(1)}`);
		});
		if (!points.length || s.shape === "none")
			return;
		const ends = [`${atX(spec.x[0])},${height - bottom}`, `${atX(spec.x[spec.x.length - 1])},${height - bottom}`];
		if (s.shape === "area" || s.shape === "bars")
			svg.append(make("polygon", { points: [ends[0], ...points, ends[1]].join(" "), fill: `var(${s.color})` }));
		else
			svg.append(make("polyline", { points: points.join(" "), fill: "none", stroke: `var(${s.color})`,
				"stroke-width": s.width || 1.5, "stroke-dasharray": (s.dash || []).join(" ") }));
	}

	spec.series.forEach(trace);
	const ink = { fill: "var(--faint)" };
	svg.append(make("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: "var(--faint)" }));
	svg.append(make("text", { ...ink, x: left - 4, y: 14, "text-anchor": "end" }, spec.showY(tops.y)));
	svg.append(make("text", { ...ink, x: left - 4, y: height - bottom, "text-anchor": "end" }, "0"));
	if (spec.y2Name)
		svg.append(make("text", { ...ink, x: width - right + 4, y: 14 }, spec.showY2(tops.y2)));
	const labels = spec.xKind === "label" ? spec.x : [spec.x[0], spec.x[spec.x.length - 1]];
	labels.forEach(x => svg.append(make("text", { ...ink, x: spec.xKind === "label" ? atX(x) : Math.min(Math.max(atX(x), 70), width - 70), y: height - 6,
		"text-anchor": "middle" }, (spec.showX || spec.showAt)(x))));
	for (const l of spec.limits || []) {
		svg.append(make("line", { x1: left, x2: width - right, y1: atY(l.y), y2: atY(l.y), stroke: "var(--limit)",
			"stroke-dasharray": "6 4" }));
		svg.append(make("text", { fill: "var(--limit)", x: left + 6, y: Math.max(atY(l.y) - 4, 12) }, l.name));
	}
	for (const l of spec.xLimits || []) {
		svg.append(make("line", { x1: atX(l.x), x2: atX(l.x), y1: 0, y2: height - bottom, stroke: "var(--limit)",
			"stroke-dasharray": "6 4" }));
		svg.append(make("text", { fill: "var(--limit)", x: atX(l.x) + 6, y: 14 }, l.name));
	}
	for (const m of (spec.marks || []).slice(0, spec.mostMarks)) {
		const sign = make("text", { x: atX(m.x), y: atY(m.y), fill: `var(${m.color})`, "text-anchor": "middle",
			"font-size": m.size || 11 }, m.sign);
		sign.append(make("title", {}, m.text));
		svg.append(sign);
	}
	const key = document.createElement("ul");
	key.className = "key";
	for (const s of spec.series.filter(one => one.shape !== "none")) {
		const item = document.createElement("li"), swatch = document.createElement("span");
		swatch.className = "swatch";
		swatch.style.background = `var(${s.color})`;
		item.append(swatch, s.name);
		key.append(item);
	}
	host.replaceChildren(svg, key);
	return () => drawChart(host, spec);
}
