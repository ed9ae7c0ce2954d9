// One chart by uPlot: stacked areas, lines, steps, bars or points, with a legend that follows the cursor, limits and marks,
// a summary in words, and the same numbers as a table.

import { el, fill, say, scrolling, table } from "/assets/dom.js";
import { marksOn, nearestMark, paintLimits } from "/assets/chart_marks.js";
import { onSetting, settings } from "/assets/settings.js";
import { time, unknown } from "/assets/format.js";

const mostRows = 500, leastAxis = 48;
const probe = el("span", { class: "unseen", "aria-hidden": "true" });
document.body.append(probe);

/** The value of a colour of base.css or tiers.css in the theme of now; a canvas knows no variables. */
export function color(name) {
	probe.style.color = `var(${name})`;
	return getComputedStyle(probe).color;
}

const ratio = () => window.devicePixelRatio || 1;
const fontOf = () => `12px ${getComputedStyle(document.body).fontFamily}`;

function hatch(ground, line) {
	const tile = document.createElement("canvas"), size = 8 * ratio();

	tile.width = tile.height = size;
	const c = tile.getContext("2d");
	c.fillStyle = ground;
	c.fillRect(0, 0, size, size);
	c.strokeStyle = line;
	c.lineWidth = ratio();
	c.beginPath();
	for (const shift of [-size, 0, size])
		c.moveTo(shift, size), c.lineTo(shift + size, 0);
	c.stroke();
	return c.createPattern(tile, "repeat");
}

function pathsOf(kind) {
	if (kind === "steps" || kind === "area")
		return uPlot.paths.stepped({ align: 1 });
	if (kind === "bars")
		return uPlot.paths.bars({ size: [0.8, 40], align: 1 });
	return kind === "points" ? () => null : uPlot.paths.linear();
}

function seriesOf(s) {
	const line = color(s.line || s.color);

	return {
		label: s.name, scale: s.scale || "y", spanGaps: false,
		stroke: s.kind === "points" ? "transparent" : line, width: s.kind === "bars" ? 0 : s.width || (s.kind === "area" ? 1 : 2),
		fill: s.kind === "area" || s.kind === "bars" ? (s.isHatched ? hatch(color(s.color), line) : color(s.color)) : undefined,
		dash: s.isDashed ? [6, 4] : undefined, paths: pathsOf(s.kind),
		points: s.kind === "points" ? { show: true, size: s.size || 5, stroke: line, fill: color(s.color), width: 1 } : { show: false },
	};
}

/* Stacked areas are drawn from the highest sum down, each over the one before. */
function stacked(series) {
	const sums = [];
	let below = null;

	for (const s of series) {
		if (s.kind !== "area") {
			sums.push(s.values);
			continue;
		}
		const under = below;

		below = s.values.map((v, i) => v === null || v === undefined ? null : v + (under ? under[i] || 0 : 0));
		sums.push(below);
	}
	return sums;
}

function drawingOrder(series) {
	const areas = series.map((s, i) => i).filter(i => series[i].kind === "area").reverse();

	return [...areas, ...series.map((s, i) => i).filter(i => series[i].kind !== "area")];
}

function dataOf(spec) {
	const sums = stacked(spec.series);

	return [spec.x, ...drawingOrder(spec.series).map(i => sums[i])];
}

/* As wide as its longest number. uPlot asks again until nothing moves; what it was then stays. */
function axisWidth(u, values, i, round) {
	const axis = u.axes[i];

	if (round > 1)
		return axis._size;
	u.ctx.font = axis.font[0];
	return Math.ceil(Math.max(leastAxis, ...(values || []).map(v => u.ctx.measureText(v).width / ratio() + axis.gap + 4)));
}

