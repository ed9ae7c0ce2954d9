// What is painted over a chart: lines of a limit with their name, and signs at a time (what was asked of the cloud).

const near = 14;
const mostMarks = 300;
const ratio = () => window.devicePixelRatio || 1;

function dashed(c, x1, y1, x2, y2) {
	c.setLineDash([6 * ratio(), 4 * ratio()]);
	c.beginPath();
	c.moveTo(x1, y1);
	c.lineTo(x2, y2);
	c.stroke();
	c.setLineDash([]);
}

/* Moves down, line by line, where another name stands already. */
function name(c, text, x, wanted, align, ground, taken) {
	const wide = c.measureText(text).width, from = align === "right" ? x - wide : x, high = 16 * ratio();
	let y = wanted;

	while (taken.some(t => Math.abs(t.y - y) < high && from < t.to + 4 * ratio() && from + wide > t.from - 4 * ratio()))
		y += high;
	taken.push({ from, to: from + wide, y });
	c.textAlign = align;
	c.lineWidth = 4 * ratio();
	c.strokeStyle = ground;
	c.strokeText(text, x, y);
	c.fillText(text, x, y);
}

export function paintLimits(u, spec, color) {
	const c = u.ctx, { left, top, width, height } = u.bbox, taken = [];

	c.save();
	c.font = `${12 * ratio()}px ${getComputedStyle(document.body).fontFamily}`;
	c.lineJoin = "round";
	for (const l of spec.limits || []) {
		c.strokeStyle = c.fillStyle = color(l.color || "--limit");
		c.lineWidth = 1.5 * ratio();
		if (l.y !== undefined) {
			const y = u.valToPos(l.y, l.scale || "y", true);

			dashed(c, left, y, left + width, y);
			name(c, l.name, left + width - 4 * ratio(), y - 6 * ratio() < top + 12 * ratio() ? y + 15 * ratio() : y - 6 * ratio(), "right", color("--paper"), taken);
		} else {
			const x = u.valToPos(l.x, "x", true), isRight = x > left + width * 0.7;

			dashed(c, x, top, x, top + height);
			name(c, l.name, x + (isRight ? -6 : 6) * ratio(), top + 14 * ratio(), isRight ? "right" : "left", color("--paper"), taken);
		}
	}
	c.restore();
}

const shapes = {
	up: [[0, -5], [5, 4], [-5, 4]],
	down: [[0, 5], [5, -4], [-5, -4]],
	cross: [[-5, -3], [-3, -5], [0, -2], [3, -5], [5, -3], [2, 0], [5, 3], [3, 5], [0, 2], [-3, 5], [-5, 3], [-2, 0]],
	ring: [[0, -5], [5, 0], [0, 5], [-5, 0]],
};

function visible(u, spec) {
	const { min, max } = u.scales.x;

	return (spec.marks || []).filter(m => m.x >= min && m.x <= max).slice(-mostMarks);
}

function place(u, m, isCanvas) {
	const r = isCanvas ? ratio() : 1;
	const top = isCanvas ? u.bbox.top : 0;

	return [u.valToPos(m.x, "x", isCanvas), m.y === undefined ? top + 8 * r : u.valToPos(m.y, "y", isCanvas)];
}

export function marksOn(u, spec, color) {
	const c = u.ctx, r = ratio();

	c.save();
	for (const m of visible(u, spec).filter(v => !v.isUnseen)) {
		const [x, y] = place(u, m, true), size = (m.size || 1) * r;

		c.beginPath();
		shapes[m.shape || "up"].forEach(([dx, dy], i) => i ? c.lineTo(x + dx * size, y + dy * size) : c.moveTo(x + dx * size, y + dy * size));
		c.closePath();
		c.lineWidth = 3 * r;
		c.strokeStyle = color("--paper");
		c.fillStyle = color(m.color || "--asked");
		c.stroke();
		c.fill();
	}
	c.restore();
}

export function nearestMark(u, spec) {
	const { left, top } = u.cursor;
	let best = null, least = near;

	if (left === undefined || left < 0)
		return null;
	for (const m of visible(u, spec)) {
		const [x, y] = place(u, m, false), d = Math.hypot(x - left, y - top);

		if (d < least)
			[best, least] = [m, d];
	}
	return best;
}
