/* drawChart(host, spec) with uPlot. page.js says what a spec is. */
"use strict";

function drawChart(host, spec) {
	/* A canvas knows no variables, and of light-dark() only an element says which. */
	const color = name => {
		host.style.color = `var(${name})`;
		const value = getComputedStyle(host).color;
		host.style.color = "";
		return value;
	};
	const ratio = window.devicePixelRatio || 1;
	const font = "12px system-ui, sans-serif";

	/* A tile of the fill, so that areas differ by more than their colour. */
	function pattern(name, texture) {
		if (!texture)
			return color(name);
		const tile = document.createElement("canvas"), size = 8 * ratio;
		tile.width = tile.height = size;
		const pen = tile.getContext("2d");
		pen.fillStyle = color(name);
		pen.fillRect(0, 0, size, size);
		pen.strokeStyle = color("--paper");
		pen.lineWidth = 1.6 * ratio;
		pen.beginPath();
		if (texture !== "lines")
			for (const at of [-size / 2, size / 2, size * 1.5])
				pen.moveTo(at - size, size), pen.lineTo(at + size, -size);
		if (texture === "lines")
			pen.moveTo(0, size / 2), pen.lineTo(size, size / 2);
		if (texture === "cross")
			for (const at of [-size / 2, size / 2, size * 1.5])
				pen.moveTo(at - size, -size), pen.lineTo(at + size, size);
		pen.stroke();
		return tile.getContext("2d").createPattern(tile, "repeat");
	}

	function swatch(s) {
		const paint = `var(${s.color})`, gap = "var(--paper)", thin = "center / 100% 3px no-repeat";
		if (s.shape === "none")
			return "none";
		if (s.shape === "line" || s.shape === "step")
			return s.dash ? `repeating-linear-gradient(90deg, ${paint} 0 4px, transparent 4px 6px) ${thin}`
				: `linear-gradient(${paint}, ${paint}) ${thin}`;
		const stripes = angle => `repeating-linear-gradient(${angle}, ${gap} 0 1.5px, transparent 1.5px 5px)`;
		if (s.shape !== "area")
			return paint;
		return { "": paint, stripes: `${stripes("-45deg")}, ${paint}`, lines: `${stripes("0deg")}, ${paint}`,
			cross: `${stripes("-45deg")}, ${stripes("45deg")}, ${paint}` }[s.texture || ""];
	}

	function seriesOf(s) {
		const steps = uPlot.paths.stepped({ align: -1 }), bars = uPlot.paths.bars({ size: [0.9, 40], align: -1 });
		return {
			label: s.name, scale: s.scale || "y", spanGaps: Boolean(s.joined),
			stroke: s.shape === "bars" ? undefined : color(s.color),
			width: s.shape === "area" ? 0 : s.shape === "none" ? 0 : s.width || 1.5,
			dash: s.dash, fill: s.shape === "area" || s.shape === "bars" ? pattern(s.color, s.texture) : undefined,
			paths: s.shape === "bars" ? bars : s.shape === "line" || s.shape === "none" ? undefined : steps,
			points: { show: Boolean(s.points), size: 8, fill: color(s.color) },
			value: (u, v, si, i) => i == null || s.values[i] == null ? "–" : s.show(s.values[i]),
		};
	}

	const dayBelow = "\n{D} {MMM}";
	const clock = [
		[86400 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
		[86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
		[60, "{HH}:{mm}", dayBelow, null, dayBelow, null, null, null, 1],
		[1, "{HH}:{mm}:{ss}", dayBelow, null, dayBelow, null, null, null, 1],
	];

	function axis(side, scale, name, show) {
		return {
			side, scale, label: name, font, labelFont: font, labelSize: side % 2 ? 20 : 16, labelGap: 0,
			size: side % 2 ? 52 : 30, stroke: color("--faint"),
			grid: { show: side !== 1, stroke: color("--rule"), width: 1 }, ticks: { stroke: color("--rule"), width: 1 },
			values: show ? (u, splits) => splits.map(v => v == null ? "" : show(v)) : undefined,
		};
	}

	function visibleMarks(u) {
		const { min, max } = u.scales.x;
		return spec.marks.filter(m => m.x >= min && m.x <= max).slice(0, spec.mostMarks || Infinity);
	}

	function paintMarks(u) {
		u.ctx.save();
		u.ctx.textAlign = "center";
		u.ctx.textBaseline = "middle";
		for (const m of visibleMarks(u).reverse()) {
			u.ctx.font = `${(m.size || 11) * ratio}px sans-serif`;
			u.ctx.lineWidth = 3 * ratio;
			u.ctx.strokeStyle = color("--paper");
			u.ctx.fillStyle = color(m.color);
			const x = u.valToPos(m.x, "x", true), y = u.valToPos(m.y, "y", true);
			u.ctx.strokeText(m.sign, x, y);
			u.ctx.fillText(m.sign, x, y);
		}
		u.ctx.restore();
	}

	function note(u, text, x, y, align) {
		u.ctx.textAlign = align;
		u.ctx.setLineDash([]);
		u.ctx.lineWidth = 4 * ratio;
		u.ctx.strokeStyle = color("--paper");
		u.ctx.strokeText(text, x, y);
		u.ctx.fillText(text, x, y);
	}

	function paintLimits(u) {
		const { left, top, width, height } = u.bbox;
		u.ctx.save();
		u.ctx.font = `${12 * ratio}px system-ui, sans-serif`;
		u.ctx.lineJoin = "round";
		for (const l of spec.limits || []) {
			const y = u.valToPos(l.y, "y", true);
			u.ctx.lineWidth = 1.5 * ratio;
			u.ctx.fillStyle = u.ctx.strokeStyle = color("--limit");
			u.ctx.setLineDash([6 * ratio, 4 * ratio]);
			u.ctx.beginPath();
			u.ctx.moveTo(left, y), u.ctx.lineTo(left + width, y);
			u.ctx.stroke();
			note(u, l.name, left + width - 6 * ratio, y > top + 20 * ratio ? y - 5 * ratio : y + 14 * ratio, "right");
		}
		for (const l of spec.xLimits || []) {
			const x = u.valToPos(l.x, "x", true);
			u.ctx.lineWidth = 1.5 * ratio;
			u.ctx.fillStyle = u.ctx.strokeStyle = color("--limit");
			u.ctx.setLineDash([6 * ratio, 4 * ratio]);
			u.ctx.beginPath();
			u.ctx.moveTo(x, top), u.ctx.lineTo(x, top + height);
			u.ctx.stroke();
			note(u, l.name, x + 6 * ratio, top + 14 * ratio, "left");
		}
		if (spec.shadeUntil > u.scales.x.min) {
			const x = u.valToPos(Math.min(spec.shadeUntil, u.scales.x.max), "x", true);
			u.ctx.globalAlpha = 0.12;
			u.ctx.fillStyle = color("--ink");
			u.ctx.fillRect(left, top, x - left, height);
			u.ctx.globalAlpha = 1;
			u.ctx.fillStyle = color("--ink");
			if (x - left > 64 * ratio)
				note(u, "warm-up", left + 6 * ratio, top + 14 * ratio, "left");
		}
		u.ctx.restore();
	}

	function showTip(u) {
		const { left, top } = u.cursor;
		let best = null, least = 14;
		for (const m of left >= 0 ? visibleMarks(u) : []) {
			const d = Math.hypot(u.valToPos(m.x, "x") - left, u.valToPos(m.y, "y") - top);
			if (d < least)
				[best, least] = [m, d];
		}
		tip.hidden = !best;
		if (!best)
			return;
		tip.textContent = best.text;
		const overLeft = u.over.offsetLeft, x = overLeft + left;
		tip.style.left = `${x > host.clientWidth / 2 ? Math.max(0, x - tip.offsetWidth - 14) : x + 14}px`;
		tip.style.top = `${u.over.offsetTop + top + 14}px`;
	}

	const tip = document.createElement("div");
	tip.className = "tip";
	tip.hidden = true;
	const top = (scale, most) => Math.max(most || 0, scale === "y" ? spec.leastTop || 0 : 0,
		...(scale === "y" ? (spec.limits || []).map(l => l.y) : [])) * 1.06 || 1;
	const scales = { x: { time: spec.xKind === "time" }, y: { range: (u, low, high) => [spec.isFree ? low * 0.96 : Math.min(0, low * 1.1), top("y", high)] } };
	if (spec.xKind === "log")
		scales.x.distr = 3;
	if (spec.xKind === "label")
		scales.x.range = () => [-0.4, spec.x.length - 0.6];
	const axes = [axis(2, "x", spec.xName, spec.showX), axis(3, "y", spec.yName, spec.showY)];
	if (spec.xKind === "time")
		Object.assign(axes[0], { values: clock, size: 46, space: 64 });
	if (spec.xKind === "label")
		axes[0].splits = () => spec.x;
	if (spec.y2Name) {
		scales.y2 = { range: (u, low, high) => [0, (high || 1) * 1.06] };
		axes.push(axis(1, "y2", spec.y2Name, spec.showY2));
	}
	const options = {
		width: host.clientWidth, height: spec.height || 220, scales, axes,
		tzDate: at => uPlot.tzDate(new Date(at * 1e3), "UTC"),
		series: [{ label: spec.xLegend || "at", value: (u, v) => v == null ? "–" : spec.showAt(v) },
			...spec.series.map(seriesOf)],
		legend: { show: spec.xKind !== "log", markers: { width: 0, fill: (u, i) => i ? swatch(spec.series[i - 1]) : "none" } },
		cursor: { y: false, sync: spec.group ? { key: spec.group } : undefined,
			points: { size: 6 }, drag: { x: spec.xKind === "time", y: false } },
		hooks: { draw: [paintLimits] },
	};
	if (spec.marks) {
		options.hooks.draw.push(paintMarks);
		options.hooks.setCursor = [showTip];
	}
	host.replaceChildren();
	const plot = new uPlot(options, [spec.x, ...spec.series.map(s => s.drawn || s.values)], host);
	host.append(tip);
	return width => plot.setSize({ width, height: spec.height || 220 });
}