function axesOf(spec) {
	const axis = (side, scale, show, more) => ({
		side, scale, font: fontOf(), stroke: color("--faint"), ticks: { show: false }, gap: 6,
		grid: { show: side === 3, stroke: color("--rule"), width: 1 }, size: side === 2 ? 28 : axisWidth,
		values: show ? (u, splits) => splits.map(v => v === null ? "" : show(v, u)) : undefined, ...more,
	});
	const hourly = "\n{D} {MMM}", axes = [];

	axes.push(spec.isTime ? axis(2, "x", null, { size: 44, space: 70, values: [
		[86400 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
		[86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
		[60, "{HH}:{mm}", hourly, null, hourly, null, null, null, 1],
		[1, "{HH}:{mm}:{ss}", hourly, null, hourly, null, null, null, 1],
	] }) : axis(2, "x", spec.showX, spec.splitsX ? { splits: spec.splitsX } : {}));
	axes.push(axis(3, "y", spec.show));
	if (spec.showRight)
		axes.push(axis(1, "y2", spec.showRight));
	return axes;
}

const top = (high, least) => [0, Math.max(high || 0, least || 0) * 1.08 || 1];

function yRange(spec, low, high) {
	if (spec.yFrom === "data")
		return [low * 0.97, high * 1.03 || 1];
	if (spec.yFrom === "signed")
		return [Math.min(-1, low) * 1.1, Math.max(1, high) * 1.1];
	return top(high, Math.max(spec.leastTop || 0, ...(spec.limits || []).map(l => l.y || 0)));
}

function scalesOf(chart) {
	return {
		x: { time: Boolean(chart.spec.isTime), distr: chart.spec.isLog ? 3 : 1,
			range: (u, low, high) => chart.spec.xRange ? chart.spec.xRange : [low, high === low ? low + 1 : high] },
		y: { range: (u, low, high) => yRange(chart.spec, low, high) },
		y2: { range: (u, low, high) => top(high, chart.spec.leastTopRight) },
	};
}

/** spec: { name, x, series: [{ name, values, kind, color, line, show, scale, isDashed, isHatched }], isTime, xRange, limits, marks,
 * show, showRight, showX, showAt, columnX, height, onRange, summary, emptyWords } */
export class Chart {
	constructor() {
		this.legend = el("ul", { class: "legend" });
		this.area = el("div", { class: "chart-area", role: "img", tabindex: "0" });
		this.rows = el("div", { hidden: true });
		this.nothing = el("p", { class: "empty", hidden: true });
		this.tip = el("div", { class: "tip", hidden: true });
		this.node = el("div", { class: "chart fades" }, this.legend, this.area, this.nothing, this.rows);
		this.toggle = el("button", { type: "button", "aria-pressed": "false", on: { click: () => this.showTable(this.rows.hidden) } }, "Table");
		this.area.addEventListener("keydown", event => this.walk(event));
		this.sizes = new ResizeObserver(() => this.fit());
		this.sizes.observe(this.area);
		this.end = onSetting(() => this.spec && this.show(this.spec, true));
	}

	close() {
		this.sizes.disconnect();
		this.end();
		if (this.plot)
			this.plot.destroy();
		this.plot = null;
	}

	fit() {
		const width = this.area.clientWidth;

		if (this.plot && width && width !== this.plot.width)
			this.plot.setSize({ width, height: this.height });
	}

	show(spec, isAnew = false) {
		const shape = s => JSON.stringify([s.series.map(x => [x.name, x.kind, x.color]), Boolean(s.showRight), s.height, settings.isUtc]);
		const isSame = !isAnew && this.plot && this.spec && shape(this.spec) === shape(spec);
		const isEmpty = !spec.x.length || spec.series.every(s => s.values.every(v => v === null));

		this.spec = spec;
		this.height = spec.height || 260;
		this.nothing.hidden = !isEmpty;
		say(this.nothing, isEmpty ? spec.emptyWords || "Nothing was recorded in this range. Choose a longer one." : "");
		this.toggle.setAttribute("aria-label", `Table: ${spec.name}`);
		this.area.setAttribute("aria-label", `${spec.name}. ${spec.summary || ""} The same numbers: button Table.`);
		if (isEmpty)
			this.clear(isEmpty);
		else if (isSame)
			this.plot.setData(dataOf(spec));
		else
			this.draw();
		this.area.hidden = isEmpty || !this.rows.hidden;
		this.say(this.plot ? this.plot.cursor.idx : null);
		if (!this.rows.hidden)
			this.showTable(true);
	}

	clear(isEmpty) {
		if (this.plot)
			this.plot.destroy();
		this.plot = null;
		this.toggle.hidden = isEmpty;
	}

	draw() {
		const { spec } = this;

		this.clear(false);
		this.area.hidden = false;
		fill(this.area);
		this.plot = new uPlot({
			width: this.area.clientWidth || 600, height: this.height, scales: scalesOf(this), axes: axesOf(spec), padding: [10, spec.showRight ? 0 : 24, 0, 0],
			tzDate: at => settings.isUtc ? uPlot.tzDate(new Date(at * 1e3), "UTC") : new Date(at * 1e3),
			series: [{}, ...drawingOrder(spec.series).map(i => seriesOf(spec.series[i]))],
			legend: { show: false },
			cursor: { y: false, sync: spec.isTime ? { key: "time", setSeries: false } : undefined, points: { show: false },
				drag: { x: Boolean(spec.onRange), y: false, setScale: false } },
			hooks: {
				draw: [u => paintLimits(u, this.spec, color), u => marksOn(u, this.spec, color)],
				setCursor: [u => { this.say(u.cursor.idx); this.point(u); }],
				setSelect: [u => this.selected(u)],
			},
		}, dataOf(spec), this.area);
		this.area.append(this.tip);
	}

	selected(u) {
		const { left, width } = u.select;

		if (width < 4 || !this.spec.onRange)
			return;
		const from = u.posToVal(left, "x"), to = u.posToVal(left + width, "x");

		u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
		this.spec.onRange(from, to);
	}

	point(u) {
		const mark = nearestMark(u, this.spec);

		this.tip.hidden = !mark;
		if (!mark)
			return;
		this.tip.textContent = mark.text;
		const x = u.over.offsetLeft + u.cursor.left;
		this.tip.style.setProperty("left", `${x > this.area.clientWidth / 2 ? Math.max(0, x - this.tip.offsetWidth - 12) : x + 12}px`);
		this.tip.style.setProperty("top", `${u.over.offsetTop + Math.max(0, u.cursor.top) + 14}px`);
	}

	/** Arrow keys move the cursor: point by point, with Shift ten at once. */
	walk(event) {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];

		if (!this.plot || !step)
			return;
		event.preventDefault();
		const last = this.spec.x.length - 1, idx = this.plot.cursor.idx;
		const to = Math.min(last, Math.max(0, (idx === null || idx === undefined ? last : idx) + step * (event.shiftKey ? 10 : 1)));

		this.plot.setCursor({ left: this.plot.valToPos(this.spec.x[to], "x"), top: this.plot.over.clientHeight / 2 });
	}

	/* The legend: what the cursor is at, or the newest that is known. */
	say(idx) {
		const { spec } = this;
		const at = idx === null || idx === undefined ? spec.x.length - 1 : idx;

		if (spec.noLegend || this.legend.childElementCount !== spec.series.length + 1)
			fill(this.legend, spec.noLegend ? [] : [el("li", { class: "when" }), ...spec.series.map(legendEntry)]);
		if (spec.noLegend)
			return;
		say(this.legend.children[0], spec.noWhen || at < 0 ? "" : (spec.showAt || time)(spec.x[at]));
		this.legend.children[0].hidden = Boolean(spec.noWhen);
		spec.series.forEach((s, i) => {
			const b = this.legend.children[i + 1].querySelector("b");

			if (b)
				say(b, at < 0 ? unknown : (s.show || spec.show)(s.values[at]));
		});
	}

	showTable(isWanted) {
		const { spec } = this;

		this.toggle.setAttribute("aria-pressed", String(isWanted));
		this.rows.hidden = !isWanted;
		this.area.hidden = isWanted || !this.plot;
		if (!isWanted) {
			fill(this.rows);
			this.fit();
			return;
		}
		const step = Math.max(1, Math.ceil(spec.x.length / mostRows));
		const rows = spec.x.map((x, i) => i).filter(i => i % step === 0);
		const columns = [{ name: spec.columnX || "Time", isHead: true, of: i => (spec.showAt || time)(spec.x[i]) },
			...spec.series.map(s => ({ name: s.name, isNumber: true, of: i => (s.show || spec.show)(s.values[i]) }))];

		fill(this.rows, scrolling(`${spec.name}, as a table`, table(columns, rows, { caption: spec.name }), true));
	}
}

function legendEntry(s) {
	const shape = s.kind === "points" ? "point" : s.isDashed ? "dash" : s.kind === "line" || s.kind === "steps" ? "line" : "box";
	const ground = shape === "line" || shape === "dash" ? s.line || s.color : s.color;

	return el("li", null, el("span", { class: "key", "data-shape": shape, "data-hatched": s.isHatched,
		style: { background: `var(${ground})`, "border-color": `var(${s.line || s.color})` } }), s.name, s.noValue ? null : el("b"));
}

/** "Demand 2.1 to 8.3, now 6.1." out of a series. */
export function summary(series, show) {
	return series.map(s => {
		const known = s.values.filter(v => v !== null && v !== undefined);

		if (!known.length)
			return `${s.name}: not known.`;
		return `${s.name} from ${show(Math.min(...known))} to ${show(Math.max(...known))}, at the end ${show(known[known.length - 1])}.`;
	}).join(" ");
}
